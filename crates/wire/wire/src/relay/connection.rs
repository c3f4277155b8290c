// SPDX-License-Identifier: MIT
//! One client's connection through the relay, both ways. Each direction can end separately.
//!
//! | event | action |
//! |---|---|
//! | an end sends data | forward immediately; if the other end does not accept everything, stop reading until it has |
//! | an end shuts down its sending side | shut down towards the other end, after all waiting data |
//! | an end accepts no more data | drop data that waits for this end, but still forward what it sends |
//! | the server has closed its socket, or a socket fails | close both ends, after all data that waits for the client |

use super::Relayed;
use super::upstream::Socket;
use crate::background::Clock;
use crate::capture::conversation::{Conversation, MAX_BYTES};
use crate::descriptors;
use crate::observe::Direction;
use crate::recording::Recorder;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum bytes of one read: the payload of a packet.
pub const PIECE_BYTES: usize = MAX_BYTES;

#[derive(Debug, Default)]
struct DirectionState {
    /// Bytes that the receiver has not accepted yet.
    waiting: Vec<u8>,
    files: Vec<OwnedFd>,
    /// True if the sender will send no more, or the receiver is gone.
    has_ended: bool,
    /// True if the sender has closed the socket, not only shut down sending.
    is_gone: bool,
    /// True if the end of the direction was recorded, as FIN or reset.
    is_recorded: bool,
}

/// Where the data of all connections is counted and recorded.
#[derive(Debug)]
pub struct Accounting<'a> {
    pub clock: Clock,
    pub relayed: &'a mut Relayed,
    pub recorder: &'a mut Recorder,
}

#[derive(Debug)]
pub struct RelayedConnection {
    /// The sockets to the client and to the server.
    sockets: [Socket; 2],
    states: [DirectionState; 2],
    pub packets: Conversation,
    is_broken: bool,
}

impl RelayedConnection {
    pub fn new(client: Socket, server: Socket, packets: Conversation) -> RelayedConnection {
        RelayedConnection { sockets: [client, server], states: Default::default(), packets, is_broken: false }
    }

    pub fn poll_events(&self) -> [(BorrowedFd<'_>, PollFlags); 2] {
        [0, 1].map(|end| {
            let (sent, received) = (&self.states[end], &self.states[1 - end]);
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, !sent.has_ended && sent.waiting.is_empty());
            flags.set(PollFlags::OUT, !received.waiting.is_empty());
            (self.sockets[end].fd.as_fd(), flags)
        })
    }

    /// True if no more data can follow.
    pub fn is_over(&self) -> bool {
        let [requests, replies] = &self.states;
        let is_empty = |state: &DirectionState| state.has_ended && state.waiting.is_empty();
        self.is_broken || is_empty(replies) && (is_empty(requests) || replies.is_gone)
    }

    /// True if the client has closed it.
    pub fn is_closing(&self) -> bool {
        self.states[0].has_ended
    }

    pub fn unrecorded_end(&self) -> Option<Direction> {
        Direction::BOTH.into_iter().find(|&direction| !self.is_broken && !self.states[direction as usize].is_recorded)
    }

    /// Forwards data between the ready sockets, then counts and records it.
    pub fn serve(&mut self, ready: [PollFlags; 2], buffer: &mut [u8], accounting: &mut Accounting<'_>) {
        for direction in Direction::BOTH {
            let (from, to) = (direction as usize, 1 - direction as usize);
            if ready[to].intersects(PollFlags::OUT | PollFlags::ERR | PollFlags::HUP)
                && !self.states[from].waiting.is_empty()
                && self.deliver(direction)
            {
                accounting.recorder.take(&self.packets.acknowledge(direction, accounting.clock.now_ns(), true));
            }
            let is_hung_up = ready[from].contains(PollFlags::HUP);
            if !ready[from].is_empty() && !self.states[from].has_ended && self.states[from].waiting.is_empty() {
                self.forward(direction, is_hung_up, buffer, accounting);
            }
        }
    }

    fn forward(&mut self, direction: Direction, is_hung_up: bool, buffer: &mut [u8], accounting: &mut Accounting<'_>) {
        let Accounting { clock, relayed, recorder } = accounting;
        let (bytes, mut files) = match descriptors::receive(&self.sockets[direction as usize].fd, buffer) {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => {
                self.is_broken = true;
                return recorder.take(&self.packets.reset(direction, clock.now_ns()));
            }
            Ok((0, _)) => {
                let ended = &mut self.states[direction as usize];
                (ended.has_ended, ended.is_gone, ended.is_recorded) = (true, is_hung_up, true);
                self.forward_end(direction);
                return recorder.take(&self.packets.finish(direction, clock.now_ns()));
            }
            Ok(received) => received,
        };
        let (arrived_ns, received) = (clock.now_ns(), files.len());
        let to = &self.sockets[1 - direction as usize];
        if !to.takes_files {
            files.clear();
        }
        relayed.bytes[direction as usize] += bytes as u64;
        relayed.files += files.len() as u64;
        relayed.files_lost += (received - files.len()) as u64;
        let state = &mut self.states[direction as usize];
        state.files = files;
        let is_delivered = match send(to, &buffer[..bytes], &mut state.files) {
            Ok(sent) => {
                state.waiting.extend(&buffer[sent..bytes]);
                sent == bytes
            }
            Err(()) => {
                state.drop_all();
                false
            }
        };
        recorder.take(&self.packets.data(direction, arrived_ns, &buffer[..bytes]));
        recorder.take(&self.packets.acknowledge(direction, clock.now_ns(), is_delivered));
    }

    /// Sends waiting data. Returns whether all of it was sent.
    fn deliver(&mut self, direction: Direction) -> bool {
        let state = &mut self.states[direction as usize];
        match send(&self.sockets[1 - direction as usize], &state.waiting, &mut state.files) {
            Ok(sent) => _ = state.waiting.drain(..sent),
            Err(()) => state.drop_all(),
        }
        let has_gone = state.waiting.is_empty();
        self.forward_end(direction);
        has_gone
    }

    fn forward_end(&mut self, direction: Direction) {
        let state = &self.states[direction as usize];
        if state.has_ended && state.waiting.is_empty() {
            // This fails harmlessly if the receiver is already gone.
            let _ = shutdown(&self.sockets[1 - direction as usize].fd, Shutdown::Write);
        }
    }
}

impl DirectionState {
    /// Drops all waiting data, because the receiver accepts no more.
    fn drop_all(&mut self) {
        self.waiting.clear();
        self.files.clear();
        self.has_ended = true;
    }
}

/// Sends as much as the socket accepts, with the file descriptors on the first byte. Fails if the socket has failed.
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
