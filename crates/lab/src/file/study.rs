// SPDX-License-Identifier: MIT
//! Evaluates the trials as the file defines: tables, verdicts and the answer in a sentence.

use super::case::{cells, filled};
use super::chart;
use super::data::{At, AxisValues, Cell, Data};
use super::expression::Expression;
use super::format::{Answer, Column, Definition, Table as TableText, Verdict as VerdictText};
use crate::goals;
use crate::statistics::{Spread, geometric_mean};
use crate::study::{Goal, Study, Table, Verdict, duration, figure, percent, spread_figure};
use std::collections::BTreeMap;

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

/// An expression that the check has accepted.
pub(super) fn parsed(text: &str) -> Expression {
    Expression::parse(text).unwrap_or(Expression::Number(f64::NAN))
}

/// The cells of these axes that match `only` and have measurements.
pub(super) fn measured(data: &Data, axes: &[String], only: &BTreeMap<String, Vec<String>>, within: &Cell) -> Vec<Cell> {
    let axes: Vec<&AxisValues> = axes.iter().filter_map(|name| data.axis(name)).collect();
    let is_left =
        |cell: &Cell| cell.iter().all(|(axis, value)| only.get(axis).is_none_or(|values| values.contains(value)));
    let is_shown = |cell: &Cell| {
        axes.iter().all(|axis| {
            let hidden = axis.values.iter().find(|(name, _)| Some(name) == cell.get(&axis.name));
            hidden.is_none_or(|(_, setting)| setting.hidden != Some(true)) || only.contains_key(&axis.name)
        })
    };
    let with = |cell: Cell| within.clone().into_iter().chain(cell).collect::<Cell>();
    cells(&axes)
        .into_iter()
        .filter(|cell| is_left(cell) && is_shown(cell))
        .map(with)
        .filter(|cell| data.has(cell))
        .collect()
}

/// Replaces `{AXIS}` with titles.
pub(super) fn titled(text: &str, cell: &Cell, data: &Data) -> String {
    filled(text, cell, |axis, value| data.axis(axis).map_or(value, |axis| axis.title(value)).to_owned())
}

/// One value for each turn in which the expression has one.
pub(super) fn spread(expression: &Expression, at: &At) -> Spread {
    Spread::of(at.turns().filter_map(|at| expression.value(&at)).filter(|value| value.is_finite()))
}

fn tables(text: &TableText, data: &Data) -> Vec<Table> {
    let pooled = text.pooled.then(|| data.pooled());
    let shown = pooled.as_ref().unwrap_or(data);
    let of_one = |within: Cell| {
        let heads = text.columns.iter().map(|Column(head, ..)| titled(head, &within, data));
        let row = |cell: Cell| {
            let names = text.rows.iter().map(|axis| titled(&format!("{{{axis}}}"), &cell, data));
            let at = shown.at(&cell);
            names.chain(text.columns.iter().map(|column| shown_in(column, &at))).collect()
        };
        Table {
            key: in_brackets(&text.key, &within),
            title: titled(&text.title, &within, data),
            head: text.rows.iter().cloned().chain(heads).collect(),
            rows: measured(data, &text.rows, &text.only, &within).into_iter().map(row).collect(),
        }
    };
    measured(data, &text.each, &text.only, &Cell::new())
        .into_iter()
        .map(of_one)
        .filter(|table| !table.rows.is_empty())
        .collect()
}

fn shown_in(Column(_, value, how): &Column, at: &At) -> String {
    let spread = spread(&parsed(&filled(value, &at.cell, |_, value| value.to_owned())), at);
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
    measured(data, &text.each, &text.only, &Cell::new())
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
    let expression = parsed(&filled(&text.value, cell, |_, value| value.to_owned()));
    let of = measured(data, &text.across, &text.only, cell);
    let samples = of.iter().flat_map(|cell| {
        let at = data.at(cell);
        let of_turn = |at: At| expression.value(&at).and_then(|_| expression.samples(&at));
        at.turns().filter_map(of_turn).collect::<Vec<_>>()
    });
    let samples: Vec<usize> = samples.collect();
    let mut spreads: Vec<Spread> =
        of.iter().map(|cell| spread(&expression, &data.at(cell))).filter(|one| one.count > 0).collect();
    spreads.sort_by(|one, other| other.median.total_cmp(&one.median));
    let what = titled(&text.what, cell, data);
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
    let key = filled(text, cell, |_, value| value.to_owned());
    if key.contains('.') { key } else { format!("{name}.{key}") }
}

fn answer(text: &Answer, data: &Data) -> String {
    let pooled = data.pooled();
    let cell = Cell::new();
    let shown = |(value, unit): &(String, String)| {
        let value = parsed(value).value(&pooled.at(&cell));
        match (value, unit.as_str()) {
            (None, _) => "-".to_owned(),
            (Some(ms), "ms") => duration(ms),
            (Some(value), "") => figure(value),
            (Some(value), unit) => format!("{} {unit}", figure(value)),
        }
    };
    text.figures.iter().fold(text.text.clone(), |all, (name, one)| all.replace(&format!("{{{name}}}"), &shown(one)))
}
