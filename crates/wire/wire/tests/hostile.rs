// SPDX-License-Identifier: MIT
//! Tests damaged captures at each level: file bytes, packets, TCP streams, messages.
//!
//! No step panics, including plotting. No byte is delivered twice or out of order, which [`packets::Observed`] checks,
//! and there are never more results than data.

mod packets;

use packets::*;
use std::io::Cursor;
use xqos_testkit::Random;
use xqos_wire::analysis::Analysis;
use xqos_wire::analysis::proxied::Remedy;
use xqos_wire::capture::{CaptureReader, CaptureWriter};
use xqos_wire::observe::Direction;
use xqos_wire::plot::model::{Choice, Plot};
use xqos_wire::plot::{page, svg, xpl};
use xqos_wire::predict::script::ScriptRecorder;
use xqos_wire::predict::{grid, predict_start};
use xqos_wire::session::Session;

/// Rounds per level. The fuzz target runs more.
const ROUNDS: u64 = 300;

fn session(random: &mut Random) -> Talk {
    let order = if random.below(2) == 0 { Order::Little } else { Order::Big };
    let mut talk = Talk::new();
    talk.open_x(order);
    for sequence in 1..=60 {
        talk.client(&request(order, [43, 98, 72, 50, 8, 139][random.below(6)], 3, 8));
        match random.below(3) {
            0 => talk.server(&reply(order, sequence, 0, random.below(400) as u32)),
            1 => talk.server(&event(order, random.below(255) as u8, 1, sequence)),
            _ => talk.server(&error(order, random.below(200) as u8, sequence, 43)),
        };
    }
    talk
}

fn check(packets: &[Captured]) {
    let sent: u64 = packets.iter().map(|packet| packet.bytes.len() as u64).sum();
    let (seen, counts) = observe(packets);
    let understood: usize = seen.streams.values().map(Vec::len).sum();
    assert!(understood as u64 <= sent, "no more bytes are decoded than were sent");
    assert!(seen.messages.iter().map(|(_, received)| received.kept as u64).sum::<u64>() <= sent);
    assert_eq!(seen.opened.len(), seen.endings.len(), "every opened connection ends");
    assert_eq!((counts.connections, counts.packets), (seen.opened.len() as u64, packets.len() as u64));
    draw(packets);
    check_prediction(packets);
}

/// Predicts the start, if there is one, with a proxy.
fn check_prediction(packets: &[Captured]) {
    let remedy = Some(Remedy::Relaxed);
    let (mut recorder, mut analysis) = (ScriptRecorder::with_remedy(remedy), Analysis::with_remedy(remedy));
    let mut session = Session::new(vec![&mut recorder, &mut analysis]);
    packets.iter().for_each(|packet| session.packet(&packet.record()));
    session.finish();
    let left = analysis.report(0.1).session.figures.proxy;
    assert!(left.is_none_or(|left| left.left <= left.waits));
    if let Some(script) = recorder.script() {
        let predicted = predict_start(&script, &grid::link(100_000, 1_000)).expect("an end");
        assert!(predicted.delay_ns <= predicted.elapsed_ns, "{predicted:?}");
    }
}

/// Draws the capture in each format.
fn draw(packets: &[Captured]) {
    let mut plot = Plot::new(Choice { with_fields: true, ..Choice::default() });
    let mut session = Session::new(vec![&mut plot]);
    packets.iter().for_each(|packet| session.packet(&packet.record()));
    session.finish();
    let mut out = Vec::new();
    page::write(&plot, "hostile", &mut out).unwrap();
    if let Some(one) = plot.busiest() {
        svg::write(&plot, one, "hostile", &mut out).unwrap();
        xpl::write(&plot, one, "hostile", &mut out).unwrap();
    }
}

fn damage(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..=random.below(4) {
        if let Some(byte) = {
            let place = random.below(bytes.len());
            bytes.get_mut(place)
        } {
            *byte = [0, 1, 0x7f, 0xff, random.below(256) as u8][random.below(5)];
        }
    }
}

#[test]
fn damaged_packets_are_survived() {
    let mut random = Random(xqos_testkit::seed());
    for _ in 0..ROUNDS {
        let mut packets = session(&mut random).packets;
        for _ in 0..10 {
            let place = random.below(packets.len());
            damage(&mut packets[place].bytes, &mut random);
        }
        check(&packets);
    }
}

#[test]
fn lost_duplicate_truncated_and_reordered_packets_are_survived() {
    let mut random = Random(xqos_testkit::seed());
    for _ in 0..ROUNDS {
        let mut packets = session(&mut random).packets;
        for _ in 0..random.below(30) {
            let (one, other) = (random.below(packets.len()), random.below(packets.len()));
            match random.below(4) {
                0 => _ = packets.remove(one),
                1 => packets.swap(one, other),
                2 => packets.insert(one, packets[other].clone()),
                _ => packets[one] = packets[one].clone().cut(random.below(120)),
            }
        }
        check(&packets);
    }
}

#[test]
fn arbitrary_streams_are_survived() {
    let mut random = Random(xqos_testkit::seed());
    for _ in 0..ROUNDS {
        let mut talk = session(&mut random);
        for _ in 0..60 {
            let direction = if random.below(2) == 0 { Direction::Requests } else { Direction::Replies };
            let bytes: Vec<u8> = match random.below(3) {
                0 => (0..random.below(3000)).map(|_| random.below(256) as u8).collect(),
                1 => vec![[0, 1, 35, 43, 0xff][random.below(5)]; random.below(20_000)],
                _ => request(Order::Little, random.below(256) as u8, 0, 1 + random.below(60) as u16),
            };
            if random.below(9) == 0 {
                talk.next[direction as usize] =
                    talk.next[direction as usize].wrapping_add(random.below(1 << 31) as u32);
            }
            talk.send(direction, [ACK, ACK, ACK, ACK | FIN, SYN, RST][random.below(6)], &bytes);
        }
        check(&talk.packets);
    }
}

#[test]
fn damaged_files_are_survived() {
    let mut random = Random(xqos_testkit::seed());
    for _ in 0..ROUNDS {
        let mut writer = CaptureWriter::new(Vec::new(), "test").unwrap();
        session(&mut random).packets.iter().for_each(|packet| writer.write(&packet.record()).unwrap());
        let mut file = writer.into_inner();
        (0..8).for_each(|_| damage(&mut file, &mut random));
        file.truncate(file.len() - random.below(200));
        let Ok(mut reader) = CaptureReader::new(Cursor::new(file)) else { continue };
        let mut seen = Observed::default();
        let mut session = Session::new(vec![&mut seen]);
        while let Some(record) = reader.next() {
            session.packet(&record);
        }
        session.finish();
    }
}

#[test]
fn many_connections_share_the_limits() {
    let mut talk = Talk::new();
    talk.open_x(Order::Little);
    let mut packets = Vec::new();
    for number in 0..3000_u32 {
        let port = 10_000 + number as u16;
        talk.client.set_port(port);
        packets.push(talk.packet(Direction::Requests, SYN, &[]));
    }
    let (seen, counts) = observe(&packets);
    assert_eq!((seen.opened.len(), counts.not_followed_packets), (1024, 3000 - 1024));
}
