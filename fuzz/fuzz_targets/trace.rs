// SPDX-License-Identifier: MIT
//! Reads random bytes as a trace file, as records and as a scheduler's snapshot, each with all of its readers.
//!
//! Nothing may panic, and written records must be read back unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xqos_abi::trace::{Event, Words};
use xqos_core::{Fact, FactOutcome, Scheduler, Time};
use xqos_sim::check::Check;
use xqos_sim::workload::Workload;
use xqos_trace::export::{csv, page, perfetto};
use xqos_trace::file::{Header, Trace, pack, pack_header};
use xqos_trace::model::Model;
use xqos_trace::names::Names;
use xqos_trace::show;
use xqos_trace::wire::Wire;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(trace) = Trace::from_bytes(bytes.to_vec()) {
        take(&trace.events().take(10_000).collect::<Vec<_>>());
    }
    let words: Vec<u64> = bytes.chunks_exact(8).map(|eight| u64::from_le_bytes(eight.try_into().unwrap())).collect();
    let records: Vec<Words> = words.chunks_exact(4).map(|four| four.try_into().unwrap()).collect();
    let mut file = pack_header(&Header::default()).unwrap();
    file.extend(pack(&records).unwrap());
    let again: Vec<Words> = Trace::from_bytes(file).unwrap().records().collect();
    assert_eq!(again, records, "records are read as they were written");
    take(&records.into_iter().filter_map(Event::decode).collect::<Vec<_>>());
    if let Some(mut scheduler) = Scheduler::restore(&words) {
        scheduler.verify();
        while scheduler.handle(Time(1 << 40), Fact::Replenish) != FactOutcome::None {}
        scheduler.decide(Time(1 << 40));
    }
});

fn take(events: &[Event]) {
    let names = Names::default();
    let (mut model, mut check) = (Model::new(), Check::default());
    for event in events {
        if let Some(burst) = model.take(event) {
            show::burst(&burst, &model, &names);
        }
        check.take(event);
        show::line(event, &model, &names);
    }
    let each = || events.iter().copied();
    csv::write(each(), &names, &mut Vec::new()).unwrap();
    perfetto::write(each(), &names, &Wire::default(), &mut Vec::new()).unwrap();
    page::render(&Header::default(), each(), &names, page::Additions::default()).unwrap();
    Workload::of_events(each());
}
