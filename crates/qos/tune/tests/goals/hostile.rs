// SPDX-License-Identifier: MIT
//! Arbitrary bursts: nothing panics and all bounds hold. New seeds in each run stand in for fuzzing.

use crate::load::{Distributions, MS, SECOND};
use xqos_core::{Reservation, ReservationKind, Time};
use xqos_testkit::Random;
use xqos_tune::{Advice, Burst, ClientAnalysis, Room, Tuner};

/// Random lengths, from zero to the maximum. Most of them are typical of real clients.
fn length(random: &mut Random) -> u64 {
    match random.below_u64(12) {
        0 => 0,
        1 => random.next() >> random.below_u64(64),
        2 => random.below_u64(3 * SECOND),
        3..6 => random.pause(20 * MS),
        _ => [2 * MS, 4 * MS, 16_666_667, 40 * MS, 100 * MS, 250 * MS][random.below_u64(6) as usize],
    }
}

/// Alternating periodic and chaotic sections.
fn bursts(seed: u64, count: usize) -> Vec<Burst> {
    let (mut random, mut now) = (Random(seed), Time(0));
    let (mut left, mut interval, mut served) = (0, 0, 0);
    let mut burst = || {
        if left == 0 {
            (left, interval, served) = (random.between(1, 80), length(&mut random), length(&mut random));
        }
        left -= 1;
        let is_wild = random.below_u64(20) == 0;
        now = match random.below_u64(3000) {
            0 => Time(random.next()),
            _ => now.after(if is_wild {
                length(&mut random)
            } else {
                interval.saturating_add(random.below_u64(interval / 20 + 1))
            }),
        };
        let response = if is_wild { length(&mut random) } else { served };
        Burst { start: now, end: now.after(response), served_ns: if is_wild { random.next() } else { response } }
    };
    (0..count).map(|_| burst()).collect()
}

#[track_caller]
fn check(reservation: &Reservation) {
    let &Reservation { budget_ns, period_ns, kind } = reservation;
    assert!((4 * MS - 1000..=250 * MS).contains(&period_ns), "{reservation:?}");
    assert!(budget_ns >= 200_000 && budget_ns <= period_ns / 2 && kind == ReservationKind::Soft, "{reservation:?}");
}

#[test]
fn any_client_keeps_the_bounds() {
    let mut needs = 0;
    for seed in xqos_testkit::seeds(200) {
        let mut client = ClientAnalysis::default();
        for burst in bursts(seed, 1500) {
            client.take(burst);
            let report = client.report();
            assert!((0.0..=1.0).contains(&report.confidence), "{report:?}");
            if let Some(need) = client.need() {
                needs += 1;
                assert!(need.floor_ns <= need.budget_ns && need.floor_ns >= 200_000, "{need:?}");
                check(&Reservation {
                    budget_ns: need.budget_ns,
                    period_ns: need.period_ns,
                    kind: ReservationKind::Soft,
                });
            }
        }
    }
    assert!(needs > 10_000, "{needs}: the bursts are too wild to test anything");
}

#[test]
fn any_clients_together_keep_the_limit() {
    for seed in xqos_testkit::seeds(40) {
        let mut random = Random(seed);
        let mut tuner = Tuner::default();
        let mut all: Vec<(u64, Burst)> = Vec::new();
        for key in 0..8 {
            tuner.add(key, Time(random.below_u64(SECOND)));
            tuner.weigh(key, random.below_u64(10_000) as u32);
            all.extend(bursts(seed.wrapping_mul(8) + key, 300).into_iter().map(|burst| (key, burst)));
        }
        all.sort_by_key(|(key, burst)| (burst.start, *key));
        let mut room = Room::default();
        for (key, burst) in all {
            tuner.take(key, burst);
            if random.below_u64(30) == 0 {
                room.limit_ppm = random.below_u64(1_000_001) as u32;
                room.blocking_ns = random.below_u64(20 * MS);
                let fixed = Reservation {
                    budget_ns: 1 + random.below_u64(5 * MS),
                    period_ns: 50 * MS,
                    kind: ReservationKind::Soft,
                };
                room.fixed = vec![fixed; random.below_u64(3) as usize];
            }
            for (key, advice) in tuner.advise(burst.start, &room) {
                if let Advice::Reserve(reservation) | Advice::Change(reservation) = advice {
                    check(&reservation);
                    if random.below_u64(10) == 0 {
                        tuner.refused(key, burst.start).iter().for_each(check);
                    }
                }
            }
            if random.below_u64(500) == 0 {
                tuner.remove(key);
                tuner.add(key, burst.start);
            }
            let granted: Vec<Reservation> = (0..8).filter_map(|key| tuner.granted(key)).collect();
            let sum = granted.iter().map(|all| all.budget_ns as f64 / all.period_ns as f64).sum::<f64>();
            assert!(sum <= 0.6 + 1e-6, "seed {seed}: {granted:?}");
        }
    }
}
