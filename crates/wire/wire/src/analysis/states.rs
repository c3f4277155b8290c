// SPDX-License-Identifier: MIT
//! Classifies the time of a connection's two transmitters, using only packets and acknowledgements.
//!
//! The link is modelled as a queue that is served at the rate of the slowest link between the two ends
//! (docs/decisions/033-link-model.md):
//!
//! - The **rate** is measured while data were queued (see [`super::rate`]). A direction without enough data uses the
//!   other direction's rate.
//! - The **base** is the shortest round trip, less the time that its own packets took on the link. It is the sum
//!   of both propagation delays.
//! - A packet leaves the link after the previous packet, at the link's rate, and at the latest one base before its
//!   acknowledgement arrives. This bound corrects a rate that is too low; the rate corrects delayed acknowledgements
//!   (40 ms and more).
//!
//! | case | state |
//! |---|---|
//! | the model has data in the queue or on the link | `BlockCause::Link` |
//! | link free; a pure acknowledgement elicits data after a full packet | `BlockCause::Window`: TCP window full |
//! | data are retransmitted | `BlockCause::Window`, since the previous data |
//! | the receiver's window has less room than a packet, and the link is free | `BlockCause::Receiver` |
//! | the handshake is not complete | `BlockCause::Window`: TCP may not send data |
//! | packets travel over a free link, and nothing waits to be sent | idle: the client may be waiting for a reply |
//! | anything else | idle |
//!
//! All times are as seen by the transmitter. If the capture was made at the receiver (the round trip to it is shorter),
//! packets are captured after the link. They left it half the other direction's base earlier, and data elicited by an
//! acknowledgement are captured one such base after it. Packets that a delayed machine receives together left the link
//! one by one.

use super::handshake::Handshake;
use super::transmitter::{FULL, Transmitter};
use crate::observe::{Direction, Packet};

#[derive(Debug, Default)]
pub struct States {
    pub requests: Transmitter,
    pub replies: Transmitter,
    /// If true, window scales are unknown, and only a window of 0 is certainly closed.
    started_midstream: bool,
    handshake: Handshake,
    /// The first packets, until they are classified again.
    beginning: Option<Vec<Packet>>,
}

/// Total number of packets in both directions after which rate and round trip count as known.
const BEGINNING: usize = 256;

impl States {
    pub fn new(started_midstream: bool) -> States {
        States { started_midstream, beginning: Some(Vec::new()), ..States::default() }
    }

    pub fn packet(&mut self, packet: &Packet) {
        self.take(packet);
        if let Some(beginning) = &mut self.beginning {
            beginning.push(*packet);
            if beginning.len() == BEGINNING {
                self.take_beginning_again();
            }
        }
    }

    fn take_beginning_again(&mut self) {
        let Some(beginning) = self.beginning.take() else { return };
        self.requests = self.requests.restarted();
        self.replies = self.replies.restarted();
        self.handshake = Handshake::default();
        beginning.iter().for_each(|packet| self.take(packet));
    }

    fn take(&mut self, packet: &Packet) {
        let closed_below = if self.started_midstream { 1 } else { FULL };
        let (sender, receiver) = match packet.direction {
            Direction::Requests => (&mut self.requests, &mut self.replies),
            Direction::Replies => (&mut self.replies, &mut self.requests),
        };
        let point = receiver.point(sender);
        if let Some(span) = self.handshake.packet(packet) {
            // The client's acknowledgement ends the handshake.
            sender.add_handshake(&span, &sender.point(receiver));
        }
        receiver.acknowledged(packet, &point, closed_below);
        let point = sender.point(receiver);
        sender.sent(packet, &point);
    }

    /// Settles pending spans at the end of the connection.
    pub fn end(&mut self, at_ns: u64) {
        self.take_beginning_again();
        if let Some(span) = self.handshake.unfinished(at_ns) {
            self.requests.add_handshake(&span, &self.requests.point(&self.replies));
        }
        let points = [self.requests.point(&self.replies), self.replies.point(&self.requests)];
        self.requests.end(at_ns, &points[0]);
        self.replies.end(at_ns, &points[1]);
    }
}

#[cfg(test)]
mod tests;
