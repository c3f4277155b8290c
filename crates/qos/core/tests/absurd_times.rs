// SPDX-License-Identifier: MIT
//! A damaged trace can contain any times in any order. The scheduler accepts them without a panic under every policy.

use xqos_core::{
    Choice, ClientId, Fact, FactOutcome, Parameters, PolicyKind, Reservation, ReservationKind, Scheduler, Service, Time,
};

const FIRST: ClientId = ClientId(1);
const SECOND: ClientId = ClientId(2);

/// Serves the picked client from time 0 until [`Time::NEVER`].
fn serve_for_ever(scheduler: &mut Scheduler) {
    for client in [FIRST, SECOND] {
        scheduler.handle(Time(0), Fact::Arrived { client });
    }
    let client = match scheduler.decide(Time(0)).map(|slice| slice.choice) {
        Some(Choice::Client(client, _)) => client,
        _ => FIRST,
    };
    let (start, end) = (Time(0), Time::NEVER);
    let (requests, bytes) = (u32::MAX, u64::MAX);
    scheduler
        .handle(end, Fact::Served(Service { requests, bytes, still_ready: true, ..Service::new(client, start, end) }));
}

#[test]
fn a_debt_of_centuries_is_paid_in_one_step() {
    let reservation = Reservation { budget_ns: 1, period_ns: 2, kind: ReservationKind::Hard };
    let mut scheduler = Scheduler::new(PolicyKind::Fair, Parameters::default());
    scheduler.handle(Time(0), Fact::Connected { client: FIRST, descriptor: 4 });
    scheduler.handle(Time(0), Fact::Reserve { holder: FIRST.into(), reservation }).admission();
    scheduler.handle(Time(0), Fact::Arrived { client: FIRST });
    scheduler.decide(Time(0));
    let (start, end) = (Time(0), Time(1 << 61));
    scheduler.handle(end, Fact::Served(Service { requests: 1, still_ready: true, ..Service::new(FIRST, start, end) }));
    assert_eq!(scheduler.handle(end, Fact::Replenish), FactOutcome::None, "half of the debt is paid by then");
    assert_eq!(scheduler.handle(Time(1 << 62), Fact::Replenish), FactOutcome::Resumed(FIRST));
    assert_eq!(scheduler.handle(Time::NEVER, Fact::Replenish), FactOutcome::None);
}

#[test]
fn lengths_with_an_overflowing_sum_are_accepted() {
    let reservation = Reservation { budget_ns: 3_000_000, period_ns: 10_000_000, kind: ReservationKind::Soft };
    for kind in PolicyKind::ALL {
        let mut scheduler = Scheduler::new(kind, Parameters::default());
        for client in [FIRST, SECOND] {
            scheduler.handle(Time(0), Fact::Connected { client, descriptor: 4 });
        }
        for round in 0..50 {
            serve_for_ever(&mut scheduler);
            scheduler.handle(Time(0), Fact::SyncPriority { client: FIRST, priority: round % 3 - 1 });
            scheduler.handle(Time(0), Fact::Grabbed { by: Some(SECOND) });
            scheduler.handle(Time::NEVER, Fact::Grabbed { by: None });
            match round % 8 {
                0 => drop(scheduler.handle(Time(0), Fact::Reserve { holder: SECOND.into(), reservation }).admission()),
                4 => drop(scheduler.handle(Time(0), Fact::Release { holder: SECOND.into() })),
                _ => while scheduler.handle(Time(1 << 40), Fact::Replenish) != FactOutcome::None {},
            }
            scheduler.verify();
        }
    }
}
