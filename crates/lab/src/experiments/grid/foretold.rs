// SPDX-License-Identifier: MIT
//! What one capture over the fastest line foretells: the same start over all others, and behind proxies that nobody can
//! run any more, or not yet.
//!
//! Each raw cell at 100 Mb/s and 0.1 ms says, by the pure model of `xqos analyse --predict`, what the other cells of its
//! program should have measured. So each grid holds the model against itself.

use super::case::Transport;
use super::{Grid, Measured};
use crate::experiments::far::{Line, Program, delay_title, rate_title};
use crate::goals::Key;
use crate::statistics::Spread;
use crate::study::{Columns, Goal, Table, Verdict, figure, percent};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::Path;
use xqos_wire::analysis::Analysis;
use xqos_wire::analysis::proxied::Proxy;
use xqos_wire::observe::Observer;
use xqos_wire::predict::script::{Recorder, Script};
use xqos_wire::predict::{foretell, grid};
use xqos_wire::session::{self, Session};

/// Whose captures foretell.
pub(super) const FASTEST: Line = Line { kbit_per_s: 100_000, delay_us: 100 };

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Foretold {
    /// As captured, then behind lbx, strict and relaxed: waits, and starts over each line.
    pub ways: Vec<Way>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Way {
    pub waits: u64,
    pub starts: Vec<Start>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Start {
    pub line: Line,
    pub elapsed_s: f64,
    pub delay_s: f64,
}

impl Foretold {
    /// `None`: the capture lacks something.
    pub fn of_capture(capture: &Path) -> Result<Option<Foretold>> {
        let proxies = || [None].into_iter().chain(Proxy::ALL.map(Some));
        let mut analyses: Vec<Analysis> = proxies().map(Analysis::behind).collect();
        let mut recorders: Vec<Recorder> = proxies().map(Recorder::behind).collect();
        let observers = analyses.iter_mut().map(|analysis| analysis as &mut dyn Observer);
        let observers = observers.chain(recorders.iter_mut().map(|recorder| recorder as &mut dyn Observer));
        session::read(capture, Session::new(observers.collect()))?;
        let ways = analyses.into_iter().zip(recorders).map(|(analysis, recorder)| {
            let figures = analysis.report(0.0).session.figures;
            let waits = figures.proxy.map_or(figures.round_trips, |proxy| proxy.left);
            Some(Way { waits, starts: starts(&recorder.script()?)? })
        });
        Ok(ways.collect::<Option<Vec<Way>>>().map(|ways| Foretold { ways }))
    }

    fn start(&self, way: usize, line: Line) -> Option<&Start> {
        self.ways.get(way)?.starts.iter().find(|start| start.line == line)
    }
}

fn starts(script: &Script) -> Option<Vec<Start>> {
    let lines =
        Line::RATES.into_iter().flat_map(|kbit_per_s| Line::DELAYS.map(|delay_us| Line { kbit_per_s, delay_us }));
    let start = |line: Line| {
        let foretold = foretell(script, &grid::link(line.kbit_per_s, line.delay_us))?;
        let [elapsed_s, delay_s] = [foretold.elapsed_ns, foretold.delay_ns].map(|ns| ns as f64 / 1e9);
        Some(Start { line, elapsed_s, delay_s })
    };
    lines.map(start).collect()
}

fn of(grid: &Grid, program: Program) -> Option<&Foretold> {
    grid.measured(program, Transport::Raw, FASTEST)?.foretold.as_ref()
}

/// A cell that came to rest, with what was foretold of it.
fn held<'g>(grid: &'g Grid, program: Program) -> impl Iterator<Item = (&'g Start, &'g Measured)> {
    let starts = of(grid, program).and_then(|foretold| foretold.ways.first()).map(|way| way.starts.as_slice());
    let pair = move |start: &'g Start| Some((start, grid.measured(program, Transport::Raw, start.line)?));
    starts.unwrap_or_default().iter().filter_map(pair).filter(|(_, measured)| measured.is_quiet)
}

/// How far it is off, in percent, over all programs' cells.
fn errors(grid: &Grid) -> Vec<f64> {
    let programs = Program::ALL.into_iter();
    programs.flat_map(|program| held(grid, program)).map(|(start, measured)| 100.0 * error(start, measured)).collect()
}

fn error(start: &Start, measured: &Measured) -> f64 {
    (start.elapsed_s / measured.elapsed_s - 1.0).abs()
}

pub(super) fn verdicts(grid: &Grid) -> Vec<Verdict> {
    let spread = Spread::of(errors(grid));
    if spread.count == 0 {
        return Vec::new();
    }
    let (median, worst) = (Goal::of(Key("grid.foretold")), Goal::of(Key("grid.foretold_worst")));
    let most = spread.greatest;
    vec![
        Verdict::of_spread("start-up foretold from one capture, off by, raw X", spread, "%", median),
        Verdict::of_value("the same, the worst cell", most, "%", worst),
    ]
}

pub(super) fn tables(grid: &Grid) -> Vec<Table> {
    let programs = || Program::ALL.into_iter().filter(|&program| of(grid, program).is_some());
    let mut tables = vec![accuracy(grid, programs()), left(grid, programs())];
    tables.extend(programs().map(|program| behind(grid, program)));
    tables
}

fn accuracy(grid: &Grid, programs: impl Iterator<Item = Program>) -> Table {
    let spread = |program, figure: &dyn Fn(&Start, &Measured) -> f64| {
        Spread::of(held(grid, program).map(|(start, measured)| figure(start, measured)))
    };
    let delay = |start: &Start, measured: &Measured| (start.delay_s / measured.delay_s - 1.0).abs();
    let rows = programs.map(|program| (program, spread(program, &error), spread(program, &delay)));
    Columns::of("Foretold from one capture at 100 Mb/s, 0.1 ms, against the cells of raw X that came to rest", rows)
        .cell("program", |(program, ..)| program.title().to_owned())
        .cell("cells", |(_, start, _)| start.count.to_string())
        .cell("start-up off by", |(_, start, _)| percent(start.median))
        .cell("worst", |(_, start, _)| percent(start.greatest))
        .cell("delay off by", |(.., delay)| percent(delay.median))
        .cell("worst", |(.., delay)| percent(delay.greatest))
        .table()
}

fn left(grid: &Grid, programs: impl Iterator<Item = Program>) -> Table {
    let waits = |program: Program, way: usize| {
        of(grid, program)
            .and_then(|foretold| foretold.ways.get(way))
            .map_or("-".to_owned(), |way| way.waits.to_string())
    };
    Columns::of("Round trips waited for at the start, and those that a proxy beside the program would leave", programs)
        .cell("program", |program| program.title().to_owned())
        .cell("raw X", |&program| waits(program, 0))
        .cell("LBX", |&program| waits(program, 1))
        .cell("strict", |&program| waits(program, 2))
        .cell("relaxed", |&program| waits(program, 3))
        .table()
}

/// Seconds until quiet: what was measured, and what is foretold behind each proxy, where waits matter.
fn behind(grid: &Grid, program: Program) -> Table {
    let lines = [100_000, 10_000, 1_000]
        .into_iter()
        .flat_map(|kbit_per_s| [10_000, 100_000].map(|delay_us| Line { kbit_per_s, delay_us }));
    let measured = |line, transport| match grid.measured(program, transport, line) {
        Some(measured) if measured.is_quiet => figure(measured.elapsed_s),
        Some(measured) => format!("> {}", figure(measured.limit_s)),
        None => "-".to_owned(),
    };
    let foretold = |line, way| {
        let start = of(grid, program).and_then(|foretold| foretold.start(way, line));
        start.map_or("-".to_owned(), |start| figure(start.elapsed_s))
    };
    let title = format!("{}: seconds until quiet, measured and (f) foretold", program.title());
    Columns::of(title, lines)
        .cell("link", |line| format!("{} / {}", rate_title(line.kbit_per_s), delay_title(line.delay_us)))
        .cell("raw X", |&line| measured(line, Transport::Raw))
        .cell("ssh -C -Y", |&line| measured(line, Transport::SshC))
        .cell("raw X (f)", |&line| foretold(line, 0))
        .cell("LBX (f)", |&line| foretold(line, 1))
        .cell("strict (f)", |&line| foretold(line, 2))
        .cell("relaxed (f)", |&line| foretold(line, 3))
        .table()
}

/// What a line adds over the fastest, behind a proxy over raw X; nothing where it was not foretold.
pub(super) fn added(grid: &Grid, way: usize, line: Line) -> Spread {
    let ratio = |program| {
        let foretold = of(grid, program)?;
        let added = |way| Some(foretold.start(way, line)?.delay_s - foretold.start(way, FASTEST)?.delay_s);
        let (above, below): (f64, f64) = (added(way)?, added(0)?);
        (below > 0.0).then(|| above / below)
    };
    Spread::of(Program::ALL.into_iter().filter_map(ratio))
}

#[cfg(test)]
mod tests {
    use super::super::cell::Outcome;
    use super::super::invented;
    use super::*;

    /// Each start over each line takes a tenth more than was measured, and half of that behind a proxy.
    fn foretold(grid: &Grid, program: Program) -> Foretold {
        let starts = |part: f64| {
            let cells =
                grid.cells.iter().filter(|cell| (cell.case.program, cell.case.transport) == (program, Transport::Raw));
            let start = |cell: &super::super::Cell| {
                let measured = cell.measured()?;
                let line = cell.case.line;
                Some(Start { line, elapsed_s: 1.1 * part * measured.elapsed_s, delay_s: part * measured.delay_s })
            };
            cells.filter_map(start).collect()
        };
        let way = |(waits, part)| Way { waits, starts: starts(part) };
        Foretold { ways: [(100, 1.0), (60, 0.7), (40, 0.5), (20, 0.3)].map(way).into() }
    }

    fn with_foretold() -> Grid {
        let mut grid = invented();
        let all = Program::ALL.map(|program| foretold(&grid, program));
        for cell in grid.cells.iter_mut().filter(|cell| cell.case.line == FASTEST) {
            let place = Program::ALL.iter().position(|&program| program == cell.case.program).unwrap();
            if let (Transport::Raw, Outcome::Measured(measured)) = (cell.case.transport, &mut cell.outcome) {
                measured.foretold = Some(all[place].clone());
            }
        }
        grid
    }

    #[test]
    fn what_is_foretold_is_held_against_the_cells_that_came_to_rest() {
        let grid = with_foretold();
        let verdicts = verdicts(&grid);
        let quiet = grid.cells.iter().filter(|cell| cell.case.transport == Transport::Raw);
        let quiet = quiet.filter(|cell| cell.measured().is_some_and(|measured| measured.is_quiet)).count();
        assert_eq!(verdicts[0].samples.had, quiet);
        assert!((verdicts[1].value - 10.0).abs() < 1e-6, "{verdicts:?}");
        assert!((added(&grid, 2, Line { kbit_per_s: 10_000, delay_us: 100_000 }).median - 0.5).abs() < 1e-6);
    }

    #[test]
    fn the_tables_have_each_program_and_none_where_nothing_was_foretold() {
        let tables = tables(&with_foretold());
        assert_eq!(tables.len(), 2 + 5);
        assert_eq!(tables[1].rows[0][1..], ["100", "60", "40", "20"]);
        assert!(super::tables(&invented()).iter().all(|table| table.rows.is_empty()));
    }
}
