// SPDX-License-Identifier: MIT
//! Reads random bytes as bursts of clients, and passes these to the detector and the tuner.
//!
//! Nothing may panic. Each reservation stays within its bounds, and all of them fit into the available capacity.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xqos_core::{Reservation, Time};
use xqos_tune::{Advice, Burst, Room, Tuner};

const CLIENTS: u8 = 4;

fuzz_target!(|bytes: &[u8]| {
    let mut tuner = Tuner::default();
    (0..CLIENTS).for_each(|key| tuner.add(key, Time(0)));
    let mut room = Room { limit_ppm: 900_000, ..Room::default() };
    let mut last = [Burst { start: Time(0), end: Time(0), served_ns: 0 }; CLIENTS as usize];
    // Each burst consists of a head byte and three lengths. A burst that repeats the previous pace is a single byte, so
    // that periodic bursts occur.
    let mut bytes = bytes.iter().copied();
    let mut paces = [(40_000_000u64, 2_000_000u64); CLIENTS as usize];
    while let Some(head) = bytes.next() {
        let key = head % CLIENTS;
        let slot = usize::from(key);
        if head & 0x80 != 0 {
            paces[slot] = (length(&mut bytes), length(&mut bytes));
        }
        if head & 0x40 != 0 {
            room.limit_ppm = u32::from(bytes.next().unwrap_or(0)) * 4000;
            room.blocking_ns = length(&mut bytes);
            let (budget_ns, period_ns) = (length(&mut bytes), length(&mut bytes));
            let fixed = Reservation { budget_ns, period_ns, kind: (head & 4 != 0).into() };
            room.fixed = vec![fixed; usize::from(head & 8 != 0)];
        }
        let (interval_ns, served_ns) = paces[slot];
        for _ in 0..=(head >> 2 & 0xf) {
            let start = last[slot].start.after(interval_ns);
            last[slot] = Burst { start, end: start.after(served_ns), served_ns };
            tuner.take(key, last[slot]);
            advise(&mut tuner, last[slot].end, &room, head & 0x20 != 0);
        }
    }
    tuner.reports().for_each(|(_, report)| assert!((0.0..=1.0).contains(&report.confidence), "{report:?}"));
});

/// A length with an 8-bit mantissa and an exponent, from zero to very long.
fn length(bytes: &mut impl Iterator<Item = u8>) -> u64 {
    let (mantissa, exponent) = (bytes.next().unwrap_or(0), bytes.next().unwrap_or(0));
    u64::from(mantissa) << (exponent % 57)
}

fn advise(tuner: &mut Tuner<u8>, now: Time, room: &Room, refuses: bool) {
    for (key, advice) in tuner.advise(now, room) {
        if let Advice::Reserve(reservation) | Advice::Change(reservation) = advice {
            check(&reservation);
            if refuses {
                tuner.refused(key, now).iter().for_each(check);
            }
        }
    }
    let all = (0..CLIENTS).filter_map(|key| tuner.granted(key));
    let sum: f64 = all.map(|all| all.budget_ns as f64 / all.period_ns as f64).sum();
    assert!(sum <= 0.6 + 1e-6, "{sum}");
}

fn check(reservation: &Reservation) {
    let &Reservation { budget_ns, period_ns, kind } = reservation;
    assert!((3_999_000..=250_000_000).contains(&period_ns) && !kind.is_hard(), "{reservation:?}");
    assert!(budget_ns >= 200_000 && budget_ns <= period_ns / 2, "{reservation:?}");
}
