// SPDX-License-Identifier: MIT
//! The control socket of a server and its connections, for both hosts. The socket works without the extension, during a
//! server grab, and when the server has no room for another client.
//!
//! Everything here is non-blocking and runs on the server's thread. In each turn, the server reads a few requests from
//! each connection, and answers those of all connections for at most [`TURN_NS`]. A connection whose replies wait for
//! room in the socket is neither read nor answered. A flood of requests therefore delays no client and takes little
//! memory.

use crate::host::{kernel, peer, real_libc};
use crate::mechanism::access::Identity;
use crate::mechanism::engine::Engine;
use crate::mechanism::host::Host;
use crate::mechanism::requests::{self, Format, Refused};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use xqos_abi::control::{EVENT, FIRST_ERROR, MAX_REQUEST_BYTES, done, error, paths};
use xqos_abi::{ByteOrder, Notify};
use xqos_core::ClientId;

/// A connection whose peer leaves more bytes than this unread is closed. A few lists of all clients fit.
const MAX_UNREAD_BYTES: usize = 4 << 20;
/// The maximum number of connections; further ones are refused.
const MAX_CONNECTIONS: usize = 64;
/// The maximum for all ordinary users combined, so that they leave room for the server's user and root.
const MAX_OF_OTHERS: usize = 32;
/// The time for which requests are answered before clients are served again, exceeded by at most one request.
const TURN_NS: u64 = 1_000_000;
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
    output: Vec<u8>,
    epoll: RawFd,
    /// The epoll waits for room to write to the socket, not for data to read.
    awaits_room: bool,
    is_gone: bool,
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
    /// The index of the connection whose request is answered next.
    next: usize,
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

    /// Reads new requests. Returns the connections that have ended.
    fn receive(&mut self, epoll: RawFd) -> Vec<ClientId> {
        // The epoll will report any remaining connections again.
        for _ in 0..ACCEPTED_AT_ONCE {
            let accepted = self.listeners.iter().find_map(|listener| listener.socket.accept().ok());
            let Some((stream, _)) = accepted else { break };
            self.accept(epoll, stream);
        }
        self.open.iter_mut().for_each(ControlConnection::receive);
        let is_over = |one: &ControlConnection| one.is_gone && !one.has_request();
        let gone = self.open.iter().filter(|one| is_over(one)).map(|one| one.id).collect();
        self.open.retain(|one| !is_over(one));
        gone
    }

    /// The next request that can be answered. The connections take turns, in the order in which they were opened: a
    /// program may select events over one connection, and cause these events over a later one.
    fn next_request(&mut self) -> Option<ControlRequest> {
        let (count, next) = (self.open.len(), self.next);
        let mut places = (0..count).map(|step| (next + step) % count);
        let found = places.find_map(|at| Some((at, self.open[at].take_request()?)));
        self.next = found.as_ref().map_or(0, |(at, _)| at + 1);
        Some(found?.1)
    }

    fn accept(&mut self, epoll: RawFd, stream: UnixStream) {
        let is_free = |id: &ClientId| self.open.iter().all(|one| one.id != *id);
        let id = (0..MAX_CONNECTIONS).map(|at| ClientId((ClientId::LIMIT + at) as u16)).find(is_free);
        let (Some(id), Ok(())) = (id, stream.set_nonblocking(true)) else { return };
        let identity = peer::identity_of(stream.as_raw_fd());
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
            output: Vec::new(),
            epoll,
            awaits_room: false,
            is_gone: false,
        });
    }

    pub fn identity(&self, asker: ClientId) -> Option<Identity> {
        self.open.iter().find(|one| one.id == asker).map(|one| one.identity)
    }

    pub fn send_event(&mut self, listener: ClientId, event: &Notify) {
        if let Some(one) = self.connection(listener) {
            one.send(&event.encode(EVENT, one.sequence, ByteOrder::NATIVE));
        }
    }

    pub fn hand_over(&mut self, asker: ClientId, fd: OwnedFd) -> io::Result<()> {
        self.connection(asker).ok_or(io::ErrorKind::NotConnected)?.descriptor = Some(fd);
        Ok(())
    }

    fn reply(&mut self, asked: &ControlRequest, answer: Result<Option<Vec<u8>>, Refused>) {
        let Some(one) = self.connection(asked.asker) else { return };
        let descriptor = one.descriptor.take();
        match (answer, descriptor) {
            (Ok(Some(reply)), Some(descriptor)) => one.send_with(reply, &descriptor),
            (Ok(Some(reply)), None) => one.send(&reply),
            (Ok(None), _) => one.send(&done(asked.sequence)),
            (Err(refused), _) => {
                let (code, value) = refused.code(FIRST_ERROR);
                one.send(&error(code, asked.sequence, value));
            }
        }
    }

    fn connection(&mut self, id: ClientId) -> Option<&mut ControlConnection> {
        self.open.iter_mut().find(|one| one.id == id)
    }
}

impl Drop for ControlConnection {
    /// Removes the descriptor from the epoll, because the kernel may reuse its number for a client.
    fn drop(&mut self) {
        real_libc::leave(self.epoll, self.stream.as_raw_fd());
    }
}

impl ControlConnection {
    fn receive(&mut self) {
        self.flush();
        if self.is_gone || !self.output.is_empty() || self.has_request() {
            return;
        }
        // The epoll will report any remaining input again.
        let mut chunk = [0; MAX_REQUEST_BYTES];
        match self.stream.read(&mut chunk) {
            Ok(0) => self.end(),
            Ok(count) => self.input.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(_) => self.end(),
        }
    }

    /// The length in the header of the next request, if it has arrived.
    fn next_bytes(&self) -> Option<usize> {
        let words = self.input.get(2..4)?;
        Some(4 * usize::from(u16::from_ne_bytes([words[0], words[1]])))
    }

    fn has_request(&self) -> bool {
        self.next_bytes().is_some_and(|bytes| self.input.len() >= bytes)
    }

    /// Takes a complete request, unless a reply waits for room. An impossible length ends the connection.
    fn take_request(&mut self) -> Option<ControlRequest> {
        let bytes = self.next_bytes().filter(|_| self.output.is_empty())?;
        if !(4..=MAX_REQUEST_BYTES).contains(&bytes) {
            self.input.clear();
            self.end();
            return None;
        }
        if self.input.len() < bytes {
            return None;
        }
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = self.input.drain(..bytes).collect();
        Some(ControlRequest { asker: self.id, sequence: self.sequence, bytes })
    }

    fn send(&mut self, bytes: &[u8]) {
        if self.is_gone {
            return;
        }
        let was_empty = self.output.is_empty();
        self.output.extend_from_slice(bytes);
        if was_empty {
            self.flush();
            if !self.output.is_empty() {
                self.wait();
            }
        }
        if self.output.len() > MAX_UNREAD_BYTES {
            self.end();
        }
    }

    /// Closes the connection. The epoll reports this, so the server drops the connection soon, even if no other one has
    /// data.
    fn end(&mut self) {
        self.is_gone = true;
        self.output = Vec::new();
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Writes as much as fits into the socket's buffer.
    fn flush(&mut self) {
        let mut written = 0;
        while written < self.output.len() {
            match self.stream.write(&self.output[written..]) {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return self.end(),
            }
        }
        self.output.drain(..written);
    }

    /// Makes the epoll wait for room in the socket while a reply or a request is left, otherwise for new data.
    fn wait(&mut self) {
        let awaits_room = !self.output.is_empty() || self.has_request();
        if std::mem::replace(&mut self.awaits_room, awaits_room) != awaits_room {
            real_libc::watch_own_for(self.epoll, self.stream.as_raw_fd(), awaits_room);
        }
    }

    /// The second byte of the reply is the number of descriptors sent with it.
    fn send_with(&mut self, mut reply: Vec<u8>, descriptor: &OwnedFd) {
        reply[1] = 1;
        let send = || real_libc::send_with_descriptor(self.stream.as_raw_fd(), &reply, descriptor.as_raw_fd());
        // The descriptor would arrive before bytes that still wait in `output`.
        if !self.output.is_empty() || send().is_err() {
            self.end();
        }
    }
}

/// Answers waiting requests. `with` runs work on the engine and then carries out its actions, so a reply follows the
/// events that its request has caused.
pub fn answer_all<H: Host>(
    with: impl Fn(&mut dyn FnMut(&mut Engine<H>)),
    epoll: RawFd,
    connections: impl Fn(&mut H) -> &mut Connections,
) {
    with(&mut |engine| {
        let gone = connections(&mut engine.host).receive(epoll);
        gone.into_iter().for_each(|id| engine.at(kernel::now()).control_gone(id));
    });
    let mut now = kernel::now();
    let end = now.after(TURN_NS);
    loop {
        let mut answered = None;
        with(&mut |engine| {
            answered = connections(&mut engine.host).next_request().map(|asked| {
                let format = Format { sequence: asked.sequence, order: ByteOrder::NATIVE };
                let answer = requests::answer(engine.at(now), asked.asker, &asked.bytes, format);
                (asked, answer)
            });
        });
        let Some((asked, answer)) = answered else { break };
        let mut answer = Some(answer);
        with(&mut |engine| {
            answer.take().into_iter().for_each(|answer| connections(&mut engine.host).reply(&asked, answer));
        });
        now = kernel::now();
        if now >= end {
            break;
        }
    }
    with(&mut |engine| connections(&mut engine.host).open.iter_mut().for_each(ControlConnection::wait));
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
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use xqos_abi::Request;

    /// Display numbers that no server on this machine uses, different in each test process and at each call.
    fn displays() -> [u32; 2] {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let call = CALLS.fetch_add(2, Relaxed);
        [0, 1].map(|at| 100_000 + 16 * std::process::id() + call + at)
    }

    #[test]
    fn a_server_with_two_displays_has_two_control_sockets() {
        let epoll = kernel::new_epoll().unwrap();
        let mut connections = Connections::default();
        let displays = displays();
        for display in displays {
            connections.listen(epoll.as_raw_fd(), display).unwrap();
            assert!(connections.is_listening(display));
        }
        // SAFETY: the call takes no arguments and cannot fail.
        let user = unsafe { libc::geteuid() };
        let found = displays.map(|display| paths(display, user).into_iter().find(|path| path.exists()).unwrap());
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
    fn connections_take_turns_and_one_that_does_not_read_is_not_answered() {
        let request = Request::GetServerInfo.encode(0);
        let epoll = kernel::new_epoll().unwrap();
        let mut connections = Connections::default();
        let mut peers: Vec<UnixStream> = [3, 9, 1]
            .map(|count: usize| {
                let (mut peer, ours) = UnixStream::pair().unwrap();
                connections.accept(epoll.as_raw_fd(), ours);
                peer.write_all(&request.repeat(count)).unwrap();
                peer
            })
            .into();
        connections.receive(epoll.as_raw_fd());
        let first = usize::from(connections.open[0].id.0);
        let next = |connections: &mut Connections| {
            let asked = connections.next_request()?;
            Some((usize::from(asked.asker.0) - first, asked))
        };
        let order: Vec<usize> = (0..5).map(|_| next(&mut connections).unwrap().0).collect();
        assert_eq!(order, [0, 1, 2, 0, 1]);
        let large = vec![1; MAX_UNREAD_BYTES / 2];
        let (second, asked) = (1, next(&mut connections).unwrap().1);
        assert_eq!(usize::from(asked.asker.0) - first, 0, "its third request");
        let (at, asked) = next(&mut connections).unwrap();
        assert_eq!(at, second);
        connections.reply(&asked, Ok(Some(large.clone())));
        assert!(next(&mut connections).is_none(), "its reply waits for room");
        connections.open.iter_mut().for_each(ControlConnection::wait);
        let mut read = vec![0; large.len()];
        let peer = &mut peers[second];
        peer.set_nonblocking(true).unwrap();
        let mut bytes = 0;
        while bytes < read.len() {
            match peer.read(&mut read[bytes..]) {
                Ok(count) => bytes += count,
                Err(_) => _ = connections.receive(epoll.as_raw_fd()),
            }
        }
        assert!(read == large);
        assert_eq!((0..7).filter_map(|_| next(&mut connections)).count(), 6, "the other requests are left");
        peers[..2].iter_mut().for_each(|peer| peer.write_all(&request).unwrap());
        connections.receive(epoll.as_raw_fd());
        let order: Vec<usize> = std::iter::from_fn(|| Some(next(&mut connections)?.0)).collect();
        assert_eq!(order, [0, 1], "the next turn begins with the first again");
    }

    #[test]
    fn a_peer_that_reads_no_events_is_disconnected_and_takes_no_more_memory() {
        let epoll = kernel::new_epoll().unwrap();
        let mut connections = Connections::default();
        let (peer, ours) = UnixStream::pair().unwrap();
        connections.accept(epoll.as_raw_fd(), ours);
        let id = connections.open[0].id;
        let event = Notify::decode(&[0; 32], ByteOrder::NATIVE).unwrap();
        let unread = |connections: &Connections| connections.open[0].output.capacity();
        for _ in 0..2 * MAX_UNREAD_BYTES / 32 {
            connections.send_event(id, &event);
        }
        assert!(unread(&connections) <= MAX_UNREAD_BYTES, "{} bytes", unread(&connections));
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
        assert_eq!(real_libc::epoll_wait_now(epoll.as_raw_fd(), &mut events), 1, "the server is woken");
        assert_eq!(connections.receive(epoll.as_raw_fd()), [id]);
        drop(peer);
    }
}
