// SPDX-License-Identifier: MIT
//! Reads random bytes as both sides of a proxied connection, and as the server side of the proxy's own connection.
//!
//! Nothing may panic or grow without bound, and sequence numbers that the program receives must never decrease.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xqos_near::setup::Cookie;
use xqos_near::scout::Source;
use xqos_near::{Near, NearSettings, Questions, Scout, Store};

/// Maximum size of the queue for one side, plus the size of one answer.
const MAX_QUEUED_BYTES: usize = 3 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some((&head, mut rest)) = bytes.split_first() else { return };
    let settings = NearSettings { relaxed: head & 1 != 0, verify: head & 2 != 0, ..NearSettings::default() };
    let (mut near, mut store) = (Near::new(settings), Store::default());
    let questions = Questions::read(&String::from_utf8_lossy(rest)).unwrap_or_default();
    let mut scout = Scout::new(&Cookie::default(), &mut store);
    let source = Source { is_profile: head & 8 != 0, has_font_connections: head & 16 != 0 };
    scout.ask(&questions, source, &mut store);
    near.ask_ahead(&questions);
    let (mut heard, mut now_ns) = (Vec::new(), 0);
    if head & 4 != 0 {
        // Skip the connection setup to reach more code.
        near.from_program(&setup(), 0, &mut store);
        near.from_server(&greeting(), 0, &mut store);
        near.to_program().clear();
        scout.from_server(&greeting(), &mut store);
        store.learn_extension(b"RENDER", &extension(139));
        store.learn_extension(b"XKEYBOARD", &extension(135));
    }
    // Two bits of the first byte select the sender; the others give the length.
    while let Some((&first, behind)) = rest.split_first() {
        let (said, behind) = behind.split_at(usize::from(first & 0x3f).min(behind.len()));
        rest = behind;
        now_ns += 1_000_000;
        match first >> 6 {
            0 | 1 if near.takes_from_program() => near.from_program(said, now_ns, &mut store),
            2 if near.takes_from_server() => near.from_server(said, now_ns, &mut store),
            3 => {
                scout.from_server(said, &mut store);
                scout.create_missing(&mut store);
            }
            _ => near.go_on(now_ns, &mut store),
        }
        assert!(near.to_program().bytes().len() < MAX_QUEUED_BYTES && near.to_server().bytes().len() < MAX_QUEUED_BYTES);
        heard.extend(near.to_program().bytes());
        near.to_program().clear();
        near.to_server().clear();
        scout.to_server().clear();
    }
    if head & 4 != 0 {
        check(&heard);
    }
});

/// Checks that the sequence numbers of whole messages never decrease.
fn check(mut heard: &[u8]) {
    let mut last = 0;
    while heard.len() >= 32 {
        let more = if matches!(heard[0], 1 | 35 | 163) { 4 * u32::from_le_bytes([heard[4], heard[5], heard[6], heard[7]]) as usize } else { 0 };
        let number = u16::from_le_bytes([heard[2], heard[3]]);
        if heard[0] & 0x7f != 11 {
            assert!(number >= last, "{number} after {last}");
            last = number;
        }
        heard = heard.get(32 + more..).unwrap_or_default();
    }
}

fn setup() -> Vec<u8> {
    let mut bytes = vec![0; 12];
    (bytes[0], bytes[2]) = (b'l', 11);
    bytes
}

fn greeting() -> Vec<u8> {
    let mut bytes = vec![0; 40 + 40 + 8 + 24];
    (bytes[0], bytes[2], bytes[6], bytes[28]) = (1, 11, 26, 1);
    for (at, value) in [(12, 0x20_0000_u32), (16, 0x1f_ffff), (40, 0x50), (44, 0x20), (72, 0x21), (88, 0x21)] {
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    (bytes[78], bytes[79], bytes[80], bytes[82], bytes[92]) = (24, 1, 24, 1, 4);
    bytes
}

fn extension(major: u8) -> [u8; 32] {
    let mut reply = [0; 32];
    (reply[0], reply[8], reply[9]) = (1, 1, major);
    reply
}
