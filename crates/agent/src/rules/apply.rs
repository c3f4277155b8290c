// SPDX-License-Identifier: MIT
//! States to the server what rules say of a client, and takes it back.
//!
//! What is set here is leased: it ends with this connection, and the server refuses it where something was set without a lease, by
//! hand or by the program itself. So nothing here asks whose a setting is; the answer tells. What was asked for is kept for each
//! client, so that nothing is asked for twice:
//!
//! | asked for | rules say | what is done |
//! |---|---|---|
//! | nothing, or something else | something | it is set |
//! | the same | the same | nothing |
//! | something | nothing | it is cleared |
//!
//! Where the server keeps what somebody's hand has set, that is told once, and not asked for again until the rules say something else,
//! or `xqos rules adopt` gives the client back ([`Applied::give_back`]).
//!
//! A cap is that of a group, so a client that stands for itself comes into one for it: of its application or, where it is
//! remote, of its host. Caps of a group that a rule names stay behind when a client leaves it, and end with the group.

mod wanted;

use super::auto::Auto;
use super::boosted::Boost;
use crate::client::{described, in_us};
use crate::error::Result;
use crate::session::{Account, Session};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
pub use wanted::told_of;
use wanted::{BY_APPLICATION, Wanted, Wish};
use xqos_abi::{ClientEntry, Label, Setting, Subject};
use xqos_rules::decide::Chosen;
use xqos_rules::setting::SettingKind;

/// What is asked of the server, in this order: a cap is that of the group in which the client is then.
const ASKED: [SettingKind; 7] = [
    SettingKind::Group,
    SettingKind::Max,
    SettingKind::Pace,
    SettingKind::Reserve,
    SettingKind::Weight,
    SettingKind::Slice,
    SettingKind::Priority,
];

/// A setting in a set of settings.
pub fn bit(kind: SettingKind) -> u32 {
    1 << kind as u32
}

/// The server that is asked.
pub trait Server {
    /// Sets it, or takes it back where it is so from the beginning; the error says why not and what to do.
    fn set(&self, entry: &ClientEntry, subject: Subject, setting: Setting) -> Result<()>;
    /// What is set next is told as set by this rule.
    fn speak_for(&self, _rule: &str) -> Result<()> {
        Ok(())
    }

    /// What is asked for from now on is not waited for, and so succeeds, until [`Server::settle`].
    fn hold(&self);
    /// How many requests were made since.
    fn held(&self) -> usize;
    /// Waits for all of them, and tells which were refused, by their order.
    fn settle(&self) -> Vec<usize>;
}

impl Server for Session {
    fn set(&self, entry: &ClientEntry, subject: Subject, setting: Setting) -> Result<()> {
        let kind = setting.kind();
        let done = match setting {
            _ if kind.initial(subject) == Some(setting) => self.control.clear(subject, kind),
            Setting::Reservation(wanted) => {
                let typed = in_us(wanted.budget_ns, wanted.period_ns);
                return self.reserve(&Account::of_client(entry), typed, wanted.kind);
            }
            _ => self.control.set(subject, setting),
        };
        done.map_err(|error| self.explained(error, entry))
    }

    fn speak_for(&self, rule: &str) -> Result<()> {
        Ok(self.control.set_origin(&format!("rule {rule}"), true)?)
    }

    fn hold(&self) {
        self.control.hold();
    }

    fn held(&self) -> usize {
        self.control.held()
    }

    fn settle(&self) -> Vec<usize> {
        self.control.settle()
    }
}

/// What was asked for one client.
#[derive(Clone, Debug, Default)]
struct Client {
    asked: BTreeMap<SettingKind, Wish>,
    is_auto: bool,
    /// The process that may have the processor while it redraws.
    boosted: Option<i32>,
    /// What was refused and told, so that each is told once.
    told: BTreeSet<String>,
}

/// Says to a server what the rules say.
#[derive(Debug)]
pub struct Applied<S, A, B> {
    server: S,
    auto: A,
    boost: B,
    clients: BTreeMap<u32, Client>,
    /// Why nobody can be raised, which was told.
    unable: BTreeSet<String>,
}

/// Whether the server says that a hand, or the program itself, has made the last of such settings.
fn is_by_hand(entry: &ClientEntry, kind: SettingKind) -> bool {
    let by = if kind == SettingKind::Reserve { &entry.reservation_origin } else { &entry.settings_origin };
    matches!(by.as_str(), "hand" | "itself")
}

impl<S: Server, A: Auto, B: Boost> Applied<S, A, B> {
    pub fn new(server: S, auto: A, boost: B) -> Applied<S, A, B> {
        Applied { server, auto, boost, clients: BTreeMap::new(), unable: BTreeSet::new() }
    }

    pub fn server(&self) -> &S {
        &self.server
    }

    /// The most for all reservations that are found by measurement.
    pub fn limit_auto(&mut self, ppm: Option<u32>) {
        self.auto.limit(ppm);
    }

    /// What is chosen for these clients holds from now on, as far as nobody else has set it. Gives what is to be told.
    ///
    /// Requests are sent as they are decided, and waited for once: five hundred waits would take most of a second where the
    /// processors are busy. A client of which one was refused is taken as it was before and asked for anew, a request at a time, so
    /// that the refusal is told and remembered: to ask twice for the same changes nothing.
    pub fn apply(&mut self, all: &[(&ClientEntry, Vec<Chosen<'_>>)]) -> Vec<String> {
        self.server.hold();
        let (mut made, mut all_told) = (Vec::new(), Vec::new());
        for (entry, chosen) in all {
            let (before, first) = (self.clients.get(&entry.client).cloned(), self.server.held());
            all_told.extend(self.begin(entry, chosen));
            let told = self.set(entry, chosen);
            made.push((before.unwrap_or_default(), first..self.server.held(), told));
        }
        let refused = self.server.settle();
        for ((entry, chosen), (before, requests, told)) in all.iter().zip(made) {
            if refused.iter().any(|at| requests.contains(at)) {
                // What was set counts as before; searches and loans were begun at once.
                let Client { is_auto, boosted, told, .. } = self.clients.remove(&entry.client).unwrap_or_default();
                self.clients.insert(entry.client, Client { is_auto, boosted, told, ..before });
                all_told.extend(self.set(entry, chosen));
            } else {
                all_told.extend(told);
            }
        }
        all_told
    }

    /// The client has gone, and its settings with it.
    pub fn forget(&mut self, client: u32) {
        let Some(Client { is_auto, boosted, .. }) = self.clients.remove(&client) else { return };
        boosted.into_iter().for_each(|pid| self.boost.end(pid));
        if is_auto {
            self.auto.end(client);
        }
    }

    /// These settings of the client ([`bit`]s) are nobody's now, whoever had set them: the next look asks for what rules say, as at
    /// the client's first one; for a cap with its group.
    pub fn give_back(&mut self, client: u32, settings: u32) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        let is_given = |kind| settings & bit(kind) != 0;
        known.asked.retain(|&kind, _| !is_given(if kind == SettingKind::Max { SettingKind::Group } else { kind }));
        if is_given(SettingKind::Reserve) && std::mem::take(&mut known.is_auto) {
            self.auto.end(client);
        }
        known.told.clear();
    }

    /// When there is something to do that nothing else tells of, as for reservations that are found by measurement.
    pub fn due(&self) -> Option<Duration> {
        self.auto.due()
    }

    /// Does what is due. Gives what is to be told.
    pub fn work(&mut self) -> Vec<String> {
        self.auto.work()
    }

    /// Takes back what was set for these clients and is still as it was set.
    pub fn undo(&mut self, entries: &[ClientEntry]) {
        for entry in entries {
            if self.clients.contains_key(&entry.client) {
                // Who has gone meanwhile, or is another's now, has nothing of ours to take back.
                let _ = self.ask(entry, &Wanted::default(), |_| String::new());
                self.clients.entry(entry.client).or_default().asked.clear();
                self.search(entry, false);
                self.raise(entry, false);
            }
        }
    }

    /// Asks for what was not asked for yet. Gives what was set, or why it was not.
    fn ask(
        &mut self,
        entry: &ClientEntry,
        wanted: &Wanted,
        rule: impl Fn(SettingKind) -> String,
    ) -> Vec<(SettingKind, Result<String>)> {
        let client = self.clients.entry(entry.client).or_default();
        let server = &self.server;
        let set = |kind, (subject, setting): Wish| {
            server.speak_for(&rule(kind)).and_then(|()| server.set(entry, subject, setting))
        };
        let mut made = Vec::new();
        let mut wishes = wanted.settings.clone();
        let was_in = client.asked.get(&SettingKind::Group).copied();
        let for_cap = |wish: &Wish| wish.1 == Setting::Group(Label::new(BY_APPLICATION));
        if let Some(group) = was_in.filter(for_cap).filter(|_| wishes.contains_key(&SettingKind::Max)) {
            // It stands for itself no more since it was put there.
            wishes.entry(SettingKind::Group).or_insert(group);
        }
        let is_in = wishes.get(&SettingKind::Group).copied();
        if let Some(cap) = client.asked.get(&SettingKind::Max).copied().filter(|_| was_in != is_in) {
            if was_in.is_none() {
                // Its usual group keeps no cap of ours; where that fails, the client or somebody's hand has been faster.
                let _ = initial(cap).map(|wish| set(SettingKind::Max, wish));
            }
            client.asked.remove(&SettingKind::Max);
        }
        for kind in ASKED {
            let (asked, wish) = (client.asked.get(&kind).copied(), wishes.get(&kind).copied());
            let Some(next) = wish.or(asked.and_then(initial)).filter(|_| asked != wish) else { continue };
            let done = set(kind, next);
            let is_kept_by_hand = done.is_err() && is_by_hand(entry, kind);
            if done.is_ok() || is_kept_by_hand {
                client.asked.remove(&kind);
                client.asked.extend(wish.map(|wish| (kind, wish)));
            }
            made.push((kind, done.map(|()| told_of(&next.1))));
        }
        made
    }

    /// Begins and ends what needs no request of ours. Gives what is to be told.
    fn begin(&mut self, entry: &ClientEntry, chosen: &[Chosen<'_>]) -> Vec<String> {
        let wanted = Wanted::of(chosen, entry);
        let mut told = Vec::new();
        if let (Some(why), Some(Chosen { rule, .. })) =
            (self.raise(entry, wanted.boost), chosen_of(chosen, SettingKind::Cpu))
        {
            told.push(format!("cpu of rule '{}' ({}) has no effect: {why}", rule.id, rule.place));
        }
        told.extend(self.search(entry, wanted.auto));
        told
    }

    /// Asks the server for what is not yet as it should be. Gives what is to be told.
    fn set(&mut self, entry: &ClientEntry, chosen: &[Chosen<'_>]) -> Vec<String> {
        let rule = |kind| chosen_of(chosen, kind).map_or(String::new(), |chosen| chosen.rule.id.to_string());
        let mut told = Vec::new();
        for (kind, done) in self.ask(entry, &Wanted::of(chosen, entry), rule) {
            let by = chosen_of(chosen, kind);
            let from = by.map(|by| format!(", by rule '{}' ({})", by.rule.id, by.rule.place));
            let from = from.unwrap_or_else(|| ", as no rule says otherwise now".to_owned());
            match done {
                Ok(what) => told.push(format!("{what} for {}{from}", described(entry))),
                Err(error) => {
                    // The reason has figures of this moment in it, which do not make it another one.
                    let asked = format!("{kind:?} {:?}{from}", by.map(|by| by.setting));
                    let client = self.clients.entry(entry.client).or_default();
                    if client.told.insert(asked) {
                        told.push(format!("{}{from}", error.in_one_line()));
                    }
                }
            }
        }
        told
    }

    /// Begins or ends a search for a reservation.
    fn search(&mut self, entry: &ClientEntry, is_wanted: bool) -> Option<String> {
        let client = self.clients.entry(entry.client).or_default();
        if client.is_auto == is_wanted {
            return None;
        }
        client.is_auto = is_wanted;
        match is_wanted {
            true => {
                self.auto.begin(entry).err().map(|why| why.in_one_line()).filter(|why| client.told.insert(why.clone()))
            }
            false => {
                self.auto.end(entry.client);
                None
            }
        }
    }

    /// Lets a program have the processor while it redraws, or no longer. Gives why not, once.
    fn raise(&mut self, entry: &ClientEntry, is_wanted: bool) -> Option<String> {
        let wanted = Some(entry.pid).filter(|&pid| is_wanted && pid > 0);
        let client = self.clients.entry(entry.client).or_default();
        if client.boosted == wanted {
            return None;
        }
        client.boosted.into_iter().for_each(|pid| self.boost.end(pid));
        let begun = wanted.map(|pid| self.boost.begin(pid));
        client.boosted = wanted.filter(|_| matches!(begun, Some(Ok(()))));
        begun?.err().map(|why| why.in_one_line()).filter(|why| self.unable.insert(why.clone()))
    }
}

fn chosen_of<'a, 'b>(chosen: &'b [Chosen<'a>], kind: SettingKind) -> Option<&'b Chosen<'a>> {
    chosen.iter().find(|chosen| chosen.setting.kind() == kind)
}

/// What is so until it is set.
fn initial((subject, setting): Wish) -> Option<Wish> {
    Some((subject, setting.kind().initial(subject)?))
}

#[cfg(test)]
mod tests;
