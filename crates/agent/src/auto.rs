// SPDX-License-Identifier: MIT
//! Reservations that are found by measurement, for clients of a live server: `auto` of `xqos run` and `xqos reserve`.
//!
//! | what is seen of a client | what is done |
//! |---|---|
//! | the tuner advises a reservation, or another one | it is set by the control connection, soft |
//! | that is refused | (2Q, 2T) once; refused too, that is said once, and tried again when the tuner asks again |
//! | the client has a reservation that is not what was set here, or none where one was set | somebody else decides: it is left alone from now on |
//! | it has gone | it is forgotten |
//! | nothing is reserved for it | why is said, once for each cause |
//!
//! While a client does something the ring is read ten times a second, and the server is asked once a second what else is reserved.
//! While all are silent the ring is looked at once a second, and the server is left asleep.
//!
//! Invariant: what is set here is soft, and cleared when we end.

mod decision;
mod demand;
mod processors;

use crate::client::{described, in_ns, in_us, reservation_of, reservation_of_group};
use crate::error::{Result, refused};
use crate::feed::Feed;
use crate::session::{Account, Session};
use decision::{WhyNot, rhythm, too_little};
use processors::Processors;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use xqos_abi::trace::Level;
use xqos_abi::{ClientEntry, ServerInfo};
use xqos_cli::quantity::Reservation;
use xqos_client::Error as Answer;
use xqos_core as core;
use xqos_tune::{Advice, Report, Room, Tuner};

/// A burst is seen that late at most, and a dozen of them are needed.
const ACTIVE: Duration = Duration::from_millis(100);
const SILENT: Duration = Duration::from_secs(1);
/// What others have reserved, and how long their requests are.
const ROOM_EVERY: Duration = Duration::from_secs(1);

/// Some clients of a server.
#[derive(Debug)]
pub struct Auto {
    feed: Feed,
    tuner: Tuner<u32>,
    /// Who is looked after.
    ours: BTreeMap<u32, Ours>,
    /// Where processor time is found, too.
    processors: Option<Processors>,
    room: Room,
    asked: Option<Instant>,
    said: Vec<String>,
    /// Whether to say where nothing is reserved.
    tells_all: bool,
    /// What others are told, before the confidence.
    origin: String,
}

/// A client that is looked after.
#[derive(Debug)]
struct Ours {
    pid: i32,
    /// It, in words.
    name: String,
    /// What was set.
    set: Option<Reservation>,
    /// That was said.
    is_refused: bool,
    /// Why nothing is reserved, as it was said; `None`: something was reserved.
    told: BTreeSet<Option<WhyNot>>,
}

impl Auto {
    /// What is set is told with this origin, and ends with the session, however that ends. `limit_ppm`: the most for all that
    /// is found by measurement, where that is set.
    pub fn start(session: &Session, origin: &str, limit_ppm: Option<u32>) -> Result<Auto> {
        session.control.set_origin(origin, true)?;
        let mut feed = Feed::closed();
        feed.trace(session, Level::Slices).map_err(|error| {
            refused!("auto needs the server's trace, which is for clients of its own machine: {}", error.in_one_line())
        })?;
        Ok(Auto {
            feed,
            tuner: Tuner::new(),
            ours: BTreeMap::new(),
            processors: None,
            room: Room { auto_limit_ppm: limit_ppm, ..Room::default() },
            asked: None,
            said: Vec::new(),
            tells_all: false,
            origin: origin.to_owned(),
        })
    }

    /// From now on also reserves processor time; `is_ours`: the program was started here, and ends with us. The error says why
    /// not. To be called before there are threads.
    pub fn reserve_processors(&mut self, is_ours: bool) -> Result<()> {
        self.processors = Some(Processors::start(is_ours)?);
        Ok(())
    }

    /// From now on also says where nothing is reserved, and why.
    pub fn tell_all(&mut self) {
        self.tells_all = true;
    }

    /// The most for all that is found by measurement, from the next look on.
    pub fn limit(&mut self, ppm: Option<u32>) {
        self.room.auto_limit_ppm = ppm;
    }

    /// Looks after a client. One that has a reservation is left alone: false.
    pub fn adopt(&mut self, entry: &ClientEntry) -> bool {
        if reservation_of(entry).is_some() {
            return false;
        }
        let (pid, name) = (entry.pid, described(entry));
        let ours = Ours { pid, name, set: None, is_refused: false, told: BTreeSet::new() };
        self.ours.insert(entry.client, ours);
        self.tuner.add(entry.client, self.feed.now());
        self.tuner.weigh(entry.client, entry.weight);
        true
    }

    /// A client has gone. What there is to say where nothing was decided for it.
    pub fn gone(&mut self, client: u32) -> Option<String> {
        let jobs = self.report(client).map_or(0, |report| report.jobs);
        let ours = self.forget(client).filter(|ours| self.tells_all && ours.told.is_empty())?;
        Some(format!("nothing was reserved for {}: {}", ours.name, too_little(jobs)))
    }

    /// The server knows it no more, and its event is still on the way.
    fn say_gone(&mut self, client: u32) {
        let said = self.gone(client);
        self.said.extend(said);
    }

    fn forget(&mut self, client: u32) -> Option<Ours> {
        self.tuner.remove(client);
        self.ours.remove(&client)
    }

    /// Leaves a client alone from now on, and takes back what was set for it here.
    pub fn leave(&mut self, session: &Session, client: u32) {
        if self.forget(client).is_some_and(|ours| ours.set.is_some()) {
            // It may have gone at this moment; then there is nothing to clear.
            let _ = session.control.release(client);
        }
    }

    /// Nobody is looked after.
    pub fn is_empty(&self) -> bool {
        self.ours.is_empty()
    }

    /// Until when there is nothing to look at.
    pub fn wait(&self) -> Option<Duration> {
        if self.ours.is_empty() || !self.feed.is_open() {
            return None;
        }
        Some(if self.tuner.is_active() { ACTIVE } else { SILENT })
    }

    /// Reads what has come and does what follows; gives what there is to say.
    pub fn turn(&mut self, session: &Session) -> Result<Vec<String>> {
        for (client, burst) in self.feed.read(session)? {
            self.tuner.take(client, burst);
        }
        let now = self.feed.now();
        self.feed.working().for_each(|client| self.tuner.works(client, now));
        let is_due = self.asked.is_none_or(|asked| asked.elapsed() >= ROOM_EVERY);
        if is_due && self.tuner.is_active() {
            self.look_around(session)?;
        }
        let advice = self.tuner.advise(self.feed.now(), &self.room);
        if !advice.is_empty() {
            // Somebody may have decided otherwise since the last look.
            self.look_around(session)?;
        }
        for (client, advice) in advice {
            if self.ours.contains_key(&client) {
                self.follow(session, client, advice)?;
            }
        }
        self.tell_why_not();
        if let Some(processors) = &mut self.processors {
            let reserved = self.ours.values().filter_map(|ours| Some((ours.pid, ours.set?.period)));
            match processors.look(reserved, Instant::now()) {
                Ok(said) => self.said.extend(said),
                Err(error) => {
                    self.said.push(error.in_one_line());
                    self.processors = None;
                }
            }
        }
        Ok(std::mem::take(&mut self.said))
    }

    /// Clears what was set here; gives what there is to say.
    pub fn end(mut self, session: &Session) -> Vec<String> {
        if self.look_around(session).is_ok() {
            for (&client, _) in self.ours.iter().filter(|(_, ours)| ours.set.is_some()) {
                // It may have gone at this moment; then there is nothing to clear.
                let _ = session.control.release(client);
            }
        }
        self.said
    }

    /// What else is reserved, and whether ours are as they were set.
    fn look_around(&mut self, session: &Session) -> Result<()> {
        let entries = session.others()?;
        let by_client: BTreeMap<u32, &ClientEntry> = entries.iter().map(|entry| (entry.client, entry)).collect();
        let ours: Vec<_> = self.ours.iter().map(|(&client, ours)| (client, ours.set)).collect();
        for (client, set) in ours {
            let found = by_client.get(&client);
            let now = found.and_then(|entry| reservation_of(entry));
            if found.is_some() && now == set.map(|set| (set, core::ReservationKind::Soft)) {
                continue;
            }
            match found {
                Some(entry) => {
                    let what = now.map_or("released".to_owned(), |(now, _)| format!("set to {now}"));
                    self.said.push(format!("{} was {what} by somebody else: auto leaves it alone", described(entry)));
                    self.forget(client);
                }
                None => self.say_gone(client),
            }
        }
        let others = entries.iter().filter(|entry| !self.ours.contains_key(&entry.client));
        let of_groups: BTreeMap<u32, &ClientEntry> = entries.iter().map(|entry| (entry.group, entry)).collect();
        let of_groups = of_groups.into_values().filter_map(reservation_of_group);
        let fixed = others.filter_map(reservation_of).chain(of_groups);
        let fixed = fixed.map(|(fixed, kind)| in_ns(fixed, kind)).collect();
        let info = session.control.server_info()?;
        let limit_ppm = session.control.processor()?.limit_ppm;
        self.room = Room { limit_ppm, blocking_ns: blocking_ns(&info), fixed, ..self.room };
        self.asked = Some(Instant::now());
        Ok(())
    }

    fn follow(&mut self, session: &Session, client: u32, advice: Advice) -> Result<()> {
        let Some(entry) = session.others()?.into_iter().find(|entry| entry.client == client) else {
            self.say_gone(client);
            return Ok(());
        };
        match advice {
            Advice::Reserve(wanted) | Advice::Change(wanted) => self.reserve(session, &entry, wanted),
            Advice::Release => {
                self.clear(session, &entry);
                if let Some((why, sentence)) = self.why_not(client) {
                    self.ours.entry(client).and_modify(|ours| _ = ours.told.insert(Some(why)));
                    self.said.push(format!("released what was reserved for {}: {sentence}", described(&entry)));
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
            self.tell_confidence(session, entry.client)?;
            match session.control.reserve(entry.client, typed.budget.0, typed.period.0, false) {
                Ok(()) => {
                    self.ours.entry(entry.client).and_modify(|ours| {
                        (ours.set, ours.is_refused, ours.told) = (Some(typed), false, BTreeSet::from([None]));
                    });
                    self.said.push(format!("reserved {typed} for {}{}", described(entry), self.because(entry.client)));
                    return Ok(());
                }
                Err(Answer::Admission { .. }) => {
                    why = why.or(Some(session.refusal(&Account::of_client(entry), typed)?));
                    next = self.tuner.refused(entry.client, self.feed.now());
                }
                Err(Answer::Value(client)) if client == entry.client => {
                    self.say_gone(client);
                    return Ok(());
                }
                Err(error) => return Err(session.explained(error, entry)),
            }
        }
        self.clear(session, entry);
        if let Some(ours) = self.ours.get_mut(&entry.client) {
            ours.told.insert(Some(WhyNot::NoRoom));
            if !std::mem::replace(&mut ours.is_refused, true) {
                self.said.extend(why.map(|why| format!("{why}; it runs without a reservation until there is room")));
            }
        }
        Ok(())
    }

    fn clear(&mut self, session: &Session, entry: &ClientEntry) {
        if self.ours.get_mut(&entry.client).and_then(|ours| ours.set.take()).is_some() {
            // It may have gone at this moment; then there is nothing to clear.
            let _ = session.control.release(entry.client);
        }
    }

    /// Others see how sure that is: what is set next has the confidence in its origin.
    fn tell_confidence(&self, session: &Session, client: u32) -> Result<()> {
        let confidence = self.report(client).map_or(0.0, |report| report.confidence);
        session.control.set_origin(&format!("{} {confidence:.2}", self.origin), true)?;
        Ok(())
    }

    /// What was found.
    fn because(&self, client: u32) -> String {
        let found = self.report(client).and_then(|report| Some((rhythm(&report)?, report)));
        found.map_or_else(String::new, |(rhythm, report)| {
            format!(", which {rhythm} (confidence {:.2}, {} jobs)", report.confidence, report.jobs)
        })
    }

    fn report(&self, client: u32) -> Option<Report> {
        self.tuner.reports().find(|(key, _)| *key == client).map(|(_, report)| report)
    }

    fn why_not(&self, client: u32) -> Option<(WhyNot, String)> {
        let report = self.report(client)?;
        let why = WhyNot::of(&report)?;
        Some((why, why.sentence(&report)))
    }

    /// Says why nothing is reserved, where that is known. Silence decides nothing: the client may begin any moment.
    fn tell_why_not(&mut self) {
        let without = self.ours.iter().filter(|(_, ours)| self.tells_all && ours.set.is_none());
        for client in without.map(|(&client, _)| client).collect::<Vec<_>>() {
            let Some((why, sentence)) = self.why_not(client).filter(|(why, _)| *why != WhyNot::Silent) else {
                continue;
            };
            if let Some(ours) = self.ours.get_mut(&client).filter(|ours| !ours.told.contains(&Some(why))) {
                ours.told.insert(Some(why));
                self.said.push(format!("nothing is reserved for {}: {sentence}", ours.name));
            }
        }
    }
}

/// B, as the server's admission test uses it.
fn blocking_ns(info: &ServerInfo) -> u64 {
    let us = if info.blocking_configured_us > 0 { info.blocking_configured_us } else { info.blocking_observed_us };
    u64::from(us) * 1000
}
