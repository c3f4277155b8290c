// SPDX-License-Identifier: MIT
//! Connections to the X server that are being established. Each takes a round trip, so threads connect and clients do
//! not wait for each other.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use xqos_near::Memory;
use xqos_wire::capture::relay::upstream::{Socket, Upstream};

/// A client that waits for its connection to the server.
#[derive(Debug)]
pub struct Waiting {
    pub program: OwnedFd,
    pub pid: i32,
}

/// The purpose of a connection.
#[derive(Debug)]
pub enum Whom {
    Client(Waiting),
    /// The proxy queries these fonts itself.
    Fonts(Memory),
}

/// All connections that are being established.
#[derive(Debug)]
pub struct Connecting {
    upstream: Arc<Upstream>,
    made: Receiver<(Whom, io::Result<Socket>)>,
    makes: Sender<(Whom, io::Result<Socket>)>,
    /// One byte arrives for each completed attempt.
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

    /// Number of attempts in progress.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Becomes readable when an attempt has completed.
    pub fn told(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }

    /// Starts connecting. If no thread can be started, the client is dropped, as a server without free slots would do.
    pub fn begin(&mut self, whom: Whom) {
        let (upstream, makes, tells) = (Arc::clone(&self.upstream), self.makes.clone(), self.tells.try_clone());
        let Ok(mut tells) = tells else { return };
        let connect = move || {
            // The receiver is gone once the proxy has ended.
            let _ = makes.send((whom, upstream.connect()));
            let _ = tells.write_all(&[0]);
        };
        self.count += usize::from(thread::Builder::new().name("connect".to_owned()).spawn(connect).is_ok());
    }

    /// The next completed attempt; without a descriptor if the server could not be reached.
    pub fn next(&mut self) -> Option<(Whom, Option<OwnedFd>)> {
        // Drains the socket; the channel has the results.
        let _ = (&self.told).read(&mut [0; 64]);
        let (whom, server) = self.made.try_recv().ok()?;
        self.count -= 1;
        Some((whom, server.ok().map(|server| server.fd)))
    }
}
