//! The trace that leaves the server: the ring and who reads it.
//!
//! Without a reader there is no ring, and each place that could write tests one flag. One ring serves all readers; it
//! carries as much as the most curious of them asked for, and ends when the last one stops or disconnects. The recorded
//! scheduler writes to it at decisions, [`crate::host::dix::per_request`] at each request while somebody asked for that.

use std::cell::UnsafeCell;
use std::io;
use std::os::fd::OwnedFd;
use xqos_abi::ring::{DEFAULT_CAPACITY, Writer};
use xqos_abi::trace::{Event, Level, What};
use xqos_core::{ClientId, Time};

#[derive(Debug)]
struct Trace {
    ring: Writer,
    readers: Vec<(ClientId, Level)>,
}

/// Touched on the server's thread only.
struct OnServerThread(UnsafeCell<Option<Trace>>);

// SAFETY: the server dispatches, and calls our hooks, on one thread.
unsafe impl Sync for OnServerThread {}

static TRACE: OnServerThread = OnServerThread(UnsafeCell::new(None));

fn trace() -> &'static mut Option<Trace> {
    // SAFETY: on the server's thread; no function of this file calls another one while it holds the reference, but for
    // this one.
    unsafe { &mut *TRACE.0.get() }
}

/// What a reader is given.
#[derive(Debug)]
pub struct Handed {
    pub fd: OwnedFd,
    pub capacity: u32,
    /// Number of its `Begin`.
    pub first: u64,
}

/// Somebody reads.
pub fn is_on() -> bool {
    trace().is_some()
}

/// As much as any reader asked for.
pub fn level() -> Option<Level> {
    trace().as_ref().and_then(|trace| trace.readers.iter().map(|&(_, level)| level).max())
}

/// Writes a fact down, if anybody reads.
#[inline]
pub fn note(at: Time, what: What) {
    if let Some(trace) = trace() {
        trace.ring.push(Event { at, what }.encode());
    }
}

/// Adds a reader, or changes its level. The ring's size is that of the first one; `snapshot`: the scheduler as words,
/// which the new reader begins with.
pub fn begin(reader: ClientId, level: Level, capacity: u32, snapshot: &[u64], now: Time) -> io::Result<Handed> {
    if trace().is_none() {
        let asked = if capacity == 0 { DEFAULT_CAPACITY } else { capacity };
        // Room for what a reader begins with, several times over.
        let least = u32::try_from(4 * snapshot.len()).unwrap_or(u32::MAX);
        let ring = Writer::create(asked.max(least))?;
        *trace() = Some(Trace { ring, readers: Vec::new() });
    }
    let Some(trace) = trace() else { return Err(io::ErrorKind::Other.into()) };
    let fd = trace.ring.fd().try_clone_to_owned()?;
    trace.readers.retain(|&(other, _)| other != reader);
    trace.readers.push((reader, level));
    let first = trace.ring.head();
    let level = trace.readers.iter().map(|&(_, level)| level).max().unwrap_or(level);
    let (server_pid, words) = (std::process::id(), snapshot.len() as u32);
    trace.ring.push(Event { at: now, what: What::Begin { level, server_pid, words } }.encode());
    for (index, pair) in snapshot.chunks(2).enumerate() {
        let words = [pair[0], pair.get(1).copied().unwrap_or(0)];
        trace.ring.push(Event { at: now, what: What::State { index: index as u32, words } }.encode());
    }
    Ok(Handed { fd, capacity: trace.ring.capacity(), first })
}

/// A reader has had enough, or is gone. True where it was one.
pub fn end(reader: ClientId, now: Time) -> bool {
    let Some(open) = trace() else { return false };
    let before = open.readers.len();
    open.readers.retain(|&(other, _)| other != reader);
    let was_one = open.readers.len() < before;
    if open.readers.is_empty() {
        close(now);
    }
    was_one
}

/// Ends the trace for everybody.
pub fn close(now: Time) {
    note(now, What::End);
    *trace() = None;
}
