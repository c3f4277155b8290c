// SPDX-License-Identifier: MIT
//! Plays a script over a simulated link, in virtual time.
//!
//! ```text
//! program ── write ──▶ Sender ─▶ line of requests ─▶ Receiver ── cause ──▶ server
//!    ▲  after                                                                 │ service
//!    └────────────── Receiver ◀─ line of replies ◀─ Sender ◀──── write ───────┘
//! ```
//!
//! Each line is the emulator's [`Shaper`], so prediction and emulation use the same link model. The sender notices a
//! dropped packet one round trip later.

use super::StartPrediction;
use super::script::{Awaited, Script, ServerMessage, Step, StepAction};
use super::stream::{Acknowledgement, HEADER_BYTES, Receiver, Segment, Sender};
use crate::analysis::spans::{Span, Spans, length_until, union};
use crate::link::log::{LogEntry, PacketFate};
use crate::link::shape::{Shape, Shaper};
use crate::observe::Direction;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Size of a SYN with its options.
const OPEN_BYTES: u32 = 60;
/// Time after which a dropped SYN is retransmitted.
const OPEN_AGAIN_NS: u64 = 1_000_000_000;
/// Limit of simulated events. A start of 256 MB in small packets needs a tenth of this.
const MAX_EVENTS: u64 = 50_000_000;

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// Plays the script to its end. `None` if the link drops so many packets that the script never ends.
pub fn play(script: &Script, shape: &Shape) -> Option<StartPrediction> {
    let mut playback = Playback::new(script, shape);
    playback.advance_program();
    for _ in 0..MAX_EVENTS {
        let Some(next_ns) = playback.next_ns() else { return Some(playback.predicted()) };
        playback.now_ns = next_ns;
        playback.handle_next();
    }
    None
}

#[derive(Debug)]
struct Playback<'s> {
    script: &'s Script,
    now_ns: u64,
    lines: [Shaper<Packet>; 2],
    connections: Vec<SimulatedConnection>,
    timers: BinaryHeap<Reverse<(u64, u64, Timer)>>,
    timers_set: u64,
    program: SimulatedProgram,
    busy: [Spans; 2],
    waits: Spans,
    wait_count: u64,
    link_bytes: [u64; 2],
    ended_ns: u64,
}

#[derive(Debug)]
struct SimulatedProgram {
    step: usize,
    state: ProgramState,
    /// End of the previous step.
    ready_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum ProgramState {
    /// Waits for the message that its next step needs.
    Waiting,
    Thinking {
        until_ns: u64,
    },
    /// Blocked because it has written more than TCP accepts.
    Blocked,
}

#[derive(Debug, Default)]
struct SimulatedConnection {
    is_open: bool,
    ends: [End; 2],
    /// State of the server: index of its next message, time of the last one, whether a timer is set for the next one,
    /// and the end of each message in its stream.
    next_message: usize,
    last_message_ns: u64,
    has_timer: bool,
    message_ends: Vec<u64>,
}

#[derive(Debug, Default)]
struct End {
    sender: Sender,
    receiver: Receiver,
    blocked_since_ns: Option<u64>,
    blocked: Spans,
    /// The delayed acknowledgement for which a timer is set.
    owes_until_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Program,
    Server(usize),
    /// A delayed acknowledgement is due at this end.
    Acknowledge(usize, usize),
    Lost(usize, usize, u64, u64),
    /// A pure acknowledgement was dropped.
    Silent(usize, usize),
    /// A handshake packet was dropped.
    Open(usize, usize),
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    connection: usize,
    content: Content,
    sent_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum Content {
    Open,
    Opened,
    Data(Option<Segment>, Acknowledgement),
}

impl<'s> Playback<'s> {
    fn new(script: &'s Script, shape: &Shape) -> Playback<'s> {
        let line = |direction| Shaper::new(*shape, direction, 0);
        let connection = |messages: &Vec<ServerMessage>| SimulatedConnection {
            message_ends: messages
                .iter()
                .scan(0, |end, message| {
                    *end += message.bytes;
                    Some(*end)
                })
                .collect(),
            ..SimulatedConnection::default()
        };
        Playback {
            script,
            now_ns: 0,
            lines: [line(Direction::Requests), line(Direction::Replies)],
            connections: script.messages.iter().map(connection).collect(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            program: SimulatedProgram { step: 0, state: ProgramState::Waiting, ready_ns: 0 },
            busy: Default::default(),
            waits: Spans::default(),
            wait_count: 0,
            link_bytes: [0; 2],
            ended_ns: 0,
        }
    }

    fn next_ns(&self) -> Option<u64> {
        let lines = self.lines.iter().filter_map(Shaper::next_due_ns);
        lines.chain(self.timers.peek().map(|Reverse((at_ns, ..))| *at_ns)).min()
    }

    fn handle_next(&mut self) {
        for way in [CLIENT, SERVER] {
            if let Some(packet) = self.lines[way].deliver(self.now_ns) {
                self.account(way);
                return self.arrived(way, &packet);
            }
        }
        let Some(Reverse((_, _, timer))) = self.timers.pop() else { return };
        match timer {
            Timer::Program => self.advance_program(),
            Timer::Server(connection) => {
                self.connections[connection].has_timer = false;
                self.send_message(connection);
                self.serve(connection);
                self.flush(connection, SERVER);
            }
            Timer::Acknowledge(connection, end) => self.flush(connection, end),
            Timer::Lost(connection, end, from, bytes) => {
                let sender = &mut self.connections[connection].ends[end].sender;
                sender.lost(self.now_ns, Segment { from, bytes });
                self.flush(connection, end);
            }
            Timer::Silent(connection, end) => {
                self.connections[connection].ends[end].receiver.urge();
                self.flush(connection, end);
            }
            Timer::Open(connection, end) => self.open(connection, end),
        }
    }

    fn set(&mut self, at_ns: u64, timer: Timer) {
        self.timers_set += 1;
        self.timers.push(Reverse((at_ns, self.timers_set, timer)));
    }

    /// Handles a packet that arrived at the end to which `way` leads.
    fn arrived(&mut self, way: usize, packet: &Packet) {
        let Packet { connection, content, sent_ns } = *packet;
        let end = way ^ 1;
        if end == CLIENT {
            self.ended_ns = self.now_ns;
        }
        match content {
            Content::Open => return self.open(connection, SERVER),
            Content::Opened => {
                self.connections[connection].is_open = true;
                self.connections[connection].ends[CLIENT].receiver.urge();
                self.flush(connection, CLIENT);
            }
            Content::Data(segment, acknowledgement) => {
                let here = &mut self.connections[connection].ends[end];
                here.sender.acknowledge(self.now_ns, &acknowledgement);
                if let Some(segment) = segment {
                    here.receiver.receive(self.now_ns, segment, sent_ns);
                }
            }
        }
        // Send data first, so that it carries the acknowledgement.
        if end == SERVER {
            self.serve(connection)
        } else {
            self.advance_program()
        }
        self.flush(connection, end);
    }

    /// The server sends all messages that are ready.
    fn serve(&mut self, connection: usize) {
        while let Some(message) = self.script.messages[connection].get(self.connections[connection].next_message) {
            let here = &mut self.connections[connection];
            if here.has_timer || here.ends[SERVER].receiver.until < message.cause {
                return;
            }
            let due_ns = self.now_ns.max(here.last_message_ns).saturating_add(message.service_ns);
            if due_ns > self.now_ns {
                here.has_timer = true;
                return self.set(due_ns, Timer::Server(connection));
            }
            self.send_message(connection);
        }
    }

    fn send_message(&mut self, connection: usize) {
        let here = &mut self.connections[connection];
        let Some(message) = self.script.messages[connection].get(here.next_message) else { return };
        here.next_message += 1;
        here.last_message_ns = self.now_ns;
        here.ends[SERVER].sender.write(message.bytes);
    }

    /// The program takes all steps that are ready.
    fn advance_program(&mut self) {
        while let Some(step) = self.script.steps.get(self.program.step).copied() {
            match self.program.state {
                ProgramState::Waiting if !self.is_ready(&step) => return,
                ProgramState::Waiting => self.think(&step),
                ProgramState::Thinking { until_ns } if until_ns > self.now_ns => return,
                ProgramState::Thinking { .. } => self.act(&step),
                ProgramState::Blocked if !self.connections[step.connection].ends[CLIENT].sender.has_room() => return,
                ProgramState::Blocked => self.finish_step(),
            }
        }
    }

    fn is_ready(&self, step: &Step) -> bool {
        let is_open = step.action == StepAction::Open || self.connections[step.connection].is_open;
        is_open && step.after.is_none_or(|after| self.has_received(&after))
    }

    fn has_received(&self, after: &Awaited) -> bool {
        let Some(connection) = self.connections.get(after.connection) else { return true };
        let end = connection.message_ends.get(after.index).copied().unwrap_or(0);
        connection.ends[CLIENT].receiver.until >= end
    }

    fn think(&mut self, step: &Step) {
        if self.now_ns > self.program.ready_ns && step.after.is_some_and(|after| after.is_reply) {
            self.waits.add(self.program.ready_ns, self.now_ns);
            self.wait_count += 1;
        }
        let until_ns = self.now_ns.saturating_add(step.think_ns);
        self.program.state = ProgramState::Thinking { until_ns };
        if until_ns > self.now_ns {
            self.set(until_ns, Timer::Program);
        }
    }

    fn act(&mut self, step: &Step) {
        match step.action {
            StepAction::Open => self.open(step.connection, CLIENT),
            StepAction::Send(bytes) => {
                let sender = &mut self.connections[step.connection].ends[CLIENT].sender;
                sender.write(bytes);
                self.flush(step.connection, CLIENT);
                if !self.connections[step.connection].ends[CLIENT].sender.has_room() {
                    self.program.state = ProgramState::Blocked;
                    return;
                }
            }
        }
        self.finish_step();
    }

    fn finish_step(&mut self) {
        self.program =
            SimulatedProgram { step: self.program.step + 1, state: ProgramState::Waiting, ready_ns: self.now_ns };
    }

    fn open(&mut self, connection: usize, end: usize) {
        let content = if end == CLIENT { Content::Open } else { Content::Opened };
        if !self.send(end, connection, content, OPEN_BYTES) {
            self.set(self.now_ns + OPEN_AGAIN_NS, Timer::Open(connection, end));
        }
    }

    /// Sends the data that the windows allow, and the acknowledgement that is due.
    fn flush(&mut self, connection: usize, end: usize) {
        while let Some(segment) = self.connections[connection].ends[end].sender.poll(self.now_ns) {
            self.send_data(connection, end, Some(segment));
        }
        let here = &mut self.connections[connection].ends[end];
        if here.sender.is_blocked() {
            here.blocked_since_ns.get_or_insert(self.now_ns);
        } else if let Some(since_ns) = here.blocked_since_ns.take() {
            here.blocked.add(since_ns, self.now_ns);
        }
        if here.receiver.is_urgent(self.now_ns) {
            self.send_data(connection, end, None);
        } else if let Some(due_ns) = here.receiver.due_ns.filter(|due_ns| here.owes_until_ns != Some(*due_ns)) {
            here.owes_until_ns = Some(due_ns);
            self.set(due_ns, Timer::Acknowledge(connection, end));
        }
    }

    fn send_data(&mut self, connection: usize, end: usize, segment: Option<Segment>) {
        let here = &mut self.connections[connection].ends[end];
        let acknowledgement = here.receiver.acknowledge(self.now_ns, segment.is_some());
        let (trip_ns, timeout_ns) = (here.sender.congestion.round_trip_ns(), here.sender.congestion.timeout_ns());
        let bytes = HEADER_BYTES + segment.map_or(0, |segment| segment.bytes as u32);
        if self.send(end, connection, Content::Data(segment, acknowledgement), bytes) {
            return;
        }
        match segment {
            Some(Segment { from, bytes }) => {
                self.set(self.now_ns + trip_ns, Timer::Lost(connection, end, from, bytes));
            }
            None => self.set(self.now_ns + timeout_ns, Timer::Silent(connection, end)),
        }
    }

    /// Returns false if the queue dropped the packet.
    fn send(&mut self, end: usize, connection: usize, content: Content, bytes: u32) -> bool {
        if end == CLIENT {
            self.ended_ns = self.now_ns;
        }
        self.lines[end].arrive(self.now_ns, bytes, Packet { connection, content, sent_ns: self.now_ns });
        self.account(end)
    }

    /// Records the bytes and busy time of a line. Returns false if it dropped a packet.
    fn account(&mut self, way: usize) -> bool {
        let mut is_whole = true;
        for entry in self.lines[way].take_entries() {
            let LogEntry::Packet(record) = entry else { continue };
            is_whole &= record.outcome != PacketFate::Dropped;
            if let Some((from_ns, to_ns)) = record.sent_ns {
                self.busy[way].add(from_ns, to_ns);
                self.link_bytes[way] += u64::from(record.bytes);
            }
        }
        is_whole
    }

    fn predicted(&self) -> StartPrediction {
        let blocked = self.connections.iter().flat_map(|connection| &connection.ends).map(|end| end.blocked.list());
        let lists: Vec<&[Span]> = blocked.chain(self.busy.iter().map(Spans::list)).chain([self.waits.list()]).collect();
        StartPrediction {
            elapsed_ns: self.ended_ns,
            delay_ns: length_until(&union(&lists), self.ended_ns),
            wait_ns: self.waits.total_ns(),
            round_trips: self.wait_count,
            link_bytes: self.link_bytes,
        }
    }
}
