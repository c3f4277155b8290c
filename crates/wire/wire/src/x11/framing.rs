// SPDX-License-Identifier: MIT
//! Finds message boundaries in one direction of a connection.
//!
//! A message that is complete in the input is returned without a copy. For a message in several parts, the first
//! [`KEPT_BYTES`] are kept and the rest is only counted, so a false length costs no memory. A proxy must forward all
//! bytes and uses [`Piece`]s: short messages whole, longer ones as a head and the following parts.

use crate::observe::KEPT_BYTES;
use xqos_x11::ByteOrder;
use xqos_x11::length::{Length, Phase, length};

/// Size of the head of a message that is too long to keep. The head contains all fields that are read.
const HEAD_BYTES: usize = 64;

#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    pub offset: u64,
    pub length: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub bytes: &'a [u8],
}

#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A complete message that is not longer than the limit.
    Whole(&'a [u8]),
    /// The first [`HEAD_BYTES`] of a longer message.
    Head(&'a [u8]),
    /// The next bytes of a longer message.
    More(&'a [u8]),
}

#[derive(Debug)]
pub struct Framer {
    pub phase: Phase,
    pub order: ByteOrder,
    pub offset: u64,
    unfinished: Option<Unfinished>,
    /// First bytes of the unfinished message, up to `limit`.
    kept: Vec<u8>,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct Unfinished {
    offset: u64,
    first_ns: u64,
    length: Option<u64>,
    /// True if some of its bytes are missing; `kept` ends before them.
    is_cut: bool,
}

/// No message can start at the current offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfSync;

impl Framer {
    pub fn new(phase: Phase, order: ByteOrder, offset: u64) -> Framer {
        Framer { phase, order, offset, unfinished: None, kept: Vec::new(), limit: KEPT_BYTES }
    }

    /// Starts at offset 0 and keeps up to `limit` bytes of a message, for [`Framer::piece`].
    pub fn with_limit(phase: Phase, order: ByteOrder, limit: usize) -> Framer {
        Framer { limit: limit.max(HEAD_BYTES), ..Framer::new(phase, order, 0) }
    }

    pub fn is_within(&self) -> bool {
        self.unfinished.is_some()
    }

    /// The rest of the current message in bytes, and its first bytes. `None` if its length is not known yet.
    pub fn rest(&self) -> Option<(u64, &[u8])> {
        let Some(message) = self.unfinished else { return Some((0, &[])) };
        Some(((message.offset + message.length?).saturating_sub(self.offset), &self.kept))
    }

    /// True if the next `bytes` bytes all belong to the current message.
    pub fn is_within_for(&self, bytes: u64) -> bool {
        let end = |message: Unfinished| Some(message.offset.saturating_add(message.length?));
        self.unfinished.and_then(end).is_some_and(|end| end >= self.offset.saturating_add(bytes))
    }

    /// Removes the next complete message from the input, which was captured at `at_ns`. `None` if the whole input was
    /// consumed.
    #[inline]
    pub fn next<'f, 'i: 'f>(&'f mut self, at_ns: u64, input: &mut &'i [u8]) -> Result<Option<Frame<'f>>, OutOfSync> {
        let offset = self.offset;
        if self.unfinished.is_none() {
            if let Some(whole) = self.whole(input, u64::MAX)? {
                let bytes = &whole[..whole.len().min(KEPT_BYTES)];
                return Ok(Some(Frame { offset, length: whole.len() as u64, first_ns: at_ns, last_ns: at_ns, bytes }));
            }
            self.begin(at_ns, input);
        }
        let is_there = self.gather(input, |length| length)?;
        Ok(if is_there { self.finish(at_ns) } else { None })
    }

    /// Returns the next piece, for callers that forward incomplete messages. `None` if the whole input was consumed.
    pub fn piece<'f, 'i: 'f>(&'f mut self, input: &mut &'i [u8]) -> Result<Option<Piece<'f>>, OutOfSync> {
        let limit = self.limit as u64;
        let head = |length| if length <= limit { length } else { HEAD_BYTES as u64 };
        match self.unfinished.and_then(|message| Some((message.offset, message.length?))) {
            Some((offset, length)) if self.offset >= offset + head(length) => {
                let more = take(input, offset + length - self.offset);
                self.offset += more.len() as u64;
                self.unfinished = self.unfinished.filter(|_| self.offset < offset + length);
                return Ok((!more.is_empty()).then_some(Piece::More(more)));
            }
            _ if self.unfinished.is_some() => {}
            _ => match self.whole(input, limit)? {
                Some(whole) => return Ok(Some(Piece::Whole(whole))),
                None => self.begin(0, input),
            },
        }
        if !self.gather(input, head)? {
            return Ok(None);
        }
        let is_whole = self.unfinished.and_then(|message| message.length).is_some_and(|length| length <= limit);
        self.unfinished = self.unfinished.filter(|_| !is_whole);
        Ok(Some(if is_whole { Piece::Whole(&self.kept) } else { Piece::Head(&self.kept) }))
    }

    /// Skips missing bytes. Returns the message that ends within them, and an error if the next boundary is unknown.
    pub fn skip(&mut self, length: u64, at_ns: u64) -> (Option<Frame<'_>>, Result<(), OutOfSync>) {
        let end = self.offset.saturating_add(length);
        let Some(message) = &mut self.unfinished else { return (None, Err(OutOfSync)) };
        let Some(known) = message.length else { return (None, Err(OutOfSync)) };
        message.is_cut = true;
        let last = message.offset + known;
        self.offset = end;
        let result = if end > last { Err(OutOfSync) } else { Ok(()) };
        (if end >= last { self.finish(at_ns) } else { None }, result)
    }

    /// Returns the next message if it has at most `most` bytes and is complete in the input.
    #[inline]
    fn whole<'i>(&mut self, input: &mut &'i [u8], most: u64) -> Result<Option<&'i [u8]>, OutOfSync> {
        match length(self.phase, self.order, input) {
            Length::Impossible => Err(OutOfSync),
            Length::Known(length) if length <= most.min(input.len() as u64) => {
                self.offset += length;
                Ok(Some(take(input, length)))
            }
            Length::Known(_) | Length::Needs(_) => Ok(None),
        }
    }

    fn begin(&mut self, first_ns: u64, input: &[u8]) {
        if !input.is_empty() {
            self.kept.clear();
            self.unfinished = Some(Unfinished { offset: self.offset, first_ns, length: None, is_cut: false });
        }
    }

    /// Collects the first `wanted(length)` bytes of the current message. Returns true once they are complete.
    fn gather(&mut self, input: &mut &[u8], wanted: impl Fn(u64) -> u64) -> Result<bool, OutOfSync> {
        while let Some(message) = self.unfinished {
            let known = message.length.map_or_else(|| length(self.phase, self.order, &self.kept), Length::Known);
            let end = match known {
                Length::Impossible => return Err(OutOfSync),
                Length::Needs(bytes) => message.offset + bytes.max(self.kept.len() + 1) as u64,
                Length::Known(length) => {
                    self.unfinished = Some(Unfinished { length: Some(length), ..message });
                    message.offset + wanted(length)
                }
            };
            let bytes = take(input, end - self.offset);
            self.offset += bytes.len() as u64;
            if !message.is_cut {
                self.kept.extend(&bytes[..bytes.len().min(self.limit - self.kept.len())]);
            }
            if self.offset < end || matches!(known, Length::Known(_)) {
                return Ok(self.offset == end);
            }
        }
        Ok(false)
    }

    fn finish(&mut self, last_ns: u64) -> Option<Frame<'_>> {
        let message = self.unfinished.take()?;
        let length = message.length?;
        Some(Frame { offset: message.offset, length, first_ns: message.first_ns, last_ns, bytes: &self.kept })
    }
}

fn take<'i>(input: &mut &'i [u8], most: u64) -> &'i [u8] {
    let count = usize::try_from(most).unwrap_or(usize::MAX).min(input.len());
    let (taken, rest) = input.split_at(count);
    *input = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framer() -> Framer {
        Framer::with_limit(Phase::Requests, ByteOrder::Little, 100)
    }

    fn request(major: u8, words: u16) -> Vec<u8> {
        let mut bytes = vec![major; 4 * usize::from(words)];
        bytes[2..4].copy_from_slice(&words.to_le_bytes());
        bytes
    }

    fn pieces(stream: &[u8], chunk: usize) -> Vec<(char, Vec<u8>)> {
        let mut framer = framer();
        let mut pieces: Vec<(char, Vec<u8>)> = Vec::new();
        for mut input in stream.chunks(chunk) {
            while let Some(piece) = framer.piece(&mut input).unwrap() {
                match piece {
                    Piece::Whole(bytes) => pieces.push(('w', bytes.to_vec())),
                    Piece::Head(bytes) => pieces.push(('h', bytes.to_vec())),
                    Piece::More(bytes) => pieces.last_mut().unwrap().1.extend(bytes),
                }
            }
        }
        pieces
    }

    #[test]
    fn framing_does_not_depend_on_the_input_pieces() {
        let (short, long) = (request(38, 2), request(72, 81));
        let mut big = request(72, 100);
        big[2..8].copy_from_slice(&[0, 0, 100, 0, 0, 0]);
        let stream = [&short[..], &long, &short, &big, &short].concat();
        let expected = [('w', short.clone()), ('h', long), ('w', short.clone()), ('h', big), ('w', short)];
        for chunk in 1..stream.len() {
            assert_eq!(pieces(&stream, chunk), expected, "pieces of {chunk} bytes");
        }
    }

    #[test]
    fn an_impossible_length_is_detected() {
        let mut framer = framer();
        let bytes = [72, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(framer.piece(&mut &bytes[..]), Err(OutOfSync));
        framer.phase = Phase::ShortRequests;
        for chunk in [1, 4, 8] {
            let mut rest = bytes.chunks(chunk);
            let first = rest.find_map(|mut piece| framer.piece(&mut piece).unwrap().map(|piece| format!("{piece:?}")));
            assert_eq!(first.as_deref(), Some("Whole([72, 0, 0, 0])"));
        }
    }
}
