// SPDX-License-Identifier: MIT
//! One direction of a TCP connection: its bytes in order, whatever order, number or state its packets came in.
//!
//! TCP's 32-bit numbers become offsets of 64 bits. What comes early waits, what comes again is cut off.

use std::collections::BTreeMap;

/// Bytes that came before their turn.
#[derive(Debug)]
pub struct Waiting {
    pub at_ns: u64,
    /// Of the other direction, as its sender had received.
    pub acknowledged: u64,
    /// On the wire; more than were captured of a packet that was cut off.
    pub length: u64,
    pub bytes: Box<[u8]>,
}

/// A direction.
#[derive(Debug, Default)]
pub struct Half {
    /// The number of the first byte.
    base: Option<u32>,
    /// What the receiver has left to the network, as a power of two.
    pub window_scale: Option<u8>,
    /// The first byte that was not handed on.
    pub next: u64,
    /// One after the last byte that any packet had.
    pub end: u64,
    /// What the other side says that it has.
    pub acknowledged: u64,
    /// How many more bytes it said last that it takes.
    pub room: Option<u64>,
    /// Where a byte was tried on a closed window.
    pub tried: Option<i64>,
    /// Where the direction ends, once that was said.
    pub fin: Option<u64>,
    waiting: BTreeMap<u64, Waiting>,
    waiting_bytes: usize,
}

/// Costs of a waiting packet besides its bytes, so that many tiny ones are limited too.
const PACKET_COSTS: usize = 128;

impl Half {
    pub fn has_begun(&self) -> bool {
        self.base.is_some()
    }

    /// Sets the number of the first byte.
    pub fn begin(&mut self, base: u32) {
        self.base = Some(base);
    }

    /// Whether this is the number of the first byte.
    pub fn begins_with(&self, number: u32) -> bool {
        self.base == Some(number)
    }

    /// The offset of a number; negative if it lies before what was seen first.
    #[inline]
    pub fn offset(&self, number: u32) -> i64 {
        let end = self.base.unwrap_or(number).wrapping_add(self.end as u32);
        self.end as i64 + i64::from(number.wrapping_sub(end) as i32)
    }

    /// Takes notice of an acknowledgement.
    #[inline]
    pub fn acknowledge(&mut self, number: u32) -> u64 {
        let offset = self.offset(number).max(0) as u64;
        // The end of the direction counts as a byte, to TCP.
        let offset = self.fin.map_or(offset, |fin| offset.min(fin));
        self.acknowledged = self.acknowledged.max(offset);
        offset
    }

    /// Whether any of these bytes came before.
    #[inline]
    pub fn has_seen(&self, offset: i64, length: u64) -> bool {
        let end = offset + length as i64;
        if length == 0 || offset >= self.end as i64 {
            return false;
        }
        let overlaps = |(&at, waiting): (&u64, &Waiting)| at as i64 + waiting.length as i64 > offset;
        offset < self.next as i64 || self.waiting.range(..end.max(0) as u64).next_back().is_some_and(overlaps)
    }

    /// Whether a packet only asks if somebody is there, or takes more: a keep-alive, which has no byte or any byte in the
    /// place of the last one that was acknowledged, or the next byte alone while the window is closed.
    pub fn is_probe(&self, offset: i64, length: u64) -> bool {
        let end = self.end as i64;
        let is_keep_alive = length <= 1 && offset + 1 == end && self.acknowledged >= self.end;
        let is_next_alone = length == 1 && (offset == end || offset + 1 == end && self.tried == Some(offset));
        is_keep_alive || is_next_alone && self.room == Some(0)
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Whether the other side has bytes that no packet brought.
    #[inline]
    pub fn has_acknowledged_hole(&self) -> bool {
        self.acknowledged > self.next && self.first_waiting().is_none_or(|at| at > self.next)
    }

    pub fn first_waiting(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|(&at, _)| at)
    }

    /// Keeps bytes for later; of two with one beginning, the longer.
    pub fn keep(&mut self, offset: u64, piece: Waiting) {
        if self.waiting.get(&offset).is_some_and(|old| old.length >= piece.length) {
            return;
        }
        self.waiting_bytes += piece.bytes.len() + PACKET_COSTS;
        if let Some(old) = self.waiting.insert(offset, piece) {
            self.waiting_bytes -= old.bytes.len() + PACKET_COSTS;
        }
    }

    /// The first piece that waits, if its turn has come.
    pub fn take_due(&mut self, received_of_other: u64) -> Option<(u64, Waiting)> {
        let first = self.waiting.first_entry()?;
        if *first.key() > self.next || first.get().acknowledged > received_of_other {
            return None;
        }
        self.take_first()
    }

    /// The first piece that waits, whatever it waits for.
    pub fn take_first(&mut self) -> Option<(u64, Waiting)> {
        let (offset, piece) = self.waiting.pop_first()?;
        self.waiting_bytes -= piece.bytes.len() + PACKET_COSTS;
        Some((offset, piece))
    }
}
