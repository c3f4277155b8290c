// SPDX-License-Identifier: MIT
//! X over slow links: the grid of Packard and Gettys (2003) for today's programs and ways to carry X.
//!
//! Each cell is a program, a way (raw, ssh, ssh -C, nxproxy, nxproxy that answers the sync itself) and a link of a rate and a
//! delay. A program is started at one end of an emulated link and watched until it is quiet; then all of it ends, and the
//! next cell begins from nothing. The measure is the paper's: total network delay, relative to 10 Mb/s and 0.1 ms.
//!
//! A slow link leaves its machine idle, so cells on slow links are measured several at once.
//!
//! Cells that are done are kept one by one, since all of them take hours: a run that was interrupted goes on. A cell that
//! is not quiet within its limit says so and is no failure; its figures are bounds from below.

mod case;
mod cell;
mod charts;
mod findings;
mod foretold;
mod tables;

use super::far::{Cells, Line, Program, ssh};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::program;
use crate::study::Study;
use anyhow::Result;
use case::{Case, Transport};
use cell::{Cell, Measured};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const FULL_LIMIT: Duration = Duration::from_secs(60);
const QUICK_LIMIT: Duration = Duration::from_secs(7);
/// With a part of a cell's title in it, such as `nxproxy`, only these are measured.
const ONLY: &str = "XQOS_GRID_ONLY";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Grid {
    cells: Vec<Cell>,
}

impl Measure for Grid {
    const NAME: &'static str = "grid";
    const ABOUT: &'static str = "X over slow links: raw, ssh and nxproxy (Packard and Gettys 2003)";
    const TAKES: Takes = Takes { quick_s: 60, full_s: 3_600 };
    const PAIRED: bool = false;

    fn run(bench: &Bench) -> Result<Self> {
        program::require("Xvfb")?;
        let limit = if bench.quick { QUICK_LIMIT } else { FULL_LIMIT };
        let cells = Cells::of(bench, ONLY, case::all(bench.quick))?;
        let _folder = ssh::PrivilegeFolder::make();
        let cells = cells.measure(bench, limit, |case, place| Cell::measure(case, place, limit))?;
        Ok(Grid { cells })
    }

    fn study(&self) -> Study {
        findings::study(self)
    }
}

impl Grid {
    fn cell(&self, program: Program, transport: Transport, line: Line) -> Option<&Cell> {
        let case = Case { program, transport, line };
        self.cells.iter().find(|cell| cell.case == case)
    }

    fn measured(&self, program: Program, transport: Transport, line: Line) -> Option<&Measured> {
        self.cell(program, transport, line)?.measured()
    }

    /// Total network delay over that of the same program with raw X at 10 Mb/s and 0.1 ms.
    fn relative(&self, program: Program, transport: Transport, line: Line) -> Option<f64> {
        let base_s = self.measured(program, Transport::Raw, case::BASE)?.delay_s;
        let delay_s = self.measured(program, transport, line)?.delay_s;
        (base_s > 0.0).then(|| delay_s / base_s)
    }

    /// Programs with cells, in the order of the tables.
    fn programs(&self) -> Vec<Program> {
        Program::ALL.into_iter().filter(|&program| self.cells.iter().any(|cell| cell.case.program == program)).collect()
    }

    fn transports(&self) -> Vec<Transport> {
        let has = |transport| self.cells.iter().any(|cell| cell.case.transport == transport);
        Transport::ALL.into_iter().filter(|&transport| has(transport)).collect()
    }

    /// Slow ones last, as on the axes of the paper; those with cells.
    fn lines(&self) -> Vec<Line> {
        let all =
            Line::RATES.into_iter().flat_map(|kbit_per_s| Line::DELAYS.map(|delay_us| Line { kbit_per_s, delay_us }));
        all.filter(|&line| self.cells.iter().any(|cell| cell.case.line == line)).collect()
    }
}

/// For tests: a grid by arithmetic.
#[cfg(test)]
fn invented() -> Grid {
    let mut cells = Vec::new();
    for case in case::all(false) {
        let Line { kbit_per_s, delay_us } = case.line;
        let (bytes, trips) = match case.transport {
            Transport::Raw | Transport::Ssh => (60_000.0, 100.0),
            Transport::SshC | Transport::Nx => (6_000.0, 100.0),
            Transport::NxTaint => (6_000.0, 95.0),
        };
        let fewer = if case.program == Program::XtermFa { 0.5 } else { 1.0 };
        let waiting_s = fewer * trips * (2.0 * delay_us as f64 / 1e6 + 0.0003);
        let delay_s = waiting_s + bytes * 8.0 / (kbit_per_s as f64 * 1e3);
        let measured = Measured {
            is_quiet: delay_s < 60.0,
            limit_s: 60.0,
            elapsed_s: delay_s.min(59.5) + 0.5,
            delay_s: delay_s.min(60.0),
            reply_wait_s: waiting_s,
            round_trips: trips as u64,
            x_bytes: 60_000,
            link_bytes: [bytes as u64 / 2; 2],
            link_s: delay_s + 0.5,
            dropped: 0,
            agreement: (case.transport == Transport::Raw).then_some([0.99, 0.97]),
            foretold: None,
        };
        cells.push(Cell { case, outcome: cell::Outcome::Measured(measured) });
    }
    Grid { cells }
}
