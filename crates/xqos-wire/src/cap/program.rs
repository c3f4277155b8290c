//! `xqos cap -- PROGRAM`: a program behind a relay, and whatever it starts.

use super::{Arguments, counted, create};
use anyhow::{Context, Result};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use xqos_cli::output::note;
use xqos_cli::sys::{self, Signal, Signals};
use xqos_proc::{Processes, Procfs};
use xqos_wire::capture::relay::{Relay, Relayed};

/// How long the program may take to end after a signal that we passed on; then it is ended.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// How long a launcher's children may take to connect after it has ended.
const GRACE: Duration = Duration::from_secs(10);
/// How often it is looked whether connections are left: nothing tells.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub fn capture(arguments: &Arguments, display: Option<&str>, output: &Path) -> Result<ExitCode> {
    // Before there are threads, which would take the signals.
    let signals = Signals::watch().context("cannot watch for the program's end")?;
    sys::adopt_orphans().context("cannot look after the program's processes")?;
    let relay = Relay::start(display, create(output)?, &arguments.settings())?;
    let mut program = Program::start(arguments, &relay)?;
    program.watch(&relay, &signals, arguments.quiet)?;
    let status = program.status.unwrap_or(0);
    let relayed = relay.finish()?;
    arguments.conclude(&relayed.recorded, output, &told(&relayed))?;
    Ok(ExitCode::from(status))
}

/// A program that was started, as long as it or its connections live.
#[derive(Debug)]
struct Program {
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
    fn start(arguments: &Arguments, relay: &Relay) -> Result<Program> {
        let (program, rest) = arguments.program.split_first().context("no program is named")?;
        let mut command = Command::new(program);
        command.args(rest).env("DISPLAY", relay.display());
        if let Some(authority) = relay.authority() {
            command.env("XAUTHORITY", authority);
        }
        sys::unblock_signals_in(&mut command);
        let shown = program.to_string_lossy();
        let child = command.spawn().with_context(|| format!("cannot start {shown}: check its name after --"))?;
        Ok(Program { pid: child.id() as i32, status: None, ended: None, is_asked: false, kill: None, has_told: false })
    }

    /// Until nothing is left of it, or a signal says that this was enough.
    fn watch(&mut self, relay: &Relay, signals: &Signals, quiet: bool) -> Result<()> {
        loop {
            while let Some(signal) = signals.next() {
                self.hear(signal);
            }
            let left = match self.ended {
                Some(ended) if self.is_over(relay, ended) => return Ok(()),
                Some(_) => Some(LOOK_AGAIN),
                None => self.kill.map(|kill| kill.saturating_duration_since(Instant::now())),
            };
            if left == Some(Duration::ZERO) {
                sys::send(self.pid, libc::SIGKILL);
                self.kill = None;
            }
            self.tell(relay, quiet);
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
    fn is_over(&self, relay: &Relay, ended: Instant) -> bool {
        self.is_asked || relay.open() == 0 && (ended.elapsed() > GRACE || !has_children())
    }

    fn tell(&mut self, relay: &Relay, quiet: bool) {
        // What is about to end needs no word.
        const SOON: Duration = Duration::from_secs(1);
        let is_late = self.ended.is_some_and(|ended| ended.elapsed() > SOON);
        if is_late && !quiet && !self.has_told {
            let left = counted(relay.open() as u64, "connection");
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

fn told(relayed: &Relayed) -> String {
    let Relayed { connections, refused, bytes: [requests, replies], files, files_lost, .. } = relayed;
    let (connections, files) = (counted(*connections, "connection"), counted(*files, "file"));
    let mut text = format!("{connections}, {requests} bytes to the server, {replies} back, 0 dropped, ");
    text += &format!("{files} passed, ");
    if *files_lost > 0 {
        text += &format!("{} lost on the way to a server behind TCP, ", counted(*files_lost, "file"));
    }
    if *refused > 0 {
        text += &format!("{} refused since the server was gone, ", counted(*refused, "client"));
    }
    text
}
