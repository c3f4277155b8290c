// SPDX-License-Identifier: MIT
//! Compares predictions from captures over the fastest line with the other cells, so each grid tests the model. Also
//! shows predictions for proxies that are not run, and for requests that ask for many answers.

use super::super::far::{Cells, Line, Predicted, PredictedStart, Program, Route, Start, by_program};
use crate::goals::Key;
use crate::statistics::Spread;
use crate::study::{Columns, Goal, Table, Verdict, figure};

/// Columns of the proxies, in the order of the predictions.
pub(super) const PROXIES: [&str; 5] = ["raw X", "LBX", "strict", "relaxed", "requests for many"];

fn of(cells: &Cells, program: Program) -> Option<&Predicted> {
    cells.start(program, Route::Raw, Line::KNOWN)?.predicted.as_ref()
}

/// The start over raw X without a proxy.
pub(super) fn raw(cells: &Cells, program: Program, line: Line) -> Option<&PredictedStart> {
    of(cells, program)?.start(0, line)
}

fn programs(cells: &Cells) -> impl Iterator<Item = Program> {
    cells.programs().into_iter().filter(|&program| of(cells, program).is_some())
}

/// Program starts that became quiet, with their predictions.
fn quiet_starts<'c>(cells: &'c Cells, program: Program) -> impl Iterator<Item = (&'c PredictedStart, &'c Start)> {
    let starts = of(cells, program).and_then(|predicted| predicted.0.first()).map(|way| way.starts.as_slice());
    let pair = move |one: &'c PredictedStart| Some((one, cells.start(program, Route::Raw, one.line)?));
    starts.unwrap_or_default().iter().filter_map(pair).filter(|(_, start)| start.is_quiet)
}

/// Error of the prediction, in percent of the measured value.
fn error((predicted, start): (&PredictedStart, &Start)) -> f64 {
    100.0 * (predicted.elapsed_s / start.elapsed_s - 1.0).abs()
}

pub(super) fn verdicts(cells: &Cells) -> Vec<Verdict> {
    let spread = Spread::of(programs(cells).flat_map(|program| quiet_starts(cells, program)).map(error));
    if spread.count == 0 {
        return Vec::new();
    }
    let (median, worst) = (Goal::of(Key("grid.foretold")), Goal::of(Key("grid.foretold_worst")));
    vec![
        Verdict::of_spread("raw X: error of the start-up time predicted from one capture", spread, "%", median),
        Verdict::of_value("raw X: error of the predicted start-up time, worst cell", spread.greatest, "%", worst),
    ]
}

pub(super) fn tables(cells: &Cells) -> Vec<Table> {
    let mut tables = vec![left(cells)];
    tables.extend(programs(cells).map(|program| behind(cells, program)));
    tables
}

fn left(cells: &Cells) -> Table {
    let waits = |program: Program, proxy: usize| {
        let proxied = of(cells, program).and_then(|predicted| predicted.0.get(proxy));
        proxied.map_or("-".to_owned(), |proxied| proxied.waits.to_string())
    };
    let title =
        "Round trips at the start, and those left with a proxy next to the program or with requests for many answers";
    let columns = by_program(title, programs(cells));
    let add = |columns: Columns<Program>, (proxy, name)| columns.cell(name, move |&program| waits(program, proxy));
    PROXIES.into_iter().enumerate().fold(columns, add).table()
}

/// Measured and predicted start-up times over the lines on which round trips matter.
fn behind(cells: &Cells, program: Program) -> Table {
    let lines =
        [100_000, 10_000, 1_000].into_iter().flat_map(|kbit_per_s| Line::by_delay(kbit_per_s).into_iter().skip(2));
    let measured = |line, way| {
        cells.text(program, way, line, |start| {
            format!("{}{}", start.bound(), figure(if start.is_quiet { start.elapsed_s } else { start.limit_s }))
        })
    };
    let predicted = |line, proxy| {
        let start = of(cells, program).and_then(|predicted| predicted.start(proxy, line));
        start.map_or("-".to_owned(), |start| figure(start.elapsed_s))
    };
    let title = format!("{}: seconds until quiet, measured and predicted", program.title());
    let columns = Columns::of(title, lines)
        .cell("link", |line| line.title())
        .cell("raw X", |&line| measured(line, Route::Raw))
        .cell("ssh -C -Y", |&line| measured(line, Route::SshC));
    let add = |columns: Columns<Line>, (proxy, name)| {
        columns.cell(format!("{name}, predicted"), move |&line| predicted(line, proxy))
    };
    PROXIES.into_iter().enumerate().fold(columns, add).table()
}

/// Delay that `line` adds to that of the fastest line: with this proxy, relative to raw X. `None` without a prediction.
pub(super) fn added(cells: &Cells, program: Program, proxy: usize, line: Line) -> Option<f64> {
    let predicted = of(cells, program)?;
    let delay_s = |proxy, line| Some(predicted.start(proxy, line)?.delay_s);
    let added_s = |proxy| Some(delay_s(proxy, line)? - delay_s(proxy, Line::KNOWN)?);
    Some(added_s(proxy)? / added_s(0)?)
}
