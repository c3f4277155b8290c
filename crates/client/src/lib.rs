// SPDX-License-Identifier: MIT
//! The control connection to an X server that carries xqos: requests of the extension XQOS, and its answers as types. The same
//! requests go over a socket of the server's own, which needs no extension, no place for a client, and no end of a grab.
//!
//! Programs, experiments and tests all speak through it.

#![forbid(unsafe_code)]

mod display;
mod error;
mod open;
mod settings;
mod socket;

pub use display::{connect, number_of};
pub use error::Error;
pub use socket::{Authority, Peer, Socket};

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use x11rb::connection::{Connection, RequestConnection, SequenceNumber};
use x11rb::errors::ReplyError;
use x11rb::protocol::Event;
use x11rb::rust_connection::RustConnection;
use x11rb::utils::RawFdContainer;
use xqos_abi::trace::{Level, RECORD_BYTES};
use xqos_abi::{
    ADMISSION_ERROR, AdmissionReport, ClientList, DesktopReport, EXTENSION_NAME, GroupsReport, Label, LongestRequests,
    Notify, Order, PacingReport, PolicyChange, ProcessorReport, Request, ReservationReport, ServerInfo, Short, Subject,
    TraceStarted, Version, entry_flag, reservation, ring,
};

/// What a request came to.
pub type Result<T> = std::result::Result<T, Error>;

/// An open connection with the extension present.
#[derive(Debug)]
pub struct Control {
    /// `None`: the server answers on the control socket alone.
    connection: Option<RustConnection>,
    screen: usize,
    way: Way,
    version: Version,
    /// Requests whose answers are not looked at yet; `None`: each is waited for.
    held: Mutex<Option<Held>>,
}

/// Requests that set something and are not waited for.
#[derive(Debug, Default)]
struct Held {
    /// Over the extension.
    sent: Vec<SequenceNumber>,
    /// Over the control socket: how many.
    posted: usize,
    /// What the first of those were answered; true: refused.
    refused: Vec<bool>,
}

/// The control socket has room for the answers of so many.
const MAX_POSTED: usize = 64;

/// How requests reach the server.
#[derive(Debug)]
enum Way {
    Extension { major_opcode: u8, first_event: u8, first_error: u8 },
    Socket(Socket),
}

impl Control {
    /// From now on requests that set something are sent and not waited for, and so succeed, until [`Control::settle`]: many cost
    /// one wait. It holds for whoever shares this connection.
    pub fn hold(&self) {
        *self.held_requests() = Some(Held::default());
    }

    /// How many were sent so since [`Control::hold`].
    pub fn held(&self) -> usize {
        self.held_requests().as_ref().map_or(0, |held| held.sent.len() + held.posted)
    }

    /// Waits for the answers of all of them, and tells which were refused, by their order.
    pub fn settle(&self) -> Vec<usize> {
        self.take_answers(0);
        let held = self.held_requests().take().unwrap_or_default();
        let is_refused = |sequence| self.connection.as_ref().is_some_and(|it| it.check_for_error(sequence).is_err());
        let refused = held.sent.into_iter().map(is_refused).chain(held.refused);
        refused.enumerate().filter(|&(_, refused)| refused).map(|(at, _)| at).collect()
    }

    /// Takes answers from the control socket until no more than so many are out.
    fn take_answers(&self, most: usize) {
        let Way::Socket(socket) = &self.way else { return };
        if let Some(held) = self.held_requests().as_mut() {
            while held.posted - held.refused.len() > most {
                held.refused.push(socket.answer().is_err());
            }
        }
    }

    fn held_requests(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plain X connection beneath.
    pub fn connection(&self) -> Result<&RustConnection> {
        self.connection.as_ref().ok_or(Error::NoConnection)
    }

    /// The process at the other end of the control socket.
    pub fn peer(&self) -> Option<Peer> {
        match &self.way {
            Way::Socket(socket) => socket.peer(),
            Way::Extension { .. } => None,
        }
    }

    /// Index of the default screen.
    pub fn screen(&self) -> usize {
        self.screen
    }

    /// True for a server that exports nothing and is served through libc: it has no extension. `None` where no X connection
    /// tells.
    pub fn is_below(&self) -> Option<bool> {
        let extension = self.connection.as_ref()?.extension_information(EXTENSION_NAME).ok()?;
        Some(extension.is_none())
    }

    /// The server's version of the extension.
    pub fn version(&self) -> Version {
        self.version
    }

    pub fn server_info(&self) -> Result<ServerInfo> {
        self.ask(Request::GetServerInfo, ServerInfo::decode)
    }

    /// Clients that are gone, summed up by program.
    pub fn departed(&self) -> Result<ClientList> {
        self.ask(Request::ListDeparted, ClientList::decode)
    }

    /// Our own X connection is marked, however we ask.
    pub fn clients(&self) -> Result<ClientList> {
        let mut list = self.ask(Request::ListClients, ClientList::decode)?;
        if let (Way::Socket(_), Some(own)) = (&self.way, self.own_base()) {
            list.clients
                .iter_mut()
                .filter(|entry| entry.client == own)
                .for_each(|entry| entry.flags |= entry_flag::YOU);
        }
        Ok(list)
    }

    pub fn reservation(&self, client: u32) -> Result<ReservationReport> {
        let client = self.subject(Subject::Client(client)).client();
        self.ask(Request::GetReservation { client }, ReservationReport::decode)
    }

    /// The same for each kind of reservation.
    pub fn check_admission(&self, subject: Subject, budget_us: u32, period_us: u32) -> Result<AdmissionReport> {
        let subject = self.subject(subject);
        let reservation = reservation(budget_us, period_us, false);
        self.ask(Request::CheckAdmission { subject, reservation }, AdmissionReport::decode)
    }

    pub fn set_policy(&self, change: PolicyChange) -> Result<()> {
        self.send(Request::SetPolicy { change })
    }

    /// Bits of [`xqos_abi::event_mask`].
    pub fn select_events(&self, mask: u32) -> Result<()> {
        self.send(Request::SelectEvents { mask })
    }

    pub fn pacing(&self) -> Result<PacingReport> {
        self.ask(Request::GetPacing, PacingReport::decode)
    }

    pub fn desktop(&self) -> Result<DesktopReport> {
        self.ask(Request::GetDesktop, DesktopReport::decode)
    }

    /// What this connection sets from now on is told with this name, and with a lease ends when the connection does.
    pub fn set_origin(&self, name: &str, lease: bool) -> Result<()> {
        self.send(Request::SetOrigin { name: Label::new(name), lease })
    }

    pub fn groups(&self) -> Result<GroupsReport> {
        self.ask(Request::GetGroups, GroupsReport::decode)
    }

    /// The server's thread may have a real-time priority while it works for a reserved client, as long as this connection
    /// lives. `limit_before`: the server's limit for such priorities, to be set afterwards.
    pub fn lend_processor(&self, on: bool, limit_before: u32) -> Result<()> {
        self.send(Request::LendProcessor { on, limit_before })
    }

    pub fn processor(&self) -> Result<ProcessorReport> {
        self.ask(Request::GetProcessor, ProcessorReport::decode)
    }

    /// The longest requests since the start.
    pub fn longest_requests(&self) -> Result<LongestRequests> {
        self.ask(Request::ListLongestRequests, LongestRequests::decode)
    }

    /// The trace, from a new beginning on. `capacity`: records in the ring, if nobody reads it yet; 0 for the usual.
    pub fn start_trace(&self, level: Level, capacity: u32) -> Result<ring::Reader> {
        let request = Request::StartTrace { level, capacity };
        let (reply, mut fds) = match &self.way {
            Way::Extension { major_opcode, .. } => {
                let bytes = request.encode(*major_opcode);
                let parts = [IoSlice::new(&bytes)];
                let cookie = self.connection()?.send_request_with_reply_with_fds::<WithFds>(&parts, Vec::new())?;
                let WithFds(reply, fds) = cookie.reply().map_err(|error| self.refusal(error))?;
                (reply, fds)
            }
            Way::Socket(socket) => {
                let answer = socket.ask(request)?;
                (answer.reply, answer.descriptors)
            }
        };
        let started = TraceStarted::decode(&reply, Order::Native).map_err(|Short| Error::ShortReply)?;
        if started.record_bytes != RECORD_BYTES as u32 {
            return Err(Error::TraceVersion);
        }
        let fd = fds.pop().ok_or(Error::NoDescriptor)?;
        ring::Reader::open(fd, started.first).map_err(Error::Ring)
    }

    pub fn stop_trace(&self) -> Result<()> {
        self.send(Request::StopTrace)
    }

    /// The next event of ours that has come, if one has; others are passed over.
    pub fn next_notify(&self) -> Result<Option<Notify>> {
        let Way::Extension { first_event, .. } = self.way else { return self.next_of_socket() };
        while let Some(event) = self.connection()?.poll_for_event()? {
            match event {
                Event::Unknown(bytes) if bytes.first().is_some_and(|code| code & 0x7f == first_event) => {
                    if let Ok(notify) = Notify::decode(&bytes, Order::Native) {
                        return Ok(Some(notify));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn next_of_socket(&self) -> Result<Option<Notify>> {
        // Its own events are of no interest, but shall not pile up.
        if let Some(connection) = &self.connection {
            while connection.poll_for_event()?.is_some() {}
        }
        match &self.way {
            Way::Socket(socket) => socket.next_event(),
            Way::Extension { .. } => Ok(None),
        }
    }

    /// What becomes readable when an event comes, or the server goes.
    pub fn descriptor(&self) -> RawFd {
        match (&self.way, &self.connection) {
            (Way::Socket(socket), _) => socket.descriptor(),
            (Way::Extension { .. }, connection) => connection.as_ref().map_or(-1, |it| it.stream().as_raw_fd()),
        }
    }

    /// First resource id of our own connection.
    fn own_base(&self) -> Option<u32> {
        Some(self.connection.as_ref()?.setup().resource_id_base)
    }

    /// Whom a request is about. On the socket nobody is the asker: its own X connection is named.
    fn subject(&self, subject: Subject) -> Subject {
        match &self.way {
            Way::Socket(_) => subject.named(self.own_base().unwrap_or(0)),
            Way::Extension { .. } => subject,
        }
    }

    fn ask<T>(
        &self,
        request: Request,
        decode: impl FnOnce(&[u8], Order) -> std::result::Result<T, Short>,
    ) -> Result<T> {
        let reply = match &self.way {
            Way::Extension { major_opcode, .. } => {
                let bytes = request.encode(*major_opcode);
                let cookie = self.connection()?.send_request_with_reply::<Raw>(&[IoSlice::new(&bytes)], Vec::new())?;
                cookie.reply().map_err(|error| self.refusal(error))?.0
            }
            Way::Socket(socket) => {
                self.take_answers(0);
                socket.ask(request)?.reply
            }
        };
        decode(&reply, Order::Native).map_err(|Short| Error::ShortReply)
    }

    fn send(&self, request: Request) -> Result<()> {
        match &self.way {
            Way::Extension { major_opcode, .. } => {
                let bytes = request.encode(*major_opcode);
                let cookie = self.connection()?.send_request_without_reply(&[IoSlice::new(&bytes)], Vec::new())?;
                if let Some(held) = self.held_requests().as_mut() {
                    held.sent.push(cookie.sequence_number());
                    // Dropped, its error would come as an event.
                    std::mem::forget(cookie);
                    return Ok(());
                }
                cookie.check().map_err(|error| self.refusal(error))
            }
            Way::Socket(socket) => {
                if self.held_requests().as_mut().map(|held| held.posted += 1).is_none() {
                    return socket.ask(request).map(|_| ());
                }
                self.take_answers(MAX_POSTED);
                socket.send(request)
            }
        }
    }

    fn is_admission_error(&self, code: u8) -> bool {
        matches!(self.way, Way::Extension { first_error, .. } if code == first_error + ADMISSION_ERROR)
    }

    fn refusal(&self, error: ReplyError) -> Error {
        const BAD_VALUE: u8 = 2;
        const BAD_ACCESS: u8 = 10;
        let error = match error {
            ReplyError::X11Error(error) => error,
            ReplyError::ConnectionError(error) => return error.into(),
        };
        match error.error_code {
            BAD_VALUE => Error::Value(error.bad_value),
            BAD_ACCESS => Error::Access,
            code if self.is_admission_error(code) => Error::Admission { failing_client: error.bad_value },
            _ => Error::Answer(error.error_kind),
        }
    }
}

/// Keeps a reply's bytes as they came.
struct Raw(Vec<u8>);

impl x11rb::x11_utils::TryParse for Raw {
    fn try_parse(bytes: &[u8]) -> std::result::Result<(Self, &[u8]), x11rb::errors::ParseError> {
        Ok((Raw(bytes.to_vec()), &[]))
    }
}

/// The same, with the descriptors that came; the reply's second byte says how many.
struct WithFds(Vec<u8>, Vec<OwnedFd>);

impl x11rb::x11_utils::TryParseFd for WithFds {
    fn try_parse_fd<'a>(
        bytes: &'a [u8],
        fds: &mut Vec<RawFdContainer>,
    ) -> std::result::Result<(Self, &'a [u8]), x11rb::errors::ParseError> {
        let count = usize::from(*bytes.get(1).ok_or(x11rb::errors::ParseError::InsufficientData)?);
        if fds.len() < count {
            return Err(x11rb::errors::ParseError::MissingFileDescriptors);
        }
        Ok((WithFds(bytes.to_vec(), fds.drain(..count).collect()), &[]))
    }
}
