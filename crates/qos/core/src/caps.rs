// SPDX-License-Identifier: MIT
//! Caps: the maximum server time of a group in each period of [`CAP_PERIOD_NS`].
//!
//! A cap is a Constant Bandwidth Server that limits a group but guarantees it nothing. All server time of the group's
//! clients is charged to it. When it is used up, clients without reservation budget are held back until the period
//! ends. A new period begins with the first use after the previous one has ended. An overrun is deducted from the
//! following periods. Desktop clients and the client that holds the server grab are never held back, because other
//! clients wait for them.
//!
//! A cap does not hold back desktop clients or clients that run from a reservation. Their use is charged to at most
//! half of each period's budget, so the other half always remains for the clients that the cap can hold back. Otherwise
//! a reservation larger than the cap would lock these clients out, and its overrun would keep growing.

use crate::words::Words;
use crate::{GroupId, Reservation, ReservationKind, ReservationState, Time};
use alloc::vec::Vec;

/// Long enough that a small cap covers a useful slice, short enough that a capped program still appears responsive.
pub const CAP_PERIOD_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cap {
    pub(crate) group: GroupId,
    pub(crate) ppm: u32,
    pub(crate) state: ReservationState,
}

/// The caps of all groups; usually there are none.
#[derive(Debug, Default)]
pub(crate) struct Caps(pub(crate) Vec<Cap>);

impl Cap {
    pub(crate) fn new(group: GroupId, ppm: u32, now: Time) -> Cap {
        let budget_ns = (CAP_PERIOD_NS / 1000 * u64::from(ppm.min(1_000_000)) / 1000).max(1);
        let reservation = Reservation { budget_ns, period_ns: CAP_PERIOD_NS, kind: ReservationKind::Hard };
        Cap { group, ppm, state: ReservationState::new(reservation, now) }
    }

    pub(crate) fn carry(self, words: &mut Words<'_>) -> Option<Cap> {
        let (group, ppm) = (words.group(self.group)?, words.below(1_000_001, self.ppm.into())? as u32);
        let fresh = Cap::new(group, ppm, Time(0));
        let left_ns = words.signed(self.state.budget_left_ns)?.min(fresh.state.budget_left_ns);
        let deadline = words.time(self.state.deadline)?;
        let state = ReservationState::restored(fresh.state.reservation, left_ns, deadline, Time(0));
        Some(Cap { state, ..fresh })
    }
}

impl Caps {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the cap of a group; 0 removes it.
    pub(crate) fn set(&mut self, group: GroupId, ppm: u32, now: Time) {
        self.0.retain(|cap| cap.group != group);
        if ppm > 0 && group != GroupId::NONE {
            self.0.push(Cap::new(group, ppm, now));
        }
    }

    /// The cap of a group; 0: none.
    pub(crate) fn ppm(&self, group: GroupId) -> u32 {
        self.find(group).map_or(0, |cap| cap.ppm)
    }

    pub(crate) fn is_used_up(&self, group: GroupId) -> bool {
        self.find(group).is_some_and(|cap| cap.state.depleted)
    }

    /// The latest end of a slice that begins now.
    pub(crate) fn until(&self, group: GroupId, now: Time) -> Time {
        self.find(group).map_or(Time::NEVER, |cap| {
            if now >= cap.state.deadline {
                now.after(cap.state.reservation.budget_ns)
            } else {
                cap.state.budget_end(now)
            }
        })
    }

    /// Charges server time to the group's cap; `stops`: the cap can hold this client back. Returns true if this
    /// exhausts the cap.
    pub(crate) fn charge(&mut self, group: GroupId, start: Time, ns: u64, stops: bool) -> bool {
        let Some(cap) = self.0.iter_mut().find(|cap| cap.group == group) else { return false };
        let was_used_up = cap.state.depleted;
        if !was_used_up && start >= cap.state.deadline {
            cap.state = Cap::new(group, cap.ppm, start).state;
        }
        let half_ns = cap.state.reservation.budget_ns / 2;
        let beyond_half_ns = cap.state.budget_left_ns.saturating_sub_unsigned(half_ns).max(0).unsigned_abs();
        cap.state.charge(if stops { ns } else { ns.min(beyond_half_ns) }) && !was_used_up
    }

    /// The earliest time at which the period of an exhausted cap ends.
    pub(crate) fn next(&self) -> Option<Time> {
        self.0.iter().filter(|cap| cap.state.depleted).map(|cap| cap.state.deadline).min()
    }

    /// Begins a new period for each exhausted cap whose period has ended.
    pub(crate) fn replenish(&mut self, now: Time) {
        for cap in self.0.iter_mut().filter(|cap| cap.state.depleted && cap.state.deadline <= now) {
            cap.state.replenish(now);
        }
    }

    fn find(&self, group: GroupId) -> Option<&Cap> {
        self.0.iter().find(|cap| cap.group == group)
    }
}
