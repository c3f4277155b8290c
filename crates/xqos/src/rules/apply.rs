// SPDX-License-Identifier: MIT
//! Applies to a client what rules say, and takes it back; never over what somebody else has set.
//!
//! What is set here is leased: it ends with this connection, and the server refuses it where something was set without a lease.
//! Within a connection the last value that was set here is kept for each client and compared, so that nothing is asked in vain:
//!
//! | now | ours | what is done |
//! |---|---|---|
//! | as usual | nothing | what the rules say |
//! | something else | nothing | nothing, ever: set by hand or by the program itself |
//! | what was set here | that | what the rules say now, or what was before |
//! | something else | that | nothing, ever: somebody has changed it since |
//!
//! "Ever" ends with `xqos rules adopt`, which gives a client back ([`Apply::give_back`]).
//!
//! A cap is that of a group, so a client that stands for itself comes into one for it: of its application or, where it is
//! remote, of its host. Caps of a group that a rule names stay behind when a client leaves it, and end with the group.
//!
//! All of that is behind [`Apply`], so that a protocol which tells the origin of a setting can take its place.

mod given_back;
mod together;

pub use given_back::bit;

use super::auto::Auto;
use super::boosted::Boost;
use crate::client::{described, reservation_of};
use crate::kind::words;
use crate::session::Session;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use xqos_abi::{ClientEntry, Label, Paced, Subject, entry_flag};
use xqos_cli::program::one_line;
use xqos_cli::quantity::{Reservation, Slice, SoftRule, Weight};
use xqos_core::ReservationKind;
use xqos_rules::decide::Chosen;
use xqos_rules::setting::{Cap, Group, Reserve, Setting, SettingKind};

/// The weight of a client that nobody has weighed, in hundredths.
const USUAL_WEIGHT: u32 = 100;
/// A limit that is none.
const WHOLE_PPM: u32 = 1_000_000;

/// Who is not capped.
const WORKS_FOR_OTHERS: u32 = entry_flag::COMPOSITOR | entry_flag::WINDOW_MANAGER;
/// Names that put a client where a grouping would.
const BY_APPLICATION: &str = ":app";
const BY_USER: &str = ":user";
const BY_ITSELF: &str = ":none";

/// A reservation, and whether it is hard.
type Reserved = Option<(Reservation, ReservationKind)>;

/// Keeps clients as rules say.
pub trait Apply {
    /// What is chosen for these clients holds from now on, as far as nobody else has set it. Gives what is to be told.
    fn apply(&mut self, all: &[(&ClientEntry, Vec<Chosen<'_>>)]) -> Vec<String>;

    /// The client has gone, and its settings with it.
    fn forget(&mut self, client: u32);

    /// These settings of the client (bits of [`SettingKind`]) are nobody's now, whoever had set them.
    fn give_back(&mut self, client: u32, settings: u32);

    /// When there is something to do that nothing else tells of, as for reservations that are found by measurement.
    fn due(&self) -> Option<Duration>;

    /// Does what is due. Gives what is to be told.
    fn work(&mut self) -> Vec<String>;

    /// Takes back what was set for these clients and is still as it was set.
    fn undo(&mut self, entries: &[ClientEntry]);
}

/// Requests about one client.
pub trait Server {
    fn reserve(&self, entry: &ClientEntry, wanted: Reserved) -> Result<()>;
    fn weigh(&self, entry: &ClientEntry, weight: u32) -> Result<()>;
    fn prioritise(&self, entry: &ClientEntry, priority: i32) -> Result<()>;
    /// Puts it into a group by name; empty: into the one that it is in anyway.
    fn group(&self, entry: &ClientEntry, name: Label) -> Result<()>;
    /// Limits what its group gets, millionths; 0: no limit.
    fn cap(&self, entry: &ClientEntry, ppm: u32) -> Result<()>;
    /// Whether it waits for those that it uncovers.
    fn pace(&self, entry: &ClientEntry, paced: Paced) -> Result<()>;
    /// Limits its slices, microseconds; 0: as long as all.
    fn limit(&self, entry: &ClientEntry, slice_us: u32) -> Result<()>;
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
    fn reserve(&self, entry: &ClientEntry, wanted: Reserved) -> Result<()> {
        match wanted {
            Some((wanted, kind)) => Session::reserve(self, entry, wanted, kind),
            None => self.control.release(entry.client).map_err(|error| self.explained(error, entry)),
        }
    }

    fn weigh(&self, entry: &ClientEntry, weight: u32) -> Result<()> {
        self.control.set_weight(entry.client, weight).map_err(|error| self.explained(error, entry))
    }

    fn prioritise(&self, entry: &ClientEntry, priority: i32) -> Result<()> {
        self.control.set_priority(entry.client, priority).map_err(|error| self.explained(error, entry))
    }

    fn group(&self, entry: &ClientEntry, name: Label) -> Result<()> {
        self.control.set_client_group(entry.client, name.as_str()).map_err(|error| self.explained(error, entry))
    }

    fn cap(&self, entry: &ClientEntry, ppm: u32) -> Result<()> {
        self.control.set_group_cap(entry.client, ppm).map_err(|error| self.explained(error, entry))
    }

    fn pace(&self, entry: &ClientEntry, paced: Paced) -> Result<()> {
        self.control.set_client_pacing(entry.client, paced).map_err(|error| self.explained(error, entry))
    }

    fn limit(&self, entry: &ClientEntry, slice_us: u32) -> Result<()> {
        let set = self.control.set(Subject::Client(entry.client), xqos_abi::Setting::Slice(slice_us));
        set.map_err(|error| self.explained(error, entry))
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

/// Whose a setting of a client is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owner<T> {
    #[default]
    Nobody,
    Us {
        before: T,
        set: T,
    },
    Another,
}

impl<T: Copy + PartialEq> Owner<T> {
    /// What is to be set now, by the table above; and whose it is then.
    fn next(self, now: T, usual: T, wanted: Option<T>) -> (Option<T>, Owner<T>) {
        match (self, wanted) {
            (Owner::Another, _) => (None, self),
            (Owner::Nobody, None) => (None, self),
            (Owner::Nobody, Some(wanted)) if wanted == now => (None, self),
            (Owner::Nobody, Some(_)) if now != usual => (None, Owner::Another),
            (Owner::Nobody, Some(wanted)) => (Some(wanted), Owner::Us { before: now, set: wanted }),
            (Owner::Us { set, .. }, _) if set != now => (None, Owner::Another),
            (Owner::Us { before, .. }, None) => (Some(before), Owner::Nobody),
            (Owner::Us { before, .. }, Some(wanted)) if wanted != now => {
                (Some(wanted), Owner::Us { before, set: wanted })
            }
            (Owner::Us { .. }, Some(_)) => (None, self),
        }
    }

    /// Sets it, if that is to be done; what is refused is tried again the next time.
    fn step(
        &mut self,
        now: T,
        usual: T,
        wanted: Option<T>,
        set: impl FnOnce(T) -> Result<String>,
    ) -> Option<Result<String>> {
        let (value, next) = self.next(now, usual, wanted);
        let done = value.map(set);
        if !matches!(done, Some(Err(_))) {
            *self = next;
        }
        done
    }
}

/// What was set for one client.
#[derive(Clone, Debug, Default)]
struct Client {
    reserved: Owner<Reserved>,
    weight: Owner<u32>,
    priority: Owner<i32>,
    group: Owner<Label>,
    cap: Owner<u32>,
    paced: Owner<Paced>,
    slice: Owner<u32>,
    is_auto: bool,
    /// The process that may have the processor while it redraws.
    boosted: Option<i32>,
    /// What was refused and told, so that each is told once.
    told: BTreeSet<String>,
}

/// What [`Apply`] does where the server tells no origin.
#[derive(Debug)]
pub struct ByMemory<S, A, B> {
    server: S,
    auto: A,
    boost: B,
    clients: BTreeMap<u32, Client>,
    /// Why nobody can be raised, which was told.
    unable: BTreeSet<String>,
}

/// What rules want of the settings that the server has.
#[derive(Debug, Default)]
struct Wanted {
    reserved: Option<Reserved>,
    weight: Option<u32>,
    priority: Option<i32>,
    group: Option<Label>,
    cap: Option<u32>,
    paced: Option<Paced>,
    slice: Option<u32>,
    auto: bool,
    boost: bool,
}

impl Wanted {
    fn of(chosen: &[Chosen<'_>], entry: &ClientEntry) -> Wanted {
        let mut wanted = Wanted::default();
        let kind = kind_of(chosen);
        for chosen in chosen {
            match chosen.setting {
                Setting::Reserve(Reserve::Fixed(reservation)) => wanted.reserved = Some(Some((*reservation, kind))),
                Setting::Reserve(Reserve::Auto) => wanted.auto = true,
                Setting::Weight(Weight(weight)) => wanted.weight = Some(*weight),
                Setting::Slice(Slice(us)) => wanted.slice = Some(*us),
                Setting::Priority(priority) => wanted.priority = Some(priority.0),
                Setting::Group(group) => wanted.group = Some(group_name(group)),
                Setting::Pace(on) => wanted.paced = Some(if *on { Paced::Always } else { Paced::Never }),
                Setting::Cpu(on) => wanted.boost = *on,
                Setting::Max(Cap(ppm)) => wanted.cap = Some(*ppm).filter(|&ppm| ppm < WHOLE_PPM),
                _ => {}
            }
        }
        match wanted.cap {
            // Everybody waits for them, and what they use would be taken from the others of the group.
            Some(_) if entry.flags & WORKS_FOR_OTHERS != 0 => (wanted.cap, wanted.group) = (None, None),
            Some(_) if wanted.group.is_none() => wanted.group = group_to_cap(entry),
            _ => {}
        }
        wanted
    }
}

fn group_name(group: &Group) -> Label {
    Label::new(match group {
        Group::App => BY_APPLICATION,
        Group::User => BY_USER,
        Group::Nobody => BY_ITSELF,
        Group::Named(name) => name,
    })
}

fn group_told(set: Label) -> String {
    match set.as_str() {
        "" => "its usual group".to_owned(),
        BY_APPLICATION => "the group of its application".to_owned(),
        BY_USER => "the group of its user".to_owned(),
        BY_ITSELF => "no group".to_owned(),
        name => format!("group {name}"),
    }
}

/// Where a client stands for itself, it needs a group to be capped.
fn group_to_cap(entry: &ClientEntry) -> Option<Label> {
    let of_host = Label::new(&format!("from {}", entry.host));
    let is_alone = entry.group == 0 || entry.group_name == of_host;
    match entry.flags & entry_flag::LOCAL != 0 {
        true => (entry.group == 0).then(|| Label::new(BY_APPLICATION)),
        false => is_alone.then_some(of_host),
    }
}

impl<S: Server, A: Auto, B: Boost> ByMemory<S, A, B> {
    pub fn new(server: S, auto: A, boost: B) -> ByMemory<S, A, B> {
        ByMemory { server, auto, boost, clients: BTreeMap::new(), unable: BTreeSet::new() }
    }

    pub fn server(&self) -> &S {
        &self.server
    }

    /// The most for all reservations that are found by measurement.
    pub fn limit_auto(&mut self, ppm: Option<u32>) {
        self.auto.limit(ppm);
    }

    fn make(
        &mut self,
        entry: &ClientEntry,
        wanted: &Wanted,
        rule: impl Fn(SettingKind) -> String,
    ) -> Vec<(SettingKind, Result<String>)> {
        let client = self.clients.entry(entry.client).or_default();
        let server = &self.server;
        let speak = |kind| server.speak_for(&rule(kind));
        let reserve =
            |set| speak(SettingKind::Reserve).and_then(|()| server.reserve(entry, set)).map(|()| reserved(set));
        let weigh = |set| {
            let told = format!("weight {}", Weight(set));
            speak(SettingKind::Weight).and_then(|()| server.weigh(entry, set)).map(|()| told)
        };
        let prioritise = |set| {
            speak(SettingKind::Priority)
                .and_then(|()| server.prioritise(entry, set))
                .map(|()| format!("priority {set}"))
        };
        let limit = |set| {
            let told = format!("longest slice {}", Slice(set));
            speak(SettingKind::Slice).and_then(|()| server.limit(entry, set)).map(|()| told)
        };
        let group = |set: Label| {
            let told = group_told(set);
            speak(SettingKind::Group).and_then(|()| server.group(entry, set)).map(|()| told)
        };
        let cap = |set: u32| {
            let told = if set == 0 { "no limit".to_owned() } else { format!("at most {} %", f64::from(set) / 1e4) };
            speak(SettingKind::Max).and_then(|()| server.cap(entry, set)).map(|()| told)
        };
        let pace = |set: Paced| {
            let told = match set {
                Paced::AsAll => "pacing as all",
                Paced::Always => "it waits for those that it uncovers",
                Paced::Never => "it waits for nobody that it uncovers",
            };
            speak(SettingKind::Pace).and_then(|()| server.pace(entry, set)).map(|()| told.to_owned())
        };
        let named = client.group_now(entry);
        let is_leaving = client.group.next(named, Label::default(), wanted.group).0.is_some();
        let mut cap_ppm = entry.group_cap_ppm;
        if is_leaving && named.is_empty() {
            // Its usual group keeps no cap of ours; where that fails, the client or somebody's hand has been faster.
            let _ = client.cap.step(cap_ppm, 0, None, cap);
        }
        let regrouped = client.group.step(named, Label::default(), wanted.group, group);
        if matches!(regrouped, Some(Ok(_))) {
            (client.cap, cap_ppm) = (Owner::Nobody, 0);
        }
        let made = [
            (SettingKind::Group, regrouped),
            (SettingKind::Max, client.cap.step(cap_ppm, 0, wanted.cap, cap)),
            (SettingKind::Pace, client.paced.step(paced_now(entry), Paced::AsAll, wanted.paced, pace)),
            (SettingKind::Reserve, client.reserved.step(reservation_of(entry), None, wanted.reserved, reserve)),
            (SettingKind::Weight, client.weight.step(entry.weight, USUAL_WEIGHT, wanted.weight, weigh)),
            (SettingKind::Slice, client.slice.step(entry.slice_us, 0, wanted.slice, limit)),
            (SettingKind::Priority, client.priority.step(entry.fixed_priority, 0, wanted.priority, prioritise)),
        ];
        made.into_iter().filter_map(|(kind, done)| Some((kind, done?))).collect()
    }

    /// Begins and ends what needs no request of ours. Gives what is to be told, and the client as it is then.
    fn begin(&mut self, entry: &ClientEntry, chosen: &[Chosen<'_>]) -> (Vec<String>, ClientEntry) {
        let wanted = Wanted::of(chosen, entry);
        let mut told = Vec::new();
        if let (Some(why), Some(Chosen { rule, .. })) =
            (self.raise(entry, wanted.boost), chosen_of(chosen, SettingKind::Cpu))
        {
            told.push(format!("cpu of rule '{}' ({}) has no effect: {why}", rule.id, rule.place));
        }
        let is_over = self.clients.get(&entry.client).is_some_and(|client| client.is_auto && !wanted.auto);
        told.extend(self.search(entry, wanted.auto));
        // The end of a search has released what it had reserved, which the entry does not know yet.
        let flags = if is_over { entry.flags & !entry_flag::RESERVED } else { entry.flags };
        (told, ClientEntry { flags, ..entry.clone() })
    }

    /// Asks the server for what is not yet as it should be. Gives what is to be told.
    fn set(&mut self, entry: &ClientEntry, chosen: &[Chosen<'_>]) -> Vec<String> {
        let rule = |kind| chosen_of(chosen, kind).map_or(String::new(), |chosen| chosen.rule.id.to_string());
        let mut told = Vec::new();
        for (kind, done) in self.make(entry, &Wanted::of(chosen, entry), rule) {
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
                        told.push(format!("{}{from}", one_line(&error)));
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
            true => self.auto.begin(entry).err().filter(|why| client.told.insert(why.clone())),
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
        begun?.err().filter(|why| self.unable.insert(why.clone()))
    }
}

impl Client {
    /// The group that we have put it into, as far as it is in that still; one that nobody has put it into counts as none. What a
    /// grouping gives has another name than was asked for.
    fn group_now(&self, entry: &ClientEntry) -> Label {
        match self.group {
            Owner::Us { set, .. } if set == entry.group_name || set.as_str().starts_with(':') => set,
            _ => Label::default(),
        }
    }
}

/// Hard, where one rule says so and another says how soft.
fn kind_of(chosen: &[Chosen<'_>]) -> ReservationKind {
    let has = |wanted: &Setting| chosen.iter().any(|chosen| chosen.setting == wanted);
    match (has(&Setting::Hard(true)), has(&Setting::Soft(SoftRule::Paper))) {
        (false, true) => ReservationKind::SoftPaper,
        (hard, _) => hard.into(),
    }
}

fn chosen_of<'a, 'b>(chosen: &'b [Chosen<'a>], kind: SettingKind) -> Option<&'b Chosen<'a>> {
    chosen.iter().find(|chosen| chosen.setting.kind() == kind)
}

fn paced_now(entry: &ClientEntry) -> Paced {
    match (entry.flags & entry_flag::PACED != 0, entry.flags & entry_flag::NEVER_PACED != 0) {
        (true, _) => Paced::Always,
        (false, true) => Paced::Never,
        (false, false) => Paced::AsAll,
    }
}

fn reserved(set: Reserved) -> String {
    match set {
        Some((reservation, kind)) => format!("{reservation}{} reserved", words(kind)),
        None => "no reservation".to_owned(),
    }
}

impl<S: Server, A: Auto, B: Boost> Apply for ByMemory<S, A, B> {
    fn apply(&mut self, all: &[(&ClientEntry, Vec<Chosen<'_>>)]) -> Vec<String> {
        self.together(all)
    }

    fn forget(&mut self, client: u32) {
        let Some(Client { is_auto, boosted, .. }) = self.clients.remove(&client) else { return };
        boosted.into_iter().for_each(|pid| self.boost.end(pid));
        if is_auto {
            self.auto.end(client);
        }
    }

    fn give_back(&mut self, client: u32, settings: u32) {
        self.forget_settings(client, settings);
    }

    fn due(&self) -> Option<Duration> {
        self.auto.due()
    }

    fn work(&mut self) -> Vec<String> {
        self.auto.work()
    }

    fn undo(&mut self, entries: &[ClientEntry]) {
        for entry in entries {
            if self.clients.contains_key(&entry.client) {
                // Who has gone meanwhile, or is another's now, has nothing of ours to take back.
                let _ = self.make(entry, &Wanted::default(), |_| String::new());
                self.search(entry, false);
                self.raise(entry, false);
            }
        }
    }
}

#[cfg(test)]
mod tests;
