// SPDX-License-Identifier: MIT
//! A mock server whose answers depend only on earlier requests, so that a program must receive the same messages with
//! and without the proxy.

use std::collections::HashMap;
use xqos_near::{Near, NearSettings, Questions, Store};
use xqos_x11::ByteOrder;

pub const ROOT: u32 = 0x50;
pub const COLORMAP: u32 = 0x20;
pub const VISUAL: u32 = 0x21;
pub const BASE: u32 = 0x20_0000;
const RENDER: u8 = 139;
pub const RANDR: u8 = 140;
pub const PROPERTY_CHANGE: u32 = 1 << 22;
pub const STRUCTURE_NOTIFY: u32 = 1 << 17;
/// Selected by another client, the window manager.
pub const SUBSTRUCTURE_REDIRECT: u32 = 1 << 20;

pub fn request(order: ByteOrder, major: u8, data: u8, words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; 4 + 4 * words.len()];
    (bytes[0], bytes[1]) = (major, data);
    order.put_u16(&mut bytes, 2, 1 + words.len() as u16);
    words.iter().enumerate().for_each(|(index, &word)| order.put_u32(&mut bytes, 4 + 4 * index, word));
    bytes
}

pub fn named(order: ByteOrder, major: u8, data: u8, name: &str) -> Vec<u8> {
    let mut bytes = request(order, major, data, &vec![0; 1 + name.len().div_ceil(4)]);
    order.put_u16(&mut bytes, 4, name.len() as u16);
    bytes[8..8 + name.len()].copy_from_slice(name.as_bytes());
    bytes
}

/// The setup request of a client without a cookie. [`greeting`] is the reply of a server with one TrueColor screen.
pub fn setup(order: ByteOrder) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes[0] = order.letter();
    order.put_u16(&mut bytes, 2, 11);
    bytes
}

pub fn greeting(order: ByteOrder) -> Vec<u8> {
    let mut bytes = vec![0; 40 + 40 + 8 + 24];
    (bytes[0], bytes[28]) = (1, 1);
    order.put_u16(&mut bytes, 2, 11);
    let words = ((bytes.len() - 8) / 4) as u16;
    order.put_u16(&mut bytes, 6, words);
    for (at, value) in [(12, BASE), (16, 0x1f_ffff), (40, ROOT), (44, COLORMAP), (72, VISUAL), (88, VISUAL)] {
        order.put_u32(&mut bytes, at, value);
    }
    (bytes[78], bytes[79], bytes[80]) = (24, 1, 24);
    order.put_u16(&mut bytes, 82, 1);
    bytes[92] = 4;
    bytes
}

/// One client's connection to the server.
#[derive(Debug)]
pub struct Server {
    order: ByteOrder,
    inbox: Vec<u8>,
    pub out: Vec<u8>,
    number: u64,
    atoms: Vec<String>,
    masks: HashMap<u32, u32>,
    /// Depth, and three words of GetGeometry's reply, of windows and pixmaps.
    drawables: HashMap<u32, (u8, [u32; 3])>,
    properties: HashMap<(u32, u32), u32>,
    version: u32,
    /// The answer to each request of RANDR.
    pub monitors: u32,
    /// Number of allocations, by colormap and pixel.
    pub cells: HashMap<(u32, u32), u32>,
    /// All executed requests.
    pub executed: Vec<Vec<u8>>,
}

impl Server {
    pub fn new(order: ByteOrder) -> Server {
        let masks = HashMap::from([(ROOT, 0)]);
        Server {
            order,
            inbox: Vec::new(),
            out: Vec::new(),
            number: 0,
            atoms: Vec::new(),
            masks,
            drawables: HashMap::new(),
            properties: HashMap::new(),
            version: 0,
            monitors: 1,
            cells: HashMap::new(),
            executed: Vec::new(),
        }
    }

    /// Executes the requests in `bytes`.
    pub fn take(&mut self, bytes: &[u8]) {
        self.inbox.extend(bytes);
        while self.inbox.len() >= 4 {
            let length = 4 * usize::from(self.order.u16(&self.inbox, 2).unwrap().max(1));
            if self.inbox.len() < length {
                return;
            }
            let request: Vec<u8> = self.inbox.drain(..length).collect();
            self.number += 1;
            self.execute(&request);
            self.executed.push(request);
        }
    }

    fn execute(&mut self, request: &[u8]) {
        let word = |at| self.order.u32(request, at).unwrap_or(0);
        match request[0] {
            major if self.order.u16(request, 2) == Some(0) => self.error(16, 0, major),
            1 if self.masks.contains_key(&word(4)) => self.error(14, word(4), 1),
            1 if word(16) == 0 => self.error(2, 0, 1),
            1 => {
                self.masks.insert(word(4), if word(28) == 1 << 11 { word(32) } else { 0 });
                self.drawables.insert(word(4), (request[1], [word(12), word(16), word(20) & 0xffff]));
            }
            2 if !self.masks.contains_key(&word(4)) => self.error(3, word(4), 2),
            2 if word(12) & SUBSTRUCTURE_REDIRECT != 0 => self.error(10, word(4), 2),
            2 => _ = self.masks.insert(word(4), word(12)),
            4 => self.destroy(word(4)),
            8 if !self.masks.contains_key(&word(4)) => self.error(3, word(4), 8),
            8 => self.report(19, word(4)),
            14 => match self.drawables.get(&word(4)).copied() {
                Some((depth, [position, size, border])) => self.reply(depth, &[ROOT, position, size, border]),
                None => self.error(9, word(4), 14),
            },
            16 => {
                let length = usize::from(self.order.u16(request, 4).unwrap());
                let name = String::from_utf8_lossy(&request[8..8 + length]).into_owned();
                let atom = self.atom(&name, request[1] == 0);
                self.reply(0, &[atom]);
            }
            17 => match self.atoms.get(word(4).wrapping_sub(100) as usize).cloned() {
                Some(name) => self.name(&name),
                None => self.error(5, word(4), 17),
            },
            18 => {
                let (window, atom) = (word(4), word(8));
                *self.properties.entry((window, atom)).or_default() += word(24);
                if self.masks.get(&window).is_some_and(|mask| mask & PROPERTY_CHANGE != 0) {
                    self.event(28, &[window, atom]);
                }
            }
            20 => match self.masks.get(&word(4)).copied() {
                Some(mask) => {
                    let property = (word(4), word(8));
                    let value = self.properties.get(&property).copied().unwrap_or(0);
                    if request[1] == 1 && self.properties.remove(&property).is_some() && mask & PROPERTY_CHANGE != 0 {
                        self.event(28, &[word(4), word(8)]);
                    }
                    self.reply(0, &[value]);
                }
                None => self.error(3, word(4), 20),
            },
            40 => self.reply(1, &[0, 0]),
            43 => self.reply(0, &[self.executed.iter().filter(|it| it[0] == 8).count() as u32]),
            53 if word(12) == 0 => self.error(2, 0, 53),
            53 => _ = self.drawables.insert(word(4), (request[1], [0, word(12), 0])),
            84 => {
                *self.cells.entry((word(4), word(8))).or_default() += 1;
                self.reply(0, &[word(8), word(12) ^ 0xffff, word(8)]);
            }
            88 => match self.cells.get_mut(&(word(4), word(12))).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => self.error(10, word(12), 88),
            },
            98 => {
                let mut fields = [0; 4];
                if request[8..].starts_with(b"RENDER") {
                    fields = [1, RENDER, 0, 142];
                } else if request[8..].starts_with(b"MIT-SHM") {
                    fields = [1, 130, 65, 128];
                }
                self.reply(0, &[0]);
                let at = self.out.len() - 24;
                self.out[at..at + 4].copy_from_slice(&fields);
            }
            119 => self.reply(0, &[0]),
            RANDR => self.reply(0, &[self.monitors]),
            RENDER if request[1] == 0 => {
                self.version = self.version.max(word(8));
                self.reply(0, &[0, self.version]);
            }
            RENDER if request[1] == 1 => self.reply(0, &[self.version, 7]),
            _ => {}
        }
    }

    /// Resizes a window, as another client.
    pub fn resize(&mut self, window: u32, size: u32) {
        self.drawables.get_mut(&window).unwrap().1[1] = size;
        self.report(22, window);
    }

    /// Destroys a window, as another client or as the program.
    pub fn destroy(&mut self, window: u32) {
        self.report(17, window);
        self.drawables.remove(&window);
        self.masks.remove(&window);
    }

    /// Sends a StructureNotify event, if this client has selected it.
    fn report(&mut self, code: u8, window: u32) {
        if self.masks.get(&window).is_some_and(|mask| mask & STRUCTURE_NOTIFY != 0) {
            self.event(code, &[window, window]);
        }
    }

    fn atom(&mut self, name: &str, makes: bool) -> u32 {
        let index = self.atoms.iter().position(|known| known == name);
        let index = index.or_else(|| {
            self.atoms.extend(makes.then(|| name.to_owned()));
            makes.then(|| self.atoms.len() - 1)
        });
        index.map_or(0, |index| 100 + index as u32)
    }

    fn say(&mut self, code: u8, second: u8, words: &[u32]) {
        let mut bytes = [0; 32];
        (bytes[0], bytes[1]) = (code, second);
        self.order.put_u16(&mut bytes, 2, self.number as u16);
        words.iter().enumerate().for_each(|(index, &word)| self.order.put_u32(&mut bytes, 4 + 4 * index, word));
        self.out.extend(bytes);
    }

    fn reply(&mut self, second: u8, words: &[u32]) {
        self.say(1, second, &[&[0], words].concat());
    }

    fn name(&mut self, name: &str) {
        let padded = name.len().next_multiple_of(4);
        self.say(1, 0, &[(padded / 4) as u32]);
        let at = self.out.len() - 24;
        self.order.put_u16(&mut self.out, at, name.len() as u16);
        self.out.extend(name.bytes().chain([0; 4]).take(padded));
        self.out.extend(vec![0; padded.saturating_sub(name.len() + 4)]);
    }

    fn error(&mut self, code: u8, value: u32, major: u8) {
        self.say(0, code, &[value]);
        let at = self.out.len() - 32;
        self.out[at + 10] = major;
    }

    pub fn event(&mut self, code: u8, words: &[u32]) {
        self.say(code, 0, words);
    }
}

/// A message that a program received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    pub code: u8,
    pub number: u16,
    /// All other bytes.
    pub rest: Vec<u8>,
}

pub fn messages(order: ByteOrder, bytes: &[u8]) -> Vec<Heard> {
    let (mut rest, mut all) = (bytes, Vec::new());
    while rest.len() >= 32 {
        let more = if matches!(rest[0], 1 | 35) { 4 * order.u32(rest, 4).unwrap() as usize } else { 0 };
        let (message, behind) = rest.split_at(32 + more);
        let number = order.u16(message, 2).unwrap();
        all.push(Heard { code: message[0], number, rest: [&message[1..2], &message[4..]].concat() });
        rest = behind;
    }
    assert!(rest.is_empty(), "a message is truncated: {rest:?}");
    all
}

/// A proxy between a program and the mock server.
#[derive(Debug)]
pub struct Harness {
    pub near: Near,
    pub store: Store,
    pub server: Server,
    pub heard: Vec<u8>,
    order: ByteOrder,
    is_greeted: bool,
    now_ns: u64,
}

impl Harness {
    pub fn new(order: ByteOrder, settings: NearSettings, store: Store) -> Harness {
        let near = Near::new(settings);
        Harness { near, store, server: Server::new(order), heard: Vec::new(), order, is_greeted: false, now_ns: 0 }
    }

    /// Connects the program, up to its first request.
    pub fn open(&mut self, questions: &Questions) {
        self.near.ask_ahead(questions);
        self.near.from_program(&setup(self.order), 0, &mut self.store);
        self.forward(usize::MAX);
        self.near.from_server(&greeting(self.order), 0, &mut self.store);
        self.settle();
        let greeting = greeting(self.order);
        assert_eq!(self.heard.drain(..greeting.len()).collect::<Vec<_>>(), greeting);
    }

    pub fn say(&mut self, bytes: &[u8]) {
        self.now_ns += 1000;
        self.near.from_program(bytes, self.now_ns, &mut self.store);
    }

    /// Moves at most `most` bytes to the server.
    pub fn forward(&mut self, most: usize) {
        let bytes = self.near.to_server().bytes();
        let count = bytes.len().min(most);
        let bytes = bytes[..count].to_vec();
        self.near.to_server().advance(count);
        let is_setup = !std::mem::replace(&mut self.is_greeted, true);
        let setup = setup(self.order).len();
        self.server.take(if is_setup { &bytes[setup..] } else { &bytes });
        self.near.go_on(self.now_ns, &mut self.store);
    }

    /// Moves at most `most` bytes from the server.
    pub fn deliver(&mut self, most: usize) {
        self.now_ns += 1000;
        let count = self.server.out.len().min(most);
        let bytes: Vec<u8> = self.server.out.drain(..count).collect();
        self.near.from_server(&bytes, self.now_ns, &mut self.store);
        self.hear();
    }

    pub fn hear(&mut self) {
        let bytes = self.near.to_program().bytes().to_vec();
        self.near.to_program().advance(bytes.len());
        self.heard.extend(bytes);
        self.near.go_on(self.now_ns, &mut self.store);
    }

    /// Moves bytes until both sides are idle.
    pub fn settle(&mut self) {
        let has_more = |near: &mut Near| !near.to_server().bytes().is_empty() || !near.to_program().bytes().is_empty();
        while has_more(&mut self.near) || !self.server.out.is_empty() {
            self.forward(usize::MAX);
            self.deliver(usize::MAX);
        }
    }
}
