// SPDX-License-Identifier: MIT
//! The trace that leaves the server: the ring and who reads it.
//!
//! Without a reader there is no ring, and each place that could write tests one pointer. One ring serves all readers; it
//! carries as much as the most curious of them asked for, and ends when the last one stops or disconnects.

use std::io;
use std::os::fd::OwnedFd;
use xqos_abi::ring::{DEFAULT_CAPACITY, Writer};
use xqos_abi::trace::{Event, Level, What};
use xqos_core::{ClientId, Time};

/// The ring, while anybody reads.
#[derive(Debug, Default)]
pub struct Tracer(Option<Open>);

#[derive(Debug)]
struct Open {
    ring: Writer,
    readers: Vec<(ClientId, Level)>,
}

/// What a reader is given.
#[derive(Debug)]
pub struct Handed {
    pub fd: OwnedFd,
    pub capacity: u32,
    /// Number of its `Begin`.
    pub first: u64,
}

impl Tracer {
    /// Somebody reads.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// As much as any reader asked for.
    pub fn level(&self) -> Option<Level> {
        self.0.as_ref().and_then(|open| open.readers.iter().map(|&(_, level)| level).max())
    }

    /// Writes a fact down, if anybody reads.
    #[inline]
    pub fn note(&mut self, at: Time, what: What) {
        if let Some(open) = &mut self.0 {
            open.ring.push(Event { at, what }.encode());
        }
    }

    /// Adds a reader, or changes its level. The ring's size is that of the first one; `snapshot`: the scheduler as words,
    /// which the new reader begins with.
    pub fn begin(
        &mut self,
        reader: ClientId,
        level: Level,
        capacity: u32,
        snapshot: &[u64],
        now: Time,
    ) -> io::Result<Handed> {
        let open = match &mut self.0 {
            Some(open) => open,
            None => {
                let asked = if capacity == 0 { DEFAULT_CAPACITY } else { capacity };
                // Room for what a reader begins with, several times over.
                let least = u32::try_from(4 * snapshot.len()).unwrap_or(u32::MAX);
                let ring = Writer::create(asked.max(least))?;
                self.0.insert(Open { ring, readers: Vec::new() })
            }
        };
        let fd = open.ring.fd().try_clone_to_owned()?;
        open.readers.retain(|&(other, _)| other != reader);
        open.readers.push((reader, level));
        let first = open.ring.head();
        let level = open.readers.iter().map(|&(_, level)| level).max().unwrap_or(level);
        let (server_pid, words) = (std::process::id(), snapshot.len() as u32);
        open.ring.push(Event { at: now, what: What::Begin { level, server_pid, words } }.encode());
        for (index, pair) in snapshot.chunks(2).enumerate() {
            let words = [pair[0], pair.get(1).copied().unwrap_or(0)];
            open.ring.push(Event { at: now, what: What::State { index: index as u32, words } }.encode());
        }
        Ok(Handed { fd, capacity: open.ring.capacity(), first })
    }

    /// A reader has had enough, or is gone. True where it was one.
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

    /// Ends the trace for everybody.
    pub fn close(&mut self, now: Time) {
        self.note(now, What::End);
        self.0 = None;
    }
}
