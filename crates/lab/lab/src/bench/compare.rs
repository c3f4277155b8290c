// SPDX-License-Identifier: MIT
//! Compares two folders of results: is B better or worse than A, or is no difference visible?
//!
//! Repeated measurements of a value vary. If the ranges of A and B (minimum to maximum) overlap, no difference is
//! visible; this does not prove that none exists. A value that was measured only once has no range, so the comparison
//! draws no conclusion from it. On the exact machine, which repeats a run to the last instruction, a difference of more
//! than 1 % is one of the two builds.

use super::Experiment;
use crate::render;
use crate::results::{Build, Finding, read_some};
use crate::statistics::Spread;
use crate::study::{Goal, GoalCheck, Table, figure, quantity};
use anyhow::{Result, bail};
use serde::Serialize;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub verdicts: Vec<Pair>,
    /// Reasons for doubt, and experiments that only one folder has: one sentence for each.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    pub experiment: String,
    pub what: String,
    pub unit: String,
    pub a: Value,
    pub b: Value,
    /// B divided by A; `None` if A is 0.
    pub ratio: Option<f64>,
    /// `None` if A or B was measured only once.
    pub spreads_overlap: Option<bool>,
    pub conclusion: &'static str,
}

/// A value, with the range of the measurements from which it was computed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Value {
    pub value: f64,
    pub least: Option<f64>,
    pub greatest: Option<f64>,
}

/// Compares two folders. Fails if one of them has no results, or if they have no verdict in common.
pub fn compare(known: &[Experiment], a: &Path, b: &Path) -> Result<Comparison> {
    let (found_a, found_b) = (read_some(known, a)?, read_some(known, b)?);
    let comparison = Comparison::of(&found_a, &found_b);
    if comparison.verdicts.is_empty() {
        bail!("{} and {} have no verdict in common: run the same experiments for both", a.display(), b.display());
    }
    Ok(comparison)
}

impl Comparison {
    fn of(a: &[Finding], b: &[Finding]) -> Comparison {
        let mut verdicts = Vec::new();
        let mut notes = Vec::new();
        for one in a {
            let Some(other) = b.iter().find(|other| other.experiment == one.experiment) else { continue };
            let is_exact = one.machine.exact && other.machine.exact;
            // The wording of a verdict can change between builds, but its key does not.
            let is_same = |a: &GoalCheck, b: &GoalCheck| a.what == b.what || !a.key.is_empty() && a.key == b.key;
            let find = |wanted: &GoalCheck| other.study.verdicts.iter().find(|verdict| is_same(wanted, verdict));
            let pairs = one.study.verdicts.iter().filter_map(|verdict| Some((verdict, find(verdict)?)));
            verdicts.extend(pairs.map(|(of_a, of_b)| Pair::of(&one.experiment, of_a, of_b, is_exact)));
        }
        for (name, found, others) in [("A", a, b), ("B", b, a)] {
            notes.extend(found.iter().flat_map(|finding| doubts(name, finding)));
            let build = Build::of(found);
            notes.extend(build.others(found).map(|others| format!("{name} is about {}. {others}", build.name())));
            let only = |finding: &&Finding| !others.iter().any(|other| other.experiment == finding.experiment);
            let only: Vec<&str> = found.iter().filter(only).map(|finding| finding.experiment.as_str()).collect();
            notes.extend((!only.is_empty()).then(|| format!("Only {name} has results of {}.", only.join(", "))));
        }
        let machine = |found: &[Finding]| found.first().map(|one| (one.machine.processor.clone(), one.machine.cores));
        if machine(a) != machine(b) {
            notes.push("A and B were measured on different machines.".to_owned());
        }
        Comparison { verdicts, notes }
    }

    pub fn text(&self) -> String {
        let mut table = Table::new("", &["", "A", "range of A", "B", "range of B", "B / A", "B is"]);
        for pair in &self.verdicts {
            table.rows.push(vec![
                format!("{}: {}", pair.experiment, pair.what),
                quantity(pair.a.value, &pair.unit),
                pair.a.range(),
                quantity(pair.b.value, &pair.unit),
                pair.b.range(),
                pair.ratio.map_or("-".to_owned(), figure),
                pair.conclusion.to_owned(),
            ]);
        }
        self.notes.iter().fold(render::table(&table), |text, note| text + "\n" + note + "\n")
    }
}

impl Pair {
    fn of(experiment: &str, a: &GoalCheck, b: &GoalCheck, is_exact: bool) -> Pair {
        let spread = |verdict: &GoalCheck| verdict.spread.filter(|spread| spread.count > 1);
        let overlap = spread(a).zip(spread(b)).map(|(a, b)| a.least <= b.greatest && b.least <= a.greatest);
        Pair {
            experiment: experiment.to_owned(),
            what: a.what.clone(),
            unit: a.unit.clone(),
            a: Value::of(a.value, spread(a)),
            b: Value::of(b.value, spread(b)),
            ratio: (a.value != 0.0).then(|| b.value / a.value),
            spreads_overlap: overlap,
            conclusion: conclusion(a, b, overlap, is_exact),
        }
    }
}

impl Value {
    fn of(value: f64, spread: Option<Spread>) -> Value {
        Value { value, least: spread.map(|spread| spread.least), greatest: spread.map(|spread| spread.greatest) }
    }

    fn range(&self) -> String {
        let both = self.least.zip(self.greatest);
        both.map_or(String::new(), |(least, greatest)| format!("{} .. {}", figure(least), figure(greatest)))
    }
}

/// Two runs on the exact machine agree at least this well, although a change may shift when clients start.
const EXACT_PART: f64 = 0.01;

/// The goal decides whether B is better or worse than A. Without a goal, the result is only `more` or `less`.
fn conclusion(a: &GoalCheck, b: &GoalCheck, overlap: Option<bool>, is_exact: bool) -> &'static str {
    if a.samples.too_few() || b.samples.too_few() {
        return "too few samples";
    }
    match overlap {
        _ if a.value == b.value => return "no difference seen",
        None if is_exact && (b.value - a.value).abs() > EXACT_PART * a.value.abs() => {}
        None if is_exact => return "no difference seen",
        None => return "measured once: unknown",
        Some(true) => return "no difference seen",
        Some(false) => {}
    }
    match (a.goal, b.value > a.value) {
        (Goal::AtMost(_), true) | (Goal::AtLeast(_), false) => "worse",
        (Goal::AtMost(_), false) | (Goal::AtLeast(_), true) => "better",
        (Goal::Reported, true) => "more",
        (Goal::Reported, false) => "less",
    }
}

fn doubts(name: &str, finding: &Finding) -> Vec<String> {
    let noise = finding.disturbance.and_then(|disturbance| disturbance.noise());
    let noise = noise.map(|causes| format!("{name}'s {} is noisy: {causes}.", finding.experiment));
    let hurry = finding.quick.then(|| format!("{name}'s {} is a quick run (--quick).", finding.experiment));
    noise.into_iter().chain(hurry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::study::Study;

    fn finding(name: &str, verdicts: Vec<GoalCheck>) -> Finding {
        let study = Study { verdicts, ..Study::default() };
        Finding {
            experiment: name.into(),
            quick: false,
            pairs: 3,
            machine: Machine::default(),
            disturbance: None,
            study,
        }
    }

    fn verdict(what: &str, values: &[f64], goal: Goal) -> GoalCheck {
        GoalCheck::of_spread(what, Spread::of(values.iter().copied()), "ms", goal)
    }

    #[test]
    fn only_disjoint_ranges_count_as_a_difference() {
        let of = |a: &[f64], b: &[f64], goal| {
            let pair = Pair::of("demo", &verdict("x", a, goal), &verdict("x", b, goal), false);
            (pair.spreads_overlap, pair.conclusion)
        };
        let (low, high, between) = ([1.0, 1.1, 1.2], [2.0, 2.1, 2.2], [1.1, 1.5, 2.0]);
        let (at_most, at_least) = (Goal::AtMost(1.0), Goal::AtLeast(1.0));
        assert_eq!(of(&low, &between, at_most), (Some(true), "no difference seen"));
        assert_eq!(of(&low, &high, at_most), (Some(false), "worse"));
        assert_eq!(of(&high, &low, at_most), (Some(false), "better"));
        assert_eq!(of(&low, &high, at_least), (Some(false), "better"));
        assert_eq!(of(&low, &high, Goal::Reported), (Some(false), "more"));
        assert_eq!(of(&[1.0], &high, at_most), (None, "measured once: unknown"));
        assert_eq!(of(&[], &[], at_most), (None, "too few samples"));
    }

    #[test]
    fn one_value_of_the_exact_machine_is_enough_for_a_difference() {
        let of = |a, b| {
            Pair::of("demo", &verdict("x", &[a], Goal::AtMost(1.0)), &verdict("x", &[b], Goal::AtMost(1.0)), true)
        };
        assert_eq!(of(1.0, 1.02).conclusion, "worse");
        assert_eq!(of(1.0, 0.98).conclusion, "better");
        assert_eq!(of(1.0, 1.009).conclusion, "no difference seen");
    }

    #[test]
    fn common_verdicts_are_compared_and_other_experiments_listed() {
        let at_most = Goal::AtMost(1.0);
        let a = [
            finding("demo", vec![verdict("x", &[1.0, 2.0], at_most), verdict("gone", &[1.0], at_most)]),
            finding("idle", vec![verdict("x", &[0.0], at_most)]),
            finding("hard", vec![]),
        ];
        let b =
            [finding("demo", vec![verdict("x", &[4.5, 4.5], at_most)]), finding("idle", a[1].study.verdicts.clone())];
        let comparison = Comparison::of(&a, &b);
        let ratios: Vec<_> = comparison.verdicts.iter().map(|pair| (pair.experiment.as_str(), pair.ratio)).collect();
        assert_eq!(ratios, [("demo", Some(3.0)), ("idle", None)]);
        assert_eq!(comparison.notes, ["Only A has results of hard."]);
        let text = comparison.text();
        assert!(text.contains("demo: x") && text.contains("worse") && text.contains("4.50 ms"), "{text}");
    }
}
