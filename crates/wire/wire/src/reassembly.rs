// SPDX-License-Identifier: MIT
//! One direction of a TCP connection: reassembles its bytes from packets in any order.
//!
//! TCP's 32-bit sequence numbers become 64-bit offsets. Early bytes are held; repeated bytes are discarded.

use std::collections::BTreeMap;

#[derive(Debug)]
pub struct EarlyBytes {
    pub at_ns: u64,
    /// Offset up to which their sender had received data in the other direction.
    pub acknowledged: u64,
    /// Length on the wire, which can exceed that of `bytes`.
    pub length: u64,
    pub bytes: Box<[u8]>,
}

#[derive(Debug, Default)]
pub struct Reassembly {
    /// Sequence number of the first byte.
    base: Option<u32>,
    /// Window scale of the receiver, as a power of two.
    pub window_scale: Option<u8>,
    /// Offset of the first byte that was not yet delivered.
    pub next: u64,
    /// Highest end offset of any packet seen.
    pub end: u64,
    /// Offset that the receiver has acknowledged.
    pub acknowledged: u64,
    /// The receiver's window, as last advertised.
    pub room: Option<u64>,
    /// Offset of a byte that probed a closed window.
    pub probed: Option<i64>,
    /// Offset of the direction's end, once known.
    pub fin: Option<u64>,
    waiting: BTreeMap<u64, EarlyBytes>,
    pub waiting_bytes: usize,
}

/// Memory overhead counted for each waiting packet, which also limits many tiny packets.
const PACKET_COSTS: usize = 128;

impl Reassembly {
    pub fn has_begun(&self) -> bool {
        self.base.is_some()
    }

    pub fn begin(&mut self, base: u32) {
        self.base = Some(base);
    }

    pub fn begins_with(&self, number: u32) -> bool {
        self.base == Some(number)
    }

    /// Sequence number of the next byte to deliver.
    pub fn next_number(&self) -> Option<u32> {
        self.base.map(|base| base.wrapping_add(self.next as u32))
    }

    /// Offset of a sequence number; negative if it is before the first byte.
    #[inline]
    pub fn offset(&self, number: u32) -> i64 {
        let end = self.base.unwrap_or(number).wrapping_add(self.end as u32);
        self.end as i64 + i64::from(number.wrapping_sub(end) as i32)
    }

    /// Records an acknowledgement and returns its offset.
    #[inline]
    pub fn acknowledge(&mut self, number: u32) -> u64 {
        let offset = self.offset(number).max(0) as u64;
        // TCP counts the FIN as a byte.
        let offset = self.fin.map_or(offset, |fin| offset.min(fin));
        self.acknowledged = self.acknowledged.max(offset);
        offset
    }

    /// True if any of these bytes was seen before.
    #[inline]
    pub fn has_seen(&self, offset: i64, length: u64) -> bool {
        let end = offset + length as i64;
        if length == 0 || offset >= self.end as i64 {
            return false;
        }
        let overlaps = |(&at, waiting): (&u64, &EarlyBytes)| at as i64 + waiting.length as i64 > offset;
        offset < self.next as i64 || self.waiting.range(..end.max(0) as u64).next_back().is_some_and(overlaps)
    }

    /// True for a packet that counts as empty: a keep-alive (no byte, or the last byte again after its acknowledgement)
    /// or a window probe (only the next byte, while the window is closed).
    pub fn is_probe(&self, offset: i64, length: u64) -> bool {
        let end = self.end as i64;
        let is_keep_alive = length <= 1 && offset + 1 == end && self.acknowledged >= self.end;
        let is_next_alone = length == 1 && (offset == end || offset + 1 == end && self.probed == Some(offset));
        is_keep_alive || is_next_alone && self.room == Some(0)
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// True if the receiver has acknowledged bytes that are missing from the capture.
    #[inline]
    pub fn has_acknowledged_hole(&self) -> bool {
        self.acknowledged > self.next && self.first_waiting().is_none_or(|at| at > self.next)
    }

    pub fn first_waiting(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|(&at, _)| at)
    }

    /// Keeps bytes for later. If two pieces have the same offset, the longer one is kept.
    pub fn keep(&mut self, offset: u64, piece: EarlyBytes) {
        if self.waiting.get(&offset).is_some_and(|old| old.length >= piece.length) {
            return;
        }
        self.waiting_bytes += piece.bytes.len() + PACKET_COSTS;
        if let Some(old) = self.waiting.insert(offset, piece) {
            self.waiting_bytes -= old.bytes.len() + PACKET_COSTS;
        }
    }

    /// Removes and returns the first waiting piece, if nothing before it is missing in either direction.
    pub fn take_ready(&mut self, received_of_other: u64) -> Option<(u64, EarlyBytes)> {
        let first = self.waiting.first_entry()?;
        if *first.key() > self.next || first.get().acknowledged > received_of_other {
            return None;
        }
        self.take_first()
    }

    /// Removes and returns the first waiting piece, even if bytes before it are missing.
    pub fn take_first(&mut self) -> Option<(u64, EarlyBytes)> {
        let (offset, piece) = self.waiting.pop_first()?;
        self.waiting_bytes -= piece.bytes.len() + PACKET_COSTS;
        Some((offset, piece))
    }
}
