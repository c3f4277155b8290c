// SPDX-License-Identifier: MIT
//! A client of a trace: its identity, its figures and the causes of its waits.

use crate::histogram::Histogram;
use std::collections::BTreeMap;
use xqos_core::{ClientId, Reservation, ReservationKind, Role, Time};

/// Identity of a client. The identity is kept after the client disconnects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Resource base, which distinguishes clients that had the same index at different times.
    pub base: u32,
    pub pid: u32,
    pub uid: u32,
    pub program: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Slices of this client that ended with this kind of request. `long`: each slice was a single long request.
    Client { key: usize, request: u32, long: bool },
    /// This client held the server grab.
    Grab { key: usize },
    /// The server was runnable, but the kernel ran something else.
    Kernel,
    /// No client was served. Without kernel events, includes time when the server had no processor.
    Server,
    /// The waiting client's own budget was used up, and its reservation is hard.
    HeldBack,
}

/// Figures of a client, in total or since they were last reset.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub server_time_ns: u64,
    pub reserved_time_ns: u64,
    pub requests: u64,
    pub slices: u64,
    /// Response times of the client's bursts.
    pub responses: Histogram,
    pub waited_ns: u64,
    pub longest_wait_ns: u64,
    /// Length and kind of the longest request.
    pub longest_request: Option<(u64, u32)>,
    pub grabs: u64,
    pub grabbed_ns: u64,
    pub longest_grab_ns: u64,
    pub depletions: u64,
    /// Number of deadlines that passed while the client had both budget and requests.
    pub misses: u64,
    pub inputs: u64,
    /// Number of times that another client was served between two parts of its requests.
    pub cuts: u64,
    /// Rests of its cut requests that were executed early, because another client's request used the same data.
    pub finished: u64,
    pub finished_ns: u64,
    pub exposes: u64,
    /// Time during which the client was runnable but had no processor, according to kernel events.
    pub without_processor_ns: u64,
    /// Figures by kind of request, if requests were traced.
    pub kinds: BTreeMap<u32, RequestTotals>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTotals {
    pub count: u64,
    pub ns: u64,
    pub longest_ns: u64,
    pub bytes: u64,
}

/// The state of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub left_ns: i64,
    pub deadline: Time,
    pub kind: ReservationKind,
    pub depleted: bool,
    pub(super) missed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burst {
    pub key: usize,
    pub activation: Time,
    pub end: Time,
    pub own_ns: u64,
    /// Processor time of the server during the client's own slices.
    pub worked_ns: u64,
    pub waited_ns: u64,
    /// Causes and their lengths in nanoseconds, longest first.
    pub causes: Vec<(Cause, u64)>,
}

/// A client of the trace. Its key is its index in [`Model::clients`](super::Model::clients), which never changes. After
/// the client is forgotten, another one may get the key.
#[derive(Clone, Debug, Default)]
pub struct Client {
    pub id: ClientId,
    pub identity: Identity,
    pub connected: Time,
    pub gone: Option<Time>,
    pub budget: Option<Budget>,
    /// The terms of its last reservation.
    pub reservation: Option<Reservation>,
    pub total: Figures,
    /// Figures since the last call of [`Model::take_recent`](super::Model::take_recent).
    pub recent: Figures,
    pub sync_priority: i32,
    pub role: Role,
    /// The bytes of its program's name, which arrives in parts.
    pub(super) name: Vec<u8>,
    pub(super) ready_since: Option<Time>,
    pub(super) waits_since: Time,
    pub(super) own_ns: u64,
    pub(super) worked_ns: u64,
    pub(super) waits: BTreeMap<Cause, u64>,
    pub(super) grabbed_at: Option<Time>,
    pub(super) demand: Demand,
    pub(super) is_forgotten: bool,
}

/// A client's service time and idle time, which give the share of the server that it would use if it never waited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    own_ns: u64,
    rest_ns: u64,
}

impl Demand {
    /// Only about the last second of service time and idle time counts.
    const REMEMBERED_NS: u64 = 1_000_000_000;

    pub(super) fn add(&mut self, own_ns: u64, rest_ns: u64) {
        add(&mut self.own_ns, own_ns);
        add(&mut self.rest_ns, rest_ns);
    }

    /// Ages the sums. Called before an idle period is added, so that this period and the next burst count fully.
    pub(super) fn forget(&mut self) {
        let sum = u128::from(self.own_ns) + u128::from(self.rest_ns);
        let kept = |ns: u64| (u128::from(ns) * u128::from(Self::REMEMBERED_NS) / sum) as u64;
        if sum > Self::REMEMBERED_NS.into() {
            (self.own_ns, self.rest_ns) = (kept(self.own_ns), kept(self.rest_ns));
        }
    }
}

/// Adds to a sum. It saturates, because a damaged trace may contain any numbers.
pub(super) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

impl Client {
    pub(super) fn figures(&mut self, change: impl Fn(&mut Figures)) {
        change(&mut self.total);
        change(&mut self.recent);
    }

    pub(super) fn waited(&mut self, cause: Cause, ns: u64) {
        if ns > 0 {
            add(self.waits.entry(cause).or_default(), ns);
        }
    }

    /// Whether the client alone would use more than half of the server's time. Such a client waits by design.
    pub fn is_busy(&self) -> bool {
        self.demand.own_ns > self.demand.rest_ns
    }

    /// Start of the current wait, if the client has requests and is not being served.
    pub fn waits_since(&self) -> Option<Time> {
        self.ready_since.map(|_| self.waits_since)
    }
}
