// SPDX-License-Identifier: MIT
//! Decodes the Perfetto export with Perfetto's published schema.

use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use tracing_perfetto_sdk_schema::trace_packet::Data;
use tracing_perfetto_sdk_schema::track_event::{CounterValueField, NameField, Type};
use tracing_perfetto_sdk_schema::{Trace, track_descriptor};
use xqos_abi::trace::{Entry, Event, Reason};
use xqos_core::{ClientId, Fact, Mode, ReservationKind, Service, Time};
use xqos_trace::export::perfetto;
use xqos_trace::names::Names;
use xqos_trace::wire::{Message as WireMessage, Wire, WireConnection};

const MS: u64 = 1_000_000;
const CLOCK_MONOTONIC: u32 = 3;
const CLOCK_BOOTTIME: u32 = 6;

/// Two clients that take turns. The second has a reservation. At the end, processor 1 runs two threads of the second.
fn events() -> Vec<Event> {
    let mut events = Vec::new();
    let mut add = |at: u64, what| events.push(Event { at: Time(at * MS), what });
    for (id, name) in [(1, *b"x11perf\0\0\0\0\0\0\0\0\0"), (2, *b"mpv\0\0\0\0\0\0\0\0\0\0\0\0\0")] {
        let client = ClientId(id);
        add(1, Entry::Fact(Fact::Connected { client, descriptor: 4 }));
        add(1, Entry::Identity { client, pid: 100 + u32::from(id), base: u32::from(id) << 20, uid: 0 });
        add(1, Entry::Name { client, part: 0, bytes: name });
    }
    for turn in 0..50 {
        let (client, at) = (ClientId(1 + (turn % 2) as u16), 10 + 10 * turn);
        let (until, requests, bytes) = (Time::NEVER, 3, 0);
        add(at, Entry::Fact(Fact::Arrived { client }));
        add(
            at + 1,
            Entry::Dispatch {
                client: Some(client),
                mode: Mode::Reserved,
                reason: Reason::Alone,
                until,
                requests,
                bytes,
            },
        );
        let service = Service::new(client, Time((at + 1) * MS), Time((at + 3) * MS));
        add(at + 3, Entry::Fact(Fact::Served(Service { requests, last_request: 73, ..service })));
        if client == ClientId(2) {
            let (kind, depleted, left_ns, deadline) = (ReservationKind::Hard, true, -5000, Time((at + 9) * MS));
            add(at + 3, Entry::Budget { client, kind, depleted, left_ns, deadline });
            add(at + 3, Entry::Fact(Fact::Input { client }));
        }
    }
    let (client, request, by) = (ClientId(1), 70, ClientId(2));
    add(511, Entry::Cut { client, request, done: 1, parts: 2 });
    add(512, Entry::Finished { client, request, by, ns: 1000 });
    add(520, Entry::ThreadName { thread: 102, bytes: *b"mpv\0\0\0\0\0\0\0\0\0\0\0\0\0" });
    add(520, Entry::ThreadName { thread: 555, bytes: *b"vo\0\0\0\0\0\0\0\0\0\0\0\0\0\0" });
    add(520, Entry::Thread { thread: 555, process: 102 });
    add(520, Entry::InterruptName { number: 1, is_soft: false, bytes: *b"i8042\0\0\0\0\0\0\0\0\0\0\0" });
    add(520, Entry::Switch { cpu: 1, from: 0, to: 102, still_runnable: false });
    add(522, Entry::Wakeup { cpu: 1, thread: 555 });
    add(524, Entry::Interrupt { cpu: 1, number: 1, is_soft: false, ns: MS });
    add(526, Entry::Switch { cpu: 1, from: 102, to: 555, still_runnable: false });
    // Events of processor 2 were lost: it is unknown how long 102 ran.
    add(527, Entry::Switch { cpu: 2, from: 0, to: 102, still_runnable: false });
    add(540, Entry::Switch { cpu: 2, from: 103, to: 555, still_runnable: false });
    add(542, Entry::Switch { cpu: 2, from: 555, to: 0, still_runnable: false });
    events
}

#[test]
fn perfettos_schema_reads_tracks_slices_and_counters() {
    let mut bytes = Vec::new();
    perfetto::write(events().into_iter(), &Names::default(), &Wire::default(), &mut bytes).unwrap();
    let trace = Trace::decode(bytes.as_slice()).expect("the schema reads it");
    let (mut tracks, mut open): (BTreeMap<u64, String>, BTreeMap<u64, u64>) = Default::default();
    let (mut slices, mut counters, mut instants) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    let mut clocks = BTreeSet::new();
    for packet in &trace.packet {
        match packet.data.as_ref().expect("a packet has data") {
            Data::TrackDescriptor(descriptor) => {
                if let Some(parent) = descriptor.parent_uuid {
                    assert!(tracks.contains_key(&parent), "a parent is described first");
                }
                let Some(track_descriptor::StaticOrDynamicName::Name(name)) = &descriptor.static_or_dynamic_name else {
                    panic!("a track without a name: {descriptor:?}");
                };
                tracks.insert(descriptor.uuid.unwrap(), name.clone());
            }
            Data::TrackEvent(event) => {
                assert_eq!(packet.timestamp_clock_id, Some(CLOCK_MONOTONIC));
                let (at, track) = (packet.timestamp.unwrap(), event.track_uuid.unwrap());
                assert!(tracks.contains_key(&track), "an event on a track that was not described");
                match event.r#type() {
                    Type::SliceBegin => {
                        let Some(NameField::Name(name)) = &event.name_field else { panic!("a slice without a name") };
                        assert_eq!(open.insert(track, at), None, "slices of a track do not overlap");
                        slices.push((tracks[&track].clone(), name.clone()));
                    }
                    Type::SliceEnd => assert!(open.remove(&track).expect("it began") <= at),
                    Type::Counter => {
                        let Some(CounterValueField::CounterValue(value)) = event.counter_value_field else {
                            panic!("a counter without a value");
                        };
                        counters.insert((tracks[&track].clone(), value));
                    }
                    Type::Instant => {
                        let Some(NameField::Name(name)) = &event.name_field else { panic!("a mark without a name") };
                        *instants.entry(name.clone()).or_insert(0) += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
            Data::ClockSnapshot(snapshot) => {
                assert_eq!(snapshot.primary_trace_clock, Some(CLOCK_MONOTONIC as i32));
                clocks.extend(snapshot.clocks.iter().map(|clock| (clock.clock_id.unwrap(), clock.timestamp.unwrap())));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        clocks,
        [(CLOCK_MONOTONIC, MS), (CLOCK_BOOTTIME, MS)].into(),
        "the viewer drops events of unknown clocks"
    );
    assert!(open.is_empty(), "each slice ends");
    // A burst is named after its wait and the main cause.
    let count = |track: &str, name: &str| {
        slices.iter().filter(|slice| slice.0 == track && slice.1.split(": ").next() == Some(name)).count()
    };
    assert_eq!((count("slices", "GetImage"), count("bursts", "waited 1.00 ms")), (50, 50));
    let marks = [("cut", 1), ("finished", 1), ("input", 25), ("wakes mpv: vo (555)", 1)];
    assert_eq!(instants, marks.map(|(name, count)| (name.to_owned(), count)).into());
    for (track, name) in [("processor 1", "mpv (102)"), ("interrupts", "i8042 (1)")] {
        assert_eq!(count(track, name), 1, "{track}: {slices:?}");
    }
    assert!(slices.contains(&("processor 1".to_owned(), "mpv: vo (555)".to_owned())), "{slices:?}");
    let of_two: Vec<_> = slices.iter().filter(|slice| slice.0 == "processor 2").collect();
    assert!(of_two.len() == 1 && of_two[0].1 == "mpv: vo (555)", "{of_two:?}");
    assert_eq!(counters, BTreeSet::from([("budget left, us".to_owned(), -5)]));
    for name in ["x11perf (101)", "mpv (102)"] {
        assert!(tracks.values().any(|track| track == name), "{tracks:?}");
    }
    let first = &trace.packet[0];
    assert!(first.sequence_flags.unwrap_or(0) & 1 == 1, "the first packet clears the incremental state");
}

#[test]
fn messages_on_the_wire_are_instants_below_their_client() {
    let message = |at, is_request| WireMessage { at: Time(at * MS), is_request, sequence: 1, bytes: 20, name: 0 };
    let messages = vec![message(15, true), message(16, false)];
    let known = WireConnection { accepted: Some((2 << 20, Time(MS))), messages, ..WireConnection::default() };
    let unknown = WireConnection {
        name: "connection 2".to_owned(),
        messages: vec![message(17, true)],
        ..WireConnection::default()
    };
    let wire = Wire { connections: vec![known, unknown], names: vec!["InternAtom".to_owned()] };
    let mut bytes = Vec::new();
    perfetto::write(events().into_iter(), &Names::default(), &wire, &mut bytes).unwrap();
    let trace = Trace::decode(bytes.as_slice()).expect("the schema reads it");
    let (mut tracks, mut instants) = (BTreeMap::new(), Vec::new());
    for packet in &trace.packet {
        match &packet.data {
            Some(Data::TrackDescriptor(one)) => {
                if let Some(track_descriptor::StaticOrDynamicName::Name(name)) = &one.static_or_dynamic_name {
                    tracks.insert(one.uuid.unwrap(), (name.clone(), one.parent_uuid));
                }
            }
            Some(Data::TrackEvent(event)) if event.r#type() == Type::Instant => {
                let Some(NameField::Name(name)) = &event.name_field else { panic!("a mark without a name") };
                let (track, parent) = &tracks[&event.track_uuid.unwrap()];
                let parent = parent.map(|parent| tracks[&parent].0.clone());
                instants.push((packet.timestamp.unwrap() / MS, name.clone(), track.clone(), parent));
            }
            _ => {}
        }
    }
    instants.retain(|(_, name, ..)| name.contains("InternAtom"));
    let told = |at, arrow: &str, track: &str, parent: Option<&str>| {
        (at, format!("{arrow} InternAtom"), track.to_owned(), parent.map(str::to_owned))
    };
    let of_mpv = Some("mpv (102)");
    let expected = [told(15, ">", "wire", of_mpv), told(16, "<", "wire", of_mpv), told(17, ">", "connection 2", None)];
    assert_eq!(instants, expected);
}
