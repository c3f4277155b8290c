// SPDX-License-Identifier: MIT
//! Estimates the server time that a periodic client needs per period. The estimate rises quickly and falls slowly.
//!
//! wanted = max(1.07 H, 1.12 M) T / (T - e), where H is the 15/16 quantile and M the median of the last 48 jobs.
//!
//! | server time of its jobs | new Q |
//! |---|---|
//! | more than 1.25 Q in two of the last four | 1.12 times the largest of these, immediately |
//! | more than Q in six of the last 48; or wanted exceeds 1.2 Q | wanted |
//! | wanted was below 0.9 Q for 4 s and 25 jobs, or 150 jobs | the maximum in that time, but at most a quarter less |
//! | anything else | unchanged |
//!
//! e is the median lateness of the last four jobs: how long after start + T they ended. It counts only while one of the
//! four used more than Q, and T / (T - e) is at most 2. A job that is late with a sufficient budget was blocked, or the
//! processor was busy; a larger Q helps in neither case.
//!
//! Source: the feedback of Cucinotta et al. (EuroSys 2010) and of ARSim (github.com/tomcucinotta/arsim), b = spread * H
//! / (T + e* - max(e, 0)) over a quantile of the last demands. Compositors' render journals and Android's performance
//! hints also rise quickly and decay slowly. Two margins replace a single factor: the H of an unsteady client already
//! includes its variation, while a steady client, whose H is its median, needs 12 % more. A fall waits for 4 s to avoid
//! frequent changes.
//!
//! Invariant: 0.2 ms <= Q <= T/2.

use crate::jobs::Job;
use crate::order;
use xqos_core::Time;

/// Covers the error of a quantile of 48 jobs.
const OVER_QUANTILE_PERCENT: u64 = 107;
/// Covers the variation of a steady demand from one scene to the next.
const OVER_MEDIAN_PERCENT: u64 = 112;
const JOBS_KEPT: usize = 48;
const RECENT: usize = 4;
/// The number of recent jobs above `STEP_PERCENT` of Q that count as a step in demand.
const OVERRUNS: usize = 2;
const STEP_PERCENT: u64 = 125;
/// The number of overruns among all stored jobs that raises Q. One in eight is more than twice the goal.
const OFTEN: usize = 6;
const UP_PERCENT: u64 = 120;
const DOWN_PERCENT: u64 = 90;
const LOW_JOBS: u32 = 25;
const LOW_NS: u64 = 4_000_000_000;
const MANY_LOW_JOBS: u32 = 150;
/// The server accepts smaller budgets, but they save nothing.
pub(crate) const LEAST_BUDGET_NS: u64 = 200_000;

impl Low {
    fn is_long(&self, now: Time) -> bool {
        self.jobs >= MANY_LOW_JOBS || self.jobs >= LOW_JOBS && now.since(self.since) >= LOW_NS
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    demands: Vec<u64>,
    recent: Vec<Job>,
    budget_ns: u64,
    low: Option<Low>,
}

/// A time during which less than Q is wanted.
#[derive(Clone, Copy, Debug)]
struct Low {
    since: Time,
    jobs: u32,
    /// The maximum that was wanted during this time.
    most_ns: u64,
}

impl Demand {
    pub(crate) fn new(jobs: &[Job], period_ns: u64) -> Demand {
        let mut demand = Demand::default();
        jobs.iter().for_each(|job| demand.keep(job));
        // Jobs from before the reservation were late because of load, not demand.
        demand.recent.clear();
        demand.budget_ns = demand.wanted_ns(period_ns);
        demand
    }

    /// Budget Q.
    pub(crate) fn budget_ns(&self) -> u64 {
        self.budget_ns
    }

    /// Quantile H.
    pub(crate) fn quantile_ns(&self) -> u64 {
        order::quantile(&self.demands, 15, 16)
    }

    pub(crate) fn median_ns(&self) -> u64 {
        order::median(&self.demands)
    }

    pub(crate) fn mean_ns(&self) -> u64 {
        order::mean(&self.demands)
    }

    pub(crate) fn take(&mut self, job: &Job, period_ns: u64) {
        self.keep(job);
        let wanted_ns = self.wanted_ns(period_ns);
        self.low = (wanted_ns < percent(self.budget_ns, DOWN_PERCENT)).then(|| match self.low {
            Some(low) => Low { jobs: low.jobs + 1, most_ns: low.most_ns.max(wanted_ns), ..low },
            None => Low { since: job.start, jobs: 1, most_ns: wanted_ns },
        });
        if let Some(largest_ns) = self.step() {
            self.set(percent(largest_ns, OVER_MEDIAN_PERCENT), period_ns);
        } else if wanted_ns > percent(self.budget_ns, UP_PERCENT) || self.is_often_over() {
            self.set(wanted_ns, period_ns);
        } else if let Some(low) = self.low.filter(|low| low.is_long(job.start)) {
            self.set(low.most_ns.max(self.budget_ns - self.budget_ns / 4), period_ns);
        }
    }

    /// Restores Q after a pause.
    pub(crate) fn resume(&mut self, budget_ns: u64) {
        self.budget_ns = budget_ns;
    }

    /// Limits Q to a new T.
    pub(crate) fn bound(&mut self, period_ns: u64) {
        self.budget_ns = bounded(self.budget_ns, period_ns);
    }

    fn set(&mut self, budget_ns: u64, period_ns: u64) {
        (self.budget_ns, self.low) = (bounded(budget_ns, period_ns), None);
    }

    /// The largest recent overrun, if there are enough overruns for an immediate increase.
    fn step(&self) -> Option<u64> {
        let most_ns = percent(self.budget_ns, STEP_PERCENT);
        let over: Vec<u64> = self.recent.iter().map(|recent| recent.demand_ns).filter(|&ns| ns > most_ns).collect();
        (over.len() >= OVERRUNS).then(|| over.into_iter().max()).flatten()
    }

    fn is_often_over(&self) -> bool {
        self.demands.iter().filter(|&&ns| ns > self.budget_ns).count() >= OFTEN
    }

    fn wanted_ns(&self, period_ns: u64) -> u64 {
        let late_ns = self.lateness_ns(period_ns).min(period_ns / 2);
        let of_quantile = percent(self.quantile_ns(), OVER_QUANTILE_PERCENT);
        let plain_ns = of_quantile.max(percent(self.median_ns(), OVER_MEDIAN_PERCENT));
        let with_lateness = u128::from(plain_ns) * u128::from(period_ns) / u128::from((period_ns - late_ns).max(1));
        bounded(u64::try_from(with_lateness).unwrap_or(u64::MAX), period_ns)
    }

    fn lateness_ns(&self, period_ns: u64) -> u64 {
        if !self.recent.iter().any(|recent| recent.demand_ns > self.budget_ns) {
            return 0;
        }
        let late: Vec<u64> = self.recent.iter().map(|recent| recent.response_ns().saturating_sub(period_ns)).collect();
        order::median(&late)
    }

    fn keep(&mut self, job: &Job) {
        order::keep(&mut self.demands, JOBS_KEPT, job.demand_ns);
        order::keep(&mut self.recent, RECENT, *job);
    }
}

fn percent(ns: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(ns) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

fn bounded(budget_ns: u64, period_ns: u64) -> u64 {
    budget_ns.min(period_ns / 2).max(LEAST_BUDGET_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const T: u64 = 40_000 * US;

    /// A client with one job per period.
    struct Shown {
        demand: Demand,
        now: Time,
    }

    impl Shown {
        fn constant(demand_us: u64) -> Shown {
            let job = Job { start: Time(0), end: Time(demand_us * US), demand_ns: demand_us * US };
            Shown { demand: Demand::new(&vec![job; 16], T), now: Time(0) }
        }

        /// The budgets before and after each of this many jobs.
        fn takes(&mut self, jobs: usize, demand_us: u64, response_us: u64) -> Vec<u64> {
            let mut budgets = vec![self.demand.budget_ns() / US];
            for _ in 0..jobs {
                self.now = self.now.after(T);
                let job = Job { start: self.now, end: self.now.after(response_us * US), demand_ns: demand_us * US };
                self.demand.take(&job, T);
                budgets.push(self.demand.budget_ns() / US);
            }
            budgets.dedup();
            budgets
        }
    }

    #[test]
    fn constant_demand_gets_twelve_percent_more() {
        assert_eq!(Shown::constant(2_000).takes(200, 2_000, 2_000), [2_240]);
    }

    #[test]
    fn doubled_demand_is_met_after_two_jobs() {
        let mut client = Shown::constant(2_000);
        assert_eq!(client.takes(1, 4_000, 4_000), [2_240], "one overrun is an outlier");
        assert_eq!(client.takes(1, 4_200, 4_200), [2_240, 4_704]);
    }

    #[test]
    fn slightly_higher_demand_is_met_after_six_overruns() {
        assert_eq!(Shown::constant(2_000).takes(60, 2_300, 2_300), [2_240, 2_461]);
    }

    #[test]
    fn halved_demand_lowers_the_budget_in_steps() {
        assert_eq!(Shown::constant(4_000).takes(500, 2_000, 2_000), [4_480, 3_360, 2_520, 2_240]);
    }

    #[test]
    fn lateness_counts_only_with_a_budget_overrun() {
        let mut client = Shown::constant(2_000);
        assert_eq!(client.takes(20, 2_000, 90_000), [2_240], "other clients blocked it");
        assert_eq!(client.takes(20, 2_300, 60_000), [2_240, 4_480], "half a period late, twice as much");
    }

    #[test]
    fn budgets_keep_their_bounds() {
        assert_eq!(Shown::constant(1).takes(1, 1, 1), [200]);
        let mut greedy = Shown::constant(30_000);
        assert_eq!(greedy.takes(9, 39_000, 80_000), [20_000]);
        greedy.demand.bound(T / 4);
        assert_eq!(greedy.demand.budget_ns(), T / 8);
    }
}
