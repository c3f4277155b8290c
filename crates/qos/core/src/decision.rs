// SPDX-License-Identifier: MIT
//! A decision: which client to serve, until when, and which arrivals end the slice early.

use crate::setting::{BLOCKING, MAX_UTILIZATION, MAXIMUM_SLICE, POLICY_SLICE, TIMER_INTERVAL};
use crate::{ClientId, Range, Time};

/// Settings that can change while the scheduler runs. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The longest slice under `fair` and `fixed`.
    pub slice_ns: u64,
    /// The timer interval of `smart`: the length of a turn.
    pub timer_interval_ns: u64,
    /// The longest slice under `smart` while only one client is ready.
    pub maximum_slice_ns: u64,
    /// U of the admission test, in millionths.
    pub max_utilization_ppm: u32,
    /// B of the admission test; 0: use the observed value.
    pub blocking_ns: u64,
}

impl Default for Parameters {
    /// The intervals of the stock server, and U = 0.9.
    fn default() -> Self {
        let in_ns = |range: Range| u64::from(range.initial) * 1000;
        Parameters {
            slice_ns: in_ns(POLICY_SLICE),
            timer_interval_ns: in_ns(TIMER_INTERVAL),
            maximum_slice_ns: in_ns(MAXIMUM_SLICE),
            max_utilization_ppm: MAX_UTILIZATION.initial,
            blocking_ns: in_ns(BLOCKING),
        }
    }
}

/// The distance between adjacent SYNC priorities in [`Rank::tier`]. Desktop clients use the odd tiers in between.
const TIERS: i64 = 2;

/// How a slice is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To the reservation of the client or of its group.
    Reserved,
    /// As best effort, under the policy.
    BestEffort,
}

/// The rank of a client in a contest for the running slice; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Reservations first, then SYNC priority; within one priority, desktop clients first.
    pub tier: i64,
    /// Order within the tier: the scheduling deadline, or the policy's key.
    pub key: i64,
}

impl Rank {
    pub(crate) const RESERVED: i64 = i64::MIN;
    /// A rank that never ends a slice.
    pub const LAST: Rank = Rank { tier: i64::MAX, key: i64::MAX };

    /// The rank of a client with reservation budget.
    pub(crate) fn reserved(deadline: Time) -> Rank {
        Rank { tier: Rank::RESERVED, key: i64::try_from(deadline.0).unwrap_or(i64::MAX) }
    }

    /// The tier of clients without a role at this SYNC priority.
    pub(crate) fn tier_of(sync_priority: i32) -> i64 {
        -TIERS * i64::from(sync_priority)
    }

    /// True if this is the rank of a compositor or window manager.
    pub(crate) fn is_desktop(&self) -> bool {
        *self != Rank::LAST && self.tier % TIERS != 0
    }

    /// True for the ranks of clients that are always watched, even if no client has had a long slice recently: clients
    /// with reservation budget, compositors and window managers.
    pub(crate) fn is_always_watched(&self) -> bool {
        self.tier == Rank::RESERVED || self.is_desktop()
    }
}

/// The values that an arrival must beat to end the running slice: plain data, so the watcher needs no scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contest {
    /// The rank of the running client when the slice began.
    pub rank: Rank,
    pub start: Time,
    /// For each nanosecond served, the running client's key grows by this many hundredths of a nanosecond.
    pub growth: u32,
    /// An arrival ends the slice only if its key is better by more than this.
    pub margin: i64,
    /// From this time on, an arrival of a compositor or window manager ends the slice.
    pub desktop_turn: Time,
}

impl Contest {
    /// A contest that only an arrival with a better tier can win.
    pub(crate) const fn new(rank: Rank, start: Time) -> Contest {
        Contest { rank, start, growth: 0, margin: 0, desktop_turn: start }
    }

    /// The time from which an arrival of this rank ends the slice; [`Time::NEVER`] if it does not.
    pub fn ends_for(&self, arrival: Rank) -> Time {
        if arrival.is_desktop() && arrival.tier < self.rank.tier {
            return self.desktop_turn;
        }
        if arrival.tier != self.rank.tier {
            return if arrival.tier < self.rank.tier { self.start } else { Time::NEVER };
        }
        let lead = arrival.key.saturating_add(self.margin).saturating_sub(self.rank.key);
        match (u64::try_from(lead), self.growth) {
            (Err(_), _) => self.start,
            (Ok(_), 0) => Time::NEVER,
            (Ok(lead), growth) => self.start.after(lead.saturating_mul(100) / u64::from(growth)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This client, and how its slice is charged.
    Client(ClientId, Mode),
    /// The server's own scheduler chooses: under `stock`, under `fair` without contention, or during a server grab.
    Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    pub choice: Choice,
    /// The latest end of the slice (at a request boundary).
    pub until: Time,
    /// The slice ends after this many requests; 0: no limit.
    pub requests: u32,
    /// The slice ends after this many bytes of requests; 0: no limit.
    pub bytes: u32,
    /// Which arrivals end the slice early.
    pub contest: Contest,
}

impl Slice {
    /// A slice of the server's choice. It can be ended only by a client with reservation budget.
    pub const fn of_server(start: Time) -> Slice {
        let rank = Rank { tier: Rank::RESERVED + 1, key: i64::MIN };
        Slice::new(Choice::Server, Time::NEVER, Contest::new(rank, start))
    }

    /// A slice limited only by time.
    pub(crate) const fn new(choice: Choice, until: Time, contest: Contest) -> Slice {
        Slice { choice, until, requests: 0, bytes: 0, contest }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    pub client: ClientId,
    pub start: Time,
    pub end: Time,
    pub requests: u32,
    /// Bytes of requests if the slice was limited by bytes; otherwise 0.
    pub bytes: u64,
    /// The last request, as major opcode + 65536 * minor opcode.
    pub last_request: u32,
    pub still_ready: bool,
    /// The slice was ended early for another client.
    pub ended_early: bool,
}

impl Service {
    /// A slice that executed no requests and left the client idle; the caller fills in the other fields.
    pub const fn new(client: ClientId, start: Time, end: Time) -> Service {
        Service { client, start, end, requests: 0, bytes: 0, last_request: 0, still_ready: false, ended_early: false }
    }
}
