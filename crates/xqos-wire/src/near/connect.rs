// SPDX-License-Identifier: MIT
//! Connections to the X server that are being established. Connecting takes a round trip. Each connection has a thread,
//! so clients do not wait for each other.

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
pub struct Pending {
    pub program: OwnedFd,
    pub pid: i32,
}

#[derive(Debug)]
pub enum Purpose {
    Client(Pending),
    /// A font connection, on which the proxy queries these fonts.
    Fonts(Memory),
}

/// All connections that are being established.
#[derive(Debug)]
pub struct Connecting {
    upstream: Arc<Upstream>,
    results: Receiver<(Purpose, io::Result<Socket>)>,
    sender: Sender<(Purpose, io::Result<Socket>)>,
    /// Receives one byte for each completed attempt.
    wakeups: UnixStream,
    waker: UnixStream,
    count: usize,
}

impl Connecting {
    pub fn new(upstream: Upstream) -> io::Result<Connecting> {
        let (sender, results) = channel();
        let (wakeups, waker) = UnixStream::pair()?;
        wakeups.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        Ok(Connecting { upstream: Arc::new(upstream), results, sender, wakeups, waker, count: 0 })
    }

    /// Number of attempts in progress.
    pub fn count(&self) -> usize {
        self.count
    }

    /// A descriptor that becomes readable when an attempt has completed.
    pub fn wakeups(&self) -> BorrowedFd<'_> {
        self.wakeups.as_fd()
    }

    /// Starts connecting. If no thread can be started, drops the client, as a server without free client slots does.
    pub fn begin(&mut self, purpose: Purpose) {
        let (upstream, sender, waker) = (Arc::clone(&self.upstream), self.sender.clone(), self.waker.try_clone());
        let Ok(mut waker) = waker else { return };
        let connect = move || {
            // This fails only if the proxy has ended, and then nobody needs the connection.
            let _ = sender.send((purpose, upstream.connect()));
            let _ = waker.write_all(&[0]);
        };
        self.count += usize::from(thread::Builder::new().name("connect".to_owned()).spawn(connect).is_ok());
    }

    /// The next completed attempt, without a descriptor if the server could not be reached.
    pub fn next(&mut self) -> Option<(Purpose, Option<OwnedFd>)> {
        // Drain the socket; the results are in the channel.
        let _ = (&self.wakeups).read(&mut [0; 64]);
        let (purpose, server) = self.results.try_recv().ok()?;
        self.count -= 1;
        Some((purpose, server.ok().map(|server| server.fd)))
    }
}
