// SPDX-License-Identifier: MIT
//! A soft reservation takes nothing away: a busy client under it gets as much done as without.
//!
//! After Manica et al., section 4.2: one x11perf alone on the server, under the server's own scheduler and under a soft
//! reservation. A soft client that has used its budget goes on as best effort, so half of the server reserved and nobody
//! else on it is the whole server. One x11perf draws all the time, and the scheduler changes beneath it, in turn: a new
//! process for each figure would differ by more than what is looked for.

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::load::{Load, Perf, Placement};
use crate::papers::Published;
use crate::scheduler::{Scheduler, Stage};
use crate::server::{Kind, Setup};
use crate::statistics::{Spread, deviation, mean, ratios};
use crate::study::{Chart, Goal, Line, Lines, Study, Table, Verdict, figure, percent, spread_figure};
use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The paper does not name its test here; its others are this one.
const TEST: &str = "getimagexy100";
const BUDGET_US: u32 = 15_000;
const PERIOD_US: u32 = 30_000;
const COMPARED: [Scheduler; 3] = [Scheduler::Stock, Scheduler::Fair, Scheduler::Cbs];
/// A single client drifts by percents within seconds on a shared machine, so there are many short turns.
const TURNS_OF_A_PAIR: u32 = 6;
/// After a change, before it is measured: more than a period.
const SETTLE: Duration = Duration::from_millis(100);

/// Operations per second and their standard deviation, section 4.2; it has no scheduler like fair.
const PAPER: [(Scheduler, Published); 2] =
    [(Scheduler::Stock, Published("manica-2008.soft_stock")), (Scheduler::Cbs, Published("manica-2008.soft_cbs"))];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Soft {
    test: String,
    reps: u64,
    rates: Vec<Rate>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Rate {
    turn: u32,
    scheduler: Scheduler,
    per_s: f64,
    /// By the server's processor time.
    per_cpu_s: f64,
}

impl Measure for Soft {
    const NAME: &'static str = "soft";
    const ABOUT: &'static str = "operations of a busy client under a soft reservation and without";
    const TAKES: Takes = Takes { quick_s: 20, full_s: 120 };

    fn run(bench: &Bench) -> Result<Self> {
        let stage = Stage::of(Setup::with_module(Kind::Xvfb, bench.module()))?;
        let perf = Perf::calibrate(stage.server().display(), TEST)?;
        let mut load = Load::start(stage.server().display(), &perf, 1, Placement::Stacked)?;
        let turns = bench.pairs * TURNS_OF_A_PAIR;
        let mut rates = Vec::new();
        for turn in 0..turns {
            bench.say(format!("turn {} of {turns}", turn + 1));
            for scheduler in Scheduler::in_turn(turn).into_iter().filter(|scheduler| COMPARED.contains(scheduler)) {
                let rate = measure(&stage, &mut load, scheduler, bench.time(1000, 700))?;
                rates.push(Rate { turn, ..rate });
            }
        }
        Ok(Soft { test: perf.test, reps: perf.reps, rates })
    }

    fn study(&self) -> Study {
        let verdict = |scheduler: Scheduler, what: &str, figure: fn(&Rate) -> f64, goal| {
            let what = format!("{what}, {} over stock", scheduler.name());
            Verdict::of_spread(what, self.over_stock(scheduler, figure), "x", goal)
        };
        Study {
            title: "Soft reservations".to_owned(),
            question:
                "A busy client gets half of the server reserved, soft, and nobody else wants anything. Does it get \
                       less done than without?"
                    .to_owned(),
            verdicts: vec![
                verdict(Scheduler::Cbs, "operations", |rate| rate.per_s, Goal::of(Key("soft.operations"))),
                verdict(Scheduler::Fair, "operations", |rate| rate.per_s, Goal::Reported),
                verdict(Scheduler::Cbs, "operations by processor time", |rate| rate.per_cpu_s, Goal::Reported),
                verdict(Scheduler::Fair, "operations by processor time", |rate| rate.per_cpu_s, Goal::Reported),
            ],
            tables: vec![self.table()],
            charts: vec![self.chart()],
            notes: self.notes(),
            ..Study::default()
        }
    }
}

impl Soft {
    fn per_s(&self, scheduler: Scheduler) -> Vec<f64> {
        self.rates.iter().filter(|rate| rate.scheduler == scheduler).map(|rate| rate.per_s).collect()
    }

    /// Within a turn.
    fn over_stock(&self, scheduler: Scheduler, figure: fn(&Rate) -> f64) -> Spread {
        let of = |scheduler| self.rates.iter().filter(move |rate| rate.scheduler == scheduler);
        ratios(of(scheduler), of(Scheduler::Stock), |rate| rate.turn, |rate| Some(figure(rate)))
    }

    fn table(&self) -> Table {
        let head = [
            "scheduler",
            "operations /s, mean",
            "deviation",
            "of the mean",
            "over stock",
            "paper /s",
            "deviation",
            "of the mean",
            "over stock",
            "ratio",
        ];
        let mut table = Table::new(format!("One x11perf -{}", self.test), &head);
        for scheduler in COMPARED {
            let rates = self.per_s(scheduler);
            let over = self.over_stock(scheduler, |rate| rate.per_s);
            let mut row = vec![
                scheduler.title().to_owned(),
                figure(mean(&rates)),
                figure(deviation(&rates)),
                percent(deviation(&rates) / mean(&rates)),
                spread_figure(&over),
            ];
            match PAPER.iter().find(|(of, _)| *of == scheduler) {
                Some((_, paper)) => {
                    let (per_s, deviation) = (paper.value(), paper.deviation());
                    let paper_over = per_s / PAPER[0].1.value();
                    row.extend([figure(per_s), figure(deviation), percent(deviation / per_s)]);
                    row.extend([figure(paper_over), figure(over.median / paper_over)]);
                }
                None => row.extend(["-"; 5].map(str::to_owned)),
            }
            table.rows.push(row);
        }
        table
    }

    fn chart(&self) -> Chart {
        let lines = COMPARED.iter().map(|&scheduler| {
            let rates = self.rates.iter().filter(|rate| rate.scheduler == scheduler);
            let points = rates.map(|rate| [f64::from(rate.turn + 1), rate.per_s]);
            Line::new(scheduler.name(), scheduler.title(), points)
        });
        Chart::Lines(Lines::new(
            format!("One x11perf -{}, turn by turn", self.test),
            "turn",
            "operations per second",
            lines,
        ))
    }

    fn notes(&self) -> Vec<String> {
        let [stock, cbs] = PAPER.map(|(_, paper)| paper);
        let (budget, period) = (f64::from(BUDGET_US) / 1e3, f64::from(PERIOD_US) / 1e3);
        vec![
            format!(
                "How it was measured. One Xvfb with xqos and one x11perf -{} that draws all the time, counted by its own \
                 lines; the scheduler changes beneath it, in turn forwards and backwards, so neighbours in a turn were \
                 measured within seconds. cbs: {} ms in {} ms, soft. Ratios are taken within a turn. By processor time: \
                 for a second in which the kernel ran the server, which leaves out what ran in its place.",
                self.test,
                figure(budget),
                figure(period)
            ),
            format!(
                "Reading results. Manica et al. found {} operations per second (deviation {}) under the soft CBS against \
             {} ({}) under the server's own scheduler, and put the small gain down to its priority over other clients \
             such as the window manager; here there are no others, so 1 is what is to be expected. Operations per second \
             are those of another machine; comparable are the ratio and the deviation as a part of the mean, and the \
             latter holds what else ran on the processors meanwhile. Their CBS keeps a depleted client above the others \
             with a later deadline; here it goes on as best effort: alone on the server it is the same.",
                figure(cbs.value()),
                figure(cbs.deviation()),
                figure(stock.value()),
                figure(stock.deviation())
            ),
        ]
    }
}

fn measure(stage: &Stage, load: &mut Load, scheduler: Scheduler, time: Duration) -> Result<Rate> {
    let control = stage.control();
    stage.follow(scheduler)?;
    let pid = load.pids()[0];
    let list = control.clients()?.clients;
    let client = list.iter().find(|client| client.pid as u32 == pid).map(|client| client.client);
    let client = client.ok_or_else(|| anyhow!("the server does not list the client of process {pid}"))?;
    if scheduler == Scheduler::Cbs {
        control.reserve(client, BUDGET_US, PERIOD_US, false)?;
    }
    std::thread::sleep(SETTLE);
    let (from, cpu_before) = (Instant::now(), stage.server().cpu_time()?);
    std::thread::sleep(time);
    let (to, cpu_after) = (Instant::now(), stage.server().cpu_time()?);
    let work: f64 = load.work(from, to)?.iter().sum();
    if scheduler == Scheduler::Cbs {
        control.release(client)?;
    }
    let per_cpu_s = work / (cpu_after - cpu_before).as_secs_f64();
    Ok(Rate { turn: 0, scheduler, per_s: work / (to - from).as_secs_f64(), per_cpu_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soft(rates: &[(u32, Scheduler, f64)]) -> Soft {
        let rates = rates.iter().map(|&(turn, scheduler, per_s)| Rate { turn, scheduler, per_s, per_cpu_s: per_s });
        Soft { test: TEST.to_owned(), reps: 1, rates: rates.collect() }
    }

    #[test]
    fn the_ratio_is_taken_within_a_turn_whatever_the_order() {
        use Scheduler::{Cbs, Stock};
        let study = soft(&[(0, Stock, 100.0), (0, Cbs, 101.0), (1, Cbs, 196.0), (1, Stock, 200.0)]).study();
        assert!((study.verdicts[0].value - 0.995).abs() < 1e-9, "{:?}", study.verdicts[0]);
        assert_eq!(study.verdicts[0].is_met(), Some(true));
        let less = soft(&[(0, Stock, 100.0), (0, Cbs, 90.0)]).study();
        assert_eq!(less.verdicts[0].is_met(), Some(false));
    }

    #[test]
    fn the_papers_own_figures_stand_beside_ours() {
        let study = soft(&[(0, Scheduler::Stock, 714.0), (0, Scheduler::Cbs, 720.0)]).study();
        let cbs = study.tables[0].rows.last().unwrap();
        assert!(cbs.contains(&"360".to_owned()) && cbs.contains(&"1.73".to_owned()), "{cbs:?}");
        assert_eq!(cbs.last().unwrap(), "1");
    }
}
