// SPDX-License-Identifier: MIT
//! Displays by their names, and plain X connections to them.

use crate::{Error, Result};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use x11rb::rust_connection::RustConnection;

/// Connects to a display without asking for the extension.
pub fn connect(display: Option<&str>) -> Result<(RustConnection, usize)> {
    x11rb::connect(display).map_err(|why| match display.map(str::to_owned).or_else(|| std::env::var("DISPLAY").ok()) {
        Some(display) => Error::Unreachable { display, why },
        None => Error::NoDisplay,
    })
}

/// The same, if the server answers in this time, and while there is a chance that it does. A connection that comes later is
/// closed.
pub fn connect_within(
    display: Option<&str>,
    patience: Duration,
    has_a_chance: impl Fn() -> bool,
) -> Result<(RustConnection, usize)> {
    /// Between two looks at the chance.
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
            // While it ends it would still take signals, such as the SIGCHLD that our caller waits for.
            let _ = connecting.join();
            return connected;
        }
        if Instant::now() >= until || !has_a_chance() {
            return Err(Error::Late);
        }
    }
}

/// The number of a display of this machine; `None`: the one in DISPLAY.
pub fn number_of(display: Option<&str>) -> Option<u32> {
    let display = display.map(str::to_owned).or_else(|| std::env::var("DISPLAY").ok())?;
    let (host, number) = display.rsplit_once(':')?;
    if host.is_empty() || host == "unix" { number.split('.').next()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_displays_of_this_machine_have_a_number() {
        assert_eq!([":7", "unix:7", ":7.1"].map(|name| number_of(Some(name))), [Some(7); 3]);
        assert_eq!(["far:7", "localhost:10", "7", ":x"].map(|name| number_of(Some(name))), [None; 4]);
    }
}
