// SPDX-License-Identifier: MIT
//! Analyses a capture: where a program's time and bytes went, and which round trips it could avoid.
//!
//! [`Analysis`] is an [`Observer`]. It keeps sums and short lists, never the messages. Its memory use depends only on
//! the number of connections and the number of different message names.
//!
//! | file | result |
//! |---|---|
//! | [`states`], [`transmitter`], [`rate`] | time per direction: idle, blocked by the network or by the receiver |
//! | [`handshake`] | the time of the TCP handshake |
//! | [`waits`], [`round_trip`], [`avoidable`], [`patterns`], `colors` | round trips, and avoidable ones |
//! | [`proxied`] | which of these waits would remain with a proxy next to the program |
//! | [`startup`] | requests, bytes and waits until the first window, and until the program becomes quiet |
//! | [`counts`] | messages and bytes by name |
//! | [`bandwidth`], [`compression`] | bytes by use, and how well they compress |
//! | [`redundancy`] | unused bytes, repeated coordinates |
//! | [`images`] | how well images and glyphs compress, and the processor time that it takes |
//! | [`agreement`] | compares the states with the log of an emulated link |
//! | [`spans`], [`names`], [`figure`] | building blocks for the other files |

pub mod agreement;
pub mod avoidable;
pub mod bandwidth;
mod blocked;
mod colors;
pub mod compression;
pub mod counts;
pub mod figure;
pub mod handshake;
pub mod images;
pub mod names;
pub mod patterns;
pub mod proxied;
pub mod rate;
pub mod redundancy;
pub mod round_trip;
pub mod spans;
pub mod startup;
pub mod states;
#[cfg(test)]
pub(crate) mod tests;
pub mod transmitter;
pub mod waits;

use crate::observe::{ConnectionId, Direction, Ending, Message, MissingBytes, Observer, Opened, Packet};
use bandwidth::{Bandwidth, Samples};
use counts::Counts;
use names::NameTable;
use proxied::{Proxied, Remedy};
use redundancy::Redundancy;
use startup::Startup;
use states::States;
use std::collections::BTreeMap;
use waits::Waits;

/// Maximum number of connections to analyse; others are only counted. A desktop opens a few hundred in a day.
const MAX_CONNECTIONS: usize = 4_096;

#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    pub packets: u64,
    pub bytes: u64,
    /// Payload bytes of retransmitted packets.
    pub retransmitted: u64,
    /// Bytes that are missing from the capture.
    pub missing: u64,
}

#[derive(Debug)]
pub struct AnalysedConnection {
    pub opened: Opened,
    pub program: Option<String>,
    pub ended_ns: u64,
    pub ending: Ending,
    /// True if the capture contains the connection from its start, with no message missing.
    pub is_whole: bool,
    pub traffic: [Traffic; 2],
    pub states: States,
    pub counts: Counts,
    pub waits: Waits,
    pub startup: Startup,
    pub bandwidth: Bandwidth,
    pub redundancy: Redundancy,
    /// The waits that would remain with the requested remedy.
    pub proxied: Option<Box<Proxied>>,
}

impl AnalysedConnection {
    fn new(opened: &Opened, remedy: Option<Remedy>) -> AnalysedConnection {
        AnalysedConnection {
            opened: *opened,
            program: None,
            ended_ns: opened.at_ns,
            ending: Ending::Open,
            is_whole: !opened.started_midstream,
            traffic: [Traffic::default(); 2],
            states: States::new(opened.started_midstream),
            counts: Counts::default(),
            waits: Waits::default(),
            startup: Startup::default(),
            bandwidth: Bandwidth::default(),
            redundancy: Redundancy::default(),
            proxied: remedy.map(|remedy| Box::new(Proxied::new(remedy))),
        }
    }

    /// Makes pending states final and frees the data that the figures do not need.
    pub(crate) fn end(&mut self) {
        self.states.end(self.ended_ns);
        self.counts.end();
        self.waits.end();
        self.bandwidth.end();
        self.redundancy.end();
    }
}

#[derive(Debug, Default)]
pub struct Analysis {
    pub names: NameTable,
    pub connections: BTreeMap<ConnectionId, AnalysedConnection>,
    pub samples: Samples,
    /// Number of connections beyond the maximum, which are not analysed.
    pub left_out: u64,
    remedy: Option<Remedy>,
}

impl Analysis {
    /// Also computes the waits that would remain with this remedy.
    pub fn with_remedy(remedy: Option<Remedy>) -> Analysis {
        Analysis { remedy, ..Analysis::default() }
    }
}

impl Observer for Analysis {
    fn opened(&mut self, id: ConnectionId, opened: &Opened) {
        if self.connections.len() >= MAX_CONNECTIONS {
            self.left_out += 1;
            return;
        }
        self.connections.insert(id, AnalysedConnection::new(opened, self.remedy));
    }

    fn named(&mut self, id: ConnectionId, program: &str) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.program = Some(program.to_owned());
        }
    }

    fn packet(&mut self, id: ConnectionId, packet: &Packet) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.states.packet(packet);
        connection.ended_ns = connection.ended_ns.max(packet.at_ns);
        let traffic = &mut connection.traffic[packet.direction as usize];
        traffic.packets += 1;
        let kind = if packet.is_retransmission { &mut traffic.retransmitted } else { &mut traffic.bytes };
        *kind += u64::from(packet.length);
    }

    fn bytes(&mut self, id: ConnectionId, direction: Direction, _at_ns: u64, offset: u64, bytes: &[u8]) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.bandwidth.bytes(direction, offset, bytes, &mut self.samples);
        }
    }

    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let name = self.names.id(message.name);
        connection.counts.message(message, name);
        connection.bandwidth.message(message, self.names.used_for(name), &mut self.samples);
        connection.redundancy.message(message, name, &self.names);
        // Count the wait before the message: a reply completes its own wait, a request only reveals an earlier one.
        let wait = connection.waits.message(message, name, &mut self.names);
        if let Some(wait) = &wait {
            connection.startup.waited(wait);
        }
        if let Some(proxied) = &mut connection.proxied {
            proxied.message(message, wait.as_ref());
        }
        connection.startup.message(message);
    }

    fn gap(&mut self, id: ConnectionId, gap: &MissingBytes) {
        if let Some(connection) = self.connections.get_mut(&id) {
            let traffic = &mut connection.traffic[gap.direction as usize];
            traffic.missing = traffic.missing.saturating_add(gap.length);
            if !gap.is_within_message {
                connection.is_whole = false;
                connection.waits.gap();
            }
        }
    }

    fn ended(&mut self, id: ConnectionId, at_ns: u64, ending: Ending) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.ended_ns = connection.ended_ns.max(at_ns);
            connection.ending = ending;
            connection.end();
        }
    }
}
