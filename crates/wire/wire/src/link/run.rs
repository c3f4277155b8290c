// SPDX-License-Identifier: MIT
//! The emulator's loop: passes packets of each device through a [`Shaper`] to the other device, on one thread.
//!
//! The loop sleeps until a packet arrives or is due, then handles all packets that are due. A late wakeup does not
//! shift later packets: the shaper computes each packet's time.

use super::Error;
use super::log::{LinkTotals, LogWriter};
use super::shape::{Shape, Shaper};
use crate::background::{Background, Clock};
use crate::observe::Direction;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Maximum number of packets read from one device before the other device is served.
const BATCH: usize = 64;
const MAX_PACKET_BYTES: usize = 65_535;

/// The thread of a running link, which returns the totals of requests and replies.
pub type Emulator = Background<Result<[LinkTotals; 2], Error>>;

/// Starts the thread with the devices of client and server.
pub fn start([client, server]: [File; 2], shape: Shape, seed: u64, log: Option<LogWriter>) -> io::Result<Emulator> {
    let directions = [
        LinkDirection { from: client, shaper: Shaper::new(shape, Direction::Requests, seed) },
        LinkDirection { from: server, shaper: Shaper::new(shape, Direction::Replies, seed) },
    ];
    let mut link = Loop { directions, log, totals: Default::default(), clock: Clock::new() };
    Background::start("link", move |stop| {
        xqos_sys::wake_on_time();
        link.run(&stop).map_err(Error::Run)?;
        link.finish()
    })
}

/// One direction: the device from which its packets come, and their shaper.
#[derive(Debug)]
struct LinkDirection {
    from: File,
    shaper: Shaper<Box<[u8]>>,
}

#[derive(Debug)]
struct Loop {
    /// Requests and replies. Each direction writes to the other direction's device.
    directions: [LinkDirection; 2],
    log: Option<LogWriter>,
    totals: [LinkTotals; 2],
    clock: Clock,
}

impl Loop {
    fn run(&mut self, stop: &UnixStream) -> io::Result<()> {
        let mut buffer = vec![0; MAX_PACKET_BYTES];
        loop {
            let timeout = self.until_next();
            let [requests, replies] = [0, 1].map(|direction| self.directions[direction].from.as_fd());
            let [requests, replies, stop] = xqos_sys::readable([requests, replies, stop.as_fd()], timeout)?;
            for (direction, is_ready) in [requests, replies].into_iter().enumerate() {
                if is_ready {
                    self.take(direction, &mut buffer)?;
                }
            }
            // All packets that were sent before the end have been read, so they count.
            if stop {
                return Ok(());
            }
            for direction in 0..2 {
                self.deliver(direction);
            }
        }
    }

    /// Time until the next packet is due. Flushes the log before a sleep.
    fn until_next(&mut self) -> Option<Duration> {
        let next_ns = self.directions.iter().filter_map(|direction| direction.shaper.next_due_ns()).min();
        let left = next_ns.map(|next_ns| Duration::from_nanos(next_ns.saturating_sub(self.clock.now_ns())));
        if let Some(log) = self.log.as_mut().filter(|_| left != Some(Duration::ZERO)) {
            log.flush();
        }
        left
    }

    fn take(&mut self, direction: usize, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            let length = match self.directions[direction].from.read(buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let now_ns = self.clock.now_ns();
            self.directions[direction].shaper.arrive(now_ns, length as u32, buffer[..length].into());
        }
        self.log_entries(direction);
        Ok(())
    }

    fn deliver(&mut self, direction: usize) {
        loop {
            let now_ns = self.clock.now_ns();
            let Some(packet) = self.directions[direction].shaper.deliver(now_ns) else { break };
            // A device that was set down refuses the packet, which does not count as lost on the link.
            let _ = self.directions[1 - direction].from.write(&packet);
        }
        self.log_entries(direction);
    }

    fn log_entries(&mut self, direction: usize) {
        for entry in self.directions[direction].shaper.take_entries() {
            self.totals[direction].add(&entry);
            if let Some(log) = &mut self.log {
                log.add(entry);
            }
        }
    }

    fn finish(mut self) -> Result<[LinkTotals; 2], Error> {
        let now_ns = self.clock.now_ns();
        for direction in 0..2 {
            self.directions[direction].shaper.close(now_ns);
            self.log_entries(direction);
        }
        self.log.map_or(Ok(()), LogWriter::finish).map_err(Error::Log)?;
        Ok(self.totals)
    }
}
