// SPDX-License-Identifier: MIT
//! A raw connection to an X server in either byte order. A test controls every byte of a request and sees every byte of
//! the reply.

mod authority;
mod canvas;

pub use authority::{Authorization, COOKIE, authority_entry};
pub use canvas::Canvas;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use xqos_abi::control::EVENT;
use xqos_abi::{ByteOrder, EXTENSION_NAME, Request};

/// Longer than any reply takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Core opcodes.
pub mod opcode {
    pub const CHANGE_PROPERTY: u8 = 18;
    pub const GET_PROPERTY: u8 = 20;
    pub const GRAB_SERVER: u8 = 36;
    pub const UNGRAB_SERVER: u8 = 37;
    pub const GET_INPUT_FOCUS: u8 = 43;
    pub const CREATE_PIXMAP: u8 = 53;
    pub const CREATE_GC: u8 = 55;
    pub const POLY_FILL_RECTANGLE: u8 = 70;
    pub const PUT_IMAGE: u8 = 72;
    pub const GET_IMAGE: u8 = 73;
    pub const QUERY_EXTENSION: u8 = 98;
    pub const SET_CLOSE_DOWN_MODE: u8 = 112;
    pub const KILL_CLIENT: u8 = 113;
    pub const NO_OPERATION: u8 = 127;
}

/// Error codes.
pub mod code {
    pub const BAD_REQUEST: u8 = 1;
    pub const BAD_VALUE: u8 = 2;
    pub const BAD_ACCESS: u8 = 10;
    pub const BAD_ALLOC: u8 = 11;
    pub const BAD_LENGTH: u8 = 16;
    pub const BAD_IMPLEMENTATION: u8 = 17;
}

/// An X error as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XError {
    pub code: u8,
    pub value: u32,
    pub minor: u16,
    pub major: u8,
}

/// The numbers assigned to an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    pub major: u8,
    pub first_event: u8,
    pub first_error: u8,
}

/// A request under construction.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Vec<u8>,
    order: ByteOrder,
}

impl Message {
    pub fn new(order: ByteOrder, opcode: u8, data: u8) -> Message {
        Message { bytes: vec![opcode, data, 0, 0], order }
    }

    pub fn u16(self, value: u16) -> Message {
        let field = self.ordered(value.to_ne_bytes());
        self.raw(&field)
    }

    pub fn u32(self, value: u32) -> Message {
        let field = self.ordered(value.to_ne_bytes());
        self.raw(&field)
    }

    pub fn i32(self, value: i32) -> Message {
        self.u32(value as u32)
    }

    pub fn raw(mut self, bytes: &[u8]) -> Message {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Pads the request and fills in its length, in the format of BIG-REQUESTS if it is too long for the core protocol.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let units = self.bytes.len() / 4;
        if let Ok(units) = u16::try_from(units) {
            let field = self.ordered(units.to_ne_bytes());
            self.bytes[2..4].copy_from_slice(&field);
        } else {
            let field = self.ordered((units as u32 + 1).to_ne_bytes());
            self.bytes.splice(4..4, field);
        }
        self.bytes
    }

    fn ordered<const N: usize>(&self, mut field: [u8; N]) -> [u8; N] {
        if self.order == ByteOrder::SWAPPED {
            field.reverse();
        }
        field
    }
}

/// An open connection.
#[derive(Debug)]
pub struct Wire {
    stream: UnixStream,
    pub order: ByteOrder,
    /// The number of requests sent.
    sequence: u16,
    /// The first resource id of this client.
    pub base: u32,
    pub root: u32,
    resources: u32,
    /// Events received while waiting for a reply.
    pub events: VecDeque<Vec<u8>>,
    xqos: Option<Extension>,
    /// The control socket, if the server has no extension.
    control: Option<UnixStream>,
}

impl Wire {
    /// Connects to the local socket without authorization.
    pub fn connect(display: &str, order: ByteOrder) -> Wire {
        Wire::try_connect(local_socket(display), order, &Authorization::default()).unwrap()
    }

    /// Connects by TCP on this machine, so that the server treats the client as a remote one.
    pub fn connect_by_tcp(display: &str, order: ByteOrder) -> Wire {
        Wire::try_connect(tcp_socket(display), order, &Authorization::default()).unwrap()
    }

    /// Sets up a connection over this socket. If the server refuses, returns its reason.
    pub fn try_connect(stream: UnixStream, order: ByteOrder, authorization: &Authorization) -> Result<Wire, String> {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let is_big = (order == ByteOrder::NATIVE) == cfg!(target_endian = "big");
        let (name, data) = (&authorization.name, &authorization.data);
        let setup = Message { bytes: vec![if is_big { b'B' } else { b'l' }, 0], order };
        let setup = setup.u16(11).u16(0).u16(name.len() as u16).u16(data.len() as u16).u16(0);
        let mut bytes = setup.raw(name).bytes;
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let mut wire = Wire {
            stream,
            order,
            sequence: 0,
            base: 0,
            root: 0,
            resources: 0,
            events: VecDeque::new(),
            xqos: None,
            control: None,
        };
        let outcome = wire.stream.write_all(&bytes).and_then(|()| wire.read_setup());
        match outcome {
            Ok(None) => Ok(wire),
            Ok(Some(reason)) => Err(reason),
            Err(error) => Err(format!("the connection broke: {error}")),
        }
    }

    /// Reads the setup reply. If the server refuses the connection, returns its reason.
    fn read_setup(&mut self) -> io::Result<Option<String>> {
        let mut head = [0; 8];
        self.stream.read_exact(&mut head)?;
        let mut rest = vec![0; 4 * usize::from(self.u16_in(&head, 6))];
        self.stream.read_exact(&mut rest)?;
        if head[0] != 1 {
            return Ok(Some(String::from_utf8_lossy(&rest[..usize::from(head[1]).min(rest.len())]).into_owned()));
        }
        self.base = self.u32_in(&rest, 4);
        let vendor_bytes = usize::from(self.u16_in(&rest, 16));
        let screens = 32 + vendor_bytes.next_multiple_of(4) + 8 * usize::from(rest[21]);
        self.root = self.u32_in(&rest, screens);
        Ok(None)
    }

    // Sending.

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap_or_else(|error| panic!("the server does not read: {error}"));
    }

    /// Sends one request without waiting.
    pub fn send(&mut self, request: &[u8]) {
        self.sequence = self.sequence.wrapping_add(1);
        self.send_raw(request);
    }

    /// Sends several requests in one write without waiting.
    pub fn send_many(&mut self, requests: &[u8], count: u16) {
        self.sequence = self.sequence.wrapping_add(count);
        self.send_raw(requests);
    }

    /// Closes the sending side of the connection. Replies still arrive.
    pub fn end_stream(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    pub fn message(&self, opcode: u8, data: u8) -> Message {
        Message::new(self.order, opcode, data)
    }

    /// Sends a request and returns its reply.
    pub fn ask(&mut self, request: &[u8]) -> Result<Vec<u8>, XError> {
        self.send(request);
        self.answer().unwrap_or_else(|| panic!("no answer to {request:02x?} within {PATIENCE:?}"))
    }

    /// Sends a request without a reply, and waits until it has been executed.
    pub fn tell(&mut self, request: &[u8]) -> Result<(), XError> {
        self.tell_or_ask(request)
    }

    /// Sends a request with or without a reply, and waits until it has been executed.
    pub fn tell_or_ask(&mut self, request: &[u8]) -> Result<(), XError> {
        self.send(request);
        let sequence = self.sequence;
        self.send_sync();
        let mut outcome = Ok(());
        loop {
            let bytes = self.read_message().expect("an answer");
            match (bytes[0], self.u16_in(&bytes, 2)) {
                (0, of) if of == sequence => outcome = Err(self.error_in(&bytes)),
                (0, _) => panic!("an error for another request: {:?}", self.error_in(&bytes)),
                (1, of) if of == sequence => {}
                (1, _) => return outcome,
                _ => self.events.push_back(bytes),
            }
        }
    }

    fn send_sync(&mut self) {
        let request = self.message(opcode::GET_INPUT_FOCUS, 0).finish();
        self.send(&request);
    }

    /// Waits until all requests sent have been executed.
    pub fn sync(&mut self) {
        self.send_sync();
        self.answer().expect("an answer").expect("no error");
    }

    // Receiving.

    /// The next reply or error; `None` if none arrives in time.
    pub fn answer(&mut self) -> Option<Result<Vec<u8>, XError>> {
        loop {
            let bytes = self.read_message()?;
            match bytes[0] {
                0 => return Some(Err(self.error_in(&bytes))),
                1 => {
                    assert_eq!(self.u16_in(&bytes, 2), self.sequence, "a reply to another request");
                    return Some(Ok(bytes));
                }
                _ => self.events.push_back(bytes),
            }
        }
    }

    /// The next reply, to any request.
    pub fn reply(&mut self) -> Vec<u8> {
        loop {
            let bytes = self.read_message().expect("a reply");
            match bytes[0] {
                0 => panic!("an error instead of a reply: {:?}", self.error_in(&bytes)),
                1 => return bytes,
                _ => self.events.push_back(bytes),
            }
        }
    }

    /// The number of sent bytes that the server has not read yet.
    pub fn unread_bytes(&self) -> usize {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the socket is open, and the kernel writes a number.
        let result = unsafe { libc::ioctl(self.stream.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
        assert_eq!(result, 0, "the kernel counts unread bytes");
        bytes as usize
    }

    /// The sequence number of the last request.
    pub fn sequence(&self) -> u16 {
        self.sequence
    }

    /// The next reply, error or event; `None` if none arrives in time.
    pub fn message_of_any_kind(&mut self) -> Option<Vec<u8>> {
        self.events.pop_front().or_else(|| self.read_message())
    }

    /// The next event; `None` if none arrives in time.
    pub fn event(&mut self, within: Duration) -> Option<Vec<u8>> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        self.set_patience(within);
        let bytes = self.read_message();
        self.set_patience(PATIENCE);
        let bytes = bytes?;
        assert!(bytes[0] > 1, "an unexpected answer: {bytes:02x?}");
        Some(bytes)
    }

    /// Returns true if the reply to the last request arrives in time.
    pub fn is_answered(&mut self, within: Duration) -> bool {
        self.set_patience(within);
        let answer = self.answer();
        self.set_patience(PATIENCE);
        answer.is_some()
    }

    pub fn set_patience(&self, patience: Duration) {
        self.stream.set_read_timeout(Some(patience)).unwrap();
    }

    /// Reads one message from the server; `None` if none arrives in time.
    fn read_message(&mut self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 32];
        let first = loop {
            match self.stream.read(&mut bytes[..1]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                first => break first,
            }
        };
        match first {
            Ok(1) => {}
            Ok(_) => panic!("the server closed the connection"),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return None,
            Err(error) => panic!("the connection broke: {error}"),
        }
        self.stream.read_exact(&mut bytes[1..]).unwrap();
        if bytes[0] == 1 || bytes[0] & 0x7f == 35 {
            let rest = self.read(4 * self.u32_in(&bytes, 4) as usize);
            bytes.extend_from_slice(&rest);
        }
        Some(bytes)
    }

    fn read(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).unwrap_or_else(|error| panic!("the server does not answer: {error}"));
        bytes
    }

    fn error_in(&self, bytes: &[u8]) -> XError {
        XError { code: bytes[1], value: self.u32_in(bytes, 4), minor: self.u16_in(bytes, 8), major: bytes[10] }
    }

    pub fn u16_in(&self, bytes: &[u8], at: usize) -> u16 {
        u16::from_ne_bytes(self.ordered(bytes, at))
    }

    pub fn u32_in(&self, bytes: &[u8], at: usize) -> u32 {
        u32::from_ne_bytes(self.ordered(bytes, at))
    }

    pub fn i32_in(&self, bytes: &[u8], at: usize) -> i32 {
        self.u32_in(bytes, at) as i32
    }

    fn ordered<const N: usize>(&self, bytes: &[u8], at: usize) -> [u8; N] {
        let mut field: [u8; N] = bytes[at..at + N].try_into().unwrap();
        if self.order == ByteOrder::SWAPPED {
            field.reverse();
        }
        field
    }

    // Extensions.

    pub fn extension(&mut self, name: &str) -> Option<Extension> {
        let request = self.message(opcode::QUERY_EXTENSION, 0).u16(name.len() as u16).u16(0);
        let reply = self.ask(&request.raw(name.as_bytes()).finish()).unwrap();
        (reply[8] == 1).then(|| Extension { major: reply[9], first_event: reply[10], first_error: reply[11] })
    }

    /// The numbers assigned to the XQOS extension, which must exist.
    pub fn xqos(&mut self) -> Extension {
        if self.xqos.is_none() {
            self.xqos = self.extension(EXTENSION_NAME);
        }
        self.xqos.expect("the server has XQOS")
    }

    /// An XQOS request in our byte order.
    pub fn xqos_bytes(&mut self, request: Request) -> Vec<u8> {
        let major = self.xqos().major;
        request.encode_as(major, self.order)
    }

    /// Sends a request over the control socket if the server has no extension. Returns its result.
    fn ask_control_socket(&mut self, request: Request) -> Option<Result<Vec<u8>, XError>> {
        if self.xqos.is_none() && self.control.is_none() {
            self.xqos = self.extension(EXTENSION_NAME);
        }
        if self.xqos.is_some() {
            return None;
        }
        // The control socket closes when xqos steps aside.
        let aside = XError { code: code::BAD_IMPLEMENTATION, value: 0, minor: 0, major: 0 };
        let Some(mut stream) = self.control.take().or_else(|| self.open_control()) else { return Some(Err(aside)) };
        let Some(answer) = ask_control(&mut stream, named(request, self.base)) else { return Some(Err(aside)) };
        self.control = Some(stream);
        Some(answer)
    }

    fn open_control(&self) -> Option<UnixStream> {
        let address = self.stream.peer_addr().ok()?;
        let display = xqos_abi::control::display_of_socket(address.as_pathname()?.to_str()?)?;
        // SAFETY: the call takes no arguments and cannot fail.
        let paths = xqos_abi::control::paths(display, unsafe { libc::geteuid() });
        paths.iter().find_map(|path| UnixStream::connect(path).ok())
    }

    pub fn ask_xqos(&mut self, request: Request) -> Result<Vec<u8>, XError> {
        if let Some(answer) = self.ask_control_socket(request) {
            return answer;
        }
        let bytes = self.xqos_bytes(request);
        self.ask(&bytes)
    }

    pub fn tell_xqos(&mut self, request: Request) -> Result<(), XError> {
        if let Some(answer) = self.ask_control_socket(request) {
            return answer.map(|_| ());
        }
        let bytes = self.xqos_bytes(request);
        self.tell(&bytes)
    }

    /// Sends an XQOS request without waiting for its effects.
    pub fn send_xqos(&mut self, request: Request) {
        if self.ask_control_socket(request).is_none() {
            let bytes = self.xqos_bytes(request);
            self.send(&bytes);
        }
    }

    // SYNC.

    pub fn set_sync_priority(&mut self, id: u32, priority: i32) -> Result<(), XError> {
        let major = self.extension("SYNC").expect("the server has SYNC").major;
        let request = self.message(major, 12).u32(id).i32(priority).finish();
        self.tell(&request)
    }

    pub fn sync_priority(&mut self, id: u32) -> i32 {
        let major = self.extension("SYNC").expect("the server has SYNC").major;
        let request = self.message(major, 13).u32(id).finish();
        let reply = self.ask(&request).unwrap();
        self.i32_in(&reply, 8)
    }

    // Work.

    pub fn new_id(&mut self) -> u32 {
        self.resources += 1;
        self.base + self.resources
    }

    pub fn set_grab(&mut self, grabs: bool) {
        let request = self.message(if grabs { opcode::GRAB_SERVER } else { opcode::UNGRAB_SERVER }, 0).finish();
        self.tell(&request).unwrap();
    }

    /// Returns the bare socket. From then on, the caller must count the requests that it sends.
    pub fn into_stream(self) -> UnixStream {
        self.stream
    }
}

/// Names the sender explicitly, because 0 does not mean the sender on the control socket.
fn named(request: Request, own: u32) -> Request {
    match request {
        Request::Set { subject, setting } => subject.named(own).set(setting),
        Request::Clear { subject, setting } => subject.named(own).clear(setting),
        Request::CheckAdmission { subject, reservation } => {
            Request::CheckAdmission { subject: subject.named(own), reservation }
        }
        Request::GetReservation { client: 0 } => Request::GetReservation { client: own },
        other => other,
    }
}

/// Sends a request over a control socket. Returns `None` if the server closed the connection.
pub fn ask_control(stream: &mut UnixStream, request: Request) -> Option<Result<Vec<u8>, XError>> {
    stream.write_all(&request.encode_as(0, ByteOrder::NATIVE)).ok()?;
    let mut answer = vec![EVENT; 32];
    while answer[0] == EVENT {
        stream.read_exact(&mut answer).ok()?;
    }
    let value = u32::from_ne_bytes(answer[4..8].try_into().unwrap());
    if answer[0] == 0 {
        return Some(Err(XError { code: answer[1], value, minor: 0, major: 0 }));
    }
    answer.resize(32 + 4 * value as usize, 0);
    stream.read_exact(&mut answer[32..]).unwrap();
    Some(Ok(answer))
}

/// The path of the display's local socket.
pub fn socket_path(display: &str) -> PathBuf {
    format!("/tmp/.X11-unix/X{}", display_number(display)).into()
}

pub fn local_socket(display: &str) -> UnixStream {
    UnixStream::connect(socket_path(display)).unwrap()
}

pub fn tcp_socket(display: &str) -> UnixStream {
    let port = 6000 + display_number(display);
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    // Reads, writes, timeouts and shutdown work in the same way for both kinds of socket.
    UnixStream::from(OwnedFd::from(stream))
}

pub fn display_number(display: &str) -> u16 {
    display.trim_start_matches(':').parse().unwrap()
}
