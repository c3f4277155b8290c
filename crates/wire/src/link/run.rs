// SPDX-License-Identifier: MIT
//! The loop of the emulator: packets from one device through a [`Shaper`] to the other, in both directions, on one thread.
//!
//! It sleeps until a packet comes or one is due, and does all that is due then. What is late on waking is not made up
//! for by the packets behind: each has a time of its own, by the arithmetic of the shaper.

use super::Error;
use super::log::{Totals, Writer};
use super::shape::{Shape, Shaper};
use crate::observe::Direction;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Packets that are read from one device before the other one has its turn.
const BATCH: usize = 64;
/// The largest packet that IP has.
const MAX_PACKET_BYTES: usize = 65_535;

/// The thread that runs a link. Its drop ends it.
#[derive(Debug)]
pub struct Emulator {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Result<[Totals; 2], Error>>>,
}

impl Emulator {
    /// `tuns`: the client's and the server's. `epoch` is the zero of the log's clock as the writer was told.
    pub fn start(
        tuns: [File; 2],
        shape: Shape,
        seed: u64,
        log: Option<Writer>,
        epoch: Instant,
    ) -> io::Result<Emulator> {
        let (ours, theirs) = UnixStream::pair()?;
        let [client, server] = tuns;
        let ways = [
            Way { from: client, shaper: Shaper::new(shape, Direction::Requests, seed) },
            Way { from: server, shaper: Shaper::new(shape, Direction::Replies, seed) },
        ];
        let mut link = Loop { ways, log, totals: Default::default(), epoch, stop: theirs };
        let run = move || {
            xqos_sys::be_punctual();
            link.run().map_err(Error::Run)?;
            link.finish()
        };
        let thread = thread::Builder::new().name("link".to_owned()).spawn(run)?;
        Ok(Emulator { stop: Some(ours), thread: Some(thread) })
    }

    /// Ends it; what went over the link, requests and replies.
    pub fn finish(mut self) -> Result<[Totals; 2], Error> {
        self.end().unwrap_or_else(|| Ok(Default::default()))
    }

    fn end(&mut self) -> Option<Result<[Totals; 2], Error>> {
        self.stop = None;
        let ended = self.thread.take()?.join();
        Some(ended.unwrap_or_else(|_| Err(Error::Run(io::Error::other("its thread panicked")))))
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// One direction: where its packets come from, and what happens to them.
#[derive(Debug)]
struct Way {
    from: File,
    shaper: Shaper<Box<[u8]>>,
}

#[derive(Debug)]
struct Loop {
    /// Requests and replies; what one sends goes to the device of the other.
    ways: [Way; 2],
    log: Option<Writer>,
    totals: [Totals; 2],
    epoch: Instant,
    stop: UnixStream,
}

impl Loop {
    fn run(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; MAX_PACKET_BYTES];
        loop {
            let timeout = self.until_next();
            let [requests, replies] = [0, 1].map(|way| self.ways[way].from.as_fd());
            let [requests, replies, stop] = xqos_sys::readable([requests, replies, self.stop.as_fd()], timeout)?;
            if stop {
                return Ok(());
            }
            for (way, is_ready) in [requests, replies].into_iter().enumerate() {
                if is_ready {
                    self.take(way, &mut buffer)?;
                }
            }
            for way in 0..2 {
                self.deliver(way);
            }
        }
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Before a sleep the log gets what there is.
    fn until_next(&mut self) -> Option<Duration> {
        let next_ns = self.ways.iter().filter_map(|way| way.shaper.next_due_ns()).min();
        let left = next_ns.map(|next_ns| Duration::from_nanos(next_ns.saturating_sub(self.now_ns())));
        if let Some(log) = self.log.as_mut().filter(|_| left != Some(Duration::ZERO)) {
            log.rest();
        }
        left
    }

    fn take(&mut self, way: usize, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            let length = match self.ways[way].from.read(buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let now_ns = self.now_ns();
            self.ways[way].shaper.arrive(now_ns, length as u32, buffer[..length].into());
        }
        self.note(way);
        Ok(())
    }

    fn deliver(&mut self, way: usize) {
        loop {
            let now_ns = self.now_ns();
            let Some(packet) = self.ways[way].shaper.deliver(now_ns) else { break };
            // A device that somebody has set down refuses it: lost behind the link, not on it.
            let _ = self.ways[1 - way].from.write(&packet);
        }
        self.note(way);
    }

    fn note(&mut self, way: usize) {
        for entry in self.ways[way].shaper.take_entries() {
            self.totals[way].add(&entry);
            if let Some(log) = &mut self.log {
                log.add(entry);
            }
        }
    }

    fn finish(mut self) -> Result<[Totals; 2], Error> {
        let now_ns = self.now_ns();
        for way in 0..2 {
            self.ways[way].shaper.close(now_ns);
            self.note(way);
        }
        self.log.map_or(Ok(()), Writer::finish).map_err(Error::Log)?;
        Ok(self.totals)
    }
}
