// SPDX-License-Identifier: MIT
//! Classifies bytes by use: images, glyphs, font metrics, properties, text, everything else.
//!
//! Bytes are reported with each packet, but messages only when complete. The bytes of an incomplete message are held,
//! up to [`MAX_HELD`]. A longer message is classified by its first bytes: a request by its opcodes, a reply by its
//! sequence number.

use super::compression::Sample;
use crate::observe::{Direction, Kind, Message};
use std::collections::{HashMap, VecDeque};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ByteUse {
    Images,
    Glyphs,
    FontMetrics,
    Properties,
    Text,
    Rest,
}

impl ByteUse {
    pub const ALL: [ByteUse; 6] =
        [ByteUse::Images, ByteUse::Glyphs, ByteUse::FontMetrics, ByteUse::Properties, ByteUse::Text, ByteUse::Rest];

    pub fn name(self) -> &'static str {
        ["images", "glyphs", "font metrics", "properties", "text", "rest"][self as usize]
    }

    /// Use of a request and its reply. Client-side fonts cost glyphs, and core fonts cost metrics.
    pub fn of(name: &str) -> ByteUse {
        let request = name.split_once("::").map_or(name, |(_, request)| request);
        match request {
            "PutImage" | "GetImage" | "ShmPutImage" | "PutVideo" | "PutStill" => ByteUse::Images,
            "AddGlyphs" | "AddGlyphsFromPicture" => ByteUse::Glyphs,
            "QueryFont" | "ListFontsWithInfo" | "ListFonts" => ByteUse::FontMetrics,
            "ChangeProperty" | "GetProperty" | "XIChangeProperty" | "XIGetProperty" => ByteUse::Properties,
            "CompositeGlyphs8" | "CompositeGlyphs16" | "CompositeGlyphs32" | "PolyText8" | "PolyText16"
            | "ImageText8" | "ImageText16" => ByteUse::Text,
            _ => ByteUse::Rest,
        }
    }
}

/// Longer messages are usually images, which the opcode identifies.
const MAX_HELD: usize = 64 << 10;
/// Maximum number of known opcodes. Extensions use two bytes each.
const MAX_OPCODES: usize = 4_096;
/// Maximum number of pending replies whose use is remembered.
const MAX_PENDING: usize = 256;

/// Bytes in one direction that are not yet assigned.
#[derive(Debug, Default)]
pub(super) struct HeldBytes {
    bytes: Vec<u8>,
    /// Number of bytes at the front that are already assigned. Removing them message by message would be slow.
    taken: usize,
    offset: u64,
    /// Use of the first message, if it was determined before the message was complete.
    known: Option<ByteUse>,
}

impl HeldBytes {
    fn left(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    fn end(&self) -> u64 {
        self.offset + self.left().len() as u64
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds bytes at an offset. After a gap, or if more than `most` bytes are held, starts again at that offset.
    pub(super) fn add_at(&mut self, offset: u64, bytes: &[u8], most: usize) {
        if offset != self.end() || self.left().len() > most {
            *self = HeldBytes { offset, ..HeldBytes::default() };
        }
        self.add(bytes);
    }

    pub(super) fn take(&mut self, until: u64, mut each: impl FnMut(&[u8])) {
        let wanted = usize::try_from(until.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let left = self.left();
        let count = wanted.min(left.len());
        each(&left[..count]);
        self.taken += count;
        self.offset += count as u64;
    }
}

/// Compression samples from all connections: one for each use, and one for each direction.
#[derive(Debug, Default)]
pub struct Samples {
    pub uses: [Sample; ByteUse::ALL.len()],
    pub directions: [Sample; 2],
}

#[derive(Debug, Default)]
pub struct Bandwidth {
    pub bytes: [u64; ByteUse::ALL.len()],
    held: [HeldBytes; 2],
    opcodes: HashMap<(u8, u8), ByteUse>,
    pending: VecDeque<(u16, ByteUse)>,
}

impl Bandwidth {
    pub fn bytes(&mut self, direction: Direction, offset: u64, bytes: &[u8], samples: &mut Samples) {
        samples.directions[direction as usize].add(bytes);
        self.flush_excess(direction, samples);
        self.held[direction as usize].add_at(offset, bytes, usize::MAX);
    }

    /// Assigns the held bytes early if there are too many. All earlier messages were already reported, so these bytes
    /// belong to one message.
    fn flush_excess(&mut self, direction: Direction, samples: &mut Samples) {
        if self.held[direction as usize].left().len() <= MAX_HELD {
            return;
        }
        let guess = self.guess(direction);
        let held = &mut self.held[direction as usize];
        let usage = *held.known.get_or_insert(guess);
        held.take(u64::MAX, |bytes| samples.uses[usage as usize].add(bytes));
    }

    pub fn end(&mut self) {
        *self = Bandwidth { bytes: self.bytes, ..Bandwidth::default() };
    }

    fn guess(&self, direction: Direction) -> ByteUse {
        let Some(&[first, second, low, high]) = self.held[direction as usize].left().first_chunk() else {
            return ByteUse::Rest;
        };
        match direction {
            Direction::Requests => self.opcodes.get(&(first, if first < 128 { 0 } else { second })).copied(),
            Direction::Replies => {
                let is_pending = |number: &u16| *number == u16::from_le_bytes([low, high]);
                let is_pending = |number: &u16| is_pending(number) || *number == u16::from_be_bytes([low, high]);
                self.pending.iter().find(|(number, _)| first == 1 && is_pending(number)).map(|(_, usage)| *usage)
            }
        }
        .unwrap_or(ByteUse::Rest)
    }

    /// Counts a complete message. `usage` is derived from its name.
    pub fn message(&mut self, message: &Message<'_>, usage: ByteUse, samples: &mut Samples) {
        let usage = match message.kind {
            Kind::Request | Kind::Reply => usage,
            _ => ByteUse::Rest,
        };
        self.learn(message, usage);
        self.bytes[usage as usize] = self.bytes[usage as usize].saturating_add(message.length);
        let held = &mut self.held[message.kind.direction() as usize];
        held.known = None;
        held.take(message.offset, |bytes| samples.uses[ByteUse::Rest as usize].add(bytes));
        let end = message.offset.saturating_add(message.length);
        held.take(end, |bytes| samples.uses[usage as usize].add(bytes));
    }

    fn learn(&mut self, message: &Message<'_>, usage: ByteUse) {
        if message.kind != Kind::Request {
            return;
        }
        if usage != ByteUse::Rest && self.opcodes.len() < MAX_OPCODES {
            let minor = if message.major < 128 { 0 } else { message.minor as u8 };
            self.opcodes.insert((message.major, minor), usage);
        }
        if usage != ByteUse::Rest && message.has_reply {
            if self.pending.len() >= MAX_PENDING {
                self.pending.pop_front();
            }
            self.pending.push_back((message.sequence as u16, usage));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::{Spec, make};

    fn feed(bandwidth: &mut Bandwidth, samples: &mut Samples, spec: &Spec<'_>, direction: Direction, offset: u64) {
        let mut message = make(spec);
        (message.offset, message.length) = (offset, spec.bytes.len() as u64);
        for (place, part) in spec.bytes.chunks(1448).enumerate() {
            bandwidth.bytes(direction, offset + 1448 * place as u64, part, samples);
            if offset + (1448 * place + part.len()) as u64 == message.offset + message.length {
                bandwidth.message(&message, ByteUse::of(message.name), samples);
            }
        }
    }

    #[test]
    fn bytes_are_assigned_to_their_use() {
        let (mut bandwidth, mut samples) = (Bandwidth::default(), Samples::default());
        let image = vec![72; 5000];
        feed(
            &mut bandwidth,
            &mut samples,
            &Spec { name: "PutImage", bytes: &image, ..Spec::default() },
            Direction::Requests,
            0,
        );
        let glyphs = Spec { name: "RENDER::AddGlyphs", bytes: &[140; 100], ..Spec::default() };
        feed(&mut bandwidth, &mut samples, &glyphs, Direction::Requests, 5000);
        let metrics = Spec { name: "QueryFont", bytes: &[47; 8], ..Spec::default() };
        feed(&mut bandwidth, &mut samples, &metrics, Direction::Requests, 5100);
        let seen = samples.uses.iter().map(|sample| sample.seen).collect::<Vec<_>>();
        assert_eq!(seen, [5000, 100, 8, 0, 0, 0]);
        assert_eq!(bandwidth.bytes, [5000, 100, 8, 0, 0, 0]);
        assert_eq!(samples.directions[0].seen, 5108);
    }

    #[test]
    fn a_message_of_any_length_is_held_in_little_memory() {
        let (mut bandwidth, mut samples) = (Bandwidth::default(), Samples::default());
        let small = Spec { name: "PutImage", major: 72, bytes: &[72; 32], ..Spec::default() };
        feed(&mut bandwidth, &mut samples, &small, Direction::Requests, 0);
        let image = vec![72; 8 << 20];
        let large = Spec { bytes: &image, ..small };
        feed(&mut bandwidth, &mut samples, &large, Direction::Requests, 32);
        assert!(bandwidth.held[0].bytes.capacity() < 4 * MAX_HELD);
        assert_eq!(samples.uses[ByteUse::Images as usize].seen, 32 + (8 << 20));
    }

    #[test]
    fn a_long_reply_is_classified_by_its_pending_request() {
        let (mut bandwidth, mut samples) = (Bandwidth::default(), Samples::default());
        let asks = Spec { name: "GetImage", sequence: 0x1_0203, has_reply: true, bytes: &[73; 20], ..Spec::default() };
        feed(&mut bandwidth, &mut samples, &asks, Direction::Requests, 0);
        let mut image = vec![0; 1 << 20];
        image[..4].copy_from_slice(&[1, 24, 3, 2]);
        let reply = Spec { kind: Kind::Reply, name: "GetImage", sequence: 0x1_0203, bytes: &image, ..Spec::default() };
        feed(&mut bandwidth, &mut samples, &reply, Direction::Replies, 0);
        assert_eq!(samples.uses[ByteUse::Images as usize].seen, 20 + (1 << 20));
        assert_eq!(samples.uses[ByteUse::Rest as usize].seen, 0);
    }

    #[test]
    fn bytes_after_a_gap_are_assigned_correctly() {
        let (mut bandwidth, mut samples) = (Bandwidth::default(), Samples::default());
        bandwidth.bytes(Direction::Requests, 0, &[0; 10], &mut samples);
        let later = Spec { name: "PutImage", bytes: &[72; 40], ..Spec::default() };
        feed(&mut bandwidth, &mut samples, &later, Direction::Requests, 1000);
        assert_eq!(samples.uses[ByteUse::Images as usize].seen, 40);
    }
}
