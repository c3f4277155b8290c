// SPDX-License-Identifier: MIT
//! Pixmaps, windows, contexts and pictures with random properties, and requests that change them.

use super::super::world::{half, message, word};
use crate::wire::{Message, Wire, opcode};
use std::fmt;
use xqos_testkit::Random;

pub const DEPTHS: [u8; 7] = [1, 4, 8, 15, 16, 24, 32];
/// The index of depth 24 in `DEPTHS`.
const OF_SCREEN: usize = 5;
/// Two pixmaps and two contexts of each depth.
pub const PIXMAPS: usize = 2 * DEPTHS.len();
/// Overlapping siblings, a child of the first, and a sibling of depth 32, which has pixels of its own.
pub const WINDOWS: usize = 4;
/// The windows are in this part of the screen.
pub const SCREEN: [u16; 2] = [130, 96];
/// A picture of each pixmap and window, then those without a drawable.
pub const PICTURES: usize = PIXMAPS + WINDOWS + FILLS;
pub const FILLS: usize = 5;

/// The data about a server that never changes.
#[derive(Debug, PartialEq, Eq)]
pub struct World {
    pub base: u32,
    pub root: u32,
    pub render: u8,
    pub shape: u8,
    /// Ids, depths, and the number of bits used.
    formats: Vec<(u32, u8, u32)>,
    /// A visual of depth 32.
    visual: u32,
}

impl World {
    pub fn new(wire: &mut Wire) -> World {
        let [render, shape, big] =
            ["RENDER", "SHAPE", "BIG-REQUESTS"].map(|name| wire.extension(name).expect("an extension").major);
        wire.ask(&message(big, 0).finish()).unwrap();
        wire.ask(&message(render, 0).u32(0).u32(11).finish()).unwrap();
        let reply = wire.ask(&message(render, 1).finish()).unwrap();
        let (formats, screens) = reply[32..].split_at(28 * word(&reply, 8) as usize);
        let bits = |entry: &[u8]| [10, 14, 18, 22].map(|at| half(entry, at).count_ones()).iter().sum();
        let formats = formats.chunks(28).map(|entry| (word(entry, 0), entry[5], bits(entry))).collect();
        // The depths of the first screen with their visuals.
        let mut depths = &screens[8..];
        while depths[0] != 32 {
            depths = &depths[8 + 8 * usize::from(half(depths, 2))..];
        }
        let world = World { base: wire.base + 0x100, root: wire.root, render, shape, formats, visual: word(depths, 8) };
        wire.tell(&message(78, 0).u32(world.colormap()).u32(world.root).u32(world.visual).finish()).unwrap();
        wire.tell(&message(45, 0).u32(world.font()).u16(5).u16(0).raw(b"fixed").finish()).unwrap();
        world
    }

    pub fn pixmap(&self, number: usize) -> u32 {
        self.base + number as u32
    }

    pub fn window(&self, number: usize) -> u32 {
        self.base + 0x20 + number as u32
    }

    pub fn context(&self, number: usize) -> u32 {
        self.base + 0x40 + number as u32
    }

    pub fn picture(&self, number: usize) -> u32 {
        self.base + 0x60 + number as u32
    }

    pub fn glyphs(&self) -> u32 {
        self.base + 0x90
    }

    fn font(&self) -> u32 {
        self.base + 0x91
    }

    fn colormap(&self) -> u32 {
        self.base + 0x92
    }

    /// A pixmap, a window, or last the root window: its id, and the index of its depth.
    pub fn drawable(&self, number: usize) -> (u32, usize) {
        match number.checked_sub(PIXMAPS) {
            None => (self.pixmap(number), number / 2),
            Some(WINDOWS) => (self.root, OF_SCREEN),
            Some(window) => (self.window(window), if window == 3 { OF_SCREEN + 1 } else { OF_SCREEN }),
        }
    }

    /// Requests that free everything that a scene can create. Some fail if the scene did not create all of it.
    pub fn clear(&self) -> Vec<Vec<u8>> {
        let free = |major, id: u32| message(major, 0).u32(id).finish();
        let mut requests = vec![message(self.render, 19).u32(self.glyphs()).finish()];
        requests.extend((0..PICTURES).map(|at| message(self.render, 7).u32(self.picture(at)).finish()));
        requests.extend((0..PIXMAPS).flat_map(|at| [free(54, self.pixmap(at)), free(60, self.context(at))]));
        requests.extend((0..WINDOWS).map(|at| free(4, self.window(at))));
        requests.push(free(61, self.root).into_iter().chain([0; 8]).collect());
        requests.last_mut().expect("ClearArea")[2] = 4;
        requests
    }
}

/// A request, and the request for an image of what it has drawn.
pub struct Step {
    pub request: Vec<u8>,
    pub image: Vec<u8>,
}

impl fmt::Debug for Step {
    /// The first words of the request.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Step { request, .. } = self;
        write!(f, "request {} {}, {} bytes:", request[0], request[1], request.len())?;
        request.chunks(4).take(24).try_for_each(|word| write!(f, " {word:02x?}"))
    }
}

pub struct Scene<'a> {
    pub world: &'a World,
    pub random: Random,
    sizes: [[u16; 2]; PIXMAPS],
    pub steps: Vec<Step>,
}

impl Scene<'_> {
    /// Random contents, and this many requests.
    pub fn new(world: &World, random: Random, requests: usize) -> Scene<'_> {
        let mut scene = Scene { world, random, sizes: [[0; 2]; PIXMAPS], steps: Vec::new() };
        for at in 0..PIXMAPS {
            scene.make_pixmap(at);
        }
        (0..WINDOWS).for_each(|at| scene.make_window(at));
        for at in 0..PIXMAPS {
            let request = message(opcode::CREATE_GC, 0).u32(world.context(at)).u32(world.pixmap(at));
            scene.context_values(request, at);
        }
        (0..PICTURES).for_each(|at| scene.make_picture(at));
        scene.make_glyphs();
        (0..requests).for_each(|_| scene.draw());
        scene
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit)
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Adds a request, sometimes with a wrong length. `target`: the number of the drawable that it draws to.
    pub fn add(&mut self, request: Message, target: Option<usize>) {
        let mut request = request.finish();
        if self.below(80) == 0 && request.len() < 1000 {
            request.extend([0; 4]);
            let words = (request.len() / 4) as u16;
            request[2..4].copy_from_slice(&words.to_ne_bytes());
        } else if self.below(10) == 0 && half(&request, 2) > 0 {
            // Use the BIG-REQUESTS format.
            let words = request.len() as u32 / 4 + 1;
            request[2..4].fill(0);
            request.splice(4..4, words.to_ne_bytes());
        }
        self.steps.push(Step { request, image: target.map(|at| self.image_of(at)).unwrap_or_default() });
    }

    fn image_of(&self, target: usize) -> Vec<u8> {
        let (mut id, [width, height]) = match self.sizes.get(target) {
            Some(&size) => (self.world.drawable(target).0, size),
            None => (self.world.root, SCREEN),
        };
        if target == PIXMAPS + 3 {
            id = self.world.window(3);
        }
        message(opcode::GET_IMAGE, 2).u32(id).u32(0).u16(width).u16(height).u32(!0).finish()
    }

    /// A picture's format of this depth, sometimes one without unused bits; 0 if there is none.
    pub fn format(&mut self, depth: u8) -> u32 {
        let least = self.of(&[0, 0, u32::from(depth)]);
        let all: Vec<u32> = (self.world.formats.iter())
            .filter(|&&(_, of, bits)| of == depth && bits >= least)
            .map(|&(id, ..)| id)
            .collect();
        if all.is_empty() { 0 } else { self.of(&all) }
    }

    /// Adds a request unchanged.
    pub fn make(&mut self, request: Message, target: Option<usize>) {
        let image = target.map(|at| self.image_of(at)).unwrap_or_default();
        self.steps.push(Step { request: request.finish(), image });
    }

    fn make_pixmap(&mut self, at: usize) {
        let (id, context, depth) = (self.world.pixmap(at), self.world.context(PIXMAPS), DEPTHS[at / 2]);
        // The second one of a depth is often a tile.
        let limits = if at % 2 == 0 { [(20, 56), (16, 44)] } else { [(1, 30), (1, 24)] };
        let size @ [width, height] = limits.map(|(least, more)| (least + self.below(more)) as u16);
        self.sizes[at] = size;
        let request = message(opcode::CREATE_PIXMAP, depth).u32(id).u32(self.world.root).u16(width).u16(height);
        self.make(request, None);
        self.make(message(opcode::CREATE_GC, 0).u32(context).u32(id).u32(0), None);
        let request = message(opcode::PUT_IMAGE, 2).u32(id).u32(context).u16(width).u16(height).u32(0);
        let bytes = self.random.bytes(row_bytes(depth, width) * usize::from(height));
        self.make(request.raw(&[0, depth, 0, 0]).raw(&bytes), Some(at));
        self.make(message(60, 0).u32(context), None);
    }

    fn make_window(&mut self, at: usize) {
        let world = self.world;
        let has_own_pixels = at == 3;
        let parent = if at == 2 { world.window(0) } else { world.root };
        let request = message(1, if has_own_pixels { 32 } else { 0 }).u32(world.window(at)).u32(parent);
        let request = (0..2).fold(request, |request, _| request.u16(self.below(40) as u16));
        let request = (0..2).fold(request, |request, _| request.u16(20 + self.below(50) as u16));
        let border = if has_own_pixels { 0 } else { self.below(4) as u16 };
        let request = request.u16(border).u16(1).u32(if has_own_pixels { world.visual } else { 0 });
        // The background is none, that of the parent, a pixmap or a colour. The border has a colour. Expose is
        // selected.
        let (mask, background) = match self.below(4) {
            kind @ (0 | 1) if !has_own_pixels => (0x809, kind as u32),
            2 if !has_own_pixels => (0x809, world.pixmap(2 * OF_SCREEN + self.below(2))),
            _ => (0x80a, self.random.next() as u32),
        };
        let colormap = [(1 << 13, world.colormap())].into_iter().filter(|_| has_own_pixels).collect::<Vec<_>>();
        let request = request.u32(mask | colormap.iter().map(|&(mask, _)| mask).sum::<u32>());
        let request = request.u32(background).u32(self.random.next() as u32).u32(1 << 15);
        let request = colormap.iter().fold(request, |request, &(_, id)| request.u32(id));
        self.make(request, None);
        self.make(message(8, 0).u32(world.window(at)), Some(PIXMAPS + at));
    }
}

/// The bytes of a row of an image in ZPixmap format.
pub fn row_bytes(depth: u8, width: u16) -> usize {
    let bits = match depth {
        1 => 1,
        4 | 8 => 8,
        15 | 16 => 16,
        _ => 32,
    };
    (usize::from(width) * bits).div_ceil(32) * 4
}
