// SPDX-License-Identifier: MIT
//! The trace for readers outside the server: the ring buffer and its readers.
//!
//! Without a reader there is no ring, and each trace point tests a single pointer. All readers share one ring. It
//! carries the highest level of detail that any of them asked for, and ends when the last reader stops or disconnects.

use std::io;
use std::os::fd::OwnedFd;
use xqos_abi::ring::{DEFAULT_CAPACITY, RingWriter};
use xqos_abi::trace::{Entry, Event, Level};
use xqos_core::{ClientId, Time};

/// The ring buffer, while there are readers.
#[derive(Debug, Default)]
pub struct Tracer(Option<Open>);

#[derive(Debug)]
struct Open {
    ring: RingWriter,
    readers: Vec<(ClientId, Level)>,
}

/// Passed to a reader when its trace starts.
#[derive(Debug)]
pub struct TraceHandle {
    pub fd: OwnedFd,
    pub capacity: u32,
    /// The record number of the reader's `Begin`.
    pub first: u64,
}

impl Tracer {
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub fn level(&self) -> Option<Level> {
        self.0.as_ref().and_then(|open| open.readers.iter().map(|&(_, level)| level).max())
    }

    /// Records an event if there are readers.
    #[inline]
    pub fn note(&mut self, at: Time, what: Entry) {
        if let Some(open) = &mut self.0 {
            open.ring.push(Event { at, what }.encode());
        }
    }

    /// Adds a reader or changes its level. The first reader determines the ring's capacity. `snapshot` is the
    /// scheduler's state as words, recorded for the new reader.
    pub fn begin(
        &mut self,
        reader: ClientId,
        level: Level,
        capacity: u32,
        snapshot: &[u64],
        now: Time,
    ) -> io::Result<TraceHandle> {
        let open = match &mut self.0 {
            Some(open) => open,
            None => {
                let asked = if capacity == 0 { DEFAULT_CAPACITY } else { capacity };
                // Leave room for several snapshots.
                let least = u32::try_from(4 * snapshot.len()).unwrap_or(u32::MAX);
                let ring = RingWriter::create(asked.max(least))?;
                self.0.insert(Open { ring, readers: Vec::new() })
            }
        };
        let fd = open.ring.fd().try_clone_to_owned()?;
        open.readers.retain(|&(other, _)| other != reader);
        open.readers.push((reader, level));
        let first = open.ring.head();
        let level = open.readers.iter().map(|&(_, level)| level).max().unwrap_or(level);
        let (server_pid, words) = (std::process::id(), snapshot.len() as u32);
        open.ring.push(Event { at: now, what: Entry::Begin { level, server_pid, words } }.encode());
        for (index, pair) in snapshot.chunks(2).enumerate() {
            let words = [pair[0], pair.get(1).copied().unwrap_or(0)];
            open.ring.push(Event { at: now, what: Entry::State { index: index as u32, words } }.encode());
        }
        Ok(TraceHandle { fd, capacity: open.ring.capacity(), first })
    }

    /// Removes a reader. Returns false if this client was not a reader.
    pub fn end(&mut self, reader: ClientId, now: Time) -> bool {
        let Some(open) = &mut self.0 else { return false };
        let before = open.readers.len();
        open.readers.retain(|&(other, _)| other != reader);
        let was_one = open.readers.len() < before;
        if open.readers.is_empty() {
            self.close(now);
        }
        was_one
    }

    pub fn close(&mut self, now: Time) {
        self.note(now, Entry::End);
        self.0 = None;
    }
}
