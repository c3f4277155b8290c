//! The extension XQOS on the wire: every request in both byte orders, every mistake, and who may.

use crate::busy::Busy;
use crate::fixture::{
    Fixture, alone, as_nobody, beside_others, entry, is_not_root, policies, setup, try_entry, wait_for, xvfb, xvfb_with,
};
use crate::wire::{Authorization, Message, Wire, XError, authority_entry, code, local_socket, opcode};
use std::time::{Duration, Instant};
use xqos_abi::{
    AdmissionReport, ClientEntry, ClientList, Notify, NotifyKind, Order, PolicyChange, Request, ReservationReport,
    ServerInfo, Version, entry_flag, event_mask,
};
use xqos_core::PolicyKind;
use xqos_lab::server::Kind;

const ORDERS: [Order; 2] = [Order::Native, Order::Swapped];
const SOON: Duration = Duration::from_secs(5);
/// Length in units of four bytes of each request, by minor opcode.
const LENGTHS: [usize; 20] = [3, 1, 5, 2, 2, 5, 1, 8, 3, 3, 2, 3, 1, 1, 3, 3, 1, 1, 2, 1];
const SET_RESERVATION: u8 = 2;
const CHECK_ADMISSION: u8 = 5;
const SET_POLICY: u8 = 7;

fn reserve(client: u32, budget_us: u32, period_us: u32, hard: bool) -> Request {
    Request::SetReservation { client, budget_us, period_us, hard }
}

fn check(client: u32, budget_us: u32, period_us: u32) -> Request {
    Request::CheckAdmission { client, budget_us, period_us, hard: false }
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

/// A request of XQOS with these words behind its header.
fn words(wire: &mut Wire, minor: u8, words: &[u32]) -> Vec<u8> {
    let message = Message::new(wire.order, wire.xqos().major, minor);
    words.iter().fold(message, |message, &word| message.u32(word)).finish()
}

/// The error to a request, whether it would have a reply or not.
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
    let _turn = beside_others();
    let mut fixture = xvfb();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        let reply = wire.ask_xqos(Request::QueryVersion { major: 7, minor: 9 }).unwrap();
        assert_eq!((reply.len(), Version::decode(&reply, order)), (32, Ok(Version { major: 1, minor: 0 })));

        let reply = wire.ask_xqos(Request::GetServerInfo).unwrap();
        assert_eq!(reply.len(), 96);
        let found = ServerInfo::decode(&reply, order).unwrap();
        assert!(found.armed && found.reason.is_empty() && found.clients == 1, "{found:?}");
        assert_eq!((found.server_pid, found.policy), (fixture.pid(), PolicyKind::Fair));
        assert_eq!((found.max_utilization_ppm, found.admitted_utilization_ppm, found.reservations), (900_000, 0, 0));
        assert_eq!((found.min_budget_us, found.min_period_us, found.max_period_us), (100, 1000, 10_000_000));
        assert_eq!((found.slice_us, found.timer_interval_us, found.maximum_slice_us), (5000, 5000, 15_000));
        assert!(found.uptime_ns > found.busy_ns && found.busy_ns > 0 && found.decisions > 0);
        assert!((10_000..1 << 20).contains(&found.memory_bytes), "{found:?}");

        wire.tell_xqos(reserve(0, 3000, 10_000, true)).unwrap();
        let reply = wire.ask_xqos(Request::GetReservation { client: 0 }).unwrap();
        assert_eq!(reply.len(), 48);
        let report = ReservationReport::decode(&reply, order).unwrap();
        assert!(report.reserved && report.hard && !report.held_back, "{report:?}");
        assert_eq!((report.budget_us, report.period_us), (3000, 10_000));
        let own = wire.base;
        assert_eq!(reservation(&mut wire, own).budget_us, 3000, "by the base of its ids");
        assert_eq!(reservation(&mut wire, own + 77).budget_us, 3000, "by any of its ids");
        assert_eq!(info(&mut wire).admitted_utilization_ppm, 300_000);

        let reply = wire.ask_xqos(check(0, 5000, 10_000)).unwrap();
        assert_eq!(reply.len(), 32);
        let report = AdmissionReport::decode(&reply, order).unwrap();
        assert!(report.admitted && report.sum_ppm == 500_000 && report.limit_ppm == 900_000, "{report:?}");
        assert_eq!(reservation(&mut wire, 0).budget_us, 3000, "a check changes nothing");

        wire.tell_xqos(Request::SetClientWeight { client: 0, weight: 250 }).unwrap();
        wire.tell_xqos(Request::SetClientPriority { client: own, priority: -1000 }).unwrap();
        wire.set_sync_priority(0, -7).unwrap();
        let reply = wire.ask_xqos(Request::ListClients).unwrap();
        assert_eq!(reply.len(), 32 + 176);
        let found = ClientList::decode(&reply, order).unwrap();
        let entry = &found.clients[0];
        assert_eq!((entry.client, entry.pid), (own, std::process::id() as i32));
        // SAFETY: no arguments, cannot fail.
        assert_eq!(entry.uid, unsafe { libc::getuid() });
        assert!(entry.name.starts_with("real_servers"), "{entry:?}");
        assert_eq!((entry.weight, entry.fixed_priority, entry.sync_priority), (250, -1000, -7));
        let flags = entry_flag::RESERVED | entry_flag::HARD | entry_flag::YOU | entry_flag::LOCAL;
        assert_eq!(entry.flags & !entry_flag::READY, flags);
        assert_eq!((entry.budget_us, entry.period_us), (3000, 10_000));
        assert!(entry.connected_ns <= found.now_ns && entry.deadline_ns > 0 && entry.server_time_ns > 0);

        wire.tell_xqos(Request::ClearReservation { client: 0 }).unwrap();
        wire.tell_xqos(Request::ClearReservation { client: own }).expect("without a reservation nothing happens");
        assert!(!reservation(&mut wire, 0).reserved);
        wire.tell_xqos(Request::SelectEvents { mask: event_mask::ALL }).unwrap();
        wire.tell_xqos(Request::SelectEvents { mask: 0 }).unwrap();
        change_every_parameter(&mut wire);
    }
    fixture.assert_armed();
}

fn change_every_parameter(wire: &mut Wire) {
    for policy in policies().into_iter().rev() {
        wire.tell_xqos(Request::SetPolicy(PolicyChange { policy: Some(policy), ..PolicyChange::default() })).unwrap();
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
    wire.tell_xqos(Request::SetPolicy(all)).unwrap();
    let found = info(wire);
    assert_eq!((found.policy, found.slice_us, found.timer_interval_us), (PolicyKind::Smart, 100, 1_000_000));
    assert_eq!((found.maximum_slice_us, found.max_utilization_ppm), (7777, 950_000));
    assert_eq!(found.blocking_configured_us, 1234);
    wire.tell_xqos(Request::SetPolicy(PolicyChange::default())).expect("an empty change is none");
    assert_eq!(info(wire).slice_us, 100);
    let back = PolicyChange {
        policy: Some(PolicyKind::Fair),
        slice_us: Some(5000),
        timer_interval_us: Some(5000),
        maximum_slice_us: Some(15_000),
        max_utilization_ppm: Some(900_000),
        blocking_us: Some(0),
    };
    wire.tell_xqos(Request::SetPolicy(back)).unwrap();
    assert_eq!(info(wire).policy, PolicyKind::Fair);
}

#[test]
fn a_request_of_any_other_length_is_refused() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        for (minor, &right) in LENGTHS.iter().enumerate() {
            for units in (1..=12).filter(|&units| units != right) {
                let request = words(&mut wire, minor as u8, &vec![0; units - 1]);
                assert_refused(&mut wire, &request, code::BAD_LENGTH, 0);
            }
            let most = words(&mut wire, minor as u8, &vec![0; 65_534]);
            assert_refused(&mut wire, &most, code::BAD_LENGTH, 0);
        }
        // A length of nothing is a length of the header alone, without BIG-REQUESTS.
        for minor in 0..LENGTHS.len() as u8 {
            let request = [wire.xqos().major, minor, 0, 0];
            assert_refused(&mut wire, &request, code::BAD_LENGTH, 0);
        }
        assert!(!reservation(&mut wire, 0).reserved);
    }
    fixture.assert_armed();
}

#[test]
fn big_requests_are_measured_like_others() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        let big = wire.extension("BIG-REQUESTS").unwrap().major;
        let enable = wire.message(big, 0).finish();
        wire.ask(&enable).unwrap();
        // The same request with its length in four bytes of their own.
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
    let _turn = beside_others();
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
fn values_out_of_their_range_are_refused_and_nothing_changes() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        wire.tell_xqos(reserve(0, 3000, 10_000, true)).unwrap();
        let before = (reservation(&mut wire, 0).budget_us, info(&mut wire));
        // Budget, period, flags; which of them is the bad one.
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
            for minor in [SET_RESERVATION, CHECK_ADMISSION] {
                let request = words(&mut wire, minor, &[0, values[0], values[1], values[2]]);
                assert_refused(&mut wire, &request, code::BAD_VALUE, values[bad]);
            }
        }
        for weight in [0, 10_001, u32::MAX] {
            let request = wire.xqos_bytes(Request::SetClientWeight { client: 0, weight });
            assert_refused(&mut wire, &request, code::BAD_VALUE, weight);
        }
        for priority in [-1001, 1001, i32::MIN, i32::MAX] {
            let request = wire.xqos_bytes(Request::SetClientPriority { client: 0, priority });
            assert_refused(&mut wire, &request, code::BAD_VALUE, priority as u32);
        }
        for mask in [32, 63, 1 << 31, u32::MAX] {
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

/// Each with good values beside the bad one: nothing changes unless all of it can.
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
            let request = wire.xqos_bytes(Request::SetPolicy(change));
            assert_refused(wire, &request, code::BAD_VALUE, bad);
        }
    }
    // Below what is admitted, and above what best effort can do without.
    for bad in [0, 299_999, 950_001, 1_000_000, u32::MAX] {
        let request = wire.xqos_bytes(Request::SetPolicy(PolicyChange { max_utilization_ppm: Some(bad), ..good }));
        assert_refused(wire, &request, code::BAD_VALUE, bad);
    }
    for mask in [64, 1 << 31, u32::MAX] {
        let request = words(wire, SET_POLICY, &[0, mask, 1000, 1000, 1000, 800_000, 50]);
        assert_refused(wire, &request, code::BAD_VALUE, mask);
    }
    for policy in [5, 6, 255] {
        let mut request = wire.xqos_bytes(Request::SetPolicy(good));
        request[4] = policy;
        assert_refused(wire, &request, code::BAD_VALUE, policy.into());
    }
}

#[test]
fn who_is_not_connected_has_no_reservation() {
    let _turn = beside_others();
    let fixture = xvfb();
    for order in ORDERS {
        let control = fixture.control().unwrap();
        let mut wire = fixture.wire(order);
        let gone = fixture.native().base;
        wait_for("it is gone", SOON, || try_entry(&control, gone).is_none());
        let root = wire.root;
        let dead = [gone, gone + 5, root, 1, 0x1fff_ffff, 0x2000_0000, 0x8000_0000, wire.base | 0xe000_0000, u32::MAX];
        for client in dead {
            let requests = [
                reserve(client, 3000, 10_000, false),
                Request::GetReservation { client },
                Request::ClearReservation { client },
                check(client, 3000, 10_000),
                Request::SetClientWeight { client, weight: 100 },
                Request::SetClientPriority { client, priority: 0 },
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
fn a_refused_reservation_names_whose_term_fails_and_changes_nothing() {
    let _turn = beside_others();
    let fixture = xvfb();
    let mut long = fixture.native();
    long.tell_xqos(reserve(0, 20_000, 100_000, false)).unwrap();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        let (own, admission_error) = (wire.base, wire.xqos().first_error);
        let term = admission(&mut wire, check(0, 7000, 10_000));
        assert!(term.admitted, "0.7 + 0.2 is 0.9: {term:?}");
        assert_eq!((term.sum_ppm, term.failing_client, term.failing_period_us), (900_000, long.base, 100_000));
        // 0.9 of its own, then with the other's.
        let refused = [((9001, 10_000), own, 900_100, 10_000), ((8000, 10_000), long.base, 1_000_000, 100_000)];
        for ((budget_us, period_us), client, sum_ppm, failing_period_us) in refused {
            let term = admission(&mut wire, check(0, budget_us, period_us));
            assert!(!term.admitted && term.blocking_us == 0 && term.blocking_ppm == 0, "{term:?}");
            assert_eq!((term.failing_client, term.failing_period_us), (client, failing_period_us));
            assert_eq!((term.sum_ppm, term.limit_ppm), (sum_ppm, 900_000));
            let request = wire.xqos_bytes(reserve(0, budget_us, period_us, true));
            assert_refused(&mut wire, &request, admission_error, client);
            assert!(!reservation(&mut wire, 0).reserved);
        }
        // A refused change leaves the reservation that is there.
        wire.tell_xqos(reserve(0, 7000, 10_000, true)).unwrap();
        let request = wire.xqos_bytes(reserve(0, 7001, 10_000, false));
        assert_refused(&mut wire, &request, admission_error, long.base);
        let report = reservation(&mut wire, 0);
        assert_eq!((report.budget_us, report.hard), (7000, true));
        assert_eq!(info(&mut wire).admitted_utilization_ppm, 900_000);
        drop(wire);
        wait_for("its share is free", SOON, || info(&mut long).admitted_utilization_ppm == 200_000);
    }
}

#[test]
fn blocking_time_counts_most_for_short_periods() {
    let _turn = beside_others();
    let fixture = xvfb();
    let mut wire = fixture.native();
    let blocking = |us| Request::SetPolicy(PolicyChange { blocking_us: Some(us), ..PolicyChange::default() });
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

// Who may.

fn requests_for(client: u32) -> [Request; 4] {
    [
        reserve(client, 1000, 10_000, false),
        Request::ClearReservation { client },
        Request::SetClientWeight { client, weight: 120 },
        Request::SetClientPriority { client, priority: 3 },
    ]
}

/// It may read all, change itself, and nothing else.
fn assert_stranger(wire: &mut Wire, other: u32) {
    for request in requests_for(0) {
        wire.tell_xqos(request).unwrap();
    }
    for request in requests_for(other) {
        let request = wire.xqos_bytes(request);
        assert_refused(wire, &request, code::BAD_ACCESS, other);
    }
    for change in [
        PolicyChange { policy: Some(PolicyKind::Stock), ..PolicyChange::default() },
        PolicyChange { blocking_us: Some(1), ..PolicyChange::default() },
        PolicyChange::default(),
    ] {
        let request = wire.xqos_bytes(Request::SetPolicy(change));
        assert_refused(wire, &request, code::BAD_ACCESS, 0);
    }
    assert!(!reservation(wire, other).reserved);
    assert!(admission(wire, check(other, 1000, 10_000)).admitted);
    assert!(list(wire).iter().any(|entry| entry.client == other && entry.weight == 100));
    wire.tell_xqos(Request::SelectEvents { mask: event_mask::ALL }).unwrap();
}

#[test]
fn another_user_may_only_change_itself() {
    let _turn = beside_others();
    if is_not_root() {
        return;
    }
    let mut wanted = setup(Kind::Xvfb);
    wanted.arguments.push("-ac".into());
    let fixture = Fixture::start(&wanted);
    let mut own = fixture.native();
    for order in ORDERS {
        let mut stranger = as_nobody(|| fixture.wire(order));
        assert_stranger(&mut stranger, own.base);
        let mut friend = as_nobody(|| fixture.native());
        for request in requests_for(friend.base) {
            stranger.tell_xqos(request).expect("the same user's client");
        }
        for request in requests_for(stranger.base).into_iter().chain(requests_for(friend.base)) {
            own.tell_xqos(request).expect("the server's user");
        }
        let base = stranger.base;
        let found = list(&mut friend).into_iter().find(|entry| entry.client == base).unwrap();
        assert_eq!((found.uid, found.flags & entry_flag::LOCAL), (65534, entry_flag::LOCAL));
    }
}

#[test]
fn a_remote_client_may_only_change_itself() {
    let _turn = beside_others();
    let mut wanted = setup(Kind::Xvfb);
    wanted.arguments.extend(["-ac", "-listen", "tcp"].map(Into::into));
    let fixture = Fixture::start(&wanted);
    let mut own = fixture.native();
    for order in ORDERS {
        let mut remote = Wire::connect_by_tcp(fixture.display(), order);
        assert_stranger(&mut remote, own.base);
        let other = Wire::connect_by_tcp(fixture.display(), order);
        let request = remote.xqos_bytes(reserve(other.base, 1000, 10_000, false));
        // Two remote clients are not one user.
        assert_refused(&mut remote, &request, code::BAD_ACCESS, other.base);
        own.tell_xqos(reserve(remote.base, 1000, 10_000, false)).expect("the server's user");
        let found = list(&mut own).into_iter().find(|entry| entry.client == remote.base).unwrap();
        assert_eq!((found.pid, found.uid, found.name.as_str()), (0, u32::MAX, ""));
        assert_eq!(found.flags & entry_flag::LOCAL, 0);
    }
}

#[test]
fn an_untrusted_client_does_not_see_the_extension() {
    const GENERATE_AUTHORIZATION: u8 = 1;
    const TRUST_LEVEL: u32 = 2;
    const UNTRUSTED: u32 = 1;
    const COOKIE: &[u8] = b"MIT-MAGIC-COOKIE-1";
    let _turn = beside_others();
    let file = std::env::temp_dir().join(format!("xqos-server-test-{}-security", std::process::id()));
    std::fs::write(&file, authority_entry(COOKIE, &[9; 16])).unwrap();
    let mut wanted = setup(Kind::Xvfb);
    wanted.arguments.extend(["+extension".into(), "SECURITY".into(), "-auth".into(), file.clone().into()]);
    let fixture = Fixture::start(&wanted);
    std::fs::remove_file(file).unwrap();
    let connect = |order, data: Vec<u8>| {
        let authorization = Authorization { name: COOKIE.to_vec(), data };
        Wire::try_connect(local_socket(fixture.display()), order, &authorization).unwrap()
    };
    let mut trusted = connect(Order::Native, vec![9; 16]);
    let Some(security) = trusted.extension("SECURITY") else {
        println!("left out: this server has no SECURITY");
        return;
    };
    let request = trusted.message(security.major, GENERATE_AUTHORIZATION).u16(COOKIE.len() as u16).u16(0);
    let mut padded = COOKIE.to_vec();
    padded.resize(padded.len().next_multiple_of(4), 0);
    let reply = trusted.ask(&request.u32(TRUST_LEVEL).raw(&padded).u32(UNTRUSTED).finish()).unwrap();
    let length = usize::from(trusted.u16_in(&reply, 12));
    let cookie = reply[32..32 + length].to_vec();
    let (xqos, own) = (trusted.xqos(), trusted.base);
    for order in ORDERS {
        let mut untrusted = connect(order, cookie.clone());
        assert_eq!(untrusted.extension("XQOS"), None);
        for request in requests_for(own).into_iter().chain(requests_for(0)).chain([Request::ListClients]) {
            let bytes = request.encode_as(xqos.major, order);
            let error = untrusted.tell_or_ask(&bytes).unwrap_err();
            assert!([code::BAD_REQUEST, code::BAD_ACCESS].contains(&error.code), "{request:?}: {error:?}");
        }
        untrusted.sync();
    }
    let clients = list(&mut trusted);
    assert!(clients.iter().all(|entry| entry.flags & entry_flag::RESERVED == 0 && entry.weight == 100), "{clients:?}");
}

// Events.

/// The next event of XQOS, checked as it came.
fn event(wire: &mut Wire, within: Duration) -> Option<Notify> {
    let code = wire.xqos().first_event;
    let bytes = wire.event(within)?;
    assert_eq!((bytes.len(), bytes[0]), (32, code), "{bytes:02x?}");
    Some(Notify::decode(&bytes, wire.order).unwrap())
}

#[test]
fn events_tell_who_comes_and_goes_and_what_is_reserved() {
    let _turn = beside_others();
    let fixture = xvfb();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        wire.tell_xqos(Request::SelectEvents { mask: event_mask::CLIENTS | event_mask::RESERVATIONS }).unwrap();
        let own = wire.base;
        let mut other = fixture.native();
        let came = event(&mut wire, SOON).unwrap();
        assert_eq!((came.kind, came.client), (NotifyKind::ClientConnected, other.base));
        assert_eq!((came.pid, came.budget_us, came.count), (std::process::id() as i32, 0, 0));

        other.tell_xqos(reserve(0, 2000, 20_000, true)).unwrap();
        let set = event(&mut wire, SOON).unwrap();
        assert_eq!((set.kind, set.client, set.flags), (NotifyKind::ReservationSet, other.base, 1));
        assert_eq!((set.budget_us, set.period_us), (2000, 20_000));
        // One's own are told as well, and a set one that is replaced is set.
        wire.tell_xqos(reserve(own, 3000, 30_000, false)).unwrap();
        let set = event(&mut wire, SOON).unwrap();
        assert_eq!((set.kind, set.client, set.budget_us, set.flags), (NotifyKind::ReservationSet, own, 3000, 0));
        other.tell_xqos(Request::ClearReservation { client: own }).unwrap();
        let cleared = event(&mut wire, SOON).unwrap();
        assert_eq!((cleared.kind, cleared.client), (NotifyKind::ReservationCleared, own));

        let base = other.base;
        drop(other);
        let gone = event(&mut wire, SOON).unwrap();
        assert_eq!((gone.kind, gone.client, gone.budget_us), (NotifyKind::ClientGone, base, 2000));
        assert!(gone.time_ms.wrapping_sub(came.time_ms) < 10_000);

        // Refused and needless requests are no events, and neither is anything that is not selected.
        let request = wire.xqos_bytes(reserve(0, 9999, 10_000, false));
        assert!(wire.tell(&request).is_err());
        wire.tell_xqos(Request::ClearReservation { client: 0 }).unwrap();
        wire.tell_xqos(Request::SelectEvents { mask: event_mask::RESERVATIONS }).unwrap();
        drop(fixture.native());
        wire.tell_xqos(Request::SelectEvents { mask: 0 }).unwrap();
        wire.tell_xqos(reserve(0, 1000, 10_000, false)).unwrap();
        assert_eq!(event(&mut wire, Duration::from_millis(100)), None);
    }
}

#[test]
fn depletions_are_told_ten_times_a_second_and_none_is_lost() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        wire.tell_xqos(Request::SelectEvents { mask: event_mask::DEPLETIONS }).unwrap();
        let busy = Busy::start_with(fixture.native(), &[reserve(0, 500, 5000, true)]);
        let end = Instant::now() + Duration::from_millis(1500);
        let (mut events, mut told, mut last_ms) = (0, 0, None);
        while let Some(depleted) = event(&mut wire, end.saturating_duration_since(Instant::now()).max(MILLISECOND)) {
            assert_eq!((depleted.kind, depleted.client, depleted.flags), (NotifyKind::Depleted, busy.base, 1));
            assert!(depleted.count > 0);
            if let Some(last) = last_ms.replace(depleted.time_ms) {
                assert!(depleted.time_ms - last >= 99, "{} ms after the last one", depleted.time_ms - last);
            }
            (events, told) = (events + 1, told + depleted.count);
        }
        let depletions = control.reservation(busy.base).unwrap().depletions;
        // 200 periods a second, some of them spent on an overrun of the last.
        assert!(events > 9 && events <= 16, "{events} events in 1.5 s");
        assert!(depletions > 50 && told <= depletions && depletions - told <= 30, "told {told} of {depletions}");
    }
}

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn missed_deadlines_are_counted_and_told() {
    let _turn = alone();
    let fixture = xvfb_with(PolicyKind::Fair);
    let mut wire = fixture.native();
    wire.tell_xqos(Request::SelectEvents { mask: event_mask::MISSES }).unwrap();
    let mut reserved = fixture.native();
    reserved.tell_xqos(reserve(0, 500, 1000, false)).unwrap();
    // Requests of many milliseconds come in between, each longer than its period.
    let mut blocking = fixture.native();
    let long = blocking.canvas(1000, 1000).fill(50);
    for _ in 0..20 {
        blocking.send(&long);
        std::thread::sleep(MILLISECOND);
        reserved.sync();
    }
    let missed = event(&mut wire, SOON).expect("a miss");
    assert_eq!((missed.kind, missed.client, missed.budget_us), (NotifyKind::Missed, reserved.base, 500));
    let report = reservation(&mut wire, reserved.base);
    assert!(report.misses >= missed.count && missed.count > 0, "{report:?} {missed:?}");
    // What it suffered from is what the admission test now counts with.
    assert!(info(&mut wire).blocking_observed_us > 1000, "{:?}", info(&mut wire));
}

#[test]
fn a_listener_that_leaves_or_vanishes_is_forgotten() {
    let _turn = beside_others();
    let mut fixture = xvfb();
    for _ in 0..50 {
        let mut listener = fixture.native();
        listener.tell_xqos(Request::SelectEvents { mask: event_mask::ALL }).unwrap();
        drop(listener);
        let mut other = fixture.native();
        other.tell_xqos(reserve(0, 1000, 10_000, false)).unwrap();
    }
    fixture.assert_armed();
}

// The life of a reservation.

#[test]
fn a_reservation_ends_with_its_client_and_is_not_inherited() {
    let _turn = beside_others();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let mut first = fixture.native();
    first.tell_xqos(reserve(0, 4000, 10_000, true)).unwrap();
    first.tell_xqos(Request::SetClientWeight { client: 0, weight: 900 }).unwrap();
    first.set_sync_priority(0, 44).unwrap();
    let base = first.base;
    assert_eq!(control.server_info().unwrap().reservations, 1);
    drop(first);
    wait_for("it is gone", SOON, || try_entry(&control, base).is_none());
    let found = control.server_info().unwrap();
    assert_eq!((found.reservations, found.admitted_utilization_ppm), (0, 0));
    let mut next = fixture.native();
    assert_eq!(next.base, base, "the next client takes its place");
    assert!(!reservation(&mut next, 0).reserved);
    let found = entry(&control, base);
    assert_eq!((found.weight, found.sync_priority, found.depletions, found.reserved_time_ns), (100, 0, 0, 0));
}

/// The server counts anew when a connection is set up, mostly within the client's first slice.
#[test]
fn a_clients_first_requests_are_counted_under_every_policy() {
    let _turn = beside_others();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
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
    let _turn = beside_others();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let mut wire = fixture.native();
    wire.sync();
    control.server_info().unwrap();
    let before = entry(&control, wire.base);
    let request = wire.message(opcode::NO_OPERATION, 0).finish();
    (0..1000).for_each(|_| wire.send(&request));
    wire.sync();
    control.server_info().unwrap();
    assert_eq!(entry(&control, wire.base).requests - before.requests, 1001);
    // Alone in its slice, so that it can be named.
    let long = wire.canvas(1000, 1000).fill(30);
    wire.sync();
    std::thread::sleep(Duration::from_millis(50));
    wire.send(&long);
    std::thread::sleep(Duration::from_millis(200));
    wire.sync();
    let after = entry(&control, wire.base);
    assert!(after.server_time_ns - before.server_time_ns > 1_000_000, "{after:?}");
    assert!(after.longest_request_ns > 1_000_000, "{after:?}");
    assert_eq!(after.longest_request & 0xff, u32::from(opcode::POLY_FILL_RECTANGLE));
    assert!(after.slices > 1 && after.waited_ns >= after.longest_wait_ns);
}
