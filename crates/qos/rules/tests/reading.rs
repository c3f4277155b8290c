// SPDX-License-Identifier: MIT
//! Parsing of rule files, and the messages for invalid ones.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use xqos_rules::decide::RuleSet;
use xqos_rules::expect;
use xqos_rules::facts::Key;
use xqos_rules::read::{self, Scope};
use xqos_rules::rule::Condition;
use xqos_rules::setting::{GroupChoice, Reserve, Setting};

fn mistakes(text: &str) -> Vec<String> {
    match read::file("a.toml", text, Scope::System) {
        Ok(file) => panic!("{} rules were read from: {text}", file.rules.len()),
        Err(mistakes) => mistakes.iter().map(ToString::to_string).collect(),
    }
}

/// A file with one rule. Mistakes in its match are in line 4.
fn rule(match_: &str, set: &str) -> String {
    format!("version = 1\n[[rule]]\nid = \"r\"\nmatch = {{ {match_} }} ; set = {{ {set} }}\n").replace(" ; ", "\n")
}

#[test]
fn a_file_with_all_keys_is_parsed() {
    let text = "\
# a comment
version = 1
[[rule]]
id = \"players\"
match = { exe = [\"*/mpv\", \"*/vlc\"], local = true, state = \"active\", not = [{ host = \"10.*\" }, { user = \"0\" }] }
set = { reserve = \"10ms/40ms\", hard = true, max = \"20%\", weight = 1.5, priority = -3, cpu = true, pace = false }

[[rule]]
id = \"rest\"
set.group = \"app\"
set.ignore = false
match.class = \"*\"
[limits]
auto = 0.6
per_user = 0.9
";
    let file = read::file("a.toml", text, Scope::System).unwrap();
    let [players, rest] = &file.rules[..] else { panic!("two rules") };
    assert_eq!((players.id.as_str(), players.place.to_string().as_str()), ("players", "a.toml:3"));
    assert_eq!((rest.id.as_str(), rest.place.line), ("rest", 8));
    let keys: Vec<Key> = players.matcher.conditions.iter().map(Condition::key).collect();
    assert_eq!(keys, [Key::Exe, Key::Local, Key::State]);
    assert_eq!(players.matcher.exclusions.len(), 2);
    let settings: Vec<String> = players.settings.iter().map(ToString::to_string).collect();
    let expected = ["reserve = \"10ms/40ms\"", "hard = true", "max = \"20%\"", "weight = 1.5", "priority = -3"];
    assert_eq!(settings[..5], expected);
    assert_eq!(rest.settings, [Setting::Group(GroupChoice::App), Setting::Ignore(false)]);
    assert_eq!((file.limits.auto, file.limits.per_user), (Some(600_000), Some(900_000)));
    assert!(matches!(players.settings[0], Setting::Reserve(Reserve::Fixed(_))));
}

#[test]
fn empty_files_and_files_of_comments_have_no_rules() {
    assert!(read::file("a.toml", "", Scope::System).unwrap().rules.is_empty());
    assert!(read::file("a.toml", " \n\n", Scope::System).unwrap().rules.is_empty());
    assert!(read::file("a.toml", "# nothing yet\nversion = 1\n", Scope::System).unwrap().rules.is_empty());
}

#[test]
fn each_mistake_has_a_line_and_a_correction() {
    let ok = "exe = \"*/mpv\"";
    for (text, line, words) in [
        (rule("exee = \"*/mpv\"", "weight = 2"), 4, "a match has no key 'exee': did you mean 'exe'?"),
        (rule(ok, "weigth = 2"), 5, "set has no key 'weigth': did you mean 'weight'?"),
        (rule(ok, "nice = 2"), 5, "set has no key 'nice': choose among reserve, hard, soft"),
        (rule(ok, "weight = 200"), 5, "weight: '200' is not a weight: write a number from 0.01 to 100"),
        (rule(ok, "weight = true"), 5, "weight: 'true' is not a weight"),
        (rule(ok, "reserve = \"40ms/10ms\""), 5, "reserve: the budget of 40 ms is longer"),
        (rule(ok, "reserve = [1]"), 5, "reserve: 'array' is not a reservation: write \"auto\""),
        (rule(ok, "hard = \"yes\""), 5, "hard: write true or false"),
        (rule(ok, "max = 0.2"), 5, "max: '0.2' is not a share: write a percentage"),
        (rule(ok, "max = \"0.5%\""), 5, "max: '0.5%' is not a share: write a percentage from 1 to 100"),
        (
            rule(ok, "reserve = \"10ms/10ms\""),
            5,
            "reserve: 10 ms / 10 ms is more than 95 %, the maximum that a server promises",
        ),
        (rule(ok, "priority = 0x10"), 5, "priority: 'integer' is not a priority: write a whole number"),
        (rule(ok, "group = \"a b\""), 5, "group: 'a b' is not a valid name"),
        (
            rule("exe = \"mpv\"", "weight = 2"),
            4,
            "exe is an absolute path, but 'mpv' does not start with / or *: write \"*/mpv\"",
        ),
        (rule("exe = 3", "weight = 2"), 4, "exe is a text in quotes, or a list of texts"),
        (rule("class = []", "weight = 2"), 4, "class: an empty list matches no client"),
        (rule("name = \"\"", "weight = 2"), 4, "name: an empty pattern matches nothing"),
        (
            rule(r#"name = 'Z:\x\other.exe'"#, "weight = 2"),
            4,
            "a name has no folder: write only the part after the last / or \\, or match exe",
        ),
        (rule("name = \"*/mpv\"", "weight = 2"), 4, "name: '*/mpv' never matches"),
        (
            rule(r#"unit = "app-a\x2db@*.service""#, "weight = 2"),
            4,
            r"unit: TOML decodes \x in double quotes: write single quotes, as in 'app-a\x2db@*.service'",
        ),
        (rule(r#"not = { cgroup = ["*", "/a\\\x2db"] }"#, "weight = 2"), 4, "cgroup: TOML decodes"),
        (rule(&format!("name = \"{}\"", "x".repeat(256)), "weight = 2"), 4, "a file's name has at most 255 bytes"),
        (rule("unit = \"*/app-x\"", "weight = 2"), 4, "a unit is one part of a control group's path"),
        (rule("local = \"yes\"", "weight = 2"), 4, "local is true or false"),
        (rule("state = \"activ\"", "weight = 2"), 4, "there is no state 'activ': choose among active, fullscreen"),
        (rule("not = { not = { exe = \"*\" } }", "weight = 2"), 4, "not has no key 'not'"),
        (rule("not = {}", "weight = 2"), 4, "an empty not has no effect"),
        (rule("", "weight = 2"), 4, "an empty match matches no client: write match = { exe = \"*\" }"),
        (rule(ok, "weight = 2").replace("id = \"r\"", ""), 2, "id is missing: write id = \"players\""),
        (rule(ok, "weight = 2").replace("\"r\"", "\"a b\""), 3, "'a b' is not a valid name"),
        (rule(ok, "weight = 2").replace("match", "# match"), 2, "match is missing"),
        (rule(ok, "weight = 2").replace("set", "# set"), 2, "set is missing"),
        (rule(ok, "weight = 2").replace("[[rule]]", "[rule]"), 2, "rules are written as [[rule]]"),
        (rule(ok, "weight = 2").replace("version = 1", ""), 0, "version is missing: write version = 1"),
        (rule(ok, "weight = 2").replace("version = 1", "version = 2"), 1, "this xqos supports version 1 only"),
        (rule(ok, "weight = 2").replace("version = 1", "version = 1\nrules = 3"), 2, "did you mean 'rule'?"),
        (rule(ok, "weight = 2, weight = 3"), 5, "invalid TOML: duplicate key"),
        (rule(ok, "weight = "), 5, "invalid TOML: "),
        ("version = 1\n[limits]\nauto = 1.5\n".into(), 3, "write a number from 0.01 to 0.95, such as 0.6"),
        ("version = 1\n[limits]\nauto = nan\n".into(), 3, "write a number from 0.01 to 0.95"),
        ("version = 1\n[limits]\nper_user = 0\n".into(), 3, "write a number from 0.01 to 0.95"),
        ("version = 1\n[limits]\nper_user = 0.96\n".into(), 3, "a limit is a share of the server, at most 0.95"),
        ("version = 1\n[limits]\nper_users = 0.5\n".into(), 3, "did you mean 'per_user'?"),
        ("version = 1\nlimits = 3\n".into(), 2, "[limits] is a table"),
    ] {
        let told = mistakes(&text);
        let place = if line == 0 { "a.toml: ".to_owned() } else { format!("a.toml:{line}: ") };
        assert!(
            told.iter().any(|told| told.starts_with(&place) && told.contains(words)),
            "{words}:\n{text}\n{told:#?}"
        );
    }
}

#[test]
fn a_unit_with_an_escape_is_read_as_systemd_writes_it() {
    let expected = r"app-a\x2db@*.service";
    for written in [r"'app-a\x2db@*.service'", r#""app-a\\x2db@*.service""#] {
        let file = read::file("a.toml", &rule(&format!("unit = {written}"), "weight = 2"), Scope::System).unwrap();
        let [Condition::Text(Key::Unit, patterns)] = &file.rules[0].matcher.conditions[..] else { panic!("a unit") };
        assert_eq!((patterns[0].as_str(), patterns[0].to_string()), (expected, format!("'{expected}'")));
    }
}

#[test]
fn all_mistakes_of_a_file_are_reported_in_order() {
    let text = rule("exee = \"x\", local = 3", "weigth = 2") + "[[rule]]\nid = \"r2\"\n";
    let lines: Vec<String> = mistakes(&text).iter().map(|told| told.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["a.toml:4:", "a.toml:4:", "a.toml:5:", "a.toml:6:", "a.toml:6:"]);
}

#[test]
fn limits_in_a_users_file_are_refused() {
    let text = "version = 1\n[limits]\nauto = 0.5\n";
    assert!(read::file("a.toml", text, Scope::System).is_ok());
    let mistakes = read::file("a.toml", text, Scope::User).unwrap_err();
    assert!(mistakes[0].to_string().starts_with("a.toml:2: limits restrict users"), "{mistakes:?}");
}

#[test]
fn a_duplicate_id_is_refused() {
    let text = rule("exe = \"*/a\"", "weight = 2");
    let twice = text.clone() + text.strip_prefix("version = 1\n").unwrap();
    assert!(mistakes(&twice)[0].contains("a.toml:6: 'r' is already the id of an earlier rule"));
}

#[test]
fn hostile_files_are_refused_with_a_few_messages() {
    let many = |one: &str| "version = 1\n".to_owned() + &one.repeat(100_000);
    for (text, words) in [
        (many("[[rule]]\n"), "a.toml:10002: this file has more than 10000 rules (100000)"),
        (many("# ten bytes\n"), "is larger than 1 MB (1200012 bytes): split it"),
        ("x".repeat(10_000_000), "is larger than 1 MB"),
        ("version = 1\n".to_owned() + &"a.".repeat(400_000) + "a = 1\n", "nested too deeply"),
        ("version = 1\nrule = ".to_owned() + &"[".repeat(900_000), "invalid TOML: "),
        ("version = 1\nrule = ".to_owned() + &"{a=".repeat(300_000), "invalid TOML: "),
        (many("a.b=1\n"), "invalid TOML: duplicate key"),
        ((0..60_000).map(|at| format!("k{at}=1\n")).collect::<Vec<_>>().concat(), "a rule file has no key 'k0'"),
        (rule(&format!("exe = \"/{}\"", "a".repeat(500_000)), "weight = 2"), "a pattern has at most 256 bytes"),
        (rule("exe = \"*\"", &format!("{} = 2", "w".repeat(900_000))), "set has no key 'wwww"),
        ("\0\u{1b}[2J".into(), "invalid TOML: "),
    ] {
        let told = mistakes(&text);
        assert!(told.len() <= 21, "{words}: {}", told.len());
        assert!(told.iter().any(|told| told.contains(words)), "{words}: {told:#?}");
        assert!(told.iter().all(|told| told.len() < 300 && !told.contains(char::is_control)), "{told:#?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(xqos_testkit::seed()), ..ProptestConfig::with_cases(300) })]

    /// A valid file with pieces removed, repeated or changed is either parsed or refused. Parsed rules can be
    /// evaluated.
    #[test]
    fn damaged_files_are_read_or_refused(damages in proptest::collection::vec((any::<u16>(), 0..40_usize, any::<u8>(), 0..3_u8), 1..6)) {
        let mut bytes = include_bytes!("golden.toml").to_vec();
        for (at, length, byte, kind) in damages {
            let at = usize::from(at) % bytes.len();
            let piece = at..(at + length).min(bytes.len());
            match kind {
                0 => drop(bytes.drain(piece)),
                1 => bytes.splice(at..at, bytes[piece].to_vec()).for_each(drop),
                _ => bytes[at] = byte,
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match expect::file("damaged.toml", &text) {
            Ok(expectations) => {
                let rules = RuleSet::new(expectations.rules);
                expectations.cases.iter().for_each(|case| drop(case.differences(&rules)));
            }
            Err(mistakes) => {
                let lines = text.lines().count() + 1;
                prop_assert!(!mistakes.is_empty() && mistakes.iter().all(|mistake| mistake.line <= lines), "{mistakes:?}");
            }
        }
    }
}
