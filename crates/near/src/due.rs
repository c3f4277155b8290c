// SPDX-License-Identifier: MIT
//! What the server still has to answer, and whose turn it is with the program.
//!
//! | queue | in the order of | an entry goes when |
//! |---|---|---|
//! | due | the server's numbers | the server has answered, or has gone past it |
//! | turns | the program's | it was given to the program |
//!
//! A turn exists only for what cannot be given yet: the server's replies, and answers of our own behind them.

use crate::edit::Edit;
use crate::opcodes::Watch;
use crate::store::{Answer, Moment, Question};
use crate::windows::{Placing, Reading};
use std::collections::VecDeque;
use xqos_wire::answerable::Class;

/// What is learned from a reply.
#[derive(Debug)]
pub enum Learn {
    Kept { question: Question, watch: Option<Watch>, asked: Moment },
    Property { request: Box<[u8]>, reading: Reading },
    Place { request: Box<[u8]>, placing: Placing },
}

/// Who a reply is for.
#[derive(Debug)]
pub enum For {
    /// The program, where it has this number.
    Program { number: u64, last_of_many: Option<u8>, asked_ns: u64 },
    /// Nobody: the program has had this answer.
    Comparison { given: Answer, class: Class },
    /// The proxy itself.
    Us,
}

/// A request that the server may answer.
#[derive(Debug)]
pub struct Due {
    /// At the server.
    pub number: u64,
    pub opcodes: (u8, u8),
    pub edit: Option<Edit>,
    pub learn: Option<Learn>,
    pub is_for: For,
    /// A reply is sure to come, or an error.
    pub is_certain: bool,
}

/// All that is due, in order.
#[derive(Debug, Default)]
pub struct Dues(VecDeque<Due>);

impl Dues {
    pub fn push(&mut self, due: Due) {
        self.0.push_back(due);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn has_ours(&self) -> bool {
        self.0.iter().any(|due| matches!(due.is_for, For::Us))
    }

    pub fn has_comparisons(&self) -> bool {
        self.0.iter().any(|due| matches!(due.is_for, For::Comparison { .. }))
    }

    /// The number that a reply means: that of the first request of which it can be.
    pub fn number_of(&self, low: u16) -> Option<u64> {
        self.0.iter().map(|due| due.number).find(|&number| number as u16 == low)
    }

    /// Takes those before this number: the server has gone past them.
    pub fn pass(&mut self, number: u64) -> Option<Due> {
        let is_passed = self.0.front().is_some_and(|due| due.number < number);
        if is_passed { self.0.pop_front() } else { None }
    }

    /// Takes the request with this number, if it is the first.
    pub fn take(&mut self, number: u64) -> Option<Due> {
        let is_first = self.0.front().is_some_and(|due| due.number == number);
        if is_first { self.0.pop_front() } else { None }
    }

    /// Puts back one to which more replies come.
    pub fn put_back(&mut self, due: Due) {
        self.0.push_front(due);
    }
}

/// A request that the program has not had answered.
#[derive(Debug)]
struct Turn {
    number: u64,
    /// Ours; without one it is the server's.
    answer: Option<Answer>,
}

/// Whose turn it is.
#[derive(Debug, Default)]
pub struct Turns {
    queue: VecDeque<Turn>,
    ready_bytes: usize,
}

impl Turns {
    /// Bytes of answers that wait for their turn.
    pub fn ready_bytes(&self) -> usize {
        self.ready_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn wait(&mut self, number: u64) {
        self.queue.push_back(Turn { number, answer: None });
    }

    pub fn ready(&mut self, number: u64, answer: Answer) {
        self.ready_bytes += answer.len();
        self.queue.push_back(Turn { number, answer: Some(answer) });
    }

    /// The server has answered this one, or never will.
    pub fn end(&mut self, number: u64) {
        if let Ok(index) = self.queue.binary_search_by_key(&number, |turn| turn.number) {
            if self.queue[index].answer.is_none() {
                self.queue.remove(index);
            }
        }
    }

    /// The next answer of ours whose turn it is.
    pub fn next(&mut self) -> Option<(u64, Answer)> {
        let answer = self.queue.front()?.answer.clone()?;
        let turn = self.queue.pop_front()?;
        self.ready_bytes -= answer.len();
        Some((turn.number, answer))
    }
}
