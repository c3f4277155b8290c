// SPDX-License-Identifier: MIT
//! Warns about each rule setting that will have no effect here, so that none is ignored silently.
//!
//! Such a setting is not a mistake: it may work on another server, or when root runs the rules.

use crate::processor::{self, missing_raise_right};
use crate::session::Session;
use xqos_rules::facts::State;
use xqos_rules::rule::{Limits, Rule};
use xqos_rules::setting::{GroupChoice, Reserve, Setting, SoftRule};
use xqos_sys as sys;

/// The rights of the user who runs the rules.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    /// The user may raise the priority of programs.
    pub raise: bool,
    /// The user may limit users and see whether the display is watched, which only root and the server's user may do.
    /// `None` if there is no server.
    pub own_server: Option<bool>,
}

impl Rights {
    pub fn of_process(display: Option<&str>) -> Rights {
        Rights { raise: processor::may_raise(), own_server: is_own(display) }
    }
}

fn is_own(display: Option<&str>) -> Option<bool> {
    let user = sys::effective_ids().0;
    if user == 0 {
        return Some(true);
    }
    let info = Session::open(display).ok()?.control.server_info().ok()?;
    Some(sys::proc::owner(info.server_pid as i32).ok()? == user)
}

pub fn warnings(rules: &[Rule], limits: Limits, rights: Rights) -> Vec<String> {
    let mut all: Vec<String> = rules.iter().flat_map(|rule| of_rule(rule, rights)).collect();
    if limits.per_user.is_some() && rights.own_server != Some(true) {
        all.push(
            "[limits]: per_user has no effect: only root and the user of the X server can limit users, so run the rules as \
             one of them"
                .to_owned(),
        );
    }
    all
}

fn of_rule(rule: &Rule, rights: Rights) -> Vec<String> {
    let has = |wanted: &Setting| rule.settings.contains(wanted);
    let has_cap = rule.settings.iter().any(|setting| matches!(setting, Setting::Max(_)));
    let is_for_unwatched = rule.matcher.depends_on(State::Unwatched);
    let checks = [
        (has(&Setting::Cpu(true)) && !rights.raise, format!("cpu has no effect: {}", missing_raise_right())),
        (
            has(&Setting::Hard(true)) && has(&Setting::Reserve(Reserve::Auto)),
            "hard has no effect with reserve = \"auto\", which makes only soft reservations".to_owned(),
        ),
        (
            has(&Setting::Soft(SoftRule::Paper)) && has(&Setting::Reserve(Reserve::Auto)),
            "soft = \"paper\" has no effect with reserve = \"auto\", which uses best effort beyond the budget"
                .to_owned(),
        ),
        (
            has(&Setting::Soft(SoftRule::Paper)) && has(&Setting::Hard(true)),
            "soft = \"paper\" has no effect with hard = true: leave one of them out".to_owned(),
        ),
        (
            has_cap && has(&Setting::Group(GroupChoice::Nobody)),
            "max has no effect with group = \"none\", because a cap applies to a group: leave group out".to_owned(),
        ),
        (
            is_for_unwatched && rights.own_server == Some(false),
            "state unwatched never matches for this user: only root and the user of the X server can see it".to_owned(),
        ),
    ];
    let warnings = checks.into_iter().filter(|(holds, _)| *holds);
    warnings.map(|(_, what)| format!("{}: rule '{}': {what}", rule.place, rule.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_rules::read::{self, Scope};

    #[test]
    fn settings_without_effect_are_reported_in_one_line_each() {
        let rule =
            |id: &str, set: &str| format!("[[rule]]\nid = \"{id}\"\nmatch = {{ exe = \"*\" }}\nset = {{ {set} }}\n");
        let text = "version = 1\n".to_owned()
            + &rule("fine", "weight = 2, cpu = false, hard = true, reserve = \"1ms/10ms\", max = \"5%\"")
            + &rule("cpu", "cpu = true")
            + &rule("auto", "hard = true, reserve = \"auto\"")
            + &rule("alone", "max = \"5%\", group = \"none\"")
            + "[[rule]]\nid = \"away\"\nmatch = { not = { state = \"unwatched\" } }\nset = { weight = 2 }\n"
            + "[limits]\nauto = 0.5\nper_user = 0.3\n";
        let file = read::file("t.toml", &text, Scope::System).unwrap();
        let without_rights = warnings(&file.rules, file.limits, Rights { raise: false, own_server: Some(false) });
        let begins = ["t.toml:6: rule 'cpu': cpu", "t.toml:10: rule 'auto': hard", "t.toml:14: rule 'alone': max"];
        for (warning, begins) in without_rights.iter().zip(begins) {
            assert!(warning.starts_with(begins) && !warning.contains('\n'), "{warning}");
        }
        assert_eq!(without_rights.len(), 5);
        assert_eq!(warnings(&file.rules, file.limits, Rights { raise: true, own_server: Some(true) }).len(), 2);
    }
}
