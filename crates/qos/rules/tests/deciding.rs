// SPDX-License-Identifier: MIT
//! Evaluates rules: random rules against a reference, and the time for many rules.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use xqos_rules::decide::{RuleMatch, RuleSet};
use xqos_rules::facts::{ClientFacts, Key, State, States};
use xqos_rules::pattern::Pattern;
use xqos_rules::read::{self, Scope};
use xqos_rules::rule::{Condition, Rule};

const KEYS: [Key; 7] = [Key::Exe, Key::Name, Key::Class, Key::User, Key::Unit, Key::Cgroup, Key::Host];
/// Only a few different words, so that patterns often match.
const FACTS: [&str; 5] = ["/usr/bin/mpv", "/opt/mpv", "/usr/bin/Xterm", "mpv", "xterm"];
const PATTERNS: [&str; 8] = ["*/mpv", "/usr/bin/mpv", "*", "*m*", "/*/XTERM", "*/m?v", "/opt/mpv*", "?usr*/xterm"];
const STATES: [&str; 4] = ["active", "fullscreen", "iconic", "unwatched"];
const SETS: [&str; 5] = ["weight = 3", "reserve = \"auto\"", "max = \"5%\"", "ignore = true", "priority = 1"];

fn list(words: &[&str]) -> String {
    format!("[{}]", words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", "))
}

/// For names and units, keeps only the part of a pattern after the last slash, because slashes would be refused.
fn that_may_match(key: Key, words: &[&'static str]) -> Vec<&'static str> {
    let is_path = !matches!(key, Key::Name | Key::Unit);
    words.iter().map(|word| if is_path { word } else { word.rsplit('/').next().unwrap_or(word) }).collect()
}

/// The conditions of a match: a few keys with a few words each.
fn conditions() -> impl Strategy<Value = String> {
    let texts = proptest::collection::btree_map(
        proptest::sample::select(&KEYS[..]),
        proptest::sample::subsequence(&PATTERNS[..], 1..4),
        0..3,
    );
    let local = proptest::option::weighted(0.2, any::<bool>());
    let states = proptest::sample::subsequence(&STATES[..], 0..3);
    (texts, local, states).prop_map(|(texts, local, states)| {
        let of = |(key, words): (&Key, &Vec<&'static str>)| format!("{key} = {}", list(&that_may_match(*key, words)));
        let mut parts: Vec<String> = texts.iter().map(of).collect();
        parts.extend(local.map(|local| format!("local = {local}")));
        if !states.is_empty() {
            parts.push(format!("state = {}", list(&states)));
        }
        parts.join(", ")
    })
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let not = proptest::collection::vec(conditions().prop_filter("excludes no client", |one| !one.is_empty()), 0..2);
    let sets = proptest::sample::subsequence(&SETS[..], 1..4);
    let rule =
        (conditions(), not, sets).prop_filter("matches no client", |(all, not, _)| !(all.is_empty() && not.is_empty()));
    proptest::collection::vec(rule, 0..12).prop_map(|rules| {
        let mut text = "version = 1\n".to_owned();
        for (at, (all, not, sets)) in rules.iter().enumerate() {
            let not = not.iter().map(|one| format!("{{ {one} }}")).collect::<Vec<_>>().join(", ");
            let all = if all.is_empty() { String::new() } else { format!("{all}, ") };
            text += &format!("[[rule]]\nid = \"r{at}\"\nmatch = {{ {all}not = [{not}] }}\n");
            text += &format!("set = {{ {} }}\n", sets.join(", "));
        }
        read::file("random.toml", &text, Scope::System).unwrap_or_else(|told| panic!("{told:?}\n{text}")).rules
    })
}

fn facts() -> impl Strategy<Value = ClientFacts> {
    let one = || proptest::option::weighted(0.8, proptest::sample::select(&FACTS[..]).prop_map(str::to_owned));
    let some = || {
        proptest::option::weighted(
            0.8,
            proptest::collection::vec(proptest::sample::select(&FACTS[..]).prop_map(str::to_owned), 0..3),
        )
    };
    let states = proptest::collection::vec(any::<Option<bool>>(), 4);
    let local = any::<Option<bool>>();
    (one(), one(), some(), some(), one(), one(), one(), local, states).prop_map(
        |(exe, name, class, user, unit, cgroup, host, local, known)| {
            let mut states = States::default();
            for (state, holds) in State::ALL.into_iter().zip(known) {
                holds.into_iter().for_each(|holds| states.set(state, holds));
            }
            ClientFacts { exe, name, class, user, unit, cgroup, host, local, states }
        },
    )
}

/// The reference implementation, written from the documentation. `None` means unknown.
fn holds(conditions: &[Condition], facts: &ClientFacts) -> Option<bool> {
    let each: Vec<Option<bool>> = conditions.iter().map(|condition| holds_one(condition, facts)).collect();
    match (each.contains(&Some(false)), each.contains(&None)) {
        (true, _) => Some(false),
        (false, true) => None,
        (false, false) => Some(true),
    }
}

fn holds_one(condition: &Condition, facts: &ClientFacts) -> Option<bool> {
    match condition {
        Condition::Text(key, patterns) => {
            let fits = |text: &String| patterns.iter().any(|pattern: &Pattern| pattern.matches(text));
            Some(facts.texts(*key)?.iter().any(fits))
        }
        Condition::Local(local) => Some(facts.local? == *local),
        Condition::State(states) => {
            let each: Vec<_> = states.iter().map(|&state| facts.states.get(state)).collect();
            if each.contains(&Some(true)) { Some(true) } else { (!each.contains(&None)).then_some(false) }
        }
    }
}

fn matches(rule: &Rule, facts: &ClientFacts) -> bool {
    let mut exclusions = rule.matcher.exclusions.iter();
    holds(&rule.matcher.conditions, facts) == Some(true) && exclusions.all(|one| holds(one, facts) == Some(false))
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(xqos_testkit::seed()), ..ProptestConfig::with_cases(300) })]

    #[test]
    fn random_rules_agree_with_the_reference(rules in rules(), facts in facts()) {
        let set = RuleSet::new(rules.clone());
        let evaluation = set.evaluate(&facts);
        let matched: Vec<_> = rules.iter().filter(|rule| matches(rule, &facts)).map(|rule| rule.id.clone()).collect();
        let verdicts: Vec<_> = evaluation.verdicts().collect();
        let applied = verdicts.iter().filter(|(_, verdict)| *verdict == RuleMatch::Matched);
        let found: Vec<_> = applied.map(|(rule, _)| rule.id.clone()).collect();
        prop_assert_eq!(&found, &matched);
        // The explanation names the rules that make the settings, and gives a true reason for every other rule.
        for (rule, verdict) in &verdicts {
            let told = evaluation.explain(rule, *verdict);
            prop_assert_eq!(told.starts_with("matched"), matched.contains(&rule.id), "{}", told);
        }
        for chosen in evaluation.chosen() {
            let kind = chosen.setting.kind();
            let mut of_kind = rules.iter().filter(|rule| matches(rule, &facts) && rule.settings.iter().any(|one| one.kind() == kind));
            prop_assert_eq!(&chosen.rule.id, &of_kind.next_back().unwrap().id);
        }
        // A second evaluation, with a new set of the same rules, gives the same verdicts.
        let again = RuleSet::new(rules);
        prop_assert_eq!(set.evaluate(&facts).verdicts().map(|(_, verdict)| verdict).collect::<Vec<_>>(),
            again.evaluate(&facts).verdicts().map(|(_, verdict)| verdict).collect::<Vec<_>>());
    }

    #[test]
    fn a_verdict_names_a_key_that_fails(rules in rules(), facts in facts()) {
        let set = RuleSet::new(rules);
        for (rule, verdict) in set.evaluate(&facts).verdicts() {
            let of = |key: Key| rule.matcher.conditions.iter().find(|one| one.key() == key).map(|one| holds_one(one, &facts));
            match verdict {
                RuleMatch::Matched => {}
                RuleMatch::Differs(key) => prop_assert_eq!(of(key), Some(Some(false))),
                RuleMatch::Unknown(key) => prop_assert_eq!(of(key), Some(None)),
                RuleMatch::Excluded(at) => prop_assert_eq!(holds(&rule.matcher.exclusions[at], &facts), Some(true)),
                RuleMatch::PerhapsExcluded(at, _) => prop_assert_eq!(holds(&rule.matcher.exclusions[at], &facts), None),
            }
        }
    }
}

fn set_of(rules: impl Iterator<Item = String>) -> RuleSet {
    let text: String = rules.collect();
    RuleSet::new(read::file("many.toml", &format!("version = 1\n{text}"), Scope::System).unwrap().rules)
}

fn programs(count: usize) -> impl Iterator<Item = ClientFacts> {
    (0..count).map(|at| ClientFacts {
        exe: Some(format!("/usr/bin/program{at}")),
        name: Some(format!("program{at}")),
        class: Some(vec![format!("program{at}"), format!("Program{at}")]),
        local: Some(true),
        ..ClientFacts::default()
    })
}

/// A thousand rules with wildcards and similar patterns.
fn wildcards() -> RuleSet {
    set_of((0..1000).map(|at| {
        let key = match at % 5 {
            0 => format!("class = \"*rogram{at}\", not = {{ host = \"10.*.0.{at}\" }}"),
            1 => format!("name = \"program{at}*\", local = true"),
            2 => format!("exe = \"/usr/bin/p?ogram{at}\", unit = \"app-*-{at}.scope\""),
            3 => format!("exe = [\"*/program{at}\", \"/opt/*/program{at}\"]"),
            _ => format!("exe = \"/usr/*/*gram{at}\", not = {{ user = \"*{at}\" }}"),
        };
        format!("[[rule]]\nid = \"r{at}\"\nmatch = {{ {key} }}\nset = {{ weight = 2 }}\n")
    }))
}

#[test]
fn a_thousand_rules_match_five_hundred_clients_by_name_and_by_program() {
    let set = wildcards();
    let matched: usize = programs(500).map(|facts| set.evaluate(&facts).chosen().len()).sum();
    assert_eq!(matched, 308, "the others may be excluded, or their unit is not known");
}

/// Only prints times; tests never fail because of times.
#[test]
#[ignore = "a measurement: scripts/cargo test -p xqos-rules --release -- --ignored --nocapture"]
fn time_for_a_thousand_rules_and_five_hundred_clients() {
    let rules = wildcards().rules().to_vec();
    let all: Vec<ClientFacts> = programs(500).collect();
    let median = |work: &dyn Fn()| {
        let mut times: Vec<_> = (0..11)
            .map(|_| {
                let start = std::time::Instant::now();
                work();
                start.elapsed()
            })
            .collect();
        times.sort();
        times[5]
    };
    let set = RuleSet::new(rules.clone());
    println!("made ready: {:?}", median(&|| drop(RuleSet::new(rules.clone()))));
    println!("evaluated: {:?}", median(&|| all.iter().for_each(|facts| drop(set.evaluate(facts).applied()))));
}

#[test]
fn an_explanation_quotes_the_whole_fact() {
    let rule = |id: &str, key: &str| format!("[[rule]]\nid = \"{id}\"\nmatch = {{ {key} }}\nset = {{ weight = 2 }}\n");
    let set = set_of([rule("opt", "exe = \"/opt/*/program1\""), rule("usr", "exe = \"/usr/*/program1\"")].into_iter());
    let facts = programs(2).last().unwrap();
    let evaluation = set.evaluate(&facts);
    let told: Vec<String> = evaluation.verdicts().map(|(rule, verdict)| evaluation.explain(rule, verdict)).collect();
    assert_eq!(told, ["exe is /usr/bin/program1, not \"/opt/*/program1\"", "matched"]);
}

#[test]
fn the_explanation_of_an_overruled_setting_names_the_later_rule() {
    let rule = |id: &str, set: &str| format!("[[rule]]\nid = \"{id}\"\nmatch = {{ exe = \"*\" }}\nset = {{ {set} }}\n");
    let set =
        set_of([rule("a", "weight = 2, max = \"5%\""), rule("b", "weight = 2"), rule("c", "priority = 1")].into_iter());
    let facts = ClientFacts { exe: Some("/usr/bin/mpv".into()), ..ClientFacts::default() };
    let evaluation = set.evaluate(&facts);
    let told: Vec<_> = evaluation.verdicts().map(|(rule, verdict)| evaluation.explain(rule, verdict)).collect();
    assert_eq!(told, ["matched; its weight is overruled by 'b' (many.toml:6)", "matched", "matched"]);
}

#[test]
fn each_explanation_contains_the_clients_fact() {
    let rule = |id: &str, key: &str| format!("[[rule]]\nid = \"{id}\"\nmatch = {{ {key} }}\nset = {{ weight = 2 }}\n");
    let set = set_of(
        [
            rule("a", "exe = [\"*/mpv\", \"*/vlc\"]"),
            rule("b", "local = false"),
            rule("c", "state = [\"active\", \"iconic\"]"),
            rule("d", "host = \"10.*\""),
            rule("e", "local = true, not = { class = \"program*\", name = \"*\" }"),
            rule("f", "local = true, not = { user = \"root\" }"),
            rule("g", "name = \"other\""),
        ]
        .into_iter(),
    );
    let facts = ClientFacts { states: States::only(&[State::Fullscreen]), ..programs(1).next().unwrap() };
    let evaluation = set.evaluate(&facts);
    let told: Vec<String> = evaluation.verdicts().map(|(rule, verdict)| evaluation.explain(rule, verdict)).collect();
    assert_eq!(
        told,
        [
            "exe is /usr/bin/program0, not \"*/mpv\" or \"*/vlc\"",
            "local is true, not false",
            "state is fullscreen, not active or iconic",
            "host is not known",
            "excluded: name is program0 and class is program0 and Program0",
            "may be excluded: user is not known",
            "name is program0, not \"other\"",
        ]
    );
}

#[test]
fn an_ignored_client_gets_nothing_unless_a_later_rule_undoes_it() {
    let rule = |id: &str, set: &str| format!("[[rule]]\nid = \"{id}\"\nmatch = {{ exe = \"*\" }}\nset = {{ {set} }}\n");
    let facts = programs(1).next().unwrap();
    let all = [rule("a", "weight = 2"), rule("b", "ignore = true"), rule("c", "weight = 3, ignore = false")];
    for (rules, chosen, applied) in [(1, 1, 1), (2, 2, 0), (3, 2, 2)] {
        let set = set_of(all[..rules].iter().cloned());
        let evaluation = set.evaluate(&facts);
        assert_eq!((evaluation.chosen().len(), evaluation.applied().len()), (chosen, applied));
    }
}
