// SPDX-License-Identifier: MIT
//! Bytes of one direction, cut into messages.
//!
//! A message up to a limit is gathered and given out whole; of a longer one its first bytes come when they are there, and
//! the rest in pieces as it arrives. So a length that lies costs no memory.

use xqos_wire::x11::bytes::ByteOrder;
use xqos_wire::x11::framing::{Length, Phase, length};

/// What is given out of a message that is not gathered, at least: all fields that are read of one.
const HEAD_BYTES: usize = 64;

/// A part of a direction's bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Whole(&'a [u8]),
    /// The first bytes of a message that is longer than the limit.
    Head(&'a [u8]),
    /// What follows in such a message.
    More(&'a [u8]),
}

/// No message can begin where one should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

/// One direction.
#[derive(Debug)]
pub struct Splitter {
    pub phase: Phase,
    pub order: ByteOrder,
    /// Whether requests may have their length in a word of its own (BIG-REQUESTS).
    pub takes_long: bool,
    limit: usize,
    gathered: Vec<u8>,
    /// The last piece was made of what is gathered.
    is_given: bool,
    /// Bytes of a long message that are still to come.
    left: u64,
}

impl Splitter {
    /// Gathers messages of up to `limit` bytes.
    pub fn new(phase: Phase, order: ByteOrder, limit: usize) -> Splitter {
        let limit = limit.max(HEAD_BYTES);
        Splitter { phase, order, takes_long: false, limit, gathered: Vec::new(), is_given: false, left: 0 }
    }

    /// Whether a message has begun and not ended.
    pub fn is_within(&self) -> bool {
        self.left > 0 || !self.gathered.is_empty() && !self.is_given
    }

    /// The next piece, cut off from the input's beginning; without one, all of it was taken.
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Option<Piece<'s>>, Lost> {
        if self.is_given {
            self.gathered.clear();
            self.is_given = false;
        }
        if self.left > 0 {
            let more = take(input, self.left);
            self.left -= more.len() as u64;
            return Ok((!more.is_empty()).then_some(Piece::More(more)));
        }
        if self.gathered.is_empty() {
            if let Some(whole) = self.whole_in(input)? {
                return Ok(Some(Piece::Whole(whole)));
            }
        }
        self.gather(input)
    }

    /// As the server has it: a request of length 0, where that does not say that a longer one follows, is wrong and has 4 bytes.
    fn length(&self, bytes: &[u8]) -> Length {
        match self.order.u16(bytes, 2) {
            Some(0) if self.phase == Phase::Requests && !self.takes_long => Length::Known(4),
            _ => length(self.phase, self.order, bytes),
        }
    }

    /// A message that lies whole in the input, where it lies.
    fn whole_in<'i>(&self, input: &mut &'i [u8]) -> Result<Option<&'i [u8]>, Lost> {
        match self.length(input) {
            Length::Impossible => Err(Lost),
            Length::Known(length) if length <= input.len().min(self.limit) as u64 => Ok(Some(take(input, length))),
            Length::Known(_) | Length::Needs(_) => Ok(None),
        }
    }

    fn gather(&mut self, input: &mut &[u8]) -> Result<Option<Piece<'_>>, Lost> {
        loop {
            let (needed, is_long) = match self.length(&self.gathered) {
                Length::Impossible => return Err(Lost),
                Length::Needs(bytes) => (bytes.max(self.gathered.len() + 1), None),
                Length::Known(length) if length <= self.limit as u64 => (length as usize, Some(false)),
                Length::Known(length) => {
                    self.left = length - HEAD_BYTES as u64;
                    (HEAD_BYTES, Some(true))
                }
            };
            let missing = needed.saturating_sub(self.gathered.len());
            let taken = take(input, missing as u64);
            self.gathered.extend(taken);
            let is_there = taken.len() == missing;
            if let (true, Some(is_long)) = (is_there, is_long) {
                self.is_given = true;
                let piece = if is_long { Piece::Head } else { Piece::Whole };
                return Ok(Some(piece(&self.gathered)));
            }
            // What follows the head counts from when it was given.
            self.left = 0;
            if !is_there {
                return Ok(None);
            }
        }
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
    use crate::bytes::request;

    fn pieces(stream: &[u8], chunk: usize) -> Vec<(char, Vec<u8>)> {
        let mut splitter = Splitter { takes_long: true, ..Splitter::new(Phase::Requests, ByteOrder::Little, 100) };
        let mut told: Vec<(char, Vec<u8>)> = Vec::new();
        for mut input in stream.chunks(chunk) {
            while let Some(piece) = splitter.next(&mut input).unwrap() {
                match piece {
                    Piece::Whole(bytes) => told.push(('w', bytes.to_vec())),
                    Piece::Head(bytes) => told.push(('h', bytes.to_vec())),
                    Piece::More(bytes) => told.last_mut().unwrap().1.extend(bytes),
                }
            }
        }
        told
    }

    #[test]
    fn messages_are_the_same_however_their_bytes_come() {
        let (short, long) = (request(ByteOrder::Little, 38, 0, &[7]), request(ByteOrder::Little, 72, 2, &[9; 80]));
        let mut big = request(ByteOrder::Little, 72, 2, &[100; 99]);
        big[2..4].fill(0);
        let stream = [&short[..], &long, &short, &big, &short].concat();
        let expected = [('w', short.clone()), ('h', long), ('w', short.clone()), ('h', big), ('w', short)];
        for chunk in 1..stream.len() {
            assert_eq!(pieces(&stream, chunk), expected, "pieces of {chunk} bytes");
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_found() {
        let mut splitter = Splitter { takes_long: true, ..Splitter::new(Phase::Requests, ByteOrder::Little, 100) };
        let bytes = [72, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(splitter.next(&mut &bytes[..]), Err(Lost));
        splitter.takes_long = false;
        for chunk in [1, 4, 8] {
            let mut rest = bytes.chunks(chunk);
            let first = rest.find_map(|mut piece| splitter.next(&mut piece).unwrap().map(|piece| format!("{piece:?}")));
            assert_eq!(first.as_deref(), Some("Whole([72, 0, 0, 0])"));
        }
    }
}
