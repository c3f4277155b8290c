// SPDX-License-Identifier: MIT
//! Tests that memory, open files and threads do not grow over many connections and resets, and that the maximum number
//! of clients is served.

use crate::busy::Busy;
use crate::fixture::{Fixture, SOON, alone, setup, wait_for, xvfb};
use crate::survival::connect_after_reset;
use crate::tracing;
use crate::wire::Wire;
use std::time::Duration;
use xqos_abi::trace::Level;
use xqos_abi::{ByteOrder, Request, Setting, Subject, event_mask};
use xqos_lab::process;
use xqos_lab::server::{ServerKind, Setup};

/// Less than 64 bytes for each of ten thousand connections, but more than the variation of a stock server's heap.
const NOISE_KB: u64 = 500;
/// The threads of an Xvfb with a watcher, which starts when it is first needed.
const WITH_WATCHER: usize = 2;

fn reserve(hard: bool) -> Request {
    Subject::Client(0).set(Setting::reservation(1000, 10_000, hard))
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Resources {
    threads: usize,
    open_files: usize,
}

fn resources(fixture: &Fixture) -> Resources {
    Resources { threads: fixture.threads(), open_files: fixture.open_files() }
}

/// Opens connections of every kind: some only connect and disconnect, others leave something behind.
fn come_and_go(fixture: &Fixture, count: usize) {
    for turn in 0..count {
        let order = if turn % 5 == 1 { ByteOrder::SWAPPED } else { ByteOrder::NATIVE };
        let mut wire = fixture.wire(order);
        match turn % 10 {
            0 => wire.tell_xqos(reserve(true)).unwrap(),
            3 => wire.tell_xqos(Request::SelectEvents { mask: event_mask::ALL }).unwrap(),
            5 => wire.set_sync_priority(0, 5 + turn as i32 % 3).unwrap(),
            7 => wire.set_grab(true),
            8 => wire.send_raw(&[127]),
            _ => {}
        }
    }
}

#[test]
fn ten_thousand_connections_leave_nothing_behind() {
    let _turn = alone();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
    let busy = Busy::start(&fixture);
    let all_gone = || wait_for("the clients are gone", SOON, || control.clients().unwrap().clients.len() == 2);
    come_and_go(&fixture, 500);
    all_gone();
    let (before, memory) = (resources(&fixture), fixture.private_kb());
    // For a moment, the watcher may read a folder in /proc.
    let nothing_is_left = || {
        wait_for("nothing is left open", SOON, || {
            let now = resources(&fixture);
            now.threads <= before.threads.max(WITH_WATCHER) && now.open_files <= before.open_files
        });
    };
    come_and_go(&fixture, 1000);
    all_gone();
    nothing_is_left();
    drop(busy);
    // These connections are faster, because there is no busy client to wait for.
    come_and_go(&fixture, 9000);
    let busy = Busy::start(&fixture);
    all_gone();
    nothing_is_left();
    let grown = fixture.private_kb().saturating_sub(memory);
    println!("{grown} KB more after 10,000 connections");
    assert!(grown < NOISE_KB, "{grown} KB more after 10,000 connections");
    drop(busy);
    wait_for("the client is gone", SOON, || control.server_info().unwrap().clients == 1);
    let info = control.server_info().unwrap();
    assert_eq!((info.reservations, info.admitted_utilization_ppm), (0, 0));
    fixture.assert_armed();
}

#[test]
fn a_hundred_resets_leave_nothing_behind() {
    const RESETS: usize = 100;
    let _turn = alone();
    let ours = Fixture::start(&Setup { resets: true, ..setup(ServerKind::Xvfb) });
    let stock = Fixture::start(&Setup { resets: true, ..Setup::stock(ServerKind::Xvfb) });
    // Measure while a client is connected, so that no generation begins or ends meanwhile.
    let measured = |fixture: &Fixture| {
        let mut wire = connect_after_reset(fixture);
        wire.sync();
        (resources(fixture), fixture.private_kb())
    };
    let grown = |fixture: &Fixture, turn: &dyn Fn()| {
        (0..10).for_each(|_| turn());
        let (before, memory) = measured(fixture);
        (0..RESETS).for_each(|_| turn());
        let (after, memory_after) = measured(fixture);
        assert!(after.threads <= before.threads.max(WITH_WATCHER), "{after:?} after {before:?}");
        // `before` may include a connection that the server had not closed yet.
        assert!(after.open_files <= before.open_files, "{after:?} after {before:?}");
        memory_after.saturating_sub(memory)
    };
    let (of_stock, of_ours) = std::thread::scope(|scope| {
        let of_stock = scope.spawn(|| grown(&stock, &|| connect_after_reset(&stock).sync()));
        let of_ours = grown(&ours, &|| {
            let mut wire = connect_after_reset(&ours);
            wire.tell_xqos(reserve(true)).unwrap();
            wire.set_sync_priority(0, 5).unwrap();
        });
        (of_stock.join().unwrap(), of_ours)
    });
    println!("{of_ours} KB more after {RESETS} resets, {of_stock} KB in a stock server");
    assert!(of_ours < of_stock + NOISE_KB, "{of_ours} KB more after {RESETS} resets, {of_stock} KB in a stock server");
    let generations = ours.xqos_log().matches("serves this server").count();
    assert!(generations >= RESETS, "only {generations} generations");
    let mut held = connect_after_reset(&ours);
    held.tell_xqos(reserve(true)).unwrap();
    let mut other = ours.native();
    // The watcher starts when there is something to watch, and a thread sets its name when it first runs.
    wait_for("there is one watcher", SOON, || {
        other.sync();
        ours.switches().unwrap().iter().filter(|thread| thread.name.contains("xqos")).count() == 1
    });
}

#[test]
fn two_thousand_clients_are_served_and_listed() {
    /// The server's limit is 2,048 including the server itself. This leaves a few connections for other clients.
    const CLIENTS: usize = 2040;
    let _turn = alone();
    process::allow_many_files();
    let mut fixture = Fixture::start(&Setup { max_clients: 2048, ..setup(ServerKind::Xvfb) });
    let control = fixture.control().unwrap();
    let memory = fixture.private_kb();
    let mut light = fixture.native();
    let mut all: Vec<Wire> = (0..CLIENTS).map(|_| fixture.native()).collect();
    let grown_kb = fixture.private_kb() - memory;
    println!("{grown_kb} KB for {CLIENTS} clients");
    let list = control.clients().unwrap().clients;
    assert_eq!(list.len(), CLIENTS + 2);
    assert!(all.iter().all(|wire| list.iter().any(|entry| entry.client == wire.base)));
    assert_eq!(control.server_info().unwrap().clients as usize, CLIENTS + 2);
    assert!(control.server_info().unwrap().memory_bytes < (1 << 20) + 1024 * CLIENTS as u32);
    // The last client can do everything that the first can.
    let last = all.last_mut().unwrap();
    last.tell_xqos(reserve(false)).unwrap();
    last.set_sync_priority(0, 3).unwrap();
    assert_eq!(control.reservation(last.base).unwrap().budget_us, 1000);

    let busy: Vec<Busy> = all.drain(..4).map(Busy::start_on).collect();
    all.iter_mut().for_each(Wire::sync);
    let mut reader = control.start_trace(Level::Slices, 0).unwrap();
    let (mut events, mut waits) = (Vec::new(), Vec::new());
    // A request that arrives before the server has seen the end of the data is not a new arrival.
    wait_for("40 arrivals are served", SOON, || {
        std::thread::sleep(Duration::from_millis(5));
        light.sync();
        events.extend(tracing::read(&mut reader));
        waits = tracing::waits(&events, tracing::id_of(&events, light.base));
        waits.len() >= 40
    });
    // A stock server serves two slices of others before most answers.
    let mut slices: Vec<usize> = waits.iter().map(|wait| wait.slices).collect();
    slices.sort_unstable();
    assert!(slices[20] <= 1, "slices before it was served: {slices:?}");
    // If clients were served in turn for 5 ms each, three of four answers would come after more processor time.
    let mut processor_ns: Vec<u64> = waits.iter().map(|wait| wait.processor_ns).collect();
    processor_ns.sort_unstable();
    assert!(processor_ns[10] < 4_000_000, "processor time before it was served: {processor_ns:?} ns");
    drop(busy);
    drop(all);
    wait_for("all clients are gone", SOON, || control.clients().unwrap().clients.len() == 2);
    drop(fixture.native());
    fixture.assert_armed();
}
