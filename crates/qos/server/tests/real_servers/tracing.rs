// SPDX-License-Identifier: MIT
//! Tests of traces: their contents, access to them, and readers that die, read slowly or never read.

use crate::busy::{Busy, X11perf};
use crate::fixture::{
    Fixture, SOON, alone, as_nobody, entry, fix_blocking, in_parallel, policies, served, setup, wait_for, xvfb,
    xvfb_with,
};
use crate::survival::connect_after_reset;
use crate::wire::Wire;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use xqos_abi::ring::{Next, RingReader};
use xqos_abi::trace::{Entry, Event, Level};
use xqos_abi::{ByteOrder, PolicyChange, Request, Setting, Subject};
use xqos_core::{ClientId, Fact, PolicyKind, ReservationKind, Service};
use xqos_lab::server::ServerKind;
use xqos_sim::check::Check;

/// All events that can be read now.
pub fn read(reader: &mut RingReader) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        match reader.read() {
            Next::Record(words) => events.push(Event::decode(words).unwrap_or_else(|| panic!("{words:x?}"))),
            Next::Lost(records) => events.push(Event { at: xqos_core::Time(0), what: Entry::Lost { records } }),
            Next::Nothing | Next::Ended => return events,
        }
    }
}

fn read_for(reader: &mut RingReader, time: Duration) -> Vec<Event> {
    let (end, mut events) = (Instant::now() + time, Vec::new());
    while Instant::now() < end {
        events.extend(read(reader));
        std::thread::sleep(Duration::from_millis(5));
    }
    events.extend(read(reader));
    events
}

fn has(events: &[Event], wanted: impl Fn(&Entry) -> bool) -> bool {
    events.iter().any(|event| wanted(&event.what))
}

fn is_slice(what: &Entry) -> bool {
    matches!(what, Entry::Fact(Fact::Served(_)))
}

/// What a client waited for, from the arrival of its requests until it was served. Does not depend on how busy the
/// machine is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    /// Slices of others that ended meanwhile.
    pub slices: usize,
    /// The server's processor time in these slices, after the arrival.
    pub processor_ns: u64,
    /// The time without a processor in the client's own slices since its previous wait. This time is charged to the
    /// client (decision 004), so others are then served first.
    pub stolen_ns: u64,
}

/// The waits of a client, one for each time that it was served after an arrival.
pub fn waits(events: &[Event], client: ClientId) -> Vec<Wait> {
    let (mut waiting, mut all) = (None, Vec::new());
    let (mut processor_ns, mut stolen_ns) = (u64::MAX, 0);
    for event in events {
        match event.what {
            Entry::Fact(Fact::Arrived { client: arrived }) if arrived == client && waiting.is_none() => {
                waiting = Some((event.at, Wait { stolen_ns, ..Wait::default() }));
                stolen_ns = 0;
            }
            Entry::Processor { ns, .. } => processor_ns = ns,
            Entry::Fact(Fact::Served(service)) => {
                let used_ns = std::mem::replace(&mut processor_ns, u64::MAX);
                if service.client == client {
                    all.extend(waiting.take().map(|(_, wait)| wait));
                    stolen_ns += service.end.since(service.start).saturating_sub(used_ns);
                } else if let Some((arrived, wait)) = &mut waiting {
                    wait.slices += 1;
                    wait.processor_ns += service.end.since(service.start.max(*arrived)).min(used_ns);
                }
            }
            _ => {}
        }
    }
    all
}

/// The index of the client with this resource base.
pub fn id_of(events: &[Event], wanted: u32) -> ClientId {
    find_id(events, wanted).unwrap_or_else(|| panic!("{wanted:#x} is not in the trace"))
}

fn find_id(events: &[Event], wanted: u32) -> Option<ClientId> {
    events.iter().find_map(|event| match event.what {
        Entry::Identity { client, base, .. } if base == wanted => Some(client),
        _ => None,
    })
}

#[test]
fn a_trace_has_the_seven_events_of_the_paper_with_their_clients() {
    let _others = in_parallel();
    // On an idle server, xqos chooses no client under `fair`.
    let fixture = xvfb_with(PolicyKind::Fixed);
    let control = fixture.control().unwrap();
    let mut reader = control.start_trace(Level::Slices, 0).unwrap();
    let mut wire = fixture.native();
    wire.sync();
    let base = wire.base;
    // A client that disconnects in its own slice gets no deactivation event.
    let mut events = Vec::new();
    wait_for("the slice has ended", SOON, || {
        events.extend(read(&mut reader));
        events.iter().any(|event| event.what.name() == "deactivation" && event.what.client() == find_id(&events, base))
    });
    drop(wire);
    wait_for("it is gone", SOON, || control.clients().unwrap().clients.iter().all(|entry| entry.client != base));
    control.stop_trace().unwrap();
    events.extend(read(&mut reader));
    let client = id_of(&events, base);
    let of_the_paper = ["creation", "activation", "dispatch", "deactivation", "destruction"];
    let of_client = events.iter().filter(|event| event.what.client() == Some(client));
    let mut kinds: Vec<&str> = of_client.map(|event| event.what.name()).collect();
    kinds.retain(|kind| of_the_paper.contains(kind));
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("creation", "destruction"), "{kinds:?}");
    assert!(of_the_paper.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    assert!(matches!(events[0].what, Entry::Begin { server_pid, .. } if server_pid == fixture.pid()));
    assert_eq!(events.last().unwrap().what, Entry::End);
    assert_eq!(reader.read(), Next::Ended);
}

#[test]
fn replay_agrees_with_every_decision_of_every_policy() {
    let _turn = alone();
    for policy in policies() {
        let mut fixture = xvfb_with(policy);
        let control = fixture.control().unwrap();
        fix_blocking(&control);
        let _load = X11perf::start_many(&fixture, "getimagexy100", 3);
        let hard = Busy::start(&fixture);
        control.reserve(hard.base, 2000, 10_000, true).unwrap();
        let mut reader = control.start_trace(Level::Slices, 0).unwrap();
        let mut light = fixture.native();
        let soft = Subject::Client(0).set(Setting::reservation(1000, 20_000, ReservationKind::Soft));
        light.tell_xqos(soft).unwrap();
        light.set_sync_priority(0, 3).unwrap();
        for _ in 0..50 {
            light.sync();
            std::thread::sleep(Duration::from_millis(3));
        }
        light.set_grab(true);
        light.set_grab(false);
        control.set_policy(PolicyChange { slice_us: Some(2000), ..PolicyChange::default() }).unwrap();
        control.set(Subject::Client(light.base), Setting::Weight(300)).unwrap();
        let _more = control.start_trace(Level::Slices, 0).unwrap();
        let mut check = Check::default();
        let name = policy.name();
        wait_for(&format!("{name}: 100 decisions"), SOON, || {
            read_for(&mut reader, Duration::from_millis(300)).iter().for_each(|event| check.take(event));
            check.agreed > 100
        });
        assert_eq!((check.differed, check.unchecked), (0, 0), "{name}: {:#?}", check.differences);
        fixture.assert_armed();
    }
}

#[test]
fn level_requests_records_each_request_once_in_both_byte_orders() {
    let _others = in_parallel();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
        let mut wire = fixture.wire(order);
        wire.sync();
        let mut reader = control.start_trace(Level::Requests, 0).unwrap();
        for _ in 0..7 {
            wire.sync();
        }
        // The server may send a reply before it records the slice. The server serves another client only after that.
        control.server_info().unwrap();
        let events = read(&mut reader);
        let client = id_of(&events, wire.base);
        let mut kinds: BTreeMap<u32, u32> = BTreeMap::new();
        let (mut requests, mut served) = (0, 0);
        for event in &events {
            match event.what {
                Entry::Request { client: one, request, bytes, ns } if one == client => {
                    assert!(bytes >= 4 && ns > 0 && ns < 1_000_000_000, "{event:?}");
                    *kinds.entry(request & 0xff).or_default() += 1;
                    requests += 1;
                }
                Entry::Fact(Fact::Served(Service { client: one, requests, .. })) if one == client => served += requests,
                _ => {}
            }
        }
        assert_eq!((requests, kinds.len()), (7, 1), "{order:?}: {kinds:?}");
        assert_eq!(served, 7, "{order:?}");
        control.stop_trace().unwrap();
        wire.sync();
        assert_eq!(read(&mut reader).last().map(|event| event.what), Some(Entry::End));
        assert_eq!(reader.read(), Next::Ended);
    }
}

#[test]
fn readers_come_and_go_and_die_without_affecting_others() {
    let _others = in_parallel();
    let mut fixture = xvfb();
    let busy = Busy::start(&fixture);
    let (threads, files) = (fixture.threads(), fixture.open_files());
    let first = fixture.control().unwrap();
    let mut reading = first.start_trace(Level::Slices, 0).unwrap();
    let second = fixture.control().unwrap();
    let mut beside = second.start_trace(Level::Requests, 0).unwrap();
    let is_request = |what: &Entry| matches!(what, Entry::Request { .. });
    wait_for("requests are timed", SOON, || has(&read(&mut beside), is_request));
    drop(second);
    wait_for("requests are no longer timed", SOON, || {
        !has(&read_for(&mut reading, Duration::from_millis(20)), is_request)
    });
    // One reader maps the ring and never reads; another reader's connection breaks.
    let third = fixture.control().unwrap();
    let _never_read = third.start_trace(Level::Slices, 256).unwrap();
    drop(third);
    wait_for("slices are recorded", SOON, || has(&read(&mut reading), is_slice));
    drop(first);
    wait_for("the trace ends with its last reader", SOON, || matches!(reading.read(), Next::Ended));
    let before = busy.sent();
    wait_for("all clients are served", SOON, || busy.sent() > before);
    fixture.assert_armed();
    wait_for("nothing is left open", SOON, || fixture.open_files() <= files + 1 && fixture.threads() <= threads.max(2));
}

#[test]
fn overwritten_records_are_counted() {
    let _others = in_parallel();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let mut reader = control.start_trace(Level::Requests, 256).unwrap();
    let mut wire = fixture.native();
    for _ in 0..2000 {
        wire.sync();
    }
    let events = read(&mut reader);
    assert!(has(&events, |what| matches!(what, Entry::Lost { records } if *records > 1000)), "{}", events.len());
}

#[test]
fn a_reset_ends_the_trace_and_the_next_generation_offers_another() {
    let _others = in_parallel();
    let fixture = Fixture::start(&xqos_lab::server::Setup { resets: true, ..setup(ServerKind::Xvfb) });
    let control = fixture.control().unwrap();
    let mut reader = control.start_trace(Level::Requests, 0).unwrap();
    drop(control);
    wait_for("the trace ended", SOON, || matches!(reader.read(), Next::Ended));
    // A client that connects during the reset may be rejected.
    let _client = connect_after_reset(&fixture);
    let control = fixture.control().unwrap();
    let mut reader = control.start_trace(Level::Slices, 0).unwrap();
    control.clients().unwrap();
    // A reply may arrive before the slice of its request has ended.
    wait_for("a slice is recorded", SOON, || has(&read(&mut reader), is_slice));
}

#[test]
fn another_local_user_may_read_and_a_remote_client_may_not() {
    let _others = in_parallel();
    if crate::fixture::is_not_root() {
        return;
    }
    let fixture = Fixture::start(&xqos_lab::server::Setup {
        arguments: ["-ac", "-listen", "tcp"].map(Into::into).to_vec(),
        ..setup(ServerKind::Xvfb)
    });
    let start = Request::StartTrace { level: Level::Slices, capacity: 0 };
    let display = fixture.display().to_owned();
    let mut remote = Wire::connect_by_tcp(&display, ByteOrder::NATIVE);
    let error = remote.ask_xqos(start).unwrap_err();
    assert_eq!(error.code, 10, "BadAccess");
    as_nobody(|| {
        let mut wire = Wire::connect(&display, ByteOrder::NATIVE);
        assert_eq!(wire.ask_xqos(start).unwrap().len(), 32);
    });
}

#[test]
fn the_longest_requests_and_the_holder_of_a_long_grab_are_named() {
    let _others = in_parallel();
    let limit = [("XQOS_GRAB_LIMIT_MS".into(), "100".into())].to_vec();
    let fixture = Fixture::start(&xqos_lab::server::Setup { environment: limit, ..setup(ServerKind::Xvfb) });
    let control = fixture.control().unwrap();
    let perf = X11perf::start(&fixture, "getimagexy500");
    perf.entry_when_busy(&control);
    wait_for("a long GetImage is in the list", SOON, || {
        let longest = control.longest_requests().unwrap().requests;
        longest.windows(2).all(|pair| pair[0].ns >= pair[1].ns)
            && longest.first().is_some_and(|request| request.request & 0xff == 73 && request.name == "x11perf")
    });
    drop(perf);
    let mut grabber = fixture.native();
    let began = Instant::now();
    grabber.set_grab(true);
    grabber.sync();
    std::thread::sleep(Duration::from_millis(30));
    let is_named = fixture.xqos_log().contains("server grab");
    assert!(!is_named || began.elapsed() >= Duration::from_millis(100), "not before the limit");
    wait_for("the log names it", SOON, || fixture.xqos_log().contains("has held the server grab for more than 100 ms"));
    grabber.set_grab(false);
    grabber.sync();
    let of_grabber = entry(&control, grabber.base);
    assert!(of_grabber.grabs == 1 && of_grabber.grabbed_ns >= 100_000_000, "{of_grabber:?}");
    std::thread::sleep(Duration::from_millis(250)); // time: no line is logged meanwhile
    assert_eq!(fixture.xqos_log().matches("server grab").count(), 1, "logged once per grab");
}

/// A process that exceeds its limit of file sizes gets a signal that ends it.
#[test]
fn a_trace_that_the_servers_limit_of_file_sizes_forbids_is_refused() {
    const LIMIT_BYTES: u64 = 1 << 20;
    let (mut fixture, control) = served();
    fixture.limit(libc::RLIMIT_FSIZE, LIMIT_BYTES);
    assert!(control.start_trace(Level::Slices, 1 << 16).is_err());
    assert!(control.start_trace(Level::Slices, 1 << 14).is_ok(), "a smaller one fits");
    fixture.assert_armed();
}
