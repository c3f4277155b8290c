// SPDX-License-Identifier: MIT
//! What is seen on a wire: the door between those who read a capture and those who conclude from it.
//!
//! [`Observer`] is called in the order of the packets. All times are nanoseconds since 1970, as the capture has them; an
//! offset counts the bytes of a direction from its first one, in 64 bits, however often TCP's own numbers wrap.

use crate::x11::bytes::ByteOrder;
use serde::Serialize;
use std::net::SocketAddr;

/// A connection of a capture, numbered as they appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// One of the two streams of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From client to server.
    Requests,
    /// From server to client: replies, events, errors.
    Replies,
}

impl Direction {
    pub const BOTH: [Direction; 2] = [Direction::Requests, Direction::Replies];

    /// Of what there is for each direction, its own and the other one's.
    #[inline]
    pub fn own_and_other<T>(self, [requests, replies]: &mut [T; 2]) -> (&mut T, &mut T) {
        match self {
            Direction::Requests => (requests, replies),
            Direction::Replies => (replies, requests),
        }
    }
}

/// A connection was seen for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    pub at_ns: u64,
    pub client: SocketAddr,
    pub server: SocketAddr,
    /// Its beginning was not captured: offsets count from what was seen first, window scales are not known, and messages
    /// begin where the stream could be understood.
    pub started_midstream: bool,
}

/// A packet with what TCP says in it; retransmissions and pure acknowledgements too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub direction: Direction,
    pub at_ns: u64,
    /// Of its first byte.
    pub offset: u64,
    /// 0 also of a keep-alive and of a probe of a closed window that have a byte in them.
    pub length: u32,
    /// Bytes of the other direction that its sender has received, and how many more it takes after these.
    pub acknowledged: u64,
    pub window: u64,
    /// Its bytes, or some of them, had been seen before.
    pub is_retransmission: bool,
    /// SYN, FIN or RST.
    pub is_control: bool,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The client's first words.
    Setup,
    /// The server's answer to them.
    SetupReply,
    Request,
    Reply,
    Event,
    Error,
}

impl Kind {
    /// The stream that such messages are in.
    pub fn direction(self) -> Direction {
        match self {
            Kind::Setup | Kind::Request => Direction::Requests,
            Kind::SetupReply | Kind::Reply | Kind::Event | Kind::Error => Direction::Replies,
        }
    }
}

/// One message of X, complete.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub kind: Kind,
    /// Number of the request, in 64 bits, the first being 1; of a reply or an error the request that it answers, of an
    /// event the last request that the server had read.
    pub sequence: u64,
    /// `CreateWindow`; `RENDER::CompositeGlyphs`; of a reply its request's, of an event or an error its own.
    pub name: &'a str,
    /// Of a request, and of the request that a reply or an error answers; 0 of events.
    pub major: u8,
    pub minor: u16,
    /// Whether a request has a reply; of a reply, whether more of them follow for the same request.
    pub has_reply: bool,
    /// In its direction's stream.
    pub offset: u64,
    pub length: u64,
    /// Times of the packets that held its first and its last byte.
    pub first_ns: u64,
    pub last_ns: u64,
    /// Written least significant byte first.
    pub is_little_endian: bool,
    /// Its first bytes, as many as are kept ([`KEPT_BYTES`]); fewer where the capture cut them off.
    pub bytes: &'a [u8],
}

impl Message<'_> {
    pub fn order(&self) -> ByteOrder {
        if self.is_little_endian { ByteOrder::Little } else { ByteOrder::Big }
    }

    /// The word at a place; `None` where it was not captured.
    pub fn word(&self, at: usize) -> Option<u32> {
        self.order().u32(self.bytes, at)
    }
}

/// Enough for the fields of any request that is looked into; pixels and glyphs are longer.
pub const KEPT_BYTES: usize = 4096;

/// Bytes that nobody captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub direction: Direction,
    pub at_ns: u64,
    pub offset: u64,
    pub length: u64,
    /// All of them are of one message, which is told: its length stands in what was captured of it.
    pub is_within_message: bool,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    Finished,
    Reset,
    /// The capture ended before it.
    Open,
}

/// Concludes something from a capture.
#[allow(unused_variables)]
pub trait Observer {
    fn opened(&mut self, id: ConnectionId, opened: &Opened) {}
    /// What its program is called, where the capture says so.
    fn named(&mut self, id: ConnectionId, program: &str) {}
    fn packet(&mut self, id: ConnectionId, packet: &Packet) {}
    /// A packet that the capture has already, from another place.
    fn copy(&mut self, id: ConnectionId, packet: &Packet) {}
    /// Bytes of a stream, each once and in order.
    fn bytes(&mut self, id: ConnectionId, direction: Direction, at_ns: u64, offset: u64, bytes: &[u8]) {}
    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {}
    fn gap(&mut self, id: ConnectionId, gap: &Gap) {}
    fn ended(&mut self, id: ConnectionId, at_ns: u64, ending: Ending) {}
}
