// SPDX-License-Identifier: MIT
//! A program that runs against a display of ours, and whatever it starts; and one that only passes signals on.

use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use xqos_cli::output::note;
use xqos_sys::{self as sys, Processes, Procfs, Signal, Signals};

/// How long the program may take to end after a signal that we passed on; then it is ended.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// How long a launcher's children may take to connect after it has ended.
const GRACE: Duration = Duration::from_secs(10);
/// How often it is looked whether connections are left: nothing tells.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How many connections its display has now. `None`: the display stays when the program has ended, so that what the program
/// has left behind needs nobody to wait for it.
type Open<'a> = Option<&'a dyn Fn() -> usize>;

/// A program that was started, as long as it or its connections live.
#[derive(Debug)]
pub struct Program {
    pid: i32,
    status: Option<u8>,
    ended: Option<Instant>,
    /// A signal came that is to end it, and us when it has.
    is_asked: bool,
    /// When it is ended, if it has not by then.
    kill: Option<Instant>,
    has_told: bool,
}

impl Program {
    /// Its exit status as a shell shows it.
    pub fn status(&self) -> u8 {
        self.status.unwrap_or(0)
    }

    /// Program and arguments, with what DISPLAY and XAUTHORITY are to be.
    pub fn start(words: &[OsString], display: &str, authority: Option<&Path>) -> Result<Program> {
        let (program, rest) = words.split_first().context("no program is named")?;
        let mut command = Command::new(program);
        command.args(rest).env("DISPLAY", display).envs(authority.map(|authority| ("XAUTHORITY", authority)));
        sys::unblock_signals_in(&mut command);
        let shown = OsStr::to_string_lossy(program);
        let child = command.spawn().with_context(|| format!("cannot start {shown}: check its name after --"))?;
        Ok(Program { pid: child.id() as i32, status: None, ended: None, is_asked: false, kill: None, has_told: false })
    }

    /// Until nothing is left of it, or a signal says that this was enough.
    pub fn watch(&mut self, open: Open<'_>, signals: &Signals, quiet: bool) -> Result<()> {
        loop {
            while let Some(signal) = signals.next() {
                self.hear(signal);
            }
            let left = match self.ended {
                Some(ended) if self.is_over(open, ended) => return Ok(()),
                Some(_) => Some(LOOK_AGAIN),
                None => self.kill.map(|kill| kill.saturating_duration_since(Instant::now())),
            };
            if left == Some(Duration::ZERO) {
                sys::send(self.pid, libc::SIGKILL);
                self.kill = None;
            }
            self.tell(open, quiet);
            sys::poll(&[signals.as_raw_fd()], left).context("cannot wait for the program")?;
        }
    }

    fn hear(&mut self, Signal { number, from_kernel }: Signal) {
        if number == libc::SIGCHLD {
            return self.reap();
        }
        self.is_asked = true;
        // A terminal's ^C has reached the program already, which may go on after it.
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

    /// Whether no connection is left, and none to be expected.
    fn is_over(&self, open: Open<'_>, ended: Instant) -> bool {
        let is_left = |open: &dyn Fn() -> usize| open() == 0 && (ended.elapsed() > GRACE || !has_children());
        self.is_asked || open.is_none_or(is_left)
    }

    fn tell(&mut self, open: Open<'_>, quiet: bool) {
        // What is about to end needs no word.
        const SOON: Duration = Duration::from_secs(1);
        let is_late = self.ended.is_some_and(|ended| ended.elapsed() > SOON);
        if is_late && !quiet && !self.has_told {
            let left = counted(open.map_or(0, |open| open()) as u64, "connection");
            note(&format!("the program has ended, and what it started has {left}; ^C ends it here"));
            self.has_told = true;
        }
    }
}

/// Whether anything that the program started still runs; it became our child when its parent ended.
fn has_children() -> bool {
    let us = std::process::id() as i32;
    Procfs.all().values().any(|process| process.parent == us && !process.zombie)
}

/// Until a child has ended, or had the time to do so after a signal; its exit status. `pass` hands a signal on, and says
/// whether the child is to end by it.
pub fn wait_for(
    child: &mut Child,
    what: &str,
    signals: &Signals,
    grace: Duration,
    pass: impl Fn(&Signal) -> bool,
) -> Result<u8> {
    let mut end: Option<Instant> = None;
    loop {
        while let Some(signal) = signals.next() {
            if signal.number != libc::SIGCHLD && pass(&signal) {
                end.get_or_insert(Instant::now() + grace);
            }
        }
        if let Some(status) = child.try_wait().with_context(|| format!("cannot wait for {what}"))? {
            return Ok(shown(status));
        }
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            child.kill().with_context(|| format!("cannot end {what}"))?;
        }
        sys::poll(&[signals.as_raw_fd()], left).with_context(|| format!("cannot wait for {what}"))?;
    }
}

/// As a shell shows it.
pub fn shown(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// `1 file`, `2 files`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
