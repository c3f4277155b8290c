// SPDX-License-Identifier: MIT
//! Evaluates the trials as the file defines: tables, verdicts and the answer in a sentence.

use super::chart;
use super::data::{At, Cell, Data, filled};
use super::expression::Expression;
use super::format::{Answer, Column, Definition, Table as TableText, Verdict as VerdictText};
use crate::goals;
use crate::statistics::{Spread, geometric_mean};
use crate::study::{Goal, Study, Table, Verdict, duration, figure, percent, spread_figure};

/// `name` is the experiment's name, under which lab/goals.toml lists its goals.
pub(super) fn study(name: &str, definition: &Definition, data: &Data) -> Study {
    Study {
        title: definition.title.clone(),
        question: definition.question.clone(),
        answer: definition.answer.as_ref().map_or_else(String::new, |text| answer(text, data)),
        verdicts: definition.verdict.iter().flat_map(|text| verdicts(name, text, data)).collect(),
        tables: definition.table.iter().flat_map(|text| tables(text, data)).collect(),
        charts: definition.chart.iter().flat_map(|text| chart::charts(text, data)).collect(),
    }
}

fn tables(text: &TableText, data: &Data) -> Vec<Table> {
    let pooled = text.pooled.then(|| data.pooled());
    let shown = pooled.as_ref().unwrap_or(data);
    let of_one = |within: Cell| {
        let heads = text.columns.iter().map(|Column(head, ..)| data.titled(head, &within));
        let row = |cell: Cell| {
            let names = text.rows.iter().map(|axis| data.titled(&format!("{{{axis}}}"), &cell));
            let at = shown.at(&cell);
            names.chain(text.columns.iter().map(|column| shown_in(column, &at))).collect()
        };
        Table {
            key: in_brackets(&text.key, &within),
            title: data.titled(&text.title, &within),
            head: text.rows.iter().cloned().chain(heads).collect(),
            rows: data.measured(&text.rows, &text.only, &within).into_iter().map(row).collect(),
        }
    };
    data.measured(&text.each, &text.only, &Cell::new())
        .into_iter()
        .map(of_one)
        .filter(|table| !table.rows.is_empty())
        .collect()
}

fn shown_in(Column(_, value, how): &Column, at: &At) -> String {
    let spread = Expression::checked(&filled(value, &at.cell)).spread(at);
    match how.as_deref() {
        _ if spread.count == 0 => "-".to_owned(),
        Some("spread") => spread_figure(&spread),
        Some("percent") => percent(spread.median),
        Some("least") => figure(spread.least),
        Some("greatest") => figure(spread.greatest),
        _ => figure(spread.median),
    }
}

/// Formats of a column.
pub(super) const SHOWN: [&str; 5] = ["median", "spread", "percent", "least", "greatest"];
/// Ways of reducing several cells to one value.
pub(super) const BY: [&str; 7] =
    ["largest", "2nd largest", "3rd largest", "4th largest", "least", "median", "geometric mean"];

fn verdicts(name: &str, text: &VerdictText, data: &Data) -> Vec<Verdict> {
    data.measured(&text.each, &text.only, &Cell::new())
        .iter()
        .filter_map(|cell| verdict(name, text, cell, data))
        .collect()
}

fn verdict(name: &str, text: &VerdictText, cell: &Cell, data: &Data) -> Option<Verdict> {
    let pooled = text.pooled.then(|| data.pooled());
    let data = pooled.as_ref().unwrap_or(data);
    let key = key(name, &text.key, cell);
    let ledger = goals::find(&goal_key(name, text, cell));
    if ledger.is_none() && text.goal.is_none() && text.key.contains('{') {
        return None;
    }
    let goal = text.goal.or(ledger).unwrap_or(Goal::Reported);
    let expression = Expression::checked(&filled(&text.value, cell));
    let of = data.measured(&text.across, &text.only, cell);
    let samples = of.iter().flat_map(|cell| {
        let at = data.at(cell);
        let of_turn = |at: At| expression.value(&at).and_then(|_| expression.samples(&at));
        at.turns().filter_map(of_turn).collect::<Vec<_>>()
    });
    let samples: Vec<usize> = samples.collect();
    let mut spreads: Vec<Spread> =
        of.iter().map(|cell| expression.spread(&data.at(cell))).filter(|one| one.count > 0).collect();
    spreads.sort_by(|one, other| other.median.total_cmp(&one.median));
    let what = data.titled(&text.what, cell);
    let medians: Vec<f64> = spreads.iter().map(|one| one.median).collect();
    let nth = |index: usize| {
        let chosen = spreads.get(index).copied().unwrap_or_default();
        Verdict::of_spread(what.clone(), chosen, &text.unit, goal)
    };
    let verdict = match text.by.as_deref() {
        Some("geometric mean") => Verdict::of_value(what, geometric_mean(&medians), &text.unit, goal),
        Some("median") => Verdict::of_spread(what, Spread::of(medians), &text.unit, goal),
        Some("least") => nth(spreads.len().saturating_sub(1)),
        Some("2nd largest") => nth(1),
        Some("3rd largest") => nth(2),
        Some("4th largest") => nth(3),
        _ => nth(0),
    };
    let key = if text.key.contains('{') { key } else { in_brackets(&key, cell) };
    let verdict = Verdict { key, ..verdict };
    Some(if samples.is_empty() { verdict } else { verdict.counting(samples) })
}

/// The key of one of several tables or verdicts, followed by the values of its axes. An empty key stays empty.
fn in_brackets(key: &str, cell: &Cell) -> String {
    let values: Vec<&str> = cell.values().map(String::as_str).collect();
    if key.is_empty() || values.is_empty() { key.to_owned() } else { format!("{key}[{}]", values.join(", ")) }
}

/// Key of the verdict's goal in the ledger.
pub(super) fn goal_key(name: &str, text: &VerdictText, cell: &Cell) -> String {
    key(name, text.goal_of.as_ref().unwrap_or(&text.key), cell)
}

/// `EXPERIMENT.KEY`.
fn key(name: &str, text: &str, cell: &Cell) -> String {
    let key = filled(text, cell);
    if key.contains('.') { key } else { format!("{name}.{key}") }
}

fn answer(text: &Answer, data: &Data) -> String {
    let pooled = data.pooled();
    let cell = Cell::new();
    let shown = |(value, unit): &(String, String)| {
        let value = Expression::checked(value).value(&pooled.at(&cell));
        match (value, unit.as_str()) {
            (None, _) => "-".to_owned(),
            (Some(ms), "ms") => duration(ms),
            (Some(value), "") => figure(value),
            (Some(value), unit) => format!("{} {unit}", figure(value)),
        }
    };
    text.figures.iter().fold(text.text.clone(), |all, (name, one)| all.replace(&format!("{{{name}}}"), &shown(one)))
}
