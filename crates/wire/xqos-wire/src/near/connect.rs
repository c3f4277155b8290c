// SPDX-License-Identifier: MIT
//! Connections to the X server that are being established. Connecting takes a round trip. Each connection has a thread,
//! so clients do not wait for each other.

use super::cache::Cache;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use xqos_near::Questions;
use xqos_near::setup::Cookie;
use xqos_wire::relay::RelayError;
use xqos_wire::relay::authority::cookie;
use xqos_wire::relay::upstream::Upstream;

/// A client that waits for its connection to the server.
#[derive(Debug)]
pub struct Pending {
    pub program: OwnedFd,
    /// `Some` if each program has a separate file.
    pub own: Option<(String, Cache)>,
    /// The questions that the client is likely to ask.
    pub questions: Arc<Questions>,
}

#[derive(Debug)]
pub enum Purpose {
    /// The proxy's own connection.
    Scout,
    Client(Box<Pending>),
    /// A font connection, on which the proxy queries these fonts.
    Fonts(Questions),
}

#[derive(Debug)]
pub struct Connected {
    pub socket: OwnedFd,
    pub cookie: Cookie,
}

type Attempt = (Purpose, Result<Connected, RelayError>);

/// All connections that are being established.
#[derive(Debug)]
pub struct Connecting {
    upstream: Arc<Upstream>,
    results: Receiver<Attempt>,
    sender: Sender<Attempt>,
    /// Receives one byte for each completed attempt.
    wakeups: UnixStream,
    waker: UnixStream,
    /// Number of clients that wait for their connections.
    pub clients: usize,
}

impl Connecting {
    pub fn new(upstream: Upstream) -> io::Result<Connecting> {
        let (sender, results) = channel();
        let (wakeups, waker) = UnixStream::pair()?;
        wakeups.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        Ok(Connecting { upstream: Arc::new(upstream), results, sender, wakeups, waker, clients: 0 })
    }

    /// A descriptor that becomes readable when an attempt has completed.
    pub fn wakeups(&self) -> BorrowedFd<'_> {
        self.wakeups.as_fd()
    }

    /// Each byte sent to this socket makes the proxy's loop run once.
    pub fn waker(&self) -> io::Result<UnixStream> {
        self.waker.try_clone()
    }

    /// Starts connecting, and returns whether it could. If no thread can be started, drops the client, as a server
    /// without free client slots does.
    pub fn begin(&mut self, purpose: Purpose) -> bool {
        let (upstream, sender, waker) = (Arc::clone(&self.upstream), self.sender.clone(), self.waker.try_clone());
        let Ok(mut waker) = waker else { return false };
        let is_client = matches!(purpose, Purpose::Client(_));
        let connect = move || {
            // This fails only if the proxy has ended and no longer needs the connection.
            let _ = sender.send((purpose, connect(&upstream)));
            let _ = waker.write_all(&[0]);
        };
        let has_begun = thread::Builder::new().name("connect".to_owned()).spawn(connect).is_ok();
        self.clients += usize::from(has_begun && is_client);
        has_begun
    }

    pub fn next(&mut self) -> Option<Attempt> {
        // Drain the socket; the results are in the channel.
        let _ = (&self.wakeups).read(&mut [0; 64]);
        let attempt = self.results.try_recv().ok()?;
        self.clients -= usize::from(matches!(attempt.0, Purpose::Client(_)));
        Some(attempt)
    }
}

/// Connects to the server, and finds the cookie for the server's address.
pub fn connect(upstream: &Upstream) -> Result<Connected, RelayError> {
    let mut upstream = upstream.clone();
    let socket = upstream.reach()?.fd;
    let (name, data) = cookie(&upstream).unwrap_or_default();
    Ok(Connected { socket, cookie: Cookie { name, data } })
}
