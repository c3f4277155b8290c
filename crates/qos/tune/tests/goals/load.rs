// SPDX-License-Identifier: MIT
//! Generates client loads in virtual time. The same seed gives the same load.

use xqos_core::Time;
use xqos_testkit::Random;
use xqos_tune::{Burst, ClientAnalysis, Need};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// Random lengths of time.
pub trait Distributions {
    fn between(&mut self, low: u64, high: u64) -> u64;
    /// A pause, exponentially distributed with this mean.
    fn pause(&mut self, mean_ns: u64) -> u64;
    /// A number, approximately normal with mean 0 and deviation 1.
    fn normal(&mut self) -> f64;
    /// A length, log-normal with this median.
    fn spread(&mut self, median_ns: u64, deviation: f64) -> u64;
}

impl Distributions for Random {
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below_u64(high - low)
    }

    fn pause(&mut self, mean_ns: u64) -> u64 {
        (-(1.0 - self.unit()).ln() * mean_ns as f64) as u64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    fn spread(&mut self, median_ns: u64, deviation: f64) -> u64 {
        (median_ns as f64 * (deviation * self.normal()).exp()) as u64
    }
}

/// The requests of a client in one period.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub start: Time,
    pub demand_ns: u64,
    /// Number of activations.
    pub parts: u64,
    /// Time between two activations.
    pub apart_ns: u64,
}

impl Frame {
    pub fn new(start: Time, demand_ns: u64) -> Frame {
        Frame { start, demand_ns, parts: 1, apart_ns: 0 }
    }

    /// The bursts of a frame that is served immediately.
    pub fn bursts(&self) -> impl Iterator<Item = Burst> + '_ {
        let served_ns = self.demand_ns / self.parts;
        (0..self.parts).map(move |part| {
            let start = self.start.after(part * self.apart_ns);
            Burst { start, end: start.after(served_ns), served_ns }
        })
    }
}

/// Frames of a player. Each frame is early or late by up to the fraction `jitter` of the period.
pub fn player(
    rate: f64,
    (from, until): (u64, u64),
    jitter: f64,
    random: &mut Random,
    demand: impl Fn(&mut Random) -> u64,
) -> Vec<Frame> {
    let period = SECOND as f64 / rate;
    let count = ((until - from) as f64 / period) as u64;
    let frame = |i: u64| {
        let off = (2.0 * random.unit() - 1.0) * jitter * period;
        let start = from as f64 + period + i as f64 * period + off;
        Frame::new(Time(start as u64), demand(random))
    };
    (0..count).map(frame).collect()
}

/// The history of a client.
#[derive(Debug, Default)]
pub struct Course {
    /// Each change of the need, with its time.
    pub changes: Vec<(Time, Option<Need>)>,
    /// Jobs that started while there was a need, with that need.
    pub jobs: Vec<(Frame, Need)>,
}

/// Plays these frames to a client. Its needs are granted immediately.
pub fn course(frames: &[Frame]) -> Course {
    let (mut client, mut course) = (ClientAnalysis::default(), Course::default());
    let mut need = None;
    for frame in frames {
        client.advance(frame.start);
        course.note(frame.start, client.need(), &mut need);
        course.jobs.extend(need.map(|need| (*frame, need)));
        for burst in frame.bursts() {
            client.take(burst);
            course.note(burst.end, client.need(), &mut need);
        }
    }
    course
}

impl Course {
    pub fn note(&mut self, now: Time, need: Option<Need>, before: &mut Option<Need>) {
        let reservation = |need: &Need| (need.budget_ns, need.period_ns);
        if need.as_ref().map(reservation) != before.as_ref().map(reservation) {
            self.changes.push((now, need));
        }
        *before = need;
    }

    /// The first need, and the time until then.
    pub fn first(&self, from: u64) -> (u64, Need) {
        let first = self.changes.iter().find_map(|&(at, need)| Some((at.0 - from, need?)));
        first.unwrap_or_else(|| panic!("it needs no reservation: {:?}", self.changes))
    }

    /// The time from `from` to the first need that satisfies `is_so`.
    pub fn first_that(&self, from: u64, is_so: impl Fn(&Need) -> bool) -> u64 {
        let found = self.changes.iter().find(|(at, need)| at.0 >= from && need.is_some_and(|need| is_so(&need)));
        found.map(|(at, _)| at.0 - from).unwrap_or_else(|| panic!("never after {from}: {:?}", self.changes))
    }

    /// For jobs after `from`: the fraction that used more than Q; mean Q / mean demand - 1; changes per minute.
    pub fn steady(&self, from: u64) -> (f64, f64, f64) {
        let jobs: Vec<_> = self.jobs.iter().filter(|(frame, _)| frame.start.0 >= from).collect();
        assert!(jobs.len() > 100, "{} jobs are too few", jobs.len());
        let over = jobs.iter().filter(|(frame, need)| frame.demand_ns > need.budget_ns).count();
        let demand: u64 = jobs.iter().map(|(frame, _)| frame.demand_ns).sum();
        let budget: u64 = jobs.iter().map(|(_, need)| need.budget_ns).sum();
        let changes = self.changes.iter().filter(|(at, _)| at.0 >= from).count();
        let minutes = (jobs[jobs.len() - 1].0.start.0 - from) as f64 / (60 * SECOND) as f64;
        (over as f64 / jobs.len() as f64, budget as f64 / demand as f64 - 1.0, changes as f64 / minutes)
    }
}

/// Whether `value` is within `percent` of `wanted`.
pub fn is_near(value: u64, wanted: f64, percent: f64) -> bool {
    (value as f64 - wanted).abs() <= wanted * percent / 100.0
}
