// SPDX-License-Identifier: MIT
//! The proxy's own connections, which send queries ahead of the program: one scout, which stays connected, and several
//! font connections, which close once the fonts have arrived.

use super::client::{ReadOutcome, push, read};
use super::connect::Connected;
use rustix::event::PollFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;
use xqos_near::scout::Source;
use xqos_near::{Questions, Scout, Store};

/// Number of font connections. Over ssh with a round trip of 200 ms, four carry 10.4 Mb/s and fill a link of 10 Mb/s.
pub const FONT_CONNECTIONS: usize = 4;

#[derive(Debug)]
pub struct ScoutConnection {
    socket: OwnedFd,
    pub state: Scout,
    pub last_heard: Instant,
}

impl ScoutConnection {
    pub fn new(socket: OwnedFd, scout: Scout) -> ScoutConnection {
        let mut connection = ScoutConnection { socket, state: scout, last_heard: Instant::now() };
        connection.send();
        connection
    }

    /// The socket and the events to poll for.
    pub fn interest(&mut self) -> (BorrowedFd<'_>, PollFlags) {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, !self.state.to_server().bytes().is_empty());
        (self.socket.as_fd(), flags)
    }

    /// Handles data from the server, and sends the resulting requests.
    pub fn receive(&mut self, buffer: &mut [u8], store: &mut Store) {
        self.last_heard = Instant::now();
        match read(&self.socket, buffer) {
            ReadOutcome::Bytes(count) => self.state.from_server(&buffer[..count], store),
            ReadOutcome::Nothing => {}
            ReadOutcome::End => self.state.end(store),
        }
        self.send();
    }

    /// Sends the scout's pending requests. A lost server is noticed when reading.
    pub fn send(&mut self) {
        push(&self.socket, self.state.to_server(), &mut false);
    }
}

/// A connection for some of the fonts. It sends its queries once the scout has loaded all fonts.
#[derive(Debug)]
pub struct Fonts {
    pub connection: ScoutConnection,
    to_ask: Option<Questions>,
}

impl Fonts {
    pub fn new(Connected { socket, cookie }: Connected, fonts: Questions) -> Fonts {
        Fonts { connection: ScoutConnection::new(socket, Scout::for_fonts(&cookie)), to_ask: Some(fonts) }
    }

    pub fn ask(&mut self, store: &mut Store) {
        if let Some(fonts) = self.to_ask.take() {
            self.connection.state.ask(&fonts, Source::default(), store);
            self.connection.send();
        }
    }

    /// Whether all replies have arrived or can no longer arrive.
    pub fn is_over(&self) -> bool {
        self.connection.state.has_ended() || self.to_ask.is_none() && self.connection.state.is_ready()
    }
}
