// SPDX-License-Identifier: MIT
//! The world of a random case: windows, pixmaps, graphics contexts and pictures of three clients that share them.

use super::super::world::message;
use super::server::Known;
use crate::wire::opcode;
use xqos_testkit::Random;

pub const CLIENTS: usize = 3;
/// The client that has all Damage objects. It reads no windows: a stock server may write a DamageNotify event between
/// the reply to GetImage and its pixels, because it copies redirected children only then.
pub const WATCHER: usize = 0;
/// The selection that each client owns as long as it is connected.
pub const SELECTIONS: [u32; CLIENTS] = [1, 2, 9];
/// `VisibilityChange`, `Exposure`, `StructureNotify`, `SubstructureNotify`, `PropertyChange`.
const EVENTS: u32 = (1 << 15) | (1 << 16) | (1 << 17) | (1 << 19) | (1 << 22);

/// A drawable, graphics context or picture with its depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thing {
    pub id: u32,
    pub depth: u32,
}

/// All objects with an id. Requests choose from them, and the remaining ones are compared after the case.
#[derive(Debug, Default)]
pub struct Pool {
    pub windows: Vec<Thing>,
    pub pixmaps: Vec<Thing>,
    pub contexts: Vec<Thing>,
    pub pictures: Vec<u32>,
    pub regions: Vec<u32>,
    pub damages: Vec<u32>,
    /// Regions of damage.
    pub damaged: Vec<u32>,
    pub fences: Vec<u32>,
    pub counters: Vec<u32>,
    pub segment: u32,
}

/// Makes the requests that build a world.
pub struct Builder<'a> {
    pub known: &'a Known,
    pub random: Random,
    pub pool: Pool,
    pub requests: Vec<(usize, Vec<u8>)>,
    ids: [u32; CLIENTS],
}

pub fn request(major: u8, minor: u32, words: &[u32]) -> Vec<u8> {
    words.iter().fold(message(major, minor as u8), |request, &word| request.u32(word)).finish()
}

/// Two numbers of 16 bits.
pub fn pair(first: i32, second: i32) -> u32 {
    u32::from(first as u16) | (u32::from(second as u16) << 16)
}

/// The length of a row of an image.
pub fn bytes_of_row(depth: u32, width: i32) -> usize {
    let bytes = match depth {
        1 => (width + 31) / 32 * 4,
        8 => (width + 3) / 4 * 4,
        _ => 4 * width,
    };
    bytes as usize
}

/// A mask and the values that belong to its bits, in their order.
pub fn values(values: &[(u32, u32)]) -> Vec<u32> {
    let mask = values.iter().fold(0, |mask, (bit, _)| mask | (1 << bit));
    [mask].into_iter().chain(values.iter().map(|&(_, value)| value)).collect()
}

impl<'a> Builder<'a> {
    pub fn new(known: &'a Known, random: Random) -> Builder<'a> {
        let ids = known.bases.map(|base| base + 1);
        Builder { known, random, pool: Pool::default(), requests: Vec::new(), ids }
    }

    pub fn below(&mut self, limit: usize) -> i32 {
        self.random.below(limit) as i32
    }

    pub fn word(&mut self, limit: usize) -> u32 {
        self.random.below(limit) as u32
    }

    pub fn is(&mut self, of: usize) -> bool {
        self.random.below(of) == 0
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.random.below(all.len())]
    }

    pub fn new_id(&mut self, client: usize) -> u32 {
        self.ids[client] += 1;
        self.ids[client]
    }

    fn send(&mut self, client: usize, major: u8, minor: u32, words: &[u32]) {
        self.requests.push((client, request(major, minor, words)));
    }

    pub fn build(&mut self) {
        let at = self.random.below(CLIENTS);
        (0..CLIENTS).for_each(|client| self.begin(client));
        for client in 0..CLIENTS {
            self.make_pixmaps(client, (client + at) % CLIENTS);
        }
        for client in 0..CLIENTS {
            self.make_contexts(client);
        }
        for client in 0..CLIENTS {
            self.make_windows(client);
        }
        for client in 0..CLIENTS {
            self.map_and_redirect(client);
        }
        for client in 0..CLIENTS {
            self.make_names(client);
            self.make_pictures(client);
            self.watch(client);
        }
        // After all deferred work of the server.
        for client in 0..CLIENTS {
            for damage in self.pool.damages.clone() {
                self.send(client, self.known.majors.damage, 3, &[damage, 0, 0]);
            }
        }
    }

    fn begin(&mut self, client: usize) {
        let majors = self.known.majors;
        self.send(client, majors.big, 0, &[]);
        for (major, version) in
            [(majors.render, [0, 11]), (majors.xfixes, [5, 0]), (majors.composite, [0, 4]), (majors.damage, [1, 1])]
        {
            self.send(client, major, 0, &version);
        }
        // No request destroys this context, so that its id can be used to kill the client.
        let (base, root) = (self.known.bases[client], self.known.root);
        self.send(client, opcode::CREATE_GC, 0, &[base + 1, root, 0]);
        self.send(client, 22, 0, &[root, SELECTIONS[client], 0]);
        let mode = self.of(&[0, 0, 0, 1, 2]);
        self.send(client, opcode::SET_CLOSE_DOWN_MODE, mode, &[]);
    }

    fn make_pixmaps(&mut self, client: usize, which: usize) {
        let sizes = [
            [(24, 8, 8), (24, 100, 80), (32, 50, 40)],
            [(24, 60, 50), (1, 40, 30), (24, 30, 40)],
            [(8, 60, 50), (24, 40, 30), (24, 90, 20)],
        ];
        for (at, (depth, width, height)) in sizes[which].into_iter().enumerate() {
            let (id, context) = (self.new_id(client), self.new_id(client));
            if which == 2 && at == 1 {
                self.pool.segment = self.new_id(client);
                let (segment, key) = (self.pool.segment, self.known.key);
                self.send(client, self.known.majors.shm, 1, &[segment, key, 0]);
                let words = [id, self.known.root, pair(width, height), depth, segment, 0];
                self.send(client, self.known.majors.shm, 5, &words);
            } else {
                self.send(client, opcode::CREATE_PIXMAP, depth, &[id, self.known.root, pair(width, height)]);
            }
            self.pool.pixmaps.push(Thing { id, depth });
            // Random pixels in a tile, with which the pixmap is filled.
            let tile = self.new_id(client);
            self.send(client, opcode::CREATE_PIXMAP, depth, &[tile, self.known.root, pair(16, 5)]);
            self.send(client, opcode::CREATE_GC, 0, &[&[context, id], &values(&[(8, 1), (10, tile)])[..]].concat());
            let bytes = self.random.bytes(5 * bytes_of_row(depth, 16));
            let image = message(opcode::PUT_IMAGE, 2).u32(tile).u32(context).u32(pair(16, 5)).u32(0);
            self.requests.push((client, image.raw(&[0, depth as u8, 0, 0]).raw(&bytes).finish()));
            self.send(client, opcode::POLY_FILL_RECTANGLE, 0, &[id, context, 0, pair(width, height)]);
        }
    }

    pub fn pixmap(&mut self, depth: u32) -> u32 {
        let all: Vec<u32> = self.pool.pixmaps.iter().filter(|one| one.depth == depth).map(|one| one.id).collect();
        self.of(&all)
    }

    fn make_contexts(&mut self, client: usize) {
        let (tile, bitmap) = (self.pixmap(24), self.pixmap(1));
        let (include, exposures, colour) = (self.word(2), self.word(2), self.random.next() as u32);
        let all: [&[(u32, u32)]; 4] = match client {
            0 => [
                &[(2, colour)],
                &[(0, 6), (2, colour), (15, 1)],
                &[(8, 1), (10, tile), (15, include), (16, exposures)],
                &[(2, colour), (15, 1), (16, 0)],
            ],
            1 => [
                &[(2, colour), (3, !colour), (8, 2 + include), (11, bitmap), (16, exposures)],
                &[(2, colour), (4, 5), (6, 1 + include), (7, exposures)],
                &[(2, colour), (5, 1 + include), (15, exposures), (21, 3)],
                &[(2, colour), (17, 10), (18, 5), (19, bitmap)],
            ],
            _ => [&[(0, 6), (2, colour), (16, 0)], &[(2, 1)], &[(2, colour & 0xff)], &[(2, colour)]],
        };
        let depths = if client == 2 { [24, 1, 8, 32] } else { [24; 4] };
        for (list, depth) in all.into_iter().zip(depths) {
            let (id, drawable) = (self.new_id(client), self.pixmap(depth));
            self.send(client, opcode::CREATE_GC, 0, &[&[id, drawable], &values(list)[..]].concat());
            self.pool.contexts.push(Thing { id, depth });
        }
    }

    fn make_windows(&mut self, client: usize) {
        for _ in 0..self.of(&[1, 2, 2, 3]) {
            let id = self.new_id(client);
            let words = self.new_window(client, id);
            self.requests.push((client, words));
        }
    }

    /// A request that creates a window.
    pub fn new_window(&mut self, client: usize, id: u32) -> Vec<u8> {
        let depth = if self.is(8) { 32 } else { 24 };
        let parents: Vec<u32> = self.pool.windows.iter().map(|one| one.id).collect();
        let parent = if parents.is_empty() || self.is(2) { self.known.root } else { self.of(&parents) };
        let background = match self.below(4) {
            0 => (0, 0),
            1 if depth == 24 => (0, 1),
            2 => (0, self.pixmap(depth)),
            _ => (1, self.random.next() as u32),
        };
        let colour = self.random.next() as u32;
        let mut list = vec![
            background,
            (3, colour),
            (4, self.word(11)),
            (5, 1 + self.word(10)),
            (6, self.of(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 2])),
        ];
        list.push((11, if self.is(4) { 0 } else { EVENTS }));
        let mut visual = 0;
        if depth == 32 {
            visual = self.known.visual;
            let map = self.new_id(client);
            self.send(client, 78, 0, &[map, self.known.root, visual]);
            list.push((13, map));
        }
        let place = [pair(self.below(90) - 10, self.below(60) - 10), pair(20 + self.below(70), 20 + self.below(60))];
        let border = pair(self.of(&[0, 0, 1, 3]), 1);
        self.pool.windows.push(Thing { id, depth });
        request(1, depth, &[&[id, parent, place[0], place[1], border, visual], &values(&list)[..]].concat())
    }

    pub fn window(&mut self) -> u32 {
        let all = &self.pool.windows;
        all[self.random.below(all.len())].id
    }

    fn map_and_redirect(&mut self, client: usize) {
        let composite = self.known.majors.composite;
        for one in self.pool.windows.clone() {
            if (one.id & !0x1f_ffff) == self.known.bases[client] && !self.is(10) {
                self.send(client, 8, 0, &[one.id]);
            }
            if self.is(12) {
                let how = self.word(2);
                self.send(client, composite, 1, &[one.id, how]);
            }
            if self.is(80) {
                let (of, how) = (self.of(&[one.id, one.id, self.known.root]), self.word(2));
                self.send(client, composite, 2, &[of, how]);
            }
            if self.is(6) {
                self.send(client, 2, 0, &[one.id, 1 << 11, EVENTS]);
            }
        }
    }

    fn make_names(&mut self, client: usize) {
        for one in self.pool.windows.clone() {
            if self.is(3) {
                let id = self.new_id(client);
                self.send(client, self.known.majors.composite, 6, &[one.id, id]);
                self.pool.pixmaps.push(Thing { id, ..one });
            }
        }
    }

    pub fn format(&self, depth: u32) -> u32 {
        let at = [1, 8, 24, 32].iter().position(|&one| one == depth).expect("a depth with a format");
        self.known.formats[at]
    }

    /// Adds a picture of this drawable.
    fn picture(&mut self, client: usize, of: Thing, list: &[(u32, u32)]) -> u32 {
        let (id, format) = (self.new_id(client), self.format(of.depth));
        let words = [&[id, of.id, format], &values(list)[..]].concat();
        self.send(client, self.known.majors.render, 4, &words);
        self.pool.pictures.push(id);
        id
    }

    fn make_pictures(&mut self, client: usize) {
        let render = self.known.majors.render;
        let drawables = [self.pool.windows.clone(), self.pool.pixmaps.clone()].concat();
        for _ in 0..6 {
            let (of, inferiors) = (self.of(&drawables), self.word(2));
            self.picture(client, of, &[(8, inferiors)]);
        }
        let pixmaps = self.pool.pixmaps.clone();
        let (of, other, repeat) = (self.of(&pixmaps), self.of(&pixmaps), self.word(4));
        match client {
            0 => {
                let id = self.picture(client, of, &[(0, repeat)]);
                self.send(client, render, 28, &[id, 0x8000, 0, 0x2_0000, 0, 0x1_2000, 0, 0, 0, 0x1_0000]);
                let filter = message(render, 30).u32(id).u16(8).u16(0).raw(b"bilinear").finish();
                self.requests.push((client, filter));
            }
            1 => {
                let id = self.picture(client, of, &[]);
                let filter = message(render, 30).u32(id).u16(11).u16(0).raw(b"convolution\0");
                let kernel = [0x3_0000, 0, 0x8000, 0x8000].iter();
                let filter = kernel.fold(filter.u32(0x1_0000), |filter, &value| filter.u32(value));
                self.requests.push((client, filter.finish()));
                let alpha = self.picture(client, other, &[]);
                self.picture(client, of, &[(1, alpha), (2, 3)]);
            }
            _ => {
                let [solid, gradient] = [self.new_id(client), self.new_id(client)];
                self.send(client, render, 33, &[solid, pair(0x4000, 0x1000), pair(0x2000, 0x5000)]);
                let stops = [0, 0x1_0000, pair(-1, 0), pair(0, -1), pair(0, 0x7000), pair(0x3000, 0x3000)];
                self.send(client, render, 34, &[&[gradient, 0, 0, 60 << 16, 50 << 16, 2], &stops[..]].concat());
                self.pool.pictures.extend([solid, gradient]);
                self.picture(client, of, &[(0, repeat), (12, 1)]);
            }
        }
    }

    /// Damage, regions, fences, counters, and events of Present.
    fn watch(&mut self, client: usize) {
        let majors = self.known.majors;
        let drawables = [self.pool.windows.clone(), self.pool.pixmaps.clone()].concat();
        for _ in 0..1 + self.below(2) {
            let (id, of, level) = (self.new_id(WATCHER), self.of(&drawables).id, self.of(&[0, 1, 2, 3, 3, 3, 3]));
            self.send(WATCHER, majors.damage, 1, &[id, of, level]);
            self.pool.damages.push(id);
        }
        let region = self.new_id(client);
        let place = [pair(self.below(40), self.below(40)), pair(30, 25), pair(10, 15), pair(50, 8)];
        self.send(client, majors.xfixes, 5, &[&[region], &place[..]].concat());
        self.pool.regions.push(region);
        let damaged = self.new_id(client);
        self.send(client, majors.xfixes, 5, &[damaged]);
        self.pool.damaged.push(damaged);
        let [fence, counter, event] = [self.new_id(client), self.new_id(client), self.new_id(client)];
        let (root, state, window) = (self.known.root, self.word(2), self.window());
        self.send(client, majors.sync, 14, &[root, fence, state]);
        self.send(client, majors.sync, 2, &[counter, 0, 5]);
        self.send(client, majors.present, 3, &[event, window, 6]);
        self.pool.fences.push(fence);
        self.pool.counters.push(counter);
        if self.is(6) {
            let (name, window) = (self.new_id(client), self.window());
            self.send(client, majors.double_buffer, 1, &[window, name, 0]);
            self.pool.pixmaps.push(Thing { id: name, depth: 24 });
        }
    }
}
