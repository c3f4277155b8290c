// SPDX-License-Identifier: MIT
//! A closed loop on a simulated server, as the tuner sees it live: records, derived model, bursts, advice.
//!
//! The loop is that of Manica et al. 2008, section 2: it rests for 10 ms, draws, and waits until drawing is done.

use crate::load::{Distributions, MS, SECOND, US, is_near};
use std::collections::BTreeMap;
use xqos_core::{ClientId, Parameters, PolicyKind, Reservation, Role, Time};
use xqos_sim::server::{Rules, serve};
use xqos_sim::workload::{Plan, RequestBurst, RequestRun, Workload};
use xqos_testkit::Random;
use xqos_trace::model::Model;
use xqos_tune::{Advice, Beat, ClientAnalysis, RhythmState, Room, Tuner};

const BEGAN: u64 = SECOND;

fn plan(id: u16, bursts: impl Iterator<Item = (u64, u32, u64)>) -> Plan {
    let burst = |(after_ns, requests, request_ns)| {
        let runs = vec![RequestRun { requests, request_ns, request: 1, bytes: 20 }];
        RequestBurst { after_ns, inputs: 0, runs }
    };
    let bursts = bursts.map(burst).collect();
    Plan { id: ClientId(id), identity: Vec::new(), sync_priority: 0, role: Role::default(), bursts }
}

/// The loop, with `others` clients that each send bursts of 2.7 ms.
fn workload(seconds: u64, others: u16) -> Workload {
    let mut random = Random(others.into());
    let rests: Vec<u64> = (0..seconds * 100).map(|_| 10_100 * US + 150 * US + random.below_u64(100 * US)).collect();
    let mut plans = vec![plan(1, rests.into_iter().map(|rest_ns| (rest_ns, 201, 7_500)))];
    for other in 0..others {
        let pauses: Vec<u64> = (0..seconds * 400).map(|_| random.pause(2 * MS)).collect();
        plans.push(plan(2 + other, pauses.into_iter().map(|pause_ns| (pause_ns, 30, 90 * US))));
    }
    Workload { began: Time(BEGAN), ended: Time(BEGAN + seconds * SECOND), plans }
}

/// The bursts of the first client.
fn bursts(workload: &Workload, policy: PolicyKind, reservation: Option<Reservation>) -> Vec<xqos_tune::Burst> {
    let reservations: BTreeMap<usize, Reservation> =
        reservation.map(|reservation| (0, reservation)).into_iter().collect();
    let rules = Rules { policy, parameters: Parameters::default(), reservations, watches: true, part_ns: 0 };
    let (mut model, mut bursts) = (Model::new(), Vec::new());
    let take = |event| {
        if let Some(burst) = model.take(&event).filter(|burst| burst.key == 0) {
            bursts.push(xqos_tune::Burst { start: burst.activation, end: burst.end, served_ns: burst.worked_ns });
        }
    };
    serve(workload, &rules, take).expect("it is admitted");
    bursts
}

/// The advice for the first client within two seconds, and the beat that was found.
fn advised(bursts: &[xqos_tune::Burst]) -> (Reservation, Beat) {
    let mut tuner = Tuner::default();
    tuner.add(1, Time(BEGAN));
    let room = Room { limit_ppm: 900_000, ..Room::default() };
    for burst in bursts.iter().take_while(|burst| burst.end.0 < BEGAN + 2 * SECOND) {
        tuner.take(1, *burst);
        if let Some((_, Advice::Reserve(reservation))) = tuner.advise(burst.end, &room).first() {
            let (_, report) = tuner.reports().next().unwrap();
            return (*reservation, report.beat.unwrap());
        }
    }
    panic!("nothing was advised: {:?}", tuner.reports().next())
}

fn mean_interval(bursts: &[xqos_tune::Burst]) -> f64 {
    let (first, last) = (bursts[0].end.0, bursts[bursts.len() - 1].end.0);
    (last - first) as f64 / (bursts.len() - 1) as f64
}

#[test]
fn a_loop_that_starts_on_an_idle_server_is_found() {
    let (reservation, _) = advised(&bursts(&workload(3, 0), PolicyKind::Stock, None));
    assert!(is_near(reservation.period_ns, 11.8e6, 3.0), "{reservation:?}");
    assert!(is_near(reservation.budget_ns, 1.69e6, 3.0), "{reservation:?}");
}

#[test]
fn a_loop_under_load_gets_its_idle_period() {
    let idle = mean_interval(&bursts(&workload(5, 0), PolicyKind::Stock, None));
    for policy in [PolicyKind::Stock, PolicyKind::Fair] {
        let before = bursts(&workload(5, 12), policy, None);
        let (reservation, beat) = advised(&before);
        let after = bursts(&workload(5, 12), PolicyKind::Fair, Some(reservation));
        let (before, after) = (mean_interval(&before) / idle, mean_interval(&after) / idle);
        println!("{policy:?}: {before:.3} of idle before, {after:.3} with {reservation:?}, {beat:?}");
        assert!(is_near(reservation.period_ns, 12e6, 5.0), "{reservation:?}");
        assert!(after <= 1.02, "{after} of the interval on an idle server");
    }
}

#[test]
fn a_client_without_rests_is_no_loop() {
    let mut client = ClientAnalysis::default();
    for i in 0..10_000 {
        let start = Time(BEGAN + i * 130 * US);
        client.take(xqos_tune::Burst { start, end: start.after(90 * US), served_ns: 90 * US });
    }
    assert_eq!(client.need(), None);
    assert!(matches!(client.report().state, RhythmState::Gathering | RhythmState::Aperiodic), "{:?}", client.report());
}
