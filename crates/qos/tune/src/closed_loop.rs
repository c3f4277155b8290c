// SPDX-License-Identifier: MIT
//! Clients that rest for a fixed time after each reply. Their interval is the rest plus the response time, so measuring
//! it under contention would give a period that is too long.
//!
//! A client is a closed loop if its rests (from the end of a job to the next start) scatter less than its intervals.
//! Then T = median(rest) + Q, the interval that it would have if it were served immediately.
//!
//! Source: Manica et al. 2008, section 2, measure such a client: it rests for 10 ms and draws. Its intervals are 12 ms,
//! or 35.6 ms while x11perf runs. Cucinotta et al. (EuroSys 2010) would use the observed 35.6 ms.
//!
//! On an idle server loops and clocks look alike, and both rules give the same T. A client with random pauses is not a
//! loop, because its rests scatter as much as its intervals. In a dozen frames of a clock, rests may scatter less by
//! chance. Rests must therefore scatter less than 0.4 times as much as the intervals, which must scatter at least 5 %.
//!
//! Invariant: a rest is shorter than the longest period.

use crate::jobs::{Job, LONGEST_NS, intervals, rests};
use crate::order;

/// Maximum scatter of rests, relative to that of intervals.
const STEADIER: f64 = 0.4;
/// Minimum scatter of intervals, relative to their median. With less, the clock rule gives the same T.
const LEAST_SCATTER: f64 = 0.05;
/// Maximum scatter of rests, relative to their median.
const SCATTER: f64 = 0.1;
const NEAR_PERCENT: u64 = 25;
const NEAR: f64 = 0.75;
/// Shorter rests belong to clients that send the next request as soon as they have a reply.
const SHORTEST_REST_NS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopFit {
    pub rest_ns: u64,
    /// Fraction of rests within 25 % of the median.
    pub near: f64,
    /// Number of jobs that were examined.
    pub jobs: usize,
}

/// The rest of a closed loop. `None` for other clients.
pub fn rest(jobs: &[Job]) -> Option<LoopFit> {
    let (intervals, rests) = (intervals(jobs), rests(jobs));
    if rests.len() < 2 {
        return None;
    }
    let rest_ns = order::median(&rests);
    let of_rests = order::scatter(&rests, rest_ns) as f64;
    let interval_ns = order::median(&intervals);
    let of_intervals = order::scatter(&intervals, interval_ns) as f64;
    let near = order::near(&rests, rest_ns, NEAR_PERCENT);
    let is_under_load = of_intervals >= LEAST_SCATTER * interval_ns as f64;
    let is_kept = of_rests <= SCATTER * rest_ns as f64 && near >= NEAR;
    let is_loop = is_under_load && is_kept && of_rests < STEADIER * of_intervals;
    let is_in_bounds = (SHORTEST_REST_NS..LONGEST_NS).contains(&rest_ns);
    (is_loop && is_in_bounds).then_some(LoopFit { rest_ns, near, jobs: jobs.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_core::Time;

    const MS: u64 = 1_000_000;

    /// Jobs that repeat this pattern of (response, rest).
    fn jobs(pattern: &[(u64, u64)], count: usize) -> Vec<Job> {
        let mut now = Time(MS);
        let each = |&(response, rest): &(u64, u64)| {
            let job = Job { start: now, end: now.after(response), demand_ns: 2 * MS };
            now = job.end.after(rest);
            job
        };
        pattern.iter().cycle().take(count).map(each).collect()
    }

    #[test]
    fn a_loop_under_load_is_recognized_by_its_rest() {
        let jobs = jobs(
            &[(20 * MS, 10 * MS), (31 * MS, 10 * MS + 100_000), (9 * MS, 10 * MS), (25 * MS, 9 * MS + 900_000)],
            16,
        );
        let rest = rest(&jobs).unwrap();
        assert_eq!((rest.rest_ns, rest.near, rest.jobs), (10 * MS, 1.0, 16));
    }

    #[test]
    fn a_clock_is_no_loop() {
        let late = [(2 * MS, 38 * MS), (15 * MS, 25 * MS), (30 * MS, 10 * MS)];
        assert_eq!(rest(&jobs(&late, 16)), None, "its intervals are the same, whatever the response");
        assert_eq!(rest(&jobs(&[(2 * MS, 38 * MS)], 16)), None);
    }

    #[test]
    fn human_pauses_are_no_loop() {
        assert_eq!(rest(&jobs(&[(2 * MS, 90 * MS), (3 * MS, 150 * MS), (2 * MS, 210 * MS)], 16)), None);
        assert_eq!(rest(&[]), None);
    }
}
