// SPDX-License-Identifier: MIT
//! The interface between the decoding of a capture and its analysis.
//!
//! [`Observer`] methods are called in packet order. All times are capture times in nanoseconds since 1970. An offset
//! is a byte's position in its direction, counted from 0 in 64 bits; it continues when TCP's sequence numbers wrap.

use serde::Serialize;
use std::net::SocketAddr;
use xqos_x11::ByteOrder;

/// A connection of a capture, numbered by first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From client to server.
    Requests,
    /// From server to client: replies, events, errors.
    Replies,
}

impl Direction {
    pub const BOTH: [Direction; 2] = [Direction::Requests, Direction::Replies];

    /// Returns this direction's element of a pair, then the other direction's.
    #[inline]
    pub fn own_and_other<T>(self, [requests, replies]: &mut [T; 2]) -> (&mut T, &mut T) {
        match self {
            Direction::Requests => (requests, replies),
            Direction::Replies => (replies, requests),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    pub at_ns: u64,
    pub client: SocketAddr,
    pub server: SocketAddr,
    /// True if the capture does not contain its start. Offsets then count from the first byte seen, window scales are
    /// unknown, and messages start where the stream could first be decoded.
    pub started_midstream: bool,
}

/// A packet of a connection. Retransmissions and pure acknowledgements are reported too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub direction: Direction,
    pub at_ns: u64,
    /// Stream offset of its first byte.
    pub offset: u64,
    /// Payload bytes; 0 for keep-alives and window probes, even if they carry a byte.
    pub length: u32,
    /// Bytes in the other direction that the sender has received, and the sender's receive window beyond them.
    pub acknowledged: u64,
    pub window: u64,
    /// True if some or all of its bytes were seen before.
    pub is_retransmission: bool,
    /// True if the packet has SYN, FIN or RST.
    pub is_control: bool,
}

/// Bytes of a stream in order, followed by a gap if bytes are missing.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub direction: Direction,
    pub at_ns: u64,
    pub offset: u64,
    /// Bytes in the other direction that the sender had received.
    pub acknowledged: u64,
    pub bytes: &'a [u8],
    /// Number of bytes after `bytes` that are missing from the capture.
    pub missing: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The client's connection setup.
    Setup,
    /// The server's answer to the setup.
    SetupReply,
    Request,
    Reply,
    Event,
    Error,
}

impl Kind {
    pub fn direction(self) -> Direction {
        match self {
            Kind::Setup | Kind::Request => Direction::Requests,
            Kind::SetupReply | Kind::Reply | Kind::Event | Kind::Error => Direction::Replies,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub kind: Kind,
    /// Sequence number in 64 bits; the first request is 1. Replies and errors have the number of their request; events
    /// have the number of the last request that the server had read.
    pub sequence: u64,
    /// `CreateWindow`; `RENDER::CompositeGlyphs8`. A reply has the name of its request.
    pub name: &'a str,
    /// Opcode of a request, or of the request that a reply or error answers; 0 for events.
    pub major: u8,
    pub minor: u16,
    /// For a request, true if it has a reply; for a reply, true if more replies to the same request follow.
    pub has_reply: bool,
    /// Offset in the stream of its direction.
    pub offset: u64,
    pub length: u64,
    /// Times of the packets that contain its first and its last byte.
    pub first_ns: u64,
    pub last_ns: u64,
    /// True if the client's byte order is little-endian.
    pub is_little_endian: bool,
    /// Its first bytes, at most [`KEPT_BYTES`]; fewer if the capture truncated them.
    pub bytes: &'a [u8],
}

impl Message<'_> {
    pub fn order(&self) -> ByteOrder {
        if self.is_little_endian { ByteOrder::Little } else { ByteOrder::Big }
    }

    /// The 32-bit value at an offset; `None` if it was not captured.
    pub fn word(&self, at: usize) -> Option<u32> {
        self.order().u32(self.bytes, at)
    }
}

/// Enough for all fields of the requests that are examined. Pixels and glyphs can be longer.
pub const KEPT_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingBytes {
    pub direction: Direction,
    pub at_ns: u64,
    pub offset: u64,
    pub length: u64,
    /// True if the gap is inside one message, which is reported anyway because its length was captured.
    pub is_within_message: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    Finished,
    Reset,
    /// The capture ended before the connection.
    Open,
}

#[allow(unused_variables)]
pub trait Observer {
    fn opened(&mut self, id: ConnectionId, opened: &Opened) {}
    /// Reports the name of the client's program, if the capture contains it.
    fn named(&mut self, id: ConnectionId, program: &str) {}
    fn packet(&mut self, id: ConnectionId, packet: &Packet) {}
    /// A duplicate of an earlier packet, seen at another capture point.
    fn copy(&mut self, id: ConnectionId, packet: &Packet) {}
    /// Bytes of a stream, each delivered once and in order.
    fn bytes(&mut self, id: ConnectionId, direction: Direction, at_ns: u64, offset: u64, bytes: &[u8]) {}
    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {}
    fn gap(&mut self, id: ConnectionId, gap: &MissingBytes) {}
    fn ended(&mut self, id: ConnectionId, at_ns: u64, ending: Ending) {}
}

pub trait Observers {
    fn each(&mut self, notify: &mut dyn FnMut(&mut dyn Observer));
}

impl<O: Observer> Observers for O {
    fn each(&mut self, notify: &mut dyn FnMut(&mut dyn Observer)) {
        notify(self);
    }
}

impl Observers for Vec<&mut dyn Observer> {
    fn each(&mut self, notify: &mut dyn FnMut(&mut dyn Observer)) {
        self.iter_mut().for_each(|observer| notify(&mut **observer));
    }
}
