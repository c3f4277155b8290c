// SPDX-License-Identifier: MIT
//! Both directions of a TCP connection: retransmitted, reordered and lost packets, numbers that wrap, beginnings that
//! were not captured.
//!
//! Bytes are handed on in the order of their direction, and never before those of the other direction that their sender
//! had received: so a reply comes after its request even where the capture has them the other way round.
//!
//! | a hole in a direction | then |
//! |---|---|
//! | no acknowledgement beyond it | it waits for the retransmission, as the receiver does |
//! | acknowledged | the capture lacks it: a gap, after [`PATIENCE_PACKETS`] packets or [`PATIENCE_NS`] |
//! | more waits behind it than may be kept | a gap |
//! | the connection or the capture ends | a gap |
//!
//! Keep-alives and probes of a closed window carry no data, whatever byte they have in them: observers are told of a
//! packet without bytes, so that an idle connection is idle.

use crate::frame::Segment;
use crate::half::{Half, Waiting};
use crate::observe::{Direction, Packet};

/// Captures of several queues have packets in wrong order; by at most this many.
const PATIENCE_PACKETS: u32 = 16;
const PATIENCE_NS: u64 = 50_000_000;

/// Bytes of a stream, or a gap in it, in order.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub direction: Direction,
    pub at_ns: u64,
    pub offset: u64,
    /// Bytes of the other direction that its sender had received.
    pub acknowledged: u64,
    pub bytes: &'a [u8],
    /// Bytes that nobody captured, after these.
    pub missing: u64,
}

/// A connection.
#[derive(Debug)]
pub struct Stream {
    /// By direction.
    halves: [Half; 2],
    started_midstream: bool,
    /// When a hole was first acknowledged, and how many packets ago.
    hole: Option<(u64, u32)>,
}

impl Stream {
    /// Begins with the first packet that was seen.
    pub fn new(started_midstream: bool) -> Stream {
        Stream { halves: Default::default(), started_midstream, hole: None }
    }

    /// Whether a SYN begins another connection between the same ports.
    pub fn is_reused_by(&self, direction: Direction, segment: &Segment<'_>) -> bool {
        let half = &self.halves[direction as usize];
        segment.is_syn
            && (self.started_midstream || half.has_begun() && !half.begins_with(segment.sequence.wrapping_add(1)))
    }

    /// Whether both directions ended, and all of them was handed on.
    pub fn is_finished(&self) -> bool {
        self.halves.iter().all(|half| half.fin.is_some_and(|fin| half.next >= fin))
    }

    /// What TCP says in a packet.
    #[inline]
    pub fn note(&mut self, direction: Direction, at_ns: u64, segment: &Segment<'_>) -> Packet {
        let (half, other) = direction.own_and_other(&mut self.halves);
        // A SYN has a number of its own, before the first byte.
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
        // A byte that was tried on a closed window goes along with what follows it.
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
        // Windows are scaled only if both sides said so, and never in a SYN.
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

    /// Hands on the packet's bytes, and those behind them that waited for it. `max_waiting`: bytes that may wait in a direction.
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

    /// Hands on all that waits, with gaps for what is missing.
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

    /// Counts how long an acknowledged hole has been there.
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

    /// Goes on behind one hole, first those that no retransmission will fill; `false` if nothing waits.
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
        // What is left waits only for bytes of the other direction, which will not come.
        let Some(direction) = waiting else { return false };
        let half = &mut self.halves[direction as usize];
        if let Some((offset, piece)) = half.take_first() {
            hand_on(half, direction, offset, &piece, take);
        }
        true
    }
}

/// Hands on what is new of a piece that waited.
fn hand_on(half: &mut Half, direction: Direction, offset: u64, piece: &Waiting, take: &mut impl FnMut(&Piece<'_>)) {
    let Some(length) = (offset + piece.length).checked_sub(half.next).filter(|&length| length > 0) else { return };
    let bytes = piece.bytes.get((piece.length - length) as usize..).unwrap_or_default();
    let (at_ns, acknowledged, offset) = (piece.at_ns, piece.acknowledged, half.next);
    half.next += length;
    take(&Piece { direction, at_ns, offset, acknowledged, bytes, missing: length - bytes.len() as u64 });
}
