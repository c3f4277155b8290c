// SPDX-License-Identifier: MIT
//! The rules daemon of a display: receives changes, evaluates the rules, and applies the result.
//!
//! The daemon sleeps until the server, a window, a file or a signal wakes it, and reads changed files immediately. Any
//! client of the display can ask for its status, or ask it to read the files again (`selection_lock::DaemonQuery`). It
//! exits on a signal, when another client takes its selection, or when its connection or the server ends. In the first
//! two cases it undoes its settings.

use super::apply::Applier;
use super::auto::{Auto, ByTrace};
use super::boosted::{ByBoost, Starter};
use super::folders::Folders;
use super::limits::UserLimit;
use super::process::Users;
use super::schedule::{Changed, MIN_INTERVAL, Schedule};
use super::selection_lock::{self, DaemonQuery, SelectionLock};
use super::status::{Applied, LastError, RulesRead, Status, in_ms};
use super::viewers::{self, Absence, Viewers};
use super::window_facts::WindowFacts;
use super::{facts, loader};
use crate::error::{Error, Result, asking, bail};
use crate::session::Session;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, SelectionRequestEvent};
use x11rb::rust_connection::RustConnection;
use xqos_abi::{ClientEntry, NotifyKind, event_mask};
use xqos_cli::output::note;
use xqos_rules::decide::{RuleMatch, RuleSet};
use xqos_rules::facts::{ClientFacts, State};
use xqos_rules::files::Loader;
use xqos_sys as sys;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Signal,
    Replaced,
    /// Our connection was closed by another client, as xkill does.
    Disconnected,
    ServerGone,
}

#[derive(Debug)]
pub struct Daemon {
    applier: Applier<Session, ByTrace, ByBoost>,
    /// A separate connection, because the control connection receives no window events.
    x11: RustConnection,
    lock: SelectionLock,
    windows: WindowFacts,
    loader: Loader,
    rules: RuleSet,
    read: RulesRead,
    /// The time at which the rule files were read.
    read_at: Instant,
    last_error: Option<(Instant, String)>,
    folders: Folders,
    /// `per_user` in the rule files.
    per_user: Option<u32>,
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
    pub fn start(display: Option<&str>, is_verbose: bool, unwatched_after: Duration, boost: Starter) -> Result<Daemon> {
        let (session, _) = Session::open_armed(display)?;
        let (x11, _) = xqos_client::connect(Some(&session.display))?;
        let lock = SelectionLock::acquire(&x11, &session.display)?;
        session.control.select_events(event_mask::CLIENTS)?;
        let windows = WindowFacts::new(&x11, true)?;
        let loader = loader();
        let folders = Folders::watch(loader.folders().iter().map(|folder| folder.path.clone()).collect())?;
        let (auto, boost) = (ByTrace::new(&session.display), ByBoost::new(&session.display, boost));
        let mut daemon = Daemon {
            applier: Applier::new(session, auto, boost),
            x11,
            lock,
            windows,
            loader,
            rules: RuleSet::default(),
            read: RulesRead::default(),
            read_at: Instant::now(),
            last_error: None,
            folders,
            per_user: None,
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

    /// Runs until `stop` closes (on a signal), the server exits, or the selection is lost.
    pub fn run(mut self, stop: &UnixStream) -> Result<()> {
        let end = loop {
            match self.turn(stop) {
                Ok(None) => {}
                Ok(Some(end)) => break end,
                Err(error) => match self.end_after(&error) {
                    Some(end) => break end,
                    None => self.continue_after(&error, stop)?,
                },
            }
        };
        self.finish(end);
        match end {
            End::Disconnected => bail!("our connection was closed by another client: start `xqos rules run` again"),
            _ => Ok(()),
        }
    }

    /// Reason to end after an error; `None` to continue. A server that hangs may recover.
    fn end_after(&self, error: &Error) -> Option<End> {
        if error.is_late() {
            return None;
        }
        match self.applier.server.control.server_info() {
            Err(xqos_client::Error::Late) => return None,
            Err(_) => return Some(End::ServerGone),
            Ok(_) => {}
        }
        let asked = self.x11.get_input_focus().map(|asked| asked.reply());
        (!matches!(asked, Ok(Ok(_)))).then_some(End::Disconnected)
    }

    /// Prints an error once, because it may repeat, and pauses.
    fn continue_after(&mut self, error: &Error, stop: &UnixStream) -> Result<()> {
        if error.is_late() {
            // Some changed clients have not been evaluated.
            self.schedule.add_all();
        }
        let message = error.in_one_line();
        if self.reported.insert(message.clone()) {
            self.fail(message);
        }
        sys::poll(&[stop.as_raw_fd()], Some(MIN_INTERVAL)).map_err(asking("cannot wait"))
    }

    /// Receives all events, evaluates changed clients, and sleeps.
    fn turn(&mut self, stop: &UnixStream) -> Result<Option<End>> {
        if sys::readable([stop.as_fd()], Some(Duration::ZERO)).map_err(asking("cannot wait"))? == [true] {
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
        let (is_due, is_to_evaluate) = (is_now(self.applier.auto.due()), is_now(self.until_evaluation()));
        if is_due {
            let messages = self.applier.auto.work();
            self.print(&messages);
        }
        if is_to_evaluate {
            self.evaluate()?;
        }
        if is_due || is_to_evaluate {
            // Events that arrived with the replies are already in memory, where poll() does not see them.
            return Ok(None);
        }
        let left = [self.until_evaluation(), self.applier.auto.due(), self.until_viewers()].into_iter().flatten().min();
        let session = &self.applier.server;
        let (control, x11) = (session.control.descriptor(), self.x11.stream().as_raw_fd());
        sys::poll(&[stop.as_raw_fd(), control, x11, self.folders.as_raw_fd()], left).map_err(asking("cannot wait"))?;
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
        let (before, viewers) = (self.absence.is_unwatched(), viewers::of_server(&self.applier.server));
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
        while let Some(notify) = self.applier.server.control.next_notify()? {
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
            if let Some((asked, question)) = self.lock.asked_by(&event) {
                self.answer(&asked, question)?;
                continue;
            }
            let changed = self.windows.take_event(&self.x11, &event)?;
            self.schedule.add(changed);
        }
        Ok(false)
    }

    /// Loads the rules. A mistake is printed once, and again only if it was corrected in between.
    fn load(&mut self) {
        let loaded = self.loader.load();
        (self.read, self.read_at) = (RulesRead::of(&loaded), Instant::now());
        let current: BTreeSet<String> = self.read.mistakes.iter().cloned().collect();
        let before = std::mem::replace(&mut self.reported, current.clone());
        current.difference(&before).for_each(|new| self.fail(new.clone()));
        self.say(&format!("rules loaded: {}", self.read.count));
        self.needs_viewers = loaded.rules.rules().iter().any(|rule| rule.matcher.depends_on(State::Unwatched));
        self.rules = loaded.rules;
        self.applier.auto.limit(loaded.limits.auto);
        self.per_user = loaded.limits.per_user;
        self.schedule.add_all();
    }

    fn answer(&mut self, asked: &SelectionRequestEvent, question: Option<DaemonQuery>) -> Result<()> {
        if question == Some(DaemonQuery::Reload) {
            self.load();
        }
        let status = question.map(|_| self.status()).transpose()?;
        let text = status.map(|status| serde_json::to_string(&status)).transpose();
        selection_lock::answer(&self.x11, asked, text.map_err(asking("cannot write the status"))?.as_deref())
    }

    fn status(&self) -> Result<Status> {
        let (users, unwatched) = (Users::read(), self.absence.is_unwatched());
        let mut applied = Vec::new();
        for entry in self.others()?.values() {
            let facts = facts(entry, &users, &self.windows, unwatched);
            applied.extend(self.rules.evaluate(&facts).applied().iter().map(|chosen| Applied::of(entry, chosen)));
        }
        let last_error = self.last_error.as_ref();
        Ok(Status {
            version: 1,
            pid: std::process::id(),
            running_ms: in_ms(self.began.elapsed()),
            rules: self.read.clone(),
            read_ago_ms: in_ms(self.read_at.elapsed()),
            last_error: last_error.map(|(at, text)| LastError { text: text.clone(), ago_ms: in_ms(at.elapsed()) }),
            applied,
        })
    }

    fn evaluate(&mut self) -> Result<()> {
        let changed = self.schedule.start(self.began.elapsed());
        let refused = self.user_limit.keep(&self.applier.server, self.per_user)?;
        refused.into_iter().for_each(|message| self.fail(message));
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
            let matched = evaluation.verdicts().filter(|(_, verdict)| *verdict == RuleMatch::Matched);
            self.matched.extend(matched.map(|(rule, _)| rule.place.to_string()));
            all.push((entry, evaluation.applied()));
        }
        let messages = self.applier.apply(&all);
        self.print(&messages);
        self.applier.late.take().map_or(Ok(()), Err)
    }

    fn others(&self) -> Result<BTreeMap<u32, ClientEntry>> {
        let own = std::process::id() as i32;
        let others = self.applier.server.others()?.into_iter().filter(|entry| entry.pid != own);
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
        // If the server does not answer, the limit ends with our connection.
        let _ = self.user_limit.keep(&self.applier.server, None);
        for rule in self.rules.rules() {
            if !self.matched.contains(&rule.place.to_string()) {
                self.say(&format!("rule '{}' ({}) never matched", rule.id, rule.place));
            }
        }
        self.say("its settings are undone");
    }

    /// Prints messages of the applier, and remembers its last refusal.
    fn print(&mut self, messages: &[String]) {
        messages.iter().for_each(|message| note(message));
        self.last_error = self.applier.refusal.take().map(|text| (Instant::now(), text)).or(self.last_error.take());
    }

    /// Prints an error and remembers it as the last one.
    fn fail(&mut self, text: String) {
        note(&text);
        self.last_error = Some((Instant::now(), text));
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
