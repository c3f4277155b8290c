//! A replayed trace may claim any times, in any order. The scheduler takes them without a panic, under every policy.

use xqos_core::{Choice, ClientId, Parameters, PolicyKind, Reservation, Scheduler, Service, Time};

const FIRST: ClientId = ClientId(1);
const SECOND: ClientId = ClientId(2);

/// Serves whoever is picked from the beginning of time to its end.
fn serve_for_ever(scheduler: &mut Scheduler) {
    for client in [FIRST, SECOND] {
        scheduler.arrived(client, Time(0));
    }
    let client = match scheduler.pick(Time(0)).map(|slice| slice.choice) {
        Some(Choice::Client(client, _)) => client,
        _ => FIRST,
    };
    let (start, end) = (Time(0), Time::NEVER);
    let (requests, bytes, last_request) = (u32::MAX, u64::MAX, 1);
    scheduler.served(&Service { client, start, end, requests, bytes, last_request, still_ready: true });
}

#[test]
fn a_debt_of_centuries_is_paid_at_once() {
    let reservation = Reservation { budget_ns: 1, period_ns: 2, hard: true };
    let mut scheduler = Scheduler::new(PolicyKind::Fair, Parameters::default());
    scheduler.connected(FIRST, 4, Time(0));
    scheduler.reserve(FIRST, reservation, Time(0));
    scheduler.arrived(FIRST, Time(0));
    scheduler.pick(Time(0));
    let (start, end) = (Time(0), Time(1 << 61));
    let (requests, bytes, last_request) = (1, 0, 1);
    scheduler.served(&Service { client: FIRST, start, end, requests, bytes, last_request, still_ready: true });
    assert_eq!(scheduler.replenish(end), None, "half of it is paid by then");
    assert_eq!(scheduler.replenish(Time(1 << 62)), Some(FIRST));
    assert_eq!(scheduler.replenish(Time::NEVER), None);
}

#[test]
fn lengths_whose_sum_is_too_large_are_taken() {
    let reservation = Reservation { budget_ns: 3_000_000, period_ns: 10_000_000, hard: false };
    for kind in PolicyKind::ALL {
        let mut scheduler = Scheduler::new(kind, Parameters::default());
        for client in [FIRST, SECOND] {
            scheduler.connected(client, 4, Time(0));
        }
        for round in 0..50 {
            serve_for_ever(&mut scheduler);
            scheduler.set_sync_priority(FIRST, round % 3 - 1, Time(0));
            scheduler.grabbed(Some(SECOND), Time(0));
            scheduler.grabbed(None, Time::NEVER);
            match round % 8 {
                0 => drop(scheduler.reserve(SECOND, reservation, Time(0))),
                4 => drop(scheduler.clear_reservation(SECOND, Time(0))),
                _ => while scheduler.replenish(Time(1 << 40)).is_some() {},
            }
            scheduler.verify();
        }
    }
}
