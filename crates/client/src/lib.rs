//! The control connection to an X server that carries xqos: requests of the extension XQOS, and its answers as types.
//!
//! Programs, experiments and tests all speak through it.

mod error;

pub use error::Error;

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use x11rb::connection::RequestConnection;
use x11rb::errors::ReplyError;
use x11rb::protocol::Event;
use x11rb::rust_connection::RustConnection;
use x11rb::utils::RawFdContainer;
use xqos_abi::trace::Level;
use xqos_abi::{
    ADMISSION_ERROR, AdmissionReport, ClientList, DesktopReport, EXTENSION_NAME, LongestRequests, Notify, Order,
    PacingReport, PolicyChange, ProcessorReport, Request, ReservationReport, ServerInfo, Short, TraceStarted, VERSION,
    Version, ring,
};

/// What a request came to.
pub type Result<T> = std::result::Result<T, Error>;

/// An open connection with the extension present.
#[derive(Debug)]
pub struct Control {
    connection: RustConnection,
    screen: usize,
    major_opcode: u8,
    first_event: u8,
    first_error: u8,
    version: Version,
}

impl Control {
    /// Connects to a display (`None`: the one in DISPLAY). `Ok(None)`: the server is there and does not carry xqos.
    pub fn connect(display: Option<&str>) -> Result<Option<Control>> {
        let (connection, screen) = connect(display)?;
        let Some(extension) = connection.extension_information(EXTENSION_NAME)? else { return Ok(None) };
        let mut control = Control {
            connection,
            screen,
            major_opcode: extension.major_opcode,
            first_event: extension.first_event,
            first_error: extension.first_error,
            version: Version { major: 0, minor: 0 },
        };
        let query = Request::QueryVersion { major: VERSION.0, minor: VERSION.1 };
        control.version = control.ask(query, Version::decode)?;
        if control.version.major != VERSION.0 {
            let Version { major, minor } = control.version;
            return Err(Error::Version { major, minor });
        }
        Ok(Some(control))
    }

    /// The plain X connection beneath.
    pub fn connection(&self) -> &RustConnection {
        &self.connection
    }

    /// Index of the default screen.
    pub fn screen(&self) -> usize {
        self.screen
    }

    /// The server's version of the extension.
    pub fn version(&self) -> Version {
        self.version
    }

    pub fn server_info(&self) -> Result<ServerInfo> {
        self.ask(Request::GetServerInfo, ServerInfo::decode)
    }

    pub fn clients(&self) -> Result<ClientList> {
        self.ask(Request::ListClients, ClientList::decode)
    }

    /// `client` 0 is this connection.
    pub fn reserve(&self, client: u32, budget_us: u32, period_us: u32, hard: bool) -> Result<()> {
        self.send(Request::SetReservation { client, budget_us, period_us, hard })
    }

    pub fn release(&self, client: u32) -> Result<()> {
        self.send(Request::ClearReservation { client })
    }

    pub fn reservation(&self, client: u32) -> Result<ReservationReport> {
        self.ask(Request::GetReservation { client }, ReservationReport::decode)
    }

    pub fn check_admission(&self, client: u32, budget_us: u32, period_us: u32, hard: bool) -> Result<AdmissionReport> {
        self.ask(Request::CheckAdmission { client, budget_us, period_us, hard }, AdmissionReport::decode)
    }

    pub fn set_policy(&self, change: PolicyChange) -> Result<()> {
        self.send(Request::SetPolicy(change))
    }

    /// `weight` in hundredths.
    pub fn set_weight(&self, client: u32, weight: u32) -> Result<()> {
        self.send(Request::SetClientWeight { client, weight })
    }

    pub fn set_priority(&self, client: u32, priority: i32) -> Result<()> {
        self.send(Request::SetClientPriority { client, priority })
    }

    /// Bits of [`xqos_abi::event_mask`].
    pub fn select_events(&self, mask: u32) -> Result<()> {
        self.send(Request::SelectEvents { mask })
    }

    /// Clients that uncover others wait for them: for each Expose at most `limit_us` (0: nobody waits), and they come on
    /// once in `floor_us` at least.
    pub fn set_pacing(&self, limit_us: u32, floor_us: u32) -> Result<()> {
        self.send(Request::SetPacing { limit_us, floor_us })
    }

    pub fn pacing(&self) -> Result<PacingReport> {
        self.ask(Request::GetPacing, PacingReport::decode)
    }

    /// Clients that work for others go first, and get at most `share_ppm` of the server while others wait; 0: they are served
    /// like all others.
    pub fn set_desktop_share(&self, share_ppm: u32) -> Result<()> {
        self.send(Request::SetDesktop { share_ppm })
    }

    pub fn desktop(&self) -> Result<DesktopReport> {
        self.ask(Request::GetDesktop, DesktopReport::decode)
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
        let bytes = Request::StartTrace { level, capacity }.encode(self.major_opcode);
        let cookie =
            self.connection.send_request_with_reply_with_fds::<WithFds>(&[IoSlice::new(&bytes)], Vec::new())?;
        let WithFds(reply, mut fds) = cookie.reply().map_err(|error| self.refusal(error))?;
        let started = TraceStarted::decode(&reply, Order::Native).map_err(|Short| Error::TraceVersion)?;
        let fd = fds.pop().ok_or(Error::NoDescriptor)?;
        ring::Reader::open(fd, started.first).map_err(Error::Ring)
    }

    pub fn stop_trace(&self) -> Result<()> {
        self.send(Request::StopTrace)
    }

    /// Our event in an event of the connection, if it is one.
    pub fn notify(&self, event: &Event) -> Option<Notify> {
        match event {
            Event::Unknown(bytes) if bytes.first().is_some_and(|code| code & 0x7f == self.first_event) => {
                Notify::decode(bytes, Order::Native).ok()
            }
            _ => None,
        }
    }

    fn ask<T>(
        &self,
        request: Request,
        decode: impl FnOnce(&[u8], Order) -> std::result::Result<T, Short>,
    ) -> Result<T> {
        let bytes = request.encode(self.major_opcode);
        let cookie = self.connection.send_request_with_reply::<Raw>(&[IoSlice::new(&bytes)], Vec::new())?;
        let reply = cookie.reply().map_err(|error| self.refusal(error))?;
        decode(&reply.0, Order::Native).map_err(|Short| Error::ShortReply)
    }

    fn send(&self, request: Request) -> Result<()> {
        let bytes = request.encode(self.major_opcode);
        let cookie = self.connection.send_request_without_reply(&[IoSlice::new(&bytes)], Vec::new())?;
        cookie.check().map_err(|error| self.refusal(error))
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
            code if code == self.first_error + ADMISSION_ERROR => Error::Admission { failing_client: error.bad_value },
            _ => Error::Answer(error.error_kind),
        }
    }
}

/// Connects to a display without asking for the extension.
pub fn connect(display: Option<&str>) -> Result<(RustConnection, usize)> {
    x11rb::connect(display).map_err(|why| match display.map(str::to_owned).or_else(|| std::env::var("DISPLAY").ok()) {
        Some(display) => Error::Unreachable { display, why },
        None => Error::NoDisplay,
    })
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
