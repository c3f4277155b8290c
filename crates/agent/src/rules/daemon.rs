// SPDX-License-Identifier: MIT
//! The rules daemon of a display: receives changes, evaluates the rules, and applies the result.
//!
//! The daemon sleeps until the server, a window, a file or a signal wakes it, and reads changed files immediately. It
//! exits on a signal, when another client takes its selection, or when its connection or the server ends. In the first
//! two cases it undoes its settings.

use super::apply::Applier;
use super::auto::ByTrace;
use super::boosted::ByBoost;
use super::folders::Folders;
use super::limits::UserLimit;
use super::process::Users;
use super::schedule::{Changed, MIN_INTERVAL, Schedule};
use super::selection_lock::SelectionLock;
use super::viewers::{self, Absence, Viewers};
use super::window_facts::WindowFacts;
use super::{facts, loader};
use crate::error::{Error, Result, asking, bail};
use crate::session::Session;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::ConnectionExt;
use x11rb::rust_connection::RustConnection;
use xqos_abi::{ClientEntry, NotifyKind, event_mask};
use xqos_cli::output::note;
use xqos_rules::decide::{RuleSet, Verdict};
use xqos_rules::facts::{ClientFacts, State};
use xqos_rules::files::{Loaded, Loader};
use xqos_sys::{self as sys, Signals};

/// Reason why the daemon ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Signal,
    Replaced,
    /// Our connection was closed by another client, as xkill does.
    Disconnected,
    ServerGone,
}

/// The rules daemon of one display.
#[derive(Debug)]
pub struct Daemon {
    applier: Applier<Session, ByTrace, ByBoost>,
    /// A separate connection, because the control connection receives no window events.
    x11: RustConnection,
    lock: SelectionLock,
    windows: WindowFacts,
    loader: Loader,
    rules: RuleSet,
    folders: Folders,
    user_limit: UserLimit,
    absence: Absence,
    /// A rule depends on whether the display is unwatched.
    needs_viewers: bool,
    began: Instant,
    /// Messages that are printed once, such as mistakes in rule files.
    reported: BTreeSet<String>,
    schedule: Schedule,
    /// Locations of the rules that have matched a client.
    matched: BTreeSet<String>,
    is_verbose: bool,
}

impl Daemon {
    /// Takes the display's selection, or fails if another daemon has it. `unwatched_after`: see `Absence::new`.
    pub fn start(display: Option<&str>, is_verbose: bool, unwatched_after: Duration) -> Result<Daemon> {
        let (session, _) = Session::open_armed(display)?;
        let (x11, _) = xqos_client::connect(Some(&session.display))?;
        let lock = SelectionLock::acquire(&x11, &session.display)?;
        session.control.select_events(event_mask::CLIENTS)?;
        let windows = WindowFacts::watch(&x11)?;
        let loader = loader();
        let folders = Folders::watch(loader.folders().iter().map(|folder| folder.path.clone()).collect())?;
        let (auto, boost) = (ByTrace::new(&session.display), ByBoost::new(&session.display));
        let mut daemon = Daemon {
            applier: Applier::new(session, auto, boost),
            x11,
            lock,
            windows,
            loader,
            rules: RuleSet::default(),
            folders,
            user_limit: UserLimit::default(),
            absence: Absence::new(unwatched_after),
            needs_viewers: false,
            began: Instant::now(),
            reported: BTreeSet::new(),
            schedule: Schedule::with_all_changed(),
            matched: BTreeSet::new(),
            is_verbose,
        };
        daemon.load();
        Ok(daemon)
    }

    /// Runs until a signal, the end of the server, or the loss of the selection.
    pub fn run(mut self, signals: &Signals) -> Result<()> {
        let end = loop {
            match self.turn(signals) {
                Ok(None) => {}
                Ok(Some(end)) => break end,
                Err(error) => match self.end_after_error() {
                    Some(end) => break end,
                    None => self.continue_after(&error, signals)?,
                },
            }
        };
        self.finish(end);
        match end {
            End::Disconnected => bail!("our connection was closed by another client: start `xqos rules run` again"),
            _ => Ok(()),
        }
    }

    /// Reason to end after an error; `None` to continue.
    fn end_after_error(&self) -> Option<End> {
        if self.applier.server().control.server_info().is_err() {
            return Some(End::ServerGone);
        }
        let asked = self.x11.get_input_focus().map(|asked| asked.reply());
        (!matches!(asked, Ok(Ok(_)))).then_some(End::Disconnected)
    }

    /// Prints an error once, because it may repeat, and pauses.
    fn continue_after(&mut self, error: &Error, signals: &Signals) -> Result<()> {
        let message = error.in_one_line();
        if self.reported.insert(message.clone()) {
            note(&message);
        }
        sys::poll(&[signals.as_raw_fd()], Some(MIN_INTERVAL)).map_err(asking("cannot wait"))
    }

    /// Receives all events, evaluates changed clients, and sleeps.
    fn turn(&mut self, signals: &Signals) -> Result<Option<End>> {
        if signals.termination_requested() {
            return Ok(Some(End::Signal));
        }
        self.take_notifications()?;
        if self.take_window_events()? {
            return Ok(Some(End::Replaced));
        }
        if self.folders.have_changed()? {
            self.load();
        }
        if is_now(self.until_viewers()) {
            self.check_viewers();
        }
        let (is_due, is_to_evaluate) = (is_now(self.applier.due()), is_now(self.until_evaluation()));
        if is_due {
            self.applier.work().iter().for_each(|message| note(message));
        }
        if is_to_evaluate {
            self.evaluate()?;
        }
        if is_due || is_to_evaluate {
            // Events that arrived with the replies are already in memory, where poll() does not see them.
            return Ok(None);
        }
        let left = [self.until_evaluation(), self.applier.due(), self.until_viewers()].into_iter().flatten().min();
        let session = self.applier.server();
        let (control, x11) = (session.control.descriptor(), self.x11.stream().as_raw_fd());
        sys::poll(&[signals.as_raw_fd(), control, x11, self.folders.as_raw_fd()], left)
            .map_err(asking("cannot wait"))?;
        Ok(None)
    }

    fn until_evaluation(&self) -> Option<Duration> {
        self.schedule.delay(self.began.elapsed())
    }

    /// Time until the next check for viewers; `None` if no rule depends on viewers, or if nothing can change.
    fn until_viewers(&self) -> Option<Duration> {
        self.absence.until_check(self.began.elapsed()).filter(|_| self.needs_viewers)
    }

    fn check_viewers(&mut self) {
        let (before, viewers) = (self.absence.is_unwatched(), viewers::of_server(self.applier.server()));
        self.absence.record(self.began.elapsed(), viewers);
        if viewers == Viewers::NotKnown && self.reported.insert("viewers".to_owned()) {
            note("state unwatched is unknown: only root can see the sockets of another user's X server");
        }
        let now = self.absence.is_unwatched();
        if now != before {
            self.schedule.add_all();
            let message = if now == Some(true) { "nobody views the display" } else { "somebody views the display" };
            self.say(message);
        }
    }

    fn take_notifications(&mut self) -> Result<()> {
        while let Some(notify) = self.applier.server().control.next_notify()? {
            match notify.kind {
                NotifyKind::ClientConnected => self.schedule.add([notify.client]),
                NotifyKind::ClientGone => {
                    self.applier.forget(notify.client);
                    self.windows.forget(notify.client);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns true if another client has taken the selection.
    fn take_window_events(&mut self) -> Result<bool> {
        while let Some(event) = self.x11.poll_for_event()? {
            if self.lock.is_lost_by(&event) {
                return Ok(true);
            }
            if let Some((client, settings)) = self.lock.returned_by(&event) {
                self.applier.return_settings(client, settings);
                self.schedule.add([client]);
                continue;
            }
            let changed = self.windows.take_event(&self.x11, &event)?;
            self.schedule.add(changed);
        }
        Ok(false)
    }

    /// Loads the rules. A mistake is printed once, and again only if it was corrected in between.
    fn load(&mut self) {
        let Loaded { rules, limits, mistakes, .. } = self.loader.load();
        let current: BTreeSet<String> = mistakes.iter().map(ToString::to_string).collect();
        for new in current.difference(&self.reported) {
            note(new);
        }
        self.reported = current;
        self.say(&format!("rules loaded: {}", rules.rules().len()));
        self.needs_viewers = rules.rules().iter().any(|rule| rule.matcher.depends_on(State::Unwatched));
        self.rules = rules;
        self.applier.limit_auto(limits.auto);
        self.user_limit.keep(self.applier.server(), limits.per_user).into_iter().for_each(|message| note(&message));
        self.schedule.add_all();
    }

    /// Evaluates the rules for the changed clients.
    fn evaluate(&mut self) -> Result<()> {
        let changed = self.schedule.start(self.began.elapsed());
        let entries = self.others()?;
        let users = Users::read();
        let is_changed = |entry: &&ClientEntry| match &changed {
            Changed::Clients(clients) => clients.contains(&entry.client),
            Changed::All => true,
        };
        let entries: Vec<&ClientEntry> = entries.values().filter(is_changed).collect();
        let known = entries.iter().map(|entry| facts(entry, &users, &self.windows, self.absence.is_unwatched()));
        let known: Vec<ClientFacts> = known.collect();
        let mut all = Vec::new();
        for (entry, facts) in entries.into_iter().zip(&known) {
            let evaluation = self.rules.evaluate(facts);
            let matched = evaluation.verdicts().filter(|(_, verdict)| *verdict == Verdict::Matched);
            self.matched.extend(matched.map(|(rule, _)| rule.place.to_string()));
            all.push((entry, evaluation.applied()));
        }
        for message in self.applier.apply(&all) {
            note(&message);
        }
        Ok(())
    }

    fn others(&self) -> Result<BTreeMap<u32, ClientEntry>> {
        let own = std::process::id() as i32;
        let others = self.applier.server().others()?.into_iter().filter(|entry| entry.pid != own);
        Ok(others.map(|entry| (entry.client, entry)).collect())
    }

    fn finish(&mut self, end: End) {
        if end == End::ServerGone {
            return note("the X server has exited, and all settings with it");
        }
        if let Ok(entries) = self.others() {
            let entries: Vec<ClientEntry> = entries.into_values().collect();
            self.applier.undo(&entries);
        }
        self.user_limit.keep(self.applier.server(), None);
        for rule in self.rules.rules() {
            if !self.matched.contains(&rule.place.to_string()) {
                self.say(&format!("rule '{}' ({}) never matched", rule.id, rule.place));
            }
        }
        self.say("its settings are undone");
    }

    fn say(&self, text: &str) {
        if self.is_verbose {
            note(text);
        }
    }
}

fn is_now(due: Option<Duration>) -> bool {
    due == Some(Duration::ZERO)
}
