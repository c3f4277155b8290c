//! What a server lives through: resets, grabs, clients that vanish, recorders, foreign byte orders, faults of ours.

use crate::busy::{Busy, X11perf};
use crate::fixture::{
    Fixture, alone, beside_others, entry, is_from_below, module, policies, setup, try_entry, wait_for, xvfb, xvfb_with,
};
use crate::wire::{Authorization, Wire, code, local_socket, opcode};
use std::io::Write;
use std::time::{Duration, Instant};
use xqos_abi::{Order, PolicyChange, Request, ReservationReport, entry_flag};
use xqos_client::Control;
use xqos_core::PolicyKind;
use xqos_lab::load::{Load, Perf, Placement};
use xqos_lab::server::{Kind, Module, Setup};

const SOON: Duration = Duration::from_secs(5);
/// Not answered by then: it waits for something.
const A_WHILE: Duration = Duration::from_millis(150);

fn reserve(budget_us: u32, period_us: u32, hard: bool) -> Request {
    Request::SetReservation { client: 0, budget_us, period_us, hard }
}

fn policy(kind: PolicyKind) -> PolicyChange {
    PolicyChange { policy: Some(kind), ..PolicyChange::default() }
}

/// A busy client that gets a millisecond in ten seconds, after it has had that.
fn held_back(fixture: &Fixture, control: &Control) -> Busy {
    let busy = Busy::start_with(fixture.native(), &[reserve(1000, 10_000_000, true)]);
    wait_for("it is held back", SOON, || entry(control, busy.base).flags & entry_flag::HELD_BACK != 0);
    busy
}

fn is_held_back(control: &Control, base: u32) -> bool {
    entry(control, base).flags & entry_flag::HELD_BACK != 0
}

// Reset.

#[test]
fn a_reset_server_is_armed_again() {
    let _turn = beside_others();
    let mut fixture = Fixture::start(&Setup { resets: true, ..setup(Kind::Xvfb) });
    for generation in 1..=3 {
        let mut wire = connect_after_reset(&fixture);
        wire.tell_xqos(reserve(3000, 10_000, true)).unwrap();
        wire.set_sync_priority(0, 7).unwrap();
        let reply = wire.ask_xqos(Request::ListClients).unwrap();
        let list = xqos_abi::ClientList::decode(&reply, Order::Native).unwrap();
        assert_eq!((list.clients.len(), list.clients[0].sync_priority), (1, 7), "generation {generation}: {list:?}");
        drop(wire);
    }
    // Held back, in the midst of a slice, and with the grab: the last client leaves with all of it.
    let busy = Busy::start_with(connect_after_reset(&fixture), &[reserve(1000, 10_000_000, true)]);
    std::thread::sleep(A_WHILE);
    drop(busy);
    let mut wire = connect_after_reset(&fixture);
    wire.set_grab(true);
    drop(wire);
    let mut wire = connect_after_reset(&fixture);
    let reply = wire.ask_xqos(Request::GetServerInfo).unwrap();
    let info = xqos_abi::ServerInfo::decode(&reply, Order::Native).unwrap();
    assert!(info.armed && info.reservations == 0 && info.admitted_utilization_ppm == 0, "{info:?}");
    assert!(fixture.is_running());
}

/// Once the server has noticed that its clients are gone. Who comes while it resets may be turned away with them.
pub fn connect_after_reset(fixture: &Fixture) -> Wire {
    wait_for("its clients are gone", SOON, || !has_clients(fixture));
    let end = Instant::now() + SOON;
    loop {
        match Wire::try_connect(local_socket(fixture.display()), Order::Native, &Authorization::default()) {
            Ok(wire) => return wire,
            Err(reason) => assert!(Instant::now() < end, "no connection after a reset: {reason}"),
        }
    }
}

/// By the kernel's list of sockets: those of the server's end have the display's name.
fn has_clients(fixture: &Fixture) -> bool {
    const CONNECTED: &str = "03";
    let name = format!("/X{}", fixture.display().trim_start_matches(':'));
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    sockets.lines().any(|line| line.split_whitespace().nth(5) == Some(CONNECTED) && line.ends_with(&name))
}

// Grabs.

#[test]
fn a_server_grab_by_any_client_ends_with_everybody_served() {
    let _turn = beside_others();
    for kind in policies() {
        let mut fixture = xvfb_with(kind);
        let control = fixture.control().unwrap();
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
            let list = xqos_abi::ClientList::decode(&reply, Order::Native).unwrap();
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
fn who_holds_the_grab_is_not_held_back_and_is_again_afterwards() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
    let mut other = fixture.native();
    let mut holder = fixture.native();
    let canvas = holder.canvas(500, 500);
    holder.tell_xqos(reserve(1000, 500_000, true)).unwrap();
    holder.set_grab(true);
    // Far more than its budget; with it alone the last answer would come after half a minute.
    let began = Instant::now();
    let many = canvas.fill(10).repeat(10);
    for _ in 0..4 {
        (0..10).for_each(|_| holder.send(&[]));
        holder.send_raw(&many);
        holder.sync();
    }
    assert!(began.elapsed() < Duration::from_secs(2), "held back with the grab: {:?}", began.elapsed());
    holder.set_grab(false);
    other.sync();
    // Without the grab it is held back like anyone.
    (0..10).for_each(|_| holder.send(&[]));
    holder.send_raw(&many);
    wait_for("it is held back", SOON, || is_held_back(&control, holder.base));
    other.sync();
    fixture.assert_armed();
}

#[test]
fn a_throttled_client_grabs_once_it_is_served_and_nobody_waits_before() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
    let mut other = fixture.native();
    let mut holder = fixture.native();
    let canvas = holder.canvas(500, 500);
    holder.tell_xqos(reserve(1000, 20_000, true)).unwrap();
    other.sync();
    // Depleted by the first request, then the grab, then work under it, all in one write.
    let mut bytes = canvas.fill(60);
    bytes.extend(holder.message(opcode::GRAB_SERVER, 0).finish());
    bytes.extend(canvas.fill(20).repeat(10));
    bytes.extend(holder.message(opcode::UNGRAB_SERVER, 0).finish());
    (0..13).for_each(|_| holder.send(&[]));
    holder.send_raw(&bytes);
    wait_for("it is held back", SOON, || is_held_back(&control, holder.base));
    for _ in 0..20 {
        let asked = Instant::now();
        other.sync();
        assert!(asked.elapsed() < Duration::from_secs(1), "waits for a client that is held back");
    }
    holder.sync();
    assert!(entry(&control, holder.base).grabbed_ns > 0);
    other.sync();
    fixture.assert_armed();
}

#[test]
fn a_client_that_is_killed_with_the_grab_sets_the_others_free() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
    let throttled = held_back(&fixture, &control);
    let busy = Busy::start(&fixture);
    let mut other = fixture.native();
    for reservation in [None, Some(reserve(3000, 10_000, false)), Some(reserve(1000, 1_000_000, true))] {
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
        assert!(other.is_answered(SOON), "{reservation:?}: nobody is served after the holder's end");
        let sent = busy.sent();
        wait_for("the busy client is served again", SOON, || busy.sent() > sent + 100);
    }
    assert!(is_held_back(&control, throttled.base));
    fixture.assert_armed();
}

#[test]
fn a_hold_that_ends_under_a_grab_ends_with_it() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
    let throttled = Busy::start_with(fixture.native(), &[reserve(1000, 100_000, true)]);
    wait_for("it is held back", SOON, || is_held_back(&control, throttled.base));
    let mut holder = fixture.native();
    holder.set_grab(true);
    std::thread::sleep(Duration::from_millis(350));
    holder.set_grab(false);
    let before = entry(&control, throttled.base).requests;
    wait_for("it is served again", SOON, || entry(&control, throttled.base).requests > before);
    fixture.assert_armed();
}

// Clients that vanish.

#[test]
fn clients_that_vanish_in_the_midst_of_a_request_leave_nothing_behind() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
    let mut other = fixture.native();
    for order in [Order::Native, Order::Swapped] {
        for cut in [1, 3, 4, 6, 19] {
            let mut wire = fixture.wire(order);
            let request = wire.canvas(10, 10).fill(1);
            wire.send_raw(&request[..cut]);
            std::thread::sleep(Duration::from_millis(3));
            other.sync();
        }
    }
    // In the midst of the connection's setup, and before it.
    for cut in [0, 1, 7, 11] {
        let mut stream = local_socket(fixture.display());
        stream.write_all(&[b'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0][..cut]).unwrap();
        std::thread::sleep(Duration::from_millis(3));
        other.sync();
    }
    wait_for("all of them are gone", SOON, || control.clients().unwrap().clients.len() == 2);
    fixture.assert_armed();
}

#[test]
fn half_a_request_takes_no_time_from_the_others() {
    let _turn = beside_others();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let mut wire = fixture.native();
    let canvas = wire.canvas(10, 10);
    wire.sync();
    let request = canvas.fill(1);
    wire.send_raw(&request[..10]);
    let before = entry(&control, wire.base);
    std::thread::sleep(Duration::from_millis(300));
    let after = entry(&control, wire.base);
    assert_eq!(before.requests, after.requests);
    assert!(after.slices - before.slices < 5, "the server keeps trying: {} slices", after.slices - before.slices);
    wire.send(&request[10..]);
    wire.sync();
    assert_eq!(entry(&control, wire.base).requests, before.requests + 2);
}

#[test]
fn clients_that_are_killed_in_the_midst_of_a_slice_are_forgotten() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
    let mut other = fixture.native();
    for test in ["ellipse100", "noop", "getimagexy100", "putimage500"] {
        for perf in X11perf::start_many(&fixture, test, 3) {
            perf.kill();
            other.sync();
        }
        wait_for("they are gone", SOON, || control.clients().unwrap().clients.len() == 2);
    }
    for _ in 0..30 {
        let busy = Busy::start(&fixture);
        control.reserve(busy.base, 2000, 10_000, false).unwrap();
        other.sync();
        let base = busy.base;
        busy.end();
        wait_for("it is gone", SOON, || try_entry(&control, base).is_none());
    }
    wait_for("they are gone", SOON, || control.clients().unwrap().clients.len() == 2);
    let info = control.server_info().unwrap();
    assert_eq!((info.reservations, info.admitted_utilization_ppm), (0, 0));
    fixture.assert_armed();
}

#[test]
fn a_client_that_vanishes_while_it_is_held_back_is_gone_at_once() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
    for _ in 0..5 {
        let busy = held_back(&fixture, &control);
        let base = busy.base;
        busy.end();
        wait_for("it is gone", Duration::from_secs(2), || try_entry(&control, base).is_none());
        assert_eq!(control.server_info().unwrap().reservations, 0);
    }
    // Also by the wish of another client.
    let busy = held_back(&fixture, &control);
    let mut other = fixture.native();
    let request = other.message(opcode::KILL_CLIENT, 0).u32(busy.base + 1).finish();
    other.tell(&request).unwrap();
    assert!(try_entry(&control, busy.base).is_none());
    fixture.assert_armed();
}

#[test]
fn clients_that_leave_their_resources_behind_are_no_clients_any_more() {
    const RETAIN_PERMANENT: u8 = 1;
    let _turn = beside_others();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
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
        // It goes in the midst of its work.
        wire.send_raw(&canvas.fill(1).repeat(100));
        retained.push((wire.base, canvas));
        drop(wire);
        let base = retained.last().unwrap().0;
        wait_for("it is not listed", SOON, || try_entry(&control, base).is_none());
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
    let _turn = beside_others();
    for kind in policies() {
        let mut fixture = xvfb_with(kind);
        let busy = Busy::start(&fixture);
        let mut wire = fixture.wire(Order::Swapped);
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
        let list = xqos_abi::ClientList::decode(&reply, Order::Swapped).unwrap();
        let own = list.clients.iter().find(|entry| entry.client == wire.base).unwrap();
        assert!(own.flags & entry_flag::YOU != 0 && own.sync_priority == 3, "{own:?}");
        drop(busy);
        fixture.assert_armed();
    }
}

// Recorders.

/// A recorder sees each request once, whichever policy is set, and whether it came before or after that policy.
#[test]
fn a_recorder_sees_every_request_under_every_policy() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
    for kind in policies() {
        for order in [Order::Native, Order::Swapped] {
            control.set_policy(policy(PolicyKind::Fair)).unwrap();
            let mut client = fixture.wire(order);
            let recorder = Recorder::start(&fixture);
            assert_eq!(recorder.seen_of(&mut client), 100, "{kind:?} {order:?}: recorded before any change");
            control.set_policy(policy(kind)).unwrap();
            assert_eq!(recorder.seen_of(&mut client), 100, "{kind:?} {order:?}: recorded before the policy was set");
            recorder.end();
            client.sync();
            let recorder = Recorder::start(&fixture);
            assert_eq!(recorder.seen_of(&mut client), 100, "{kind:?} {order:?}: recorded since the policy was set");
            control.set_policy(policy(PolicyKind::Fair)).unwrap();
            assert_eq!(recorder.seen_of(&mut client), 100, "{kind:?} {order:?}: recorded after the next policy");
            client.set_sync_priority(0, 9).unwrap();
            assert_eq!((client.sync_priority(0), entry(&control, client.base).sync_priority), (9, 9));
            // It vanishes with its context enabled.
            drop(recorder);
            client.sync();
        }
    }
    fixture.assert_armed();
}

/// Records the NoOperations and the requests of extensions of all clients but its own two connections.
struct Recorder {
    control: x11rb::rust_connection::RustConnection,
    context: u32,
    seen: std::sync::Arc<std::sync::atomic::AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Recorder {
    fn start(fixture: &Fixture) -> Recorder {
        use std::sync::atomic::Ordering::SeqCst;
        use x11rb::connection::Connection;
        use x11rb::protocol::record::{ConnectionExt, ExtRange, Range, Range8, Range16};
        const FROM_CLIENT: u8 = 1;
        const START_OF_DATA: u8 = 4;
        const ALL_CLIENTS: u32 = 3;
        let (control, data) = (fixture.connect().unwrap(), fixture.connect().unwrap());
        let context = control.generate_id().unwrap();
        let range = Range {
            core_requests: Range8 { first: 127, last: 127 },
            ext_requests: ExtRange {
                major: Range8 { first: 128, last: 255 },
                minor: Range16 { first: 0, last: u16::MAX },
            },
            ..Range::default()
        };
        control.record_create_context(context, 0, &[ALL_CLIENTS], &[range]).unwrap().check().unwrap();
        let seen = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let enabled = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (count, is_enabled) = (std::sync::Arc::clone(&seen), std::sync::Arc::clone(&enabled));
        let thread = std::thread::spawn(move || {
            let replies = data.record_enable_context(context).unwrap();
            for reply in replies.map_while(Result::ok) {
                match reply.category {
                    START_OF_DATA => is_enabled.store(true, SeqCst),
                    FROM_CLIENT => {
                        let no_operations = reply.data.chunks(4).filter(|head| head[0] == opcode::NO_OPERATION);
                        count.fetch_add(no_operations.count() as u64, SeqCst);
                    }
                    _ => {}
                }
            }
        });
        wait_for("the recorder runs", SOON, || enabled.load(SeqCst));
        Recorder { control, context, seen, thread }
    }

    /// Has the client send a hundred NoOperations; how many of them were recorded.
    fn seen_of(&self, client: &mut Wire) -> u64 {
        use std::sync::atomic::Ordering::SeqCst;
        let before = self.seen.load(SeqCst);
        let request = client.message(opcode::NO_OPERATION, 0).finish();
        (0..100).for_each(|_| client.send(&request));
        client.sync();
        let end = Instant::now() + SOON;
        while self.seen.load(SeqCst) < before + 100 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.seen.load(SeqCst) - before
    }

    fn end(self) {
        use x11rb::protocol::record::ConnectionExt;
        self.control.record_disable_context(self.context).unwrap().check().unwrap();
        self.thread.join().unwrap();
    }
}

// Faults of ours.

/// A server with a fault to come, and what has to be right after it.
struct Faulty {
    fixture: Fixture,
    fault: String,
}

impl Faulty {
    fn start(fault: &str) -> Faulty {
        let mut wanted = setup(Kind::Xvfb);
        wanted.environment.push(("XQOS_TEST_FAULT".into(), fault.into()));
        Faulty { fixture: Fixture::start(&wanted), fault: fault.to_owned() }
    }

    /// None where XQOS answers with an error, as it does to the request with the fault.
    fn is_armed(&self, wire: &mut Wire) -> Option<(bool, String)> {
        if is_from_below() && self.fixture.xqos_log().contains("stepped aside: ") {
            // There is nobody left to ask.
            return Some((false, "it stands in the log".into()));
        }
        let reply = wire.ask_xqos(Request::GetServerInfo).ok()?;
        let info = xqos_abi::ServerInfo::decode(&reply, Order::Native).unwrap();
        Some((info.armed, info.reason))
    }

    /// Lets a light client work until xqos has stepped aside.
    fn wait_until_aside(&self, light: &mut Wire) {
        wait_for(&format!("{}: it steps aside", self.fault), Duration::from_secs(30), || {
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
        std::thread::sleep(Duration::from_millis(100));
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

/// With three busy clients, a light one, SYNC priorities and a client that is held back at that moment.
#[test]
fn after_a_fault_under_load_everybody_is_served_as_by_a_stock_server() {
    let _turn = beside_others();
    for fault in ["wakeup:600", "block:901", "check:700", "request:30", "watcher:30"] {
        if fault.starts_with("watcher") && is_from_below() {
            // There is no such thread.
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
        wait_for("nothing is read of it", SOON, || {
            let sent = throttled.sent();
            light.sync();
            std::thread::sleep(Duration::from_millis(20));
            throttled.sent() == sent
        });
        faulty.wait_until_aside(&mut light);
        faulty.assert_everybody_is_served(&mut light, &mut load);
        let sent = throttled.sent();
        wait_for(&format!("{fault}: who was held back is served"), SOON, || throttled.sent() > sent + 300);
        // The low one itself would have to wait for the busy ones, as it should.
        let mut others = |client: &Wire| light.sync_priority(client.base + 1);
        assert_eq!((others(&high), others(&low)), (70, i32::MIN), "{fault}");
        assert_eq!((high.sync_priority(0), light.sync_priority(0)), (70, 0), "{fault}");
        assert!(faulty.fixture.is_running() && faulty.fixture.threads() == 1, "{fault}");
    }
}

#[test]
fn after_an_early_fault_everybody_is_served_as_by_a_stock_server() {
    let _turn = beside_others();
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

/// The client that is held back cannot be made ready at that moment.
#[test]
fn after_a_fault_under_a_grab_who_was_held_back_is_served_with_the_others() {
    let _turn = beside_others();
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
    let _turn = beside_others();
    let mut wanted = Setup { resets: true, ..setup(Kind::Xvfb) };
    wanted.environment.push(("XQOS_TEST_FAULT".into(), "request:3".into()));
    let fixture = Fixture::start(&wanted);
    for _ in 0..3 {
        let mut wire = connect_after_reset(&fixture);
        assert!(wire.ask_xqos(Request::ListClients).is_ok());
        wire.tell_xqos(reserve(1000, 10_000, true)).unwrap();
        assert_eq!(wire.ask_xqos(Request::ListClients).unwrap_err().code, code::BAD_IMPLEMENTATION);
        if is_from_below() {
            continue;
        }
        let info = xqos_abi::ServerInfo::decode(&wire.ask_xqos(Request::GetServerInfo).unwrap(), Order::Native);
        assert!(!info.unwrap().armed);
    }
}

/// RECORD keeps copies of the request tables, with our entries in them: they must lead on when xqos is gone.
#[test]
fn a_recorder_goes_on_after_a_fault() {
    let _turn = beside_others();
    for kind in policies() {
        let mut wanted = setup(Kind::Xvfb);
        wanted.module = Some(Module { policy: Some(kind), ..module() });
        wanted.environment.push(("XQOS_TEST_FAULT".into(), "request:4".into()));
        let fixture = Fixture::start(&wanted);
        let (mut native, mut swapped) = (fixture.native(), fixture.wire(Order::Swapped));
        let recorder = Recorder::start(&fixture);
        let mut asked = fixture.native();
        wait_for("it steps aside", SOON, || {
            asked.ask_xqos(Request::ListClients).is_err_and(|error| error.code == code::BAD_IMPLEMENTATION)
        });
        for client in [&mut native, &mut swapped] {
            assert_eq!(recorder.seen_of(client), 100, "{kind:?}");
            client.set_sync_priority(0, 12).unwrap();
            assert_eq!(client.sync_priority(0), 12, "{kind:?}");
        }
    }
}

// Work goes on.

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
    wait_for("its budgets are used", SOON, || depletions() >= before + 5);
    for mut perf in load {
        assert!(perf.is_running());
    }
    let reply = light.ask_xqos(Request::GetReservation { client: busy.base }).unwrap();
    assert!(ReservationReport::decode(&reply, Order::Native).unwrap().reserved);
    fixture.assert_armed();
}
