// SPDX-License-Identifier: MIT
//! Best effort: no client starves, SYNC priorities are strict, and busy clients do not delay a client with little work.

use crate::server::{Behaviour, Load, MS, SECOND, Server, US};
use xqos_core::{Choice, ClientId, Fact, Mode, Parameters, PolicyKind, Reservation, ReservationKind, Time};
use xqos_testkit::Random;

/// All policies except two: `fixed` starves clients by design, and under `stock` the server chooses.
const STARVE_NOBODY: [PolicyKind; 3] = [PolicyKind::Classic, PolicyKind::Smart, PolicyKind::Fair];

fn random_behaviour(random: &mut Random) -> Behaviour {
    match random.within(0..=2) {
        0 => Behaviour::Backlogged,
        // Round trips on the same machine or a local network, so that several such clients keep the server busy.
        1 => Behaviour::RoundTrip { think_ns: random.within(10 * US..=4 * MS) },
        _ => {
            Behaviour::Periodic { period_ns: random.within(20 * MS..=100 * MS), requests: random.within(1..=9) as u32 }
        }
    }
}

/// Checks that no client waited longer than `rounds` turns of all clients, plus the time for reservations in between.
fn check_waits(server: &Server, clients: &[ClientId], longest_ns: u64, rounds: u64, setup: &str) {
    let turn_ns =
        server.scheduler.parameters().maximum_slice_ns.max(server.scheduler.parameters().slice_ns) + longest_ns;
    let left_ppm = 1_000_000 - u64::from(server.scheduler.admitted_utilization_ppm());
    let bound_ns = rounds * clients.len() as u64 * turn_ns * 1_000_000 / left_ppm;
    for &client in clients {
        let waited_ns = server.longest_wait_ns(client);
        assert!(
            waited_ns <= bound_ns,
            "{setup}, policy {}: {client:?} waited {waited_ns} ns among {} clients, the bound is {bound_ns} ns",
            server.scheduler.policy().name(),
            clients.len()
        );
    }
}

#[test]
fn ready_client_is_served_within_a_few_rounds() {
    for seed in xqos_testkit::seeds(60) {
        for policy in STARVE_NOBODY {
            let mut random = Random(seed);
            let mut server = Server::new(policy, Parameters::default(), seed);
            let longest_ns = random.one_of(&[300 * US, 2 * MS, 8 * MS]);
            let mut clients = vec![server.connect(Load::backlogged(20 * US..=longest_ns))];
            for _ in 0..random.within(1..=7) {
                let behaviour = random_behaviour(&mut random);
                clients.push(server.connect(Load::new(behaviour, 20 * US..=longest_ns)));
            }
            server.run_until(1500 * MS);
            // A pass of `classic` has 4 KB of requests per client: many turns of ten requests.
            let rounds = if policy == PolicyKind::Classic { 60 } else { 3 };
            check_waits(&server, &clients, longest_ns, rounds, &format!("seed {seed}"));
        }
    }
}

#[test]
fn synchronous_clients_do_not_starve_a_busy_one() {
    // Three clients with 2 ms requests keep the server busy, but none of them uses a whole slice without a break.
    for policy in STARVE_NOBODY {
        let mut server = Server::new(policy, Parameters::default(), 1);
        let mut clients = vec![server.connect(Load::backlogged(100 * US..=100 * US))];
        for _ in 0..3 {
            clients.push(server.connect(Load::new(Behaviour::RoundTrip { think_ns: 100 * US }, 2 * MS..=2 * MS)));
        }
        server.run_until(5 * SECOND);
        check_waits(&server, &clients, 2 * MS, 3, "three clients of round trips");
    }
}

/// The six that pause stay at the base priority of `smart`, and together they demand more than the whole server.
fn one_busy_and_six_that_pause(policy: PolicyKind) -> (Server, ClientId) {
    let mut server = Server::new(policy, Parameters::default(), 1);
    let busy = server.connect(Load::backlogged(100 * US..=100 * US));
    for _ in 0..6 {
        server.connect(Load::new(Behaviour::RoundTrip { think_ns: 11 * MS }, 4 * MS..=4 * MS));
    }
    server.run_until(20 * SECOND);
    (server, busy)
}

#[test]
fn smart_strict_serves_a_client_only_while_none_of_higher_priority_is_ready() {
    let (server, busy) = one_busy_and_six_that_pause(PolicyKind::SmartStrict);
    let share = server.service_ns(busy, None) as f64 / server.now_ns as f64;
    assert!(share < 0.01, "the paper's rule starves the busy client: it has {share} of the server");
}

#[test]
fn clients_that_pause_between_turns_do_not_starve_a_busy_one() {
    for policy in STARVE_NOBODY {
        let (server, busy) = one_busy_and_six_that_pause(policy);
        let waited_ns = server.longest_wait_ns(busy);
        // Bound under `smart`: 20 levels of 50 ms each, plus the slices in between.
        let bound_ns = if policy == PolicyKind::Smart { 1100 * MS } else { 60 * MS };
        assert!(waited_ns <= bound_ns, "policy {}: the busy client waited {waited_ns} ns", policy.name());
        let share = server.service_ns(busy, None) as f64 / server.now_ns as f64;
        assert!(share >= 0.5 / 7.0, "policy {}: the busy one of seven has {share} of the server", policy.name());
    }
}

#[test]
fn greedy_soft_reservations_starve_no_client() {
    for seed in xqos_testkit::seeds(40) {
        for policy in STARVE_NOBODY {
            let mut random = Random(seed);
            let longest_ns = random.one_of(&[100 * US, 900 * US]);
            let parameters = Parameters { blocking_ns: longest_ns, ..Parameters::default() };
            let mut server = Server::new(policy, parameters, seed);
            let clients: Vec<ClientId> =
                (0..random.within(2..=5)).map(|_| server.connect(Load::backlogged(20 * US..=longest_ns))).collect();
            let mut everybody = clients.clone();
            for _ in 0..4 {
                let client = server.connect(Load::backlogged(20 * US..=longest_ns));
                let period_ns = random.one_of(&[10, 20, 40]) * MS;
                let budget_ns = period_ns * random.within(10..=80) / 100;
                server.try_reserve(client, Reservation { budget_ns, period_ns, kind: ReservationKind::Soft });
                everybody.push(client);
            }
            server.run_until(1500 * MS);
            let rounds = if policy == PolicyKind::Classic { 60 } else { 4 };
            check_waits(&server, &everybody, longest_ns, rounds, &format!("seed {seed}, soft reservations"));
            let reserved_ns: u64 = everybody.iter().map(|&id| server.service_ns(id, Some(Mode::Reserved))).sum();
            let admitted_ns = u64::from(server.scheduler.admitted_utilization_ppm()) * server.now_ns / 1_000_000;
            assert!(reserved_ns <= admitted_ns + 4 * 40 * MS, "seed {seed}: best effort has less than 1 - U");
        }
    }
}

#[test]
fn a_soft_reservation_never_reduces_its_clients_share() {
    // The small budget is depleted in each period, but the client must still get at least an equal share.
    for policy in [PolicyKind::Classic, PolicyKind::Smart, PolicyKind::Fair, PolicyKind::Fixed] {
        let mut server = Server::new(policy, Parameters::default(), 1);
        let clients = [(); 5].map(|()| server.connect(Load::backlogged(200 * US..=400 * US)));
        let reservation = Reservation { budget_ns: 500 * US, period_ns: 10 * MS, kind: ReservationKind::Soft };
        assert!(server.try_reserve(clients[4], reservation));
        server.run_until(5 * SECOND);
        let share = server.service_ns(clients[4], None) as f64 / server.now_ns as f64;
        assert!(
            share >= 0.19,
            "policy {}: a client with a soft reservation of 5 % has {share} of the server, its four peers a fifth and more",
            policy.name()
        );
    }
}

#[test]
fn stock_lets_the_server_choose_except_for_reserved_clients() {
    let mut server = Server::new(PolicyKind::Stock, Parameters::default(), 1);
    let busy = server.connect(Load::backlogged(100 * US..=200 * US));
    let reserved = server.connect(Load::new(Behaviour::RoundTrip { think_ns: 2 * MS }, 100 * US..=100 * US));
    server.run_until(100 * MS);
    assert!(server.slices.iter().all(|slice| slice.choice == Choice::Server));
    assert!(
        server.try_reserve(reserved, Reservation { budget_ns: MS, period_ns: 10 * MS, kind: ReservationKind::Soft })
    );
    server.slices.clear();
    server.run_until(200 * MS);
    for slice in &server.slices {
        let expected = matches!(slice.choice, Choice::Server | Choice::Client(_, Mode::Reserved));
        assert!(expected, "stock must leave the choice to the server, but chose {:?}", slice.choice);
    }
    let longest_ns = server.responses_ns(reserved)[30..].iter().copied().max().unwrap_or(0);
    assert!(
        longest_ns <= 300 * US,
        "a response of the reserved client took {longest_ns} ns, more than the request in progress and its own"
    );
    assert!(server.service_ns(busy, None) > 150 * MS);
}

#[test]
fn no_client_is_picked_while_one_of_higher_sync_priority_is_ready() {
    for seed in xqos_testkit::seeds(60) {
        for policy in [PolicyKind::Classic, PolicyKind::Smart, PolicyKind::Fair, PolicyKind::Fixed] {
            let mut random = Random(seed);
            let mut server = Server::new(policy, Parameters::default(), seed);
            let mut priorities = std::collections::BTreeMap::new();
            for _ in 0..6 {
                let behaviour = random_behaviour(&mut random);
                let client = server.connect(Load::new(behaviour, 20 * US..=random.one_of(&[100 * US, 2 * MS])));
                let priority = random.one_of(&[-7, 0, 0, 10, i32::MAX]);
                server.scheduler.handle(Time(0), Fact::SyncPriority { client, priority });
                priorities.insert(client, priority);
            }
            while server.now_ns < 300 * MS {
                let before = server.runs.len();
                server.run_until(server.now_ns + 1);
                let Some(run) = server.runs.get(before) else { continue };
                // Find a client with a request that arrived before the slice began and was served later.
                let passed_over = priorities.iter().find(|&(&other, &priority)| {
                    priority > priorities[&run.client] && server.had_work_at(other, run.start_ns)
                });
                assert_eq!(passed_over, None, "seed {seed}, policy {}: {run:?} was served first", policy.name());
            }
        }
    }
}

/// Twelve busy clients with cheap requests, and a client with the load `light`.
fn twelve_hogs(seed: u64, light: Load, hog_cost_ns: u64) -> (Server, ClientId) {
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), seed);
    for _ in 0..12 {
        server.connect(Load::backlogged(hog_cost_ns / 4..=hog_cost_ns));
    }
    let light = server.connect(light);
    (server, light)
}

#[test]
fn a_light_client_among_twelve_hogs_waits_only_for_the_running_request() {
    for seed in xqos_testkit::seeds(30) {
        let behaviour = Behaviour::Periodic { period_ns: 10 * MS, requests: 1 };
        // This client starts after the first round of the busy clients, when they have all paid the same.
        let light = Load { start_ns: 100 * MS, ..Load::new(behaviour, 200 * US..=300 * US) };
        let (mut server, light) = twelve_hogs(seed, light, 60 * US);
        server.run_until(5 * SECOND);
        let responses_ns = server.responses_ns(light);
        assert!(responses_ns.len() >= 490, "seed {seed}: only {} requests of the light client", responses_ns.len());
        let longest_ns = responses_ns.into_iter().max().unwrap_or(0);
        assert!(longest_ns <= (300 + 60) * US, "seed {seed}: a response took {longest_ns} ns among cheap requests");
    }
}

#[test]
fn bursts_of_a_light_client_are_served_without_interruption() {
    for seed in xqos_testkit::seeds(30) {
        let behaviour = Behaviour::Periodic { period_ns: 16 * MS, requests: 20 };
        let light = Load { start_ns: 100 * MS, noticed_every_ns: 16 * MS, ..Load::new(behaviour, 20 * US..=40 * US) };
        let (mut server, light) = twelve_hogs(seed, light, 100 * US);
        server.run_until(3 * SECOND);
        let longest_ns = server.responses_ns(light).into_iter().max().unwrap_or(0);
        assert!(longest_ns <= (20 * 40 + 100) * US, "seed {seed}: a burst of 20 requests took {longest_ns} ns");
    }
}

#[test]
fn a_limited_slice_is_respected_without_reducing_the_share() {
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 1);
    let [limited, other] = [(); 2].map(|()| server.connect(Load::backlogged(20 * US..=100 * US)));
    server.scheduler.handle(Time(0), Fact::Slice { client: limited, us: 1000 });
    server.run_until(2 * SECOND);
    let longest_ns = |client| {
        let mut slices = std::collections::BTreeMap::<_, u64>::new();
        let of_it = server.runs.iter().filter(|run| run.client == client);
        of_it.for_each(|run| *slices.entry(run.slice).or_default() += run.end_ns - run.start_ns);
        slices.into_values().max().unwrap_or(0)
    };
    assert!(longest_ns(limited) <= MS + 100 * US && longest_ns(other) > 4 * MS, "only its slices are short");
    let [got, others] = [limited, other].map(|client| server.service_ns(client, None));
    assert!(got.abs_diff(others) < 10 * MS, "{got} and {others} ns");
}
