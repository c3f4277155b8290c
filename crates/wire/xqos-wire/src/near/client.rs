// SPDX-License-Identifier: MIT
//! One client of the proxy: its socket, the server's socket, and the data between them.
//!
//! | event | action |
//! |---|---|
//! | either end sends | the data is processed and forwarded immediately; reading pauses while the other queue is full |
//! | the program has closed | its remaining data goes to the server, then comparison requests, then end of file |
//! | the server has closed, or the stream is faulty | pending data goes to the program, and both sockets are closed |

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use xqos_near::shared::Outbox;
use xqos_near::{Near, Store};

/// The sockets of a client; both are non-blocking.
#[derive(Debug)]
pub struct ClientSockets {
    program: OwnedFd,
    server: OwnedFd,
    pub near: Near,
    /// Whether the program has closed it.
    pub program_is_gone: bool,
    server_is_gone: bool,
    /// Whether the proxy has sent end of file to the server.
    has_sent_end: bool,
}

pub enum ReadOutcome {
    Bytes(usize),
    Nothing,
    End,
}

impl ClientSockets {
    pub fn new(program: OwnedFd, server: OwnedFd, near: Near) -> ClientSockets {
        ClientSockets { program, server, near, program_is_gone: false, server_is_gone: false, has_sent_end: false }
    }

    pub fn interests(&mut self) -> [(BorrowedFd<'_>, PollFlags); 2] {
        let mut flags = [PollFlags::empty(); 2];
        flags[0].set(PollFlags::IN, !self.program_is_gone && self.near.takes_from_program());
        flags[0].set(PollFlags::OUT, !self.near.to_program().bytes().is_empty());
        flags[1].set(PollFlags::IN, !self.server_is_gone && self.near.takes_from_server());
        flags[1].set(PollFlags::OUT, !self.near.to_server().bytes().is_empty());
        [(self.program.as_fd(), flags[0]), (self.server.as_fd(), flags[1])]
    }

    /// Whether no more data can arrive or leave.
    pub fn is_over(&self) -> bool {
        let is_quiet = self.near.has_flushed_program() || self.program_is_gone;
        is_quiet && (self.server_is_gone || self.near.fault().is_some())
    }

    pub fn work(&mut self, ready: [PollFlags; 2], buffer: &mut [u8], now_ns: u64, store: &mut Store) {
        // Read from the server first, because its data may change the answers to the program.
        if !ready[1].is_empty() && !self.server_is_gone && self.near.takes_from_server() {
            match read(&self.server, buffer) {
                ReadOutcome::Bytes(count) => self.near.from_server(&buffer[..count], now_ns, store),
                ReadOutcome::Nothing => {}
                ReadOutcome::End => self.server_is_gone = true,
            }
        }
        if !ready[0].is_empty() && !self.program_is_gone && self.near.takes_from_program() {
            match read(&self.program, buffer) {
                ReadOutcome::Bytes(count) => self.near.from_program(&buffer[..count], now_ns, store),
                ReadOutcome::Nothing => {}
                ReadOutcome::End => self.program_is_gone = true,
            }
        }
        self.send(now_ns, store);
    }

    /// Processes the held question, if it can now be answered.
    pub fn go_on(&mut self, now_ns: u64, store: &mut Store) {
        if self.near.is_holding() {
            self.near.go_on(now_ns, store);
            self.send(now_ns, store);
        }
    }

    fn send(&mut self, now_ns: u64, store: &mut Store) {
        loop {
            let went = push(&self.server, self.near.to_server(), &mut self.server_is_gone)
                + push(&self.program, self.near.to_program(), &mut self.program_is_gone);
            if went == 0 {
                break;
            }
            // Now that the queues have room, process the program's data that was left unprocessed.
            self.near.go_on(now_ns, store);
        }
        let has_all = self.near.to_server().bytes().is_empty() && self.near.takes_from_program();
        if self.program_is_gone && has_all && !self.has_sent_end {
            if self.near.send_deferred(store) {
                return self.send(now_ns, store);
            }
            if self.near.is_verifying() && !self.server_is_gone {
                return;
            }
            // This fails only if the server has already closed.
            let _ = shutdown(&self.server, Shutdown::Write);
            self.has_sent_end = true;
        }
    }
}

pub fn read(socket: &OwnedFd, buffer: &mut [u8]) -> ReadOutcome {
    match recv(socket, buffer, RecvFlags::empty()) {
        Ok((0, _)) => ReadOutcome::End,
        Ok((count, _)) => ReadOutcome::Bytes(count),
        Err(Errno::AGAIN | Errno::INTR) => ReadOutcome::Nothing,
        Err(_) => ReadOutcome::End,
    }
}

/// Sends as much as the socket accepts, and returns the number of bytes sent.
pub fn push(socket: &OwnedFd, outbox: &mut Outbox, is_gone: &mut bool) -> usize {
    let mut went = 0;
    while !outbox.bytes().is_empty() {
        match send(socket, outbox.bytes(), SendFlags::NOSIGNAL) {
            Ok(count) => {
                outbox.advance(count);
                went += count;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(_) => {
                outbox.clear();
                *is_gone = true;
            }
        }
    }
    went
}
