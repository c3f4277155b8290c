// SPDX-License-Identifier: MIT
//! The guard: a process that puts back who is raised when `xqos boost`, or whoever raised them, is killed.
//!
//! It is forked before anything is raised, shares the list of what is, and does nothing but wait for the end of a pipe
//! whose other end dies with its parent. It ignores what ends a terminal's programs, and stands above whom is raised, or
//! it would not get the processor in time. When the guard itself is killed, its parent sees that and ends.

use super::{Raised, put_all_back};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use xqos_sys::Attributes;

/// Of the guard and its parent: above whom they raise by a real-time priority.
pub const PRIORITY: u32 = 5;

/// The guard as its parent holds it. Dropping it ends it.
#[derive(Debug)]
pub struct Guard(UnixStream);

impl Guard {
    /// Before any thread is started.
    pub fn start(raised: &Raised) -> io::Result<Guard> {
        let (ours, mut theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (places, mut ours) = (raised.places(), Some(ours));
        xqos_sys::fork(|| {
            // The other side is our parent's alone.
            ours = None;
            xqos_sys::ignore_signals();
            // Without the right it may come late.
            let _ = Attributes::real_time(PRIORITY).give(0);
            // Nothing is ever written: this is the end of the other side.
            let _ = theirs.read(&mut [0]);
            put_all_back(places);
        })?;
        ours.map(Guard).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    pub fn is_gone(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0))
    }
}

impl AsRawFd for Guard {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
