// SPDX-License-Identifier: MIT
//! Raises the priority of programs while they redraw, for rules with `cpu = true`. `xqos boost` does the work; it reads
//! the pids from its standard input.
//!
//! `xqos boost` is a separate process, so the daemon needs no real-time priority. It exits when its input is closed,
//! regardless of how the daemon ends.

use crate::error::{Error, Result};
use crate::processor::{self, missing_raise_right};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::Child;

/// Raises the priority of programs while they redraw.
pub trait Boost {
    /// Raises this process on behalf of one more of its clients. The error says why that is impossible.
    fn begin(&mut self, pid: i32) -> Result<()>;

    /// Stops raising this process on behalf of one of its clients.
    fn end(&mut self, pid: i32);
}

/// Starts `xqos boost --only-named` on a display, with a pipe as its standard input.
pub type Starter = fn(display: &str) -> io::Result<Child>;

/// Runs `xqos boost` while there are processes to raise.
#[derive(Debug)]
pub struct ByBoost {
    display: String,
    start: Starter,
    child: Option<Child>,
    pids: BTreeMap<i32, usize>,
}

impl ByBoost {
    pub fn new(display: &str, start: Starter) -> ByBoost {
        ByBoost { display: display.to_owned(), start, child: None, pids: BTreeMap::new() }
    }

    fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.child.as_mut().and_then(|child| child.stdin.as_mut());
        input.ok_or(io::ErrorKind::BrokenPipe)?.write_all(line.as_bytes())
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            // `xqos boost` restores all processes and exits immediately.
            let _ = child.wait();
        }
    }
}

impl Boost for ByBoost {
    fn begin(&mut self, pid: i32) -> Result<()> {
        if !processor::may_raise() {
            return Err(Error::Refused(missing_raise_right()));
        }
        let cannot = |error| Error::System("cannot run `xqos boost`".into(), error);
        if self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None))) {
            self.stop();
            self.child = Some((self.start)(&self.display).map_err(cannot)?);
            for pid in self.pids.keys().copied().collect::<Vec<_>>() {
                self.tell(&format!("{pid}\n")).map_err(cannot)?;
            }
        }
        let clients = self.pids.entry(pid).or_default();
        *clients += 1;
        if *clients == 1 { self.tell(&format!("{pid}\n")).map_err(cannot) } else { Ok(()) }
    }

    fn end(&mut self, pid: i32) {
        let Some(clients) = self.pids.get_mut(&pid) else { return };
        *clients -= 1;
        if *clients > 0 {
            return;
        }
        self.pids.remove(&pid);
        // If `xqos boost` has exited, it has restored all processes.
        let _ = self.tell(&format!("-{pid}\n"));
        if self.pids.is_empty() {
            self.stop();
        }
    }
}

impl Drop for ByBoost {
    fn drop(&mut self) {
        self.stop();
    }
}
