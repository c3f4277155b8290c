// SPDX-License-Identifier: MIT
//! Small hand-written traces, and what the model derives from them.

use super::*;
use xqos_abi::trace::Reason;

const MS: u64 = 1_000_000;

struct Script(Model);

impl Script {
    fn at(&mut self, ms: u64, what: Entry) -> Option<Burst> {
        self.0.take(&Event { at: Time(ms * MS), what })
    }

    fn fact(&mut self, ms: u64, fact: Fact) -> Option<Burst> {
        self.at(ms, Entry::Fact(fact))
    }

    fn slice(&mut self, id: u16, from: u64, to: u64, requests: u32, still_ready: bool) -> Option<Burst> {
        let client = ClientId(id);
        let until = Time::NEVER;
        let (mode, reason) = (Mode::BestEffort, Reason::Policy);
        self.at(from, Entry::Dispatch { client: Some(client), mode, reason, until, requests: 0, bytes: 0 });
        let service = Service::new(client, Time(from * MS), Time(to * MS));
        self.fact(to, Fact::Served(Service { requests, last_request: 73, still_ready, ..service }))
    }
}

fn two_clients() -> Script {
    let mut script = Script(Model::new());
    for (id, name) in [(1, b"x11perf\0\0\0\0\0\0\0\0\0"), (2, b"mpv\0\0\0\0\0\0\0\0\0\0\0\0\0")] {
        let client = ClientId(id);
        script.fact(0, Fact::Connected { client, descriptor: 4 });
        script.at(0, Entry::Identity { client, pid: u32::from(id) * 100, base: u32::from(id) << 20, uid: 0 });
        script.at(0, Entry::Name { client, part: 0, bytes: *name });
    }
    script
}

#[test]
fn a_wait_is_attributed_to_the_running_client() {
    let mut script = two_clients();
    script.fact(0, Fact::Arrived { client: ClientId(1) });
    script.slice(1, 0, 5, 1, true);
    script.fact(7, Fact::Arrived { client: ClientId(2) });
    script.slice(1, 5, 45, 1, true);
    let burst = script.slice(2, 48, 50, 3, false).expect("its burst is over");
    assert_eq!((burst.own_ns, burst.waited_ns), (2 * MS, 41 * MS));
    assert_eq!(burst.causes, [(Cause::Client { key: 0, request: 73, long: true }, 38 * MS), (Cause::Server, 3 * MS)]);
    let Script(model) = script;
    assert_eq!(model.worst[0], burst);
    assert_eq!(model.name(0), "x11perf (100)");
    assert_eq!(model.clients()[1].total.responses.worst_ns(), 43 * MS);
    assert_eq!(model.clients()[0].total.longest_request, Some((40 * MS, 73)));
}

#[test]
fn a_model_without_causes_has_the_same_figures() {
    let mut scripts = [two_clients(), two_clients()];
    scripts[1].0.without_causes = true;
    for script in &mut scripts {
        script.fact(0, Fact::Arrived { client: ClientId(1) });
        script.slice(1, 0, 5, 1, true);
        script.fact(7, Fact::Arrived { client: ClientId(2) });
        script.slice(1, 5, 45, 1, true);
        script.slice(2, 48, 50, 3, false).expect("its burst is over");
    }
    let [with, without] = scripts.map(|Script(model)| model);
    for (with, without) in with.clients().iter().zip(without.clients()) {
        assert_eq!((&with.total.responses, with.total.waited_ns), (&without.total.responses, without.total.waited_ns));
        assert_eq!((with.waits_since(), with.total.slices), (without.waits_since(), without.total.slices));
    }
    assert!(!with.worst.is_empty() && without.worst.is_empty() && without.delays().is_empty());
}

#[test]
fn a_late_arrival_record_still_blames_the_running_client() {
    let mut script = two_clients();
    script.fact(0, Fact::Arrived { client: ClientId(1) });
    script.slice(1, 0, 5, 1, true);
    script.slice(1, 6, 45, 1, true);
    script.fact(20, Fact::Arrived { client: ClientId(2) });
    let burst = script.slice(2, 46, 50, 3, false).expect("its burst is over");
    assert_eq!(burst.waited_ns, 26 * MS);
    assert_eq!(burst.causes, [(Cause::Client { key: 0, request: 73, long: true }, 25 * MS), (Cause::Server, MS)]);
}

#[test]
fn time_without_a_processor_is_a_separate_cause() {
    let mut script = two_clients();
    script.at(0, Entry::Begin { level: xqos_abi::trace::Level::Slices, server_pid: 9, words: 0 });
    script.fact(10, Fact::Arrived { client: ClientId(2) });
    script.at(11, Entry::Wakeup { cpu: 0, thread: 9 });
    script.at(15, Entry::Switch { cpu: 0, from: 4, to: 9, still_runnable: false });
    let burst = script.slice(2, 16, 17, 1, false).unwrap();
    assert_eq!(burst.causes, [(Cause::Kernel, 4 * MS), (Cause::Server, 2 * MS)]);
}

#[test]
fn recent_figures_are_reset_and_totals_stay() {
    let mut script = two_clients();
    script.fact(0, Fact::Arrived { client: ClientId(1) });
    script.slice(1, 0, 5, 1, true);
    let recent = script.0.take_recent();
    assert_eq!(recent[0].1.server_time_ns, 5 * MS);
    script.slice(1, 5, 6, 1, true);
    assert_eq!(script.0.take_recent()[0].1.server_time_ns, MS);
    assert_eq!(script.0.clients()[0].total.server_time_ns, 6 * MS);
}

#[test]
fn a_client_is_busy_by_its_own_demand_not_by_its_waits() {
    let mut script = two_clients();
    let is_busy = |script: &Script| [0, 1].map(|key| script.0.clients()[key].is_busy());
    // Both clients are busy, although one client's short requests are noticed only after the other's long requests.
    for at in (0..500).step_by(50) {
        script.fact(at, Fact::Arrived { client: ClientId(1) });
        script.fact(at, Fact::Arrived { client: ClientId(2) });
        script.slice(1, at, at + 1, 1, false).expect("its burst is over");
        script.slice(2, at + 1, at + 50, 1, false).expect("its burst is over");
        assert_eq!(is_busy(&script), [true, true], "at {at}");
    }
    // Client 1 continues 1 ms after each reply. Client 2 continues after tens of milliseconds, and its waits are longer
    // than its service.
    for turn in 0..50 {
        let at = 1000 + turn * 100;
        for at in (at..at + 90).step_by(10) {
            script.fact(at + 1, Fact::Arrived { client: ClientId(1) });
            script.slice(1, at + 1, at + 10, 1, false).expect("its burst is over");
        }
        script.fact(at + 85, Fact::Arrived { client: ClientId(2) });
        script.slice(2, at + 90, at + 92, 1, false).expect("its burst is over");
        assert!(turn < 10 || is_busy(&script) == [true, false], "turn {turn}");
    }
    // After an idle hour, client 1 does not count as busy, even while it waits.
    script.fact(3_600_000, Fact::Arrived { client: ClientId(1) });
    script.slice(1, 3_600_090, 3_600_100, 1, false).expect("its burst is over");
    assert_eq!(is_busy(&script), [false, false]);
    for turn in 0..100 {
        let at = 3_600_100 + turn * 100;
        script.fact(at + 1, Fact::Arrived { client: ClientId(1) });
        script.slice(1, at + 90, at + 100, 1, false).expect("its burst is over");
    }
    assert_eq!(is_busy(&script), [true, false]);
}

#[test]
fn grabs_are_counted_until_the_client_disconnects() {
    let mut script = two_clients();
    script.fact(1, Fact::Grabbed { by: Some(ClientId(1)) });
    script.fact(4, Fact::Grabbed { by: None });
    script.fact(5, Fact::Grabbed { by: Some(ClientId(1)) });
    script.fact(15, Fact::Disconnected { client: ClientId(1) });
    let total = &script.0.clients()[0].total;
    assert_eq!((total.grabs, total.grabbed_ns, total.longest_grab_ns), (2, 13 * MS, 10 * MS));
}

#[test]
fn waiting_during_a_grab_is_attributed_to_its_holder() {
    let mut script = two_clients();
    script.fact(0, Fact::Arrived { client: ClientId(1) });
    script.slice(1, 0, 10, 1, false);
    script.fact(10, Fact::Grabbed { by: Some(ClientId(1)) });
    script.fact(40, Fact::Arrived { client: ClientId(1) });
    script.slice(1, 40, 50, 1, false);
    script.fact(50, Fact::Grabbed { by: None });
    // This arrival is recorded only after the grab.
    script.fact(20, Fact::Arrived { client: ClientId(2) });
    let burst = script.slice(2, 51, 53, 1, false).expect("its burst is over");
    assert_eq!(burst.causes, [(Cause::Grab { key: 0 }, 30 * MS), (Cause::Server, MS)]);
    assert_eq!(burst.waited_ns, 31 * MS);
}

#[test]
fn a_wait_during_a_busy_grab_is_fully_attributed() {
    let mut script = two_clients();
    script.fact(10, Fact::Grabbed { by: Some(ClientId(1)) });
    for at in 1..100 {
        script.fact(10 + 10 * at, Fact::Arrived { client: ClientId(1) });
        script.slice(1, 10 + 10 * at, 15 + 10 * at, 1, false);
    }
    script.fact(1010, Fact::Grabbed { by: None });
    script.fact(20, Fact::Arrived { client: ClientId(2) });
    let burst = script.slice(2, 1010, 1011, 1, false).expect("its burst is over");
    assert_eq!(burst.causes, [(Cause::Grab { key: 0 }, 990 * MS)]);
}

#[test]
fn an_open_grab_counts_until_the_end() {
    let mut script = two_clients();
    script.fact(1, Fact::Grabbed { by: Some(ClientId(1)) });
    script.at(9, Entry::End);
    assert_eq!(script.0.clients()[0].total.grabbed_ns, 8 * MS);
}

#[test]
fn a_reused_index_is_another_client() {
    let mut script = two_clients();
    script.fact(1, Fact::Disconnected { client: ClientId(1) });
    script.fact(2, Fact::Connected { client: ClientId(1), descriptor: 4 });
    assert_eq!(script.0.clients().len(), 3);
    assert_eq!(script.0.name(2), "client 0x0");
}

#[test]
fn any_records_are_taken_without_panic() {
    let mut seed = xqos_testkit::seed();
    let mut model = Model::new();
    for _ in 0..200_000 {
        let mut word = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> (seed >> 59)
        };
        let head = (word() % 46) | ((word() & 0xff) << 8) | ((word() % 8) << 16) | (word() << 32);
        if let Some(event) = Event::decode([word(), head, word(), word()]) {
            model.take(&event);
        }
    }
    model.conclude();
    assert!(!model.clients().is_empty());
}

#[test]
fn a_character_split_between_two_parts_of_a_name_is_read() {
    let mut script = two_clients();
    let name = "Gänsefüßchenübung";
    assert!(!name.is_char_boundary(16));
    for (part, letters) in name.as_bytes().chunks(16).enumerate() {
        let mut bytes = [0; 16];
        bytes[..letters.len()].copy_from_slice(letters);
        script.at(1, Entry::Name { client: ClientId(1), part: part as u8, bytes });
    }
    assert_eq!(script.0.clients()[0].identity.program, name);
}

#[test]
fn figures_of_disconnected_clients_can_be_forgotten() {
    let mut script = two_clients();
    script.fact(0, Fact::Arrived { client: ClientId(1) });
    script.fact(0, Fact::Arrived { client: ClientId(2) });
    script.slice(1, 0, 5, 1, false);
    script.slice(2, 5, 6, 1, false).expect("it has waited");
    assert_eq!(script.0.delays().len(), 1);
    script.fact(7, Fact::Disconnected { client: ClientId(1) });
    script.0.forget_gone();
    assert_eq!((script.0.delays().len(), script.0.clients()[0].total.slices), (0, 0), "and no delays");
    assert_eq!((script.0.name(0).as_str(), script.0.clients()[1].total.slices), ("x11perf (100)", 1));
}

#[test]
fn unfinished_slices_and_bursts_end_with_the_trace() {
    let mut script = two_clients();
    script.fact(0, Fact::Arrived { client: ClientId(2) });
    script.slice(1, 0, 10, 4, true);
    let (until, mode, reason) = (Time::NEVER, Mode::BestEffort, Reason::Policy);
    script.at(10, Entry::Dispatch { client: Some(ClientId(1)), mode, reason, until, requests: 0, bytes: 0 });
    script.at(100, Entry::End);
    let Script(mut model) = script;
    model.conclude();
    let [busy, starved] = model.clients() else { panic!("{:?}", model.clients()) };
    assert_eq!((busy.total.server_time_ns, busy.total.requests), (100 * MS, 4));
    assert_eq!((starved.total.waited_ns, starved.total.longest_wait_ns), (100 * MS, 100 * MS));
    assert_eq!((starved.total.slices, starved.total.responses.worst_ns()), (0, 100 * MS));
    let behind: u64 = model.delays().iter().filter(|(key, ..)| *key == 1).map(|(_, _, ns)| ns).sum();
    assert_eq!((behind, model.worst[0].key), (100 * MS, 1));
}

#[test]
fn forgotten_clients_use_no_memory() {
    let (mut script, client) = (Script(Model::without_causes()), ClientId(1));
    for pid in 1..100 {
        script.fact(0, Fact::Connected { client, descriptor: 4 });
        script.at(0, Entry::Identity { client, pid, base: 1 << 20, uid: 0 });
        script.at(0, Entry::Name { client, part: 0, bytes: *b"xclock\0\0\0\0\0\0\0\0\0\0" });
        script.fact(0, Fact::Arrived { client });
        let burst = script.slice(1, 0, 5, 1, false).expect("it is over");
        assert_eq!(script.0.name(burst.key), format!("xclock ({pid})"));
        assert_eq!(script.0.clients()[burst.key].total.slices, 1, "not those of an earlier client");
        script.fact(6, Fact::Disconnected { client });
        script.0.forget_gone();
        assert_eq!(script.0.name(burst.key), format!("xclock ({pid})"), "it is known until the next call");
    }
    assert!(script.0.clients().len() <= 2 && script.0.local.len() <= 1);
}
