// SPDX-License-Identifier: MIT
//! One transmitter: its packets in flight, a model of the link, and the cause of each blocked span.
//!
//! [`super::states`] has the rules. Spans that are certain are recorded immediately; [`super::blocked`] holds those
//! that the link model may still overrule.

use super::blocked::{BlockCause, BlockedTime, MAX_IN_FLIGHT};
use super::rate::{self, Rate};
use super::spans::Span;
use crate::observe::Packet;
use std::collections::VecDeque;

/// Bytes that a packet has in addition to its data: IPv4 and TCP headers with timestamps.
pub const HEADERS: u64 = 52;
/// An acknowledgement elicits the data sent within this time after it. The kernel sends waiting data without delay.
const PROMPT_NS: u64 = 1_000_000;
/// TCP fills packets to at least this size; smaller ones end a write. A window with less room counts as closed.
pub(super) const FULL: u64 = 1000;

/// The capturing machine's position, as seen from one transmitter.
#[derive(Clone, Copy, Debug)]
pub(super) struct CapturePoint {
    /// True if the capture was made at the receiver, so that packets are seen after the link.
    is_after_link: bool,
    /// Round trip from the capturing machine to the transmitter.
    loop_ns: u64,
    /// Rate of the other direction, used while this one's is unknown.
    rate: Option<u64>,
}

impl CapturePoint {
    fn half_ns(&self) -> u64 {
        if self.is_after_link { self.loop_ns / 2 } else { 0 }
    }
}

/// A packet that is not yet acknowledged.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at_ns: u64,
    end: u64,
    /// Bytes of data and headers.
    size: u64,
    is_retransmission: bool,
    /// Bytes of pure acknowledgements and retransmissions sent after it and before the next packet.
    trailing: u64,
    /// True if the time at which it left the link is known.
    is_settled: bool,
}

#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    ns: u64,
    /// Bytes that the link carried in both directions during this round trip.
    size: u64,
}

#[derive(Debug, Default)]
pub struct Transmitter {
    pub blocked: BlockedTime,
    in_flight: VecDeque<Sent>,
    /// Time at which all of `in_flight` leaves the link at the current rate; [`u64::MAX`] while the rate is unknown.
    free_ns: u64,
    pub rate: Rate,
    round_trip: Option<RoundTrip>,
    last_sent: Option<Sent>,
    /// Arrival times of pure acknowledgements that can elicit data.
    elicits: VecDeque<u64>,
    closed_since_ns: Option<u64>,
}

impl Transmitter {
    /// Shortest round trip from the capturing machine to the receiver, including its own packets.
    pub fn round_trip_ns(&self) -> Option<u64> {
        self.round_trip.map(|shortest| shortest.ns)
    }

    /// Restarts with nothing sent, but keeps the known rate and round trip of the link.
    pub(super) fn restarted(&self) -> Transmitter {
        Transmitter { rate: self.rate.restarted(), round_trip: self.round_trip, ..Transmitter::default() }
    }

    /// Number of packets kept. Tests check that it is bounded.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.in_flight.len().max(self.blocked.pending()).max(self.elicits.len())
    }

    pub(super) fn point(&self, other: &Transmitter) -> CapturePoint {
        let own = self.rate.bytes_per_second;
        let is_after_link = match (self.round_trip, other.round_trip) {
            (Some(own), Some(others)) => own.ns < others.ns,
            _ => false,
        };
        CapturePoint { is_after_link, loop_ns: other.base_ns(own), rate: other.rate.bytes_per_second }
    }

    pub(super) fn add_handshake(&mut self, span: &Span, point: &CapturePoint) {
        let to_ns = span.to_ns.saturating_sub(point.half_ns());
        self.blocked.add_handshake(span.from_ns, to_ns);
    }

    pub(super) fn sent(&mut self, packet: &Packet, point: &CapturePoint) {
        let size = u64::from(packet.length) + HEADERS;
        let end = packet.offset.saturating_add(u64::from(packet.length));
        let sent = Sent {
            at_ns: packet.at_ns,
            end,
            size,
            is_retransmission: packet.is_retransmission,
            trailing: 0,
            is_settled: false,
        };
        if packet.length > 0 {
            self.sent_data(sent, point);
        } else if packet.is_control && self.last_sent.is_none() && packet.offset == 0 {
            self.track(sent);
        } else {
            self.sent_extra(&sent, point);
        }
    }

    fn sent_data(&mut self, sent: Sent, point: &CapturePoint) {
        self.block_before(&sent, point);
        if point.is_after_link {
            let is_full = self.last_sent.is_some_and(|last| last.size >= FULL + HEADERS);
            let was_known = self.rate.bytes_per_second.is_some();
            self.rate.passed(sent.at_ns, sent.size, is_full);
            if !was_known && self.rate.bytes_per_second.is_some() {
                self.blocked.busy(
                    self.rate.began_ns.saturating_sub(point.half_ns()),
                    sent.at_ns.saturating_sub(point.half_ns()),
                );
            }
            self.passed(&sent, point);
        } else if sent.is_retransmission && !self.in_flight.is_empty() {
            self.sent_extra(&sent, point);
        } else {
            if self.in_flight.is_empty() {
                self.rate.start(sent.at_ns);
                self.free_ns = 0;
            }
            self.occupy(&sent, point);
        }
        self.last_sent = Some(sent);
        self.track(sent);
    }

    /// Pure acknowledgements and retransmissions also occupy the link, but nothing shows when they arrived.
    fn sent_extra(&mut self, sent: &Sent, point: &CapturePoint) {
        if point.is_after_link {
            return self.passed(sent, point);
        }
        if sent.at_ns >= self.free_ns {
            self.settle_flight(point);
        }
        match self.in_flight.back_mut().filter(|last| !last.is_settled) {
            Some(last) => last.trailing = last.trailing.saturating_add(sent.size),
            None => {
                let begin_ns = self.blocked.link_ns().max(sent.at_ns);
                let ns = self.ns_of(sent.size, point).unwrap_or(0);
                self.blocked.busy(begin_ns, begin_ns.saturating_add(ns));
            }
        }
        self.occupy(sent, point);
    }

    fn occupy(&mut self, sent: &Sent, point: &CapturePoint) {
        let ns = self.ns_of(sent.size, point).unwrap_or(u64::MAX);
        self.free_ns = self.free_ns.max(sent.at_ns).saturating_add(ns);
    }

    /// Settles all packets in flight, which have left the link according to the current rate.
    fn settle_flight(&mut self, point: &CapturePoint) {
        for index in self.in_flight.partition_point(|sent| sent.is_settled)..self.in_flight.len() {
            let sent = self.in_flight[index];
            let begin_ns = self.blocked.link_ns().max(sent.at_ns);
            let ns = self.ns_of(sent.size.saturating_add(sent.trailing), point).unwrap_or(0);
            self.blocked.busy(begin_ns, begin_ns.saturating_add(ns));
            self.in_flight[index] = Sent { trailing: 0, is_settled: true, ..sent };
        }
    }

    fn ns_of(&self, size: u64, point: &CapturePoint) -> Option<u64> {
        Some(rate::ns_of(size, self.rate.bytes_per_second.or(point.rate)?))
    }

    fn track(&mut self, sent: Sent) {
        let is_full = self.in_flight.len() >= MAX_IN_FLIGHT;
        match self.in_flight.back_mut() {
            Some(last) if sent.is_retransmission => last.end = last.end.max(sent.end),
            Some(last) if is_full => {
                last.end = last.end.max(sent.end);
                last.size += sent.size;
            }
            _ => self.in_flight.push_back(sent),
        }
    }

    /// If the transmitter was blocked before it sent this packet, records that.
    fn block_before(&mut self, sent: &Sent, point: &CapturePoint) {
        let Some(last) = self.last_sent else { return };
        let is_elicited = self.is_elicited(sent, point) && last.size >= FULL + HEADERS;
        if sent.is_retransmission || is_elicited {
            let half = point.half_ns();
            self.blocked.hold(BlockCause::Window, last.at_ns.saturating_sub(half), sent.at_ns.saturating_sub(half));
        }
    }

    /// True if an acknowledgement reached the transmitter just before it sent this packet.
    fn is_elicited(&mut self, sent: &Sent, point: &CapturePoint) -> bool {
        let came_ns = sent.at_ns.saturating_sub(2 * point.half_ns());
        let size_ns = if point.is_after_link { self.ns_of(sent.size, point).unwrap_or(0) } else { 0 };
        let late_ns = PROMPT_NS.saturating_add(size_ns).saturating_add(point.half_ns() / 4);
        while self.elicits.front().is_some_and(|&ns| ns.saturating_add(late_ns) < came_ns) {
            self.elicits.pop_front();
        }
        self.elicits.front().is_some_and(|&ns| ns <= came_ns)
    }

    /// Records that a packet left the link half of `loop_ns` before it was captured.
    fn passed(&mut self, sent: &Sent, point: &CapturePoint) {
        let left_ns = sent.at_ns.saturating_sub(point.half_ns());
        let busy_ns = self.ns_of(sent.size, point).unwrap_or(0);
        let begin_ns = left_ns.saturating_sub(busy_ns);
        let earlier_ns = self.blocked.link_ns().saturating_sub(begin_ns).min(busy_ns);
        self.blocked.busy(begin_ns, left_ns);
        // Packets that a delayed machine received together left the link earlier.
        if earlier_ns > 0 {
            self.blocked.reach_back(earlier_ns);
        }
    }

    pub(super) fn acknowledged(&mut self, packet: &Packet, point: &CapturePoint, closed_below: u64) {
        let at_ns = packet.at_ns;
        let size = u64::from(packet.length) + HEADERS;
        let mut is_new = false;
        while let Some(sent) = self.in_flight.front().copied().filter(|sent| sent.end <= packet.acknowledged) {
            self.in_flight.pop_front();
            self.measure(&sent, at_ns, size, point);
            if !point.is_after_link && sent.size > HEADERS {
                self.left(&sent, at_ns, size, point);
            }
            is_new = true;
        }
        if is_new && packet.length == 0 && !packet.is_control {
            if self.elicits.len() >= MAX_IN_FLIGHT {
                self.elicits.pop_front();
            }
            self.elicits.push_back(at_ns);
        }
        if self.in_flight.is_empty() {
            self.blocked.settle(at_ns);
        }
        if !packet.is_control {
            self.opened_or_closed(at_ns, packet.window < closed_below);
        }
    }

    fn measure(&mut self, sent: &Sent, at_ns: u64, size: u64, point: &CapturePoint) {
        let ns = at_ns.saturating_sub(sent.at_ns);
        if !sent.is_retransmission && self.round_trip.is_none_or(|shortest| ns < shortest.ns) {
            self.round_trip = Some(RoundTrip { ns, size: sent.size + size });
        }
        let is_data = !point.is_after_link && sent.size > HEADERS;
        if let Some(shortest) = self.round_trip.filter(|_| is_data) {
            let unseen = shortest.size.saturating_sub(size);
            self.rate.acknowledged(at_ns.saturating_sub(shortest.ns), sent.size, unseen);
        }
    }

    /// Determines when a packet left the link, from its acknowledgement and the rate.
    fn left(&mut self, sent: &Sent, at_ns: u64, size: u64, point: &CapturePoint) {
        let back_ns = self.base_ns(point.rate).saturating_add(point.rate.map_or(0, |rate| rate::ns_of(size, rate)));
        let latest_ns = at_ns.saturating_sub(back_ns).max(sent.at_ns);
        let begin_ns = self.blocked.link_ns().max(sent.at_ns);
        let left_ns = match self.ns_of(sent.size, point) {
            _ if sent.is_settled => begin_ns,
            Some(ns) => begin_ns.saturating_add(ns).min(latest_ns),
            // The acknowledgement also took time on its way back. Divide the time in proportion to the sizes.
            None => begin_ns.saturating_add(share(latest_ns.saturating_sub(begin_ns), sent.size, size)),
        };
        self.blocked.busy(begin_ns, left_ns);
        if let Some(ns) = self.ns_of(sent.trailing, point) {
            self.blocked.busy(left_ns.max(begin_ns), left_ns.max(begin_ns).saturating_add(ns));
        }
    }

    /// Propagation delay of the round trip. Uses the other direction's rate while this one's is unknown.
    fn base_ns(&self, others: Option<u64>) -> u64 {
        let rate = self.rate.bytes_per_second.or(others);
        let own_ns = |size| rate.map_or(0, |rate| rate::ns_of(size, rate));
        self.round_trip.map_or(0, |shortest| shortest.ns.saturating_sub(own_ns(shortest.size)))
    }

    fn opened_or_closed(&mut self, at_ns: u64, is_closed: bool) {
        match self.closed_since_ns {
            None if is_closed => self.closed_since_ns = Some(at_ns),
            Some(since_ns) if !is_closed => {
                self.closed_since_ns = None;
                self.blocked.hold(BlockCause::Receiver, since_ns, at_ns);
                if self.in_flight.is_empty() {
                    self.blocked.settle(at_ns);
                }
            }
            _ => {}
        }
    }

    pub(super) fn end(&mut self, at_ns: u64, point: &CapturePoint) {
        if let Some(since_ns) = self.closed_since_ns.take() {
            self.blocked.hold(BlockCause::Receiver, since_ns, at_ns);
        }
        for sent in std::mem::take(&mut self.in_flight) {
            let begin_ns = self.blocked.link_ns().max(sent.at_ns);
            let known_ns = self.ns_of(sent.size, point).filter(|_| !point.is_after_link && sent.size > HEADERS);
            if let Some(ns) = known_ns {
                self.blocked.busy(begin_ns, begin_ns.saturating_add(ns).min(at_ns));
            }
        }
        self.blocked.settle(u64::MAX);
    }
}

/// The part of `ns` that `size` bytes take, if `size` and `other` bytes together take `ns`.
fn share(ns: u64, size: u64, other: u64) -> u64 {
    let part = u128::from(ns) * u128::from(size) / (u128::from(size) + u128::from(other)).max(1);
    u64::try_from(part).unwrap_or(ns)
}
