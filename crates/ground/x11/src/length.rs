// SPDX-License-Identifier: MIT
//! The length of a message, from its first bytes.
//!
//! | stream | message length |
//! |---|---|
//! | client's first message | setup: 12 bytes with the lengths of two strings, which follow, each padded to 4 bytes |
//! | server's first message | 8 bytes, and the stated number of words |
//! | client, initially | the stated number of words; 0 means four bytes, for which the server returns BadLength |
//! | client, with BIG-REQUESTS | likewise; 0 means that the next word has the length |
//! | server | 32 bytes; replies and generic events have the stated number of words in addition |

use crate::ByteOrder;
use crate::codes::{ERROR, GENERIC_EVENT, REPLY, SENT_BY_CLIENT};

/// Kind of messages that a direction carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Setup,
    SetupReply,
    /// Requests before BIG-REQUESTS is enabled.
    ShortRequests,
    /// Requests when BIG-REQUESTS is, or may be, enabled.
    Requests,
    Replies,
}

/// Result of reading a message's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Known(u64),
    /// Number of bytes needed to know the length.
    Needs(usize),
    /// No message starts with these bytes.
    Impossible,
}

/// Length of an error, a core event, and the fixed part of a reply.
pub const UNIT_BYTES: usize = 32;
const SENT_GENERIC_EVENT: u8 = GENERIC_EVENT | SENT_BY_CLIENT;
const SETUP_BYTES: usize = 12;

/// Length of the message that starts with these bytes.
#[inline]
pub fn length(phase: Phase, order: ByteOrder, bytes: &[u8]) -> Length {
    let words = |at, else_needs, length: fn(u64) -> u64| {
        order.u16(bytes, at).map_or(Length::Needs(else_needs), |words| Length::Known(length(4 * u64::from(words))))
    };
    match phase {
        Phase::Setup => setup(order, bytes).map_or(Length::Needs(SETUP_BYTES), Length::Known),
        Phase::SetupReply => words(6, 8, |bytes| 8 + bytes),
        Phase::ShortRequests => words(2, 4, |bytes| bytes.max(4)),
        Phase::Requests if order.u16(bytes, 2) == Some(0) => match order.u32(bytes, 4) {
            None => Length::Needs(8),
            // The header itself has two words.
            Some(0 | 1) => Length::Impossible,
            Some(words) => Length::Known(4 * u64::from(words)),
        },
        Phase::Requests => words(2, 4, |bytes| bytes),
        Phase::Replies => from_server(order, bytes),
    }
}

/// Number of bytes after the first [`UNIT_BYTES`] of a message from a server; 0 for one that no server sends.
pub fn more_from_server(order: ByteOrder, head: &[u8; UNIT_BYTES]) -> usize {
    match from_server(order, head) {
        Length::Known(length) => usize::try_from(length).unwrap_or(usize::MAX) - UNIT_BYTES,
        Length::Needs(_) | Length::Impossible => 0,
    }
}

fn setup(order: ByteOrder, bytes: &[u8]) -> Option<u64> {
    let padded = |at| Some(u64::from(order.u16(bytes, at)?).next_multiple_of(4));
    bytes.get(SETUP_BYTES - 1)?;
    Some(SETUP_BYTES as u64 + padded(6)? + padded(8)?)
}

#[inline]
fn from_server(order: ByteOrder, bytes: &[u8]) -> Length {
    let &[first, second, ..] = bytes else { return Length::Needs(2) };
    match first {
        REPLY | GENERIC_EVENT | SENT_GENERIC_EVENT => match order.u32(bytes, 4) {
            None => Length::Needs(8),
            Some(words) => Length::Known(UNIT_BYTES as u64 + 4 * u64::from(words)),
        },
        // No error has code 0, no server sends these events, and no client can send an error or a reply.
        ERROR if second == 0 => Length::Impossible,
        36..=63 | 0x80 | 0x81 | 0xa4..=0xbf => Length::Impossible,
        _ => Length::Known(UNIT_BYTES as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_table_gives_the_length() {
        let of = |phase, bytes: &[u8]| length(phase, ByteOrder::Big, bytes);
        let setup = [b'B', 0, 0, 11, 0, 0, 0, 18, 0, 16, 0, 0];
        assert_eq!(of(Phase::Setup, &setup), Length::Known(12 + 20 + 16));
        assert_eq!(of(Phase::Setup, &setup[..11]), Length::Needs(12));
        assert_eq!(of(Phase::SetupReply, &[1, 0, 0, 11, 0, 0, 0, 9]), Length::Known(8 + 4 * 9));
        assert_eq!(of(Phase::ShortRequests, &[72, 0, 0, 0]), Length::Known(4));
        assert_eq!(of(Phase::Requests, &[72, 0, 0, 3]), Length::Known(12));
        assert_eq!(of(Phase::Requests, &[72, 0, 0, 0, 0, 1, 0, 0]), Length::Known(4 << 16));
        assert_eq!(of(Phase::Requests, &[72, 0, 0, 0]), Length::Needs(8));
        assert_eq!(of(Phase::Requests, &[72, 0, 0, 0, 0, 0, 0, 1]), Length::Impossible);
        assert_eq!(of(Phase::Replies, &[REPLY, 0, 0, 1, 0, 0, 0, 2]), Length::Known(40));
        assert_eq!(of(Phase::Replies, &[12, 0]), Length::Known(32));
        assert_eq!(
            (of(Phase::Replies, &[ERROR, 0]), of(Phase::Replies, &[40, 0])),
            (Length::Impossible, Length::Impossible)
        );
    }

    #[test]
    fn only_replies_and_generic_events_have_more_bytes() {
        for (code, expected) in [(REPLY, 40), (GENERIC_EVENT, 40), (SENT_GENERIC_EVENT, 40), (12, 0), (ERROR, 0)] {
            let mut head = [0; UNIT_BYTES];
            head[0] = code;
            ByteOrder::SWAPPED.put_u32(&mut head, 4, 10);
            assert_eq!(more_from_server(ByteOrder::SWAPPED, &head), expected, "{code}");
        }
    }
}
