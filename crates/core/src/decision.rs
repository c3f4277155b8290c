// SPDX-License-Identifier: MIT
//! What a decision is: whom to serve, until when, and how arrivals stand against it.

use crate::{ClientId, Time};

/// What can be set while the scheduler runs. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Longest slice under `fair` and `fixed`.
    pub slice_ns: u64,
    /// Timer interval of `smart`: the length of a turn.
    pub timer_interval_ns: u64,
    /// Longest slice of a client alone under `smart`.
    pub maximum_slice_ns: u64,
    /// U of the admission test, millionths.
    pub max_utilization_ppm: u32,
    /// B of the admission test; 0: the one observed.
    pub blocking_ns: u64,
}

impl Default for Parameters {
    /// The stock server's intervals, and U = 0.9.
    fn default() -> Self {
        Parameters {
            slice_ns: 5_000_000,
            timer_interval_ns: 5_000_000,
            maximum_slice_ns: 15_000_000,
            max_utilization_ppm: 900_000,
            blocking_ns: 0,
        }
    }
}

/// SYNC priorities are so far apart in [`Rank::tier`]: desktop clients stand between two of them, at odd tiers.
const TIERS: i64 = 2;

/// From which account a slice is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// From the client's reservation.
    Reserved,
    /// Under the policy.
    BestEffort,
}

/// How a client stands in a contest for the running slice; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Reservations first, then SYNC priority; within one, desktop clients first.
    pub tier: i64,
    /// Within the tier: scheduling deadline, or what the policy says.
    pub key: i64,
}

impl Rank {
    pub(crate) const RESERVED: i64 = i64::MIN;
    /// Contests nothing.
    pub const LAST: Rank = Rank { tier: i64::MAX, key: i64::MAX };

    /// Of a client with budget of a reservation.
    pub(crate) fn reserved(deadline: Time) -> Rank {
        Rank { tier: Rank::RESERVED, key: i64::try_from(deadline.0).unwrap_or(i64::MAX) }
    }

    /// Clients without a role, of this SYNC priority.
    pub(crate) fn tier_of(sync_priority: i32) -> i64 {
        -TIERS * i64::from(sync_priority)
    }

    /// An idle client that works for others.
    pub(crate) fn is_desktop(&self) -> bool {
        *self != Rank::LAST && self.tier % TIERS != 0
    }

    /// Watched even when nobody hogs: a client with budget, or one that works for others.
    pub(crate) fn is_always_watched(&self) -> bool {
        self.tier == Rank::RESERVED || self.is_desktop()
    }
}

/// The running slice as arrivals see it. Plain data, so that a watcher can decide without asking the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contest {
    /// How the running client stood when the slice began.
    pub rank: Rank,
    /// When it began.
    pub start: Time,
    /// Its key grows by this many hundredths of a nanosecond for each nanosecond served.
    pub growth: u32,
    /// An arrival must be better by this much.
    pub margin: i64,
    /// From when on a client that works for others ends it.
    pub desktop_turn: Time,
}

impl Contest {
    /// Nobody's arrival ends a slice of this rank but that of a better tier.
    pub(crate) fn of(rank: Rank, start: Time) -> Contest {
        Contest { rank, start, growth: 0, margin: 0, desktop_turn: start }
    }

    /// From when on an arrival of this rank ends the slice; [`Time::NEVER`] where it does not.
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

/// Whom to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This client.
    Client(ClientId, Mode),
    /// Whomever the server's own scheduler picks: policy `stock`, or a server grab.
    Server,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Whom to serve.
    pub choice: Choice,
    /// When to end it at the latest (at a request boundary).
    pub until: Time,
    /// End it after so many requests; 0: not limited.
    pub requests: u32,
    /// End it after so many bytes of requests; 0: not limited.
    pub bytes: u32,
    /// How it stands against arrivals.
    pub contest: Contest,
}

impl Slice {
    /// Without limits but its time.
    pub(crate) const fn of(choice: Choice, until: Time, contest: Contest) -> Slice {
        Slice { choice, until, requests: 0, bytes: 0, contest }
    }
}

/// What happened in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Who ran.
    pub client: ClientId,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// Requests executed.
    pub requests: u32,
    /// Bytes of requests, where the slice was limited by them; else 0.
    pub bytes: u64,
    /// The last request: major opcode + 65536 x minor opcode.
    pub last_request: u32,
    /// It has more to do.
    pub still_ready: bool,
    /// Somebody was preferred before the slice was whole.
    pub ended_early: bool,
}

impl Service {
    /// Of a client that asked for nothing and has nothing left: the rest is filled in.
    pub const fn of(client: ClientId, start: Time, end: Time) -> Service {
        Service { client, start, end, requests: 0, bytes: 0, last_request: 0, still_ready: false, ended_early: false }
    }
}
