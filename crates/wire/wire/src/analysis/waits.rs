// SPDX-License-Identifier: MIT
//! Finds the round trips that the client waited for, as opposed to those that overlapped with other work.
//!
//! A capture shows no function calls, but it shows when the client is silent. After the client's last request before a
//! silence:
//!
//! | event | verdict |
//! |---|---|
//! | the reply (or error) to its newest request | a wait, from the end of the request to the end of the reply |
//! | the reply to an earlier request, and the client soon sends again | a wait for that reply |
//! | a reply while the client keeps sending | pipelined |
//! | one of several replies to one request | the last one ends the wait |
//! | an event | nothing: events are not requested |
//!
//! "Soon" means within [`PROMPT_NS`], after a silence of at least half of that reply's round trip.
//!
//! A batch of requests with replies is therefore one round trip, named after its last request. A client that idles
//! after a request and reads the reply on arrival also counts as waiting: the wire shows no difference.

use super::avoidable::{AvoidableQuestion, Judge};
use super::names::{NameId, NameTable};
use super::patterns::{Batch, Patterns};
use super::round_trip::{Wait, WaitTotal};
use super::spans::Spans;
use crate::observe::{Kind, Message};
use std::collections::{BTreeMap, VecDeque};

/// If a client sends within this time after a reply, it was waiting for that reply. Programs do some work first; a
/// higher limit would report waits that did not happen.
const PROMPT_NS: u64 = 5_000_000;
/// Maximum number of pending replies. A client that waits has fewer.
const MAX_PENDING: usize = 4_096;
/// Name of the connection setup, which the client also waits for.
pub const SETUP: &str = "Setup";

#[derive(Clone, Copy, Debug)]
struct Unanswered {
    sequence: u64,
    name: NameId,
    last_ns: u64,
    question: Option<AvoidableQuestion>,
}

/// A reply to an earlier request that arrived while the client was silent.
#[derive(Clone, Copy, Debug)]
struct ReceivedReply {
    request: Unanswered,
    at_ns: u64,
    is_repeated: bool,
}

#[derive(Debug, Default)]
pub struct Waits {
    pub by_name: BTreeMap<NameId, WaitTotal>,
    pub patterns: Patterns,
    pub spans: Spans,
    /// Replies that the client did not wait for.
    pub pipelined: u64,
    pending: VecDeque<Unanswered>,
    /// Sequence number and end of the newest request.
    newest: Option<(u64, u64)>,
    reply: Option<ReceivedReply>,
    batch: Batch,
    judge: Judge,
}

impl Waits {
    /// Takes a message and returns the wait that it completes or reveals.
    pub fn message(&mut self, message: &Message<'_>, name: NameId, names: &mut NameTable) -> Option<Wait> {
        self.judge.message(message);
        match message.kind {
            Kind::Setup => {
                self.asked(message, names.id(SETUP), true);
                None
            }
            Kind::Request => {
                let wait = self.resumed(message.first_ns);
                self.asked(message, name, message.has_reply);
                wait
            }
            Kind::SetupReply | Kind::Error => self.answered(message),
            // Only the last of several replies ends the wait.
            Kind::Reply if message.has_reply => None,
            Kind::Reply => self.answered(message),
            Kind::Event => None,
        }
    }

    /// Records that messages are missing, which may include pending replies.
    pub fn gap(&mut self) {
        self.pending.clear();
        self.newest = None;
        self.reply = None;
        self.batch = Batch::default();
    }

    pub fn end(&mut self) {
        self.gap();
        self.pending = VecDeque::new();
        self.judge = Judge::default();
    }

    fn asked(&mut self, message: &Message<'_>, name: NameId, has_reply: bool) {
        self.newest = Some((message.sequence, message.last_ns));
        self.batch.add(name, has_reply);
        if has_reply {
            if self.pending.len() >= MAX_PENDING {
                self.pending.pop_front();
            }
            let question = self.judge.question(message);
            self.pending.push_back(Unanswered { sequence: message.sequence, name, last_ns: message.last_ns, question });
        }
    }

    fn answered(&mut self, message: &Message<'_>) -> Option<Wait> {
        let request = self.take_pending(message.sequence)?;
        let is_repeated = request.question.is_some_and(|question| self.judge.answer(&question, message));
        let reply = ReceivedReply { request, at_ns: message.last_ns, is_repeated };
        if self.newest.is_some_and(|(sequence, _)| sequence == request.sequence) {
            self.reply = None;
            return Some(self.waited(&reply, request.last_ns));
        }
        if self.reply.replace(reply).is_some() {
            self.pipelined += 1;
        }
        None
    }

    /// Replies arrive in request order, so earlier pending requests can no longer be answered.
    fn take_pending(&mut self, sequence: u64) -> Option<Unanswered> {
        while self.pending.front()?.sequence < sequence {
            self.pending.pop_front();
        }
        if self.pending.front()?.sequence == sequence { self.pending.pop_front() } else { None }
    }

    /// Called when the client sends again. Returns a wait if the client was waiting for the last reply.
    fn resumed(&mut self, at_ns: u64) -> Option<Wait> {
        let reply = self.reply.take()?;
        let (_, silent_ns) = self.newest?;
        let trip_ns = reply.at_ns.saturating_sub(reply.request.last_ns);
        let silence_ns = reply.at_ns.saturating_sub(silent_ns);
        let is_wait = at_ns.saturating_sub(reply.at_ns) <= PROMPT_NS && silence_ns >= trip_ns / 2 && silence_ns > 0;
        if !is_wait {
            self.pipelined += 1;
            return None;
        }
        Some(self.waited(&reply, silent_ns))
    }

    fn waited(&mut self, reply: &ReceivedReply, from_ns: u64) -> Wait {
        let batch = std::mem::take(&mut self.batch);
        let question = reply.request.question;
        let avoidable =
            question.and_then(|question| self.judge.verdict(&question, reply.is_repeated, batch.asks_for_one()));
        let wait = Wait { name: reply.request.name, from_ns, to_ns: reply.at_ns.max(from_ns), avoidable };
        self.by_name.entry(wait.name).or_default().add(&wait);
        self.spans.add(wait.from_ns, wait.to_ns);
        self.patterns.add(batch, &wait);
        wait
    }
}

#[cfg(test)]
mod tests;
