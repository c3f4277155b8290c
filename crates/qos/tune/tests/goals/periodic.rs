// SPDX-License-Identifier: MIT
//! Clients that are driven by a clock are detected quickly and accurately, and are followed through changes.

use crate::load::{Distributions, Frame, MS, SECOND, US, course, is_near, player};
use xqos_core::Time;
use xqos_testkit::Random;

const RATES: [f64; 4] = [24.0, 25.0, 30.0, 60.0];

fn two_ms(_: &mut Random) -> u64 {
    2 * MS
}

#[test]
fn players_of_all_rates_get_their_first_reservation_within_700_ms() {
    let mut slowest = 0;
    for rate in RATES {
        for seed in 0..50 {
            let mut random = Random(seed);
            let mut frames = player(rate, (SECOND, 6 * SECOND), 0.05, &mut random, two_ms);
            let spread_ns = (SECOND as f64 / rate / 4.0) as u64;
            for frame in &mut frames {
                frame.parts = 2 + random.below_u64(3);
                frame.apart_ns = (spread_ns / 4).clamp(600 * US, 3 * MS);
            }
            let (after, need) = course(&frames).first(frames[0].start.0);
            slowest = slowest.max(after);
            assert!(after <= 700 * MS, "{rate}, seed {seed}: {} ms", after / MS);
            assert!(is_near(need.period_ns, 1e9 / rate, 3.0), "{rate}, seed {seed}: T = {} us", need.period_ns / US);
            assert!(is_near(need.budget_ns, 2.24e6, 1.0), "{rate}: Q = {} us", need.budget_ns / US);
        }
    }
    println!("slowest first reservation: {} ms", slowest / MS);
}

#[test]
fn pulldown_and_dropped_frames_are_detected() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let tick = 1e9 / 60.0;
        let jittered =
            |at: f64, random: &mut Random| Frame::new(Time((at + random.unit() * 0.05 * tick) as u64), 2 * MS);
        let pulldown: Vec<_> =
            (0..100).map(|i| jittered(1e9 + (i / 2 * 5 + i % 2 * 2) as f64 * tick, &mut random)).collect();
        let course_of_film = course(&pulldown);
        let (_, need) = course_of_film.first(SECOND);
        assert!(is_near(need.period_ns, 1e9 / 24.0, 3.0), "seed {seed}: T = {} us", need.period_ns / US);
        assert_eq!(course_of_film.changes.len(), 1, "seed {seed}: {:?}", course_of_film.changes);
        let drops: Vec<_> =
            (0..600).filter(|i| i % 10 != 7).map(|i| jittered(1e9 + i as f64 * tick, &mut random)).collect();
        let (_, need) = course(&drops).first(SECOND);
        assert!(is_near(need.period_ns, tick, 3.0), "seed {seed}: T = {} us", need.period_ns / US);
    }
}

#[test]
fn a_new_rate_is_followed_within_half_a_second() {
    let mut slowest = 0;
    for before in RATES {
        for after in RATES.into_iter().filter(|&after| (after - before).abs() > 1.0) {
            for seed in 0..30 {
                let mut random = Random(seed);
                let mut frames = player(before, (SECOND, 5 * SECOND), 0.05, &mut random, two_ms);
                let changed = frames[frames.len() - 1].start.0;
                frames.extend(player(after, (changed, changed + 4 * SECOND), 0.05, &mut random, two_ms));
                let course = course(&frames);
                let took = course.first_that(changed, |need| is_near(need.period_ns, 1e9 / after, 3.0));
                slowest = slowest.max(took);
                assert!(took <= 500 * MS, "{before} -> {after}, seed {seed}: {} ms {:?}", took / MS, course.changes);
                let gaps = course.changes.iter().filter(|(at, need)| at.0 > changed && need.is_none()).count();
                assert_eq!(gaps, 0, "it is never without a reservation: {:?}", course.changes);
            }
        }
    }
    println!("slowest change of rate: {} ms", slowest / MS);
}

#[test]
fn doubled_demand_is_reserved_after_two_jobs() {
    for rate in RATES {
        let mut random = Random(7);
        let step = 5 * SECOND;
        let demand = |start: Time| if start.0 < step { 2 * MS } else { 4 * MS };
        let mut frames = player(rate, (SECOND, 9 * SECOND), 0.05, &mut random, two_ms);
        frames.iter_mut().for_each(|frame| frame.demand_ns = demand(frame.start));
        let short = course(&frames).jobs.iter().filter(|(frame, need)| frame.demand_ns > need.budget_ns).count();
        assert_eq!(short, 2, "{rate}: jobs that needed more than was reserved");
    }
}

#[test]
fn a_seek_and_a_larger_video_are_followed_within_a_second() {
    let mut random = Random(3);
    let mut frames = player(24.0, (SECOND, 5 * SECOND), 0.05, &mut random, two_ms);
    // The player pauses, sends the frames that it has decoded meanwhile, and continues with 2.25 times the pixels.
    let seek = frames[frames.len() - 1].start.0 + 600 * MS;
    frames.extend((0..5).map(|i| Frame::new(Time(seek + i * 15 * MS), 4500 * US)));
    let resumed = seek + 75 * MS;
    frames.extend(player(24.0, (resumed, resumed + 4 * SECOND), 0.05, &mut random, |_| 4500 * US));
    let course = course(&frames);
    let took = course.first_that(seek, |need| need.budget_ns >= 4500 * US && is_near(need.period_ns, 1e9 / 24.0, 3.0));
    println!("seek and 720 -> 1080: {} ms", took / MS);
    assert!(took <= SECOND, "{} ms: {:?}", took / MS, course.changes);
}

#[test]
fn a_player_that_pauses_gets_its_reservation_back_after_six_frames() {
    let mut random = Random(3);
    let mut frames = player(24.0, (SECOND, 5 * SECOND), 0.05, &mut random, two_ms);
    frames.extend(player(24.0, (20 * SECOND, 25 * SECOND), 0.05, &mut random, two_ms));
    let course = course(&frames);
    assert_eq!(course.changes.len(), 3, "reserved, released, reserved: {:?}", course.changes);
    assert!(course.changes[1].1.is_none());
    assert!(course.changes[2].0.0 - 20 * SECOND <= 300 * MS, "{:?}", course.changes);
}

/// Start of the steady part.
const WARM: u64 = 3 * SECOND;

#[test]
fn constant_demand_is_over_provided_by_a_quarter_at_most() {
    for rate in RATES {
        let frames =
            player(rate, (SECOND, 120 * SECOND), 0.05, &mut Random(5), |random| random.between(1900, 2100) * US);
        let (over, provided, changes) = course(&frames).steady(WARM);
        println!("constant, {rate}: over {over:.3}, over-provision {provided:.3}, {changes:.1} changes a minute");
        assert!(over <= 0.05 && provided <= 0.25 && changes <= 6.0, "{rate}: {over} {provided} {changes}");
    }
}

#[test]
fn uneven_demand_is_over_provided_by_three_quarters_at_most() {
    let evenly = |random: &mut Random| random.between(1000, 3000) * US;
    let log_normal = |random: &mut Random| random.spread(2 * MS, 0.3);
    let each_twelfth = |random: &mut Random| if random.below_u64(12) == 0 { 3 * MS } else { 2 * MS };
    for rate in RATES {
        for (name, demand) in
            [("even", &evenly as &dyn Fn(&mut Random) -> u64), ("log-normal", &log_normal), ("twelfth", &each_twelfth)]
        {
            for seed in 0..3 {
                let frames = player(rate, (SECOND, 240 * SECOND), 0.05, &mut Random(seed), demand);
                let (over, provided, changes) = course(&frames).steady(WARM);
                println!("{name}, {rate}: over {over:.3}, over-provision {provided:.3}, {changes:.1} changes a minute");
                assert!(
                    over <= 0.05 && provided <= 0.75 && changes <= 6.0,
                    "{name}, {rate}: {over} {provided} {changes}"
                );
            }
        }
    }
}
