//! Reservations against real load: who gets how much, when a hold begins and ends, and what it costs an idle server.
//!
//! The bounds are loose; the exact figures are the lab's benchmarks.

use crate::busy::{Busy, X11perf, share, shares};
use crate::fixture::{Fixture, alone, entry, measured, wait_for, xvfb, xvfb_with};
use crate::wire::Wire;
use std::time::{Duration, Instant};
use xqos_abi::{PolicyChange, Request, entry_flag};
use xqos_client::Control;
use xqos_core::PolicyKind;
use xqos_lab::server::{Kind, Setup};

const SOON: Duration = Duration::from_secs(5);
/// Two points of the server's time.
const LOOSE: f64 = 0.02;

#[test]
fn a_hard_reservation_gets_its_share_and_no_more_and_all_when_it_is_released() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let busy = Busy::start(&fixture);
    // Whole periods are measured, so that no part of one counts twice or not at all.
    for (budget_ms, period_ms, periods) in [(5, 30, 40), (45, 90, 14), (20, 30, 40)] {
        control.reserve(busy.base, budget_ms * 1000, period_ms * 1000, true).unwrap();
        std::thread::sleep(Duration::from_millis(u64::from(period_ms)));
        let wanted = f64::from(budget_ms) / f64::from(period_ms);
        measured(
            &format!("{budget_ms}/{period_ms} ms, not {wanted:.3}"),
            || share(&control, busy.base, Duration::from_millis(u64::from(period_ms * periods))),
            |got| (got - wanted).abs() < LOOSE,
        );
        assert!(control.reservation(busy.base).unwrap().depletions > 0);
    }
    control.release(busy.base).unwrap();
    // Well above the last reservation.
    measured("released", || share(&control, busy.base, Duration::from_millis(300)), |&got| got > 0.8);
    assert_eq!(entry(&control, busy.base).flags & entry_flag::HELD_BACK, 0);
}

/// It waits for each answer, so that it may get less where the kernel lets it wait for a processor.
#[test]
fn a_hard_reservation_bounds_a_client_that_waits_for_answers() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let perf = X11perf::start(&fixture, "getimagexy100");
    let client = perf.entry_when_busy(&control).client;
    control.reserve(client, 10_000, 30_000, true).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    let measure = || share(&control, client, Duration::from_millis(900));
    measured("10/30 ms", measure, |&got| got < 1.0 / 3.0 + LOOSE && got > 0.2);
}

#[test]
fn a_hold_ends_at_once_when_another_client_clears_it() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let busy = Busy::start(&fixture);
    for replaced in [false, true] {
        control.reserve(busy.base, 1000, 10_000_000, true).unwrap();
        wait_for("it is held back", SOON, || entry(&control, busy.base).flags & entry_flag::HELD_BACK != 0);
        let before = entry(&control, busy.base).requests;
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(entry(&control, busy.base).requests, before, "served while it is held back");
        match replaced {
            // What it used of the old budget counts, and leaves it most of the new one.
            true => control.reserve(busy.base, 100_000, 10_000_000, true).unwrap(),
            false => control.release(busy.base).unwrap(),
        }
        wait_for("it is served again", SOON, || entry(&control, busy.base).requests > before);
        control.release(busy.base).unwrap();
    }
}

/// On an idle server nothing else would wake it up, and its own timers count in milliseconds.
#[test]
fn a_hold_ends_at_its_time_on_a_server_with_nothing_else_to_do() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let mut wire = fixture.native();
    let small = wire.canvas(500, 500).fill(20);
    wire.tell_xqos(Request::SetReservation { client: 0, budget_us: 300, period_us: 20_300, hard: true }).unwrap();
    let mut late_us = Vec::new();
    for _ in 0..15 {
        // After two periods of rest it has its whole budget, which is less than its next request takes.
        std::thread::sleep(Duration::from_millis(45));
        wire.send(&small);
        wait_for("it is held back", SOON, || entry(&control, wire.base).flags & entry_flag::HELD_BACK != 0);
        let report = control.reservation(wire.base).unwrap();
        let debts = (-report.budget_left_ns) as u64 / 300_000;
        let due_ns = report.deadline_ns + debts * 20_300_000;
        wire.sync();
        late_us.push((now_ns() as i64 - due_ns as i64) / 1000);
    }
    late_us.sort_unstable();
    assert!(late_us[0] >= 0, "answered before its time: {late_us:?} us");
    // The rest may have waited for a processor.
    assert!(late_us[late_us.len() / 3] < 500, "answered late: {late_us:?} us");
}

fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid clock and a place for its value.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn a_soft_reservation_keeps_its_share_under_every_policy() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let busy = Busy::start(&fixture);
    control.reserve(busy.base, 3000, 10_000, false).unwrap();
    let load = X11perf::start_many(&fixture, "ellipse100", 4);
    for policy in PolicyKind::ALL {
        control.set_policy(PolicyChange { policy: Some(policy), ..PolicyChange::default() }).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        measured(
            &format!("{policy:?}"),
            || share(&control, busy.base, Duration::from_millis(800)),
            |&got| got > 0.3 - LOOSE,
        );
    }
    drop(load);
}

#[test]
fn best_effort_keeps_what_is_not_reserved() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    // So that the one that looks is not part of what it looks at.
    control.reserve(0, 500, 10_000, false).unwrap();
    // Before it is busy, as its blocking the other one then counts.
    let reservation = Request::SetReservation { client: 0, budget_us: 8500, period_us: 10_000, hard: false };
    let greedy = Busy::start_with(fixture.native(), &[reservation]);
    let others: Vec<Busy> = (0..4).map(|_| Busy::start(&fixture)).collect();
    let bases: Vec<u32> = std::iter::once(&greedy).chain(&others).map(|busy| busy.base).collect();
    for policy in PolicyKind::ALL {
        control.set_policy(PolicyChange { policy: Some(policy), ..PolicyChange::default() }).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        measured(
            &format!("{policy:?}"),
            || shares(&control, &bases, Duration::from_millis(500)),
            // The greedy one is one of five for the rest, too.
            |got| got[0] > 0.85 - 2.0 * LOOSE && got[1..].iter().sum::<f64>() > 0.15 * 0.6,
        );
    }
}

#[test]
fn a_light_client_is_answered_soon_beside_busy_ones() {
    let _turn = alone();
    let fixture = xvfb();
    let mut light = fixture.native();
    let _load = X11perf::start_many(&fixture, "ellipse100", 6);
    let unreserved = median_response(&mut light);
    light.tell_xqos(Request::SetReservation { client: 0, budget_us: 3000, period_us: 10_000, hard: false }).unwrap();
    let reserved = median_response(&mut light);
    let bound = Duration::from_millis(3);
    assert!(unreserved < bound && reserved < bound, "median {unreserved:?} without, {reserved:?} with a reservation");
}

fn median_response(light: &mut Wire) -> Duration {
    let mut responses: Vec<Duration> = (0..60)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(5));
            let asked = Instant::now();
            light.sync();
            asked.elapsed()
        })
        .collect();
    responses.sort_unstable();
    responses[responses.len() / 2]
}

// Idleness.

#[test]
fn an_idle_server_is_not_woken_up() {
    let _turn = alone();
    let stock = Fixture::start(&Setup::stock(Kind::Xvfb));
    let ours = xvfb();
    let control = ours.control().unwrap();
    // There has been work, and there are reservations, one of them depleted and its client gone to rest.
    let plain = stock.connect().unwrap();
    let load = X11perf::start_many(&ours, "ellipse100", 2);
    let mut soft = ours.native();
    soft.tell_xqos(Request::SetReservation { client: 0, budget_us: 1000, period_us: 50_000, hard: false }).unwrap();
    let mut hard = ours.native();
    hard.tell_xqos(Request::SetReservation { client: 0, budget_us: 1000, period_us: 50_000, hard: true }).unwrap();
    let mut listener = ours.native();
    listener.tell_xqos(Request::SelectEvents { mask: 15 }).unwrap();
    for wire in [&mut soft, &mut hard] {
        let canvas = wire.canvas(500, 500);
        wire.tell(&canvas.fill(50)).unwrap();
    }
    drop(load);
    settle(&control);
    let before = (switches(&stock), switches(&ours));
    std::thread::sleep(Duration::from_secs(5));
    let after = (switches(&stock), switches(&ours));
    let (of_stock, of_ours) = (after.0 - before.0, after.1 - before.1);
    assert!(of_ours <= of_stock + 1, "{of_ours} context switches in 5 s, {of_stock} in a stock server");
    drop(plain);
}

/// Waits until the load is gone and every hold and timer has run out.
fn settle(control: &Control) {
    wait_for("the load is gone", SOON, || control.clients().unwrap().clients.len() == 4);
    std::thread::sleep(Duration::from_millis(1500));
}

/// Of all threads.
fn switches(fixture: &Fixture) -> u64 {
    fixture.switches().unwrap().iter().map(|thread| thread.voluntary + thread.involuntary).sum()
}

#[test]
fn fair_gives_busy_clients_the_same_time_and_twice_the_weight_twice_of_it() {
    let _turn = alone();
    let fixture = xvfb_with(PolicyKind::Fair);
    let control = fixture.control().unwrap();
    let clients: Vec<Busy> = (0..3).map(|_| Busy::start(&fixture)).collect();
    let bases: Vec<u32> = clients.iter().map(|busy| busy.base).collect();
    let measure = || shares(&control, &bases, Duration::from_millis(600));
    measured("the same", measure, |got| got.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.05));
    control.set_weight(bases[0], 200).unwrap();
    measured("twice", measure, |got| (got[0] - 0.5).abs() < 0.05 && (got[1] - 0.25).abs() < 0.05);
}

#[test]
fn fixed_priorities_are_strict_and_reservations_stand_above_them() {
    let _turn = alone();
    let fixture = xvfb_with(PolicyKind::Fixed);
    let control = fixture.control().unwrap();
    let (high, low) = (Busy::start(&fixture), Busy::start(&fixture));
    // First, or it would not be answered any more.
    control.set_priority(0, 1000).unwrap();
    control.set_priority(high.base, 5).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let measure = || shares(&control, &[high.base, low.base], Duration::from_millis(500));
    measured("strict", measure, |got| got[0] > 0.8 && got[1] < 0.1);
    control.reserve(low.base, 4000, 10_000, true).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    measured("reserved", measure, |got| (got[1] - 0.4).abs() < 2.0 * LOOSE);
}
