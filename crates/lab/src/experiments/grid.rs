// SPDX-License-Identifier: MIT
//! X over slow links: the grid of Packard and Gettys (2003) for today's programs and transports.
//!
//! The metric is the paper's: total network delay relative to raw X over 10 Mb/s and 0.1 ms. The full grid takes an
//! hour.

mod charts;
mod predicted;
mod requests;
mod tables;

use super::far::{self, Capture, Case, Cell, Cells, Line, Program, Route};
use super::{Estimate, Measure};
use crate::bench::Bench;
use crate::goals::Key;
use crate::program;
use crate::statistics::Spread;
use crate::study::{Goal, Study, Verdict};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A start that takes longer is predicted, if it can be.
const FULL_LIMIT: Duration = Duration::from_secs(600);
const QUICK_LIMIT: Duration = Duration::from_secs(7);
/// Environment variable. If it is set to part of a cell's title, such as `nxproxy`, only matching cells are measured.
const ONLY: &str = "XQOS_GRID_ONLY";
const ROUTES: [Route; 5] = [Route::Raw, Route::SshC, Route::Nx, Route::NxTaint, Route::Ssh];
/// The base line. All figures are relative to raw X over this line.
const BASE: Line = Line { kbit_per_s: 10_000, delay_us: 100 };
/// The effective rate of the paper's compressed link.
const BACKGROUND: Line = Line { kbit_per_s: 3_000, delay_us: 100 };

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Grid {
    cells: Cells,
}

impl Measure for Grid {
    const NAME: &'static str = "grid";
    const ABOUT: &'static str = "X over slow links: raw, ssh and nxproxy (Packard and Gettys 2003)";
    const ESTIMATE: Estimate = Estimate { quick_s: 60, full_s: 9_000 };
    const PAIRED: bool = false;

    fn run(bench: &Bench) -> Result<Self> {
        program::require("Xvfb")?;
        let (cases, limit) = if bench.quick { (quick(), QUICK_LIMIT) } else { (all(), FULL_LIMIT) };
        Ok(Grid { cells: far::measure(bench, ONLY, &cases, limit, is_worth)? })
    }

    fn study(&self) -> Study {
        Study {
            title: "X over slow links".to_owned(),
            question: "How long does a program wait for the network while it starts?".to_owned(),
            verdicts: verdicts(&self.cells).into_iter().chain(predicted::verdicts(&self.cells)).collect(),
            tables: tables::all(&self.cells),
            charts: charts::all(&self.cells),
            ..Study::default()
        }
    }
}

fn case(program: Program, way: Route, line: Line) -> Case {
    Case { program, way, line, watched: Capture::AtProgram, turn: 0 }
}

/// The main programs over all transports and lines; the others where they show most.
fn routes(program: Program, line: Line) -> &'static [Route] {
    match program {
        _ if Program::MAIN.contains(&program) => &ROUTES,
        Program::Background => &[Route::Raw, Route::SshC, Route::Ssh],
        _ if line.kbit_per_s == 1_000 || [100, 100_000].contains(&line.delay_us) => &[Route::Raw, Route::SshC],
        _ => &[],
    }
}

/// The base line and the line from which others are predicted, then slow lines, then fast ones, so that the cells on
/// slow lines are consecutive.
fn all() -> Vec<Case> {
    let cells = |program, line| routes(program, line).iter().map(move |&way| case(program, way, line));
    let of = |line| Program::ALL.into_iter().flat_map(move |program| cells(program, line));
    let mut cases: Vec<Case> = Line::all().flat_map(of).chain(cells(Program::Background, BACKGROUND)).collect();
    cases.sort_by_key(|&case| (case.line != BASE, case.line != Line::KNOWN, !case.line.is_slow()));
    cases
}

/// False for a start without compression that is known to take longer than the limit.
fn is_worth(done: &[Cell], case: Case) -> bool {
    let of_program = done.iter().filter(|cell| cell.case.program == case.program);
    let mut starts = of_program.filter_map(|cell| cell.outcome.as_ref().ok()?.predicted.as_ref()?.start(0, case.line));
    let is_plain = matches!(case.way, Route::Raw | Route::Ssh);
    !is_plain || starts.all(|start| start.elapsed_s < FULL_LIMIT.as_secs_f64())
}

/// Four of the fastest lines. In UTF-8, xterm requests 3 MB of font metrics and waits 260 times.
fn quick() -> Vec<Case> {
    let lines = [(10_000, 100), (1_000, 100), (10_000, 1_000), (1_000, 1_000)];
    let lines = lines.into_iter().map(|(kbit_per_s, delay_us)| Line { kbit_per_s, delay_us });
    lines.flat_map(|line| [Route::Raw, Route::SshC].map(|way| case(Program::Xterm, way, line))).collect()
}

/// Total network delay in seconds, and its mark: `> ` for a start that was cut off, `~ ` for a prediction.
fn delay(cells: &Cells, program: Program, way: Route, line: Line) -> Option<(&'static str, f64)> {
    let measured = cells.start(program, way, line).map(|start| (start.bound(), start.delay_s));
    measured.or_else(|| Some(("~ ", predicted::raw(cells, program, line).filter(|_| way == Route::Raw)?.delay_s)))
}

/// Total network delay, relative to the same program with raw X over the base line.
fn relative(cells: &Cells, program: Program, way: Route, line: Line) -> Option<f64> {
    let base_s = cells.start(program, Route::Raw, BASE)?.delay_s;
    let (_, delay_s) = delay(cells, program, way, line)?;
    (base_s > 0.0).then(|| delay_s / base_s)
}

fn verdicts(cells: &Cells) -> Vec<Verdict> {
    let starts = || cells.0.iter().filter_map(|cell| cell.outcome.as_ref().ok());
    let agreed = starts().filter_map(|start| start.agreement);
    // The worse direction of each cell, in percent.
    let spread = Spread::of(agreed.map(|[requests, replies]| 100.0 * requests.min(replies)));
    if spread.count == 0 {
        return Vec::new();
    }
    let dropped: u64 = starts().map(|start| start.dropped).sum();
    let goal = Goal::of(Key("grid.agreement"));
    vec![
        Verdict::of_spread("raw X: time in which capture and queue log agree on idle or blocked", spread, "%", goal),
        Verdict::of_value("raw X: agreement of capture and queue log, worst cell", spread.least, "%", goal),
        Verdict::of_value("packets lost by the captures", dropped as f64, "", Goal::Reported),
    ]
}

#[cfg(test)]
mod tests;
