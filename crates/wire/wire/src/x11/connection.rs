// SPDX-License-Identifier: MIT
//! Decodes one connection: bytes in both directions become messages with sequence numbers and names.
//!
//! Each direction is in one of these states:
//!
//! | state | until |
//! |---|---|
//! | new | its first bytes show a connection setup or something else |
//! | framing | bytes are missing at a message boundary, or no message can start there |
//! | searching | a chain of messages is found again (`search`) |
//! | resuming | the end of the message that was in progress when the file begins (`checkpoint`) |
//! | foreign | forever: the connection is not X |
//!
//! Skipped bytes are counted. After a gap, sequence numbers of requests are a lower bound, until replies show the
//! correct ones (`sequence`).

use super::checkpoint::Checkpoint;
use super::decode::{Decoder, setup};
use super::framing::{Frame, Framer, OutOfSync};
use super::names::Names;
use super::plausible;
use super::search::Search;
use crate::observe::{Direction, Message, MissingBytes, Piece};
use xqos_x11::ByteOrder;
use xqos_x11::length::Phase;

/// Major protocol version in a connection setup.
const VERSION: u16 = 11;

/// True if a client's first bytes start a connection setup.
pub fn is_setup(bytes: &[u8]) -> bool {
    let order = bytes.first().and_then(|&first| ByteOrder::of_setup(first));
    order.is_some_and(|order| order.u16(bytes, 2).is_none_or(|version| version == VERSION))
}

#[derive(Debug)]
pub struct Connection {
    order: Option<ByteOrder>,
    /// First client to server, then server to client.
    sides: [Side; 2],
    decoder: Decoder,
    pub skipped_bytes: u64,
}

#[derive(Debug)]
enum Side {
    New,
    Framing(Framer),
    Searching(Search),
    /// Bytes that remain of the message, and the phase of the next one.
    Resuming(u64, Phase),
    Foreign,
}

/// Decodes a message. Returns the next phase of its direction.
fn take(
    decoder: &mut Decoder,
    phase: Phase,
    direction: Direction,
    frame: &Frame<'_>,
    (order, acknowledged): (ByteOrder, u64),
    names: &mut Names,
    emit: &mut impl FnMut(&Message<'_>),
) -> Phase {
    match phase {
        Phase::Setup | Phase::SetupReply => {
            emit(&setup(direction, frame, order));
            if phase == Phase::Setup { Phase::ShortRequests } else { Phase::Replies }
        }
        Phase::ShortRequests | Phase::Requests | Phase::Replies => {
            emit(&decoder.take(direction, frame, order, acknowledged, names));
            let is_enabled = phase == Phase::ShortRequests && names.may_enable_big_requests(frame.bytes, frame.length);
            if is_enabled { Phase::Requests } else { phase }
        }
    }
}

impl Connection {
    /// Remembers at most `max_pending` unanswered requests. `started_midstream`: both directions start with a search.
    pub fn new(started_midstream: bool, max_pending: usize) -> Connection {
        let side = || if started_midstream { Side::Searching(Search::new(0, false)) } else { Side::New };
        let mut decoder = Decoder::new(max_pending);
        if started_midstream {
            decoder.sequence.mark_uncertain();
        }
        Connection { order: None, sides: [side(), side()], decoder, skipped_bytes: 0 }
    }

    /// Continues where a checkpoint was made.
    pub fn from_checkpoint(checkpoint: &Checkpoint, max_pending: usize) -> Connection {
        let Checkpoint { is_little_endian, rest, has_big_requests, is_new, .. } = *checkpoint;
        if is_new {
            return Connection::new(false, max_pending);
        }
        let order = if is_little_endian { ByteOrder::Little } else { ByteOrder::Big };
        let requests = if has_big_requests { Phase::Requests } else { Phase::ShortRequests };
        let replies = if checkpoint.awaits_setup { Phase::SetupReply } else { Phase::Replies };
        let sides = [Side::Resuming(rest[0], requests), Side::Resuming(rest[1], replies)];
        let decoder = Decoder::resume(checkpoint, max_pending);
        Connection { order: Some(order), sides, decoder, skipped_bytes: 0 }
    }

    /// Completes a checkpoint. `None` inside the client's setup, or if a message boundary is unknown.
    pub fn save(&self, names: &Names, mut checkpoint: Checkpoint) -> Option<Checkpoint> {
        if matches!(self.sides, [Side::New, Side::New]) {
            return Some(Checkpoint { is_new: true, ..checkpoint });
        }
        let [Side::Framing(requests), replies] = &self.sides else { return None };
        checkpoint.is_little_endian = requests.order == ByteOrder::Little;
        checkpoint.has_big_requests = match requests.phase {
            Phase::ShortRequests => false,
            Phase::Requests => true,
            _ => return None,
        };
        let reply_rest = match replies {
            Side::New => 0,
            Side::Framing(replies) => replies.rest()?.0,
            _ => return None,
        };
        checkpoint.awaits_setup = matches!(replies, Side::New);
        let (rest, begun) = requests.rest()?;
        checkpoint.rest = [rest, reply_rest];
        self.decoder.save(if rest > 0 { begun } else { &[] }, names, &mut checkpoint);
        Some(checkpoint)
    }

    pub fn is_foreign(&self) -> bool {
        self.sides.iter().any(|side| matches!(side, Side::Foreign))
    }

    pub fn is_within(&self, direction: Direction) -> bool {
        matches!(&self.sides[direction as usize], Side::Framing(framer) if framer.is_within())
    }

    /// True if the next `bytes` bytes of a direction all belong to its current message.
    pub fn is_within_for(&self, direction: Direction, bytes: u64) -> bool {
        match &self.sides[direction as usize] {
            Side::Framing(framer) => framer.is_within_for(bytes),
            Side::Resuming(rest, _) => *rest >= bytes,
            Side::New | Side::Searching(_) | Side::Foreign => false,
        }
    }

    /// Takes the next bytes of a direction and emits the messages that they complete.
    pub fn push(&mut self, piece: &Piece<'_>, names: &mut Names, emit: &mut impl FnMut(&Message<'_>)) {
        if matches!(self.sides[piece.direction as usize], Side::New) {
            self.begin(piece);
        }
        match &mut self.sides[piece.direction as usize] {
            Side::Resuming(..) => self.continue_message(piece, names, emit),
            Side::Framing(_) => self.frame(piece, names, emit),
            Side::Searching(_) => self.search(piece, names, emit),
            Side::New | Side::Foreign => self.skipped_bytes += piece.bytes.len() as u64,
        }
    }

    pub fn gap(&mut self, gap: &MissingBytes, names: &mut Names, emit: &mut impl FnMut(&Message<'_>)) {
        let MissingBytes { direction, at_ns, offset, length, .. } = *gap;
        if matches!(self.sides[direction as usize], Side::Searching(_)) {
            self.resume(direction, length, names, emit);
        }
        let Connection { order, sides, decoder, .. } = self;
        let side = &mut sides[direction as usize];
        let is_lost = match side {
            Side::Framing(framer) => {
                let (phase, order) = (framer.phase, framer.order);
                let (ended, led) = framer.skip(length, at_ns);
                let next = ended.map(|frame| take(decoder, phase, direction, &frame, (order, 0), names, emit));
                let is_lost = led.is_err();
                framer.phase = next.unwrap_or(phase);
                is_lost
            }
            Side::Resuming(rest, _) if *rest >= length => {
                *rest -= length;
                false
            }
            Side::Searching(_) | Side::New | Side::Resuming(..) => true,
            Side::Foreign => false,
        };
        if is_lost {
            *side = Side::Searching(Search::new(offset + length, order.is_some()));
            decoder.lose(direction);
        }
    }

    fn begin(&mut self, piece: &Piece<'_>) {
        let (place, other) = (piece.direction as usize, piece.direction as usize ^ 1);
        match (piece.direction, self.order) {
            (Direction::Requests, _) if is_setup(piece.bytes) => {
                self.order = piece.bytes.first().and_then(|&first| ByteOrder::of_setup(first));
                let order = self.order.unwrap_or(ByteOrder::Little);
                self.sides[place] = Side::Framing(Framer::new(Phase::Setup, order, piece.offset));
            }
            (Direction::Replies, Some(order)) => {
                self.sides[place] = Side::Framing(Framer::new(Phase::SetupReply, order, piece.offset));
            }
            // A server never sends first, so the setup was not captured.
            (Direction::Replies, None) if matches!(self.sides[other], Side::Searching(_)) => {
                self.sides[place] = Side::Searching(Search::new(piece.offset, true));
            }
            _ => self.sides = [Side::Foreign, Side::Foreign],
        }
    }

    /// Skips the rest of a message that began before the file.
    fn continue_message(&mut self, piece: &Piece<'_>, names: &mut Names, emit: &mut impl FnMut(&Message<'_>)) {
        let side = &mut self.sides[piece.direction as usize];
        let Side::Resuming(rest, phase) = side else { return };
        let passed = (*rest).min(piece.bytes.len() as u64);
        let offset = piece.offset + passed;
        *rest -= passed;
        if *rest == 0 {
            *side = Side::Framing(Framer::new(*phase, self.order.unwrap_or(ByteOrder::Little), offset));
            self.frame(&Piece { offset, bytes: &piece.bytes[passed as usize..], ..*piece }, names, emit);
        }
    }

    fn frame(&mut self, piece: &Piece<'_>, names: &mut Names, emit: &mut impl FnMut(&Message<'_>)) {
        let Connection { sides, decoder, .. } = self;
        let Side::Framing(framer) = &mut sides[piece.direction as usize] else { return };
        let (phase, order) = (framer.phase, framer.order);
        let mut input = piece.bytes;
        let lost = loop {
            match framer.next(piece.at_ns, &mut input) {
                Ok(Some(frame)) => {
                    let next = take(decoder, phase, piece.direction, &frame, (order, piece.acknowledged), names, emit);
                    if next != phase {
                        framer.phase = next;
                        break None;
                    }
                }
                Ok(None) => return,
                Err(OutOfSync) => break Some(framer.offset),
            }
        };
        let offset = piece.offset + (piece.bytes.len() - input.len()) as u64;
        let rest = Piece { offset, bytes: input, ..*piece };
        match lost {
            // The phase changed, and with it the length encoding.
            None => self.frame(&rest, names, emit),
            Some(offset) => self.lose(&Piece { offset, ..rest }, names, emit),
        }
    }

    /// Handles an offset at which no message can start.
    fn lose(&mut self, piece: &Piece<'_>, names: &mut Names, emit: &mut impl FnMut(&Message<'_>)) {
        self.decoder.lose(piece.direction);
        self.sides[piece.direction as usize] = Side::Searching(Search::new(piece.offset, true));
        // No message starts at the offset where framing failed.
        let Some(rest) = piece.bytes.get(4..) else { return };
        self.skipped_bytes += 4;
        self.search(&Piece { offset: piece.offset + 4, bytes: rest, ..*piece }, names, emit);
    }

    fn search(&mut self, piece: &Piece<'_>, names: &mut Names, emit: &mut impl FnMut(&Message<'_>)) {
        self.skipped_bytes += piece.bytes.len() as u64;
        let place = piece.direction as usize;
        let Side::Searching(search) = &mut self.sides[place] else { return };
        search.push(piece);
        self.resume(piece.direction, 0, names, emit);
    }

    /// Continues with framing if a boundary is found. `missing` bytes after the searched ones were not captured.
    fn resume(&mut self, direction: Direction, missing: u64, names: &mut Names, emit: &mut impl FnMut(&Message<'_>)) {
        let place = direction as usize;
        let Side::Searching(search) = &mut self.sides[place] else { return };
        let found = plausible::find(search, missing, direction, self.order, &self.decoder, names);
        let Some((order, offset)) = found else { return };
        self.order = Some(order);
        let framer = Framer::new(plausible::phase(direction), order, offset);
        let Side::Searching(search) = std::mem::replace(&mut self.sides[place], Side::Framing(framer)) else { return };
        for piece in search.pieces(offset) {
            self.skipped_bytes = self.skipped_bytes.saturating_sub(piece.bytes.len() as u64);
            self.push(&piece, names, emit);
        }
    }
}
