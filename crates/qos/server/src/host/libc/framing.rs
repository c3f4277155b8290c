// SPDX-License-Identifier: MIT
//! Finds the boundaries of requests in what a client has sent (X11 protocol, appendix B; BIG-REQUESTS).
//!
//! The server reads when its buffer holds no complete request. A read of the buffer's whole size means that the buffer
//! is empty, and the data begin with a request. The lengths in the headers give the other boundaries. Between reads,
//! xqos remembers only how much of the last request is missing. A wrong boundary is forgotten when the buffer is empty.

use xqos_x11::ByteOrder;
use xqos_x11::codes::FIRST_EXTENSION;
use xqos_x11::length::{Length, Phase, length};

/// The requests in a piece of a client's stream that begins with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framed {
    /// The total length of the complete requests.
    pub bytes: usize,
    pub requests: u32,
    /// The last request that began in this piece: major opcode + 65536 x minor opcode.
    pub last_request: u32,
    /// The length of the incomplete request if its header is complete; else 0.
    pub next_bytes: usize,
}

/// Finds up to `max_requests` complete requests.
pub fn frame(stream: &[u8], order: ByteOrder, max_requests: u32) -> Framed {
    let mut found = Framed::default();
    while found.requests < max_requests {
        let rest = &stream[found.bytes..];
        let bytes = match length(Phase::Requests, order, rest) {
            Length::Needs(_) => break,
            // Without BIG-REQUESTS this is a client error, and the server continues after four bytes.
            Length::Impossible => 4,
            Length::Known(bytes) => usize::try_from(bytes).unwrap_or(4),
        };
        found.last_request = name(rest);
        if bytes > rest.len() {
            found.next_bytes = bytes;
            break;
        }
        found.bytes += bytes;
        found.requests += 1;
    }
    found
}

/// Requests of extensions have their minor opcode in the second byte.
fn name(stream: &[u8]) -> u32 {
    let (major, minor) = (stream[0], stream[1]);
    u32::from(major) + if major < FIRST_EXTENSION { 0 } else { 65536 * u32::from(minor) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_testkit::Random;

    fn request(major: u8, minor: u8, words: u16) -> Vec<u8> {
        let mut bytes = vec![0; 4 * usize::from(words)];
        bytes[..2].copy_from_slice(&[major, minor]);
        bytes[2..4].copy_from_slice(&words.to_ne_bytes());
        bytes
    }

    #[test]
    fn requests_are_counted_and_the_last_is_named() {
        let stream = [request(127, 0, 1), request(130, 7, 3), request(70, 1, 5)].concat();
        let found = frame(&stream, ByteOrder::NATIVE, u32::MAX);
        assert_eq!(found, Framed { bytes: 36, requests: 3, last_request: 70, next_bytes: 0 });
        let found = frame(&stream, ByteOrder::NATIVE, 2);
        assert_eq!(found, Framed { bytes: 16, requests: 2, last_request: 130 + 7 * 65536, next_bytes: 0 });
    }

    #[test]
    fn an_incomplete_request_reports_its_full_length() {
        let stream = [request(127, 0, 1), request(72, 2, 1000)].concat();
        assert_eq!(frame(&stream[..12], ByteOrder::NATIVE, u32::MAX).next_bytes, 4000);
        let found = frame(&stream[..6], ByteOrder::NATIVE, u32::MAX);
        assert_eq!((found.bytes, found.next_bytes), (4, 0), "its header is not there");
    }

    #[test]
    fn a_big_request_has_its_length_in_the_second_word() {
        let mut stream = vec![72, 2, 0, 0];
        stream.extend_from_slice(&4_000_000_u32.to_ne_bytes());
        assert_eq!(frame(&stream, ByteOrder::NATIVE, u32::MAX).next_bytes, 16_000_000);
        stream[4..8].copy_from_slice(&4_000_000_u32.swap_bytes().to_ne_bytes());
        assert_eq!(frame(&stream, ByteOrder::SWAPPED, u32::MAX).next_bytes, 16_000_000);
        assert_eq!(frame(&stream[..6], ByteOrder::NATIVE, u32::MAX), Framed::default());
    }

    #[test]
    fn a_zero_length_does_not_stop_the_search() {
        assert_eq!(frame(&[1; 7], ByteOrder::NATIVE, u32::MAX).next_bytes, 4 * 257);
        let found = frame(&[0; 64], ByteOrder::NATIVE, u32::MAX);
        assert_eq!((found.bytes, found.requests), (64 - 4, 15), "the last header is not whole");
    }

    #[test]
    fn random_bytes_are_never_read_past_their_end() {
        let mut random = Random(xqos_testkit::seed());
        for _ in 0..2000 {
            let stream: Vec<u8> =
                (0..64).map(|_| if random.below(4) == 0 { 0 } else { random.below(8) as u8 }).collect();
            for end in 0..stream.len() {
                let found = frame(&stream[..end], ByteOrder::swapped_if(random.below(2) == 0), 1000);
                assert!(found.bytes <= end && (found.next_bytes == 0 || found.bytes + found.next_bytes > end));
            }
        }
    }
}
