// SPDX-License-Identifier: MIT
//! Evaluates rules against the facts of a client: which settings apply, from which rule, and why other rules did not
//! match.
//!
//! [`RuleSet::evaluate`] gives each rule a verdict. The settings (for each setting, the last match wins) and the
//! explanation are both derived only from the verdicts, so they cannot disagree. Evaluation is total and deterministic:
//! it uses no clock and no I/O, and depends on no order except that of the rules.
//!
//! Each rule is tried in turn, up to the first key that does not match. A client is evaluated when it connects and when
//! its facts change. A thousand rules with wildcards take a fraction of a millisecond.

use crate::facts::{ClientFacts, Key};
use crate::pattern::LetterCase;
use crate::rule::{Condition, Rule};
use crate::setting::{Setting, SettingKind};

/// Rules in the order in which they are evaluated.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleMatch {
    Matched,
    /// The client has another value for this key.
    Differs(Key),
    /// The fact that this key needs is unknown.
    Unknown(Key),
    /// The exclusion with this index applies.
    Excluded(usize),
    /// The exclusion with this index may apply: the fact that this key needs is unknown.
    PerhapsExcluded(usize, Key),
}

#[derive(Debug)]
pub struct Evaluation<'a> {
    rules: &'a [Rule],
    facts: &'a ClientFacts,
    verdicts: Vec<RuleMatch>,
}

#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    pub setting: &'a Setting,
    pub rule: &'a Rule,
}

impl RuleSet {
    pub fn new(rules: Vec<Rule>) -> RuleSet {
        RuleSet { rules }
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub fn evaluate<'a>(&'a self, facts: &'a ClientFacts) -> Evaluation<'a> {
        Evaluation { rules: &self.rules, facts, verdicts: self.rules.iter().map(|rule| judge(facts, rule)).collect() }
    }
}

/// Case sensitivity of a key's patterns.
pub fn letter_case(key: Key) -> LetterCase {
    if matches!(key, Key::Class | Key::Host) { LetterCase::Ignored } else { LetterCase::Sensitive }
}

impl<'a> Evaluation<'a> {
    /// All rules with their verdicts, in order.
    pub fn verdicts(&self) -> impl Iterator<Item = (&'a Rule, RuleMatch)> + '_ {
        self.rules.iter().zip(self.verdicts.iter().copied())
    }

    /// The value of each setting, from the last matching rule that sets it.
    pub fn chosen(&self) -> Vec<Chosen<'a>> {
        let mut last: [Option<Chosen<'a>>; SettingKind::ALL.len()] = [None; SettingKind::ALL.len()];
        for (rule, _) in self.verdicts().filter(|(_, verdict)| *verdict == RuleMatch::Matched) {
            for setting in &rule.settings {
                last[setting.kind() as usize] = Some(Chosen { setting, rule });
            }
        }
        last.into_iter().flatten().collect()
    }

    /// The settings to apply: those of [`Evaluation::chosen`], or none if the client is to be ignored.
    pub fn applied(&self) -> Vec<Chosen<'a>> {
        let chosen = self.chosen();
        let is_ignored = chosen.iter().any(|chosen| *chosen.setting == Setting::Ignore(true));
        if is_ignored { Vec::new() } else { chosen }
    }

    /// Explains a verdict in one sentence. If a rule did not match, names the key that failed and the client's fact.
    pub fn explain(&self, rule: &Rule, verdict: RuleMatch) -> String {
        let conditions = &rule.matcher.conditions;
        match verdict {
            RuleMatch::Matched => self.overruled(rule),
            RuleMatch::Differs(key) => self.differs(key, conditions),
            RuleMatch::Unknown(key) => format!("{key} is not known"),
            RuleMatch::Excluded(at) => {
                let held: Vec<_> = rule.matcher.exclusions[at].iter().map(|one| self.holds(one)).collect();
                format!("excluded: {}", held.join(" and "))
            }
            RuleMatch::PerhapsExcluded(_, key) => format!("may be excluded: {key} is not known"),
        }
    }

    /// States that the rule matched, and which of its settings later rules override.
    fn overruled(&self, rule: &Rule) -> String {
        let is_another = |chosen: &&Chosen<'a>| {
            let has = rule.settings.iter().any(|setting| setting.kind() == chosen.setting.kind());
            has && !std::ptr::eq(chosen.rule, rule)
        };
        let lost = self.chosen();
        let lost = lost.iter().filter(is_another).map(|chosen| {
            let (kind, by) = (chosen.setting.kind().name(), chosen.rule);
            format!("; its {kind} is overruled by '{}' ({})", by.id, by.place)
        });
        std::iter::once("matched".to_owned()).chain(lost).collect()
    }

    fn differs(&self, key: Key, conditions: &[Condition]) -> String {
        let fact = self.facts.describe(key).unwrap_or_else(|| "not known".to_owned());
        let wanted = conditions.iter().find(|condition| condition.key() == key);
        format!("{key} is {fact}, not {}", wanted.map(ToString::to_string).unwrap_or_default())
    }

    fn holds(&self, condition: &Condition) -> String {
        let key = condition.key();
        format!("{key} is {}", self.facts.describe(key).unwrap_or_else(|| "not known".to_owned()))
    }
}

fn judge(facts: &ClientFacts, rule: &Rule) -> RuleMatch {
    match failing(facts, &rule.matcher.conditions) {
        Some((key, Some(_))) => return RuleMatch::Differs(key),
        Some((key, None)) => return RuleMatch::Unknown(key),
        None => {}
    }
    let mut perhaps = None;
    for (at, conditions) in rule.matcher.exclusions.iter().enumerate() {
        match failing(facts, conditions) {
            None => return RuleMatch::Excluded(at),
            Some((key, None)) => perhaps = perhaps.or(Some(RuleMatch::PerhapsExcluded(at, key))),
            Some(_) => {}
        }
    }
    perhaps.unwrap_or(RuleMatch::Matched)
}

/// The key of the first condition that does not hold (`Some(false)`), or else of the first unknown one (`None`).
fn failing(facts: &ClientFacts, conditions: &[Condition]) -> Option<(Key, Option<bool>)> {
    let mut unknown = None;
    for condition in conditions {
        match (condition.key(), holds(facts, condition)) {
            (_, Some(true)) => {}
            (key, Some(false)) => return Some((key, Some(false))),
            (key, None) => unknown = unknown.or(Some((key, None))),
        }
    }
    unknown
}

/// Returns true if the condition holds; `None` if that is unknown.
fn holds(facts: &ClientFacts, condition: &Condition) -> Option<bool> {
    match condition {
        Condition::Text(key, any) => {
            facts.texts(*key).map(|texts| texts.iter().any(|text| any.iter().any(|pattern| pattern.matches(text))))
        }
        Condition::Local(local) => facts.local.map(|is_local| is_local == *local),
        Condition::State(states) => {
            let mut known = states.iter().map(|&state| facts.states.get(state));
            match known.clone().any(|holds| holds == Some(true)) {
                true => Some(true),
                false => known.all(|holds| holds.is_some()).then_some(false),
            }
        }
    }
}
