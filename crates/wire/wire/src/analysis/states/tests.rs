// SPDX-License-Identifier: MIT
//! Tests the states against simulated links.

mod link;

use super::super::blocked::MAX_IN_FLIGHT;
use super::super::spans::Spans;
use super::super::spans::{Span, length_until, minus};
use super::*;
use link::{Captured, Exchange, Link, run};

const MS: u64 = 1_000_000;

/// A program's start as captures show it: connection setup, round trips, long replies, an image, events.
const START: [Exchange; 6] = [
    Exchange { request: 48, reply: 5_000, times: 1, work_ns: 100_000 },
    Exchange { request: 20, reply: 32, times: 30, work_ns: 200_000 },
    Exchange { request: 24, reply: 12_000, times: 2, work_ns: 3 * MS },
    Exchange { request: 300, reply: 0, times: 5, work_ns: 60 * MS },
    Exchange { request: 90_000, reply: 0, times: 1, work_ns: 20 * MS },
    Exchange { request: 500, reply: 200, times: 20, work_ns: 4 * MS },
];

fn classified(captured: &Captured) -> States {
    let mut states = States::new(false);
    captured.packets.iter().for_each(|packet| states.packet(packet));
    states.end(captured.end_ns);
    states
}

/// Share of the time in which our states match the simulated queue.
fn agreement(captured: &Captured, states: &States, direction: Direction) -> f64 {
    let transmitter = if direction == Direction::Requests { &states.requests } else { &states.replies };
    let (truth, ours) = (captured.busy[direction as usize].list(), transmitter.blocked.link.list());
    let wrong = [minus(truth, ours), minus(ours, truth)].map(|list| length_until(&list, u64::MAX));
    1.0 - (wrong[0] + wrong[1]) as f64 / (captured.end_ns - captured.packets[0].at_ns) as f64
}

#[test]
fn states_match_the_queue_over_the_whole_grid() {
    let mut worst = Vec::new();
    for bytes_per_second in [1_250, 12_500, 125_000, 1_250_000, 12_500_000] {
        for delay_ns in [MS / 10, MS, 10 * MS, 100 * MS] {
            for is_captured_at_server in [false, true] {
                let link = Link { bytes_per_second, delay_ns, is_captured_at_server };
                let captured = run(link, &START);
                let states = classified(&captured);
                for direction in [Direction::Requests, Direction::Replies] {
                    let part = agreement(&captured, &states, direction);
                    if part < 0.95 {
                        worst.push(format!("{part:.3} of {direction:?} over {link:?}"));
                    }
                }
            }
        }
    }
    assert!(worst.is_empty(), "below 95 %:\n{}", worst.join("\n"));
}

#[test]
fn a_setup_over_a_slow_link_is_classified_before_the_rate_is_known() {
    for is_captured_at_server in [false, true] {
        let link = Link { bytes_per_second: 1_250, delay_ns: MS / 10, is_captured_at_server };
        let captured = run(link, &[Exchange { request: 48, reply: 9_000, times: 1, work_ns: 100_000 }]);
        let states = classified(&captured);
        for direction in [Direction::Requests, Direction::Replies] {
            let part = agreement(&captured, &states, direction);
            assert!(part > 0.95, "{part:.3} of {direction:?}, at server: {is_captured_at_server}");
        }
    }
}

/// 60 bytes at 1250 bytes/s take 48 ms. The reply's queue delays the acknowledgement, and TCP retransmits the request.
#[test]
fn retransmissions_and_pure_acknowledgements_occupy_the_link() {
    use Direction::{Replies, Requests};
    let mut states = States::new(false);
    let mut take = |direction, at_ms, offset, length, acknowledged, is_retransmission| {
        states.packet(&Packet { is_retransmission, ..packet(direction, at_ms, offset, length, acknowledged, 60_000) });
    };
    take(Requests, 1_000, 0, 1448, 0, false);
    take(Replies, 2_250, 0, 0, 1448, false);
    // Three full packets reveal the rate.
    for number in 0..3 {
        take(Requests, 3_000, 1448 + number * 1448, 1448, 0, false);
    }
    for number in 1..=3 {
        take(Replies, 3_050 + number * 1200, 0, 0, 1448 + number * 1448, false);
    }
    take(Requests, 10_000, 5792, 8, 0, false);
    take(Requests, 11_000, 5792, 8, 0, true);
    take(Requests, 12_000, 5800, 0, 0, false);
    take(Replies, 14_000, 0, 32, 5800, false);
    states.end(15_000 * MS);
    let late: Vec<u64> = [10_000, 11_000, 12_000]
        .map(|ms| {
            let near = |span: &&Span| span.from_ns.abs_diff(ms * MS) < 10 * MS;
            states.requests.blocked.link.list().iter().find(near).map_or(0, |span| (span.to_ns - span.from_ns) / MS)
        })
        .into();
    assert!(late.iter().all(|ms| (40..60).contains(ms)), "{late:?} ms, {:?}", states.requests.blocked.link.list());
}

#[test]
fn data_written_in_one_burst_are_blocked_until_sent() {
    // Everything fits into the first window: no acknowledgement elicits data.
    let link = Link { bytes_per_second: 12_500, delay_ns: 10 * MS, is_captured_at_server: false };
    let script = [
        Exchange { request: 48, reply: 5_000, times: 1, work_ns: 0 },
        Exchange { request: 12_500, reply: 0, times: 1, work_ns: 2_000 * MS },
    ];
    let captured = run(link, &script);
    let (ours, truth) = (classified(&captured).requests.blocked.link.total_ns(), captured.busy[0].total_ns());
    assert!(truth > 1_000 * MS && ours.abs_diff(truth) < truth / 50, "{ours}, in truth {truth}");
}

#[test]
fn waiting_for_a_reply_with_a_long_delay_is_idle() {
    let link = Link { bytes_per_second: 12_500_000, delay_ns: 100 * MS, is_captured_at_server: false };
    let states = classified(&run(link, &[Exchange { request: 20, reply: 32, times: 50, work_ns: MS }]));
    let blocked_ns: u64 = states.requests.blocked.by_cause().map(Spans::total_ns).iter().sum();
    assert!((200 * MS..300 * MS).contains(&blocked_ns), "{blocked_ns} of 10 s, 200 ms of them for the handshake");
}

#[test]
fn slow_start_is_blocked_by_the_network_while_its_queue_is_empty() {
    for is_captured_at_server in [false, true] {
        let link = Link { bytes_per_second: 12_500_000, delay_ns: 100 * MS, is_captured_at_server };
        let states = classified(&run(link, &[Exchange { request: 200_000, reply: 0, times: 1, work_ns: MS }]));
        let (link_ns, window_ns) = (states.requests.blocked.link.total_ns(), states.requests.blocked.window.total_ns());
        // At the server, half of the handshake happens before the capture.
        let window_ns = window_ns - if is_captured_at_server { 100 * MS } else { 200 * MS };
        // 10, 20 and 40 packets; the remaining 69 follow the third acknowledgement.
        assert!((550 * MS..650 * MS).contains(&window_ns), "{window_ns} at server: {is_captured_at_server}");
        assert!(link_ns < 50 * MS, "{link_ns}");
    }
}

#[test]
fn delayed_acknowledgements_do_not_count_as_network() {
    let link = Link { bytes_per_second: 1_250_000, delay_ns: MS, is_captured_at_server: false };
    let script = [
        Exchange { request: 20, reply: 32, times: 20, work_ns: 0 },
        Exchange { request: 20_000, reply: 0, times: 1, work_ns: 100 * MS },
        Exchange { request: 100, reply: 0, times: 50, work_ns: 100 * MS },
    ];
    let captured = run(link, &script);
    let busy_ns = classified(&captured).requests.blocked.link.total_ns();
    assert!(busy_ns < 100 * MS, "{busy_ns} of 5 s, in which 50 packets are acknowledged after 40 ms");
}

fn packet(direction: Direction, at_ms: u64, offset: u64, length: u32, acknowledged: u64, window: u64) -> Packet {
    let at_ns = at_ms * MS;
    Packet { direction, at_ns, offset, length, acknowledged, window, is_retransmission: false, is_control: false }
}

#[test]
fn a_closed_window_counts_as_blocked_by_the_receiver() {
    use Direction::{Replies, Requests};
    for (started_midstream, window, closed_ms) in [(false, 0, 500), (false, 999, 500), (true, 999, 0), (true, 0, 500)] {
        let mut states = States::new(started_midstream);
        for packet in [
            packet(Requests, 1_000, 0, 1448, 0, 60_000),
            packet(Replies, 1_001, 0, 0, 1448, window),
            packet(Replies, 1_501, 0, 0, 1448, 30_000),
            packet(Requests, 1_502, 1448, 1448, 0, 60_000),
            packet(Replies, 1_503, 0, 0, 2896, 30_000),
        ] {
            states.packet(&packet);
        }
        states.end(2_000 * MS);
        assert_eq!(
            states.requests.blocked.receiver.total_ns(),
            closed_ms * MS,
            "joined: {started_midstream}, window {window}"
        );
    }
}

#[test]
fn retransmitted_data_were_blocked_by_the_network() {
    let mut states = States::new(false);
    states.packet(&packet(Direction::Requests, 1_000, 0, 100, 0, 60_000));
    states.packet(&packet(Direction::Replies, 1_001, 0, 0, 100, 60_000));
    states.packet(&packet(Direction::Requests, 2_000, 100, 100, 0, 60_000));
    states.packet(&Packet { is_retransmission: true, ..packet(Direction::Requests, 2_200, 100, 100, 0, 60_000) });
    states.packet(&packet(Direction::Replies, 2_201, 0, 0, 200, 60_000));
    states.end(3_000 * MS);
    let blocked_ns = states.requests.blocked.link.total_ns() + states.requests.blocked.window.total_ns();
    assert!((199 * MS..=201 * MS).contains(&blocked_ns), "{blocked_ns}");
}

#[test]
fn arbitrary_packets_cause_no_error() {
    let mut state = xqos_testkit::seed();
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut states = States::new(false);
    for _ in 0..50_000 {
        let huge = |value: u64, is_huge: bool| if is_huge { u64::MAX - value } else { value };
        let packet = Packet {
            direction: if random(2) == 0 { Direction::Requests } else { Direction::Replies },
            at_ns: huge(random(1 << 30), random(50) == 0),
            offset: huge(random(1 << 20), random(50) == 0),
            length: if random(20) == 0 { u32::MAX } else { random(3_000) as u32 },
            acknowledged: huge(random(1 << 20), random(100) == 0),
            window: random(4_000),
            is_retransmission: random(10) == 0,
            is_control: random(30) == 0,
        };
        states.packet(&packet);
    }
    states.end(u64::MAX);
    for transmitter in [&states.requests, &states.replies] {
        assert!(transmitter.held() <= MAX_IN_FLIGHT + 1);
    }
}
