// SPDX-License-Identifier: MIT
//! One visit to a server of this machine: in, a few questions, out, all before a deadline.
//!
//! For whoever looks at many servers again and again. A server that hangs holds nobody up, one that is no server at all
//! is believed in nothing that costs memory, and no connection stays: it would keep a server from ending with its last client.

use crate::{Error, Result};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use x11rb::errors::ConnectError;
use x11rb::protocol::ErrorKind;
use x11rb_protocol::connect::Connect;
use xqos_abi::control::paths;
use xqos_abi::{ClientEntry, ClientList, EXTENSION_NAME, Order, ProcessorReport, Request, ServerInfo, Short};

/// Bytes of an event, an error, and the fixed part of a reply.
const RECORD_BYTES: usize = 32;
/// More than a list of as many clients as a server can have.
const MAX_REPLY_BYTES: usize = 4 << 20;
/// Code of a GenericEvent, the one event that may be longer than a record.
const GENERIC_EVENT: u8 = 35;

/// What gives access to a server: name and data of an authorization, both empty where none is needed.
pub type Authority = (Vec<u8>, Vec<u8>);

/// Who listens for a display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub pid: i32,
    pub uid: u32,
}

/// What a server told.
#[derive(Clone, Debug)]
pub struct Readings {
    pub info: ServerInfo,
    pub list: ClientList,
    /// Clients that are gone, by program; empty after xqos has stepped aside.
    pub departed: Vec<ClientEntry>,
    /// The most that may be promised; 0 after xqos has stepped aside.
    pub limit_ppm: u32,
}

/// A connection that is open, and not yet a client.
#[derive(Debug)]
pub struct Visit {
    line: Line,
    display: u32,
    peer: Peer,
    /// It is one to the control socket, and never a client.
    is_control: bool,
}

/// A served server that answers.
#[derive(Debug)]
pub struct Guest {
    line: Line,
    /// 0 on the control socket.
    major_opcode: u8,
}

/// A stream, and until when it may be used.
#[derive(Debug)]
struct Line {
    stream: UnixStream,
    until: Instant,
}

impl Visit {
    /// Knocks at a display: at its control socket, where it has one that answers us. There it has an answer under a server grab
    /// too, and needs no place for a client.
    pub fn begin(display: u32, until: Instant) -> Result<Visit> {
        let path = format!("/tmp/.X11-unix/X{display}");
        let owner = std::fs::metadata(&path).ok().map(|socket| socket.uid());
        if let Some((line, peer)) = owner.and_then(|user| control_socket(display, user, until)) {
            let mut guest = Guest { line, major_opcode: 0 };
            match guest.ask(Request::GetServerInfo, ServerInfo::decode) {
                Ok(_) => return Ok(Visit { line: guest.line, display, peer, is_control: true }),
                Err(Error::Late) => return Err(Error::Late),
                Err(_) => {}
            }
        }
        let places = [SocketAddrUnix::new(path.as_str()), SocketAddrUnix::new_abstract_name(path.as_bytes())];
        let unreachable = |why: io::Error| Error::Unreachable { display: format!(":{display}"), why: why.into() };
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for place in places.into_iter().flatten() {
            match Line::open(&place, until) {
                Ok(line) => {
                    let peer = line.peer().map_err(unreachable)?;
                    return Ok(Visit { line, display, peer, is_control: false });
                }
                // Its queue of connections is full: it has accepted none for long.
                Err(Errno::AGAIN) => return Err(Error::Late),
                Err(error) => failed = error.into(),
            }
        }
        Err(unreachable(failed))
    }

    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// `None`: an X server without xqos.
    pub fn enter(mut self, (name, data): Authority) -> Result<Option<Guest>> {
        if self.is_control {
            return Ok(Some(Guest { line: self.line, major_opcode: 0 }));
        }
        let (mut connecting, request) = Connect::with_authorization(name, data);
        self.line.write(&request)?;
        loop {
            let read = self.line.read(connecting.buffer())?;
            if connecting.advance(read) {
                break;
            }
        }
        let refused = |why: ConnectError| Error::Unreachable { display: format!(":{}", self.display), why };
        connecting.into_setup().map_err(refused)?;
        if let Some(major_opcode) = self.line.query_extension()? {
            return Ok(Some(Guest { line: self.line, major_opcode }));
        }
        let socket = control_socket(self.display, self.peer.uid, self.line.until);
        Ok(socket.map(|(line, _)| Guest { line, major_opcode: 0 }))
    }
}

/// The control socket of this user, the server's: who else could pretend to be the server.
fn control_socket(display: u32, user: u32, until: Instant) -> Option<(Line, Peer)> {
    let open = |path| Line::open(&SocketAddrUnix::new(path).ok()?, until).ok();
    let opened = paths(display, user).into_iter().filter_map(open);
    let mut lines = opened.filter_map(|line| line.peer().ok().map(|peer| (line, peer)));
    lines.find(|(_, peer)| peer.uid == user)
}

impl Guest {
    /// At the control socket of a display, for its server's user and root; `None` where there is none, or xqos has stepped aside.
    pub fn at_control(display: u32, until: Instant) -> Option<Guest> {
        let owner = std::fs::metadata(format!("/tmp/.X11-unix/X{display}")).ok()?.uid();
        let mut guest = Guest { line: control_socket(display, owner, until)?.0, major_opcode: 0 };
        guest.ask(Request::GetServerInfo, ServerInfo::decode).is_ok().then_some(guest)
    }

    /// The server, its clients, and what may be promised.
    pub fn read(&mut self) -> Result<Readings> {
        let info = self.ask(Request::GetServerInfo, ServerInfo::decode)?;
        let list = self.ask(Request::ListClients, ClientList::decode)?;
        let (mut departed, mut limit_ppm) = (Vec::new(), 0);
        if info.armed {
            departed = self.ask(Request::ListDeparted, ClientList::decode)?.clients;
            limit_ppm = self.ask(Request::GetProcessor, ProcessorReport::decode)?.limit_ppm;
        }
        Ok(Readings { info, list, departed, limit_ppm })
    }

    fn ask<T>(
        &mut self,
        request: Request,
        decode: impl FnOnce(&[u8], Order) -> std::result::Result<T, Short>,
    ) -> Result<T> {
        self.line.write(&request.encode(self.major_opcode))?;
        decode(&self.line.reply()?, Order::Native).map_err(|Short| Error::ShortReply)
    }
}

impl Line {
    /// Does not wait where the other end accepts nobody.
    fn open(place: &SocketAddrUnix, until: Instant) -> std::result::Result<Line, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, place)?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false).map_err(|_| Errno::INVAL)?;
        Ok(Line { stream, until })
    }

    fn peer(&self) -> io::Result<Peer> {
        let peer = socket_peercred(&self.stream)?;
        Ok(Peer { pid: peer.pid.as_raw_nonzero().get(), uid: peer.uid.as_raw() })
    }

    /// What is left of the time.
    fn left(&self) -> Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Error::Late) } else { Ok(left) }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.set_write_timeout(Some(self.left()?)).map_err(broken)?;
        self.stream.write_all(bytes).map_err(broken)
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        loop {
            self.stream.set_read_timeout(Some(self.left()?)).map_err(broken)?;
            match self.stream.read(into) {
                Ok(0) if !into.is_empty() => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map_err(broken),
            }
        }
    }

    fn read_whole(&mut self, mut into: &mut [u8]) -> Result<()> {
        while !into.is_empty() {
            let read = self.read(into)?;
            into = &mut into[read..];
        }
        Ok(())
    }

    /// The next reply; events are passed over.
    fn reply(&mut self) -> Result<Vec<u8>> {
        loop {
            let mut record = vec![0; RECORD_BYTES];
            self.read_whole(&mut record)?;
            let words = u32::from_ne_bytes([record[4], record[5], record[6], record[7]]);
            let more = match record[0] & 0x7f {
                0 => return Err(Error::Answer(ErrorKind::Unknown(record[1]))),
                1 | GENERIC_EVENT => 4 * words as usize,
                _ => 0,
            };
            if more > MAX_REPLY_BYTES {
                return Err(Error::LongReply);
            }
            record.resize(RECORD_BYTES + more, 0);
            self.read_whole(&mut record[RECORD_BYTES..])?;
            if record[0] == 1 {
                return Ok(record);
            }
        }
    }

    /// The extension's major opcode.
    fn query_extension(&mut self) -> Result<Option<u8>> {
        const QUERY_EXTENSION: u8 = 98;
        let words = (8 + EXTENSION_NAME.len().next_multiple_of(4)) / 4;
        let mut request = vec![QUERY_EXTENSION, 0];
        request.extend((words as u16).to_ne_bytes());
        request.extend((EXTENSION_NAME.len() as u16).to_ne_bytes());
        request.extend([0, 0]);
        request.extend(EXTENSION_NAME.bytes());
        request.resize(4 * words, 0);
        self.write(&request)?;
        let reply = self.reply()?;
        Ok((reply[8] != 0).then_some(reply[9]))
    }
}

/// A read that takes too long ends as one that would block.
fn broken(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Late,
        _ => Error::Visit(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line to somebody who says this, and does not leave.
    fn line(said: &[u8]) -> (Line, UnixStream) {
        let (stream, mut other) = UnixStream::pair().unwrap();
        other.write_all(said).unwrap();
        (Line { stream, until: Instant::now() + Duration::from_millis(50) }, other)
    }

    fn record(code: u8, words: u32) -> Vec<u8> {
        let mut record = vec![code, 0, 0, 0];
        record.extend(words.to_ne_bytes());
        record.resize(RECORD_BYTES, 0);
        record
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's socket pairs take no send and no timeouts")]
    fn events_before_a_reply_are_passed_over() {
        let said = [record(2, 9), record(GENERIC_EVENT, 1), vec![0; 4], record(1, 1), vec![7; 4]].concat();
        let (mut line, _other) = line(&said);
        assert_eq!(line.reply().unwrap()[RECORD_BYTES..], [7; 4]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's socket pairs take no send and no timeouts")]
    fn who_never_answers_is_left_in_time() {
        for said in [vec![], record(1, 1)] {
            let (mut line, _other) = line(&said);
            assert!(matches!(line.reply(), Err(Error::Late)));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's socket pairs take no send and no timeouts")]
    fn replies_of_any_claimed_length_take_no_memory() {
        let (mut line, _other) = line(&record(1, u32::MAX));
        assert!(matches!(line.reply(), Err(Error::LongReply)));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's socket pairs take no send and no timeouts")]
    fn an_end_in_the_middle_is_an_error() {
        let (mut line, other) = line(&record(1, 2));
        drop(other);
        assert!(matches!(line.reply(), Err(Error::Visit(_))));
    }
}
