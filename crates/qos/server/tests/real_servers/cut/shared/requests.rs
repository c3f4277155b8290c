// SPDX-License-Identifier: MIT
//! The random requests of a case: those that are cut, and those that could see or change a partly executed one.

use super::super::world::message;
use super::server::Known;
use super::world::{Builder, CLIENTS, Pool, Thing, WATCHER, bytes_of_row, pair, request, values};
use crate::wire::opcode;
use std::time::Duration;
use xqos_testkit::Random;

/// How a client disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It closes the connection when all its requests are executed.
    Done,
    /// It closes the connection while its requests are executed.
    After(Duration),
}

#[derive(Debug)]
pub struct Case {
    pub build: Vec<(usize, Vec<u8>)>,
    pub requests: [Vec<Vec<u8>>; CLIENTS],
    pub endings: [Option<Ending>; CLIENTS],
    pub pool: Pool,
}

impl Case {
    /// `size`: the factor for the number of figures in a request.
    pub fn new(known: &Known, seed: u64, size: usize) -> Case {
        let mut builder = Builder::new(known, Random(seed));
        builder.build();
        let build = std::mem::take(&mut builder.requests);
        let mut of = Requests { builder, size };
        let requests = [0, 1, 2].map(|client| of.all(client));
        let mut builder = of.builder;
        let (early, after) = (builder.random.below(2 * CLIENTS), Duration::from_micros(builder.below(600) as u64));
        let endings = [0, 1, 2].map(|client| match client == early {
            true => Some(Ending::After(after)),
            false => Some(Ending::Done).filter(|_| builder.is(12)),
        });
        Case { build, requests, endings, pool: builder.pool }
    }

    /// Returns true if the requests do not fit into the sockets.
    pub fn is_large(&self) -> bool {
        self.requests.iter().any(|requests| requests.iter().map(Vec::len).sum::<usize>() > 64 * 1024)
    }

    /// Returns true if a pixmap is presented at a later frame.
    pub fn has_frames(&self, known: &Known) -> bool {
        let is_late = |request: &Vec<u8>| {
            let options = if request[2..4] == [0, 0] { 44 } else { 40 };
            request[..2] == [known.majors.present, 1] && request[options] & 1 == 0
        };
        self.requests.iter().flatten().any(is_late)
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (client, requests) in self.requests.iter().enumerate() {
            for (at, request) in requests.iter().enumerate() {
                writeln!(to, "  client {client}, request {}: {}", at + 1, short(request))?;
            }
        }
        Ok(())
    }
}

/// The opcodes of a request, and its first words.
pub fn short(request: &[u8]) -> String {
    let words = request
        .get(4..)
        .unwrap_or_default()
        .chunks_exact(4)
        .map(|word| format!("{:x}", u32::from_ne_bytes(word.try_into().unwrap())));
    let words: Vec<_> = words.take(12).collect();
    let [major, minor] = [0, 1].map(|at| request.get(at).copied().unwrap_or(0));
    format!("{major}.{minor} {} ({} bytes)", words.join(" "), request.len())
}

struct Requests<'a> {
    builder: Builder<'a>,
    size: usize,
}

impl Requests<'_> {
    fn all(&mut self, client: usize) -> Vec<Vec<u8>> {
        let count = 2 + self.builder.below(3);
        let mut all = Vec::new();
        for _ in 0..count {
            let next = self.next(client);
            // A request that is made for another one, such as that for a colormap, comes first.
            all.extend(std::mem::take(&mut self.builder.requests).into_iter().map(|(_, request)| request));
            all.push(next);
        }
        if all.iter().any(|request| request[0] == opcode::GRAB_SERVER) {
            all.push(request(opcode::UNGRAB_SERVER, 0, &[]));
        }
        all
    }

    fn next(&mut self, client: usize) -> Vec<u8> {
        let mut bytes = if self.builder.below(20) < 11 { self.cut() } else { self.other(client) };
        if self.builder.is(8) && bytes.len() > 4 {
            // Use the BIG-REQUESTS format.
            let words = bytes.len() as u32 / 4 + 1;
            if bytes[2..4] != [0, 0] {
                bytes[2..4].fill(0);
                bytes.splice(4..4, words.to_ne_bytes());
            }
        }
        bytes
    }

    fn drawables(&self, depth: u32) -> Vec<Thing> {
        let pool = &self.builder.pool;
        pool.windows.iter().chain(&pool.pixmaps).filter(|one| one.depth == depth).copied().collect()
    }

    fn drawable(&mut self, depth: u32) -> u32 {
        let all = self.drawables(depth);
        match self.builder.is(50) || all.is_empty() {
            true => self.builder.known.root,
            false => self.builder.of(&all).id,
        }
    }

    fn depth(&mut self) -> u32 {
        self.builder.of(&[24, 24, 24, 24, 24, 24, 24, 24, 1, 8, 32])
    }

    fn context(&mut self, depth: u32) -> u32 {
        let all = self.builder.pool.contexts.iter().filter(|one| one.depth == depth).copied();
        self.builder.of(&all.collect::<Vec<_>>()).id
    }

    fn picture(&mut self) -> u32 {
        self.builder.of(&self.builder.pool.pictures.clone())
    }

    fn place(&mut self) -> u32 {
        pair(self.builder.below(100) - 15, self.builder.below(90) - 15)
    }

    fn area(&mut self) -> u32 {
        let least = if self.size > 1 { 70 } else { 1 };
        pair(least + self.builder.below(70), least + self.builder.below(60))
    }

    fn count(&mut self) -> usize {
        (2 + self.builder.random.below(39)) * self.size
    }

    fn figures(&mut self, first: Vec<u32>, one: impl Fn(&mut Self) -> Vec<u32>) -> Vec<u32> {
        let count = self.count();
        (0..count).fold(first, |mut all, _| {
            all.extend(one(self));
            all
        })
    }

    /// A request of a kind that is cut.
    fn cut(&mut self) -> Vec<u8> {
        let (depth, render) = (self.depth(), self.builder.known.majors.render);
        let begin = vec![self.drawable(depth), self.context(depth)];
        let angles = |me: &mut Self| pair(me.builder.below(360) * 64, me.builder.below(360) * 64);
        let operator = self.builder.of(&[1, 1, 3, 3, 3, 8, 12, 13]);
        match self.builder.below(17) {
            0 => request(64, 0, &self.figures(begin, |me| vec![me.place()])),
            1 => request(66, 0, &self.figures(begin, |me| vec![me.place(), me.place()])),
            2 => request(67, 0, &self.figures(begin, |me| vec![me.place(), me.area()])),
            3..=5 => request(70, 0, &self.figures(begin, |me| vec![me.place(), me.area()])),
            6 => request(68, 0, &self.figures(begin, |me| vec![me.place(), me.area(), angles(me)])),
            7 => request(71, 0, &self.figures(begin, |me| vec![me.place(), me.area(), angles(me)])),
            8 | 9 => {
                let (width, height) = (1 + self.builder.below(40), 2 + self.builder.below(38));
                let bytes = self.builder.random.bytes(bytes_of_row(depth, width) * height as usize);
                let header = message(opcode::PUT_IMAGE, 2).u32(begin[0]).u32(begin[1]).u32(pair(width, height));
                header.u32(self.place()).raw(&[0, depth as u8, 0, 0]).raw(&bytes).finish()
            }
            10..=12 => {
                let from = if self.builder.is(3) { begin[0] } else { self.drawable(depth) };
                // A copy is cut only if its whole source has pixels.
                let (place, area) = match self.builder.below(3) {
                    0 => (self.place(), self.area()),
                    _ => (pair(self.builder.below(9), self.builder.below(6)), pair(1 + self.builder.below(22), 14)),
                };
                request(62, 0, &[from, begin[0], begin[1], place, self.place(), area])
            }
            13 | 14 => {
                let [source, to] = [self.picture(), self.picture()];
                let mask = if self.builder.is(3) { self.picture() } else { 0 };
                let places = [self.place(), self.place(), self.place(), self.area()];
                request(render, 8, &[&[operator, source, mask, to], &places[..]].concat())
            }
            15 => {
                let (to, colours) = (self.picture(), [self.builder.random.next() as u32, pair(-1, -0x7000)]);
                let begin = [&[operator, to], &colours[..]].concat();
                request(render, 26, &self.figures(begin, |me| vec![me.place(), me.area()]))
            }
            _ => {
                let [source, to] = [self.picture(), self.picture()];
                let begin = vec![operator, source, to, 0, self.place()];
                request(
                    render,
                    10,
                    &self.figures(begin, |me| {
                        let [x, y] = [me.builder.word(80), me.builder.word(70)];
                        let [left, right, top, bottom] = [x, x + 24, y, y + 18].map(|at| (at << 16) | 0x6000);
                        vec![top, bottom, left, top, left + 0x5_0000, bottom, right, top, right - 0x2_8000, bottom]
                    }),
                )
            }
        }
    }

    /// A request that could see or change the objects of a cut request.
    fn other(&mut self, client: usize) -> Vec<u8> {
        let majors = self.builder.known.majors;
        let depth = self.depth();
        let (drawable, context, picture) = (self.drawable(depth), self.context(depth), self.picture());
        let (window, root) = (self.builder.window(), self.builder.known.root);
        let (place, area, colour) = (self.place(), self.area(), self.builder.random.next() as u32);
        let id = |me: &mut Self| me.builder.new_id(client);
        match self.builder.below(62) {
            0..=4 => request(61, self.builder.word(2), &[window, place, area]),
            5 | 6 => {
                let words = [self.drawable(24), self.drawable(24), self.context(24), place, self.place(), area];
                request(63, 0, &[&words[..], &[1 << self.builder.below(24)]].concat())
            }
            7..=10 => {
                let from = if client == WATCHER { self.builder.pixmap(depth) } else { drawable };
                request(opcode::GET_IMAGE, 2, &[from, pair(0, 0), pair(8, 8), !0])
            }
            11 | 12 => self.shm_put_image(drawable, context, depth),
            13 => {
                let words = [drawable, pair(0, 0), pair(8, 8), !0, 2, self.builder.pool.segment];
                request(majors.shm, 4, &[&words[..], &[self.builder.word(4000) * 4]].concat())
            }
            14 => {
                let text = message(76, 6).u32(drawable).u32(context).u32(place).raw(b"shared");
                text.finish()
            }
            15 => message(74, 0).u32(drawable).u32(context).u32(place).raw(&[4, 1]).raw(b"text").finish(),
            16..=18 => request(self.builder.of(&[8, 8, 9, 10, 10, 11]), 0, &[window]),
            19..=22 => self.configure(window),
            23 => {
                let parent = if self.builder.is(2) { root } else { self.builder.window() };
                request(7, 0, &[window, parent, place])
            }
            24 => request(13, self.builder.word(2), &[self.builder.of(&[window, root])]),
            25 => request(self.builder.of(&[4, 4, 5]), 0, &[window]),
            26..=29 => self.change_window(window),
            30 | 31 => {
                let tile = self.builder.pixmap(24);
                let bitmap = self.builder.pixmap(1);
                let list = [
                    (0, self.builder.of(&[3, 6])),
                    (2, colour),
                    (4, self.builder.word(4)),
                    (5, self.builder.word(3)),
                    (8, self.builder.word(4)),
                    (10, tile),
                    (11, bitmap),
                    (15, self.builder.word(2)),
                    (16, self.builder.word(2)),
                    (17, 5),
                    (19, self.builder.of(&[0, bitmap])),
                ];
                let list: Vec<_> = list.into_iter().filter(|_| self.builder.is(4)).collect();
                request(56, 0, &[&[context], &values(&list)[..]].concat())
            }
            32 => request(59, 0, &[context, place, self.place(), area, self.place(), area]),
            33 => request(57, 0, &[self.context(depth), context, 0x1f_ffff]),
            34 => request(60, 0, &[context]),
            35 | 36 => request(54, 0, &[drawable]),
            37 => {
                let list = [(0, self.builder.word(4)), (8, self.builder.word(2)), (12, 1)];
                request(majors.render, 5, &[&[picture], &values(&[self.builder.of(&list)])[..]].concat())
            }
            38 => request(majors.render, 6, &[picture, pair(3, 3), place, area]),
            39 => request(majors.render, 7, &[picture]),
            40 => {
                let alpha = self.picture();
                request(majors.render, 5, &[&[picture], &values(&[(1, alpha)])[..]].concat())
            }
            41 => {
                let (bitmap, cursor) = (self.builder.pixmap(1), id(self));
                request(93, 0, &[cursor, bitmap, 0, 0, pair(-1, 0), pair(0, -1), pair(2, 2)])
            }
            42 | 43 => {
                let damage = self.builder.of(&self.builder.pool.damages.clone());
                let region = self.builder.of(&self.builder.pool.regions.clone());
                match self.builder.below(5) {
                    0 => request(majors.damage, 4, &[drawable, region]),
                    1 => request(majors.damage, 2, &[damage]),
                    2 => request(majors.damage, 3, &[damage, region, 0]),
                    _ => request(majors.damage, 3, &[damage, 0, self.builder.of(&self.builder.pool.damaged.clone())]),
                }
            }
            44 | 45 if client == WATCHER => {
                let damage = id(self);
                self.builder.pool.damages.push(damage);
                request(majors.damage, 1, &[damage, drawable, self.builder.word(4)])
            }
            46..=48 => {
                let (how, minor) = (self.builder.word(2), self.builder.of(&[1, 1, 2, 3, 4]));
                request(majors.composite, minor, &[window, how])
            }
            49 => {
                let name = id(self);
                self.builder.pool.pixmaps.push(Thing { id: name, depth: 24 });
                request(majors.composite, 6, &[window, name])
            }
            50 | 51 => self.present(window),
            52 => {
                let fence = self.builder.of(&self.builder.pool.fences.clone());
                request(majors.sync, self.builder.of(&[15, 15, 16, 17, 18]), &[fence])
            }
            53 => {
                let counter = self.builder.of(&self.builder.pool.counters.clone());
                request(majors.sync, self.builder.of(&[3, 4]), &[counter, 0, 7])
            }
            54 => {
                let kind = self.builder.word(2);
                let words = [kind << 8, window, place, self.place(), area, place, area];
                request(majors.shape, 1, &words)
            }
            55 => {
                let bitmap = self.builder.pixmap(1);
                request(majors.shape, 2, &[self.builder.word(2) << 8, window, place, bitmap])
            }
            56 => {
                let region = self.builder.of(&self.builder.pool.regions.clone());
                let [new, bitmap] = [id(self), self.builder.pixmap(1)];
                match self.builder.below(5) {
                    0 => request(majors.xfixes, 20, &[context, region, place]),
                    1 => request(majors.xfixes, 21, &[window, 0, place, region]),
                    2 => request(majors.xfixes, 22, &[picture, region, place]),
                    3 => {
                        self.builder.pool.regions.push(new);
                        request(majors.xfixes, 6, &[new, bitmap])
                    }
                    _ => request(majors.xfixes, 19, &[region]),
                }
            }
            57 => request(opcode::GRAB_SERVER, 0, &[]),
            58 => {
                // A stock server uses freed memory if a client kills itself.
                let other = (client + 1 + self.builder.random.below(2)) % CLIENTS;
                request(opcode::KILL_CLIENT, 0, &[self.builder.known.bases[other] + 1])
            }
            59 => request(majors.double_buffer, 3, &[1, window, self.builder.word(4)]),
            60 => {
                let new = id(self);
                self.builder.new_window(client, new)
            }
            _ => request(opcode::CREATE_PIXMAP, 24, &[id(self), root, pair(40, 30)]),
        }
    }

    fn shm_put_image(&mut self, drawable: u32, context: u32, depth: u32) -> Vec<u8> {
        let total = [40, 24].map(|limit| 1 + self.builder.below(limit));
        let from = total.map(|limit| self.builder.below(limit as usize));
        let size = [0, 1].map(|at| 1 + self.builder.below((total[at] - from[at]) as usize));
        let pairs = [total, from, size].map(|[x, y]| pair(x, y));
        let header = [drawable, context, pairs[0], pairs[1], pairs[2], self.place()];
        let event = self.builder.word(2) << 16;
        let tail = [depth | (2 << 8) | event, self.builder.pool.segment, self.builder.word(3000) * 4];
        request(self.builder.known.majors.shm, 3, &[&header[..], &tail].concat())
    }

    fn configure(&mut self, window: u32) -> Vec<u8> {
        let list = [
            (0, self.builder.below(90) as u32),
            (1, self.builder.below(70) as u32),
            (2, 10 + self.builder.word(80)),
            (3, 10 + self.builder.word(60)),
            (4, self.builder.word(4)),
            (6, self.builder.word(5)),
        ];
        let list: Vec<_> = list.into_iter().filter(|_| self.builder.is(3)).collect();
        request(12, 0, &[&[window], &values(&list)[..]].concat())
    }

    fn change_window(&mut self, window: u32) -> Vec<u8> {
        let (pixmap, colour) = (self.builder.pixmap(24), self.builder.random.next() as u32);
        let list = [
            (0, self.builder.of(&[0, 1, pixmap, pixmap])),
            (1, colour),
            (2, pixmap),
            (3, colour),
            (6, self.builder.word(3)),
        ];
        let list: Vec<_> = list.into_iter().filter(|_| self.builder.is(3)).collect();
        request(2, 0, &[&[window], &values(&list)[..]].concat())
    }

    fn present(&mut self, window: u32) -> Vec<u8> {
        let pixmap = self.builder.pixmap(24);
        let fence = self.builder.of(&self.builder.pool.fences.clone());
        let (wait, idle) = (if self.builder.is(3) { fence } else { 0 }, if self.builder.is(3) { fence } else { 0 });
        // Most are presented immediately.
        let options = u32::from(!self.builder.is(4)) | (self.builder.of(&[0, 0, 2]));
        let offset = pair(self.builder.below(20) - 5, self.builder.below(20) - 5);
        let words = [window, pixmap, 7, 0, 0, offset, 0, wait, idle, options, 0, 0, 0, 0, 0, 0, 0];
        request(self.builder.known.majors.present, 1, &words)
    }
}
