// SPDX-License-Identifier: MIT
//! Reads random bytes as a rule file and as a file of expectations. Facts for the rules come from the same bytes.
//!
//! Nothing may panic or hang. Settings come only from matching rules, and explanations agree with the settings.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xqos_rules::decide::{RuleMatch, RuleSet};
use xqos_rules::expect;
use xqos_rules::facts::{ClientFacts, State, States};
use xqos_rules::read::{self, Scope};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(expectations) = expect::file("fuzz", &text) {
        let rules = RuleSet::new(expectations.rules);
        expectations.cases.iter().for_each(|case| drop(case.differences(&rules)));
    }
    match read::file("fuzz", &text, Scope::System) {
        Ok(file) => ask(&RuleSet::new(file.rules), &text),
        Err(mistakes) => assert!(!mistakes.is_empty() && mistakes.iter().all(|mistake| !mistake.to_string().is_empty())),
    }
});

/// Evaluates the rules for one client per quoted part of the text; each fact of the client has that part as its value.
fn ask(rules: &RuleSet, text: &str) {
    for part in text.split('"').take(50) {
        let one = || Some(part.to_owned());
        let facts = ClientFacts {
            exe: one(),
            name: one(),
            class: Some(vec![part.to_owned()]),
            user: Some(vec![part.to_owned()]),
            unit: one(),
            cgroup: one(),
            host: one(),
            local: Some(part.len() % 2 == 0),
            states: States::only(&[State::Active]),
        };
        let evaluation = rules.evaluate(&facts);
        let chosen = evaluation.chosen();
        for (rule, verdict) in evaluation.verdicts() {
            assert_eq!(evaluation.explain(rule, verdict).starts_with("matched"), verdict == RuleMatch::Matched);
            let is_source = chosen.iter().any(|chosen| std::ptr::eq(chosen.rule, rule));
            assert!(!is_source || verdict == RuleMatch::Matched);
        }
    }
}
