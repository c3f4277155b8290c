// SPDX-License-Identifier: MIT
//! Parses what the server writes to a client, message by message, to find input events and Exposes.
//!
//! Every byte is counted, so the start of each message after the setup reply is known.

use xqos_x11::ByteOrder;
use xqos_x11::codes::{GENERIC_EVENT, SENT_BY_CLIENT};
use xqos_x11::length::{UNIT_BYTES, more_from_server};

const KEY_PRESS: u8 = 2;
const LEAVE_NOTIFY: u8 = 8;
const EXPOSE: u8 = 12;
const GRAPHICS_EXPOSE: u8 = 13;
/// The first and last types of XInput events caused by a device: keys, buttons, motions, crossings, raw events,
/// touches.
const XI_KEY_PRESS: u16 = 2;
const XI_LAST: u16 = 26;
/// The minimum number of bytes after the first 32 bytes of these events. Present's generic events have fewer.
const XI_BYTES: usize = 12;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenEvents {
    pub input: bool,
    pub exposed: bool,
}

#[derive(Debug)]
pub struct Output {
    /// The first bytes of a message, as far as they have been written.
    head: [u8; UNIT_BYTES],
    have: usize,
    /// The number of bytes that still follow the head.
    rest: usize,
    order: ByteOrder,
}

impl Output {
    /// Starts a stream with `rest` bytes before the first message.
    pub fn after(rest: usize, order: ByteOrder) -> Output {
        Output { head: [0; UNIT_BYTES], have: 0, rest, order }
    }

    pub fn written(&mut self, mut bytes: &[u8]) -> SeenEvents {
        let mut seen = SeenEvents::default();
        while !bytes.is_empty() {
            if self.rest > 0 {
                let passed = self.rest.min(bytes.len());
                self.rest -= passed;
                bytes = &bytes[passed..];
                continue;
            }
            let taken = (UNIT_BYTES - self.have).min(bytes.len());
            self.head[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &bytes[taken..];
            if self.have == UNIT_BYTES {
                self.have = 0;
                self.message(&mut seen);
            }
        }
        seen
    }

    fn message(&mut self, seen: &mut SeenEvents) {
        self.rest = more_from_server(self.order, &self.head);
        match self.head[0] & !SENT_BY_CLIENT {
            GENERIC_EVENT => {
                let is_of_device =
                    self.order.u16(&self.head, 8).is_some_and(|kind| (XI_KEY_PRESS..=XI_LAST).contains(&kind));
                seen.input |= is_of_device && self.rest >= XI_BYTES;
            }
            KEY_PRESS..=LEAVE_NOTIFY => seen.input = true,
            EXPOSE | GRAPHICS_EXPOSE => seen.exposed = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_x11::codes::REPLY;

    fn message(kind: u8, words: u32, order: ByteOrder) -> Vec<u8> {
        let mut bytes = vec![0; UNIT_BYTES + 4 * words as usize];
        bytes[0] = kind;
        if matches!(kind & 0x7f, REPLY | GENERIC_EVENT) {
            order.put_u32(&mut bytes, 4, words);
        }
        // The following bytes look like an Expose.
        bytes[UNIT_BYTES..].fill(EXPOSE);
        bytes
    }

    fn generic(kind: u16, words: u32) -> Vec<u8> {
        let mut bytes = message(GENERIC_EVENT, words, ByteOrder::NATIVE);
        bytes[8..10].copy_from_slice(&kind.to_ne_bytes());
        bytes
    }

    #[test]
    fn events_are_found_after_replies_of_any_length_in_pieces_of_any_size() {
        for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
            let of = |kind, words| message(kind, words, order);
            let quiet = [of(REPLY, 0), of(REPLY, 1000), of(0, 0), of(22, 0), of(GENERIC_EVENT, 2)].concat();
            let stream = [quiet.clone(), of(EXPOSE, 0), quiet.clone(), of(0x80 | KEY_PRESS, 0)].concat();
            for piece in [1, 3, 31, 32, 33, 500, stream.len()] {
                let mut output = Output::after(0, order);
                let seen: Vec<_> = stream.chunks(piece).map(|bytes| output.written(bytes)).collect();
                let first = seen.iter().position(|seen| seen.exposed).unwrap();
                assert_eq!(first, (quiet.len() + UNIT_BYTES - 1) / piece, "{piece}");
                assert_eq!(seen.iter().filter(|seen| seen.exposed).count(), 1, "{piece}");
                assert!(seen.last().unwrap().input, "{piece}");
            }
        }
    }

    #[test]
    fn the_rest_of_the_setup_reply_is_skipped() {
        let mut output = Output::after(100, ByteOrder::NATIVE);
        assert_eq!(output.written(&[EXPOSE; 100]), SeenEvents::default());
        assert!(output.written(&message(GRAPHICS_EXPOSE, 0, ByteOrder::NATIVE)).exposed);
    }

    #[test]
    fn xinput_events_count_as_input_and_present_completions_do_not() {
        let seen = |bytes: &[u8]| Output::after(0, ByteOrder::NATIVE).written(bytes).input;
        assert!(seen(&generic(6, 12)) && seen(&generic(18, 12)));
        assert!(!seen(&generic(2, 0)) && !seen(&generic(1, 2)) && !seen(&generic(3, 2)));
    }

    #[test]
    fn an_absurd_length_only_skips_bytes() {
        let mut output = Output::after(0, ByteOrder::NATIVE);
        output.written(&message(REPLY, 0, ByteOrder::NATIVE)[..4]);
        output.written(&[0xff; 28]);
        assert_eq!(output.written(&[EXPOSE; 4096]), SeenEvents::default());
    }
}
