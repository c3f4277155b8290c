// SPDX-License-Identifier: MIT
//! Display names, and plain X connections to displays.

use crate::{Error, Result};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use x11rb::rust_connection::RustConnection;
use xqos_x11::display::{local_number, plain};

/// Connects to a display without using the extension.
pub fn connect(display: Option<&str>) -> Result<(RustConnection, usize)> {
    let name = named(display).ok_or(Error::NoDisplay)?;
    x11rb::connect(Some(&plain(&name))).map_err(|why| Error::Unreachable { display: name, why })
}

/// A server that does not answer within this time counts as hanging, unless a client holds a grab.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Connects like [`connect`], but gives up if the server hangs or a client holds a grab.
pub fn connect_soon(display: Option<&str>) -> Result<RustConnection> {
    Ok(connect_within(display, PATIENCE, || true)?.0)
}

/// Connects like [`connect`], for at most `patience` and only while `can_succeed` returns true. A connection that
/// succeeds later is closed.
pub fn connect_within(
    display: Option<&str>,
    patience: Duration,
    can_succeed: impl Fn() -> bool,
) -> Result<(RustConnection, usize)> {
    /// The interval between two checks of `can_succeed`.
    const STEP: Duration = Duration::from_millis(300);
    let until = Instant::now() + patience;
    let (sender, receiver) = channel();
    let display = display.map(str::to_owned);
    let work = move || {
        let _ = sender.send(connect(display.as_deref()));
    };
    let connecting = thread::Builder::new().name("connect".to_owned()).spawn(work).map_err(Error::Socket)?;
    loop {
        if let Ok(connected) = receiver.recv_timeout(STEP) {
            // Wait for the thread's end: until then it could receive signals that the caller waits for, such as
            // SIGCHLD.
            let _ = connecting.join();
            return connected;
        }
        if Instant::now() >= until || !can_succeed() {
            return Err(Error::Late);
        }
    }
}

/// The number of a local display; `None` stands for the display in DISPLAY.
pub fn number_of(display: Option<&str>) -> Option<u32> {
    local_number(&named(display)?)
}

fn named(display: Option<&str>) -> Option<String> {
    display.map(str::to_owned).or_else(|| std::env::var("DISPLAY").ok())
}
