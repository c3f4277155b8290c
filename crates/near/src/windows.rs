// SPDX-License-Identifier: MIT
//! The program's windows and pixmaps, and the root windows: their selected events, properties and geometry.
//!
//! The proxy can answer queries for a property only while changes to it are reported on the same connection, because
//! events on another connection may arrive later. The proxy therefore adds PropertyChange to the program's event
//! selections, and drops the events that the program did not select.

use crate::bytes::{put_u16, put_u32, request};
use crate::context::ConnectionContext;
use crate::opcodes::op;
use crate::store::{Answer, answer_of};
use std::collections::{HashMap, VecDeque};
use xqos_wire::x11::bytes::ByteOrder;

const STRUCTURE_NOTIFY: u32 = 1 << 17;
/// Maximum number of remembered selection changes per window.
const MAX_SELECTIONS: usize = 16;
const MAX_NESTED: usize = 32;
const EVENT_MASK: u32 = 1 << 11;
const PROPERTY_CHANGE: u32 = 1 << 22;
const COPY_FROM_PARENT: u8 = 0;
const INPUT_ONLY: u16 = 2;

/// Limits for one program. Drawables beyond the limit are not tracked.
const MAX_DRAWABLES: usize = 16_384;
const MAX_PROPERTIES: usize = 1024;
const MAX_PROPERTY_BYTES: usize = 64 << 10;

/// A drawable of the program, or a root window.
#[derive(Clone, Debug, Default)]
struct Drawable {
    /// The last changes of the program's selection: request number, and the events.
    selected: VecDeque<(u64, u32)>,
    /// Whether the server reports property changes.
    is_watched: bool,
    /// Number of property changes, reported or requested.
    changes: u32,
    /// Number of the request that created it.
    created: u64,
    /// `None` once another client could have changed the geometry.
    geometry: Option<Geometry>,
    parent: Option<u32>,
    /// Whether the ID was in use at creation, so that the server has probably refused it.
    is_doubtful: bool,
}

impl Drawable {
    /// Events that the program selects.
    fn mask(&self) -> u32 {
        self.selected.back().map_or(0, |&(_, events)| events)
    }
}

/// The fields of a GetGeometry reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Geometry {
    root: u32,
    depth: u8,
    bounds: [u16; 5],
}

/// All drawables of a program, and the stored answers about them.
#[derive(Debug)]
pub struct Windows {
    order: ByteOrder,
    drawables: HashMap<u32, Drawable>,
    /// Replies to GetProperty; the key is the request.
    properties: HashMap<Box<[u8]>, Answer>,
    /// Replies to position requests; the key is the request. `moves` counts how often these replies became invalid.
    positions: HashMap<Box<[u8]>, Answer>,
    moves: u32,
    /// Whether the server refused one of the proxy's selections.
    cannot_watch: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyQuery {
    pub window: u32,
    changes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionQuery(u32);

impl Windows {
    pub fn new(context: &ConnectionContext) -> Windows {
        let roots = context.greeting.screens.iter();
        let drawables = roots.map(|screen| (screen.root, Drawable::default())).collect();
        let (properties, positions) = Default::default();
        Windows { order: context.order, drawables, properties, positions, moves: 0, cannot_watch: false }
    }

    /// Records a request from the program, and adds the proxy's event selection to it.
    pub fn hear(&mut self, request: &mut [u8], number: u64, context: &ConnectionContext) {
        let order = self.order;
        let Some(id) = order.u32(request, 4) else { return };
        // Any of these requests may move windows.
        if matches!(request[0], op::CREATE_WINDOW_REQUEST..=op::CIRCULATE_WINDOW_REQUEST) {
            self.unsettle();
        }
        match request[0] {
            op::CREATE_WINDOW_REQUEST => self.create_window(id, request, number, context),
            op::CREATE_PIXMAP_REQUEST => self.create_pixmap(id, request, number, context),
            op::CHANGE_WINDOW_ATTRIBUTES_REQUEST => self.select(id, request, number),
            op::DESTROY_WINDOW_REQUEST => {
                self.forget_below(id);
                self.forget(id);
            }
            op::FREE_PIXMAP_REQUEST => self.forget(id),
            op::DESTROY_SUBWINDOWS_REQUEST => self.forget_below(id),
            op::MAP_SUBWINDOWS_REQUEST => self.drawables.values_mut().for_each(|window| window.geometry = None),
            op::REPARENT_WINDOW_REQUEST | op::MAP_WINDOW_REQUEST | op::CONFIGURE_WINDOW_REQUEST => {
                if let Some(window) = self.drawables.get_mut(&id) {
                    window.geometry = None;
                    if request[0] == op::REPARENT_WINDOW_REQUEST {
                        window.parent = order.u32(request, 8);
                    }
                }
            }
            op::CHANGE_PROPERTY_REQUEST | op::DELETE_PROPERTY_REQUEST => self.change(id, order.u32(request, 8)),
            op::ROTATE_PROPERTIES_REQUEST => self.change(id, None),
            _ => {}
        }
    }

    /// Like [`Windows::hear`], for a request with a BIG-REQUESTS length, whose fields arrive later. No known client
    /// uses such a length to create windows or select events, so the window is simply forgotten.
    pub fn hear_long(&mut self, request: &[u8], context: &ConnectionContext) {
        let Some(id) = self.order.u32(request, 8) else { return };
        self.unsettle();
        match request[0] {
            op::CHANGE_PROPERTY_REQUEST | op::DELETE_PROPERTY_REQUEST | op::ROTATE_PROPERTIES_REQUEST => {
                self.change(id, None)
            }
            op::CREATE_WINDOW_REQUEST
            | op::CREATE_PIXMAP_REQUEST
            | op::CHANGE_WINDOW_ATTRIBUTES_REQUEST
            | op::DESTROY_WINDOW_REQUEST
            | op::FREE_PIXMAP_REQUEST => self.forget(id),
            _ => self.forget_all(context),
        }
    }

    fn create_window(&mut self, id: u32, request: &[u8], number: u64, context: &ConnectionContext) {
        let order = self.order;
        let short = |at| order.u16(request, at).unwrap_or(0);
        let (Some(parent), Some(mask)) = (order.u32(request, 8), order.u32(request, 28)) else { return };
        let selects = event_mask_at(mask, 32).and_then(|at| order.u32(request, at)).unwrap_or(0);
        let above = self.above(parent, context);
        let depth = match (request[1], short(22)) {
            (_, INPUT_ONLY) => Some(0),
            (COPY_FROM_PARENT, _) => above.map(|above| above.depth),
            (depth, _) => Some(depth),
        };
        let bounds = [12, 14, 16, 18, 20].map(short);
        let geometry = above.zip(depth).map(|(above, depth)| Geometry { root: above.root, depth, bounds });
        self.insert(
            id,
            context,
            Drawable {
                // Events before the creation belong to an older window with this ID.
                selected: VecDeque::from([(0, PROPERTY_CHANGE), (number, selects)]),
                is_watched: selects & PROPERTY_CHANGE != 0,
                created: number,
                geometry,
                parent: Some(parent),
                ..Drawable::default()
            },
        );
    }

    fn create_pixmap(&mut self, id: u32, request: &[u8], number: u64, context: &ConnectionContext) {
        let short = |at| self.order.u16(request, at).unwrap_or(0);
        let above = self.order.u32(request, 8).and_then(|above| self.above(above, context));
        let bounds = [0, 0, short(12), short(14), 0];
        let geometry = above.map(|above| Geometry { root: above.root, depth: request[1], bounds });
        self.insert(id, context, Drawable { created: number, geometry, ..Drawable::default() });
    }

    /// Root and depth of the drawable on which another drawable is created.
    fn above(&self, id: u32, context: &ConnectionContext) -> Option<Geometry> {
        match context.greeting.screen(id) {
            Some(screen) => Some(Geometry { root: id, depth: screen.depth, bounds: [0; 5] }),
            None => self.drawables.get(&id)?.geometry,
        }
    }

    fn insert(&mut self, id: u32, context: &ConnectionContext, drawable: Drawable) {
        let is_doubtful = self.drawables.contains_key(&id);
        self.forget(id);
        // The server refuses IDs outside the program's range.
        if context.greeting.is_own(id) && self.drawables.len() < MAX_DRAWABLES {
            let doubtful = || Drawable { is_doubtful, ..Drawable::default() };
            self.drawables.insert(id, if is_doubtful { doubtful() } else { drawable });
        }
    }

    fn select(&mut self, id: u32, request: &mut [u8], number: u64) {
        let order = self.order;
        let mask_at = order.u32(request, 8).and_then(|mask| event_mask_at(mask, 12));
        let Some((at, selects)) = mask_at.and_then(|at| Some((at, order.u32(request, at)?))) else { return };
        let Some(window) = self.drawables.get_mut(&id) else { return };
        if window.mask() != selects {
            window.selected.push_back((number, selects));
        }
        if window.selected.len() > MAX_SELECTIONS {
            window.selected.pop_front();
        }
        if window.is_watched {
            put_u32(order, request, at, selects | PROPERTY_CHANGE);
        }
        window.is_watched |= selects & PROPERTY_CHANGE != 0;
    }

    /// Undoes the request with this number, which the server has refused: a creation, or a selection of events.
    pub fn refuse(&mut self, number: u64) {
        self.drawables.retain(|_, drawable| drawable.created != number);
        let order = self.order;
        for (&id, window) in &mut self.drawables {
            let count = window.selected.len();
            window.selected.retain(|&(since, _)| since != number);
            if window.selected.len() < count {
                window.is_watched = false;
                window.changes = window.changes.wrapping_add(1);
                self.properties.retain(|read, _| order.u32(read, 4) != Some(id));
            }
        }
    }

    fn forget(&mut self, id: u32) {
        if self.drawables.remove(&id).is_some() {
            let order = self.order;
            self.properties.retain(|read, _| order.u32(read, 4) != Some(id));
        }
    }

    /// Forgets all windows below a window, which are destroyed with it.
    fn forget_below(&mut self, id: u32) {
        let below: Vec<u32> = self.drawables.keys().copied().filter(|&other| self.is_below(other, id)).collect();
        below.into_iter().for_each(|id| self.forget(id));
    }

    fn is_below(&self, id: u32, ancestor: u32) -> bool {
        let parent = |&id: &u32| self.drawables.get(&id)?.parent;
        std::iter::successors(parent(&id), parent).take(MAX_NESTED).any(|parent| parent == ancestor)
    }

    /// Forgets all positions, because windows may have moved.
    pub fn unsettle(&mut self) {
        self.moves = self.moves.wrapping_add(1);
        self.positions.clear();
    }

    /// The reply to an earlier position request, if no window could have moved since.
    pub fn position(&self, request: &[u8]) -> Option<&Answer> {
        self.positions.get(request)
    }

    /// Starts a position request, if the server reports position changes. The server does so for a child of a root
    /// window if the program selects StructureNotify on the child; only the program moves the child's descendants.
    pub fn ask_position(&self, id: u32, context: &ConnectionContext) -> Option<PositionQuery> {
        let mut window = self.drawables.get(&id)?;
        for _ in 0..MAX_NESTED {
            let parent = window.parent?;
            if context.greeting.screen(parent).is_some() {
                return (window.mask() & STRUCTURE_NOTIFY != 0).then_some(PositionQuery(self.moves));
            }
            window = self.drawables.get(&parent)?;
        }
        None
    }

    /// Stores a position, if no window has moved since the request.
    pub fn keep_position(&mut self, PositionQuery(moves): PositionQuery, request: &[u8], reply: &[u8]) {
        if self.moves == moves && self.positions.len() < MAX_PROPERTIES {
            self.positions.insert(request.into(), answer_of(reply));
        }
    }

    /// Forgets all geometries, and all properties except those of the roots, because the window tree is unknown.
    fn forget_all(&mut self, context: &ConnectionContext) {
        self.drawables.values_mut().for_each(|window| window.geometry = None);
        let is_root = |id| context.greeting.screen(id).is_some();
        let order = self.order;
        self.properties.retain(|read, _| order.u32(read, 4).is_some_and(is_root));
    }

    /// Records a change to the property `atom` of a window; `None` means that any property may have changed.
    pub fn change(&mut self, id: u32, atom: Option<u32>) {
        let Some(window) = self.drawables.get_mut(&id) else { return };
        window.changes = window.changes.wrapping_add(1);
        let order = self.order;
        let is_other = |read: &[u8]| atom.is_some_and(|atom| order.u32(read, 8) != Some(atom));
        self.properties.retain(|read, _| order.u32(read, 4) != Some(id) || is_other(read));
    }

    /// Whether the program had selected a PropertyNotify event that arrives with request number `number`.
    pub fn is_selected(&self, id: u32, number: u64) -> bool {
        let Some(window) = self.drawables.get(&id).filter(|window| !window.is_doubtful) else { return true };
        let found = window.selected.iter().rev().find(|&&(since, _)| number >= since);
        found.is_some_and(|&(_, events)| events & PROPERTY_CHANGE != 0)
    }

    /// Whether the proxy selects PropertyChange and the program does not.
    pub fn is_added(&self, id: u32) -> bool {
        self.drawables.get(&id).is_some_and(|window| window.is_watched && window.mask() & PROPERTY_CHANGE == 0)
    }

    /// The request that selects PropertyChange on a window, if that is possible and not yet done.
    pub fn watch(&mut self, id: u32) -> Option<Vec<u8>> {
        let window = self
            .drawables
            .get_mut(&id)
            .filter(|window| !window.is_watched && !window.is_doubtful && !self.cannot_watch)?;
        window.is_watched = true;
        let words = [id, EVENT_MASK, window.mask() | PROPERTY_CHANGE];
        Some(request(self.order, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &words))
    }

    pub fn property(&self, request: &[u8]) -> Option<&Answer> {
        self.properties.get(request)
    }

    /// Records that the server refused one of the proxy's selections, so property changes may go unreported.
    pub fn give_up(&mut self) {
        self.cannot_watch = true;
        self.properties.clear();
    }

    /// Starts a property request, if the server reports property changes.
    pub fn read(&self, id: u32) -> Option<PropertyQuery> {
        let window =
            self.drawables.get(&id).filter(|window| window.is_watched && !window.is_doubtful && !self.cannot_watch)?;
        Some(PropertyQuery { window: id, changes: window.changes })
    }

    /// Stores a property, if the window's properties have not changed since the request.
    pub fn keep(&mut self, reading: PropertyQuery, request: &[u8], reply: &[u8]) {
        let window = self.drawables.get(&reading.window).filter(|_| !self.cannot_watch);
        if window.is_none_or(|window| window.changes != reading.changes) || reply.len() > MAX_PROPERTY_BYTES {
            return;
        }
        if self.properties.len() >= MAX_PROPERTIES {
            self.properties.clear();
        }
        self.properties.insert(request.into(), answer_of(reply));
    }

    /// The GetGeometry reply, as long as only the program could have changed the geometry. The server must have passed
    /// the creation: `reached` is the number of its last request.
    pub fn geometry(&self, id: u32, reached: u64) -> Option<Answer> {
        let drawable = self.drawables.get(&id).filter(|drawable| drawable.created <= reached)?;
        let Geometry { root, depth, bounds } = drawable.geometry?;
        let mut answer = [0; 32];
        (answer[0], answer[1]) = (1, depth);
        put_u32(self.order, &mut answer, 8, root);
        for (index, &value) in bounds.iter().enumerate() {
            put_u16(self.order, &mut answer, 12 + 2 * index, value);
        }
        Some(answer[..].into())
    }
}

/// Removes the proxy's event selection from a GetWindowAttributes reply.
pub fn without_added(order: ByteOrder, reply: &mut [u8]) {
    const OWN_MASK: usize = 36;
    if let Some(mask) = order.u32(reply, OWN_MASK) {
        put_u32(order, reply, OWN_MASK, mask & !PROPERTY_CHANGE);
    }
}

/// Offset of the event mask in a value list.
fn event_mask_at(mask: u32, first: usize) -> Option<usize> {
    let before = (mask & (EVENT_MASK - 1)).count_ones() as usize;
    (mask & EVENT_MASK != 0).then_some(first + 4 * before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_wire::x11::greeting::{Greeting, Screen};

    const ORDER: ByteOrder = ByteOrder::Big;
    const WINDOW: u32 = 0x20_0001;

    fn context() -> ConnectionContext {
        let screen = Screen { root: 0x50, colormap: 0x20, visual: 0x21, depth: 24 };
        ConnectionContext::new(
            ORDER,
            Greeting { id_base: 0x20_0000, id_mask: 0x1f_ffff, screens: vec![screen], ..Greeting::default() },
        )
    }

    fn created(selects: u32) -> (Windows, ConnectionContext) {
        let context = context();
        let mut windows = Windows::new(&context);
        let words = [WINDOW, 0x50, 0x0003_0004, 0x0064_0032, 0x0001_0001, 0, 2 | EVENT_MASK, 9, selects];
        windows.hear(&mut request(ORDER, op::CREATE_WINDOW_REQUEST, 0, &words), 1, &context);
        (windows, context)
    }

    #[test]
    fn geometry_is_known_from_creation_until_mapping() {
        let (mut windows, context) = created(0);
        assert_eq!(windows.geometry(WINDOW, 0), None, "the server may still refuse it");
        let answer = windows.geometry(WINDOW, 1).unwrap();
        assert_eq!(
            answer[..],
            [&[1, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 3, 0, 4, 0, 0x64, 0, 0x32, 0, 1], &[0; 10][..]].concat()
        );
        windows.hear(
            &mut request(ORDER, op::CREATE_PIXMAP_REQUEST, 1, &[WINDOW + 1, WINDOW, 0x0010_0020]),
            2,
            &context,
        );
        assert_eq!(windows.geometry(WINDOW + 1, 2).unwrap()[1], 1);
        windows.hear(&mut request(ORDER, op::MAP_WINDOW_REQUEST, 0, &[WINDOW]), 3, &context);
        assert_eq!(windows.geometry(WINDOW, 3), None);
        assert!(windows.geometry(WINDOW + 1, 3).is_some(), "a pixmap's geometry never changes");
        assert_eq!(windows.geometry(0x40_0001, 3), None);
    }

    #[test]
    fn windows_are_destroyed_with_their_parents() {
        for destroyed in [op::DESTROY_WINDOW_REQUEST, op::DESTROY_SUBWINDOWS_REQUEST] {
            let (mut windows, context) = created(0);
            for (id, parent) in [(WINDOW + 1, WINDOW), (WINDOW + 2, WINDOW + 1), (WINDOW + 3, 0x50)] {
                let words = [id, parent, 0, 0x0064_0032, 0x0001_0001, 0, 0];
                windows.hear(&mut request(ORDER, op::CREATE_WINDOW_REQUEST, 0, &words), 2, &context);
                assert!(windows.geometry(id, 2).is_some());
            }
            windows.hear(&mut request(ORDER, destroyed, 0, &[WINDOW]), 3, &context);
            let known = [0, 1, 2, 3].map(|at| windows.geometry(WINDOW + at, 3).is_some());
            assert_eq!(known, [destroyed == op::DESTROY_SUBWINDOWS_REQUEST, false, false, true]);
        }
    }

    #[test]
    fn the_proxys_event_selection_is_added_and_hidden() {
        let (mut windows, context) = created(1);
        assert_eq!(windows.read(WINDOW), None, "changes are not selected yet");
        let added = windows.watch(WINDOW).unwrap();
        assert_eq!(
            added,
            request(ORDER, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &[WINDOW, EVENT_MASK, PROPERTY_CHANGE | 1])
        );
        assert!(windows.is_added(WINDOW) && !windows.is_selected(WINDOW, 5));
        let mut select = request(ORDER, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &[WINDOW, 1 | EVENT_MASK, 7, 2]);
        windows.hear(&mut select, 6, &context);
        assert_eq!(ORDER.u32(&select, 16), Some(PROPERTY_CHANGE | 2));
        let mut select =
            request(ORDER, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &[WINDOW, EVENT_MASK, PROPERTY_CHANGE]);
        windows.hear(&mut select, 9, &context);
        assert!(!windows.is_selected(WINDOW, 8) && windows.is_selected(WINDOW, 9) && !windows.is_added(WINDOW));
    }

    #[test]
    fn a_property_is_known_until_it_changes() {
        let (mut windows, context) = created(PROPERTY_CHANGE);
        let read = request(ORDER, 20, 0, &[WINDOW, 39, 31, 0, 100]);
        let reading = windows.read(WINDOW).unwrap();
        windows.keep(reading, &read, &[1; 32]);
        assert!(windows.property(&read).is_some());
        windows.change(WINDOW, Some(40));
        assert!(windows.property(&read).is_some());
        windows.change(WINDOW, Some(39));
        assert_eq!(windows.property(&read), None);
        windows.keep(reading, &read, &[1; 32]);
        assert_eq!(windows.property(&read), None, "it was requested before the change");
        let reading = windows.read(WINDOW).unwrap();
        windows.hear(&mut request(ORDER, op::CHANGE_PROPERTY_REQUEST, 0, &[WINDOW, 39, 31, 8, 0]), 4, &context);
        windows.keep(reading, &read, &[1; 32]);
        assert_eq!(windows.property(&read), None, "the program changed it itself");
    }
}
