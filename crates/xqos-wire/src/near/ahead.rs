// SPDX-License-Identifier: MIT
//! The proxy's own connections, which send queries ahead of the program: one scout that stays, and several for fonts
//! that close once the fonts have arrived.

use super::client::{Got, push, read};
use rustix::event::PollFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;
use xqos_near::setup::Cookie;
use xqos_near::{Memory, Scout, Store};

/// Number of font connections. Four carry 1.3 MB/s over ssh at 200 ms, which is more than 10 Mb/s.
pub const FONT_CONNECTIONS: usize = 4;

/// A scout and its socket.
#[derive(Debug)]
pub struct Ahead {
    socket: OwnedFd,
    pub scout: Scout,
    pub last_heard: Instant,
}

impl Ahead {
    pub fn new(socket: OwnedFd, scout: Scout) -> Ahead {
        let mut ahead = Ahead { socket, scout, last_heard: Instant::now() };
        ahead.say();
        ahead
    }

    /// The socket and the events to poll for.
    pub fn interest(&mut self) -> (BorrowedFd<'_>, PollFlags) {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, !self.scout.to_server().bytes().is_empty());
        (self.socket.as_fd(), flags)
    }

    /// Handles data from the server, and sends what follows from it.
    pub fn hear(&mut self, buffer: &mut [u8], store: &mut Store) {
        self.last_heard = Instant::now();
        match read(&self.socket, buffer) {
            Got::Bytes(count) => self.scout.from_server(&buffer[..count], store),
            Got::Nothing => {}
            Got::End => self.scout.end(store),
        }
        self.say();
    }

    /// Sends the scout's pending requests. A lost server is noticed when reading.
    pub fn say(&mut self) {
        push(&self.socket, self.scout.to_server(), &mut false);
    }
}

/// A connection for some of the fonts. It sends its queries once the first connection has loaded all fonts.
#[derive(Debug)]
pub struct Fonts {
    pub ahead: Ahead,
    to_ask: Option<Memory>,
}

impl Fonts {
    pub fn new(socket: OwnedFd, cookie: &Cookie, fonts: Memory) -> Fonts {
        Fonts { ahead: Ahead::new(socket, Scout::for_fonts(cookie)), to_ask: Some(fonts) }
    }

    pub fn ask(&mut self, store: &mut Store) {
        if let Some(fonts) = self.to_ask.take() {
            self.ahead.scout.ask(&fonts, store);
            self.ahead.say();
        }
    }

    /// Whether all replies have arrived or can no longer arrive.
    pub fn is_over(&self) -> bool {
        self.ahead.scout.has_ended() || self.to_ask.is_none() && self.ahead.scout.is_ready()
    }
}
