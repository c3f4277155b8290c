// SPDX-License-Identifier: MIT
//! Supply: the processor time that the server itself gets, if less than a whole processor. Admission then takes both
//! levels of scheduling into account.
//!
//! A server that runs under a kernel reservation (SCHED_DEADLINE) of Qs in each Ts gets at least a (t - D) in any
//! interval t, with a = Qs/Ts and D = 2 (Ts - Qs): the longest gap lies between a budget served immediately and the
//! next one served as late as possible. EDF on top of it meets all deadlines if, for all i in order of T, sum(Qj/Tj, j
//! <= i) + (B + a D)/Ti <= a (the hierarchical analysis that Manica et al. name as future work; the periodic resource
//! model of Shin and Lee, 2003, in its linear form). The gap therefore counts as blocking, and reservations together
//! get at most the share a.

/// A processor reservation. Period 0: no limit on the server's processor time is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// Qs, in nanoseconds.
    pub budget_ns: u64,
    /// Ts, in nanoseconds.
    pub period_ns: u64,
}

impl Supply {
    /// The share a, in millionths, rounded down.
    pub fn share_ppm(&self) -> u32 {
        if self.period_ns == 0 {
            return 1_000_000;
        }
        let share = u128::from(self.budget_ns) * 1_000_000 / u128::from(self.period_ns);
        u32::try_from(share).unwrap_or(1_000_000).min(1_000_000)
    }

    /// a D: the cost of a gap, in nanoseconds of server time.
    pub fn gap_ns(&self) -> u64 {
        let gap_ns = self.period_ns.saturating_sub(self.budget_ns).saturating_mul(2);
        let cost = u128::from(gap_ns) * u128::from(self.share_ppm()) / 1_000_000;
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_of_ten_milliseconds_cost_a_gap_of_four() {
        let supply = Supply { budget_ns: 8_000_000, period_ns: 10_000_000 };
        assert_eq!((supply.share_ppm(), supply.gap_ns()), (800_000, 3_200_000));
    }

    #[test]
    fn without_a_reservation_there_is_no_gap_and_nothing_overflows() {
        assert_eq!((Supply::default().share_ppm(), Supply::default().gap_ns()), (1_000_000, 0));
        let absurd = Supply { budget_ns: u64::MAX, period_ns: 1 };
        assert_eq!((absurd.share_ppm(), absurd.gap_ns()), (1_000_000, 0));
        let tiny = Supply { budget_ns: 1, period_ns: u64::MAX };
        assert_eq!(tiny.share_ppm(), 0);
    }
}
