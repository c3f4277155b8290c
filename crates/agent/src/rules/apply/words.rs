// SPDX-License-Identifier: MIT
//! Settings of the server in words, and groups of rules as it calls them.

use crate::client::words;
use xqos_abi::{Label, NO_RESERVATION, Paced, Setting, us};
use xqos_cli::quantity::{Micros, Reservation, Slice, Weight};
use xqos_rules::setting::Group;

/// Names that put a client where a grouping would.
pub const BY_APPLICATION: &str = ":app";
pub const BY_USER: &str = ":user";
pub const BY_ITSELF: &str = ":none";

pub fn group_name(group: &Group) -> Label {
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
        Setting::Reservation(wanted) => format!("{}{} reserved", in_words(wanted), words(wanted.kind)),
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

pub fn in_words(wanted: xqos_core::Reservation) -> Reservation {
    let [budget, period] = [wanted.budget_ns, wanted.period_ns].map(|ns| Micros(us(ns)));
    Reservation { budget, period }
}
