// SPDX-License-Identifier: MIT
//! Reassembles both directions of a TCP connection. Handles retransmitted, reordered and lost packets, sequence numbers
//! that wrap, and connections joined midway.
//!
//! Bytes are delivered in stream order, and only after all bytes in the other direction that their sender had received.
//! A reply therefore follows its request, even if the capture has them in reverse order.
//!
//! | a hole in a direction | action |
//! |---|---|
//! | no acknowledgement beyond it | wait for the retransmission, as the receiver does |
//! | acknowledged | report a gap after [`PATIENCE_PACKETS`] packets or [`PATIENCE_NS`]: the capture lacks the bytes |
//! | too many bytes wait after it | report a gap |
//! | the connection or the capture ends | report a gap |
//!
//! Keep-alives and window probes count as empty, even if they carry a byte. They do not make an idle connection busy.

use crate::frame::Segment;
use crate::observe::{Direction, Packet, Piece};
use crate::reassembly::{EarlyBytes, Reassembly};

/// Captures from multi-queue network cards reorder packets, by at most this many positions.
const PATIENCE_PACKETS: u32 = 16;
const PATIENCE_NS: u64 = 50_000_000;

#[derive(Debug)]
pub struct Stream {
    directions: [Reassembly; 2],
    started_midstream: bool,
    /// Time at which an acknowledged hole was first seen, and the number of packets since.
    hole: Option<(u64, u32)>,
}

impl Stream {
    pub fn new(started_midstream: bool) -> Stream {
        Stream { directions: Default::default(), started_midstream, hole: None }
    }

    /// Continues before the bytes with these TCP sequence numbers.
    pub fn resume(next: [u32; 2]) -> Stream {
        let mut stream = Stream::new(true);
        stream.directions.iter_mut().zip(next).for_each(|(own, next)| own.begin(next));
        stream
    }

    pub fn next_numbers(&self) -> Option<[u32; 2]> {
        let [requests, replies] = &self.directions;
        Some([requests.next_number()?, replies.next_number()?])
    }

    /// True if a SYN starts another connection between the same ports.
    pub fn is_reused_by(&self, direction: Direction, segment: &Segment<'_>) -> bool {
        let own = &self.directions[direction as usize];
        segment.is_syn
            && (self.started_midstream || own.has_begun() && !own.begins_with(segment.sequence.wrapping_add(1)))
    }

    /// True if both directions have ended and were delivered completely.
    pub fn is_finished(&self) -> bool {
        self.directions.iter().all(|own| own.fin.is_some_and(|fin| own.next >= fin))
    }

    /// Updates the TCP state and returns the packet for observers.
    #[inline]
    pub fn note(&mut self, direction: Direction, at_ns: u64, segment: &Segment<'_>) -> Packet {
        let (own, other) = direction.own_and_other(&mut self.directions);
        // A SYN takes one sequence number, before the first byte.
        let first = segment.sequence.wrapping_add(u32::from(segment.is_syn));
        let is_first = !own.has_begun();
        if is_first {
            own.begin(first);
        }
        if segment.is_syn {
            own.window_scale = segment.window_scale;
        }
        let acknowledged = match segment.acknowledgement {
            Some(number) if !other.has_begun() => {
                other.begin(number);
                0
            }
            Some(number) => other.acknowledge(number),
            None => other.acknowledged,
        };
        let (offset, length) = (own.offset(first), u64::from(segment.length));
        let is_old_end = segment.is_syn && !is_first || segment.is_fin && own.fin.is_some();
        let is_control = segment.is_syn || segment.is_fin || segment.is_reset;
        let is_probe = !is_control && own.is_probe(offset, length);
        // A byte that probed a closed window is sent again with the data after it.
        let probed = u64::from(own.probed == Some(offset) && length > 1);
        let is_repeated = own.has_seen(offset + probed as i64, length - probed);
        let is_retransmission = is_repeated && !is_probe || is_old_end;
        let end = (offset + length as i64).max(0) as u64;
        if is_probe && end > own.end {
            own.probed = Some(offset);
        }
        own.end = own.end.max(end);
        if segment.is_fin {
            own.fin.get_or_insert(end);
        }
        // Windows are scaled only if both SYNs had the option, and never in a SYN.
        let scale = if segment.is_syn { None } else { own.window_scale.and(other.window_scale).and(own.window_scale) };
        let window = u64::from(segment.window) << scale.unwrap_or(0);
        other.room = Some(window);
        Packet {
            direction,
            at_ns,
            offset: offset.max(0) as u64,
            length: if is_probe { 0 } else { segment.length },
            acknowledged,
            window,
            is_retransmission,
            is_control,
        }
    }

    /// Delivers the packet's bytes, and later ones that waited for them (at most `max_waiting` per direction).
    #[inline]
    pub fn deliver(
        &mut self,
        direction: Direction,
        at_ns: u64,
        segment: &Segment<'_>,
        max_waiting: usize,
        take: &mut impl FnMut(&Piece<'_>),
    ) {
        let is_idle = !self.directions.iter().any(Reassembly::is_waiting);
        let (own, other) = direction.own_and_other(&mut self.directions);
        let first = segment.sequence.wrapping_add(u32::from(segment.is_syn));
        let offset = own.offset(first);
        let bytes_before = (own.next as i64 - offset).max(0) as u64;
        let acknowledged = if segment.acknowledgement.is_some() { other.acknowledged } else { 0 };
        if u64::from(segment.length) > bytes_before {
            let cut = segment.bytes.get(bytes_before as usize..).unwrap_or_default();
            let length = u64::from(segment.length) - bytes_before;
            let offset = (offset + bytes_before as i64) as u64;
            if is_idle && offset == own.next && acknowledged <= other.next {
                own.next += length;
                let missing = length - cut.len() as u64;
                take(&Piece { direction, at_ns, offset, acknowledged, bytes: cut, missing });
            } else {
                own.keep(offset, EarlyBytes { at_ns, acknowledged, length, bytes: cut.into() });
            }
        }
        if !is_idle || self.needs_settling() {
            self.settle(at_ns, max_waiting, take);
        }
    }

    /// Delivers all waiting bytes, and gaps for the missing ones.
    pub fn finish(&mut self, at_ns: u64, take: &mut impl FnMut(&Piece<'_>)) {
        self.deliver_ready(take);
        while self.skip_hole(at_ns, take) {
            self.deliver_ready(take);
        }
    }

    #[inline]
    fn needs_settling(&self) -> bool {
        self.directions.iter().any(|own| own.is_waiting() || own.has_acknowledged_hole())
    }

    fn settle(&mut self, at_ns: u64, max_waiting: usize, take: &mut impl FnMut(&Piece<'_>)) {
        self.deliver_ready(take);
        while self.has_waited_too_long(at_ns, max_waiting) && self.skip_hole(at_ns, take) {
            self.deliver_ready(take);
        }
    }

    fn deliver_ready(&mut self, take: &mut impl FnMut(&Piece<'_>)) {
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for direction in Direction::BOTH {
                let (own, other) = direction.own_and_other(&mut self.directions);
                while let Some((offset, piece)) = own.take_ready(other.next) {
                    emit(own, direction, offset, &piece, take);
                    goes_on = true;
                }
            }
        }
    }

    /// Updates the age of an acknowledged hole. Returns true if it is time to skip a hole.
    fn has_waited_too_long(&mut self, at_ns: u64, max_waiting: usize) -> bool {
        if self.directions.iter().any(|own| own.waiting_bytes > max_waiting) {
            return true;
        }
        if !self.directions.iter().any(Reassembly::has_acknowledged_hole) {
            self.hole = None;
            return false;
        }
        let (since_ns, packets) = self.hole.get_or_insert((at_ns, 0));
        *packets += 1;
        *packets > PATIENCE_PACKETS || at_ns.saturating_sub(*since_ns) > PATIENCE_NS
    }

    /// Skips one hole, preferably one that no retransmission will fill. Returns false if nothing waits.
    fn skip_hole(&mut self, at_ns: u64, take: &mut impl FnMut(&Piece<'_>)) -> bool {
        self.hole = None;
        let is_hole_before_waiting = |own: &Reassembly| own.first_waiting().is_some_and(|first| first > own.next);
        let find = |is: &dyn Fn(&Reassembly) -> bool| {
            Direction::BOTH.into_iter().find(|&direction| is(&self.directions[direction as usize]))
        };
        let waiting = find(&Reassembly::is_waiting);
        if let Some(direction) = find(&Reassembly::has_acknowledged_hole).or_else(|| find(&is_hole_before_waiting)) {
            let own = &mut self.directions[direction as usize];
            let acknowledged = Some(own.acknowledged).filter(|&end| end > own.next);
            let end = acknowledged.into_iter().chain(own.first_waiting()).min().unwrap_or(own.next);
            let offset = std::mem::replace(&mut own.next, end);
            take(&Piece { direction, at_ns, offset, acknowledged: 0, bytes: &[], missing: end - offset });
            return true;
        }
        // The remaining bytes wait only for bytes in the other direction that will not arrive.
        let Some(direction) = waiting else { return false };
        let own = &mut self.directions[direction as usize];
        if let Some((offset, piece)) = own.take_first() {
            emit(own, direction, offset, &piece, take);
        }
        true
    }
}

/// Delivers the bytes of a waiting piece that were not delivered before.
fn emit(own: &mut Reassembly, direction: Direction, at: u64, piece: &EarlyBytes, take: &mut impl FnMut(&Piece<'_>)) {
    let Some(length) = (at + piece.length).checked_sub(own.next).filter(|&length| length > 0) else { return };
    let bytes = piece.bytes.get((piece.length - length) as usize..).unwrap_or_default();
    let (at_ns, acknowledged, offset) = (piece.at_ns, piece.acknowledged, own.next);
    own.next += length;
    take(&Piece { direction, at_ns, offset, acknowledged, bytes, missing: length - bytes.len() as u64 });
}
