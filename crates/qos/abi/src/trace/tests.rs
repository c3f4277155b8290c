// SPDX-License-Identifier: MIT
//! Records survive encoding and decoding; invalid records are refused.

use super::*;
use std::collections::BTreeSet;
use xqos_core::{Parameters, PolicyKind, Reservation, Service};

/// Records with all numbers and random fields.
fn records() -> impl Iterator<Item = Words> {
    let mut seed = xqos_testkit::seed();
    let mut word = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> (seed >> 58)
    };
    (0..=255).cycle().take(256 * 256).map(move |number| {
        let head = (word() << 32) | ((word() & 0xfff) << 16) | ((word() & 0xff) << 8) | number;
        [word(), head, word(), word()]
    })
}

#[test]
fn every_record_survives_encoding_and_decoding() {
    let mut seen = BTreeSet::new();
    for event in records().filter_map(Event::decode) {
        assert_eq!(Event::decode(event.encode()), Some(event));
        seen.insert(event.what.name());
    }
    assert_eq!(seen, names());
}

#[test]
fn fields_are_at_the_documented_bits() {
    let client = ClientId(2047);
    let service = Service { requests: 3, last_request: 53, bytes: u64::MAX, ..Service::new(client, Time(4), Time(9)) };
    let served = Entry::Fact(Fact::Served(Service { ended_early: true, ..service }));
    let words = [9, (3 << 32) | (2047 << 16) | (1 << 8) | 6, (0xffff_ffff << 32) | 53, 4];
    assert_eq!(Event { at: Time(9), what: served }.encode(), words, "a number that is too large becomes the maximum");
}

#[test]
fn parameters_fit_one_record_for_all_valid_values() {
    let parameters = Parameters {
        slice_ns: 1_000_000_000,
        timer_interval_ns: 100_000,
        maximum_slice_ns: 1_000_000_000,
        max_utilization_ppm: 950_000,
        blocking_ns: u64::from(u32::MAX) * 1000,
    };
    let event = Event { at: Time(1), what: Entry::Fact(Fact::Parameters(parameters)) };
    assert_eq!(Event::decode(event.encode()), Some(event));
}

#[test]
fn a_refused_reservation_differs_from_an_admitted_one() {
    let reservation = Reservation { budget_ns: 3_000_000, period_ns: 10_000_000, kind: ReservationKind::SoftPaper };
    let fact = Fact::Reserve { holder: ClientId(1).into(), reservation };
    for what in [Entry::Fact(fact), Entry::Refused(fact)] {
        assert_eq!(Event::decode(Event { at: Time(1), what }.encode()).map(|event| event.what), Some(what));
    }
}

#[test]
fn invalid_numbers_clients_and_codes_are_refused() {
    let arrived = Event { at: Time(1), what: Entry::Fact(Fact::Arrived { client: ClientId(1) }) }.encode();
    let policy = Event { at: Time(1), what: Entry::Fact(Fact::Policy(PolicyKind::Smart)) }.encode();
    for head in [arrived[1] | 0xff, arrived[1] | (0xffff << 16), policy[1] | (0x7f << 8), 0] {
        assert_eq!(Event::decode([1, head, 0, 0]), None, "{head:#x}");
    }
}
