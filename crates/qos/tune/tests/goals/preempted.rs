// SPDX-License-Identifier: MIT
//! Too few processors: the kernel runs other programs during slices, so a slice is longer than its demand.

use crate::load::{MS, SECOND, US};
use xqos_abi::trace::{Entry, Event, Reason};
use xqos_core::{ClientId, Fact, Mode, Service, Time};
use xqos_testkit::Random;
use xqos_trace::model::Model;
use xqos_tune::{Burst, ClientAnalysis, RhythmState};

const BEGAN: u64 = SECOND;
const FRAME: u64 = 40 * MS;

/// A video for which the server works `work_ns` per frame, as a trace records it. Other programs use the server's
/// processor for up to `stolen_ns` in between.
fn film(work_ns: u64, stolen_ns: u64, seconds: u64) -> Vec<Burst> {
    let (client, mut random, mut model) = (ClientId(1), Random(7), Model::without_causes());
    let mut bursts = Vec::new();
    for start in (0..seconds * 25).map(|frame| Time(BEGAN + frame * FRAME)) {
        let end = start.after(work_ns + random.below_u64(stolen_ns));
        let (mode, reason, until) = (Mode::BestEffort, Reason::Policy, Time::NEVER);
        let dispatch = Entry::Dispatch { client: Some(client), mode, reason, until, requests: 0, bytes: 0 };
        let service = Service { requests: 1, last_request: 72, bytes: 40, ..Service::new(client, start, end) };
        let served = Entry::Fact(Fact::Served(service));
        let processor = Entry::Processor { client, ns: work_ns };
        let arrived = Entry::Fact(Fact::Arrived { client });
        for (at, what) in [(start, arrived), (start, dispatch), (end, processor), (end, served)] {
            let burst = model.take(&Event { at, what });
            bursts.extend(burst.map(|burst| Burst {
                start: burst.activation,
                end: burst.end,
                served_ns: burst.worked_ns,
            }));
        }
    }
    bursts
}

fn watched(bursts: &[Burst]) -> ClientAnalysis {
    let mut client = ClientAnalysis::default();
    bursts.iter().for_each(|&burst| client.take(burst));
    client
}

#[test]
fn preempted_slices_have_the_same_demand() {
    for work_ns in [200 * US, 3 * MS] {
        let (alone, beside) = (watched(&film(work_ns, 0, 8)).report(), watched(&film(work_ns, 25 * MS, 8)).report());
        assert_eq!((alone.state, beside.state), (RhythmState::Periodic, RhythmState::Periodic), "{beside:?}");
        assert_eq!((beside.mean_ns, beside.need), (alone.mean_ns, alone.need), "{work_ns} ns of work in a frame");
    }
    assert_eq!(watched(&film(200 * US, 25 * MS, 8)).need(), None, "half a percent of the server needs no reservation");
}

#[test]
fn a_client_with_a_long_burst_is_not_silent() {
    let bursts = film(3 * MS, 0, 3);
    let last = bursts[bursts.len() - 1].end;
    let (mut waits, mut rests) = (watched(&bursts), watched(&bursts));
    for now in (0..50).map(|step| last.after(step * 100 * MS)) {
        waits.works(now);
        waits.advance(now);
        rests.advance(now);
    }
    assert_eq!((waits.report().state, rests.report().state), (RhythmState::Periodic, RhythmState::Silent));
    assert!(waits.need().is_some() && rests.need().is_none());
}
