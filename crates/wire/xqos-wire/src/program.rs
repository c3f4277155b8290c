// SPDX-License-Identifier: MIT
//! Runs a program, and all processes that it starts, on a display of its own, and passes on signals.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use xqos_cli::output::note;
use xqos_sys::{self as sys, Processes, Procfs, Signal, Signals};

/// Maximum time until the program exits after a forwarded signal; then it is killed.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// Maximum time until a launcher's children connect after the launcher has exited.
const GRACE: Duration = Duration::from_secs(10);
/// Polling interval for the number of remaining connections; no event reports it.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns two counts: the open connections of the program's display, and how many of them only wait for the X server.
/// `None` if the display outlives the program, so that there is no need to wait for remaining clients.
type OpenConnections<'a> = Option<&'a dyn Fn() -> (usize, usize)>;

/// A running program, until it has exited and its connections are closed.
#[derive(Debug, Default)]
pub struct Program {
    pid: i32,
    status: Option<u8>,
    ended: Option<Instant>,
    /// Whether a signal asked this process to end; the program must exit first.
    stopping: bool,
    /// When to kill the program if it has not exited by then.
    kill: Option<Instant>,
    reported: bool,
    /// Set by SIGUSR1, if that signal is watched.
    pub user_signal: Arc<AtomicBool>,
}

impl Program {
    /// The exit status, as a shell reports it.
    pub fn status(&self) -> u8 {
        self.status.unwrap_or(0)
    }

    pub fn start(words: &[OsString], display: &str, authority: Option<&Path>) -> Result<Program> {
        let (program, arguments) = words.split_first().context("no program is given: add -- PROGRAM")?;
        let mut command = Command::new(program);
        Program::spawn(command.args(arguments).env("DISPLAY", display), authority)
    }

    pub fn spawn(command: &mut Command, authority: Option<&Path>) -> Result<Program> {
        sys::unblock_signals_in(command.envs(authority.map(|authority| ("XAUTHORITY", authority))));
        let child = command.spawn().with_context(|| {
            format!("cannot start {}: check its name after --", command.get_program().to_string_lossy())
        })?;
        Ok(Program { pid: child.id() as i32, ..Program::default() })
    }

    /// Waits until the program and its connections have ended, or a signal asks to stop waiting.
    pub fn watch(&mut self, open: OpenConnections<'_>, signals: &Signals, quiet: bool) -> Result<()> {
        loop {
            while let Some(signal) = signals.next() {
                self.handle_signal(signal);
            }
            let left = match self.ended {
                Some(ended) if self.is_over(open, ended) => return Ok(()),
                Some(_) => Some(POLL_INTERVAL),
                None => self.kill.map(|kill| kill.saturating_duration_since(Instant::now())),
            };
            if left == Some(Duration::ZERO) {
                sys::send(self.pid, libc::SIGKILL);
                self.kill = None;
            }
            self.report_remaining(open, quiet);
            sys::poll(&[signals.as_raw_fd()], left).context("cannot wait for the program")?;
        }
    }

    fn handle_signal(&mut self, Signal { number, from_kernel }: Signal) {
        if number == libc::SIGCHLD {
            return self.reap();
        }
        if number == libc::SIGUSR1 {
            return self.user_signal.store(true, Ordering::Relaxed);
        }
        self.stopping = true;
        // The terminal has already sent ^C to the program, and the program may choose to continue.
        if !from_kernel && self.status.is_none() {
            sys::send(self.pid, number);
            self.kill.get_or_insert(Instant::now() + KILL_AFTER);
        }
    }

    fn reap(&mut self) {
        while let Some((pid, status)) = sys::reap() {
            if pid == self.pid {
                (self.status, self.ended) = (Some(status), Some(Instant::now()));
            }
        }
    }

    /// Whether no connection is open and no further connection is expected.
    fn is_over(&self, open: OpenConnections<'_>, ended: Instant) -> bool {
        let is_left = |open: &dyn Fn() -> (usize, usize)| open().0 == 0 && (ended.elapsed() > GRACE || !has_children());
        self.stopping || open.is_none_or(is_left)
    }

    fn report_remaining(&mut self, open: OpenConnections<'_>, quiet: bool) {
        // Connections usually close within a second after the program exits, and then no message is needed.
        const SOON: Duration = Duration::from_secs(1);
        let is_late = self.ended.is_some_and(|ended| ended.elapsed() > SOON);
        if is_late && !quiet && !self.reported {
            let (open, waiting) = open.map_or((0, 0), |open| open());
            let left = match open.saturating_sub(waiting) {
                0 if waiting > 0 => format!("the X server has not ended {}", counted(waiting as u64, "connection")),
                used => format!("processes that it started have {}", counted(used as u64, "connection")),
            };
            note(&format!("the program has exited, but {left}; press ^C to end them"));
            self.reported = true;
        }
    }
}

/// Whether any process that the program started is still running. Orphans become children of this process.
fn has_children() -> bool {
    let us = std::process::id() as i32;
    Procfs.all().values().any(|process| process.parent == us && !process.zombie)
}

/// An exit status as a shell reports it.
pub fn shown(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Formats a count: `1 file`, `2 files`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
