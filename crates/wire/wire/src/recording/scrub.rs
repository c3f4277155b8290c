// SPDX-License-Identifier: MIT
//! Overwrites confidential bytes with zeros. Packets keep their sizes and times.
//!
//! Only a complete message shows which of its bytes are confidential. Packets therefore wait until all their messages
//! are complete, and then leave in order. A session reports the messages to the scrubber. Stream offsets locate the
//! confidential bytes in the packets, including retransmitted ones.
//!
//! | bytes | action |
//! |---|---|
//! | in a complete message | overwrite the range that the rules name (`secret`) |
//! | that cannot be decoded: after a gap, or at the start of a connection joined midway | overwrite all |
//! | in a message that never ends, or exceeds the waiting limit | overwrite all but its head |
//! | on connections that are not X | overwrite all |
//! | in packets other than TCP | omit the packet and count it |
//! | with a program's name | omit |
//!
//! The authorization cookie is always overwritten. With [`Extent::Cookie`], no other bytes are overwritten.

mod secret;

use crate::capture::{KeptRecord, Record};
use crate::frame::{Frame, parse};
use crate::observe::{ConnectionId, Direction, Ending, Message, Observer, Opened, Packet};
use secret::HEAD_BYTES;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Maximum bytes of packets that wait for the end of their messages: four of the longest requests.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// Memory overhead per packet.
const PACKET_COSTS: usize = 128;
/// Confidential ranges remembered per direction, for retransmitted packets.
const MAX_MARKS: usize = 1 << 14;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Only authorization data.
    #[default]
    Cookie,
    /// Authorization data, text, keys and pixels.
    All,
}

/// Overwrites confidential bytes of packets and passes them on. Its session must take each packet first.
#[derive(Debug, Default)]
pub struct Scrubber {
    extent: Extent,
    connections: HashMap<ConnectionId, [DirectionMarks; 2]>,
    /// Ended connections, which are kept while packets wait.
    ended: Vec<ConnectionId>,
    /// Stream position of the packet that the session took last.
    position: Option<(ConnectionId, Packet)>,
    waiting: VecDeque<WaitingPacket>,
    waiting_bytes: usize,
    /// Packets that are not TCP.
    pub left_out: u64,
    /// Packets passed on before their messages were complete, because too many waited.
    pub given_up: u64,
}

#[derive(Debug, Default)]
struct DirectionMarks {
    /// Stream offset up to which all confidential bytes are known.
    decided: u64,
    /// True if a message ends at `decided`, so that the next one starts there.
    is_boundary: bool,
    /// Confidential ranges, in order and disjoint.
    secrets: VecDeque<Range<u64>>,
    /// Ranges before this offset are no longer remembered.
    forgotten: u64,
}

#[derive(Debug)]
struct WaitingPacket {
    /// With [`Extent::All`], it lacks the program's name.
    packet: KeptRecord,
    /// Range of the TCP payload in its bytes.
    payload: Range<usize>,
    position: Option<(ConnectionId, Direction, u64)>,
}

impl Observer for Scrubber {
    fn opened(&mut self, id: ConnectionId, opened: &Opened) {
        // The cookie can only be in the client's first message.
        let open = || DirectionMarks { decided: u64::MAX, ..DirectionMarks::default() };
        let directions = match self.extent {
            Extent::All => <[DirectionMarks; 2]>::default(),
            Extent::Cookie if opened.started_midstream => [open(), open()],
            Extent::Cookie => [DirectionMarks::default(), open()],
        };
        self.connections.insert(id, directions);
    }

    fn packet(&mut self, id: ConnectionId, packet: &Packet) {
        self.position = Some((id, *packet));
    }

    fn copy(&mut self, id: ConnectionId, packet: &Packet) {
        self.packet(id, packet);
    }

    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        let Some(directions) = self.connections.get_mut(&id) else { return };
        let direction = message.kind.direction();
        let own = &mut directions[direction as usize];
        let found = match self.extent {
            Extent::All => secret::secret(message),
            Extent::Cookie => secret::cookie(message),
        };
        own.take(message.offset, message.length, found);
        if self.extent == Extent::Cookie && direction == Direction::Requests {
            own.decided = u64::MAX;
        }
    }

    /// Nothing more of the connection will be decoded.
    fn ended(&mut self, id: ConnectionId, _: u64, _: Ending) {
        for own in self.connections.get_mut(&id).into_iter().flatten() {
            own.give_up(u64::MAX);
        }
        self.ended.push(id);
    }
}

impl DirectionMarks {
    /// Takes a complete message; `found` is its confidential range.
    fn take(&mut self, offset: u64, length: u64, found: Option<Range<u64>>) {
        let end = offset.saturating_add(length);
        if offset > self.decided {
            self.hide(self.decided..offset);
        }
        if let Some(found) = found {
            let position = |at: u64| offset.saturating_add(at).min(end);
            self.hide(position(found.start).max(self.decided)..position(found.end));
        }
        if end > self.decided {
            self.decided = end;
            self.is_boundary = true;
        }
    }

    /// Stops waiting for bytes up to `end`. Keeps the head of a started message, which readers need to frame it.
    fn give_up(&mut self, end: u64) {
        if end > self.decided {
            let head = if self.is_boundary { HEAD_BYTES } else { 0 };
            self.hide(self.decided.saturating_add(head)..end);
            self.decided = end;
            self.is_boundary = false;
        }
    }

    fn hide(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        match self.secrets.back_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => self.secrets.push_back(range),
        }
        if self.secrets.len() > MAX_MARKS {
            self.forgotten = self.secrets.pop_front().map_or(0, |first| first.end);
        }
    }

    fn is_clear(&self, range: Range<u64>) -> bool {
        let next = self.secrets.partition_point(|secret| secret.end <= range.start);
        let overlaps = self.secrets.get(next).is_some_and(|secret| secret.start < range.end);
        range.is_empty() || self.decided >= range.end && self.forgotten <= range.start && !overlaps
    }

    /// Overwrites the confidential bytes; `offset` is the stream offset of the first byte.
    fn blank(&self, offset: u64, bytes: &mut [u8]) {
        let end = offset + bytes.len() as u64;
        let first = self.secrets.partition_point(|range| range.end <= offset);
        let secrets = self.secrets.range(first..).take_while(|range| range.start < end);
        for range in std::iter::once(&(0..self.forgotten)).chain(secrets) {
            let from = range.start.clamp(offset, end) - offset;
            let to = range.end.clamp(offset, end) - offset;
            bytes[from as usize..to as usize].fill(0);
        }
    }
}

impl Scrubber {
    pub fn new(extent: Extent) -> Scrubber {
        Scrubber { extent, ..Scrubber::default() }
    }

    /// Takes the packet that the session took last, and passes on packets that no longer need to wait.
    pub fn take(&mut self, record: &Record<'_>, pass_on: &mut impl FnMut(&Record<'_>)) {
        let last = self.position.take();
        let position = last.map(|(id, packet)| (id, packet.direction, packet.offset));
        let Some(payload) = payload(record).or((self.extent == Extent::Cookie).then_some(0..0)) else {
            self.left_out += 1;
            return;
        };
        let is_clear = position.is_none_or(|position| self.is_clear(position, payload.len()));
        if self.extent == Extent::Cookie && is_clear && self.waiting.is_empty() {
            return pass_on(record);
        }
        let program = record.program.filter(|_| self.extent == Extent::Cookie);
        let packet = KeptRecord::new(&Record { program, ..*record });
        let mut waiting = WaitingPacket { packet, payload, position };
        // Bytes sent before the capture's start have no offset. Connections other than X have no messages.
        let is_from_before = last.is_some_and(|(_, packet)| packet.is_retransmission && packet.offset == 0);
        if is_from_before || self.extent == Extent::All && last.is_none() {
            waiting.blank();
        }
        self.waiting_bytes += waiting.packet.bytes.len() + PACKET_COSTS;
        self.waiting.push_back(waiting);
        self.pass_on_decided(pass_on);
        while self.waiting_bytes > MAX_WAITING_BYTES {
            self.given_up += 1;
            self.give_up_first();
            self.pass_on_decided(pass_on);
        }
    }

    /// Passes on all waiting packets at the end of a file.
    pub fn finish(&mut self, pass_on: &mut impl FnMut(&Record<'_>)) {
        while !self.waiting.is_empty() {
            self.give_up_first();
            self.pass_on_decided(pass_on);
        }
    }

    /// True if none of these bytes is confidential.
    fn is_clear(&self, (id, direction, offset): (ConnectionId, Direction, u64), length: usize) -> bool {
        let end = offset + length as u64;
        self.connections.get(&id).is_none_or(|directions| directions[direction as usize].is_clear(offset..end))
    }

    fn give_up_first(&mut self) {
        let Some(first) = self.waiting.front() else { return };
        let Some((id, direction, offset)) = first.position else { return };
        let Some(directions) = self.connections.get_mut(&id) else { return };
        directions[direction as usize].give_up(offset + first.payload.len() as u64);
    }

    fn pass_on_decided(&mut self, pass_on: &mut impl FnMut(&Record<'_>)) {
        while let Some(first) = self.waiting.front_mut() {
            if !first.settle(&self.connections) {
                return;
            }
            pass_on(&first.packet.record());
            self.waiting_bytes -= first.packet.bytes.len() + PACKET_COSTS;
            self.waiting.pop_front();
        }
        for id in self.ended.drain(..) {
            self.connections.remove(&id);
        }
    }
}

impl WaitingPacket {
    fn blank(&mut self) {
        self.packet.bytes[self.payload.clone()].fill(0);
    }

    /// Overwrites the confidential bytes, if all of them are known. Returns whether they are.
    fn settle(&mut self, connections: &HashMap<ConnectionId, [DirectionMarks; 2]>) -> bool {
        let Some((id, direction, offset)) = self.position else { return true };
        let Some(directions) = connections.get(&id) else { return true };
        let own = &directions[direction as usize];
        let is_decided = self.payload.is_empty() || own.decided >= offset + self.payload.len() as u64;
        if is_decided {
            own.blank(offset, &mut self.packet.bytes[self.payload.clone()]);
        }
        is_decided
    }
}

fn payload(record: &Record<'_>) -> Option<Range<usize>> {
    let Frame::Segment(segment) = parse(record) else { return None };
    // `segment.bytes` is a subslice of `record.bytes`.
    let start = segment.bytes.as_ptr() as usize - record.bytes.as_ptr() as usize;
    Some(start..start + segment.bytes.len())
}
