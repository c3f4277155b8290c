// SPDX-License-Identifier: MIT
//! What a connection's two transmitters were doing, from packets and acknowledgements alone.
//!
//! # The question
//!
//! While a program is slow over a network, is it the network? Packard and Gettys (2003) tell three states apart for each
//! direction: idle, blocked by the network, blocked by the receiver. A transmitter was blocked by the network when an
//! acknowledgement elicits more data from it at once; then it was blocked since the data before. It was blocked by the
//! receiver when the receiver's window was closed.
//!
//! Today that rule alone fails. Windows are large: a program can hand over half a megabyte, which then waits for seconds
//! in the queue before a slow link, and no acknowledgement elicits anything, because everything was sent. And replies
//! carry acknowledgements: the next request after a reply is elicited by the reply, not by the acknowledgement.
//!
//! # The answer
//!
//! We keep the account of the link as it must have been: a queue that is served at the rate of the slowest link between the
//! two ends.
//!
//! - The **rate** is that at which data went through while they were queued (see [`super::rate`]); a direction that never
//!   had enough to show it borrows the other's.
//! - The **base** is the shortest round trip less the time that its own packets took on the link: the way alone.
//! - A packet leaves the link at its rate after the one before it, and never later than its acknowledgement came less the
//!   base. The bound mends a rate that is too low; the rate mends acknowledgements that were delayed (40 ms and more).
//!
//! | case | state |
//! |---|---|
//! | data are in the queue or on the link by that account | `State::Link` |
//! | the link is free, a pure acknowledgement elicits data, and the data before it were a full packet | `State::Window`: the transmitter had more, but TCP let it have no more on the way |
//! | data are sent again | `State::Window`, since the data before |
//! | the receiver takes less than a packet more, and the link is free | `State::Receiver` |
//! | the handshake is not over | `State::Window`: TCP lets it have nothing on the way |
//! | sent packets travel over a free link, and nobody waits to send | idle: that time is a reply's, if somebody waits for one |
//! | anything else | idle |
//!
//! Blocked by the network, as the paper has it, is `Link` and `Window` together.
//!
//! All times are the transmitter's. Where the capture was made at the receiver's end (its round trip is the shorter one of
//! the two), packets are seen after the link: they left it half the other direction's base ago, and data that an
//! acknowledgement elicits come one such base after it. Packets that a late machine takes together left it one by one.
//!
//! # How true it is
//!
//! `states/tests.rs` simulates links from 10 kbit/s to 100 Mbit/s and from 0.1 to 100 ms, captured at either end, and asks
//! for 95 % of the time. The beginning, before rate and round trip are known, is told once more when they are: over 10 kbit/s
//! the greeting alone takes four seconds.

use super::handshake::Handshake;
use super::transmitter::{FULL, Transmitter};
use crate::observe::{Direction, Packet};

/// Both directions of one connection.
#[derive(Debug, Default)]
pub struct States {
    pub requests: Transmitter,
    pub replies: Transmitter,
    /// Window scales are unknown: only 0 is surely closed.
    started_midstream: bool,
    handshake: Handshake,
    /// The first packets, until they are told once more.
    beginning: Option<Vec<Packet>>,
}

/// Packets, both ways, after which rate and round trip are taken for known.
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
        self.requests = self.requests.afresh();
        self.replies = self.replies.afresh();
        self.handshake = Handshake::default();
        beginning.iter().for_each(|packet| self.take(packet));
    }

    fn take(&mut self, packet: &Packet) {
        let closed_below = if self.started_midstream { 1 } else { FULL };
        let (sender, receiver) = match packet.direction {
            Direction::Requests => (&mut self.requests, &mut self.replies),
            Direction::Replies => (&mut self.replies, &mut self.requests),
        };
        let place = receiver.place(sender);
        if let Some(span) = self.handshake.packet(packet) {
            // The client's acknowledgement ends it.
            sender.shook_hands(&span, &sender.place(receiver));
        }
        receiver.acknowledged(packet, &place, closed_below);
        let place = sender.place(receiver);
        sender.sent(packet, &place);
    }

    /// Nothing more comes: what is pending is settled.
    pub fn end(&mut self, at_ns: u64) {
        self.take_beginning_again();
        if let Some(span) = self.handshake.unfinished(at_ns) {
            self.requests.shook_hands(&span, &self.requests.place(&self.replies));
        }
        let places = [self.requests.place(&self.replies), self.replies.place(&self.requests)];
        self.requests.end(at_ns, &places[0]);
        self.replies.end(at_ns, &places[1]);
    }
}

#[cfg(test)]
mod tests;
