// SPDX-License-Identifier: MIT
//! Rules and facts: what is set for a client, by which rule, and why the others are not about it.
//!
//! [`RuleSet::evaluate`] gives each rule a verdict. What is set follows from the verdicts alone (for each setting the last
//! match wins), and so does the explanation, so that the two cannot differ. It is total and deterministic: no clock, no I/O,
//! no order but that of the rules.
//!
//! Which patterns fit is found once for each fact, by [`index`](crate::index). A rule whose first key then differs, as most do,
//! is not looked at any further.

use crate::facts::{ClientFacts, Key};
use crate::index::Index;
use crate::pattern::{Case, Pattern};
use crate::rule::{Condition, Rule};
use crate::setting::{Setting, SettingKind};

/// Rules in their order, ready to be asked. Their conditions are numbered through, those of exclusions after the others.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// The number of each rule's first condition.
    first: Vec<usize>,
    /// Its key, where that is one of texts.
    first_key: Vec<Option<Key>>,
    conditions: usize,
    /// The patterns of each key, with the conditions that they are of.
    indices: Vec<(Key, Index)>,
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
    pattern_matches: usize,
}

/// A setting, and the rule that it is from.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    pub setting: &'a Setting,
    pub rule: &'a Rule,
}

impl RuleSet {
    pub fn new(rules: Vec<Rule>) -> RuleSet {
        let (mut first, mut first_key, mut conditions) = (Vec::new(), Vec::new(), 0);
        let mut patterns: Vec<(Key, &Pattern, usize)> = Vec::new();
        for rule in &rules {
            first.push(conditions);
            first_key.push(rule.matcher.conditions.first().and_then(text_key));
            for condition in rule.matcher.conditions.iter().chain(rule.matcher.exclusions.iter().flatten()) {
                if let Condition::Text(key, any) = condition {
                    patterns.extend(any.iter().map(|pattern| (*key, pattern, conditions)));
                }
                conditions += 1;
            }
        }
        let of =
            |key| patterns.iter().filter(move |(of, ..)| *of == key).map(|&(_, pattern, number)| (pattern, number));
        let used = Key::ALL.into_iter().filter(|&key| of(key).next().is_some());
        let indices = used.map(|key| (key, Index::new(of(key)))).collect();
        RuleSet { first, first_key, conditions, indices, rules }
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The verdict of each rule.
    pub fn evaluate<'a>(&'a self, facts: &'a ClientFacts) -> Evaluation<'a> {
        let mut fits = vec![false; self.conditions];
        let mut pattern_matches = 0;
        for (key, index) in &self.indices {
            for text in facts.texts(*key).unwrap_or_default() {
                pattern_matches += index.find(text, |condition| fits[condition] = true);
            }
        }
        let differs = Key::ALL.map(|key| match facts.texts(key) {
            None => Verdict::Unknown(key),
            Some(_) => Verdict::Differs(key),
        });
        let heads = self.first.iter().zip(&self.first_key).zip(&self.rules);
        let verdicts = heads.map(|((&first, key), rule)| match key {
            Some(key) if !fits[first] => differs[*key as usize],
            _ => Judge { facts, fits: &fits[first..] }.of(rule),
        });
        Evaluation { rules: &self.rules, facts, verdicts: verdicts.collect(), pattern_matches }
    }
}

fn text_key(condition: &Condition) -> Option<Key> {
    match condition {
        Condition::Text(key, _) => Some(*key),
        Condition::Local(_) | Condition::State(_) => None,
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

    /// How many times a pattern was tried on a fact.
    pub fn pattern_matches(&self) -> usize {
        self.pattern_matches
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

/// Judges one rule.
struct Judge<'a> {
    facts: &'a ClientFacts,
    /// Whether a pattern of each of its conditions fits.
    fits: &'a [bool],
}

impl Judge<'_> {
    fn of(&self, rule: &Rule) -> Verdict {
        match self.all_of(&rule.matcher.conditions, 0) {
            Truth::No(key) => return Verdict::Differs(key),
            Truth::Unknown(key) => return Verdict::Unknown(key),
            Truth::Yes => {}
        }
        let (mut first, mut perhaps) = (rule.matcher.conditions.len(), None);
        for (at, conditions) in rule.matcher.exclusions.iter().enumerate() {
            match self.all_of(conditions, first) {
                Truth::Yes => return Verdict::Excluded(at),
                Truth::Unknown(key) => perhaps = perhaps.or(Some(Verdict::PerhapsExcluded(at, key))),
                Truth::No(_) => {}
            }
            first += conditions.len();
        }
        perhaps.unwrap_or(Verdict::Matched)
    }

    /// The first that does not hold, else the first that is not known. `first`: the number of the first condition.
    fn all_of(&self, conditions: &[Condition], first: usize) -> Truth {
        let mut all = Truth::Yes;
        for (condition, number) in conditions.iter().zip(first..) {
            match self.one(condition, number) {
                Some(true) => {}
                Some(false) => return Truth::No(condition.key()),
                None if all == Truth::Yes => all = Truth::Unknown(condition.key()),
                None => {}
            }
        }
        all
    }

    /// `None`: not known.
    fn one(&self, condition: &Condition, number: usize) -> Option<bool> {
        match condition {
            Condition::Text(key, _) => self.facts.texts(*key).map(|_| self.fits[number]),
            Condition::Local(local) => self.facts.local.map(|is_local| is_local == *local),
            Condition::State(states) => {
                let mut known = states.iter().map(|&state| self.facts.states.get(state));
                match known.clone().any(|holds| holds == Some(true)) {
                    true => Some(true),
                    false => known.all(|holds| holds.is_some()).then_some(false),
                }
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
