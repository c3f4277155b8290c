// SPDX-License-Identifier: MIT
//! Rules and facts: what is set for a client, by which rule, and why the others are not about it.
//!
//! [`RuleSet::evaluate`] gives each rule a verdict. What is set follows from the verdicts alone (for each setting the last
//! match wins), and so does the explanation, so that the two cannot differ. It is total and deterministic: no clock, no I/O,
//! no order but that of the rules.
//!
//! Each rule is tried in turn, up to its first key that differs. A client is evaluated when it connects and when its facts
//! change, and a thousand rules with wildcards take a fraction of a millisecond.

use crate::facts::{ClientFacts, Key};
use crate::pattern::Case;
use crate::rule::{Condition, Rule};
use crate::setting::{Setting, SettingKind};

/// Rules in their order, ready to be asked.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
}

/// What a rule comes to for one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Matched,
    /// This key is something else.
    Differs(Key),
    /// What this key asks for is not known.
    Unknown(Key),
    /// This exclusion holds.
    Excluded(usize),
    /// This exclusion may hold: what this key asks for is not known.
    PerhapsExcluded(usize, Key),
}

/// The verdicts of all rules about one client.
#[derive(Debug)]
pub struct Evaluation<'a> {
    rules: &'a [Rule],
    facts: &'a ClientFacts,
    verdicts: Vec<Verdict>,
}

/// A setting, and the rule that it is from.
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

    /// The verdict of each rule.
    pub fn evaluate<'a>(&'a self, facts: &'a ClientFacts) -> Evaluation<'a> {
        Evaluation { rules: &self.rules, facts, verdicts: self.rules.iter().map(|rule| judge(facts, rule)).collect() }
    }
}

/// Whether case counts in the patterns of a key.
pub fn case(key: Key) -> Case {
    if matches!(key, Key::Class | Key::Host) { Case::Ignored } else { Case::Counts }
}

impl<'a> Evaluation<'a> {
    /// Each rule with its verdict, in their order.
    pub fn verdicts(&self) -> impl Iterator<Item = (&'a Rule, Verdict)> + '_ {
        self.rules.iter().zip(self.verdicts.iter().copied())
    }

    /// For each setting the value of the last rule that matched and has one.
    pub fn chosen(&self) -> Vec<Chosen<'a>> {
        let mut last: [Option<Chosen<'a>>; SettingKind::ALL.len()] = [None; SettingKind::ALL.len()];
        for (rule, _) in self.verdicts().filter(|(_, verdict)| *verdict == Verdict::Matched) {
            for setting in &rule.settings {
                last[setting.kind() as usize] = Some(Chosen { setting, rule });
            }
        }
        last.into_iter().flatten().collect()
    }

    /// What is to be done: what was chosen, or nothing where the client is to be left alone.
    pub fn applied(&self) -> Vec<Chosen<'a>> {
        let chosen = self.chosen();
        let is_ignored = chosen.iter().any(|chosen| *chosen.setting == Setting::Ignore(true));
        if is_ignored { Vec::new() } else { chosen }
    }

    /// Whether a rule matched, or else the key that failed and the fact that it met, in a sentence.
    pub fn told(&self, rule: &Rule, verdict: Verdict) -> String {
        let conditions = &rule.matcher.conditions;
        match verdict {
            Verdict::Matched => self.overruled(rule),
            Verdict::Differs(key) => self.differs(key, conditions),
            Verdict::Unknown(key) => format!("{key} is not known"),
            Verdict::Excluded(at) => {
                let held: Vec<_> = rule.matcher.exclusions[at].iter().map(|one| self.holds(one)).collect();
                format!("not: {}", held.join(" and "))
            }
            Verdict::PerhapsExcluded(_, key) => format!("not: {key} is not known, so it may be excluded"),
        }
    }

    /// That it matched, and which of its settings a later rule has replaced.
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
        let fact = self.facts.shown(key).unwrap_or_else(|| "not known".to_owned());
        let wanted = conditions.iter().find(|condition| condition.key() == key);
        format!("{key} is {fact}, not {}", wanted.map(ToString::to_string).unwrap_or_default())
    }

    fn holds(&self, condition: &Condition) -> String {
        let key = condition.key();
        format!("{key} is {}", self.facts.shown(key).unwrap_or_else(|| "not known".to_owned()))
    }
}

fn judge(facts: &ClientFacts, rule: &Rule) -> Verdict {
    match all_of(facts, &rule.matcher.conditions) {
        Truth::No(key) => return Verdict::Differs(key),
        Truth::Unknown(key) => return Verdict::Unknown(key),
        Truth::Yes => {}
    }
    let mut perhaps = None;
    for (at, conditions) in rule.matcher.exclusions.iter().enumerate() {
        match all_of(facts, conditions) {
            Truth::Yes => return Verdict::Excluded(at),
            Truth::Unknown(key) => perhaps = perhaps.or(Some(Verdict::PerhapsExcluded(at, key))),
            Truth::No(_) => {}
        }
    }
    perhaps.unwrap_or(Verdict::Matched)
}

/// The first that does not hold, else the first that is not known.
fn all_of(facts: &ClientFacts, conditions: &[Condition]) -> Truth {
    let mut all = Truth::Yes;
    for condition in conditions {
        match holds(facts, condition) {
            Some(true) => {}
            Some(false) => return Truth::No(condition.key()),
            None if all == Truth::Yes => all = Truth::Unknown(condition.key()),
            None => {}
        }
    }
    all
}

/// `None`: not known.
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

/// Whether conditions hold together, and which decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Yes,
    No(Key),
    Unknown(Key),
}
