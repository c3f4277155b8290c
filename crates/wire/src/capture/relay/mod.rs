// SPDX-License-Identifier: MIT
//! A relay for clients of a local display: records what no packet carries.
//!
//! ```text
//! program ──/tmp/.X11-unix/X64──▶ relay ──/tmp/.X11-unix/X0, or TCP──▶ X server
//!                                   └──▶ packets as of a loopback interface, in a file
//! ```
//!
//! Bytes go on as they come, in their order, with the files that were sent along (MIT-SHM, DRI3), before they are
//! recorded. Of each direction one piece is held at most, and nothing is read until it is gone: who is slow makes the
//! other one slow, as without a relay. To the server every client is this process, of this user.
//!
//! | file | what |
//! |---|---|
//! | `display` | the display that programs see: lock, sockets |
//! | `upstream` | the display behind it |
//! | `authority` | the cookie of the one under the name of the other |
//! | `connection` | one client's connection, both ways |
//! | `run` | the loop over all of them |

pub mod authority;
mod connection;
pub mod display;
mod run;
pub mod upstream;

use super::record::{Recorded, Settings};
use authority::Authority;
use display::Display;
use run::Loop;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::io;
use upstream::Upstream;

/// Why there is no relay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    #[error("DISPLAY is not set: say with --display which X server the program is to use")]
    NotSet,
    #[error("'{0}' is no display: write it like :0 or host:0")]
    NoDisplay(String),
    #[error("cannot connect to display {0}: check that it runs")]
    Unreachable(String, #[source] io::Error),
    /// No display of our own could be made.
    #[error("no display of our own can be made in /tmp/.X11-unix")]
    Display(#[source] io::Error),
    #[error("the cookie for our display cannot be written")]
    Authority(#[source] io::Error),
    #[error("the relay cannot be started")]
    Run(#[source] io::Error),
}

/// What went through.
#[derive(Debug, Default)]
pub struct Relayed {
    pub connections: u64,
    /// Clients that came when the server could not be reached.
    pub refused: u64,
    /// From clients, from the server.
    pub bytes: [u64; 2],
    /// Files that were sent along.
    pub files: u64,
    /// Those that could not be, since the server is behind TCP.
    pub files_lost: u64,
    pub recorded: Recorded,
}

/// A relay that runs. Its drop ends it and removes its files.
#[derive(Debug)]
pub struct Relay {
    display: Arc<Display>,
    authority: Option<Authority>,
    open: Arc<AtomicUsize>,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<io::Result<Relayed>>>,
}

impl Relay {
    /// Begins to listen for clients of that display, `None` being DISPLAY's, and to record into a file.
    pub fn start(display: Option<&str>, file: File, settings: &Settings) -> Result<Relay, RelayError> {
        let upstream = Upstream::find(display)?;
        let display = Arc::new(Display::make(upstream.screen()).map_err(RelayError::Display)?);
        let authority = Authority::of_upstream(&upstream, display.number()).map_err(RelayError::Authority)?;
        let (ours, theirs) = UnixStream::pair().map_err(RelayError::Run)?;
        let open = Arc::new(AtomicUsize::new(0));
        let mut run = Loop::new(Arc::clone(&display), upstream, theirs, Arc::clone(&open));
        let settings = settings.clone();
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(move || run.run(file, &settings));
        Ok(Relay { display, authority, open, stop: Some(ours), thread: Some(thread.map_err(RelayError::Run)?) })
    }

    /// What the program's DISPLAY has to be.
    pub fn display(&self) -> String {
        self.display.name()
    }

    /// What its XAUTHORITY has to be, where the server asks for a cookie.
    pub fn authority(&self) -> Option<&Path> {
        self.authority.as_ref().map(Authority::path)
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        // A number to look at; nothing else depends on it.
        self.open.load(Ordering::Relaxed)
    }

    /// Ends it; what went through.
    pub fn finish(mut self) -> Result<Relayed, RelayError> {
        self.end().unwrap_or_else(|| Ok(Relayed::default())).map_err(RelayError::Run)
    }

    fn end(&mut self) -> Option<io::Result<Relayed>> {
        self.stop = None;
        let ended = self.thread.take()?.join();
        Some(ended.unwrap_or_else(|_| Err(io::Error::other("its thread panicked"))))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
