// SPDX-License-Identifier: MIT
//! Decodes a framed message: its sequence number and name, and for a reply or error, the request that it answers.

use super::checkpoint::{Checkpoint, MAX_PENDING};
use super::framing::Frame;
use super::names::{Names, UNKNOWN_REQUEST, extension_of};
use super::pending::{Pending, PendingRequest};
use super::sequence::Sequence;
use super::xproto;
use crate::observe::{Direction, Kind, Message};
use std::collections::VecDeque;
use xqos_x11::ByteOrder;
use xqos_x11::codes::{ERROR, FIRST_EXTENSION, REPLY};

/// Maximum number of unanswered QueryExtension requests.
const MAX_QUERIES: usize = 64;

#[derive(Debug)]
pub struct Decoder {
    pub sequence: Sequence,
    pub pending: Pending,
    queries: VecDeque<(u64, Vec<u8>)>,
    /// True if replies were lost, so that sequence numbers may have wrapped unnoticed.
    has_lost_replies: bool,
}

impl Decoder {
    pub fn new(max_pending: usize) -> Decoder {
        let (sequence, pending) = (Sequence::default(), Pending::new(max_pending));
        Decoder { sequence, pending, queries: VecDeque::new(), has_lost_replies: false }
    }

    pub fn resume(checkpoint: &Checkpoint, max_pending: usize) -> Decoder {
        let Checkpoint { requests, answered, is_certain, .. } = *checkpoint;
        let mut decoder = Decoder::new(max_pending);
        decoder.sequence = Sequence::resume(requests, answered, is_certain);
        for &(sequence, major, minor, last_of_many) in &checkpoint.pending {
            decoder.pending.push(PendingRequest { sequence, major, minor, last_of_many, end: 0 });
        }
        let queries = checkpoint.queries.iter().take(MAX_QUERIES);
        decoder.queries = queries.map(|(sequence, name)| (*sequence, name.clone().into_bytes())).collect();
        decoder
    }

    /// Adds the numbers and the unanswered requests. `begun` has the first bytes of a request that has not ended.
    pub fn save(&self, begun: &[u8], names: &Names, checkpoint: &mut Checkpoint) {
        checkpoint.requests = self.sequence.requests;
        checkpoint.answered = self.sequence.answered;
        checkpoint.is_certain = self.sequence.certain_until().is_none();
        let pending = self.pending.iter().map(|it| (it.sequence, it.major, it.minor, it.last_of_many));
        checkpoint.pending = pending.collect();
        if let &[major, second, ..] = begun {
            let minor = if major < FIRST_EXTENSION { 0 } else { second };
            checkpoint.requests += 1;
            if names.has_reply(major, minor) != Some(false) {
                checkpoint.pending.push((checkpoint.requests, major, minor, names.last_of_many(major, minor)));
            }
        }
        let too_many = checkpoint.pending.len().saturating_sub(MAX_PENDING);
        checkpoint.pending.drain(..too_many);
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        checkpoint.queries = self.queries.iter().map(|(sequence, name)| (*sequence, text(name))).collect();
    }

    /// Records that an unknown number of messages of a direction was lost.
    pub fn lose(&mut self, direction: Direction) {
        match direction {
            Direction::Requests => self.sequence.mark_uncertain(),
            Direction::Replies => self.has_lost_replies = true,
        }
    }

    /// Takes a message. Its sender had received the other direction up to the offset `acknowledged`.
    #[inline]
    pub fn take<'a>(
        &mut self,
        direction: Direction,
        frame: &Frame<'a>,
        order: ByteOrder,
        acknowledged: u64,
        names: &'a mut Names,
    ) -> Message<'a> {
        match (direction, byte(frame, 0)) {
            (Direction::Requests, major) => self.request(major, frame, order, names),
            (Direction::Replies, REPLY) => self.reply(frame, order, acknowledged, names),
            (Direction::Replies, ERROR) => self.error(frame, order, names),
            (Direction::Replies, code) => self.event(code, frame, order, names),
        }
    }

    fn request<'a>(&mut self, major: u8, frame: &Frame<'a>, order: ByteOrder, names: &'a mut Names) -> Message<'a> {
        let sequence = self.sequence.count();
        let minor = if major < FIRST_EXTENSION { 0 } else { byte(frame, 1) };
        let has_reply = names.has_reply(major, minor);
        // An unknown request may have a reply.
        if has_reply != Some(false) {
            let (last_of_many, end) = (names.last_of_many(major, minor), frame.offset + frame.length);
            self.pending.push(PendingRequest { sequence, major, minor, last_of_many, end });
        }
        if major == xproto::QUERY_EXTENSION_REQUEST {
            self.query(sequence, frame, order);
        }
        let name = names.request(major, minor);
        let (minor, has_reply) = (u16::from(minor), has_reply == Some(true));
        Message { kind: Kind::Request, sequence, name, major, minor, has_reply, ..blank(frame, order) }
    }

    fn query(&mut self, sequence: u64, frame: &Frame<'_>, order: ByteOrder) {
        let length = usize::from(order.u16(frame.bytes, 4).unwrap_or(0));
        let Some(name) = frame.bytes.get(8..8 + length) else { return };
        if self.queries.len() >= MAX_QUERIES {
            self.queries.pop_front();
        }
        self.queries.push_back((sequence, name.to_vec()));
    }

    fn reply<'a>(
        &mut self,
        frame: &Frame<'a>,
        order: ByteOrder,
        acknowledged: u64,
        names: &'a mut Names,
    ) -> Message<'a> {
        let sequence = self.reply_sequence(order.u16(frame.bytes, 2).unwrap_or(0), acknowledged);
        let answered = self.pending.answer(sequence, byte(frame, 1));
        let (major, minor, has_reply) =
            answered.map_or((0, 0, false), |(asked, more)| (asked.major, asked.minor, more));
        if major == xproto::QUERY_EXTENSION_REQUEST {
            self.learn(sequence, frame, names);
        }
        let name = if answered.is_some() { names.request(major, minor) } else { UNKNOWN_REQUEST };
        let minor = u16::from(minor);
        Message { kind: Kind::Reply, sequence, name, major, minor, has_reply, ..blank(frame, order) }
    }

    /// Learns an extension from the reply to QueryExtension: presence, opcode, first event and error.
    fn learn(&mut self, sequence: u64, frame: &Frame<'_>, names: &mut Names) {
        while self.queries.front().is_some_and(|(asked, _)| *asked < sequence) {
            self.queries.pop_front();
        }
        let Some((_, name)) = self.queries.pop_front().filter(|(asked, _)| *asked == sequence) else { return };
        if let Some([major, first_event, first_error]) = extension_of(frame.bytes) {
            names.learn(&String::from_utf8_lossy(&name), major, first_event, first_error);
        }
    }

    fn error<'a>(&mut self, frame: &Frame<'a>, order: ByteOrder, names: &'a mut Names) -> Message<'a> {
        let sequence = self.event_sequence(order.u16(frame.bytes, 2).unwrap_or(0));
        self.pending.fail(sequence);
        let (major, minor) = (byte(frame, 10), order.u16(frame.bytes, 8).unwrap_or(0));
        let name = names.error(byte(frame, 1));
        Message { kind: Kind::Error, sequence, name, major, minor, ..blank(frame, order) }
    }

    fn event<'a>(&mut self, code: u8, frame: &Frame<'a>, order: ByteOrder, names: &'a mut Names) -> Message<'a> {
        // KeymapNotify is the only message without a sequence number.
        let sequence = match code & 0x7f {
            xproto::KEYMAP_NOTIFY_EVENT => self.sequence.answered,
            _ => self.event_sequence(order.u16(frame.bytes, 2).unwrap_or(0)),
        };
        let name = names.event(code, byte(frame, 1), order.u16(frame.bytes, 8).unwrap_or(0));
        Message { kind: Kind::Event, sequence, name, ..blank(frame, order) }
    }

    fn event_sequence(&mut self, low: u16) -> u64 {
        let sequence = self.sequence.widen(low);
        let requests_before = self.sequence.requests;
        let raised = self.sequence.answer(sequence);
        if raised > 0 {
            self.pending.raise(self.sequence.certain_until().unwrap_or(requests_before), raised);
        }
        sequence
    }

    /// Sequence number of a reply. Corrects the count of requests if the count is uncertain.
    fn reply_sequence(&mut self, low: u16, acknowledged: u64) -> u64 {
        let mut sequence = self.sequence.widen(low);
        if !self.pending.contains(sequence) && std::mem::take(&mut self.has_lost_replies) {
            let same = self.pending.iter().find(|asked| asked.sequence > sequence && asked.sequence as u16 == low);
            sequence = same.map_or(sequence, |asked| asked.sequence);
        }
        match self.sequence.certain_until() {
            Some(certain_until) if sequence > certain_until => self.settle(sequence, certain_until, acknowledged),
            _ => {}
        }
        self.sequence.answer(sequence);
        sequence
    }

    /// Raises an uncertain count: assumes a reply to the first uncertain request, if the server may have read it.
    fn settle(&mut self, sequence: u64, certain_until: u64, acknowledged: u64) {
        if self.pending.contains(sequence) {
            return self.sequence.fit();
        }
        let first = self.pending.iter().find(|asked| asked.sequence > certain_until);
        let Some(first) = first.filter(|first| first.end <= acknowledged && first.sequence < sequence) else { return };
        let by = self.sequence.raise(sequence - first.sequence);
        self.pending.raise(certain_until, by);
    }
}

/// The message of a connection setup or its answer.
pub fn setup<'a>(direction: Direction, frame: &Frame<'a>, order: ByteOrder) -> Message<'a> {
    let (kind, name) = match (direction, frame.bytes.first()) {
        (Direction::Requests, _) => (Kind::Setup, "Setup"),
        (Direction::Replies, Some(0)) => (Kind::SetupReply, "SetupFailed"),
        (Direction::Replies, Some(2)) => (Kind::SetupReply, "SetupAuthenticate"),
        (Direction::Replies, _) => (Kind::SetupReply, "SetupReply"),
    };
    Message { kind, name, ..blank(frame, order) }
}

#[inline]
fn byte(frame: &Frame<'_>, at: usize) -> u8 {
    frame.bytes.get(at).copied().unwrap_or(0)
}

/// Makes a message with only its position set.
#[inline]
fn blank<'a>(frame: &Frame<'a>, order: ByteOrder) -> Message<'a> {
    Message {
        kind: Kind::Event,
        sequence: 0,
        name: "",
        major: 0,
        minor: 0,
        has_reply: false,
        offset: frame.offset,
        length: frame.length,
        first_ns: frame.first_ns,
        last_ns: frame.last_ns,
        is_little_endian: order == ByteOrder::Little,
        bytes: frame.bytes,
    }
}
