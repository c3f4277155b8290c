// SPDX-License-Identifier: MIT
//! Connections to the X server that are being made: over a long line each takes a round trip, and nobody else waits for it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use xqos_near::Memory;
use xqos_wire::capture::relay::upstream::{Socket, Upstream};

/// A client that waits for its server.
#[derive(Debug)]
pub struct Waiting {
    pub program: OwnedFd,
    pub pid: i32,
}

/// Whom a connection is for.
#[derive(Debug)]
pub enum Whom {
    Client(Waiting),
    /// The proxy itself asks for these fonts.
    Fonts(Memory),
}

/// All that are being made.
#[derive(Debug)]
pub struct Connecting {
    upstream: Arc<Upstream>,
    made: Receiver<(Whom, io::Result<Socket>)>,
    makes: Sender<(Whom, io::Result<Socket>)>,
    /// A byte comes for each that is made.
    told: UnixStream,
    tells: UnixStream,
    count: usize,
}

impl Connecting {
    pub fn new(upstream: Upstream) -> io::Result<Connecting> {
        let (makes, made) = channel();
        let (told, tells) = UnixStream::pair()?;
        told.set_nonblocking(true)?;
        tells.set_nonblocking(true)?;
        Ok(Connecting { upstream: Arc::new(upstream), made, makes, told, tells, count: 0 })
    }

    /// How many are on their way.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Readable when one is made.
    pub fn told(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }

    /// Begins to connect; without a thread for it a client is dropped, as by a server that has no room.
    pub fn begin(&mut self, whom: Whom) {
        let (upstream, makes, tells) = (Arc::clone(&self.upstream), self.makes.clone(), self.tells.try_clone());
        let Ok(mut tells) = tells else { return };
        let connect = move || {
            // Nobody listens any more when all has ended.
            let _ = makes.send((whom, upstream.connect()));
            let _ = tells.write_all(&[0]);
        };
        self.count += usize::from(thread::Builder::new().name("connect".to_owned()).spawn(connect).is_ok());
    }

    /// The next one for whom the server was reached, or was not.
    pub fn next(&mut self) -> Option<(Whom, Option<OwnedFd>)> {
        // One byte or many: all that are made are taken.
        let _ = (&self.told).read(&mut [0; 64]);
        let (whom, server) = self.made.try_recv().ok()?;
        self.count -= 1;
        Some((whom, server.ok().map(|server| server.fd)))
    }
}
