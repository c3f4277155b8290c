// SPDX-License-Identifier: MIT
//! Bytes that never were in a packet, as the TCP packets that a loopback interface would have shown.
//!
//! What goes over a Unix socket has no packets; captures, and whoever reads them, know nothing else. So each connection
//! gets two ports of 127.0.0.1, a handshake, sequence numbers, acknowledgements, windows that are closed while a receiver
//! takes nothing, and its end.

use super::{Link, Record};
use crate::observe::Direction;
use etherparse::{PacketBuilder, TcpOptionElement};
use std::net::Ipv4Addr;

/// What fits into one packet of IPv4: 65,535 less the headers.
pub const MAX_BYTES: usize = 65_495;

/// What a receiver takes at once: one packet, which is what the relay holds of a direction.
const WINDOW: u16 = u16::MAX;
const HOPS: u8 = 64;
/// As loopback's; only SYNs say it.
const SEGMENT_BYTES: u16 = 65_495;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Open,
    Data,
    Acknowledge,
    Finish,
    Reset,
}

/// One connection's packets, made one after the other.
#[derive(Debug)]
pub struct Conversation {
    /// Of client and server.
    ports: [u16; 2],
    /// The next numbers of client and server, and what each has of the other.
    next: [u32; 2],
    received: [u32; 2],
    /// Who takes no more for now.
    is_full: [bool; 2],
    has_begun: [bool; 2],
    packet: Vec<u8>,
}

impl Conversation {
    pub fn new(client_port: u16, server_port: u16) -> Conversation {
        let ports = [client_port, server_port];
        let nobody = [false; 2];
        Conversation { ports, next: [0; 2], received: [0; 2], is_full: nobody, has_begun: nobody, packet: Vec::new() }
    }

    /// The client's SYN, or the server's answer.
    pub fn open(&mut self, from: Direction, at_ns: u64) -> Record<'_> {
        self.packet(from, Purpose::Open, at_ns, &[])
    }

    /// Bytes, as many as fit into a packet at most.
    pub fn data(&mut self, from: Direction, at_ns: u64, bytes: &[u8]) -> Record<'_> {
        self.packet(from, Purpose::Data, at_ns, bytes)
    }

    /// The receiver has all that was sent from there, and takes more or not.
    pub fn acknowledge(&mut self, from: Direction, at_ns: u64, takes_more: bool) -> Record<'_> {
        self.received[other(from)] = self.next[from as usize];
        self.is_full[other(from)] = !takes_more;
        let receiver = if from == Direction::Requests { Direction::Replies } else { Direction::Requests };
        self.packet(receiver, Purpose::Acknowledge, at_ns, &[])
    }

    /// Nothing follows from there.
    pub fn finish(&mut self, from: Direction, at_ns: u64) -> Record<'_> {
        self.packet(from, Purpose::Finish, at_ns, &[])
    }

    /// The connection broke at that end.
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
            // Four bytes always fit.
            let Ok(with_size) = tcp.options(&[TcpOptionElement::MaximumSegmentSize(SEGMENT_BYTES)]) else {
                unreachable!("one option of four bytes fits into a header")
            };
            tcp = with_size;
            self.has_begun[own] = true;
        }
        self.packet.clear();
        let bytes = &bytes[..bytes.len().min(MAX_BYTES)];
        // A vector takes everything, and a packet of that length can be.
        let _ = tcp.write(&mut self.packet, bytes);
        let control = u32::from(matches!(purpose, Purpose::Open | Purpose::Finish));
        self.next[own] = self.next[own].wrapping_add(bytes.len() as u32 + control);
        if control > 0 {
            // Nobody has to read it.
            self.received[other] = self.next[own];
        }
        Record { at_ns, link: Link::RAW, length: self.packet.len() as u32, bytes: &self.packet, program: None }
    }
}

fn other(direction: Direction) -> usize {
    1 - direction as usize
}
