// SPDX-License-Identifier: MIT
//! The proxy's own connections, which ask ahead: one scout that stays, and for fonts some more until they are here.

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;
use xqos_near::setup::Cookie;
use xqos_near::{Memory, Scout, Store};

/// Connections for fonts. Four carry 1.3 MB in a second over ssh at 200 ms, which is more than 10 Mb/s.
pub const FONT_CONNECTIONS: usize = 4;

/// A scout, and its socket.
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

    /// What is to be waited for.
    pub fn interest(&mut self) -> (BorrowedFd<'_>, PollFlags) {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, !self.scout.to_server().is_empty());
        (self.socket.as_fd(), flags)
    }

    /// Takes what the server said, and sends what follows from it.
    pub fn hear(&mut self, buffer: &mut [u8], store: &mut Store) {
        self.last_heard = Instant::now();
        match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => self.scout.end(store),
            Ok((count, _)) => self.scout.from_server(&buffer[..count], store),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.scout.end(store),
        }
        self.say();
    }

    /// Sends what the scout has to say.
    pub fn say(&mut self) {
        let out = self.scout.to_server();
        while !out.is_empty() {
            match send(&self.socket, out, SendFlags::NOSIGNAL) {
                Ok(count) => _ = out.drain(..count),
                Err(Errno::INTR) => {}
                // One that is gone is found out by reading.
                Err(_) => break,
            }
        }
    }
}

/// A connection for some of the fonts, which asks when the first one has had all of them loaded.
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

    /// Nothing more can come.
    pub fn is_over(&self) -> bool {
        self.ahead.scout.has_ended() || self.to_ask.is_none() && self.ahead.scout.is_ready()
    }
}
