// SPDX-License-Identifier: MIT
//! A reservation, following the rules at the top of `reservation.rs` step by step.

use xqos_core::{Reservation, ReservationKind};

/// The current state of a reservation.
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

    /// The state after an arrival: fresh if q >= (d - t) Q/T, or d <= t.
    pub fn at_arrival(self, now: u64) -> Self {
        let left_to_deadline = i128::from(self.deadline) - i128::from(now);
        let covers = self.left_ns * i128::from(self.of.period_ns) >= left_to_deadline * i128::from(self.of.budget_ns);
        let is_renewed = !self.depleted && (left_to_deadline <= 0 || covers);
        if is_renewed { Budget::fresh(self.of, now) } else { self }
    }

    /// The state after a service. Under the paper's soft rule each missing Q postpones the deadline by T, unless the
    /// group has a cap.
    pub fn charged(mut self, ns: u64, now: u64, has_cap: bool) -> Self {
        self.left_ns -= i128::from(ns);
        self.depleted = self.left_ns <= 0;
        if self.depleted && self.of.kind == ReservationKind::SoftPaper && !has_cap {
            while self.left_ns <= 0 {
                self.left_ns += i128::from(self.of.budget_ns);
                self.deadline += self.of.period_ns;
            }
            self.depleted = false;
            // Missed periods are not made up for.
            if self.deadline <= now {
                self.deadline = now + self.of.period_ns;
            }
        }
        self
    }

    /// The state after replacing the reservation. Excess service is charged to the new reservation; a deadline counts
    /// as no further away than the longest period.
    pub fn replaced_by(before: Option<Budget>, of: Reservation, now: u64, longest_ns: u64) -> Self {
        let mut budget = Budget::fresh(of, now);
        budget.left_ns -= before.map_or(0, |before| before.ahead_ns(now, longest_ns));
        budget.charged(0, now, false)
    }

    /// The amount by which the client's service exceeds its bandwidth.
    pub fn ahead_ns(self, now: u64, longest_ns: u64) -> i128 {
        let left_to_deadline = i128::from(self.deadline) - i128::from(now);
        let left_to_deadline = left_to_deadline.min(longest_ns.max(self.of.period_ns).into());
        let due_ns = left_to_deadline * i128::from(self.of.budget_ns) / i128::from(self.of.period_ns);
        (due_ns - self.left_ns).max(0)
    }

    /// The state after all deadlines that have passed. Each one adds Q until there is budget again.
    pub fn replenished(mut self, now: u64) -> Self {
        while self.depleted && self.deadline <= now {
            self.left_ns += i128::from(self.of.budget_ns);
            self.deadline += self.of.period_ns;
            self.depleted = self.left_ns <= 0;
            // Missed periods are not made up for.
            if !self.depleted && self.deadline <= now {
                self.deadline = now + self.of.period_ns;
            }
        }
        self
    }
}
