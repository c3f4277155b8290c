// SPDX-License-Identifier: MIT
//! Replies and events survive encoding and decoding; invalid ones are refused.

use super::*;
use crate::bytes::Malformed;
use crate::protocol::{AdmissionReport, ClientList, LongRequest, LongestRequests, Notify, ServerInfo, TraceStarted};
use xqos_core::PolicyKind;
use xqos_x11::ByteOrder;

const ENTRY_BYTES: usize = 392;
const LONG_REQUEST_BYTES: usize = 64;

const ORDERS: [ByteOrder; 2] = [ByteOrder::NATIVE, ByteOrder::SWAPPED];

fn info() -> ServerInfo {
    ServerInfo {
        armed: false,
        server_pid: 42,
        policy: PolicyKind::Fair,
        clients: 3,
        max_utilization_ppm: 900_000,
        admitted_utilization_ppm: 300_000,
        blocking_observed_us: 17,
        blocking_configured_us: 0,
        min_budget_us: 100,
        min_period_us: 1000,
        max_period_us: 10_000_000,
        slice_us: 5000,
        timer_interval_us: 5000,
        maximum_slice_us: 15_000,
        uptime_ns: 1 << 40,
        busy_ns: 5,
        decisions: 6,
        early_ends: 7,
        memory_bytes: 8,
        reservations: 1,
        clients_limit: 255,
        grab_holder: 0x20_0000,
        reason: "a test requested it".to_string(),
    }
}

#[test]
fn replies_survive_both_byte_orders_and_give_their_length() {
    for order in ORDERS {
        let bytes = info().encode(9, order);
        assert_eq!(ServerInfo::decode(&bytes, order), Ok(info()));
        assert_eq!(bytes.len(), 368);
        let length = u32::from_ne_bytes(bytes[4..8].try_into().unwrap());
        assert_eq!(if order == ByteOrder::NATIVE { length } else { length.swap_bytes() }, (368 - 32) / 4);
        let report = ReservationReport {
            active: true,
            budget_us: 3000,
            period_us: 10_000,
            flags: reservation_flag::HARD | reservation_flag::HELD_BACK,
            depletions: 2,
            budget_left_ns: -5,
            deadline_ns: 77,
            misses: 1,
        };
        let bytes = report.encode(1, order);
        assert_eq!(report.kind(), ReservationKind::Hard);
        assert_eq!((bytes.len(), ReservationReport::decode(&bytes, order)), (48, Ok(report)));
        let admission = AdmissionReport { failing_client: 5, sum_ppm: 6, limit_ppm: 7, ..Default::default() };
        let bytes = admission.encode(1, order);
        assert_eq!((bytes.len(), AdmissionReport::decode(&bytes, order)), (32, Ok(admission)));
    }
}

#[test]
fn a_list_keeps_every_field_and_truncates_long_names() {
    let client = ClientEntry {
        client: 0x200000,
        pid: 12,
        budget_left_ns: -3,
        grabbed_ns: 99,
        charged_ns: 9,
        waits: [1, 2, 3, 4, 5, 6, 7, u32::MAX],
        long_grabs: 8,
        name: "x".repeat(80),
        ..ClientEntry::default()
    };
    let list = ClientList { now_ns: 5, server_cpu_ns: 6, clients: vec![client.clone(), client] };
    for order in ORDERS {
        let bytes = list.encode(3, order);
        assert_eq!(bytes.len(), 32 + 2 * ENTRY_BYTES);
        let back = ClientList::decode(&bytes, order).unwrap();
        assert_eq!(back.clients[1].name, "x".repeat(31));
        assert_eq!(
            (back.clients[1].grabbed_ns, back.clients[0].charged_ns, back.clients[0].budget_left_ns),
            (99, 9, -3)
        );
        assert_eq!((back.clients[1].waits[7], back.clients[1].long_grabs), (u32::MAX, 8));
    }
}

#[test]
fn traces_and_long_requests_survive_both_byte_orders() {
    let request =
        LongRequest { ns: 13_000_000, at_ns: 1 << 50, client: 0x400000, pid: -1, request: 73, name: "x".repeat(60) };
    let list = LongestRequests { requests: vec![request.clone(), request] };
    let started = TraceStarted { nfd: 1, capacity: 1 << 17, record_bytes: 32, first: 1 << 40 };
    for order in ORDERS {
        let bytes = list.encode(3, order);
        let back = LongestRequests::decode(&bytes, order).unwrap();
        assert_eq!((bytes.len(), back.requests[1].name.len()), (32 + 2 * LONG_REQUEST_BYTES, 31));
        assert_eq!((back.requests[1].ns, back.requests[1].request), (13_000_000, 73));
        assert_eq!(LongestRequests::decode(&bytes[..bytes.len() - 1], order), Err(Malformed::Length));
        let bytes = started.encode(3, order);
        assert_eq!((bytes.len(), TraceStarted::decode(&bytes, order)), (32, Ok(started)));
    }
}

#[test]
fn truncated_replies_are_refused_without_a_panic() {
    let whole =
        ClientList { now_ns: 5, server_cpu_ns: 6, clients: vec![ClientEntry::default()] }.encode(3, ByteOrder::NATIVE);
    for length in 0..whole.len() {
        assert_eq!(ClientList::decode(&whole[..length], ByteOrder::NATIVE), Err(Malformed::Length));
    }
    let mut lying = whole;
    lying[8..12].copy_from_slice(&u32::MAX.to_ne_bytes());
    assert_eq!(ClientList::decode(&lying, ByteOrder::NATIVE), Err(Malformed::Length));
}

#[test]
fn events_survive_both_byte_orders() {
    for kind in NotifyKind::ALL {
        let event = Notify { kind, client: 1, pid: 2, budget_us: 3, period_us: 4, flags: 5, count: 6, time_ms: 7 };
        for order in ORDERS {
            assert_eq!(Notify::decode(&event.encode(90, 4, order), order), Ok(event));
        }
    }
}
