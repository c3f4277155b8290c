// SPDX-License-Identifier: MIT
//! The processor time that a thread needs in each period, from how much it had used at some looks. Pure.
//!
//! A look comes ten times a second, and a period is shorter or not much longer, so a look tells the mean of some jobs:
//!
//! - A window is closed by the first look after four periods, of 0.1 s at least; c = used x T / window. 16 windows are kept.
//! - After four windows Q = 1.5 x the most of them, between 0.1 ms and T/2; none below 1 % of the processor.
//! - A thread that uses nine tenths of Q is held back by it, so what it needs is not known: then 1.5 x Q at once. It falls when
//!   less than 0.7 x Q was wanted for all windows that are kept. Nothing changes by less than a tenth.
//!
//! The factor of 1.5 is that between a mean and the 15/16 quantile of uneven jobs (log-normal, deviation 0.3), rounded down.

use std::collections::VecDeque;

const WINDOW_PERIODS: u64 = 4;
const MIN_WINDOW_NS: u64 = 100_000_000;
const WINDOWS: usize = 16;
const FIRST_WINDOWS: usize = 4;
const MIN_BUDGET_NS: u64 = 100_000;

/// One thread.
#[derive(Debug, Default)]
pub struct Demand {
    /// Where the window began: when, and what was used by then.
    began: Option<(u64, u64)>,
    means_ns: VecDeque<u64>,
    /// What is reserved: the budget, and the period.
    reserved: Option<(u64, u64)>,
}

impl Demand {
    /// Takes a look: at `now_ns` the thread had used so much, and its period is that. Gives what to reserve where that is
    /// another than before.
    pub fn see(&mut self, now_ns: u64, used_ns: u64, period_ns: u64) -> Option<(u64, u64)> {
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
        // The same share of another period.
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

    /// A thread that asks for so much in each period, held back at what is reserved; gives each change with its time.
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
                if let Some(reserved) = self.demand.see(self.now, self.used, PERIOD) {
                    self.reserved = Some(reserved);
                    self.changes.push((self.now / MS, reserved.0 / 1000));
                }
            }
        }
    }

    #[test]
    fn an_even_demand_is_reserved_after_a_second_and_stays() {
        let mut thread = Thread::new();
        thread.run(60, 4000);
        assert_eq!(thread.changes, [(900, 6000)]);
    }

    #[test]
    fn a_demand_that_doubles_is_followed_within_a_second_and_one_that_halves_within_five() {
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
    fn nothing_is_reserved_for_next_to_nothing_and_never_more_than_half() {
        let mut thread = Thread::new();
        thread.run(60, 100);
        assert_eq!(thread.changes, []);
        let mut thread = Thread::new();
        thread.run(60, 60_000);
        assert_eq!(thread.changes.last().unwrap().1, 20_000);
    }

    #[test]
    fn another_period_has_the_same_share() {
        let mut thread = Thread::new();
        thread.run(5, 4000);
        let mut last = None;
        for _ in 0..3 {
            thread.now += 200 * MS;
            thread.used += 20 * MS;
            last = thread.demand.see(thread.now, thread.used, PERIOD / 2).or(last);
        }
        assert_eq!(last, Some((3 * MS, 20 * MS)));
    }

    #[test]
    fn a_clock_that_stands_or_figures_that_fall_are_no_demand() {
        let mut demand = Demand::default();
        for used in [5 * MS, 3 * MS, 0, u64::MAX, 0] {
            assert_eq!(demand.see(7, used, PERIOD), None);
            assert_eq!(demand.see(0, used, PERIOD), None);
        }
    }
}
