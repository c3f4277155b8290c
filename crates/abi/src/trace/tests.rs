// SPDX-License-Identifier: MIT
use super::*;
use xqos_core::ReservationKind;

fn one_of_each() -> Vec<What> {
    let client = ClientId(2047);
    let reservation = Reservation { budget_ns: 3_000_000, period_ns: 10_000_000, kind: ReservationKind::Hard };
    let (mode, reason) = (Mode::Reserved, Reason::Deadline);
    vec![
        What::Begin { level: Level::Requests, server_pid: 77, words: 9 },
        What::State { index: 3, words: [u64::MAX, 1] },
        What::End,
        What::Creation { client, descriptor: 12 },
        What::Identity { client, pid: 1, base: 0x400000, uid: u32::MAX },
        What::Name { client, part: 1, bytes: *b"gnome-terminal-s" },
        What::Destruction { client },
        What::Activation { client },
        What::Withdrawal { client },
        What::Input { client },
        What::Exposed { client, cause: None },
        What::Exposed { client, cause: Some(ClientId(0)) },
        What::Paced { client, until: Time(5) },
        What::Pacing { limit_us: 25_000, floor_us: 50_000 },
        What::Role { client, role: Role { compositor: true, window_manager: true } },
        What::Desktop { share_ppm: 666_667 },
        What::Contention { is_on: true },
        What::MadeWork { client },
        What::WorksFor { client, whom: ClientId(2047) },
        What::Supply { budget_ns: 8_000_000, period_ns: 10_000_000 },
        What::Grab { client: None },
        What::Grab { client: Some(client) },
        What::Overran { ns: 5 },
        What::Dispatch { client: Some(client), mode, reason, until: Time::NEVER, requests: 10, bytes: 4096 },
        What::Dispatch {
            client: None,
            mode: Mode::BestEffort,
            reason: Reason::Grab,
            until: Time(7),
            requests: 0,
            bytes: 0,
        },
        What::Served {
            client,
            still_ready: false,
            ended_early: true,
            requests: 3,
            last_request: 53 | (4 << 16),
            bytes: 1,
            start: Time(4),
        },
        What::Replenish,
        What::Processor { client, ns: 77 },
        What::Budget { client, kind: ReservationKind::Hard, depleted: true, left_ns: -5, deadline: Time(9) },
        What::Reserve { client, reservation, admitted: true },
        What::Clear { client },
        What::Policy { kind: PolicyKind::Smart },
        What::Intervals { slice_us: 1, timer_interval_us: 2, maximum_slice_us: 3 },
        What::Limits { max_utilization_ppm: 900_000, blocking_us: 4 },
        What::SyncPriority { client, priority: i32::MIN },
        What::Weight { client, weight: 200 },
        What::GroupCap { group: GroupId(7), ppm: 50_000 },
        What::GroupReserve { group: GroupId(7), reservation, admitted: true },
        What::GroupRelease { group: GroupId(7) },
        What::FixedPriority { client, priority: -3 },
        What::Group { client, group: GroupId(7) },
        What::GroupWeight { group: GroupId(7), weight: 300 },
        What::Request { client, request: 73, bytes: 20, ns: 10_000_000 },
        What::Lost { records: 1 << 40 },
        What::Switch { cpu: 1, from: 2, to: 3, still_runnable: true },
        What::Wakeup { cpu: 1, thread: 3 },
    ]
}

#[test]
fn every_event_survives_its_record() {
    for what in one_of_each() {
        let event = Event { at: Time(123), what };
        assert_eq!(Event::decode(event.encode()), Some(event));
    }
}

#[test]
fn kinds_and_clients_that_are_none_are_refused() {
    let served = Event { at: Time(1), what: What::Activation { client: ClientId(1) } }.encode();
    for word in [served[1] | 0xff, served[1] | (0xffff << 16), 0] {
        assert_eq!(Event::decode([1, word, 0, 0]), None, "{word:#x}");
    }
}
