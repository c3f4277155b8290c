// SPDX-License-Identifier: MIT
//! Predictions for starts whose times can be calculated manually.

use super::grid::link;
use super::script::{Awaited, Script, ServerMessage, Step, StepAction};
use super::*;

const MS: u64 = 1_000_000;

/// A client that connects and waits for `count` replies, thinking before each request. The server needs 1 ms per reply.
fn asks(count: usize, think_ns: u64, request: u64, reply: u64) -> Script {
    let mut script = Script { steps: Vec::new(), messages: vec![Vec::new()] };
    script.steps.push(Step { connection: 0, think_ns: 0, after: None, action: StepAction::Open });
    for index in 0..count {
        let after = index.checked_sub(1).map(|index| Awaited { connection: 0, index, is_reply: true });
        script.steps.push(Step { connection: 0, think_ns, after, action: StepAction::Send(request) });
        script.messages[0].push(ServerMessage { cause: request * (index as u64 + 1), service_ns: MS, bytes: reply });
    }
    script
}

fn ms(ns: u64) -> u64 {
    (ns + MS / 2) / MS
}

#[test]
fn each_wait_costs_a_round_trip_and_thinking_time_stays() {
    let predicted = predict_start(&asks(11, 5 * MS, 32, 32), &link(100_000, 50_000)).unwrap();
    // The handshake, then eleven thinking times and replies, then the delayed acknowledgement of the last reply.
    assert_eq!(predicted.round_trips, 10, "the program did not wait for the last answer");
    assert_eq!(ms(predicted.wait_ns), 10 * 101);
    assert_eq!(ms(predicted.elapsed_ns), 100 + 11 * (5 + 101) + 40);
}

#[test]
fn a_large_reply_takes_its_transmission_time() {
    // 144,800 bytes are 100 packets of 1500 bytes: 1.2 s at 1 Mb/s.
    let predicted = predict_start(&asks(1, 0, 32, 144_800), &link(1_000, 100)).unwrap();
    assert!((1_200..1_215).contains(&ms(predicted.elapsed_ns)), "{predicted:?}");
    assert_eq!(predicted.link_bytes[1], 60 + 52 + 100 * 1_500);
    assert!(predicted.link_bytes[0] > 60 + 52 + 84 + 50 * 52, "the client also sends acknowledgements: {predicted:?}");
}

#[test]
fn slow_start_costs_a_round_trip_for_each_doubling() {
    // 10, 20, 40 and 80 segments in one round trip each, after one for the handshake.
    let predicted = predict_start(&asks(1, 0, 32, 150 * 1_448), &link(100_000, 100_000)).unwrap();
    assert!((1_000..1_030).contains(&ms(predicted.elapsed_ns)), "{predicted:?}");
}

#[test]
fn a_batch_is_one_round_trip() {
    let mut script = asks(2, 0, 32, 32);
    script.steps[2].after = None;
    let predicted = predict_start(&script, &link(10_000, 100_000)).unwrap();
    assert_eq!(
        (predicted.round_trips, ms(predicted.elapsed_ns)),
        (0, 200 + 202),
        "the first packets are acknowledged immediately"
    );
}

#[test]
fn a_dropped_packet_is_retransmitted() {
    let shape = Shape { queue: Some(crate::link::shape::Queue::Packets(3)), ..link(1_000, 10_000) };
    let predicted = predict_start(&asks(1, 0, 32, 1_448_000), &shape).unwrap();
    assert!(predicted.link_bytes[1] >= 1_500_000, "{predicted:?}");
    assert!((12_000..20_000).contains(&ms(predicted.elapsed_ns)), "{predicted:?}");
}

#[test]
fn a_longer_or_slower_link_is_never_faster() {
    let script = asks(20, MS, 200, 20_000);
    let elapsed = |rate, delay| predict_start(&script, &link(rate, delay)).unwrap().elapsed_ns;
    for rates in super::grid::RATES_KBIT.windows(2) {
        for delay in super::grid::DELAYS_US {
            assert!(elapsed(rates[0], delay) <= elapsed(rates[1], delay), "{rates:?} {delay}");
        }
    }
    for rate in super::grid::RATES_KBIT {
        for delays in super::grid::DELAYS_US.windows(2) {
            assert!(elapsed(rate, delays[0]) <= elapsed(rate, delays[1]), "{rate} {delays:?}");
        }
    }
}

#[test]
fn a_program_that_writes_too_much_is_blocked() {
    let mut script = asks(1, 0, 1_448_000, 32);
    script.steps.push(Step { connection: 0, think_ns: 500 * MS, after: None, action: StepAction::Send(32) });
    let predicted = predict_start(&script, &link(1_000, 100)).unwrap();
    // The program continues only once nearly everything has been sent.
    assert!((12_000..12_800).contains(&ms(predicted.elapsed_ns)), "{predicted:?}");
}

#[test]
fn an_empty_script_takes_no_time() {
    assert_eq!(predict_start(&Script::default(), &link(10, 100_000)), Some(StartPrediction::default()));
}
