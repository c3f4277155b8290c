// SPDX-License-Identifier: MIT
//! Reads random bytes as a capture file and as both sides of a connection, and passes these to all readers and plots.
//!
//! Nothing may panic or hang, and no byte is delivered twice.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::io::Cursor;
use xqos_wire::capture::{CaptureReader, Link, Record};
use xqos_wire::observe::{ConnectionId, Direction, Message, MissingBytes, Observer};
use xqos_wire::plot::model::{Choice, Plot};
use xqos_wire::plot::{page, svg, xpl};
use xqos_wire::session::Session;

/// Checks that each direction's bytes arrive once and in order.
#[derive(Default)]
struct Order(BTreeMap<(ConnectionId, bool), u64>);

impl Order {
    fn go_on(&mut self, id: ConnectionId, direction: Direction, offset: u64, length: u64) {
        let next = self.0.entry((id, direction == Direction::Requests)).or_default();
        assert_eq!(*next, offset);
        *next += length;
    }
}

impl Observer for Order {
    fn bytes(&mut self, id: ConnectionId, direction: Direction, _at_ns: u64, offset: u64, bytes: &[u8]) {
        self.go_on(id, direction, offset, bytes.len() as u64);
    }

    fn gap(&mut self, id: ConnectionId, gap: &MissingBytes) {
        self.go_on(id, gap.direction, gap.offset, gap.length);
    }

    fn message(&mut self, _id: ConnectionId, message: &Message<'_>) {
        assert!(message.bytes.len() as u64 <= message.length);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut order = Order::default();
    let mut plot = Plot::new(Choice { with_fields: true, ..Choice::default() });
    read(bytes, Session::new(vec![&mut order, &mut plot]));
    page::write(&plot, "fuzz", &mut std::io::sink()).unwrap();
    if let Some(one) = plot.busiest() {
        svg::write(&plot, one, "fuzz", &mut std::io::sink()).unwrap();
        xpl::write(&plot, one, "fuzz", &mut std::io::sink()).unwrap();
    }
});

fn read(bytes: &[u8], mut session: Session<'_>) {
    if let Ok(mut reader) = CaptureReader::new(Cursor::new(bytes.to_vec())) {
        while let Some(record) = reader.next() {
            session.packet(&record);
        }
        session.finish();
        return;
    }
    let mut numbers = [1_u32, 1];
    // A first byte of '{' begins a checkpoint, which ends with a line.
    let text = bytes.strip_prefix(b"{").and_then(|_| bytes.split(|&byte| byte == b'\n').next());
    let checkpoint = text.and_then(|text| std::str::from_utf8(text).ok());
    let mut rest = &bytes[checkpoint.map_or(0, str::len)..];
    let mut at_ns = 0;
    // The highest bit of the first byte selects the sender; the others give the length.
    while let Some((&first, behind)) = rest.split_first() {
        let (from_server, length) = (first >> 7, usize::from(first & 0x7f).min(behind.len()));
        let (said, behind) = behind.split_at(length);
        rest = behind;
        at_ns += 1_000_000;
        let packet = packet(from_server, &mut numbers, said);
        let (link, length) = (Link::RAW, packet.len() as u32);
        session.packet(&Record { at_ns, link, length, bytes: &packet, program: None, checkpoint });
    }
    session.finish();
}

fn packet(from_server: u8, numbers: &mut [u32; 2], said: &[u8]) -> Vec<u8> {
    let length = (40 + said.len() as u16).to_be_bytes();
    let mut packet =
        vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, from_server, 10, 0, 0, 1 - from_server];
    let (own, other) = (usize::from(from_server), usize::from(1 - from_server));
    let ports = if from_server == 1 { [6000_u16, 40_000] } else { [40_000, 6000] };
    ports.iter().for_each(|port| packet.extend(port.to_be_bytes()));
    packet.extend(numbers[own].to_be_bytes());
    packet.extend(numbers[other].to_be_bytes());
    packet.extend([0x50, 16, 1, 0, 0, 0, 0, 0]);
    packet.extend(said);
    numbers[own] += said.len() as u32;
    packet
}
