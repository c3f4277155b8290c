// SPDX-License-Identifier: MIT
//! Watching: clients that could end the running slice are returned for watching, and no others.

use crate::server::MS;
use xqos_core::{
    ClientId, Fact, FactOutcome, GroupId, Parameters, PolicyKind, Reservation, ReservationKind, Scheduler, Service,
    Time,
};

const HOG: ClientId = ClientId(1);
const IDLE: ClientId = ClientId(2);

fn at(ms: u64) -> Time {
    Time(ms * MS)
}

fn serve(scheduler: &mut Scheduler, client: ClientId, start: Time, end: Time, still_ready: bool) {
    scheduler.handle(end, Fact::Served(Service { requests: 1, still_ready, ..Service::new(client, start, end) }));
}

fn next_to_watch(scheduler: &mut Scheduler, now: Time) -> Option<ClientId> {
    scheduler.next_to_watch(now).map(|(client, _)| client)
}

/// A hog has run until 20 ms and continues; the other client is idle.
fn hogged_scheduler(prepare: impl FnOnce(&mut Scheduler)) -> Scheduler {
    let mut scheduler = Scheduler::new(PolicyKind::Fair, Parameters::default());
    scheduler.handle(at(0), Fact::Connected { client: HOG, descriptor: 11 });
    scheduler.handle(at(0), Fact::Connected { client: IDLE, descriptor: 12 });
    prepare(&mut scheduler);
    scheduler.handle(at(10), Fact::Arrived { client: HOG });
    scheduler.decide(at(10));
    serve(&mut scheduler, HOG, at(10), at(20), true);
    scheduler.decide(at(20));
    assert_eq!(next_to_watch(&mut scheduler, at(20)), Some(IDLE), "the idle client is to be watched");
    assert_eq!(next_to_watch(&mut scheduler, at(20)), None, "it is returned only once without a change");
    scheduler
}

#[test]
fn a_watched_client_is_returned_again_when_it_gets_a_reservation() {
    let mut scheduler = hogged_scheduler(|_| {});
    scheduler
        .handle(
            at(20),
            Fact::Reserve {
                holder: IDLE.into(),
                reservation: Reservation { budget_ns: MS, period_ns: 10 * MS, kind: ReservationKind::Soft },
            },
        )
        .admission();
    assert_eq!(next_to_watch(&mut scheduler, at(20)), Some(IDLE));
    scheduler.handle(at(20), Fact::Release { holder: IDLE.into() });
    assert_eq!(next_to_watch(&mut scheduler, at(20)), Some(IDLE), "it must be watched at its new rank");
}

#[test]
fn a_watched_client_is_returned_again_when_its_priority_or_the_policy_changes() {
    let mut scheduler = hogged_scheduler(|_| {});
    scheduler.handle(at(20), Fact::SyncPriority { client: IDLE, priority: 5 });
    assert_eq!(next_to_watch(&mut scheduler, at(20)), Some(IDLE));
    scheduler.handle(at(20), Fact::Policy(PolicyKind::Fixed));
    assert_eq!(next_to_watch(&mut scheduler, at(20)), Some(IDLE));
}

#[test]
fn a_watched_client_is_returned_again_when_its_budget_is_replenished() {
    let mut scheduler = hogged_scheduler(|scheduler| {
        scheduler
            .handle(
                at(0),
                Fact::Reserve {
                    holder: IDLE.into(),
                    reservation: Reservation { budget_ns: 2 * MS, period_ns: 30 * MS, kind: ReservationKind::Soft },
                },
            )
            .admission();
        scheduler.handle(at(0), Fact::Arrived { client: IDLE });
        scheduler.decide(at(0));
        serve(scheduler, IDLE, at(0), at(2), false);
        assert!(scheduler.reservation(IDLE).is_some_and(|state| state.depleted));
    });
    assert_eq!(scheduler.handle(at(30), Fact::Replenish), FactOutcome::Resumed(IDLE));
    scheduler.decide(at(30));
    assert_eq!(next_to_watch(&mut scheduler, at(30)), Some(IDLE), "it was armed as best effort and has budget now");
}

#[test]
fn members_are_returned_again_when_the_budget_of_their_group_is_replenished() {
    let (group, member) = (GroupId(1), ClientId(3));
    let reservation = Reservation { budget_ns: 2 * MS, period_ns: 30 * MS, kind: ReservationKind::Soft };
    let mut scheduler = hogged_scheduler(|scheduler| {
        scheduler.handle(at(0), Fact::Connected { client: member, descriptor: 13 });
        for client in [IDLE, member] {
            scheduler.handle(at(0), Fact::Group { client, group });
        }
        assert!(scheduler.handle(at(0), Fact::Reserve { holder: group.into(), reservation }).is_admitted());
        // The idle client is returned first because of its group's budget, which another member uses up. Then it is
        // returned as a best-effort client, because it has received input.
        scheduler.handle(at(0), Fact::Arrived { client: HOG });
        scheduler.decide(at(0));
        assert_eq!(next_to_watch(scheduler, at(0)), Some(IDLE));
        serve(scheduler, HOG, at(0), at(0), true);
        scheduler.handle(at(0), Fact::Arrived { client: member });
        scheduler.decide(at(0));
        serve(scheduler, member, at(0), at(2), true);
        scheduler.decide(at(2));
        scheduler.handle(at(3), Fact::Withdrawn { client: HOG });
        scheduler.handle(at(3), Fact::Input { client: IDLE });
        assert!(scheduler.group_reservation(group).is_some_and(|state| state.depleted));
    });
    assert_eq!(scheduler.handle(at(30), Fact::Replenish), FactOutcome::GroupResumed(group));
    scheduler.handle(at(30), Fact::Withdrawn { client: member });
    scheduler.decide(at(30));
    let named: Vec<ClientId> = std::iter::from_fn(|| next_to_watch(&mut scheduler, at(30))).collect();
    assert!(named.contains(&IDLE) && named.contains(&member), "{named:?} have budget now");
}

#[test]
fn input_does_not_end_the_watch_of_a_client() {
    let mut scheduler = hogged_scheduler(|_| {});
    scheduler.handle(at(21), Fact::Input { client: IDLE });
    assert!(scheduler.is_watched(IDLE), "its socket is still armed");
    assert_eq!(next_to_watch(&mut scheduler, at(21)), Some(IDLE), "with its new rank");
    assert_eq!(scheduler.watched_count(), 1);
    scheduler.handle(at(22), Fact::Arrived { client: IDLE });
    assert!(!scheduler.is_watched(IDLE) && scheduler.watched_count() == 0);
}

#[test]
fn best_effort_clients_are_watched_for_100_ms_after_a_long_slice() {
    for (length_us, pick_at_ms, expected) in [(1_000, 21, None), (1_001, 22, Some(IDLE)), (1_001, 122, None)] {
        let mut scheduler = Scheduler::new(PolicyKind::Fair, Parameters::default());
        scheduler.handle(at(0), Fact::Connected { client: HOG, descriptor: 11 });
        scheduler.handle(at(0), Fact::Connected { client: IDLE, descriptor: 12 });
        scheduler.handle(at(20), Fact::Arrived { client: HOG });
        scheduler.decide(at(20));
        serve(&mut scheduler, HOG, at(20), Time(20 * MS + length_us * 1_000), true);
        scheduler.decide(at(pick_at_ms));
        let named = next_to_watch(&mut scheduler, at(pick_at_ms));
        assert_eq!(named, expected, "after a slice of {length_us} us, at {pick_at_ms} ms");
    }
}

#[test]
fn a_reserved_client_is_watched_without_long_slices() {
    let mut scheduler = Scheduler::new(PolicyKind::Stock, Parameters::default());
    scheduler.handle(at(0), Fact::Connected { client: HOG, descriptor: 11 });
    scheduler.handle(at(0), Fact::Connected { client: IDLE, descriptor: 12 });
    scheduler
        .handle(
            at(0),
            Fact::Reserve {
                holder: IDLE.into(),
                reservation: Reservation { budget_ns: MS, period_ns: 10 * MS, kind: ReservationKind::Hard },
            },
        )
        .admission();
    scheduler.handle(at(1), Fact::Arrived { client: HOG });
    scheduler.decide(at(1));
    assert_eq!(next_to_watch(&mut scheduler, at(1)), Some(IDLE));
    assert_eq!(next_to_watch(&mut scheduler, at(1)), None);
}

#[test]
fn a_client_that_cannot_win_within_the_slice_is_not_watched() {
    // The idle client has paid 10 ms more than the hog, whose slice is 5 ms.
    let mut scheduler = Scheduler::new(PolicyKind::Fair, Parameters::default());
    scheduler.handle(at(0), Fact::Connected { client: HOG, descriptor: 11 });
    scheduler.handle(at(0), Fact::Connected { client: IDLE, descriptor: 12 });
    scheduler.handle(at(0), Fact::Arrived { client: IDLE });
    scheduler.decide(at(0));
    serve(&mut scheduler, IDLE, at(0), at(20), false);
    scheduler.handle(at(20), Fact::Arrived { client: HOG });
    for start in [20, 25] {
        scheduler.decide(at(start));
        assert_eq!(next_to_watch(&mut scheduler, at(start)), None, "at {start} ms");
        serve(&mut scheduler, HOG, at(start), at(start + 5), true);
    }
    // Once the hog has paid 16 ms, the difference is small enough.
    serve(&mut scheduler, HOG, at(30), at(37), true);
    scheduler.decide(at(37));
    assert_eq!(next_to_watch(&mut scheduler, at(37)), Some(IDLE));
}

#[test]
fn a_synchronous_client_is_interrupted_only_within_its_expected_time() {
    // The idle client returns 3 ms behind the hog and is served for 3 ms. Its next arrival then ends a slice after the
    // margin of 1 ms, minus what the hog has used since.
    let named_after = |length_us: u64, still_ready| {
        let mut scheduler = hogged_scheduler(|_| ());
        scheduler.handle(at(20), Fact::Arrived { client: IDLE });
        scheduler.decide(at(20));
        serve(&mut scheduler, IDLE, at(20), at(23), false);
        let end = Time(23 * MS + length_us * 1_000);
        scheduler.decide(at(23));
        serve(&mut scheduler, HOG, at(23), end, still_ready);
        scheduler.handle(end, Fact::Arrived { client: HOG });
        scheduler.decide(end);
        next_to_watch(&mut scheduler, end)
    };
    assert_eq!(named_after(300, false), None, "0.6 ms are expected, and an arrival wins after 0.7 ms");
    assert_eq!(named_after(300, true), Some(IDLE), "the hog has more requests: a whole slice is expected");
    assert_eq!(named_after(400, false), Some(IDLE), "0.8 ms are expected, and an arrival wins after 0.6 ms");
}
