// SPDX-License-Identifier: MIT
//! Reservations of groups: a group's clients together get Q in every T (no more if hard), divided by their weights.

use crate::reservations::{hard_bound_ns, most_in_a_window};
use crate::server::{Behaviour, Load, MS, SECOND, Server, US};
use xqos_core::ReservationKind::{self, Hard, Soft, SoftPaper};
use xqos_core::{ClientId, Fact, FactOutcome, GroupId, Mode, Parameters, PolicyKind, Reservation, Role, Time};
use xqos_testkit::Random;

const GROUP: GroupId = GroupId(1);

fn reservation(budget_ms: u64, period_ms: u64, kind: ReservationKind) -> Reservation {
    Reservation { budget_ns: budget_ms * MS, period_ns: period_ms * MS, kind }
}

fn put_into_group(server: &mut Server, client: ClientId, weight: u32) {
    server.scheduler.handle(Time(0), Fact::Group { client, group: GROUP });
    server.scheduler.handle(Time(0), Fact::Weight { holder: client.into(), weight });
}

fn reserve(server: &mut Server, reservation: Reservation) {
    let fact = Fact::Reserve { holder: GROUP.into(), reservation };
    assert!(server.scheduler.handle(Time(server.now_ns), fact).is_admitted(), "{reservation:?} is admissible");
}

/// Busy clients in no group, and members with these weights and requests of up to `longest_ns`.
fn server_with(
    policy: PolicyKind,
    others: usize,
    weights: &[u32],
    longest_ns: u64,
    seed: u64,
) -> (Server, Vec<ClientId>) {
    let parameters = Parameters { blocking_ns: longest_ns, ..Parameters::default() };
    let mut server = Server::new(policy, parameters, seed);
    for _ in 0..others {
        server.connect(Load::backlogged(longest_ns / 4..=longest_ns));
    }
    let mut members = Vec::new();
    for &weight in weights {
        let client = server.connect(Load::backlogged(longest_ns / 4..=longest_ns));
        put_into_group(&mut server, client, weight);
        members.push(client);
    }
    (server, members)
}

fn together_ns(server: &Server, members: &[ClientId], mode: Option<Mode>) -> u64 {
    members.iter().map(|&id| server.service_ns(id, mode)).sum()
}

#[test]
fn a_group_gets_its_budget_in_every_period_despite_busy_clients() {
    for seed in 0..30 {
        let mut random = Random(seed);
        let longest_ns = random.one_of(&[100 * US, 500 * US, MS]);
        let policy = random.one_of(&PolicyKind::ALL);
        let weights = [100; 12];
        let (mut server, members) =
            server_with(policy, 6, &weights[..random.within(1..=12) as usize], longest_ns, seed);
        let of = reservation(random.within(2..=6), random.one_of(&[10, 16, 40]), random.one_of(&ReservationKind::ALL));
        reserve(&mut server, of);
        server.run_until(1600 * MS);
        for k in 1..1600 * MS / of.period_ns {
            let until_ns = k * of.period_ns;
            let is_paid = |run: &&crate::server::Run| members.contains(&run.client) && run.mode == Mode::Reserved;
            let got_ns: u64 = server.runs.iter().filter(is_paid).map(|run| run.within(0, until_ns)).sum();
            let short_ns = (k * of.budget_ns).saturating_sub(got_ns);
            assert!(short_ns <= longest_ns, "seed {seed}, {policy:?}: {of:?} is {short_ns} ns short after period {k}");
        }
    }
}

#[test]
fn a_hard_group_never_gets_more_than_its_budget_and_a_request() {
    for seed in 0..20 {
        let mut random = Random(seed ^ 0x9);
        let longest_ns = random.one_of(&[50 * US, 500 * US, 2 * MS]);
        let policy = random.one_of(&PolicyKind::ALL);
        let (mut server, mut members) = server_with(policy, 1, &[100, 300, 100], longest_ns, seed);
        let asker = server.connect(Load::new(Behaviour::RoundTrip { think_ns: 300 * US }, 10 * US..=longest_ns));
        put_into_group(&mut server, asker, 100);
        members.push(asker);
        let of = reservation(random.within(2..=6), random.one_of(&[10, 20, 40]), Hard);
        reserve(&mut server, of);
        server.run_until(SECOND);
        for periods in [1, 2, 7, 20] {
            let most_ns = most_in_a_window(&server, &members, periods * of.period_ns);
            let bound_ns = hard_bound_ns(of, periods, longest_ns, true);
            assert!(most_ns <= bound_ns, "seed {seed}, {policy:?}: {most_ns} ns in {periods} periods of {of:?}");
        }
    }
}

#[test]
fn members_share_the_budget_by_their_weights_under_every_policy() {
    for policy in PolicyKind::ALL {
        let (mut server, members) = server_with(policy, 2, &[100, 200, 300], 400 * US, 3);
        reserve(&mut server, reservation(6, 10, Hard));
        server.run_until(10 * SECOND);
        let all_ns = together_ns(&server, &members, None);
        assert!(all_ns.abs_diff(6 * SECOND) <= 20 * MS, "{policy:?}: {all_ns} ns of 6 s");
        for (&member, sixths) in members.iter().zip([1, 2, 3]) {
            let got_ns = server.service_ns(member, None);
            assert!(got_ns.abs_diff(sixths * SECOND) <= 20 * MS, "{policy:?}: weight {sixths}00 got {got_ns} ns");
        }
    }
}

#[test]
fn a_client_that_joins_a_group_gets_nothing_for_the_time_before() {
    let (mut server, members) = server_with(PolicyKind::Smart, 2, &[100, 100], 200 * US, 2);
    reserve(&mut server, reservation(4, 10, Hard));
    server.run_until(SECOND);
    let late = server.connect(Load::backlogged(50 * US..=200 * US));
    server.scheduler.handle(Time(server.now_ns), Fact::Group { client: late, group: GROUP });
    let before_ns = server.service_ns(members[0], None);
    server.run_until(2 * SECOND);
    let (first_ns, late_ns) = (server.service_ns(members[0], None) - before_ns, server.service_ns(late, None));
    assert!(first_ns.abs_diff(late_ns) <= 15 * MS, "the first client got {first_ns} ns, the late one {late_ns} ns");
}

#[test]
fn a_depleted_soft_group_continues_and_a_hard_one_waits() {
    for (kind, least_ns, most_ns) in
        [(Soft, 590 * MS, 610 * MS), (Hard, 190 * MS, 206 * MS), (SoftPaper, 1000 * MS, 1001 * MS)]
    {
        let (mut server, members) = server_with(PolicyKind::Fair, 1, &[100], 400 * US, 4);
        reserve(&mut server, reservation(2, 10, kind));
        server.run_until(SECOND);
        // A soft group gets a fifth of the server from its reservation, and half of the remaining time.
        let got_ns = together_ns(&server, &members, None);
        assert!((least_ns..=most_ns).contains(&got_ns), "{kind:?}: {got_ns} ns");
    }
}

#[test]
fn a_client_with_its_own_reservation_does_not_use_its_groups() {
    for policy in PolicyKind::ALL {
        let (mut server, members) = server_with(policy, 2, &[100, 100, 100], 300 * US, 5);
        reserve(&mut server, reservation(3, 10, Hard));
        assert!(server.try_reserve(members[0], reservation(2, 10, Hard)));
        assert!(!server.scheduler.shares_reservation(members[0]) && server.scheduler.shares_reservation(members[1]));
        server.run_until(2 * SECOND);
        for (member, due_ns) in [(members[0], 400 * MS), (members[1], 300 * MS), (members[2], 300 * MS)] {
            let got_ns = server.service_ns(member, None);
            assert!(got_ns.abs_diff(due_ns) <= 15 * MS, "{policy:?}: {member:?} got {got_ns} ns, not {due_ns}");
        }
    }
}

#[test]
fn the_admission_test_covers_groups_and_clients_together() {
    let (mut server, members) = server_with(PolicyKind::Fair, 0, &[100, 100], 100 * US, 6);
    reserve(&mut server, reservation(5, 10, Soft));
    assert!(!server.try_reserve(members[0], reservation(5, 10, Soft)), "0.5 + 0.5 is above 0.9");
    assert!(server.try_reserve(members[0], reservation(3, 10, Soft)));
    let more = Fact::Reserve { holder: GROUP.into(), reservation: reservation(7, 10, Soft) };
    assert!(!server.scheduler.handle(Time(0), more).is_admitted());
    assert_eq!(server.scheduler.admitted_utilization_ppm(), 800_000);
    assert_eq!(server.scheduler.handle(Time(0), Fact::Release { holder: GROUP.into() }), FactOutcome::Changed);
    assert_eq!(server.scheduler.admitted_utilization_ppm(), 300_000);
}

#[test]
fn reserving_for_a_group_again_gives_no_fresh_budget() {
    let (mut server, members) = server_with(PolicyKind::Fair, 1, &[100, 100], 100 * US, 7);
    let of = reservation(2, 20, Hard);
    for _ in 0..200 {
        reserve(&mut server, of);
        server.run_until(server.now_ns + 5 * MS);
        server.scheduler.handle(Time(server.now_ns), Fact::Release { holder: GROUP.into() });
    }
    let paid_ns = together_ns(&server, &members, Some(Mode::Reserved));
    assert!(paid_ns <= server.now_ns / 10 + 5 * MS, "{paid_ns} ns of {} were paid from a tenth", server.now_ns);
}

#[test]
fn an_idle_member_is_watched_again_when_its_group_is_replenished() {
    let (mut server, _) = server_with(PolicyKind::Fair, 1, &[100], 100 * US, 8);
    let late = server.connect(Load { start_ns: SECOND, ..Load::backlogged(100 * US..=100 * US) });
    put_into_group(&mut server, late, 100);
    reserve(&mut server, reservation(2, 10, Soft));
    server.run_until(SECOND + 20 * MS);
    let first = server.runs.iter().find(|run| run.client == late).expect("it was served");
    assert!(
        first.start_ns - SECOND <= 100 * US + 1,
        "it waited {} ns although its group has budget",
        first.start_ns - SECOND
    );
}

#[test]
fn compositors_and_window_managers_use_no_group_reservation() {
    let (mut server, members) = server_with(PolicyKind::Fixed, 1, &[100, 100], 100 * US, 9);
    reserve(&mut server, reservation(1, 10, Hard));
    let role = Role { compositor: true, window_manager: false };
    server.scheduler.handle(Time(0), Fact::Role { client: members[0], role });
    assert!(!server.scheduler.shares_reservation(members[0]));
    server.run_until(SECOND);
    assert!(server.service_ns(members[0], None) > 300 * MS, "it is not held back with its group");
    assert!(server.service_ns(members[1], None).abs_diff(100 * MS) <= 5 * MS);
}
