//! Rules and facts: what is set for a client, by which rule, and why the others are not about it.
//!
//! [`RuleSet::evaluate`] gives each rule a verdict. What is set follows from the verdicts alone (for each setting the last
//! match wins), and so does the explanation, so that the two cannot differ. It is total and deterministic: no clock, no I/O,
//! no order but that of the rules.
//!
//! Most rules name programs, so most are found by the last part of a name, in a map; the verdict of all that were not found
//! is known without a look at their patterns.

use crate::facts::{ClientFacts, Key};
use crate::pattern::{Case, Pattern, end};
use crate::rule::{Condition, Rule};
use crate::setting::{Setting, SettingKind};
use std::collections::HashMap;

/// Keys that rules are found by; the first that a rule has.
const GATES: [Key; 5] = [Key::Exe, Key::Name, Key::Class, Key::Unit, Key::User];

/// Rules in their order, ready to be asked.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// The key that each rule is found by.
    gates: Vec<Option<Key>>,
    /// Of each gate: the rules by the end of what they name.
    found_by: HashMap<Key, HashMap<String, Vec<usize>>>,
    /// Those that no gate finds.
    always: Vec<usize>,
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
        let mut set = RuleSet::default();
        for (at, rule) in rules.iter().enumerate() {
            let gate = gate_of(rule);
            set.gates.push(gate.as_ref().map(|(key, _)| *key));
            match gate {
                None => set.always.push(at),
                Some((key, ends)) => {
                    let found = set.found_by.entry(key).or_default();
                    ends.into_iter().for_each(|end| found.entry(end).or_default().push(at));
                }
            }
        }
        RuleSet { rules, ..set }
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The verdict of each rule.
    pub fn evaluate<'a>(&'a self, facts: &'a ClientFacts) -> Evaluation<'a> {
        let unfound = Key::ALL.map(|key| match facts.texts(key) {
            None => Verdict::Unknown(key),
            Some(_) => Verdict::Differs(key),
        });
        let verdicts =
            self.gates.iter().map(|gate| gate.map_or(Verdict::Matched, |key| unfound[key as usize])).collect();
        let mut evaluation = Evaluation { rules: &self.rules, facts, verdicts, pattern_matches: 0 };
        for at in self.always.iter().copied().chain(self.found(facts)) {
            evaluation.verdicts[at] = evaluation.judge(&self.rules[at]);
        }
        evaluation
    }

    /// The rules that these facts are the gate of; one may come twice.
    fn found<'a>(&'a self, facts: &'a ClientFacts) -> impl Iterator<Item = usize> + 'a {
        self.found_by.iter().flat_map(move |(&key, by_end)| {
            let texts = facts.texts(key).unwrap_or_default().iter();
            texts.filter_map(move |text| by_end.get(&end(text, case(key)))).flatten().copied()
        })
    }
}

/// The key that a rule can be found by, and the ends of what it names.
fn gate_of(rule: &Rule) -> Option<(Key, Vec<String>)> {
    GATES.into_iter().find_map(|gate| {
        let patterns = rule.matcher.conditions.iter().find_map(|condition| match condition {
            Condition::Text(key, patterns) if *key == gate => Some(patterns),
            _ => None,
        })?;
        let mut ends: Vec<String> = patterns.iter().map(Pattern::end).collect::<Option<_>>()?;
        ends.sort();
        ends.dedup();
        Some((gate, ends))
    })
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
            Verdict::Matched => "matched".to_owned(),
            Verdict::Differs(key) => self.differs(key, conditions),
            Verdict::Unknown(key) => format!("{key} is not known"),
            Verdict::Excluded(at) => {
                let held: Vec<_> = rule.matcher.exclusions[at].iter().map(|one| self.holds(one)).collect();
                format!("not: {}", held.join(" and "))
            }
            Verdict::PerhapsExcluded(_, key) => format!("not: {key} is not known, so it may be excluded"),
        }
    }

    /// How many times a pattern was held against a fact.
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

    fn judge(&mut self, rule: &Rule) -> Verdict {
        match self.all_of(&rule.matcher.conditions) {
            Truth::No(key) => return Verdict::Differs(key),
            Truth::Unknown(key) => return Verdict::Unknown(key),
            Truth::Yes => {}
        }
        let mut perhaps = None;
        for (at, conditions) in rule.matcher.exclusions.iter().enumerate() {
            match self.all_of(conditions) {
                Truth::Yes => return Verdict::Excluded(at),
                Truth::Unknown(key) => perhaps = perhaps.or(Some(Verdict::PerhapsExcluded(at, key))),
                Truth::No(_) => {}
            }
        }
        perhaps.unwrap_or(Verdict::Matched)
    }

    /// The first that does not hold, else the first that is not known.
    fn all_of(&mut self, conditions: &[Condition]) -> Truth {
        let mut all = Truth::Yes;
        for condition in conditions {
            match self.one(condition) {
                Some(true) => {}
                Some(false) => return Truth::No(condition.key()),
                None if all == Truth::Yes => all = Truth::Unknown(condition.key()),
                None => {}
            }
        }
        all
    }

    /// `None`: not known.
    fn one(&mut self, condition: &Condition) -> Option<bool> {
        match condition {
            Condition::Text(key, patterns) => {
                let texts = self.facts.texts(*key)?;
                Some(texts.iter().any(|text| self.any_fits(patterns, text)))
            }
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

    fn any_fits(&mut self, patterns: &[Pattern], text: &str) -> bool {
        patterns.iter().any(|pattern| {
            self.pattern_matches += 1;
            pattern.matches(text)
        })
    }
}

/// Whether conditions hold together, and which decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Yes,
    No(Key),
    Unknown(Key),
}
