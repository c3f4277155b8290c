// SPDX-License-Identifier: MIT
//! Runs every file of `scenarios/` under every policy: checks invariants and the findings of the papers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use xqos_core::PolicyKind;
use xqos_sim::outcome::{GroupResult, Outcome};
use xqos_sim::scenario::{ALL, Costs, Regime, Scenario, named};

const CLASSIC: Regime = Regime::Policy(PolicyKind::Classic);
const SMART: Regime = Regime::Policy(PolicyKind::Smart);
const STOCK: Regime = Regime::Policy(PolicyKind::Stock);
const FAIR: Regime = Regime::Policy(PolicyKind::Fair);

fn scenario(name: &str, costs: &[(&str, f64)]) -> Scenario {
    let costs: Costs = costs.iter().map(|&(name, us)| (name.to_owned(), us)).collect();
    named(name, &costs).unwrap_or_else(|mistake| panic!("{mistake}"))
}

fn mean_ms(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len().max(1) as f64 / 1e6
}

/// Mean response time under each regime.
fn responses(name: &str, client: &str, regimes: &[Regime]) -> Vec<f64> {
    let scenario = scenario(name, &[]);
    let response = |regime: &Regime| mean_ms(&scenario.simulate(*regime).of(client).unwrap().response_ns);
    regimes.iter().map(response).collect()
}

#[test]
fn all_lists_every_scenario_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        found.insert(name, fs::read_to_string(path).unwrap());
    }
    let known: BTreeMap<String, String> = ALL.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
    assert_eq!(found, known, "scenario::ALL must list the files of scenarios/");
}

#[test]
fn every_policy_conserves_time_and_starves_no_measured_client() {
    for (name, _) in ALL {
        let scenario = scenario(name, &[]);
        for &regime in &scenario.regimes {
            let outcome = scenario.simulate(regime);
            let what = format!("{name} under {}", regime.name());
            let all: f64 = outcome.groups.iter().map(|of| of.share(&outcome)).sum();
            assert!(all <= 1.001, "{what}: {all} of the server's time");
            for of in &outcome.groups {
                check(&what, &outcome, of, may_starve(&scenario, regime));
            }
        }
    }
}

/// A client can starve under fixed priorities, and under `stock` with more than 256 clients: among clients
/// with indices 256 apart, the one that has been ready longest always wins, so a busy one locks out the others.
fn may_starve(scenario: &Scenario, regime: Regime) -> bool {
    regime == Regime::Policy(PolicyKind::Fixed) || regime == STOCK && scenario.clients() > 256
}

fn check(what: &str, outcome: &Outcome, of: &GroupResult, may_starve: bool) {
    let what = format!("{what}, {}", of.name);
    assert!(of.requests > 0, "{what}: no client is served");
    let longest = of.response_ns.iter().max().copied().unwrap_or(0);
    assert!(longest as f64 / 1e9 <= outcome.seconds + 1.0, "{what}: {longest} ns is longer than the scenario");
    if of.is_measured && !may_starve {
        assert!(!of.response_ns.is_empty(), "{what}: no burst was done");
        assert!(of.served_ns.iter().all(|&ns| ns > 0), "{what}: a client starves");
    }
    for (response, receipt) in of.response_ns.iter().zip(&of.receipt_ns) {
        assert!(receipt <= response, "{what}: done before the input was seen");
    }
}

#[test]
fn the_same_scenario_gives_the_same_outcome() {
    let text = |regime| format!("{:?}", scenario("interactive", &[]).simulate(regime));
    assert_eq!(text(STOCK), text(STOCK));
    assert_eq!(text(Regime::Cbs), text(Regime::Cbs));
}

#[test]
fn the_line_follows_immediately_under_fair_and_reservations() {
    let [classic, smart, stock, fair, cbs] =
        responses("interactive", "line", &[CLASSIC, SMART, STOCK, FAIR, Regime::Cbs])[..]
    else {
        unreachable!("there are five results")
    };
    assert!(classic > 10.0 * smart, "Packard 7.1: classic {classic} ms, smart {smart} ms");
    assert!(stock > 5.0 * fair, "stock {stock} ms, fair {fair} ms");
    assert!(cbs < 1.0 && fair < 1.0, "fair {fair} ms, cbs {cbs} ms");
}

#[test]
fn frames_queue_up_under_the_classic_policy() {
    let [classic, smart, fair] = responses("animation", "animation", &[CLASSIC, SMART, FAIR])[..] else {
        unreachable!("there are three results")
    };
    assert!(classic > 5.0 * smart && smart > fair, "classic {classic} ms, smart {smart} ms, fair {fair} ms");
}

/// Packard 8.2: slices of 0.5 ms, frames that take a little longer than that, and plaids that pause after each request.
#[test]
fn an_animation_with_short_slices_starves_only_under_the_papers_strict_rule() {
    let (_, text) = ALL.iter().find(|(name, _)| *name == "animation").unwrap();
    let text = text.replace("[server]", "[server]\nslice_us = 500");
    let text = text.replace("\"busy\"", "\"waits\"\nrest_us = 1100");
    let costs = [("plaid", 600.0), ("wheel", 22.0)].map(|(name, us)| (name.to_owned(), us));
    let scenario = Scenario::read("animation.toml", &text, &Costs::from(costs)).unwrap();
    let frames = |kind| scenario.simulate(Regime::Policy(kind)).of("animation").unwrap().response_ns.clone();
    let smart = frames(PolicyKind::Smart);
    assert!(smart.len() > 290 && mean_ms(&smart) < 20.0, "{} frames, after {} ms", smart.len(), mean_ms(&smart));
    assert_eq!(frames(PolicyKind::SmartStrict).len(), 0, "the paper's rule serves no frame at all");
}

#[test]
fn a_hard_reservation_gets_its_share_and_at_most_one_request_more() {
    for (budget_us, period_us) in [(5_000.0, 30_000.0), (45_000.0, 90_000.0), (105_000.0, 210_000.0)] {
        let scenario = scenario("hard", &[("budget", budget_us), ("period", period_us)]);
        let outcome = scenario.simulate(Regime::Cbs);
        assert_eq!(outcome.groups[0].admitted, 1);
        let (share, asked) = (outcome.groups[0].share(&outcome), budget_us / period_us);
        // Allow for a period that is cut off at the end and for one request of 0.1 ms.
        let most = asked + (budget_us + 100.0) / 1e6 / outcome.seconds;
        assert!(share <= most && share >= asked - budget_us / 1e6 / outcome.seconds, "{share} instead of {asked}");
    }
}

#[test]
fn a_client_without_admission_runs_as_best_effort() {
    let outcome = scenario("sixty-four-players", &[]).simulate(Regime::Cbs);
    let (players, late) = (outcome.of("players").unwrap(), outcome.of("late players").unwrap());
    assert_eq!((players.admitted, players.asked), (64, 64));
    assert_eq!((late.admitted, late.asked), (6, 8));
    let longest = players.response_ns.iter().max().copied().unwrap_or(0);
    assert!(longest <= 40_000_000, "a frame of {longest} ns exceeded its period");
    assert!(outcome.of("plaids").unwrap().share(&outcome) >= 0.09, "best effort keeps 1 - U");
}
