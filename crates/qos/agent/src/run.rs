// SPDX-License-Identifier: MIT
//! `xqos run`: starts a program, and reserves server time for its own X connections.
//!
//! The X server reports each client that connects or disconnects, and the kernel reports each child that exits. Only
//! these events wake this process. [`Family`] decides which connections belong to the program.
//!
//! | state of the program | waiting for |
//! |---|---|
//! | running | its exit, and new connections |
//! | exited, with served connections left | the end of those connections (a program that forked into the background) |
//! | exited, no connection left, but processes may still connect | a connection, for [`GRACE`] at most (launchers) |
//! | exited, with nothing left | nothing: exit with its status |

mod family;
mod options;

use crate::amount::Amount;
use crate::auto::Auto;
use crate::client::{described, words};
use crate::error::{Result, asking, bail};
use crate::session::{Account, Session, is_wayland};
use crate::{processor, rules};
use family::{Family, Relation};
pub use options::RunOptions;
use std::collections::{BTreeMap, HashSet};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use xqos_abi::{ClientEntry, NotifyKind, Setting, Subject, event_mask};
use xqos_cli::output::note;
use xqos_sys::{self as sys, Procfs, Signal, Signals};

/// How long a launcher's children may take to connect after it has exited. A large program on a cold disk needs
/// seconds; a daemon left behind must not keep us running forever.
const GRACE: Duration = Duration::from_secs(10);

/// Polling interval for new threads of a program that has reserved processor time.
const NEW_THREADS: Duration = Duration::from_millis(200);

/// Runs the program, and returns its exit status.
pub fn run(display: Option<&str>, options: &RunOptions) -> Result<u8> {
    let (session, info) = Session::open_armed(display)?;
    let wanted = options.reserve.map(|wanted| wanted.checked(options.kind.get())).transpose()?;
    let is_auto = wanted == Some(Amount::Auto);
    options.check(&session, &info)?;
    // Select events before the program starts, so that none of its connections is missed.
    session.control.select_events(event_mask::CLIENTS)?;
    sys::adopt_orphans().map_err(asking("cannot become the parent of the program's orphaned processes"))?;
    let signals = Signals::watch().map_err(asking("cannot watch for the program's end"))?;
    let mut auto = is_auto.then(|| Auto::start(&session, "auto", rules::auto_limit())).transpose()?;
    auto.iter_mut().for_each(|auto| auto.reports_all = true);
    if let Some(auto) = auto.as_mut().filter(|_| options.cpu == Some(Amount::Auto)) {
        auto.reserve_processors(true).unwrap_or_else(|error| note(&error.in_one_line()));
    }
    let main = options.start(display)?;
    let family = Family::new(std::process::id() as i32, main);
    let mut run = ProgramRun {
        options,
        session,
        family,
        main,
        status: None,
        ended: None,
        seen: HashSet::new(),
        ours: BTreeMap::new(),
        unserved: Vec::new(),
        refused: None,
        vanished: false,
        server_gone: false,
        auto,
    };
    // Handle connections that were made before we read the first event. If the server hangs, their events arrive later.
    for entry in run.session.others().unwrap_or_default() {
        run.connected(entry.client, entry.pid);
    }
    let status = run.watch(&signals)?;
    run.report_at_end();
    match run.refused {
        Some(why) if options.strict => bail!("{} was ended: {why}", options.shown()),
        _ => Ok(status),
    }
}

struct ProgramRun<'a> {
    options: &'a RunOptions,
    session: Session,
    family: Family,
    main: i32,
    status: Option<u8>,
    ended: Option<Instant>,
    seen: HashSet<u32>,
    /// Open connections that got the requested settings, with their pids.
    ours: BTreeMap<u32, i32>,
    /// Connections to try again because the server did not answer in time, with their pids.
    unserved: Vec<(u32, i32)>,
    refused: Option<String>,
    /// A connection ended before its process could be identified.
    vanished: bool,
    server_gone: bool,
    /// Measures what to reserve.
    auto: Option<Auto>,
}

impl ProgramRun<'_> {
    /// Waits until the program and its connections have ended; returns its exit status.
    fn watch(&mut self, signals: &Signals) -> Result<u8> {
        loop {
            // Tune first: poll() does not report events that arrive together with the replies to the tuner's requests.
            self.tune();
            self.handle_server();
            for (client, pid) in std::mem::take(&mut self.unserved) {
                self.serve(client, pid);
            }
            self.handle_signals(signals);
            let left = match self.time_left() {
                Some(Duration::ZERO) => return Ok(self.status.unwrap_or(0)),
                left => left,
            };
            let threads = self.options.fixed_cpu().map(|_| NEW_THREADS);
            if threads.is_some() {
                let main = self.status.is_none().then_some(&self.main);
                self.ours.values().chain(main).for_each(|&pid| processor::raise_other_threads(pid));
            }
            let again = (!self.unserved.is_empty()).then_some(Duration::ZERO);
            let auto = self.auto.as_ref().and_then(Auto::wait);
            let left = left.into_iter().chain(threads).chain(auto).chain(again).min();
            let files = [signals.as_raw_fd(), self.session.control.descriptor()];
            let files = if self.server_gone { &files[..1] } else { &files[..] };
            sys::poll(files, left).map_err(asking("cannot wait for the program"))?;
        }
    }

    fn tune(&mut self) {
        let Some(auto) = self.auto.as_mut().filter(|_| !self.server_gone) else { return };
        match auto.turn(&self.session) {
            Ok(said) => said.iter().for_each(|text| self.report(text)),
            Err(error) => {
                note(&format!("measuring has stopped: {}", error.in_one_line()));
                self.auto.take().map(|auto| auto.end(&self.session));
            }
        }
    }

    /// How long to wait for the end: `None` if there is no limit, zero if nothing is left to wait for.
    fn time_left(&mut self) -> Option<Duration> {
        let ended = self.ended?;
        if !self.ours.is_empty() {
            return None;
        }
        let left = GRACE.saturating_sub(ended.elapsed());
        let wait = !self.server_gone && !left.is_zero() && self.family.more_may_connect(&Procfs);
        Some(if wait { left } else { Duration::ZERO })
    }

    fn handle_server(&mut self) {
        while !self.server_gone {
            match self.session.control.next_notify() {
                Ok(Some(notify)) => match notify.kind {
                    NotifyKind::ClientConnected => self.connected(notify.client, notify.pid),
                    NotifyKind::ClientGone => {
                        self.seen.remove(&notify.client);
                        self.ours.remove(&notify.client);
                        self.unserved.retain(|&(client, _)| client != notify.client);
                        let said = self.auto.as_mut().and_then(|auto| auto.gone(notify.client));
                        said.iter().for_each(|text| self.report(text));
                    }
                    _ => {}
                },
                Ok(None) => return,
                Err(_) => {
                    self.server_gone = true;
                    self.ours.clear();
                    self.unserved.clear();
                    note("the X server has gone; waiting for the program to exit");
                }
            }
        }
    }

    fn handle_signals(&mut self, signals: &Signals) {
        while let Some(Signal { number, from_kernel }) = signals.next() {
            if number == libc::SIGCHLD {
                self.reap();
            } else if !from_kernel {
                // Signals from the kernel, such as ^C in the terminal, have reached the program already.
                self.pass_on(number);
            }
        }
    }

    fn reap(&mut self) {
        while let Some((pid, status)) = sys::reap() {
            if pid == self.main && self.status.is_none() {
                self.status = Some(status);
                self.ended = Some(Instant::now());
            }
        }
    }

    fn pass_on(&self, signal: i32) {
        match self.status {
            None => sys::send(self.main, signal),
            Some(_) => self.ours.values().for_each(|&pid| sys::send(pid, signal)),
        }
    }

    fn connected(&mut self, client: u32, pid: i32) {
        if pid == 0 || !self.seen.insert(client) {
            return;
        }
        match self.family.connected(pid, &Procfs) {
            Relation::Program => self.serve(client, pid),
            Relation::Inherited(parent) => self.report(&format!(
                "no settings for pid {pid}: it was started by pid {parent}, which has its own connection"
            )),
            Relation::Stray => self.report(&format!(
                "no settings for pid {pid}: its parent process has exited and may have been the program itself"
            )),
            Relation::Vanished => self.vanished = true,
            Relation::Foreign => {}
        }
    }

    /// Applies the requested settings to one connection, unless it has closed already. If the server does not answer in
    /// time, [`Run::watch`] tries again.
    fn serve(&mut self, client: u32, pid: i32) {
        self.ours.insert(client, pid);
        let entry = match self.entry(client) {
            Ok(Some(entry)) => entry,
            Ok(None) if self.auto.is_some() => {
                return self.report(&format!("nothing was reserved for pid {pid}: its connection has closed"));
            }
            Err(error) if error.is_late() => return self.unserved.push((client, pid)),
            Ok(None) | Err(_) => return,
        };
        let who = described(&entry);
        if self.auto.as_mut().is_some_and(|auto| !auto.adopt(&entry)) {
            self.report(&format!("{who} has its own reservation, which auto does not change"));
        }
        if let Some(wanted) = self.options.reserve.and_then(Amount::fixed) {
            match self.session.reserve(&Account::of_client(&entry), wanted, self.options.kind.get()) {
                Ok(()) => self.report(&format!("reserved {wanted}{} for {who}", words(self.options.kind.get()))),
                Err(error) if error.is_late() => return self.unserved.push((client, pid)),
                Err(_) if self.is_gone(client) => return,
                Err(error) => self.refuse(client, &error.in_one_line()),
            }
        }
        if let Some(weight) = self.options.weight {
            match self.session.control.set(Subject::Client(client), Setting::Weight(weight.0)) {
                Ok(()) => {
                    self.ours.insert(client, pid);
                    self.report(&format!("weight {weight} for {who}"));
                }
                Err(xqos_client::Error::Late) => self.unserved.push((client, pid)),
                Err(_) if self.is_gone(client) => {}
                Err(error) => note(&format!(
                    "cannot set the weight of {who}: {}",
                    self.session.explained(error, &entry).in_one_line()
                )),
            }
        }
    }

    fn refuse(&mut self, client: u32, why: &str) {
        self.refused = Some(why.to_owned());
        if self.options.strict {
            // All processes get the signal, because a wrapper that exits leaves its children running.
            self.ours.values().chain([&self.main]).for_each(|&pid| sys::send(pid, libc::SIGTERM));
        } else {
            self.ours.remove(&client);
            note(&format!("{why}; it runs without a reservation"));
        }
    }

    /// `Ok(None)` if the client has disconnected.
    fn entry(&self, client: u32) -> Result<Option<ClientEntry>> {
        Ok(self.session.others()?.into_iter().find(|entry| entry.client == client))
    }

    fn is_gone(&self, client: u32) -> bool {
        matches!(self.entry(client), Ok(None))
    }

    fn report(&self, text: &str) {
        if !self.options.quiet {
            note(text);
        }
    }

    fn report_at_end(&self) {
        if self.vanished && matches!(self.options.reserve, Some(Amount::Auto)) && !self.family.any_connected() {
            self.report("nothing was reserved for a connection that closed before its program was known");
        }
        if self.family.any_connected() || self.vanished || self.server_gone {
            return;
        }
        let why = match is_wayland() {
            true => "it may draw through Wayland, or have asked",
            false => "it may have asked",
        };
        note(&format!(
            "{} made no X connection of its own, so nothing was reserved; {why} a running process over D-Bus to open \
             its window: reserve for that process with `xqos reserve --pick`",
            self.options.shown()
        ));
    }
}
