// SPDX-License-Identifier: MIT
//! Programs far from their X server, with and without `xqos near` beside them.
//!
//! Each cell is a program, a way (raw X, ssh -C -Y, nxproxy, near in both orders, xqos ssh) and a delay at 10 Mb/s. The
//! program is started at one end of an emulated link, at its second start as far as near is concerned, and watched at the
//! other end until it is quiet. Where waits are felt somebody then works with it. What near costs is measured where there is
//! nothing to be gained: beside the server.

mod case;
mod cell;
mod cost;
mod findings;
mod learnt;
mod start;
mod steady;
mod tables;

use super::far::{Cells, Program, ssh};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::program;
use crate::study::Study;
use anyhow::Result;
use case::{Case, PROGRAMS, Place, Way};
use cell::{Cell, Start};
use cost::Cost;
use learnt::Learnt;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The slowest of these starts takes 90 s.
const LIMIT: Duration = Duration::from_secs(120);

/// With a part of a cell's title in it, such as `xqos ssh`, only these are measured.
const ONLY: &str = "XQOS_NEAR_ONLY";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Near {
    cells: Vec<Cell>,
    costs: Vec<Cost>,
}

impl Measure for Near {
    const NAME: &'static str = "near";
    const ABOUT: &'static str = "programs far from their X server, with and without xqos near beside them";
    const TAKES: Takes = Takes { quick_s: 120, full_s: 1_400 };
    const PAIRED: bool = false;

    fn run(bench: &Bench) -> Result<Self> {
        ["Xvfb", "x11perf"].into_iter().try_for_each(program::require)?;
        let all = case::all(bench.quick);
        let count = all.len();
        let cells = Cells::<Cell>::of(bench, ONLY, all)?;
        let is_whole = cells.wanted() == count;
        let is_to_do = |program: &Program| cells.to_do.iter().any(|case| case.program == *program);
        let to_learn = PROGRAMS.into_iter().filter(is_to_do);
        let learnt = Learnt::of(to_learn, |program| bench.say(format!("{}: its first start", program.title())))?;
        let _folder = ssh::PrivilegeFolder::make();
        let cells = cells.measure(bench, LIMIT, |case, place| Cell::measure(case, place, LIMIT, &learnt))?;
        let costs = if is_whole { Cost::measure_all(bench)? } else { Vec::new() };
        Ok(Near { cells, costs })
    }

    fn study(&self) -> Study {
        findings::study(self)
    }
}

impl Near {
    fn of(&self, program: Program, way: Way, place: Place) -> impl Iterator<Item = &Cell> {
        let is_it = move |case: &Case| (case.program, case.way, case.place) == (program, way, place);
        self.cells.iter().filter(move |cell| is_it(&cell.case))
    }

    /// The first turn's, which far cells have alone.
    fn start(&self, program: Program, way: Way, place: Place) -> Option<&Start> {
        self.of(program, way, place).find_map(|cell| cell.outcome.as_ref().ok())
    }

    /// How many times as long one way takes as another, from the command until quiet.
    fn faster(&self, program: Program, way: Way, than: Way, place: Place) -> Option<f64> {
        let elapsed_s = |way| Some(self.start(program, way, place)?.elapsed_s);
        Some(elapsed_s(than)? / elapsed_s(way)?)
    }

    fn programs(&self) -> Vec<Program> {
        PROGRAMS.into_iter().filter(|&program| self.cells.iter().any(|cell| cell.case.program == program)).collect()
    }

    fn ways(&self) -> Vec<Way> {
        Way::ALL.into_iter().filter(|&way| self.cells.iter().any(|cell| cell.case.way == way)).collect()
    }
}
