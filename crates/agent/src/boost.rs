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
use crate::raised::{Guard, PRIORITY, Raised, Verdict};
use crate::session::Session;
use named::Named;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use xqos_abi::{Notify, NotifyKind, event_mask};
use xqos_cli::output::note;
use xqos_client::Error;
use xqos_sys::{self as sys, Attributes, Signals};

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

/// What to raise, and how.
#[derive(Debug)]
pub struct Wish {
    /// Maximum time with a raised priority for one Expose; zero: programs are not raised.
    pub expose: Duration,
    pub method: Method,
    pub raises_server: bool,
    /// Only programs of this user; `None`: of the user that called sudo, or else of this one.
    pub user: Option<u32>,
    /// Only programs that standard input names.
    pub only_named: bool,
    /// Report each change.
    pub is_verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Auto,
    RealTime,
    Deadline,
    Nice,
}

impl Method {
    pub const NAMES: [(&str, Method); 4] =
        [("auto", Method::Auto), ("rr", Method::RealTime), ("deadline", Method::Deadline), ("nice", Method::Nice)];

    pub fn from_name(name: &str) -> Option<Method> {
        Method::NAMES.iter().find(|(one, _)| *one == name).map(|&(_, method)| method)
    }

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
    pub fn start(display: Option<&str>, wish: &Wish) -> Result<Boost> {
        let (session, info) = Session::open_armed(display)?;
        let expose = wish.expose;
        let Some(method) = wish.method.allowed(expose.max(Duration::from_millis(1))) else {
            let run = "it as root, as in `sudo -E xqos boost`";
            bail!("{}", missing_right("set priorities", run, "cap_sys_nice,cap_sys_resource"));
        };
        let signals = Signals::watch().map_err(asking("cannot watch for signals"))?;
        let raised = Raised::new(Some(wish.user.unwrap_or_else(sys::calling_user)))
            .map_err(asking("cannot create the list of raised programs"))?;
        let guard = Guard::start(&raised).map_err(asking("cannot start the guard process"))?;
        if Attributes::real_time(PRIORITY).give(0).is_err() {
            note("xqos boost itself cannot get a real-time priority: it may restore priorities late");
        }
        let lends = wish.raises_server && lend(&session, info.server_pid as i32);
        if expose.is_zero() && !lends {
            bail!("nothing to do: neither programs nor the X server can be raised; see xqos boost --help");
        }
        if !expose.is_zero() {
            session.control.select_events(event_mask::EXPOSES)?;
        }
        let named = wish.only_named.then(Named::from_input).transpose();
        let named = named.map_err(asking("cannot read standard input"))?;
        let exposing = (method.attributes(EXPOSING, expose), expose);
        let input = (method.attributes(INPUT, INPUT_LIMIT), INPUT_LIMIT);
        Ok(Boost { is_verbose: wish.is_verbose, signals, exposing, input, session, raised, guard, named })
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
                    Verdict::Raised if is_input => "raised to handle input".to_owned(),
                    Verdict::Raised => "raised to redraw".to_owned(),
                    Verdict::Foreign => "left alone: it is another user's".to_owned(),
                    Verdict::Otherwise => "left alone: its priority is not the default".to_owned(),
                    Verdict::Impossible(error) => format!("left alone: {error}"),
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
