// SPDX-License-Identifier: MIT
//! Expectations: facts of clients, and the settings that the rules should give them.
//!
//! Expectations are tests in a file next to the rules. They show the side effects of a changed rule:
//!
//! ```toml
//! version = 1
//! rules = ["../50-players.toml"]   # from this file's folder; or [[rule]], here
//!
//! [[case]]
//! what = "mpv, as Debian has it"
//! facts = { exe = "/usr/bin/mpv", local = true, state = ["active"] }
//! set = { reserve = "auto" }       # this and nothing else
//! by = "players"                   # optional: the rules that should make the settings
//! ```
//!
//! A missing fact is unknown, but a control group also gives the unit. If states are listed, all other states do not
//! hold.

use crate::decide::{Chosen, RuleSet};
use crate::facts::{ClientFacts, Key, State, States, bounded, unit_of};
use crate::read::table::{Diagnostics, KnownKeys, value_of};
use crate::rule::{Rule, RuleLocation};
use crate::setting::{Setting, Value};
use std::collections::BTreeSet;
use toml::Spanned;
use toml::de::DeValue;
use xqos_text::mistake::{Mistake, clean};
use xqos_text::nearest::nearest;

#[derive(Clone, Debug, Default)]
pub struct Expectations {
    /// Names of rule files, each with the line that names it.
    pub files: Vec<(String, RuleLocation)>,
    /// Rules in this file itself. They follow the rules of the named files.
    pub rules: Vec<Rule>,
    pub cases: Vec<Case>,
}

/// One client and the settings that it should get.
#[derive(Clone, Debug)]
pub struct Case {
    pub what: String,
    pub place: RuleLocation,
    pub facts: ClientFacts,
    pub expected: Vec<Setting>,
    /// Ids of the rules that should make the settings; `None`: any rules.
    pub by: Option<BTreeSet<String>>,
}

/// Reads an expectations file; `file` is its name in error messages.
pub fn file(file: &str, text: &str) -> Result<Expectations, Vec<Mistake>> {
    let mut report = Diagnostics::new(file, text);
    let read = report.parse().map(|top| {
        let top = report.table(top.get_ref(), "a file of expectations", &["version", "rules", "rule", "case"]);
        report.version(&top);
        let files = top.get("rules").and_then(|value| report.words("rules", value)).unwrap_or_default();
        let place = |at: usize| RuleLocation { file: report.file(), line: report.line(at) };
        let files = files.into_iter().map(|(at, name)| (name.to_owned(), place(at.start))).collect();
        let rules = report.rules(&top);
        Expectations { files, rules, cases: report.cases(&top) }
    });
    report.finish(read)
}

impl Case {
    /// Differences between the expected settings and those that the rules make; empty if the case passes.
    pub fn differences(&self, rules: &RuleSet) -> Vec<String> {
        let evaluation = rules.evaluate(&self.facts);
        let applied = evaluation.applied();
        let is_among = |expected: &&Setting| applied.iter().any(|chosen| chosen.setting == *expected);
        let missing = self.expected.iter().filter(|expected| !is_among(expected));
        let mut differences: Vec<_> = missing.map(|expected| format!("{expected} is missing")).collect();
        for Chosen { setting, rule } in &applied {
            if !self.expected.contains(setting) {
                differences.push(format!("{setting} is set by '{}' ({})", rule.id, rule.place));
            }
        }
        let by: BTreeSet<String> = applied.iter().map(|chosen| chosen.rule.id.clone()).collect();
        if let Some(expected) = self.by.as_ref().filter(|expected| **expected != by) {
            differences.push(format!("the settings come from {}, but {} is expected", all_of(&by), all_of(expected)));
        }
        differences
    }
}

fn all_of(ids: &BTreeSet<String>) -> String {
    let quoted: Vec<_> = ids.iter().map(|id| format!("'{id}'")).collect();
    if quoted.is_empty() { "no rule".to_owned() } else { quoted.join(" and ") }
}

impl Diagnostics<'_> {
    fn cases(&mut self, top: &KnownKeys<'_, '_>) -> Vec<Case> {
        let Some(value) = top.get("case") else {
            self.file_error("it contains no case: write [[case]] with facts and set".to_owned());
            return Vec::new();
        };
        let Some(parts) = value.get_ref().as_array() else {
            self.error(value.span(), "cases are written as [[case]], with two brackets");
            return Vec::new();
        };
        parts.iter().filter_map(|part| self.case(part)).collect()
    }

    fn case(&mut self, part: &Spanned<DeValue<'_>>) -> Option<Case> {
        let table = self.sub_table(part, "a case", &["what", "facts", "set", "by"])?;
        let what = self.required(&table, part.span(), "what", "say in a few words which client this is")?;
        let what = self.one_text("what", what);
        let facts = self.required(&table, part.span(), "facts", "write facts = { exe = \"/usr/bin/mpv\" }")?;
        let facts = self.facts(facts);
        let set = self.required(&table, part.span(), "set", "write set = { weight = 2 }, or set = {} for nothing")?;
        let expected = self.settings(set)?;
        let by = table.get("by").and_then(|value| self.words("by", value));
        let by = by.map(|words| words.into_iter().map(|(_, word)| word.to_owned()).collect());
        let place = RuleLocation { file: self.file(), line: self.line(part.span().start) };
        Some(Case { what: what?, place, facts: facts?, expected, by })
    }

    fn facts(&mut self, value: &Spanned<DeValue<'_>>) -> Option<ClientFacts> {
        let table = self.sub_table(value, "facts", &Key::ALL.map(Key::name))?;
        let mut facts = ClientFacts::default();
        for key in Key::ALL {
            let Some(value) = table.get(key.name()) else { continue };
            self.fact(key, value, &mut facts);
        }
        facts.unit = facts.unit.or_else(|| facts.cgroup.as_deref().and_then(unit_of).map(str::to_owned));
        Some(facts)
    }

    fn fact(&mut self, key: Key, value: &Spanned<DeValue<'_>>, facts: &mut ClientFacts) {
        match key {
            Key::Exe => facts.exe = self.one_text("exe", value),
            Key::Name => facts.name = self.one_text("name", value),
            Key::Unit => facts.unit = self.one_text("unit", value),
            Key::Cgroup => facts.cgroup = self.one_text("cgroup", value),
            Key::Host => facts.host = self.one_text("host", value),
            Key::Class => facts.class = self.texts("class", value),
            Key::User => facts.user = self.texts("user", value),
            Key::State => facts.states = self.states(value),
            Key::Local => match value_of(value.get_ref()) {
                Value::Switch(local) => facts.local = Some(local),
                _ => self.error(value.span(), "local is true or false, without quotes"),
            },
        }
    }

    fn one_text(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let text = value.get_ref().as_str().map(|text| bounded(text).into_owned());
        match Key::from_name(key) {
            _ if text.is_none() => self.error(value.span(), format!("{key} is a text in quotes")),
            Some(key) => self.refuse_decoded_escapes(key, value.span()),
            None => {}
        }
        text
    }

    fn texts(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Vec<String>> {
        let words = self.words(key, value)?;
        Some(words.into_iter().map(|(_, word)| bounded(word).into_owned()).collect())
    }

    /// In a test, unlike in a rule, an empty list is valid and means that no state holds.
    fn states(&mut self, value: &Spanned<DeValue<'_>>) -> States {
        if value.get_ref().as_array().is_some_and(|parts| parts.is_empty()) {
            return States::only(&[]);
        }
        let mut holding = Vec::new();
        for (at, word) in self.words("state", value).unwrap_or_default() {
            match State::from_name(word) {
                Some(state) => holding.push(state),
                None => {
                    let meant =
                        nearest(word, &State::ALL.map(State::name)).map(|near| format!(": did you mean '{near}'?"));
                    self.error(at, format!("there is no state '{}'{}", clean(word), meant.unwrap_or_default()));
                }
            }
        }
        States::only(&holding)
    }
}
