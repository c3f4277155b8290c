// SPDX-License-Identifier: MIT
//! Follows all connections of a capture and notifies the observers.
//!
//! X connections are those to a display's port (6000 to 6063) or to a port given with [`Session::also_port`], and any
//! that start with an X connection setup. All connections share one memory limit, regardless of their number.

use crate::capture::{CaptureError, CaptureReader, Record};
use crate::contents::Contents;
use crate::copies::Copies;
use crate::flow::{Candidate, Ends, Flow, Followed, Notifier};
use crate::frame::{Frame, Segment, parse};
use crate::observe::{ConnectionId, Ending, Observer, Observers};
use crate::stream::Stream;
use crate::x11::checkpoint::Checkpoint;
use crate::x11::connection::Connection;
use crate::x11::names::Names;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;

/// Ports of display 0 and up. Displays forwarded by ssh start at port 6010.
const DISPLAY_PORTS: RangeInclusive<u16> = 6000..=6063;
/// Maximum number of connections known at a time, X or not. Others are only counted.
const MAX_FLOWS: usize = 65_536;
/// Maximum number of X connections followed at a time.
const MAX_FOLLOWED: usize = 1024;
/// Maximum bytes that wait for earlier ones, per direction, for all connections together.
const WAITING_BYTES: usize = 16 << 20;
/// Maximum number of pending requests, for all connections together and for each (the range of sequence numbers).
const PENDING_REQUESTS: usize = 1 << 19;
const MAX_PENDING: usize = 1 << 16;
/// Maximum number of servers whose extensions are remembered.
const MAX_SERVERS: usize = 1024;

/// A session that borrows its observers.
pub type Session<'a> = ObservedSession<Vec<&'a mut dyn Observer>>;

pub struct ObservedSession<O> {
    pub observers: O,
    also_ports: Vec<u16>,
    flows: HashMap<ConnectionEnds, Flow>,
    names: HashMap<SocketAddr, Names>,
    copies: Copies,
    followed: usize,
    next_id: u32,
    last_ns: u64,
    counts: Contents,
    /// The checkpoint of the current packet.
    resumed: Option<Checkpoint>,
}

impl<O> std::fmt::Debug for ObservedSession<O> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Session")
            .field("flows", &self.flows.len())
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// Reads a whole capture. Also returns the reader's messages about the file.
pub fn read(path: &Path, mut session: Session<'_>) -> Result<(Contents, Vec<String>), CaptureError> {
    let mut reader = CaptureReader::open(path)?;
    while let Some(record) = reader.next() {
        session.packet(&record);
    }
    Ok((session.finish(), reader.notes()))
}

impl<O: Observers> ObservedSession<O> {
    pub fn new(observers: O) -> ObservedSession<O> {
        ObservedSession {
            observers,
            also_ports: Vec::new(),
            flows: HashMap::new(),
            names: HashMap::new(),
            copies: Copies::default(),
            followed: 0,
            next_id: 0,
            last_ns: 0,
            counts: Contents::default(),
            resumed: None,
        }
    }

    /// Treats connections to this port as X, even if their start was not captured.
    pub fn also_port(mut self, port: u16) -> ObservedSession<O> {
        self.also_ports.push(port);
        self
    }

    pub fn packet(&mut self, record: &Record<'_>) {
        self.counts.packets += 1;
        self.counts.bytes += u64::from(record.length);
        self.counts.cut_packets += u64::from(record.bytes.len() < record.length as usize);
        self.last_ns = record.at_ns;
        match parse(record) {
            Frame::Segment(segment) => {
                let is_copy = self.copies.is_copy(record, &segment);
                let is_new = !segment.is_syn && !self.flows.contains_key(&key(&segment));
                self.resumed = record.checkpoint.filter(|_| is_new).and_then(Checkpoint::parse);
                self.segment(record.at_ns, &Segment { is_copy, ..segment });
                self.name_program(record, &segment);
            }
            Frame::Fragment => self.counts.fragments += 1,
            Frame::Other => self.counts.other_packets += 1,
            Frame::Broken => self.counts.broken_packets += 1,
            Frame::UnknownLink => self.counts.unknown_links += 1,
        }
    }

    fn name_program(&mut self, record: &Record<'_>, segment: &Segment<'_>) {
        let Some(program) = record.program else { return };
        let Some(Flow::Followed(flow)) = self.flows.get_mut(&key(segment)) else { return };
        flow.program = Some(program.into());
        self.observers.each(&mut |observer| observer.named(flow.id, program));
    }

    /// The connection that a packet belongs to, if it is known already.
    pub(crate) fn connection(&self, record: &Record<'_>) -> Option<ConnectionId> {
        Some(self.flow(record)?.0.id)
    }

    /// The name of the packet's program, and the decoding state before the packet, for a file that begins with it.
    pub(crate) fn beginning(&self, record: &Record<'_>) -> Option<(Option<&str>, Option<String>)> {
        let (flow, segment) = self.flow(record)?;
        let checkpoint = self.names.get(&flow.ends.server).and_then(|names| flow.checkpoint(&segment, names));
        Some((flow.program.as_deref(), checkpoint.map(|checkpoint| checkpoint.text())))
    }

    fn flow<'r>(&self, record: &Record<'r>) -> Option<(&Followed, Segment<'r>)> {
        let Frame::Segment(segment) = parse(record) else { return None };
        let Some(Flow::Followed(flow)) = self.flows.get(&key(&segment)) else { return None };
        Some((flow.as_ref(), segment))
    }

    /// Ends open connections and returns the totals.
    pub fn finish(mut self) -> Contents {
        let flows = std::mem::take(&mut self.flows);
        let mut open: Vec<Box<Followed>> = flows.into_values().filter_map(followed).collect();
        open.sort_by_key(|followed| followed.id);
        for followed in open {
            self.end(*followed, self.last_ns, Ending::Open);
        }
        self.counts
    }

    fn segment(&mut self, at_ns: u64, segment: &Segment<'_>) {
        let key = key(segment);
        if segment.is_copy && matches!(self.flows.get(&key), Some(Flow::Followed(_) | Flow::Over)) {
            self.counts.copies += 1;
        }
        match self.flows.get_mut(&key) {
            Some(Flow::Followed(followed)) if followed.is_reused_by(segment) => {
                self.take_out(key, at_ns, Ending::Open);
                self.begin(key, at_ns, segment);
            }
            Some(Flow::Followed(followed)) => {
                let names = names(&mut self.names, followed.ends.server);
                let max_waiting = WAITING_BYTES / self.followed;
                let mut notifier = Notifier { observers: &mut self.observers, names, counts: &mut self.counts };
                if let Some(ending) = followed.take(at_ns, segment, max_waiting, &mut notifier) {
                    self.take_out(key, at_ns, ending);
                }
            }
            Some(Flow::Candidate(candidate)) => match candidate.take(at_ns, segment) {
                None => {}
                Some(true) => self.follow_candidate(key, at_ns, segment),
                Some(false) => _ = self.flows.remove(&key),
            },
            Some(Flow::Over) if !segment.is_syn || segment.is_copy => {}
            Some(Flow::Over) | None => self.begin(key, at_ns, segment),
        }
    }

    /// Starts a connection with its first packet. An earlier connection may have used the same ports.
    fn begin(&mut self, key: ConnectionEnds, at_ns: u64, segment: &Segment<'_>) {
        let resumed = self.resumed.take();
        let ends = match &resumed {
            Some(checkpoint) => Some(Ends::of(segment, checkpoint.is_from_client)),
            None => self.ends(segment),
        };
        let Some(ends) = ends else { return };
        if segment.is_reset || !self.has_room() {
            self.counts.not_followed_packets += u64::from(!segment.is_reset);
            return;
        }
        if resumed.is_none() && !self.is_display(ends.server.port()) {
            self.flows.insert(key, Flow::Candidate(Box::new(Candidate::new(ends, at_ns))));
            return self.segment(at_ns, segment);
        }
        let (id, max_pending) = self.count();
        let (is_joined, stream, connection) = match &resumed {
            Some(checkpoint) => {
                checkpoint.teach(names(&mut self.names, ends.server));
                let connection = Connection::from_checkpoint(checkpoint, max_pending);
                (!checkpoint.is_new, Stream::resume(checkpoint.next), connection)
            }
            None => {
                let is_joined = !segment.is_syn;
                (is_joined, Stream::new(is_joined), Connection::new(is_joined, max_pending))
            }
        };
        let followed = Followed::begin(id, ends, (at_ns, is_joined), stream, connection, &mut self.observers);
        self.flows.insert(key, Flow::Followed(Box::new(followed)));
        self.segment(at_ns, segment);
    }

    fn follow_candidate(&mut self, key: ConnectionEnds, at_ns: u64, segment: &Segment<'_>) {
        let Some(Flow::Candidate(candidate)) = self.flows.remove(&key) else { return };
        let (id, max_pending) = self.count();
        let followed = candidate.follow(id, max_pending, &mut self.observers);
        self.flows.insert(key, Flow::Followed(Box::new(followed)));
        self.segment(at_ns, segment);
    }

    /// Counts a new connection. Returns its number, and how many pending requests it may have.
    fn count(&mut self) -> (ConnectionId, usize) {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        self.followed += 1;
        self.counts.connections += 1;
        (id, (PENDING_REQUESTS / self.followed).min(MAX_PENDING))
    }

    fn take_out(&mut self, key: ConnectionEnds, at_ns: u64, ending: Ending) {
        if let Some(Flow::Followed(followed)) = self.flows.insert(key, Flow::Over) {
            self.end(*followed, at_ns, ending);
        }
    }

    fn end(&mut self, followed: Followed, at_ns: u64, ending: Ending) {
        self.followed -= 1;
        let names = names(&mut self.names, followed.ends.server);
        followed.end(at_ns, ending, &mut Notifier { observers: &mut self.observers, names, counts: &mut self.counts });
    }

    /// Determines client and server: the client is the end that sent the SYN, or whose port is not a display's.
    fn ends(&self, segment: &Segment<'_>) -> Option<Ends> {
        let is_from_client = match (segment.is_syn, segment.acknowledgement) {
            (true, None) => true,
            (true, Some(_)) => false,
            (false, _) if self.is_display(segment.destination.port()) => true,
            (false, _) if self.is_display(segment.source.port()) => false,
            _ => return None,
        };
        Some(Ends::of(segment, is_from_client))
    }

    fn is_display(&self, port: u16) -> bool {
        DISPLAY_PORTS.contains(&port) || self.also_ports.contains(&port)
    }

    fn has_room(&mut self) -> bool {
        if self.flows.len() >= MAX_FLOWS {
            self.flows.retain(|_, flow| matches!(flow, Flow::Followed(_)));
        }
        self.followed < MAX_FOLLOWED
    }
}

/// Both ends of a connection, in the same order for both directions.
type ConnectionEnds = (SocketAddr, SocketAddr);

fn key(segment: &Segment<'_>) -> ConnectionEnds {
    let (one, other) = (segment.source, segment.destination);
    if one <= other { (one, other) } else { (other, one) }
}

fn followed(flow: Flow) -> Option<Box<Followed>> {
    match flow {
        Flow::Followed(followed) => Some(followed),
        Flow::Over | Flow::Candidate(_) => None,
    }
}

fn names(all: &mut HashMap<SocketAddr, Names>, server: SocketAddr) -> &mut Names {
    if all.len() >= MAX_SERVERS && !all.contains_key(&server) {
        all.clear();
    }
    all.entry(server).or_default()
}
