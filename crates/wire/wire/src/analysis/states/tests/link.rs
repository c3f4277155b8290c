// SPDX-License-Identifier: MIT
//! Simulates two ends and a link in virtual time: the packets that a capture would show, and when the queue was busy.
//!
//! The TCP model has slow start. It acknowledges every second packet immediately, others with data or after 40 ms.

use super::super::super::spans::Spans;
use super::super::super::transmitter::HEADERS;
use crate::observe::{Direction, Packet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SEGMENT: u64 = 1448;
const FIRST_WINDOW: u64 = 10 * SEGMENT;
const DELAYED_NS: u64 = 40_000_000;
/// Number of first packets that are acknowledged immediately, as Linux does.
const QUICK: u64 = 16;

/// A client's request, its reply (or none), the number of repetitions, and the client's processing time before each.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    pub request: u64,
    pub reply: u64,
    pub times: u32,
    pub work_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub bytes_per_second: u64,
    pub delay_ns: u64,
    pub is_captured_at_server: bool,
}

/// Captured packets, and when each direction's queue was not empty.
#[derive(Debug, Default)]
pub struct Captured {
    pub packets: Vec<Packet>,
    pub busy: [Spans; 2],
    pub end_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival { end: usize, length: u64, offset: u64, acknowledged: u64 },
    Delayed { end: usize, generation: u64 },
    SendRequest,
}

#[derive(Debug)]
struct End {
    written: u64,
    sent: u64,
    acknowledged: u64,
    window: u64,
    received: u64,
    owed: u64,
    generation: u64,
    arrivals: u64,
    free_ns: u64,
}

impl End {
    fn new() -> End {
        let window = FIRST_WINDOW;
        End {
            written: 0,
            sent: 0,
            acknowledged: 0,
            window,
            received: 0,
            owed: 0,
            generation: 0,
            arrivals: 0,
            free_ns: 0,
        }
    }
}

#[derive(Debug)]
pub struct Simulation {
    link: Link,
    ends: [End; 2],
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    script: Vec<Exchange>,
    /// The server writes its reply once requests have arrived up to the first offset. The client writes its next
    /// request once replies have arrived up to the second offset.
    wanted: [u64; 2],
    now_ns: u64,
    captured: Captured,
}

/// Starts after one second, so that no time is 0.
const START_NS: u64 = 1_000_000_000;

pub fn run(link: Link, script: &[Exchange]) -> Captured {
    let mut script: Vec<Exchange> = script.to_vec();
    script.reverse();
    let ends = [End::new(), End::new()];
    let (events, captured) = (BinaryHeap::new(), Captured::default());
    let mut run = Simulation { link, ends, events, count: 0, script, wanted: [0; 2], now_ns: START_NS, captured };
    run.shake_hands();
    while let Some(Reverse((at_ns, _, event))) = run.events.pop() {
        run.now_ns = at_ns;
        run.take(event);
    }
    run.captured.end_ns = run.now_ns;
    run.captured.packets.sort_by_key(|packet| packet.at_ns);
    run.captured
}

impl Simulation {
    fn shake_hands(&mut self) {
        for end in [0, 1, 0] {
            self.now_ns = self.send(end, 0, end == 0 && self.ends[0].free_ns > 0);
        }
        self.at(self.now_ns, Event::SendRequest);
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at_ns, self.count, event)));
    }

    /// Puts a packet on the link and returns its arrival time.
    fn send(&mut self, end: usize, length: u64, is_plain: bool) -> u64 {
        let link = self.link;
        let from = &mut self.ends[end];
        let start_ns = from.free_ns.max(self.now_ns);
        let size = length + HEADERS;
        from.free_ns = start_ns + size * 1_000_000_000 / link.bytes_per_second;
        let arrival_ns = from.free_ns + link.delay_ns;
        let is_here = (end == 1) == link.is_captured_at_server;
        let packet = Packet {
            direction: if end == 0 { Direction::Requests } else { Direction::Replies },
            at_ns: if is_here { self.now_ns } else { arrival_ns },
            offset: from.sent,
            length: length as u32,
            acknowledged: from.received,
            window: 1 << 20,
            is_retransmission: false,
            is_control: !is_plain,
        };
        from.sent += length;
        from.owed = 0;
        from.generation += 1;
        self.captured.packets.push(packet);
        self.captured.busy[end].add(self.now_ns, self.ends[end].free_ns);
        arrival_ns
    }

    fn transmit(&mut self, end: usize) {
        while self.ends[end].sent < self.ends[end].written {
            let from = &self.ends[end];
            let length = (from.written - from.sent).min(SEGMENT);
            if from.sent + length > from.acknowledged + from.window {
                return;
            }
            let (offset, acknowledged) = (from.sent, from.received);
            let at_ns = self.send(end, length, true);
            self.at(at_ns, Event::Arrival { end: 1 - end, length, offset, acknowledged });
        }
    }

    fn acknowledge(&mut self, end: usize) {
        let (offset, acknowledged) = (self.ends[end].sent, self.ends[end].received);
        let at_ns = self.send(end, 0, true);
        self.at(at_ns, Event::Arrival { end: 1 - end, length: 0, offset, acknowledged });
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::SendRequest => self.send_request(),
            Event::Delayed { end, generation } if self.ends[end].generation == generation => self.acknowledge(end),
            Event::Delayed { .. } => {}
            Event::Arrival { end, length, offset, acknowledged } => {
                let to = &mut self.ends[end];
                to.window += acknowledged.saturating_sub(to.acknowledged);
                to.acknowledged = to.acknowledged.max(acknowledged);
                to.received = to.received.max(offset + length);
                self.transmit(end);
                if length > 0 {
                    self.answer(end);
                }
            }
        }
    }

    fn send_request(&mut self) {
        let Some(exchange) = self.script.last_mut() else { return };
        let Exchange { request, reply, times, work_ns } = *exchange;
        exchange.times = times.saturating_sub(1);
        if exchange.times == 0 {
            self.script.pop();
        }
        self.ends[0].written += request;
        self.wanted = [self.ends[0].written, self.ends[1].written + reply];
        self.transmit(0);
        if reply == 0 {
            self.at(self.now_ns + work_ns, Event::SendRequest);
        }
    }

    /// The program reacts first, then the kernel.
    fn answer(&mut self, end: usize) {
        if end == 1 && self.ends[1].received == self.wanted[0] && self.ends[1].written < self.wanted[1] {
            self.ends[1].written = self.wanted[1];
            self.transmit(1);
        }
        if end == 0 && self.ends[0].received == self.wanted[1] {
            let work_ns = self.script.last().map_or(0, |exchange| exchange.work_ns);
            self.at(self.now_ns + work_ns, Event::SendRequest);
        }
        self.schedule_acknowledgement(end);
    }

    fn schedule_acknowledgement(&mut self, end: usize) {
        let to = &mut self.ends[end];
        to.owed += 1;
        to.arrivals += 1;
        if to.owed >= 2 || to.arrivals <= QUICK {
            self.acknowledge(end);
        } else {
            let generation = to.generation;
            self.at(self.now_ns + DELAYED_NS, Event::Delayed { end, generation });
        }
    }
}
