// SPDX-License-Identifier: MIT
//! Trace records: what happened inside the server, one fact in 32 bytes.
//!
//! The first seven kinds are those of Manica et al., section 2.1 (begin, end, creation, destruction, activation,
//! deactivation, dispatch; deactivation is a `Served` after which the client has nothing left). The others let replay
//! give [`xqos_core::Scheduler`] the very calls that it had in the server, and say what was delivered and asked for.
//! Records stand in the order in which the scheduler was told; `at` is when the thing happened, which for an activation
//! may be earlier than the record before it.
//!
//! `record` has the layout: any four words decode to an event or to `None`, and nothing panics on any input.
//! [`What::of_fact`] and [`FactReader`] turn facts into records and back.

mod facts;
mod record;
#[cfg(test)]
mod tests;

pub use facts::FactReader;
use xqos_core::{
    Choice, ClientId, GroupId, Mode, PolicyKind, Reservation, ReservationKind, ReservationState, Role, Scheduler,
    Slice, Time,
};

/// A record as it stands in the ring.
pub type Words = [u64; 4];
/// Bytes of a record.
pub const RECORD_BYTES: usize = 32;

/// How much is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Decisions and slices: nothing is done for a request.
    Slices,
    /// Each request besides, with its length and duration.
    Requests,
}

impl Level {
    /// The level of a code in StartTrace.
    pub fn from_code(code: u8) -> Option<Level> {
        match code {
            1 => Some(Level::Slices),
            2 => Some(Level::Requests),
            _ => None,
        }
    }

    /// Its code.
    pub fn code(self) -> u8 {
        match self {
            Level::Slices => 1,
            Level::Requests => 2,
        }
    }

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Slices => "slices",
            Level::Requests => "requests",
        }
    }
}

/// Why this client was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The policy `stock` leaves the choice to the server.
    Stock,
    /// Somebody holds the server grab.
    Grab,
    /// Of the reserved clients with budget it has the earliest scheduling deadline.
    Deadline,
    /// It is the first in the policy's order.
    Policy,
    /// Nobody else is ready.
    Alone,
    /// It works for others.
    Desktop,
}

impl Reason {
    /// Why a scheduler that has just picked this slice chose it.
    pub fn of(slice: &Slice, scheduler: &Scheduler) -> Reason {
        match slice.choice {
            Choice::Server if scheduler.grab().is_some() => Reason::Grab,
            Choice::Server => Reason::Stock,
            Choice::Client(_, Mode::Reserved) => Reason::Deadline,
            Choice::Client(..) if scheduler.ready_count() == 1 => Reason::Alone,
            Choice::Client(client, _) if scheduler.works_for_others(client) => Reason::Desktop,
            Choice::Client(..) => Reason::Policy,
        }
    }

    const ALL: [Reason; 6] =
        [Reason::Stock, Reason::Grab, Reason::Deadline, Reason::Policy, Reason::Alone, Reason::Desktop];
}

/// A fact and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Time,
    pub what: What,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Tracing began, or a reader joined; `State` and `Identity` of everybody follow. `words`: of the snapshot.
    Begin {
        level: Level,
        server_pid: u32,
        words: u32,
    },
    /// Two words of the scheduler's snapshot.
    State {
        index: u32,
        words: [u64; 2],
    },
    /// Nothing comes after it.
    End,
    /// A client connected.
    Creation {
        client: ClientId,
        descriptor: u32,
    },
    /// Who a client is; pid 0 where it is not local.
    Identity {
        client: ClientId,
        pid: u32,
        base: u32,
        uid: u32,
    },
    /// Sixteen bytes of its program's name, filled up with zeros.
    Name {
        client: ClientId,
        part: u8,
        bytes: [u8; 16],
    },
    /// A client disconnected.
    Destruction {
        client: ClientId,
    },
    /// A client has work: it is in the queue of ready clients.
    Activation {
        client: ClientId,
    },
    /// It turned out to have none, or cannot be served at present.
    Withdrawal {
        client: ClientId,
    },
    /// User input was delivered to it.
    Input {
        client: ClientId,
    },
    /// An Expose was delivered to it, in a request of `cause`.
    Exposed {
        client: ClientId,
        cause: Option<ClientId>,
    },
    /// It uncovered others, and is held until they have redrawn, at most until then.
    Paced {
        client: ClientId,
        until: Time,
    },
    /// What the server gets of a processor by a reservation of the kernel; a period of 0: no reservation.
    Supply {
        budget_ns: u64,
        period_ns: u64,
    },
    /// How clients are paced was set.
    Pacing {
        limit_us: u32,
        floor_us: u32,
    },
    /// What it does for others.
    Role {
        client: ClientId,
        role: Role,
    },
    /// After a rest, a request of this client made work for a desktop client.
    MadeWork {
        client: ClientId,
    },
    /// What a window manager does from now on is work for this client.
    WorksFor {
        client: ClientId,
        whom: ClientId,
    },
    /// The largest share of desktop clients while others wait; 0: they are served like all others.
    Desktop {
        share_ppm: u32,
    },
    /// Contention begins or ends.
    Contention {
        is_on: bool,
    },
    /// It grabbed the server; `None`: nobody does any more.
    Grab {
        client: Option<ClientId>,
    },
    /// The slice that ends should have ended this much earlier.
    Overran {
        ns: u64,
    },
    /// A decision. `client` is `None` where the server chooses.
    Dispatch {
        client: Option<ClientId>,
        mode: Mode,
        reason: Reason,
        until: Time,
        requests: u32,
        bytes: u32,
    },
    /// A slice ended; `at` is its end.
    Served {
        client: ClientId,
        still_ready: bool,
        ended_early: bool,
        requests: u32,
        /// Major opcode + 65536 x minor opcode.
        last_request: u32,
        bytes: u32,
        start: Time,
    },
    /// Of the slice that ends next: the server had a processor for less time, since the kernel ran something else meanwhile.
    /// Without this record it had one nearly all the time.
    Processor {
        client: ClientId,
        ns: u64,
    },
    /// Depleted clients whose time has come are given their budgets.
    Replenish,
    /// A reservation as it stands now.
    Budget {
        client: ClientId,
        kind: ReservationKind,
        depleted: bool,
        left_ns: i64,
        deadline: Time,
    },
    /// A client asked for a reservation.
    Reserve {
        client: ClientId,
        reservation: Reservation,
        admitted: bool,
    },
    /// A reservation ended.
    Clear {
        client: ClientId,
    },
    /// The policy was set; all begin anew in it.
    Policy {
        kind: PolicyKind,
    },
    /// The first half of the parameters.
    Intervals {
        slice_us: u32,
        timer_interval_us: u32,
        maximum_slice_us: u32,
    },
    /// The second half: they are in force now.
    Limits {
        max_utilization_ppm: u32,
        blocking_us: u32,
    },
    SyncPriority {
        client: ClientId,
        priority: i32,
    },
    Weight {
        client: ClientId,
        weight: u32,
    },
    /// A client is in this group from now on.
    Group {
        client: ClientId,
        group: GroupId,
    },
    /// The weight of a group was set; 0: it weighs as much as its heaviest client.
    GroupWeight {
        group: GroupId,
        weight: u32,
    },
    /// The most that a group gets was set; 0: it has no cap.
    GroupCap {
        group: GroupId,
        ppm: u32,
    },
    /// A reservation that the clients of a group use together was asked for.
    GroupReserve {
        group: GroupId,
        reservation: Reservation,
        admitted: bool,
    },
    /// The reservation of a group ended.
    GroupRelease {
        group: GroupId,
    },
    FixedPriority {
        client: ClientId,
        priority: i32,
    },
    /// A request was executed; `at` is its end. Level `requests` only.
    Request {
        client: ClientId,
        request: u32,
        bytes: u32,
        ns: u64,
    },
    /// Written by readers: how many records are missing here.
    Lost {
        records: u64,
    },
    /// From the kernel, written by readers: this processor goes from one thread to another.
    Switch {
        cpu: u32,
        from: u32,
        to: u32,
        still_runnable: bool,
    },
    /// From the kernel: a thread was woken.
    Wakeup {
        cpu: u32,
        thread: u32,
    },
}

impl What {
    /// The dispatch of a slice.
    pub fn dispatch(slice: &Slice, reason: Reason) -> What {
        let (client, mode) = match slice.choice {
            Choice::Client(client, mode) => (Some(client), mode),
            Choice::Server => (None, Mode::BestEffort),
        };
        What::Dispatch { client, mode, reason, until: slice.until, requests: slice.requests, bytes: slice.bytes }
    }

    /// A reservation as it stands.
    pub fn budget(client: ClientId, state: &ReservationState) -> What {
        let (kind, depleted) = (state.reservation.kind, state.depleted);
        What::Budget { client, kind, depleted, left_ns: state.budget_left_ns, deadline: state.deadline }
    }
}
