// SPDX-License-Identifier: MIT
//! One direction of a connection as drawn: packets, acknowledgements, receive window, messages, gaps.
//!
//! Times count from the first connection's start. Packets are from the direction's sender. The steps around them come
//! from packets in the other direction.

use super::rows::Rows;
/// The kept time, both ends included.
pub use crate::analysis::spans::Span as Window;
use crate::observe::{Kind, Message, MissingBytes, Packet};
use std::ops::Range;

/// Larger numbers are not exact in the page's script. They mean a damaged capture.
const FARTHEST: u64 = 1 << 52;

/// A packet with data, or a SYN, FIN or RST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    pub at_ns: u64,
    pub offset: u64,
    pub length: u64,
    pub is_retransmission: bool,
    pub is_control: bool,
}

/// Acknowledged offset and window edge from this time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub at_ns: u64,
    pub acknowledged: u64,
    pub edge: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageMark {
    pub first_ns: u64,
    pub last_ns: u64,
    pub offset: u64,
    pub length: u64,
    pub sequence: u64,
    pub name: u64,
    pub kind: Kind,
    /// Number of its text; 0 if it has none.
    pub text: u64,
}

/// Bytes that are missing from the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapMark {
    pub at_ns: u64,
    pub offset: u64,
    pub length: u64,
}

const KINDS: [Kind; 6] = [Kind::Setup, Kind::SetupReply, Kind::Request, Kind::Reply, Kind::Event, Kind::Error];

#[derive(Debug, Default)]
pub struct Track {
    /// Time, offset, length, flags: 1 retransmitted, 2 control.
    pub packets: Rows<4>,
    /// Time, acknowledged offset, window edge.
    pub acknowledgements: Rows<3>,
    /// Time of the last byte, time since the first byte, bytes skipped before it, length, sequence number, kind and
    /// name, text.
    pub messages: Rows<7>,
    /// Time, offset, length.
    pub gaps: Rows<3>,
    /// Payload bytes without retransmissions.
    pub bytes: u64,
    /// Range of the last packet's bytes.
    last_packet: Range<u64>,
    step: Option<Step>,
    /// True if the last step is already in `acknowledgements`.
    is_stored: bool,
    next_offset: u64,
}

impl Track {
    /// Adds a packet in this direction.
    pub fn packet(&mut self, at_ns: u64, packet: &Packet) {
        if packet.length == 0 && !packet.is_control {
            return;
        }
        let flags = u64::from(packet.is_retransmission) | (u64::from(packet.is_control) << 1);
        let offset = packet.offset.min(FARTHEST);
        self.last_packet = offset..offset + u64::from(packet.length);
        self.bytes += if packet.is_retransmission { 0 } else { u64::from(packet.length) };
        self.packets.push([at_ns, offset, u64::from(packet.length), flags]);
    }

    /// Adds a packet in the other direction, which acknowledges this direction's data.
    pub fn acknowledged(&mut self, at_ns: u64, packet: &Packet, window: &Window) {
        // A reset advertises no window, and its other fields may be anything.
        let is_reset = packet.is_control && packet.window == 0;
        let before = self.step.unwrap_or(Step { at_ns: 0, acknowledged: 0, edge: 0 });
        let acknowledged = packet.acknowledged.min(FARTHEST);
        // A reordered packet has outdated information.
        if is_reset || acknowledged < before.acknowledged {
            return;
        }
        let step = Step { at_ns, acknowledged, edge: acknowledged.saturating_add(packet.window).min(FARTHEST) };
        let is_same = (step.acknowledged, step.edge) == (before.acknowledged, before.edge);
        if self.step.is_some() && is_same {
            return;
        }
        if window.contains(at_ns) {
            self.begin_steps(window);
            self.acknowledgements.push([step.at_ns, step.acknowledged, step.edge]);
        }
        self.is_stored = window.contains(at_ns);
        self.step = Some(step);
    }

    /// Adds the state before the window as the window's first step.
    pub fn begin_steps(&mut self, window: &Window) {
        if let (Some(step), false, true) = (self.step, self.is_stored, self.acknowledgements.is_empty()) {
            if step.at_ns < window.from_ns {
                self.acknowledgements.push([window.from_ns, step.acknowledged, step.edge]);
            }
        }
    }

    pub fn message(&mut self, [first_ns, last_ns]: [u64; 2], message: &Message<'_>, name: u64, text: u64) {
        let kind = KINDS.iter().position(|&kind| kind == message.kind).unwrap_or(0) as u64;
        let (offset, length) = (message.offset.min(FARTHEST), message.length.min(FARTHEST));
        let skipped = offset.saturating_sub(self.next_offset);
        let lag_ns = last_ns.saturating_sub(first_ns);
        self.next_offset = self.next_offset.max(offset).saturating_add(length);
        let kind_and_name = (name << 3) | kind;
        self.messages.push([last_ns, lag_ns, skipped, length, message.sequence, kind_and_name, text]);
    }

    /// True if the bytes are the end of the last packet, which a snap length has cut off.
    pub fn is_cut_off(&self, gap: &MissingBytes) -> bool {
        gap.is_within_message
            && self.last_packet.contains(&gap.offset)
            && gap.offset.saturating_add(gap.length) <= self.last_packet.end
    }

    pub fn gap(&mut self, at_ns: u64, gap: &MissingBytes) {
        self.gaps.push([at_ns, gap.offset.min(FARTHEST), gap.length.min(FARTHEST)]);
    }

    pub fn bars(&self) -> impl Iterator<Item = Bar> + '_ {
        self.packets.iter().map(|[at_ns, offset, length, flags]| Bar {
            at_ns,
            offset,
            length,
            is_retransmission: flags & 1 != 0,
            is_control: flags & 2 != 0,
        })
    }

    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        self.acknowledgements.iter().map(|[at_ns, acknowledged, edge]| Step { at_ns, acknowledged, edge })
    }

    pub fn marks(&self) -> impl Iterator<Item = MessageMark> + '_ {
        let mut next = 0_u64;
        self.messages.iter().map(move |[last_ns, lag_ns, skipped, length, sequence, kind_and_name, text]| {
            let offset = next.saturating_add(skipped);
            next = offset.saturating_add(length);
            MessageMark {
                first_ns: last_ns.saturating_sub(lag_ns),
                last_ns,
                offset,
                length,
                sequence,
                name: kind_and_name >> 3,
                kind: KINDS[(kind_and_name & 7) as usize % KINDS.len()],
                text,
            }
        })
    }

    pub fn gap_marks(&self) -> impl Iterator<Item = GapMark> + '_ {
        self.gaps.iter().map(|[at_ns, offset, length]| GapMark { at_ns, offset, length })
    }
}
