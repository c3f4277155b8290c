// SPDX-License-Identifier: MIT
//! Raises the priority of programs while they redraw, and restores it.
//!
//! The X server reports when a client gets an Expose and when the client has answered it. In between, for at most N ms,
//! the client's process has a real-time priority, so the client that uncovered it cannot take the processor away while
//! it redraws (Shatrov, xorg list, 2005). A client that gets input meanwhile gets an even higher priority. We also
//! raise the server's own thread during this time, and while the thread serves a client with a reservation.
//!
//! Raised processes are recorded in memory shared with a guard process ([`Guard`]). All priorities are restored when
//! this process ends, even if it is killed.

mod named;

use crate::error::{Result, asking, bail};
use crate::processor::missing_right;
use crate::raised::{Guard, PRIORITY, RaiseResult, Raised};
use crate::session::Session;
use clap::{Args, ValueEnum};
use named::Named;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use xqos_abi::{Notify, NotifyKind, event_mask};
use xqos_cli::output::note;
use xqos_client::Error;
use xqos_core::setting::PACING;
use xqos_rules::values::reader;
use xqos_sys::{self as sys, Attributes, Signals};
use xqos_text::quantity::Micros;

/// Limit for real-time priorities in the server: its own thread gets 3, and the watcher thread 4.
const SERVER_LIMIT: u32 = 4;
/// For a program that gets input while another one redraws.
const INPUT: Share = Share { priority: 2, nice: -11 };
const EXPOSING: Share = Share { priority: 1, nice: -10 };
/// How long a program keeps the higher priority that input gives it.
const INPUT_LIMIT: Duration = Duration::from_millis(10);

/// The raised priority of a program, for each method.
#[derive(Clone, Copy, Debug)]
struct Share {
    priority: u32,
    nice: i32,
}

/// Gives programs the processor while they redraw, and the X server while it serves reserved clients
///
/// Runs until it is stopped. A program that gets an Expose has a real-time priority until it has answered, but no
/// longer than the time of --expose. A program that gets input meanwhile has a higher priority, for at most 10 ms. The
/// X server has a real-time priority during these times. It also has one while it serves a client with a reservation,
/// for at most the budget. All priorities are restored when this process ends, even if it is killed. Programs of other
/// users are left alone.
///
/// This needs the right to set priorities (CAP_SYS_NICE). To raise the server as well, it needs CAP_SYS_RESOURCE or a
/// server that runs as root. Root has both capabilities.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct BoostOptions {
    /// Maximum time with a raised priority for one Expose, 1ms to 1s, or 'off'
    #[arg(long, value_name = "TIME|off", default_value = "40ms", value_parser = reader(&PACING))]
    expose: u32,
    /// How to raise programs; see Methods below
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    how: Method,
    /// Leave the X server's own priority alone
    #[arg(long)]
    no_server: bool,
    /// Only programs of this user id [default: the user who called sudo, else the user who runs this command]
    #[arg(long, value_name = "UID")]
    user: Option<u32>,
    /// Only programs that standard input names: a process id per line adds a program, -PID removes it. The command
    /// exits at the end of the input
    #[arg(long)]
    only_named: bool,
    /// Report each change
    #[arg(long, short)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos boost                       as root: raise programs on this display
  sudo -E xqos boost               the same, with sudo
  sudo -E xqos boost --expose 40ms -v      and report each change
  sudo -E xqos boost --expose off          raise only the X server
  xqos policy --expose-pacing 40ms         related: the moving client waits

Methods: rr (a real-time priority: programs with a usual priority cannot
interrupt), deadline (SCHED_DEADLINE: the time of --expose in a period of twice
that), nice (nice value -10: a larger share of the processor), auto (rr if this
user may use it, else nice).

It prints 'ready' once it is active. To undo: stop it.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    Auto,
    #[value(name = "rr")]
    RealTime,
    Deadline,
    Nice,
}

impl Method {
    fn attributes(self, share: Share, limit: Duration) -> Attributes {
        let ns = limit.as_nanos() as u64;
        match self {
            Method::Auto | Method::RealTime => Attributes::real_time(share.priority),
            Method::Deadline => Attributes::deadline(ns, 2 * ns),
            Method::Nice => Attributes::normal(share.nice, 0),
        }
    }

    /// Finds the first method that this user may use, by trying each on a separate thread.
    fn allowed(self, limit: Duration) -> Option<Method> {
        let ways = if self == Method::Auto { vec![Method::RealTime, Method::Nice] } else { vec![self] };
        ways.into_iter().find(|way| {
            let attributes = way.attributes(EXPOSING, limit);
            std::thread::spawn(move || attributes.give(0).is_ok()).join().unwrap_or(false)
        })
    }
}

/// Allows the server to raise itself while our connection exists. Returns false if that is not possible.
fn lend(session: &Session, server: i32) -> bool {
    // Ignore an error: a server that runs as root needs no limit.
    let before = sys::allow_real_time(server, SERVER_LIMIT).unwrap_or_default();
    let Err(error) = session.control.lend_processor(true, before) else { return true };
    let _ = sys::allow_real_time(server, before);
    note(match error {
        Error::Access => {
            "the X server runs as another user, so its priority is left alone: run this as that user or as root"
        }
        _ => {
            "the X server may not raise itself (it already has a real-time priority, or its limits forbid it), so it is \
             left alone"
        }
    });
    false
}

/// Programs are raised until this value is dropped.
#[derive(Debug)]
pub struct Boost {
    is_verbose: bool,
    signals: Signals,
    /// The attributes that a program gets, and for how long.
    exposing: (Attributes, Duration),
    input: (Attributes, Duration),
    session: Session,
    raised: Raised,
    guard: Guard,
    /// `None` means all programs of the user.
    named: Option<Named>,
}

impl Boost {
    /// Prepares everything. Call this before any thread is started.
    pub fn start(display: Option<&str>, options: &BoostOptions) -> Result<Boost> {
        let (session, info) = Session::open_armed(display)?;
        let expose = Micros(options.expose).duration();
        let Some(method) = options.how.allowed(expose.max(Duration::from_millis(1))) else {
            let run = "it as root, as in `sudo -E xqos boost`";
            bail!("{}", missing_right("set priorities", run, "cap_sys_nice,cap_sys_resource"));
        };
        let signals = Signals::watch().map_err(asking("cannot watch for signals"))?;
        let raised = Raised::new(Some(options.user.unwrap_or_else(sys::calling_user)))
            .map_err(asking("cannot create the list of raised programs"))?;
        let guard = Guard::start(&raised).map_err(asking("cannot start the guard process"))?;
        if Attributes::real_time(PRIORITY).give(0).is_err() {
            note("xqos boost itself cannot get a real-time priority: it may restore priorities late");
        }
        let lends = !options.no_server && lend(&session, info.server_pid as i32);
        if expose.is_zero() && !lends {
            bail!("nothing to do: neither programs nor the X server can be raised; see xqos boost --help");
        }
        if !expose.is_zero() {
            session.control.select_events(event_mask::EXPOSES)?;
        }
        let named = options.only_named.then(Named::from_input).transpose();
        let named = named.map_err(asking("cannot read standard input"))?;
        let exposing = (method.attributes(EXPOSING, expose), expose);
        let input = (method.attributes(INPUT, INPUT_LIMIT), INPUT_LIMIT);
        Ok(Boost { is_verbose: options.verbose, signals, exposing, input, session, raised, guard, named })
    }

    /// Runs until a signal arrives or the server exits. Returns false if programs can no longer be raised.
    pub fn run(mut self) -> Result<bool> {
        loop {
            let status = self.handle_events();
            self.raised.take_back_late(Instant::now());
            if let Some(status) = status {
                self.raised.take_back_all();
                return Ok(status);
            }
            let left = self.raised.next().map(|at| at.saturating_duration_since(Instant::now()));
            let server = self.session.control.descriptor();
            let named = self.named.as_ref().map(Named::as_raw_fd);
            let files: Vec<_> =
                [self.signals.as_raw_fd(), server, self.guard.as_raw_fd()].into_iter().chain(named).collect();
            sys::poll(&files, left).map_err(asking("cannot wait"))?;
        }
    }

    /// Handles pending events; returns the result if one of them ends the run.
    fn handle_events(&mut self) -> Option<bool> {
        if let Some(named) = &mut self.named {
            match named.update() {
                Ok(None) => return Some(true),
                Ok(Some(no_longer)) => no_longer.into_iter().for_each(|pid| _ = self.raised.take_back(pid)),
                Err(error) => {
                    note(&format!("no program is raised any more: {error}"));
                    return Some(false);
                }
            }
        }
        loop {
            match self.session.control.next_notify() {
                Ok(Some(notify)) => self.take(&notify),
                Ok(None) => break,
                Err(_) => {
                    note("the X server has gone");
                    return Some(true);
                }
            }
        }
        if self.guard.is_gone() {
            note("the guard process has ended, and without it no program is raised: start xqos boost again");
            return Some(false);
        }
        self.signals.termination_requested().then_some(true)
    }

    fn take(&mut self, notify: &Notify) {
        match notify.kind {
            NotifyKind::Exposing | NotifyKind::Input
                if self.named.as_ref().is_some_and(|named| !named.has(notify.pid)) => {}
            NotifyKind::Exposing | NotifyKind::Input => {
                let is_input = notify.kind == NotifyKind::Input;
                let (attributes, limit) = if is_input { self.input } else { self.exposing };
                let verdict = self.raised.raise(notify.pid, attributes, Some(Instant::now() + limit));
                self.report(notify.pid, || match verdict {
                    RaiseResult::Raised if is_input => "raised to handle input".to_owned(),
                    RaiseResult::Raised => "raised to redraw".to_owned(),
                    RaiseResult::Foreign => "left alone: it is another user's".to_owned(),
                    RaiseResult::Otherwise => "left alone: its priority is not the default".to_owned(),
                    RaiseResult::Impossible(error) => format!("left alone: {error}"),
                });
            }
            NotifyKind::Answered if self.raised.take_back(notify.pid) => {
                self.report(notify.pid, || "restored: it has answered".to_owned());
            }
            _ => {}
        }
    }

    fn report(&self, pid: i32, what: impl FnOnce() -> String) {
        if self.is_verbose {
            note(&format!("pid {pid} {}", what()));
        }
    }
}
