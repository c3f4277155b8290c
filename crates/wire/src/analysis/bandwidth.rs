// SPDX-License-Identifier: MIT
//! Assigns bytes to their use: images, glyphs, properties, text, the rest.
//!
//! Bytes arrive packet by packet, messages only once complete. Bytes of an incomplete message are held, up to
//! [`MAX_HELD`]. A longer message is classified by its first bytes: a request by its opcodes, a reply by its sequence
//! number.

use super::compression::Sample;
use crate::observe::{Direction, Kind, Message};
use std::collections::{HashMap, VecDeque};

/// What bandwidth is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    Images,
    Glyphs,
    Properties,
    Text,
    Rest,
}

impl Use {
    pub const ALL: [Use; 5] = [Use::Images, Use::Glyphs, Use::Properties, Use::Text, Use::Rest];

    pub fn name(self) -> &'static str {
        match self {
            Use::Images => "images",
            Use::Glyphs => "glyphs",
            Use::Properties => "properties",
            Use::Text => "text",
            Use::Rest => "rest",
        }
    }

    /// Use of a request and its reply. Font metrics count as glyphs: they are the cost of server-side fonts.
    pub fn of(name: &str) -> Use {
        let request = name.split_once("::").map_or(name, |(_, request)| request);
        match request {
            "PutImage" | "GetImage" | "ShmPutImage" | "PutVideo" | "PutStill" => Use::Images,
            "AddGlyphs" | "AddGlyphsFromPicture" | "QueryFont" | "ListFontsWithInfo" | "ListFonts" => Use::Glyphs,
            "ChangeProperty" | "GetProperty" | "XIChangeProperty" | "XIGetProperty" => Use::Properties,
            "CompositeGlyphs8" | "CompositeGlyphs16" | "CompositeGlyphs32" | "PolyText8" | "PolyText16"
            | "ImageText8" | "ImageText16" => Use::Text,
            _ => Use::Rest,
        }
    }
}

/// Longer messages are usually images, which the opcode identifies.
const MAX_HELD: usize = 64 << 10;
/// Maximum number of known opcodes. Extensions use two bytes each.
const MAX_NAMED: usize = 4_096;
/// Maximum number of pending replies whose use is remembered.
const MAX_DUE: usize = 256;

/// Bytes of one direction that are not yet assigned.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    /// Number of assigned bytes. A packet may hold thousands of messages, and moving the rest for each would be slow.
    taken: usize,
    /// Stream offset of the first unassigned byte.
    offset: u64,
    /// Use of the first message, if determined before it was complete.
    known: Option<Use>,
}

impl Held {
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

    fn take(&mut self, until: u64, mut each: impl FnMut(&[u8])) {
        let wanted = usize::try_from(until.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let left = self.left();
        let count = wanted.min(left.len());
        each(&left[..count]);
        self.taken += count;
        self.offset += count as u64;
    }
}

/// Samples by use over all connections, and of each direction.
#[derive(Debug, Default)]
pub struct Samples {
    pub uses: [Sample; Use::ALL.len()],
    pub directions: [Sample; 2],
}

/// One connection.
#[derive(Debug, Default)]
pub struct Bandwidth {
    pub bytes: [u64; Use::ALL.len()],
    held: [Held; 2],
    named: HashMap<(u8, u8), Use>,
    due: VecDeque<(u16, Use)>,
}

impl Bandwidth {
    pub fn bytes(&mut self, direction: Direction, offset: u64, bytes: &[u8], samples: &mut Samples) {
        samples.directions[direction as usize].add(bytes);
        self.shed(direction, samples);
        let held = &mut self.held[direction as usize];
        if offset != held.end() {
            *held = Held { offset, ..Held::default() };
        }
        held.add(bytes);
    }

    /// Assigns the held bytes early if there are too many. All earlier messages were already reported, so these bytes
    /// belong to one message.
    fn shed(&mut self, direction: Direction, samples: &mut Samples) {
        if self.held[direction as usize].left().len() <= MAX_HELD {
            return;
        }
        let guess = self.guess(direction);
        let held = &mut self.held[direction as usize];
        let what = *held.known.get_or_insert(guess);
        held.take(u64::MAX, |bytes| samples.uses[what as usize].add(bytes));
    }

    /// The connection has ended.
    pub fn end(&mut self) {
        *self = Bandwidth { bytes: self.bytes, ..Bandwidth::default() };
    }

    fn guess(&self, direction: Direction) -> Use {
        let Some(&[first, second, low, high]) = self.held[direction as usize].left().first_chunk() else {
            return Use::Rest;
        };
        match direction {
            Direction::Requests => self.named.get(&(first, if first < 128 { 0 } else { second })).copied(),
            Direction::Replies => {
                let is_due = |number: &u16| *number == u16::from_le_bytes([low, high]);
                let is_due = |number: &u16| is_due(number) || *number == u16::from_be_bytes([low, high]);
                self.due.iter().find(|(number, _)| first == 1 && is_due(number)).map(|(_, what)| *what)
            }
        }
        .unwrap_or(Use::Rest)
    }

    /// `what` is the use of the message's name.
    pub fn message(&mut self, message: &Message<'_>, what: Use, samples: &mut Samples) {
        let what = match message.kind {
            Kind::Request | Kind::Reply => what,
            _ => Use::Rest,
        };
        self.learn(message, what);
        self.bytes[what as usize] = self.bytes[what as usize].saturating_add(message.length);
        let held = &mut self.held[message.kind.direction() as usize];
        held.known = None;
        held.take(message.offset, |bytes| samples.uses[Use::Rest as usize].add(bytes));
        let end = message.offset.saturating_add(message.length);
        held.take(end, |bytes| samples.uses[what as usize].add(bytes));
    }

    fn learn(&mut self, message: &Message<'_>, what: Use) {
        if message.kind != Kind::Request {
            return;
        }
        if what != Use::Rest && self.named.len() < MAX_NAMED {
            let minor = if message.major < 128 { 0 } else { message.minor as u8 };
            self.named.insert((message.major, minor), what);
        }
        if what != Use::Rest && message.has_reply {
            if self.due.len() >= MAX_DUE {
                self.due.pop_front();
            }
            self.due.push_back((message.sequence as u16, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::{Said, said};

    fn tell(bandwidth: &mut Bandwidth, samples: &mut Samples, said_: &Said<'_>, direction: Direction, offset: u64) {
        let mut message = said(said_);
        (message.offset, message.length) = (offset, said_.bytes.len() as u64);
        for (place, part) in said_.bytes.chunks(1448).enumerate() {
            bandwidth.bytes(direction, offset + 1448 * place as u64, part, samples);
            if offset + (1448 * place + part.len()) as u64 == message.offset + message.length {
                bandwidth.message(&message, Use::of(message.name), samples);
            }
        }
    }

    #[test]
    fn bytes_are_assigned_to_what_they_were_used_for() {
        let (mut bandwidth, mut samples) = (Bandwidth::default(), Samples::default());
        let image = vec![72; 5000];
        tell(
            &mut bandwidth,
            &mut samples,
            &Said { name: "PutImage", bytes: &image, ..Said::default() },
            Direction::Requests,
            0,
        );
        let glyphs = Said { name: "RENDER::AddGlyphs", bytes: &[140; 100], ..Said::default() };
        tell(&mut bandwidth, &mut samples, &glyphs, Direction::Requests, 5000);
        let seen = samples.uses.iter().map(|sample| sample.seen).collect::<Vec<_>>();
        assert_eq!(seen, [5000, 100, 0, 0, 0]);
        assert_eq!(bandwidth.bytes, [5000, 100, 0, 0, 0]);
        assert_eq!(samples.directions[0].seen, 5100);
    }

    #[test]
    fn a_message_of_any_length_is_held_in_little_memory() {
        let (mut bandwidth, mut samples) = (Bandwidth::default(), Samples::default());
        let small = Said { name: "PutImage", major: 72, bytes: &[72; 32], ..Said::default() };
        tell(&mut bandwidth, &mut samples, &small, Direction::Requests, 0);
        let image = vec![72; 8 << 20];
        let large = Said { bytes: &image, ..small };
        tell(&mut bandwidth, &mut samples, &large, Direction::Requests, 32);
        assert!(bandwidth.held[0].bytes.capacity() < 4 * MAX_HELD);
        assert_eq!(samples.uses[Use::Images as usize].seen, 32 + (8 << 20));
    }

    #[test]
    fn a_long_reply_is_known_by_the_request_that_is_due() {
        let (mut bandwidth, mut samples) = (Bandwidth::default(), Samples::default());
        let asks = Said { name: "GetImage", sequence: 0x1_0203, has_reply: true, bytes: &[73; 20], ..Said::default() };
        tell(&mut bandwidth, &mut samples, &asks, Direction::Requests, 0);
        let mut image = vec![0; 1 << 20];
        image[..4].copy_from_slice(&[1, 24, 3, 2]);
        let reply = Said { kind: Kind::Reply, name: "GetImage", sequence: 0x1_0203, bytes: &image, ..Said::default() };
        tell(&mut bandwidth, &mut samples, &reply, Direction::Replies, 0);
        assert_eq!(samples.uses[Use::Images as usize].seen, 20 + (1 << 20));
        assert_eq!(samples.uses[Use::Rest as usize].seen, 0);
    }

    #[test]
    fn after_a_gap_bytes_count_anew() {
        let (mut bandwidth, mut samples) = (Bandwidth::default(), Samples::default());
        bandwidth.bytes(Direction::Requests, 0, &[0; 10], &mut samples);
        let later = Said { name: "PutImage", bytes: &[72; 40], ..Said::default() };
        tell(&mut bandwidth, &mut samples, &later, Direction::Requests, 1000);
        assert_eq!(samples.uses[Use::Images as usize].seen, 40);
    }
}
