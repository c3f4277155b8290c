// SPDX-License-Identifier: MIT
//! Converts the settings of rules into settings of the server, and describes them.
//!
//! A cap belongs to a group, so a client that needs a group for its cap is put into one.

use crate::client::{in_us, words};
use std::collections::BTreeMap;
use xqos_abi::{ClientEntry, Label, NO_RESERVATION, Paced, Setting, Subject, entry_flag};
use xqos_core::ReservationKind;
use xqos_rules::decide::Chosen;
use xqos_rules::setting::{GroupChoice, Reserve, Setting as Set, SettingKind, SoftRule};
use xqos_rules::values::{Cap, Slice, Weight};

/// A cap of 100 %, which has no effect.
const WHOLE_PPM: u32 = 1_000_000;
/// Roles of clients that are not capped.
const UNCAPPED_ROLES: u32 = entry_flag::COMPOSITOR | entry_flag::WINDOW_MANAGER;

/// Group names that stand for groupings of the server.
pub const BY_APPLICATION: &str = ":app";
pub const BY_USER: &str = ":user";
pub const UNGROUPED: &str = ":none";

pub type Assignment = (Subject, Setting);

/// Settings that rules want for a client.
#[derive(Debug, Default)]
pub(super) struct DesiredSettings {
    pub settings: BTreeMap<SettingKind, Assignment>,
    pub auto: bool,
    pub boost: bool,
}

impl DesiredSettings {
    pub fn of(chosen: &[Chosen<'_>], entry: &ClientEntry) -> DesiredSettings {
        let mut wanted = DesiredSettings::default();
        let kind = kind_of(chosen);
        let client = Subject::Client(entry.client);
        for chosen in chosen {
            let (subject, setting) = match chosen.setting {
                Set::Reserve(Reserve::Fixed(it)) => (client, Setting::reservation(it.budget.0, it.period.0, kind)),
                Set::Weight(Weight(weight)) => (client, Setting::Weight(*weight)),
                Set::Priority(priority) => (client, Setting::Priority(priority.0)),
                Set::Slice(Slice(us)) => (client, Setting::Slice(*us)),
                Set::Group(group) => (client, Setting::Group(group_name(group))),
                Set::Pace(on) => (client, Setting::Paced(if *on { Paced::Always } else { Paced::Never })),
                Set::Max(Cap(ppm)) if *ppm < WHOLE_PPM => (Subject::Group(entry.client), Setting::Cap(*ppm)),
                Set::Reserve(Reserve::Auto) => {
                    wanted.auto = true;
                    continue;
                }
                Set::Cpu(on) => {
                    wanted.boost = *on;
                    continue;
                }
                _ => continue,
            };
            // An initial value needs no request.
            if setting.kind().initial(subject) != Some(setting) {
                wanted.settings.insert(chosen.setting.kind(), (subject, setting));
            }
        }
        if wanted.settings.contains_key(&SettingKind::Max) {
            if entry.flags & UNCAPPED_ROLES != 0 {
                // All clients depend on such a client, and a group would be charged for its work.
                wanted.settings.retain(|kind, _| !matches!(kind, SettingKind::Max | SettingKind::Group));
            } else if let Some(group) = group_to_cap(entry) {
                wanted.settings.entry(SettingKind::Group).or_insert((client, Setting::Group(group)));
            }
        }
        wanted
    }
}

/// The group that a client without a group needs for a cap. A client that is already in such a group keeps it.
fn group_to_cap(entry: &ClientEntry) -> Option<Label> {
    let of_host = Label::new(&format!("from {}", entry.host));
    let is_alone = entry.group == 0 || entry.group_name == of_host;
    match entry.flags & entry_flag::LOCAL != 0 {
        true => (entry.group == 0).then(|| Label::new(BY_APPLICATION)),
        false => is_alone.then_some(of_host),
    }
}

/// Kind of a reservation. If one rule says hard and another says soft, it is hard.
fn kind_of(chosen: &[Chosen<'_>]) -> ReservationKind {
    let has = |wanted: &Set| chosen.iter().any(|chosen| chosen.setting == wanted);
    match (has(&Set::Hard(true)), has(&Set::Soft(SoftRule::Paper))) {
        (false, true) => ReservationKind::SoftPaper,
        (hard, _) => hard.into(),
    }
}

fn group_name(group: &GroupChoice) -> Label {
    Label::new(match group {
        GroupChoice::App => BY_APPLICATION,
        GroupChoice::User => BY_USER,
        GroupChoice::Nobody => UNGROUPED,
        GroupChoice::Named(name) => name,
    })
}

pub fn describe(setting: &Setting) -> String {
    match *setting {
        Setting::Reservation(NO_RESERVATION) => "no reservation".to_owned(),
        Setting::Reservation(wanted) => {
            format!("{}{} reserved", in_us(wanted.budget_ns, wanted.period_ns), words(wanted.kind))
        }
        Setting::Weight(weight) => format!("weight {}", Weight(weight)),
        Setting::Priority(priority) => format!("priority {priority}"),
        Setting::Slice(us) => format!("longest slice {}", Slice(us)),
        Setting::Cap(0) => "no limit".to_owned(),
        Setting::Cap(ppm) => format!("at most {} %", f64::from(ppm) / 1e4),
        Setting::Paced(Paced::AsAll) => "default pacing".to_owned(),
        Setting::Paced(Paced::Always) => "pacing on".to_owned(),
        Setting::Paced(Paced::Never) => "pacing off".to_owned(),
        Setting::Group(name) => match name.as_str() {
            "" => "the default group".to_owned(),
            BY_APPLICATION => "the group of its application".to_owned(),
            BY_USER => "the group of its user".to_owned(),
            UNGROUPED => "no group".to_owned(),
            name => format!("group {name}"),
        },
        // A setting of the server.
        _ => String::new(),
    }
}
