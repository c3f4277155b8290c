// SPDX-License-Identifier: MIT
//! The model of a link: a bounded queue, a rate, a delay, and random loss.
//!
//! ```text
//! arrive ──▶ queue ──▶ transmission ──▶ flight ──▶ deliver
//!            drops     length / rate    delay ± jitter;
//!            the new                    some are lost
//! ```
//!
//! The model has no I/O and no clock: times are arguments, and random numbers come from a seed. The same packets at the
//! same times have the same fate. The queue is first in, first out, so a packet's transmission time is known on
//! arrival. A lost packet still occupies the link. Packets keep their order unless there is jitter.
//!
//! [`Shaper::take_entries`] returns the entries of the log; call it regularly.

#[cfg(test)]
mod tests;

use super::log::{Busy, LogEntry, LoggedPacket, PacketFate};
use crate::observe::Direction;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;

/// Maximum bytes accepted and not yet delivered: two seconds at 1 Gb/s. Only a long delay at a higher rate needs more.
pub const HELD_BYTES: u64 = 256 << 20;

/// How a link treats each of its directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Bits per second of IP packets with their headers; `None` is unlimited.
    pub rate: Option<NonZeroU64>,
    /// Time from the end of a packet's transmission to its delivery.
    pub delay_ns: u64,
    /// Maximum deviation from the delay, up or down, uniformly distributed. The delay is never negative.
    pub jitter_ns: u64,
    /// Bound for waiting packets, not counting the one in transmission; `None`: the bytes of one round trip.
    pub queue: Option<Queue>,
    /// Lost packets per million.
    pub loss_ppm: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    Bytes(u64),
    Packets(u64),
}

/// Smallest default queue: as much as TCP sends in one burst.
const MIN_QUEUE_BYTES: u64 = 64 << 10;

impl Shape {
    /// With the bytes of one round trip, one TCP stream keeps the link busy; a longer queue would only add delay.
    pub fn queue(&self) -> Queue {
        let rate = self.rate.map_or(0, NonZeroU64::get);
        let one_way = u128::from(rate) * u128::from(self.delay_ns) / u128::from(NS) / 8;
        let bytes = u64::try_from(2 * one_way).unwrap_or(u64::MAX);
        self.queue.unwrap_or(Queue::Bytes(bytes.clamp(MIN_QUEUE_BYTES, HELD_BYTES)))
    }
}

const NS: u64 = 1_000_000_000;

/// One direction of a link, with packets of type `P`.
#[derive(Debug)]
pub struct Shaper<P> {
    shape: Shape,
    queue: Queue,
    direction: Direction,
    random: RandomSource,
    arrived: u64,
    /// Time at which the link has sent all accepted packets.
    free_ns: u64,
    /// Fraction of a nanosecond to add to `free_ns`: the numerator, with the rate as denominator.
    carry: u64,
    busy_since_ns: u64,
    waiting: VecDeque<QueuedPacket>,
    waiting_bytes: u64,
    /// Packets by due time, then by order of arrival.
    held: BTreeMap<(u64, u64), (LoggedPacket, P)>,
    held_bytes: u64,
    entries: Vec<LogEntry>,
}

#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    until_ns: u64,
    bytes: u32,
}

impl<P> Shaper<P> {
    pub fn new(shape: Shape, direction: Direction, seed: u64) -> Shaper<P> {
        Shaper {
            shape,
            queue: shape.queue(),
            direction,
            // The two directions have independent random numbers.
            random: RandomSource(seed.wrapping_mul(2).wrapping_add(direction as u64)),
            arrived: 0,
            free_ns: 0,
            carry: 0,
            busy_since_ns: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            held: BTreeMap::new(),
            held_bytes: 0,
            entries: Vec::new(),
        }
    }

    /// Accepts or drops a packet. `now_ns` must not decrease.
    pub fn arrive(&mut self, now_ns: u64, bytes: u32, packet: P) {
        self.arrived += 1;
        // Draw random numbers for every packet, so that loss does not depend on earlier drops.
        let is_lost = self.random.below(1_000_000) < u64::from(self.shape.loss_ppm);
        let jitter_ns = self.random.below(self.shape.jitter_ns.saturating_mul(2).saturating_add(1));
        let mut record = LoggedPacket {
            direction: self.direction,
            number: self.arrived,
            bytes,
            arrived_ns: now_ns,
            sent_ns: None,
            delivered_ns: None,
            outcome: PacketFate::Dropped,
        };
        self.dequeue_sent(now_ns);
        if !self.has_room(now_ns, bytes) {
            return self.entries.push(LogEntry::Packet(record));
        }
        let (start_ns, end_ns) = self.send(now_ns, bytes);
        record.sent_ns = Some((start_ns, end_ns));
        if is_lost {
            record.outcome = PacketFate::Lost;
            return self.entries.push(LogEntry::Packet(record));
        }
        record.outcome = PacketFate::Unfinished;
        let latest_ns = self.shape.delay_ns.saturating_add(jitter_ns);
        let due_ns = end_ns.saturating_add(latest_ns.saturating_sub(self.shape.jitter_ns));
        self.held_bytes += u64::from(bytes);
        self.held.insert((due_ns, record.number), (record, packet));
    }

    pub fn deliver(&mut self, now_ns: u64) -> Option<P> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        let (_, (mut record, packet)) = self.held.pop_first()?;
        self.held_bytes -= u64::from(record.bytes);
        record.delivered_ns = Some(now_ns);
        record.outcome = PacketFate::Delivered;
        self.entries.push(LogEntry::Packet(record));
        Some(packet)
    }

    /// Time at which the next packet is due; `None` until another one arrives.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.held.first_key_value().map(|(&(due_ns, _), _)| due_ns)
    }

    /// Returns everything that happened since the last call.
    pub fn take_entries(&mut self) -> impl Iterator<Item = LogEntry> + '_ {
        self.entries.drain(..)
    }

    /// Ends the link. Packets in flight are not delivered.
    pub fn close(&mut self, now_ns: u64) {
        while let Some((_, (record, _))) = self.held.pop_first() {
            self.entries.push(LogEntry::Packet(record));
        }
        self.free_ns = self.free_ns.min(now_ns);
        self.end_busy();
    }

    fn dequeue_sent(&mut self, now_ns: u64) {
        while let Some(first) = self.waiting.front().filter(|first| first.until_ns <= now_ns) {
            self.waiting_bytes -= u64::from(first.bytes);
            self.waiting.pop_front();
        }
    }

    fn has_room(&self, now_ns: u64, bytes: u32) -> bool {
        if self.held_bytes + u64::from(bytes) > HELD_BYTES {
            return false;
        }
        let would_wait = self.free_ns > now_ns;
        !would_wait
            || match self.queue {
                Queue::Bytes(bound) => self.waiting_bytes + u64::from(bytes) <= bound,
                Queue::Packets(bound) => (self.waiting.len() as u64) < bound,
            }
    }

    /// Appends a packet to the queue. Returns start and end of its transmission.
    fn send(&mut self, now_ns: u64, bytes: u32) -> (u64, u64) {
        if self.free_ns < now_ns {
            self.end_busy();
            (self.free_ns, self.busy_since_ns, self.carry) = (now_ns, now_ns, 0);
        }
        let start_ns = self.free_ns;
        if start_ns > now_ns {
            self.waiting.push_back(QueuedPacket { until_ns: start_ns, bytes });
            self.waiting_bytes += u64::from(bytes);
        }
        if let Some(rate) = self.shape.rate {
            let parts = u128::from(bytes) * 8 * u128::from(NS) + u128::from(self.carry);
            let rate = u128::from(rate.get());
            self.free_ns = start_ns.saturating_add((parts / rate) as u64);
            self.carry = (parts % rate) as u64;
        }
        (start_ns, self.free_ns)
    }

    fn end_busy(&mut self) {
        let busy = Busy { direction: self.direction, from_ns: self.busy_since_ns, to_ns: self.free_ns };
        if busy.from_ns < busy.to_ns {
            self.entries.push(LogEntry::Busy(busy));
        }
        self.busy_since_ns = self.free_ns;
    }
}

/// SplitMix64: fast random numbers for any seed, not suitable for secrets.
#[derive(Clone, Copy, Debug)]
pub(super) struct RandomSource(pub(super) u64);

impl RandomSource {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random number in 0..`bound`, with a bias below `bound` / 2^64.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}
