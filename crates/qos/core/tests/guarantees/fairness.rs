// SPDX-License-Identifier: MIT
//! `fair`: the payments of busy clients stay close together, whatever their requests cost and whatever events occur.
//!
//! Normalised service is server time * 100 / weight. A client is picked when it has paid least, and then pays for a
//! slice and at most one more request (a step). Two clients that are busy from the start are therefore never further
//! apart than one step, and in any interval the difference changes by at most the sum of their steps.

use crate::server::{Behaviour, Load, MS, Run, SECOND, Server, US};
use xqos_core::{ClientId, Fact, GroupId, Parameters, PolicyKind, Reservation, ReservationKind, Time};
use xqos_testkit::Random;

#[derive(Clone, Copy, Debug)]
struct Busy {
    client: ClientId,
    weight: u32,
    longest_ns: u64,
}

impl Busy {
    /// The step of this client: the price of a slice and a request at its weight.
    fn step(&self, slice_ns: u64) -> i64 {
        ((slice_ns + self.longest_ns) * 100 / u64::from(self.weight)) as i64
    }
}

/// Busy clients with random costs and weights, and some that connect and disconnect.
fn busy_server(seed: u64, noticed: bool) -> (Server, Vec<Busy>) {
    let mut random = Random(seed);
    let slice_ns = random.one_of(&[MS, 5 * MS, 20 * MS]);
    let mut server = Server::new(PolicyKind::Fair, Parameters { slice_ns, ..Parameters::default() }, seed);
    let mut busy = Vec::new();
    for _ in 0..random.within(2..=6) {
        let longest_ns = random.one_of(&[20 * US, 200 * US, MS, 9 * MS]);
        let noticed_every_ns = if noticed { random.one_of(&[0, 700 * US, 4 * MS, 16 * MS]) } else { 0 };
        let load = Load { noticed_every_ns, ..Load::backlogged(longest_ns / 5..=longest_ns) };
        let (client, weight) = (server.connect(load), random.one_of(&[10, 50, 100, 100, 200, 1000]));
        server.scheduler.handle(Time(0), Fact::Weight { holder: client.into(), weight });
        busy.push(Busy { client, weight, longest_ns });
    }
    for _ in 0..random.within(0..=3) {
        let behaviour = match random.within(0..=1) {
            0 => Behaviour::RoundTrip { think_ns: random.within(50 * US..=5 * MS) },
            _ => Behaviour::Periodic { period_ns: random.within(4 * MS..=30 * MS), requests: 3 },
        };
        server.connect(Load::new(behaviour, 50 * US..=400 * US));
    }
    (server, busy)
}

/// The smallest and largest difference of the normalised service of `a` and `b` at the end of any slice.
fn extremes_of_drift(server: &Server, a: Busy, b: Busy) -> (i64, i64) {
    let (mut service_ns, mut extremes) = ([0; 2], (0, 0));
    for (place, run) in server.runs.iter().enumerate() {
        let Some(which) = [a, b].iter().position(|busy| busy.client == run.client) else { continue };
        service_ns[which] += run.end_ns - run.start_ns;
        if server.runs.get(place + 1).is_none_or(|next| next.slice != run.slice) {
            let paid = |service_ns, busy: Busy| (service_ns * 100 / u64::from(busy.weight)) as i64;
            let drift = paid(service_ns[0], a) - paid(service_ns[1], b);
            extremes = (drift.min(extremes.0), drift.max(extremes.1));
        }
    }
    extremes
}

fn check_drift(seed: u64, noticed: bool) {
    let (mut server, busy) = busy_server(seed, noticed);
    server.run_until(800 * MS);
    let slice_ns = server.scheduler.parameters().slice_ns;
    for (place, &a) in busy.iter().enumerate() {
        for &b in &busy[place + 1..] {
            let (least, greatest) = extremes_of_drift(&server, a, b);
            // Rounding adds at most one nanosecond per slice.
            let rounding = server.slices.len() as i64;
            let (ahead_a, ahead_b) = (a.step(slice_ns) + rounding, b.step(slice_ns) + rounding);
            assert!(
                greatest <= ahead_a && -least <= ahead_b,
                "seed {seed}, slice {slice_ns}: {a:?} paid up to {greatest} more than {b:?} (at most {ahead_a}), \
                 and up to {} less (at most {ahead_b})",
                -least
            );
            assert!(greatest - least <= ahead_a + ahead_b, "seed {seed}: {a:?} and {b:?} within an interval");
        }
    }
}

#[test]
fn busy_clients_never_drift_apart_by_more_than_a_slice_and_a_request() {
    for seed in 0..80 {
        check_drift(seed, false);
    }
}

#[test]
fn input_and_exposes_do_not_let_busy_clients_drift_apart() {
    for seed in 0..80 {
        check_drift(seed, true);
    }
}

#[test]
fn cheap_middling_and_costly_requests_get_equal_shares() {
    for seed in 0..10 {
        let mut server = Server::new(PolicyKind::Fair, Parameters::default(), seed);
        for cost_ns in [20 * US, 400 * US, 8 * MS] {
            server.connect(Load::backlogged(cost_ns / 2..=cost_ns));
        }
        server.run_until(10 * SECOND);
        let shares: Vec<f64> = (1..=3).map(|id| server.service_ns(ClientId(id), None) as f64).collect();
        assert!(jain(&shares) >= 0.99, "seed {seed}: Jain's index of {shares:?} is {}", jain(&shares));
    }
}

#[test]
fn weights_divide_the_server() {
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 1);
    for weight in [100, 200, 300] {
        let client = server.connect(Load::backlogged(50 * US..=900 * US));
        server.scheduler.handle(Time(0), Fact::Weight { holder: client.into(), weight });
    }
    server.run_until(12 * SECOND);
    for (id, sixths) in [(1, 1), (2, 2), (3, 3)] {
        let (got_ns, due_ns) = (server.service_ns(ClientId(id), None), sixths * 2 * SECOND);
        assert!(got_ns.abs_diff(due_ns) <= 20 * MS, "client {id} of weight {sixths}00 got {got_ns}, not {due_ns} ns");
    }
}

fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

/// Twelve connections of one program, busy or synchronous, and one connection of another program.
fn twelve_beside_one(behaviour: Behaviour, seed: u64) -> [f64; 2] {
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), seed);
    for at in 0..13 {
        let load = if at < 12 { Load::new(behaviour, 100 * US..=900 * US) } else { Load::backlogged(50 * US..=2 * MS) };
        let (client, group) = (server.connect(load), GroupId(1 + at / 12));
        server.scheduler.handle(Time(0), Fact::Group { client, group });
    }
    server.run_until(10 * SECOND);
    let of = |ids: std::ops::RangeInclusive<u16>| ids.map(|id| server.service_ns(ClientId(id), None) as f64).sum();
    [of(1..=12), of(13..=13)]
}

#[test]
fn twelve_connections_of_one_program_get_one_share() {
    for seed in 0..5 {
        for behaviour in [Behaviour::Backlogged, Behaviour::RoundTrip { think_ns: 100 * US }] {
            let shares = twelve_beside_one(behaviour, seed);
            assert!(jain(&shares) >= 0.99, "seed {seed}, {behaviour:?}: {shares:?}");
        }
    }
}

#[test]
fn within_a_group_clients_share_by_their_weights_and_groups_by_theirs() {
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 3);
    for (group, weight) in [(1, 100), (1, 300), (2, 100)] {
        let client = server.connect(Load::backlogged(50 * US..=900 * US));
        server.scheduler.handle(Time(0), Fact::Group { client, group: GroupId(group) });
        server.scheduler.handle(Time(0), Fact::Weight { holder: client.into(), weight });
    }
    for (group, weight) in [(1, 100), (2, 200)] {
        server.scheduler.handle(Time(0), Fact::Weight { holder: GroupId(group).into(), weight });
    }
    server.run_until(12 * SECOND);
    for (id, twelfths) in [(1, 1), (2, 3), (3, 8)] {
        let (got_ns, due_ns) = (server.service_ns(ClientId(id), None), twelfths * SECOND);
        assert!(got_ns.abs_diff(due_ns) <= 40 * MS, "client {id} got {got_ns}, not {due_ns} ns");
    }
}

/// Two busy clients of group 1 and one of group 2.
fn two_beside_another(policy: PolicyKind, seed: u64) -> Server {
    let mut server = Server::new(policy, Parameters::default(), seed);
    for group in [1, 1, 2] {
        let client = server.connect(Load::backlogged(50 * US..=900 * US));
        server.scheduler.handle(Time(0), Fact::Group { client, group: GroupId(group) });
    }
    server
}

#[test]
fn a_capped_group_never_exceeds_its_cap_and_others_get_the_rest() {
    for policy in [PolicyKind::Fair, PolicyKind::Smart, PolicyKind::Fixed] {
        let mut server = two_beside_another(policy, 5);
        server.scheduler.handle(Time(0), Fact::GroupCap { group: GroupId(1), ppm: 50_000 });
        server.run_until(10 * SECOND);
        let capped = server.service_ns(ClientId(1), None) + server.service_ns(ClientId(2), None);
        assert!(capped.abs_diff(SECOND / 2) < 20 * MS, "{policy:?}: {capped} ns of 500 ms");
        for period in 0..100 {
            let within = |run: &&Run| run.client != ClientId(3) && run.start_ns / (100 * MS) == period;
            let used: u64 = server.runs.iter().filter(within).map(|run| run.end_ns - run.start_ns).sum();
            assert!(used <= 2 * 5 * MS + MS, "{policy:?}: {used} ns in period {period}");
        }
        assert!(server.service_ns(ClientId(3), None) > 9 * SECOND, "{policy:?}");
    }
}

#[test]
fn a_reservation_above_the_cap_leaves_half_of_the_cap_to_the_group_and_no_debt() {
    for policy in [PolicyKind::Fair, PolicyKind::Smart, PolicyKind::Fixed] {
        let mut server = two_beside_another(policy, 7);
        let reservation = Reservation { budget_ns: 9 * MS, period_ns: 20 * MS, kind: ReservationKind::Hard };
        server.scheduler.handle(Time(0), Fact::Reserve { holder: ClientId(1).into(), reservation });
        server.scheduler.handle(Time(0), Fact::GroupCap { group: GroupId(1), ppm: 200_000 });
        server.run_until(10 * SECOND);
        let (reserved, other) = (server.service_ns(ClientId(1), None), server.service_ns(ClientId(2), None));
        assert!(reserved.abs_diff(9 * SECOND / 2) < 20 * MS, "{policy:?}: {reserved} ns of 4.5 s");
        let half_to_all = SECOND - 20 * MS..=2 * SECOND;
        assert!(half_to_all.contains(&other), "{policy:?}: {other} ns of 1 to 2 s");
        server.scheduler.handle(Time(10 * SECOND), Fact::Release { holder: ClientId(1).into() });
        server.run_until(11 * SECOND);
        let both = server.service_ns(ClientId(1), None) + server.service_ns(ClientId(2), None) - reserved - other;
        assert!(both.abs_diff(SECOND / 5) < 20 * MS, "{policy:?}: {both} ns of the second after it");
    }
}
