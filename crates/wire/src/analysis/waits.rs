// SPDX-License-Identifier: MIT
//! Round trips that the client really waited for, against those that it overlapped with other work.
//!
//! A capture does not show a program's calls, but it shows its silence. After the client's last words before a silence:
//!
//! | what comes | verdict |
//! |---|---|
//! | the reply (or error) to its newest request | a wait, from the request's last byte to the reply's: whatever it asked for before, it could go on only now or earlier |
//! | the reply to an earlier request, and the client speaks again within [`PROMPT_NS`], after a silence of at least half that round trip | a wait for that one: what followed it needed no answer |
//! | a reply while it goes on to send | pipelined |
//! | one of the many replies of one request | the last one ends the wait |
//! | an event | nothing: nobody asked for it |
//!
//! So a batch of requests with replies is one round trip, named after the last of it. A client that asks and then sits
//! idle, reading the reply when it comes, is counted as well: nothing on the wire tells it from one that waits.

use super::avoidable::{Judge, Question};
use super::names::{NameId, Names};
use super::patterns::{Batch, Patterns};
use super::round_trip::{Total, Wait};
use super::spans::Spans;
use crate::observe::{Kind, Message};
use std::collections::{BTreeMap, VecDeque};

/// Who speaks so soon after a reply was waiting for it. Programs do some work first; more than this is on the safe side.
const PROMPT_NS: u64 = 5_000_000;
/// Requests whose replies are due; more are pipelined by nobody who waits.
const MAX_DUE: usize = 4_096;
/// The name of the greeting, which the client waits for too.
pub const SETUP: &str = "Setup";

/// A request whose reply is due.
#[derive(Clone, Copy, Debug)]
struct Due {
    sequence: u64,
    name: NameId,
    last_ns: u64,
    question: Option<Question>,
}

/// A reply to an earlier request, heard in a silence.
#[derive(Clone, Copy, Debug)]
struct Heard {
    due: Due,
    at_ns: u64,
    is_repeated: bool,
}

/// One client.
#[derive(Debug, Default)]
pub struct Waits {
    pub by_name: BTreeMap<NameId, Total>,
    pub patterns: Patterns,
    /// When it waited.
    pub spans: Spans,
    /// Replies that it did not wait for.
    pub pipelined: u64,
    due: VecDeque<Due>,
    /// Number and end of the newest request.
    newest: Option<(u64, u64)>,
    heard: Option<Heard>,
    batch: Batch,
    judge: Judge,
}

impl Waits {
    /// Takes a message; tells a wait that it completes.
    pub fn message(&mut self, message: &Message<'_>, name: NameId, names: &mut Names) -> Option<Wait> {
        self.judge.message(message);
        match message.kind {
            Kind::Setup => {
                self.asked(message, names.id(SETUP), true);
                None
            }
            Kind::Request => {
                let wait = self.went_on(message.first_ns);
                self.asked(message, name, message.has_reply);
                wait
            }
            Kind::SetupReply | Kind::Error => self.answered(message),
            // Of many replies to one request, the last.
            Kind::Reply if message.has_reply => None,
            Kind::Reply => self.answered(message),
            Kind::Event => None,
        }
    }

    /// Something is missing: what was due may have come in it.
    pub fn gap(&mut self) {
        self.due.clear();
        self.newest = None;
        self.heard = None;
        self.batch = Batch::default();
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        self.gap();
        self.due = VecDeque::new();
        self.judge = Judge::default();
    }

    fn asked(&mut self, message: &Message<'_>, name: NameId, has_reply: bool) {
        self.newest = Some((message.sequence, message.last_ns));
        self.batch.add(name, has_reply);
        if has_reply {
            if self.due.len() >= MAX_DUE {
                self.due.pop_front();
            }
            let question = self.judge.question(message);
            self.due.push_back(Due { sequence: message.sequence, name, last_ns: message.last_ns, question });
        }
    }

    fn answered(&mut self, message: &Message<'_>) -> Option<Wait> {
        let due = self.take_due(message.sequence)?;
        let is_repeated = due.question.is_some_and(|question| self.judge.answer(&question, message));
        let heard = Heard { due, at_ns: message.last_ns, is_repeated };
        if self.newest.is_some_and(|(sequence, _)| sequence == due.sequence) {
            self.heard = None;
            return Some(self.waited(&heard, due.last_ns));
        }
        if self.heard.replace(heard).is_some() {
            self.pipelined += 1;
        }
        None
    }

    /// Replies come in the order of the requests: an earlier one that is still due never comes.
    fn take_due(&mut self, sequence: u64) -> Option<Due> {
        while self.due.front()?.sequence < sequence {
            self.due.pop_front();
        }
        if self.due.front()?.sequence == sequence { self.due.pop_front() } else { None }
    }

    /// The client speaks: did it wait for the reply that came last?
    fn went_on(&mut self, at_ns: u64) -> Option<Wait> {
        let heard = self.heard.take()?;
        let (_, silent_ns) = self.newest?;
        let trip_ns = heard.at_ns.saturating_sub(heard.due.last_ns);
        let silence_ns = heard.at_ns.saturating_sub(silent_ns);
        let is_wait = at_ns.saturating_sub(heard.at_ns) <= PROMPT_NS && silence_ns >= trip_ns / 2 && silence_ns > 0;
        if !is_wait {
            self.pipelined += 1;
            return None;
        }
        Some(self.waited(&heard, silent_ns))
    }

    fn waited(&mut self, heard: &Heard, from_ns: u64) -> Wait {
        let batch = std::mem::take(&mut self.batch);
        let question = heard.due.question;
        let avoidable =
            question.and_then(|question| self.judge.verdict(&question, heard.is_repeated, batch.asks_for_one()));
        let wait = Wait { name: heard.due.name, from_ns, to_ns: heard.at_ns.max(from_ns), avoidable };
        self.by_name.entry(wait.name).or_default().add(&wait);
        self.spans.add(wait.from_ns, wait.to_ns);
        self.patterns.add(batch, &wait);
        wait
    }
}

#[cfg(test)]
mod tests;
