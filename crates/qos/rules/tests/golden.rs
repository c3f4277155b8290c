// SPDX-License-Identifier: MIT
//! The golden table (`golden.toml`), and the messages for expectations that are not met.

use xqos_rules::decide::RuleSet;
use xqos_rules::expect::{self, Expectations};
use xqos_rules::read::{self, Scope};

fn differences(expectations: Expectations) -> Vec<String> {
    let rules = RuleSet::new(expectations.rules);
    let told = expectations.cases.iter().flat_map(|case| {
        let differences = case.differences(&rules);
        differences.into_iter().map(move |difference| format!("{} {}: {difference}", case.place, case.what))
    });
    told.collect()
}

#[test]
fn the_golden_table_holds() {
    let table = expect::file("golden.toml", include_str!("golden.toml")).unwrap();
    assert_eq!(table.cases.len(), 16);
    assert_eq!(differences(table), [""; 0]);
}

/// The examples of the manual must work unchanged.
#[test]
fn the_examples_of_the_manual_work() {
    let manual = include_str!("../../../../docs/rules.md");
    let mut examples = manual.split("```toml\n").skip(1).map(|part| part.split("```").next().unwrap());
    let rules = read::file("rules.md", examples.next().unwrap(), Scope::User).unwrap().rules;
    let expectations = expect::file("rules.md", examples.next().unwrap()).unwrap();
    assert_eq!(differences(Expectations { rules, ..expectations }), [""; 0]);
    assert_eq!(examples.next(), None);
}

const RULES: &str = "\
version = 1
[[rule]]
id = \"a\"
match = { exe = \"*/a\" }
set = { weight = 2, reserve = \"auto\" }
";

fn with(case: &str) -> Result<Expectations, Vec<String>> {
    expect::file("t.toml", &format!("{RULES}{case}"))
        .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
}

#[test]
fn differences_name_the_rule_and_its_line() {
    let case =
        "[[case]]\nwhat = \"x\"\nfacts = { exe = \"/a\" }\nset = { weight = 3, reserve = \"auto\" }\nby = \"b\"\n";
    let expected = [
        "t.toml:6 x: weight = 3 is missing",
        "t.toml:6 x: weight = 2 is set by 'a' (t.toml:2)",
        "t.toml:6 x: the settings come from 'a', but 'b' is expected",
    ];
    assert_eq!(differences(with(case).unwrap()), expected);
}

#[test]
fn mistakes_in_expectations_are_reported_with_lines() {
    let case = |inside: &str| with(&format!("[[case]]\nwhat = \"x\"\n{inside}\n")).unwrap_err();
    for (told, words) in [
        (with("").unwrap_err(), "t.toml: it contains no case: write [[case]]"),
        (case("fact = {}\nset = {}"), "t.toml:8: a case has no key 'fact': did you mean 'facts'?"),
        (case("facts = { exee = \"/a\" }\nset = {}"), "t.toml:8: facts has no key 'exee': did you mean 'exe'?"),
        (case("facts = { exe = [\"/a\"] }\nset = {}"), "t.toml:8: exe is a text in quotes"),
        (case("facts = { local = 1 }\nset = {}"), "t.toml:8: local is true or false"),
        (case("facts = { unit = \"a\\x2db\" }\nset = {}"), "t.toml:8: unit: TOML decodes \\x in double quotes"),
        (
            case("facts = { state = \"activ\" }\nset = {}"),
            "t.toml:8: there is no state 'activ': did you mean 'active'?",
        ),
        (case("facts = {}\nset = { wait = 2 }"), "t.toml:9: set has no key 'wait'"),
        (case("facts = {}"), "t.toml:6: set is missing: write set = { weight = 2 }, or set = {} for nothing"),
    ] {
        assert!(told.iter().any(|told| told.starts_with(words)), "{words}: {told:#?}");
    }
}
