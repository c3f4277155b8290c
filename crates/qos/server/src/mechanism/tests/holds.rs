// SPDX-License-Identifier: MIT
//! Tests which clients are held back and for how long, and that each held client is released.

use super::mock::{Effect, MS, at_us, base};
use super::{clients, keep_busy, reserve, server};
use crate::mechanism::settings::Settings;
use xqos_abi::{Label, NotifyKind, Paced, Request, Setting, SettingKind, Subject, event_mask};
use xqos_core::{PolicyKind, Time};

#[test]
fn a_hard_reservation_gets_its_budget_in_each_period_and_no_more() {
    let mut server = server(PolicyKind::Fair);
    let [client] = clients(&mut server);
    for (budget, period) in [(5, 30), (45, 90), (20, 30)] {
        let start = server.now();
        reserve(&mut server, client, budget, period, true);
        keep_busy(&mut server, client, u64::from(budget * 12));
        let length = u64::from(period) * 10 * MS;
        server.run_until(start.after(length - MS));
        let got = server.time_of(client, start, start.after(length));
        let wanted = u64::from(budget) * 10 * MS;
        assert!(got.abs_diff(wanted) <= MS / 20, "{budget}/{period} ms: {got} ns, not {wanted}");
        assert!(server.host().is_held(client), "its budget is used up");
        server.ask(client, Subject::Client(0).clear(SettingKind::Reservation)).unwrap();
        assert!(!server.host().is_held(client));
        server.run_until(start.after(2 * length));
        assert_eq!(server.left(client), 0);
    }
}

#[test]
fn an_idle_server_wakes_up_once_for_each_replenishment_and_not_otherwise() {
    let mut server = server(PolicyKind::Fair);
    let [client] = clients(&mut server);
    reserve(&mut server, client, 1, 10, true);
    keep_busy(&mut server, client, 5);
    server.run_until(Time(200 * MS));
    // At the last wakeup, the budget is replenished and no request is left.
    assert_eq!((server.left(client), server.idle_wakeups), (0, 5));
    server.run_until(Time(10_000 * MS));
    assert_eq!(server.idle_wakeups, 5, "nothing wakes an idle server");
}

/// Only the timer wakes the server, and the period is not a whole number of milliseconds.
#[test]
fn a_hold_on_an_idle_server_ends_exactly_at_a_replenishment() {
    const BUDGET_NS: u64 = 900_000;
    const PERIOD_NS: u64 = 20_300_000;
    let mut server = server(PolicyKind::Fair);
    let [client] = clients(&mut server);
    let [budget_us, period_us] = [BUDGET_NS, PERIOD_NS].map(|ns| (ns / 1000) as u32);
    server.ask(client, Subject::Client(0).set(Setting::reservation(budget_us, period_us, true))).unwrap();
    for (nth, overrun_ns) in [1, 100_000, 800_000, 900_000, 2_000_000, 50_000_000].into_iter().enumerate() {
        // After this long, the client has its whole budget.
        let start = server.now().after(40 * PERIOD_NS + nth as u64 * 1_234_567);
        server.send_at(start, client, BUDGET_NS + overrun_ns, Effect::Nothing);
        server.send_at(start.after(1), client, 1000, Effect::Nothing);
        server.run_until(start.after(BUDGET_NS + overrun_ns + 1000));
        let state = server.engine().scheduler.reservation_in_use(client).unwrap();
        assert!(state.depleted && server.host().is_held(client), "it used {overrun_ns} ns too much");
        let debts = (-state.budget_left_ns) as u64 / BUDGET_NS;
        let (wakeups, replenished) = (u64::from(server.idle_wakeups), state.deadline.after(debts * PERIOD_NS));
        server.run_until(replenished.after(PERIOD_NS));
        assert_eq!(server.done.last().map(|done| (done.client, done.start)), Some((client, replenished)));
        assert_eq!(u64::from(server.idle_wakeups) - wakeups, debts + 1, "one wakeup for each replenishment");
    }
}

#[test]
fn the_holder_of_a_grab_is_not_held_back_until_it_ungrabs() {
    let mut server = server(PolicyKind::Fair);
    let [client, other] = clients(&mut server);
    reserve(&mut server, client, 1, 100, true);
    server.send_at(at_us(0), client, 1000, Effect::Grab);
    server.run_until(at_us(10));
    keep_busy(&mut server, client, 20);
    keep_busy(&mut server, other, 1);
    server.run_until(Time(30 * MS));
    assert_eq!(server.left(client), 0, "the holder was held back");
    server.send_at(Time(31 * MS), client, 1000, Effect::Ungrab);
    server.run_until(Time(40 * MS));
    assert_eq!(server.left(other), 0);
}

#[test]
fn a_client_that_uncovers_others_waits_for_them_up_to_the_limit() {
    const LIMIT_MS: u64 = 40;
    let mut server = server(PolicyKind::Fair);
    let [mover, painter] = clients(&mut server);
    let pacing = Subject::Server.set(Setting::pacing(LIMIT_MS as u32 * 1000, 1_000_000));
    let root = server.connect(0);
    server.ask(root, pacing).unwrap();
    // The painter answers the first Expose after 5 ms and never answers the second.
    for (start, answers) in [(Time(MS), Some(5)), (Time(200 * MS), None)] {
        server.send_at(start, mover, 1000, Effect::Expose(painter));
        server.send_at(start.after(MS), mover, 1000, Effect::Nothing);
        answers.into_iter().for_each(|ms| server.send_at(start.after(ms * MS), painter, 1000, Effect::Nothing));
        server.run_until(start.after(2 * MS));
        assert!(server.host().is_held(mover));
        server.run_until(start.after(100 * MS));
        let next = server.done.iter().rfind(|done| done.client == mover).unwrap();
        let waited = next.start.since(start);
        match answers {
            // An Expose is sent at the end of its request, and an answer counts at its end; both take 1 us. The hold
            // lasts another 5 ms after the answer, because toolkits redraw in parts.
            Some(ms) => assert_eq!(waited, (ms + 5) * MS + 1000),
            None => assert_eq!(waited, LIMIT_MS * MS + 1000),
        }
        assert!(!server.host().is_held(mover));
    }
}

#[test]
fn a_client_that_uncovers_others_during_its_grab_waits_only_after_it() {
    let mut server = server(PolicyKind::Fair);
    let [mover, painter] = clients(&mut server);
    let root = server.connect(0);
    server.ask(root, Subject::Server.set(Setting::pacing(1_000_000, 1_000_000))).unwrap();
    server.send_at(Time(MS), mover, 1000, Effect::Grab);
    server.send_at(Time(2 * MS), mover, 1000, Effect::Expose(painter));
    server.send_at(Time(3 * MS), mover, 1000, Effect::Nothing);
    server.send_at(Time(4 * MS), mover, 1000, Effect::Ungrab);
    server.send_at(Time(5 * MS), mover, 1000, Effect::Nothing);
    server.send_at(Time(10 * MS), painter, 1000, Effect::Nothing);
    server.run_until(Time(50 * MS));
    let starts: Vec<u64> = server.done.iter().filter(|done| done.client == mover).map(|done| done.start.0).collect();
    assert_eq!(starts, [MS, 2 * MS, 3 * MS, 4 * MS, 15 * MS + 1000]);
}

#[test]
fn a_client_that_marks_itself_is_exposing_until_its_next_requests_are_served() {
    let mut server = server(PolicyKind::Fair);
    let [painter, listener] = clients(&mut server);
    server.ask(listener, Request::SelectEvents { mask: event_mask::EXPOSES }).unwrap();
    server.send_at(Time(MS), painter, 1000, Effect::Mark);
    server.send_at(Time(20 * MS), painter, 1000, Effect::Nothing);
    let kinds = |server: &mut super::mock::Server, until| {
        server.run_until(until);
        server.host().events.iter().map(|(_, event)| event.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&mut server, Time(19 * MS)), [NotifyKind::Exposing]);
    assert_eq!(kinds(&mut server, Time(30 * MS)), [NotifyKind::Exposing, NotifyKind::Answered]);
    server.ask(listener, Request::MarkExposing { client: base(painter) }).unwrap();
    assert_eq!(kinds(&mut server, Time(31 * MS))[2..], [NotifyKind::Exposing]);
    server.send_at(Time(32 * MS), painter, 1000, Effect::Mark);
    assert_eq!(kinds(&mut server, Time(38 * MS))[3..], [NotifyKind::Answered], "a second mark comes too soon");
}

#[test]
fn the_pacing_of_a_single_client_can_be_set_and_leased() {
    let mut server = server(PolicyKind::Fair);
    let [daemon, mover, other, painter] = clients(&mut server);
    server.ask(daemon, Request::SetOrigin { name: Label::new("rule movers"), lease: true }).unwrap();
    let set = |client, paced| Subject::Client(base(client)).set(Setting::Paced(paced));
    let mut at = Time(0);
    let mut is_held = |server: &mut super::mock::Server, client| {
        // Wait until an earlier hold no longer counts for the pacing floor.
        at = at.after(1200 * MS);
        server.send_at(at, client, 1000, Effect::Expose(painter));
        server.send_at(at.after(MS), client, 1000, Effect::Nothing);
        server.run_until(at.after(2 * MS));
        let is_held = server.host().is_held(client);
        server.run_until(at.after(150 * MS));
        is_held
    };
    assert!(!is_held(&mut server, mover));
    server.ask(daemon, set(mover, Paced::Always)).unwrap();
    assert!(is_held(&mut server, mover) && !is_held(&mut server, other));
    let root = server.connect(0);
    server.ask(root, Subject::Server.set(Setting::pacing(30_000, 1_000_000))).unwrap();
    server.ask(daemon, set(other, Paced::Never)).unwrap();
    assert!(is_held(&mut server, mover) && !is_held(&mut server, other));
    server.disconnect(daemon);
    assert!(is_held(&mut server, other), "as set for all clients");
    server.ask(root, Subject::Server.set(Setting::pacing(0, 1_000_000))).unwrap();
    assert!(!is_held(&mut server, mover));
}

#[test]
fn a_client_that_disconnects_while_held_back_is_forgotten() {
    let mut server = server(PolicyKind::Fair);
    let [client, other] = clients(&mut server);
    reserve(&mut server, client, 1, 100, true);
    keep_busy(&mut server, client, 5);
    server.run_until(Time(3 * MS));
    assert!(server.host().is_held(client));
    server.disconnect(client);
    let again = server.connect(super::USER);
    assert_eq!(again, client, "the index is reused");
    [again, other].into_iter().for_each(|id| keep_busy(&mut server, id, 5));
    server.run_until(Time(30 * MS));
    assert_eq!((server.left(again), server.left(other)), (0, 0));
}

#[test]
fn depletions_are_reported_at_most_ten_times_a_second_and_none_is_lost() {
    let mut server = server(PolicyKind::Fair);
    let [client, listener] = clients(&mut server);
    server.ask(listener, Request::SelectEvents { mask: event_mask::ALL }).unwrap();
    reserve(&mut server, client, 1, 10, true);
    keep_busy(&mut server, client, 98);
    server.run_until(Time(1000 * MS));
    let events = &server.host().events;
    let depleted: Vec<u32> =
        events.iter().filter(|(_, event)| event.kind == NotifyKind::Depleted).map(|(_, event)| event.count).collect();
    assert!((8..=11).contains(&depleted.len()), "{depleted:?}");
    assert!(depleted.iter().sum::<u32>() >= 85, "{depleted:?}");
    assert!(events.iter().all(|&(to, _)| to == listener));
}

#[test]
fn the_holder_of_a_long_grab_is_logged_once() {
    let mut server = super::mock::Server::new(&Settings { grab_limit_ns: 50 * MS, ..Settings::default() });
    let [holder] = clients(&mut server);
    server.send_at(at_us(10), holder, 1000, Effect::Grab);
    server.run_until(Time(500 * MS));
    let lines = server.host().lines.clone();
    let named: Vec<&String> = lines.iter().filter(|line| line.contains("server grab")).collect();
    assert_eq!(named.len(), 1, "{lines:?}");
    assert!(named[0].contains("program1 (pid 1001") && named[0].contains("50 ms"), "{named:?}");
}

#[test]
fn a_wait_for_a_grab_is_counted_from_the_arrival_of_the_request() {
    let mut server = server(PolicyKind::Fair);
    let [holder, ready, idle] = clients(&mut server);
    server.send_at(at_us(10), holder, 1000, Effect::Grab);
    // These requests arrive before the grab is checked; the holder keeps working meanwhile.
    server.send_at(Time(2 * MS), ready, 1000, Effect::Nothing);
    server.send_at(Time(100 * MS), idle, 1000, Effect::Nothing);
    (1..30).for_each(|at| server.send_at(Time(at * 10 * MS), holder, 1000, Effect::Nothing));
    server.send_at(Time(300 * MS), holder, 1000, Effect::Ungrab);
    server.run_until(Time(400 * MS));
    let mut waited = |id| server.engine().scheduler.usage(id).unwrap().longest_wait_ns / MS;
    assert_eq!((waited(idle), waited(holder)), (200, 0));
    assert!((294..=298).contains(&waited(ready)), "{}", waited(ready));
}
