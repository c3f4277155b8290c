// SPDX-License-Identifier: MIT
//! What rules want of a client as settings of the server, and such settings in words.
//!
//! A cap is that of a group: where a client needs one for it, that is wanted too.

use crate::client::{in_us, words};
use std::collections::BTreeMap;
use xqos_abi::{ClientEntry, Label, NO_RESERVATION, Paced, Setting, Subject, entry_flag};
use xqos_cli::quantity::{Slice, SoftRule, Weight};
use xqos_core::ReservationKind;
use xqos_rules::decide::Chosen;
use xqos_rules::setting::{Cap, Group, Reserve, Setting as Said, SettingKind};

/// A limit that is none.
const WHOLE_PPM: u32 = 1_000_000;
/// Who is not capped.
const WORKS_FOR_OTHERS: u32 = entry_flag::COMPOSITOR | entry_flag::WINDOW_MANAGER;

/// Names that put a client where a grouping would.
pub const BY_APPLICATION: &str = ":app";
pub const BY_USER: &str = ":user";
pub const BY_ITSELF: &str = ":none";

/// What is set of whom.
pub type Wish = (Subject, Setting);

/// What rules want of a client.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub settings: BTreeMap<SettingKind, Wish>,
    pub auto: bool,
    pub boost: bool,
}

impl Wanted {
    pub fn of(chosen: &[Chosen<'_>], entry: &ClientEntry) -> Wanted {
        let mut wanted = Wanted::default();
        let kind = kind_of(chosen);
        let client = Subject::Client(entry.client);
        for chosen in chosen {
            let (subject, setting) = match chosen.setting {
                Said::Reserve(Reserve::Fixed(it)) => (client, Setting::reservation(it.budget.0, it.period.0, kind)),
                Said::Weight(Weight(weight)) => (client, Setting::Weight(*weight)),
                Said::Priority(priority) => (client, Setting::Priority(priority.0)),
                Said::Slice(Slice(us)) => (client, Setting::Slice(*us)),
                Said::Group(group) => (client, Setting::Group(group_name(group))),
                Said::Pace(on) => (client, Setting::Paced(if *on { Paced::Always } else { Paced::Never })),
                Said::Max(Cap(ppm)) if *ppm < WHOLE_PPM => (Subject::Group(entry.client), Setting::Cap(*ppm)),
                Said::Reserve(Reserve::Auto) => {
                    wanted.auto = true;
                    continue;
                }
                Said::Cpu(on) => {
                    wanted.boost = *on;
                    continue;
                }
                _ => continue,
            };
            // What is so from the beginning needs no request.
            if setting.kind().initial(subject) != Some(setting) {
                wanted.settings.insert(chosen.setting.kind(), (subject, setting));
            }
        }
        if wanted.settings.contains_key(&SettingKind::Max) {
            if entry.flags & WORKS_FOR_OTHERS != 0 {
                // Everybody waits for them, and what they use would be taken from the others of the group.
                wanted.settings.retain(|kind, _| !matches!(kind, SettingKind::Max | SettingKind::Group));
            } else if let Some(group) = group_to_cap(entry) {
                wanted.settings.entry(SettingKind::Group).or_insert((client, Setting::Group(group)));
            }
        }
        wanted
    }
}

/// Where a client stands for itself, it needs a group to be capped; one that was given such a group keeps it.
fn group_to_cap(entry: &ClientEntry) -> Option<Label> {
    let of_host = Label::new(&format!("from {}", entry.host));
    let is_alone = entry.group == 0 || entry.group_name == of_host;
    match entry.flags & entry_flag::LOCAL != 0 {
        true => (entry.group == 0).then(|| Label::new(BY_APPLICATION)),
        false => is_alone.then_some(of_host),
    }
}

/// Hard, where one rule says so and another says how soft.
fn kind_of(chosen: &[Chosen<'_>]) -> ReservationKind {
    let has = |wanted: &Said| chosen.iter().any(|chosen| chosen.setting == wanted);
    match (has(&Said::Hard(true)), has(&Said::Soft(SoftRule::Paper))) {
        (false, true) => ReservationKind::SoftPaper,
        (hard, _) => hard.into(),
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

/// A setting in words, of a client that has it.
pub fn told_of(setting: &Setting) -> String {
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
        Setting::Paced(Paced::AsAll) => "pacing as all".to_owned(),
        Setting::Paced(Paced::Always) => "it waits for those that it uncovers".to_owned(),
        Setting::Paced(Paced::Never) => "it waits for nobody that it uncovers".to_owned(),
        Setting::Group(name) => match name.as_str() {
            "" => "its usual group".to_owned(),
            BY_APPLICATION => "the group of its application".to_owned(),
            BY_USER => "the group of its user".to_owned(),
            BY_ITSELF => "no group".to_owned(),
            name => format!("group {name}"),
        },
        // Of the server.
        _ => String::new(),
    }
}
