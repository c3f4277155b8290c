// SPDX-License-Identifier: MIT
//! Packets that a capture has twice: on a bridge and on its port, on the way into a router and out of it, or from a
//! switch that mirrors both directions. Each is one packet of the connection.
//!
//! A copy has the same TCP header and the same number in IPv4's; a retransmission by Linux has a number of its own, and by
//! anybody it comes a round trip later.
//!
//! | the same TCP header comes again | within | is |
//! |---|---|---|
//! | with the same number of IPv4, which is not 0 | [`CERTAIN_NS`] | a copy |
//! | with another link's header, or fewer hops left | [`CERTAIN_NS`] | a copy: it was seen in another place |
//! | with neither | [`LIKELY_NS`] | a copy |
//! | later | | a retransmission |

use crate::capture::Record;
use crate::frame::Segment;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// No bridge holds a packet up for longer.
const CERTAIN_NS: u64 = 10_000_000;
/// No acknowledgement comes, and nothing is sent again, in that time.
const LIKELY_NS: u64 = 100_000;
/// Packets in which the first one is looked for: a machine that is late hands on some tens of them before their copies.
const MAX_RECENT: usize = 128;
/// A checksum that a card is to fill in differs from place to place.
const CHECKSUM: std::ops::Range<usize> = 16..18;

/// The packets that came last.
#[derive(Debug, Default)]
pub struct Copies {
    recent: VecDeque<Sighting>,
}

#[derive(Clone, Copy, Debug)]
struct Sighting {
    at_ns: u64,
    /// Of what is the same in each copy, and of the headers before it, which tell one place from another.
    packet: u64,
    place: u64,
}

impl Copies {
    /// Whether the capture has this packet already.
    pub fn is_copy(&mut self, record: &Record<'_>, segment: &Segment<'_>) -> bool {
        let Sighting { at_ns, packet, place } = sighting(record, segment);
        while self.recent.front().is_some_and(|first| first.at_ns.saturating_add(CERTAIN_NS) < at_ns) {
            self.recent.pop_front();
        }
        let first = self.recent.iter().rev().find(|first| first.packet == packet);
        let is_copy = first.is_some_and(|first| {
            let is_certain = segment.identification != 0 || first.place != place;
            at_ns.abs_diff(first.at_ns) <= if is_certain { CERTAIN_NS } else { LIKELY_NS }
        });
        if !is_copy {
            if self.recent.len() >= MAX_RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(Sighting { at_ns, packet, place });
        }
        is_copy
    }
}

fn sighting(record: &Record<'_>, segment: &Segment<'_>) -> Sighting {
    let header = segment.header;
    // One slice lies in the other.
    let before = header.as_ptr() as usize - record.bytes.as_ptr() as usize;
    let mut packet = DefaultHasher::new();
    (segment.source, segment.destination, segment.identification, segment.length).hash(&mut packet);
    (&header[..CHECKSUM.start], &header[CHECKSUM.end..]).hash(&mut packet);
    let mut place = DefaultHasher::new();
    record.bytes[..before].hash(&mut place);
    Sighting { at_ns: record.at_ns, packet: packet.finish(), place: place.finish() }
}
