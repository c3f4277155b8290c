// SPDX-License-Identifier: MIT
//! Serves workloads taken from traces on the simulated server.

use super::*;
use crate::workload::RequestBurst;
use xqos_core::{Fact, ReservationKind, Role, Service};

const MS: u64 = 1_000_000;

fn plan(id: u16, bursts: Vec<RequestBurst>) -> Plan {
    Plan { id: ClientId(id), identity: Vec::new(), sync_priority: 0, role: Role::NONE, bursts }
}

fn run(requests: u32, request_ns: u64) -> RequestRun {
    RequestRun { requests, request_ns, request: 1, bytes: 16 }
}

/// A busy client with 1 ms requests, and a client that draws for 1 ms and rests for 7.3 ms.
fn busy_and_light() -> Workload {
    let busy = plan(1, vec![RequestBurst { after_ns: 0, inputs: 0, runs: vec![run(2000, MS)] }]);
    let light = RequestBurst { after_ns: 7 * MS + MS / 3, inputs: 0, runs: vec![run(10, MS / 10)] };
    Workload { began: Time(MS), ended: Time(1001 * MS), plans: vec![busy, plan(2, vec![light; 100])] }
}

fn rules(policy: PolicyKind) -> Rules {
    Rules { policy, parameters: Parameters::default(), reservations: BTreeMap::new(), watches: true, part_ns: 0 }
}

fn events(workload: &Workload, rules: &Rules) -> Vec<Event> {
    let mut events = Vec::new();
    serve(workload, rules, |event| events.push(event)).unwrap();
    events
}

/// The longest response to an arrival after contention has begun.
fn longest_response_ns(events: &[Event], id: u16) -> u64 {
    let (mut since, mut longest) = (None, 0);
    for event in events.iter().filter(|event| event.at > Time(50 * MS)) {
        match event.what {
            Entry::Fact(Fact::Arrived { client }) if client.0 == id => since = Some(event.at),
            Entry::Fact(Fact::Served(Service { client, still_ready: false, .. })) if client.0 == id => {
                longest = longest.max(since.take().map_or(0, |since| event.at.since(since)));
            }
            _ => {}
        }
    }
    longest
}

#[test]
fn fair_serves_a_light_client_sooner_than_stock() {
    let workload = busy_and_light();
    let fair = longest_response_ns(&events(&workload, &rules(PolicyKind::Fair)), 2);
    assert!(fair <= 2 * MS, "{fair} ns under fair");
    let stock = longest_response_ns(&events(&workload, &rules(PolicyKind::Stock)), 2);
    assert!(stock > 5 * MS / 2, "{stock} ns under stock");
}

#[test]
fn a_light_client_waits_for_a_part_of_a_long_request() {
    let mut workload = busy_and_light();
    workload.plans[0].bursts[0].runs = vec![RequestRun { request: 70, ..run(100, 17 * MS) }];
    let whole = longest_response_ns(&events(&workload, &rules(PolicyKind::Fair)), 2);
    assert!(whole > 5 * MS, "{whole} ns with whole requests");
    let cut = Rules { part_ns: MS / 4, ..rules(PolicyKind::Fair) };
    let events_cut = events(&workload, &cut);
    let in_parts = longest_response_ns(&events_cut, 2);
    assert!(in_parts <= MS + MS / 4, "{in_parts} ns with requests in parts");
    // No work is lost, and none is done twice.
    let served = |events: &[Event]| {
        let of_busy = events.iter().filter_map(|event| match event.what {
            Entry::Fact(Fact::Served(service)) if service.client.0 == 1 => Some(service),
            _ => None,
        });
        of_busy
            .map(|service| (service.end.since(service.start), u64::from(service.requests)))
            .fold((0, 0), |(ns, count), (more, requests)| (ns + more, count + requests))
    };
    let (ns, requests) = served(&events_cut);
    assert!(requests * 17 * MS >= ns && ns + 17 * MS > requests * 17 * MS, "{requests} requests in {ns} ns");
}

#[test]
fn the_same_workload_gives_the_same_records() {
    let workload = busy_and_light();
    for policy in PolicyKind::ALL {
        assert_eq!(events(&workload, &rules(policy)), events(&workload, &rules(policy)));
    }
}

#[test]
fn a_simulated_trace_reproduces_its_workload() {
    let workload = busy_and_light();
    let reread = Workload::of_events(events(&workload, &rules(PolicyKind::Fair)));
    let sum = |bursts: &[RequestBurst]| -> u64 {
        bursts.iter().flat_map(|burst| &burst.runs).map(|run| run.request_ns * u64::from(run.requests)).sum()
    };
    assert_eq!(reread.plans.len(), 2);
    let light = reread.plans.iter().find(|plan| plan.id == ClientId(2)).unwrap();
    assert!((80..=100).contains(&light.bursts.len()), "{} bursts", light.bursts.len());
    assert!(light.bursts.iter().all(|burst| burst.after_ns == 7 * MS + MS / 3));
    assert_eq!(sum(&light.bursts), light.bursts.len() as u64 * MS);
}

#[test]
fn a_hard_reservation_is_not_exceeded() {
    let workload = busy_and_light();
    let mut rules = rules(PolicyKind::Fair);
    let reservation = Reservation { budget_ns: 3 * MS, period_ns: 10 * MS, kind: ReservationKind::Hard };
    rules.reservations.insert(0, reservation);
    let mut busy_ns = 0;
    serve(&workload, &rules, |event| {
        if let Entry::Fact(Fact::Served(Service { client: ClientId(1), start, .. })) = event.what {
            busy_ns += event.at.since(start);
        }
    })
    .unwrap();
    assert!((290 * MS..=304 * MS).contains(&busy_ns), "{busy_ns} ns in a second");
    let too_much = Reservation { budget_ns: 99 * MS, period_ns: 100 * MS, kind: ReservationKind::Hard };
    rules.reservations.insert(0, too_much);
    assert_eq!(serve(&workload, &rules, |_| {}), Err(Refused::Admission(0)));
}

/// A load that uses `percent` of the server: a batch of 0.2 ms requests per frame, two clients with occasional output,
/// and one that waits for replies.
fn everyday(percent: u64) -> Workload {
    let cycle = |every_ns: u64, part: u64, requests: u32| {
        let busy_ns = every_ns * percent * part / 10_000;
        let length_ns = (busy_ns / u64::from(requests)).max(1);
        // Vary the rests, so that clients do not run in step.
        let rest = |nth: u64| every_ns.saturating_sub(busy_ns) + (nth * 7919 % 1000) * every_ns / 10_000;
        (0..10_000_000_000 / every_ns)
            .map(|nth| RequestBurst { after_ns: rest(nth), inputs: 0, runs: vec![run(requests, length_ns)] })
            .collect()
    };
    let plans = vec![
        plan(1, cycle(16 * MS, 60, 40)),
        plan(2, cycle(30 * MS, 20, 30)),
        plan(3, cycle(7 * MS, 18, 10)),
        plan(4, cycle(10 * MS, 2, 1)),
    ];
    Workload { began: Time(MS), ended: Time(10_001 * MS), plans }
}

#[test]
fn an_everyday_load_is_served_as_with_the_stock_server() {
    for percent in [10, 30, 60] {
        let workload = everyday(percent);
        let [fair, stock] = [PolicyKind::Fair, PolicyKind::Stock].map(|policy| events(&workload, &rules(policy)));
        let early = fair
            .iter()
            .filter(|event| matches!(event.what, Entry::Fact(Fact::Served(Service { ended_early: true, .. }))))
            .count();
        assert!(early < 10, "{early} early ends in 10 s at {percent} %");
        for id in 1..=4 {
            let [fair, stock] = [&fair, &stock].map(|events| mean_response_ns(events, id));
            assert!(fair <= stock * 101 / 100, "client {id} at {percent} %: {fair} ns, {stock} under stock");
        }
    }
    let [fair, stock] = [PolicyKind::Fair, PolicyKind::Stock].map(|policy| events(&everyday(180), &rules(policy)));
    let [fair, stock] = [&fair, &stock].map(|events| mean_response_ns(events, 4));
    assert!(fair * 2 < stock, "under contention a light client waits for {fair} ns, {stock} under stock");
}

fn mean_response_ns(events: &[Event], id: u16) -> u64 {
    let (mut since, mut all) = (None, Vec::new());
    for event in events {
        match event.what {
            Entry::Fact(Fact::Arrived { client }) if client.0 == id => since = Some(event.at),
            Entry::Fact(Fact::Served(Service { client, still_ready: false, .. })) if client.0 == id => {
                all.extend(since.take().map(|since| event.at.since(since)));
            }
            _ => {}
        }
    }
    all.iter().sum::<u64>() / all.len() as u64
}
