// SPDX-License-Identifier: MIT
//! The windows, pixmaps, contexts and pictures that the random requests use: the same on each server.

use crate::fixture::Fixture;
use crate::wire::{Message, Wire, opcode};
use std::ptr::null;
use xqos_abi::ByteOrder;

pub const CLIENTS: usize = 3;
pub const SEGMENT_BYTES: usize = 64 * 1024;
const DEPTH: u8 = 24;
/// `Exposure` and `StructureNotify`.
const EVENTS: u32 = (1 << 15) | (1 << 17);

/// Major opcodes of extensions.
#[derive(Clone, Copy, Debug)]
pub struct Majors {
    pub render: u8,
    pub shm: u8,
}

/// A server with connected clients. Resource ids are those of the first client, unless stated otherwise.
#[derive(Debug)]
pub struct World {
    pub clients: Vec<Wire>,
    pub majors: Majors,
    /// Overlapping siblings, a child, and a window whose pixels are in a pixmap of their own.
    pub windows: [u32; 4],
    /// Ordinary pixmaps, and last the pixmap of the redirected window.
    pub pixmaps: [u32; 3],
    pub contexts: Vec<u32>,
    /// One for each window and pixmap, then a solid colour and a scaled pixmap.
    pub pictures: Vec<u32>,
    /// A picture of depth 8.
    pub mask: u32,
    pub segment: u32,
    memory: *mut u8,
}

impl World {
    pub fn new(fixture: &Fixture) -> World {
        let mut clients: Vec<Wire> = (0..CLIENTS).map(|_| fixture.native()).collect();
        for wire in &mut clients {
            let big = wire.extension("BIG-REQUESTS").expect("an extension").major;
            wire.ask(&message(big, 0).finish()).unwrap();
        }
        let one = &mut clients[0];
        let [render, shm, composite] =
            ["RENDER", "MIT-SHM", "Composite"].map(|name| one.extension(name).expect("an extension").major);
        let majors = Majors { render, shm };
        // An extension's version must be queried before other requests.
        for (major, minor_version) in [(render, 11), (composite, 4)] {
            one.ask(&message(major, 0).u32(0).u32(minor_version).finish()).unwrap();
        }
        let root = one.root;
        let window = |one: &mut Wire, parent: u32, place: [u16; 4], border: u16| {
            let id = one.new_id();
            let request = place.iter().fold(message(1, 0).u32(id).u32(parent), |request, &at| request.u16(at));
            let request = request.u16(border).u16(0).u32(0);
            // Background pixel, border pixel, events.
            let request = request.u32((1 << 1) | (1 << 3) | (1 << 11)).u32(0x0020_4060).u32(0x00ff_0000).u32(EVENTS);
            one.tell(&request.finish()).unwrap();
            one.tell(&message(8, 0).u32(id).finish()).unwrap();
            id
        };
        let first = window(one, root, [10, 10, 160, 120], 2);
        let second = window(one, root, [90, 60, 150, 130], 2);
        let child = window(one, first, [20, 30, 70, 60], 2);
        // It has no border: a stock server sometimes paints the border of a redirected window late.
        let redirected = window(one, root, [120, 20, 90, 90], 0);
        one.tell(&message(composite, 1).u32(redirected).u32(1).finish()).unwrap();
        let pixmap = |one: &mut Wire, depth: u8, width: u16, height: u16| {
            let id = one.new_id();
            let request = message(opcode::CREATE_PIXMAP, depth).u32(id).u32(root).u16(width).u16(height);
            one.tell(&request.finish()).unwrap();
            id
        };
        let pixmaps = [pixmap(one, DEPTH, 120, 100), pixmap(one, DEPTH, 16, 12), one.new_id()];
        one.tell(&message(composite, 6).u32(redirected).u32(pixmaps[2]).finish()).unwrap();
        let mut world = World {
            clients,
            majors,
            windows: [first, second, child, redirected],
            pixmaps,
            contexts: Vec::new(),
            pictures: Vec::new(),
            mask: 0,
            segment: 0,
            memory: std::ptr::null_mut(),
        };
        world.make_contexts();
        let mask = pixmap(&mut world.clients[0], 8, 100, 80);
        world.make_pictures(mask);
        world.attach();
        world.clear();
        world.contents();
        world
    }

    fn make_contexts(&mut self) {
        let (pixmap, tile) = (self.pixmaps[0], self.pixmaps[1]);
        let one = &mut self.clients[0];
        // Function, foreground, line width, fill style, tile, subwindow mode, exposures; see CreateGC.
        let values: [(u32, &[u32]); 6] = [
            (1 << 2, &[0x00ff_8040]),
            (1 | (1 << 2) | (1 << 16), &[6, 0x0055_aaff, 0]),
            ((1 << 2) | (1 << 15), &[0x0000_ff00, 1]),
            ((1 << 8) | (1 << 10), &[1, tile]),
            ((1 << 2) | (1 << 4) | (1 << 16), &[0x0080_0080, 3, 0]),
            (1 | (1 << 2) | (1 << 15) | (1 << 16), &[6, 0x00ff_ffff, 1, 0]),
        ];
        for (mask, values) in values {
            let id = one.new_id();
            let request = message(opcode::CREATE_GC, 0).u32(id).u32(pixmap).u32(mask);
            one.tell(&values.iter().fold(request, |request, &value| request.u32(value)).finish()).unwrap();
            self.contexts.push(id);
        }
    }

    fn make_pictures(&mut self, mask: u32) {
        let render = self.majors.render;
        let one = &mut self.clients[0];
        let formats = one.ask(&message(render, 1).finish()).unwrap();
        let format = |depth: u8, alpha_bits: u16| {
            let entry = formats[32..].chunks(28).take(word(&formats, 8) as usize).find(|entry| {
                // A direct format with the usual order of colours, or with alpha alone.
                entry[4] == 1
                    && entry[5] == depth
                    && half(entry, 22) == alpha_bits
                    && (depth == 8 || half(entry, 8) == 16)
            });
            word(entry.expect("a format"), 0)
        };
        let (colours, alpha) = (format(DEPTH, 0), format(8, 0xff));
        let drawables = self.windows.iter().chain(&self.pixmaps).map(|&id| (id, colours)).chain([(mask, alpha)]);
        for (drawable, format) in drawables.collect::<Vec<_>>() {
            let id = one.new_id();
            one.tell(&message(render, 4).u32(id).u32(drawable).u32(format).u32(0).finish()).unwrap();
            self.pictures.push(id);
        }
        self.mask = self.pictures.pop().expect("a picture");
        let solid = one.new_id();
        one.tell(&message(render, 33).u32(solid).u16(0x8000).u16(0x2000).u16(0).u16(0xa000).finish()).unwrap();
        self.pictures.push(solid);
        // A source that is twice as large, with smooth edges.
        let scaled = one.new_id();
        let (source, values) = (self.pixmaps[0], [0x8000, 0, 0, 0, 0x8000, 0, 0, 0, 0x1_0000]);
        one.tell(&message(render, 4).u32(scaled).u32(source).u32(colours).u32(0).finish()).unwrap();
        let transform = message(render, 28).u32(scaled);
        one.tell(&values.iter().fold(transform, |request, &value| request.u32(value)).finish()).unwrap();
        let filter = message(render, 30).u32(scaled).u16(8).u16(0).raw(b"bilinear");
        one.tell(&filter.finish()).unwrap();
        self.pictures.push(scaled);
    }

    fn attach(&mut self) {
        let one = &mut self.clients[0];
        self.segment = one.new_id();
        // SAFETY: these calls take no pointers. The segment is removed with its last user.
        let key = unsafe {
            let key = libc::shmget(libc::IPC_PRIVATE, SEGMENT_BYTES, libc::IPC_CREAT | 0o600);
            self.memory = libc::shmat(key, null(), 0).cast();
            assert!(key >= 0 && self.memory as isize != -1, "shared memory");
            key
        };
        for at in 0..SEGMENT_BYTES {
            // SAFETY: the segment has this many bytes, and the server does not use it yet.
            unsafe { self.memory.add(at).write((at * 7 + at / 251) as u8) };
        }
        one.tell(&message(self.majors.shm, 1).u32(self.segment).u32(key as u32).u32(0).finish()).unwrap();
        // SAFETY: as above.
        unsafe { libc::shmctl(key, libc::IPC_RMID, std::ptr::null_mut()) };
    }

    /// Gives each pixmap known contents.
    fn clear(&mut self) {
        let (context, one) = (self.contexts[0], &mut self.clients[0]);
        for pixmap in self.pixmaps {
            let request = message(opcode::POLY_FILL_RECTANGLE, 0).u32(pixmap).u32(context);
            one.tell(&request.u16(0).u16(0).u16(200).u16(200).finish()).unwrap();
        }
        let request = message(self.majors.render, 26).raw(&[1, 0, 0, 0]).u32(self.mask).u32(0).u32(0);
        one.tell(&request.u16(0).u16(0).u16(100).u16(80).finish()).unwrap();
    }

    pub fn drawables(&self) -> Vec<u32> {
        self.windows.iter().chain(&self.pixmaps).copied().collect()
    }

    /// All pixels of the screen and of the pixmaps, and the shared memory.
    pub fn contents(&mut self) -> Vec<Vec<u8>> {
        let root = self.clients[0].root;
        let mut contents = Vec::new();
        for (drawable, width, height) in
            [(root, 320, 240), (self.pixmaps[0], 120, 100), (self.pixmaps[1], 16, 12), (self.pixmaps[2], 90, 90)]
        {
            let request = message(opcode::GET_IMAGE, 2).u32(drawable).u16(0).u16(0).u16(width).u16(height).u32(!0);
            let reply = self.clients[0].ask(&request.finish()).unwrap();
            contents.push(colours(&reply[32..]));
        }
        self.clients[0].events.clear();
        // SAFETY: the segment has this many bytes, and the server has executed all requests.
        contents.push(colours(unsafe { std::slice::from_raw_parts(self.memory, SEGMENT_BYTES) }));
        contents
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: the segment is attached at this address and no longer used.
        unsafe { libc::shmdt(self.memory.cast()) };
    }
}

/// The three used bytes of each pixel. Drawing may leave any value in the fourth.
fn colours(pixels: &[u8]) -> Vec<u8> {
    pixels.chunks(4).flat_map(|pixel| &pixel[..3]).copied().collect()
}

pub fn message(major: u8, minor: u8) -> Message {
    Message::new(ByteOrder::NATIVE, major, minor)
}

pub fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes[at..at + 2].try_into().unwrap())
}

pub fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}
