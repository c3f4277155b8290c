// SPDX-License-Identifier: MIT
//! Tests the rests of cut requests in unusual situations: clients that are killed, grabs, resets, recorders, the other
//! byte order, long requests, faults in xqos.
//!
//! The requests invert the rows of a [`Sheet`], so a part that is left out or executed twice is visible.

use super::sheet::{LONG, Sheet, begin, rows, rows_after, start};
use super::world::message;
use crate::fixture::{Fixture, SOON, entry, is_held_back, is_missing, try_entry, wait_for};
use crate::recorder::Recorder;
use crate::survival::connect_after_reset;
use crate::wire::{Wire, opcode};
use xqos_abi::{ByteOrder, CutReport, PolicyChange, Request, ServerInfo};
use xqos_client::Control;
use xqos_core::PolicyKind;
use xqos_lab::server::{ServerKind, Setup};
use xqos_testkit::Random;

fn report(control: &Control) -> CutReport {
    control.cut().unwrap()
}

#[test]
fn the_requests_of_clients_that_vanish_are_executed_whole_or_not_at_all() {
    const TURNS: usize = 140;
    // Odd and even numbers of requests leave different rows.
    const PARTS: usize = 16 * 256 - 56;
    let Some((_turn, mut fixture)) = start(|_| {}) else { return };
    let control = fixture.control().unwrap();
    let mut other = fixture.native();
    let (sheet, mut random) = (Sheet::new(&mut other), Random(1));
    let (mut executed, mut lost) = (0, 0);
    for turn in 0..TURNS {
        let (mut owner, mut rival) = (fixture.native(), fixture.native());
        let (count, context) = (1 + turn % 2, Sheet::new(&mut owner));
        if turn % 2 == 0 {
            const RETAIN_TEMPORARY: u8 = 2;
            owner.tell(&message(opcode::SET_CLOSE_DOWN_MODE, RETAIN_TEMPORARY).finish()).unwrap();
        }
        owner.send_raw(&sheet.with_context_of(&context).invert(&owner, PARTS).repeat(count));
        let after = 1 + random.below(200) as u32;
        wait_for("the request is cut", SOON, || entry(&control, owner.base).cuts > after);
        match turn % 4 {
            // The rest is finished, and its client disconnects before it is served again.
            0 => rival.send(&context.invert(&rival, 2)),
            1 => owner.end_stream(),
            _ => {}
        }
        drop(owner);
        drop(rival);
        wait_for("the clients are gone", SOON, || control.clients().unwrap().clients.len() == 2);
        let is = rows(&other.ask(&sheet.read(&other)).unwrap());
        // The first request had begun. The server may not have read the second one.
        let now = (executed + 1..=executed + count).find(|&all| rows_after(&vec![PARTS; all]) == is);
        let now = now.unwrap_or_else(|| panic!("turn {turn}: a request was executed in part"));
        lost += executed + count - now;
        executed = now;
    }
    println!("{executed} requests were executed, {lost} were not");
    let before = report(&control).finished;
    assert!(before > 0);
    // A leftover rest would be finished now.
    other.set_grab(true);
    other.set_grab(false);
    assert_eq!(report(&control).finished, before);
    other.tell(&sheet.invert(&other, 9)).unwrap();
    assert_eq!(entry(&control, other.base).cuts, 8, "requests are cut after many clients have disconnected");
    fixture.assert_armed();
}

#[test]
fn a_rest_is_finished_before_another_client_kills_its_client() {
    let Some((_turn, mut fixture)) = start(|_| {}) else { return };
    let control = fixture.control().unwrap();
    let (mut owner, mut other) = (fixture.native(), fixture.native());
    owner.canvas(1, 1);
    let sheet = Sheet::new(&mut other);
    let before = report(&control).finished;
    begin(&control, &mut owner, &sheet);
    let request = other.message(opcode::KILL_CLIENT, 0).u32(owner.base + 1).finish();
    other.tell(&request).unwrap();
    assert_eq!(report(&control).finished, before + 1);
    assert!(try_entry(&control, owner.base).is_none());
    sheet.assert_inverted(&mut other, &[LONG]);
    other.tell(&sheet.invert(&other, 5)).unwrap();
    sheet.assert_inverted(&mut other, &[LONG, 5]);
    fixture.assert_armed();
}

/// Asks over a client's own connection, because a control connection would keep the server from resetting.
fn report_to(wire: &mut Wire) -> CutReport {
    CutReport::decode(&wire.ask_xqos(Request::GetCut).unwrap(), ByteOrder::NATIVE).unwrap()
}

/// Connects three clients, whose requests are cut.
fn begin_three(fixture: &Fixture, asker: &mut Wire) -> Vec<Wire> {
    let mut owners: Vec<Wire> = (0..3).map(|_| fixture.native()).collect();
    let sheets: Vec<Sheet> = owners.iter_mut().map(Sheet::new).collect();
    let before = report_to(asker).cuts;
    for (owner, sheet) in owners.iter_mut().zip(&sheets) {
        owner.send(&sheet.invert(owner, LONG));
    }
    wait_for("requests are cut", SOON, || report_to(asker).cuts > before + 20);
    owners
}

#[test]
fn requests_are_cut_in_each_generation_of_the_server() {
    let Some((_turn, mut fixture)) = start(|setup| setup.resets = true) else { return };
    for generation in 0..10 {
        let mut asker = connect_after_reset(&fixture);
        let owners = begin_three(&fixture, &mut asker);
        let info = ServerInfo::decode(&asker.ask_xqos(Request::GetServerInfo).unwrap(), ByteOrder::NATIVE).unwrap();
        assert!(info.armed && info.clients == 4, "generation {generation}: {info:?}");
        if generation % 2 == 0 {
            fixture.while_stopped(|| drop((owners, asker)));
        } else {
            signal(&fixture, libc::SIGHUP);
            drop((owners, asker));
        }
    }
    connect_after_reset(&fixture).sync();
    assert!(fixture.is_running() && !fixture.xqos_log().contains("stepped aside"));
}

fn signal(fixture: &Fixture, signal: i32) {
    // SAFETY: the call takes no pointers, and the process is our child.
    assert_eq!(unsafe { libc::kill(fixture.pid() as i32, signal) }, 0);
}

#[test]
fn a_server_exits_normally_while_rests_are_pending() {
    for signals in [false, true] {
        let Some((_turn, mut fixture)) = start(|setup| {
            setup.resets = true;
            setup.arguments.push("-terminate".into());
        }) else {
            return;
        };
        let mut asker = fixture.native();
        let owners = begin_three(&fixture, &mut asker);
        if signals {
            signal(&fixture, libc::SIGTERM);
        } else {
            fixture.while_stopped(|| drop((owners, asker)));
        }
        wait_for("the server has ended", SOON, || !fixture.is_running());
        let log = fixture.log();
        assert!(["stepped aside", "Fatal", "Backtrace"].iter().all(|trouble| !log.contains(trouble)), "{log}");
    }
}

#[test]
fn requests_are_whole_while_a_client_has_grabbed_the_server() {
    let Some((_turn, mut fixture)) = start(|_| {}) else { return };
    let control = fixture.control().unwrap();
    let (mut owner, mut other) = (fixture.native(), fixture.native());
    let sheet = Sheet::new(&mut owner);
    let before = report(&control).finished;
    begin(&control, &mut owner, &sheet);
    other.set_grab(true);
    assert_eq!(report_to(&mut other).finished, before + 1);
    sheet.assert_inverted(&mut other, &[LONG]);
    other.set_grab(false);
    control.release(owner.base).unwrap();
    owner.sync();
    // The owner of a rest grabs the server itself.
    begin(&control, &mut owner, &sheet);
    control.release(owner.base).unwrap();
    owner.set_grab(true);
    let before = report_to(&mut owner).cuts;
    owner.tell(&sheet.invert(&owner, 200)).unwrap();
    sheet.assert_inverted(&mut owner, &[LONG, LONG, 200]);
    assert_eq!(report_to(&mut owner).cuts, before, "no other client can be served");
    other.send(&sheet.invert(&other, 30));
    owner.set_grab(false);
    other.sync();
    sheet.assert_inverted(&mut other, &[LONG, LONG, 200, 30]);
    assert!(report(&control).cuts > before, "requests are cut again");
    fixture.assert_armed();
}

#[test]
fn a_pending_rest_is_executed_once_if_the_policy_changes_to_classic() {
    let Some((_turn, mut fixture)) = start(|_| {}) else { return };
    let control = fixture.control().unwrap();
    let (mut owner, mut other) = (fixture.native(), fixture.native());
    let sheet = Sheet::new(&mut owner);
    let set = |policy| control.set_policy(PolicyChange { policy: Some(policy), ..PolicyChange::default() }).unwrap();
    begin(&control, &mut owner, &sheet);
    set(PolicyKind::Classic);
    other.tell(&sheet.invert(&other, 7)).unwrap();
    control.release(owner.base).unwrap();
    owner.sync();
    sheet.assert_inverted(&mut other, &[LONG, 7]);
    set(PolicyKind::Fair);
    begin(&control, &mut owner, &sheet);
    control.release(owner.base).unwrap();
    owner.sync();
    sheet.assert_inverted(&mut other, &[LONG, 7, LONG]);
    fixture.assert_armed();
}

#[test]
fn requests_of_a_recorded_client_are_not_cut_and_recorded_once() {
    const PARTS: usize = LONG / 2;
    let Some((_turn, mut fixture)) = start(|_| {}) else { return };
    let control = fixture.control().unwrap();
    let mut owner = fixture.native();
    let sheet = Sheet::new(&mut owner);
    // It is held with its rest pending until the recorder runs.
    control.reserve(owner.base, 500, 10_000_000, true).unwrap();
    owner.send_many(&sheet.invert(&owner, PARTS).repeat(3), 3);
    wait_for("the request is cut", SOON, || is_held_back(&control, owner.base));
    let clients = control.clients().unwrap().clients.len();
    let recorder = Recorder::start_of(&fixture, owner.base, opcode::POLY_FILL_RECTANGLE);
    control.release(owner.base).unwrap();
    owner.sync();
    let before = entry(&control, owner.base).cuts;
    assert!(before < 3 * (PARTS as u32 - 1), "no request was finished when it was to be recorded");
    assert!(recorder.seen() <= 3, "{} of 3 requests", recorder.seen());
    let seen = recorder.seen();
    owner.send_many(&sheet.invert(&owner, 3).repeat(100), 100);
    owner.sync();
    wait_for("the requests are recorded", SOON, || recorder.seen() >= seen + 100);
    assert_eq!(entry(&control, owner.base).cuts, before);
    sheet.assert_inverted(&mut owner, &[[PARTS; 3].as_slice(), &[3; 100]].concat());
    assert!(recorder.seen() <= seen.max(3) + 100, "{} requests after {seen}", recorder.seen());
    recorder.end();
    // In the slice in which a client disconnects, all requests are whole.
    wait_for("the client is gone", SOON, || control.clients().unwrap().clients.len() == clients);
    owner.sync();
    owner.tell(&sheet.invert(&owner, 3)).unwrap();
    assert!(entry(&control, owner.base).cuts > before, "its requests are cut again");
    fixture.assert_armed();
}

#[test]
fn requests_of_a_client_of_the_other_byte_order_are_whole_and_finish_rests() {
    let Some((_turn, mut fixture)) = start(|_| {}) else { return };
    let control = fixture.control().unwrap();
    let (mut owner, mut other) = (fixture.native(), fixture.wire(ByteOrder::SWAPPED));
    let (sheet, elsewhere) = (Sheet::new(&mut owner), Sheet::new(&mut other));
    begin(&control, &mut owner, &sheet);
    let before = report(&control).finished;
    other.tell(&elsewhere.invert(&other, 50)).unwrap();
    assert_eq!(report(&control).finished, before, "it draws elsewhere");
    other.tell(&sheet.invert(&other, 50)).unwrap();
    assert_eq!(report(&control).finished, before + 1, "it draws to the same pixmap");
    sheet.assert_inverted(&mut other, &[LONG, 50]);
    elsewhere.assert_inverted(&mut other, &[50]);
    assert_eq!(entry(&control, other.base).cuts, 0);
    control.release(owner.base).unwrap();
    owner.sync();
    fixture.assert_armed();
}

#[test]
fn a_request_in_the_format_of_big_requests_is_cut_and_those_after_it_are_executed() {
    const PARTS: usize = 33_000;
    let Some((_turn, mut fixture)) = start(|_| {}) else { return };
    let control = fixture.control().unwrap();
    let mut wire = fixture.native();
    let sheet = Sheet::new(&mut wire);
    let major = wire.extension("BIG-REQUESTS").expect("an extension").major;
    wire.ask(&message(major, 0).finish()).unwrap();
    let (first, focus) = (wire.sequence(), message(opcode::GET_INPUT_FOCUS, 0).finish());
    let [long, short] = [PARTS, 300].map(|parts| sheet.invert(&wire, parts));
    assert_eq!(long[2..4], [0, 0], "the length is in the extra word");
    wire.send_many(&[&long[..], &focus, &short, &focus].concat(), 4);
    for number in [2, 4] {
        let reply = wire.reply();
        assert_eq!(wire.u16_in(&reply, 2), first + number);
    }
    assert_eq!(entry(&control, wire.base).cuts as usize, PARTS - 1 + 299);
    sheet.assert_inverted(&mut wire, &[PARTS, 300]);
    fixture.assert_armed();
}

#[test]
fn each_request_is_executed_once_if_a_fault_happens_while_rests_are_pending() {
    const IMAGES: u16 = 40;
    for fault in ["wakeup:2500", "block:2500", "check:2500", "request:60"] {
        let change = |setup: &mut Setup| setup.environment.push(("XQOS_TEST_FAULT".into(), fault.into()));
        let Some((_turn, mut fixture)) = start(change) else { return };
        let (mut asker, mut reader) = (fixture.native(), fixture.native());
        let mut owners: Vec<Wire> = (0..3).map(|_| fixture.native()).collect();
        let sheets: Vec<Sheet> = owners.iter_mut().map(Sheet::new).collect();
        let read = Sheet::new(&mut reader);
        fixture.assert_armed();
        for (owner, sheet) in owners.iter_mut().zip(&sheets) {
            owner.send_many(&[sheet.invert(owner, LONG), sheet.read(owner), sheet.invert(owner, 9)].concat(), 3);
        }
        let first = reader.sequence();
        reader.send_many(&read.read(&reader).repeat(IMAGES.into()), IMAGES);
        // It answers with an error to the request during which the fault occurs.
        wait_for(fault, SOON, || asker.ask_xqos(Request::GetServerInfo).is_err() || is_aside(&fixture));
        for (owner, sheet) in owners.iter_mut().zip(&sheets) {
            let reply = owner.reply();
            assert_eq!(owner.u16_in(&reply, 2), owner.sequence() - 1, "{fault}");
            assert_eq!(rows(&reply), rows_after(&[LONG]), "{fault}");
            sheet.assert_inverted(owner, &[LONG, 9]);
        }
        for number in 1..=IMAGES {
            let reply = reader.reply();
            assert_eq!(reader.u16_in(&reply, 2), first + number, "{fault}");
            assert_eq!(rows(&reply), rows_after(&[]), "{fault}");
        }
        let mut late = fixture.native();
        let sheet = Sheet::new(&mut late);
        for wire in owners.iter_mut().chain([&mut asker, &mut reader, &mut late]) {
            wire.tell(&sheet.invert(wire, 300)).unwrap();
        }
        sheet.assert_inverted(&mut late, &[300; 6]);
        assert!(fixture.is_running() && is_aside(&fixture), "{fault}: {}", fixture.xqos_log());
    }
}

/// DAMAGE makes the server deliver an event from within the first part of a request, and CopyArea from within its last.
#[test]
fn a_request_is_executed_whole_if_xqos_fails_while_the_server_executes_a_part_of_it() {
    const COPY_AREA: u8 = 62;
    for (event, is_damage) in [(1, true), (1, false), (2, false)] {
        let fault = format!("event:{event}");
        let change = |setup: &mut Setup| setup.environment.push(("XQOS_TEST_FAULT".into(), (&fault).into()));
        let Some((_turn, fixture)) = start(change) else { return };
        let (mut owner, mut other) = (fixture.native(), fixture.native());
        let (sheet, copied) = (Sheet::new(&mut owner), Sheet::new(&mut owner));
        if is_damage {
            const NON_EMPTY: u8 = 3;
            let (damage, id) = (other.extension("DAMAGE").expect("an extension").major, other.new_id());
            other.ask(&message(damage, 0).u32(1).u32(1).finish()).unwrap();
            let create = message(damage, 1).u32(id).u32(sheet.pixmap).raw(&[NON_EMPTY, 0, 0, 0]);
            other.tell(&create.finish()).unwrap();
        }
        let context = owner.new_id();
        let create = message(opcode::CREATE_GC, 0).u32(context).u32(sheet.pixmap).u32(0);
        let copy = message(COPY_AREA, 0).u32(sheet.pixmap).u32(copied.pixmap).u32(context).u32(0).u32(0);
        let copy = copy.u16(Sheet::WIDTH).u16(256).finish();
        let requests = [create.finish(), sheet.invert(&owner, LONG), copy.clone(), sheet.invert(&owner, 9), copy];
        owner.send_many(&requests.concat(), 5);
        other.send_many(&copied.read(&other).repeat(20), 20);
        owner.sync();
        sheet.assert_inverted(&mut owner, &[LONG, 9]);
        copied.assert_inverted(&mut owner, &[LONG, 9]);
        assert!((0..20).all(|_| other.reply().len() > 32));
        assert!(is_aside(&fixture), "{fault}: {}", fixture.xqos_log());
    }
}

fn is_aside(fixture: &Fixture) -> bool {
    fixture.xqos_log().contains("stepped aside")
}

/// Xephyr's screen is as large as its window on another server, where no request of its own clients changes the size.
#[test]
fn a_rest_is_finished_before_the_size_of_the_screen_changes() {
    const QUERY_TREE: u8 = 15;
    const CONFIGURE_WINDOW: u8 = 12;
    if is_missing(ServerKind::Xephyr) {
        return;
    }
    let change = |setup: &mut Setup| {
        setup.kind = ServerKind::Xephyr;
        setup.arguments.push("-resizeable".into());
    };
    let Some((_turn, mut fixture)) = start(change) else { return };
    let control = fixture.control().unwrap();
    let mut host = Wire::connect(fixture.host().expect("a server that shows it").display(), ByteOrder::NATIVE);
    let tree = host.ask(&message(QUERY_TREE, 0).u32(host.root).finish()).unwrap();
    assert_eq!(host.u16_in(&tree, 16), 1, "Xephyr has one window");
    let window = host.u32_in(&tree, 32);
    let mut owner = fixture.native();
    let sheet = Sheet::new(&mut owner);
    begin(&control, &mut owner, &sheet);
    let before = report(&control).finished;
    let smaller = message(CONFIGURE_WINDOW, 0).u32(window).u16(4 | 8).u16(0).u32(64).u32(48).finish();
    host.tell(&smaller).unwrap();
    wait_for("the rest is finished", SOON, || report(&control).finished == before + 1);
    control.release(owner.base).unwrap();
    owner.sync();
    sheet.assert_inverted(&mut owner, &[LONG]);
    fixture.assert_armed();
}
