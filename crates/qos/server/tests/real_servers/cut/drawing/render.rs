// SPDX-License-Identifier: MIT
//! Random pictures, glyphs and requests of RENDER.

use super::super::world::message;
use super::scene::{DEPTHS, FILLS, PIXMAPS, Scene, WINDOWS, row_bytes};
use crate::wire::Message;

/// All operators of RENDER: those of the first group, which are cut up to Add, then Saturate, and the other groups.
const OPERATORS: [(u8, usize); 7] = [(0, 14), (0, 14), (0, 13), (13, 1), (0x10, 12), (0x20, 12), (0x30, 15)];
const MAX_OF_WINDOWS: usize = PIXMAPS + WINDOWS;

impl Scene<'_> {
    /// A fixed-point number.
    fn fixed(&mut self) -> i32 {
        let fraction = self.of(&[0, 0, 0x8000, 0x4000, 0x1234, 0xffff]);
        let whole = if self.below(60) == 0 { i32::from(self.place() as i16) } else { self.below(100) as i32 - 15 };
        (whole << 16) + fraction
    }

    /// The number of a picture. No picture has depth 4.
    fn picture(&mut self) -> usize {
        let number = match self.below(20) {
            0 => PIXMAPS + self.below(WINDOWS),
            1..5 => PIXMAPS + WINDOWS + self.below(FILLS),
            _ => self.below(PIXMAPS),
        };
        if number / 2 == 1 { number + 10 } else { number }
    }

    fn operator(&mut self) -> u8 {
        let (first, count) = self.of(&OPERATORS);
        first + self.below(count) as u8
    }

    pub fn render(&mut self, kind: u8, count: usize) {
        // Some have no drawable.
        let target = match self.below(40) {
            // AddTraps draws to alpha only.
            _ if kind == b'F' => self.of(&[0, 1, 4, 5]),
            0..8 => self.picture(),
            _ => self.of(&[0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, PIXMAPS, PIXMAPS + 1]),
        };
        let image = (target < MAX_OF_WINDOWS).then_some(target);
        let (major, to) = (self.world.render, self.world.picture(target));
        let source = self.picture();
        let drawn = |me: &mut Self, minor: u8, format: u32| {
            let request = message(major, minor).raw(&[me.operator(), 0, 0, 0]).u32(me.world.picture(source)).u32(to);
            let request = request.u32(format);
            me.places(request, 2)
        };
        let depth = self.of(&[1, 8, 8]);
        let mask_format = self.format(depth);
        let format = self.of(&[0, 0, mask_format]);
        match kind {
            b'*' => {
                let mask = if self.below(2) == 0 { 0 } else { self.world.picture(self.picture()) };
                let request = message(major, 8).raw(&[self.operator(), 0, 0, 0]);
                let request = request.u32(self.world.picture(source)).u32(mask).u32(to);
                let rows = self.rows();
                let last = i16::MAX.wrapping_sub_unsigned(rows).wrapping_sub(self.below(3) as i16);
                let kind = self.below(12);
                let request = match kind {
                    // These areas lie within all pictures, except perhaps for the last rows.
                    0..6 => (0..6).fold(request, |request, _| request.u16(self.below(6) as u16)),
                    // The last rows have the largest coordinate.
                    6 => [1, last, 1, last, 1, 1].iter().fold(request, |request, &at| request.u16(at as u16)),
                    _ => self.places(request, 6),
                };
                let width = if kind < 7 { 1 + self.below(18) as u16 } else { self.size() };
                let request = request.u16(width).u16(rows);
                self.add(request, image);
            }
            b'#' => {
                let request = message(major, 26).raw(&[self.operator(), 0, 0, 0]).u32(to);
                let colour = self.random.bytes(8);
                let request = self.rectangles(request.raw(&colour), count);
                self.add(request, image);
            }
            b'z' => {
                let request = drawn(self, 10, format);
                let request = (0..count).fold(request, |request, _| self.trapezoid(request));
                self.add(request, image);
            }
            b'3' => {
                let (minor, points) = self.of(&[(11, 3 * count), (12, 2 + count), (13, 2 + count)]);
                let request = drawn(self, minor, format);
                let request = (0..2 * points).fold(request, |request, _| request.i32(self.fixed()));
                self.add(request, image);
            }
            b'h' => {
                let request = drawn(self, 23, format);
                // The glyph set precedes the position of the source.
                let mut request = request.finish();
                request.splice(20..20, self.world.glyphs().to_ne_bytes());
                let request = message(major, 23).raw(&request[4..]).raw(&[4, 0, 0, 0]);
                let request = request.u16(self.below(60) as u16).u16(self.below(50) as u16).raw(&[0, 1, 2, 3]);
                self.add(request, image);
            }
            b'F' => {
                let request = message(major, 32).u32(to);
                let request = self.places(request, 2);
                let request = (0..6 * count).fold(request, |request, _| request.i32(self.fixed()));
                self.add(request, image);
            }
            _ => unreachable!("a kind of request"),
        }
    }

    fn trapezoid(&mut self, request: Message) -> Message {
        let mut all = [0; 10].map(|_: i32| self.fixed());
        if self.below(10) > 0 {
            // The order of top and bottom, and of the ends of the edges: left, then right.
            let span = 1 + self.below(20 << 16) as i32;
            all[1] = all[0].saturating_add(span);
            (all[3], all[7]) = (all[0].saturating_sub(span), all[0]);
            (all[5], all[9]) = (all[1], all[1].saturating_add(span));
            (all[6], all[8]) = (all[2].saturating_add(span), all[4].saturating_add(span));
        }
        all.iter().fold(request, |request, &at| request.i32(at))
    }

    pub fn make_glyphs(&mut self) {
        let (major, glyphs) = (self.world.render, self.world.glyphs());
        let depth = self.of(&[1, 8, 8, 32]);
        let format = self.format(depth);
        self.make(message(major, 17).u32(glyphs).u32(format), None);
        let request = (0..4).fold(message(major, 20).u32(glyphs).u32(4), |request, glyph| request.u32(glyph));
        let request = (0..4).fold(request, |request, _| request.u16(9).u16(7).u16(1).u16(5).u16(8).u16(1));
        let bytes = self.random.bytes(4 * 7 * row_bytes(depth, 9));
        self.make(request.raw(&bytes), None);
    }

    pub fn make_picture(&mut self, at: usize) {
        let (major, id) = (self.world.render, self.world.picture(at));
        if at < MAX_OF_WINDOWS {
            let (drawable, depth) = self.world.drawable(at);
            let format = self.format(DEPTHS[depth]);
            self.picture_values(message(major, 4).u32(id).u32(drawable).u32(format), at);
        } else {
            let fill = (at - MAX_OF_WINDOWS) % FILLS;
            let mut points: Vec<i32> = (0..[0, 0, 4, 6, 3][fill]).map(|_| self.fixed()).collect();
            if fill == 2 && self.below(2) == 0 {
                // Almost horizontal.
                points[3] = points[1] + self.below(60) as i32;
            }
            let request = message(major, [33, 33, 34, 35, 36][fill]).u32(id);
            let request =
                points.iter().fold(request, |request, &at| request.i32(if fill == 3 { at.abs() } else { at }));
            let stops: &[i32] = if fill < 2 { &[] } else { &[0, 0x4000, 0xa000, 0x1_0000] };
            let request = if fill < 2 { request } else { request.u32(stops.len() as u32) };
            let request = stops.iter().fold(request, |request, &stop| request.i32(stop));
            let colours = self.random.bytes(8 * stops.len().max(1));
            self.make(request.raw(&colours), None);
            self.picture_values(message(major, 5).u32(id), at);
        }
        if self.below(5) == 0 {
            self.transform(at);
        }
        if self.below(5) == 0 {
            self.filter(at);
        }
        if self.below(6) == 0 {
            let request = message(major, 6).u32(id).u16(self.below(9) as u16).u16(self.below(9) as u16);
            let request = self.rectangles(request, 3);
            self.make(request, None);
        }
    }

    fn picture_values(&mut self, request: Message, at: usize) {
        let (mut mask, mut values) = (0, Vec::new());
        for bit in 0..13 {
            let (value, one_in) = match bit {
                0 => (self.below(4) as u32, 2),
                // An earlier picture of a pixmap.
                1 => (self.world.picture(self.below(at.clamp(1, PIXMAPS))), 12),
                2..=5 => (self.below(30) as u32, 4),
                6 => (self.world.pixmap(self.below(2)), 12),
                _ => (self.below(2) as u32, 3),
            };
            // Pictures without a drawable get no clip.
            if self.below(one_in) == 0 && (at < MAX_OF_WINDOWS || !(4..7).contains(&bit)) {
                mask |= 1 << bit;
                values.push(value);
            }
        }
        let request = values.iter().fold(request.u32(mask), |request, &value| request.u32(value));
        self.make(request, None);
    }

    fn transform(&mut self, at: usize) {
        let is_projective = self.below(3) == 0;
        let request = message(self.world.render, 28).u32(self.world.picture(at));
        let request = (0..9).fold(request, |request, place| {
            let small = self.below(0x800) as i32 - 0x400;
            request.i32(match place {
                8 => 0x1_0000,
                // Large factors give coordinates beyond 16 bits.
                0 | 4 => self.of(&[0x1_0000, 0x8000, 0x2_0000, -0x1_0000, 0x1_3333, 0x4000 + small, 0x500_0000]),
                2 | 5 => self.of(&[0, 0x5_0000, -0x3_8000, 0x1234]),
                6 | 7 => {
                    if is_projective {
                        small
                    } else {
                        0
                    }
                }
                _ => self.of(&[0, 0, 0x4000, -0x9999, small]),
            })
        });
        self.make(request, None);
    }

    fn filter(&mut self, at: usize) {
        let name: &[u8] =
            self.of(&[b"nearest" as &[u8], b"bilinear", b"convolution", b"convolution", b"good", b"best"]);
        let request =
            message(self.world.render, 30).u32(self.world.picture(at)).u16(name.len() as u16).u16(0).raw(name);
        let mut request = request.finish();
        if name == b"convolution" {
            let size = [1 + self.below(3), 1 + self.below(3)];
            let params: Vec<i32> = size.iter().map(|&size| (size as i32) << 16).collect();
            let weights = (0..size[0] * size[1]).map(|_| self.of(&[0x2000, 0x4000, -0x2000, 0x1_0000]));
            request.extend(params.into_iter().chain(weights.collect::<Vec<_>>()).flat_map(i32::to_ne_bytes));
        }
        self.make(message(request[0], request[1]).raw(&request[4..]), None);
    }
}
