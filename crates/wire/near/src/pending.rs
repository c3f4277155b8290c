// SPDX-License-Identifier: MIT
//! Requests that wait for the server, and the order of the answers to the program.
//!
//! | queue | order | an entry is removed when |
//! |---|---|---|
//! | pending | the server's sequence numbers | the server has answered it or a later request |
//! | answers | the program's sequence numbers | the program has been given the answer |
//!
//! An answer is queued only while it must wait: for the server's reply, or, if it is our own, for an earlier reply.

use crate::edit::Edit;
use crate::opcodes::Watch;
use crate::store::{Answer, Changes, Question};
use crate::windows::WindowQuery;
use std::collections::VecDeque;
use xqos_wire::answerable::Class;

/// How the content of a reply is stored.
#[derive(Debug)]
pub enum Learn {
    Answer { question: Question, watch: Option<Watch>, asked: Changes },
    Property { request: Box<[u8]>, reading: WindowQuery },
    Geometry(WindowQuery),
}

#[derive(Debug)]
pub enum Recipient {
    /// The reply goes to the program, for its request `number`.
    Program { number: u64, last_of_many: Option<u8>, asked_ns: u64 },
    /// The reply is only compared with the answer that the program already has.
    Comparison { given: Answer, class: Class },
    /// The reply goes to the proxy.
    Proxy,
}

#[derive(Debug)]
pub struct Pending {
    /// The server's sequence number.
    pub number: u64,
    pub opcodes: (u8, u8),
    pub edit: Option<Edit>,
    pub learn: Option<Learn>,
    pub recipient: Recipient,
    /// Whether a reply or an error is certain to arrive.
    pub is_certain: bool,
}

#[derive(Debug, Default)]
pub struct PendingQueue {
    queue: VecDeque<Pending>,
    /// The server's number of the last request that is certain to be answered.
    pub last_certain: u64,
}

impl PendingQueue {
    pub fn push(&mut self, pending: Pending) {
        if pending.is_certain {
            self.last_certain = pending.number;
        }
        self.queue.push_back(pending);
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether the proxy has already asked for this property.
    pub fn reads(&self, property: &[u8]) -> bool {
        let is_it = |pending: &Pending| match (&pending.recipient, &pending.learn) {
            (Recipient::Proxy, Some(Learn::Property { request, .. })) => request[..] == *property,
            _ => false,
        };
        self.queue.iter().any(is_it)
    }

    pub fn has_comparisons(&self) -> bool {
        self.queue.iter().any(|pending| matches!(pending.recipient, Recipient::Comparison { .. }))
    }

    /// Widens a reply's 16-bit sequence number to that of the first pending request that it matches.
    pub fn number_of(&self, low: u16) -> Option<u64> {
        self.queue.iter().map(|pending| pending.number).find(|&number| number as u16 == low)
    }

    /// Removes the first request before `number`, which the server has passed without replying.
    pub fn pass(&mut self, number: u64) -> Option<Pending> {
        let is_passed = self.queue.front().is_some_and(|pending| pending.number < number);
        if is_passed { self.queue.pop_front() } else { None }
    }

    /// Removes the request with this number if it is the first.
    pub fn take(&mut self, number: u64) -> Option<Pending> {
        let is_first = self.queue.front().is_some_and(|pending| pending.number == number);
        if is_first { self.queue.pop_front() } else { None }
    }

    pub fn put_back(&mut self, pending: Pending) {
        self.queue.push_front(pending);
    }
}

/// A request of the program whose answer has not been given.
#[derive(Debug)]
struct QueuedAnswer {
    number: u64,
    /// Our own answer; `None` while the server's reply is pending.
    answer: Option<Answer>,
}

#[derive(Debug, Default)]
pub struct AnswerQueue {
    queue: VecDeque<QueuedAnswer>,
    /// Total size of our own answers that wait for earlier replies.
    pub ready_bytes: usize,
}

impl AnswerQueue {
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn wait(&mut self, number: u64) {
        self.queue.push_back(QueuedAnswer { number, answer: None });
    }

    pub fn ready(&mut self, number: u64, answer: Answer) {
        self.ready_bytes += answer.len();
        self.queue.push_back(QueuedAnswer { number, answer: Some(answer) });
    }

    /// Removes a request that the server has answered or will not answer.
    pub fn end(&mut self, number: u64) {
        if let Ok(index) = self.queue.binary_search_by_key(&number, |queued| queued.number) {
            if self.queue[index].answer.is_none() {
                self.queue.remove(index);
            }
        }
    }

    /// Removes the next of our own answers. `None` if a reply from the server must come first.
    pub fn next(&mut self) -> Option<(u64, Answer)> {
        let answer = self.queue.front()?.answer.clone()?;
        let queued = self.queue.pop_front()?;
        self.ready_bytes -= answer.len();
        Some((queued.number, answer))
    }
}
