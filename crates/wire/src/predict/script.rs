// SPDX-License-Identifier: MIT
//! What a program did at its start, without the network that it did it over.
//!
//! A capture shows when a client spoke and when it was answered. Out of that a [`Script`] keeps what any link leaves as it
//! is: how long the program thought before each of its steps and which message of the server it waited for first; how long
//! the server needed for each of its messages and which bytes of the client it needed for that; and how many bytes all of
//! them have. The capture's own link is taken out as far as its handshake shows it.
//!
//! | before a step came | the step waits for |
//! |---|---|
//! | a reply that the program waited for ([`Waits`]) | that reply |
//! | a message of the server, less than [`PROMPT_NS`] before the step, after the step before | that message: it is what woke the program |
//! | anything else | nothing: the program thought |
//!
//! All connections of a capture are one thread of control: a step comes after the one before it, on whichever connection
//! that was. Programs that start side by side are so foretold as if they started one after the other.

use crate::analysis::handshake::Handshake;
use crate::analysis::names::Names;
use crate::analysis::proxied::{Proxied, Proxy};
use crate::analysis::startup::QUIET_NS;
use crate::analysis::waits::Waits;
use crate::answerable::{Class, Lbx, row};
use crate::observe::{ConnectionId, Direction, Gap, Kind, Message, Observer, Opened, Packet};
use std::collections::HashMap;

/// Who speaks so soon after a message was waiting for it.
pub const PROMPT_NS: u64 = 5_000_000;
/// Connections, messages and bytes of a start; what comes later is not foretold.
const MAX_CONNECTIONS: usize = 1_024;
const MAX_MESSAGES: usize = 1_000_000;
const MAX_BYTES: u64 = 256 << 20;
/// What stands in place of a request that a proxy answers, to keep numbers aligned: NoOperation.
const PLACEHOLDER_BYTES: u64 = 4;
/// What LBX sends in place of data that its proxy has: a reply without them.
const TAG_BYTES: u64 = 32;

/// One thing that the program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub connection: usize,
    /// After the step before, or after what it waits for if that is later.
    pub think_ns: u64,
    pub after: Option<After>,
    pub action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Connects to the server.
    Open,
    /// Sends so many bytes; none where a proxy answered all that was asked.
    Send(u64),
}

/// What a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    pub connection: usize,
    /// Which of the server's messages on it.
    pub place: usize,
    /// A reply; otherwise something happened that the program did not ask for.
    pub is_reply: bool,
}

/// A message of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// Bytes of the client that the server has read before.
    pub cause: u64,
    /// After these came, or after its last message.
    pub service_ns: u64,
    pub bytes: u64,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub steps: Vec<Step>,
    /// For each connection, what its server says.
    pub said: Vec<Vec<Said>>,
}

/// Makes a script of a capture.
#[derive(Debug, Default)]
pub struct Recorder {
    script: Script,
    names: Names,
    connections: HashMap<ConnectionId, Recorded>,
    proxy: Option<Proxy>,
    /// The last step's end, and of which connection it was.
    last_step: Option<(usize, u64)>,
    /// The reply that was waited for since then.
    awaited: Option<Heard>,
    /// The last message of a server since then.
    heard: Option<Heard>,
    last_ns: u64,
    messages: usize,
    bytes: u64,
    has_window: bool,
    is_over: bool,
    incomplete: bool,
}

/// A message that the program heard.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// What has to come from the server for it, where anything has to.
    after: Option<After>,
    at_ns: u64,
    to_client_ns: u64,
}

/// Who answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    OfServer,
    /// The proxy; the server does not hear of the question.
    OfProxy,
    /// The proxy, and the server again, whose reply is compared.
    Repeated,
}

/// One connection so far.
#[derive(Debug)]
struct Recorded {
    place: usize,
    waits: Waits,
    proxied: Option<Proxied>,
    /// Ends of the client's messages in its stream, by their numbers from 0, with the times at which they came.
    requests: Vec<(u64, u64)>,
    sent: u64,
    said_ns: u64,
    /// The last reply that comes from the server.
    last_reply: Option<usize>,
    /// Whether the proxy answers, by the number of the request.
    answered: HashMap<u64, bool>,
    /// What the capture's own link takes to the server and back, and to the client and back.
    handshake: Handshake,
}

impl Recorder {
    /// As it would be behind a proxy beside the program.
    pub fn behind(proxy: Option<Proxy>) -> Recorder {
        Recorder { proxy, ..Recorder::default() }
    }

    /// The script, once the capture is read. `None`: no connection was captured from its beginning.
    pub fn script(self) -> Option<Script> {
        (!self.script.steps.is_empty() && !self.incomplete).then_some(self.script)
    }

    /// Two seconds of silence behind the first window end the start.
    fn is_over(&mut self, message: &Message<'_>) -> bool {
        let is_quiet = self.has_window && message.first_ns.saturating_sub(self.last_ns) >= QUIET_NS;
        let is_too_long = self.messages >= MAX_MESSAGES || self.bytes.saturating_add(message.length) > MAX_BYTES;
        self.is_over |= is_quiet || is_too_long;
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(message.length);
        self.last_ns = self.last_ns.max(message.last_ns);
        self.has_window |= matches!(message.name, "MapWindow" | "MapSubwindows" | "Expose");
        self.is_over
    }

    /// What lies between `at_ns` and `end_ns` is the capture's own link, which took the bytes.
    fn step(&mut self, connection: usize, (at_ns, end_ns): (u64, u64), action: Action) {
        let last_ns = self.last_step.map_or(at_ns, |(_, last_ns)| last_ns);
        let prompt = self.heard.filter(|heard| at_ns.saturating_sub(heard.at_ns) <= PROMPT_NS);
        let heard = self.awaited.or(prompt);
        let since_ns = heard.map_or(last_ns, |heard| heard.at_ns.max(last_ns));
        let think_ns = at_ns.saturating_sub(since_ns).saturating_sub(heard.map_or(0, |heard| heard.to_client_ns));
        self.script.steps.push(Step { connection, think_ns, after: heard.and_then(|heard| heard.after), action });
        (self.awaited, self.heard, self.last_step) = (None, None, Some((connection, end_ns)));
    }

    fn says(&mut self, id: ConnectionId, message: &Message<'_>) {
        let Some(recorded) = self.connections.get_mut(&id) else { return };
        let name = self.names.id(message.name);
        let wait = recorded.waits.message(message, name, &mut self.names);
        let answer = recorded.proxied.as_mut().and_then(|proxied| proxied.message(message, wait.as_ref()));
        if let Some(is_answered) = answer {
            recorded.answered.insert(message.sequence, is_answered);
        }
        if message.kind.direction() == Direction::Replies {
            self.heard = recorded.said(&mut self.script.said, message).or(self.heard);
            if wait.is_some() {
                self.awaited = self.heard;
            }
            return;
        }
        if let Some(wait) = wait {
            self.awaited = Some(recorded.heard(recorded.last_reply, true, wait.to_ns));
        }
        let bytes = recorded.send(message);
        // Requests of one packet are one step.
        let goes_on = self.last_step == Some((recorded.place, message.last_ns)) && self.awaited.is_none();
        let place = recorded.place;
        match self.script.steps.last_mut() {
            Some(Step { action: Action::Send(sum), .. }) if goes_on => *sum += bytes,
            _ => self.step(place, (message.first_ns, message.last_ns), Action::Send(bytes)),
        }
    }
}

impl Recorded {
    fn new(place: usize, proxy: Option<Proxy>) -> Recorded {
        Recorded {
            place,
            waits: Waits::default(),
            proxied: proxy.map(Proxied::new),
            requests: Vec::new(),
            sent: 0,
            said_ns: 0,
            last_reply: None,
            answered: HashMap::new(),
            handshake: Handshake::default(),
        }
    }

    /// Takes a request; how many bytes of it go to the server.
    fn send(&mut self, message: &Message<'_>) -> u64 {
        let bytes = match self.place_of_answer(message) {
            _ if message.kind == Kind::Setup => message.length,
            Answer::OfServer | Answer::Repeated => message.length,
            Answer::OfProxy if self.proxy() == Some(Proxy::Lbx) => 0,
            Answer::OfProxy => PLACEHOLDER_BYTES.min(message.length),
        };
        self.sent += bytes;
        self.requests.push((self.sent, message.last_ns));
        bytes
    }

    /// Takes what the server said; what a program hears of it, and when it did.
    fn said(&mut self, said: &mut [Vec<Said>], message: &Message<'_>) -> Option<Heard> {
        let list = said.get_mut(self.place)?;
        let sequence = usize::try_from(message.sequence).unwrap_or(usize::MAX).min(self.requests.len().checked_sub(1)?);
        let (cause, asked_ns) = self.requests[sequence];
        let since_ns = asked_ns.max(self.said_ns);
        let is_fresh = since_ns == asked_ns;
        let there_and_back_ns = if is_fresh { self.handshake.to_server_ns } else { 0 };
        let service_ns = message.last_ns.saturating_sub(since_ns).saturating_sub(there_and_back_ns);
        self.said_ns = message.last_ns;
        let is_reply = message.kind != Kind::Event;
        let answer = if is_reply { self.place_of_answer(message) } else { Answer::OfServer };
        let mut place = self.last_reply;
        if answer != Answer::OfProxy {
            let is_tagged = self.proxy() == Some(Proxy::Lbx) && row(message.name).lbx == Lbx::Tagged && is_reply;
            let bytes = if is_tagged { TAG_BYTES.min(message.length) } else { message.length };
            list.push(Said { cause, service_ns, bytes });
        }
        if answer == Answer::OfServer {
            place = list.len().checked_sub(1);
            self.last_reply = if is_reply { place } else { self.last_reply };
        }
        Some(self.heard(place, is_reply, message.last_ns))
    }

    fn heard(&self, place: Option<usize>, is_reply: bool, at_ns: u64) -> Heard {
        let after = place.map(|place| After { connection: self.place, place, is_reply });
        Heard { after, at_ns, to_client_ns: self.handshake.to_client_ns }
    }

    fn proxy(&self) -> Option<Proxy> {
        self.proxied.as_ref().map(|proxied| proxied.proxy)
    }

    fn place_of_answer(&self, message: &Message<'_>) -> Answer {
        let is_answered = self.answered.get(&message.sequence) == Some(&true);
        match self.proxy() {
            Some(proxy) if is_answered && (proxy == Proxy::Lbx || row(message.name).class == Class::Constant) => {
                Answer::OfProxy
            }
            Some(_) if is_answered => Answer::Repeated,
            _ => Answer::OfServer,
        }
    }
}

impl Observer for Recorder {
    fn opened(&mut self, id: ConnectionId, opened: &Opened) {
        self.is_over |= self.script.said.len() >= MAX_CONNECTIONS;
        if self.is_over {
            return;
        }
        self.incomplete |= opened.started_midstream;
        let place = self.script.said.len();
        self.script.said.push(Vec::new());
        self.connections.insert(id, Recorded::new(place, self.proxy));
        self.step(place, (opened.at_ns, opened.at_ns), Action::Open);
    }

    fn packet(&mut self, id: ConnectionId, packet: &Packet) {
        let Some(recorded) = self.connections.get_mut(&id) else { return };
        let Some(span) = recorded.handshake.packet(packet) else { return };
        // Connecting took the program that long; another link takes its own time for it.
        if let Some((_, end_ns)) = self.last_step.as_mut().filter(|(place, _)| *place == recorded.place) {
            *end_ns = span.to_ns;
        }
    }

    fn gap(&mut self, _: ConnectionId, gap: &Gap) {
        self.incomplete |= !self.is_over && !gap.is_within_message;
    }

    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        if !self.is_over && !self.is_over(message) {
            self.says(id, message);
        }
    }
}

#[cfg(test)]
mod tests;
