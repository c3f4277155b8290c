// SPDX-License-Identifier: MIT
//! The client side of a server's control socket. Programs that query many servers also use it for the display's own
//! socket, which frames records in the same way.
//!
//! A deadline limits the time that a hanging server can cost. The other end may not be a real server, so its data never
//! makes us allocate without limit.

use crate::display::PATIENCE;
use crate::{Error, Result};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix};
use rustix::net::{SocketFlags, SocketType, connect, recvmsg, socket_with};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use x11rb::protocol::ErrorKind;
use x11rb_protocol::connect::Connect;
use x11rb_protocol::protocol::xproto::{QueryExtensionReply, QueryExtensionRequest};
use x11rb_protocol::x11_utils::TryParse;
use xqos_abi::control::{EVENT, FIRST_ERROR, paths};
use xqos_abi::{ByteOrder, EXTENSION_NAME, Notify, Request};
use xqos_x11::codes::{BAD_IMPLEMENTATION, ERROR, REPLY};
use xqos_x11::length::{UNIT_BYTES, more_from_server};

/// More bytes than the longest possible list of clients has.
const MAX_REPLY_BYTES: usize = 4 << 20;
/// More events than any program leaves unread.
const MAX_EVENTS: usize = 1 << 16;

/// More descriptors than any reply carries; the reply to StartTrace carries one.
const MAX_DESCRIPTORS: usize = 4;

/// Authorization for a server: protocol name and data; both empty if none is needed.
pub type Authority = (Vec<u8>, Vec<u8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub pid: i32,
    pub uid: u32,
}

#[derive(Debug)]
pub struct Socket {
    stream: UnixStream,
    /// The extension's major opcode on the display's own socket; otherwise 0.
    major_opcode: u8,
    until: Option<Instant>,
    state: Mutex<SocketState>,
    /// The X connection that permits this user to use the control socket, if one is required.
    _client: Option<UnixStream>,
}

#[derive(Debug, Default)]
struct SocketState {
    input: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    events: VecDeque<Notify>,
    /// Number of outstanding answers to skip: those to posted requests, and late ones.
    unwanted: usize,
    /// The refusal of such a request, until the next `post` returns it.
    refused: Option<Error>,
}

/// The answer to a request: the reply and the descriptors sent with it.
pub(crate) struct ReplyWithDescriptors {
    pub reply: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
}

impl Socket {
    /// The control socket of the server at the other end of an X connection to this display. `None` if there is none,
    /// or if it belongs to another user, who might impersonate the server. The peer's process may not be the server: a
    /// Wayland compositor listens before it starts Xwayland.
    pub(crate) fn of_server(connection: impl AsFd, display: u32) -> Option<Socket> {
        Socket::of_user(display, peer(connection)?.uid, None)
    }

    /// Like `of_server` without an X connection: the owner of the display's socket counts as the server's user.
    pub(crate) fn of_display(display: u32, until: Option<Instant>) -> Option<Socket> {
        Socket::of_user(display, std::fs::metadata(format!("/tmp/.X11-unix/X{display}")).ok()?.uid(), until)
    }

    fn of_user(display: u32, user: u32, until: Option<Instant>) -> Option<Socket> {
        let open = |path| Socket::open(SocketAddrUnix::new(path), until).ok();
        let mut opened = paths(display, user).into_iter().filter_map(open);
        opened.find(|socket| socket.peer().is_some_and(|peer| peer.uid == user))
    }

    /// Connects to the display's own socket, for [`Control::enter`](crate::Control::enter).
    pub fn for_display(display: u32, until: Instant) -> Result<Socket> {
        let path = format!("/tmp/.X11-unix/X{display}");
        let opened = match Socket::open(SocketAddrUnix::new(&path), Some(until)) {
            Err(error) if error != Errno::AGAIN => {
                Socket::open(SocketAddrUnix::new_abstract_name(path.as_bytes()), Some(until))
            }
            opened => opened,
        };
        opened.map_err(|error| match error {
            Errno::AGAIN => Error::Late,
            error => Error::Unreachable { display: format!(":{display}"), why: io::Error::from(error).into() },
        })
    }

    /// Connects and waits if the other end is not accepting yet.
    fn open(place: rustix::io::Result<SocketAddrUnix>, until: Option<Instant>) -> rustix::io::Result<Socket> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        for which in [Timeout::Send, Timeout::Recv] {
            set_socket_timeout(&socket, which, Some(left(until)?))?;
        }
        connect(&socket, &place?)?;
        Ok(Socket { stream: socket.into(), major_opcode: 0, until, state: Mutex::default(), _client: None })
    }

    /// Becomes a client. `Ok(None)`: the server runs without xqos.
    pub(crate) fn enter(mut self, display: u32, (name, data): Authority) -> Result<Option<Socket>> {
        let (mut connecting, request) = Connect::with_authorization(name, data);
        self.write(&request)?;
        loop {
            let state = &mut *self.state();
            let room = connecting.buffer();
            let count = room.len().min(state.input.len());
            room[..count].copy_from_slice(&state.input[..count]);
            state.input.drain(..count);
            if count == 0 {
                self.receive(state, RecvFlags::empty()).map_err(broken)?;
            } else if connecting.advance(count) {
                break;
            }
        }
        let refused = |why| Error::Unreachable { display: format!(":{display}"), why };
        connecting.into_setup().map_err(refused)?;
        let (query, _) = QueryExtensionRequest { name: EXTENSION_NAME.as_bytes().into() }.serialize();
        self.write(&query.concat())?;
        let answer = self.answer()?.reply;
        let (extension, _) = QueryExtensionReply::try_parse(&answer).map_err(|_| Error::ShortReply)?;
        if extension.present {
            self.major_opcode = extension.major_opcode;
            return Ok(Some(self));
        }
        let at_control = self.peer().and_then(|peer| Socket::of_user(display, peer.uid, self.until));
        Ok(at_control.map(|socket| Socket { _client: Some(self.stream), ..socket }))
    }

    /// Finds out whether the server of the display's own socket answers, without becoming a client: it refuses version
    /// 0 of the X protocol.
    pub fn check(&self) -> Result<()> {
        let setup = [b'l', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let answered =
            self.write(&setup).and_then(|()| self.receive(&mut self.state(), RecvFlags::empty()).map_err(broken));
        // A server that closes the connection has answered too.
        if matches!(answered, Err(Error::Late)) { Err(Error::Late) } else { Ok(()) }
    }

    pub fn peer(&self) -> Option<Peer> {
        peer(&self.stream)
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    pub(crate) fn ask(&self, request: Request) -> Result<ReplyWithDescriptors> {
        self.send(request)?;
        self.answer()
    }

    /// Sends a request without reading its answer. Answers arrive in the order of the requests.
    pub(crate) fn send(&self, request: Request) -> Result<()> {
        self.write(&request.encode(self.major_opcode))
    }

    /// Sends a request and ignores its reply. Does nothing while an earlier request is unanswered, because a hanging
    /// server may answer later. Returns the refusal of the previous request.
    pub(crate) fn post(&self, request: Request) -> Result<()> {
        let state = &mut *self.state();
        loop {
            state.take_events();
            if let Some(refused) = state.refused.take() {
                return Err(refused);
            }
            if state.unwanted == 0 {
                state.unwanted = 1;
                return self.send(request);
            }
            match self.receive(state, RecvFlags::DONTWAIT) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(Error::Socket(error)),
            }
        }
    }

    /// Skips the answers to this many requests when they arrive.
    pub(crate) fn skip(&self, answers: usize) {
        self.state().unwanted += answers;
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        (&self.stream).write_all(bytes).map_err(broken)
    }

    pub(crate) fn answer(&self) -> Result<ReplyWithDescriptors> {
        let state = &mut *self.state();
        loop {
            if let Some(answer) = state.next_record()? {
                return Ok(answer);
            }
            if let Err(error) = self.receive(state, RecvFlags::empty()).map_err(broken) {
                // A late answer must not be taken for the answer to the next request.
                state.unwanted += usize::from(matches!(error, Error::Late));
                return Err(error);
            }
        }
    }

    pub(crate) fn next_event(&self) -> Result<Option<Notify>> {
        let state = &mut *self.state();
        loop {
            state.take_events();
            if let Some(event) = state.events.pop_front() {
                return Ok(Some(event));
            }
            match self.receive(state, RecvFlags::DONTWAIT) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(Error::Socket(error)),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, SocketState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, state: &mut SocketState, flags: RecvFlags) -> io::Result<()> {
        let (mut chunk, mut space) =
            ([0; 16_384], [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))]);
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        if self.until.is_some() {
            self.stream.set_read_timeout(Some(left(self.until)?))?;
        }
        let received =
            retry_on_intr(|| recvmsg(&self.stream, &mut [IoSliceMut::new(&mut chunk)], &mut control, flags))?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                state.descriptors.extend(descriptors);
            }
        }
        // A malicious peer must not fill our table of descriptors.
        state.descriptors.truncate(MAX_DESCRIPTORS);
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        state.input.extend_from_slice(&chunk[..received.bytes]);
        if state.input.len() > MAX_REPLY_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the reply is longer than any valid one"));
        }
        Ok(())
    }
}

impl SocketState {
    /// The answer to the last request, once it is complete. Events before it are kept.
    fn next_record(&mut self) -> Result<Option<ReplyWithDescriptors>> {
        self.take_events();
        let Some(bytes) = self.first_record() else { return Ok(None) };
        let reply: Vec<u8> = self.input.drain(..bytes).collect();
        if reply[0] == ERROR {
            return Err(refusal_of(&reply));
        }
        let descriptors = self.descriptors_of(&reply);
        Ok(Some(ReplyWithDescriptors { reply, descriptors }))
    }

    fn descriptors_of(&mut self, reply: &[u8]) -> Vec<OwnedFd> {
        // Only the reply to StartTrace has descriptors; in other replies this byte may have another meaning.
        self.descriptors.drain(..usize::from(reply[1]).min(self.descriptors.len())).collect()
    }

    /// Moves XQOS events to the queue, and skips all others and unwanted answers.
    fn take_events(&mut self) {
        while let Some(bytes) = self.first_record().filter(|_| self.input[0] > REPLY || self.unwanted > 0) {
            let record: Vec<u8> = self.input.drain(..bytes).collect();
            match record[0] {
                ERROR => (self.unwanted, self.refused) = (self.unwanted - 1, Some(refusal_of(&record))),
                REPLY => {
                    self.unwanted -= 1;
                    self.descriptors_of(&record);
                }
                EVENT if self.events.len() < MAX_EVENTS => {
                    self.events.extend(Notify::decode(&record, ByteOrder::NATIVE).ok());
                }
                _ => {}
            }
        }
    }

    fn first_record(&self) -> Option<usize> {
        let bytes = UNIT_BYTES + more_from_server(ByteOrder::NATIVE, self.input.first_chunk()?);
        Some(bytes).filter(|&bytes| bytes <= self.input.len())
    }
}

fn peer(stream: impl AsFd) -> Option<Peer> {
    let peer = socket_peercred(stream).ok()?;
    Some(Peer { pid: peer.pid.as_raw_nonzero().get(), uid: peer.uid.as_raw() })
}

/// The time left until the deadline.
fn left(until: Option<Instant>) -> rustix::io::Result<Duration> {
    let left = until.map_or(PATIENCE, |until| until.saturating_duration_since(Instant::now()));
    if left.is_zero() { Err(Errno::AGAIN) } else { Ok(left) }
}

/// A read that times out fails with the same error as one that would block.
fn broken(error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::WouldBlock { Error::Late } else { Error::Socket(error) }
}

fn refusal_of(record: &[u8]) -> Error {
    let (code, value) = (record[1], ByteOrder::NATIVE.u32(record, 4).unwrap_or(0));
    match code {
        BAD_IMPLEMENTATION => Error::NeedsSingleRequests,
        code => Error::of_answer(code, value, FIRST_ERROR, ErrorKind::Unknown(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Control, Transport};
    use std::io::Read;
    use xqos_abi::control::{done, error};
    use xqos_abi::{NotifyKind, Version};
    use xqos_x11::codes::GENERIC_EVENT;

    fn event(client: u32) -> Vec<u8> {
        let (kind, pid, budget_us, period_us, flags) = (NotifyKind::Settings, 0, 0, 0, 0);
        let event = Notify { kind, client, pid, budget_us, period_us, flags, count: 0, time_ms: 0 };
        event.encode(EVENT, 0, ByteOrder::NATIVE).to_vec()
    }

    fn reply(words: u8) -> Vec<u8> {
        let mut reply = done(1).to_vec();
        reply[4..8].copy_from_slice(&u32::from(words).to_ne_bytes());
        reply.extend(vec![7; 4 * usize::from(words)]);
        reply
    }

    #[test]
    fn answers_and_events_are_reassembled_from_any_fragments() {
        let said = [event(1), reply(3), event(2), error(2, 2, 99).to_vec(), reply(0)].concat();
        for cut in (1..said.len()).step_by(if cfg!(miri) { 16 } else { 1 }) {
            let (mut state, mut answers) = (SocketState::default(), Vec::new());
            for part in said.chunks(cut) {
                state.input.extend_from_slice(part);
                while let Some(answer) = state.next_record().transpose() {
                    answers.push(answer.map(|answer| answer.reply.len()));
                }
            }
            assert!(matches!(answers[..], [Ok(44), Err(Error::Value(99)), Ok(32)]), "{cut}: {answers:?}");
            let clients: Vec<u32> = state.events.iter().map(|event| event.client).collect();
            assert_eq!((clients, state.input.len()), (vec![1, 2], 0), "{cut}");
        }
    }

    /// A socket whose other end has sent `said`.
    fn socket(said: &[u8], patience: Duration) -> (Socket, UnixStream) {
        let (stream, mut other) = UnixStream::pair().unwrap();
        other.write_all(said).unwrap();
        let until = Some(Instant::now() + patience);
        (Socket { stream, major_opcode: 0, until, state: Mutex::default(), _client: None }, other)
    }

    fn record(code: u8, words: u32) -> Vec<u8> {
        let mut record = vec![code, 0, 0, 0];
        record.extend(words.to_ne_bytes());
        record.resize(UNIT_BYTES, 0);
        record
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's socket pairs support neither send nor timeouts")]
    fn x_events_before_a_reply_are_skipped() {
        let said = [record(2, 9), record(GENERIC_EVENT, 1), vec![0; 4], record(1, 1), vec![7; 4]].concat();
        let (socket, _other) = socket(&said, PATIENCE);
        assert_eq!(socket.answer().unwrap().reply[UNIT_BYTES..], [7; 4]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's socket pairs support neither send nor timeouts")]
    fn a_server_that_never_answers_causes_a_timeout() {
        for said in [vec![], record(1, 1), record(1, u32::MAX)] {
            let (socket, _other) = socket(&said, Duration::from_millis(50));
            assert!(matches!(socket.answer(), Err(Error::Late)));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's socket pairs support neither send nor timeouts")]
    fn a_refusal_and_a_closed_connection_show_that_a_server_answers() {
        let (silent, _other) = socket(&[], Duration::from_millis(50));
        assert!(matches!(silent.check(), Err(Error::Late)));
        let (refused, _other) = socket(&[0; 8], PATIENCE);
        assert!(refused.check().is_ok());
        let (closed, other) = socket(&[], PATIENCE);
        drop(other);
        assert!(closed.check().is_ok());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's socket pairs support neither send nor timeouts")]
    fn late_and_unwanted_answers_are_not_taken_for_the_next_one() {
        let (late, mut other) = socket(&[], Duration::from_millis(50));
        assert!(matches!(late.answer(), Err(Error::Late)));
        let socket = Socket { until: Some(Instant::now() + PATIENCE), ..late };
        let post = || socket.post(Request::GetServerInfo);
        // The server hangs: the first answer is missing, so nothing is sent.
        assert!(post().is_ok() && post().is_ok());
        other.write_all(&[error(2, 2, 99).to_vec(), event(7)].concat()).unwrap();
        assert!(matches!(post(), Err(Error::Value(99))), "the refusal of the request whose answer is late");
        assert!(post().is_ok() && post().is_ok(), "one request is sent and not answered");
        other.write_all(&[reply(2), reply(3)].concat()).unwrap();
        assert_eq!(socket.answer().unwrap().reply, reply(3));
        assert_eq!(socket.next_event().unwrap().map(|event| event.client), Some(7));
        drop(socket);
        let mut sent = Vec::new();
        other.read_to_end(&mut sent).unwrap();
        assert_eq!(sent, Request::GetServerInfo.encode(0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's socket pairs support neither send nor timeouts")]
    fn a_hanging_server_gets_no_further_held_requests() {
        let (socket, mut other) = socket(&[], Duration::from_millis(50));
        let (version, held) = (Version { major: 0, minor: 0 }, Mutex::new(None));
        let transport = Transport::Socket(socket);
        let mut control = Control { connection: None, screen: 0, transport, version, held };
        control.hold();
        (0..100).for_each(|_| control.stop_trace().unwrap());
        assert_eq!((control.held(), control.settle()), (100, (0..100).collect()));
        let mut sent = vec![0; 64 * Request::StopTrace.encode(0).len()];
        other.read_exact(&mut sent).unwrap();
        // The server continues and answers the requests that it has received.
        other.write_all(&[reply(0).repeat(64), reply(3)].concat()).unwrap();
        let Transport::Socket(socket) = &mut control.transport else { unreachable!() };
        socket.until = Some(Instant::now() + PATIENCE);
        assert_eq!(socket.answer().unwrap().reply, reply(3));
        drop(control);
        assert_eq!(other.read(&mut sent).unwrap(), 0, "nothing else was sent");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's socket pairs support neither send nor timeouts")]
    fn an_endless_reply_uses_limited_memory() {
        let (socket, mut other) = socket(&record(1, u32::MAX), PATIENCE);
        let telling = std::thread::spawn(move || other.write_all(&vec![0; 2 * MAX_REPLY_BYTES]).is_err());
        assert!(matches!(socket.answer(), Err(Error::Socket(why)) if why.kind() == io::ErrorKind::InvalidData));
        drop(socket);
        assert!(telling.join().unwrap());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's socket pairs support neither send nor timeouts")]
    fn a_connection_closed_within_a_reply_is_an_error() {
        let (socket, other) = socket(&record(1, 2), PATIENCE);
        drop(other);
        assert!(matches!(socket.answer(), Err(Error::Socket(_))));
    }
}
