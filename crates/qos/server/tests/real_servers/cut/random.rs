// SPDX-License-Identifier: MIT
//! Random requests that draw to, read and change the objects of a [`World`].

use super::world::{World, message};
use crate::wire::{Message, opcode};
use xqos_testkit::Random;

/// Makes the requests of one client.
pub struct Requests<'a> {
    pub world: &'a World,
    pub random: Random,
}

impl Requests<'_> {
    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn drawable(&mut self) -> u32 {
        let all = self.world.drawables();
        // Sometimes the id of no drawable.
        if self.below(60) == 0 { 0x77 } else { self.of(&all) }
    }

    fn context(&mut self) -> u32 {
        let all = &self.world.contexts;
        all[self.below(all.len())]
    }

    fn picture(&mut self) -> u32 {
        let all = &self.world.pictures;
        all[self.below(all.len())]
    }

    fn place(&mut self) -> u16 {
        (self.below(170) as i16 - 20) as u16
    }

    fn places(&mut self, request: Message, count: usize) -> Message {
        (0..count).fold(request, |request, _| request.u16(self.place()))
    }

    fn sizes(&mut self, request: Message, count: usize, limit: usize) -> Message {
        (0..count).fold(request, |request, _| request.u16(self.below(limit) as u16))
    }

    fn draws(&mut self, major: u8, minor: u8) -> Message {
        message(major, minor).u32(self.drawable()).u32(self.context())
    }

    /// One request. It begins with its opcode and has its length.
    pub fn next(&mut self) -> Vec<u8> {
        let count = 1 + self.below(10);
        let majors = self.world.majors;
        let request = match self.below(31) {
            0 => self.figures(64, count, |me, request| me.places(request, 2)),
            1 => self.figures(66, count, |me, request| me.places(request, 4)),
            2 => self.figures(67, count, |me, request| me.rectangle(request)),
            3 | 4 => self.figures(70, count, |me, request| me.rectangle(request)),
            5 => self.figures(68, count, |me, request| me.rectangle(request).u16(0).u16(64 * 300)),
            6 => self.figures(71, count, |me, request| me.rectangle(request).u16(64 * 20).u16(64 * 200)),
            7 | 8 => self.put_image(),
            9..=11 => {
                let (from, to) = (self.drawable(), self.drawable());
                let request = message(62, 0).u32(from).u32(to).u32(self.context());
                let request = self.places(request, 4);
                self.sizes(request, 2, 24)
            }
            12 => {
                let request = message(opcode::GET_IMAGE, 2).u32(self.drawable());
                let request = self.sizes(request, 2, 60);
                self.sizes(request, 2, 24).u32(!0)
            }
            13 => {
                let window = self.of(&self.world.windows);
                let request = message(61, self.below(2) as u8).u32(window);
                let request = self.places(request, 2);
                self.sizes(request, 2, 60)
            }
            14 | 15 => {
                let (source, to) = (self.picture(), self.picture());
                let mask = if self.below(3) == 0 { self.world.mask } else { 0 };
                let request = message(majors.render, 8).raw(&[self.of(&[1, 3, 8]), 0, 0, 0]);
                let request = self.places(request.u32(source).u32(mask).u32(to), 6);
                self.sizes(request, 2, 30)
            }
            16 => {
                let request = message(majors.render, 26).raw(&[self.of(&[1, 3]), 0, 0, 0]).u32(self.picture());
                let request = self.sizes(request, 3, 0xffff).u16(0x9000);
                (0..count).fold(request, |request, _| self.rectangle(request))
            }
            17 => {
                let (source, to) = (self.picture(), self.picture());
                let request = message(majors.render, 10).raw(&[3, 0, 0, 0]).u32(source).u32(to).u32(0);
                let request = self.places(request, 2);
                (0..count.min(5)).fold(request, |request, _| self.trapezoid(request))
            }
            18 => {
                let request = message(majors.render, 32).u32(self.world.mask).u16(0).u16(0);
                (0..count).fold(request, |request, _| {
                    let (left, top) = (self.below(60) as i32, self.below(50) as i32);
                    let [left, right, top, bottom] = [left, left + 20, top, top + 14].map(|at| (at << 16) | 0x4000);
                    request.i32(left).i32(right).i32(top).i32(left + 0x3_0000).i32(right).i32(bottom)
                })
            }
            19 | 20 => self.shm_put_image(),
            21 => {
                let request = message(majors.shm, 4).u32(self.drawable());
                let request = self.sizes(request, 2, 50);
                let request = self.sizes(request, 2, 24).u32(!0).raw(&[2, 0, 0, 0]);
                request.u32(self.world.segment).u32(self.below(60_000) as u32 & !3)
            }
            other => self.change(other),
        };
        let mut bytes = request.finish();
        if self.below(50) == 0 {
            // Make the request too long for its kind, or add half a figure.
            bytes.extend([0; 4]);
            let words = (bytes.len() / 4) as u16;
            bytes[2..4].copy_from_slice(&words.to_ne_bytes());
        }
        if self.below(8) == 0 {
            // Use the BIG-REQUESTS format, which the server shortens by a word when it reads the request.
            let words = bytes.len() as u32 / 4 + 1;
            bytes[2..4].fill(0);
            bytes.splice(4..4, words.to_ne_bytes());
        }
        bytes
    }

    /// A request that changes objects of other clients, or that is unrelated to drawing.
    fn change(&mut self, which: usize) -> Message {
        let window = self.of(&self.world.windows);
        match which {
            22 => message(56, 0).u32(self.context()).u32(1 << 2).u32(self.random.next() as u32 & 0x00ff_ffff),
            23 => message(56, 0).u32(self.context()).u32(1 | (1 << 15)).u32(self.of(&[3, 6])).u32(self.of(&[0, 1])),
            24 => {
                let request = message(12, 0).u32(window).u16(1 | 2).u16(0);
                request.u32(self.below(120) as u32).u32(self.below(90) as u32)
            }
            25 => message(12, 0).u32(window).u16(1 << 6).u16(0).u32(self.below(2) as u32),
            26 => message(self.of(&[8, 10]), 0).u32(window),
            27 => message(opcode::CHANGE_PROPERTY, 0).u32(window).u32(39).u32(31).raw(&[8, 0, 0, 0]).u32(4).u32(77),
            28 => message(self.of(&[3, 14, 15, 43]), 0).u32(window),
            29 => {
                let request = message(59, 0).u32(self.context()).u16(0).u16(0);
                (0..3).fold(request, |request, _| self.rectangle(request))
            }
            _ => message(2, 0).u32(window).u32(1 << 1).u32(self.random.next() as u32 & 0x00ff_ffff),
        }
    }

    fn figures(&mut self, major: u8, count: usize, one: impl Fn(&mut Self, Message) -> Message) -> Message {
        let request = self.draws(major, 0);
        (0..count).fold(request, |request, _| one(self, request))
    }

    fn rectangle(&mut self, request: Message) -> Message {
        let request = self.places(request, 2);
        self.sizes(request, 2, 50)
    }

    fn trapezoid(&mut self, request: Message) -> Message {
        let (x, y) = (self.below(80) as i32, self.below(70) as i32);
        let [left, right, top, bottom] = [x, x + 24, y, y + 18].map(|at| (at << 16) | 0x6000);
        let request = request.i32(top).i32(bottom).i32(left).i32(top).i32(left + 0x5_0000).i32(bottom);
        request.i32(right).i32(top).i32(right - 0x2_8000).i32(bottom)
    }

    fn put_image(&mut self) -> Message {
        let (width, height) = (1 + self.below(24), 1 + self.below(12));
        let request = self.draws(opcode::PUT_IMAGE, 2).u16(width as u16).u16(height as u16);
        let request = self.places(request, 2).raw(&[0, 24, 0, 0]);
        let bytes = self.random.bytes(4 * width * height);
        request.raw(&bytes)
    }

    fn shm_put_image(&mut self) -> Message {
        let total = [40, 24].map(|limit| 1 + self.below(limit));
        let from = total.map(|limit| self.below(limit));
        let size = [0, 1].map(|at| 1 + self.below(total[at] - from[at]));
        let request = self.draws(self.world.majors.shm, 3);
        let request = total.iter().chain(&from).chain(&size).fold(request, |request, &size| request.u16(size as u16));
        let request = self.places(request, 2).raw(&[24, 2, self.below(2) as u8, 0]);
        request.u32(self.world.segment).u32(self.below(60_000) as u32 & !3)
    }
}
