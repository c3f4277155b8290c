// SPDX-License-Identifier: MIT
//! Clients that rest for a fixed time after each answer: their interval is the rest and the response, so that contention would
//! be learnt as their period.
//!
//! Where the rest between the end of a job and the next start scatters less than the interval does, the client is a closed loop:
//! T = median(rest) + Q, the interval that it would have if it were served at once.
//!
//! Source: Manica et al. 2008, section 2, measure such a client (it rests for 10 ms and draws; 12 ms idle, 35.6 ms beside an
//! x11perf); Cucinotta et al. (EuroSys 2010) take the period as it is seen, which would be 35.6 ms.
//!
//! An idle server shows no difference between the two kinds, and needs none: there T is the same by either rule. Random pauses, all
//! of whose scatter is in the rest, are no loop; and of a dozen frames of a clock the rests scatter now and then less than the
//! intervals, by chance. So the rest has to scatter less than 0.4 of the interval, and the interval by 5 % at least.
//!
//! Invariant: a rest that is found is shorter than the longest period.

use crate::jobs::{Job, LONGEST_NS};
use crate::order;

/// Of the scatter of intervals.
const STEADIER: f64 = 0.4;
/// Of intervals, in parts of their median: of a clock with less, nothing is to be gained.
const LEAST_SCATTER: f64 = 0.05;
/// Half of the rests are so close to their median.
const SCATTER: f64 = 0.1;
const NEAR_PERCENT: u64 = 25;
const NEAR: f64 = 0.75;
/// Shorter rests are those of clients that ask again as soon as they are answered.
const SHORTEST_REST_NS: u64 = 1_000_000;

/// A rest that a client keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rest {
    /// Its median.
    pub rest_ns: u64,
    /// Share of rests within 25 % of it.
    pub near: f64,
    /// Found in so many jobs.
    pub jobs: usize,
}

/// The rest of a closed loop; `None` for other clients.
pub fn rest(jobs: &[Job]) -> Option<Rest> {
    let intervals: Vec<u64> = jobs.windows(2).map(|pair| pair[1].start.since(pair[0].start)).collect();
    let rests: Vec<u64> = jobs.windows(2).map(|pair| pair[1].start.since(pair[0].end)).collect();
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
    (is_loop && is_in_bounds).then_some(Rest { rest_ns, near, jobs: jobs.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_core::Time;

    const MS: u64 = 1_000_000;

    /// Jobs of these (response, rest), over and over.
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
    fn a_loop_under_load_is_known_by_its_rest() {
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
    fn pauses_of_a_person_are_no_loop() {
        assert_eq!(rest(&jobs(&[(2 * MS, 90 * MS), (3 * MS, 150 * MS), (2 * MS, 210 * MS)], 16)), None);
        assert_eq!(rest(&[]), None);
    }
}
