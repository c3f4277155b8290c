// SPDX-License-Identifier: MIT
//! The effect of the rules on one client, for text and JSON output.
//!
//! This module uses the same evaluation as the daemon.

use super::window_facts::WindowFacts;
use super::{facts, process::Users, viewers};
use crate::client::{described, reservation_of, soft_rule};
use crate::error::Result;
use crate::session::Session;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use xqos_abi::ClientEntry;
use xqos_rules::decide::{Chosen, RuleMatch, RuleSet};
use xqos_rules::facts::{ClientFacts, Key, State};
use xqos_rules::setting::SettingKind;
use xqos_rules::values::{Slice, Weight};
use xqos_text::escape::printable;

/// One client and the effect of all rules on it.
#[derive(Debug, Serialize)]
pub struct Effect {
    pub client: String,
    pub pid: Option<i32>,
    pub program: Option<String>,
    /// The value of each match key; null if unknown.
    facts: Value,
    /// The facts as text.
    #[serde(skip)]
    pub known: Vec<(Key, String)>,
    #[serde(skip)]
    pub described: String,
    /// The client's current settings, as far as the server reports them, regardless of who made them.
    pub now: BTreeMap<&'static str, String>,
    /// The settings that the rules ask for.
    pub settings: Vec<RuleSetting>,
    /// A rule tells xqos to ignore the client, so none of the settings is applied.
    pub ignored: bool,
    pub rules: Vec<RuleVerdict>,
}

/// A setting, and the rule that makes it.
#[derive(Debug, Serialize)]
pub struct RuleSetting {
    setting: &'static str,
    value: String,
    pub rule: String,
    pub place: String,
    /// The client's current value; null if the server does not report it.
    pub now: Option<String>,
    /// The setting as written in a rule file.
    #[serde(skip)]
    pub written: String,
}

/// A rule, and whether it matches the client.
#[derive(Debug, Serialize)]
pub struct RuleVerdict {
    pub rule: String,
    pub place: String,
    pub matched: bool,
    /// The key that did not match, and the client's value.
    pub why: String,
}

impl Effect {
    /// Evaluates the rules for these clients with the facts known now.
    pub fn evaluate(session: &Session, entries: &[ClientEntry], rules: &RuleSet) -> Result<Vec<Effect>> {
        let sight = WindowFacts::new(session.control.connection()?, false)?;
        let (users, unwatched) = (Users::read(), viewers::unwatched_now(session));
        let known = |entry: &ClientEntry| match facts(entry, &users, &sight, unwatched) {
            facts if session.is_here() => facts,
            // Only the daemon, which runs on the client's machine, can inspect the process.
            facts => ClientFacts { exe: None, cgroup: None, unit: None, ..facts },
        };
        Ok(entries.iter().map(|entry| Effect::new(entry, &known(entry), rules)).collect())
    }

    pub fn new(entry: &ClientEntry, facts: &ClientFacts, rules: &RuleSet) -> Effect {
        let evaluation = rules.evaluate(facts);
        let chosen = evaluation.chosen();
        let is_local = facts.local == Some(true);
        let missing = |key: Key| if is_local && matches!(key, Key::Host) { "none, a local client" } else { "unknown" };
        let known = |key: Key| facts.describe(key).unwrap_or_else(|| missing(key).to_owned());
        let verdicts = evaluation.verdicts().map(|(rule, verdict)| RuleVerdict {
            rule: rule.id.clone(),
            place: rule.place.to_string(),
            matched: verdict == RuleMatch::Matched,
            why: evaluation.explain(rule, verdict),
        });
        Effect {
            client: format!("{:#x}", entry.client),
            pid: (entry.pid != 0).then_some(entry.pid),
            program: Some(printable(&entry.name)).filter(|name| !name.is_empty()),
            facts: values(facts),
            known: Key::ALL.into_iter().map(|key| (key, known(key))).collect(),
            described: described(entry),
            now: SettingKind::ALL.into_iter().filter_map(|kind| Some((kind.name(), now(entry, kind)?))).collect(),
            ignored: !chosen.is_empty() && evaluation.applied().is_empty(),
            settings: chosen.iter().map(|chosen| rule_setting(entry, chosen)).collect(),
            rules: verdicts.collect(),
        }
    }

    /// The client's name in a table.
    pub fn name(&self) -> String {
        self.program.clone().unwrap_or_else(|| self.client.clone())
    }
}

fn rule_setting(entry: &ClientEntry, chosen: &Chosen<'_>) -> RuleSetting {
    RuleSetting {
        setting: chosen.setting.kind().name(),
        value: chosen.setting.value(),
        rule: chosen.rule.id.clone(),
        place: chosen.rule.place.to_string(),
        now: now(entry, chosen.setting.kind()),
        written: chosen.setting.to_string(),
    }
}

fn now(entry: &ClientEntry, kind: SettingKind) -> Option<String> {
    let reserved = reservation_of(entry);
    match kind {
        SettingKind::Reserve => {
            Some(reserved.map_or_else(|| "none".to_owned(), |(reservation, _)| reservation.typed()))
        }
        SettingKind::Hard => Some(reserved.is_some_and(|(_, kind)| kind.is_hard()).to_string()),
        SettingKind::Soft => reserved.and_then(|(_, kind)| soft_rule(kind)).map(str::to_owned),
        SettingKind::Weight => Some(Weight(entry.weight).to_string()),
        SettingKind::Slice => Some(Slice(entry.slice_us).to_string()),
        SettingKind::Priority => Some(entry.fixed_priority.to_string()),
        _ => None,
    }
}

fn values(facts: &ClientFacts) -> Value {
    let mut values = Map::new();
    for key in Key::ALL {
        let value = match key {
            Key::Class | Key::User => json!(facts.texts(key)),
            Key::Local => json!(facts.local),
            Key::State => State::ALL.into_iter().map(|state| (state.name(), facts.states.get(state))).collect(),
            _ => json!(facts.texts(key).and_then(<[String]>::first)),
        };
        values.insert(key.name().to_owned(), value);
    }
    Value::Object(values)
}
