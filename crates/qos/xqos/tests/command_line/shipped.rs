// SPDX-License-Identifier: MIT
//! Each shipped rule improves a figure: the clients that it affects are simulated with all shipped rules, and
//! again without this rule.
//!
//! `data/rules.d/evidence` describes the clients, and has a trace of a real player. The installed rule files and the
//! code of `xqos rules run` decide the settings; `xqos suggest` decides what the player needs.

use crate::fixture::{ended, xqos};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use xqos_core::{GroupId, PolicyKind};
use xqos_rules::decide::RuleSet;
use xqos_rules::facts::{ClientFacts, State, States};
use xqos_rules::files;
use xqos_rules::read::Scope;
use xqos_rules::rule::Rule;
use xqos_rules::setting::{Reserve, Setting};
use xqos_rules::values::Cap;
use xqos_sim::scenario::{Costs, Regime, Scenario};
use xqos_sim::server::{ClientSettings, Ppm};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data/rules.d");
/// The group of all capped clients; one rule names it.
const CAPPED: GroupId = GroupId(1);

/// The figure that a rule improves.
#[derive(Clone, Copy, Debug)]
enum Figure {
    /// Mean response time in milliseconds.
    Response,
    /// Percent of the server's time.
    Share,
}

/// The purpose of a rule, and the expected figures.
struct Evidence {
    rule: &'static str,
    /// A file of `evidence`.
    scenario: &'static str,
    /// The client names of the scenario, and the facts about each client.
    clients: Vec<(&'static str, ClientFacts)>,
    figure: Figure,
    /// The client that the figure belongs to.
    of: &'static str,
    without: RangeInclusive<f64>,
    with: RangeInclusive<f64>,
}

fn local(exe: &str, states: &[State]) -> ClientFacts {
    let (exe, states) = (Some(exe.to_owned()), States::only(states));
    ClientFacts { exe, local: Some(true), states, ..ClientFacts::default() }
}

fn xterm(states: &[State]) -> ClientFacts {
    ClientFacts { class: Some(vec!["xterm".into(), "XTerm".into()]), ..local("/usr/bin/xterm", states) }
}

fn remote() -> ClientFacts {
    let host = Some("192.0.2.7".to_owned());
    ClientFacts { host, local: Some(false), states: States::only(&[]), ..ClientFacts::default() }
}

fn players() -> Evidence {
    Evidence {
        rule: "players",
        scenario: "players",
        clients: vec![("player", local("/usr/bin/mpv", &[])), ("others", local("/usr/bin/x11perf", &[]))],
        figure: Figure::Response,
        of: "player",
        without: 100.0..=2000.0,
        with: 0.0..=10.0,
    }
}

fn terminals() -> Evidence {
    Evidence {
        rule: "terminals",
        scenario: "terminals",
        clients: vec![("worked in", xterm(&[State::Active])), ("others", xterm(&[]))],
        figure: Figure::Response,
        of: "worked in",
        without: 23.0..=25.0,
        with: 15.0..=17.0,
    }
}

/// Each of the two rules improves the figure even if the other rule also applies.
fn from_elsewhere(rule: &'static str) -> Evidence {
    Evidence {
        rule,
        scenario: "remote",
        clients: vec![
            ("at the screen", local("/usr/lib/firefox/firefox", &[State::Active])),
            ("remote", remote()),
            ("forwarded", local("/usr/bin/ssh", &[])),
        ],
        figure: Figure::Response,
        of: "at the screen",
        without: 24.0..=26.0,
        with: 19.0..=21.0,
    }
}

fn iconic() -> Evidence {
    Evidence {
        rule: "iconic",
        scenario: "iconic",
        clients: vec![
            ("looked at", local("/usr/lib/firefox/firefox", &[State::Active])),
            ("icons", local("/usr/lib/firefox/firefox", &[State::Iconic])),
        ],
        figure: Figure::Response,
        of: "looked at",
        without: 29.0..=31.0,
        with: 19.0..=21.0,
    }
}

fn unwatched() -> Evidence {
    Evidence {
        rule: "unwatched",
        scenario: "unwatched",
        clients: vec![("programs", local("/usr/lib/firefox/firefox", &[State::Unwatched]))],
        figure: Figure::Share,
        of: "programs",
        without: 99.9..=100.1,
        with: 4.9..=5.1,
    }
}

fn desktop() -> Evidence {
    Evidence {
        rule: "desktop",
        scenario: "desktop",
        clients: vec![
            ("compositor", local("/usr/bin/picom", &[State::Unwatched])),
            ("program", local("/usr/lib/firefox/firefox", &[State::Unwatched])),
        ],
        figure: Figure::Response,
        of: "compositor",
        without: 500.0..=5000.0,
        with: 4.0..=5.0,
    }
}

fn all() -> Vec<Evidence> {
    vec![
        players(),
        terminals(),
        from_elsewhere("remote"),
        from_elsewhere("forwarded"),
        iconic(),
        unwatched(),
        desktop(),
    ]
}

/// The rules that are installed.
fn shipped() -> Vec<Rule> {
    let entries = fs::read_dir(DATA).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files.iter().flat_map(|file| files::read_named(file, Scope::System).unwrap().rules).collect()
}

/// The player as `xqos suggest` describes it.
fn player() -> Value {
    let trace = format!("{DATA}/evidence/players.trace");
    let told = ended(xqos().args(["suggest", "--json", &trace])).with(0).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["lost_records"], 0, "{told:#}");
    let clients = told["clients"].as_array().unwrap();
    clients.iter().find(|client| client["program"] == "mpv").unwrap_or_else(|| panic!("{told:#}")).clone()
}

/// Measured times that replace those of the scenario.
fn costs() -> Costs {
    let player = player();
    let us = |value: &Value| value.as_f64().unwrap() * 1000.0;
    let (frame, reserve) = (us(&player["demand_ms"]), &player["reserve"]);
    let all = [("frame", frame), ("budget", us(&reserve["budget_ms"])), ("period", us(&reserve["period_ms"]))];
    all.map(|(name, us)| (name.to_owned(), us)).into()
}

impl Evidence {
    /// Simulates the clients with these rules.
    fn figure(&self, rules: &RuleSet) -> f64 {
        let file = format!("{}.toml", self.scenario);
        let text = fs::read_to_string(format!("{DATA}/evidence/{file}")).unwrap();
        let costs = if self.scenario == "players" { costs() } else { Costs::new() };
        let mut scenario = Scenario::read(&file, &text, &costs).unwrap_or_else(|mistake| panic!("{mistake}"));
        let mut regime = Regime::Policy(PolicyKind::Fair);
        for (name, facts) in &self.clients {
            let mut settings = ClientSettings::default();
            for chosen in rules.evaluate(facts).applied() {
                match &chosen.setting {
                    Setting::Weight(weight) => settings.weight = Some(weight.0),
                    Setting::Max(Cap(ppm)) => settings.cap = Some((CAPPED, Ppm(*ppm))),
                    Setting::Reserve(Reserve::Auto) => regime = Regime::Cbs,
                    Setting::Group(_) | Setting::Reserve(Reserve::Nothing) => {}
                    other => panic!("{other} is not simulated here"),
                }
            }
            scenario = scenario.with(name, settings);
        }
        let outcome = scenario.simulate(regime);
        let of = outcome.of(self.of).unwrap_or_else(|| panic!("{file} has no client {}", self.of));
        match self.figure {
            Figure::Response => of.response_ns.iter().sum::<u64>() as f64 / 1e6 / of.response_ns.len() as f64,
            Figure::Share => of.share(&outcome) * 100.0,
        }
    }
}

#[test]
fn each_shipped_rule_improves_its_figure() {
    let rules = shipped();
    let all = all();
    let with_evidence: BTreeSet<&str> = all.iter().map(|one| one.rule).collect();
    assert_eq!(with_evidence, rules.iter().map(|rule| rule.id.as_str()).collect(), "each has its evidence");
    for one in all {
        let others = rules.iter().filter(|rule| rule.id != one.rule).cloned().collect();
        let (without, with) = (one.figure(&RuleSet::new(others)), one.figure(&RuleSet::new(rules.clone())));
        println!("{}: {:?} of {}: {without:.2} without, {with:.2} with", one.rule, one.figure, one.of);
        assert!(one.without.contains(&without), "without '{}' it is {without}", one.rule);
        assert!(one.with.contains(&with), "with '{}' it is {with}", one.rule);
    }
}

#[test]
fn a_real_player_has_the_rhythm_that_its_rule_expects() {
    let player = player();
    assert_eq!((&player["found"], &player["kind"]), (&"periodic".into(), &"clock".into()), "{player:#}");
    let period_ms = player["period_ms"].as_f64().unwrap();
    assert!((period_ms - 40.0).abs() <= 40.0 * 0.03, "25 frames a second: {player:#}");
    let budget_ms = player["reserve"]["budget_ms"].as_f64().unwrap();
    assert!(budget_ms >= player["demand_ms"].as_f64().unwrap() && budget_ms <= period_ms / 2.0, "{player:#}");
}
