// SPDX-License-Identifier: MIT
//! Reservations: Q in every T, no more than that if hard, and 1 - U for other clients.
//!
//! R is the longest request in a test's loads. Requests cannot be interrupted, with two effects on the bounds:
//!
//! - A budget can be exceeded by one request, and the excess is paid back in the next period. Each other reservation
//!   can therefore take R more than its Q before a deadline, and a request of length R can be running when a period
//!   begins.
//! - A client that arrives in the middle of a period keeps its deadline or gets a new deadline. A window of m periods
//!   can therefore touch the budgets of more than m + 1 periods (see [`hard_bound_ns`]).

use crate::server::{Behaviour, Load, MS, Run, SECOND, Server, US};
use xqos_core::{ClientId, Fact, Mode, Parameters, PolicyKind, Reservation, ReservationKind, Scheduler, Service, Time};
use xqos_testkit::Random;

#[derive(Clone, Copy, Debug)]
pub struct Reserved {
    pub client: ClientId,
    pub reservation: Reservation,
}

/// A server with best-effort load and up to `count` random reservations of busy clients, if they are admitted.
fn loaded_server(
    seed: u64,
    count: usize,
    longest_ns: u64,
    blocking_ns: u64,
    kinds: &[ReservationKind],
) -> (Server, Vec<Reserved>) {
    let mut random = Random(seed);
    let parameters = Parameters { blocking_ns, ..Parameters::default() };
    let mut server = Server::new(random.one_of(&PolicyKind::ALL), parameters, seed);
    for _ in 0..random.within(1..=3) {
        server.connect(Load::backlogged(random.within(10 * US..=longest_ns)..=longest_ns));
    }
    for _ in 0..random.within(0..=3) {
        let behaviour = match random.within(0..=1) {
            0 => Behaviour::RoundTrip { think_ns: random.within(US..=3 * MS) },
            _ => Behaviour::Periodic { period_ns: random.within(4 * MS..=30 * MS), requests: 3 },
        };
        server.connect(Load::new(behaviour, random.within(10 * US..=longest_ns)..=longest_ns));
    }
    let mut reserved = Vec::new();
    for _ in 0..count {
        let period_ns = random.one_of(&[5, 8, 10, 16, 20, 33, 40, 50, 100]) * MS;
        let budget_ns = period_ns * random.within(5..=60) / 100;
        let reservation = Reservation { budget_ns, period_ns, kind: random.one_of(kinds) };
        let client = server.connect(Load::backlogged(random.within(10 * US..=longest_ns)..=longest_ns));
        if server.try_reserve(client, reservation) {
            reserved.push(Reserved { client, reservation });
        }
    }
    (server, reserved)
}

/// The largest shortfall of the client's reserved service against k Q at the end of its k-th period, and that k.
fn worst_shortfall(server: &Server, reserved: Reserved) -> (u64, u64) {
    let Reservation { budget_ns, period_ns, .. } = reserved.reservation;
    let runs: Vec<&Run> =
        server.runs.iter().filter(|run| run.client == reserved.client && run.mode == Mode::Reserved).collect();
    let (mut worst, mut next, mut whole_ns) = ((0, 0), 0, 0);
    for k in 1..=server.now_ns / period_ns {
        while let Some(run) = runs.get(next).filter(|run| run.end_ns <= k * period_ns) {
            whole_ns += run.end_ns - run.start_ns;
            next += 1;
        }
        let begun_ns = runs.get(next).map_or(0, |run| run.within(0, k * period_ns));
        worst = worst.max(((k * budget_ns).saturating_sub(whole_ns + begun_ns), k));
    }
    worst
}

pub fn check_budgets_are_given(server: &Server, reserved: &[Reserved], bound_ns: u64, seed: u64) {
    for &one in reserved {
        let (short_ns, k) = worst_shortfall(server, one);
        assert!(
            short_ns <= bound_ns,
            "seed {seed}, policy {}: {one:?} is {short_ns} ns short of its budgets at the end of period {k}; \
             {bound_ns} ns are allowed. All: {reserved:?}",
            server.scheduler.policy().name()
        );
    }
}

#[test]
fn a_backlogged_reserved_client_gets_its_budget_in_every_period_within_one_blocking_time() {
    for seed in xqos_testkit::seeds(150) {
        let mut random = Random(seed ^ 0xa);
        let longest_ns = random.one_of(&[100 * US, 300 * US, 500 * US, MS, 2 * MS]);
        let count = random.within(1..=8) as usize;
        // The limit leaves room for each reservation to overrun, so that all budgets are given in time.
        let (mut server, reserved) =
            loaded_server(seed, count, longest_ns, longest_ns * count as u64, &ReservationKind::ALL);
        server.run_until(1500 * MS);
        check_budgets_are_given(&server, &reserved, longest_ns, seed);
    }
}

#[test]
fn admission_with_one_blocking_time_bounds_the_shortfall_of_each_budget() {
    for seed in xqos_testkit::seeds(150) {
        let mut random = Random(seed ^ 0xb);
        let longest_ns = random.one_of(&[100 * US, 300 * US, 500 * US, MS, 2 * MS]);
        let (mut server, reserved) = loaded_server(seed, 8, longest_ns, longest_ns, &ReservationKind::ALL);
        server.run_until(1500 * MS);
        check_budgets_are_given(&server, &reserved, longest_ns * reserved.len() as u64, seed);
    }
}

#[test]
fn the_earliest_deadline_is_served_first_in_any_order_of_replenishment() {
    // While `long` runs, `slow` resumes first, at 89 ms, with a later deadline (178 ms) than that of `long` (175 ms).
    // `quick` resumes 1 ms later with the earliest deadline (100 ms) and must not have to wait for `long`.
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 1);
    let reserve = |server: &mut Server, budget_ms: u64, period_ms: u64| {
        let client = server.connect(Load::backlogged(10 * US..=10 * US));
        let reservation =
            Reservation { budget_ns: budget_ms * MS, period_ns: period_ms * MS, kind: ReservationKind::Hard };
        assert!(server.try_reserve(client, reservation), "{reservation:?} is admissible");
        Reserved { client, reservation }
    };
    let quick = reserve(&mut server, 1, 10);
    let slow = reserve(&mut server, 1, 89);
    server.run_until(80 * MS);
    let long = reserve(&mut server, 60, 95);
    server.run_until(200 * MS);
    check_budgets_are_given(&server, &[quick, slow], 10 * US, 1);
    assert!(server.service_ns(long.client, None) >= 60 * MS, "the long one gets its budget too");
}

/// The maximum service of a hard reservation in a window of m periods.
///
/// Let a_k be the times from which its budgets count (deadline minus T). An arrival renews a budget only if the rest of
/// the budget covers the bandwidth until the deadline, so between a_k and a_k+1 the client uses at most (a_k+1 - a_k)
/// Q/T. A window contains at most: a first budget, used up just before the next one begins; whole budgets at that
/// bandwidth; and a last budget, used immediately. The sum is m Q + 2 Q (1 - Q/T), plus the request that exceeds the
/// last budget. A client that is never idle has only whole periods: (m + 1) Q plus the request.
pub fn hard_bound_ns(reservation: Reservation, periods: u64, longest_ns: u64, goes_idle: bool) -> u64 {
    let Reservation { budget_ns, period_ns, .. } = reservation;
    let edges = if goes_idle { 2 * budget_ns * (period_ns - budget_ns) / period_ns } else { budget_ns };
    periods * budget_ns + edges.max(budget_ns) + longest_ns
}

/// The maximum total service of these clients in any window of length `window_ns`. The worst window begins with one of
/// their requests.
pub fn most_in_a_window(server: &Server, clients: &[ClientId], window_ns: u64) -> u64 {
    let runs: Vec<&Run> = server.runs.iter().filter(|run| clients.contains(&run.client)).collect();
    let (mut most_ns, mut whole_ns, mut last) = (0, 0, 0);
    for first in &runs {
        let to_ns = first.start_ns + window_ns;
        while let Some(run) = runs.get(last).filter(|run| run.end_ns <= to_ns) {
            whole_ns += run.end_ns - run.start_ns;
            last += 1;
        }
        let cut_ns = runs.get(last).map_or(0, |run| run.within(0, to_ns));
        most_ns = most_ns.max(whole_ns + cut_ns);
        whole_ns -= first.end_ns - first.start_ns;
    }
    most_ns
}

fn check_hard_bound(server: &Server, reserved: Reserved, longest_ns: u64, goes_idle: bool, setup: &str) {
    for periods in [1, 2, 3, 7, 20] {
        let most_ns = most_in_a_window(server, &[reserved.client], periods * reserved.reservation.period_ns);
        let bound_ns = hard_bound_ns(reserved.reservation, periods, longest_ns, goes_idle);
        assert!(
            most_ns <= bound_ns,
            "{setup}, policy {}: {reserved:?} got {most_ns} ns within {periods} periods; the bound is {bound_ns} ns",
            server.scheduler.policy().name()
        );
    }
}

#[test]
fn hard_reservation_never_gets_more_than_its_budget_and_a_request() {
    for seed in xqos_testkit::seeds(40) {
        let longest_ns = Random(seed ^ 0xc).one_of(&[50 * US, 500 * US, 2 * MS]);
        let (mut server, reserved) = loaded_server(seed, 4, longest_ns, longest_ns * 4, &ReservationKind::ALL);
        server.run_until(1000 * MS);
        for &one in reserved.iter().filter(|one| one.reservation.kind.is_hard()) {
            check_hard_bound(&server, one, longest_ns, false, &format!("seed {seed}"));
        }
    }
}

#[test]
fn a_synchronous_client_cannot_exceed_its_hard_reservation() {
    for seed in xqos_testkit::seeds(80) {
        let mut random = Random(seed);
        let longest_ns = random.one_of(&[100 * US, MS, 5 * MS]);
        let parameters = Parameters { blocking_ns: longest_ns, ..Parameters::default() };
        let mut server = Server::new(random.one_of(&PolicyKind::ALL), parameters, seed);
        server.connect(Load::backlogged(longest_ns / 4..=longest_ns));
        let mut reserved = Vec::new();
        for _ in 0..3 {
            let think_ns = random.one_of(&[1, 30 * US, 400 * US, 2 * MS]);
            let behaviour = match random.within(0..=2) {
                0 => Behaviour::Periodic { period_ns: 3 * MS + think_ns, requests: random.within(1..=9) as u32 },
                _ => Behaviour::RoundTrip { think_ns },
            };
            let client = server.connect(Load::new(behaviour, longest_ns / 9..=longest_ns));
            let period_ns = random.one_of(&[20, 25, 40, 60]) * MS;
            let budget_ns = period_ns * random.within(2..=25) / 100;
            let reservation = Reservation { budget_ns, period_ns, kind: ReservationKind::Hard };
            if server.try_reserve(client, reservation) {
                reserved.push(Reserved { client, reservation });
            }
        }
        server.run_until(1500 * MS);
        for &one in &reserved {
            check_hard_bound(&server, one, longest_ns, true, &format!("seed {seed}"));
            let share = server.service_ns(one.client, None) as f64 / server.now_ns as f64;
            let Reservation { budget_ns, period_ns, .. } = one.reservation;
            let most = (budget_ns as f64 + (2 * budget_ns + longest_ns) as f64 / 75.0) / period_ns as f64;
            assert!(share <= most + 1e-3, "seed {seed}: {one:?} has {share} of the server in the long run, not {most}");
        }
    }
}

#[test]
fn requests_longer_than_the_period_are_paid_back_and_no_more() {
    // Each request of 25 ms uses 8 1/3 budgets, and 2 1/2 periods pass while it is served.
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 1);
    server.connect(Load::backlogged(100 * US..=100 * US));
    let client = server.connect(Load::backlogged(25 * MS..=25 * MS));
    assert!(
        server.try_reserve(client, Reservation { budget_ns: 3 * MS, period_ns: 10 * MS, kind: ReservationKind::Hard })
    );
    server.run_until(10 * SECOND);
    let (got_ns, due_ns) = (server.service_ns(client, None), 3 * SECOND);
    assert!(
        got_ns.abs_diff(due_ns) <= 2 * 25 * MS,
        "a hard reservation of 30 % got {got_ns} ns of 10 s, not {due_ns} give or take two requests"
    );
}

#[test]
fn a_hard_reservation_does_not_make_up_for_a_stall() {
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 1);
    let others = server.connect(Load::backlogged(100 * US..=100 * US));
    let client = server.connect(Load::backlogged(100 * US..=100 * US));
    let reservation = Reservation { budget_ns: 5 * MS, period_ns: 10 * MS, kind: ReservationKind::Hard };
    assert!(server.try_reserve(client, reservation));
    server.run_until(100 * MS);
    server.stall(10 * SECOND);
    server.run_until(12 * SECOND);
    check_hard_bound(&server, Reserved { client, reservation }, 100 * US, false, "a stall of 10 s");
    // The reserved client is served first for at most (1 + 1) Q plus one request.
    let waited_ns = server.longest_wait_ns(others) - 10 * SECOND;
    assert!(waited_ns <= 15 * MS, "best effort waits {waited_ns} ns after the stall, not 1 - U of the time");
}

#[test]
fn a_soft_reservation_does_not_make_up_for_a_stall() {
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 1);
    let others = server.connect(Load::backlogged(100 * US..=100 * US));
    let client = server.connect(Load::backlogged(100 * US..=100 * US));
    assert!(
        server.try_reserve(client, Reservation { budget_ns: 5 * MS, period_ns: 10 * MS, kind: ReservationKind::Soft })
    );
    server.run_until(100 * MS);
    server.stall(10 * SECOND);
    server.run_until(12 * SECOND);
    let waited_ns = server.longest_wait_ns(others) - 10 * SECOND;
    assert!(waited_ns <= 20 * MS, "best effort waits {waited_ns} ns after the stall, not 1 - U of the time");
}

#[test]
fn best_effort_keeps_the_time_that_reservations_leave() {
    for seed in xqos_testkit::seeds(60) {
        let mut random = Random(seed ^ 0xe);
        let longest_ns = random.one_of(&[100 * US, 500 * US, MS]);
        let (mut server, reserved) =
            loaded_server(seed, 8, longest_ns, longest_ns, &[ReservationKind::Soft, ReservationKind::Hard]);
        server.run_until(1000 * MS);
        let reserved_ns: u64 = reserved.iter().map(|one| server.service_ns(one.client, Some(Mode::Reserved))).sum();
        let total_ns: u64 = server.runs.iter().map(|run| run.end_ns - run.start_ns).sum();
        let admitted = f64::from(server.scheduler.admitted_utilization_ppm()) / 1e6;
        // The last period of each reservation may have begun with its whole budget and ended with an excess.
        let edges_ns: u64 = reserved.iter().map(|one| one.reservation.budget_ns + longest_ns).sum();
        let most_ns = (admitted * server.now_ns as f64) as u64 + edges_ns;
        assert!(reserved_ns <= most_ns, "seed {seed}: reservations used {reserved_ns} ns, {most_ns} ns were admitted");
        assert!(total_ns >= server.now_ns - 3 * longest_ns, "seed {seed}: the server idles although clients are ready");
    }
}

#[test]
fn the_papers_soft_rule_gives_a_busy_client_all_time_left_by_reservations() {
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 1);
    let best_effort = server.connect(Load::backlogged(100 * US..=100 * US));
    let mut reserve = |kind| {
        let client = server.connect(Load::backlogged(100 * US..=100 * US));
        let reservation = Reservation { budget_ns: 2 * MS, period_ns: 10 * MS, kind };
        assert!(server.try_reserve(client, reservation));
        Reserved { client, reservation }
    };
    let all = [ReservationKind::Hard, ReservationKind::Soft, ReservationKind::SoftPaper].map(&mut reserve);
    server.run_until(SECOND);
    check_budgets_are_given(&server, &all, 100 * US, 1);
    let got_ms = |client| server.service_ns(client, None).div_ceil(MS);
    assert_eq!((got_ms(all[0].client), got_ms(all[1].client)), (200, 200));
    assert_eq!((got_ms(all[2].client), got_ms(best_effort)), (600, 0), "above best effort, even beyond its budget");
}

#[test]
fn arrival_with_just_its_bandwidth_left_begins_a_new_period() {
    for (arrival_ms, deadline_ms) in [(3, 8), (4, 12), (8, 16), (9, 17)] {
        let (client, at) = (ClientId(1), |ms: u64| Time(ms * MS));
        let mut scheduler = Scheduler::new(PolicyKind::Fair, Parameters::default());
        scheduler.handle(at(0), Fact::Connected { client, descriptor: 11 });
        scheduler
            .handle(
                at(0),
                Fact::Reserve {
                    holder: client.into(),
                    reservation: Reservation { budget_ns: 4 * MS, period_ns: 8 * MS, kind: ReservationKind::Soft },
                },
            )
            .admission();
        scheduler.handle(at(0), Fact::Arrived { client });
        scheduler.decide(at(0));
        let (start, end) = (at(0), at(2));
        scheduler.handle(end, Fact::Served(Service { requests: 1, ..Service::new(client, start, end) }));
        scheduler.handle(at(arrival_ms), Fact::Arrived { client });
        let deadline = scheduler.reservation(client).map(|state| state.deadline);
        assert_eq!(deadline, Some(at(deadline_ms)), "2 ms of 4 in 8 are left, and it arrives at {arrival_ms} ms");
    }
}
