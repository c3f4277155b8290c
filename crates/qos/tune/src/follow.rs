// SPDX-License-Identifier: MIT
//! Checks that a periodic client keeps its period.
//!
//! | the last six intervals | verdict |
//! |---|---|
//! | five are more than 25 % off T | gone: another rate, or none |
//! | clocks: trimmed mean more than 14 % off T, with each interval divided by the periods that it spans | gone |
//! | anything else | kept |
//!
//! | every 16 jobs, an estimate from the last 64 | verdict |
//! |---|---|
//! | finds a period more than 2 % off in two estimates that agree within 1 % | changed to this period |
//! | finds nothing, three times in a row | gone |
//!
//! For a closed loop, rests take the place of intervals.
//!
//! Source: our own design. The limit is 25 % because all intervals at 24 frames per second on a 60 Hz display are 20 %
//! off. The second row finds a change from 25 to 30 frames per second, which is 17 %. An interval with a dropped frame
//! spans two periods and is not a change.
//!
//! Invariant: a single interval never counts as a change, however long it is.

use crate::detector::{Beat, estimate};
use crate::jobs::{Job, intervals, rests};
use crate::order;
use xqos_core::Time;

const INTERVALS: usize = 6;
const OFF: usize = 5;
const OFF_PERCENT: u64 = 25;
const MEAN_OFF: f64 = 0.14;
/// Half the difference between the closest rates, 25 and 30 per second.
const SLIGHTLY_OFF_PERCENT: u64 = 8;
const JOBS_KEPT: usize = 64;
const ESTIMATE_EVERY: u32 = 16;
const MAX_FAILURES: u32 = 3;
const ANOTHER_PERCENT: u64 = 2;
const SAME_PERCENT: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BeatChange {
    Kept,
    Changed(Beat),
    Gone,
}

#[derive(Clone, Debug)]
pub(crate) struct Follow {
    pub(crate) beat: Beat,
    jobs: Vec<Job>,
    since_estimate: u32,
    failures: u32,
    another: Option<Beat>,
}

impl Follow {
    pub(crate) fn new(beat: Beat, jobs: &[Job]) -> Follow {
        let kept = jobs[jobs.len().saturating_sub(JOBS_KEPT)..].to_vec();
        Follow { beat, jobs: kept, since_estimate: 0, failures: 0, another: None }
    }

    pub(crate) fn take(&mut self, job: Job) -> BeatChange {
        order::keep(&mut self.jobs, JOBS_KEPT, job);
        if self.is_off() {
            return BeatChange::Gone;
        }
        self.since_estimate += 1;
        if self.since_estimate < ESTIMATE_EVERY {
            return BeatChange::Kept;
        }
        self.since_estimate = 0;
        match estimate(&self.jobs) {
            Some(beat) => self.compare(beat),
            None => self.miss(),
        }
    }

    /// Start of the first job with the new period. From this job on, all intervals differ from the old period.
    pub(crate) fn changed_at(&self) -> Time {
        let intervals = self.intervals();
        let length_ns = self.beat.length_ns();
        let is_off = |interval: &&u64| order::near(&[**interval], length_ns, SLIGHTLY_OFF_PERCENT) == 0.0;
        let off = intervals.iter().rev().take_while(is_off).count().clamp(1, OFF);
        self.jobs.get(self.jobs.len().saturating_sub(off)).map_or(Time(0), |job| job.start)
    }

    fn compare(&mut self, beat: Beat) -> BeatChange {
        let is_comparable = matches!(beat, Beat::Clock(_)) == matches!(self.beat, Beat::Clock(_));
        // A loop that is served immediately looks like a clock. If its rests changed, the interval check would notice.
        if !is_comparable {
            return BeatChange::Kept;
        }
        self.failures = 0;
        if beat.agrees(&self.beat, ANOTHER_PERCENT) {
            self.another = None;
            return BeatChange::Kept;
        }
        let before = self.another.replace(beat);
        if before.is_some_and(|before| beat.agrees(&before, SAME_PERCENT)) {
            (self.beat, self.another) = (beat, None);
            return BeatChange::Changed(beat);
        }
        BeatChange::Kept
    }

    fn miss(&mut self) -> BeatChange {
        if matches!(self.beat, Beat::Loop(_)) {
            return BeatChange::Kept;
        }
        self.failures += 1;
        if self.failures >= MAX_FAILURES { BeatChange::Gone } else { BeatChange::Kept }
    }

    fn is_off(&self) -> bool {
        let intervals = self.intervals();
        if intervals.len() < INTERVALS {
            return false;
        }
        let length_ns = self.beat.length_ns();
        let kept = order::near(&intervals, length_ns, OFF_PERCENT) * INTERVALS as f64;
        if kept.round() as usize <= INTERVALS - OFF {
            return true;
        }
        matches!(self.beat, Beat::Clock(_)) && (trimmed_mean(&intervals, length_ns) - 1.0).abs() > MEAN_OFF
    }

    /// The last intervals of a clock, or the last rests of a loop.
    fn intervals(&self) -> Vec<u64> {
        let last = &self.jobs[self.jobs.len().saturating_sub(INTERVALS + 1)..];
        if matches!(self.beat, Beat::Loop(_)) { rests(last) } else { intervals(last) }
    }
}

/// Trimmed mean of the intervals, in periods. Each interval is divided by the number of periods that it spans.
fn trimmed_mean(intervals: &[u64], period_ns: u64) -> f64 {
    let folded = intervals.iter().map(|&interval| interval as f64 / period_ns.max(1) as f64);
    let mut folded: Vec<f64> = folded.map(|periods| periods / periods.round().max(1.0)).collect();
    folded.sort_by(f64::total_cmp);
    let middle = &folded[1..folded.len() - 1];
    middle.iter().sum::<f64>() / middle.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    fn jobs(from: Time, intervals_us: &[u64], count: usize) -> Vec<Job> {
        let mut now = from;
        let each = |us: &u64| {
            now = now.after(us * US);
            Job { start: now, end: now.after(500 * US), demand_ns: 500 * US }
        };
        intervals_us.iter().cycle().take(count).map(each).collect()
    }

    /// The first verdict other than `Kept` after a change of pattern, and the number of jobs until then.
    fn change(before_us: &[u64], after_us: &[u64]) -> Option<(usize, BeatChange)> {
        let known = jobs(Time(0), before_us, 24);
        let mut follow = Follow::new(estimate(&known).unwrap(), &known);
        let then = jobs(known[23].start, after_us, 200);
        then.iter().zip(1..).map(|(job, i)| (i, follow.take(*job))).find(|(_, verdict)| *verdict != BeatChange::Kept)
    }

    #[test]
    fn a_new_rate_is_noticed_within_six_frames() {
        for (before, after) in
            [(40_000, 33_333), (33_333, 40_000), (16_667, 33_333), (33_333, 16_667), (33_333, 41_667)]
        {
            let (after_jobs, verdict) = change(&[before], &[after]).unwrap();
            assert!(
                verdict == BeatChange::Gone && after_jobs <= 6,
                "{before} -> {after}: {verdict:?} after {after_jobs}"
            );
        }
    }

    #[test]
    fn a_similar_rate_is_adopted_without_a_break() {
        let Some((_, BeatChange::Changed(beat))) = change(&[41_667], &[40_000]) else { panic!("24 became 25") };
        assert!(beat.length_ns().abs_diff(40_000_000) < 400_000, "{beat:?}");
    }

    #[test]
    fn pulldown_dropped_frames_and_a_seek_are_no_change() {
        assert_eq!(change(&[33_333, 50_000], &[33_333, 50_000]), None);
        assert_eq!(change(&[16_667], &[16_667, 16_667, 16_667, 16_667, 33_333]), None);
        let seek: Vec<u64> = [16_667; 50].into_iter().chain([300_000]).collect();
        assert_eq!(change(&[16_667], &seek), None);
    }

    #[test]
    fn a_client_that_loses_its_period_has_none() {
        let (_, verdict) = change(&[40_000], &[13_000, 90_000, 31_000, 160_000, 55_000, 9_000, 70_000]).unwrap();
        assert_eq!(verdict, BeatChange::Gone);
    }
}
