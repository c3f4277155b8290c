// SPDX-License-Identifier: MIT
//! Computes the processor time that a thread needs in each period from samples of its processor time. No I/O.
//!
//! Samples are taken ten times a second. Periods are shorter than the sampling interval or not much longer, so only the
//! mean of several jobs can be measured:
//!
//! - A window ends with the first sample after four periods T (at least 0.1 s). Its mean is T x (time used) / (length
//!   of the window). 16 windows are kept.
//! - After four windows, the budget Q is 1.5 x the largest mean, between 0.1 ms and T/2. Nothing is reserved below 1 %
//!   of the processor.
//! - A thread that uses at least nine tenths of Q may be limited by Q, so its need is unknown: Q grows immediately to
//!   1.5 x Q. Q falls when 1.5 x the largest of 16 means is less than 0.7 x Q. Changes below a tenth are ignored.
//!
//! The factor 1.5 is the ratio of the 15/16 quantile to the mean of uneven jobs (log-normal, deviation 0.3), rounded
//! down.

use std::collections::VecDeque;

const WINDOW_PERIODS: u64 = 4;
const MIN_WINDOW_NS: u64 = 100_000_000;
const WINDOWS: usize = 16;
const FIRST_WINDOWS: usize = 4;
const MIN_BUDGET_NS: u64 = 100_000;

#[derive(Debug, Default)]
pub struct Demand {
    /// Start of the current window: the time, and the processor time used by then.
    began: Option<(u64, u64)>,
    means_ns: VecDeque<u64>,
    reserved: Option<(u64, u64)>,
}

impl Demand {
    /// Takes a sample: the processor time that the thread has used at `now_ns`, and its current period. Returns a
    /// budget and a period if the reservation should change.
    pub fn sample(&mut self, now_ns: u64, used_ns: u64, period_ns: u64) -> Option<(u64, u64)> {
        let (began, before) = *self.began.get_or_insert((now_ns, used_ns));
        let window_ns = now_ns.saturating_sub(began);
        if window_ns < MIN_WINDOW_NS.max(WINDOW_PERIODS * period_ns) {
            return None;
        }
        self.began = Some((now_ns, used_ns));
        let used = u128::from(used_ns.saturating_sub(before)) * u128::from(period_ns) / u128::from(window_ns);
        let mean_ns = u64::try_from(used).unwrap_or(u64::MAX);
        if self.means_ns.len() == WINDOWS {
            self.means_ns.pop_front();
        }
        self.means_ns.push_back(mean_ns);
        let wanted = self.wanted(mean_ns, period_ns)?;
        self.reserved = Some(wanted);
        Some(wanted)
    }

    fn wanted(&self, mean_ns: u64, period_ns: u64) -> Option<(u64, u64)> {
        let most_ns = self.means_ns.iter().max().copied().unwrap_or(0);
        let bounded = |ns: u64| (ns.clamp(MIN_BUDGET_NS, (period_ns / 2).max(MIN_BUDGET_NS)), period_ns);
        let Some((budget_ns, before_ns)) = self.reserved else {
            let is_worth_it = self.means_ns.len() >= FIRST_WINDOWS && most_ns >= period_ns / 100;
            return is_worth_it.then(|| bounded(most_ns * 3 / 2));
        };
        // Keep the share if the period changes.
        let budget_ns = if before_ns.abs_diff(period_ns) > before_ns / 10 {
            budget_ns * period_ns / before_ns.max(1)
        } else {
            budget_ns
        };
        let wanted = match (mean_ns >= budget_ns * 9 / 10, most_ns * 3 / 2) {
            (true, _) => bounded(budget_ns * 3 / 2),
            (false, less) if self.means_ns.len() == WINDOWS && less < budget_ns * 7 / 10 => bounded(less),
            _ => bounded(budget_ns),
        };
        let differs = |one: u64, other: u64| one.abs_diff(other) > other / 10;
        (differs(wanted.0, self.reserved?.0) || differs(period_ns, before_ns)).then_some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const PERIOD: u64 = 40 * MS;

    /// A thread with a fixed demand per period, limited by its reservation. Records each change with its time.
    struct Thread {
        demand: Demand,
        now: u64,
        used: u64,
        reserved: Option<(u64, u64)>,
        changes: Vec<(u64, u64)>,
    }

    impl Thread {
        fn new() -> Thread {
            Thread { demand: Demand::default(), now: 0, used: 0, reserved: None, changes: Vec::new() }
        }

        fn run(&mut self, seconds: u64, wanted_us: u64) {
            for _ in 0..seconds * 10 {
                let most = self.reserved.map_or(u64::MAX, |(budget, period)| budget * 100 * MS / period);
                self.now += 100 * MS;
                self.used += (wanted_us * 1000 * 100 * MS / PERIOD).min(most);
                if let Some(reserved) = self.demand.sample(self.now, self.used, PERIOD) {
                    self.reserved = Some(reserved);
                    self.changes.push((self.now / MS, reserved.0 / 1000));
                }
            }
        }
    }

    #[test]
    fn a_steady_demand_is_reserved_within_a_second_and_stays() {
        let mut thread = Thread::new();
        thread.run(60, 4000);
        assert_eq!(thread.changes, [(900, 6000)]);
    }

    #[test]
    fn the_budget_rises_within_a_second_and_falls_within_five() {
        let mut thread = Thread::new();
        thread.run(5, 4000);
        thread.run(5, 8000);
        let (at, budget) = *thread.changes.last().unwrap();
        assert!(budget >= 8000 && at <= 6000, "{:?}", thread.changes);
        thread.run(10, 4000);
        let (at, budget) = *thread.changes.last().unwrap();
        assert!((6000..7000).contains(&budget) && at <= 15_000, "{:?}", thread.changes);
    }

    #[test]
    fn tiny_demands_get_nothing_and_large_ones_at_most_half() {
        let mut thread = Thread::new();
        thread.run(60, 100);
        assert_eq!(thread.changes, []);
        let mut thread = Thread::new();
        thread.run(60, 60_000);
        assert_eq!(thread.changes.last().unwrap().1, 20_000);
    }

    #[test]
    fn the_share_stays_when_the_period_changes() {
        let mut thread = Thread::new();
        thread.run(5, 4000);
        let mut last = None;
        for _ in 0..3 {
            thread.now += 200 * MS;
            thread.used += 20 * MS;
            last = thread.demand.sample(thread.now, thread.used, PERIOD / 2).or(last);
        }
        assert_eq!(last, Some((3 * MS, 20 * MS)));
    }

    #[test]
    fn a_stopped_clock_or_decreasing_figures_give_no_demand() {
        let mut demand = Demand::default();
        for used in [5 * MS, 3 * MS, 0, u64::MAX, 0] {
            assert_eq!(demand.sample(7, used, PERIOD), None);
            assert_eq!(demand.sample(0, used, PERIOD), None);
        }
    }
}
