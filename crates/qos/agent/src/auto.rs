// SPDX-License-Identifier: MIT
//! Measured reservations for clients of a running server: `auto` of `xqos run` and `xqos reserve`.
//!
//! | event | action |
//! |---|---|
//! | the tuner advises a new or changed reservation | set it as a soft reservation |
//! | the server refuses it | try (2Q, 2T) once; if that is also refused, report it once, and wait for new advice |
//! | the client's reservation is not what was set here | another program controls it: ignore the client from now on |
//! | the client disconnects | forget it |
//! | the server does not answer in time | do the rest in the next turn |
//! | nothing is reserved for the client | report each reason once |
//!
//! While a client is active, the trace ring is read ten times a second, and the server is queried once a second for the
//! other reservations. While all clients are silent, the ring is read once a second, and the server is not woken.
//!
//! Invariant: reservations set here are soft, and are cleared when this program ends.

mod decision;
mod demand;
mod processors;

use crate::client::{described, in_ns, in_us, reservation_of, reservation_of_group};
use crate::error::{Error, Result, refused};
use crate::feed::Feed;
use crate::session::{Account, Session};
use decision::{NotReserved, rhythm, too_few_jobs};
use processors::Processors;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};
use xqos_abi::trace::Level;
use xqos_abi::{ClientEntry, ServerInfo};
use xqos_client::Error as Answer;
use xqos_core as core;
use xqos_text::quantity::Reservation;
use xqos_tune::{Advice, RhythmReport, Room, Tuner};

/// How often the ring is read while a client is active; a decision needs about a dozen bursts.
const ACTIVE: Duration = Duration::from_millis(100);
const SILENT: Duration = Duration::from_secs(1);
/// How often the server is queried for other reservations and the longest request.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Measures some clients of a server and keeps their reservations up to date.
#[derive(Debug)]
pub struct Auto {
    feed: Feed,
    tuner: Tuner<u32>,
    clients: BTreeMap<u32, MeasuredClient>,
    /// Also reserves processor time, if enabled.
    processors: Option<Processors>,
    room: Room,
    checked: Option<Instant>,
    /// Advice that has not been followed yet.
    advice: VecDeque<(u32, Advice)>,
    notes: Vec<String>,
    /// Also report clients that get no reservation, with the reason.
    pub reports_all: bool,
    /// Origin of the settings as shown to other programs, without the confidence.
    origin: String,
}

#[derive(Debug)]
struct MeasuredClient {
    pid: i32,
    name: String,
    set: Option<Reservation>,
    /// A reservation to which the server has not answered in time.
    asked: Option<Reservation>,
    is_refused: bool,
    /// Reported reasons for having no reservation; `None` stands for a reported reservation.
    reported: BTreeSet<Option<NotReserved>>,
}

impl Auto {
    /// Starts to measure. Settings get this origin and end with the session. `limit_ppm`: see [`Auto::limit`].
    pub fn start(session: &Session, origin: &str, limit_ppm: Option<u32>) -> Result<Auto> {
        session.control.set_origin(origin, true)?;
        let mut feed = Feed::closed();
        feed.trace(session, Level::Slices).map_err(|error| {
            refused!("auto needs the server's trace, which only local clients can read: {}", error.in_one_line())
        })?;
        Ok(Auto {
            feed,
            tuner: Tuner::default(),
            clients: BTreeMap::new(),
            processors: None,
            room: Room { auto_limit_ppm: limit_ppm, ..Room::default() },
            checked: None,
            advice: VecDeque::new(),
            notes: Vec::new(),
            reports_all: false,
            origin: origin.to_owned(),
        })
    }

    /// Also reserves processor time from now on. `is_own_child`: this program started the client, which ends with this
    /// program. The error says why a reservation is impossible. Call this before any thread is started.
    pub fn reserve_processors(&mut self, is_own_child: bool) -> Result<()> {
        self.processors = Some(Processors::start(is_own_child)?);
        Ok(())
    }

    /// Changes the maximum sum of all measured reservations.
    pub fn limit(&mut self, ppm: Option<u32>) {
        self.room.auto_limit_ppm = ppm;
    }

    /// Starts to measure a client. Returns false for a client that already has a reservation.
    pub fn adopt(&mut self, entry: &ClientEntry) -> bool {
        if reservation_of(entry).is_some() {
            return false;
        }
        let (pid, name) = (entry.pid, described(entry));
        let known = MeasuredClient { pid, name, set: None, asked: None, is_refused: false, reported: BTreeSet::new() };
        self.clients.insert(entry.client, known);
        self.tuner.add(entry.client, self.feed.now());
        self.tuner.weigh(entry.client, entry.weight);
        true
    }

    /// Forgets a client that has disconnected. Returns a message if nothing had been decided for it.
    pub fn gone(&mut self, client: u32) -> Option<String> {
        let jobs = self.report(client).map_or(0, |report| report.jobs);
        let known = self.forget(client).filter(|known| self.reports_all && known.reported.is_empty())?;
        Some(format!("nothing was reserved for {}: {}", known.name, too_few_jobs(jobs)))
    }

    /// Handles a client that the server no longer lists, although the event of its disconnection has not arrived yet.
    fn report_gone(&mut self, client: u32) {
        let notes = self.gone(client);
        self.notes.extend(notes);
    }

    fn forget(&mut self, client: u32) -> Option<MeasuredClient> {
        self.tuner.remove(client);
        self.advice.retain(|&(other, _)| other != client);
        self.clients.remove(&client)
    }

    /// Stops measuring a client and clears the reservation that was set here.
    pub fn leave(&mut self, session: &Session, client: u32) {
        if self.forget(client).is_some_and(|known| known.set.is_some()) {
            // If the client has just disconnected, there is nothing to clear.
            let _ = session.control.release(client);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Time until the next turn; `None` if there is nothing to do.
    pub fn wait(&self) -> Option<Duration> {
        if self.clients.is_empty() || !self.feed.is_open() {
            return None;
        }
        Some(if self.tuner.is_active() { ACTIVE } else { SILENT })
    }

    /// Reads new bursts and follows the tuner's advice. Returns messages for the user.
    pub fn turn(&mut self, session: &Session) -> Result<Vec<String>> {
        match self.work(session) {
            Err(error) if error.is_late() => {}
            worked => worked?,
        }
        Ok(std::mem::take(&mut self.notes))
    }

    fn work(&mut self, session: &Session) -> Result<()> {
        for (client, burst) in self.feed.read(session)? {
            self.tuner.take(client, burst);
        }
        let now = self.feed.now();
        self.feed.working().for_each(|client| self.tuner.works(client, now));
        let is_due = self.checked.is_none_or(|checked| checked.elapsed() >= CHECK_INTERVAL);
        if is_due && self.tuner.is_active() {
            self.check_reservations(session)?;
        }
        self.advice.extend(self.tuner.advise(self.feed.now(), &self.room));
        if !self.advice.is_empty() {
            // Another program may have changed reservations since the last check.
            self.check_reservations(session)?;
        }
        while let Some((client, advice)) = self.advice.pop_front() {
            if self.clients.contains_key(&client) {
                let followed = self.follow(session, client, advice);
                if followed.as_ref().is_err_and(Error::is_late) {
                    self.advice.push_front((client, advice));
                }
                followed?;
            }
        }
        self.report_unreserved();
        if let Some(processors) = &mut self.processors {
            let reserved = self.clients.values().filter_map(|known| Some((known.pid, known.set?.period)));
            match processors.update(reserved, Instant::now()) {
                Ok(notes) => self.notes.extend(notes),
                Err(error) => {
                    self.notes.push(error.in_one_line());
                    self.processors = None;
                }
            }
        }
        Ok(())
    }

    /// Clears all reservations set here. Returns messages for the user.
    pub fn end(mut self, session: &Session) -> Vec<String> {
        if self.check_reservations(session).is_ok() {
            for (&client, _) in self.clients.iter().filter(|(_, known)| known.set.is_some()) {
                // If the client has just disconnected, there is nothing to clear.
                let _ = session.control.release(client);
            }
        }
        self.notes
    }

    /// Updates the other reservations, and checks that those set here are unchanged.
    fn check_reservations(&mut self, session: &Session) -> Result<()> {
        let entries = session.others()?;
        let by_client: BTreeMap<u32, &ClientEntry> = entries.iter().map(|entry| (entry.client, entry)).collect();
        let known: Vec<_> = self.clients.iter_mut().map(|(&client, known)| (client, known.asked.take())).collect();
        for (client, asked) in known {
            let found = by_client.get(&client);
            let now = found.and_then(|entry| reservation_of(entry));
            let Some(known) = self.clients.get_mut(&client) else { continue };
            // The server has executed the request, although it did not answer in time.
            known.set = asked.filter(|&asked| now == Some((asked, core::ReservationKind::Soft))).or(known.set);
            let set = known.set;
            if found.is_some() && now == set.map(|set| (set, core::ReservationKind::Soft)) {
                continue;
            }
            match found {
                Some(entry) => {
                    let what = now.map_or("released".to_owned(), |(now, _)| format!("set to {now}"));
                    self.notes.push(format!("{} was {what} by another program: auto ignores it now", described(entry)));
                    self.forget(client);
                }
                None => self.report_gone(client),
            }
        }
        let others = entries.iter().filter(|entry| !self.clients.contains_key(&entry.client));
        let of_groups: BTreeMap<u32, &ClientEntry> = entries.iter().map(|entry| (entry.group, entry)).collect();
        let of_groups = of_groups.into_values().filter_map(reservation_of_group);
        let fixed = others.filter_map(reservation_of).chain(of_groups);
        let fixed = fixed.map(|(fixed, kind)| in_ns(fixed, kind)).collect();
        let info = session.control.server_info()?;
        let limit_ppm = session.control.processor()?.limit_ppm;
        self.room = Room { limit_ppm, blocking_ns: blocking_ns(&info), fixed, ..self.room };
        self.checked = Some(Instant::now());
        Ok(())
    }

    fn follow(&mut self, session: &Session, client: u32, advice: Advice) -> Result<()> {
        let Some(entry) = session.others()?.into_iter().find(|entry| entry.client == client) else {
            self.report_gone(client);
            return Ok(());
        };
        match advice {
            Advice::Reserve(wanted) | Advice::Change(wanted) => self.reserve(session, &entry, wanted),
            Advice::Release => {
                self.clear(session, &entry);
                if let Some((why, sentence)) = self.not_reserved(client) {
                    self.clients.entry(client).and_modify(|known| _ = known.reported.insert(Some(why)));
                    self.notes.push(format!("released the reservation of {}: {sentence}", described(&entry)));
                }
                Ok(())
            }
        }
    }

    fn reserve(&mut self, session: &Session, entry: &ClientEntry, wanted: core::Reservation) -> Result<()> {
        let mut next = Some(wanted);
        let mut why = None;
        while let Some(wanted) = next {
            let typed = in_us(wanted.budget_ns, wanted.period_ns);
            self.set_confidence(session, entry.client)?;
            self.clients.entry(entry.client).and_modify(|known| known.asked = Some(typed));
            let answer = session.control.reserve(entry.client, typed.budget.0, typed.period.0, false);
            if !matches!(answer, Err(Answer::Late)) {
                self.clients.entry(entry.client).and_modify(|known| known.asked = None);
            }
            match answer {
                Ok(()) => {
                    self.clients.entry(entry.client).and_modify(|known| {
                        (known.set, known.is_refused, known.reported) = (Some(typed), false, BTreeSet::from([None]));
                    });
                    self.notes.push(format!("reserved {typed} for {}{}", described(entry), self.reason(entry.client)));
                    return Ok(());
                }
                Err(Answer::Admission { .. }) => {
                    why = why.or(Some(session.refusal(&Account::of_client(entry), typed)?));
                    next = self.tuner.refused(entry.client, self.feed.now());
                }
                Err(Answer::Value(client)) if client == entry.client => {
                    self.report_gone(client);
                    return Ok(());
                }
                Err(error) => return Err(session.explained(error, entry)),
            }
        }
        self.clear(session, entry);
        if let Some(known) = self.clients.get_mut(&entry.client) {
            known.reported.insert(Some(NotReserved::NoRoom));
            if !std::mem::replace(&mut known.is_refused, true) {
                self.notes.extend(why.map(|why| format!("{why}; it runs without a reservation until there is room")));
            }
        }
        Ok(())
    }

    fn clear(&mut self, session: &Session, entry: &ClientEntry) {
        if self.clients.get_mut(&entry.client).and_then(|known| known.set.take()).is_some() {
            // If the client has just disconnected, there is nothing to clear.
            let _ = session.control.release(entry.client);
        }
    }

    /// Puts the confidence into the origin of the next setting, where other programs see it.
    fn set_confidence(&self, session: &Session, client: u32) -> Result<()> {
        let confidence = self.report(client).map_or(0.0, |report| report.confidence);
        session.control.set_origin(&format!("{} {confidence:.2}", self.origin), true)?;
        Ok(())
    }

    /// The measured rhythm, as a part of a sentence.
    fn reason(&self, client: u32) -> String {
        let found = self.report(client).and_then(|report| Some((rhythm(&report)?, report)));
        found.map_or_else(String::new, |(rhythm, report)| {
            format!(", which {rhythm} (confidence {:.2}, {} jobs)", report.confidence, report.jobs)
        })
    }

    fn report(&self, client: u32) -> Option<RhythmReport> {
        self.tuner.reports().find(|(key, _)| *key == client).map(|(_, report)| report)
    }

    fn not_reserved(&self, client: u32) -> Option<(NotReserved, String)> {
        let report = self.report(client)?;
        let why = NotReserved::of(&report)?;
        Some((why, why.sentence(&report)))
    }

    /// Reports why clients have no reservation. A silent client is not reported, because it may start at any moment.
    fn report_unreserved(&mut self) {
        let without = self.clients.iter().filter(|(_, known)| self.reports_all && known.set.is_none());
        for client in without.map(|(&client, _)| client).collect::<Vec<_>>() {
            let Some((why, sentence)) = self.not_reserved(client).filter(|(why, _)| *why != NotReserved::Silent) else {
                continue;
            };
            if let Some(known) = self.clients.get_mut(&client).filter(|known| !known.reported.contains(&Some(why))) {
                known.reported.insert(Some(why));
                self.notes.push(format!("nothing is reserved for {}: {sentence}", known.name));
            }
        }
    }
}

/// Blocking time B of the server's admission test.
fn blocking_ns(info: &ServerInfo) -> u64 {
    let us = if info.blocking_configured_us > 0 { info.blocking_configured_us } else { info.blocking_observed_us };
    u64::from(us) * 1000
}
