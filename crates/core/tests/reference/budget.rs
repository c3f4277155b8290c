// SPDX-License-Identifier: MIT
//! A reservation as the essay at the top of `reservation.rs` has it, step by step.

use xqos_core::{Reservation, ReservationKind};

/// A reservation as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub of: Reservation,
    pub left_ns: i128,
    pub deadline: u64,
    pub depleted: bool,
}

impl Budget {
    pub fn fresh(of: Reservation, now: u64) -> Self {
        Budget { of, left_ns: i128::from(of.budget_ns), deadline: now + of.period_ns, depleted: false }
    }

    /// What an arrival makes of it: q >= (d - t) Q/T, or d <= t, gives a fresh one.
    pub fn at_arrival(self, now: u64) -> Self {
        let left_to_deadline = i128::from(self.deadline) - i128::from(now);
        let covers = self.left_ns * i128::from(self.of.period_ns) >= left_to_deadline * i128::from(self.of.budget_ns);
        let is_renewed = !self.depleted && (left_to_deadline <= 0 || covers);
        if is_renewed { Budget::fresh(self.of, now) } else { self }
    }

    /// A service, in a group with a cap or not. By the paper's rule each Q that is missing moves the deadline by T.
    pub fn charged(mut self, ns: u64, now: u64, has_cap: bool) -> Self {
        self.left_ns -= i128::from(ns);
        self.depleted = self.left_ns <= 0;
        if self.depleted && self.of.kind == ReservationKind::SoftPaper && !has_cap {
            while self.left_ns <= 0 {
                self.left_ns += i128::from(self.of.budget_ns);
                self.deadline += self.of.period_ns;
            }
            self.depleted = false;
            // Periods in which nothing was served are not caught up on.
            if self.deadline <= now {
                self.deadline = now + self.of.period_ns;
            }
        }
        self
    }

    /// Another one in its place: what its client was ahead, it has had of that. No deadline counts as further away than the longest
    /// period.
    pub fn replaced_by(before: Option<Budget>, of: Reservation, now: u64, longest_ns: u64) -> Self {
        let mut budget = Budget::fresh(of, now);
        budget.left_ns -= before.map_or(0, |before| before.ahead_ns(now, longest_ns));
        budget.charged(0, now, false)
    }

    /// By how much its client is ahead of its bandwidth.
    pub fn ahead_ns(self, now: u64, longest_ns: u64) -> i128 {
        let left_to_deadline = i128::from(self.deadline) - i128::from(now);
        let left_to_deadline = left_to_deadline.min(longest_ns.max(self.of.period_ns).into());
        let due_ns = left_to_deadline * i128::from(self.of.budget_ns) / i128::from(self.of.period_ns);
        (due_ns - self.left_ns).max(0)
    }

    /// The deadlines that have come: each gives Q, until there is budget again.
    pub fn replenished(mut self, now: u64) -> Self {
        while self.depleted && self.deadline <= now {
            self.left_ns += i128::from(self.of.budget_ns);
            self.deadline += self.of.period_ns;
            self.depleted = self.left_ns <= 0;
            // Periods in which nothing was served are not caught up on.
            if !self.depleted && self.deadline <= now {
                self.deadline = now + self.of.period_ns;
            }
        }
        self
    }
}
