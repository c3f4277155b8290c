// SPDX-License-Identifier: MIT
//! Where a message ends and the next begins, in one direction of a connection.
//!
//! A message that lies whole in what was pushed is given out where it lies; of one that comes in parts the first
//! [`KEPT_BYTES`] are kept and the rest is only counted, so a length that lies costs nothing.
//!
//! | bytes | a message is |
//! |---|---|
//! | client's first | setup: 12, and two texts of the lengths in it, each rounded up to words |
//! | server's first | answer: 8, and as many words as it says |
//! | client's, at first | request: as many words as it says; 0 is four bytes, which the server answers with BadLength |
//! | client's, once it has enabled BIG-REQUESTS | likewise; if 0, the next word says how many |
//! | server's | 32 bytes, and of replies and generic events as many words more as they say |

use super::bytes::ByteOrder;
use super::codes::{GENERIC_EVENT, SENT_BY_CLIENT};
use crate::observe::KEPT_BYTES;

/// What a direction carries now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Setup,
    SetupReply,
    /// Of a client that has not enabled BIG-REQUESTS.
    ShortRequests,
    /// Of one that has, or may have.
    Requests,
    Replies,
}

pub const ERROR: u8 = 0;
pub const REPLY: u8 = 1;
const SENT_GENERIC_EVENT: u8 = GENERIC_EVENT | SENT_BY_CLIENT;
const SETUP_BYTES: usize = 12;
const SETUP_REPLY_BYTES: u64 = 8;
const REQUEST_BYTES: usize = 4;
const UNIT_BYTES: u64 = 32;

/// A complete message.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    pub offset: u64,
    pub length: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub bytes: &'a [u8],
}

/// Bytes to be framed; what is taken is cut off from their beginning.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub at_ns: u64,
    pub bytes: &'a [u8],
}

/// What follows from a message's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Known(u64),
    /// How many bytes are needed to know.
    Needs(usize),
    /// No message begins so.
    Impossible,
}

/// Length of the message that begins with these bytes.
pub fn length(phase: Phase, order: ByteOrder, bytes: &[u8]) -> Length {
    let known = match phase {
        Phase::Setup => setup(order, bytes),
        Phase::SetupReply => order.u16(bytes, 6).map(|words| Length::Known(SETUP_REPLY_BYTES + 4 * u64::from(words))),
        Phase::ShortRequests => return short_request(order, bytes),
        Phase::Requests => return request(order, bytes),
        Phase::Replies => return reply(order, bytes),
    };
    known.unwrap_or(Length::Needs(if phase == Phase::Setup { SETUP_BYTES } else { SETUP_REPLY_BYTES as usize }))
}

fn setup(order: ByteOrder, bytes: &[u8]) -> Option<Length> {
    let padded = |at| Some(u64::from(order.u16(bytes, at)?).next_multiple_of(4));
    let (name, data) = (padded(6)?, padded(8)?);
    bytes.get(SETUP_BYTES - 1)?;
    Some(Length::Known(SETUP_BYTES as u64 + name + data))
}

fn short_request(order: ByteOrder, bytes: &[u8]) -> Length {
    match order.u16(bytes, 2) {
        None => Length::Needs(REQUEST_BYTES),
        Some(words) => Length::Known((4 * u64::from(words)).max(REQUEST_BYTES as u64)),
    }
}

fn request(order: ByteOrder, bytes: &[u8]) -> Length {
    match order.u16(bytes, 2) {
        None => Length::Needs(REQUEST_BYTES),
        Some(0) => match order.u32(bytes, 4) {
            None => Length::Needs(8),
            // Two words are its own header.
            Some(0 | 1) => Length::Impossible,
            Some(words) => Length::Known(4 * u64::from(words)),
        },
        Some(words) => Length::Known(4 * u64::from(words)),
    }
}

fn reply(order: ByteOrder, bytes: &[u8]) -> Length {
    let Some((&first, &second)) = bytes.first().zip(bytes.get(1)) else { return Length::Needs(2) };
    match first {
        REPLY | GENERIC_EVENT | SENT_GENERIC_EVENT => match order.u32(bytes, 4) {
            None => Length::Needs(8),
            Some(words) => Length::Known(UNIT_BYTES + 4 * u64::from(words)),
        },
        // No error has the code 0, no server gives out these events, and no client can send an error or a reply.
        ERROR if second == 0 => Length::Impossible,
        36..=63 | 0x80 | 0x81 | 0xa4..=0xbf => Length::Impossible,
        _ => Length::Known(UNIT_BYTES),
    }
}

/// The messages of one direction.
#[derive(Debug)]
pub struct Framer {
    pub phase: Phase,
    pub order: ByteOrder,
    /// Where the next byte to be pushed stands in the stream.
    offset: u64,
    unfinished: Option<Unfinished>,
    kept: Vec<u8>,
}

/// A message that has begun.
#[derive(Clone, Copy, Debug)]
struct Unfinished {
    offset: u64,
    first_ns: u64,
    length: Option<u64>,
    /// Some of its bytes are missing; what is kept ends before them.
    is_cut: bool,
}

/// No message can begin where the framer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl Framer {
    pub fn new(phase: Phase, order: ByteOrder, offset: u64) -> Framer {
        Framer { phase, order, offset, unfinished: None, kept: Vec::new() }
    }

    /// Where the next byte stands in the stream.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether a message has begun and not ended.
    pub fn is_within(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Whether the next bytes, so many, are all of the message that has begun.
    pub fn is_within_for(&self, bytes: u64) -> bool {
        let end = |message: Unfinished| Some(message.offset.saturating_add(message.length?));
        self.unfinished.and_then(end).is_some_and(|end| end >= self.offset.saturating_add(bytes))
    }

    /// The next message that these bytes complete; without one, all of them were taken.
    #[inline]
    pub fn next<'f, 'i: 'f>(&'f mut self, input: &mut Input<'i>) -> Result<Option<Frame<'f>>, Lost> {
        if input.bytes.is_empty() {
            return Ok(None);
        }
        if self.unfinished.is_some() {
            return self.go_on(input);
        }
        match length(self.phase, self.order, input.bytes) {
            Length::Known(length) if length <= input.bytes.len() as u64 => {
                let (whole, rest) = input.bytes.split_at(length as usize);
                let frame = self.frame(length, input.at_ns, &whole[..whole.len().min(KEPT_BYTES)]);
                input.bytes = rest;
                self.offset += length;
                Ok(Some(frame))
            }
            Length::Impossible => Err(Lost),
            Length::Known(length) => Ok(self.begin(Some(length), input)),
            Length::Needs(_) => Ok(self.begin(None, input)),
        }
    }

    /// Takes notice of bytes that nobody captured: the message that they end, and whether it is known where they lead.
    pub fn skip(&mut self, length: u64, at_ns: u64) -> (Option<Frame<'_>>, Result<(), Lost>) {
        let end = self.offset.saturating_add(length);
        let Some(message) = &mut self.unfinished else { return (None, Err(Lost)) };
        let Some(known) = message.length else { return (None, Err(Lost)) };
        message.is_cut = true;
        let last = message.offset + known;
        self.offset = end;
        let led = if end > last { Err(Lost) } else { Ok(()) };
        (if end >= last { self.finish(at_ns) } else { None }, led)
    }

    fn frame<'a>(&self, length: u64, at_ns: u64, bytes: &'a [u8]) -> Frame<'a> {
        Frame { offset: self.offset, length, first_ns: at_ns, last_ns: at_ns, bytes }
    }

    fn begin(&mut self, length: Option<u64>, input: &mut Input<'_>) -> Option<Frame<'static>> {
        self.unfinished = Some(Unfinished { offset: self.offset, first_ns: input.at_ns, length, is_cut: false });
        self.kept.clear();
        self.kept.extend(&input.bytes[..input.bytes.len().min(KEPT_BYTES)]);
        self.offset += input.bytes.len() as u64;
        input.bytes = &[];
        None
    }

    fn go_on(&mut self, input: &mut Input<'_>) -> Result<Option<Frame<'_>>, Lost> {
        while self.unfinished.is_some_and(|message| message.length.is_none()) {
            match length(self.phase, self.order, &self.kept) {
                Length::Known(length) => self.set_length(length),
                Length::Impossible => return Err(Lost),
                Length::Needs(_) if input.bytes.is_empty() => return Ok(None),
                Length::Needs(bytes) => {
                    let missing = bytes.saturating_sub(self.kept.len()).max(1);
                    self.take(missing as u64, input);
                }
            }
        }
        let Some(message) = self.unfinished else { return Ok(None) };
        let last = message.offset + message.length.unwrap_or_default();
        self.take(last - self.offset, input);
        Ok(if self.offset == last { self.finish(input.at_ns) } else { None })
    }

    fn set_length(&mut self, length: u64) {
        if let Some(message) = &mut self.unfinished {
            message.length = Some(length);
        }
    }

    /// Takes at most this many bytes, and keeps those that are to be kept.
    fn take(&mut self, most: u64, input: &mut Input<'_>) {
        let taken = usize::try_from(most).unwrap_or(usize::MAX).min(input.bytes.len());
        let (bytes, rest) = input.bytes.split_at(taken);
        if self.unfinished.is_some_and(|message| !message.is_cut) {
            let room = KEPT_BYTES - self.kept.len();
            self.kept.extend(&bytes[..taken.min(room)]);
        }
        self.offset += taken as u64;
        input.bytes = rest;
    }

    fn finish(&mut self, last_ns: u64) -> Option<Frame<'_>> {
        let message = self.unfinished.take()?;
        let length = message.length?;
        Some(Frame { offset: message.offset, length, first_ns: message.first_ns, last_ns, bytes: &self.kept })
    }
}
