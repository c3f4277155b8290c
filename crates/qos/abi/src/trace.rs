// SPDX-License-Identifier: MIT
//! Trace records: the events inside the server, each in 32 bytes.
//!
//! Seven kinds of events are those of Manica et al., section 2.1: begin, end, creation, destruction, activation,
//! deactivation (a slice after which the client has no more requests) and dispatch. Together with the other facts, they
//! let replay make the same calls to [`xqos_core::Scheduler`] as the server did. Records are in the order of these
//! calls. `at` is the time of the event, which for an activation can be earlier than the previous record.
//!
//! `record` defines the layout and the names. Any four words decode to an event or to `None`; nothing panics on any
//! input.

mod record;
#[cfg(test)]
mod tests;

pub use record::names;
use xqos_core::{Choice, ClientId, Fact, FactOutcome, Mode, ReservationKind, ReservationState, Scheduler, Slice, Time};

/// A record as stored in the ring.
pub type Words = [u64; 4];
pub const RECORD_BYTES: usize = 32;

words! {
    /// The level of detail of a trace.
    #[derive(PartialOrd, Ord, Hash)]
    Level {
        /// Decisions and slices, without any work per request.
        Slices = 1,
        /// In addition, each request with its length and duration.
        Requests = 2
    }
}

impl Level {
    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Slices => "slices",
            Level::Requests => "requests",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The server chooses: policy `stock`, or `fair` without contention.
    Stock,
    /// A client holds the server grab.
    Grab,
    /// It has the earliest scheduling deadline of all clients with reservation budget.
    Deadline,
    /// It is the first in the policy's order.
    Policy,
    /// No other client is ready.
    Alone,
    /// It is a compositor or window manager in its turn.
    Desktop,
}

impl Reason {
    /// The reason why a scheduler has just picked this slice.
    pub fn for_slice(slice: &Slice, scheduler: &Scheduler) -> Reason {
        match slice.choice {
            Choice::Server if scheduler.grab().is_some() => Reason::Grab,
            Choice::Server => Reason::Stock,
            Choice::Client(_, Mode::Reserved) => Reason::Deadline,
            Choice::Client(..) if scheduler.ready_count() == 1 => Reason::Alone,
            Choice::Client(client, _) if scheduler.is_desktop_client(client) => Reason::Desktop,
            Choice::Client(..) => Reason::Policy,
        }
    }

    const ALL: [Reason; 6] =
        [Reason::Stock, Reason::Grab, Reason::Deadline, Reason::Policy, Reason::Alone, Reason::Desktop];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Time,
    pub what: Entry,
}

/// An entry of a trace: a fact, or an event that is not passed to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A fact passed to the scheduler. For [`Fact::Served`], `at` is the end of the slice.
    Fact(Fact),
    /// A request for a reservation that was not admitted.
    Refused(Fact),
    /// Tracing began or a reader joined. `State` entries with `words` words and all clients' `Identity` follow.
    Begin { level: Level, server_pid: u32, words: u32 },
    /// Two words of the scheduler's snapshot.
    State { index: u32, words: [u64; 2] },
    /// The last record.
    End,
    /// The identity of a client; pid 0 if it is not local.
    Identity { client: ClientId, pid: u32, base: u32, uid: u32 },
    /// Sixteen bytes of the program's name, padded with zeros.
    Name { client: ClientId, part: u8, bytes: [u8; 16] },
    /// A client uncovered others and is held until they have redrawn, at most until this time.
    Paced { client: ClientId, until: Time },
    /// A decision. `client` is `None` if the server chooses.
    Dispatch { client: Option<ClientId>, mode: Mode, reason: Reason, until: Time, requests: u32, bytes: u32 },
    /// The server had the processor for only this part of the slice that ends next, because the kernel ran other
    /// threads. Without this record it had the processor nearly all the time.
    Processor { client: ClientId, ns: u64 },
    /// A long request was interrupted for other clients after `done` of its `parts` figures or rows.
    Cut { client: ClientId, request: u32, done: u32, parts: u32 },
    /// The rest of a cut request was executed, because a request of client `by` uses the same pixels or resources.
    Finished { client: ClientId, request: u32, by: ClientId, ns: u64 },
    /// The current state of a reservation.
    Budget { client: ClientId, kind: ReservationKind, depleted: bool, left_ns: i64, deadline: Time },
    /// A request was executed; `at` is its end. Only at level `requests`.
    Request { client: ClientId, request: u32, bytes: u32, ns: u64 },
    /// Written by readers: the number of missing records.
    Lost { records: u64 },
    /// From the kernel, written by readers: this processor switches from one thread to another.
    Switch { cpu: u32, from: u32, to: u32, still_runnable: bool },
    /// From the kernel: a thread was woken.
    Wakeup { cpu: u32, thread: u32 },
    /// From the kernel: the handler of an interrupt has run for this time, which ends at `at`.
    Interrupt { cpu: u32, number: u32, is_soft: bool, ns: u64 },
    /// From the kernel: the name of a thread, padded with zeros.
    ThreadName { thread: u32, bytes: [u8; 16] },
    /// From the kernel: the first sixteen bytes of an interrupt's name.
    InterruptName { number: u32, is_soft: bool, bytes: [u8; 16] },
    /// From the kernel: the process of a thread.
    Thread { thread: u32, process: u32 },
    /// From the kernel: the priority of a thread, as the kernel counts it: below 0 with a deadline, below 100
    /// real-time, otherwise 120 plus the nice value. A thread without this record has priority 120.
    Priority { thread: u32, priority: i32 },
}

impl Entry {
    pub fn from_fact(fact: Fact, outcome: FactOutcome) -> Entry {
        let is_refused = matches!(outcome, FactOutcome::Admission(_)) && !outcome.is_admitted();
        if is_refused { Entry::Refused(fact) } else { Entry::Fact(fact) }
    }

    pub fn dispatch(slice: &Slice, reason: Reason) -> Entry {
        let (client, mode) = match slice.choice {
            Choice::Client(client, mode) => (Some(client), mode),
            Choice::Server => (None, Mode::BestEffort),
        };
        Entry::Dispatch { client, mode, reason, until: slice.until, requests: slice.requests, bytes: slice.bytes }
    }

    pub fn budget(client: ClientId, state: &ReservationState) -> Entry {
        let (kind, depleted) = (state.reservation.kind, state.depleted);
        Entry::Budget { client, kind, depleted, left_ns: state.budget_left_ns, deadline: state.deadline }
    }

    /// The fact passed to the scheduler, regardless of its outcome.
    pub fn fact(&self) -> Option<Fact> {
        match *self {
            Entry::Fact(fact) | Entry::Refused(fact) => Some(fact),
            _ => None,
        }
    }

    /// Whether the event is from the kernel, not from the server.
    pub fn is_of_kernel(&self) -> bool {
        matches!(
            self,
            Entry::Switch { .. }
                | Entry::Wakeup { .. }
                | Entry::Interrupt { .. }
                | Entry::ThreadName { .. }
                | Entry::InterruptName { .. }
                | Entry::Thread { .. }
                | Entry::Priority { .. }
        )
    }

    pub fn client(&self) -> Option<ClientId> {
        match *self {
            Entry::Fact(fact) | Entry::Refused(fact) => fact.client(),
            Entry::Identity { client, .. }
            | Entry::Name { client, .. }
            | Entry::Paced { client, .. }
            | Entry::Processor { client, .. }
            | Entry::Cut { client, .. }
            | Entry::Finished { client, .. }
            | Entry::Budget { client, .. }
            | Entry::Request { client, .. } => Some(client),
            Entry::Dispatch { client, .. } => client,
            _ => None,
        }
    }
}
