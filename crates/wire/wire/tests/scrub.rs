// SPDX-License-Identifier: MIT
//! Tests scrubbed captures: nothing confidential remains, and the analysis is unchanged.

mod packets;

use packets::*;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use xqos_testkit::Random;
use xqos_wire::analysis::Analysis;
use xqos_wire::capture::{CaptureReader, CaptureWriter};
use xqos_wire::observe::Direction;
use xqos_wire::recording::rewrite::rewrite;
use xqos_wire::recording::scrub::Extent;
use xqos_wire::recording::{Recorded, RecordingSettings, Target};
use xqos_wire::session::Session;

const L: Order = Order::Little;
/// Keeps everything but these data.
fn without(scrub: impl Into<Option<Extent>>) -> RecordingSettings {
    RecordingSettings { scrub: scrub.into(), ..RecordingSettings::default() }
}

/// Records a capture again and returns the new file.
fn again(capture: Vec<u8>, settings: &RecordingSettings, name: &str) -> (Vec<u8>, Recorded) {
    let path: PathBuf = std::env::temp_dir().join(format!("xqos-scrub-{}-{name}", std::process::id()));
    let reader = CaptureReader::new(Cursor::new(capture)).expect("a valid capture");
    let target = Target::One(File::create(&path).unwrap());
    let rewritten = rewrite(reader, None, target, settings, &mut |_, _| {}).unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(path).unwrap();
    (bytes, rewritten.recorded)
}

fn file(packets: &[Captured]) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), "test").unwrap();
    packets.iter().for_each(|packet| writer.write(&packet.record()).unwrap());
    writer.into_inner()
}

fn golden(name: &str) -> Vec<u8> {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/captures/{name}.pcapng.zst"));
    let mut bytes = Vec::new();
    zstd::Decoder::new(File::open(packed).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// The analysis of a capture, without figures that depend on overwritten bytes.
fn analysed(capture: Vec<u8>) -> Value {
    let mut reader = CaptureReader::new(Cursor::new(capture)).unwrap();
    let mut analysis = Analysis::default();
    let mut session = Session::new(vec![&mut analysis]);
    while let Some(record) = reader.next() {
        session.packet(&record);
    }
    session.finish();
    let mut report = serde_json::to_value(analysis.report(0.05)).unwrap();
    report["session"].as_object_mut().unwrap().remove("compression");
    let connections = report["connections"].as_array().unwrap().len();
    for place in (0..connections).map(|number| format!("/connections/{number}")).chain(["/session".into()]) {
        let figures = report.pointer_mut(&place).unwrap();
        figures["unused"].as_object_mut().unwrap().values_mut().for_each(|unused| unused["not_zero"] = Value::Null);
        figures["repeated"].as_object_mut().unwrap().values_mut().for_each(|shapes| shapes["repeated"] = Value::Null);
    }
    report
}

fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

#[test]
fn captures_of_real_programs_are_analysed_the_same() {
    for name in ["xterm", "gtk3-demo", "qt5", "emacs", "x11perf"] {
        let capture = golden(name);
        let (scrubbed, recorded) = again(capture.clone(), &without(Extent::All), name);
        assert_eq!((recorded.given_up, recorded.left_out), (0, 0));
        assert_eq!(analysed(scrubbed.clone()), analysed(capture.clone()), "{name}");
        // Titles and classes in properties.
        for text in [&b"Qt Linguist"[..], b"gtk3-demo\0Gtk3-demo", b"*scratch*", b"xterm\0XTerm"] {
            assert!(!has(&scrubbed, text), "{name}: {}", String::from_utf8_lossy(text));
        }
    }
}

#[test]
fn captures_of_real_programs_contain_confidential_text() {
    assert!(has(&golden("xterm"), b"xterm\0XTerm") && has(&golden("emacs"), b"*scratch*"));
    assert!(has(&golden("gtk3-demo"), b"gtk3-demo\0Gtk3-demo") && has(&golden("qt5"), b"Qt Linguist"));
}

/// A client's setup with this cookie.
fn setup_with(cookie: &[u8; 16]) -> Vec<u8> {
    let mut bytes = vec![b'l', 0, 11, 0, 0, 0, 18, 0, 16, 0, 0, 0];
    bytes.extend(b"MIT-MAGIC-COOKIE-1\0\0");
    bytes.extend(cookie);
    bytes
}

fn introduced(cookie: &[u8; 16]) -> Talk {
    let mut talk = Talk::new();
    // The setup is sent in two packets, and the cookie is in both.
    let setup = setup_with(cookie);
    talk.open().client(&setup[..40]).client(&setup[40..]).server(&setup_reply(L));
    talk
}

#[test]
fn the_cookie_is_always_removed() {
    let mut talk = introduced(b"SECRETCOOKIE1234");
    let property = [&request(L, 18, 0, 8)[..24], b"MY TITLE"].concat();
    talk.client(&property).close();
    let capture = file(&talk.packets);
    let (cleaned, recorded) = again(capture.clone(), &without(Extent::Cookie), "cookie");
    assert!(!has(&cleaned, b"SECRET") && !has(&cleaned, b"1234") && has(&cleaned, b"MIT-MAGIC-COOKIE-1"));
    assert!(has(&cleaned, b"MY TITLE"));
    assert_eq!((recorded.packets, cleaned.len()), (talk.packets.len() as u64, capture.len() + application_bytes()));
    assert!(has(&again(capture, &without(None), "kept").0, b"SECRET"));
}

/// Difference in length between our application name and "test", the name in the tests.
fn application_bytes() -> usize {
    let ours = concat!("xqos ", env!("CARGO_PKG_VERSION")).len();
    ours.next_multiple_of(4) - "test".len()
}

/// Makes a message of each kind that can contain confidential text or keys: `PASSWORD`, and the keys 38 and 39.
fn telling(order: Order) -> Talk {
    let mut talk = Talk::new();
    talk.open_x(order);
    let with = |mut bytes: Vec<u8>, at: usize, text: &[u8]| {
        bytes[at..at + text.len()].copy_from_slice(text);
        bytes
    };
    let ask = |major, minor, words, at| with(request(order, major, minor, words), at, b"PASSWORD");
    talk.client(&query_extension(order, "RENDER")).server(&extension_reply(order, 1, [139, 0, 142]));
    for (major, minor, at) in [(18, 0, 24), (72, 0, 24), (74, 8, 16), (76, 8, 16), (139, 23, 28), (139, 20, 12)] {
        talk.client(&ask(major, minor, 12, at));
    }
    talk.client(&enable_big_requests(order));
    let mut big = big_request(order, 18, 100);
    big.splice(28..36, *b"PASSWORD");
    talk.client(&big);
    talk.client(&with(request(order, 25, 0, 11), 24, b"PASSWORD"));
    talk.client(&request(order, 20, 0, 6)).server(&with(reply(order, 11, 8, 4), 32, b"PASSWORD"));
    talk.client(&request(order, 73, 0, 5)).server(&with(reply(order, 12, 24, 4), 40, b"PASSWORD"));
    talk.server(&with(event(order, 33, 8, 12), 12, b"PASSWORD"));
    for key in [38, 39] {
        talk.server(&event(order, 2, key, 12)).server(&event(order, 3 | 0x80, key, 12));
    }
    talk
}

#[test]
fn texts_and_keys_are_removed_in_any_byte_order_and_packet_size() {
    for order in [Order::Little, Order::Big] {
        let whole = telling(order);
        for cut in [usize::MAX, 97, 13, 1] {
            // Send the same bytes in packets of that size.
            let mut talk = Talk::new();
            talk.open();
            for packet in &whole.packets[3..] {
                let direction = if packet.bytes[34] == whole.packets[0].bytes[34]
                    && packet.bytes[35] == whole.packets[0].bytes[35]
                {
                    Direction::Requests
                } else {
                    Direction::Replies
                };
                for part in packet.bytes[54..].chunks(cut) {
                    talk.send(direction, ACK, part);
                }
            }
            talk.close();
            let capture = file(&talk.packets);
            let (scrubbed, _) = again(capture.clone(), &without(Extent::All), "telling");
            assert!(!has(&scrubbed, b"PASS") && !has(&scrubbed, b"WORD"), "{order:?}, cut by {cut}");
            let (before, after) = (observe(&talk.packets).0, seen(scrubbed));
            assert_eq!(after.lines(), before.lines(), "{order:?}, cut by {cut}");
            for (_, received) in after.messages.iter().filter(|(_, received)| received.name.starts_with("Key")) {
                assert_eq!(received.second_byte, 0, "the key of {received:?}");
            }
        }
    }
}

fn seen(capture: Vec<u8>) -> Observed {
    let mut reader = CaptureReader::new(Cursor::new(capture)).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next() {
        let (at_ns, link, length, bytes) = (record.at_ns, record.link, record.length, record.bytes.to_vec());
        packets.push(Captured { at_ns, link, length, bytes, program: None });
    }
    observe(&packets).0
}

#[test]
fn retransmitted_and_reordered_packets_reveal_nothing() {
    let mut random = Random(xqos_testkit::seed());
    let mut below = |most| random.below(most);
    for round in 0..60 {
        let mut packets = telling(L).packets;
        for _ in 0..8 {
            let (one, other) = (3 + below(packets.len() - 3), 3 + below(packets.len() - 3));
            match below(3) {
                0 => packets.swap(one, other),
                1 => packets.insert(one, packets[other].clone()),
                _ => _ = packets.remove(one),
            }
        }
        let (scrubbed, _) = again(file(&packets), &without(Extent::All), "again");
        assert!(!has(&scrubbed, b"PASS") && !has(&scrubbed, b"WORD"), "round {round}");
    }
}

#[test]
fn undecoded_bytes_are_blanked() {
    let mut other = Talk::between("10.0.0.1:40001", "10.0.0.2:8080");
    other.open().client(b"GET /PASSWORD HTTP/1.0\r\n\r\n").server(b"PASSWORD").close();
    let mut foreign = Talk::between("10.0.0.1:40002", "10.0.0.2:6000");
    foreign.open().client(b"GET /PASSWORD HTTP/1.0\r\n\r\n").server(b"PASSWORD").close();
    let mut joined = Talk::between("10.0.0.1:40003", "10.0.0.2:6001");
    joined.client(b"PASSWORD").server(b"PASSWORD").client(b"PASSWORD");
    let mut unfinished = Talk::between("10.0.0.1:40004", "10.0.0.2:6002");
    unfinished.open_x(L).client(&[&request(L, 18, 0, 4000)[..24], b"PASSWORD"].concat());
    let packets = [other.packets, foreign.packets, joined.packets, unfinished.packets.clone()].concat();
    let (scrubbed, recorded) = again(file(&packets), &without(Extent::All), "foreign");
    assert!(!has(&scrubbed, b"PASSWORD"));
    assert_eq!(recorded.packets, packets.len() as u64, "all packets are recorded");
}

#[test]
fn both_copies_of_a_packet_are_scrubbed() {
    let packets = telling(L).packets;
    let late = |packet: &Captured| Captured { at_ns: packet.at_ns + 10_000, ..packet.clone() };
    let twice: Vec<Captured> = packets.iter().flat_map(|packet| [packet.clone(), late(packet)]).collect();
    let (scrubbed, recorded) = again(file(&twice), &without(Extent::All), "twice");
    assert!(!has(&scrubbed, b"PASSWORD"));
    assert_eq!(recorded.packets, twice.len() as u64, "both copies are recorded");
}

#[test]
fn an_endless_message_takes_bounded_memory() {
    let mut talk = Talk::new();
    talk.open_x(L).client(&enable_big_requests(L));
    let mut head = big_request(L, 72, 8);
    head[4..8].copy_from_slice(&(64_u32 << 20).to_le_bytes());
    talk.client(&head);
    (0..1300).for_each(|_| _ = talk.client(&[b'P'; 60_000]));
    let (scrubbed, recorded) = again(file(&talk.packets), &without(Extent::All), "endless");
    assert!(recorded.given_up > 0 && recorded.packets == talk.packets.len() as u64, "{recorded:?}");
    assert!(!has(&scrubbed, b"PPPP"));
}

#[test]
fn damaged_packets_are_survived() {
    let mut random = Random(xqos_testkit::seed());
    let mut below = |most| random.below(most);
    for _ in 0..300 {
        let mut packets = telling(L).packets;
        for _ in 0..20 {
            let place = below(packets.len());
            let bytes = &mut packets[place].bytes;
            let at = below(bytes.len());
            bytes[at] = below(256) as u8;
        }
        let (_, recorded) = again(file(&packets), &without(Extent::All), "damaged");
        assert_eq!(recorded.packets + recorded.left_out, packets.len() as u64);
    }
}
