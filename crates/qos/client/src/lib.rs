// SPDX-License-Identifier: MIT
//! The control connection to an X server with xqos: requests of the XQOS extension, with typed replies. The same
//! requests also work over the server's control socket, which needs no extension and no free client slot, and answers
//! during a server grab.
//!
//! Programs, experiments and tests all use this connection.

#![forbid(unsafe_code)]

mod display;
mod error;
mod open;
mod settings;
mod socket;

pub use display::{connect, connect_soon, number_of};
pub use error::Error;
pub use socket::{Authority, Peer, Socket};

use socket::ReplyWithDescriptors;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use x11rb::connection::{Connection, RequestConnection, SequenceNumber};
use x11rb::errors::{ParseError, ReplyError};
use x11rb::protocol::Event;
use x11rb::rust_connection::RustConnection;
use x11rb::utils::RawFdContainer;
use xqos_abi::trace::{Level, RECORD_BYTES};
use xqos_abi::{
    AdmissionReport, ByteOrder, ClientList, CutReport, DesktopReport, EXTENSION_NAME, GroupsReport, Label,
    LongestRequests, Malformed, Notify, PacingReport, PolicyChange, ProcessorReport, Request, ReservationReport,
    ServerInfo, Subject, TraceStarted, Version, entry_flag, reservation, ring,
};
use xqos_x11::codes::SENT_BY_CLIENT;

pub type Result<T> = std::result::Result<T, Error>;

/// An open connection to a server with xqos.
#[derive(Debug)]
pub struct Control {
    /// `None`: only the control socket is connected.
    connection: Option<RustConnection>,
    screen: usize,
    transport: Transport,
    version: Version,
    /// Requests sent but not yet checked; `None`: each request waits for its answer.
    held: Mutex<Option<HeldRequests>>,
}

/// Settings that were sent without waiting for the answers.
#[derive(Debug, Default)]
struct HeldRequests {
    /// Requests that were sent over the extension.
    sent: Vec<SequenceNumber>,
    /// Number of requests that were sent over the control socket.
    posted: usize,
    /// The answers so far, in order; true: refused.
    refused: Vec<bool>,
    /// The server hangs: further requests are not sent, and count as refused.
    is_late: bool,
}

/// The control socket can buffer this many answers.
const MAX_POSTED: usize = 64;

#[derive(Debug)]
enum Transport {
    Extension { major_opcode: u8, first_event: u8, first_error: u8 },
    Socket(Socket),
}

/// Declares queries without arguments.
macro_rules! questions {
    ($($(#[$meta:meta])* $name:ident: $request:ident -> $reply:ident;)*) => {$(
        $(#[$meta])*
        pub fn $name(&self) -> Result<$reply> {
            self.ask(Request::$request, $reply::decode)
        }
    )*};
}

impl Control {
    questions! {
        server_info: GetServerInfo -> ServerInfo;
        /// Clients that have disconnected, summed up by program.
        departed: ListDeparted -> ClientList;
        pacing: GetPacing -> PacingReport;
        desktop: GetDesktop -> DesktopReport;
        cut: GetCut -> CutReport;
        groups: GetGroups -> GroupsReport;
        processor: GetProcessor -> ProcessorReport;
        /// The longest requests since the server started.
        longest_requests: ListLongestRequests -> LongestRequests;
    }

    /// Sends settings without waiting for answers until [`Control::settle`] is called, so many requests take one round
    /// trip. Until then each one reports success. This affects all users of the connection.
    pub fn hold(&self) {
        *self.held_requests() = Some(HeldRequests::default());
    }

    /// The number of requests sent since [`Control::hold`].
    pub fn held(&self) -> usize {
        self.held_requests().as_ref().map_or(0, |held| held.sent.len() + held.posted)
    }

    /// Waits for the answers to all held requests and returns the indices of those that were refused.
    pub fn settle(&self) -> Vec<usize> {
        self.take_answers(0);
        let held = self.held_requests().take().unwrap_or_default();
        let is_refused = |sequence| self.connection.as_ref().is_some_and(|it| it.check_for_error(sequence).is_err());
        let refused = held.sent.into_iter().map(is_refused).chain(held.refused);
        refused.enumerate().filter(|&(_, refused)| refused).map(|(at, _)| at).collect()
    }

    /// Reads answers from the control socket until at most `most` are outstanding.
    fn take_answers(&self, most: usize) {
        let Transport::Socket(socket) = &self.transport else { return };
        if let Some(held) = self.held_requests().as_mut() {
            while held.posted - held.refused.len() > most {
                let answer = socket.answer();
                held.refused.push(answer.is_err());
                if matches!(answer, Err(Error::Late)) {
                    // Do not wait for the other answers: each could take as long again.
                    held.is_late = true;
                    socket.skip(held.posted - held.refused.len());
                    held.refused.resize(held.posted, true);
                }
            }
        }
    }

    fn held_requests(&self) -> MutexGuard<'_, Option<HeldRequests>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn connection(&self) -> Result<&RustConnection> {
        self.connection.as_ref().ok_or(Error::NoConnection)
    }

    /// The process at the other end of the control socket.
    pub fn peer(&self) -> Option<Peer> {
        match &self.transport {
            Transport::Socket(socket) => socket.peer(),
            Transport::Extension { .. } => None,
        }
    }

    pub fn screen(&self) -> usize {
        self.screen
    }

    /// True if the server has no extension, because xqos serves it through libc. `None` without an X connection.
    pub fn is_served_through_libc(&self) -> Option<bool> {
        let extension = self.connection.as_ref()?.extension_information(EXTENSION_NAME).ok()?;
        Some(extension.is_none())
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// Lists all clients. Our own X connection is marked over both transports.
    pub fn clients(&self) -> Result<ClientList> {
        let mut list = self.ask(Request::ListClients, ClientList::decode)?;
        if let (Transport::Socket(_), Some(own)) = (&self.transport, self.own_base()) {
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

    /// Tests whether a reservation would be admitted. The result does not depend on its kind.
    pub fn check_admission(&self, subject: Subject, budget_us: u32, period_us: u32) -> Result<AdmissionReport> {
        let subject = self.subject(subject);
        let reservation = reservation(budget_us, period_us, false);
        self.ask(Request::CheckAdmission { subject, reservation }, AdmissionReport::decode)
    }

    pub fn set_policy(&self, change: PolicyChange) -> Result<()> {
        self.send(Request::SetPolicy { change })
    }

    /// Selects events; `mask` has bits of [`xqos_abi::event_mask`].
    pub fn select_events(&self, mask: u32) -> Result<()> {
        self.send(Request::SelectEvents { mask })
    }

    /// Sets the name reported with later settings of this connection; `lease`: those settings end with the connection.
    pub fn set_origin(&self, name: &str, lease: bool) -> Result<()> {
        self.send(Request::SetOrigin { name: Label::new(name), lease })
    }

    /// Allows the server's thread a real-time priority while it works for a client with a reservation, as long as this
    /// connection exists. `limit_before`: the priority limit to restore afterwards.
    pub fn lend_processor(&self, on: bool, limit_before: u32) -> Result<()> {
        self.send(Request::LendProcessor { on, limit_before })
    }

    /// Starts a trace with a new snapshot. `capacity`: the number of records in the ring, if it has no reader yet; 0:
    /// the default.
    pub fn start_trace(&self, level: Level, capacity: u32) -> Result<ring::RingReader> {
        let ReplyWithDescriptors { reply, mut descriptors } = self.answer(Request::StartTrace { level, capacity })?;
        let started = TraceStarted::decode(&reply, ByteOrder::NATIVE).map_err(|_| Error::ShortReply)?;
        if started.record_bytes != RECORD_BYTES as u32 {
            return Err(Error::TraceVersion);
        }
        let fd = descriptors.pop().ok_or(Error::NoDescriptor)?;
        ring::RingReader::open(fd, started.first).map_err(Error::Ring)
    }

    /// Requests a new snapshot in a trace that is open. Over the control socket this does not wait, so that a server
    /// that hangs does not end a recording; further requests have no effect until it answers.
    pub fn renew_trace(&self, level: Level, capacity: u32) -> Result<()> {
        match &self.transport {
            Transport::Extension { .. } => self.start_trace(level, capacity).map(drop),
            Transport::Socket(socket) => socket.post(Request::StartTrace { level, capacity }),
        }
    }

    pub fn stop_trace(&self) -> Result<()> {
        self.send(Request::StopTrace)
    }

    /// The next XQOS event, if one has arrived; other events are skipped.
    pub fn next_notify(&self) -> Result<Option<Notify>> {
        let Transport::Extension { first_event, .. } = self.transport else { return self.next_of_socket() };
        while let Some(event) = self.connection()?.poll_for_event()? {
            match event {
                Event::Unknown(bytes) if bytes.first().is_some_and(|code| code & !SENT_BY_CLIENT == first_event) => {
                    if let Ok(notify) = Notify::decode(&bytes, ByteOrder::NATIVE) {
                        return Ok(Some(notify));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn next_of_socket(&self) -> Result<Option<Notify>> {
        // Other events of the X connection are ignored, but must not accumulate.
        if let Some(connection) = &self.connection {
            while connection.poll_for_event()?.is_some() {}
        }
        match &self.transport {
            Transport::Socket(socket) => socket.next_event(),
            Transport::Extension { .. } => Ok(None),
        }
    }

    /// The descriptor that becomes readable when an event arrives or the server exits.
    pub fn descriptor(&self) -> RawFd {
        match (&self.transport, &self.connection) {
            (Transport::Socket(socket), _) => socket.descriptor(),
            (Transport::Extension { .. }, connection) => connection.as_ref().map_or(-1, |it| it.stream().as_raw_fd()),
        }
    }

    /// The first resource id of our own connection.
    fn own_base(&self) -> Option<u32> {
        Some(self.connection.as_ref()?.setup().resource_id_base)
    }

    /// The subject of a request. On the control socket a request has no sender, so it names our own X connection
    /// explicitly.
    fn subject(&self, subject: Subject) -> Subject {
        match &self.transport {
            Transport::Socket(_) => subject.named(self.own_base().unwrap_or(0)),
            Transport::Extension { .. } => subject,
        }
    }

    fn ask<T>(
        &self,
        request: Request,
        decode: impl FnOnce(&[u8], ByteOrder) -> std::result::Result<T, Malformed>,
    ) -> Result<T> {
        decode(&self.answer(request)?.reply, ByteOrder::NATIVE).map_err(|_| Error::ShortReply)
    }

    fn answer(&self, request: Request) -> Result<ReplyWithDescriptors> {
        match &self.transport {
            Transport::Extension { major_opcode, first_error, .. } => {
                let bytes = request.encode(*major_opcode);
                let (parts, connection) = ([IoSlice::new(&bytes)], self.connection()?);
                // If descriptors are requested, x11rb takes the second byte of any reply as their number.
                let answer = if matches!(request, Request::StartTrace { .. }) {
                    connection.send_request_with_reply_with_fds(&parts, Vec::new())?.reply()
                } else {
                    let cookie = connection.send_request_with_reply(&parts, Vec::new())?;
                    cookie.reply().map(|Raw(reply)| ReplyWithDescriptors { reply, descriptors: Vec::new() })
                };
                answer.map_err(|error| refusal(error, *first_error))
            }
            Transport::Socket(socket) => {
                self.take_answers(0);
                socket.ask(request)
            }
        }
    }

    fn send(&self, request: Request) -> Result<()> {
        match &self.transport {
            Transport::Extension { major_opcode, first_error, .. } => {
                let bytes = request.encode(*major_opcode);
                let cookie = self.connection()?.send_request_without_reply(&[IoSlice::new(&bytes)], Vec::new())?;
                if let Some(held) = self.held_requests().as_mut() {
                    held.sent.push(cookie.sequence_number());
                    // If the cookie were dropped, an error would arrive as an event.
                    std::mem::forget(cookie);
                    return Ok(());
                }
                cookie.check().map_err(|error| refusal(error, *first_error))
            }
            Transport::Socket(socket) => {
                if self.held_requests().is_none() {
                    return socket.ask(request).map(|_| ());
                }
                self.take_answers(MAX_POSTED - 1);
                let mut held = self.held_requests();
                let held = held.get_or_insert_default();
                held.posted += 1;
                if held.is_late {
                    held.refused.push(true);
                    return Ok(());
                }
                socket.send(request)
            }
        }
    }
}

fn refusal(error: ReplyError, first_error: u8) -> Error {
    match error {
        ReplyError::X11Error(error) => {
            Error::of_answer(error.error_code, error.bad_value, first_error, error.error_kind)
        }
        ReplyError::ConnectionError(error) => error.into(),
    }
}

struct Raw(Vec<u8>);

impl x11rb::x11_utils::TryParse for Raw {
    fn try_parse(bytes: &[u8]) -> std::result::Result<(Self, &[u8]), ParseError> {
        Ok((Raw(bytes.to_vec()), &[]))
    }
}

/// The raw bytes of a reply, with its descriptors.
impl x11rb::x11_utils::TryParseFd for ReplyWithDescriptors {
    fn try_parse_fd<'a>(
        bytes: &'a [u8],
        fds: &mut Vec<RawFdContainer>,
    ) -> std::result::Result<(Self, &'a [u8]), ParseError> {
        Ok((ReplyWithDescriptors { reply: bytes.to_vec(), descriptors: std::mem::take(fds) }, &[]))
    }
}
