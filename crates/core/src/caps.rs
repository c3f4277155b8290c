// SPDX-License-Identifier: MIT
//! Caps: the most that a group gets of the server, in each period of [`CAP_PERIOD_NS`].
//!
//! A cap is a Constant Bandwidth Server that gives nothing: what the group's clients use is charged, whoever pays for it, and
//! where it is used up those without budget of a reservation are held back until the period ends. A period begins when
//! something is used after the last one. What a request overran is paid in the periods that follow. Desktop clients and the
//! holder of the server grab are not held back: others wait for them.
//!
//! What is used from a reservation or by a desktop client, whom a cap does not stop, counts to at most half of a period's budget.
//! The other half is always for those whom it does stop: else a reservation above the cap would keep them out for good, and
//! leave them a debt that grows.

use crate::{GroupId, Reservation, ReservationKind, ReservationState, Time};
use alloc::vec::Vec;

/// Long enough that a small cap is worth a slice, short enough that a capped program still looks alive.
pub const CAP_PERIOD_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cap {
    pub(crate) group: GroupId,
    pub(crate) ppm: u32,
    pub(crate) state: ReservationState,
}

/// Nearly always none, or few.
#[derive(Debug, Default)]
pub(crate) struct Caps(Vec<Cap>);

impl Cap {
    pub(crate) fn new(group: GroupId, ppm: u32, now: Time) -> Cap {
        let budget_ns = (CAP_PERIOD_NS / 1000 * u64::from(ppm.min(1_000_000)) / 1000).max(1);
        let reservation = Reservation { budget_ns, period_ns: CAP_PERIOD_NS, kind: ReservationKind::Hard };
        Cap { group, ppm, state: ReservationState::new(reservation, now) }
    }
}

impl Caps {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Cap> {
        self.0.iter()
    }

    pub(crate) fn is_on(&self, group: GroupId) -> bool {
        self.of(group).is_some()
    }

    /// Sets or, with 0, ends the cap of a group.
    pub(crate) fn set(&mut self, group: GroupId, ppm: u32, now: Time) {
        self.0.retain(|cap| cap.group != group);
        if ppm > 0 && group != GroupId::NONE {
            self.0.push(Cap::new(group, ppm, now));
        }
    }

    pub(crate) fn push(&mut self, cap: Cap) {
        self.0.push(cap);
    }

    pub(crate) fn is_used_up(&self, group: GroupId) -> bool {
        self.of(group).is_some_and(|cap| cap.state.depleted)
    }

    /// Until when a slice that begins now may last.
    pub(crate) fn until(&self, group: GroupId, now: Time) -> Time {
        self.of(group).map_or(Time::NEVER, |cap| {
            if now >= cap.state.deadline {
                now.after(cap.state.reservation.budget_ns)
            } else {
                cap.state.budget_end(now)
            }
        })
    }

    /// Charges what was used, by somebody whom a cap stops or not. True where the cap is used up by it.
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

    /// The end of the first period of a cap that is used up.
    pub(crate) fn next(&self) -> Option<Time> {
        self.0.iter().filter(|cap| cap.state.depleted).map(|cap| cap.state.deadline).min()
    }

    /// Begins the periods that have come.
    pub(crate) fn replenish(&mut self, now: Time) {
        for cap in self.0.iter_mut().filter(|cap| cap.state.depleted && cap.state.deadline <= now) {
            cap.state.replenish(now);
        }
    }

    fn of(&self, group: GroupId) -> Option<&Cap> {
        self.0.iter().find(|cap| cap.group == group)
    }
}
