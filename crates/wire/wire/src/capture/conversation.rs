// SPDX-License-Identifier: MIT
//! Turns bytes that were never in a packet into the TCP packets that a loopback interface would have shown.
//!
//! A Unix socket has no packets, but a capture needs them. Each connection therefore gets two ports of 127.0.0.1, a
//! handshake, sequence numbers, acknowledgements, a closed window while a receiver does not read, and FINs.

use super::{Link, Record};
use crate::observe::Direction;
use etherparse::{PacketBuilder, TcpOptionElement};
use std::net::Ipv4Addr;

/// Maximum payload of an IPv4 packet: 65,535 less the headers.
pub const MAX_BYTES: usize = 65_495;

/// Receive window: one packet, which is the most that the relay holds per direction.
const WINDOW: u16 = u16::MAX;
const HOPS: u8 = 64;
/// Maximum segment size of the loopback interface. Only SYNs carry it.
const SEGMENT_BYTES: u16 = 65_495;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Open,
    Data,
    Acknowledge,
    Finish,
    Reset,
}

#[derive(Debug, Default)]
pub struct Conversation {
    /// Ports of client and server.
    pub ports: [u16; 2],
    /// Next sequence numbers of client and server, and the sequence number up to which each has received data.
    next: [u32; 2],
    received: [u32; 2],
    /// True for a receiver that does not read at the moment.
    is_full: [bool; 2],
    has_begun: [bool; 2],
    packet: Vec<u8>,
}

impl Conversation {
    pub fn new(client_port: u16, server_port: u16) -> Conversation {
        Conversation { ports: [client_port, server_port], ..Conversation::default() }
    }

    /// Makes the client's SYN, or the server's SYN-ACK.
    pub fn open(&mut self, from: Direction, at_ns: u64) -> Record<'_> {
        self.packet(from, Purpose::Open, at_ns, &[])
    }

    /// Makes a data packet with at most [`MAX_BYTES`] bytes.
    pub fn data(&mut self, from: Direction, at_ns: u64, bytes: &[u8]) -> Record<'_> {
        self.packet(from, Purpose::Data, at_ns, bytes)
    }

    /// Acknowledges everything sent by `from`. The window is closed unless the receiver `takes_more`.
    pub fn acknowledge(&mut self, from: Direction, at_ns: u64, takes_more: bool) -> Record<'_> {
        self.received[other(from)] = self.next[from as usize];
        self.is_full[other(from)] = !takes_more;
        let receiver = if from == Direction::Requests { Direction::Replies } else { Direction::Requests };
        self.packet(receiver, Purpose::Acknowledge, at_ns, &[])
    }

    /// Makes a FIN: `from` sends no more data.
    pub fn finish(&mut self, from: Direction, at_ns: u64) -> Record<'_> {
        self.packet(from, Purpose::Finish, at_ns, &[])
    }

    /// Makes a reset: `from` broke the connection.
    pub fn reset(&mut self, from: Direction, at_ns: u64) -> Record<'_> {
        self.packet(from, Purpose::Reset, at_ns, &[])
    }

    fn packet(&mut self, from: Direction, purpose: Purpose, at_ns: u64, bytes: &[u8]) -> Record<'_> {
        let (own, other) = (from as usize, other(from));
        let loopback = Ipv4Addr::LOCALHOST.octets();
        let ip = PacketBuilder::ipv4(loopback, loopback, HOPS);
        let window = if self.is_full[own] { 0 } else { WINDOW };
        let mut tcp = ip.tcp(self.ports[own], self.ports[other], self.next[own], window);
        if self.has_begun[other] {
            tcp = tcp.ack(self.received[own]);
        }
        tcp = match purpose {
            Purpose::Open => tcp.syn(),
            Purpose::Data => tcp.psh(),
            Purpose::Acknowledge => tcp,
            Purpose::Finish => tcp.fin(),
            Purpose::Reset => tcp.rst(),
        };
        if purpose == Purpose::Open {
            // An option of four bytes always fits.
            let Ok(with_size) = tcp.options(&[TcpOptionElement::MaximumSegmentSize(SEGMENT_BYTES)]) else {
                unreachable!("one option of four bytes fits into a header")
            };
            tcp = with_size;
            self.has_begun[own] = true;
        }
        self.packet.clear();
        let bytes = &bytes[..bytes.len().min(MAX_BYTES)];
        // Writing to a vector cannot fail, and the length is valid.
        let _ = tcp.write(&mut self.packet, bytes);
        let control = u32::from(matches!(purpose, Purpose::Open | Purpose::Finish));
        self.next[own] = self.next[own].wrapping_add(bytes.len() as u32 + control);
        if control > 0 {
            // FIN and SYN count as received: no program has to read them.
            self.received[other] = self.next[own];
        }
        Record::new(at_ns, Link::RAW, self.packet.len() as u32, &self.packet)
    }
}

fn other(direction: Direction) -> usize {
    1 - direction as usize
}
