// SPDX-License-Identifier: MIT
//! A scheduler restored from a snapshot makes the same decisions as the original.

mod operations;

use operations::{CLIENTS, Op, config, report, sequence};
use proptest::prelude::*;
use xqos_core::{Choice, ClientId, Fact, FactOutcome, Parameters, PolicyKind, Scheduler, Service, Slice, Time};

/// Applies one operation. Returns its outcomes and its slice.
fn apply(scheduler: &mut Scheduler, op: Op, now: &mut Time) -> (Vec<FactOutcome>, Option<Slice>) {
    let serve = |scheduler: &mut Scheduler, client: ClientId, now: &mut Time, length_ns, requests, still_ready| {
        let (start, end) = (*now, now.after(length_ns));
        let service = Service { requests, bytes: 8, still_ready, ..Service::new(client, start, end) };
        *now = end;
        scheduler.handle(end, Fact::Served(service))
    };
    match op {
        Op::Tell(Fact::Replenish) => (replenish(scheduler, *now), None),
        Op::Tell(Fact::Parameters(mut parameters)) => {
            // Another test covers limits below the utilization already admitted.
            let admitted_ppm = scheduler.admitted_utilization_ppm();
            parameters.max_utilization_ppm = parameters.max_utilization_ppm.max(admitted_ppm);
            (vec![scheduler.handle(*now, Fact::Parameters(parameters))], None)
        }
        Op::Tell(fact) => (vec![scheduler.handle(*now, fact)], None),
        Op::Decide => (replenish(scheduler, *now), scheduler.decide(*now)),
        Op::TimePasses { ns } => {
            *now = now.after(ns);
            (Vec::new(), None)
        }
        Op::ServeUnchosen { client, length_ns } => (vec![serve(scheduler, client, now, length_ns, 1, false)], None),
        Op::DecideAndServe { length_ns, requests, still_ready, index } => {
            let told = replenish(scheduler, *now);
            let slice = scheduler.decide(*now);
            let chosen = match slice.map(|slice| slice.choice) {
                Some(Choice::Client(client, _)) => Some(client),
                Some(Choice::Server) => servers_choice(scheduler, index),
                None => None,
            };
            if let Some(client) = chosen {
                serve(scheduler, client, now, length_ns, requests, still_ready);
            }
            (told, slice)
        }
    }
}

fn servers_choice(scheduler: &Scheduler, index: usize) -> Option<ClientId> {
    let may_run = |id: &ClientId| scheduler.grab().is_none_or(|holder| holder == *id) && !scheduler.is_held_back(*id);
    let ready: Vec<ClientId> = (0..CLIENTS).map(ClientId).filter(|id| scheduler.is_ready(*id) && may_run(id)).collect();
    ready.get(index % ready.len().max(1)).copied()
}

fn replenish(scheduler: &mut Scheduler, now: Time) -> Vec<FactOutcome> {
    std::iter::from_fn(|| Some(scheduler.handle(now, Fact::Replenish)).filter(|outcome| *outcome != FactOutcome::None))
        .collect()
}

fn check(policy: PolicyKind, ops: &[Op]) {
    let mut scheduler = Scheduler::new(policy, Parameters::default());
    let mut now = Time(1_000_000_000);
    let (before, after) = ops.split_at(ops.len() / 2);
    for &op in before {
        apply(&mut scheduler, op, &mut now);
    }
    let mut restored = Scheduler::restore(&scheduler.snapshot()).expect("the snapshot is valid");
    restored.verify();
    let mut time_of_restored = now;
    for &op in after {
        let expected = apply(&mut scheduler, op, &mut now);
        assert_eq!(apply(&mut restored, op, &mut time_of_restored), expected, "the outcome of {op:?}");
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn a_restored_scheduler_decides_like_the_original((policy, ops) in sequence(200)) {
        report(|| check(policy, &ops))?;
    }
}
