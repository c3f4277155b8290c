// SPDX-License-Identifier: MIT
//! This side's end of the forwarded socket: connects the clients of a session to the X server.
//!
//! Clients on the far side send the session's cookie, and the gate replaces it by the X server's cookie, which never
//! leaves this machine. Each connection has threads, which end with the connection or with this process.
//!
//! | a peer that | is refused |
//! |---|---|
//! | belongs to another user | immediately |
//! | sends anything but an X setup request with the session's cookie | immediately |
//! | does not complete its setup request | after [`PATIENCE`], or when [`MAX_WAITING`] newer peers wait |
//! | has the cookie when [`MAX_OPEN`] clients are connected | immediately |

use crate::lock;
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{Shutdown, shutdown};
use rustix::process::geteuid;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use xqos_cli::output::note;
use xqos_near::setup::{Cookie, refusal};
use xqos_wire::relay::upstream::Upstream;
use xqos_x11::ByteOrder;
use xqos_x11::length::{Length, Phase, length};

/// Maximum time until a peer has sent its setup request, which may have to wait for the data of other clients.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum number of peers that have not sent a cookie yet.
const MAX_WAITING: usize = 64;
/// Maximum number of clients, the default of X servers.
const MAX_OPEN: usize = 256;
const HEAD_BYTES: usize = 12;
/// Maximum length of a setup request with its names and data.
const MAX_SETUP_BYTES: u64 = 12 + 512;
const PIECE_BYTES: usize = 64 << 10;
/// Interval between two messages with the same reason.
const QUIET: Duration = Duration::from_secs(60);
/// Time until the next attempt to accept a peer, if no file descriptor is left.
const RETRY: Duration = Duration::from_millis(100);

/// Why a peer was refused; `None` if it has closed the connection.
type Refusal = Option<&'static str>;

const OTHER_USER: Refusal = Some("it belongs to another user");
const NO_SETUP: Refusal = Some("it did not send an X setup request");
const NO_COOKIE: Refusal = Some("it does not have the cookie of this session");
const SILENT: Refusal = Some("it did not complete its X setup request in time");
const CROWDED: Refusal = Some("too many connections have not sent a cookie");
const FULL: Refusal = Some("too many clients are connected");
const NO_SERVER: Refusal = Some("the X server does not accept connections");

#[derive(Debug)]
pub struct Gate {
    /// The cookie that clients must have, and that of the X server.
    own: Cookie,
    server: Cookie,
    upstream: Upstream,
    waiting: Mutex<VecDeque<Arc<UnixStream>>>,
    open: AtomicUsize,
    reported: Mutex<Vec<(Refusal, Instant)>>,
}

impl Gate {
    /// Listens on a new socket at this path until the process exits.
    pub fn start(path: &Path, own: Cookie, server: Cookie, upstream: Upstream) -> io::Result<()> {
        let listener = UnixListener::bind(path)?;
        let (waiting, open, reported) = Default::default();
        let gate = Arc::new(Gate { own, server, upstream, waiting, open, reported });
        thread::Builder::new().name("gate".to_owned()).spawn(move || gate.listen(&listener)).map(drop)
    }

    fn listen(self: &Arc<Gate>, listener: &UnixListener) {
        loop {
            match listener.accept() {
                Ok((peer, _)) => self.receive(Arc::new(peer)),
                Err(_) => thread::sleep(RETRY),
            }
        }
    }

    /// Serves a peer in a thread. If too many peers wait, disconnects the one that has waited longest.
    fn receive(self: &Arc<Gate>, peer: Arc<UnixStream>) {
        let mut waiting = lock(&self.waiting);
        waiting.push_back(Arc::clone(&peer));
        let surplus = (waiting.len() > MAX_WAITING).then(|| waiting.pop_front()).flatten();
        drop(waiting);
        if let Some(oldest) = surplus {
            let _ = shutdown(&*oldest, Shutdown::Both);
            self.report(CROWDED);
        }
        let (gate, served) = (Arc::clone(self), Arc::clone(&peer));
        let serve = move || gate.serve(&served).unwrap_or_else(|refusal| gate.report(refusal));
        if thread::Builder::new().name("client".to_owned()).spawn(serve).is_err() {
            self.stop_waiting(&peer);
        }
    }

    fn serve(&self, peer: &Arc<UnixStream>) -> Result<(), Refusal> {
        let order = self.admit(peer, PATIENCE);
        self.stop_waiting(peer);
        let order = order?;
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let served = if open < MAX_OPEN { self.connect(peer, order) } else { Err(FULL) };
        self.open.fetch_sub(1, Ordering::Relaxed);
        served
    }

    fn stop_waiting(&self, peer: &Arc<UnixStream>) {
        lock(&self.waiting).retain(|other| !Arc::ptr_eq(other, peer));
    }

    /// Reads a peer's setup request and checks its cookie. Returns its byte order.
    fn admit(&self, peer: &UnixStream, patience: Duration) -> Result<ByteOrder, Refusal> {
        if socket_peercred(peer).map_or(true, |user| user.uid != geteuid() && !user.uid.is_root()) {
            return Err(OTHER_USER);
        }
        let end = Instant::now() + patience;
        let mut setup = vec![0; HEAD_BYTES];
        read_until(end, peer, &mut setup)?;
        let order = ByteOrder::of_setup(setup[0]).filter(|order| order.u16(&setup, 2) == Some(11)).ok_or(NO_SETUP)?;
        let Length::Known(length) = length(Phase::Setup, order, &setup) else { return Err(NO_SETUP) };
        if length > MAX_SETUP_BYTES {
            return Err(NO_SETUP);
        }
        setup.resize(length as usize, 0);
        read_until(end, peer, &mut setup[HEAD_BYTES..])?;
        if Cookie::of_setup(order, &setup).is_some_and(|cookie| cookie.is(&self.own)) {
            return Ok(order);
        }
        // A peer that has already closed needs no reply.
        let mut writer = peer;
        let _ = writer.write_all(&refusal(order, "xqos: this is not the cookie of the session"));
        Err(NO_COOKIE)
    }

    /// Connects an admitted peer to the X server, and forwards data until either end closes.
    fn connect(&self, peer: &UnixStream, order: ByteOrder) -> Result<(), Refusal> {
        let server = self.upstream.connect().map_err(|_| NO_SERVER)?;
        ioctl_fionbio(&server.fd, false).map_err(|_| NO_SERVER)?;
        let server = File::from(server.fd);
        (&server).write_all(&self.server.setup(order)).map_err(|_| NO_SERVER)?;
        let has_time = peer.set_read_timeout(None);
        has_time.map_err(|_| None)?;
        thread::scope(|scope| {
            let replies = || {
                forward(&server, peer);
                let _ = shutdown(peer, Shutdown::Both);
            };
            thread::Builder::new().name("replies".to_owned()).spawn_scoped(scope, replies).map_err(|_| FULL)?;
            forward(peer, &server);
            let _ = shutdown(&server, Shutdown::Write);
            Ok(())
        })
    }

    fn report(&self, refusal: Refusal) {
        let Some(reason) = refusal else { return };
        let mut reported = lock(&self.reported);
        reported.retain(|(_, at)| at.elapsed() < QUIET);
        if !reported.iter().any(|(before, _)| *before == refusal) {
            reported.push((refusal, Instant::now()));
            note(&format!("a connection to the session's socket was refused: {reason}"));
        }
    }
}

/// Fills the buffer, unless the peer needs longer.
fn read_until(end: Instant, mut peer: &UnixStream, buffer: &mut [u8]) -> Result<(), Refusal> {
    let mut filled = 0;
    while filled < buffer.len() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(SILENT);
        }
        peer.set_read_timeout(Some(left)).map_err(|_| None)?;
        match peer.read(&mut buffer[filled..]) {
            Ok(0) => return Err(None),
            Ok(count) => filled += count,
            // The loop checks the time.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Err(None),
        }
    }
    Ok(())
}

/// Forwards data as it arrives, until there is no more or the receiver has closed.
fn forward(from: impl Read, mut to: impl Write) {
    let _ = io::copy(&mut BufReader::with_capacity(PIECE_BYTES, from), &mut to);
}

#[cfg(test)]
mod tests;
