// SPDX-License-Identifier: MIT
//! What is known about a client of a trace: who it is, what it did, what it waited for.

use crate::histogram::Histogram;
use std::collections::BTreeMap;
use xqos_core::{ClientId, ReservationKind, Time};

/// Who a client is. Stays when it is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The resource base: tells apart clients that had the same index one after the other.
    pub base: u32,
    pub pid: u32,
    pub uid: u32,
    pub program: String,
}

/// What a wait was spent on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Behind this client's slices, that ended with this kind of request; `long`: each of a single long request.
    Client { key: usize, request: u32, long: bool },
    /// This client held the server grab.
    Grab { key: usize },
    /// The server was runnable and the kernel ran something else.
    Kernel,
    /// Nobody was being served; without the kernel's records, also because the server had no processor between two slices.
    Server,
    /// Its own budget was used up, and its reservation is hard.
    HeldBack,
}

/// What a client did and suffered, in a trace or since the last look.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub server_time_ns: u64,
    pub reserved_time_ns: u64,
    pub requests: u64,
    pub slices: u64,
    /// Response times of its bursts.
    pub responses: Histogram,
    pub waited_ns: u64,
    pub longest_wait_ns: u64,
    /// Length and request.
    pub longest_request: Option<(u64, u32)>,
    pub grabs: u64,
    pub grabbed_ns: u64,
    pub longest_grab_ns: u64,
    pub depletions: u64,
    /// Deadlines that passed while it had budget and work.
    pub misses: u64,
    pub inputs: u64,
    pub exposes: u64,
    /// The client was runnable and had no processor, from the kernel.
    pub without_processor_ns: u64,
    /// Kinds of requests, where each was traced.
    pub kinds: BTreeMap<u32, Kind>,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    pub count: u64,
    pub ns: u64,
    pub longest_ns: u64,
    pub bytes: u64,
}

/// A reservation as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub left_ns: i64,
    pub deadline: Time,
    pub kind: ReservationKind,
    pub depleted: bool,
    pub(super) missed: bool,
}

/// A burst that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burst {
    pub key: usize,
    pub activation: Time,
    pub end: Time,
    pub own_ns: u64,
    /// Of its own slices, the time in which the server had a processor.
    pub worked_ns: u64,
    pub waited_ns: u64,
    /// The greatest first.
    pub causes: Vec<(Cause, u64)>,
}

/// A client of the trace; `key` is its place in [`Model::clients`](super::Model::clients) for good.
#[derive(Clone, Debug, Default)]
pub struct Client {
    pub id: ClientId,
    pub identity: Identity,
    pub connected: Time,
    pub gone: Option<Time>,
    pub budget: Option<Budget>,
    pub total: Figures,
    /// Since [`Model::take_recent`](super::Model::take_recent).
    pub recent: Figures,
    pub sync_priority: i32,
    pub(super) ready_since: Option<Time>,
    pub(super) waits_since: Time,
    pub(super) own_ns: u64,
    pub(super) worked_ns: u64,
    pub(super) behind: BTreeMap<Cause, u64>,
    pub(super) grabbed_at: Option<Time>,
    pub(super) demand: Demand,
}

/// Service and rest of a client: how much of the server it would use if it never had to wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    own_ns: u64,
    rest_ns: u64,
}

impl Demand {
    /// About the last second of service and rest counts.
    const REMEMBERED_NS: u64 = 1_000_000_000;

    pub(super) fn add(&mut self, own_ns: u64, rest_ns: u64) {
        self.own_ns = self.own_ns.saturating_add(own_ns);
        self.rest_ns = self.rest_ns.saturating_add(rest_ns);
    }

    /// Called before each rest, so that the last rest and the burst after it count in full.
    pub(super) fn forget(&mut self) {
        let sum = u128::from(self.own_ns) + u128::from(self.rest_ns);
        let kept = |ns: u64| (u128::from(ns) * u128::from(Self::REMEMBERED_NS) / sum) as u64;
        if sum > Self::REMEMBERED_NS.into() {
            (self.own_ns, self.rest_ns) = (kept(self.own_ns), kept(self.rest_ns));
        }
    }
}

impl Client {
    pub(super) fn figures(&mut self, change: impl Fn(&mut Figures)) {
        change(&mut self.total);
        change(&mut self.recent);
    }

    pub(super) fn waited(&mut self, cause: Cause, ns: u64) {
        if ns > 0 {
            let sum = self.behind.entry(cause).or_default();
            *sum = sum.saturating_add(ns);
        }
    }

    /// It would use more than half of the server on its own: it nearly always has work, and waits for its turn by design.
    pub fn is_busy(&self) -> bool {
        self.demand.own_ns > self.demand.rest_ns
    }

    /// It has work and is not served.
    pub fn waits_since(&self) -> Option<Time> {
        self.ready_since.map(|_| self.waits_since)
    }
}
