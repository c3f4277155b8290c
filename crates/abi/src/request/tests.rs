// SPDX-License-Identifier: MIT
//! Requests as they cross the border: each survives it, and what is no request is refused.

use super::*;
use xqos_core::ReservationKind;

fn one_of_each() -> Vec<Request> {
    vec![
        Request::QueryVersion { major: 1, minor: 0 },
        Request::GetServerInfo,
        Request::SetReservation { client: 0x400001, budget_us: 3000, period_us: 10_000, kind: ReservationKind::Hard },
        Request::GetReservation { client: 7 },
        Request::ClearReservation { client: 0 },
        Request::CheckAdmission { client: 9, budget_us: 1, period_us: u32::MAX, kind: ReservationKind::Soft },
        Request::ListClients,
        Request::ListDeparted,
        Request::SetPolicy(PolicyChange {
            policy: Some(PolicyKind::Smart),
            maximum_slice_us: Some(15_000),
            ..PolicyChange::default()
        }),
        Request::SetClientWeight { client: 1, weight: 200 },
        Request::SetClientPriority { client: 1, priority: -4 },
        Request::SelectEvents { mask: 5 },
        Request::StartTrace { level: Level::Requests, capacity: 4096 },
        Request::StopTrace,
        Request::ListLongestRequests,
        Request::LendProcessor { on: true, limit_before: 95 },
        Request::SetPacing { limit_us: 25_000, floor_us: 50_000 },
        Request::GetPacing,
        Request::SetDesktop { share_ppm: 666_667 },
        Request::GetDesktop,
        Request::GetProcessor,
        Request::SetOrigin { name: Label::new("rule players"), lease: true },
        Request::SetGroups { grouping: Grouping::User, user_limit_ppm: 300_000 },
        Request::GetGroups,
        Request::SetClientGroup { client: 7, name: Label::new("players") },
        Request::SetGroupWeight { client: 7, weight: 50 },
        Request::SetGroupCap { client: 7, ppm: 50_000 },
        Request::SetClientPacing { client: 7, paced: Paced::Never },
        Request::SetGroupReservation { client: 7, budget_us: 3000, period_us: 10_000, kind: ReservationKind::Hard },
        Request::ClearGroupReservation { client: 7 },
    ]
}

#[test]
fn every_request_survives_both_byte_orders() {
    for request in one_of_each() {
        for order in [Order::Native, Order::Swapped] {
            let bytes = request.encode_as(130, order);
            assert_eq!(bytes.len(), length(request.minor()).unwrap());
            assert_eq!(Request::parse(&bytes, order), Ok(request));
        }
    }
}

#[test]
fn a_request_of_any_other_length_is_refused() {
    for request in one_of_each() {
        let whole = request.encode(130);
        for length in (0..whole.len() + 12).filter(|&length| length != whole.len()) {
            let mut bytes = whole.clone();
            bytes.resize(length, 0);
            assert_eq!(Request::parse(&bytes, Order::Native), Err(Mistake::Length), "{request:?} {length}");
        }
    }
}

#[test]
fn unknown_opcodes_flags_and_masks_are_named() {
    assert_eq!(Request::parse(&[130, 99, 1, 0], Order::Native), Err(Mistake::Opcode));
    let mut bytes = Request::SelectEvents { mask: 0 }.encode(130);
    bytes[4] = 64;
    assert_eq!(Request::parse(&bytes, Order::Native), Err(Mistake::Value(64)));
    let mut bytes = Request::ListClients.encode(130);
    bytes[1] = minor::SET_RESERVATION;
    assert_eq!(Request::parse(&bytes, Order::Native), Err(Mistake::Length));
    let change = PolicyChange { policy: Some(PolicyKind::Fair), ..PolicyChange::default() };
    let mut bytes = Request::SetPolicy(change).encode(130);
    bytes[4] = 200;
    assert_eq!(Request::parse(&bytes, Order::Native), Err(Mistake::Value(200)));
}

#[test]
fn every_request_has_a_name() {
    let named = REQUESTS.iter().filter(|(name, _)| name.starts_with(char::is_alphabetic)).count();
    assert_eq!(one_of_each().len(), named);
    assert!(one_of_each().iter().all(|request| usize::from(request.minor()) < REQUESTS.len()));
}

#[test]
fn random_bytes_never_panic() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    // Miri takes a hundred thousand times as long.
    for _ in 0..if cfg!(miri) { 200 } else { 200_000 } {
        let mut bytes = [0u8; 48];
        for byte in &mut bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        bytes[1] %= 29;
        let length = usize::from(bytes[47]) % 48;
        let _ = Request::parse(&bytes[..length], Order::Swapped);
    }
}
