// SPDX-License-Identifier: MIT
//! A relay for clients of a local display, to record connections that have no packets.
//!
//! ```text
//! program ──/tmp/.X11-unix/X64──▶ relay ──/tmp/.X11-unix/X0, or TCP──▶ X server
//!                                   └──▶ packets as on a loopback interface, in a file
//! ```
//!
//! Bytes are forwarded on arrival, in order and with their file descriptors (MIT-SHM, DRI3), and recorded afterwards.
//! The relay holds at most one piece per direction and reads no more until that piece is sent. A slow end slows the
//! other end, just as without a relay. To the server, every client appears to be the relay's process and user.
//!
//! | file | purpose |
//! |---|---|
//! | `display` | the display that programs see: lock, sockets |
//! | `upstream` | the real display |
//! | `authority` | the real display's cookie under our display's name |
//! | `connection` | one client's connection, both ways |
//! | `run` | the loop that serves all connections |

pub mod authority;
mod connection;
pub mod display;
mod run;
pub mod upstream;

use crate::background::Background;
use crate::recording::{Recorded, RecordingSettings, Target};
use authority::Authority;
use display::Display;
use run::Loop;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use upstream::Upstream;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    #[error("DISPLAY is not set: name the X server for the program with --display")]
    NotSet,
    #[error("'{0}' is not a display name: write it like :0 or host:0")]
    NoDisplay(String),
    #[error("cannot connect to display {0}: check that it runs and that this user may connect")]
    Unreachable(String, #[source] io::Error),
    #[error("cannot create the relay's display in /tmp/.X11-unix")]
    Display(#[source] io::Error),
    #[error("cannot write the authority file for the relay's display")]
    Authority(#[source] io::Error),
    #[error("cannot start the relay")]
    Run(#[source] io::Error),
}

#[derive(Debug, Default)]
pub struct Relayed {
    pub connections: u64,
    /// Clients that connected while the server was unreachable.
    pub refused: u64,
    /// Bytes from clients, and from the server.
    pub bytes: [u64; 2],
    /// Number of file descriptors that were passed.
    pub files: u64,
    /// Number of file descriptors that could not be passed, because the server is reached over TCP.
    pub files_lost: u64,
    pub recorded: Recorded,
}

/// A running relay. Dropping it stops the thread and removes the files.
#[derive(Debug)]
pub struct Relay {
    // Field order matters: the thread must end before its files are removed.
    thread: Background<io::Result<Relayed>>,
    display: Arc<Display>,
    authority: Option<Authority>,
    /// Numbers of open connections, and of those that the client has closed.
    open: Arc<[AtomicUsize; 2]>,
}

impl Relay {
    /// Starts relaying clients of this display and recording them.
    pub fn start(upstream: Upstream, target: Target, settings: &RecordingSettings) -> Result<Relay, RelayError> {
        let display = Arc::new(Display::make(upstream.display.screen).map_err(RelayError::Display)?);
        let authority = Authority::of_upstream(&upstream, display.number).map_err(RelayError::Authority)?;
        let open = Arc::<[AtomicUsize; 2]>::default();
        let run = Loop::new(Arc::clone(&display), upstream, Arc::clone(&open));
        let settings = settings.clone();
        let thread = Background::start("relay", move |stop| run.run(target, &settings, &stop));
        Ok(Relay { display, authority, open, thread: thread.map_err(RelayError::Run)? })
    }

    /// Value of DISPLAY for the program.
    pub fn display(&self) -> String {
        self.display.name()
    }

    /// Value of XAUTHORITY for the program, if the server requires a cookie.
    pub fn authority(&self) -> Option<&Path> {
        self.authority.as_ref().map(Authority::path)
    }

    pub fn open(&self) -> usize {
        // Informational only; nothing else depends on it.
        self.open[0].load(Ordering::Relaxed)
    }

    /// The number of open connections that the client has closed and the server has not.
    pub fn closing(&self) -> usize {
        self.open[1].load(Ordering::Relaxed)
    }

    pub fn finish(self) -> Result<Relayed, RelayError> {
        self.thread.finish().and_then(|relayed| relayed).map_err(RelayError::Run)
    }
}
