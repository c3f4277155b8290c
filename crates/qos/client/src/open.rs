// SPDX-License-Identifier: MIT
//! Opens a control connection: over an X connection, over the control socket, or over both.

use crate::display::{PATIENCE, connect, connect_within, number_of};
use crate::{Authority, Control, Error, Result, Socket, Transport};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use x11rb::connection::RequestConnection;
use x11rb::rust_connection::RustConnection;
use xqos_abi::{EXTENSION_NAME, Request, VERSION, Version};

/// The maximum time to wait for the end of a server grab.
const GRAB_PATIENCE: Duration = Duration::from_millis(300);

impl Control {
    /// Connects to a display (`None`: the one in DISPLAY). `Ok(None)`: the server runs without xqos.
    pub fn connect(display: Option<&str>) -> Result<Option<Control>> {
        Control::over(connect(display)?, number_of(display))
    }

    /// Connects like [`connect`](Control::connect), but over the control socket if there is one. The server answers
    /// there during a server grab and when it has no free client slot; in these cases there is no X connection.
    pub fn open(display: Option<&str>) -> Result<Option<Control>> {
        let Some(number) = number_of(display) else { return Control::connect(display) };
        let as_client = || Control::over(connect_within(display, PATIENCE, || true)?, Some(number));
        let Some(mut control) = Control::at_socket(number, None)? else { return as_client() };
        let is_free = match control.accepts_clients_soon() {
            // xqos is disabling itself at this moment.
            Err(Error::Socket(_)) => return as_client(),
            answered => answered?,
        };
        // Do not try while the server would not answer: each attempt occupies a client slot until the grab ends.
        if is_free {
            let can_succeed = || control.accepts_clients().unwrap_or(true);
            if let Ok((connection, screen)) = connect_within(display, PATIENCE, can_succeed) {
                (control.connection, control.screen) = (Some(connection), screen);
            }
        }
        Ok(Some(control))
    }

    /// Connects only to the control socket of a display, until a deadline. `Ok(None)`: there is no such socket, the
    /// server is exiting, or it answers only users that have an X connection.
    pub fn at_socket(display: u32, until: Option<Instant>) -> Result<Option<Control>> {
        let Some(socket) = Socket::of_display(display, until) else { return Ok(None) };
        match Control::negotiate(None, 0, Transport::Socket(socket)) {
            Err(Error::Access | Error::Socket(_)) => Ok(None),
            negotiated => negotiated.map(Some),
        }
    }

    /// Connects as a client over the display's own socket.
    pub fn enter(socket: Socket, display: u32, authority: Authority) -> Result<Option<Control>> {
        let entered = socket.enter(display, authority)?;
        entered.map(|socket| Control::negotiate(None, 0, Transport::Socket(socket))).transpose()
    }

    fn over((connection, screen): (RustConnection, usize), display: Option<u32>) -> Result<Option<Control>> {
        let transport = match connection.extension_information(EXTENSION_NAME)? {
            Some(extension) => Transport::Extension {
                major_opcode: extension.major_opcode,
                first_event: extension.first_event,
                first_error: extension.first_error,
            },
            None => match display.and_then(|number| Socket::of_server(connection.stream(), number)) {
                Some(socket) => Transport::Socket(socket),
                None => return Ok(None),
            },
        };
        Control::negotiate(Some(connection), screen, transport).map(Some)
    }

    /// Waits until the server accepts another client. Returns false if it still does not after `GRAB_PATIENCE`.
    fn accepts_clients_soon(&self) -> Result<bool> {
        let until = Instant::now() + GRAB_PATIENCE;
        while !self.accepts_clients()? {
            if Instant::now() >= until {
                return Ok(false);
            }
            std::thread::sleep(GRAB_PATIENCE / 10);
        }
        Ok(true)
    }

    /// True if no client holds the server grab and a client slot is free.
    fn accepts_clients(&self) -> Result<bool> {
        let info = self.server_info()?;
        let has_place = info.clients_limit == 0 || info.clients < info.clients_limit;
        Ok(info.grab_holder == 0 && has_place)
    }

    fn negotiate(connection: Option<RustConnection>, screen: usize, transport: Transport) -> Result<Control> {
        let (version, held) = (Version { major: 0, minor: 0 }, Mutex::new(None));
        let mut control = Control { connection, screen, transport, version, held };
        let query = Request::QueryVersion { major: VERSION.0, minor: VERSION.1 };
        control.version = control.ask(query, Version::decode)?;
        if control.version.major != VERSION.0 {
            let Version { major, minor } = control.version;
            return Err(Error::Version { major, minor });
        }
        Ok(control)
    }
}
