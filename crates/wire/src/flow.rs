// SPDX-License-Identifier: MIT
//! One connection of a capture on its way to the observers: a stream, and the messages in it.

use crate::contents::Contents;
use crate::frame::Segment;
use crate::observe::{ConnectionId, Direction, Ending, Gap, Message, Observer, Opened, Packet};
use crate::stream::{Piece, Stream};
use crate::x11::connection::{Connection, is_setup};
use crate::x11::names::Names;
use std::net::SocketAddr;

/// Packets held back until it is known what they belong to: the handshake's, with some of them again.
const MAX_HELD: usize = 8;
/// Of a setup, without the texts behind it.
const SETUP_BYTES: usize = 12;

/// Who sees what is found.
pub type Observers<'a> = [&'a mut dyn Observer];

/// What is between two ports.
#[derive(Debug)]
pub enum Flow {
    /// Nothing to be looked at until the next SYN.
    Over,
    /// It began; its first bytes will tell what it is.
    Candidate(Box<Candidate>),
    Followed(Box<Followed>),
}

/// Which end is which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub client: SocketAddr,
    pub server: SocketAddr,
}

impl Ends {
    pub fn direction(&self, segment: &Segment<'_>) -> Direction {
        if segment.source == self.client { Direction::Requests } else { Direction::Replies }
    }
}

/// A connection that may be X, on a port that says nothing.
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

    /// Takes a packet. Without bytes in it nothing can be said; otherwise, whether it is X.
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

    pub fn follow(self, id: ConnectionId, max_pending: usize, observers: &mut Observers<'_>) -> Followed {
        let followed =
            Followed { id, ends: self.ends, stream: self.stream, connection: Connection::new(false, max_pending) };
        followed.open(self.at_ns, false, observers);
        for packet in &self.held {
            observers.iter_mut().for_each(|observer| observer.packet(id, packet));
        }
        followed
    }
}

/// A connection of X.
#[derive(Debug)]
pub struct Followed {
    id: ConnectionId,
    ends: Ends,
    stream: Stream,
    connection: Connection,
}

impl Followed {
    pub fn new(
        id: ConnectionId,
        ends: Ends,
        (at_ns, started_midstream): (u64, bool),
        max_pending: usize,
        observers: &mut Observers<'_>,
    ) -> Followed {
        let connection = Connection::new(started_midstream, max_pending);
        let followed = Followed { id, ends, stream: Stream::new(started_midstream), connection };
        followed.open(at_ns, started_midstream, observers);
        followed
    }

    pub fn id(&self) -> ConnectionId {
        self.id
    }

    pub fn server(&self) -> SocketAddr {
        self.ends.server
    }

    /// Whether a segment begins another connection between the same ports.
    pub fn is_reused_by(&self, segment: &Segment<'_>) -> bool {
        self.stream.is_reused_by(self.ends.direction(segment), segment)
    }

    /// Takes a packet, and tells whether it ends the connection.
    pub fn take(
        &mut self,
        at_ns: u64,
        segment: &Segment<'_>,
        max_waiting: usize,
        notified: &mut Notified<'_, '_>,
    ) -> Option<Ending> {
        let direction = self.ends.direction(segment);
        let packet = self.stream.note(direction, at_ns, segment);
        if segment.is_copy {
            notified.observers.iter_mut().for_each(|observer| observer.copy(self.id, &packet));
            return None;
        }
        notified.observers.iter_mut().for_each(|observer| observer.packet(self.id, &packet));
        let Followed { id, stream, connection, .. } = self;
        stream.deliver(direction, at_ns, segment, max_waiting, &mut |piece| notified.piece(*id, connection, piece));
        if segment.is_reset {
            return Some(Ending::Reset);
        }
        self.stream.is_finished().then_some(Ending::Finished)
    }

    /// Hands on what still waits, and ends.
    pub fn end(mut self, at_ns: u64, ending: Ending, notified: &mut Notified<'_, '_>) {
        let Followed { id, stream, connection, .. } = &mut self;
        stream.finish(at_ns, &mut |piece| notified.piece(*id, connection, piece));
        notified.counts.skipped_bytes += connection.skipped_bytes();
        notified.counts.foreign_connections += u64::from(connection.is_foreign());
        let unfinished = Direction::BOTH.into_iter().filter(|&direction| connection.is_within(direction));
        notified.counts.unfinished_messages += unfinished.count() as u64;
        notified.observers.iter_mut().for_each(|observer| observer.ended(self.id, at_ns, ending));
    }

    fn open(&self, at_ns: u64, started_midstream: bool, observers: &mut Observers<'_>) {
        let opened = Opened { at_ns, client: self.ends.client, server: self.ends.server, started_midstream };
        observers.iter_mut().for_each(|observer| observer.opened(self.id, &opened));
    }
}

/// Who is notified, and what is needed for it.
pub struct Notified<'t, 'o> {
    pub observers: &'t mut Observers<'o>,
    pub names: &'t mut Names,
    pub counts: &'t mut Contents,
}

impl Notified<'_, '_> {
    #[inline]
    fn piece(&mut self, id: ConnectionId, connection: &mut Connection, piece: &Piece<'_>) {
        let Piece { direction, at_ns, offset, bytes, missing, .. } = *piece;
        if !bytes.is_empty() {
            self.observers.iter_mut().for_each(|observer| observer.bytes(id, direction, at_ns, offset, bytes));
            let observers = &mut *self.observers;
            connection.push(piece, self.names, &mut |message| notify_message(observers, id, message));
        }
        if missing > 0 {
            let is_within_message = connection.is_within_for(direction, missing);
            let offset = offset + bytes.len() as u64;
            let gap = Gap { direction, at_ns, offset, length: missing, is_within_message };
            self.gap(id, connection, &gap);
        }
    }

    fn gap(&mut self, id: ConnectionId, connection: &mut Connection, gap: &Gap) {
        self.counts.gaps += 1;
        self.counts.gap_bytes += gap.length;
        self.counts.lost_bytes += if gap.is_within_message { 0 } else { gap.length };
        self.observers.iter_mut().for_each(|observer| observer.gap(id, gap));
        let observers = &mut *self.observers;
        connection.gap(gap, self.names, &mut |message| notify_message(observers, id, message));
    }
}

#[inline]
fn notify_message(observers: &mut Observers<'_>, id: ConnectionId, message: &Message<'_>) {
    observers.iter_mut().for_each(|observer| observer.message(id, message));
}
