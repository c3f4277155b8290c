// SPDX-License-Identifier: MIT
//! The program's windows and pixmaps, and the roots: which properties are listened for, and what follows from how they
//! were made.
//!
//! A property is an answer only while somebody hears of its changes on the same connection, since events of another one may
//! come later. So the proxy adds PropertyChange to the events that the program selects of a window; what the program did
//! not select itself goes no further.

use crate::bytes::{put_u32, request};
use crate::dialogue::Dialogue;
use crate::opcodes::op;
use crate::store::Answer;
use std::collections::{HashMap, VecDeque};
use xqos_wire::x11::bytes::ByteOrder;

const STRUCTURE_NOTIFY: u32 = 1 << 17;
/// Selections that the server may not have heard of yet.
const MAX_SELECTIONS: usize = 16;
/// Windows within windows.
const MAX_NESTED: usize = 32;
const EVENT_MASK: u32 = 1 << 11;
const PROPERTY_CHANGE: u32 = 1 << 22;
const COPY_FROM_PARENT: u8 = 0;
const INPUT_ONLY: u16 = 2;

/// What is kept of a program at most; beyond it nothing new is learned.
const MAX_DRAWABLES: usize = 16_384;
const MAX_PROPERTIES: usize = 1024;
const MAX_PROPERTY_BYTES: usize = 64 << 10;

/// A drawable of the program, or a root.
#[derive(Clone, Debug, Default)]
struct Drawable {
    /// What the program selects.
    mask: u32,
    /// Whether it selects PropertyChange, from which request on; the last few times that it changed its mind.
    selected: VecDeque<(u64, bool)>,
    /// The server tells of properties.
    is_watched: bool,
    /// How often a property was told or made to change.
    changes: u32,
    /// Until somebody may have changed it.
    geometry: Option<Geometry>,
    /// Of a window, what it was made in.
    parent: Option<u32>,
    /// It was made while one of that number was there, which may have gone with a window around it; or the server refuses.
    is_doubtful: bool,
}

/// As GetGeometry tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Geometry {
    root: u32,
    depth: u8,
    place: [u16; 5],
}

#[derive(Debug)]
struct Property {
    answer: Answer,
    atom: u32,
}

/// All of a program.
#[derive(Debug, Default)]
pub struct Windows {
    drawables: HashMap<u32, Drawable>,
    /// By the request that reads them.
    properties: HashMap<Box<[u8]>, Property>,
    /// What was said of the places of windows, by the request that asks for it, and how often all of that came to nothing.
    places: HashMap<Box<[u8]>, Answer>,
    moves: u32,
    /// The server refused to tell of one.
    cannot_watch: bool,
}

/// A property that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub window: u32,
    changes: u32,
}

/// Something that is being asked about where a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placing(u32);

impl Windows {
    pub fn new(dialogue: &Dialogue) -> Windows {
        let roots = dialogue.greeting.screens.iter();
        let drawables = roots.map(|screen| (screen.root, Drawable::default())).collect();
        Windows { drawables, ..Windows::default() }
    }

    /// Takes notice of a request of the program, and adds to it what the proxy selects.
    pub fn hear(&mut self, request: &mut [u8], number: u64, dialogue: &Dialogue) {
        let order = dialogue.order;
        let Some(id) = order.u32(request, 4) else { return };
        // All of them may move windows.
        if matches!(request[0], op::CREATE_WINDOW_REQUEST..=op::CIRCULATE_WINDOW_REQUEST) {
            self.unsettle();
        }
        match request[0] {
            op::CREATE_WINDOW_REQUEST => self.create_window(id, request, number, dialogue),
            op::CREATE_PIXMAP_REQUEST => self.create_pixmap(id, request, dialogue),
            op::CHANGE_WINDOW_ATTRIBUTES_REQUEST => self.select(id, request, number, order),
            op::DESTROY_WINDOW_REQUEST | op::FREE_PIXMAP_REQUEST => self.forget(id),
            op::DESTROY_SUBWINDOWS_REQUEST => self.forget_all(dialogue),
            op::MAP_SUBWINDOWS_REQUEST => self.drawables.values_mut().for_each(|window| window.geometry = None),
            op::REPARENT_WINDOW_REQUEST | op::MAP_WINDOW_REQUEST | op::CONFIGURE_WINDOW_REQUEST => {
                if let Some(window) = self.drawables.get_mut(&id) {
                    window.geometry = None;
                }
            }
            op::CHANGE_PROPERTY_REQUEST | op::DELETE_PROPERTY_REQUEST => self.change(id, order.u32(request, 8)),
            op::ROTATE_PROPERTIES_REQUEST => self.change(id, None),
            _ => {}
        }
    }

    /// The same of a request with a length in a word of its own, whose fields come later. Nobody makes windows or selects
    /// events so; whoever does has a window of which nothing is known here.
    pub fn hear_long(&mut self, request: &[u8], dialogue: &Dialogue) {
        let Some(id) = dialogue.order.u32(request, 8) else { return };
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
            _ => self.forget_all(dialogue),
        }
    }

    fn create_window(&mut self, id: u32, request: &[u8], number: u64, dialogue: &Dialogue) {
        let order = dialogue.order;
        let short = |at| order.u16(request, at).unwrap_or(0);
        let (Some(parent), Some(mask)) = (order.u32(request, 8), order.u32(request, 28)) else { return };
        let selects = event_mask_at(mask, 32).and_then(|at| order.u32(request, at)).unwrap_or(0);
        let above = self.above(parent, dialogue);
        let depth = match (request[1], short(22)) {
            (_, INPUT_ONLY) => Some(0),
            (COPY_FROM_PARENT, _) => above.map(|above| above.depth),
            (depth, _) => Some(depth),
        };
        let place = [12, 14, 16, 18, 20].map(short);
        let geometry = above.zip(depth).map(|(above, depth)| Geometry { root: above.root, depth, place });
        let has_property_change = selects & PROPERTY_CHANGE != 0;
        self.insert(
            id,
            dialogue,
            Drawable {
                mask: selects,
                // What came before was about another window of that number.
                selected: VecDeque::from([(0, true), (number, has_property_change)]),
                is_watched: has_property_change,
                geometry,
                parent: Some(parent),
                ..Drawable::default()
            },
        );
    }

    fn create_pixmap(&mut self, id: u32, request: &[u8], dialogue: &Dialogue) {
        let short = |at| dialogue.order.u16(request, at).unwrap_or(0);
        let above = dialogue.order.u32(request, 8).and_then(|above| self.above(above, dialogue));
        let place = [0, 0, short(12), short(14), 0];
        let geometry = above.map(|above| Geometry { root: above.root, depth: request[1], place });
        self.insert(id, dialogue, Drawable { geometry, ..Drawable::default() });
    }

    /// Root and depth of what something is made on.
    fn above(&self, id: u32, dialogue: &Dialogue) -> Option<Geometry> {
        match dialogue.greeting.screen(id) {
            Some(screen) => Some(Geometry { root: id, depth: screen.depth, place: [0; 5] }),
            None => self.drawables.get(&id)?.geometry,
        }
    }

    fn insert(&mut self, id: u32, dialogue: &Dialogue, drawable: Drawable) {
        let is_doubtful = self.drawables.contains_key(&id);
        self.forget(id);
        // The server refuses any other number.
        if dialogue.greeting.is_own(id) && self.drawables.len() < MAX_DRAWABLES {
            let doubtful = || Drawable { is_doubtful, ..Drawable::default() };
            self.drawables.insert(id, if is_doubtful { doubtful() } else { drawable });
        }
    }

    fn select(&mut self, id: u32, request: &mut [u8], number: u64, order: ByteOrder) {
        let mask_at = order.u32(request, 8).and_then(|mask| event_mask_at(mask, 12));
        let Some((at, selects)) = mask_at.and_then(|at| Some((at, order.u32(request, at)?))) else { return };
        let Some(window) = self.drawables.get_mut(&id) else { return };
        let has_property_change = selects & PROPERTY_CHANGE != 0;
        window.mask = selects;
        if window.selected.back().is_none_or(|&(_, before)| before != has_property_change) {
            window.selected.push_back((number, has_property_change));
        }
        if window.selected.len() > MAX_SELECTIONS {
            window.selected.pop_front();
        }
        if window.is_watched {
            put_u32(order, request, at, selects | PROPERTY_CHANGE);
        }
        window.is_watched |= has_property_change;
    }

    fn forget(&mut self, id: u32) {
        if self.drawables.remove(&id).is_some() {
            self.properties.retain(|read, _| !reads(read, id));
        }
    }

    /// Windows may be elsewhere.
    pub fn unsettle(&mut self) {
        self.moves = self.moves.wrapping_add(1);
        self.places.clear();
    }

    /// What a request that asks where a window is was answered before, where nothing can have moved since.
    pub fn place(&self, request: &[u8]) -> Option<&Answer> {
        self.places.get(request)
    }

    /// Begins to ask where a window is, if the server tells when that changes: of one in a root window that the program
    /// selects StructureNotify of, or of one in such a window, where only the program itself moves it.
    pub fn ask_place(&self, id: u32, dialogue: &Dialogue) -> Option<Placing> {
        let mut window = self.drawables.get(&id)?;
        for _ in 0..MAX_NESTED {
            let parent = window.parent?;
            if dialogue.greeting.screen(parent).is_some() {
                return (window.mask & STRUCTURE_NOTIFY != 0).then_some(Placing(self.moves));
            }
            window = self.drawables.get(&parent)?;
        }
        None
    }

    /// Keeps where a window is, if nothing has moved since.
    pub fn keep_place(&mut self, Placing(moves): Placing, request: &[u8], reply: &[u8]) {
        if self.moves == moves && self.places.len() < MAX_PROPERTIES {
            let mut answer = reply.to_vec();
            answer[2..4].fill(0);
            self.places.insert(request.into(), answer.into());
        }
    }

    /// Which windows are whose children is not known here.
    fn forget_all(&mut self, dialogue: &Dialogue) {
        self.drawables.values_mut().for_each(|window| window.geometry = None);
        self.properties.retain(|read, _| dialogue.greeting.screens.iter().any(|screen| reads(read, screen.root)));
    }

    /// A property has changed: one, or any of a window's.
    pub fn change(&mut self, id: u32, atom: Option<u32>) {
        let Some(window) = self.drawables.get_mut(&id) else { return };
        window.changes = window.changes.wrapping_add(1);
        self.properties.retain(|read, property| !reads(read, id) || atom.is_some_and(|atom| property.atom != atom));
    }

    /// Whether an event that a property has changed is for the program, where it is at that request.
    pub fn is_selected(&self, id: u32, number: u64) -> bool {
        let Some(window) = self.drawables.get(&id).filter(|window| !window.is_doubtful) else { return true };
        window.selected.iter().rev().find(|&&(since, _)| number >= since).is_some_and(|&(_, is_selected)| is_selected)
    }

    /// The proxy listens where the program does not.
    pub fn is_added(&self, id: u32) -> bool {
        self.drawables.get(&id).is_some_and(|window| window.is_watched && window.mask & PROPERTY_CHANGE == 0)
    }

    /// The request by which the proxy hears of a window's properties, where it can and does not yet.
    pub fn watch(&mut self, id: u32, order: ByteOrder) -> Option<Vec<u8>> {
        let window = self
            .drawables
            .get_mut(&id)
            .filter(|window| !window.is_watched && !window.is_doubtful && !self.cannot_watch)?;
        window.is_watched = true;
        Some(request(order, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &[id, EVENT_MASK, window.mask | PROPERTY_CHANGE]))
    }

    /// What a request that reads a property is answered.
    pub fn property(&self, request: &[u8]) -> Option<&Answer> {
        self.properties.get(request).map(|property| &property.answer)
    }

    /// The server did not do what the proxy asked, and does not tell of some window's properties.
    pub fn give_up(&mut self) {
        self.cannot_watch = true;
        self.properties.clear();
    }

    /// Begins to read a property that is listened for.
    pub fn read(&self, id: u32) -> Option<Reading> {
        let window =
            self.drawables.get(&id).filter(|window| window.is_watched && !window.is_doubtful && !self.cannot_watch)?;
        Some(Reading { window: id, changes: window.changes })
    }

    /// Keeps what was read, if nothing has changed since.
    pub fn keep(&mut self, reading: Reading, request: &[u8], order: ByteOrder, reply: &[u8]) {
        let window = self.drawables.get(&reading.window).filter(|_| !self.cannot_watch);
        let is_same = window.is_some_and(|window| window.changes == reading.changes);
        let Some(atom) = order.u32(request, 8).filter(|_| is_same && reply.len() <= MAX_PROPERTY_BYTES) else { return };
        if self.properties.len() >= MAX_PROPERTIES {
            self.properties.clear();
        }
        let mut answer = reply.to_vec();
        answer[2..4].fill(0);
        self.properties.insert(request.into(), Property { answer: answer.into(), atom });
    }

    /// What GetGeometry would say of what only the program can have changed.
    pub fn geometry(&self, id: u32, order: ByteOrder) -> Option<Answer> {
        let Geometry { root, depth, place } = self.drawables.get(&id)?.geometry?;
        let mut answer = [0; 32];
        (answer[0], answer[1]) = (1, depth);
        put_u32(order, &mut answer, 8, root);
        for (index, &value) in place.iter().enumerate() {
            crate::bytes::put_u16(order, &mut answer, 12 + 2 * index, value);
        }
        Some(answer[..].into())
    }
}

/// Takes out of a window's attributes what the proxy has added to them.
pub fn without_added(order: ByteOrder, reply: &mut [u8]) {
    const OWN_MASK: usize = 36;
    if let Some(mask) = order.u32(reply, OWN_MASK) {
        put_u32(order, reply, OWN_MASK, mask & !PROPERTY_CHANGE);
    }
}

fn reads(request: &[u8], window: u32) -> bool {
    // Kept in the program's byte order; a window's number read the other way round is not one of its own.
    let bytes = request.get(4..8);
    bytes == Some(&window.to_le_bytes()) || bytes == Some(&window.to_be_bytes())
}

/// Where the event mask stands in a list of values.
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

    fn dialogue() -> Dialogue {
        let screen = Screen { root: 0x50, colormap: 0x20, visual: 0x21, depth: 24 };
        Dialogue::new(
            ORDER,
            Greeting { id_base: 0x20_0000, id_mask: 0x1f_ffff, screens: vec![screen], ..Greeting::default() },
        )
    }

    fn created(selects: u32) -> (Windows, Dialogue) {
        let dialogue = dialogue();
        let mut windows = Windows::new(&dialogue);
        let words = [WINDOW, 0x50, 0x0003_0004, 0x0064_0032, 0x0001_0001, 0, 2 | EVENT_MASK, 9, selects];
        windows.hear(&mut request(ORDER, op::CREATE_WINDOW_REQUEST, 0, &words), 1, &dialogue);
        (windows, dialogue)
    }

    #[test]
    fn geometry_follows_from_how_a_window_was_made_until_it_is_mapped() {
        let (mut windows, dialogue) = created(0);
        let answer = windows.geometry(WINDOW, ORDER).unwrap();
        assert_eq!(
            answer[..],
            [&[1, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 3, 0, 4, 0, 0x64, 0, 0x32, 0, 1], &[0; 10][..]].concat()
        );
        windows.hear(
            &mut request(ORDER, op::CREATE_PIXMAP_REQUEST, 1, &[WINDOW + 1, WINDOW, 0x0010_0020]),
            2,
            &dialogue,
        );
        assert_eq!(windows.geometry(WINDOW + 1, ORDER).unwrap()[1], 1);
        windows.hear(&mut request(ORDER, op::MAP_WINDOW_REQUEST, 0, &[WINDOW]), 3, &dialogue);
        assert_eq!(windows.geometry(WINDOW, ORDER), None);
        assert!(windows.geometry(WINDOW + 1, ORDER).is_some(), "nobody can change a pixmap's");
        assert_eq!(windows.geometry(0x40_0001, ORDER), None);
    }

    #[test]
    fn what_the_proxy_listens_for_is_added_and_kept_from_the_program() {
        let (mut windows, dialogue) = created(1);
        assert_eq!(windows.read(WINDOW), None, "nobody listens yet");
        let added = windows.watch(WINDOW, ORDER).unwrap();
        assert_eq!(
            added,
            request(ORDER, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &[WINDOW, EVENT_MASK, PROPERTY_CHANGE | 1])
        );
        assert!(windows.is_added(WINDOW) && !windows.is_selected(WINDOW, 5));
        let mut select = request(ORDER, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &[WINDOW, 1 | EVENT_MASK, 7, 2]);
        windows.hear(&mut select, 6, &dialogue);
        assert_eq!(ORDER.u32(&select, 16), Some(PROPERTY_CHANGE | 2));
        let mut select =
            request(ORDER, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &[WINDOW, EVENT_MASK, PROPERTY_CHANGE]);
        windows.hear(&mut select, 9, &dialogue);
        assert!(!windows.is_selected(WINDOW, 8) && windows.is_selected(WINDOW, 9) && !windows.is_added(WINDOW));
    }

    #[test]
    fn a_property_is_known_until_it_changes() {
        let (mut windows, dialogue) = created(PROPERTY_CHANGE);
        let read = request(ORDER, 20, 0, &[WINDOW, 39, 31, 0, 100]);
        let reading = windows.read(WINDOW).unwrap();
        windows.keep(reading, &read, ORDER, &[1; 32]);
        assert!(windows.property(&read).is_some());
        windows.change(WINDOW, Some(40));
        assert!(windows.property(&read).is_some());
        windows.change(WINDOW, Some(39));
        assert_eq!(windows.property(&read), None);
        windows.keep(reading, &read, ORDER, &[1; 32]);
        assert_eq!(windows.property(&read), None, "it was asked for before the change");
        let reading = windows.read(WINDOW).unwrap();
        windows.hear(&mut request(ORDER, op::CHANGE_PROPERTY_REQUEST, 0, &[WINDOW, 39, 31, 8, 0]), 4, &dialogue);
        windows.keep(reading, &read, ORDER, &[1; 32]);
        assert_eq!(windows.property(&read), None, "the program changed it itself");
    }
}
