// SPDX-License-Identifier: MIT
//! Random requests of the core protocol that draw, or change contexts and windows.

use super::super::world::message;
use super::scene::{DEPTHS, PIXMAPS, Scene, WINDOWS, row_bytes};
use crate::wire::{Message, opcode};

/// The kinds of request that [`Scene::draw`] adds. Their number here determines how often each is added.
const KINDS: &[u8] =
    b"ppppPlsssrrraaaaooooffffggiiiccccccccccccccccyytTwG**************************#####zzzzzzzzz33hhFFkkkkkkmmm";

impl Scene<'_> {
    pub fn place(&mut self) -> u16 {
        match self.below(50) {
            0 => (self.of(&[i16::MAX - 60, i16::MIN]) + self.below(60) as i16) as u16,
            1..6 => (self.below(400) as i16 - 200) as u16,
            _ => (self.below(90) as i16 - 15) as u16,
        }
    }

    pub fn size(&mut self) -> u16 {
        match self.below(50) {
            0 => (0xffff - self.below(100)) as u16,
            1..5 => 0,
            5..8 => self.below(400) as u16,
            _ => self.below(45) as u16,
        }
    }

    /// A number of rows, each of which is a part. It is seldom large.
    pub fn rows(&mut self) -> u16 {
        if self.below(300) == 0 { self.of(&[300, 20_000, 0xffff]) } else { self.below(36) as u16 }
    }

    pub fn places(&mut self, request: Message, count: usize) -> Message {
        (0..count).fold(request, |request, _| request.u16(self.place()))
    }

    pub fn rectangles(&mut self, request: Message, count: usize) -> Message {
        (0..count).fold(request, |request, _| {
            let request = self.places(request, 2);
            request.u16(self.size()).u16(self.size())
        })
    }

    pub fn target(&mut self) -> usize {
        match self.below(20) {
            0 => PIXMAPS + WINDOWS,
            1..6 => PIXMAPS + self.below(WINDOWS),
            _ => self.below(PIXMAPS),
        }
    }

    fn context_for(&mut self, depth: usize) -> u32 {
        let number = if self.below(100) == 0 { self.below(PIXMAPS) } else { 2 * depth + self.below(2) };
        self.world.context(number)
    }

    pub fn draw(&mut self) {
        let count = 1 + self.below(12);
        let kind = self.of(KINDS);
        let target = self.target();
        match kind {
            b'p' => self.figures(64, 0, target, |me, request| me.places(request, 2 * count)),
            b'P' => self.figures(64, 1, target, |me, request| me.places(request, 2 * count)),
            b'l' => self.figures(65, (count % 2) as u8, target, |me, request| me.places(request, 2 * count)),
            b's' => self.figures(66, 0, target, |me, request| me.places(request, 4 * count)),
            b'r' => self.figures(67, 0, target, |me, request| me.rectangles(request, count)),
            b'a' | b'o' => self.figures(if kind == b'a' { 68 } else { 71 }, 0, target, |me, request| {
                let mut arc = [0u16; 6];
                (0..count).fold(request, |request, _| {
                    // Many arcs begin where the previous one ends, so that the two are joined.
                    let begin = arc[4].wrapping_add(arc[5]);
                    if me.below(2) == 0 {
                        arc = [me.place(), me.place(), me.size() % 3000, me.size() % 3000, 0, 0];
                    }
                    let any = me.random.next() as u16;
                    (arc[4], arc[5]) = (me.of(&[begin, begin, any]), me.of(&[any, 90 * 64, 30 * 64, 360 * 64]));
                    arc.iter().fold(request, |request, &at| request.u16(at))
                })
            }),
            b'f' => self.figures(70, 0, target, |me, request| me.rectangles(request, count)),
            b'g' => self.figures(69, 0, target, |me, request| {
                let shape = [me.below(3) as u8, me.below(2) as u8, 0, 0];
                me.places(request.raw(&shape), 2 * count)
            }),
            b'i' => self.put_image(target),
            b'c' | b'y' => self.copy(target, kind == b'y'),
            b't' => self.figures(74, 0, target, |me, request| {
                let text = [8, me.below(4) as u8];
                me.places(request, 2).raw(&text).raw(b"Text jgA\0\0")
            }),
            b'T' => self.figures(76, 8, target, |me, request| me.places(request, 2).raw(b"Text jgA")),
            b'w' => {
                let window = self.below(WINDOWS);
                let request = message(61, 0).u32(self.world.window(window));
                let request = self.rectangles(request, 1);
                self.add(request, Some(PIXMAPS + window));
            }
            b'G' => {
                let (id, depth) = self.world.drawable(target);
                let format = if [15, 24].contains(&DEPTHS[depth]) { 2 } else { 1 + self.below(2) as u8 };
                let request = message(opcode::GET_IMAGE, format).u32(id);
                let request = (0..4).fold(request, |request, _| request.u16(self.below(30) as u16));
                let planes = self.of(&[u64::MAX, self.random.0]) as u32;
                self.add(request.u32(planes), None);
            }
            b'k' => self.change_context(),
            b'm' => self.change_window(),
            _ => self.render(kind, count),
        }
    }

    fn figures(&mut self, major: u8, data: u8, target: usize, all: impl FnOnce(&mut Self, Message) -> Message) {
        let (id, depth) = self.world.drawable(target);
        let context = self.context_for(depth);
        if major == 68 {
            // A server may need minutes for wide arcs and dashes, which are not cut.
            self.make(message(56, 0).u32(context).u32(3 << 4).u32(0).u32(0), None);
        }
        let request = all(self, message(major, data).u32(id).u32(context));
        self.add(request, Some(target));
    }

    fn put_image(&mut self, target: usize) {
        let (id, depth) = self.world.drawable(target);
        let (width, height) = (self.below(40) as u16, self.below(30) as u16);
        let format = self.of(&[0, 1, 2, 2, 2, 2]);
        let pad = if format < 2 || self.below(20) == 0 { self.of(&[0, 1, 5, 31]) } else { 0 };
        let planes = if format == 1 { usize::from(DEPTHS[depth]) } else { 1 };
        let row = if format == 2 { row_bytes(DEPTHS[depth], width) } else { row_bytes(1, width + u16::from(pad)) };
        let request = message(opcode::PUT_IMAGE, format).u32(id).u32(self.context_for(depth)).u16(width).u16(height);
        let request = self.places(request, 2).raw(&[pad, if format == 0 { 1 } else { DEPTHS[depth] }, 0, 0]);
        let bytes = self.random.bytes(row * usize::from(height) * planes);
        self.add(request.raw(&bytes), Some(target));
    }

    fn copy(&mut self, target: usize, one_plane: bool) {
        let (id, depth) = self.world.drawable(target);
        let source = match self.below(5) {
            0 | 1 => target,
            2 if one_plane => self.target(),
            2 if (5..7).contains(&depth) => PIXMAPS + self.below(WINDOWS + 1),
            _ => 2 * depth + self.below(2),
        };
        let request = message(if one_plane { 63 } else { 62 }, 0).u32(self.world.drawable(source).0).u32(id);
        let request = request.u32(self.context_for(depth));
        // At short distances, the areas overlap. Where the source has no pixels, the background is painted.
        let request = if self.below(3) > 0 {
            let from = [0, 1].map(|_| self.below(16) as u16);
            let to = from.map(|at| at.wrapping_add_signed(self.below(15) as i16 - 7));
            from.iter().chain(&to).fold(request, |request, &at| request.u16(at))
        } else {
            // A stock server writes outside of its memory if a far edge is beyond 32767.
            (0..4).fold(request, |request, _| request.u16((self.place() as i16).min(30_000) as u16))
        };
        let [width, height] = match self.below(8) {
            0 => [0, 9],
            1..5 => [self.size(), self.rows()].map(|size| size % 2000),
            _ => [20, 14],
        };
        let request = request.u16(width).u16(height);
        let request =
            if one_plane { request.u32(1 << self.below(usize::from(DEPTHS[source / 2 % 7]))) } else { request };
        self.add(request, Some(target));
    }

    fn change_context(&mut self) {
        let at = self.below(PIXMAPS);
        let id = self.world.context(at);
        match self.below(4) {
            0 => {
                let count = self.below(6);
                let request = message(58, 0).u32(id).u16(self.below(40) as u16).u16(count as u16);
                let dashes: Vec<u8> = (0..count).map(|_| self.of(&[1, 2, 3, 5, 9, 40, 255])).collect();
                self.add(request.raw(&dashes), None);
            }
            1 => {
                let request = message(59, self.of(&[0, 0, 0, 3])).u32(id);
                let request = request.u16(self.below(20) as u16).u16(self.below(20) as u16);
                let count = self.below(6);
                let request = self.rectangles(request, count);
                self.add(request, None);
            }
            _ => self.context_values(message(56, 0).u32(id), at),
        }
    }

    /// Adds the mask and the values of a graphics context.
    pub fn context_values(&mut self, request: Message, at: usize) {
        let (mut mask, mut values) = (0, Vec::new());
        for bit in (0..23).filter(|&bit| bit != 14) {
            let value = match bit {
                0 => self.of(&[3, 3, 3, self.random.0 as u32 % 16]),
                1 => self.of(&[!0, !0, self.random.0 as u32]),
                2 | 3 => self.random.next() as u32,
                4 => self.of(&[0, 0, 0, 1, 1, 2, 3, 5, 9]),
                5 => self.of(&[0, 0, 1, 2]),
                6 => self.below(4) as u32,
                7 => self.below(3) as u32,
                8 => self.of(&[0, 0, 1, 2, 3]),
                9 | 15 | 16 | 22 => self.below(2) as u32,
                10 => self.world.pixmap(at / 2 * 2 + self.below(2)),
                11 => self.world.pixmap(self.below(2)),
                12 | 13 | 17 | 18 => self.below(60) as u32,
                19 => self.of(&[0, 0, self.world.pixmap(0), self.world.pixmap(1)]),
                20 => self.below(50) as u32,
                _ => 1 + self.below(12) as u32,
            };
            if self.below(3) == 0 {
                mask |= 1 << bit;
                values.push(value);
            }
        }
        let request = values.iter().fold(request.u32(mask), |request, &value| request.u32(value));
        self.make(request, None);
    }

    fn change_window(&mut self) {
        let at = self.below(WINDOWS);
        let id = self.world.window(at);
        let kind = [self.of(&[0, 0, 1, 2, 3, 4]), self.below(2) as u8];
        let request = match self.below(6) {
            0 => message(12, 0).u32(id).u16(3).u16(0).u32(self.below(60) as u32).u32(self.below(50) as u32),
            1 if at < 3 => message(12, 0).u32(id).u16(12).u16(0).u32(1 + self.below(80) as u32).u32(40),
            1 | 2 => message(12, 0).u32(id).u16(1 << 6).u16(0).u32(self.below(5) as u32),
            3 => message(self.of(&[8, 8, 10]), 0).u32(id),
            4 => {
                let request = message(self.world.shape, 1).raw(&[kind[0], kind[1], 0, 0]).u32(id).u32(0);
                let count = 1 + self.below(3);
                self.rectangles(request, count)
            }
            _ => {
                let source = self.of(&[0, self.world.pixmap(0), self.world.pixmap(1)]);
                message(self.world.shape, 2).raw(&[0, kind[1], 0, 0]).u32(id).u32(0).u32(source)
            }
        };
        self.add(request, Some(PIXMAPS + at));
    }
}
