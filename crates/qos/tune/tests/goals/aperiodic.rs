// SPDX-License-Identifier: MIT
//! Half an hour of clients without a period: none of them gets a reservation of 1 % or more.

use crate::load::{Distributions, Frame, MS, SECOND, US, course, player};
use xqos_core::Time;
use xqos_testkit::Random;

const HALF_AN_HOUR: u64 = 1800 * SECOND;

/// Frames separated by random pauses.
fn irregular(seed: u64, mut next: impl FnMut(&mut Random) -> (u64, u64)) -> Vec<Frame> {
    let (mut random, mut now, mut frames) = (Random(seed), Time(SECOND), Vec::new());
    while now.0 < HALF_AN_HOUR {
        let (pause_ns, demand_ns) = next(&mut random);
        now = now.after(pause_ns);
        frames.push(Frame::new(now, demand_ns));
        now = now.after(demand_ns);
    }
    frames
}

/// Checks that no reservation of 1 % or more was ever wanted.
#[track_caller]
fn wants_nothing(name: &str, frames: &[Frame]) {
    let course = course(frames);
    let worth = course.changes.iter().filter_map(|&(at, need)| Some((at.0 / SECOND, need?)));
    let worth: Vec<_> = worth.filter(|(_, need)| need.budget_ns * 100 >= need.period_ns).collect();
    println!("{name}: {} jobs, {} reservations", frames.len(), worth.len());
    assert!(worth.is_empty(), "{name}: {} reservations, first {:?}", worth.len(), worth.first());
}

#[test]
fn poisson_arrivals_are_never_a_period() {
    for rate in [3, 8, 20, 50, 100] {
        let seeds = if rate > 20 { 1 } else { 4 };
        for seed in 0..seeds {
            let frames = irregular(seed, |random| (random.pause(SECOND / rate), 500 * US + random.pause(2 * MS)));
            wants_nothing(&format!("poisson, {rate} a second, seed {seed}"), &frames);
        }
    }
}

#[test]
fn typing_is_never_a_period() {
    for (deviation, seed) in
        [0.25, 0.35, 0.5].into_iter().flat_map(|deviation| (0..6).map(move |seed| (deviation, seed)))
    {
        let mut left = 0;
        let frames = irregular(seed, |random| {
            if left == 0 {
                left = random.between(5, 60);
                return (random.pause(3 * SECOND), 3 * MS);
            }
            left -= 1;
            (random.spread(140 * MS, deviation), random.between(2 * MS, 5 * MS))
        });
        wants_nothing(&format!("typing, deviation {deviation}, seed {seed}"), &frames);
    }
}

#[test]
fn scrolling_is_never_a_period() {
    for seed in 0..6 {
        let (mut left, mut pace) = (0, 0);
        let frames = irregular(seed, |random| {
            if left == 0 {
                (left, pace) = (random.between(4, 40), random.between(15 * MS, 60 * MS));
                return (random.pause(2 * SECOND), 4 * MS);
            }
            left -= 1;
            // A wheel turns faster in the middle of a stroke, and its notches follow the finger.
            let stroke = 0.4 + (left % 8) as f64 / 6.0;
            ((random.spread(pace, 0.35) as f64 * stroke) as u64, random.between(2 * MS, 8 * MS))
        });
        wants_nothing(&format!("scrolling, seed {seed}"), &frames);
    }
}

#[test]
fn mixed_browser_activity_is_never_a_period() {
    for seed in 0..6 {
        let frames = irregular(seed, |random| match random.below_u64(10) {
            0 => (random.pause(SECOND), 20 * MS),
            1 | 2 => (random.spread(120 * MS, 0.4), 5 * MS),
            _ => (random.pause(40 * MS), random.spread(3 * MS, 0.5)),
        });
        wants_nothing(&format!("browser, seed {seed}"), &frames);
    }
}

#[test]
fn a_clock_display_gets_no_reservation() {
    let frames = player(10.0, (SECOND, 60 * SECOND), 0.02, &mut Random(1), |_| 300 * US);
    wants_nothing("clock", &frames);
}

#[test]
fn a_reservation_ends_when_typing_follows_a_video() {
    for seed in 0..10 {
        let mut random = Random(seed);
        let mut frames = player(25.0, (SECOND, 11 * SECOND), 0.05, &mut random, |_| 2 * MS);
        let mut now = Time(11 * SECOND);
        for _ in 0..600 {
            now = now.after(random.spread(140 * MS, 0.4));
            frames.push(Frame::new(now, 3 * MS));
        }
        let course = course(&frames);
        let (at, last) = course.changes[course.changes.len() - 1];
        assert!(last.is_none() && at.0 <= 20 * SECOND, "seed {seed}: {:?}", course.changes);
    }
}
