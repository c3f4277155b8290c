// SPDX-License-Identifier: MIT
//! Finds the period of a client that is driven by a clock, from the start times of its jobs.
//!
//! 1. Candidates: median, mean and lower quartile of the intervals.
//! 2. For each candidate, jobs are numbered by rounding intervals to whole periods; a line is fitted with slope T.
//! 3. Each fit has: misfit = (median distance of a start from the line) / T; coverage = jobs / periods (or its inverse,
//!    with more than one job per period); near = fraction of intervals within 25 % of T; scatter = (median distance of
//!    an interval from T) / T.
//! 4. Accepted fits precede others; among them, the fit with the largest coverage - 2 misfit wins.
//!
//! | accepted | min. jobs | misfit | scatter | near | coverage |
//! |---|---|---|---|---|---|
//! | a clock accurate to a few percent | any | <= 0.045 | | >= 0.9 | >= 0.9 |
//! | such a clock with dropped frames | 32 | <= 0.06 | | >= 0.75 | >= 0.75 |
//! | a clock with large jitter | 48 | <= 0.1 | | >= 0.85 | >= 0.85 |
//! | a short wait between frames, so that the phase drifts | 24 | | <= 0.06 | >= 0.9 | >= 0.9 |
//! | pulldown, 24 frames on a 60 Hz display: even and odd jobs lie on two lines | 16 | <= 0.03 | | >= 0.9 | >= 0.9 |
//!
//! Source: Cucinotta et al. (EuroSys 2010) find the period in the spectrum of event times. A line through numbered
//! events assumes a single period, costs O(n log n), and needs only a dozen jobs. Weaker conditions (near >= 0.75
//! alone, or misfit <= 0.12 and near >= 0.5) mistake typing for a period: its phase is a random walk, so a few jobs may
//! lie near a line by chance, but not half of them this close to it.
//!
//! Invariant: no input panics, and a found period is between 4 and 250 ms.

use crate::jobs::LONGEST_NS;
use crate::order;
use xqos_core::Time;

/// Shorter periods are request-reply loops without a rhythm of their own.
pub(crate) const SHORTEST_NS: u64 = 4_000_000;

const NEAR_PERCENT: u64 = 25;
/// A line through the start times of jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Its slope, T.
    pub period_ns: u64,
    /// Median distance of a start from the line, in periods.
    pub misfit: f64,
    /// Jobs per period.
    pub coverage: f64,
    /// Fraction of intervals within 25 % of T.
    pub near: f64,
    /// Median distance of an interval from T, in periods.
    pub scatter: f64,
    /// Even and odd jobs lie on two lines.
    pub is_pulldown: bool,
    pub jobs: usize,
}

impl Fit {
    /// Whether the fit shows a periodic client.
    pub fn is_accepted(&self) -> bool {
        if !(SHORTEST_NS..=LONGEST_NS).contains(&self.period_ns) {
            return false;
        }
        let is = |jobs, misfit, near, coverage| {
            self.jobs >= jobs && self.misfit <= misfit && self.near >= near && self.coverage >= coverage
        };
        match self.is_pulldown {
            true => is(16, 0.03, 0.9, 0.9),
            false => {
                let wanders = self.scatter <= 0.06 && is(24, f64::INFINITY, 0.9, 0.9);
                wanders || is(0, 0.045, 0.9, 0.9) || is(32, 0.06, 0.75, 0.75) || is(48, 0.1, 0.85, 0.85)
            }
        }
    }

    fn is_better_than(&self, other: &Fit) -> bool {
        let (accepted, score) = (self.is_accepted(), self.coverage - 2.0 * self.misfit);
        (accepted, score) > (other.is_accepted(), other.coverage - 2.0 * other.misfit)
    }
}

/// The best line through ascending start times. `None` for fewer than three.
pub fn fit(starts: &[Time]) -> Option<Fit> {
    let intervals: Vec<u64> = starts.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    if intervals.len() < 2 {
        return None;
    }
    let candidates = [order::median(&intervals), order::mean(&intervals), order::quantile(&intervals, 1, 4)];
    let lines = candidates.iter().filter_map(|&candidate| line(starts, &intervals, candidate));
    lines.chain(pulldown(starts, &intervals)).reduce(|a, b| if b.is_better_than(&a) { b } else { a })
}

/// Fits two lines with the same slope, through the even and the odd jobs.
fn pulldown(starts: &[Time], intervals: &[u64]) -> Option<Fit> {
    let line_of = |first: usize| {
        let starts: Vec<Time> = starts.iter().skip(first).step_by(2).copied().collect();
        let intervals: Vec<u64> = starts.windows(2).map(|pair| pair[1].since(pair[0])).collect();
        line(&starts, &intervals, order::median(&intervals))
    };
    let (even, odd) = (line_of(0)?, line_of(1)?);
    let is_same = order::near(&[even.period_ns], odd.period_ns, 2) > 0.0;
    let period_ns = (even.period_ns / 2).saturating_add(odd.period_ns / 2) / 2;
    is_same.then(|| Fit {
        period_ns,
        // Converted to periods of all jobs, which are half as long as those of one line.
        misfit: 2.0 * even.misfit.max(odd.misfit),
        coverage: even.coverage.min(odd.coverage),
        near: order::near(intervals, period_ns, NEAR_PERCENT),
        scatter: order::scatter(intervals, period_ns) as f64 / period_ns.max(1) as f64,
        is_pulldown: true,
        jobs: starts.len(),
    })
}

fn line(starts: &[Time], intervals: &[u64], candidate_ns: u64) -> Option<Fit> {
    let first = *starts.first()?;
    if starts.len() < 3 {
        return None;
    }
    let mut number = 0.0;
    let mut points = vec![(0.0, 0.0)];
    for (&interval, &start) in intervals.iter().zip(&starts[1..]) {
        number += (interval as f64 / candidate_ns.max(1) as f64).round();
        points.push((number, start.since(first) as f64));
    }
    let count = points.len() as f64;
    let (mean_x, mean_y) =
        (points.iter().map(|p| p.0).sum::<f64>() / count, points.iter().map(|p| p.1).sum::<f64>() / count);
    let (mut xx, mut xy) = (0.0, 0.0);
    for (x, y) in &points {
        xx += (x - mean_x) * (x - mean_x);
        xy += (x - mean_x) * (y - mean_y);
    }
    let slope = xy / xx;
    if !slope.is_finite() || slope < 1.0 {
        return None;
    }
    let mut distances: Vec<f64> = points.iter().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).abs()).collect();
    distances.sort_by(f64::total_cmp);
    let (periods, period_ns) = (number + 1.0, slope.round() as u64);
    Some(Fit {
        period_ns,
        misfit: distances[distances.len() / 2] / slope,
        coverage: (count / periods).min(periods / count),
        near: order::near(intervals, period_ns, NEAR_PERCENT),
        scatter: order::scatter(intervals, period_ns) as f64 / slope,
        is_pulldown: false,
        jobs: starts.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    /// Start times that repeat these intervals.
    fn starts(intervals_us: &[u64], count: usize) -> Vec<Time> {
        let mut now = Time(1_000_000_000);
        let later = intervals_us.iter().cycle().take(count).map(|us| {
            now = now.after(us * US);
            now
        });
        std::iter::once(Time(1_000_000_000)).chain(later).collect()
    }

    fn accepted_us(intervals_us: &[u64]) -> Option<u64> {
        fit(&starts(intervals_us, 40)).filter(Fit::is_accepted).map(|fit| fit.period_ns / US)
    }

    #[test]
    fn a_period_is_the_slope_of_the_line_through_its_jobs() {
        let fit = fit(&starts(&[40_000], 15)).unwrap();
        assert_eq!((fit.period_ns, fit.near, fit.coverage, fit.jobs), (40_000_000, 1.0, 1.0, 16));
        assert!(fit.misfit < 1e-6 && fit.is_accepted());
    }

    #[test]
    fn pulldown_from_24_to_60_has_the_period_of_24() {
        let period = accepted_us(&[33_333, 50_000]).unwrap();
        assert!(period.abs_diff(41_667) < 400, "{period}");
    }

    #[test]
    fn dropped_frames_do_not_hide_the_period() {
        let one_of_ten = [16_667; 9].into_iter().chain([33_333]).collect::<Vec<_>>();
        assert!(accepted_us(&one_of_ten).unwrap().abs_diff(16_667) < 160);
    }

    #[test]
    fn irregular_intervals_have_no_period() {
        assert_eq!(accepted_us(&[5_000, 71_000, 16_000, 130_000, 44_000, 9_000, 95_000]), None);
    }

    #[test]
    fn periods_out_of_bounds_are_refused() {
        assert_eq!((accepted_us(&[2_000]), accepted_us(&[400_000])), (None, None));
    }

    #[test]
    fn arbitrary_times_do_not_panic() {
        for times in [&[][..], &[1], &[1, 1], &[1, 1, 1, 1], &[0, u64::MAX, u64::MAX], &[9, 3, 1, 0]] {
            let starts: Vec<Time> = times.iter().copied().map(Time).collect();
            assert!(!fit(&starts).is_some_and(|fit| fit.is_accepted()), "{times:?}");
        }
    }
}
