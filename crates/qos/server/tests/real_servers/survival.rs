// SPDX-License-Identifier: MIT
//! Tests of what a server must survive: resets, grabs, vanishing clients, recorders, the other byte order, faults in
//! xqos.

use crate::busy::{Busy, X11perf};
use crate::decisions::Decisions;
use crate::fixture::{
    Fixture, SOON, alone, entry, fix_blocking, in_parallel, is_held_back, policies, served, setup, try_entry,
    wait_before, wait_for, xvfb, xvfb_with,
};
use crate::wire::{Authorization, Wire, code, local_socket, opcode};
use std::io::Write;
use std::time::{Duration, Instant};
use xqos_abi::{ByteOrder, PolicyChange, Request, ReservationReport, Setting, Subject, entry_flag};
use xqos_client::Control;
use xqos_core::PolicyKind;
use xqos_lab::server::{ServerKind, Setup};

/// A client without a reply after this time is assumed to be waiting.
const A_WHILE: Duration = Duration::from_millis(150);

fn reserve(budget_us: u32, period_us: u32, hard: bool) -> Request {
    Subject::Client(0).set(Setting::reservation(budget_us, period_us, hard))
}

pub fn policy(kind: PolicyKind) -> PolicyChange {
    PolicyChange { policy: Some(kind), ..PolicyChange::default() }
}

/// A busy client with a budget of one millisecond in ten seconds, which it has used up.
fn held_back(fixture: &Fixture, control: &Control) -> Busy {
    let busy = Busy::start_with(fixture.native(), &[reserve(1000, 10_000_000, true)]);
    wait_for("the client is held back", SOON, || is_held_back(control, busy.base));
    busy
}

// Reset.

#[test]
fn a_reset_server_is_armed_again() {
    let _turn = in_parallel();
    let mut fixture = Fixture::start(&Setup { resets: true, ..setup(ServerKind::Xvfb) });
    for generation in 1..=3 {
        let mut wire = connect_after_reset(&fixture);
        wire.tell_xqos(reserve(3000, 10_000, true)).unwrap();
        wire.set_sync_priority(0, 7).unwrap();
        let reply = wire.ask_xqos(Request::ListClients).unwrap();
        let list = xqos_abi::ClientList::decode(&reply, ByteOrder::NATIVE).unwrap();
        assert_eq!((list.clients.len(), list.clients[0].sync_priority), (1, 7), "generation {generation}: {list:?}");
        drop(wire);
    }
    // The last client disconnects while it is held back, in the middle of a slice, or while it holds the grab.
    let busy = Busy::start_with(connect_after_reset(&fixture), &[reserve(1000, 10_000_000, true)]);
    std::thread::sleep(A_WHILE); // time: a control connection would prevent the reset
    drop(busy);
    let mut wire = connect_after_reset(&fixture);
    wire.set_grab(true);
    drop(wire);
    let mut wire = connect_after_reset(&fixture);
    let reply = wire.ask_xqos(Request::GetServerInfo).unwrap();
    let info = xqos_abi::ServerInfo::decode(&reply, ByteOrder::NATIVE).unwrap();
    assert!(info.armed && info.reservations == 0 && info.admitted_utilization_ppm == 0, "{info:?}");
    assert!(fixture.is_running());
}

/// Connects once the server has noticed that its clients are gone. A client that connects during a reset may be
/// rejected.
pub fn connect_after_reset(fixture: &Fixture) -> Wire {
    const PATIENCE: Duration = Duration::from_secs(60);
    wait_for("the clients are gone", PATIENCE, || !has_clients(fixture));
    let end = Instant::now() + PATIENCE;
    loop {
        match Wire::try_connect(local_socket(fixture.display()), ByteOrder::NATIVE, &Authorization::default()) {
            Ok(wire) => return wire,
            Err(reason) => assert!(Instant::now() < end, "no connection after a reset: {reason}"),
        }
    }
}

/// Returns true if the kernel lists a connected socket with the display's name; the server's ends have such names.
fn has_clients(fixture: &Fixture) -> bool {
    const CONNECTED: &str = "03";
    let name = format!("/X{}", fixture.display().trim_start_matches(':'));
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    sockets.lines().any(|line| line.split_whitespace().nth(5) == Some(CONNECTED) && line.ends_with(&name))
}

// Grabs.

#[test]
fn all_clients_are_served_after_a_server_grab_by_any_client() {
    let _turn = in_parallel();
    for kind in policies() {
        let mut fixture = xvfb_with(kind);
        let control = fixture.control().unwrap();
        fix_blocking(&control);
        let busy = Busy::start(&fixture);
        let mut other = fixture.native();
        for reservation in [None, Some(reserve(3000, 10_000, false)), Some(reserve(3000, 10_000, true))] {
            let mut holder = fixture.native();
            if let Some(reservation) = reservation {
                holder.tell_xqos(reservation).unwrap();
            }
            holder.set_grab(true);
            let question = other.message(opcode::GET_INPUT_FOCUS, 0).finish();
            other.send(&question);
            assert!(!other.is_answered(A_WHILE), "{kind:?} {reservation:?}: served under a grab");
            let reply = holder.ask_xqos(Request::ListClients).unwrap();
            let list = xqos_abi::ClientList::decode(&reply, ByteOrder::NATIVE).unwrap();
            let holds = |base| list.clients.iter().any(|c| c.client == base && c.flags & entry_flag::GRABS_SERVER != 0);
            assert!(holds(holder.base) && !holds(other.base) && !holds(busy.base));
            holder.set_grab(false);
            assert!(other.is_answered(SOON), "{kind:?} {reservation:?}: not served after a grab");
            let sent = busy.sent();
            wait_for("the busy client is served again", SOON, || busy.sent() > sent + 100);
            let grabbed_ns = entry(&control, holder.base).grabbed_ns;
            assert!(grabbed_ns >= A_WHILE.as_nanos() as u64, "{kind:?}: {grabbed_ns} ns");
        }
        fixture.assert_armed();
    }
}

#[test]
fn the_holder_of_a_grab_is_held_back_only_afterwards() {
    let (mut fixture, control) = served();
    let mut other = fixture.native();
    let mut holder = fixture.native();
    let canvas = holder.canvas(500, 500);
    let decisions = Decisions::of(&fixture);
    holder.set_grab(true);
    // Reserve only now, because the holder may be held back as soon as its budget is used up.
    holder.tell_xqos(reserve(1000, 10_000_000, true)).unwrap();
    // This is 200 times as much work as the budget.
    let many = canvas.fill(10).repeat(10);
    for _ in 0..40 {
        (0..10).for_each(|_| holder.send(&[]));
        holder.send_raw(&many);
        holder.sync();
    }
    let ungrab = holder.message(opcode::UNGRAB_SERVER, 0).finish();
    holder.send(&ungrab);
    other.sync();
    let slices = decisions.end();
    let its = || slices.iter().filter(|slice| slice.client == holder.base);
    let deadline = its().find_map(|slice| slice.reservation(holder.base)).unwrap().deadline;
    let served_ns: u64 = its().filter(|slice| slice.decided < deadline).map(|slice| slice.ns).sum();
    assert!(served_ns > 10_000_000, "{served_ns} ns in a period with a budget of 1 ms: held back with the grab");
    // Without the grab, the holder is held back like any other client.
    (0..10).for_each(|_| holder.send(&[]));
    holder.send_raw(&canvas.fill(100).repeat(10));
    wait_for("the client is held back", SOON, || is_held_back(&control, holder.base));
    other.sync();
    fixture.assert_armed();
}

#[test]
fn the_grab_of_a_held_client_delays_others_only_once_served() {
    let (mut fixture, control) = served();
    let mut other = fixture.native();
    let mut holder = fixture.native();
    let canvas = holder.canvas(500, 500);
    holder.tell_xqos(reserve(1000, 10_000_000, true)).unwrap();
    other.sync();
    // One write contains a request that uses up the budget, the grab, and work during the grab.
    let mut bytes = canvas.fill(60);
    bytes.extend(holder.message(opcode::GRAB_SERVER, 0).finish());
    bytes.extend(canvas.fill(20).repeat(10));
    bytes.extend(holder.message(opcode::UNGRAB_SERVER, 0).finish());
    (0..13).for_each(|_| holder.send(&[]));
    holder.send_raw(&bytes);
    wait_for("the client is held back", SOON, || is_held_back(&control, holder.base));
    (0..20).for_each(|_| other.sync());
    assert!(is_held_back(&control, holder.base), "the other waited for a client that is held back");
    let deadline_ns = entry(&control, holder.base).deadline_ns;
    control.release(holder.base).unwrap();
    holder.sync();
    wait_before(deadline_ns, &control, "the client is served", || true);
    assert!(entry(&control, holder.base).grabbed_ns > 0);
    other.sync();
    fixture.assert_armed();
}

#[test]
fn the_others_are_served_after_a_client_with_the_grab_is_killed() {
    let (mut fixture, control) = served();
    let throttled = held_back(&fixture, &control);
    let busy = Busy::start(&fixture);
    let mut other = fixture.native();
    // A second in which the server had no processor is paid back within ten seconds.
    for reservation in [None, Some(reserve(3000, 10_000, false)), Some(reserve(1000, 10_000, true))] {
        let mut holder = fixture.native();
        let canvas = holder.canvas(500, 500);
        if let Some(reservation) = reservation {
            holder.tell_xqos(reservation).unwrap();
        }
        holder.set_grab(true);
        (0..50).for_each(|_| holder.send(&canvas.fill(5)));
        let question = other.message(opcode::GET_INPUT_FOCUS, 0).finish();
        other.send(&question);
        drop(holder);
        assert!(other.is_answered(SOON), "{reservation:?}: not served after the holder's end");
        let sent = busy.sent();
        wait_for("the busy client is served again", SOON, || busy.sent() > sent + 100);
    }
    // It is served for a moment every ten seconds.
    wait_for("the client is held back", SOON, || is_held_back(&control, throttled.base));
    fixture.assert_armed();
}

#[test]
fn a_hold_that_expires_during_a_grab_ends_with_the_grab() {
    let (mut fixture, control) = served();
    // A second in which the server had no processor is paid back within ten seconds.
    let throttled = Busy::start_with(fixture.native(), &[reserve(10_000, 100_000, true)]);
    wait_for("the client is held back", SOON, || is_held_back(&control, throttled.base));
    let mut holder = fixture.native();
    holder.set_grab(true);
    std::thread::sleep(Duration::from_millis(350)); // time: the hold expires meanwhile
    holder.set_grab(false);
    let before = entry(&control, throttled.base).requests;
    wait_for("the client is served again", SOON, || entry(&control, throttled.base).requests > before);
    fixture.assert_armed();
}

// Clients that vanish.

#[test]
fn clients_that_vanish_during_a_request_leave_nothing_behind() {
    let (mut fixture, control) = served();
    let mut other = fixture.native();
    for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
        for cut in [1, 3, 4, 6, 19] {
            let mut wire = fixture.wire(order);
            let request = wire.canvas(10, 10).fill(1);
            wire.send_raw(&request[..cut]);
            std::thread::sleep(Duration::from_millis(3));
            other.sync();
        }
    }
    // Clients vanish in the middle of the connection setup, or before it.
    for cut in [0, 1, 7, 11] {
        let mut stream = local_socket(fixture.display());
        stream.write_all(&[b'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0][..cut]).unwrap();
        std::thread::sleep(Duration::from_millis(3));
        other.sync();
    }
    wait_for("all clients are gone", SOON, || control.clients().unwrap().clients.len() == 2);
    fixture.assert_armed();
}

#[test]
fn half_a_request_takes_no_time_from_the_others() {
    let (fixture, control) = served();
    let mut wire = fixture.native();
    let canvas = wire.canvas(10, 10);
    wire.sync();
    let request = canvas.fill(1);
    wire.send_raw(&request[..10]);
    let before = entry(&control, wire.base);
    std::thread::sleep(Duration::from_millis(300)); // time: nothing is served meanwhile
    let after = entry(&control, wire.base);
    assert_eq!(before.requests, after.requests);
    assert!(after.slices - before.slices < 5, "the server keeps trying: {} slices", after.slices - before.slices);
    wire.send(&request[10..]);
    wire.sync();
    assert_eq!(entry(&control, wire.base).requests, before.requests + 2);
}

#[test]
fn clients_that_are_killed_during_a_slice_are_forgotten() {
    let (mut fixture, control) = served();
    let mut other = fixture.native();
    for test in ["ellipse100", "noop", "getimagexy100", "putimage500"] {
        for perf in X11perf::start_many(&fixture, test, 3) {
            perf.kill();
            other.sync();
        }
        wait_for("the clients are gone", SOON, || control.clients().unwrap().clients.len() == 2);
    }
    for _ in 0..30 {
        let busy = Busy::start(&fixture);
        control.reserve(busy.base, 2000, 10_000, false).unwrap();
        other.sync();
        let base = busy.base;
        busy.end();
        wait_for("the client is gone", SOON, || try_entry(&control, base).is_none());
    }
    wait_for("the clients are gone", SOON, || control.clients().unwrap().clients.len() == 2);
    let info = control.server_info().unwrap();
    assert_eq!((info.reservations, info.admitted_utilization_ppm), (0, 0));
    fixture.assert_armed();
}

#[test]
fn a_client_that_vanishes_while_held_back_is_removed_immediately() {
    let (mut fixture, control) = served();
    for _ in 0..5 {
        let busy = held_back(&fixture, &control);
        let (base, deadline_ns) = (busy.base, entry(&control, busy.base).deadline_ns);
        busy.end();
        wait_before(deadline_ns, &control, "the client is gone", || try_entry(&control, base).is_none());
        assert_eq!(control.server_info().unwrap().reservations, 0);
    }
    // Another client can also disconnect it with KillClient.
    let busy = held_back(&fixture, &control);
    let mut other = fixture.native();
    let request = other.message(opcode::KILL_CLIENT, 0).u32(busy.base + 1).finish();
    other.tell(&request).unwrap();
    assert!(try_entry(&control, busy.base).is_none());
    fixture.assert_armed();
}

#[test]
fn clients_that_retain_their_resources_are_no_longer_clients() {
    const RETAIN_PERMANENT: u8 = 1;
    let (mut fixture, control) = served();
    let mut other = fixture.native();
    let mut retained = Vec::new();
    for kind in policies() {
        control.set_policy(policy(kind)).unwrap();
        let mut wire = fixture.native();
        let canvas = wire.canvas(50, 50);
        wire.set_sync_priority(0, 5).unwrap();
        wire.tell_xqos(reserve(1000, 10_000, true)).unwrap();
        let request = wire.message(opcode::SET_CLOSE_DOWN_MODE, RETAIN_PERMANENT).finish();
        wire.tell(&request).unwrap();
        // The client disconnects in the middle of its work.
        wire.send_raw(&canvas.fill(1).repeat(100));
        retained.push((wire.base, canvas));
        drop(wire);
        let base = retained.last().unwrap().0;
        wait_for("the client is not listed", SOON, || try_entry(&control, base).is_none());
        assert_eq!(control.server_info().unwrap().reservations, 0);
        let error = other.ask_xqos(Request::GetReservation { client: base }).unwrap_err();
        assert_eq!((error.code, error.value), (code::BAD_VALUE, base));
    }
    let next = fixture.native();
    assert!(retained.iter().all(|&(base, _)| base != next.base), "a retained client keeps its place");
    for (base, canvas) in retained {
        let own = other.canvas(1, 1);
        other.tell(&canvas.with_context_of(&own).fill(1)).expect("its resources are there");
        assert_eq!(other.sync_priority(base + 1), 5, "as the client had set it");
        let request = other.message(opcode::KILL_CLIENT, 0).u32(base + 1).finish();
        other.tell(&request).unwrap();
    }
    let connected: Vec<Wire> = (0..5).map(|_| fixture.native()).collect();
    assert_eq!(control.clients().unwrap().clients.len(), 3 + connected.len());
    fixture.assert_armed();
}

// Byte orders.

#[test]
fn a_client_of_the_other_byte_order_works_under_every_policy() {
    let _turn = in_parallel();
    for kind in policies() {
        let mut fixture = xvfb_with(kind);
        let busy = Busy::start(&fixture);
        let mut wire = fixture.wire(ByteOrder::SWAPPED);
        wire.set_patience(SOON);
        for _ in 0..10 {
            wire.sync();
            let request = wire.message(opcode::NO_OPERATION, 0).finish();
            wire.tell(&request).unwrap();
            let canvas = wire.canvas(100, 100);
            wire.tell(&canvas.fill(3)).unwrap();
            wire.set_sync_priority(0, 3).unwrap();
            assert_eq!(wire.sync_priority(0), 3, "{kind:?}");
        }
        let reply = wire.ask_xqos(Request::ListClients).unwrap();
        let list = xqos_abi::ClientList::decode(&reply, ByteOrder::SWAPPED).unwrap();
        let own = list.clients.iter().find(|entry| entry.client == wire.base).unwrap();
        assert!(own.flags & entry_flag::YOU != 0 && own.sync_priority == 3, "{own:?}");
        drop(busy);
        fixture.assert_armed();
    }
}

// Service continues.

#[test]
fn policies_can_be_changed_under_load() {
    let _turn = alone();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
    let load = X11perf::start_many(&fixture, "ellipse100", 3);
    let busy = Busy::start_with(fixture.native(), &[reserve(2000, 10_000, false)]);
    let mut light = fixture.native();
    for round in 0..20 {
        let kind = policies()[round * 7 % policies().len()];
        let slice_us = Some([100, 5000, 1_000_000][round % 3]);
        control.set_policy(PolicyChange { slice_us, ..policy(kind) }).unwrap();
        for _ in 0..3 {
            light.sync();
        }
    }
    control.set_policy(PolicyChange { slice_us: Some(5000), ..policy(PolicyKind::Fair) }).unwrap();
    let depletions = || control.reservation(busy.base).unwrap().depletions;
    let before = depletions();
    wait_for("five budgets are used", SOON, || depletions() >= before + 5);
    for mut perf in load {
        assert!(perf.is_running());
    }
    let reply = light.ask_xqos(Request::GetReservation { client: busy.base }).unwrap();
    assert!(ReservationReport::decode(&reply, ByteOrder::NATIVE).unwrap().active);
    fixture.assert_armed();
}
