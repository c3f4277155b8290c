// SPDX-License-Identifier: MIT
//! Tests the reading of capture files: both formats in both byte orders, all time resolutions, several interfaces,
//! truncated files.

mod packets;

use packets::*;
use std::io::Cursor;
use xqos_wire::capture::{CaptureError, CaptureReader, CaptureWriter, Link, Record};

const AT_NS: u64 = 1_700_000_000_123_456_789;

fn read(bytes: Vec<u8>) -> (Vec<Captured>, Option<String>) {
    let mut reader = CaptureReader::new(Cursor::new(bytes)).expect("a valid capture");
    let mut packets = Vec::new();
    while let Some(record) = reader.next() {
        let Record { at_ns, link, length, bytes, program, .. } = record;
        packets.push(Captured { at_ns, link, length, bytes: bytes.to_vec(), program: program.map(str::to_owned) });
    }
    let notes = reader.notes();
    (packets, (!notes.is_empty()).then(|| notes.join("; ")))
}

fn four(order: Order, words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|&word| order.four(word)).collect()
}

/// A pcap file with two packets, the second one truncated.
fn pcap(order: Order, magic: u32, second_parts: u32) -> Vec<u8> {
    let mut file = four(order, &[magic]);
    file.extend([order.two(2), order.two(4)].concat());
    file.extend(four(order, &[0, 0, 65_535, 113]));
    file.extend(four(order, &[1_700_000_000, second_parts, 3, 3]));
    file.extend(b"abc");
    file.extend(four(order, &[1_700_000_001, second_parts, 2, 9]));
    file.extend(b"de");
    file
}

#[test]
fn pcap_is_read_in_both_orders_and_resolutions() {
    for order in [Order::Little, Order::Big] {
        for (magic, parts, at_ns) in [(0xa1b2_c3d4, 123_456, AT_NS - 789), (0xa1b2_3c4d, 123_456_789, AT_NS)] {
            let (packets, note) = read(pcap(order, magic, parts));
            assert_eq!((packets[0].at_ns, packets[1].at_ns), (at_ns, at_ns + 1_000_000_000), "{order:?} {magic:x}");
            assert_eq!((packets[0].link, packets[1].length), (Link::LINUX_SLL, 9));
            assert_eq!(
                (packets[0].bytes.as_slice(), packets[1].bytes.as_slice(), note),
                (&b"abc"[..], &b"de"[..], None)
            );
        }
    }
}

/// A pcap file with packets at these times (seconds and fractions).
fn pcap_at(order: Order, magic: u32, times: &[[u32; 2]]) -> Vec<u8> {
    let mut file = pcap(order, magic, 0)[..24].to_vec();
    for [seconds, parts] in times {
        file.extend(four(order, &[*seconds, *parts, 3, 3]));
        file.extend(b"abc");
    }
    file
}

#[test]
fn wrong_timestamps_are_reported() {
    let (micro, nano) = (0xa1b2_c3d4, 0xa1b2_3c4d);
    let ms: Vec<[u32; 2]> = (0..60).map(|at| [10 + at * 50 / 1000, at * 50 % 1000]).collect();
    let scaled = |by: u32| -> Vec<_> { ms.iter().map(|[seconds, parts]| [*seconds, parts * by]).collect() };
    for order in [Order::Little, Order::Big] {
        // Nanoseconds labelled as microseconds are converted.
        let (packets, note) = read(pcap_at(order, micro, &scaled(1_000_000)));
        assert!(packets.iter().zip(0..).all(|(packet, at)| packet.at_ns == 10_000_000_000 + at * 50_000_000));
        assert!(note.is_some_and(|note| note.contains("counts nanoseconds")), "{order:?}");
        for (magic, by) in [(micro, 1000), (nano, 1_000_000)] {
            assert_eq!(read(pcap_at(order, magic, &scaled(by))).1, None, "{order:?} {magic:x}");
        }
        for (magic, times, words) in [
            (micro, scaled(1), "another unit"),
            (nano, scaled(1000), "another unit"),
            (micro, vec![[0, 0]; 5], "have no timestamps"),
            (micro, vec![[10, 0], [10, 5], [7, 0], [7, 5]], "its clock went back once"),
            // A million microseconds is a whole second, not a sign of nanoseconds.
            (micro, vec![[10, 1_000_000], [11, 7_000], [12, 8_000], [8, 0]], "its clock went back once"),
        ] {
            let note = read(pcap_at(order, magic, &times)).1.unwrap_or_default();
            assert!(note.contains(words) && !note.contains("nanoseconds"), "{order:?}: {note}");
        }
        // A single packet is not enough to detect wrong timestamps.
        assert_eq!(read(pcap_at(order, micro, &[[10, 0]])).1, None);
        let mut file = [section(order), interface(order, 1, None)].concat();
        file.extend(packet(order, 0, AT_NS, b"abc"));
        file.extend(block(order, 3, &[four(order, &[3]), b"abc\0".to_vec()].concat()));
        let (packets, note) = read(file);
        assert_eq!((packets[0].at_ns, packets[1].at_ns), (AT_NS, AT_NS));
        assert!(note.is_some_and(|note| note.contains("counts nanoseconds") && note.contains("have no timestamps")));
    }
}

fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u32 + 12;
    [four(order, &[kind, length]), body.to_vec(), four(order, &[length])].concat()
}

fn interface(order: Order, link: u16, resolution: Option<u8>) -> Vec<u8> {
    let mut body = [order.two(link), [0, 0]].concat();
    body.extend(four(order, &[0]));
    if let Some(resolution) = resolution {
        body.extend([order.two(9), order.two(1)].concat());
        body.extend([resolution, 0, 0, 0, 0, 0, 0, 0]);
    }
    block(order, 1, &body)
}

fn section(order: Order) -> Vec<u8> {
    let mut body = four(order, &[0x1a2b_3c4d]);
    body.extend([order.two(1), order.two(0)].concat());
    body.extend([0xff; 8]);
    block(order, 0x0a0d_0d0a, &body)
}

fn packet(order: Order, interface: u32, ticks: u64, bytes: &[u8]) -> Vec<u8> {
    let mut body = four(order, &[interface, (ticks >> 32) as u32, ticks as u32, bytes.len() as u32, 1000]);
    body.extend(bytes);
    body.resize(body.len().next_multiple_of(4), 0);
    block(order, 6, &body)
}

#[test]
fn pcapng_is_read_with_all_its_interfaces_and_sections() {
    let mut file = Vec::new();
    for order in [Order::Big, Order::Little] {
        file.extend(section(order));
        file.extend(interface(order, 1, None));
        file.extend(interface(order, 276, Some(9)));
        file.extend(interface(order, 101, Some(0x80 | 10)));
        file.extend(packet(order, 0, AT_NS / 1000, b"abcde"));
        file.extend(block(order, 0x0bad, &[1, 2, 3, 4]));
        file.extend(packet(order, 1, AT_NS, b"f"));
        file.extend(packet(order, 2, 1024 * 7 + 512, b""));
        file.extend(packet(order, 3, 1, b"of no interface"));
    }
    let (packets, note) = read(file);
    let seen: Vec<_> = packets.iter().map(|it| (it.at_ns, it.link, it.bytes.as_slice())).collect();
    let expected = [
        (AT_NS - 789, Link::ETHERNET, &b"abcde"[..]),
        (AT_NS, Link::LINUX_SLL2, b"f"),
        (7_500_000_000, Link::RAW, b""),
    ];
    assert_eq!(seen, [expected, expected].concat());
    assert!(note.is_some_and(|note| note.contains("went back 2 times")), "each interface has its own clock here");
}

#[test]
fn obsolete_packet_blocks_are_read() {
    let obsolete = |order: Order, interface: u16, ticks: u64, bytes: &[u8]| {
        let mut body = [order.two(interface), order.two(9)].concat();
        body.extend(four(order, &[(ticks >> 32) as u32, ticks as u32, bytes.len() as u32, 1000]));
        body.extend(bytes);
        body.resize(body.len().next_multiple_of(4), 0);
        block(order, 2, &body)
    };
    for order in [Order::Little, Order::Big] {
        let mut file = [section(order), interface(order, 1, None), interface(order, 276, Some(9))].concat();
        file.extend(obsolete(order, 0, AT_NS / 1000, b"abcde"));
        file.extend(obsolete(order, 1, AT_NS, b"f"));
        file.extend(packet(order, 1, AT_NS + 1, b"gh"));
        let (packets, note) = read(file);
        let seen: Vec<_> = packets.iter().map(|it| (it.at_ns, it.link, it.length, it.bytes.as_slice())).collect();
        let expected = [
            (AT_NS - 789, Link::ETHERNET, 1000, &b"abcde"[..]),
            (AT_NS, Link::LINUX_SLL2, 1000, b"f"),
            (AT_NS + 1, Link::LINUX_SLL2, 1000, b"gh"),
        ];
        assert_eq!((seen.as_slice(), note), (&expected[..], None), "{order:?}");
    }
}

#[test]
fn packets_without_an_interface_or_in_a_damaged_block_are_counted() {
    for order in [Order::Little, Order::Big] {
        let simple = block(order, 3, &four(order, &[0]));
        let mut file = [section(order), simple, interface(order, 1, None)].concat();
        file.extend(packet(order, 1, 1, b"of no interface"));
        file.extend(block(order, 2, &[order.two(1), [0; 2]].concat().repeat(5)));
        file.extend(block(order, 2, &[0; 16]));
        // Not a packet.
        file.extend(block(order, 0x0bad, &[0; 20]));
        file.extend(packet(order, 0, AT_NS / 1000, b"abc"));
        let (packets, note) = read(file);
        assert_eq!(packets.len(), 1);
        assert!(note.is_some_and(|note| note.starts_with("4 packets were left out: ")), "{order:?}");
    }
}

fn written() -> (Vec<u8>, Vec<Captured>) {
    let mut talk = Talk::new();
    talk.open_x(Order::Little).client(&request(Order::Little, 43, 0, 1));
    let mut writer = CaptureWriter::new(Vec::new(), "test").unwrap();
    writer.add_interface(Link::RAW, "unused", 96).unwrap();
    talk.packets.iter().for_each(|packet| writer.write(&packet.record()).unwrap());
    (writer.into_inner(), talk.packets)
}

#[test]
fn written_packets_are_read_back() {
    let (file, packets) = written();
    let (again, note) = read(file);
    let plain = |packets: &[Captured]| {
        packets.iter().map(|it| (it.at_ns, it.link, it.length, it.bytes.clone())).collect::<Vec<_>>()
    };
    assert_eq!((plain(&again), note), (plain(&packets), None));
}

#[test]
fn control_characters_are_removed_from_program_names() {
    let mut talk = Talk::new();
    talk.open_x(Order::Little);
    let mut writer = CaptureWriter::new(Vec::new(), "test").unwrap();
    for (packet, program) in talk.packets.iter().zip([Some("xterm"), None, Some("a\u{1b}[2Jb"), Some("")]) {
        writer.write(&Record { program, ..packet.record() }).unwrap();
    }
    let (packets, note) = read(writer.into_inner());
    let names: Vec<_> = packets.iter().map(|packet| packet.program.as_deref()).collect();
    assert_eq!((names, note), (vec![Some("xterm"), None, Some("a[2Jb"), None], None));
}

#[test]
fn a_truncated_file_is_read_to_its_end_with_a_note() {
    let (file, packets) = written();
    for length in (64..file.len()).step_by(3) {
        let (again, note) = read(file[..length].to_vec());
        assert!(again.len() < packets.len());
        assert!(again.iter().zip(&packets).all(|(again, packet)| again.bytes == packet.bytes));
        if let Some(note) = note {
            assert_eq!(
                note,
                format!("the capture ends within a packet after {} packets; only those were read", again.len())
            );
        }
    }
    assert_eq!(read(file[..file.len() - 1].to_vec()).0.len(), packets.len() - 1);
    assert!(read(file[..file.len() - 1].to_vec()).1.is_some());
}

#[test]
fn other_files_are_refused() {
    for bytes in [&b""[..], b"#!/bin/sh\n", &[0; 5000]] {
        assert!(matches!(CaptureReader::new(Cursor::new(bytes.to_vec())), Err(CaptureError::NotACapture)));
    }
}

#[test]
fn a_false_block_length_costs_no_memory() {
    let mut file = written().0;
    file.extend(four(Order::Little, &[6, 0xffff_fff0]));
    file.resize(file.len() + (40 << 20), 0);
    let (packets, note) = read(file);
    assert_eq!(packets.len(), 6);
    assert!(note.is_some());
}
