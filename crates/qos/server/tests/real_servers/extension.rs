// SPDX-License-Identifier: MIT
//! Tests of the XQOS extension on the wire: every request in both byte orders, every error, and access rights.

mod access;
mod events;

use crate::busy::Busy;
use crate::fixture::{
    Fixture, SOON, alone, as_nobody, entry, fixed_blocking, in_parallel, is_not_root, policies, served, setup,
    try_entry, wait_for, xvfb, xvfb_with,
};
use crate::wire::{Authorization, COOKIE, Message, Wire, XError, authority_entry, code, local_socket, opcode};
use std::time::Duration;
use xqos_abi::{
    AdmissionReport, ByteOrder, ClientEntry, ClientList, Notify, NotifyKind, PolicyChange, Request, ReservationReport,
    ServerInfo, Setting, SettingKind, Subject, Version, entry_flag, event_mask, reservation_flag,
};
use xqos_core::{PolicyKind, ReservationKind};
use xqos_lab::server::ServerKind;

const ORDERS: [ByteOrder; 2] = [ByteOrder::NATIVE, ByteOrder::SWAPPED];
/// The length of each request in units of four bytes, by minor opcode.
const LENGTHS: [usize; 21] = [3, 1, 12, 4, 6, 2, 1, 1, 1, 1, 1, 1, 1, 8, 10, 3, 2, 3, 1, 1, 2];
const SET: u8 = 2;
const CHECK_ADMISSION: u8 = 4;
const SET_POLICY: u8 = 13;

fn reserve(client: u32, budget_us: u32, period_us: u32, hard: bool) -> Request {
    Subject::Client(client).set(Setting::reservation(budget_us, period_us, hard))
}

fn check(client: u32, budget_us: u32, period_us: u32) -> Request {
    Request::CheckAdmission {
        subject: Subject::Client(client),
        reservation: xqos_abi::reservation(budget_us, period_us, ReservationKind::Soft),
    }
}

fn info(wire: &mut Wire) -> ServerInfo {
    let reply = wire.ask_xqos(Request::GetServerInfo).unwrap();
    ServerInfo::decode(&reply, wire.order).unwrap()
}

fn list(wire: &mut Wire) -> Vec<ClientEntry> {
    let reply = wire.ask_xqos(Request::ListClients).unwrap();
    ClientList::decode(&reply, wire.order).unwrap().clients
}

fn reservation(wire: &mut Wire, client: u32) -> ReservationReport {
    let reply = wire.ask_xqos(Request::GetReservation { client }).unwrap();
    ReservationReport::decode(&reply, wire.order).unwrap()
}

fn admission(wire: &mut Wire, request: Request) -> AdmissionReport {
    let reply = wire.ask_xqos(request).unwrap();
    AdmissionReport::decode(&reply, wire.order).unwrap()
}

/// Builds an XQOS request with these words after its header.
fn words(wire: &mut Wire, minor: u8, words: &[u32]) -> Vec<u8> {
    let message = Message::new(wire.order, wire.xqos().major, minor);
    words.iter().fold(message, |message, &word| message.u32(word)).finish()
}

/// Sends a request, with or without a reply. Returns the error, if any.
fn error_of(wire: &mut Wire, request: &[u8]) -> Option<XError> {
    wire.tell_or_ask(request).err()
}

fn assert_refused(wire: &mut Wire, request: &[u8], code: u8, value: u32) {
    let major = wire.xqos().major;
    let expected = XError { code, value, minor: request[1].into(), major };
    assert_eq!(error_of(wire, request), Some(expected), "{:?} {request:02x?}", wire.order);
}

// Requests.

#[test]
fn every_request_is_carried_out_in_both_byte_orders() {
    let _turn = in_parallel();
    for order in ORDERS {
        let mut fixture = xvfb();
        let mut wire = fixture.wire(order);
        let reply = wire.ask_xqos(Request::QueryVersion { major: 7, minor: 9 }).unwrap();
        assert_eq!((reply.len(), Version::decode(&reply, order)), (32, Ok(Version { major: 1, minor: 0 })));
        server_tells_of_itself(&mut wire, fixture.pid());
        reservation_is_set_and_checked(&mut wire);
        client_is_set_and_listed(&mut wire);
        wire.tell_xqos(Subject::Client(0).clear(SettingKind::Reservation)).unwrap();
        let own = wire.base;
        wire.tell_xqos(Subject::Client(own).clear(SettingKind::Reservation)).expect("clearing nothing is allowed");
        assert!(!reservation(&mut wire, 0).active);
        wire.tell_xqos(Request::SelectEvents { mask: event_mask::ALL }).unwrap();
        wire.tell_xqos(Request::SelectEvents { mask: 0 }).unwrap();
        change_every_parameter(&mut wire);
        fixture.assert_armed();
    }
}

fn server_tells_of_itself(wire: &mut Wire, pid: u32) {
    let reply = wire.ask_xqos(Request::GetServerInfo).unwrap();
    assert_eq!(reply.len(), 368);
    let found = ServerInfo::decode(&reply, wire.order).unwrap();
    assert!(found.armed && found.reason.is_empty() && found.clients == 1, "{found:?}");
    assert_eq!((found.server_pid, found.policy), (pid, PolicyKind::Fair));
    assert_eq!((found.max_utilization_ppm, found.admitted_utilization_ppm, found.reservations), (900_000, 0, 0));
    assert_eq!((found.min_budget_us, found.min_period_us, found.max_period_us), (100, 1000, 10_000_000));
    assert_eq!((found.slice_us, found.timer_interval_us, found.maximum_slice_us), (5000, 5000, 15_000));
    assert!(found.uptime_ns > found.busy_ns && found.busy_ns > 0 && found.decisions > 0);
    assert!((10_000..1 << 20).contains(&found.memory_bytes), "{found:?}");
}

fn reservation_is_set_and_checked(wire: &mut Wire) {
    wire.tell_xqos(reserve(0, 3000, 10_000, true)).unwrap();
    let reply = wire.ask_xqos(Request::GetReservation { client: 0 }).unwrap();
    assert_eq!(reply.len(), 48);
    let report = ReservationReport::decode(&reply, wire.order).unwrap();
    assert!(report.active && report.kind().is_hard() && report.flags & reservation_flag::HELD_BACK == 0, "{report:?}");
    assert_eq!((report.budget_us, report.period_us), (3000, 10_000));
    let own = wire.base;
    assert_eq!(reservation(wire, own).budget_us, 3000, "by the base of its ids");
    assert_eq!(reservation(wire, own + 77).budget_us, 3000, "by any of its ids");
    assert_eq!(info(wire).admitted_utilization_ppm, 300_000);

    let reply = wire.ask_xqos(check(0, 5000, 10_000)).unwrap();
    assert_eq!(reply.len(), 32);
    let report = AdmissionReport::decode(&reply, wire.order).unwrap();
    assert!(report.admitted && report.sum_ppm == 500_000 && report.limit_ppm == 900_000, "{report:?}");
    assert_eq!(reservation(wire, 0).budget_us, 3000, "a check changes nothing");
}

fn client_is_set_and_listed(wire: &mut Wire) {
    let own = wire.base;
    wire.tell_xqos(Subject::Client(0).set(Setting::Weight(250))).unwrap();
    wire.tell_xqos(Subject::Client(own).set(Setting::Priority(-1000))).unwrap();
    wire.set_sync_priority(0, -7).unwrap();
    let reply = wire.ask_xqos(Request::ListClients).unwrap();
    assert_eq!(reply.len(), 32 + 392);
    let found = ClientList::decode(&reply, wire.order).unwrap();
    let entry = &found.clients[0];
    assert_eq!((entry.client, entry.pid), (own, std::process::id() as i32));
    // SAFETY: the call takes no arguments and cannot fail.
    assert_eq!(entry.uid, unsafe { libc::getuid() });
    assert!(entry.name.starts_with("real_servers"), "{entry:?}");
    assert_eq!((entry.weight, entry.fixed_priority, entry.sync_priority), (250, -1000, -7));
    let flags = entry_flag::RESERVED | entry_flag::HARD | entry_flag::YOU | entry_flag::LOCAL;
    assert_eq!(entry.flags & !entry_flag::READY, flags);
    assert_eq!((entry.budget_us, entry.period_us), (3000, 10_000));
    assert!(entry.connected_ns <= found.now_ns && entry.deadline_ns > 0 && entry.server_time_ns > 0);
}

fn change_every_parameter(wire: &mut Wire) {
    for policy in policies().into_iter().rev() {
        wire.tell_xqos(Request::SetPolicy { change: PolicyChange { policy: Some(policy), ..PolicyChange::default() } })
            .unwrap();
        assert_eq!(info(wire).policy, policy);
    }
    let all = PolicyChange {
        policy: Some(PolicyKind::Smart),
        slice_us: Some(100),
        timer_interval_us: Some(1_000_000),
        maximum_slice_us: Some(7777),
        max_utilization_ppm: Some(950_000),
        blocking_us: Some(1234),
    };
    wire.tell_xqos(Request::SetPolicy { change: all }).unwrap();
    let found = info(wire);
    assert_eq!((found.policy, found.slice_us, found.timer_interval_us), (PolicyKind::Smart, 100, 1_000_000));
    assert_eq!((found.maximum_slice_us, found.max_utilization_ppm), (7777, 950_000));
    assert_eq!(found.blocking_configured_us, 1234);
    wire.tell_xqos(Request::SetPolicy { change: PolicyChange::default() }).expect("an empty change is none");
    assert_eq!(info(wire).slice_us, 100);
    let back = PolicyChange {
        policy: Some(PolicyKind::Fair),
        slice_us: Some(5000),
        timer_interval_us: Some(5000),
        maximum_slice_us: Some(15_000),
        max_utilization_ppm: Some(900_000),
        blocking_us: Some(0),
    };
    wire.tell_xqos(Request::SetPolicy { change: back }).unwrap();
    assert_eq!(info(wire).policy, PolicyKind::Fair);
}

#[test]
fn a_request_of_any_other_length_is_refused() {
    let _turn = in_parallel();
    let mut fixture = xvfb();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        for (minor, &right) in LENGTHS.iter().enumerate() {
            for units in (1..=13).filter(|&units| units != right) {
                let request = words(&mut wire, minor as u8, &vec![0; units - 1]);
                assert_refused(&mut wire, &request, code::BAD_LENGTH, 0);
            }
            let most = words(&mut wire, minor as u8, &vec![0; 65_534]);
            assert_refused(&mut wire, &most, code::BAD_LENGTH, 0);
        }
        // Without BIG-REQUESTS, a length of 0 counts as the header alone.
        for minor in 0..LENGTHS.len() as u8 {
            let request = [wire.xqos().major, minor, 0, 0];
            assert_refused(&mut wire, &request, code::BAD_LENGTH, 0);
        }
        assert!(!reservation(&mut wire, 0).active);
    }
    fixture.assert_armed();
}

#[test]
fn big_requests_have_their_length_checked_like_others() {
    let _turn = in_parallel();
    let mut fixture = xvfb();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        let big = wire.extension("BIG-REQUESTS").unwrap().major;
        let enable = wire.message(big, 0).finish();
        wire.ask(&enable).unwrap();
        // Converts a request to the format of BIG-REQUESTS.
        let widen = |request: Vec<u8>| {
            let units = request.len() as u32 / 4 + 1;
            let long = wire.message(0, 0).u32(units).finish()[4..8].to_vec();
            [&request[..2], &[0, 0], &long[..], &request[4..]].concat()
        };
        let right = widen(Request::QueryVersion { major: 1, minor: 0 }.encode_as(0, order));
        let wrong = widen(Request::QueryVersion { major: 1, minor: 0 }.encode_as(0, order)[..8].to_vec());
        let huge = widen(vec![0; 1 << 20]);
        let major = wire.xqos().major;
        let as_xqos = |mut request: Vec<u8>, minor: u8| {
            (request[0], request[1]) = (major, minor);
            request
        };
        assert_eq!(wire.ask(&as_xqos(right, 0)).unwrap().len(), 32);
        assert_refused(&mut wire, &as_xqos(wrong, 0), code::BAD_LENGTH, 0);
        for minor in 0..LENGTHS.len() as u8 {
            assert_refused(&mut wire, &as_xqos(huge.clone(), minor), code::BAD_LENGTH, 0);
        }
    }
    fixture.assert_armed();
}

#[test]
fn an_unknown_minor_opcode_is_a_bad_request() {
    let _turn = in_parallel();
    let fixture = xvfb();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        for minor in LENGTHS.len() as u8..=255 {
            for units in [0, 4] {
                let request = words(&mut wire, minor, &vec![0; units]);
                assert_refused(&mut wire, &request, code::BAD_REQUEST, 0);
            }
        }
    }
}

#[test]
fn values_out_of_range_are_refused_and_change_nothing() {
    let _turn = in_parallel();
    let mut fixture = xvfb();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        wire.tell_xqos(reserve(0, 3000, 10_000, true)).unwrap();
        let before = (reservation(&mut wire, 0).budget_us, info(&mut wire));
        // Each entry: budget, period and flags, and the index of the invalid value among them.
        let reservations: [([u32; 3], usize); 13] = [
            ([0, 10_000, 0], 0),
            ([99, 10_000, 0], 0),
            ([10_001, 10_000, 0], 0),
            ([u32::MAX, 10_000, 0], 0),
            ([u32::MAX, u32::MAX, 0], 1),
            ([100, 999, 0], 1),
            ([100, 0, 0], 1),
            ([0, 0, 0], 1),
            ([100, 10_000_001, 0], 1),
            ([100, u32::MAX, 0], 1),
            ([3000, 10_000, 2], 2),
            ([3000, 10_000, 1 << 31], 2),
            ([3000, 10_000, u32::MAX], 2),
        ];
        for (values, bad) in reservations {
            // Client 0 means the sender.
            let checked = [0, 0, values[0], values[1], values[2]];
            let set = [&[0, 0, SettingKind::Reservation as u32], &values[..], &[0; 5]].concat();
            for (minor, content) in [(SET, &set[..]), (CHECK_ADMISSION, &checked[..])] {
                let request = words(&mut wire, minor, content);
                assert_refused(&mut wire, &request, code::BAD_VALUE, values[bad]);
            }
        }
        for weight in [0, 10_001, u32::MAX] {
            let request = wire.xqos_bytes(Subject::Client(0).set(Setting::Weight(weight)));
            assert_refused(&mut wire, &request, code::BAD_VALUE, weight);
        }
        for priority in [-1001, 1001, i32::MIN, i32::MAX] {
            let request = wire.xqos_bytes(Subject::Client(0).set(Setting::Priority(priority)));
            assert_refused(&mut wire, &request, code::BAD_VALUE, priority as u32);
        }
        for mask in [64, 127, 1 << 31, u32::MAX] {
            let request = wire.xqos_bytes(Request::SelectEvents { mask });
            assert_refused(&mut wire, &request, code::BAD_VALUE, mask);
        }
        refuse_bad_policies(&mut wire);
        let after = (reservation(&mut wire, 0).budget_us, info(&mut wire));
        assert_eq!((before.0, settings_of(&before.1)), (after.0, settings_of(&after.1)));
        assert_eq!(after.1.admitted_utilization_ppm, 300_000);
        let own = &list(&mut wire)[0];
        assert_eq!((own.weight, own.fixed_priority), (100, 0));
    }
    fixture.assert_armed();
}

fn settings_of(info: &ServerInfo) -> (PolicyKind, [u32; 5]) {
    let values = [info.slice_us, info.timer_interval_us, info.maximum_slice_us, info.max_utilization_ppm];
    (info.policy, [values[0], values[1], values[2], values[3], info.blocking_configured_us])
}

/// Each request also contains valid values, none of which may take effect.
fn refuse_bad_policies(wire: &mut Wire) {
    let good = PolicyChange {
        policy: Some(PolicyKind::Classic),
        slice_us: Some(1000),
        timer_interval_us: Some(1000),
        maximum_slice_us: Some(1000),
        max_utilization_ppm: Some(800_000),
        blocking_us: Some(50),
    };
    for bad in [0, 99, 1_000_001, u32::MAX] {
        for change in [
            PolicyChange { slice_us: Some(bad), ..good },
            PolicyChange { timer_interval_us: Some(bad), ..good },
            PolicyChange { maximum_slice_us: Some(bad), ..good },
        ] {
            let request = wire.xqos_bytes(Request::SetPolicy { change });
            assert_refused(wire, &request, code::BAD_VALUE, bad);
        }
    }
    // These limits are below the admitted utilization, or leave too little time for best effort.
    for bad in [0, 299_999, 950_001, 1_000_000, u32::MAX] {
        let request =
            wire.xqos_bytes(Request::SetPolicy { change: PolicyChange { max_utilization_ppm: Some(bad), ..good } });
        assert_refused(wire, &request, code::BAD_VALUE, bad);
    }
    for mask in [64, 1 << 31, u32::MAX] {
        let request = words(wire, SET_POLICY, &[mask, 0, 1000, 1000, 1000, 800_000, 50]);
        assert_refused(wire, &request, code::BAD_VALUE, mask);
    }
    for policy in [6, 7, 255] {
        let request = words(wire, SET_POLICY, &[1, policy, 1000, 1000, 1000, 800_000, 50]);
        assert_refused(wire, &request, code::BAD_VALUE, policy);
    }
}

#[test]
fn a_client_that_is_not_connected_has_no_reservation() {
    let _turn = in_parallel();
    let fixture = xvfb();
    for order in ORDERS {
        let control = fixture.control().unwrap();
        let mut wire = fixture.wire(order);
        let gone = fixture.native().base;
        wait_for("the client is gone", SOON, || try_entry(&control, gone).is_none());
        let root = wire.root;
        let dead = [gone, gone + 5, root, 1, 0x1fff_ffff, 0x2000_0000, 0x8000_0000, wire.base | 0xe000_0000, u32::MAX];
        for client in dead {
            let requests = [
                reserve(client, 3000, 10_000, false),
                Request::GetReservation { client },
                Subject::Client(client).clear(SettingKind::Reservation),
                check(client, 3000, 10_000),
                Subject::Client(client).set(Setting::Weight(100)),
                Subject::Client(client).set(Setting::Priority(0)),
            ];
            for request in requests {
                let request = wire.xqos_bytes(request);
                assert_refused(&mut wire, &request, code::BAD_VALUE, client);
            }
        }
    }
}

// Admission.

#[test]
fn a_refused_reservation_names_the_failing_client_and_changes_nothing() {
    let _turn = in_parallel();
    let fixture = xvfb();
    let mut long = fixture.native();
    long.tell_xqos(Request::SetPolicy { change: fixed_blocking() }).unwrap();
    long.tell_xqos(reserve(0, 20_000, 100_000, false)).unwrap();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        let (own, admission_error) = (wire.base, wire.xqos().first_error);
        let term = admission(&mut wire, check(0, 6900, 10_000));
        assert!(term.admitted, "0.69 + 0.2 + blocking 1 / 100 is 0.9: {term:?}");
        assert_eq!((term.sum_ppm, term.failing_client, term.failing_period_us), (890_000, long.base, 100_000));
        // The first fails on its own (0.8001 + blocking 1 / 10), the second together with the other client's 0.2.
        let refused =
            [((8001, 10_000), own, 800_100, 10_000, 100_000), ((7000, 10_000), long.base, 900_000, 100_000, 10_000)];
        for ((budget_us, period_us), client, sum_ppm, failing_period_us, blocking_ppm) in refused {
            let term = admission(&mut wire, check(0, budget_us, period_us));
            assert!(!term.admitted, "{term:?}");
            assert_eq!((term.blocking_us, term.blocking_ppm), (1000, blocking_ppm));
            assert_eq!((term.failing_client, term.failing_period_us), (client, failing_period_us));
            assert_eq!((term.sum_ppm, term.limit_ppm), (sum_ppm, 900_000));
            let request = wire.xqos_bytes(reserve(0, budget_us, period_us, true));
            assert_refused(&mut wire, &request, admission_error, client);
            assert!(!reservation(&mut wire, 0).active);
        }
        // A refused change leaves the existing reservation in place.
        wire.tell_xqos(reserve(0, 6900, 10_000, true)).unwrap();
        let request = wire.xqos_bytes(reserve(0, 6901, 10_000, false));
        assert_refused(&mut wire, &request, admission_error, long.base);
        let report = reservation(&mut wire, 0);
        assert_eq!((report.budget_us, report.kind()), (6900, ReservationKind::Hard));
        assert_eq!(info(&mut wire).admitted_utilization_ppm, 890_000);
        drop(wire);
        wait_for("the share is free", SOON, || info(&mut long).admitted_utilization_ppm == 200_000);
    }
}

#[test]
fn blocking_time_counts_most_for_short_periods() {
    let _turn = in_parallel();
    let fixture = xvfb();
    let mut wire = fixture.native();
    let blocking =
        |us| Request::SetPolicy { change: PolicyChange { blocking_us: Some(us), ..PolicyChange::default() } };
    wire.tell_xqos(blocking(2000)).unwrap();
    let term = admission(&mut wire, check(0, 3000, 10_000));
    assert!(term.admitted, "0.3 + 0.2: {term:?}");
    assert_eq!((term.sum_ppm, term.blocking_ppm, term.blocking_us), (300_000, 200_000, 2000));
    let term = admission(&mut wire, check(0, 300, 3000));
    assert_eq!((term.admitted, term.sum_ppm, term.blocking_ppm), (true, 100_000, 666_667));
    let term = admission(&mut wire, check(0, 300, 2000));
    assert_eq!((term.admitted, term.sum_ppm, term.blocking_ppm), (false, 150_000, 1_000_000));
    wire.tell_xqos(blocking(u32::MAX)).unwrap();
    let term = admission(&mut wire, check(0, 100, 10_000_000));
    assert!(!term.admitted && term.blocking_us == u32::MAX, "{term:?}");
    wire.tell_xqos(blocking(0)).unwrap();
    assert!(admission(&mut wire, check(0, 9000, 10_000)).admitted);
}

// The lifetime of a reservation.

#[test]
fn a_reservation_ends_with_its_client_and_is_not_inherited() {
    let (fixture, control) = served();
    let mut first = fixture.native();
    first.tell_xqos(reserve(0, 4000, 10_000, true)).unwrap();
    first.tell_xqos(Subject::Client(0).set(Setting::Weight(900))).unwrap();
    first.set_sync_priority(0, 44).unwrap();
    let base = first.base;
    assert_eq!(control.server_info().unwrap().reservations, 1);
    drop(first);
    wait_for("the client is gone", SOON, || try_entry(&control, base).is_none());
    let found = control.server_info().unwrap();
    assert_eq!((found.reservations, found.admitted_utilization_ppm), (0, 0));
    let mut next = fixture.native();
    assert_eq!(next.base, base, "the next client takes its place");
    assert!(!reservation(&mut next, 0).active);
    let found = entry(&control, base);
    assert_eq!((found.weight, found.sync_priority, found.depletions, found.reserved_time_ns), (100, 0, 0, 0));
}

/// The server restarts its request count when a connection is set up, usually in the client's first slice.
#[test]
fn a_clients_first_requests_are_counted_under_every_policy() {
    let (fixture, control) = served();
    for policy in policies() {
        control.set_policy(PolicyChange { policy: Some(policy), ..PolicyChange::default() }).unwrap();
        for _ in 0..20 {
            let mut wire = fixture.native();
            let request = wire.message(opcode::NO_OPERATION, 0).finish();
            (0..100).for_each(|_| wire.send(&request));
            wire.sync();
            control.server_info().unwrap();
            assert_eq!(entry(&control, wire.base).requests, 101, "{policy:?}");
        }
    }
}

#[test]
fn a_client_sees_its_own_work_counted() {
    let (fixture, control) = served();
    let mut wire = fixture.native();
    wire.sync();
    control.server_info().unwrap();
    let before = entry(&control, wire.base);
    let request = wire.message(opcode::NO_OPERATION, 0).finish();
    (0..1000).for_each(|_| wire.send(&request));
    wire.sync();
    control.server_info().unwrap();
    assert_eq!(entry(&control, wire.base).requests - before.requests, 1001);
    // This request is alone in its slice, so that the list of longest requests can name it. Queries do not cut it.
    control.set(Subject::Server, Setting::Cut(0)).unwrap();
    let long = wire.canvas(1000, 1000).fill(30);
    wire.sync();
    let sent = entry(&control, wire.base).requests;
    wire.send(&long);
    let mut after = before.clone();
    wait_for("the request is executed", SOON, || {
        after = entry(&control, wire.base);
        after.requests > sent
    });
    assert!(after.server_time_ns - before.server_time_ns > 1_000_000, "{after:?}");
    assert!(after.longest_request_ns > 1_000_000, "{after:?}");
    assert_eq!(after.longest_request & 0xff, u32::from(opcode::POLY_FILL_RECTANGLE));
    assert!(after.slices > 1 && after.waited_ns >= after.longest_wait_ns);
}
