// SPDX-License-Identifier: MIT
//! The control socket of a server and its connections, for both hosts. The socket works without the extension, during a
//! server grab, and when the server has no room for another client.
//!
//! Everything here is non-blocking and runs on the server's thread. Each time the server serves the connections, it
//! reads each of them once, for a few requests. It does not read a connection whose replies wait for room in the
//! socket. A flood of requests therefore delays no client.

use crate::host::identity::Identity;
use crate::host::{Host, kernel, real_libc};
use crate::mechanism::engine::Engine;
use crate::mechanism::requests::{self, Format, Refused};
use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use xqos_abi::control::{EVENT, FIRST_ERROR, MAX_REQUEST_BYTES, done, error, paths};
use xqos_abi::{Notify, Order};
use xqos_core::ClientId;

/// A connection whose peer leaves more bytes than this unread is closed. A few lists of all clients fit.
const MAX_UNREAD_BYTES: usize = 4 << 20;
/// The maximum number of connections; further ones are refused.
const MAX_CONNECTIONS: usize = 64;
/// The maximum for all ordinary users combined, so that they leave room for the server's user and root.
const MAX_OF_OTHERS: usize = 32;
/// The maximum number of connections accepted before clients are served again.
const ACCEPTED_AT_ONCE: usize = 16;

#[derive(Debug)]
struct ControlConnection {
    id: ClientId,
    stream: UnixStream,
    identity: Identity,
    input: Vec<u8>,
    sequence: u16,
    descriptor: Option<OwnedFd>,
    /// Bytes that did not fit into the socket's buffer.
    output: RefCell<Vec<u8>>,
    epoll: RawFd,
    is_gone: Cell<bool>,
}

#[derive(Debug)]
struct ControlRequest {
    asker: ClientId,
    sequence: u16,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Listener {
    display: u32,
    socket: UnixListener,
    path: PathBuf,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[derive(Debug, Default)]
pub struct Connections {
    /// One listener for each display. Mutter gives its Xwayland two displays and uses one of them itself.
    listeners: Vec<Listener>,
    open: Vec<ControlConnection>,
}

impl Connections {
    pub fn is_listening(&self, display: u32) -> bool {
        self.listeners.iter().any(|listener| listener.display == display)
    }

    /// Listens for the display's control connections at the first path that works.
    pub fn listen(&mut self, epoll: RawFd, display: u32) -> io::Result<()> {
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for path in paths(display, kernel::user()) {
            match bind(&path) {
                Ok(socket) => {
                    real_libc::watch_own(epoll, socket.as_raw_fd());
                    self.listeners.push(Listener { display, socket, path });
                    return Ok(());
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Reads new requests. Also returns the connections that have ended.
    fn receive(&mut self, epoll: RawFd) -> (Vec<ControlRequest>, Vec<ClientId>) {
        // The epoll will report any remaining connections again.
        for _ in 0..ACCEPTED_AT_ONCE {
            let accepted = self.listeners.iter().find_map(|listener| listener.socket.accept().ok());
            let Some((stream, _)) = accepted else { break };
            self.accept(epoll, stream);
        }
        let mut asked = Vec::new();
        for connection in &mut self.open {
            if !connection.output.borrow().is_empty() {
                connection.flush();
                connection.set_waits_for_room();
            }
            connection.receive(&mut asked);
        }
        let gone = self.open.iter().filter(|one| one.is_gone.get()).map(|one| one.id).collect();
        self.open.retain(|one| !one.is_gone.get());
        (asked, gone)
    }

    fn accept(&mut self, epoll: RawFd, stream: UnixStream) {
        let is_free = |id: &ClientId| self.open.iter().all(|one| one.id != *id);
        let id = (0..MAX_CONNECTIONS).map(|at| ClientId((ClientId::LIMIT + at) as u16)).find(is_free);
        let (Some(id), Ok(())) = (id, stream.set_nonblocking(true)) else { return };
        let identity = Identity::of_peer(stream.as_raw_fd());
        let is_other = |identity: &Identity| !identity.may_administer(kernel::user());
        if is_other(&identity) && self.open.iter().filter(|one| is_other(&one.identity)).count() >= MAX_OF_OTHERS {
            return;
        }
        real_libc::watch_own(epoll, stream.as_raw_fd());
        self.open.push(ControlConnection {
            id,
            stream,
            identity,
            input: Vec::new(),
            sequence: 0,
            descriptor: None,
            output: RefCell::default(),
            epoll,
            is_gone: Cell::new(false),
        });
    }

    pub fn identity(&self, asker: ClientId) -> Option<Identity> {
        self.connection(asker).map(|one| one.identity)
    }

    pub fn send_event(&self, listener: ClientId, event: &Notify) {
        if let Some(one) = self.connection(listener) {
            one.send(&event.encode(EVENT, one.sequence, Order::Native));
        }
    }

    pub fn hand_over(&mut self, asker: ClientId, fd: OwnedFd) -> io::Result<()> {
        let one = self.open.iter_mut().find(|one| one.id == asker).ok_or(io::ErrorKind::NotConnected)?;
        one.descriptor = Some(fd);
        Ok(())
    }

    fn reply(&mut self, asked: &ControlRequest, answer: Result<Option<Vec<u8>>, Refused>) {
        let Some(one) = self.open.iter_mut().find(|one| one.id == asked.asker) else { return };
        let descriptor = one.descriptor.take();
        match (answer, descriptor) {
            (Ok(Some(reply)), Some(descriptor)) => one.send_with(&reply, &descriptor),
            (Ok(Some(reply)), None) => one.send(&reply),
            (Ok(None), _) => one.send(&done(asked.sequence)),
            (Err(refused), _) => {
                let (code, value) = refused.code(FIRST_ERROR);
                one.send(&error(code, asked.sequence, value));
            }
        }
    }

    fn connection(&self, id: ClientId) -> Option<&ControlConnection> {
        self.open.iter().find(|one| one.id == id)
    }
}

impl Drop for ControlConnection {
    /// Removes the descriptor from the epoll, because the kernel may reuse its number for a client.
    fn drop(&mut self) {
        real_libc::leave(self.epoll, self.stream.as_raw_fd());
    }
}

impl ControlConnection {
    fn receive(&mut self, asked: &mut Vec<ControlRequest>) {
        if self.is_gone.get() || !self.output.borrow().is_empty() {
            return;
        }
        // The epoll will report any remaining input again.
        let mut chunk = [0; MAX_REQUEST_BYTES];
        match self.stream.read(&mut chunk) {
            Ok(0) => self.end(),
            Ok(count) => {
                self.input.extend_from_slice(&chunk[..count]);
                self.take_requests(asked);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(_) => self.end(),
        }
    }

    /// Takes complete requests from the input. A request with an impossible length ends the connection.
    fn take_requests(&mut self, asked: &mut Vec<ControlRequest>) {
        while self.input.len() >= 4 && !self.is_gone.get() {
            let bytes = 4 * usize::from(u16::from_ne_bytes([self.input[2], self.input[3]]));
            if !(4..=MAX_REQUEST_BYTES).contains(&bytes) {
                self.end();
                return;
            }
            if self.input.len() < bytes {
                return;
            }
            self.sequence = self.sequence.wrapping_add(1);
            let bytes = self.input.drain(..bytes).collect();
            asked.push(ControlRequest { asker: self.id, sequence: self.sequence, bytes });
        }
    }

    fn send(&self, bytes: &[u8]) {
        if self.is_gone.get() {
            return;
        }
        let was_empty = self.output.borrow().is_empty();
        self.output.borrow_mut().extend_from_slice(bytes);
        if was_empty {
            self.flush();
            if !self.output.borrow().is_empty() {
                self.set_waits_for_room();
            }
        }
        if self.output.borrow().len() > MAX_UNREAD_BYTES {
            self.end();
        }
    }

    /// Closes the connection. The epoll reports this, so the server drops the connection soon, even if no other one has
    /// data.
    fn end(&self) {
        self.is_gone.set(true);
        self.output.take();
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Writes as much as fits into the socket's buffer.
    fn flush(&self) {
        let mut output = self.output.borrow_mut();
        let (mut written, mut is_broken) = (0, false);
        while written < output.len() {
            match (&self.stream).write(&output[written..]) {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    is_broken = true;
                    break;
                }
            }
        }
        output.drain(..written);
        drop(output);
        if is_broken {
            self.end();
        }
    }

    fn set_waits_for_room(&self) {
        real_libc::watch_own_for(self.epoll, self.stream.as_raw_fd(), !self.output.borrow().is_empty());
    }

    /// The second byte of the reply is the number of descriptors sent with it.
    fn send_with(&self, reply: &[u8], descriptor: &OwnedFd) {
        let mut reply = reply.to_vec();
        reply[1] = 1;
        if !self.output.borrow().is_empty() {
            // The descriptor would arrive before the bytes that still wait in `output`.
            self.end();
            return;
        }
        let sent = real_libc::send_with_descriptor(self.stream.as_raw_fd(), &reply, descriptor.as_raw_fd());
        if sent.is_err() {
            self.end();
        }
    }
}

pub fn answer_all<H: Host>(engine: &mut Engine<H>, epoll: RawFd, connections: impl Fn(&mut H) -> &mut Connections) {
    let (all, gone) = connections(&mut engine.host).receive(epoll);
    gone.into_iter().for_each(|id| engine.control_gone(id));
    for asked in all {
        let format = Format { sequence: asked.sequence, order: Order::Native };
        let answer = requests::answer(engine, asked.asker, &asked.bytes, format);
        connections(&mut engine.host).reply(&asked, answer);
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    // Only the last folder of the path is created: /run/user/N and /run must exist already.
    if !folder.is_dir() {
        std::fs::create_dir(folder)?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
    }
    // This server owns the display now, so any existing socket is stale.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::kernel;

    /// Display numbers that no server on this machine uses, different in each test process.
    fn displays() -> [u32; 2] {
        [1, 2].map(|at| 100_000 + 2 * std::process::id() + at)
    }

    #[test]
    fn a_server_with_two_displays_has_two_control_sockets() {
        let epoll = kernel::new_epoll().unwrap();
        let mut connections = Connections::default();
        for display in displays() {
            connections.listen(epoll.as_raw_fd(), display).unwrap();
            assert!(connections.is_listening(display));
        }
        // SAFETY: the call takes no arguments and cannot fail.
        let user = unsafe { libc::geteuid() };
        let found = displays().map(|display| paths(display, user).into_iter().find(|path| path.exists()).unwrap());
        let streams = found.each_ref().map(|path| UnixStream::connect(path).unwrap());
        connections.receive(epoll.as_raw_fd());
        assert_eq!(connections.open.len(), streams.len());
        drop(connections);
        assert!(!found.iter().any(|path| path.exists()), "left behind: {found:?}");
    }

    #[test]
    fn a_flood_of_connections_is_accepted_in_turns() {
        let epoll = kernel::new_epoll().unwrap();
        let mut connections = Connections::default();
        let [display, _] = displays();
        connections.listen(epoll.as_raw_fd(), display).unwrap();
        let path = connections.listeners[0].path.clone();
        let peers: Vec<UnixStream> = (0..3 * ACCEPTED_AT_ONCE).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
        let mut is_reported = || real_libc::epoll_wait_now(epoll.as_raw_fd(), &mut events) > 0;
        for turn in 1..=3 {
            assert!(is_reported(), "turn {turn}");
            connections.receive(epoll.as_raw_fd());
            assert_eq!(connections.open.len(), turn * ACCEPTED_AT_ONCE);
        }
        assert!(!is_reported());
        drop(peers);
    }

    #[test]
    fn a_peer_that_reads_no_events_is_disconnected_and_takes_no_more_memory() {
        let epoll = kernel::new_epoll().unwrap();
        let mut connections = Connections::default();
        let (peer, ours) = UnixStream::pair().unwrap();
        connections.accept(epoll.as_raw_fd(), ours);
        let id = connections.open[0].id;
        let event = Notify::decode(&[0; 32], Order::Native).unwrap();
        let unread = |connections: &Connections| connections.open[0].output.borrow().capacity();
        for _ in 0..2 * MAX_UNREAD_BYTES / 32 {
            connections.send_event(id, &event);
        }
        assert!(unread(&connections) <= MAX_UNREAD_BYTES, "{} bytes", unread(&connections));
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
        assert_eq!(real_libc::epoll_wait_now(epoll.as_raw_fd(), &mut events), 1, "the server is woken");
        assert_eq!(connections.receive(epoll.as_raw_fd()).1, [id]);
        drop(peer);
    }
}
