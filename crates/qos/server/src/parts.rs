// SPDX-License-Identifier: MIT
//! Defines which requests consist of parts, the work of each part, and the form of a request for a range of parts.
//!
//! A list of figures (rectangles, arcs, points) consists of its figures, and an image of its rows. A part is a request
//! of the same kind with a header of its own, so the server's own procedure can execute it. The code here works on the
//! bytes of a request, which can have any values.

use std::ops::Range;

/// The longest header: that of RENDER Composite.
pub const MAX_HEADER: usize = 36;
/// The work of one figure in addition to its pixels, in pixels.
const FIGURE: u64 = 64;
/// A figure is not drawn outside its drawable, so its size is limited to that of a large screen.
const MAX_PIXELS: u32 = 8_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawingKind {
    Points,
    Segments,
    Rectangles,
    FilledRectangles,
    Arcs,
    FilledArcs,
    PutImage,
    CopyArea,
    Composite,
    RenderRectangles,
    Trapezoids,
}

impl DrawingKind {
    pub const COUNT: usize = 11;
    /// The core requests with parts.
    pub const CORE: [(u8, DrawingKind); 8] = [
        (62, DrawingKind::CopyArea),
        (64, DrawingKind::Points),
        (66, DrawingKind::Segments),
        (67, DrawingKind::Rectangles),
        (68, DrawingKind::Arcs),
        (70, DrawingKind::FilledRectangles),
        (71, DrawingKind::FilledArcs),
        (72, DrawingKind::PutImage),
    ];
    const RENDER: [(u8, DrawingKind); 3] = [(8, Self::Composite), (10, Self::Trapezoids), (26, Self::RenderRectangles)];

    /// `CORE` indexed by opcode, because each request needs a lookup.
    const BY_OPCODE: [Option<DrawingKind>; 128] = {
        let (mut kinds, mut at) = ([None; 128], 0);
        while at < DrawingKind::CORE.len() {
            kinds[DrawingKind::CORE[at].0 as usize] = Some(DrawingKind::CORE[at].1);
            at += 1;
        }
        kinds
    };

    /// `render`: the major opcode of RENDER, or 0.
    pub fn of(major: u8, minor: u8, render: u8) -> Option<DrawingKind> {
        if let Some(kind) = DrawingKind::BY_OPCODE.get(usize::from(major)) {
            return *kind;
        }
        let mut table = DrawingKind::RENDER.iter().filter(|_| major == render);
        table.find(|&&(of, _)| of == minor).map(|&(_, kind)| kind)
    }

    /// An upper bound of the work of a request, at a few operations per figure: no width or height exceeds the bitwise
    /// OR of all. `None` for figures without a width and a height, and for requests that are too short.
    #[inline]
    pub fn work_at_most(self, request: &[u8]) -> Option<u64> {
        let Layout { header, height, .. } = self.layout();
        if height > 0 {
            let sizes = request.get(height - 2..height + 2)?;
            return Some(u64::from(u16_at(sizes, 2)) * (FIGURE + 4 * u64::from(u16_at(sizes, 0))));
        }
        let figures = request.get(header..)?;
        let (count, sizes) = match self {
            DrawingKind::Points => (figures.len() / 4, 0),
            Self::Rectangles | Self::FilledRectangles | Self::RenderRectangles => union_of_sizes::<8>(figures),
            DrawingKind::Arcs | DrawingKind::FilledArcs => union_of_sizes::<12>(figures),
            _ => return None,
        };
        let largest = figure_work(self, [[0; 4], sizes.to_ne_bytes()].as_flattened());
        Some(count as u64 * u64::from(largest))
    }

    const fn layout(self) -> Layout {
        match self {
            DrawingKind::Points => Layout::figures(12, 4),
            DrawingKind::Segments | DrawingKind::Rectangles | DrawingKind::FilledRectangles => Layout::figures(12, 8),
            DrawingKind::Arcs | DrawingKind::FilledArcs => Layout::figures(12, 12),
            DrawingKind::RenderRectangles => Layout::figures(20, 8),
            DrawingKind::Trapezoids => Layout::figures(24, 40),
            DrawingKind::PutImage => Layout::rows(24, 14, &[18]),
            DrawingKind::CopyArea => Layout::rows(28, 26, &[18, 22]),
            DrawingKind::Composite => Layout::rows(36, 34, &[22, 26, 30]),
        }
    }
}

/// The layout of a kind of request, as far as its parts require it.
struct Layout {
    header: usize,
    /// The bytes of one figure; 0 for rows.
    figure: usize,
    /// For rows: the offset of the number of rows. The width precedes it.
    height: usize,
    /// For rows: the offsets of the vertical coordinates of the first row.
    tops: &'static [usize],
}

impl Layout {
    const fn figures(header: usize, figure: usize) -> Layout {
        Layout { header, figure, height: 0, tops: &[] }
    }

    const fn rows(header: usize, height: usize, tops: &'static [usize]) -> Layout {
        Layout { header, figure: 0, height, tops }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    pub kind: DrawingKind,
    pub count: u32,
    pub header: usize,
    /// The bytes of one part; 0 if the parts are not in the request.
    pub bytes: usize,
    /// The work of one row or point; 0 for figures, which have different sizes.
    row: u64,
    /// The rows are executed from the bottom up, as for a copy to a lower place in the same drawable.
    pub bottom_up: bool,
}

impl Parts {
    /// `None` if the request cannot be split exactly, or if the server will refuse it.
    pub fn of(kind: DrawingKind, request: &[u8]) -> Option<Parts> {
        let Layout { header, figure: mut bytes, height, tops } = kind.layout();
        let payload = request.len().checked_sub(header)?;
        let size = |at| u32::from(u16_at(request, at));
        // Images are in ZPixmap format.
        let is_possible = match kind {
            DrawingKind::PutImage => request[1] == 2 && request[20] == 0,
            // Points relative to each other belong together.
            DrawingKind::Points => request[1] == 0,
            // With a mask format, all trapezoids form one mask.
            DrawingKind::Trapezoids => u32_at(request, 16) == 0,
            _ => true,
        };
        let (count, row) = if height > 0 {
            (size(height), FIGURE + u64::from(size(height - 2)) * if kind == DrawingKind::Composite { 4 } else { 1 })
        } else {
            // Each point is the same amount of work.
            (u32::try_from(payload / bytes).ok()?, if kind == DrawingKind::Points { FIGURE } else { 0 })
        };
        if kind == DrawingKind::PutImage {
            // Rows consist of whole words; otherwise the server refuses the length.
            bytes = payload.checked_div(count as usize).filter(|bytes| bytes % 4 == 0)?;
        }
        let ends_on_screen = tops.iter().all(|&top| ends_on_screen(request, top, count));
        let is_exact = is_possible && ends_on_screen && bytes * count as usize == payload;
        (is_exact && count > 1).then_some(Parts { kind, count, header, bytes, row, bottom_up: false })
    }

    /// The parts of a CopyArea within one drawable, in an order in which no row is overwritten before it is read.
    pub fn within_one_drawable(self, request: &[u8]) -> Parts {
        Parts { bottom_up: i16_at(request, 22) > i16_at(request, 18), ..self }
    }

    /// The work of one part, in pixels.
    pub fn work(&self, request: &[u8], part: u32) -> u64 {
        if self.row > 0 {
            return self.row;
        }
        figure_work(self.kind, &request[self.header + part as usize * self.bytes..][..self.bytes]).into()
    }

    /// The work of the whole request, or `enough` if it is more.
    pub fn work_up_to(&self, request: &[u8], enough: u64) -> u64 {
        if self.row > 0 {
            return (self.row * u64::from(self.count)).min(enough);
        }
        let figures = &request[self.header..][..self.payload()];
        // This runs for each figure of each request. With a constant kind, the compiler generates short loops.
        match self.kind {
            DrawingKind::Rectangles => total::<8>(DrawingKind::Rectangles, figures, enough),
            DrawingKind::FilledRectangles => total::<8>(DrawingKind::FilledRectangles, figures, enough),
            DrawingKind::RenderRectangles => total::<8>(DrawingKind::RenderRectangles, figures, enough),
            DrawingKind::Segments => total::<8>(DrawingKind::Segments, figures, enough),
            DrawingKind::Arcs => total::<12>(DrawingKind::Arcs, figures, enough),
            DrawingKind::FilledArcs => total::<12>(DrawingKind::FilledArcs, figures, enough),
            DrawingKind::Trapezoids => total::<40>(DrawingKind::Trapezoids, figures, enough),
            // The other kinds consist of rows or points, which are handled above.
            DrawingKind::Points | DrawingKind::PutImage | DrawingKind::CopyArea | DrawingKind::Composite => 0,
        }
    }

    /// The number of parts, starting at `from`, that together take at most `work` (at least one part), and their work.
    pub fn fitting(&self, request: &[u8], from: u32, work: u64) -> (u32, u64) {
        if let Some(count) = work.checked_div(self.row) {
            let count = count.clamp(1, u64::from(self.count - from));
            return (count as u32, count * self.row);
        }
        let mut sum = 0;
        for part in from..self.count {
            let next = self.work(request, part);
            if part > from && sum + next > work {
                return (part - from, sum);
            }
            sum += next;
        }
        (self.count - from, sum)
    }

    /// The bytes of all parts in the request.
    pub fn payload(&self) -> usize {
        self.count as usize * self.bytes
    }

    pub fn header_of(&self, request: &[u8]) -> [u8; MAX_HEADER] {
        let mut header = [0; MAX_HEADER];
        header[..self.header].copy_from_slice(&request[..self.header]);
        header
    }

    /// Returns true if a header exists for every part, no matter with which figure it begins.
    pub fn has_headers(&self, request: &[u8]) -> bool {
        let whole = self.header_of(request);
        let figure = |part: u32| &request[self.header + part as usize * self.bytes..][..self.bytes];
        (0..self.count).all(|part| self.header_for(&whole, &(part..part + 1), [figure(0), figure(part)]).is_some())
    }

    /// The rows of these parts, counted from the top. Parts are numbered in the order of execution.
    pub fn rows(&self, parts: &Range<u32>) -> Range<u32> {
        if self.bottom_up { self.count - parts.end..self.count - parts.start } else { parts.clone() }
    }

    /// The header of a request for these parts, from the header of the whole; `None` if a field would overflow.
    /// `first` and `figure` are the first figure of the whole request and of the part.
    pub fn header_for(
        &self,
        whole: &[u8; MAX_HEADER],
        parts: &Range<u32>,
        [first, figure]: [&[u8]; 2],
    ) -> Option<[u8; MAX_HEADER]> {
        let mut header = *whole;
        let rows = self.rows(parts);
        let mut put = |at: usize, number: u16| header[at..at + 2].copy_from_slice(&number.to_ne_bytes());
        let Layout { height, tops, .. } = self.kind.layout();
        if height > 0 {
            put(height, (rows.end - rows.start) as u16);
            tops.iter().for_each(|&top| put(top, u16_at(whole, top).wrapping_add(rows.start as u16)));
        }
        if self.kind == DrawingKind::Trapezoids {
            // The source is placed relative to the first trapezoid of a request.
            for (at, point) in [(20, 8), (22, 12)] {
                let moved = i64::from(i16_at(whole, at)) + fixed_at(figure, point) - fixed_at(first, point);
                put(at, i16::try_from(moved).ok()? as u16);
            }
        }
        Some(header)
    }
}

/// Returns true if the coordinate of the last row fits into its field. Otherwise a part would be drawn elsewhere.
fn ends_on_screen(request: &[u8], top: usize, rows: u32) -> bool {
    i16::try_from(i64::from(i16_at(request, top)) + i64::from(rows)).is_ok()
}

/// The number of figures, and the bitwise OR of all their widths and heights.
fn union_of_sizes<const BYTES: usize>(figures: &[u8]) -> (usize, u32) {
    let mut sizes = 0;
    for figure in figures.chunks_exact(BYTES) {
        sizes |= u32_at(figure, 4);
    }
    (figures.len() / BYTES, sizes)
}

/// The work of figures of `BYTES` bytes, or `enough`. The inner loop has no second exit, so it can use vector
/// operations.
#[inline(always)]
fn total<const BYTES: usize>(kind: DrawingKind, figures: &[u8], enough: u64) -> u64 {
    let mut work = 0;
    for block in figures.chunks(64 * BYTES) {
        let mut of_block = 0;
        for figure in block.chunks_exact(BYTES) {
            of_block += figure_work(kind, figure);
        }
        work += u64::from(of_block);
        if work >= enough {
            return enough;
        }
    }
    work
}

/// The work of one figure, in pixels.
#[inline(always)]
fn figure_work(kind: DrawingKind, figure: &[u8]) -> u32 {
    let size = |at| u32::from(u16_at(figure, at));
    let distance = |from, to| u32::from(i16_at(figure, from).abs_diff(i16_at(figure, to)));
    let span = |from, to| fixed_at(figure, from).abs_diff(fixed_at(figure, to));
    let area = |width: u64, height: u64| (width * height).min(MAX_PIXELS.into()) as u32;
    let pixels = match kind {
        DrawingKind::FilledRectangles | DrawingKind::FilledArcs | DrawingKind::RenderRectangles => size(4) * size(6),
        DrawingKind::Rectangles | DrawingKind::Arcs => 2 * (size(4) + size(6)),
        DrawingKind::Segments => distance(0, 4).max(distance(2, 6)),
        DrawingKind::Trapezoids => area(span(0, 4), span(8, 24).max(span(16, 32))),
        _ => 0,
    };
    FIGURE as u32 + pixels.min(MAX_PIXELS)
}

pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

pub fn i16_at(bytes: &[u8], at: usize) -> i16 {
    u16_at(bytes, at) as i16
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The whole part of a fixed-point number, rounded down.
fn fixed_at(bytes: &[u8], at: usize) -> i64 {
    i64::from(u32_at(bytes, at) as i32 >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_testkit::Random;

    const ALL: [DrawingKind; DrawingKind::COUNT] = [
        DrawingKind::Points,
        DrawingKind::Segments,
        DrawingKind::Rectangles,
        DrawingKind::FilledRectangles,
        DrawingKind::Arcs,
        DrawingKind::FilledArcs,
        DrawingKind::PutImage,
        DrawingKind::CopyArea,
        DrawingKind::Composite,
        DrawingKind::RenderRectangles,
        DrawingKind::Trapezoids,
    ];

    /// A request of this kind. Small numbers are frequent, so that many are valid.
    fn request(kind: DrawingKind, random: &mut Random) -> Vec<u8> {
        let Layout { header, figure, .. } = kind.layout();
        let mut request: Vec<u8> = (0..header).map(|_| random.below(3) as u8).collect();
        if kind == DrawingKind::PutImage {
            let (width, height) = (1 + random.below(9), 2 + random.below(9));
            (request[12..14]).copy_from_slice(&(width as u16).to_ne_bytes());
            (request[14..16]).copy_from_slice(&(height as u16).to_ne_bytes());
            (request[1], request[20]) = (2, 0);
            request.resize(header + 4 * width * height, 7);
        }
        let count = random.below(40);
        request.extend((0..count * figure).map(|_| random.below(5) as u8));
        request
    }

    /// Checks that the parts of a request are requests of the same kind, and together cover the whole.
    fn check(kind: DrawingKind, request: &[u8], work: u64) -> bool {
        let Some(parts) = Parts::of(kind, request) else { return false };
        assert!(parts.count > 1 && parts.header + parts.payload() <= request.len());
        let exact: u64 = (0..parts.count).map(|part| parts.work(request, part)).sum();
        assert_eq!(parts.work_up_to(request, u64::MAX), exact);
        assert!(kind.work_at_most(request).is_none_or(|most| most >= exact));
        if !parts.has_headers(request) {
            return false;
        }
        let whole = parts.header_of(request);
        let figure = |part: u32| &request[parts.header + part as usize * parts.bytes..][..parts.bytes];
        let (mut from, mut covered) = (0, vec![false; parts.count as usize]);
        while from < parts.count {
            let (count, of_part) = parts.fitting(request, from, work);
            assert!(count > 0 && (count == 1 || of_part <= work), "{count} parts of {of_part}, {work} allowed");
            let range = from..from + count;
            let header = parts.header_for(&whole, &range, [figure(0), figure(from)]).expect("a header");
            let mut part = header[..parts.header].to_vec();
            if parts.bytes > 0 {
                part.extend_from_slice(
                    &request[parts.header + from as usize * parts.bytes..][..count as usize * parts.bytes],
                );
            }
            if count > 1 {
                let again = Parts::of(kind, &part).expect("a part is a request of the same kind");
                assert_eq!((again.count, again.bytes), (count, parts.bytes));
            }
            for row in parts.rows(&range) {
                assert!(!std::mem::replace(&mut covered[row as usize], true), "row {row} twice");
            }
            from += count;
        }
        assert!(covered.iter().all(|&one| one));
        true
    }

    #[test]
    fn the_parts_of_a_random_request_cover_the_whole() {
        /// About 1 % of the trapezoid requests have parts, and a larger share of the other kinds.
        const REQUESTS: u32 = 10_000;
        let mut random = Random(xqos_testkit::seed());
        for kind in ALL {
            let mut split = 0;
            for _ in 0..REQUESTS {
                let request = request(kind, &mut random);
                let work = random.below_u64(2000);
                split += usize::from(check(kind, &request, work));
            }
            assert!(split > 20, "{split} of {REQUESTS} {kind:?} had parts");
        }
    }

    #[test]
    fn a_part_of_an_image_is_placed_lower_and_has_its_own_height() {
        let mut request = vec![0; 24 + 4 * 2 * 10];
        request[1] = 2;
        request[12..16].copy_from_slice(&[2u16.to_ne_bytes(), 10u16.to_ne_bytes()].concat());
        request[18..20].copy_from_slice(&(-3i16).to_ne_bytes());
        let parts = Parts::of(DrawingKind::PutImage, &request).unwrap();
        let header = parts.header_for(&parts.header_of(&request), &(4..6), [&[], &[]]).unwrap();
        assert_eq!((u16_at(&header, 14), i16_at(&header, 18)), (2, 1));
        request[18..20].copy_from_slice(&32_760i16.to_ne_bytes());
        assert_eq!(Parts::of(DrawingKind::PutImage, &request), None, "the last row would wrap around");
    }

    #[test]
    fn a_copy_to_a_lower_place_of_the_same_drawable_begins_at_the_bottom() {
        let mut request = [0; 28];
        for (at, value) in [(18, 5u16), (22, 9), (24, 100), (26, 10)] {
            request[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        }
        let apart = Parts::of(DrawingKind::CopyArea, &request).unwrap();
        assert_eq!(apart.rows(&(0..4)), 0..4, "between two drawables");
        let parts = apart.within_one_drawable(&request);
        assert_eq!((parts.rows(&(0..4)), parts.rows(&(4..10))), (6..10, 0..6));
        let header = parts.header_for(&parts.header_of(&request), &(0..4), [&[], &[]]).unwrap();
        assert_eq!([18, 22, 26].map(|at| u16_at(&header, at)), [11, 15, 4]);
        request[22..24].copy_from_slice(&4u16.to_ne_bytes());
        assert!(!apart.within_one_drawable(&request).bottom_up, "a copy to a higher place");
    }

    #[test]
    fn a_part_of_trapezoids_keeps_the_place_of_their_source() {
        let trapezoid = |x: i32, y: i32| {
            let points = [0, 9, x, y, x, y + 9, x + 9, y, x + 9, y + 9].map(|at| (at << 16).to_ne_bytes());
            points.concat()
        };
        let mut request = vec![0; 24];
        request[20..24].copy_from_slice(&[7i16.to_ne_bytes(), (-2i16).to_ne_bytes()].concat());
        request.extend([trapezoid(10, 20), trapezoid(30, 25)].concat());
        let parts = Parts::of(DrawingKind::Trapezoids, &request).unwrap();
        let header = parts.header_for(&parts.header_of(&request), &(1..2), [&request[24..64], &request[64..]]).unwrap();
        assert_eq!((i16_at(&header, 20), i16_at(&header, 22)), (27, 3));
    }
}
