// SPDX-License-Identifier: MIT
//! Tests of deliberate faults in xqos, after which all clients are served as by a stock server.

use crate::busy::Busy;
use crate::fixture::{Fixture, SOON, in_parallel, module, policies, setup, uses_libc_host, wait_for};
use crate::recorder::Recorder;
use crate::survival::connect_after_reset;
use crate::wire::{Wire, code};
use std::time::{Duration, Instant};
use xqos_abi::{ByteOrder, Request, Setting, Subject};
use xqos_lab::load::{Load, Perf, Placement};
use xqos_lab::server::{Module, ServerKind, Setup};

fn reserve(budget_us: u32, period_us: u32, hard: bool) -> Request {
    Subject::Client(0).set(Setting::reservation(budget_us, period_us, hard))
}

/// A server with a planned fault, and checks to be made after the fault.
struct Faulty {
    fixture: Fixture,
    fault: String,
}

impl Faulty {
    fn start(fault: &str) -> Faulty {
        let mut wanted = setup(ServerKind::Xvfb);
        wanted.environment.push(("XQOS_TEST_FAULT".into(), fault.into()));
        Faulty { fixture: Fixture::start(&wanted), fault: fault.to_owned() }
    }

    /// Returns `None` if XQOS answers with an error, as it does to the request during which the fault occurs.
    fn is_armed(&self, wire: &mut Wire) -> Option<(bool, String)> {
        if uses_libc_host() && self.fixture.xqos_log().contains("stepped aside: ") {
            // The control socket is closed.
            return Some((false, "see the log".into()));
        }
        let reply = wire.ask_xqos(Request::GetServerInfo).ok()?;
        let info = xqos_abi::ServerInfo::decode(&reply, ByteOrder::NATIVE).unwrap();
        Some((info.armed, info.reason))
    }

    /// Sends requests from the client `light` until xqos has stepped aside.
    fn wait_until_aside(&self, light: &mut Wire) {
        wait_for(&format!("{}: xqos steps aside", self.fault), SOON, || {
            for _ in 0..20 {
                light.sync();
            }
            let said = self.is_armed(light);
            if let Some((false, reason)) = &said {
                assert!(!reason.is_empty(), "{}: no reason", self.fault);
            }
            matches!(said, Some((false, _)))
        });
        let log = self.fixture.xqos_log();
        assert_eq!(log.matches("stepped aside").count(), 1, "{}: {log}", self.fault);
    }

    fn assert_everybody_is_served(&self, light: &mut Wire, load: &mut Load) {
        let from = Instant::now();
        for _ in 0..20 {
            light.sync();
        }
        std::thread::sleep(Duration::from_millis(100)); // time: the work of this time is counted
        let work = load.work(from, Instant::now()).unwrap();
        assert!(work.iter().all(|&done| done > 0.0), "{}: {work:?}", self.fault);
        let mut late = self.fixture.native();
        late.sync();
        let error = late.tell_xqos(reserve(3000, 10_000, true)).unwrap_err();
        assert_eq!(error.code, code::BAD_IMPLEMENTATION, "{}", self.fault);
    }
}

fn x11perf_load(fixture: &Fixture) -> Load {
    Load::start(fixture.display(), &Perf { test: "ellipse100".to_owned(), reps: 1000 }, 3, Placement::Stacked).unwrap()
}

/// The fault occurs with three busy clients, a client with short requests, SYNC priorities, and a client held back.
#[test]
fn all_clients_are_served_after_a_fault_under_load() {
    let _turn = in_parallel();
    for fault in ["wakeup:600", "block:901", "check:700", "request:30", "watcher:30"] {
        if fault.starts_with("watcher") && uses_libc_host() {
            // The libc host has no watcher thread.
            continue;
        }
        let mut faulty = Faulty::start(fault);
        let mut light = faulty.fixture.native();
        let (mut high, mut low) = (faulty.fixture.native(), faulty.fixture.native());
        for (client, priority) in [(&mut high, 70), (&mut low, i32::MIN)] {
            client.canvas(1, 1);
            client.set_sync_priority(0, priority).unwrap();
        }
        let throttled = Busy::start_with(faulty.fixture.native(), &[reserve(1000, 10_000_000, true)]);
        let mut load = x11perf_load(&faulty.fixture);
        wait_for("the server stops reading from the client", SOON, || {
            let sent = throttled.sent();
            light.sync();
            std::thread::sleep(Duration::from_millis(20));
            throttled.sent() == sent
        });
        faulty.wait_until_aside(&mut light);
        faulty.assert_everybody_is_served(&mut light, &mut load);
        let sent = throttled.sent();
        wait_for(&format!("{fault}: the held client is served"), SOON, || throttled.sent() > sent + 300);
        // The low-priority client would itself have to wait for the busy ones, so another client reads its priority.
        let mut others = |client: &Wire| light.sync_priority(client.base + 1);
        assert_eq!((others(&high), others(&low)), (70, i32::MIN), "{fault}");
        assert_eq!((high.sync_priority(0), light.sync_priority(0)), (70, 0), "{fault}");
        assert!(faulty.fixture.is_running() && faulty.fixture.threads() == 1, "{fault}");
    }
}

#[test]
fn all_clients_are_served_after_an_early_fault() {
    let _turn = in_parallel();
    for fault in ["wakeup:1", "wakeup:9", "block:1", "check:2", "request:1", "request:2"] {
        let mut faulty = Faulty::start(fault);
        let mut light = faulty.fixture.native();
        faulty.wait_until_aside(&mut light);
        let mut load = x11perf_load(&faulty.fixture);
        faulty.assert_everybody_is_served(&mut light, &mut load);
        light.set_sync_priority(0, 4).unwrap();
        assert_eq!(light.sync_priority(0), 4, "{fault}");
        assert!(faulty.fixture.is_running(), "{fault}");
    }
}

/// During the grab, xqos cannot make the held client ready.
#[test]
fn a_held_client_is_served_with_the_others_after_a_fault_during_a_grab() {
    let _turn = in_parallel();
    for fault in ["wakeup:3000", "block:3000", "check:3000"] {
        let faulty = Faulty::start(fault);
        let mut light = faulty.fixture.native();
        let throttled = Busy::start_with(faulty.fixture.native(), &[reserve(1000, 10_000_000, true)]);
        let busy = Busy::start(&faulty.fixture);
        light.set_grab(true);
        std::thread::sleep(Duration::from_millis(20));
        faulty.wait_until_aside(&mut light);
        let sent = (throttled.sent(), busy.sent());
        light.set_grab(false);
        let both = || throttled.sent() > sent.0 + 300 && busy.sent() > sent.1 + 300;
        wait_for(&format!("{fault}: both are served"), SOON, both);
    }
}

#[test]
fn a_server_that_resets_after_a_fault_is_armed_again() {
    let _turn = in_parallel();
    let mut wanted = Setup { resets: true, ..setup(ServerKind::Xvfb) };
    wanted.environment.push(("XQOS_TEST_FAULT".into(), "request:3".into()));
    let fixture = Fixture::start(&wanted);
    for _ in 0..3 {
        let mut wire = connect_after_reset(&fixture);
        assert!(wire.ask_xqos(Request::ListClients).is_ok());
        wire.tell_xqos(reserve(1000, 10_000, true)).unwrap();
        assert_eq!(wire.ask_xqos(Request::ListClients).unwrap_err().code, code::BAD_IMPLEMENTATION);
        if uses_libc_host() {
            continue;
        }
        let info = xqos_abi::ServerInfo::decode(&wire.ask_xqos(Request::GetServerInfo).unwrap(), ByteOrder::NATIVE);
        assert!(!info.unwrap().armed);
    }
}

/// RECORD keeps copies of the request tables with our wrappers in them. These wrappers must still call the original
/// procedures.
#[test]
fn a_recorder_continues_after_a_fault() {
    let _turn = in_parallel();
    for kind in policies() {
        let mut wanted = setup(ServerKind::Xvfb);
        wanted.module = Some(Module { policy: Some(kind), ..module() });
        wanted.environment.push(("XQOS_TEST_FAULT".into(), "request:4".into()));
        let fixture = Fixture::start(&wanted);
        let (mut native, mut swapped) = (fixture.native(), fixture.wire(ByteOrder::SWAPPED));
        let recorder = Recorder::start(&fixture);
        let mut asked = fixture.native();
        wait_for("xqos steps aside", SOON, || {
            asked.ask_xqos(Request::ListClients).is_err_and(|error| error.code == code::BAD_IMPLEMENTATION)
        });
        for client in [&mut native, &mut swapped] {
            assert_eq!(recorder.seen_of(client), 100, "{kind:?}");
            client.set_sync_priority(0, 12).unwrap();
            assert_eq!(client.sync_priority(0), 12, "{kind:?}");
        }
    }
}
