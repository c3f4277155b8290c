// SPDX-License-Identifier: MIT
//! Finds the worst wait in a trace and its cause. The same records give the same answer; nothing here does I/O.
//!
//! | candidate | evidence | module |
//! |---|---|---|
//! | a burst of a client that is not busy | the model's waits; busy clients wait for each other by design | `model` |
//! | a block: a slice, a grab, no processor | clients have requests when the server polls after it | `blocks` |
//! | a client at the far end of a slow link | after each reply it is idle for about the same time | `links` |
//!
//! The longer of the first two is reported if it exceeds the limit, otherwise the link. A wait of a busy client is
//! reported only if there is no other candidate.
//!
//! | cause | largest part of the wait |
//! |---|---|
//! | [`Cause::LongRequest`] | one request of another client |
//! | [`Cause::Grab`] | time in which another client held the server grab |
//! | [`Cause::Busy`] | many requests of other clients |
//! | [`Cause::NoProcessor`] | time in which the kernel did not run the server |
//! | [`Cause::SlowLink`] | the transport of replies to the client, and of its next requests to the server |
//! | [`Cause::HeldBack`] | time in which the client's own hard reservation was used up |
//! | [`Cause::Server`] | the server's own work |

mod blocks;
mod links;
mod processor;
mod seen;
#[cfg(test)]
mod tests;

use crate::model::Model;
use crate::names::Names;
use blocks::Blocks;
use seen::is_own;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{PolicyKind, Role, Time};

/// The parameters of a diagnosis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitQuery {
    /// Waits up to this length are normal.
    pub limit_ns: u64,
    /// The process that asks, whose own waits do not count; 0 if there is none.
    pub asker: u32,
    /// Times in which the server waited for a processor, in order, if they were measured independently of the records.
    pub absences: Vec<(Time, Time)>,
}

/// A client or a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// The name as in other views of a trace: "x11perf (1234)".
    pub name: String,
    /// 0 if it is unknown.
    pub pid: u32,
    /// Resource base of a client.
    pub base: u32,
    pub role: Role,
}

/// The worst wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The clients that waited. Empty if the records do not name them.
    pub who: Vec<Party>,
    pub from: Time,
    pub to: Time,
    /// Time waited; less than `to - from` if the client was served in between.
    pub ns: u64,
    /// The client always has work, so that it waits for its turn by design.
    pub is_busy: bool,
    /// The arrival times of the requests are unknown: `ns` is the longest possible wait.
    pub is_at_most: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    LongRequest {
        who: Party,
        /// Empty if it has not ended.
        request: String,
        ns: u64,
    },
    Grab {
        who: Party,
        ns: u64,
    },
    Busy {
        /// Clients that were served for at least a hundredth of the wait.
        clients: usize,
        ns: u64,
    },
    NoProcessor {
        ns: u64,
        /// The threads that ran on the server's processor instead, longest first; empty without records of the kernel.
        ran: Vec<Ran>,
    },
    SlowLink {
        round_trips: usize,
        median_ns: u64,
    },
    HeldBack {
        ns: u64,
    },
    Server {
        ns: u64,
    },
}

/// A thread that ran while the server waited for a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub thread: Party,
    pub ns: u64,
    /// As the kernel counts it: below 0 with a deadline, below 100 real-time, otherwise 120 plus the nice value.
    pub priority: i32,
}

/// A client that was served during the wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub who: Party,
    pub ns: u64,
    pub requests: u64,
    /// The kind of request that ended most of this time.
    pub request: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// `None` if no client waited.
    pub worst: Option<(Wait, Cause)>,
    /// Other clients that were served during the wait, longest first.
    pub served: Vec<Served>,
    /// The part of the wait in which the server had no processor.
    pub absent_ns: u64,
    pub span_ns: u64,
    pub lost: u64,
    pub kernel: bool,
    /// The policy at the end, if the trace has it.
    pub policy: Option<PolicyKind>,
}

/// Finds the worst wait of a trace and its cause.
pub fn diagnose(events: impl Iterator<Item = Event>, names: &Names, question: &WaitQuery) -> Diagnosis {
    let mut seen = seen::Seen::new(question, names);
    events.for_each(|event| seen.take(&event));
    seen.conclude()
}

/// The time that two intervals share.
fn shared_ns(one: (Time, Time), other: (Time, Time)) -> u64 {
    one.1.min(other.1).since(one.0.max(other.0))
}

/// Fires when a client has waited longer than the limit, or may have. Each record costs a few operations.
#[derive(Debug)]
pub struct Trigger {
    model: Model,
    blocks: Blocks,
    limit_ns: u64,
    asker: u32,
}

impl Trigger {
    pub fn new(limit_ns: u64, asker: u32) -> Trigger {
        Trigger { model: Model::without_causes(), blocks: Blocks::default(), limit_ns, asker }
    }

    /// Returns true if this event ends a long wait of a client that is not busy.
    pub fn take(&mut self, event: &Event) -> bool {
        if matches!(event.what, Entry::Begin { .. }) {
            self.model.forget_gone();
        }
        let burst = self.model.take(event);
        let block = self.blocks.take(event, &self.model);
        let counts = |key: usize| self.model.clients().get(key).is_some_and(|client| !is_own(client, self.asker));
        let is_light = |key: usize| counts(key) && !self.model.clients()[key].is_busy();
        burst.is_some_and(|burst| burst.waited_ns > self.limit_ns && is_light(burst.key))
            || block.is_some_and(|block| block.ns() > self.limit_ns && block.waiting.iter().any(|&key| counts(key)))
    }
}
