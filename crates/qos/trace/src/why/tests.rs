// SPDX-License-Identifier: MIT
//! Hand-written traces with one long wait each, and the expected diagnosis.

use super::*;
use xqos_abi::trace::{Entry, Level, Reason};
use xqos_core::{ClientId, Fact, Mode, Role, Service};

const MS: u64 = 1_000_000;
const SERVER: u32 = 9;
const GET_IMAGE: u32 = 73;
const POLY_LINE: u32 = 65;
const INTERN_ATOM: u32 = 16;

/// A trace under construction, with times in milliseconds.
struct Script(Vec<Event>);

impl Script {
    /// A trace with these clients, numbered from 1. A client without pid is on another machine.
    fn new(clients: &[(&str, u32)]) -> Script {
        let mut script = Script(Vec::new());
        script.at(0, Entry::Begin { level: Level::Slices, server_pid: SERVER, words: 0 });
        for (id, &(name, pid)) in (1..).zip(clients) {
            let (client, mut bytes) = (ClientId(id), [0; 16]);
            bytes[..name.len()].copy_from_slice(name.as_bytes());
            script.fact(0, Fact::Connected { client, descriptor: 4 });
            script.at(0, Entry::Identity { client, pid, base: u32::from(id) << 20, uid: 0 });
            script.at(0, Entry::Name { client, part: 0, bytes });
        }
        script
    }

    fn at(&mut self, ms: u64, what: Entry) {
        self.0.push(Event { at: Time(ms * MS), what });
    }

    fn fact(&mut self, ms: u64, fact: Fact) {
        self.at(ms, Entry::Fact(fact));
    }

    fn arrives(&mut self, ms: u64, id: u16) {
        self.fact(ms, Fact::Arrived { client: ClientId(id) });
    }

    fn dispatch(&mut self, ms: u64, id: u16) {
        let (client, until) = (Some(ClientId(id)), Time::NEVER);
        let (mode, reason) = (Mode::BestEffort, Reason::Policy);
        self.at(ms, Entry::Dispatch { client, mode, reason, until, requests: 0, bytes: 0 });
    }

    /// A slice with the decision before it.
    fn slice(&mut self, id: u16, (from, to): (u64, u64), (requests, last_request): (u32, u32), still_ready: bool) {
        self.dispatch(from, id);
        let service = Service::new(ClientId(id), Time(from * MS), Time(to * MS));
        self.fact(to, Fact::Served(Service { requests, last_request, still_ready, ..service }));
    }

    fn switch(&mut self, ms: u64, cpu: u32, (from, to): (u32, u32), still_runnable: bool) {
        self.at(ms, Entry::Switch { cpu, from, to, still_runnable });
    }

    fn diagnose(&self, question: &WaitQuery) -> Diagnosis {
        diagnose(self.0.iter().copied(), &Names::default(), question)
    }

    fn worst(&self) -> (Wait, Cause) {
        let question = WaitQuery { limit_ns: 100 * MS, ..WaitQuery::default() };
        self.diagnose(&question).worst.expect("a client waits")
    }
}

fn names(wait: &Wait) -> Vec<&str> {
    wait.who.iter().map(|party| party.name.as_str()).collect()
}

#[test]
fn one_long_request_is_named_with_its_client() {
    let mut script = Script::new(&[("x11perf", 100), ("mpv", 200)]);
    script.arrives(100, 1);
    script.slice(1, (100, 101), (5, POLY_LINE), false);
    script.arrives(990, 1);
    script.slice(1, (1000, 1300), (1, GET_IMAGE), false);
    // An arrival that the watcher saw is recorded after the slice, with the time of the arrival.
    script.arrives(1010, 2);
    script.slice(2, (1301, 1302), (3, POLY_LINE), false);
    let (wait, cause) = script.worst();
    assert_eq!((names(&wait), wait.ns, wait.is_at_most), (vec!["mpv (200)"], 291 * MS, false));
    let Cause::LongRequest { who, request, ns } = cause else { panic!("{cause:?}") };
    assert_eq!((who.name.as_str(), who.pid, request.as_str(), ns), ("x11perf (100)", 100, "GetImage", 300 * MS));
}

#[test]
fn clients_found_after_a_long_request_may_have_waited_for_all_of_it() {
    let mut script = Script::new(&[("x11perf", 100), ("mpv", 200), ("xqos", 300)]);
    script.arrives(1000, 1);
    script.slice(1, (1000, 1300), (2, GET_IMAGE), false);
    script.arrives(1301, 2);
    script.arrives(1301, 3);
    script.slice(2, (1301, 1302), (3, POLY_LINE), false);
    let (wait, cause) = script.worst();
    assert_eq!((names(&wait), wait.ns, wait.is_at_most), (vec!["mpv (200)"], 300 * MS, true));
    assert!(matches!(cause, Cause::LongRequest { ref request, .. } if request == "GetImage"), "{cause:?}");
    // The same slice delays no client if no other client has requests afterwards.
    script.0.retain(|event| event.what.client().is_none_or(|client| client.0 == 1));
    script.at(5000, Entry::End);
    assert_eq!(script.diagnose(&WaitQuery::default()).worst, None);
}

#[test]
fn an_unfinished_request_can_be_the_cause() {
    let mut script = Script::new(&[("x11perf", 100), ("mpv", 200)]);
    script.arrives(1000, 1);
    script.dispatch(1000, 1);
    script.at(9000, Entry::End);
    let (wait, cause) = script.worst();
    assert_eq!((names(&wait), wait.ns), (vec![], 8000 * MS));
    assert!(matches!(cause, Cause::LongRequest { ref who, .. } if who.pid == 100), "{cause:?}");
}

#[test]
fn a_client_that_disconnects_within_its_slice_has_no_unfinished_request() {
    let mut script = Script::new(&[("xterm", 100), ("mpv", 200)]);
    script.arrives(1000, 1);
    script.dispatch(1000, 1);
    script.fact(1001, Fact::Disconnected { client: ClientId(1) });
    script.at(9000, Entry::End);
    assert_eq!(script.diagnose(&WaitQuery::default()).worst, None);
}

#[test]
fn the_holder_of_a_server_grab_is_named() {
    let mut script = Script::new(&[("scrot", 100), ("mpv", 200)]);
    let role = Role { compositor: true, window_manager: false };
    script.fact(0, Fact::Role { client: ClientId(1), role });
    script.arrives(500, 2);
    script.slice(2, (500, 501), (1, POLY_LINE), false);
    script.arrives(1000, 1);
    script.dispatch(1000, 1);
    script.fact(1001, Fact::Grabbed { by: Some(ClientId(1)) });
    script.slice(1, (1000, 1002), (2, GET_IMAGE), false);
    script.arrives(1050, 2);
    script.arrives(1400, 1);
    script.dispatch(1400, 1);
    script.fact(1401, Fact::Grabbed { by: None });
    script.slice(1, (1400, 1402), (1, POLY_LINE), false);
    script.slice(2, (1402, 1403), (1, POLY_LINE), false);
    let (wait, cause) = script.worst();
    assert_eq!((names(&wait), wait.ns), (vec!["mpv (200)"], 352 * MS));
    let Cause::Grab { who, ns } = cause else { panic!("{cause:?}") };
    assert_eq!((who.name.as_str(), who.role, ns), ("scrot (100)", role, 351 * MS));
}

#[test]
fn an_unfinished_grab_is_the_cause_even_if_no_request_was_seen() {
    let mut script = Script::new(&[("scrot", 100), ("mpv", 200)]);
    script.arrives(1000, 1);
    script.dispatch(1000, 1);
    script.fact(1001, Fact::Grabbed { by: Some(ClientId(1)) });
    script.slice(1, (1000, 1002), (2, GET_IMAGE), false);
    script.at(4001, Entry::End);
    let (wait, cause) = script.worst();
    assert_eq!((names(&wait), wait.ns), (vec![], 3000 * MS));
    assert!(matches!(cause, Cause::Grab { ref who, .. } if who.pid == 100), "{cause:?}");
}

#[test]
fn twelve_busy_clients_are_counted_and_the_light_client_is_the_one_that_waited() {
    let clients: Vec<(&str, u32)> = (0..12).map(|n| ("x11perf", 100 + n)).chain([("mpv", 200)]).collect();
    let mut script = Script::new(&clients);
    for id in 1..=12 {
        script.arrives(0, id);
    }
    let mut ms = 0;
    for round in 0..4 {
        for id in 1..=12 {
            if (round, id) == (3, 1) {
                script.arrives(ms, 13);
            }
            script.slice(id, (ms, ms + 20), (500, POLY_LINE), true);
            ms += 20;
        }
    }
    script.slice(13, (ms, ms + 1), (2, POLY_LINE), false);
    let (wait, cause) = script.worst();
    assert_eq!((names(&wait), wait.ns, wait.is_busy), (vec!["mpv (200)"], 240 * MS, false));
    assert_eq!(cause, Cause::Busy { clients: 12, ns: 240 * MS });
    let question = WaitQuery { limit_ns: 100 * MS, ..WaitQuery::default() };
    let served = script.diagnose(&question).served;
    assert_eq!((served.len(), served[0].ns, served[0].requests), (12, 20 * MS, 500));
    assert_eq!(served[0].request, "PolyLine");
    // Without mpv, only the busy clients wait for each other, by design.
    script.0.retain(|event| event.what.client() != Some(ClientId(13)));
    script.at(ms + 1, Entry::End);
    let (wait, _) = script.worst();
    assert!(wait.is_busy && wait.ns > 100 * MS, "{wait:?}");
}

#[test]
fn the_times_of_busy_clients_add_up_if_the_server_sometimes_has_no_processor() {
    let mut script = Script::new(&[("x11perf", 100), ("x11perf", 101), ("mpv", 200)]);
    (1..=3).for_each(|id| script.arrives(0, id));
    for (round, from) in (0..240).step_by(20).enumerate() {
        let id = 1 + round as u16 % 2;
        script.at(from, Entry::Processor { client: ClientId(id), ns: 12 * MS });
        script.slice(id, (from, from + 20), (500, POLY_LINE), true);
    }
    script.slice(3, (240, 241), (2, POLY_LINE), false);
    // Records of the kernel that begin only after the wait.
    script.switch(242, 0, (SERVER, 0), false);
    let diagnosis = script.diagnose(&WaitQuery { limit_ns: 100 * MS, ..WaitQuery::default() });
    assert!(diagnosis.kernel);
    assert_eq!(diagnosis.worst.unwrap().1, Cause::Busy { clients: 2, ns: 240 * MS });
    let served: Vec<u64> = diagnosis.served.iter().map(|one| one.ns).collect();
    assert_eq!((served, diagnosis.absent_ns), (vec![120 * MS; 2], 96 * MS));
}

#[test]
fn a_program_with_real_time_priority_that_takes_the_processor_is_named() {
    let mut script = Script::new(&[("mpv", 200)]);
    script.at(5, Entry::ThreadName { thread: 812, bytes: *b"hog\0\0\0\0\0\0\0\0\0\0\0\0\0" });
    script.at(5, Entry::Priority { thread: 812, priority: 49 });
    script.switch(900, 1, (SERVER, 812), false);
    script.at(1000, Entry::Wakeup { cpu: 0, thread: SERVER });
    script.switch(1300, 1, (812, SERVER), true);
    script.arrives(1301, 1);
    script.slice(1, (1301, 1302), (1, POLY_LINE), false);
    let (wait, cause) = script.worst();
    assert_eq!((names(&wait), wait.ns, wait.is_at_most), (vec!["mpv (200)"], 300 * MS, true));
    let Cause::NoProcessor { ns, ran } = cause else { panic!("{cause:?}") };
    assert_eq!((ns, ran.len()), (300 * MS, 1));
    assert_eq!((ran[0].thread.name.as_str(), ran[0].ns, ran[0].priority), ("hog (812)", 300 * MS, 49));
}

#[test]
fn a_server_that_is_preempted_within_a_slice_had_no_processor() {
    let mut script = Script::new(&[("x11perf", 100), ("mpv", 200)]);
    script.arrives(1000, 1);
    script.switch(1001, 0, (SERVER, 812), true);
    script.switch(1299, 0, (812, SERVER), true);
    script.slice(1, (1000, 1300), (1, GET_IMAGE), false);
    script.arrives(1300, 2);
    script.slice(2, (1301, 1302), (3, POLY_LINE), false);
    let (_, cause) = script.worst();
    assert!(matches!(cause, Cause::NoProcessor { ns, .. } if ns == 298 * MS), "{cause:?}");
}

#[test]
fn a_server_that_decides_has_a_processor_although_events_of_the_kernel_were_lost() {
    let mut script = Script::new(&[("x11perf", 100), ("mpv", 200)]);
    script.switch(500, 0, (SERVER, 812), true);
    for at in (1000..1400).step_by(100) {
        script.arrives(at, 1);
        script.slice(1, (at, at + 10), (100, POLY_LINE), false);
    }
    script.switch(1500, 0, (812, SERVER), true);
    script.at(2000, Entry::End);
    assert_eq!(script.diagnose(&WaitQuery::default()).worst, None);
}

#[test]
fn without_kernel_records_measured_absences_and_those_in_slices_count() {
    let mut script = Script::new(&[("x11perf", 100), ("mpv", 200)]);
    script.arrives(1000, 2);
    script.slice(2, (1000, 1001), (1, POLY_LINE), false);
    let absences = vec![(Time(500 * MS), Time(1000 * MS))];
    let question = WaitQuery { limit_ns: 100 * MS, asker: 0, absences };
    let (wait, cause) = script.diagnose(&question).worst.expect("a client waits");
    assert_eq!((names(&wait), cause), (vec!["mpv (200)"], Cause::NoProcessor { ns: 500 * MS, ran: vec![] }));
    script.arrives(2000, 1);
    script.dispatch(2000, 1);
    script.at(2900, Entry::Processor { client: ClientId(1), ns: 2 * MS });
    script.0.push(Event {
        at: Time(2900 * MS),
        what: Entry::Fact(Fact::Served(Service {
            requests: 1,
            last_request: GET_IMAGE,
            ..Service::new(ClientId(1), Time(2000 * MS), Time(2900 * MS))
        })),
    });
    script.arrives(2900, 2);
    script.slice(2, (2901, 2902), (1, POLY_LINE), false);
    let (_, cause) = script.worst();
    assert_eq!(cause, Cause::NoProcessor { ns: 898 * MS, ran: vec![] });
}

#[test]
fn measured_absences_count_where_kernel_records_were_lost() {
    let mut script = Script::new(&[("mpv", 200)]);
    script.arrives(1000, 1);
    script.slice(1, (1500, 1501), (1, POLY_LINE), false);
    script.switch(3000, 0, (SERVER, 0), false);
    let absences = vec![(Time(1000 * MS), Time(1490 * MS))];
    let question = WaitQuery { limit_ns: 100 * MS, asker: 0, absences };
    let (_, cause) = script.diagnose(&question).worst.expect("a client waits");
    assert_eq!(cause, Cause::NoProcessor { ns: 490 * MS, ran: vec![] });
}

/// Round trips of 200 ms: one question each, which the server answers within a millisecond.
fn round_trips(script: &mut Script, id: u16, request: u32) {
    for at in (1000..4000).step_by(200) {
        script.arrives(at, id);
        script.slice(id, (at, at + 1), (1, request), false);
    }
}

#[test]
fn a_wait_for_the_link_is_distinguished_from_a_wait_for_the_server() {
    let mut script = Script::new(&[("", 0), ("mpv", 200)]);
    round_trips(&mut script, 1, INTERN_ATOM);
    let (wait, cause) = script.worst();
    assert_eq!((names(&wait), wait.ns), (vec!["client 0x100000"], 14 * 199 * MS));
    assert_eq!(cause, Cause::SlowLink { round_trips: 14, median_ns: 199 * MS });
}

#[test]
fn a_request_that_arrives_in_parts_over_a_slow_link_does_not_wait_for_the_server() {
    let mut script = Script::new(&[("", 0)]);
    round_trips(&mut script, 1, INTERN_ATOM);
    script.arrives(5000, 1);
    script.slice(1, (5300, 5301), (1, POLY_LINE), false);
    assert_eq!(script.worst().1, Cause::SlowLink { round_trips: 15, median_ns: 199 * MS });
}

#[test]
fn pauses_of_local_clients_of_animations_and_after_input_are_no_link() {
    for (pid, program, request, input) in
        [(77, "emacs", INTERN_ATOM, false), (0, "", POLY_LINE, false), (0, "", INTERN_ATOM, true)]
    {
        let mut script = Script::new(&[(program, pid)]);
        round_trips(&mut script, 1, request);
        if input {
            let ends: Vec<Time> = script.0.iter().map(|event| event.at).collect();
            ends.iter().for_each(|at| script.fact(at.0 / MS + 5, Fact::Input { client: ClientId(1) }));
            script.0.sort_by_key(|event| event.at);
        }
        let question = WaitQuery { limit_ns: 100 * MS, ..WaitQuery::default() };
        assert_eq!(script.diagnose(&question).worst, None, "{program} {pid} {request} {input}");
    }
}

#[test]
fn the_trigger_fires_for_light_clients_and_blocks_but_not_for_busy_clients() {
    let fires = |script: &Script| {
        let mut trigger = Trigger::new(100 * MS, 300);
        script.0.iter().filter(|event| trigger.take(event)).count()
    };
    let mut script = Script::new(&[("x11perf", 100), ("mpv", 200), ("why", 300)]);
    script.arrives(1000, 1);
    script.slice(1, (1000, 1300), (1, GET_IMAGE), false);
    script.arrives(1301, 3);
    script.slice(3, (1301, 1302), (1, POLY_LINE), false);
    assert_eq!(fires(&script), 0, "only the process that asks waited");
    script.arrives(2000, 1);
    script.slice(1, (2000, 2300), (1, GET_IMAGE), false);
    script.arrives(2301, 2);
    script.slice(2, (2301, 2302), (1, POLY_LINE), false);
    assert_eq!(fires(&script), 1);
    let mut script = Script::new(&[("x11perf", 100), ("x11perf", 101)]);
    script.arrives(0, 1);
    script.arrives(0, 2);
    for turn in 0..20 {
        script.slice(1 + turn % 2, (20 * u64::from(turn), 20 * u64::from(turn) + 20), (500, POLY_LINE), turn < 18);
    }
    assert_eq!(fires(&script), 0, "busy clients wait for each other by design");
}
