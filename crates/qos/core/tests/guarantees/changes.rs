// SPDX-License-Identifier: MIT
//! Changes to reservations at run time: checking, setting again, replacing and ending them.

use crate::reservations::{Reserved, check_budgets_are_given};
use crate::server::{Load, MS, SECOND, Server, US};
use xqos_core::ReservationKind::{self, Hard, Soft, SoftPaper};
use xqos_core::{Admission, ClientId, Fact, FactOutcome, Mode, Parameters, PolicyKind, Reservation, Scheduler, Time};

fn ms(budget: u64, period: u64, kind: ReservationKind) -> Reservation {
    Reservation { budget_ns: budget * MS, period_ns: period * MS, kind }
}

#[test]
fn reserving_repeatedly_gives_no_more_than_reserving_once() {
    for (kind, request_ns) in [(Hard, 100 * US), (Soft, 100 * US), (Hard, 5 * MS), (Soft, 5 * MS)] {
        let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 1);
        let others = server.connect(Load::backlogged(100 * US..=100 * US));
        let client = server.connect(Load::backlogged(request_ns..=request_ns));
        for ms_now in 0..1000 {
            server.run_until(ms_now * MS);
            assert!(server.try_reserve(client, ms(2, 20, kind)));
        }
        let reserved_ns = server.service_ns(client, Some(Mode::Reserved));
        assert!(
            reserved_ns <= 102 * MS + request_ns,
            "a reservation of 10 % that is set again each millisecond got {reserved_ns} ns of a second ({kind:?}, \
             requests of {request_ns} ns), the others {}: its use and its debt must survive the change",
            server.service_ns(others, None)
        );
    }
}

#[test]
fn reserving_repeatedly_by_the_papers_soft_rule_costs_other_reservations_nothing() {
    let parameters = Parameters { blocking_ns: 20 * US, ..Parameters::default() };
    for kinds in [[SoftPaper, SoftPaper], [SoftPaper, Hard]] {
        let mut server = Server::new(PolicyKind::Fair, parameters, 1);
        let reserve = |server: &mut Server, reservation| {
            let client = server.connect(Load::backlogged(10 * US..=10 * US));
            assert!(server.try_reserve(client, reservation));
            Reserved { client, reservation }
        };
        let others = [reserve(&mut server, ms(2, 10, Hard)), reserve(&mut server, ms(60, 150, Soft))];
        let client = server.connect(Load::backlogged(10 * US..=10 * US));
        for step in 0..900 {
            assert!(server.try_reserve(client, ms(3, 15, kinds[step as usize % 2])));
            server.run_until((step + 1) * 2 * MS);
        }
        check_budgets_are_given(&server, &others, 20 * US, 1);
    }
}

#[test]
fn using_an_idle_server_by_the_papers_soft_rule_leaves_no_long_debt() {
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 1);
    let client = server.connect(Load::backlogged(100 * US..=100 * US));
    assert!(server.try_reserve(client, ms(1, 10, SoftPaper)));
    server.run_until(2 * SECOND);
    assert_eq!(server.service_ns(client, None), 2 * SECOND, "no other client is connected");
    assert!(server.try_reserve(client, ms(1, 10, Hard)));
    server.run_until(3 * SECOND);
    let got_ns = server.service_ns(client, None) - 2 * SECOND;
    assert!((97 * MS..=101 * MS).contains(&got_ns), "1 ms in 10 ms gave {got_ns} ns of a second");
}

#[test]
fn ending_and_renewing_a_reservation_cancels_no_debt() {
    let mut server = Server::new(PolicyKind::Stock, Parameters::default(), 1);
    server.connect(Load::backlogged(100 * US..=100 * US));
    let client = server.connect(Load::backlogged(9 * MS..=9 * MS));
    for step in 0..400 {
        server.run_until(step * 5 * MS);
        let now = Time(server.now_ns);
        match step % 2 {
            0 => assert!(server.try_reserve(client, ms(1, 10, Soft))),
            _ => {
                assert_eq!(server.scheduler.handle(now, Fact::Release { holder: client.into() }), FactOutcome::Changed)
            }
        }
    }
    let reserved_ns = server.service_ns(client, Some(Mode::Reserved));
    assert!(reserved_ns <= 201 * MS + 9 * MS, "{reserved_ns} ns were given instead of 10 % of 2 s");
}

#[test]
fn larger_budget_takes_effect_at_no_cost_to_other_reservations() {
    let parameters = Parameters { blocking_ns: 10 * US, ..Parameters::default() };
    for change_at_ms in [0, 1, 5, 9, 14] {
        let mut server = Server::new(PolicyKind::Fair, parameters, 1);
        let other = server.connect(Load::backlogged(10 * US..=10 * US));
        let client = server.connect(Load::backlogged(10 * US..=10 * US));
        assert!(server.try_reserve(other, ms(2, 10, Hard)) && server.try_reserve(client, ms(1, 10, Hard)));
        server.run_until(change_at_ms * MS);
        assert!(server.try_reserve(client, ms(50, 100, Hard)));
        server.run_until(SECOND);
        check_budgets_are_given(&server, &[Reserved { client: other, reservation: ms(2, 10, Hard) }], 10 * US, 1);
        let got_ns = server.service_ns(client, None);
        assert!(got_ns.abs_diff(SECOND / 2) <= 55 * MS, "50 % since {change_at_ms} ms gave {got_ns} ns of a second");
    }
}

#[test]
fn a_shorter_period_takes_effect_immediately() {
    let mut server = Server::new(PolicyKind::Stock, Parameters::default(), 1);
    server.connect(Load::backlogged(10 * US..=10 * US));
    let client = server.connect(Load { start_ns: 20 * MS, ..Load::backlogged(10 * US..=10 * US) });
    assert!(server.try_reserve(client, ms(1000, 10_000, Hard)));
    server.run_until(10 * MS);
    assert!(server.try_reserve(client, ms(3, 10, Hard)));
    server.run_until(120 * MS);
    let got_ns = server.service_ns(client, None);
    assert!(got_ns.abs_diff(30 * MS) <= 3 * MS, "30 % of 100 ms, although a long period had begun: {got_ns} ns");
}

#[test]
fn changing_the_only_reservation_does_not_forget_the_blocking_time() {
    let (client, now) = (ClientId(1), Time(SECOND));
    let mut scheduler = Scheduler::new(PolicyKind::Fair, Parameters::default());
    scheduler.handle(now, Fact::Connected { client, descriptor: 11 });
    scheduler.handle(now, Fact::Reserve { holder: client.into(), reservation: ms(3, 10, Soft) }).admission();
    scheduler.handle(now, Fact::Arrived { client });
    scheduler.handle(Time(0), Fact::Overran { ns: 2 * MS });
    scheduler.decide(now);
    assert_eq!(scheduler.blocking_observed_ns(now), 2 * MS);
    scheduler.handle(now, Fact::Reserve { holder: client.into(), reservation: ms(4, 10, Soft) }).admission();
    assert_eq!(scheduler.blocking_observed_ns(now), 2 * MS, "the reservation was replaced, not ended");
    scheduler.handle(now, Fact::Release { holder: client.into() });
    assert_eq!(scheduler.blocking_observed_ns(now), 0, "forgotten with the last reservation");
}

#[test]
fn a_client_saves_up_nothing_during_a_reservation() {
    // The client is held back or served from its budget, so it enters the policy's queue only after two seconds.
    for policy in [PolicyKind::Fair, PolicyKind::Classic] {
        let mut server = Server::new(policy, Parameters::default(), 1);
        let others = [(); 2].map(|()| server.connect(Load::backlogged(100 * US..=300 * US)));
        let client = server.connect(Load::backlogged(100 * US..=300 * US));
        assert!(server.try_reserve(client, ms(1, 10, Hard)));
        server.run_until(2 * SECOND);
        let before_ns = others.map(|other| server.service_ns(other, None));
        server.scheduler.handle(Time(server.now_ns), Fact::Release { holder: client.into() });
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

#[test]
fn admission_is_exact_to_a_millionth() {
    let (first, second, now) = (ClientId(1), ClientId(2), Time(0));
    let mut scheduler = Scheduler::new(PolicyKind::Fair, Parameters::default());
    scheduler.handle(now, Fact::Connected { client: first, descriptor: 11 });
    scheduler.handle(now, Fact::Connected { client: second, descriptor: 12 });
    let of = |ppm: u64| Reservation { budget_ns: ppm * 1_000, period_ns: SECOND, kind: Soft };
    let is_admitted = |admission| matches!(admission, Some(Admission::Admitted(_)));
    assert!(is_admitted(
        scheduler.handle(now, Fact::Reserve { holder: first.into(), reservation: of(400_000) }).admission()
    ));
    assert!(is_admitted(scheduler.check_admission(second, of(500_000), now)), "0.9 is the limit");
    assert!(!is_admitted(scheduler.check_admission(second, of(500_001), now)), "0.900001 is above it");
    let just_above = Reservation { budget_ns: SECOND / 2 + 1, ..of(0) };
    assert!(!is_admitted(scheduler.check_admission(second, just_above, now)), "rounded to the safe side");
    assert!(
        is_admitted(
            scheduler.handle(now, Fact::Reserve { holder: first.into(), reservation: of(900_000) }).admission()
        ),
        "its own reservation does not count against it"
    );
    assert_eq!(scheduler.admitted_utilization_ppm(), 900_000);
}
