// SPDX-License-Identifier: MIT
//! Evaluates the trials as the file defines: tables, verdicts, charts, and the answer in a sentence.

use super::data::{At, Cell, Data, filled, number};
use super::expression::Expression;
use super::format::{Answer, Chart as ChartText, Column, Definition, Table as TableText, Verdict};
use crate::goals;
use crate::statistics::{Spread, geometric_mean, mean, median, quantile};
use crate::study::{
    Chart, Goal, GoalCheck, Group, Lane, Lanes, Line, Lines, Panel, Range, Ranges, Scatter, Study, Table, duration,
    figure, percent, quantity, spread_figure,
};

/// `name` is the experiment's name, under which lab/goals.toml lists its goals.
pub(super) fn study(name: &str, definition: &Definition, data: &Data) -> Study {
    Study {
        title: definition.title.clone(),
        question: definition.question.clone(),
        answer: definition.answer.as_ref().map_or_else(String::new, |text| answer(text, data)),
        verdicts: definition.verdict.iter().flat_map(|text| verdicts(name, text, data)).collect(),
        tables: definition.table.iter().flat_map(|text| tables(text, data)).collect(),
        charts: definition.chart.iter().flat_map(|text| charts(text, data)).collect(),
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

fn verdicts(name: &str, text: &Verdict, data: &Data) -> Vec<GoalCheck> {
    data.measured(&text.each, &text.only, &Cell::new())
        .iter()
        .filter_map(|cell| verdict(name, text, cell, data))
        .collect()
}

fn verdict(name: &str, text: &Verdict, cell: &Cell, data: &Data) -> Option<GoalCheck> {
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
        GoalCheck::of_spread(what.clone(), chosen, &text.unit, goal)
    };
    let verdict = match text.by.as_deref() {
        Some("geometric mean") => GoalCheck::of_value(what, geometric_mean(&medians), &text.unit, goal),
        Some("median") => GoalCheck::of_spread(what, Spread::of(medians), &text.unit, goal),
        Some("least") => nth(spreads.len().saturating_sub(1)),
        Some("2nd largest") => nth(1),
        Some("3rd largest") => nth(2),
        Some("4th largest") => nth(3),
        _ => nth(0),
    };
    let key = if text.key.contains('{') { key } else { in_brackets(&key, cell) };
    let verdict = GoalCheck { key, ..verdict };
    Some(if samples.is_empty() { verdict } else { verdict.counting(samples) })
}

/// The key of one of several tables or verdicts, followed by the values of its axes. An empty key stays empty.
fn in_brackets(key: &str, cell: &Cell) -> String {
    let values: Vec<&str> = cell.values().map(String::as_str).collect();
    if key.is_empty() || values.is_empty() { key.to_owned() } else { format!("{key}[{}]", values.join(", ")) }
}

pub(super) fn goal_key(name: &str, text: &Verdict, cell: &Cell) -> String {
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
            (Some(value), unit) => quantity(value, unit),
        }
    };
    text.figures.iter().fold(text.text.clone(), |all, (name, one)| all.replace(&format!("{{{name}}}"), &shown(one)))
}

/// Kinds of charts.
pub(super) const KINDS: [&str; 4] = ["ranges", "lines", "scatter", "lanes"];
/// Maximum number of samples to draw over their index. More of them could not be told apart.
const CHARTED: usize = 100;

pub(super) fn charts(text: &ChartText, data: &Data) -> Vec<Chart> {
    let each = data.measured(&text.each, &text.only, &Cell::new());
    each.iter().filter_map(|within| chart(text, data, within)).collect()
}

fn chart(text: &ChartText, data: &Data, within: &Cell) -> Option<Chart> {
    let title = data.titled(&text.title, within);
    let (x_label, y_label) = (text.x_label.clone(), text.y_label.clone());
    match text.kind.as_str() {
        "ranges" => {
            let group = |within: Cell| Group {
                name: title_of(&text.groups, &within, data),
                ranges: ranges(text, data, &within),
            };
            let groups = data.measured(&text.groups, &text.only, within).into_iter().map(group);
            let groups: Vec<Group> = groups.filter(|group| !group.ranges.is_empty()).collect();
            (!groups.is_empty()).then_some(Chart::Ranges(Ranges { title, x_label, groups }))
        }
        "lines" => {
            let mut drawn = lines(text, data, within);
            if let Some(paper) = &text.paper {
                let of_paper = |line: Line| Line { case: "paper".to_owned(), name: line.name + ", paper", ..line };
                let text = ChartText { y: paper.clone(), ..text.clone() };
                drawn.extend(lines(&text, data, within).into_iter().map(of_paper));
            }
            let (log_x, log_y) = (text.log.contains('x'), text.log.contains('y'));
            (!drawn.is_empty()).then_some(Chart::Lines(Lines { title, x_label, y_label, log_y, log_x, lines: drawn }))
        }
        "lanes" => lanes(text, data, within, title).map(Chart::Lanes),
        _ => {
            let panel = |Line { case, name, points, .. }| Panel { case, name, points };
            let panels: Vec<Panel> = lines(text, data, within).into_iter().map(panel).collect();
            (!panels.is_empty()).then_some(Chart::Scatter(Scatter { title, x_label, y_label, panels }))
        }
    }
}

/// The points of each case that has some.
fn lines(text: &ChartText, data: &Data, within: &Cell) -> Vec<Line> {
    let line = |(case, cell): (String, Cell)| Line {
        case,
        name: title_of(std::slice::from_ref(&text.of), &cell, data),
        points: points(text, data, &cell),
        ..Line::default()
    };
    cases(text, data, within).into_iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

/// Slices of server time in the first turn, with a lane for each client: the measured one and the load.
fn lanes(text: &ChartText, data: &Data, within: &Cell, title: String) -> Option<Lanes> {
    let at = data.at(within).turns().next()?;
    let samples = |name: &str| at.samples(&format!("{}.{name}", text.y)).map(|found| found.to_vec());
    let lane = |(number, places): (usize, Vec<f64>)| Lane {
        case: if number == 0 { within.get(&text.of).cloned().unwrap_or_default() } else { "idle".to_owned() },
        name: if number == 0 { text.y_label.clone() } else { format!("client {number}") },
        slices: places.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect(),
        ..Lane::default()
    };
    let of_each = (0..).map_while(|number: usize| samples(&number.to_string()));
    let mut lanes: Vec<Lane> = of_each.enumerate().map(lane).collect();
    let of_own = |name| samples(name).unwrap_or_default();
    let own = lanes.first_mut()?;
    (own.arrivals, own.ends, own.deadlines) = (of_own("arrivals"), of_own("ends"), of_own("deadlines"));
    let length = lanes.iter().flat_map(|lane| lane.slices.iter().map(|slice| slice[1])).fold(0.0, f64::max);
    Some(Lanes { title, x_label: text.x_label.clone(), length, lanes })
}

fn cases(text: &ChartText, data: &Data, within: &Cell) -> Vec<(String, Cell)> {
    let of = data.measured(std::slice::from_ref(&text.of), &text.only, within);
    of.into_iter().filter_map(|cell| Some((cell.get(&text.of)?.clone(), cell))).collect()
}

fn title_of(axes: &[String], cell: &Cell, data: &Data) -> String {
    let braced: Vec<String> = axes.iter().map(|axis| format!("{{{axis}}}")).collect();
    data.titled(&braced.join(", "), cell)
}

/// For each case, the medians over the turns.
fn ranges(text: &ChartText, data: &Data, within: &Cell) -> Vec<Range> {
    let range = |(case, cell): (String, Cell)| {
        let turns = data.at(&cell).turns().filter_map(|at| at.samples(&text.y)).filter(|samples| !samples.is_empty());
        let turns: Vec<&[f64]> = turns.collect();
        let part = |part| median(turns.iter().map(|samples| quantile(samples.iter().copied(), part)));
        let mean = median(turns.iter().map(|samples| mean(samples)));
        (!turns.is_empty()).then(|| Range { case, p50: part(0.50), mean, p99: part(0.99), worst: part(1.0) })
    };
    cases(text, data, within).into_iter().filter_map(range).collect()
}

/// Points over a numeric axis, or samples drawn over other samples or over their own index.
fn points(text: &ChartText, data: &Data, cell: &Cell) -> Vec<[f64; 2]> {
    let axis = text.x.as_ref().and_then(|name| data.axis(name));
    if let Some(axis) = axis {
        let y = Expression::checked(&text.y);
        let point = |cell: Cell| {
            let x = number(cell.get(&axis.name)?)?;
            let y = y.spread(&data.at(&cell));
            (y.count > 0).then_some([x, y.median])
        };
        let cells = data.measured(std::slice::from_ref(&axis.name), &text.only, cell);
        return cells.into_iter().filter_map(point).collect();
    }
    let whole = text.kind == "scatter";
    let mut points = Vec::new();
    let mut offset = 0.0;
    for at in data.at(cell).turns().take(if whole { usize::MAX } else { 1 }) {
        let Some(y) = at.samples(&text.y) else { continue };
        match text.x.as_ref().and_then(|x| at.samples(x)) {
            Some(x) => {
                // Microseconds are precise enough for the page, and the numbers stay short.
                let short = |value: f64| (value * 1e3).round() / 1e3;
                points.extend(x.iter().zip(y.iter()).map(|(&x, &y)| [short(offset + x), short(y)]));
                offset = points.last().map_or(offset, |point| point[0]);
            }
            None => points.extend(y.iter().take(CHARTED).enumerate().map(|(index, &y)| [index as f64, y])),
        }
    }
    points
}
