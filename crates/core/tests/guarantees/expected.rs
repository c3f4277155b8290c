//! Expected clients: one that comes regularly finds nothing begun, and what the others lose to that is bounded.

use crate::server::{Behaviour, Load, MS, SECOND, Server, US};
use xqos_core::{ClientId, Parameters, PolicyKind, Reservation};

const REQUEST_NS: u64 = 150 * US;

/// Twelve busy clients, and a reserved one that behaves so, after ten seconds.
fn beside_twelve(policy: PolicyKind, behaviour: Behaviour) -> (Server, ClientId) {
    let mut server = Server::new(policy, Parameters::default(), 7);
    for _ in 0..12 {
        server.connect(Load::backlogged(REQUEST_NS - 10 * US..=REQUEST_NS));
    }
    let client = server.connect(Load { start_ns: 5 * MS, ..Load::new(behaviour, 100 * US..=120 * US) });
    assert!(server.try_reserve(client, Reservation { budget_ns: 3 * MS, period_ns: 10 * MS, hard: false }));
    server.run_until(10 * SECOND);
    (server, client)
}

/// Of the client's requests in the second half, the part that waited for longer than half a request.
fn late_part(server: &Server, client: ClientId) -> f64 {
    let runs: Vec<_> = server.runs.iter().filter(|run| run.client == client && run.arrived_ns > 5 * SECOND).collect();
    let late = runs.iter().filter(|run| run.start_ns - run.arrived_ns > REQUEST_NS / 2).count();
    late as f64 / runs.len() as f64
}

#[test]
fn regular_client_finds_nothing_begun_and_the_others_lose_little() {
    for policy in [PolicyKind::Fair, PolicyKind::Smart, PolicyKind::Fixed] {
        for behaviour in [
            Behaviour::Periodic { period_ns: 10 * MS, requests: 1 },
            Behaviour::RoundTrip { think_ns: 9 * MS },
            Behaviour::Periodic { period_ns: 40 * MS, requests: 1 },
        ] {
            let (server, client) = beside_twelve(policy, behaviour);
            let late = late_part(&server, client);
            assert!(late < 0.02, "{policy:?} {behaviour:?}: {late} of its requests waited");
            let held = server.held_ns as f64 / server.now_ns as f64;
            assert!(held > 0.0 && held < 0.05, "{policy:?} {behaviour:?}: the server was kept idle for {held}");
        }
    }
}

#[test]
fn client_that_comes_too_often_to_be_worth_it_is_not_expected() {
    let (server, client) = beside_twelve(PolicyKind::Fair, Behaviour::Periodic { period_ns: MS, requests: 1 });
    assert_eq!(server.held_ns, 0);
    assert!(late_part(&server, client) > 0.2, "then it waits for the request that runs");
}

#[test]
fn client_that_stops_coming_is_waited_for_once() {
    let (mut server, client) = beside_twelve(PolicyKind::Fair, Behaviour::Periodic { period_ns: 10 * MS, requests: 1 });
    server.silence(client);
    let before_ns = server.held_ns;
    server.run_until(20 * SECOND);
    assert!(server.held_ns - before_ns < MS, "{} ns of waiting for nobody", server.held_ns - before_ns);
}
