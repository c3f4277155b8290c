// SPDX-License-Identifier: MIT
//! Applies settings to a simulated server. Settings of other programs must survive every sequence of events.

use super::*;
use crate::client::reservation_of;
use crate::error::refused;
use std::cell::RefCell;
use xqos_abi::{NO_RESERVATION, us};
use xqos_abi::{Paced, entry_flag};
use xqos_core::ReservationKind;
use xqos_rules::decide::RuleSet;
use xqos_rules::facts::ClientFacts;
use xqos_rules::read::{self, Scope};
use xqos_sim::Dice;
use xqos_text::quantity::{Micros, Reservation};

mod together;

/// The clients of a simulated server.
#[derive(Debug, Default)]
struct Model {
    entries: RefCell<BTreeMap<u32, ClientEntry>>,
    refuses: bool,
    /// The server hangs.
    is_late: bool,
    /// Settings that were made without a lease.
    by_hand: RefCell<BTreeSet<(u32, u32)>>,
    /// All requests for this client are refused.
    refused: Option<u32>,
    requests: RefCell<usize>,
    /// Results of the requests since `hold`, until `settle`.
    held: RefCell<Option<Vec<bool>>>,
    /// Number of waits for replies.
    waits: RefCell<usize>,
}

/// Current value of a client's setting.
fn now(entry: &ClientEntry, kind: xqos_abi::SettingKind) -> Setting {
    match kind {
        xqos_abi::SettingKind::Reservation => reservation_of(entry)
            .map_or(Setting::Reservation(NO_RESERVATION), |(it, kind)| {
                Setting::reservation(it.budget.0, it.period.0, kind)
            }),
        xqos_abi::SettingKind::Weight => Setting::Weight(entry.weight),
        xqos_abi::SettingKind::Priority => Setting::Priority(entry.fixed_priority),
        xqos_abi::SettingKind::Slice => Setting::Slice(entry.slice_us),
        xqos_abi::SettingKind::Cap => Setting::Cap(entry.group_cap_ppm),
        xqos_abi::SettingKind::Group => Setting::Group(entry.group_name),
        _ => Setting::Paced(paced_now(entry)),
    }
}

fn paced_now(entry: &ClientEntry) -> Paced {
    match (entry.flags & entry_flag::PACED != 0, entry.flags & entry_flag::NEVER_PACED != 0) {
        (true, _) => Paced::Always,
        (false, true) => Paced::Never,
        (false, false) => Paced::AsAll,
    }
}

fn set_now(entry: &mut ClientEntry, setting: Setting) {
    match setting {
        Setting::Reservation(wanted) => {
            let is_hard = if wanted.kind.is_hard() { entry_flag::HARD } else { 0 };
            let flags = if wanted == NO_RESERVATION { 0 } else { entry_flag::RESERVED | is_hard };
            entry.flags = entry.flags & !(entry_flag::RESERVED | entry_flag::HARD) | flags;
            (entry.budget_us, entry.period_us) = (us(wanted.budget_ns), us(wanted.period_ns));
        }
        Setting::Weight(weight) => entry.weight = weight,
        Setting::Priority(priority) => entry.fixed_priority = priority,
        Setting::Slice(us) => entry.slice_us = us,
        Setting::Cap(ppm) => entry.group_cap_ppm = ppm,
        Setting::Group(name) => entry.group_name = name,
        Setting::Paced(paced) => {
            let flag = match paced {
                Paced::AsAll => 0,
                Paced::Always => entry_flag::PACED,
                Paced::Never => entry_flag::NEVER_PACED,
            };
            entry.flags = entry.flags & !(entry_flag::PACED | entry_flag::NEVER_PACED) | flag;
        }
        other => panic!("{other:?} is not a setting of a client"),
    }
}

/// Like the server, refuses a leased setting where a manual setting exists.
impl Server for Model {
    fn set(&self, entry: &ClientEntry, _subject: Subject, setting: Setting) -> Result<()> {
        *self.requests.borrow_mut() += 1;
        let is_refused = self.refuses
            || self.is_late
            || self.refused == Some(entry.client)
            || self.by_hand.borrow().contains(&(entry.client, setting.kind() as u32));
        if !is_refused {
            set_now(self.entries.borrow_mut().get_mut(&entry.client).expect("it is connected"), setting);
        }
        if let Some(held) = self.held.borrow_mut().as_mut() {
            held.push(is_refused);
            return Ok(());
        }
        *self.waits.borrow_mut() += 1;
        match (self.refuses, is_refused) {
            _ if self.is_late => Err(xqos_client::Error::Late.into()),
            (true, _) => Err(refused!("refused at request {}", self.requests.borrow())),
            (_, true) => Err(refused!("refused")),
            _ => Ok(()),
        }
    }

    fn hold(&self) {
        self.held.replace(Some(Vec::new()));
    }

    fn held(&self) -> usize {
        self.held.borrow().as_ref().map_or(0, Vec::len)
    }

    fn settle(&self) -> Vec<usize> {
        let held = self.held.take().unwrap_or_default();
        *self.waits.borrow_mut() += usize::from(!held.is_empty());
        held.iter().enumerate().filter(|(_, is_refused)| **is_refused).map(|(at, _)| at).collect()
    }
}

/// Number of clients of each raised process.
#[derive(Debug, Default)]
struct Boosted {
    pids: BTreeMap<i32, usize>,
    is_forbidden: bool,
}

impl Boost for Boosted {
    fn begin(&mut self, pid: i32) -> Result<()> {
        if self.is_forbidden {
            return Err(refused!("not allowed"));
        }
        *self.pids.entry(pid).or_default() += 1;
        Ok(())
    }

    fn end(&mut self, pid: i32) {
        *self.pids.get_mut(&pid).expect("it had begun") -= 1;
    }
}

#[derive(Debug, Default)]
struct Searches {
    clients: BTreeSet<u32>,
    /// The server hangs.
    is_late: bool,
}

impl Auto for Searches {
    fn begin(&mut self, entry: &ClientEntry) -> Result<()> {
        if self.is_late {
            return Err(xqos_client::Error::Late.into());
        }
        assert!(self.clients.insert(entry.client), "it began already");
        Ok(())
    }

    fn end(&mut self, client: u32) {
        assert!(self.clients.remove(&client), "it had not begun");
    }
}

const CLIENT: u32 = 0x40_0000;
const USUAL_WEIGHT: u32 = 100;

/// A client with default settings.
fn client(base: u32) -> ClientEntry {
    ClientEntry {
        client: base,
        pid: 7,
        group: 1,
        flags: entry_flag::LOCAL,
        weight: USUAL_WEIGHT,
        name: "mpv".into(),
        ..ClientEntry::default()
    }
}

struct Desk(Applier<Model, Searches, Boosted>);

impl Desk {
    fn new() -> Desk {
        let model = Model { entries: RefCell::new([(CLIENT, client(CLIENT))].into()), ..Model::default() };
        Desk(Applier::new(model, Searches::default(), Boosted::default()))
    }

    fn entry(&self) -> ClientEntry {
        self.0.server.entries.borrow()[&CLIENT].clone()
    }

    /// Changes a client as the server does.
    fn served(&self, change: impl FnOnce(&mut ClientEntry)) {
        change(self.0.server.entries.borrow_mut().get_mut(&CLIENT).unwrap());
    }

    /// Changes a client manually. A setting with its initial value has no owner.
    fn by_hand(&self, change: impl FnOnce(&mut ClientEntry)) {
        let before = self.entry();
        self.served(change);
        self.served(|entry| {
            (entry.settings_origin, entry.reservation_origin) = (Label::new("hand"), Label::new("hand"))
        });
        let (after, subjects) = (self.entry(), [Subject::Client(CLIENT), Subject::Group(CLIENT)]);
        for kind in xqos_abi::SettingKind::ALL {
            let Some(initial) = subjects.into_iter().find_map(|subject| kind.initial(subject)) else { continue };
            let (id, mut by_hand) = ((CLIENT, kind as u32), self.0.server.by_hand.borrow_mut());
            match now(&after, kind) {
                same if same == now(&before, kind) => false,
                other if other == initial => by_hand.remove(&id),
                _ => by_hand.insert(id),
            };
        }
    }

    /// Applies a rule with these settings; no rule if it is empty.
    fn rule(&mut self, set: &str) -> Vec<String> {
        let rule = format!("[[rule]]\nid = \"r\"\nmatch = {{ exe = \"*\" }}\nset = {{ {set} }}\n");
        let text = if set.is_empty() { String::new() } else { format!("version = 1\n{rule}") };
        let rules = RuleSet::new(read::file("t.toml", &text, Scope::System).unwrap().rules);
        let facts = ClientFacts { exe: Some("/usr/bin/mpv".into()), ..ClientFacts::default() };
        let entry = self.entry();
        self.0.apply(&[(&entry, rules.evaluate(&facts).applied())])
    }

    fn undo(&mut self) {
        let entry = self.entry();
        self.0.undo(&[entry]);
    }

    fn requests(&self) -> usize {
        *self.0.server.requests.borrow()
    }
}

fn set_reserved(entry: &mut ClientEntry, wanted: Option<(Reservation, ReservationKind)>) {
    let wanted = wanted.map(|(it, kind)| Setting::reservation(it.budget.0, it.period.0, kind));
    set_now(entry, wanted.unwrap_or(Setting::Reservation(NO_RESERVATION)));
}

fn reservation(budget: u32, period: u32) -> Reservation {
    Reservation { budget: Micros(budget), period: Micros(period) }
}

const ALL: &str = "weight = 2, priority = 5, reserve = \"3ms/10ms\", hard = true";

#[test]
fn settings_are_requested_once_and_cleared_with_the_rule() {
    let mut desk = Desk::new();
    let told = desk.rule(ALL);
    assert_eq!(
        told,
        [
            "3 ms / 10 ms hard reserved for mpv (pid 7, client 0x400000), by rule 'r' (t.toml:2)",
            "weight 2 for mpv (pid 7, client 0x400000), by rule 'r' (t.toml:2)",
            "priority 5 for mpv (pid 7, client 0x400000), by rule 'r' (t.toml:2)",
        ]
    );
    let entry = desk.entry();
    assert_eq!((entry.weight, entry.fixed_priority), (200, 5));
    assert_eq!(reservation_of(&entry), Some((reservation(3000, 10_000), true.into())));
    assert_eq!((desk.rule(ALL), desk.requests()), (vec![], 3), "no setting is requested twice");
    desk.rule("weight = 3");
    let entry = desk.entry();
    assert_eq!((entry.weight, entry.fixed_priority, reservation_of(&entry)), (300, 0, None));
    assert_eq!(desk.rule(""), ["weight 1 for mpv (pid 7, client 0x400000), because no rule sets it any more"]);
    assert_eq!(desk.entry().weight, USUAL_WEIGHT);
}

#[test]
fn earlier_manual_settings_override_rules() {
    let mut desk = Desk::new();
    desk.by_hand(|entry| entry.weight = 50);
    desk.by_hand(|entry| set_reserved(entry, Some((reservation(1000, 20_000), false.into()))));
    desk.rule(ALL);
    let entry = desk.entry();
    assert_eq!((entry.weight, entry.fixed_priority), (50, 5), "settings are independent");
    assert_eq!(reservation_of(&entry), Some((reservation(1000, 20_000), false.into())));
    desk.rule("");
    desk.undo();
    assert_eq!((desk.entry().weight, desk.entry().fixed_priority), (50, 0));
    assert!(reservation_of(&desk.entry()).is_some());
}

#[test]
fn later_manual_settings_are_kept() {
    let mut desk = Desk::new();
    desk.rule(ALL);
    desk.by_hand(|entry| entry.weight = 400);
    desk.by_hand(|entry| set_reserved(entry, None));
    desk.rule(ALL);
    assert_eq!((desk.entry().weight, reservation_of(&desk.entry())), (400, None));
    desk.rule("weight = 3, reserve = \"1ms/10ms\"");
    let reserved = Some((reservation(1000, 10_000), false.into()));
    assert_eq!((desk.entry().weight, reservation_of(&desk.entry())), (400, reserved), "a default value has no owner");
    // A manual setting counts even if it is the default value, until the rules change the setting.
    desk.by_hand(|entry| entry.weight = USUAL_WEIGHT);
    desk.rule("weight = 3, reserve = \"1ms/10ms\"");
    assert_eq!(desk.entry().weight, USUAL_WEIGHT);
    desk.rule(ALL);
    assert_eq!(desk.entry().weight, 200);
    desk.undo();
    assert_eq!((desk.entry().weight, desk.entry().fixed_priority), (USUAL_WEIGHT, 0));
}

#[test]
fn a_returned_setting_follows_the_rules_again_and_others_stay_manual() {
    let mut desk = Desk::new();
    desk.rule("weight = 2, priority = 3");
    desk.by_hand(|entry| (entry.weight, entry.fixed_priority) = (400, 9));
    desk.rule("weight = 2, priority = 3");
    desk.by_hand(|entry| entry.weight = USUAL_WEIGHT);
    desk.0.return_settings(CLIENT, bit(SettingKind::Weight));
    desk.rule("weight = 2, priority = 3");
    assert_eq!((desk.entry().weight, desk.entry().fixed_priority), (200, 9));
    desk.undo();
    assert_eq!((desk.entry().weight, desk.entry().fixed_priority), (USUAL_WEIGHT, 9));
}

/// Manual values here differ from those of the rules, because equal or default values do not show who set them.
#[test]
fn no_sequence_of_events_overrides_a_manual_setting() {
    for seed in xqos_testkit::seeds(500) {
        let (mut desk, mut by_hand, mut dice) = (Desk::new(), None, Dice::new(seed));
        for _ in 0..40 {
            let weight = 2 + dice.below(3) as u32;
            match dice.below(8) {
                0 => {
                    by_hand = Some(weight * 1000);
                    desk.by_hand(|entry| entry.weight = weight * 1000);
                }
                1 => desk.undo(),
                2 => drop(desk.rule("")),
                _ => drop(desk.rule(&format!("weight = {weight}"))),
            }
            assert_eq!(desk.entry().weight, by_hand.unwrap_or(desk.entry().weight), "seed {seed}");
        }
        desk.undo();
        assert_eq!(desk.entry().weight, by_hand.unwrap_or(USUAL_WEIGHT), "seed {seed}");
    }
}

#[test]
fn undo_clears_only_our_settings() {
    let mut desk = Desk::new();
    desk.rule(ALL);
    desk.by_hand(|entry| entry.weight = 400);
    desk.undo();
    let entry = desk.entry();
    assert_eq!((entry.weight, entry.fixed_priority, reservation_of(&entry)), (400, 0, None));
    let requests = desk.requests();
    desk.undo();
    assert_eq!(desk.requests(), requests);
}

#[test]
fn a_refusal_is_reported_once_and_retried() {
    let mut desk = Desk::new();
    desk.0.server.refuses = true;
    assert_eq!(desk.rule("weight = 2"), ["refused at request 2, by rule 'r' (t.toml:2)"]);
    assert_eq!(desk.rule("weight = 2"), [""; 0], "the same refusal with other figures");
    assert_eq!(desk.rule("weight = 3").len(), 1, "another value does");
    desk.0.server.refuses = false;
    assert_eq!(desk.rule("weight = 2").len(), 1);
    assert_eq!(desk.entry().weight, 200);
}

#[test]
fn a_search_begins_and_ends_with_its_rule_and_its_client() {
    let mut desk = Desk::new();
    for set in ["reserve = \"auto\"", "reserve = \"auto\", weight = 2"] {
        desk.rule(set);
        assert!(desk.0.auto.clients.contains(&CLIENT));
    }
    desk.rule("reserve = \"none\"");
    assert!(desk.0.auto.clients.is_empty());
    desk.rule("reserve = \"auto\"");
    desk.undo();
    assert!(desk.0.auto.clients.is_empty());
    desk.rule("reserve = \"auto\"");
    desk.0.forget(CLIENT);
    assert!(desk.0.auto.clients.is_empty());
}

#[test]
fn a_rule_may_change_from_a_search_to_a_reservation() {
    let mut desk = Desk::new();
    desk.rule("reserve = \"auto\"");
    desk.served(|entry| set_reserved(entry, Some((reservation(2000, 16_000), false.into()))));
    desk.rule("reserve = \"3ms/10ms\"");
    assert_eq!(reservation_of(&desk.entry()), Some((reservation(3000, 10_000), false.into())));
}

#[test]
fn a_boost_lasts_as_long_as_its_rule() {
    let mut desk = Desk::new();
    desk.rule("cpu = true");
    desk.rule("cpu = true, weight = 2");
    assert_eq!(desk.0.boost.pids[&7], 1);
    desk.rule("cpu = false");
    assert_eq!(desk.0.boost.pids[&7], 0);
    desk.rule("cpu = true");
    desk.undo();
    assert_eq!(desk.0.boost.pids[&7], 0);
    desk.rule("cpu = true");
    desk.0.forget(CLIENT);
    assert_eq!(desk.0.boost.pids[&7], 0);
}

#[test]
fn a_forbidden_boost_is_reported_once_and_retried() {
    let mut desk = Desk::new();
    desk.0.boost.is_forbidden = true;
    assert_eq!(desk.rule("cpu = true"), ["cpu of rule 'r' (t.toml:2) has no effect: not allowed"]);
    assert_eq!(desk.rule("cpu = true"), [""; 0]);
    desk.0.boost.is_forbidden = false;
    desk.rule("cpu = true");
    assert_eq!(desk.0.boost.pids[&7], 1);
}

#[test]
fn pacing_is_set_and_cleared_but_never_overrides_a_manual_setting() {
    let mut desk = Desk::new();
    let paced = |desk: &Desk| paced_now(&desk.entry());
    desk.rule("pace = true");
    assert_eq!(paced(&desk), Paced::Always);
    desk.rule("pace = false");
    assert_eq!(paced(&desk), Paced::Never);
    desk.rule("");
    assert_eq!(paced(&desk), Paced::AsAll);
    desk.by_hand(|entry| entry.flags |= entry_flag::PACED);
    desk.rule("pace = false");
    assert_eq!(paced(&desk), Paced::Always);
}

#[test]
fn a_slice_limit_lasts_as_long_as_its_rule() {
    let mut desk = Desk::new();
    assert_eq!(
        desk.rule("slice = \"2ms\""),
        ["longest slice 2 ms for mpv (pid 7, client 0x400000), by rule 'r' (t.toml:2)"]
    );
    assert_eq!(desk.entry().slice_us, 2000);
    desk.rule("");
    assert_eq!(desk.entry().slice_us, 0);
}

#[test]
fn group_values_select_groupings() {
    for (set, name) in [("app", ":app"), ("user", ":user"), ("none", ":none")] {
        let mut desk = Desk::new();
        desk.rule(&format!("group = \"{set}\""));
        assert_eq!(desk.entry().group_name.as_str(), name);
        // The server reports the resulting group.
        desk.served(|entry| entry.group_name = Label::new("firefox-1"));
        let requests = desk.requests();
        desk.rule(&format!("group = \"{set}\""));
        assert_eq!(desk.requests(), requests);
        desk.rule("");
        assert_eq!(desk.entry().group_name.as_str(), "");
    }
}

#[test]
fn a_client_without_a_group_gets_one_for_its_cap() {
    let mut desk = Desk::new();
    desk.by_hand(|entry| (entry.flags, entry.pid, entry.group, entry.host) = (0, 0, 0, "10.0.0.9".into()));
    desk.rule("max = \"20%\"");
    desk.by_hand(|entry| entry.group = 3);
    assert_eq!((desk.entry().group_name.as_str(), desk.entry().group_cap_ppm), ("from 10.0.0.9", 200_000));
    let requests = desk.requests();
    desk.rule("max = \"20%\"");
    assert_eq!(desk.requests(), requests);
    desk.rule("");
    assert_eq!(desk.entry().group_name.as_str(), "");
}

#[test]
fn window_managers_and_compositors_are_not_capped() {
    for role in [entry_flag::WINDOW_MANAGER, entry_flag::COMPOSITOR] {
        let mut desk = Desk::new();
        desk.by_hand(|entry| entry.flags |= role);
        desk.rule("group = \"unwatched\", max = \"5%\", weight = 2");
        let entry = desk.entry();
        assert_eq!((entry.group_name.as_str(), entry.group_cap_ppm, entry.weight), ("", 0, 200));
    }
}

#[test]
fn a_cap_stays_with_the_group_that_it_was_set_for() {
    let mut desk = Desk::new();
    desk.rule("max = \"20%\"");
    assert_eq!(desk.entry().group_cap_ppm, 200_000, "the cap of its default group");
    desk.rule("group = \"back\", max = \"5%\"");
    assert_eq!((desk.entry().group_name.as_str(), desk.entry().group_cap_ppm), ("back", 50_000));
    // The client's usual group keeps the cap that another user has set.
    desk.0.server.requests.replace(0);
    desk.rule("");
    assert_eq!((desk.requests(), desk.entry().group_name.as_str()), (1, ""), "the group keeps its cap");
}

#[test]
fn a_group_and_its_cap_are_set_and_cleared() {
    let mut desk = Desk::new();
    desk.rule("group = \"back\", max = \"20%\"");
    assert_eq!((desk.entry().group_name.as_str(), desk.entry().group_cap_ppm), ("back", 200_000));
    desk.rule("group = \"back\"");
    assert_eq!((desk.entry().group_name.as_str(), desk.entry().group_cap_ppm), ("back", 0));
    desk.by_hand(|entry| entry.group_name = Label::new("other"));
    desk.undo();
    assert_eq!(desk.entry().group_name.as_str(), "other", "another program has changed it");
}
