// SPDX-License-Identifier: MIT
//! The program's windows and pixmaps, and the root windows: their selected events, properties and geometry.
//!
//! The proxy can answer queries for a property or a geometry only while changes to it are reported on the same
//! connection, because events on another connection may arrive later. The proxy therefore adds PropertyChange and
//! StructureNotify to the program's event selections, and drops the events that the program did not select.
//!
//! A geometry is known from an earlier reply, or from the request that creates the window or pixmap, once the server
//! has executed it without an error. The latter holds for windows only if the request selects StructureNotify.

mod drawable;

use crate::bytes::request;
use crate::context::ConnectionContext;
use crate::opcodes::op;
use crate::store::{Answer, answer_of};
use drawable::Drawable;
use std::collections::{HashMap, VecDeque};
use xqos_x11::ByteOrder;

const STRUCTURE_NOTIFY: u32 = 1 << 17;
/// Maximum number of remembered selection changes per window.
const MAX_SELECTIONS: usize = 16;
const MAX_NESTED: usize = 32;
const EVENT_MASK: u32 = 1 << 11;
const PROPERTY_CHANGE: u32 = 1 << 22;
/// Events that the proxy adds: the reported changes of a window, and its destruction.
const ADDED: u32 = PROPERTY_CHANGE | STRUCTURE_NOTIFY;
const COPY_FROM_PARENT: u8 = 0;
const INPUT_ONLY: u16 = 2;

/// Limits for one program. Drawables beyond the limit are not tracked.
const MAX_DRAWABLES: usize = 16_384;
const MAX_PROPERTIES: usize = 1024;
const MAX_PROPERTY_BYTES: usize = 64 << 10;

/// All drawables of a program, and the stored answers about them.
#[derive(Debug, Default)]
pub struct Windows {
    order: ByteOrder,
    drawables: HashMap<u32, Drawable>,
    /// Replies to GetProperty; the key is the request.
    properties: HashMap<Box<[u8]>, Answer>,
    /// Whether the server refused one of the proxy's selections.
    cannot_watch: bool,
}

/// A question about a window. Its answer is stored if the window and its number of changes are still the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowQuery {
    window: u32,
    created: u64,
    /// Changes of its properties, or of its geometry.
    changes: u32,
}

impl Windows {
    pub fn new(context: &ConnectionContext) -> Windows {
        let roots = context.greeting.screens.iter();
        let drawables = roots.map(|screen| (screen.root, Drawable::default())).collect();
        Windows { order: context.order, drawables, properties: HashMap::new(), cannot_watch: false }
    }

    /// Records a request from the program, and adds the proxy's event selection to it.
    pub fn hear(&mut self, request: &mut [u8], number: u64, context: &ConnectionContext) {
        let order = self.order;
        let Some(id) = order.u32(request, 4) else { return };
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
            // A new size can move the children.
            op::MAP_SUBWINDOWS_REQUEST | op::CONFIGURE_WINDOW_REQUEST => self.unsettle(),
            op::REPARENT_WINDOW_REQUEST | op::MAP_WINDOW_REQUEST => {
                if let Some(window) = self.drawables.get_mut(&id) {
                    window.unsettle();
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
        match request[0] {
            op::CHANGE_PROPERTY_REQUEST | op::DELETE_PROPERTY_REQUEST | op::ROTATE_PROPERTIES_REQUEST => {
                self.change(id, None)
            }
            op::CREATE_WINDOW_REQUEST
            | op::CREATE_PIXMAP_REQUEST
            | op::CHANGE_WINDOW_ATTRIBUTES_REQUEST
            | op::DESTROY_WINDOW_REQUEST
            | op::FREE_PIXMAP_REQUEST => {
                self.drawables.remove(&id);
                self.forget_properties(id);
            }
            _ => self.forget_all(context),
        }
    }

    fn create_window(&mut self, id: u32, request: &[u8], number: u64, context: &ConnectionContext) {
        let order = self.order;
        let short = |at| order.u16(request, at).unwrap_or(0);
        let (Some(parent), Some(mask)) = (order.u32(request, 8), order.u32(request, 28)) else { return };
        let selects = event_mask_at(mask, 32).and_then(|at| order.u32(request, at)).unwrap_or(0);
        let origin = self.origin(parent, context).map(|(root, above)| match (request[1], short(22)) {
            (_, INPUT_ONLY) => (root, 0),
            (COPY_FROM_PARENT, _) => (root, above),
            (depth, _) => (root, depth),
        });
        let is_reported = selects & STRUCTURE_NOTIFY != 0;
        self.insert(
            id,
            context,
            Drawable {
                selected: VecDeque::from([(number, selects)]),
                watched: selects & ADDED,
                created: number,
                origin,
                bounds: is_reported.then(|| [12, 14, 16, 18, 20].map(short)),
                parent: Some(parent),
                ..Drawable::default()
            },
        );
    }

    fn create_pixmap(&mut self, id: u32, request: &[u8], number: u64, context: &ConnectionContext) {
        let short = |at| self.order.u16(request, at).unwrap_or(0);
        let above = self.order.u32(request, 8).and_then(|above| self.origin(above, context));
        let (origin, bounds) = (above.map(|(root, _)| (root, request[1])), Some([0, 0, short(12), short(14), 0]));
        self.insert(id, context, Drawable { created: number, origin, bounds, ..Drawable::default() });
    }

    /// Root and depth of the drawable on which another drawable is created.
    fn origin(&self, id: u32, context: &ConnectionContext) -> Option<(u32, u8)> {
        match context.greeting.screen(id) {
            Some(screen) => Some((id, screen.depth)),
            None => self.drawables.get(&id)?.origin,
        }
    }

    fn insert(&mut self, id: u32, context: &ConnectionContext, mut drawable: Drawable) {
        let before = self.drawables.remove(&id);
        let is_doubtful = before.as_ref().is_some_and(|before| !before.is_gone);
        self.forget_properties(id);
        // Events before the creation belong to the older window with this ID.
        let before = before.map_or_else(|| [(0, PROPERTY_CHANGE)].into(), |before| before.selected);
        before.into_iter().rev().take(MAX_SELECTIONS).for_each(|events| drawable.selected.push_front(events));
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
        order.put_u32(request, at, selects | window.watched);
        window.watched |= selects & ADDED;
    }

    /// Undoes the request with this number, which the server has refused: a creation, or a selection of events.
    pub fn refuse(&mut self, number: u64) {
        self.drawables.retain(|_, drawable| drawable.created != number);
        let order = self.order;
        for (&id, window) in &mut self.drawables {
            let count = window.selected.len();
            window.selected.retain(|&(since, _)| since != number);
            if window.selected.len() < count {
                window.watched = 0;
                window.unsettle();
                window.changes = window.changes.wrapping_add(1);
                self.properties.retain(|read, _| order.u32(read, 4) != Some(id));
            }
        }
    }

    /// Forgets a freed drawable. Keeps a window's event selection if its destruction will be reported.
    fn forget(&mut self, id: u32) {
        match self.drawables.get_mut(&id) {
            Some(window) if window.watched & STRUCTURE_NOTIFY != 0 => {
                window.is_gone = true;
                window.unsettle();
            }
            _ => _ = self.drawables.remove(&id),
        }
        self.forget_properties(id);
    }

    fn forget_properties(&mut self, id: u32) {
        let order = self.order;
        self.properties.retain(|read, _| order.u32(read, 4) != Some(id));
    }

    /// Forgets the geometries of all windows.
    fn unsettle(&mut self) {
        self.drawables.values_mut().filter(|it| it.parent.is_some()).for_each(Drawable::unsettle);
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

    /// Starts a geometry request, if the server reports changes of the geometry.
    pub fn ask_geometry(&self, id: u32) -> Option<WindowQuery> {
        let window = self.watched(id, |_| STRUCTURE_NOTIFY).filter(|window| window.parent.is_some())?;
        Some(WindowQuery { window: id, created: window.created, changes: window.moves })
    }

    /// Stores a geometry, if it has not changed since the request.
    pub fn keep_geometry(&mut self, query: WindowQuery, reply: &[u8]) {
        let (order, asked) = (self.order, (query.created, query.changes));
        let window = self.drawables.get_mut(&query.window);
        let Some(window) = window.filter(|window| (window.created, window.moves) == asked) else { return };
        window.origin = order.u32(reply, 8).map(|root| (root, reply[1]));
        window.bounds = Some([12, 14, 16, 18, 20].map(|at| order.u16(reply, at).unwrap_or(0)));
    }

    /// Records an event that reports a change of the window tree. Another client may have caused it.
    pub fn hear_structure(&mut self, event: &[u8], number: u64) {
        let Some(id) = self.order.u32(event, 8).filter(|_| event[0] & 0x7f != op::CREATE_NOTIFY_EVENT) else { return };
        let Some(window) = self.drawables.get_mut(&id).filter(|window| window.created <= number) else { return };
        window.unsettle();
        if event[0] == op::DESTROY_NOTIFY_EVENT {
            self.drawables.remove(&id);
            self.forget_properties(id);
        }
    }

    /// Forgets all geometries, and all properties except those of the roots, because the window tree is unknown.
    fn forget_all(&mut self, context: &ConnectionContext) {
        self.unsettle();
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

    /// Whether the program had selected an event that arrives with request number `number`.
    pub fn is_selected(&self, event: &[u8], number: u64) -> bool {
        let word = |at| self.order.u32(event, at);
        let kind = match event[0] {
            op::PROPERTY_NOTIFY_EVENT => PROPERTY_CHANGE,
            // Only StructureNotify names the same window twice; SubstructureNotify names the parent first.
            op::DESTROY_NOTIFY_EVENT
            | op::UNMAP_NOTIFY_EVENT
            | op::MAP_NOTIFY_EVENT
            | op::REPARENT_NOTIFY_EVENT
            | op::CONFIGURE_NOTIFY_EVENT
            | op::GRAVITY_NOTIFY_EVENT
            | op::CIRCULATE_NOTIFY_EVENT
                if word(4) == word(8) =>
            {
                STRUCTURE_NOTIFY
            }
            _ => return true,
        };
        let window = word(4).and_then(|id| self.drawables.get(&id)).filter(|window| !window.is_doubtful);
        let Some(window) = window else { return true };
        let found = window.selected.iter().rev().find(|&&(since, _)| number >= since);
        found.is_some_and(|&(_, events)| events & kind != 0)
    }

    /// The events of a window that the proxy selects and the program does not.
    pub fn added(&self, id: u32) -> u32 {
        self.drawables.get(&id).map_or(0, |window| window.watched & !window.mask())
    }

    /// The request that selects the changes of a window's properties, if that is possible and not yet done.
    pub fn watch_properties(&mut self, id: u32) -> Option<Vec<u8>> {
        self.watch(id, self.drawables.get(&id)?.property_events())
    }

    /// The request that selects the changes of a window's geometry, if that is possible and not yet done.
    pub fn watch_geometry(&mut self, id: u32) -> Option<Vec<u8>> {
        self.drawables.get(&id)?.parent.and_then(|_| self.watch(id, STRUCTURE_NOTIFY))
    }

    fn watch(&mut self, id: u32, events: u32) -> Option<Vec<u8>> {
        let window = self.drawables.get_mut(&id).filter(|window| window.is_usable() && !self.cannot_watch)?;
        if window.watched & events == events {
            return None;
        }
        window.watched |= events;
        let words = [id, EVENT_MASK, window.mask() | window.watched];
        Some(request(self.order, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &words))
    }

    pub fn property(&self, request: &[u8]) -> Option<&Answer> {
        self.properties.get(request)
    }

    /// Records that the server refused one of the proxy's selections, so property changes may go unreported.
    pub fn give_up(&mut self) {
        self.cannot_watch = true;
        self.properties.clear();
        self.unsettle();
    }

    /// Starts a property request, if the server reports property changes.
    pub fn read(&self, id: u32) -> Option<WindowQuery> {
        let window = self.watched(id, Drawable::property_events)?;
        Some(WindowQuery { window: id, created: window.created, changes: window.changes })
    }

    /// A window, if the server reports these events of it.
    fn watched(&self, id: u32, events: fn(&Drawable) -> u32) -> Option<&Drawable> {
        let window = self.drawables.get(&id).filter(|window| window.is_usable() && !self.cannot_watch)?;
        (window.watched & events(window) == events(window)).then_some(window)
    }

    /// Stores a property, if the window's properties have not changed since the request.
    pub fn keep(&mut self, reading: WindowQuery, request: &[u8], reply: &[u8]) {
        let window = self.drawables.get(&reading.window).filter(|_| !self.cannot_watch);
        let asked = (reading.created, reading.changes);
        if window.is_none_or(|window| (window.created, window.changes) != asked) || reply.len() > MAX_PROPERTY_BYTES {
            return;
        }
        if self.properties.len() >= MAX_PROPERTIES {
            self.properties.clear();
        }
        self.properties.insert(request.into(), answer_of(reply));
    }

    /// The GetGeometry reply, once the server has passed the creation, number `reached` or lower.
    pub fn geometry(&self, id: u32, reached: u64) -> Option<Answer> {
        let drawable = self.drawables.get(&id).filter(|drawable| drawable.created <= reached)?;
        let ((root, depth), bounds) = drawable.origin.zip(drawable.bounds)?;
        let mut answer = [0; 32];
        (answer[0], answer[1]) = (1, depth);
        self.order.put_u32(&mut answer, 8, root);
        for (index, &value) in bounds.iter().enumerate() {
            self.order.put_u16(&mut answer, 12 + 2 * index, value);
        }
        Some(answer[..].into())
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
        assert_eq!(created(0).0.geometry(WINDOW, 1), None, "changes are not reported");
        let (mut windows, context) = created(STRUCTURE_NOTIFY);
        assert_eq!(windows.geometry(WINDOW, 0), None, "the server may still refuse the window");
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
            let (mut windows, context) = created(STRUCTURE_NOTIFY);
            for (id, parent) in [(WINDOW + 1, WINDOW), (WINDOW + 2, WINDOW + 1), (WINDOW + 3, 0x50)] {
                let words = [id, parent, 0, 0x0064_0032, 0x0001_0001, 0, EVENT_MASK, STRUCTURE_NOTIFY];
                windows.hear(&mut request(ORDER, op::CREATE_WINDOW_REQUEST, 0, &words), 2, &context);
                assert!(windows.geometry(id, 2).is_some());
            }
            windows.hear(&mut request(ORDER, destroyed, 0, &[WINDOW]), 3, &context);
            let known = [0, 1, 2, 3].map(|at| windows.geometry(WINDOW + at, 3).is_some());
            assert_eq!(known, [destroyed == op::DESTROY_SUBWINDOWS_REQUEST, false, false, true]);
        }
    }

    fn event(code: u8, words: &[u32]) -> Vec<u8> {
        request(ORDER, code, 0, words)
    }

    #[test]
    fn the_proxys_event_selection_is_added_and_hidden() {
        let (mut windows, context) = created(1);
        assert_eq!(windows.read(WINDOW), None, "changes are not selected yet");
        let added = windows.watch_properties(WINDOW).unwrap();
        assert_eq!(added, request(ORDER, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &[WINDOW, EVENT_MASK, ADDED | 1]));
        let changed = event(op::PROPERTY_NOTIFY_EVENT, &[WINDOW, 39]);
        assert!(windows.added(WINDOW) == ADDED && !windows.is_selected(&changed, 5));
        let mut select = request(ORDER, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &[WINDOW, 1 | EVENT_MASK, 7, 2]);
        windows.hear(&mut select, 6, &context);
        assert_eq!(ORDER.u32(&select, 16), Some(ADDED | 2));
        let mut select =
            request(ORDER, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &[WINDOW, EVENT_MASK, PROPERTY_CHANGE]);
        windows.hear(&mut select, 9, &context);
        assert!(!windows.is_selected(&changed, 8) && windows.is_selected(&changed, 9));
        assert_eq!(windows.added(WINDOW), STRUCTURE_NOTIFY);
        assert!(!windows.is_selected(&event(op::CONFIGURE_NOTIFY_EVENT, &[WINDOW, WINDOW]), 9));
        assert!(windows.is_selected(&event(op::CONFIGURE_NOTIFY_EVENT, &[0x50, WINDOW]), 9), "SubstructureNotify");
    }

    #[test]
    fn a_property_is_known_until_it_changes() {
        let (mut windows, context) = created(ADDED);
        let read = request(ORDER, 20, 0, &[WINDOW, 39, 31, 0, 100]);
        let reading = windows.read(WINDOW).unwrap();
        windows.keep(reading, &read, &[1; 32]);
        assert!(windows.property(&read).is_some());
        windows.change(WINDOW, Some(40));
        assert!(windows.property(&read).is_some());
        windows.change(WINDOW, Some(39));
        assert_eq!(windows.property(&read), None);
        windows.keep(reading, &read, &[1; 32]);
        assert_eq!(windows.property(&read), None, "the answer was requested before the change");
        let reading = windows.read(WINDOW).unwrap();
        windows.hear(&mut request(ORDER, op::CHANGE_PROPERTY_REQUEST, 0, &[WINDOW, 39, 31, 8, 0]), 4, &context);
        windows.keep(reading, &read, &[1; 32]);
        assert_eq!(windows.property(&read), None, "the program itself changed the property");
    }
}
