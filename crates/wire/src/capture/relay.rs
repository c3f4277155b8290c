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
use crate::background::Background;
use authority::Authority;
use display::Display;
use run::Loop;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    // In this order: its files go when it has ended.
    thread: Background<io::Result<Relayed>>,
    display: Arc<Display>,
    authority: Option<Authority>,
    open: Arc<AtomicUsize>,
}

impl Relay {
    /// Begins to listen for clients of that display, `None` being DISPLAY's, and to record into a file.
    pub fn start(display: Option<&str>, file: File, settings: &Settings) -> Result<Relay, RelayError> {
        let (upstream, _) = Upstream::find(display)?;
        let display = Arc::new(Display::make(upstream.screen()).map_err(RelayError::Display)?);
        let authority = Authority::of_upstream(&upstream, display.number()).map_err(RelayError::Authority)?;
        let open = Arc::new(AtomicUsize::new(0));
        let run = Loop::new(Arc::clone(&display), upstream, Arc::clone(&open));
        let settings = settings.clone();
        let thread = Background::start("relay", move |stop| run.run(file, &settings, &stop));
        Ok(Relay { display, authority, open, thread: thread.map_err(RelayError::Run)? })
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
    pub fn finish(self) -> Result<Relayed, RelayError> {
        self.thread.finish().and_then(|relayed| relayed).map_err(RelayError::Run)
    }
}
