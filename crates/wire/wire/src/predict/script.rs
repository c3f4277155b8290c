// SPDX-License-Identifier: MIT
//! Extracts from a capture what a program did at its start, independent of the captured network.
//!
//! A capture shows when a client sent and when it was answered. A [`Script`] keeps what does not depend on the link:
//! for each step, the program's thinking time and the server message that it waited for; for each server message, the
//! server's time and the client bytes that it needed first; and the sizes of all messages. The captured link's delay
//! is subtracted, as far as the handshake reveals it.
//!
//! | before a step | the step waits for |
//! |---|---|
//! | a reply that the program waited for ([`Waits`]) | that reply |
//! | a server message within [`PROMPT_NS`] and after the previous step | that message, which woke the program |
//! | anything else | nothing: the program was thinking |
//!
//! The start ends with two seconds of silence after the first window, or without a window, with the first such silence.
//!
//! All connections of a capture count as one thread of control: each step follows the previous one, on any connection.
//! Programs that start in parallel are therefore predicted as if they started one after the other.

use crate::analysis::handshake::Handshake;
use crate::analysis::names::NameTable;
use crate::analysis::proxied::{Proxied, Remedy};
use crate::analysis::startup::QUIET_NS;
use crate::analysis::waits::Waits;
use crate::answerable::{Class, Lbx, row};
use crate::observe::{ConnectionId, Direction, Kind, Message, MissingBytes, Observer, Opened, Packet};
use std::collections::HashMap;

/// If a client sends within this time after a message, it was waiting for that message.
pub const PROMPT_NS: u64 = 5_000_000;
/// Maximum numbers of connections, messages and bytes. Any more are ignored.
const MAX_CONNECTIONS: usize = 1_024;
const MAX_MESSAGES: usize = 1_000_000;
const MAX_BYTES: u64 = 256 << 20;
/// Size of the NoOperation that replaces a request answered by a proxy, to keep sequence numbers aligned.
const PLACEHOLDER_BYTES: u64 = 4;
/// Size of the reply that LBX sends instead of data that its proxy already has.
const TAG_BYTES: u64 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub connection: usize,
    /// Thinking time after the previous step, or after the awaited message if that is later.
    pub think_ns: u64,
    pub after: Option<Awaited>,
    pub action: StepAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepAction {
    Open,
    /// Sends this many bytes; 0 if a proxy answered everything.
    Send(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    pub connection: usize,
    /// Index of the server's message on this connection.
    pub index: usize,
    /// True for a reply, false for an event.
    pub is_reply: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerMessage {
    /// Client bytes that the server must read first.
    pub cause: u64,
    /// Time since these bytes arrived, or since the server's previous message if that is later.
    pub service_ns: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub steps: Vec<Step>,
    /// Messages of the server, for each connection.
    pub messages: Vec<Vec<ServerMessage>>,
}

#[derive(Debug, Default)]
pub struct ScriptRecorder {
    script: Script,
    names: NameTable,
    connections: HashMap<ConnectionId, ConnectionRecording>,
    remedy: Option<Remedy>,
    /// Connection and end time of the last step.
    last_step: Option<(usize, u64)>,
    /// The reply that the program has waited for since the last step.
    awaited: Option<Received>,
    /// The last server message after the last step.
    received: Option<Received>,
    last_ns: u64,
    messages: usize,
    bytes: u64,
    has_window: bool,
    first_silence: Option<Silence>,
    is_over: bool,
    incomplete: bool,
}

/// Lengths of the script at the first silence, where the start ends if there is never a window.
#[derive(Debug)]
struct Silence {
    steps: usize,
    messages: Vec<usize>,
    incomplete: bool,
}

#[derive(Clone, Copy, Debug)]
struct Received {
    /// The server message, if any, for which the next step waits.
    after: Option<Awaited>,
    at_ns: u64,
    to_client_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnsweredBy {
    Server,
    /// The proxy answers, and the server never sees the request.
    Proxy,
    /// The proxy answers, and the server answers too, for comparison.
    Both,
}

/// End offset and time of a client message, and whether it has a reply.
#[derive(Clone, Copy, Debug)]
struct SentRequest {
    end: u64,
    at_ns: u64,
    has_reply: bool,
}

#[derive(Debug, Default)]
struct ConnectionRecording {
    index: usize,
    waits: Waits,
    proxied: Option<Proxied>,
    /// Each client message, by sequence number from 0.
    requests: Vec<SentRequest>,
    sent: u64,
    last_message_ns: u64,
    /// The last reply that came from the server.
    last_reply: Option<usize>,
    /// True for requests that the proxy answers, by sequence number.
    answered: HashMap<u64, bool>,
    /// Shows the captured link's round trips to the server and to the client.
    handshake: Handshake,
}

impl ScriptRecorder {
    /// Records the start as it would be with a proxy next to the program, or with batches.
    pub fn with_remedy(remedy: Option<Remedy>) -> ScriptRecorder {
        ScriptRecorder { remedy, ..ScriptRecorder::default() }
    }

    /// The script, at the end of the capture. `None` if no connection was captured completely from its start.
    pub fn script(mut self) -> Option<Script> {
        if let (false, Some(silence)) = (self.has_window, self.first_silence) {
            self.incomplete = silence.incomplete;
            self.script.steps.truncate(silence.steps);
            self.script.messages.truncate(silence.messages.len());
            self.script.messages.iter_mut().zip(silence.messages).for_each(|(list, length)| list.truncate(length));
        }
        (!self.script.steps.is_empty() && !self.incomplete).then_some(self.script)
    }

    /// Notes two seconds of silence. After the first window, they end the start.
    fn note_silence(&mut self, at_ns: u64) {
        if self.messages == 0 || at_ns.saturating_sub(self.last_ns) < QUIET_NS {
            return;
        }
        self.is_over |= self.has_window;
        let Script { steps, messages } = &self.script;
        self.first_silence.get_or_insert_with(|| Silence {
            steps: steps.len(),
            messages: messages.iter().map(Vec::len).collect(),
            incomplete: self.incomplete,
        });
    }

    /// True if the start is over.
    fn is_over(&mut self, message: &Message<'_>) -> bool {
        self.note_silence(message.first_ns);
        let is_too_long = self.messages >= MAX_MESSAGES || self.bytes.saturating_add(message.length) > MAX_BYTES;
        self.is_over |= is_too_long;
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(message.length);
        self.last_ns = self.last_ns.max(message.last_ns);
        self.has_window |= matches!(message.name, "MapWindow" | "MapSubwindows" | "Expose");
        self.is_over
    }

    /// Adds a step. The time from `at_ns` to `end_ns` belongs to the captured link, not to the program.
    fn step(&mut self, connection: usize, (at_ns, end_ns): (u64, u64), action: StepAction) {
        let last_ns = self.last_step.map_or(at_ns, |(_, last_ns)| last_ns);
        let prompt = self.received.filter(|received| at_ns.saturating_sub(received.at_ns) <= PROMPT_NS);
        let received = self.awaited.or(prompt);
        let since_ns = received.map_or(last_ns, |received| received.at_ns.max(last_ns));
        let think_ns = at_ns.saturating_sub(since_ns).saturating_sub(received.map_or(0, |it| it.to_client_ns));
        self.script.steps.push(Step { connection, think_ns, after: received.and_then(|it| it.after), action });
        (self.awaited, self.received, self.last_step) = (None, None, Some((connection, end_ns)));
    }

    fn take_message(&mut self, id: ConnectionId, message: &Message<'_>) {
        let Some(recording) = self.connections.get_mut(&id) else { return };
        let name = self.names.id(message.name);
        let wait = recording.waits.message(message, name, &mut self.names);
        let answer = recording.proxied.as_mut().and_then(|proxied| proxied.message(message, wait.as_ref()));
        if let Some(is_answered) = answer {
            recording.answered.insert(message.sequence, is_answered);
        }
        if message.kind.direction() == Direction::Replies {
            self.received = recording.server_message(&mut self.script.messages, message).or(self.received);
            if wait.is_some() {
                self.awaited = self.received;
            }
            return;
        }
        if let Some(wait) = wait {
            self.awaited = Some(recording.received(recording.last_reply, true, wait.to_ns));
        }
        let bytes = recording.send(message);
        // Requests in one packet are one step.
        let goes_on = self.last_step == Some((recording.index, message.last_ns)) && self.awaited.is_none();
        let index = recording.index;
        match self.script.steps.last_mut() {
            Some(Step { action: StepAction::Send(sum), .. }) if goes_on => *sum += bytes,
            _ => self.step(index, (message.first_ns, message.last_ns), StepAction::Send(bytes)),
        }
    }
}

impl ConnectionRecording {
    fn new(index: usize, remedy: Option<Remedy>) -> ConnectionRecording {
        ConnectionRecording { index, proxied: remedy.map(Proxied::new), ..ConnectionRecording::default() }
    }

    /// Takes a request. Returns the number of its bytes that go to the server.
    fn send(&mut self, message: &Message<'_>) -> u64 {
        let bytes = match self.answered_by(message) {
            _ if message.kind == Kind::Setup => message.length,
            AnsweredBy::Server | AnsweredBy::Both => message.length,
            AnsweredBy::Proxy if self.is_lbx() => 0,
            AnsweredBy::Proxy => PLACEHOLDER_BYTES.min(message.length),
        };
        self.sent += bytes;
        self.requests.push(SentRequest { end: self.sent, at_ns: message.last_ns, has_reply: message.has_reply });
        bytes
    }

    /// Takes a server message. Returns what the program receives, and when.
    fn server_message(&mut self, lists: &mut [Vec<ServerMessage>], message: &Message<'_>) -> Option<Received> {
        let list = lists.get_mut(self.index)?;
        let sequence = usize::try_from(message.sequence).unwrap_or(usize::MAX).min(self.requests.len().checked_sub(1)?);
        let SentRequest { end: cause, at_ns: asked_ns, has_reply } = self.requests[sequence];
        let since_ns = asked_ns.max(self.last_message_ns);
        let is_fresh = since_ns == asked_ns;
        let round_trip_ns = if is_fresh { self.handshake.to_server_ns } else { 0 };
        let service_ns = message.last_ns.saturating_sub(since_ns).saturating_sub(round_trip_ns);
        self.last_message_ns = message.last_ns;
        // No program waits for the error of a request without a reply.
        let is_reply = message.kind != Kind::Event && (message.kind != Kind::Error || has_reply);
        let answer = if is_reply { self.answered_by(message) } else { AnsweredBy::Server };
        let mut index = self.last_reply;
        if answer != AnsweredBy::Proxy {
            let is_tagged = self.is_lbx() && row(message.name).lbx == Lbx::Tagged && is_reply;
            let bytes = if is_tagged { TAG_BYTES.min(message.length) } else { message.length };
            list.push(ServerMessage { cause, service_ns, bytes });
        }
        if answer == AnsweredBy::Server {
            index = list.len().checked_sub(1);
            self.last_reply = if is_reply { index } else { self.last_reply };
        }
        Some(self.received(index, is_reply, message.last_ns))
    }

    fn received(&self, index: Option<usize>, is_reply: bool, at_ns: u64) -> Received {
        let after = index.map(|index| Awaited { connection: self.index, index, is_reply });
        Received { after, at_ns, to_client_ns: self.handshake.to_client_ns }
    }

    fn remedy(&self) -> Option<Remedy> {
        self.proxied.as_ref().map(|proxied| proxied.remedy)
    }

    fn is_lbx(&self) -> bool {
        self.remedy() == Some(Remedy::Lbx)
    }

    fn answered_by(&self, message: &Message<'_>) -> AnsweredBy {
        let is_answered = self.answered.get(&message.sequence) == Some(&true);
        match self.remedy() {
            // One request for many answers moves all of them.
            Some(Remedy::Batch) if is_answered => AnsweredBy::Both,
            Some(_) if is_answered => {
                let is_alone = self.is_lbx() || row(message.name).class == Class::Constant;
                if is_alone { AnsweredBy::Proxy } else { AnsweredBy::Both }
            }
            _ => AnsweredBy::Server,
        }
    }
}

impl Observer for ScriptRecorder {
    fn opened(&mut self, id: ConnectionId, opened: &Opened) {
        self.note_silence(opened.at_ns);
        self.is_over |= self.script.messages.len() >= MAX_CONNECTIONS;
        if self.is_over {
            return;
        }
        self.incomplete |= opened.started_midstream;
        let index = self.script.messages.len();
        self.script.messages.push(Vec::new());
        self.connections.insert(id, ConnectionRecording::new(index, self.remedy));
        self.step(index, (opened.at_ns, opened.at_ns), StepAction::Open);
    }

    fn packet(&mut self, id: ConnectionId, packet: &Packet) {
        let Some(recording) = self.connections.get_mut(&id) else { return };
        let Some(span) = recording.handshake.packet(packet) else { return };
        // Subtract the time for connecting, which depends on the link.
        if let Some((_, end_ns)) = self.last_step.as_mut().filter(|(index, _)| *index == recording.index) {
            *end_ns = span.to_ns;
        }
    }

    fn gap(&mut self, _: ConnectionId, gap: &MissingBytes) {
        self.incomplete |= !self.is_over && !gap.is_within_message;
    }

    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        if !self.is_over && !self.is_over(message) {
            self.take_message(id, message);
        }
    }
}

#[cfg(test)]
mod tests;
