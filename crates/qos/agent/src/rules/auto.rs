// SPDX-License-Identifier: MIT
//! Measured reservations for clients of rules with `reserve = "auto"`.

use crate::auto::Auto as Measured;
use crate::error::{Result, refused};
use crate::session::Session;
use std::time::Duration;
use xqos_abi::ClientEntry;

/// Measures clients and keeps their reservations.
pub trait Auto {
    /// Starts to measure a client. The error says why that is impossible.
    fn begin(&mut self, entry: &ClientEntry) -> Result<()>;

    /// Maximum sum of all measured reservations, in millionths; `None` for the default.
    fn limit(&mut self, _ppm: Option<u32>) {}

    /// Stops measuring a client and releases its reservation.
    fn end(&mut self, client: u32);

    /// Time until [`Auto::work`] has something to do; `None`: nothing to do, so the daemon can sleep.
    fn due(&self) -> Option<Duration> {
        None
    }

    /// Evaluates the measurement and changes reservations. Returns messages.
    fn work(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Measures with the server's trace, over a separate connection that exists while there are clients to measure.
#[derive(Debug)]
pub struct ByTrace {
    display: String,
    limit_ppm: Option<u32>,
    running: Option<(Session, Measured)>,
}

impl ByTrace {
    pub fn new(display: &str) -> ByTrace {
        ByTrace { display: display.to_owned(), limit_ppm: None, running: None }
    }

    fn started(&mut self) -> Result<&mut Measured> {
        if self.running.is_none() {
            let (session, _) = Session::open_armed(Some(&self.display))?;
            let measured = Measured::start(&session, "auto, by a rule", self.limit_ppm)?;
            self.running = Some((session, measured));
        }
        self.running.as_mut().map(|(_, measured)| measured).ok_or_else(|| refused!("nothing is measured"))
    }
}

impl Auto for ByTrace {
    fn begin(&mut self, entry: &ClientEntry) -> Result<()> {
        let measured = self.started().map_err(|error| match error.is_late() {
            true => error,
            false => refused!("reserve = \"auto\" has no effect: {}", error.in_one_line()),
        })?;
        measured.adopt(entry);
        Ok(())
    }

    fn limit(&mut self, ppm: Option<u32>) {
        self.limit_ppm = ppm;
        if let Some((_, measured)) = &mut self.running {
            measured.limit(ppm);
        }
    }

    fn end(&mut self, client: u32) {
        let Some((session, measured)) = &mut self.running else { return };
        measured.leave(session, client);
        if measured.is_empty() {
            self.running = None;
        }
    }

    fn due(&self) -> Option<Duration> {
        self.running.as_ref().and_then(|(_, measured)| measured.wait())
    }

    fn work(&mut self) -> Vec<String> {
        let Some((session, measured)) = &mut self.running else { return Vec::new() };
        measured.turn(session).unwrap_or_else(|error| {
            let message = vec![format!("auto has stopped measuring: {}", error.in_one_line())];
            self.running = None;
            message
        })
    }
}
