// SPDX-License-Identifier: MIT
//! Reservations that are found by measurement, for clients of which a rule wants it.

use crate::auto::Auto as Measured;
use crate::error::{Result, refused};
use crate::session::Session;
use std::time::Duration;
use xqos_abi::ClientEntry;

/// Finds reservations for clients, and keeps them.
pub trait Auto {
    /// From now on for this client; the error is told, and says why not.
    fn begin(&mut self, entry: &ClientEntry) -> Result<()>;

    /// The most for all that is found by measurement, millionths; `None`: the usual.
    fn limit(&mut self, _ppm: Option<u32>) {}

    /// No longer; what was reserved is released.
    fn end(&mut self, client: u32);

    /// When there is something to do; `None`: nothing, so that nobody is woken for it.
    fn due(&self) -> Option<Duration> {
        None
    }

    /// Does what is due: looks at what was measured, and changes reservations. Gives what is to be told.
    fn work(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Measures by the server's trace, over a connection of its own, while there is anybody to measure.
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
        let measured =
            self.started().map_err(|error| refused!("reserve = \"auto\" has no effect: {}", error.in_one_line()))?;
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
            let told = vec![format!("nothing is measured any more: {}", error.in_one_line())];
            self.running = None;
            told
        })
    }
}
