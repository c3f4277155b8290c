// SPDX-License-Identifier: MIT
//! Examines a client's jobs until two successive estimates of its period or rest agree.
//!
//! | job | action |
//! |---|---|
//! | too few jobs, or in too short a time | wait |
//! | enough jobs since the last estimate | estimate: a rest if there is one, else a period |
//! | an estimate within 5 % of the previous one | accept it |
//! | no estimate, or a different one | compare the next estimate with it |
//! | no job, because the client does not rest | restart |
//!
//! The period decides which bursts form a job, and the jobs decide the period. There is therefore a detector for each
//! of several gaps g, which accepts only periods for which its g is right: g <= T/4, at most 10 ms.
//!
//! Source: our own design. Cucinotta et al. (EuroSys 2010) rely on the length of their window instead of two estimates.
//!
//! Invariant: a single estimate is never accepted for a client without a remembered period.

use crate::closed_loop::{self, LoopFit};
use crate::jobs::{Burst, Job, JoinResult, Joiner};
use crate::order;
use crate::period::{self, Fit};
use xqos_core::Time;

/// The gaps g, largest first: steps of clamp(T/4, 2 ms, 10 ms).
pub(crate) const GAPS_NS: [u64; 6] = [10_000_000, 8_000_000, 6_000_000, 4_000_000, 3_000_000, 2_000_000];
const LEAST_GAP_NS: u64 = 2_000_000;

/// The number of stored jobs: one or two seconds of frames.
const JOBS_KEPT: usize = 64;
const WINDOW_NS: u64 = 2_000_000_000;
/// The minimum for slow clients, enough for two estimates.
const LEAST_KEPT: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beat {
    Clock(Fit),
    /// Replies: a closed loop.
    Loop(LoopFit),
}

impl Beat {
    /// T of a clock, or the rest of a loop.
    pub fn length_ns(&self) -> u64 {
        match self {
            Beat::Clock(fit) => fit.period_ns,
            Beat::Loop(rest) => rest.rest_ns,
        }
    }

    /// T of a clock; for a loop, the rest plus the server time of a job.
    pub(crate) fn period_ns(&self, demand_ns: u64) -> u64 {
        match self {
            Beat::Clock(fit) => fit.period_ns,
            Beat::Loop(rest) => rest.rest_ns.saturating_add(demand_ns),
        }
    }

    /// Confidence from 0 to 1.
    pub fn confidence(&self) -> f64 {
        match self {
            Beat::Clock(fit) => (fit.coverage - 2.0 * fit.misfit).clamp(0.0, 1.0),
            Beat::Loop(rest) => rest.near,
        }
    }

    /// Whether both are of the same kind and differ by at most `percent`.
    pub(crate) fn agrees(&self, other: &Beat, percent: u64) -> bool {
        let is_same_kind = matches!(self, Beat::Clock(_)) == matches!(other, Beat::Clock(_));
        is_same_kind && order::near(&[self.length_ns()], other.length_ns(), percent) > 0.0
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    pub(crate) jobs: usize,
    pub(crate) span_ns: u64,
    /// The number of jobs between two estimates.
    pub(crate) apart: usize,
}

impl Condition {
    /// For an unknown client. Twelve periods at 24 frames per second are half a second.
    pub(crate) const FIRST: Condition = Condition { jobs: 12, span_ns: 400_000_000, apart: 4 };
    /// For a client that was periodic a moment ago: a new rate must be found within half a second, 12 frames.
    pub(crate) const RECENT: Condition = Condition { jobs: 8, span_ns: 0, apart: 2 };
    /// For a client with a remembered period: one estimate that confirms it.
    pub(crate) const KNOWN: Condition = Condition { jobs: 6, span_ns: 0, apart: 1 };
}

#[derive(Clone, Debug)]
pub(crate) struct Detector {
    gap_ns: u64,
    joiner: Joiner,
    jobs: Vec<Job>,
    since: usize,
    last: Option<Beat>,
    /// The last fit, accepted or not, for display.
    pub(crate) seen: Option<Fit>,
    /// Number of jobs so far.
    pub(crate) count: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Detection {
    pub(crate) beat: Beat,
    pub(crate) jobs: Vec<Job>,
    pub(crate) joiner: Joiner,
}

impl Detector {
    pub(crate) fn new(gap_ns: u64) -> Detector {
        let joiner = Joiner::new(gap_ns);
        Detector { gap_ns, joiner, jobs: Vec::new(), since: 0, last: None, seen: None, count: 0 }
    }

    /// Takes a burst. One estimate suffices to confirm `known`, a remembered beat.
    pub(crate) fn take(&mut self, burst: Burst, condition: Condition, known: Option<&Beat>) -> Option<Detection> {
        match self.joiner.take(burst) {
            JoinResult::SameJob => return None,
            JoinResult::Endless => {
                (self.since, self.last) = (0, None);
                self.jobs.clear();
                return None;
            }
            JoinResult::NewJob(before) => self.jobs.extend(before),
        }
        self.count += 1;
        self.since += 1;
        self.prune(burst.start);
        // The open job has only a start.
        let open = Job { start: burst.start, end: burst.start, demand_ns: 0 };
        let jobs: Vec<Job> = self.jobs.iter().copied().chain([open]).collect();
        if let Some(known) = known.filter(|_| jobs.len() >= Condition::KNOWN.jobs) {
            let is_known =
                self.estimate(&jobs[jobs.len() - Condition::KNOWN.jobs..]).filter(|beat| beat.agrees(known, 5));
            if let Some(beat) = is_known {
                return Some(self.found(beat));
            }
        }
        let is_due = jobs.len() >= condition.jobs && burst.start.since(jobs[0].start) >= condition.span_ns;
        if !is_due || self.since < condition.apart {
            return None;
        }
        self.since = 0;
        self.seen = period::fit(&starts(&jobs));
        let beat = self.estimate(&jobs);
        let before = std::mem::replace(&mut self.last, beat);
        let beat = beat.filter(|beat| before.is_some_and(|before| beat.agrees(&before, 5)))?;
        Some(self.found(beat))
    }

    fn estimate(&self, jobs: &[Job]) -> Option<Beat> {
        let beat = estimate(jobs)?;
        let demands: Vec<u64> = jobs.iter().map(|job| job.demand_ns).collect();
        let period_ns = beat.period_ns(order::median(&demands));
        let is_right_gap = self.gap_ns <= LEAST_GAP_NS || period_ns.saturating_add(period_ns / 20) >= self.gap_ns * 4;
        is_right_gap.then_some(beat)
    }

    fn found(&self, beat: Beat) -> Detection {
        Detection { beat, jobs: self.jobs.clone(), joiner: self.joiner.clone() }
    }

    fn prune(&mut self, now: Time) {
        let is_old = |job: &Job| now.since(job.start) > WINDOW_NS;
        while self.jobs.len() > JOBS_KEPT || self.jobs.len() > LEAST_KEPT && self.jobs.first().is_some_and(is_old) {
            self.jobs.remove(0);
        }
    }
}

/// Estimates the period or rest of a client with these jobs.
pub(crate) fn estimate(jobs: &[Job]) -> Option<Beat> {
    if let Some(rest) = closed_loop::rest(jobs) {
        return Some(Beat::Loop(rest));
    }
    period::fit(&starts(jobs)).filter(Fit::is_accepted).map(Beat::Clock)
}

fn starts(jobs: &[Job]) -> Vec<Time> {
    jobs.iter().map(|job| job.start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The period of frames with these bursts, the gap that found it, and the time at which it was found, in ms.
    fn found(period_ms: u64, offsets_ms: &[u64]) -> Option<(u64, u64, u64)> {
        let mut detectors = GAPS_NS.map(Detector::new);
        for frame in 0..60 {
            for offset in offsets_ms {
                let start = Time((1000 + frame * period_ms + offset) * MS);
                let burst = Burst { start, end: start.after(MS / 2), served_ns: MS / 2 };
                for detector in &mut detectors {
                    if let Some(found) = detector.take(burst, Condition::FIRST, None) {
                        return Some((found.beat.length_ns() / MS, detector.gap_ns / MS, start.0 / MS - 1000));
                    }
                }
            }
        }
        None
    }

    #[test]
    fn a_period_is_found_with_its_right_gap() {
        assert_eq!(found(40, &[0]), Some((40, 10, 600)));
        assert_eq!(found(40, &[0, 4, 9, 15]), Some((40, 10, 600)));
        assert_eq!(found(16, &[0, 2, 3]), Some((16, 4, 464)));
        assert_eq!(found(8, &[0]), Some((8, 2, 432)));
    }

    #[test]
    fn a_client_that_never_rests_has_no_period() {
        assert_eq!(found(1, &[0]), None);
    }
}
