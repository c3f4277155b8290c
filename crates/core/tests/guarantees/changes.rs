//! Changes on the way: a reservation is set again, replaced or ended; a watched client's rank changes.

use crate::reservations::{Reserved, check_budgets_are_given};
use crate::server::{Load, MS, SECOND, Server, US};
use xqos_core::{ClientId, Mode, Parameters, PolicyKind, Reservation, Scheduler, Service, Time};

fn ms(budget: u64, period: u64, hard: bool) -> Reservation {
    Reservation { budget_ns: budget * MS, period_ns: period * MS, hard }
}

#[test]
fn reserving_again_and_again_gives_no_more_than_reserving_once() {
    for (hard, request_ns) in [(true, 100 * US), (false, 100 * US), (true, 5 * MS), (false, 5 * MS)] {
        let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 1);
        let others = server.connect(Load::backlogged(100 * US..=100 * US));
        let client = server.connect(Load::backlogged(request_ns..=request_ns));
        for ms_now in 0..1000 {
            server.run_until(ms_now * MS);
            assert!(server.try_reserve(client, ms(2, 20, hard)));
        }
        let reserved_ns = server.service_ns(client, Some(Mode::Reserved));
        assert!(
            reserved_ns <= 102 * MS + request_ns,
            "a reservation of 10 % that is set again each millisecond got {reserved_ns} ns of a second (hard: {hard}, \
             requests of {request_ns} ns), the others {}: what it used, and owes, must survive the change",
            server.service_ns(others, None)
        );
    }
}

#[test]
fn ending_a_reservation_and_reserving_anew_forgives_no_debt() {
    let mut server = Server::new(PolicyKind::Stock, Parameters::default(), 1);
    server.connect(Load::backlogged(100 * US..=100 * US));
    let client = server.connect(Load::backlogged(9 * MS..=9 * MS));
    for step in 0..400 {
        server.run_until(step * 5 * MS);
        let now = Time(server.now_ns);
        match step % 2 {
            0 => assert!(server.try_reserve(client, ms(1, 10, false))),
            _ => assert!(server.scheduler.clear_reservation(client, now)),
        }
    }
    let reserved_ns = server.service_ns(client, Some(Mode::Reserved));
    assert!(reserved_ns <= 201 * MS + 9 * MS, "10 % of 2 s, and {reserved_ns} ns were given");
}

#[test]
fn larger_budget_takes_effect_at_no_cost_to_other_reservations() {
    let parameters = Parameters { blocking_ns: 10 * US, ..Parameters::default() };
    for change_at_ms in [0, 1, 5, 9, 14] {
        let mut server = Server::new(PolicyKind::Fair, parameters, 1);
        let other = server.connect(Load::backlogged(10 * US..=10 * US));
        let client = server.connect(Load::backlogged(10 * US..=10 * US));
        assert!(server.try_reserve(other, ms(2, 10, true)) && server.try_reserve(client, ms(1, 10, true)));
        server.run_until(change_at_ms * MS);
        assert!(server.try_reserve(client, ms(50, 100, true)));
        server.run_until(SECOND);
        check_budgets_are_given(&server, &[Reserved { client: other, reservation: ms(2, 10, true) }], 10 * US, 1);
        let got_ns = server.service_ns(client, None);
        assert!(got_ns.abs_diff(SECOND / 2) <= 55 * MS, "50 % since {change_at_ms} ms gave {got_ns} ns of a second");
    }
}

#[test]
fn shorter_period_takes_effect_at_once() {
    let mut server = Server::new(PolicyKind::Stock, Parameters::default(), 1);
    server.connect(Load::backlogged(10 * US..=10 * US));
    let client = server.connect(Load { start_ns: 20 * MS, ..Load::backlogged(10 * US..=10 * US) });
    assert!(server.try_reserve(client, ms(1000, 10_000, true)));
    server.run_until(10 * MS);
    assert!(server.try_reserve(client, ms(3, 10, true)));
    server.run_until(120 * MS);
    let got_ns = server.service_ns(client, None);
    assert!(got_ns.abs_diff(30 * MS) <= 3 * MS, "30 % of 100 ms, although a long period had begun: {got_ns} ns");
}

#[test]
fn changing_the_only_reservation_does_not_forget_the_blocking_time() {
    let (client, now) = (ClientId(1), Time(SECOND));
    let mut scheduler = Scheduler::new(PolicyKind::Fair, Parameters::default());
    scheduler.connected(client, 11, now);
    scheduler.reserve(client, ms(3, 10, false), now);
    scheduler.arrived(client, now);
    scheduler.overran(2 * MS);
    scheduler.pick(now);
    assert_eq!(scheduler.blocking_observed_ns(now), 2 * MS);
    scheduler.reserve(client, ms(4, 10, false), now);
    assert_eq!(scheduler.blocking_observed_ns(now), 2 * MS, "the reservation was replaced, not ended");
    scheduler.clear_reservation(client, now);
    assert_eq!(scheduler.blocking_observed_ns(now), 0, "forgotten with the last reservation");
}

#[test]
fn client_whose_reservation_ends_has_saved_up_nothing() {
    // Held back or served from its budget, it is never in the policy's queue; two seconds later it enters it.
    for policy in [PolicyKind::Fair, PolicyKind::Classic] {
        let mut server = Server::new(policy, Parameters::default(), 1);
        let others = [(); 2].map(|()| server.connect(Load::backlogged(100 * US..=300 * US)));
        let client = server.connect(Load::backlogged(100 * US..=300 * US));
        assert!(server.try_reserve(client, ms(1, 10, true)));
        server.run_until(2 * SECOND);
        let before_ns = others.map(|other| server.service_ns(other, None));
        server.scheduler.clear_reservation(client, Time(server.now_ns));
        server.run_until(2200 * MS);
        for (other, before_ns) in others.into_iter().zip(before_ns) {
            let got_ns = server.service_ns(other, None) - before_ns;
            assert!(
                got_ns >= 40 * MS,
                "policy {}: {other:?} got {got_ns} ns of the 200 ms after another's reservation ended, not a third",
                policy.name()
            );
        }
    }
}

const HOG: ClientId = ClientId(1);
const IDLE: ClientId = ClientId(2);

fn at(ms: u64) -> Time {
    Time(ms * MS)
}

fn serve(scheduler: &mut Scheduler, client: ClientId, start: Time, end: Time, still_ready: bool) {
    scheduler.served(&Service { client, start, end, requests: 1, bytes: 0, last_request: 0, still_ready });
}

/// A hog has run for a while, the other client is idle. It is 20 ms, and the hog runs on.
fn hogged_scheduler(prepare: impl FnOnce(&mut Scheduler)) -> Scheduler {
    let mut scheduler = Scheduler::new(PolicyKind::Fair, Parameters::default());
    scheduler.connected(HOG, 11, at(0));
    scheduler.connected(IDLE, 12, at(0));
    prepare(&mut scheduler);
    scheduler.arrived(HOG, at(10));
    scheduler.pick(at(10));
    serve(&mut scheduler, HOG, at(10), at(20), true);
    scheduler.pick(at(20));
    assert_eq!(scheduler.next_to_watch(at(20)), Some(IDLE), "the idle client is to be watched");
    assert_eq!(scheduler.next_to_watch(at(20)), None, "once is enough while nothing changes");
    scheduler
}

#[test]
fn watched_client_is_named_again_when_it_is_reserved() {
    let mut scheduler = hogged_scheduler(|_| {});
    scheduler.reserve(IDLE, ms(1, 10, false), at(20));
    assert_eq!(scheduler.next_to_watch(at(20)), Some(IDLE));
    scheduler.clear_reservation(IDLE, at(20));
    assert_eq!(scheduler.next_to_watch(at(20)), Some(IDLE), "or else it ends slices as if it were reserved");
}

#[test]
fn watched_client_is_named_again_when_its_sync_priority_or_the_policy_changes() {
    let mut scheduler = hogged_scheduler(|_| {});
    scheduler.set_sync_priority(IDLE, 5, at(20));
    assert_eq!(scheduler.next_to_watch(at(20)), Some(IDLE));
    scheduler.set_policy(PolicyKind::Fixed, at(20));
    assert_eq!(scheduler.next_to_watch(at(20)), Some(IDLE));
}

#[test]
fn watched_client_is_named_again_when_its_budget_is_replenished() {
    let mut scheduler = hogged_scheduler(|scheduler| {
        scheduler.reserve(IDLE, ms(2, 30, false), at(0));
        scheduler.arrived(IDLE, at(0));
        scheduler.pick(at(0));
        serve(scheduler, IDLE, at(0), at(2), false);
        assert!(scheduler.reservation(IDLE).is_some_and(|state| state.depleted));
    });
    assert_eq!(scheduler.replenish(at(30)), Some(IDLE));
    scheduler.pick(at(30));
    assert_eq!(scheduler.next_to_watch(at(30)), Some(IDLE), "it was armed as best effort and has budget now");
}

#[test]
fn notice_does_not_make_a_watched_client_look_unwatched() {
    let mut scheduler = hogged_scheduler(|_| {});
    scheduler.noticed(IDLE, true, at(21));
    assert!(scheduler.is_watched(IDLE), "its socket is armed still, and knows when it becomes readable");
    assert_eq!(scheduler.next_to_watch(at(21)), Some(IDLE), "with its new rank");
    assert_eq!(scheduler.watched_count(), 1);
    scheduler.arrived(IDLE, at(22));
    assert!(!scheduler.is_watched(IDLE) && scheduler.watched_count() == 0);
}
