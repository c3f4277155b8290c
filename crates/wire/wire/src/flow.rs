// SPDX-License-Identifier: MIT
//! One connection of a capture: its TCP stream, its messages, and the notification of observers.

use crate::contents::Contents;
use crate::frame::Segment;
use crate::observe::{ConnectionId, Direction, Ending, MissingBytes, Observers, Opened, Packet, Piece};
use crate::stream::Stream;
use crate::x11::checkpoint::Checkpoint;
use crate::x11::connection::{Connection, is_setup};
use crate::x11::names::Names;
use std::net::SocketAddr;

/// Packets held until the protocol is known: the handshake with some retransmissions.
const MAX_HELD: usize = 8;
/// Length of a connection setup without its strings.
const SETUP_BYTES: usize = 12;

/// State of the traffic between two ports.
#[derive(Debug)]
pub enum Flow {
    /// Ignored until the next SYN.
    Over,
    /// Just started. Its first bytes will show whether it is X.
    Candidate(Box<Candidate>),
    Followed(Box<Followed>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub client: SocketAddr,
    pub server: SocketAddr,
}

impl Ends {
    pub fn of(segment: &Segment<'_>, is_from_client: bool) -> Ends {
        let (client, server) = (segment.source, segment.destination);
        if is_from_client { Ends { client, server } } else { Ends { client: server, server: client } }
    }

    pub fn direction(&self, segment: &Segment<'_>) -> Direction {
        if segment.source == self.client { Direction::Requests } else { Direction::Replies }
    }
}

/// A connection on another port that may be X.
#[derive(Debug)]
pub struct Candidate {
    ends: Ends,
    at_ns: u64,
    stream: Stream,
    held: Vec<Packet>,
}

impl Candidate {
    pub fn new(ends: Ends, at_ns: u64) -> Candidate {
        Candidate { ends, at_ns, stream: Stream::new(false), held: Vec::new() }
    }

    /// Takes a packet. Returns whether the connection is X, or `None` while that is unknown.
    pub fn take(&mut self, at_ns: u64, segment: &Segment<'_>) -> Option<bool> {
        let direction = self.ends.direction(segment);
        if segment.length > 0 {
            return Some(
                direction == Direction::Requests && segment.bytes.len() >= SETUP_BYTES && is_setup(segment.bytes),
            );
        }
        if segment.is_copy {
            return None;
        }
        let packet = self.stream.note(direction, at_ns, segment);
        if self.held.len() < MAX_HELD {
            self.held.push(packet);
        }
        (segment.is_reset || segment.is_fin).then_some(false)
    }

    pub fn follow(self, id: ConnectionId, max_pending: usize, observers: &mut dyn Observers) -> Followed {
        let connection = Connection::new(false, max_pending);
        let followed = Followed::begin(id, self.ends, (self.at_ns, false), self.stream, connection, observers);
        for packet in &self.held {
            observers.each(&mut |observer| observer.packet(id, packet));
        }
        followed
    }
}

#[derive(Debug)]
pub struct Followed {
    pub id: ConnectionId,
    pub ends: Ends,
    stream: Stream,
    connection: Connection,
    /// Name of the client's program, if the capture contains it.
    pub program: Option<Box<str>>,
}

impl Followed {
    pub fn begin(
        id: ConnectionId,
        ends: Ends,
        (at_ns, started_midstream): (u64, bool),
        stream: Stream,
        connection: Connection,
        observers: &mut dyn Observers,
    ) -> Followed {
        let opened = Opened { at_ns, client: ends.client, server: ends.server, started_midstream };
        observers.each(&mut |observer| observer.opened(id, &opened));
        Followed { id, ends, stream, connection, program: None }
    }

    /// The decoding state before this packet, if it is known.
    pub fn checkpoint(&self, segment: &Segment<'_>, names: &Names) -> Option<Checkpoint> {
        let extensions = names.extensions().map(|(name, major, event, error)| (name.to_owned(), major, event, error));
        let begun = Checkpoint {
            is_from_client: self.ends.direction(segment) == Direction::Requests,
            next: self.stream.next_numbers()?,
            extensions: extensions.collect(),
            ..Checkpoint::default()
        };
        self.connection.save(names, begun)
    }

    /// True if a segment starts another connection between the same ports.
    pub fn is_reused_by(&self, segment: &Segment<'_>) -> bool {
        self.stream.is_reused_by(self.ends.direction(segment), segment)
    }

    /// Takes a packet. If this packet ends the connection, returns how.
    pub fn take(
        &mut self,
        at_ns: u64,
        segment: &Segment<'_>,
        max_waiting: usize,
        notifier: &mut Notifier<'_>,
    ) -> Option<Ending> {
        let direction = self.ends.direction(segment);
        let packet = self.stream.note(direction, at_ns, segment);
        if segment.is_copy {
            notifier.observers.each(&mut |observer| observer.copy(self.id, &packet));
            return None;
        }
        notifier.observers.each(&mut |observer| observer.packet(self.id, &packet));
        let Followed { id, stream, connection, .. } = self;
        stream.deliver(direction, at_ns, segment, max_waiting, &mut |piece| notifier.piece(*id, connection, piece));
        if segment.is_reset {
            return Some(Ending::Reset);
        }
        self.stream.is_finished().then_some(Ending::Finished)
    }

    /// Delivers all waiting bytes, then ends the connection.
    pub fn end(mut self, at_ns: u64, ending: Ending, notifier: &mut Notifier<'_>) {
        let Followed { id, stream, connection, .. } = &mut self;
        stream.finish(at_ns, &mut |piece| notifier.piece(*id, connection, piece));
        notifier.counts.skipped_bytes += connection.skipped_bytes;
        notifier.counts.foreign_connections += u64::from(connection.is_foreign());
        let unfinished = Direction::BOTH.into_iter().filter(|&direction| connection.is_within(direction));
        notifier.counts.unfinished_messages += unfinished.count() as u64;
        notifier.observers.each(&mut |observer| observer.ended(self.id, at_ns, ending));
    }
}

pub struct Notifier<'t> {
    pub observers: &'t mut dyn Observers,
    pub names: &'t mut Names,
    pub counts: &'t mut Contents,
}

impl Notifier<'_> {
    #[inline]
    fn piece(&mut self, id: ConnectionId, connection: &mut Connection, piece: &Piece<'_>) {
        let Piece { direction, at_ns, offset, bytes, missing, .. } = *piece;
        if !bytes.is_empty() {
            self.observers.each(&mut |observer| observer.bytes(id, direction, at_ns, offset, bytes));
            connection.push(piece, self.names, &mut |message| {
                self.observers.each(&mut |observer| observer.message(id, message));
            });
        }
        if missing > 0 {
            let is_within_message = connection.is_within_for(direction, missing);
            let offset = offset + bytes.len() as u64;
            let gap = MissingBytes { direction, at_ns, offset, length: missing, is_within_message };
            self.gap(id, connection, &gap);
        }
    }

    fn gap(&mut self, id: ConnectionId, connection: &mut Connection, gap: &MissingBytes) {
        self.counts.gaps += 1;
        self.counts.gap_bytes += gap.length;
        self.counts.lost_bytes += if gap.is_within_message { 0 } else { gap.length };
        self.observers.each(&mut |observer| observer.gap(id, gap));
        connection.gap(gap, self.names, &mut |message| {
            self.observers.each(&mut |observer| observer.message(id, message));
        });
    }
}
