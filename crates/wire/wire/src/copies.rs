// SPDX-License-Identifier: MIT
//! Detects packets that were captured twice: on a bridge and its port, on both sides of a router, or from a switch that
//! mirrors both directions. The duplicates count as one packet.
//!
//! A copy has the same TCP header and the same IPv4 identification. Linux retransmits with a new identification, and
//! any retransmission arrives at least a round trip later.
//!
//! | the same TCP header again, with | within | is |
//! |---|---|---|
//! | the same nonzero IPv4 identification | [`CERTAIN_NS`] | a copy |
//! | another link header or TTL | [`CERTAIN_NS`] | a copy seen at another point |
//! | neither | [`LIKELY_NS`] | a copy |
//! | any of the above | later | a retransmission |

use crate::capture::Record;
use crate::frame::Segment;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// No bridge delays a packet for longer than this.
const CERTAIN_NS: u64 = 10_000_000;
/// A time too short for an acknowledgement or a retransmission.
const LIKELY_NS: u64 = 100_000;
/// Number of recent packets to search. A delayed machine can deliver dozens of packets before their copies.
const MAX_RECENT: usize = 128;
/// Checksum, which differs between capture points if the network card computes it.
const CHECKSUM: std::ops::Range<usize> = 16..18;

#[derive(Debug, Default)]
pub struct Copies {
    recent: VecDeque<SeenPacket>,
}

#[derive(Clone, Copy, Debug)]
struct SeenPacket {
    at_ns: u64,
    /// Hash of the bytes that all copies share, and hash of the headers before them, which differ by capture point.
    packet: u64,
    headers: u64,
}

impl Copies {
    pub fn is_copy(&mut self, record: &Record<'_>, segment: &Segment<'_>) -> bool {
        let SeenPacket { at_ns, packet, headers } = seen_packet(record, segment);
        while self.recent.front().is_some_and(|first| first.at_ns.saturating_add(CERTAIN_NS) < at_ns) {
            self.recent.pop_front();
        }
        let first = self.recent.iter().rev().find(|first| first.packet == packet);
        let is_copy = first.is_some_and(|first| {
            let is_certain = segment.identification != 0 || first.headers != headers;
            at_ns.abs_diff(first.at_ns) <= if is_certain { CERTAIN_NS } else { LIKELY_NS }
        });
        if !is_copy {
            if self.recent.len() >= MAX_RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(SeenPacket { at_ns, packet, headers });
        }
        is_copy
    }
}

fn seen_packet(record: &Record<'_>, segment: &Segment<'_>) -> SeenPacket {
    let header = segment.header;
    // `header` is a subslice of `record.bytes`.
    let before = header.as_ptr() as usize - record.bytes.as_ptr() as usize;
    let mut packet = DefaultHasher::new();
    (segment.source, segment.destination, segment.identification, segment.length).hash(&mut packet);
    (&header[..CHECKSUM.start], &header[CHECKSUM.end..]).hash(&mut packet);
    let mut headers = DefaultHasher::new();
    record.bytes[..before].hash(&mut headers);
    SeenPacket { at_ns: record.at_ns, packet: packet.finish(), headers: headers.finish() }
}
