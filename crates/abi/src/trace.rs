// SPDX-License-Identifier: MIT
//! Trace records: what happened inside the server, one fact in 32 bytes.
//!
//! Seven kinds are those of Manica et al., section 2.1: begin, end, creation, destruction, activation, deactivation (a slice
//! after which the client has nothing left) and dispatch. With the other facts replay gives [`xqos_core::Scheduler`] the very
//! calls that it had in the server. Records stand in the order in which the scheduler was told; `at` is when the thing
//! happened, which for an activation may be earlier than the record before it.
//!
//! `record` has the layout and the names: any four words decode to an event or to `None`, and nothing panics on any input.

mod record;
#[cfg(test)]
mod tests;

pub use record::names;
use xqos_core::{Choice, ClientId, Fact, Mode, Outcome, ReservationKind, ReservationState, Scheduler, Slice, Time};

/// A record as it stands in the ring.
pub type Words = [u64; 4];
/// Bytes of a record.
pub const RECORD_BYTES: usize = 32;

words! {
    /// How much is traced.
    #[derive(PartialOrd, Ord, Hash)]
    Level {
        /// Decisions and slices: nothing is done for a request.
        Slices = 1,
        /// Each request besides, with its length and duration.
        Requests = 2
    }
}

impl Level {
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

/// Something that happened, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Time,
    pub what: What,
}

/// What a record tells: a fact, or one of the few things that the scheduler is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The scheduler was told this. Of [`Fact::Served`] `at` is the end.
    Fact(Fact),
    /// A reservation that was asked for and not admitted.
    Refused(Fact),
    /// Tracing began, or a reader joined; `State` and `Identity` of everybody follow. `words`: of the snapshot.
    Begin { level: Level, server_pid: u32, words: u32 },
    /// Two words of the scheduler's snapshot.
    State { index: u32, words: [u64; 2] },
    /// Nothing comes after it.
    End,
    /// Who a client is; pid 0 where it is not local.
    Identity { client: ClientId, pid: u32, base: u32, uid: u32 },
    /// Sixteen bytes of its program's name, filled up with zeros.
    Name { client: ClientId, part: u8, bytes: [u8; 16] },
    /// A client uncovered others, and is held until they have redrawn, at most until then.
    Paced { client: ClientId, until: Time },
    /// A decision. `client` is `None` where the server chooses.
    Dispatch { client: Option<ClientId>, mode: Mode, reason: Reason, until: Time, requests: u32, bytes: u32 },
    /// Of the slice that ends next: the server had a processor for less time, since the kernel ran something else meanwhile.
    /// Without this record it had one nearly all the time.
    Processor { client: ClientId, ns: u64 },
    /// A reservation as it stands now.
    Budget { client: ClientId, kind: ReservationKind, depleted: bool, left_ns: i64, deadline: Time },
    /// A request was executed; `at` is its end. Level `requests` only.
    Request { client: ClientId, request: u32, bytes: u32, ns: u64 },
    /// Written by readers: how many records are missing here.
    Lost { records: u64 },
    /// From the kernel, written by readers: this processor goes from one thread to another.
    Switch { cpu: u32, from: u32, to: u32, still_runnable: bool },
    /// From the kernel: a thread was woken.
    Wakeup { cpu: u32, thread: u32 },
}

impl What {
    /// A fact, and what came of it.
    pub fn of(fact: Fact, outcome: Outcome) -> What {
        let is_refused = matches!(outcome, Outcome::Admission(_)) && !outcome.is_admitted();
        if is_refused { What::Refused(fact) } else { What::Fact(fact) }
    }

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

    /// What the scheduler was told, whatever came of it.
    pub fn fact(&self) -> Option<Fact> {
        match *self {
            What::Fact(fact) | What::Refused(fact) => Some(fact),
            _ => None,
        }
    }

    /// Whom it is about.
    pub fn client(&self) -> Option<ClientId> {
        match *self {
            What::Fact(fact) | What::Refused(fact) => fact.client(),
            What::Identity { client, .. }
            | What::Name { client, .. }
            | What::Paced { client, .. }
            | What::Processor { client, .. }
            | What::Budget { client, .. }
            | What::Request { client, .. } => Some(client),
            What::Dispatch { client, .. } => client,
            _ => None,
        }
    }
}
