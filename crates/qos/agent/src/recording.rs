// SPDX-License-Identifier: MIT
//! Reads a server's records into memory, for `xqos trace record` and `xqos why`.
//!
//! A [`Source`] reads the server's ring. It asks the server to write its complete state again after records were lost,
//! and whenever a new segment of a [`Backlog`] must begin. A backlog keeps the latest records, in segments that each
//! begin with the complete state, so that replay can start at any segment after the oldest ones are dropped.

use crate::error::Result;
use crate::session::Session;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use xqos_abi::ring::{Next, RingReader};
use xqos_abi::trace::{Entry, Event, Level, Words};
use xqos_client::Error;
use xqos_core::Time;
use xqos_sys as sys;
use xqos_trace::file::Header;

/// Polling interval of the ring: a tenth of the time that a busy server takes to fill it.
pub const READ_EVERY: Duration = Duration::from_millis(20);

pub const ENDED: &str = "the server ended the trace because it was reset or stopped, or because xqos stepped aside";
const GONE: &str = "the server is gone or has closed the connection: the trace ends there";

#[derive(Debug)]
pub struct Source<'a> {
    session: &'a Session,
    reader: RingReader,
    level: Level,
    capacity: u32,
    last: Time,
    /// Why there are no more records.
    pub ended: Option<&'static str>,
}

impl<'a> Source<'a> {
    /// Starts the trace. `capacity`: the size of the ring, if it has no reader yet; 0: the server's choice.
    pub fn open(session: &'a Session, level: Level, capacity: u32) -> Result<Source<'a>> {
        let reader = session.control.start_trace(level, capacity)?;
        Ok(Source { session, reader, level, capacity, last: Time(1), ended: None })
    }

    /// The header of a file with these records.
    pub fn header(&self, server_pid: u32, kernel: bool) -> Result<Header> {
        Ok(Header {
            xqos: env!("CARGO_PKG_VERSION").to_owned(),
            host: sys::host_name(),
            display: self.session.display.clone(),
            server_pid,
            realtime_offset_ns: sys::realtime_offset_ns(),
            level: self.level.name().to_owned(),
            extensions: self.session.names()?.extensions().collect(),
            kernel,
        })
    }

    /// The records since the last call. Sets `ended` if no more will follow.
    pub fn read(&mut self) -> Result<Vec<Words>> {
        // Check this before reading, so that everything that the server wrote before it exited is read.
        let is_gone = self.session.control.next_notify().is_err();
        let (mut records, mut lost) = (Vec::new(), false);
        loop {
            match self.reader.read() {
                Next::Record(words) => {
                    self.last = Time(words[0]);
                    records.push(words);
                }
                Next::Lost(count) => {
                    records.push(Event { at: self.last, what: Entry::Lost { records: count } }.encode());
                    lost = true;
                }
                Next::Nothing => break,
                Next::Ended => {
                    self.ended = Some(ENDED);
                    break;
                }
            }
        }
        if is_gone {
            self.ended.get_or_insert(GONE);
        }
        if lost && self.ended.is_none() {
            self.begin_anew()?;
        }
        Ok(records)
    }

    /// Requests the complete state again, to begin a new segment or to continue after records were lost.
    pub fn begin_anew(&mut self) -> Result<()> {
        // The existing reader continues; its next records are the complete state.
        match self.session.control.renew_trace(self.level, self.capacity) {
            Err(Error::Connection(_) | Error::Socket(_)) => {
                self.ended.get_or_insert(GONE);
                Ok(())
            }
            begun => Ok(begun?),
        }
    }
}

/// Merges the kernel's events into the server's records, which stay in the order of the scheduler's calls.
pub fn merged(records: Vec<Words>, of_kernel: Vec<Event>) -> impl Iterator<Item = Words> {
    let mut of_kernel = of_kernel.into_iter().peekable();
    let mut records = records.into_iter().peekable();
    std::iter::from_fn(move || match records.peek() {
        Some(words) => match of_kernel.next_if(|event| event.at.0 <= words[0]) {
            Some(event) => Some(event.encode()),
            None => records.next(),
        },
        None => of_kernel.next().map(|event| event.encode()),
    })
}

/// The latest records, in segments that each begin with a `Begin` record.
#[derive(Debug, Default)]
pub struct Backlog {
    segments: VecDeque<(Instant, Vec<Words>)>,
}

impl Backlog {
    /// Adds a record, and drops the oldest segment once the others cover the time to keep.
    pub fn add(&mut self, words: Words, is_begin: bool, keep: Duration) {
        let now = Instant::now();
        if is_begin || self.segments.is_empty() {
            self.segments.push_back((now, Vec::new()));
            // The first segment may be dropped once the second one is old enough.
            while self.segments.get(1).is_some_and(|(began, _)| now - *began >= keep) {
                self.segments.pop_front();
            }
        }
        if let Some((_, segment)) = self.segments.back_mut() {
            segment.push(words);
        }
    }

    /// All records, oldest first.
    pub fn records(&self) -> impl Iterator<Item = Words> + '_ {
        self.segments.iter().flat_map(|(_, segment)| segment.iter().copied())
    }

    /// Limits the memory: drops the oldest segments while there are more than `records` records. Returns true if the
    /// newest segment has over a third of `records`: a new segment must begin soon.
    pub fn limit(&mut self, records: usize) -> bool {
        while self.segments.len() > 1 && self.segments.iter().map(|(_, segment)| segment.len()).sum::<usize>() > records
        {
            self.segments.pop_front();
        }
        self.segments.back().is_some_and(|(_, segment)| segment.len() > records / 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_keeps_whole_segments_within_its_limit() {
        let mut backlog = Backlog::default();
        let keep = Duration::from_secs(3600);
        for segment in 0..5 {
            (0..100).for_each(|at| backlog.add([segment * 100 + at, 0, 0, 0], at == 0, keep));
            assert!(backlog.limit(250), "a segment of 100 records is more than a third");
        }
        let kept: Vec<u64> = backlog.records().map(|words| words[0]).collect();
        assert_eq!(kept, (300..500).collect::<Vec<u64>>());
        assert!(!backlog.limit(1000));
    }

    #[test]
    fn events_of_the_kernel_are_merged_by_time_and_records_keep_their_order() {
        let record = |at| [at, 0, 0, 0];
        let event = |at| Event { at: Time(at), what: Entry::Wakeup { cpu: 0, thread: 7 } };
        let all = merged(vec![record(10), record(5), record(20)], vec![event(7), event(15), event(30)]);
        assert_eq!(all.map(|words| words[0]).collect::<Vec<_>>(), [7, 10, 5, 15, 20, 30]);
    }
}
