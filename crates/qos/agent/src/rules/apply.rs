// SPDX-License-Identifier: MIT
//! Applies the settings of rules to the clients of a server, and undoes them.
//!
//! Settings made here are leased: they end with this connection. The server refuses them if a setting without a lease
//! exists, whether made manually or by the program itself. This module therefore never checks who made a setting. It
//! stores the last request for each client and setting, and never sends the same request twice in a row:
//!
//! | last request | setting by rules | action |
//! |---|---|---|
//! | none, or another value | a value | set it |
//! | the same value | the same value | nothing |
//! | a value | none | clear it |
//!
//! If the server keeps a manual setting instead, that is reported once. The setting of the rules is requested again
//! when the rules change it, or when `xqos rules adopt` returns the client to the rules ([`Applier::return_settings`]).
//!
//! A cap belongs to a group. A client without a group is therefore put into the group of its application or, if it is
//! remote, of its host. When a client leaves a group that a rule names, the group's cap stays until the group ends.

mod desired;

use super::auto::Auto;
use super::boosted::Boost;
use crate::client::{described, in_us};
use crate::error::{Error, Result};
use crate::session::{Account, Session};
pub use desired::describe;
use desired::{Assignment, BY_APPLICATION, DesiredSettings};
use std::collections::{BTreeMap, BTreeSet};
use xqos_abi::{ClientEntry, Label, Setting, Subject};
use xqos_rules::decide::Chosen;
use xqos_rules::setting::SettingKind;

/// Order of the requests. The group comes first, because a cap applies to the group that the client is in at that time.
const ASKED: [SettingKind; 7] = [
    SettingKind::Group,
    SettingKind::Max,
    SettingKind::Pace,
    SettingKind::Reserve,
    SettingKind::Weight,
    SettingKind::Slice,
    SettingKind::Priority,
];

/// The bit of a setting in a set of settings.
pub fn bit(kind: SettingKind) -> u32 {
    1 << kind as u32
}

pub trait Server {
    /// Changes a setting, or clears it if it has its initial value. The error says why that failed and what to do.
    fn set(&self, entry: &ClientEntry, subject: Subject, setting: Setting) -> Result<()>;
    /// Names the rule that makes the next settings.
    fn speak_for(&self, _rule: &str) -> Result<()> {
        Ok(())
    }

    /// Sends further requests without waiting for replies until [`Server::settle`]; each appears to succeed.
    fn hold(&self);
    /// Number of requests sent since [`Server::hold`].
    fn held(&self) -> usize;
    /// Waits for all replies. Returns the indices of refused requests.
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

#[derive(Clone, Debug, Default)]
struct ManagedClient {
    requested: BTreeMap<SettingKind, Assignment>,
    is_auto: bool,
    /// Process that is raised while it redraws.
    boosted: Option<i32>,
    reported: BTreeSet<String>,
}

#[derive(Debug)]
pub struct Applier<S, A, B> {
    pub server: S,
    pub auto: A,
    boost: B,
    clients: BTreeMap<u32, ManagedClient>,
    /// Reported reasons for not raising any process.
    unable: BTreeSet<String>,
    /// The last refusal, until it is taken.
    pub refusal: Option<String>,
    /// The server did not answer in time, so some settings were not requested: all clients must be evaluated again.
    pub late: Option<Error>,
}

/// Returns true if the last setting of this kind was made manually or by the program itself.
fn is_manual(entry: &ClientEntry, kind: SettingKind) -> bool {
    let by = if kind == SettingKind::Reserve { &entry.reservation_origin } else { &entry.settings_origin };
    matches!(by.as_str(), "hand" | "itself")
}

impl<S: Server, A: Auto, B: Boost> Applier<S, A, B> {
    pub fn new(server: S, auto: A, boost: B) -> Applier<S, A, B> {
        Applier { server, auto, boost, clients: BTreeMap::new(), unable: BTreeSet::new(), refusal: None, late: None }
    }

    /// Applies the chosen settings to these clients, except settings that another program has made. Returns messages.
    ///
    /// All requests are sent before a single wait for the replies, because five hundred waits would take most of a
    /// second on a busy machine. If a request is refused, its client's state is restored and its settings are requested
    /// again, one at a time, so that the refusal is reported and stored. Requesting the same setting twice has no
    /// effect.
    pub fn apply(&mut self, all: &[(&ClientEntry, Vec<Chosen<'_>>)]) -> Vec<String> {
        self.server.hold();
        let (mut made, mut all_messages) = (Vec::new(), Vec::new());
        for (entry, chosen) in all {
            let (before, first) = (self.clients.get(&entry.client).cloned(), self.server.held());
            all_messages.extend(self.begin(entry, chosen));
            let messages = self.set(entry, chosen);
            made.push((before.unwrap_or_default(), first..self.server.held(), messages));
        }
        let refused = self.server.settle();
        for ((entry, chosen), (before, requests, messages)) in all.iter().zip(made) {
            if refused.iter().any(|at| requests.contains(at)) {
                // Settings are requested again; searches and boosts have already started and are kept.
                let after = self.clients.remove(&entry.client).unwrap_or_default();
                self.clients.insert(entry.client, ManagedClient { requested: before.requested, ..after });
                if self.late.is_none() {
                    all_messages.extend(self.set(entry, chosen));
                }
            } else {
                all_messages.extend(messages);
            }
        }
        all_messages
    }

    pub fn forget(&mut self, client: u32) {
        let Some(ManagedClient { is_auto, boosted, .. }) = self.clients.remove(&client) else { return };
        boosted.into_iter().for_each(|pid| self.boost.end(pid));
        if is_auto {
            self.auto.end(client);
        }
    }

    /// Forgets that these settings ([`bit`]s) of a client were requested. The rules then set them again.
    /// A cap is forgotten together with its group.
    pub fn return_settings(&mut self, client: u32, settings: u32) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        let is_given = |kind| settings & bit(kind) != 0;
        known.requested.retain(|&kind, _| !is_given(if kind == SettingKind::Max { SettingKind::Group } else { kind }));
        if is_given(SettingKind::Reserve) && std::mem::take(&mut known.is_auto) {
            self.auto.end(client);
        }
        known.reported.clear();
    }

    /// Undoes our settings of these clients, except those that others have changed.
    pub fn undo(&mut self, entries: &[ClientEntry]) {
        for entry in entries {
            if self.clients.contains_key(&entry.client) {
                // If this fails, the client has exited or now belongs to another user, and has none of our settings.
                let _ = self.ask(entry, &DesiredSettings::default(), |_| String::new());
                self.clients.entry(entry.client).or_default().requested.clear();
                self.search(entry, false);
                self.raise(entry, false);
            }
        }
    }

    /// Sends the necessary requests. Returns the result of each.
    fn ask(
        &mut self,
        entry: &ClientEntry,
        wanted: &DesiredSettings,
        rule: impl Fn(SettingKind) -> String,
    ) -> Vec<(SettingKind, Result<String>)> {
        let client = self.clients.entry(entry.client).or_default();
        let server = &self.server;
        let set = |kind, (subject, setting): Assignment| {
            server.speak_for(&rule(kind)).and_then(|()| server.set(entry, subject, setting))
        };
        let mut made = Vec::new();
        let mut desired = wanted.settings.clone();
        let was_in = client.requested.get(&SettingKind::Group).copied();
        let for_cap = |next: &Assignment| next.1 == Setting::Group(Label::new(BY_APPLICATION));
        if let Some(group) = was_in.filter(for_cap).filter(|_| desired.contains_key(&SettingKind::Max)) {
            // The client is in a group only because it was put there for its cap.
            desired.entry(SettingKind::Group).or_insert(group);
        }
        let is_in = desired.get(&SettingKind::Group).copied();
        if let Some(cap) = client.requested.get(&SettingKind::Max).copied().filter(|_| was_in != is_in) {
            if was_in.is_none() {
                // The client's usual group must not keep our cap. If clearing it fails, the client has exited or the
                // cap was set manually.
                let _ = initial(cap).map(|next| set(SettingKind::Max, next));
            }
            client.requested.remove(&SettingKind::Max);
        }
        for kind in ASKED {
            let (requested, target) = (client.requested.get(&kind).copied(), desired.get(&kind).copied());
            let Some(next) = target.or(requested.and_then(initial)).filter(|_| requested != target) else { continue };
            let done = set(kind, next);
            let is_late = done.as_ref().is_err_and(Error::is_late);
            let is_kept_manual = done.is_err() && !is_late && is_manual(entry, kind);
            if done.is_ok() || is_kept_manual {
                client.requested.remove(&kind);
                client.requested.extend(target.map(|target| (kind, target)));
            }
            made.push((kind, done.map(|()| describe(&next.1))));
            if is_late {
                break;
            }
        }
        made
    }

    /// Starts and ends searches and boosts, which need no request. Returns messages.
    fn begin(&mut self, entry: &ClientEntry, chosen: &[Chosen<'_>]) -> Vec<String> {
        let wanted = DesiredSettings::of(chosen, entry);
        let mut messages = Vec::new();
        if let (Some(why), Some(Chosen { rule, .. })) =
            (self.raise(entry, wanted.boost), chosen_of(chosen, SettingKind::Cpu))
        {
            messages.push(format!("cpu of rule '{}' ({}) has no effect: {why}", rule.id, rule.place));
        }
        messages.extend(self.search(entry, wanted.auto));
        messages
    }

    /// Requests the settings that have changed. Returns messages.
    fn set(&mut self, entry: &ClientEntry, chosen: &[Chosen<'_>]) -> Vec<String> {
        let rule = |kind| chosen_of(chosen, kind).map_or(String::new(), |chosen| chosen.rule.id.to_string());
        let mut messages = Vec::new();
        for (kind, done) in self.ask(entry, &DesiredSettings::of(chosen, entry), rule) {
            let by = chosen_of(chosen, kind);
            let from = by.map(|by| format!(", by rule '{}' ({})", by.rule.id, by.rule.place));
            let from = from.unwrap_or_else(|| ", because no rule sets it any more".to_owned());
            match done {
                Ok(what) => messages.push(format!("{what} for {}{from}", described(entry))),
                Err(error) if error.is_late() => self.late = Some(error),
                Err(error) => {
                    // Identify a refusal by its request, because its text contains current figures.
                    let requested = format!("{kind:?} {:?}{from}", by.map(|by| by.setting));
                    let client = self.clients.entry(entry.client).or_default();
                    if client.reported.insert(requested) {
                        let message = format!("{}{from}", error.in_one_line());
                        self.refusal = Some(message.clone());
                        messages.push(message);
                    }
                }
            }
        }
        messages
    }

    /// Starts or ends a search for a reservation.
    fn search(&mut self, entry: &ClientEntry, is_wanted: bool) -> Option<String> {
        let client = self.clients.entry(entry.client).or_default();
        // If the server does not answer, do not wait for it once for each client.
        if client.is_auto == is_wanted || is_wanted && self.late.is_some() {
            return None;
        }
        client.is_auto = is_wanted;
        if !is_wanted {
            self.auto.end(entry.client);
            return None;
        }
        let why = self.auto.begin(entry).err()?;
        if why.is_late() {
            (client.is_auto, self.late) = (false, Some(why));
            return None;
        }
        let why = why.in_one_line();
        client.reported.insert(why.clone()).then_some(why)
    }

    /// Starts or stops raising a program while it redraws. Returns the reason for a failure, once.
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

/// The request that restores the initial value.
fn initial((subject, setting): Assignment) -> Option<Assignment> {
    Some((subject, setting.kind().initial(subject)?))
}

#[cfg(test)]
mod tests;
