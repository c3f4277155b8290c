// SPDX-License-Identifier: MIT
//! Tests predictions and plots of the captures in `reported`: packets that are cut off, seen twice or lost, and
//! keep-alives. The results equal those of the same traffic without these faults.

mod packets;

use packets::Captured;
use std::fs::File;
use std::path::Path;
use xqos_wire::capture::CaptureReader;
use xqos_wire::observe::Observer;
use xqos_wire::plot::model::{Choice, Plot};
use xqos_wire::plot::track::{Bar, MessageMark};
use xqos_wire::predict::script::ScriptRecorder;
use xqos_wire::predict::{StartPrediction, grid, predict_start};
use xqos_wire::session::Session;

const SECOND: u64 = 1_000_000_000;

fn packets(name: &str) -> Vec<Captured> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reported").join(name);
    let mut reader = CaptureReader::new(File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next() {
        let (at_ns, link, length, bytes) = (record.at_ns, record.link, record.length, record.bytes.to_vec());
        packets.push(Captured { at_ns, link, length, bytes, program: None });
    }
    packets
}

fn see(packets: &[Captured], observer: &mut dyn Observer) {
    let mut session = Session::new(vec![observer]);
    packets.iter().for_each(|packet| session.packet(&packet.record()));
    session.finish();
}

fn predicted(packets: &[Captured]) -> StartPrediction {
    let mut recorder = ScriptRecorder::default();
    see(packets, &mut recorder);
    predict_start(&recorder.script().expect("a whole start"), &grid::link(1_000, 50_000)).unwrap()
}

/// The drawing of the only connection: packets, messages, gaps, and the round trips that the client waited for.
fn drawn(packets: &[Captured]) -> (Vec<Bar>, Vec<MessageMark>, usize, Vec<[u64; 4]>) {
    let mut plot = Plot::new(Choice::default());
    see(packets, &mut plot);
    assert_eq!(plot.connections.len(), 1);
    let one = plot.busiest().unwrap();
    let tracks = || one.tracks.iter();
    let gaps = tracks().map(|track| track.gaps.count).sum();
    (
        tracks().flat_map(|it| it.bars()).collect(),
        tracks().flat_map(|it| it.marks()).collect(),
        gaps,
        one.trips.iter().collect(),
    )
}

#[test]
fn truncated_packets_are_predicted_and_drawn_like_whole_ones() {
    let (full, cut) = (packets("full.pcap"), packets("snap96.pcap"));
    assert_eq!(predicted(&cut), predicted(&full));
    let ((bars, marks, gaps, trips), expected) = (drawn(&cut), drawn(&full));
    assert_eq!((bars, marks, trips), (expected.0, expected.1, expected.3));
    assert_eq!(gaps, 0, "a truncated packet is not a gap");
    // A missing packet inside a message is a gap.
    let longest = full.iter().position(|packet| packet.length > 1400).unwrap();
    let lost: Vec<Captured> = [&full[..=longest], &full[longest + 2..]].concat();
    assert_eq!(drawn(&lost).2, 1);
}

#[test]
fn packets_that_are_seen_twice_are_predicted_and_drawn_once() {
    let full = packets("full.pcap");
    let late = |packet: &Captured| Captured { at_ns: packet.at_ns + 10_000, ..packet.clone() };
    let twice: Vec<Captured> = full.iter().flat_map(|packet| [packet.clone(), late(packet)]).collect();
    assert_eq!((predicted(&twice), drawn(&twice)), (predicted(&full), drawn(&full)));
    assert_eq!(predicted(&packets("sll2.pcap")).round_trips, predicted(&full).round_trips);
}

#[test]
fn a_lost_syn_does_not_count_as_the_programs_time() {
    let full = packets("full.pcap");
    let lost = Captured { at_ns: full[0].at_ns - SECOND, ..full[0].clone() };
    let again = [vec![lost], full.clone()].concat();
    assert_eq!(predicted(&again), predicted(&full));
    let mut plot = Plot::new(Choice::default());
    see(&again, &mut plot);
    let network = &plot.busiest().unwrap().activity[0].network;
    assert!(network.iter().any(|span| span.from_ns == 0 && span.to_ns >= SECOND), "drawn as blocked: {network:?}");
}

#[test]
fn keep_alives_are_not_part_of_the_start_and_not_drawn() {
    let all = packets("keepalive.pcap");
    assert!(all.last().unwrap().at_ns - all[0].at_ns > 200 * SECOND);
    assert!(predicted(&all).elapsed_ns < SECOND, "{:?}", predicted(&all));
    let (bars, ..) = drawn(&all);
    assert!(bars.iter().all(|bar| !bar.is_retransmission && (bar.length > 1 || bar.is_control)), "{bars:#?}");
}

#[test]
fn an_error_of_a_one_way_request_is_not_a_predicted_round_trip() {
    assert_eq!(predicted(&packets("zero.pcap")).round_trips, 4, "the setup and three of four atoms");
}

#[test]
fn wrong_units_of_time_do_not_change_a_prediction() {
    let start = predicted(&packets("ns-in-us.pcap"));
    assert!((3 * SECOND..6 * SECOND).contains(&start.elapsed_ns) && start.round_trips == 40, "{start:?}");
}
