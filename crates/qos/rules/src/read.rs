// SPDX-License-Identifier: MIT
//! Parses the text of a rule file.
//!
//! A file is either accepted or refused as a whole. Every mistake, up to a limit, is reported with its line and what to
//! write instead. The cost of parsing is linear in the length of the file, whatever its contents.

pub(crate) mod table;

use crate::decide::letter_case;
use crate::facts::{Key, State};
use crate::pattern::Pattern;
use crate::rule::{Condition, Limits, Matcher, Rule, RuleLocation};
use crate::setting::{Setting, SettingKind, Value, name};
use std::collections::HashSet;
use std::ops::Range;
use table::{Diagnostics, KnownKeys, value_of};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};
use xqos_core::setting::USER_LIMIT;
use xqos_text::mistake::{Mistake, clean};

/// Maximum size of a file, in bytes.
pub const MAX_FILE: u64 = 1 << 20;
/// Maximum number of rules in all files together.
pub const MAX_RULES: usize = 10_000;
const VERSION: &str = "1";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    System,
    /// A file of the user. It may not contain limits, because limits restrict that user.
    User,
}

#[derive(Clone, Debug, Default)]
pub struct File {
    pub rules: Vec<Rule>,
    pub limits: Limits,
}

/// Parses a file; `file` is its name in rules and messages. An empty text has no rules.
pub fn file(file: &str, text: &str, scope: Scope) -> Result<File, Vec<Mistake>> {
    let mut report = Diagnostics::new(file, text);
    if text.trim().is_empty() {
        return Ok(File::default());
    }
    let read = report.parse().map(|top| {
        let known = ["version", "rule", "limits"];
        let top = report.table(top.get_ref(), "a rule file", &known);
        report.version(&top);
        let limits = report.limits(&top, scope);
        File { rules: report.rules(&top), limits }
    });
    report.finish(read)
}

impl<'t> Diagnostics<'t> {
    /// Parses the text as TOML. If that fails, reports the mistakes and returns `None`.
    pub(crate) fn parse(&mut self) -> Option<Spanned<DeTable<'t>>> {
        let text = self.text();
        if text.len() as u64 > MAX_FILE {
            self.file_error(format!("is larger than 1 MB ({} bytes): split it", text.len()));
            return None;
        }
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            match error.message() {
                "recursion limit" => self.file_error("it is nested too deeply: a rule needs three levels".to_owned()),
                message => self.error(error.span().unwrap_or_default(), format!("invalid TOML: {message}")),
            }
        }
        errors.is_empty().then_some(table)
    }

    pub(crate) fn version(&mut self, top: &KnownKeys<'_, '_>) {
        match top.get("version") {
            None => self.file_error("its version is missing: write version = 1 as the first line".to_owned()),
            Some(value) => match value_of(value.get_ref()) {
                Value::Number(VERSION) => {}
                _ => self.error(value.span(), "this xqos supports version 1 only: write version = 1"),
            },
        }
    }

    fn limits(&mut self, top: &KnownKeys<'_, '_>, scope: Scope) -> Limits {
        let mut limits = Limits::default();
        let Some(value) = top.get("limits") else { return limits };
        if scope == Scope::User {
            self.error(value.span(), "limits restrict users, so they belong in files of /etc/xqos/rules.d only");
            return limits;
        }
        let Some(table) = self.sub_table(value, "[limits]", &["auto", "per_user"]) else { return limits };
        limits.auto = table.get("auto").and_then(|value| self.share(value));
        limits.per_user = table.get("per_user").and_then(|value| self.share(value));
        limits
    }

    /// A share between 0 and 1, in millionths.
    fn share(&mut self, value: &Spanned<DeValue<'_>>) -> Option<u32> {
        let [least, most] = [USER_LIMIT.typed, USER_LIMIT.most].map(|ppm| f64::from(ppm) / 1e6);
        let number = match value_of(value.get_ref()) {
            Value::Number(number) => number.parse::<f64>().ok(),
            _ => None,
        };
        match number {
            Some(part) if (least..=most).contains(&part) => Some((part * 1e6) as u32),
            _ => {
                let what = format!(
                    "a limit is a share of the server, at most {most}: write a number from {least} to {most}, \
                     such as 0.6"
                );
                self.error(value.span(), what);
                None
            }
        }
    }

    pub(crate) fn rules(&mut self, top: &KnownKeys<'_, '_>) -> Vec<Rule> {
        let Some(value) = top.get("rule") else { return Vec::new() };
        let Some(parts) = value.get_ref().as_array() else {
            self.error(value.span(), "rules are written as [[rule]], with two brackets");
            return Vec::new();
        };
        if parts.len() > MAX_RULES {
            let what = format!("this file has more than {MAX_RULES} rules ({}): merge some", parts.len());
            self.error(parts[MAX_RULES].span(), what);
            return Vec::new();
        }
        self.each_rule(parts)
    }

    fn each_rule(&mut self, parts: &DeArray<'_>) -> Vec<Rule> {
        let (mut rules, mut ids) = (Vec::new(), HashSet::new());
        for part in parts {
            if self.is_full() {
                break;
            }
            let Some(rule) = self.rule(part) else { continue };
            if !ids.insert(rule.id.clone()) {
                self.error(part.span(), format!("'{}' is already the id of an earlier rule: choose another", rule.id));
            }
            rules.push(rule);
        }
        rules
    }

    fn rule(&mut self, part: &Spanned<DeValue<'_>>) -> Option<Rule> {
        let table = self.sub_table(part, "a rule", &["id", "match", "set"])?;
        let id = self.required(&table, part.span(), "id", "write id = \"players\"; `xqos explain` prints it")?;
        let id = match value_of(id.get_ref()) {
            Value::Text(text) => name(text),
            _ => Err("an id is a text: write id = \"players\"".to_owned()),
        }
        .map_err(|what| self.error(id.span(), what));
        let who = "write match = { exe = \"*/mpv\" }, or match = { exe = \"*\" } for all programs";
        let matcher = self.required(&table, part.span(), "match", who).and_then(|value| self.matcher(value));
        let set = self
            .required(&table, part.span(), "set", "write set = { weight = 2 }")
            .and_then(|value| self.settings(value));
        let place = RuleLocation { file: self.file(), line: self.line(part.span().start) };
        Some(Rule { id: id.ok()?, place, matcher: matcher?, settings: set? })
    }

    fn matcher(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Matcher> {
        let mut known = Key::ALL.map(Key::name).to_vec();
        known.push("not");
        let table = self.sub_table(value, "a match", &known)?;
        let conditions = self.conditions(&table);
        let exclusions = table.get("not").map_or(Vec::new(), |value| self.exclusions(value));
        if conditions.is_empty() && exclusions.is_empty() && !self.has_mistakes() {
            self.error(value.span(), "an empty match matches no client: write match = { exe = \"*\" } for all");
        }
        Some(Matcher { conditions, exclusions })
    }

    /// Reads one table or a list of tables.
    fn exclusions(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<Vec<Condition>> {
        let parts = value.get_ref().as_array().map_or(std::slice::from_ref(value), |parts| parts);
        let mut exclusions = Vec::new();
        for part in parts {
            let Some(table) = self.sub_table(part, "not", &Key::ALL.map(Key::name)) else { continue };
            let conditions = self.conditions(&table);
            if conditions.is_empty() && !self.has_mistakes() {
                self.error(
                    part.span(),
                    "an empty not has no effect: write not = { host = \"10.0.0.*\" } or leave it out",
                );
            }
            exclusions.push(conditions);
        }
        exclusions
    }

    fn conditions(&mut self, table: &KnownKeys<'_, '_>) -> Vec<Condition> {
        let given = Key::ALL.into_iter().filter_map(|key| Some((key, table.get(key.name())?)));
        given.filter_map(|(key, value)| self.condition(key, value)).collect()
    }

    fn condition(&mut self, key: Key, value: &Spanned<DeValue<'_>>) -> Option<Condition> {
        if key == Key::Local {
            let local = value.get_ref().as_bool();
            if local.is_none() {
                self.error(value.span(), "local is true or false, without quotes");
            }
            return local.map(Condition::Local);
        }
        let words = self.words(key.name(), value)?;
        words.iter().for_each(|(at, _)| self.refuse_decoded_escapes(key, at.clone()));
        match key {
            Key::State => self.each(words, state).map(Condition::State),
            _ => self.each(words, |text| pattern(key, text)).map(|patterns| Condition::Text(key, patterns)),
        }
    }

    /// Refuses `\x` in double quotes in the name of a unit. systemd prints such names, and TOML would decode them.
    pub(crate) fn refuse_decoded_escapes(&mut self, key: Key, at: Range<usize>) {
        let written = self.text().get(at.clone()).unwrap_or_default();
        let Some(text) = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return };
        // A pair of backslashes is one backslash of the name.
        if matches!(key, Key::Unit | Key::Cgroup) && text.replace("\\\\", "").contains("\\x") {
            let text = clean(text);
            self.error(at, format!("{key}: TOML decodes \\x in double quotes: write single quotes, as in '{text}'"));
        }
    }

    fn each<T>(
        &mut self,
        words: Vec<(Range<usize>, &str)>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let mut all = Vec::with_capacity(words.len());
        for (at, word) in &words {
            match read(word) {
                Ok(read) => all.push(read),
                Err(what) => self.error(at.clone(), what),
            }
        }
        (all.len() == words.len()).then_some(all)
    }

    /// Reads the settings of a rule, or the expected settings of a case.
    pub(crate) fn settings(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Vec<Setting>> {
        let table = self.sub_table(value, "set", &SettingKind::ALL.map(SettingKind::name))?;
        let mut settings = Vec::new();
        for kind in SettingKind::ALL {
            let Some(value) = table.get(kind.name()) else { continue };
            match Setting::read(kind, &value_of(value.get_ref())) {
                Ok(setting) => settings.push(setting),
                Err(what) => self.error(value.span(), format!("{}: {what}", kind.name())),
            }
        }
        Some(settings)
    }
}

fn state(word: &str) -> Result<State, String> {
    State::from_name(word).ok_or_else(|| {
        let known = State::ALL.map(State::name).join(", ");
        format!("there is no state '{}': choose among {known}", clean(word))
    })
}

/// Maximum length of a file name, in bytes (NAME_MAX in limits.h).
const MAX_NAME: usize = 255;

/// Explains why a pattern can match no value of this key.
fn never_fits(key: Key, text: &str) -> Option<&'static str> {
    match key {
        Key::Name if text.contains(['/', '\\']) => {
            Some("a name has no folder: write only the part after the last / or \\, or match exe")
        }
        Key::Name if text.bytes().filter(|&byte| byte != b'*').count() > MAX_NAME => {
            Some("a file's name has at most 255 bytes")
        }
        Key::Unit if text.contains('/') => {
            Some("a unit is one part of a control group's path: to match the whole path, use cgroup")
        }
        _ => None,
    }
}

fn pattern(key: Key, text: &str) -> Result<Pattern, String> {
    let case = letter_case(key);
    let pattern = Pattern::new(text, case).map_err(|what| format!("{key}: {what}"))?;
    // Refuse such a pattern, because it would never match and the user would not learn why.
    if matches!(key, Key::Exe | Key::Cgroup) && !text.starts_with(['/', '*', '?']) {
        let text = clean(text);
        return Err(format!("{key} is an absolute path, but '{text}' does not start with / or *: write \"*/{text}\""));
    }
    match never_fits(key, text) {
        Some(why) => Err(format!("{key}: '{}' never matches: {why}", clean(text))),
        None => Ok(pattern),
    }
}
