// SPDX-License-Identifier: MIT
//! Invalid files are refused with the line and the remedy.

use super::*;
use crate::server::Ppm;
use xqos_core::GroupId;

const SOUND: &str = r#"
title = "t"
about = "a"
duration_ms = 100
policies = ["fair", "cbs"]
seed = 1
[costs]
short = 5
[[client]]
name = "c"
count = 2
behaviour = "waits"
rest_us = 10
burst = [{ requests = 3, each_us = "short" }]
"#;

fn read(text: &str) -> Result<Scenario, Mistake> {
    Scenario::read("s.toml", text, &Costs::new())
}

/// The error that results from one replacement in the valid file.
fn mistake(from: &str, to: &str) -> String {
    assert!(SOUND.contains(from), "{from}");
    match read(&SOUND.replacen(from, to, 1)) {
        Err(mistake) => mistake.to_string(),
        Ok(scenario) => panic!("{to} is accepted: {scenario:?}"),
    }
}

#[test]
fn a_valid_file_is_read_and_given_costs_replace_its_own() {
    let scenario = read(SOUND).unwrap();
    assert_eq!((scenario.clients(), scenario.regimes.len()), (2, 2));
    assert_eq!(scenario.groups[0].habit.runs[0].request_ns, 5_000);
    let given = Costs::from([("short".to_owned(), 0.25), ("of another file".to_owned(), 9.0)]);
    let scenario = Scenario::read("s.toml", SOUND, &given).unwrap();
    assert_eq!(scenario.groups[0].habit.runs[0].request_ns, 250);
}

#[test]
fn errors_name_the_line_and_the_remedy() {
    let cases = [
        ("count = 2", "cuont = 2", "s.toml:11: ", "cuont"),
        ("count = 2", "count = 0", "s.toml:9: ", "set count"),
        ("count = 2", "count = 60001", "s.toml:9: ", "change a count"),
        ("count = 2", "count = 5000000000", "s.toml:11: ", "u32"),
        ("rest_us = 10", "rest_us = -1", "s.toml:13: ", "between 0 and an hour"),
        ("rest_us = 10", "rest_us = nan", "s.toml:13: ", "between 0 and an hour"),
        ("rest_us = 10", "rest_us = true", "s.toml:13: ", "number of microseconds"),
        ("rest_us = 10", "every_us = 10", "s.toml:9: ", "give it rest_us"),
        ("\"waits\"", "\"sleeps\"", "s.toml:12: ", "periodic"),
        ("\"waits\"", "\"busy\"", "s.toml:9: ", "is busy"),
        ("\"short\"", "\"long\"", "s.toml:14: ", "[costs]"),
        ("\"short\"", "0", "s.toml:14: ", "above 0"),
        ("requests = 3", "requests = 0", "s.toml:14: ", "requests are 1 to"),
        ("short = 5", "short = 1e10", "s.toml:8: ", "hour"),
        ("\"cbs\"", "\"fari\"", "s.toml:5: ", "choose among"),
        ("[\"fair\", \"cbs\"]", "\"every\"", "s.toml:5: ", "write \"all\""),
        ("[\"fair\", \"cbs\"]", "[]", "s.toml:5: ", "no policy"),
        ("duration_ms = 100", "duration_ms = 0", "s.toml:", "longer"),
        ("duration_ms = 100", "duration_ms = 4000000000", "s.toml:4: ", "hour"),
        ("seed = 1", "seed = 1\nwarm_up_ms = 100", "s.toml:7: ", "warm-up"),
        ("seed = 1", "", "s.toml:", "seed"),
        ("rest_us = 10", "rest_us = 10\nfrom_ms = 100", "s.toml:9: ", "from_ms"),
        (
            "rest_us = 10",
            "rest_us = 10\nreservation = { budget_us = 3, period_us = 2, hard = true }",
            "s.toml:14: ",
            "reserve less",
        ),
    ];
    for (from, to, start, hint) in cases {
        let mistake = mistake(from, to);
        assert!(mistake.starts_with(start) && mistake.contains(hint), "{to}: {mistake}");
    }
}

#[test]
fn an_unknown_scenario_lists_the_known_ones() {
    let mistake = named("ocbnech", &Costs::new()).unwrap_err().to_string();
    assert!(mistake.contains("ocbnech.toml: ") && mistake.contains("ocbench,"), "{mistake}");
}

#[test]
fn weights_and_caps_apply_by_client_name() {
    let two = "title = \"t\"\nabout = \"a\"\nduration_ms = 2000\npolicies = [\"fair\"]\nseed = 1\n".to_owned()
        + "[[client]]\nname = \"a\"\nbehaviour = \"busy\"\nburst = [{ each_us = 100 }]\n"
        + "[[client]]\nname = \"b\"\ncount = 2\nbehaviour = \"busy\"\nburst = [{ each_us = 100 }]\n";
    // Checks the shares of two clients in percent, with a tolerance of one slice.
    #[track_caller]
    fn are_shared(text: &str, settings: ClientSettings, wanted: [f64; 2]) {
        let scenario = read(text).unwrap().with("b", settings).with("nobody", settings);
        let outcome = scenario.simulate(Regime::Policy(PolicyKind::Fair));
        for (name, wanted) in ["a", "b"].into_iter().zip(wanted) {
            let share = outcome.of(name).unwrap().share(&outcome) * 100.0;
            assert!((share - wanted).abs() < 1.0, "{name}: {share} instead of {wanted}");
        }
    }
    are_shared(&two, ClientSettings::default(), [33.3, 66.7]);
    are_shared(&two, ClientSettings { weight: Some(25), cap: None }, [66.7, 33.3]);
    let cap = Some((GroupId(7), Ppm(50_000)));
    // The cap limits both clients together.
    are_shared(&two, ClientSettings { weight: None, cap }, [95.0, 5.0]);
}
