// SPDX-License-Identifier: MIT
//! One direction of a connection, as it is drawn: packets, what was acknowledged and offered, messages, gaps.
//!
//! Times count from the first connection's beginning. A message's place is that which the observers are told; packets of a
//! direction come from its sender, the steps around them from the packets of the other one.

use super::rows::Rows;
/// The part of time that is kept, both ends included.
pub use crate::analysis::spans::Span as Window;
use crate::observe::{Gap, Kind, Message, Packet};

/// Numbers beyond this one cannot be told apart by the page's script, and mean a damaged capture.
const FARTHEST: u64 = 1 << 52;

/// A packet with data, or one that opens or closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    pub at_ns: u64,
    pub offset: u64,
    pub length: u64,
    pub is_retransmission: bool,
    pub is_control: bool,
}

/// What was acknowledged from this time on, and how far the sender might go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub at_ns: u64,
    pub acknowledged: u64,
    pub edge: u64,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub first_ns: u64,
    pub last_ns: u64,
    pub offset: u64,
    pub length: u64,
    pub sequence: u64,
    pub name: u64,
    pub kind: Kind,
    /// Of its fields; 0 where they were left out.
    pub text: u64,
}

/// Bytes that nobody captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    pub at_ns: u64,
    pub offset: u64,
    pub length: u64,
}

const KINDS: [Kind; 6] = [Kind::Setup, Kind::SetupReply, Kind::Request, Kind::Reply, Kind::Event, Kind::Error];

/// One direction.
#[derive(Debug, Default)]
pub struct Track {
    /// When, place, length, flags: 1 again, 2 control.
    pub packets: Rows<4>,
    /// When, acknowledged, edge.
    pub acknowledgements: Rows<3>,
    /// When its last byte came, how long after its first, bytes skipped before it, length, number of the request, kind
    /// and name, text.
    pub messages: Rows<7>,
    /// When, place, length.
    pub gaps: Rows<3>,
    /// Bytes of data, each counted once.
    pub bytes: u64,
    step: Option<Step>,
    /// Whether the last step is in `acknowledgements`.
    is_told: bool,
    next_offset: u64,
}

impl Track {
    /// A packet of this direction.
    pub fn packet(&mut self, at_ns: u64, packet: &Packet) {
        if packet.length == 0 && !packet.is_control {
            return;
        }
        let flags = u64::from(packet.is_retransmission) | (u64::from(packet.is_control) << 1);
        let offset = packet.offset.min(FARTHEST);
        self.bytes += if packet.is_retransmission { 0 } else { u64::from(packet.length) };
        self.packets.push([at_ns, offset, u64::from(packet.length), flags]);
    }

    /// A packet of the other direction, which acknowledges this one's.
    pub fn acknowledged(&mut self, at_ns: u64, packet: &Packet, window: &Window) {
        // A reset offers nothing, and the numbers in it may be anything.
        let is_reset = packet.is_control && packet.window == 0;
        let before = self.step.unwrap_or(Step { at_ns: 0, acknowledged: 0, edge: 0 });
        let acknowledged = packet.acknowledged.min(FARTHEST);
        // A packet that came late says what was true earlier.
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
        self.is_told = window.contains(at_ns);
        self.step = Some(step);
    }

    /// What was acknowledged before the kept time holds at its beginning.
    pub fn begin_steps(&mut self, window: &Window) {
        if let (Some(step), false, true) = (self.step, self.is_told, self.acknowledgements.is_empty()) {
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

    pub fn gap(&mut self, at_ns: u64, gap: &Gap) {
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

    pub fn marks(&self) -> impl Iterator<Item = Mark> + '_ {
        let mut next = 0_u64;
        self.messages.iter().map(move |[last_ns, lag_ns, skipped, length, sequence, kind_and_name, text]| {
            let offset = next.saturating_add(skipped);
            next = offset.saturating_add(length);
            Mark {
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

    pub fn holes(&self) -> impl Iterator<Item = Hole> + '_ {
        self.gaps.iter().map(|[at_ns, offset, length]| Hole { at_ns, offset, length })
    }
}
