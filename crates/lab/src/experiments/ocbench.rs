// SPDX-License-Identifier: MIT
//! A client that only wants to keep its pace, beside x11perf: ocbench.
//!
//! After Manica et al., sections 2 and 4.1 (Table 1, Figures 1, 2 and 6; the traces of Figures 3, 4, 7 and 8): ocbench draws
//! its wheel and sleeps for 10 ms, again and again; at activation 200 comes x11perf -getimagexy100, and leaves at 650. A
//! run has its own idle time, before and after, so what is compared was measured within seconds, under one scheduler.
//! With one x11perf, as there, and with twelve, since one alone is no overload any more.

mod bursts;
mod case;
mod course;
mod traced;

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::load::Perf;
use crate::ocbench::{Ocbench, Period};
use crate::papers::Published;
use crate::scheduler::Stage;
use crate::server::{Kind, Setup};
use crate::statistics::{Spread, median};
use crate::study::{
    Chart, Columns, Goal, Line, Lines, Panel, Row, Scatter, Study, Table, Verdict, figure, percent, spread_figure,
};
use crate::tiles::SCREEN;
use anyhow::Result;
use case::Case;
use course::{Course, Pace, Part, Script};
use serde::{Deserialize, Serialize};
use traced::Traced;

const TEST: &str = "getimagexy100";
/// Clients of the load: the paper's, and an overload.
const LOADS: [usize; 2] = [1, 12];
/// As in the paper, which ends its Figure 1 some time after the load has left.
const SCRIPT: Script = Script { load_from: 200, load_until: 650, activations: 850 };
/// Fewer, where it is to be quick.
const QUICK_SCRIPT: Script = Script { load_from: 50, load_until: 170, activations: 220 };

/// Mean and deviation of the period, idle and beside the load, under the server's own scheduler.
const PAPER: [Published; 2] = [Published("manica-2008.period_idle"), Published("manica-2008.period_beside")];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    script: Script,
    spokes: usize,
    runs: Vec<Course>,
    traces: Vec<Traced>,
}

impl Measure for Progress {
    const NAME: &'static str = "ocbench";
    const ABOUT: &'static str = "the pace of a client that draws and sleeps in turn, beside x11perf, and its traces";
    const TAKES: Takes = Takes { quick_s: 45, full_s: 700 };

    fn run(bench: &Bench) -> Result<Self> {
        let stage = Stage::of(Setup { screen: SCREEN, ..Setup::with_module(Kind::Xvfb, bench.module()) })?;
        let script = if bench.quick { QUICK_SCRIPT } else { SCRIPT };
        let spokes = Ocbench::calibrate(stage.server())?;
        let perf = Perf::calibrate(stage.server().display(), TEST)?;
        let mut runs = Vec::new();
        for turn in 0..bench.pairs {
            for clients in LOADS {
                bench.say(format!("turn {} of {}, {clients} x {TEST}", turn + 1, bench.pairs));
                for case in Case::in_turn(turn) {
                    runs.push(Course { turn, ..Course::run(&stage, case, spokes, (&perf, clients), &script)? });
                }
            }
        }
        bench.say("traces");
        let mut traces = vec![Traced::record(&stage, Case::Stock, spokes, None)?];
        for clients in LOADS {
            for case in Case::TRACED {
                traces.push(Traced::record(&stage, case, spokes, Some((&perf, clients)))?);
            }
        }
        Ok(Progress { script, spokes, runs, traces })
    }

    fn study(&self) -> Study {
        let mut study = Study {
            title: "A client that keeps its pace".to_owned(),
            question:
                "A client draws for 2 ms and sleeps for 10 ms, again and again. How even is its pace while x11perf \
                       keeps the server busy?"
                    .to_owned(),
            notes: self.notes().into_iter().chain(traced::about_depletions(&self.traces)).collect(),
            ..Study::default()
        };
        for clients in LOADS {
            study.tables.extend([self.table_of_periods(clients), self.table_of_latencies(clients)]);
            study.verdicts.extend(self.verdicts(clients));
            study.charts.extend([self.chart_of_latencies(clients), self.chart_of_progress(clients)]);
        }
        study.tables.push(traced::table(&self.traces));
        study.charts.extend(self.traces.iter().map(Traced::chart));
        study
    }
}

impl Progress {
    /// Those that were measured.
    fn cases(&self, clients: usize) -> impl Iterator<Item = Case> {
        Case::ALL.into_iter().filter(move |&case| self.of(case, clients).next().is_some())
    }

    fn of(&self, case: Case, clients: usize) -> impl Iterator<Item = &Course> {
        self.runs.iter().filter(move |run| run.case == case && run.clients == clients)
    }

    /// Of each run, beside the load over idle.
    fn ratio(&self, case: Case, clients: usize, part: Part, figure: fn(Pace) -> f64) -> Spread {
        Spread::of(self.of(case, clients).map(|run| figure(run.ratio(part))))
    }

    fn verdicts(&self, clients: usize) -> Vec<Verdict> {
        let goal = |key| if clients == LOADS[0] { Goal::of(key) } else { Goal::Reported };
        let verdict = |case: Case, what: &str, part, figure: fn(Pace) -> f64, goal| {
            let rest = if part == Part::Whole { "" } else { ", without the kernel's part" };
            let what = format!("{}: {what} beside {clients} x {TEST} over idle{rest}", case.title());
            let periods = self.of(case, clients).map(|run| run.idle().len().min(run.beside().len()));
            Verdict::of_spread(what, self.ratio(case, clients, part, figure), "x", goal).counting(periods)
        };
        let mean: fn(Pace) -> f64 = |pace| pace.mean;
        let deviation: fn(Pace) -> f64 = |pace| pace.deviation;
        let of_case = |case| {
            [
                verdict(case, "period", Part::Whole, mean, goal(Key("ocbench.period"))),
                verdict(case, "deviation", Part::Whole, deviation, goal(Key("ocbench.deviation"))),
                verdict(case, "period", Part::WithoutKernel, mean, Goal::Reported),
                verdict(case, "deviation", Part::WithoutKernel, deviation, Goal::Reported),
            ]
        };
        let is_reserved = |case: &Case| matches!(case, Case::Soft | Case::Hard | Case::Both);
        self.cases(clients).filter(is_reserved).flat_map(of_case).collect()
    }

    /// Table 1.
    fn table_of_periods(&self, clients: usize) -> Table {
        let title = format!("Period of ocbench, idle and beside {clients} x {TEST}, medians (standard deviation)");
        let pace = |case: &Case, periods: fn(&Course) -> Vec<Period>| {
            let over = |value: fn(Pace) -> f64| {
                median(self.of(*case, clients).map(|run| value(Pace::of(&periods(run), Part::Whole)))) * 1e3
            };
            microseconds(over(|pace| pace.mean), over(|pace| pace.deviation))
        };
        let ratio = |case: &Case, part, value| spread_figure(&self.ratio(*case, clients, part, value));
        let kernel = |case: &Case| percent(median(self.of(*case, clients).map(Course::kernel_part)));
        let mut table = Columns::of(title, self.cases(clients))
            .cell("scheduler", |case| case.title().to_owned())
            .cell("idle us", |case| pace(case, Course::idle))
            .cell("beside us", |case| pace(case, Course::beside))
            .cell("period over idle", |case| ratio(case, Part::Whole, |pace| pace.mean))
            .cell("deviation over idle", |case| ratio(case, Part::Whole, |pace| pace.deviation))
            .cell("without the kernel's part: period", |case| ratio(case, Part::WithoutKernel, |pace| pace.mean))
            .cell("deviation", |case| ratio(case, Part::WithoutKernel, |pace| pace.deviation))
            .cell("kernel's part", kernel)
            .table();
        if clients == LOADS[0] {
            table.rows.insert(0, paper_row());
        }
        table
    }

    /// Figure 2 in numbers.
    fn table_of_latencies(&self, clients: usize) -> Table {
        let title = format!("X latency in ms, idle and beside {clients} x {TEST}, medians of the turns");
        Columns::of(title, self.cases(clients).map(|case| Row::new(case.title(), self.of(case, clients))))
            .name("scheduler")
            .median("idle, median", |run| run.latency_ms().0.p50)
            .median("p99", |run| run.latency_ms().0.p99)
            .median("beside, median", |run| run.latency_ms().1.p50)
            .median("p99", |run| run.latency_ms().1.p99)
            .median("worst", |run| run.latency_ms().1.worst)
            .median("without the kernel's part: median", |run| run.latency_without_kernel_ms().1.p50)
            .median("p99", |run| run.latency_without_kernel_ms().1.p99)
            .median("worst", |run| run.latency_without_kernel_ms().1.worst)
            .table()
    }

    /// Figures 1 and 6; the first turn.
    fn chart_of_progress(&self, clients: usize) -> Chart {
        let Script { load_from, load_until, activations } = self.script;
        let mut lines = Vec::new();
        if let Some(stock) = self.of(Case::Stock, clients).next() {
            let pace_s = Pace::of(&stock.idle(), Part::Whole).mean / 1e3;
            let ends = [0.0, activations as f64].map(|activation| [activation, activation * pace_s]);
            lines.push(Line::new("idle", "at the idle pace of stock", ends));
        }
        for case in self.cases(clients) {
            let Some(run) = self.of(case, clients).next() else { continue };
            lines.push(Line::new(case.name(), case.title(), run.progress()));
        }
        let title = format!("Progress of ocbench; {clients} x {TEST} from activation {load_from} to {load_until}");
        Chart::Lines(Lines::new(title, "activation", "seconds since the first", lines))
    }

    /// Figure 2; the first turn.
    fn chart_of_latencies(&self, clients: usize) -> Chart {
        let panels = self.cases(clients).filter_map(|case| {
            let run = self.of(case, clients).next()?;
            let [from, until] = [run.load.began_ns, run.load.ended_ns].map(|ns| figure(ns as f64 / 1e9));
            let name = format!("{}: x11perf from {from} to {until} s", case.title());
            Some(Panel { case: case.name().to_owned(), name, points: run.latencies() })
        });
        Chart::Scatter(Scatter {
            title: format!("X latency of ocbench, {clients} x {TEST}"),
            x_label: "seconds".to_owned(),
            y_label: "from the redraw to the answer, ms".to_owned(),
            panels: panels.collect(),
        })
    }

    fn notes(&self) -> Vec<String> {
        let Script { load_from, load_until, activations } = self.script;
        vec![
            format!(
                "How it was measured. One Xvfb with xqos, all schedulers on it in turn. ocbench draws a wheel of {} spokes, \
                 so many that a redraw usually takes 2 ms on the idle server, in one write, waits for an answer, and sleeps for 10 ms; \
                 {activations} times in a run. x11perf is started at activation {load_from} and told to end at {load_until} \
                 by another thread; twelve have their windows side by side. Period: from the clock's reading right before \
                 a redraw to the next. Idle: the same run before x11perf came and after it was gone. Beside: from its start \
                 to its end. With cbs ocbench has 3 ms in 10 ms reserved; with CPU, besides, 2 ms in 10 ms of a \
                 processor (SCHED_DEADLINE), and the server has one at once while it works for ocbench (xqos boost).",
                self.spokes
            ),
            "What is whose. The kernel's part: of a period, the server or ocbench was runnable and had no processor, at \
             most, for the two may overlap. Of the traces: what a burst waited behind others is the scheduler's, and with a \
             reservation it is the request in progress; neither is the time in which the server polled, or was runnable \
             and not run. The server's clock goes on while the kernel runs something else in the middle of a slice, so \
             a budget is used up by that too. Arrivals of x11perf are not drawn: there are too many."
                .to_owned(),
            "Reading results. The paper's server was slowed threefold by one x11perf, whose requests to a graphics card \
             took long and could not be interrupted; today one client that waits for each answer leaves the server idle in \
             between, and twelve are the overload that one was then. Comparable are ratios within a run; the more even the \
             idle pace, the harder the goal for the deviation. The paper's Figures 7 and 8, hard and soft, do not differ, \
             since 3 ms were enough for a burst; nor should ours where nothing was depleted."
                .to_owned(),
        ]
    }
}

fn paper_row() -> Vec<String> {
    let over = |of: fn(Published) -> f64| figure(of(PAPER[1]) / of(PAPER[0]));
    let [idle, beside] = PAPER.map(|paper| microseconds(paper.value(), paper.deviation()));
    let own = ["paper, its stock".to_owned(), idle, beside, over(Published::value), over(Published::deviation)];
    own.into_iter().chain(["-"; 3].map(str::to_owned)).collect()
}

fn microseconds(mean: f64, deviation: f64) -> String {
    format!("{mean:.0} ({deviation:.0})")
}

#[cfg(test)]
mod tests {
    use super::course::tests::course;
    use super::*;

    fn progress(runs: Vec<Course>) -> Study {
        Progress { script: SCRIPT, spokes: 100, runs, traces: Vec::new() }.study()
    }

    #[test]
    fn nothing_is_a_goal_that_the_stock_server_meets_too() {
        let even = LOADS.iter().flat_map(|&clients| Case::ALL.map(|case| course(case, clients, [12, 13])));
        let study = progress(even.collect());
        assert!(study.verdicts.iter().all(|verdict| verdict.is_met().is_none()), "{:?}", study.verdicts);
    }

    #[test]
    fn a_slower_pace_and_an_uneven_one_are_told() {
        let told = |beside_ms| {
            let study = progress(vec![course(Case::Soft, 1, beside_ms)]);
            [study.verdicts[0].value > 1.02, study.verdicts[1].value > 1.5]
        };
        assert_eq!(told([13, 14]), [true, false]);
        assert_eq!(told([11, 14]), [false, true]);
    }

    #[test]
    fn the_papers_own_figures_stand_beside_ours() {
        let study = progress(vec![course(Case::Stock, 1, [24, 26]), course(Case::Stock, 12, [36, 36])]);
        let papers = &study.tables[0].rows[0];
        assert_eq!(papers[1..5], ["12005 (182)", "35606 (28475)", "2.97", "156"]);
        assert_eq!(study.tables[0].rows[1][1..5], ["12500 (500)", "25000 (1000)", "2", "2"]);
        assert_eq!(study.tables[2].rows[0][0], Case::Stock.title(), "it had no twelve");
    }
}
