// SPDX-License-Identifier: MIT
//! Requests survive encoding and decoding; invalid requests are refused.

use super::*;
use crate::bytes::Malformed;
use crate::label::Label;
use crate::protocol::{Grouping, LENGTHS, Paced, REQUESTS};
use crate::trace::Level;
use crate::values::PolicyChange;
use xqos_core::PolicyKind;

fn one_of_each() -> Vec<Request> {
    let client = 0x400001;
    vec![
        Request::QueryVersion { major: 1, minor: 0 },
        Request::GetServerInfo,
        Subject::Group(client).set(Setting::reservation(3000, 10_000, true)),
        Subject::Server.clear(SettingKind::Pacing),
        Request::CheckAdmission { subject: Subject::Client(9), reservation: reservation(1, u32::MAX, false) },
        Request::GetReservation { client },
        Request::ListClients,
        Request::ListDeparted,
        Request::ListLongestRequests,
        Request::GetPacing,
        Request::GetDesktop,
        Request::GetGroups,
        Request::GetProcessor,
        Request::SetPolicy {
            change: PolicyChange {
                policy: Some(PolicyKind::Smart),
                maximum_slice_us: Some(15_000),
                ..PolicyChange::default()
            },
        },
        Request::SetOrigin { name: Label::new("rule players"), lease: true },
        Request::LendProcessor { on: true, limit_before: 95 },
        Request::SelectEvents { mask: 5 },
        Request::StartTrace { level: Level::Requests, capacity: 4096 },
        Request::StopTrace,
        Request::GetCut,
        Request::MarkExposing { client: 0x40_0001 },
    ]
}

fn settings() -> Vec<Setting> {
    vec![
        Setting::reservation(3000, 10_000, ReservationKind::SoftPaper),
        Setting::Weight(200),
        Setting::Priority(-4),
        Setting::Cap(50_000),
        Setting::Paced(Paced::Never),
        Setting::Group(Label::new("players")),
        Setting::Pacing(Pacing { limit_ns: 25_000_000, floor_ns: 50_000_000 }),
        Setting::Desktop(666_667),
        Setting::Grouping(Grouping::User),
        Setting::UserLimit(300_000),
        Setting::Slice(2000),
        Setting::Cut(250),
    ]
}

#[test]
fn every_request_survives_both_byte_orders() {
    let sets = settings().into_iter().map(|setting| Subject::Client(7).set(setting));
    for request in one_of_each().into_iter().chain(sets) {
        for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
            let bytes = request.encode_as(130, order);
            assert_eq!(bytes.len(), LENGTHS[usize::from(request.minor())]);
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
            assert_eq!(Request::parse(&bytes, ByteOrder::NATIVE), Err(Malformed::Length), "{request:?} {length}");
        }
    }
}

/// Parses a request after replacing the word at this offset.
fn with_word(request: Request, at: usize, word: u32) -> Result<Request, Malformed> {
    let mut bytes = request.encode(130);
    bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    Request::parse(&bytes, ByteOrder::NATIVE)
}

#[test]
fn unknown_opcodes_enumerations_and_masks_are_reported() {
    assert_eq!(Request::parse(&[130, 99, 1, 0], ByteOrder::NATIVE), Err(Malformed::Opcode));
    let weight = Subject::Client(1).set(Setting::Weight(1));
    assert_eq!(with_word(weight, 4, 3), Err(Malformed::Value(3)), "no such subject");
    assert_eq!(with_word(weight, 12, 99), Err(Malformed::Value(99)), "no such setting");
    let reservation = Subject::Client(1).set(Setting::reservation(1, 2, false));
    assert_eq!(with_word(reservation, 24, 3), Err(Malformed::Value(3)), "no such flags");
    let change = PolicyChange { policy: Some(PolicyKind::Fair), ..PolicyChange::default() };
    assert_eq!(with_word(Request::SetPolicy { change }, 4, 64), Err(Malformed::Value(64)), "no such bit");
    assert_eq!(with_word(Request::SetPolicy { change }, 8, 200), Err(Malformed::Value(200)), "no such policy");
    assert_eq!(with_word(Request::LendProcessor { on: true, limit_before: 0 }, 4, 2), Err(Malformed::Value(2)));
}

#[test]
fn every_request_and_every_setting_is_listed_once() {
    assert_eq!(one_of_each().iter().map(|request| usize::from(request.minor())).collect::<Vec<_>>(), {
        (0..REQUESTS.len()).collect::<Vec<_>>()
    });
    assert_eq!(settings().iter().map(Setting::kind).collect::<Vec<_>>(), SettingKind::ALL);
}

#[test]
fn clear_restores_the_initial_value_of_the_same_setting() {
    for subject in [Subject::Client(1), Subject::Group(1), Subject::Server] {
        for kind in SettingKind::ALL {
            assert!(kind.initial(subject).is_none_or(|setting| setting.kind() == kind), "{subject:?} {kind:?}");
        }
    }
    assert_eq!(SettingKind::Cap.initial(Subject::Client(1)), None);
    assert_eq!(SettingKind::Desktop.initial(Subject::Group(1)), None);
}

#[test]
fn random_bytes_never_panic() {
    let mut state = xqos_testkit::seed();
    // Miri is about 100,000 times slower.
    for _ in 0..if cfg!(miri) { 200 } else { 200_000 } {
        let mut bytes = [0u8; 52];
        for byte in &mut bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        bytes[1] %= 20;
        let length = usize::from(bytes[51]) % 52;
        let _ = Request::parse(&bytes[..length], ByteOrder::SWAPPED);
        let right = LENGTHS.get(usize::from(bytes[1])).copied().unwrap_or(4);
        let _ = Request::parse(&bytes[..right], ByteOrder::NATIVE);
    }
}
