// SPDX-License-Identifier: MIT
//! Reassembles both directions of a TCP connection: retransmitted, reordered and lost packets, sequence numbers that
//! wrap, connections joined midway.
//!
//! Bytes are delivered in stream order, and never before bytes of the other direction that their sender had received. A
//! reply therefore follows its request, even if the capture has them the other way round.
//!
//! | a hole in a direction | action |
//! |---|---|
//! | no acknowledgement beyond it | wait for the retransmission, as the receiver does |
//! | acknowledged | it is missing from the capture: a gap, after [`PATIENCE_PACKETS`] packets or [`PATIENCE_NS`] |
//! | too many bytes wait after it | a gap |
//! | the connection or the capture ends | a gap |
//!
//! Keep-alives and window probes count as empty, even if they carry a byte. An idle connection thus stays idle.

use crate::frame::Segment;
use crate::half::{Half, Waiting};
use crate::observe::{Direction, Packet};

/// Captures of multi-queue network cards have packets out of order, by at most this many.
const PATIENCE_PACKETS: u32 = 16;
const PATIENCE_NS: u64 = 50_000_000;

/// Bytes of a stream in order, followed by a gap if bytes are missing.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub direction: Direction,
    pub at_ns: u64,
    pub offset: u64,
    /// Bytes of the other direction that its sender had received.
    pub acknowledged: u64,
    pub bytes: &'a [u8],
    /// Bytes after these that are missing from the capture.
    pub missing: u64,
}

/// Reassembly state of a connection.
#[derive(Debug)]
pub struct Stream {
    /// Indexed by direction.
    halves: [Half; 2],
    started_midstream: bool,
    /// When an acknowledged hole was first seen, and the number of packets since.
    hole: Option<(u64, u32)>,
}

impl Stream {
    /// Starts with the first packet seen.
    pub fn new(started_midstream: bool) -> Stream {
        Stream { halves: Default::default(), started_midstream, hole: None }
    }

    /// True if a SYN starts another connection between the same ports.
    pub fn is_reused_by(&self, direction: Direction, segment: &Segment<'_>) -> bool {
        let half = &self.halves[direction as usize];
        segment.is_syn
            && (self.started_midstream || half.has_begun() && !half.begins_with(segment.sequence.wrapping_add(1)))
    }

    /// True if both directions have ended and were delivered completely.
    pub fn is_finished(&self) -> bool {
        self.halves.iter().all(|half| half.fin.is_some_and(|fin| half.next >= fin))
    }

    /// Updates the TCP state and returns the packet for observers.
    #[inline]
    pub fn note(&mut self, direction: Direction, at_ns: u64, segment: &Segment<'_>) -> Packet {
        let (half, other) = direction.own_and_other(&mut self.halves);
        // A SYN takes one sequence number, before the first byte.
        let first = segment.sequence.wrapping_add(u32::from(segment.is_syn));
        let is_first = !half.has_begun();
        if is_first {
            half.begin(first);
        }
        if segment.is_syn {
            half.window_scale = segment.window_scale;
        }
        let acknowledged = match segment.acknowledgement {
            Some(number) if !other.has_begun() => {
                other.begin(number);
                0
            }
            Some(number) => other.acknowledge(number),
            None => other.acknowledged,
        };
        let (offset, length) = (half.offset(first), u64::from(segment.length));
        let is_old_end = segment.is_syn && !is_first || segment.is_fin && half.fin.is_some();
        let is_control = segment.is_syn || segment.is_fin || segment.is_reset;
        let is_probe = !is_control && half.is_probe(offset, length);
        // A byte that probed a closed window is sent again with the data after it.
        let tried = u64::from(half.tried == Some(offset) && length > 1);
        let is_again = half.has_seen(offset + tried as i64, length - tried);
        let is_retransmission = is_again && !is_probe || is_old_end;
        let end = (offset + length as i64).max(0) as u64;
        if is_probe && end > half.end {
            half.tried = Some(offset);
        }
        half.end = half.end.max(end);
        if segment.is_fin {
            half.fin.get_or_insert(end);
        }
        // Windows are scaled only if both SYNs had the option, and never in a SYN.
        let scale =
            if segment.is_syn { None } else { half.window_scale.and(other.window_scale).and(half.window_scale) };
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

    /// Delivers the packet's bytes, and later ones that waited for them. `max_waiting`: maximum bytes that wait per
    /// direction.
    #[inline]
    pub fn deliver(
        &mut self,
        direction: Direction,
        at_ns: u64,
        segment: &Segment<'_>,
        max_waiting: usize,
        take: &mut impl FnMut(&Piece<'_>),
    ) {
        let is_calm = !self.halves.iter().any(Half::is_waiting);
        let (half, other) = direction.own_and_other(&mut self.halves);
        let first = segment.sequence.wrapping_add(u32::from(segment.is_syn));
        let offset = half.offset(first);
        let bytes_before = (half.next as i64 - offset).max(0) as u64;
        let acknowledged = if segment.acknowledgement.is_some() { other.acknowledged } else { 0 };
        if u64::from(segment.length) > bytes_before {
            let cut = segment.bytes.get(bytes_before as usize..).unwrap_or_default();
            let length = u64::from(segment.length) - bytes_before;
            let offset = (offset + bytes_before as i64) as u64;
            if is_calm && offset == half.next && acknowledged <= other.next {
                half.next += length;
                let missing = length - cut.len() as u64;
                take(&Piece { direction, at_ns, offset, acknowledged, bytes: cut, missing });
            } else {
                half.keep(offset, Waiting { at_ns, acknowledged, length, bytes: cut.into() });
            }
        }
        if !is_calm || self.needs_settling() {
            self.settle(at_ns, max_waiting, take);
        }
    }

    /// Delivers all waiting bytes, with gaps for what is missing.
    pub fn finish(&mut self, at_ns: u64, take: &mut impl FnMut(&Piece<'_>)) {
        self.hand_on_due(take);
        while self.skip_hole(at_ns, take) {
            self.hand_on_due(take);
        }
    }

    #[inline]
    fn needs_settling(&self) -> bool {
        self.halves.iter().any(|half| half.is_waiting() || half.has_acknowledged_hole())
    }

    fn settle(&mut self, at_ns: u64, max_waiting: usize, take: &mut impl FnMut(&Piece<'_>)) {
        self.hand_on_due(take);
        while self.has_waited_too_long(at_ns, max_waiting) && self.skip_hole(at_ns, take) {
            self.hand_on_due(take);
        }
    }

    fn hand_on_due(&mut self, take: &mut impl FnMut(&Piece<'_>)) {
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for direction in Direction::BOTH {
                let (half, other) = direction.own_and_other(&mut self.halves);
                while let Some((offset, piece)) = half.take_due(other.next) {
                    hand_on(half, direction, offset, &piece, take);
                    goes_on = true;
                }
            }
        }
    }

    /// Updates the age of an acknowledged hole. Returns true if it is time to skip a hole.
    fn has_waited_too_long(&mut self, at_ns: u64, max_waiting: usize) -> bool {
        if self.halves.iter().any(|half| half.waiting_bytes() > max_waiting) {
            return true;
        }
        if !self.halves.iter().any(Half::has_acknowledged_hole) {
            self.hole = None;
            return false;
        }
        let (since_ns, packets) = self.hole.get_or_insert((at_ns, 0));
        *packets += 1;
        *packets > PATIENCE_PACKETS || at_ns.saturating_sub(*since_ns) > PATIENCE_NS
    }

    /// Skips one hole, first one that no retransmission will fill. Returns false if nothing waits.
    fn skip_hole(&mut self, at_ns: u64, take: &mut impl FnMut(&Piece<'_>)) -> bool {
        self.hole = None;
        let is_hole_before_waiting = |half: &Half| half.first_waiting().is_some_and(|first| first > half.next);
        let find = |is: &dyn Fn(&Half) -> bool| {
            Direction::BOTH.into_iter().find(|&direction| is(&self.halves[direction as usize]))
        };
        let waiting = find(&Half::is_waiting);
        if let Some(direction) = find(&Half::has_acknowledged_hole).or_else(|| find(&is_hole_before_waiting)) {
            let half = &mut self.halves[direction as usize];
            let acknowledged = Some(half.acknowledged).filter(|&end| end > half.next);
            let end = acknowledged.into_iter().chain(half.first_waiting()).min().unwrap_or(half.next);
            let offset = std::mem::replace(&mut half.next, end);
            take(&Piece { direction, at_ns, offset, acknowledged: 0, bytes: &[], missing: end - offset });
            return true;
        }
        // The rest waits only for bytes of the other direction that will not arrive.
        let Some(direction) = waiting else { return false };
        let half = &mut self.halves[direction as usize];
        if let Some((offset, piece)) = half.take_first() {
            hand_on(half, direction, offset, &piece, take);
        }
        true
    }
}

/// Delivers the new bytes of a piece that waited.
fn hand_on(half: &mut Half, direction: Direction, offset: u64, piece: &Waiting, take: &mut impl FnMut(&Piece<'_>)) {
    let Some(length) = (offset + piece.length).checked_sub(half.next).filter(|&length| length > 0) else { return };
    let bytes = piece.bytes.get((piece.length - length) as usize..).unwrap_or_default();
    let (at_ns, acknowledged, offset) = (piece.at_ns, piece.acknowledged, half.next);
    half.next += length;
    take(&Piece { direction, at_ns, offset, acknowledged, bytes, missing: length - bytes.len() as u64 });
}
