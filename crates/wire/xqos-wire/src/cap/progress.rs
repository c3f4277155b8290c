// SPDX-License-Identifier: MIT
//! The progress of a long capture: one line on a terminal, updated once a second.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);

/// A progress line. Each update overwrites it, and drop erases it.
#[derive(Debug)]
pub struct Progress {
    is_shown: bool,
    has_written: bool,
    next: Instant,
}

impl Progress {
    pub fn new(quiet: bool) -> Progress {
        let is_shown = !quiet && stderr().is_terminal();
        Progress { is_shown, has_written: false, next: Instant::now() + EVERY }
    }

    /// Shows the text, if a second has passed since the last update.
    pub fn update(&mut self, text: impl FnOnce() -> String) {
        if self.is_shown && Instant::now() >= self.next {
            self.next = Instant::now() + EVERY;
            self.write(&text());
            self.has_written = true;
        }
    }

    fn write(&self, text: &str) {
        // A closed terminal must not make the capture fail.
        let _ = write!(stderr().lock(), "\r\x1b[K{text}").and_then(|()| stderr().flush());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.has_written {
            self.write("");
        }
    }
}
