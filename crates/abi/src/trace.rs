//! Trace records: what happened inside the server, one fact in 32 bytes.
//!
//! The first seven kinds are those of Manica et al., section 2.1 (begin, end, creation, destruction, activation,
//! deactivation, dispatch; deactivation is a `Served` after which the client has nothing left). The others let replay
//! give [`xqos_core::Scheduler`] the very calls that it had in the server, and say what was delivered and asked for.
//! Records stand in the order in which the scheduler was told; `at` is when the thing happened, which for an activation
//! may be earlier than the record before it.
//!
//! | word | bits |
//! |---|---|
//! | 0 | `at`, ns of CLOCK_MONOTONIC |
//! | 1 | 0-7 kind, 8-15 flags, 16-31 client, 32-63 a value |
//! | 2, 3 | what the kind says |
//!
//! Any four words decode to an event or to `None`; nothing here panics on any input. [`What::of_fact`] and [`FactReader`] turn
//! facts into records and back.

mod facts;

pub use facts::FactReader;
use xqos_core::{Choice, ClientId, Mode, PolicyKind, Reservation, ReservationState, Role, Scheduler, Slice, Time};

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
    /// A request of it made work for a client that works for others, after it had rested.
    MadeWork {
        client: ClientId,
    },
    /// The most that clients that work for others get while somebody else waits; 0: they are served like all others.
    Desktop {
        share_ppm: u32,
    },
    /// It grabbed the server; `None`: nobody does any more.
    Grab {
        client: Option<ClientId>,
    },
    /// The slice that ends was to end so much earlier.
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
    /// Depleted clients whose time has come are given their budgets.
    Replenish,
    /// A reservation as it stands now.
    Budget {
        client: ClientId,
        hard: bool,
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
    /// Written by readers: so many records are missing here.
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
        let (hard, depleted) = (state.reservation.hard, state.depleted);
        What::Budget { client, hard, depleted, left_ns: state.budget_left_ns, deadline: state.deadline }
    }
}

/// No client has this index.
const NOBODY: u16 = u16::MAX;

/// What word 1 holds.
struct Head {
    kind: u8,
    flags: u8,
    client: u16,
    value: u32,
}

impl Head {
    #[inline]
    fn word(&self) -> u64 {
        u64::from(self.kind)
            | (u64::from(self.flags) << 8)
            | (u64::from(self.client) << 16)
            | (u64::from(self.value) << 32)
    }

    fn of(word: u64) -> Head {
        Head { kind: word as u8, flags: (word >> 8) as u8, client: (word >> 16) as u16, value: (word >> 32) as u32 }
    }

    fn client(&self) -> Option<ClientId> {
        (usize::from(self.client) < ClientId::LIMIT).then_some(ClientId(self.client))
    }

    fn flag(&self, bit: u8) -> bool {
        (self.flags >> bit) & 1 == 1
    }
}

impl Event {
    /// The record.
    #[inline]
    #[allow(clippy::too_many_lines)] // a row for each kind of record
    pub fn encode(&self) -> Words {
        let head = |kind, flags, client: Option<ClientId>, value| {
            Head { kind, flags, client: client.map_or(NOBODY, |id| id.0), value }.word()
        };
        let bit = |set: bool, bit: u8| u8::from(set) << bit;
        let pair = |low: u32, high: u32| u64::from(low) | (u64::from(high) << 32);
        let [one, two, three] = match self.what {
            What::Begin { level, server_pid, words } => [head(1, level.code(), None, server_pid), words.into(), 0],
            What::End => [head(2, 0, None, 0), 0, 0],
            What::Creation { client, descriptor } => [head(3, 0, Some(client), descriptor), 0, 0],
            What::Destruction { client } => [head(4, 0, Some(client), 0), 0, 0],
            What::Activation { client } => [head(5, 0, Some(client), 0), 0, 0],
            What::Served { client, still_ready, ended_early, requests, last_request, bytes, start } => {
                let flags = bit(still_ready, 0) | bit(ended_early, 1);
                [head(6, flags, Some(client), requests), pair(last_request, bytes), start.0]
            }
            What::Dispatch { client, mode, reason, until, requests, bytes } => {
                let reason = Reason::ALL.iter().position(|&other| other == reason).unwrap_or(0) as u8;
                let flags = bit(mode == Mode::Reserved, 0) | (reason << 1);
                [head(7, flags, client, requests), until.0, bytes.into()]
            }
            What::State { index, words } => [head(8, 0, None, index), words[0], words[1]],
            What::Identity { client, pid, base, uid } => [head(9, 0, Some(client), pid), pair(base, uid), 0],
            What::Name { client, part, bytes } => {
                let half = |at: usize| {
                    (0..8).fold(0, |word, i| word | (u64::from(bytes.get(at + i).copied().unwrap_or(0)) << (8 * i)))
                };
                [head(10, part, Some(client), 0), half(0), half(8)]
            }
            What::Withdrawal { client } => [head(11, 0, Some(client), 0), 0, 0],
            What::Input { client } => [head(12, 1, Some(client), 0), 0, 0],
            // One more than the index; 0 is nobody.
            What::Exposed { client, cause } => {
                [head(12, 0, Some(client), cause.map_or(0, |cause| u32::from(cause.0) + 1)), 0, 0]
            }
            What::Grab { client } => [head(13, 0, client, 0), 0, 0],
            What::Overran { ns } => [head(14, 0, None, 0), ns, 0],
            What::Replenish => [head(15, 0, None, 0), 0, 0],
            What::Budget { client, hard, depleted, left_ns, deadline } => {
                [head(16, bit(hard, 0) | bit(depleted, 1), Some(client), 0), left_ns as u64, deadline.0]
            }
            What::Reserve { client, reservation: Reservation { budget_ns, period_ns, hard }, admitted } => {
                [head(17, bit(hard, 0) | bit(admitted, 1), Some(client), 0), budget_ns, period_ns]
            }
            What::Clear { client } => [head(18, 0, Some(client), 0), 0, 0],
            What::Policy { kind } => [head(19, kind.code(), None, 0), 0, 0],
            What::Intervals { slice_us, timer_interval_us, maximum_slice_us } => {
                [head(20, 0, None, slice_us), timer_interval_us.into(), maximum_slice_us.into()]
            }
            What::Limits { max_utilization_ppm, blocking_us } => {
                [head(21, 0, None, max_utilization_ppm), blocking_us.into(), 0]
            }
            What::SyncPriority { client, priority } => [head(22, 0, Some(client), priority as u32), 0, 0],
            What::Weight { client, weight } => [head(23, 0, Some(client), weight), 0, 0],
            What::FixedPriority { client, priority } => [head(24, 0, Some(client), priority as u32), 0, 0],
            What::Request { client, request, bytes, ns } => [head(25, 0, Some(client), request), bytes.into(), ns],
            What::Lost { records } => [head(26, 0, None, 0), records, 0],
            What::Switch { cpu, from, to, still_runnable } => {
                [head(27, bit(still_runnable, 0), None, cpu), pair(from, to), 0]
            }
            What::Wakeup { cpu, thread } => [head(28, 0, None, cpu), thread.into(), 0],
            What::Paced { client, until } => [head(29, 0, Some(client), 0), until.0, 0],
            What::Supply { budget_ns, period_ns } => [head(31, 0, None, 0), budget_ns, period_ns],
            What::Pacing { limit_us, floor_us } => [head(30, 0, None, limit_us), floor_us.into(), 0],
            What::Role { client, role } => [head(32, role.bits(), Some(client), 0), 0, 0],
            What::MadeWork { client } => [head(34, 0, Some(client), 0), 0, 0],
            What::Desktop { share_ppm } => [head(33, 0, None, share_ppm), 0, 0],
        };
        [self.at.0, one, two, three]
    }

    /// The event of a record; `None` where it is none that we know.
    #[allow(clippy::too_many_lines)] // a row for each kind of record
    pub fn decode(words: Words) -> Option<Event> {
        let [at, one, two, three] = words;
        let head = Head::of(one);
        let client = head.client();
        let (low, high) = (two as u32, (two >> 32) as u32);
        let what = match head.kind {
            1 => What::Begin { level: Level::from_code(head.flags)?, server_pid: head.value, words: low },
            2 => What::End,
            3 => What::Creation { client: client?, descriptor: head.value },
            4 => What::Destruction { client: client? },
            5 => What::Activation { client: client? },
            6 => What::Served {
                client: client?,
                still_ready: head.flag(0),
                ended_early: head.flag(1),
                requests: head.value,
                last_request: low,
                bytes: high,
                start: Time(three),
            },
            7 => What::Dispatch {
                client,
                mode: if head.flag(0) { Mode::Reserved } else { Mode::BestEffort },
                reason: *Reason::ALL.get(usize::from(head.flags >> 1))?,
                until: Time(two),
                requests: head.value,
                bytes: u32::try_from(three).ok()?,
            },
            8 => What::State { index: head.value, words: [two, three] },
            9 => What::Identity { client: client?, pid: head.value, base: low, uid: high },
            10 => {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&two.to_le_bytes());
                bytes[8..].copy_from_slice(&three.to_le_bytes());
                What::Name { client: client?, part: head.flags, bytes }
            }
            11 => What::Withdrawal { client: client? },
            12 if head.flag(0) => What::Input { client: client? },
            12 => {
                let cause = head.value.checked_sub(1).and_then(|slot| u16::try_from(slot).ok()).map(ClientId);
                What::Exposed { client: client?, cause: cause.filter(|id| usize::from(id.0) < ClientId::LIMIT) }
            }
            13 => What::Grab { client },
            14 => What::Overran { ns: two },
            15 => What::Replenish,
            16 => What::Budget {
                client: client?,
                hard: head.flag(0),
                depleted: head.flag(1),
                left_ns: two as i64,
                deadline: Time(three),
            },
            17 => {
                let reservation = Reservation { budget_ns: two, period_ns: three, hard: head.flag(0) };
                What::Reserve { client: client?, reservation, admitted: head.flag(1) }
            }
            18 => What::Clear { client: client? },
            19 => What::Policy { kind: PolicyKind::from_code(head.flags)? },
            20 => What::Intervals {
                slice_us: head.value,
                timer_interval_us: u32::try_from(two).ok()?,
                maximum_slice_us: u32::try_from(three).ok()?,
            },
            21 => What::Limits { max_utilization_ppm: head.value, blocking_us: u32::try_from(two).ok()? },
            22 => What::SyncPriority { client: client?, priority: head.value as i32 },
            23 => What::Weight { client: client?, weight: head.value },
            24 => What::FixedPriority { client: client?, priority: head.value as i32 },
            25 => What::Request { client: client?, request: head.value, bytes: u32::try_from(two).ok()?, ns: three },
            26 => What::Lost { records: two },
            27 => What::Switch { cpu: head.value, from: low, to: high, still_runnable: head.flag(0) },
            28 => What::Wakeup { cpu: head.value, thread: u32::try_from(two).ok()? },
            29 => What::Paced { client: client?, until: Time(two) },
            31 => What::Supply { budget_ns: two, period_ns: three },
            30 => What::Pacing { limit_us: head.value, floor_us: u32::try_from(two).ok()? },
            32 => What::Role { client: client?, role: Role::from_bits(head.flags) },
            34 => What::MadeWork { client: client? },
            33 => What::Desktop { share_ppm: head.value },
            _ => return None,
        };
        Some(Event { at: Time(at), what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_of_each() -> Vec<What> {
        let client = ClientId(2047);
        let reservation = Reservation { budget_ns: 3_000_000, period_ns: 10_000_000, hard: true };
        let (mode, reason) = (Mode::Reserved, Reason::Deadline);
        vec![
            What::Begin { level: Level::Requests, server_pid: 77, words: 9 },
            What::State { index: 3, words: [u64::MAX, 1] },
            What::End,
            What::Creation { client, descriptor: 12 },
            What::Identity { client, pid: 1, base: 0x400000, uid: u32::MAX },
            What::Name { client, part: 1, bytes: *b"gnome-terminal-s" },
            What::Destruction { client },
            What::Activation { client },
            What::Withdrawal { client },
            What::Input { client },
            What::Exposed { client, cause: None },
            What::Exposed { client, cause: Some(ClientId(0)) },
            What::Paced { client, until: Time(5) },
            What::Pacing { limit_us: 25_000, floor_us: 50_000 },
            What::Role { client, role: Role { compositor: true, window_manager: true } },
            What::Desktop { share_ppm: 666_667 },
            What::MadeWork { client },
            What::Supply { budget_ns: 8_000_000, period_ns: 10_000_000 },
            What::Grab { client: None },
            What::Grab { client: Some(client) },
            What::Overran { ns: 5 },
            What::Dispatch { client: Some(client), mode, reason, until: Time::NEVER, requests: 10, bytes: 4096 },
            What::Dispatch {
                client: None,
                mode: Mode::BestEffort,
                reason: Reason::Grab,
                until: Time(7),
                requests: 0,
                bytes: 0,
            },
            What::Served {
                client,
                still_ready: false,
                ended_early: true,
                requests: 3,
                last_request: 53 | (4 << 16),
                bytes: 1,
                start: Time(4),
            },
            What::Replenish,
            What::Budget { client, hard: true, depleted: true, left_ns: -5, deadline: Time(9) },
            What::Reserve { client, reservation, admitted: true },
            What::Clear { client },
            What::Policy { kind: PolicyKind::Smart },
            What::Intervals { slice_us: 1, timer_interval_us: 2, maximum_slice_us: 3 },
            What::Limits { max_utilization_ppm: 900_000, blocking_us: 4 },
            What::SyncPriority { client, priority: i32::MIN },
            What::Weight { client, weight: 200 },
            What::FixedPriority { client, priority: -3 },
            What::Request { client, request: 73, bytes: 20, ns: 10_000_000 },
            What::Lost { records: 1 << 40 },
            What::Switch { cpu: 1, from: 2, to: 3, still_runnable: true },
            What::Wakeup { cpu: 1, thread: 3 },
        ]
    }

    #[test]
    fn every_event_survives_its_record() {
        for what in one_of_each() {
            let event = Event { at: Time(123), what };
            assert_eq!(Event::decode(event.encode()), Some(event));
        }
    }

    #[test]
    fn kinds_and_clients_that_are_none_are_refused() {
        let served = Event { at: Time(1), what: What::Activation { client: ClientId(1) } }.encode();
        for word in [served[1] | 0xff, served[1] | (0xffff << 16), 0] {
            assert_eq!(Event::decode([1, word, 0, 0]), None, "{word:#x}");
        }
    }
}
