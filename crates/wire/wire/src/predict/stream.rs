// SPDX-License-Identifier: MIT
//! Model of one direction of a TCP connection, with a sender and a receiver. It has no I/O; times are arguments.
//!
//! A [`Sender`] returns segments as far as its congestion window and the receiver's window allow. A [`Receiver`]
//! reorders them and acknowledges as Linux does: every second full segment immediately, anything else with data of the
//! other direction or after [`DELAY_NS`]. It acknowledges the first segments immediately, until the traffic turns out
//! to be requests and replies. The owner of the link reports losses to the sender one round trip later
//! ([`Sender::lost`]), as selective acknowledgements would.

use super::congestion::{Acknowledged, Congestion, SEGMENT_BYTES};
use std::collections::{BTreeMap, VecDeque};

/// IPv4 and TCP headers with timestamps.
pub const HEADER_BYTES: u32 = 52;
/// Maximum delay of an acknowledgement that waits for data.
const DELAY_NS: u64 = 40_000_000;
/// Number of first segments that are acknowledged immediately.
const QUICK: u32 = 16;
/// Initial and maximum receive window.
const WINDOW_BYTES: u64 = 64 << 10;
const MAX_WINDOW_BYTES: u64 = 6 << 20;
/// Initial estimate of the bytes per round trip.
const ROUND_BYTES: u64 = 10 * SEGMENT_BYTES;
/// Number of congestion windows that a program can write ahead of the acknowledged data.
const BUFFERED_WINDOWS: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub from: u64,
    pub bytes: u64,
}

/// What a receiver reports to the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Everything before this offset has arrived.
    pub until: u64,
    /// Number of bytes that arrived, including those after a gap.
    pub received: u64,
    /// Offset up to which the receiver's window allows data.
    pub window_end: u64,
    /// Time at which the acknowledged segment was sent.
    pub echo_ns: Option<u64>,
}

#[derive(Debug, Default)]
pub struct Sender {
    pub congestion: Congestion,
    written: u64,
    next: u64,
    acknowledged: u64,
    received: u64,
    sent: u64,
    lost: u64,
    /// The window's end as advertised by the receiver; `None` means the initial window.
    window_end: Option<u64>,
    retransmissions: VecDeque<Segment>,
    last_sent_ns: u64,
    /// Recent maximum of bytes in flight, and the end offset of the data sent by then.
    peak: (u64, u64),
}

impl Sender {
    pub fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// False if the program is blocked until more is acknowledged.
    pub fn has_room(&self) -> bool {
        self.written - self.acknowledged <= BUFFERED_WINDOWS * self.congestion.window_bytes()
    }

    pub fn poll(&mut self, now_ns: u64) -> Option<Segment> {
        if self.in_flight() == 0 && self.has_data() && self.sent > 0 {
            self.congestion.was_idle(now_ns.saturating_sub(self.last_sent_ns));
        }
        let segment = self.next_segment().filter(|segment| self.is_allowed(segment))?;
        match self.retransmissions.pop_front() {
            Some(_) => {}
            None => self.next += segment.bytes,
        }
        self.sent += segment.bytes;
        self.last_sent_ns = now_ns;
        if self.in_flight() > self.peak.0 || self.acknowledged >= self.peak.1 {
            self.peak = (self.in_flight(), self.next);
        }
        Some(segment)
    }

    /// True if there is data to send that a window does not allow yet.
    pub fn is_blocked(&self) -> bool {
        self.next_segment().is_some_and(|segment| !self.is_allowed(&segment))
    }

    pub fn acknowledge(&mut self, now_ns: u64, ack: &Acknowledgement) {
        self.window_end = Some(self.window_end().max(ack.window_end));
        if ack.received <= self.received && ack.until <= self.acknowledged {
            return;
        }
        let acknowledged = Acknowledged {
            now_ns,
            bytes: ack.received.saturating_sub(self.received),
            round_trip_ns: ack.echo_ns.map(|echo_ns| now_ns.saturating_sub(echo_ns)),
            in_flight: self.peak.0,
            until: ack.until,
            sent: self.next,
        };
        self.received = self.received.max(ack.received);
        self.acknowledged = self.acknowledged.max(ack.until);
        self.congestion.acknowledged(&acknowledged);
    }

    pub fn lost(&mut self, now_ns: u64, segment: Segment) {
        self.lost += segment.bytes;
        self.retransmissions.push_back(segment);
        self.congestion.lost(now_ns);
    }

    fn window_end(&self) -> u64 {
        self.window_end.unwrap_or(WINDOW_BYTES)
    }

    fn has_data(&self) -> bool {
        !self.retransmissions.is_empty() || self.next < self.written
    }

    fn in_flight(&self) -> u64 {
        self.sent.saturating_sub(self.lost + self.received)
    }

    fn next_segment(&self) -> Option<Segment> {
        let new = Segment { from: self.next, bytes: (self.written - self.next).min(SEGMENT_BYTES) };
        self.retransmissions.front().copied().or(Some(new)).filter(|segment| segment.bytes > 0)
    }

    fn is_allowed(&self, segment: &Segment) -> bool {
        let in_flight = self.in_flight();
        let fits = in_flight == 0 || in_flight + segment.bytes <= self.congestion.window_bytes();
        fits && segment.from + segment.bytes <= self.window_end()
    }
}

#[derive(Debug, Default)]
pub struct Receiver {
    /// Offset up to which the program has all bytes.
    pub until: u64,
    received: u64,
    /// Start and end of segments after a gap.
    later: BTreeMap<u64, u64>,
    unacknowledged: u64,
    echo_ns: Option<u64>,
    /// Latest time for the next acknowledgement.
    pub due_ns: Option<u64>,
    last_ns: Option<u64>,
    /// Number of segments at the start that were acknowledged immediately.
    quick: u32,
    is_urgent: bool,
    /// Size of the receive window beyond [`WINDOW_BYTES`].
    wider: u64,
    /// Start of the current round trip, and the offset received by then.
    round: (u64, u64),
    /// Most bytes received in one round trip, if more than [`ROUND_BYTES`].
    came: u64,
}

impl Receiver {
    /// Takes a segment that was sent at `sent_ns`.
    pub fn receive(&mut self, now_ns: u64, segment: Segment, sent_ns: u64) {
        self.received += segment.bytes;
        self.later.insert(segment.from, segment.from + segment.bytes);
        let before = self.until;
        while let Some(first) = self.later.first_entry().filter(|first| *first.key() <= self.until) {
            self.until = self.until.max(first.remove());
        }
        let is_gap = self.until == before || !self.later.is_empty();
        self.unacknowledged += segment.bytes;
        self.echo_ns = self.echo_ns.or(Some(sent_ns));
        self.is_urgent |= is_gap || self.unacknowledged > SEGMENT_BYTES || self.quick < QUICK;
        self.quick = QUICK.min(self.quick + 1);
        self.due_ns = self.due_ns.or(Some(now_ns + DELAY_NS));
        self.last_ns = Some(now_ns);
        self.widen(now_ns, 2 * now_ns.saturating_sub(sent_ns));
    }

    /// True if an acknowledgement must be sent now, with or without data.
    pub fn is_urgent(&self, now_ns: u64) -> bool {
        self.is_urgent || self.due_ns.is_some_and(|due_ns| due_ns <= now_ns)
    }

    pub fn urge(&mut self) {
        self.is_urgent = true;
    }

    /// Returns the acknowledgement to send; `answers` is true if a data segment carries it.
    pub fn acknowledge(&mut self, now_ns: u64, answers: bool) -> Acknowledgement {
        let is_prompt = self.last_ns.is_some_and(|last_ns| now_ns.saturating_sub(last_ns) < DELAY_NS);
        if answers && is_prompt {
            self.quick = QUICK;
        }
        (self.unacknowledged, self.due_ns, self.is_urgent) = (0, None, false);
        let window_end = self.until + WINDOW_BYTES + self.wider;
        Acknowledgement { until: self.until, received: self.received, window_end, echo_ns: self.echo_ns.take() }
    }

    /// Once per round trip, widens the window to twice the bytes received in it, or more while they grow (slow start).
    fn widen(&mut self, now_ns: u64, round_trip_ns: u64) {
        let (began_ns, before) = self.round;
        if now_ns.saturating_sub(began_ns) < round_trip_ns {
            return;
        }
        let came = self.until - before;
        let wanted = 2 * came + 16 * SEGMENT_BYTES;
        let most = self.came.max(ROUND_BYTES);
        let growth = (2.0 * came.saturating_sub(most) as f64 / most as f64).min(4.0);
        let wanted = wanted + (wanted as f64 * growth) as u64;
        self.wider = self.wider.max(wanted.min(MAX_WINDOW_BYTES).saturating_sub(WINDOW_BYTES));
        (self.round, self.came) = ((now_ns, self.until), came.max(most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn segments(sender: &mut Sender, now_ns: u64) -> Vec<Segment> {
        std::iter::from_fn(|| sender.poll(now_ns)).collect()
    }

    #[test]
    fn ten_segments_are_sent_before_the_first_acknowledgement() {
        let mut sender = Sender::default();
        sender.write(100_000);
        assert_eq!(segments(&mut sender, 0).len(), 10);
        assert!(sender.is_blocked() && !sender.has_room());
        let until = 2 * SEGMENT_BYTES;
        sender.acknowledge(MS, &Acknowledgement { until, received: until, window_end: 1 << 20, echo_ns: Some(0) });
        assert_eq!(segments(&mut sender, MS).len(), 4, "two acknowledged, and two by which the window grew");
    }

    #[test]
    fn a_receive_window_limits_the_sender() {
        let mut sender = Sender::default();
        sender.write(10_000);
        sender.window_end = Some(3_000);
        assert_eq!(segments(&mut sender, 0).len(), 2);
        sender.acknowledge(MS, &Acknowledgement { window_end: 20_000, ..Acknowledgement::default() });
        assert_eq!(segments(&mut sender, MS).len(), 5);
        assert!(!sender.is_blocked());
    }

    #[test]
    fn lost_segments_are_retransmitted_first() {
        let mut sender = Sender::default();
        sender.write(6 * SEGMENT_BYTES);
        let all = segments(&mut sender, 0);
        sender.lost(MS, all[1]);
        sender.write(100);
        assert_eq!(segments(&mut sender, MS), [all[1], Segment { from: 6 * SEGMENT_BYTES, bytes: 100 }]);
    }

    #[test]
    fn every_second_full_segment_is_acknowledged_immediately() {
        let mut receiver = Receiver { quick: QUICK, ..Receiver::default() };
        let segment = |number: u64| Segment { from: number * SEGMENT_BYTES, bytes: SEGMENT_BYTES };
        receiver.receive(5 * MS, segment(0), MS);
        assert_eq!((receiver.is_urgent(5 * MS), receiver.due_ns), (false, Some(45 * MS)));
        assert!(receiver.is_urgent(45 * MS));
        receiver.receive(6 * MS, segment(1), 2 * MS);
        assert!(receiver.is_urgent(6 * MS));
        let ack = receiver.acknowledge(6 * MS, false);
        assert_eq!((ack.until, ack.echo_ns), (2 * SEGMENT_BYTES, Some(MS)), "the time of the first");
        assert!(!receiver.is_urgent(60 * MS));
    }

    #[test]
    fn the_first_segments_are_acknowledged_immediately() {
        let mut receiver = Receiver::default();
        receiver.receive(MS, Segment { from: 0, bytes: 32 }, 0);
        assert!(receiver.is_urgent(MS));
        receiver.acknowledge(2 * MS, true);
        receiver.receive(3 * MS, Segment { from: 32, bytes: 32 }, 2 * MS);
        assert!(!receiver.is_urgent(3 * MS));
    }

    #[test]
    fn segments_after_a_gap_wait_for_it() {
        let mut receiver = Receiver { quick: QUICK, ..Receiver::default() };
        receiver.receive(MS, Segment { from: 100, bytes: 50 }, 0);
        assert_eq!((receiver.until, receiver.is_urgent(MS)), (0, true));
        let ack = receiver.acknowledge(MS, false);
        assert_eq!((ack.until, ack.received), (0, 50));
        receiver.receive(2 * MS, Segment { from: 0, bytes: 100 }, 0);
        assert_eq!(receiver.until, 150);
    }
}
