// SPDX-License-Identifier: MIT
//! Programs far from their X server, with and without `xqos near`.
//!
//! The clock starts with the command, and keys are pressed after the start. The cost of near is measured where it has
//! no benefit: on the machine of the server.

mod cost;
mod tables;

use super::far::{self, Capture, Case, Cells, Line, Program, Route};
use super::{Estimate, Measure};
use crate::bench::Bench;
use crate::goals::Key;
use crate::order::in_turn;
use crate::program;
use crate::statistics::{Spread, ratios};
use crate::study::{Chart, Goal, Line as Drawn, Lines, Study, Verdict};
use anyhow::Result;
use cost::Cost;
use serde::{Deserialize, Serialize};
use std::env;
use std::time::Duration;

/// Time limit of a start. The slowest one takes 90 s.
const LIMIT: Duration = Duration::from_secs(120);
/// Environment variable. If it is set to part of a cell's title, such as `xqos ssh`, only matching cells are measured.
const ONLY: &str = "XQOS_NEAR_ONLY";
const PROGRAMS: [Program; 5] = [Program::Gtk, Program::Emacs, Program::Qt, Program::Xterm, Program::Chromium];
const ROUTES: [Route; 6] = [Route::Raw, Route::SshC, Route::NxTaint, Route::Strict, Route::Relaxed, Route::ThroughSsh];
/// Only over the farthest line.
const FIRST: [Route; 2] = [Route::FirstStrict, Route::FirstRelaxed];
const KBIT_PER_S: u64 = 10_000;
/// The line to which the goals apply.
const FARTHEST: Line = Line { kbit_per_s: KBIT_PER_S, delay_us: 100_000 };
const QUICK: Line = Line { kbit_per_s: KBIT_PER_S, delay_us: 10_000 };
/// Durations of local starts differ little, so they are compared in pairs.
const LOCAL_TURNS: u32 = 5;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Near {
    cells: Cells,
    costs: Vec<Cost>,
}

impl Measure for Near {
    const NAME: &'static str = "near";
    const ABOUT: &'static str = "programs far from their X server, with and without xqos near";
    const ESTIMATE: Estimate = Estimate { quick_s: 120, full_s: 1_800 };
    const PAIRED: bool = false;

    fn run(bench: &Bench) -> Result<Self> {
        ["Xvfb", "x11perf"].into_iter().try_for_each(program::require)?;
        let cells = far::measure(bench, ONLY, &if bench.quick { quick() } else { all() }, LIMIT, |_, _| true)?;
        let is_whole = env::var(ONLY).unwrap_or_default().is_empty();
        Ok(Near { cells, costs: if is_whole { Cost::measure_all(bench)? } else { Vec::new() } })
    }

    fn study(&self) -> Study {
        let programs = self.cells.programs();
        Study {
            title: "Far from the X server".to_owned(),
            question: "How long does a program take to start far from its X server, with and without xqos near?"
                .to_owned(),
            verdicts: self.over_the_link().into_iter().chain(self.beside_the_server()).collect(),
            tables: tables::all(self),
            charts: programs.into_iter().filter_map(|program| self.chart(program)).collect(),
            ..Study::default()
        }
    }
}

fn over_link(program: Program, way: Route, line: Line) -> Case {
    Case { program, way, line, watched: Capture::AtServer, turn: 0 }
}

/// Cells with goals come first, then the others with decreasing delays.
fn all() -> Vec<Case> {
    let at = |line| PROGRAMS.into_iter().flat_map(move |program| ROUTES.map(|way| over_link(program, way, line)));
    let first = PROGRAMS.into_iter().flat_map(|program| FIRST.map(|way| over_link(program, way, FARTHEST)));
    let mut cases: Vec<Case> = at(FARTHEST).chain(first).collect();
    for turn in 0..LOCAL_TURNS {
        let local = |program, way| {
            let line = Line { kbit_per_s: KBIT_PER_S, delay_us: 100 };
            Case { program, way, line, watched: Capture::Local, turn }
        };
        let pair = |program| in_turn([Route::Raw, Route::Strict], turn).into_iter().map(move |way| local(program, way));
        cases.extend(PROGRAMS.into_iter().flat_map(pair));
    }
    cases.extend(Line::by_delay(KBIT_PER_S).into_iter().rev().filter(|&line| line != FARTHEST).flat_map(at));
    cases
}

fn quick() -> Vec<Case> {
    [Route::Raw, Route::SshC, Route::Strict, Route::Relaxed].map(|way| over_link(Program::Gtk, way, QUICK)).into()
}

impl Near {
    /// Start-up speed relative to ssh.
    fn gain(&self, program: Program, way: Route) -> Option<f64> {
        let of = |way| Some(self.cells.start(program, way, FARTHEST)?.from_command_s);
        Some(of(Route::SshC)? / of(way)?)
    }

    /// Turn number and duration in seconds of each start on the server's machine.
    fn local(&self, program: Program, way: Route) -> impl Iterator<Item = (u32, f64)> + '_ {
        let is_it = move |case: &Case| case.watched == Capture::Local && (case.program, case.way) == (program, way);
        let cells = self.cells.0.iter().filter(move |cell| is_it(&cell.case));
        cells.filter_map(|cell| Some((cell.case.turn, cell.outcome.as_ref().ok()?.from_command_s)))
    }

    /// Ratio of the start-up time with near to that without, for each turn.
    fn local_ratios(&self, program: Program) -> Spread {
        let of = |way| self.local(program, way).collect::<Vec<_>>();
        ratios(&of(Route::Strict), &of(Route::Raw), |(turn, _)| *turn, |(_, seconds)| Some(*seconds))
    }

    /// Verdicts on start-up speed over the link. The value of each is the speed that at least `count` programs reach.
    fn over_the_link(&self) -> Vec<Verdict> {
        let programs = self.cells.programs();
        let reached = |way: Route, count: usize, goal| {
            let mut gains: Vec<f64> = programs.iter().filter_map(|&program| self.gain(program, way)).collect();
            gains.sort_by(|one, other| other.total_cmp(one));
            let (way, of) = (way.title(), gains.len());
            let what = format!("{way}: start-up speed over 100 ms relative to ssh -C -Y, reached by {count} of {of}");
            gains.get(count - 1).map(|&gain| Verdict::of_value(what, gain, "x", Goal::of(goal)))
        };
        let least = |what: &str, values: &mut dyn Iterator<Item = f64>, goal| {
            values.reduce(f64::min).map(|value| Verdict::of_value(what, value, "x", Goal::of(goal)))
        };
        let near = [Route::Strict, Route::Relaxed, Route::ThroughSsh];
        let mut xterm = near.into_iter().filter_map(|way| self.gain(Program::Xterm, way));
        let over_near =
            |&program: &Program| Some(self.gain(program, Route::ThroughSsh)? / self.gain(program, Route::Strict)?);
        let all = [
            reached(Route::FirstStrict, 4, Key("near.first_strict")),
            reached(Route::FirstRelaxed, 4, Key("near.first_relaxed")),
            reached(Route::Strict, 4, Key("near.second_strict")),
            reached(Route::Strict, 3, Key("near.strict_over_ssh")),
            reached(Route::Relaxed, 3, Key("near.second_relaxed")),
            reached(Route::Relaxed, 2, Key("near.relaxed_over_ssh")),
            least(
                "xterm: start-up speed over 100 ms relative to ssh -C -Y, slowest of three",
                &mut xterm,
                Key("near.xterm"),
            ),
            least(
                "start-up speed over 100 ms, xqos ssh over near, slowest program",
                &mut programs.iter().filter_map(over_near),
                Key("near.through_ssh"),
            ),
        ];
        all.into_iter().flatten().collect()
    }

    fn beside_the_server(&self) -> Vec<Verdict> {
        let ratios = self.cells.programs().into_iter().map(|program| (program, self.local_ratios(program)));
        let local = ratios.filter(|(_, ratio)| ratio.count > 0).map(|(program, ratio)| {
            let what = format!("{}: start-up time on the server's machine, near over raw X", program.title());
            Verdict::of_spread(what, ratio, "x", Goal::of(Key("near.local_start")))
        });
        let costs = self.costs.iter().map(|cost| {
            let what = format!("x11perf -{}: rate through near over the rate through the relay", cost.test);
            Verdict::of_spread(what, cost.ratios(), "x", Goal::of(Key("near.over_relay")))
        });
        local.chain(costs).collect()
    }

    fn chart(&self, program: Program) -> Option<Chart> {
        let drawn = |way: Route| {
            let point =
                |line: Line| Some([line.delay_us as f64 / 1e3, self.cells.start(program, way, line)?.from_command_s]);
            Drawn::new(way.look(), way.title(), Line::by_delay(KBIT_PER_S).into_iter().filter_map(point))
        };
        let lines: Vec<Drawn> = ROUTES.into_iter().map(drawn).filter(|line| line.points.len() > 1).collect();
        let title = format!("{}: start by delay, 10 Mb/s", program.title());
        let lines = Lines::new(title, "one-way delay, ms", "from the command until quiet, s", lines).log_both();
        (!lines.lines.is_empty()).then_some(Chart::Lines(lines))
    }
}

#[cfg(test)]
mod tests;
