// SPDX-License-Identifier: MIT
//! Tests of reservations under real load: the order of service, the beginning and end of holds, and the cost on an idle
//! server.
//!
//! The tests check each decision in a trace. The lab's experiments `hard`, `response` and `fairness` measure shares of
//! wall-clock time.

use crate::busy::{Busy, Worker, X11perf, send_before_any_is_served, slices_of};
use crate::decisions::{Decisions, Slice, check_fairness, check_reservation, check_reservation_of};
use crate::fixture::{
    Fixture, SOON, alone, entry, fix_blocking, in_parallel, is_held_back, policies, served, uses_libc_host,
    wait_before, wait_for, xvfb, xvfb_with,
};
use std::collections::BTreeSet;
use std::time::Duration;
use xqos_abi::{Label, PolicyChange, Request, Setting, SettingKind, Subject, reservation_flag};
use xqos_client::Control;
use xqos_core::{PolicyKind, ReservationKind};
use xqos_lab::server::{ServerKind, Setup};

/// A time limit for results that need many slices of a client, each of which the kernel may delay.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_hard_reservation_gets_its_budgets_and_no_more_until_released() {
    let (fixture, control) = served();
    let mut workers = [Worker::start(&fixture)];
    let base = workers[0].base();
    for (budget_ms, period_ms) in [(2, 12), (10, 20), (6, 9)] {
        control.reserve(base, budget_ms * 1000, period_ms * 1000, true).unwrap();
        let before = control.reservation(base).unwrap().depletions;
        let slices = slices_of(&fixture, &mut workers, Worker::MOST);
        check_reservation(&slices, base);
        let depletions = control.reservation(base).unwrap().depletions - before;
        assert!(depletions > 2, "only {depletions} budgets of {budget_ms} ms were used");
    }
    control.release(base).unwrap();
    let slices = slices_of(&fixture, &mut workers, Worker::MOST);
    assert!(slices.iter().all(|slice| slice.reservation(base).is_none() && !slice.is_reserved));
    assert!(slices.iter().all(|slice| !slice.was_ready(base) || slice.client == base), "another client was chosen");
    assert!(!is_held_back(&control, base));
}

#[test]
fn the_clients_of_a_hard_group_share_its_budgets() {
    let (fixture, control) = served();
    let mut workers = [(); 3].map(|()| Worker::start(&fixture));
    let [first, second, other] = workers.each_ref().map(Worker::base);
    for (base, name) in [(first, "pair"), (second, "pair"), (other, "other")] {
        control.set(Subject::Client(base), Setting::Group(Label::new(name))).unwrap();
    }
    control.set(Subject::Group(second), Setting::reservation(6000, 12_000, true)).unwrap();
    assert_eq!(control.server_info().unwrap().admitted_utilization_ppm, 500_000);
    let before = [first, second].map(|base| entry(&control, base));
    let slices = slices_of(&fixture, &mut workers, Worker::MOST);
    check_reservation_of(&slices, &[first, second]);
    let after = [first, second].map(|base| entry(&control, base));
    let depletions: u32 = (0..2).map(|at| after[at].depletions - before[at].depletions).sum();
    assert!(depletions > 2, "only {depletions} budgets were used");
    let is_shared = |slice: &Slice| slice.was_ready(first) && slice.was_ready(second);
    let paid_ns = |base| -> u64 {
        slices.iter().filter(|slice| is_shared(slice) && slice.client == base).map(|slice| slice.ns).sum()
    };
    let longest_ns = slices.iter().map(|slice| slice.ns).max().unwrap_or_default();
    let (one, two) = (paid_ns(first), paid_ns(second));
    assert!(one.abs_diff(two) <= 2 * longest_ns, "{one} and {two} ns of a budget that is shared by halves");
    control.clear(Subject::Group(first), SettingKind::Reservation).unwrap();
    assert_eq!(entry(&control, second).group_period_us, 0);
    assert_eq!(control.server_info().unwrap().admitted_utilization_ppm, 0);
}

#[test]
fn a_hard_reservation_bounds_a_client_that_waits_for_answers() {
    let (fixture, control) = served();
    let perf = X11perf::start(&fixture, "getimagexy100");
    let client = perf.entry_when_busy(&control).client;
    // This budget is so small that the client uses it up even if the kernel rarely runs the client. The period is short
    // because the client waits for many of them if the server has no processor in the client's slice.
    control.reserve(client, 200, 5_000, true).unwrap();
    let decisions = Decisions::of(&fixture);
    let before = control.reservation(client).unwrap().depletions;
    wait_for("ten budgets are used up", PATIENCE, || control.reservation(client).unwrap().depletions >= before + 10);
    check_reservation(&decisions.end(), client);
}

#[test]
fn a_hold_ends_immediately_when_another_client_clears_it() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let busy = Busy::start(&fixture);
    for replaced in [false, true] {
        control.reserve(busy.base, 1000, 10_000_000, true).unwrap();
        wait_for("the client is held back", SOON, || is_held_back(&control, busy.base));
        let (before, deadline_ns) = (entry(&control, busy.base).requests, entry(&control, busy.base).deadline_ns);
        std::thread::sleep(Duration::from_millis(100)); // time: nothing happens meanwhile
        assert_eq!(entry(&control, busy.base).requests, before, "served while it is held back");
        match replaced {
            // The time used still counts, however long the server had no processor meanwhile. 0.1 s are left.
            true => {
                let overrun_us = -control.reservation(busy.base).unwrap().budget_left_ns / 1000;
                control.reserve(busy.base, 101_000 + overrun_us as u32, 10_000_000, true).unwrap();
            }
            false => control.release(busy.base).unwrap(),
        }
        let is_served = || entry(&control, busy.base).requests > before;
        wait_before(deadline_ns, &control, "the client is served again", is_served);
        control.release(busy.base).unwrap();
    }
}

/// Nothing else wakes an idle server, and the server's own timers have millisecond resolution.
#[test]
fn a_hold_ends_at_its_time_on_a_server_with_nothing_else_to_do() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let mut wire = fixture.native();
    let long = wire.canvas(500, 500).fill(400);
    wire.tell_xqos(Subject::Client(0).set(Setting::reservation(900, 20_300, ReservationKind::Hard))).unwrap();
    let mut observed = 0;
    wait_for("15 holds are observed", PATIENCE, || {
        // After two idle periods, the client has its whole budget, but its next request takes longer than that.
        std::thread::sleep(Duration::from_millis(45));
        let mut report = control.reservation(wire.base).unwrap();
        let before = report.depletions;
        wire.send(&long);
        wait_for("the budget is used up", SOON, || {
            report = control.reservation(wire.base).unwrap();
            report.depletions > before
        });
        if report.flags & reservation_flag::HELD_BACK == 0 {
            // This process had no processor until the hold had ended.
            wire.sync();
            return false;
        }
        let debts = (-report.budget_left_ns) as u64 / 900_000;
        // The timer must be set for one of the replenishments. How late the kernel then runs the server is not tested.
        let is_set_for = |at: u64| {
            let (asked_ns, left_ns) = (now_ns(), timers_left_ns(fixture.pid()));
            let told_ns = now_ns();
            left_ns.iter().any(|left| (asked_ns + left..=told_ns + left).contains(&at))
        };
        while now_ns() < report.deadline_ns {
            if (0..=debts).any(|nth| is_set_for(report.deadline_ns + nth * 20_300_000)) {
                observed += 1;
                break;
            }
        }
        wire.sync();
        assert!(now_ns() >= report.deadline_ns + debts * 20_300_000, "answered before its time");
        observed == 15
    });
}

/// The time until each active timer of a process expires.
fn timers_left_ns(pid: u32) -> Vec<u64> {
    let infos = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    let left = infos.filter_map(|info| {
        let text = std::fs::read_to_string(info.unwrap().path()).ok()?;
        let (seconds, nanoseconds) = text.split_once("it_value: (")?.1.split_once(')')?.0.split_once(", ")?;
        Some(seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanoseconds.parse::<u64>().unwrap())
    });
    left.filter(|&ns| ns != 0).collect()
}

fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock is valid, and `time` has room for its value.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn a_soft_reservation_goes_first_while_it_has_budget_under_every_policy() {
    let (fixture, control) = served();
    let mut workers = [(); 3].map(|()| Worker::start(&fixture));
    let [base, other, _] = workers.each_ref().map(Worker::base);
    control.reserve(base, 3000, 10_000, false).unwrap();
    for policy in policies() {
        control.set_policy(PolicyChange { policy: Some(policy), ..PolicyChange::default() }).unwrap();
        let (mut its, mut others) = (0, 0);
        send_until(&fixture, &mut workers, |slices| {
            check_reservation(&slices, base);
            let in_need = slices.iter().filter(|slice| slice.was_ready(base) && slice.was_ready(other));
            let (of_it, of_others): (Vec<_>, Vec<_>) =
                in_need.partition(|slice| slice.client == base && slice.is_reserved);
            (its, others) = (its + of_it.len(), others + of_others.len());
            its > 1 && others > 1
        });
    }
}

/// Makes all workers send their requests until the slices are enough. If the server has no processor during a slice,
/// that slice can use up more budgets than the requests of one turn take.
fn send_until(fixture: &Fixture, workers: &mut [Worker], mut is_enough: impl FnMut(Vec<Slice>) -> bool) {
    wait_for("enough slices", PATIENCE, || is_enough(slices_of(fixture, workers, Worker::MOST)));
}

#[test]
fn best_effort_clients_keep_the_time_that_is_not_reserved() {
    // A server that gets less of a processor than is reserved leaves nothing for others.
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let mut workers = [(); 5].map(|()| Worker::start(&fixture));
    let base = workers[0].base();
    control.reserve(base, 6000, 10_000, false).unwrap();
    for policy in policies() {
        // A slice must be shorter than the time between two budgets. In a longer slice, the reserved client continues
        // as best effort and could use all of that time until it has finished.
        let change = PolicyChange { policy: Some(policy), slice_us: Some(1000), ..PolicyChange::default() };
        control.set_policy(change).unwrap();
        let mut others = 0;
        send_until(&fixture, &mut workers, |slices| {
            check_reservation(&slices, base);
            others += slices.iter().filter(|slice| slice.was_ready(base) && slice.client != base).count();
            others > 1
        });
    }
}

#[test]
fn a_light_client_is_next_after_its_arrival_among_busy_ones() {
    const TURNS: usize = 60;
    let _turn = alone();
    let fixture = xvfb();
    let mut light = fixture.native();
    let mut workers = [(); 6].map(|()| Worker::start(&fixture));
    for reservation in [None, Some(Subject::Client(0).set(Setting::reservation(3000, 10_000, ReservationKind::Soft)))] {
        let is_reserved = reservation.is_some();
        reservation.into_iter().for_each(|reservation| light.tell_xqos(reservation).unwrap());
        let (mut turns, mut its, mut before_it) = (0, 0, 0);
        let (mut arrivals, mut early) = (0, 0);
        // How often the client arrives within a slice depends on the processors.
        wait_for("the client has arrived within slices", PATIENCE, || {
            let decisions = Decisions::of(&fixture);
            let _holder = send_before_any_is_served(&fixture, || {
                workers.iter_mut().for_each(|worker| worker.send(Worker::MOST));
            });
            for _ in 0..TURNS {
                std::thread::sleep(Duration::from_millis(5));
                light.sync();
            }
            workers.iter_mut().for_each(Worker::finish);
            turns += TURNS;
            let (mut has_used_much, mut busy) = (false, BTreeSet::new());
            for slice in decisions.end() {
                if slice.was_seen_to_arrive(light.base) && !has_used_much {
                    arrivals += 1;
                    early += usize::from(slice.ended_early);
                }
                if slice.client == light.base {
                    its += 1;
                    // A slice in which the server has no processor is charged to the client, which then waits longer.
                    has_used_much = slice.ns > 1_000_000;
                } else if slice.is_chosen && slice.was_ready(light.base) && !has_used_much && busy.len() == 6 {
                    before_it += 1;
                }
                // A client that has not been served yet may precede the light one.
                if workers.iter().any(|worker| worker.base() == slice.client) {
                    busy.insert(slice.client);
                }
            }
            arrivals >= TURNS / 4 || uses_libc_host()
        });
        println!(
            "reserved {is_reserved}: {arrivals} arrivals within slices, {early} of which ended early; {before_it} others"
        );
        assert!(its >= turns, "reserved {is_reserved}: {its} slices in {turns} turns");
        assert!(before_it <= turns / 10, "reserved {is_reserved}: {before_it} slices of others in {turns} turns");
        // A slice may also end by itself just after the arrival. The libc host notices few arrivals within slices.
        assert!(
            uses_libc_host() || 4 * early >= 3 * arrivals,
            "reserved {is_reserved}: {early} of {arrivals} slices ended early"
        );
    }
}

// Idleness.

#[test]
fn an_idle_server_is_not_woken_up() {
    let _turn = alone();
    let stock = Fixture::start(&Setup::stock(ServerKind::Xvfb));
    let ours = xvfb();
    let control = ours.control().unwrap();
    fix_blocking(&control);
    // The server has done work and has reservations; one reservation is depleted, and its client is idle.
    let plain = stock.connect().unwrap();
    let load = X11perf::start_many(&ours, "ellipse100", 2);
    let mut soft = ours.native();
    soft.tell_xqos(Subject::Client(0).set(Setting::reservation(1000, 50_000, ReservationKind::Soft))).unwrap();
    let mut hard = ours.native();
    hard.tell_xqos(Subject::Client(0).set(Setting::reservation(1000, 50_000, ReservationKind::Hard))).unwrap();
    let mut listener = ours.native();
    listener.tell_xqos(Request::SelectEvents { mask: 15 }).unwrap();
    for wire in [&mut soft, &mut hard] {
        let canvas = wire.canvas(500, 500);
        wire.tell(&canvas.fill(50)).unwrap();
    }
    drop(load);
    // A slice in which the server had no processor is paid back first.
    wait_for("the client is not held back", PATIENCE, || !is_held_back(&control, hard.base));
    settle(&control);
    let before = (switches(&stock), switches(&ours));
    std::thread::sleep(Duration::from_secs(5)); // time: wakeups are counted meanwhile
    let after = (switches(&stock), switches(&ours));
    let (of_stock, of_ours) = (after.0 - before.0, after.1 - before.1);
    assert!(of_ours <= of_stock + 1, "{of_ours} context switches in 5 s, {of_stock} in a stock server");
    drop(plain);
}

/// Waits until the load is gone and all holds and timers have ended.
fn settle(control: &Control) {
    wait_for("the load is gone", SOON, || control.clients().unwrap().clients.len() == 4);
    std::thread::sleep(Duration::from_millis(1500)); // time: timers give no notice of their end
}

/// The context switches of all threads.
fn switches(fixture: &Fixture) -> u64 {
    fixture.switches().unwrap().iter().map(|thread| thread.voluntary + thread.involuntary).sum()
}

#[test]
fn fair_divides_time_among_busy_clients_by_weight() {
    let _turn = in_parallel();
    let fixture = xvfb_with(PolicyKind::Fair);
    let control = fixture.control().unwrap();
    let mut workers = [(); 3].map(|()| Worker::start(&fixture));
    let bases = workers.each_ref().map(Worker::base);
    for weights in [[100, 100, 100], [200, 100, 100]] {
        control.set(Subject::Client(bases[0]), Setting::Weight(weights[0])).unwrap();
        let slices = slices_of(&fixture, &mut workers, Worker::MOST);
        check_fairness(&slices, &bases, weights);
    }
}

#[test]
fn fixed_priorities_are_strict_and_reservations_precede_them() {
    let _turn = in_parallel();
    let fixture = xvfb_with(PolicyKind::Fixed);
    let control = fixture.control().unwrap();
    let mut workers = [(); 2].map(|()| Worker::start(&fixture));
    let [high, low] = workers.each_ref().map(Worker::base);
    control.set(Subject::Client(high), Setting::Priority(5)).unwrap();
    let slices = slices_of(&fixture, &mut workers, Worker::MOST);
    assert!(slices.iter().all(|slice| !slice.was_ready(high) || slice.client != low), "{slices:#?}");
    assert!(slices.iter().filter(|slice| slice.was_ready(high) && slice.was_ready(low)).count() > 1);
    control.reserve(low, 4000, 10_000, true).unwrap();
    let mut preceding = 0;
    send_until(&fixture, &mut workers, |slices| {
        check_reservation(&slices, low);
        preceding += slices.iter().filter(|slice| slice.was_ready(high) && slice.client == low).count();
        preceding > 1
    });
}
