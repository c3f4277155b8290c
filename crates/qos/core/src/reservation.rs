// SPDX-License-Identifier: MIT
//! A reservation of budget Q in each period T: a Constant Bandwidth Server (Manica et al., sections 3.1 and 3.3).
//!
//! | event | rule |
//! |---|---|
//! | an idle client becomes ready at t | if q >= (d - t) Q/T, or d <= t: q = Q, d = t + T; otherwise both are kept |
//! | service of length c from the reservation | q -= c; a request cannot be interrupted, so q may drop below 0 |
//! | q <= 0 | depleted until d, then q += Q, d += T; repeated until q is positive |
//! | d has passed when q becomes positive | d = now + T: missed periods are not made up for |
//!
//! A depleted **hard** client is held back until its deadline. A depleted **soft** client continues as best effort, and
//! that service is not charged. A client under the **paper's soft rule** is recharged immediately: q += Q, d += T until
//! q is positive, so it continues above best effort with a later deadline. While such a client is busy, best effort
//! gets only the time that reservations leave, so this rule is not the default. All kinds guarantee Q every T.
//!
//! A negative q (a debt) survives idleness: only a client that is not depleted gets the fresh budget of the first row.
//! Otherwise a synchronous client would be forgiven each overrun. Changing a reservation does not cancel a debt either,
//! but a deadline then counts as no further away than the longest reserved period. This harms no other reservation.
//! Without this limit, a client that used an idle server for an hour under the paper's rule would be held back for an
//! hour when it changes to hard.

use crate::words::Words;
use crate::{Time, admission};

named! {
    /// What happens to a depleted client before its deadline.
    #[derive(Default)]
    ReservationKind {
        /// It continues as best effort.
        #[default]
        Soft "soft",
        /// It is held back.
        Hard "hard",
        /// It continues above best effort with the next budget and a later deadline (the soft rule of Manica et al.).
        SoftPaper "soft=paper",
    }
}

impl ReservationKind {
    /// True if a depleted client is held back.
    pub fn is_hard(self) -> bool {
        self == ReservationKind::Hard
    }
}

/// For callers that distinguish only hard and soft.
impl From<bool> for ReservationKind {
    fn from(is_hard: bool) -> ReservationKind {
        if is_hard { ReservationKind::Hard } else { ReservationKind::Soft }
    }
}

/// The terms of a reservation: 0 < `budget_ns` <= `period_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Q.
    pub budget_ns: u64,
    /// T.
    pub period_ns: u64,
    /// What happens to a depleted client.
    pub kind: ReservationKind,
}

impl Reservation {
    /// Q/T in millionths.
    pub fn utilization_ppm(&self) -> u32 {
        admission::utilization_ppm(*self)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationState {
    pub reservation: Reservation,
    /// q: the budget left; negative after an overrun.
    pub budget_left_ns: i64,
    /// d: the scheduling deadline.
    pub deadline: Time,
    /// True while the budget is used up, until it is replenished at the deadline.
    pub depleted: bool,
    /// The last deadline counted as missed.
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

    /// Replaces this reservation with another. The excess service of the client, (d - t) Q/T - q, is charged to the new
    /// one; otherwise a client could renew its budget and cancel its debts by changing its reservation. `longest_ns`:
    /// the longest period of all reservations.
    pub(crate) fn replaced_by(&self, reservation: Reservation, now: Time, longest_ns: u64) -> Self {
        let fresh = ReservationState::new(reservation, now);
        let budget_left_ns = i128::from(fresh.budget_left_ns) - self.ahead_ns(now, longest_ns);
        let budget_left_ns = i64::try_from(budget_left_ns).unwrap_or(i64::MIN);
        let mut state = ReservationState { budget_left_ns, depleted: budget_left_ns <= 0, ..fresh };
        state.postpone(now);
        state
    }

    /// The amount by which the client's service exceeds its bandwidth. A deadline counts as no further away than the
    /// longest period.
    fn ahead_ns(&self, now: Time, longest_ns: u64) -> i128 {
        let Reservation { budget_ns, period_ns, .. } = self.reservation;
        let left = i128::from(self.deadline.0) - i128::from(now.0);
        let left = left.min(longest_ns.max(period_ns).into());
        let due = left * i128::from(budget_ns) / i128::from(period_ns.max(1));
        (due - i128::from(self.budget_left_ns)).max(0)
    }

    /// True if past use still counts against a later reservation of the same holder.
    pub(crate) fn is_ahead(&self, now: Time) -> bool {
        self.ahead_ns(now, u64::MAX) > 0
    }

    /// A state read from a snapshot.
    pub(crate) fn restored(reservation: Reservation, budget_left_ns: i64, deadline: Time, missed: Time) -> Self {
        ReservationState { reservation, budget_left_ns, deadline, depleted: budget_left_ns <= 0, missed }
    }

    pub(crate) fn carry(self, words: &mut Words<'_>) -> Option<ReservationState> {
        let Reservation { budget_ns, period_ns, kind } = self.reservation;
        let (budget_ns, period_ns) = (words.ns(budget_ns)?.max(1), words.ns(period_ns)?.max(1));
        let kind = ReservationKind::from_code(words.below(1 << 8, kind.code().into())? as u8)?;
        let reservation = Reservation { budget_ns, period_ns, kind };
        let left_ns = words.signed(self.budget_left_ns)?;
        let state =
            ReservationState::restored(reservation, left_ns, words.time(self.deadline)?, words.time(self.missed)?);
        let is_valid = budget_ns <= period_ns && left_ns <= budget_ns as i64;
        Some(state).filter(|_| is_valid || !words.is_reading())
    }

    /// The client was idle and became ready.
    pub(crate) fn arrived(&mut self, now: Time) {
        if !self.depleted && self.would_renew(now) {
            self.budget_left_ns = signed(self.reservation.budget_ns);
            self.deadline = now.after(self.reservation.period_ns);
        }
    }

    pub(crate) fn deadline_at_arrival(&self, now: Time) -> Time {
        if self.would_renew(now) { now.after(self.reservation.period_ns) } else { self.deadline }
    }

    /// Charges a service. Returns true if the budget is depleted now.
    pub(crate) fn charge(&mut self, ns: u64) -> bool {
        self.budget_left_ns = self.budget_left_ns.saturating_sub(signed(ns));
        self.depleted = self.budget_left_ns <= 0;
        self.depleted
    }

    /// Applies the paper's soft rule, if this reservation has it: a depleted client gets budget and a later deadline.
    pub(crate) fn postpone(&mut self, now: Time) {
        if self.depleted && self.reservation.kind == ReservationKind::SoftPaper {
            self.recharge(u64::MAX, now);
        }
    }

    /// The deadline of a depleted client has passed. Returns true if it has budget again.
    pub(crate) fn replenish(&mut self, now: Time) -> bool {
        let since_ns = now.since(self.deadline);
        let come = (since_ns / self.reservation.period_ns.max(1)).saturating_add(1);
        self.recharge(if now == Time::NEVER { u64::MAX } else { come }, now);
        !self.depleted
    }

    /// Adds as many budgets as repay the debt, at most `most_periods`. This is computed in one step, because a damaged
    /// trace can contain an enormous debt.
    fn recharge(&mut self, most_periods: u64, now: Time) {
        let (budget_ns, period_ns) = (signed(self.reservation.budget_ns).max(1), self.reservation.period_ns.max(1));
        let debt_ns = self.budget_left_ns.min(0).unsigned_abs();
        let periods = (debt_ns / budget_ns.unsigned_abs()).saturating_add(1).min(most_periods);
        let left_ns = i128::from(self.budget_left_ns) + i128::from(periods) * i128::from(budget_ns);
        self.budget_left_ns = i64::try_from(left_ns).unwrap_or(i64::MAX);
        self.deadline = self.deadline.after(periods.saturating_mul(period_ns));
        self.depleted = self.budget_left_ns <= 0;
        // Checked after the debt is paid: periods that passed during the client's own long request count as well.
        if !self.depleted && self.deadline <= now {
            self.deadline = now.after(self.reservation.period_ns);
        }
    }

    /// Returns true once for each deadline that has passed while the client had budget and requests.
    pub(crate) fn misses(&mut self, now: Time) -> bool {
        let missed = now > self.deadline && self.missed != self.deadline;
        if missed {
            self.missed = self.deadline;
        }
        missed
    }

    /// The time at which a service that begins now would use up the budget.
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

    fn state(kind: ReservationKind) -> ReservationState {
        ReservationState::new(Reservation { budget_ns: 3 * MS, period_ns: 10 * MS, kind }, Time(0))
    }

    #[test]
    fn an_arrival_keeps_a_budget_that_is_below_its_bandwidth() {
        let mut server = state(ReservationKind::Soft);
        server.charge(2 * MS);
        server.arrived(Time(4 * MS));
        assert_eq!((server.budget_left_ns, server.deadline), (MS as i64, Time(10 * MS)), "1 < 6 x 0.3");
        server.arrived(Time(8 * MS));
        assert_eq!((server.budget_left_ns, server.deadline), (3 * MS as i64, Time(18 * MS)), "1 >= 2 x 0.3");
    }

    #[test]
    fn an_overrun_is_paid_back_over_as_many_periods_as_it_takes() {
        let mut server = state(ReservationKind::Hard);
        assert!(server.charge(10 * MS));
        server.arrived(Time(12 * MS));
        assert_eq!(server.budget_left_ns, -7 * MS as i64, "an arrival cancels no debt");
        assert!(!server.replenish(Time(0)));
        assert!(!server.replenish(Time(0)));
        assert!(server.replenish(Time(0)));
        assert_eq!((server.budget_left_ns, server.deadline), (2 * MS as i64, Time(40 * MS)));
    }

    #[test]
    fn the_papers_rule_recharges_a_depleted_budget_and_postpones_the_deadline() {
        let mut server = state(ReservationKind::SoftPaper);
        let mut use_up = |ns: u64, now: Time| {
            assert!(server.charge(ns));
            server.postpone(now);
            (server.depleted, server.budget_left_ns, server.deadline)
        };
        assert_eq!(use_up(3 * MS, Time(3 * MS)), (false, 3 * MS as i64, Time(20 * MS)));
        assert_eq!(use_up(10 * MS, Time(13 * MS)), (false, 2 * MS as i64, Time(50 * MS)), "7 ms are three periods");
        assert_eq!(use_up(2 * MS, Time(900 * MS)), (false, 3 * MS as i64, Time(910 * MS)), "missed periods are lost");
    }

    #[test]
    fn excess_service_by_the_papers_rule_counts_up_to_the_longest_period() {
        let mut server = state(ReservationKind::SoftPaper);
        server.charge(3000 * MS);
        server.postpone(Time(0));
        let hard = Reservation { kind: ReservationKind::Hard, ..server.reservation };
        let changed = server.replaced_by(hard, Time(0), 40 * MS);
        assert_eq!(changed.budget_left_ns, -6 * MS as i64, "q is 3, and 40 x 0.3 - 3 are owed");
        let again = server.replaced_by(server.reservation, Time(0), 40 * MS);
        assert_eq!((again.depleted, again.deadline), (false, Time(40 * MS)), "a later deadline replaces the debt");
    }

    #[test]
    fn a_deadline_is_missed_once() {
        let mut server = state(ReservationKind::Hard);
        assert!(!server.misses(Time(10 * MS)));
        assert!(server.misses(Time(11 * MS)));
        assert!(!server.misses(Time(12 * MS)));
    }
}
