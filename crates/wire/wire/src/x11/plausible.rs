// SPDX-License-Identifier: MIT
//! Decides whether bytes can be the start of a message, from the opcodes and lengths of the core protocol, the server's
//! extensions, and the possible sequence numbers.

use super::decode::Decoder;
use super::names::Names;
use super::search::Search;
use super::xproto;
use crate::observe::Direction;
use xqos_x11::ByteOrder;
use xqos_x11::codes::{
    BAD_IMPLEMENTATION, ERROR, FIRST_EXTENSION, FIRST_EXTENSION_ERROR, GENERIC_EVENT, SENT_BY_CLIENT,
};
use xqos_x11::length::{Length, Phase, length};

/// Longest plausible message: 16 MiB is the usual limit of BIG-REQUESTS.
const MAX_MESSAGE_BYTES: u64 = 16 << 20;
/// Maximum plausible number of requests between two server messages, if the count of requests is uncertain.
const MAX_BETWEEN: u64 = 4096;

/// Lengths of core requests in words, by major opcode. A negative number is a minimum; 0 means no such request.
const WORDS: [i8; 128] = [
    0, -8, -3, 2, 2, 2, 2, 4, 2, 2, 2, 2, -3, 2, 2, 2, //
    -2, 2, -6, 3, 6, 2, 4, 2, 6, 11, 6, 2, 6, 3, 4, 4, //
    2, 4, 3, 2, 1, 1, 2, 4, 4, 6, 3, 1, 1, -3, 2, 2, //
    -2, -2, -2, -2, 1, 4, 2, -4, -3, 4, -3, -3, 2, 4, 7, 8, //
    -3, -3, -3, -3, -3, -4, -3, -3, -6, 5, -4, -4, -4, -4, 4, 2, //
    3, 2, 2, 2, 4, -3, 3, 4, -3, -2, -4, -2, -3, 8, 8, 2, //
    5, 3, -2, 1, -2, 2, -2, 1, 1, 3, 1, 3, 1, -2, 1, 1, //
    1, 2, -3, 1, -1, 1, -1, 1, 0, 0, 0, 0, 0, 0, 0, -1,
];

/// Finds a message boundary in a direction, and the byte order if it is unknown.
///
/// `missing`: number of bytes after the searched ones that were not captured.
pub fn find(
    search: &mut Search,
    missing: u64,
    direction: Direction,
    order: Option<ByteOrder>,
    decoder: &Decoder,
    names: &Names,
) -> Option<(ByteOrder, u64)> {
    let orders = match (direction, order) {
        (_, Some(order)) => [Some(order), None],
        (Direction::Requests, None) => [Some(ByteOrder::Little), Some(ByteOrder::Big)],
        (Direction::Replies, None) => [None, None],
    };
    orders.into_iter().flatten().find_map(|order| {
        let check = |bytes: &[u8]| {
            let length = length(phase(direction), order, bytes);
            let Length::Known(known) = length else { return length };
            let is_possible = match (direction, order.u16(bytes, 2)) {
                (Direction::Requests, _) => is_request(bytes, known, names),
                (Direction::Replies, Some(low)) => is_from_server(bytes, low, decoder),
                (Direction::Replies, None) => return Length::Needs(4),
            };
            if is_possible && known <= MAX_MESSAGE_BYTES { length } else { Length::Impossible }
        };
        Some((order, search.find(order, missing, check)?))
    })
}

/// Phase of a direction that is searched. BIG-REQUESTS may have been enabled before.
pub fn phase(direction: Direction) -> Phase {
    match direction {
        Direction::Requests => Phase::Requests,
        Direction::Replies => Phase::Replies,
    }
}

fn is_request(bytes: &[u8], length: u64, names: &Names) -> bool {
    let (major, minor) = (bytes[0], bytes[1]);
    match major {
        ..FIRST_EXTENSION => is_core_length(major, length / 4),
        _ if names.knows_extensions() => names.is_extension_request(major, minor),
        // Servers assign opcodes from 128 on, to about thirty extensions.
        _ => major < FIRST_EXTENSION + 40,
    }
}

fn is_from_server(bytes: &[u8], low: u16, decoder: &Decoder) -> bool {
    let is_allowed = match bytes[0] & !SENT_BY_CLIENT {
        ERROR => matches!(bytes[1], 1..=BAD_IMPLEMENTATION | FIRST_EXTENSION_ERROR..),
        xproto::KEYMAP_NOTIFY_EVENT => return true,
        GENERIC_EVENT => bytes[1] >= FIRST_EXTENSION,
        _ => true,
    };
    is_allowed && is_possible_number(low, decoder)
}

fn is_possible_number(low: u16, decoder: &Decoder) -> bool {
    let sequence = decoder.sequence;
    // Before the server's first message, nothing is known about its sequence numbers.
    let is_unknown = sequence.answered == 0 && sequence.certain_until().is_some();
    let ahead = u64::from(low.wrapping_sub(sequence.answered as u16));
    let most = match sequence.certain_until() {
        Some(_) => MAX_BETWEEN,
        None => sequence.requests.saturating_sub(sequence.answered),
    };
    is_unknown || ahead <= most
}

fn is_core_length(major: u8, words: u64) -> bool {
    match WORDS.get(usize::from(major)) {
        Some(0) | None => false,
        Some(&least) if least < 0 => words >= u64::from(least.unsigned_abs()),
        Some(&exactly) => words == exactly as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_core_requests_are_checked() {
        assert!(is_core_length(43, 1) && !is_core_length(43, 2), "GetInputFocus has only a header");
        assert!(
            is_core_length(1, 8) && is_core_length(1, 20) && !is_core_length(1, 7),
            "CreateWindow has 8 words or more"
        );
        assert!(
            !is_core_length(0, 1) && !is_core_length(120, 1) && !is_core_length(128, 1),
            "these are not core requests"
        );
    }
}
