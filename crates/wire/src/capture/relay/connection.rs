// SPDX-License-Identifier: MIT
//! One client's connection through the relay, both ways, with half-closed ends as they come.
//!
//! | what happens | then |
//! |---|---|
//! | an end sends | it goes on at once; what the other end does not take waits, and nothing more is read until it did |
//! | an end says that nothing follows | so does the relay to the other end, after what waits |
//! | an end takes nothing any more | what waits for it is dropped, and what it sent itself still goes on |
//! | the server is gone for good, or a socket breaks | both ends are closed, after what waits for the client |

use super::super::conversation::{Conversation, MAX_BYTES};
use super::Relayed;
use super::upstream::Socket;
use crate::background::Clock;
use crate::capture::record::Recorder;
use crate::descriptors;
use crate::observe::Direction;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What one read takes: a packet.
pub const PIECE_BYTES: usize = MAX_BYTES;

/// One direction.
#[derive(Debug, Default)]
struct Way {
    /// What the receiver has not taken yet.
    waiting: Vec<u8>,
    files: Vec<OwnedFd>,
    /// The sender said that nothing follows, or the receiver is gone.
    has_ended: bool,
    /// The sender is gone, not only silent.
    is_gone: bool,
    /// The end was told, as one that was said or one that broke.
    is_told: bool,
}

/// Both sockets of a client.
#[derive(Debug)]
pub struct Connection {
    /// The client's and the server's.
    sockets: [Socket; 2],
    ways: [Way; 2],
    pub talk: Conversation,
    is_broken: bool,
}

impl Connection {
    pub fn new(client: Socket, server: Socket, talk: Conversation) -> Connection {
        Connection { sockets: [client, server], ways: Default::default(), talk, is_broken: false }
    }

    /// What is to be waited for at the client's and at the server's end.
    pub fn interests(&self) -> [(BorrowedFd<'_>, PollFlags); 2] {
        [0, 1].map(|end| {
            let (sent, received) = (&self.ways[end], &self.ways[1 - end]);
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, !sent.has_ended && sent.waiting.is_empty());
            flags.set(PollFlags::OUT, !received.waiting.is_empty());
            (self.sockets[end].fd.as_fd(), flags)
        })
    }

    /// Whether nothing can come any more.
    pub fn is_over(&self) -> bool {
        let [requests, replies] = &self.ways;
        let is_empty = |way: &Way| way.has_ended && way.waiting.is_empty();
        self.is_broken || is_empty(replies) && (is_empty(requests) || replies.is_gone)
    }

    /// A direction whose end nobody said.
    pub fn unsaid(&self) -> Option<Direction> {
        Direction::BOTH.into_iter().find(|&way| !self.is_broken && !self.ways[way as usize].is_told)
    }

    /// Does what the ends are ready for, counts it, and records it when it is done.
    pub fn work(
        &mut self,
        ready: [PollFlags; 2],
        buffer: &mut [u8],
        clock: &Clock,
        relayed: &mut Relayed,
        recorder: &mut Recorder<'_>,
    ) {
        for way in Direction::BOTH {
            let (from, to) = (way as usize, 1 - way as usize);
            if ready[to].intersects(PollFlags::OUT | PollFlags::ERR | PollFlags::HUP)
                && !self.ways[from].waiting.is_empty()
                && self.deliver(way)
            {
                recorder.take(&self.talk.acknowledge(way, clock.now_ns(), true));
            }
            let is_hung_up = ready[from].contains(PollFlags::HUP);
            if !ready[from].is_empty() && !self.ways[from].has_ended && self.ways[from].waiting.is_empty() {
                self.pass(way, is_hung_up, buffer, clock, relayed, recorder);
            }
        }
    }

    /// Reads once, and sends on what came.
    fn pass(
        &mut self,
        way: Direction,
        is_hung_up: bool,
        buffer: &mut [u8],
        clock: &Clock,
        relayed: &mut Relayed,
        recorder: &mut Recorder<'_>,
    ) {
        let (bytes, mut files) = match descriptors::receive(&self.sockets[way as usize].fd, buffer) {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => {
                self.is_broken = true;
                return recorder.take(&self.talk.reset(way, clock.now_ns()));
            }
            Ok((0, _)) => {
                let ended = &mut self.ways[way as usize];
                (ended.has_ended, ended.is_gone, ended.is_told) = (true, is_hung_up, true);
                self.pass_on_end(way);
                return recorder.take(&self.talk.finish(way, clock.now_ns()));
            }
            Ok(received) => received,
        };
        let (came_ns, came) = (clock.now_ns(), files.len());
        let to = &self.sockets[1 - way as usize];
        if !to.takes_files {
            files.clear();
        }
        relayed.bytes[way as usize] += bytes as u64;
        relayed.files += files.len() as u64;
        relayed.files_lost += (came - files.len()) as u64;
        let passed = &mut self.ways[way as usize];
        passed.files = files;
        let is_delivered = match send(to, &buffer[..bytes], &mut passed.files) {
            Ok(sent) => {
                passed.waiting.extend(&buffer[sent..bytes]);
                sent == bytes
            }
            Err(()) => {
                passed.drop_all();
                false
            }
        };
        recorder.take(&self.talk.data(way, came_ns, &buffer[..bytes]));
        recorder.take(&self.talk.acknowledge(way, clock.now_ns(), is_delivered));
    }

    /// Sends what waits; whether all of it has gone.
    fn deliver(&mut self, direction: Direction) -> bool {
        let way = &mut self.ways[direction as usize];
        match send(&self.sockets[1 - direction as usize], &way.waiting, &mut way.files) {
            Ok(sent) => _ = way.waiting.drain(..sent),
            Err(()) => way.drop_all(),
        }
        let has_gone = way.waiting.is_empty();
        self.pass_on_end(direction);
        has_gone
    }

    fn pass_on_end(&mut self, direction: Direction) {
        let way = &self.ways[direction as usize];
        if way.has_ended && way.waiting.is_empty() {
            // Who is gone already need not be told.
            let _ = shutdown(&self.sockets[1 - direction as usize].fd, Shutdown::Write);
        }
    }
}

impl Way {
    /// Nobody takes it.
    fn drop_all(&mut self) {
        self.waiting.clear();
        self.files.clear();
        self.has_ended = true;
    }
}

/// Sends as much as is taken now, and the files with its first byte; an error is the end of that socket.
fn send(socket: &Socket, bytes: &[u8], files: &mut Vec<OwnedFd>) -> Result<usize, ()> {
    let mut sent = 0;
    while sent < bytes.len() {
        let borrowed: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        match descriptors::send(&socket.fd, &bytes[sent..], &borrowed) {
            Ok(count) => {
                sent += count;
                files.clear();
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(_) => return Err(()),
        }
    }
    Ok(sent)
}
