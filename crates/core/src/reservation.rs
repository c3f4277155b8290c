// SPDX-License-Identifier: MIT
//! A reservation (Q, T): the Constant Bandwidth Server of one client (Manica et al., sections 3.1 and 3.3).
//!
//! | fact | rule |
//! |---|---|
//! | arrival at t of an idle client | if q >= (d - t) Q/T, or d <= t: q = Q, d = t + T; otherwise both are kept |
//! | service of length c from the reservation | q -= c; a request is never cut, so q may end below 0 |
//! | q <= 0 | depleted until d, when q += Q, d += T; again, if that does not make q positive |
//! | d is past when q is positive again | d = now + T: nobody catches up on periods in which the server served nobody |
//!
//! A depleted **hard** client is held back until then. A depleted **soft** client stays in the game as best effort, and
//! what it gets there is not charged. This differs from the paper, where a depleted soft client goes on above all
//! others with a later deadline: a busy one would then keep the server for itself, and best effort would not keep 1 - U.
//! The guarantee of Q every T is the same. A debt outlives idleness: only a client that is not depleted gets the fresh
//! (Q, t + T) of the first row, or else a client that waits for each reply would be forgiven each overrun.

use crate::{Time, admission};

/// What was asked for. `budget_ns` <= `period_ns`, both above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Q
    pub budget_ns: u64,
    /// T
    pub period_ns: u64,
    /// Held back when depleted, instead of going on as best effort.
    pub hard: bool,
}

impl Reservation {
    /// Q/T in millionths.
    pub fn utilization_ppm(&self) -> u32 {
        admission::utilization_ppm(*self)
    }
}

/// A reservation as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationState {
    /// What was asked for.
    pub reservation: Reservation,
    /// q: budget left; negative after an overrun.
    pub budget_left_ns: i64,
    /// d: scheduling deadline.
    pub deadline: Time,
    /// Waits for the deadline to be replenished.
    pub depleted: bool,
    /// The last deadline that was counted as missed.
    missed: Time,
}

impl ReservationState {
    pub(crate) fn new(reservation: Reservation, now: Time) -> Self {
        ReservationState {
            reservation,
            budget_left_ns: signed(reservation.budget_ns),
            deadline: now.after(reservation.period_ns),
            depleted: false,
            missed: Time(0),
        }
    }

    /// Another reservation in place of this one. By how much the client is ahead of its bandwidth, (d - t) Q/T - q, it
    /// has had of the new one: or it could have a fresh budget, and its debts forgiven, as often as it asks.
    pub(crate) fn replaced_by(&self, reservation: Reservation, now: Time) -> Self {
        let fresh = ReservationState::new(reservation, now);
        let budget_left_ns = i128::from(fresh.budget_left_ns) - self.ahead_ns(now);
        let budget_left_ns = i64::try_from(budget_left_ns).unwrap_or(i64::MIN);
        ReservationState { budget_left_ns, depleted: budget_left_ns <= 0, ..fresh }
    }

    /// By how much the client is ahead of its bandwidth.
    fn ahead_ns(&self, now: Time) -> i128 {
        let Reservation { budget_ns, period_ns, .. } = self.reservation;
        let left = i128::from(self.deadline.0) - i128::from(now.0);
        let due = left * i128::from(budget_ns) / i128::from(period_ns.max(1));
        (due - i128::from(self.budget_left_ns)).max(0)
    }

    /// Whether what was used counts against a reservation that comes after this one.
    pub(crate) fn is_ahead(&self, now: Time) -> bool {
        self.ahead_ns(now) > 0
    }

    /// A state that was written down.
    pub(crate) fn as_it_was(reservation: Reservation, budget_left_ns: i64, deadline: Time, missed: Time) -> Self {
        ReservationState { reservation, budget_left_ns, deadline, depleted: budget_left_ns <= 0, missed }
    }

    /// The last deadline that was counted as missed.
    pub(crate) fn last_missed(&self) -> Time {
        self.missed
    }

    /// The client was idle and has a request.
    pub(crate) fn arrived(&mut self, now: Time) {
        if !self.depleted && self.would_renew(now) {
            self.budget_left_ns = signed(self.reservation.budget_ns);
            self.deadline = now.after(self.reservation.period_ns);
        }
    }

    /// The scheduling deadline that an arrival now would have.
    pub(crate) fn deadline_at_arrival(&self, now: Time) -> Time {
        if self.would_renew(now) { now.after(self.reservation.period_ns) } else { self.deadline }
    }

    /// Charges a service. True when the budget is depleted by it.
    pub(crate) fn charge(&mut self, ns: u64) -> bool {
        self.budget_left_ns = self.budget_left_ns.saturating_sub(signed(ns));
        self.depleted = self.budget_left_ns <= 0;
        self.depleted
    }

    /// The deadline of a depleted client has come. True when it has budget again.
    pub(crate) fn replenish(&mut self, now: Time) -> bool {
        let (budget_ns, period_ns) = (signed(self.reservation.budget_ns).max(1), self.reservation.period_ns.max(1));
        // As many periods at once as have come and pay for the debt: one by one, a trace's absurd debt would take for ever.
        let come = if now == Time::NEVER { u64::MAX } else { (now.since(self.deadline) / period_ns).saturating_add(1) };
        let debt_ns = self.budget_left_ns.min(0).unsigned_abs();
        let periods = (debt_ns / budget_ns.unsigned_abs()).saturating_add(1).min(come);
        let left_ns = i128::from(self.budget_left_ns) + i128::from(periods) * i128::from(budget_ns);
        self.budget_left_ns = i64::try_from(left_ns).unwrap_or(i64::MAX);
        self.deadline = self.deadline.after(periods.saturating_mul(period_ns));
        self.depleted = self.budget_left_ns <= 0;
        // Only once the debt is paid: also the periods that its own long request took pay for it.
        if !self.depleted && self.deadline <= now {
            self.deadline = now.after(self.reservation.period_ns);
        }
        !self.depleted
    }

    /// True once for each deadline that is past while the client, with budget, has work.
    pub(crate) fn misses(&mut self, now: Time) -> bool {
        let missed = now > self.deadline && self.missed != self.deadline;
        if missed {
            self.missed = self.deadline;
        }
        missed
    }

    /// When the budget left would be used up by a service that begins now.
    pub(crate) fn budget_end(&self, now: Time) -> Time {
        now.after(self.budget_left_ns.max(0) as u64)
    }

    fn would_renew(&self, now: Time) -> bool {
        let left = i128::from(self.deadline.0) - i128::from(now.0);
        let q_t = i128::from(self.budget_left_ns) * i128::from(self.reservation.period_ns);
        left <= 0 || q_t >= left * i128::from(self.reservation.budget_ns)
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn state(hard: bool) -> ReservationState {
        ReservationState::new(Reservation { budget_ns: 3 * MS, period_ns: 10 * MS, hard }, Time(0))
    }

    #[test]
    fn an_arrival_keeps_a_budget_that_is_below_its_bandwidth() {
        let mut server = state(false);
        server.charge(2 * MS);
        server.arrived(Time(4 * MS));
        assert_eq!((server.budget_left_ns, server.deadline), (MS as i64, Time(10 * MS)), "1 < 6 x 0.3");
        server.arrived(Time(8 * MS));
        assert_eq!((server.budget_left_ns, server.deadline), (3 * MS as i64, Time(18 * MS)), "1 >= 2 x 0.3");
    }

    #[test]
    fn an_overrun_is_paid_back_over_as_many_periods_as_it_takes() {
        let mut server = state(true);
        assert!(server.charge(10 * MS));
        server.arrived(Time(12 * MS));
        assert_eq!(server.budget_left_ns, -7 * MS as i64, "an arrival forgives no debt");
        assert!(!server.replenish(Time(0)));
        assert!(!server.replenish(Time(0)));
        assert!(server.replenish(Time(0)));
        assert_eq!((server.budget_left_ns, server.deadline), (2 * MS as i64, Time(40 * MS)));
    }

    #[test]
    fn a_deadline_is_missed_once() {
        let mut server = state(true);
        assert!(!server.misses(Time(10 * MS)));
        assert!(server.misses(Time(11 * MS)));
        assert!(!server.misses(Time(12 * MS)));
    }
}
