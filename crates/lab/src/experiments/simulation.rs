// SPDX-License-Identifier: MIT
//! Compares measurements on real servers with the simulator's predictions for the same situations.
//!
//! Each turn first measures each client alone: the server time of its requests, and the client's own time. The
//! simulator gets only these costs. The clients then run together under each scheduler in turn, both live and as
//! scenarios, so the comparison shows the effect of scheduling.
//!
//! If scenarios agree with real servers, scenarios can predict situations that cannot be measured: ten thousand
//! clients, or more films than this machine can decode.

mod costs;
mod crowds;
mod live;
mod reserved_share;
mod tables;

use super::{Estimate, Measure};
use crate::bench::Bench;
use crate::goals::Key;
use crate::load::Perf;
use crate::scheduler::{Scheduler, Stage};
use crate::server::{Kind, Module, Setup};
use crate::statistics::{Spread, mean};
use crate::study::{Chart, Goal, Study, Table, Verdict};
use crate::tiles::SCREEN;
use anyhow::{Result, anyhow};
use crowds::Crowd;
use serde::{Deserialize, Serialize};
use xqos_sim::outcome::{GroupResult, Outcome};
use xqos_sim::scenario::{Costs, Regime, named};

/// Q/T, and T in milliseconds, of the first, the middle and the last cell of Table 2.
const RESERVED: [((u32, u32), u32); 3] = [((1, 6), 30), ((1, 2), 90), ((5, 6), 210)];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Simulation {
    turns: Vec<Turn>,
    beyond: Vec<Crowd>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Turn {
    pairs: Vec<Pair>,
    reserved: Vec<Reserved>,
    /// Costs in each situation.
    costs: Vec<(Situation, Costs)>,
}

/// One measurement, and its simulation.
#[derive(Debug, Serialize, Deserialize)]
struct Pair {
    situation: Situation,
    scheduler: Scheduler,
    measured: Times,
    simulated: Times,
}

/// What a hard reservation gets: its share of the server, and x11perf operations or simulated requests per second.
#[derive(Debug, Serialize, Deserialize)]
struct Reserved {
    part: (u32, u32),
    period_ms: u32,
    measured: (f64, f64),
    simulated: (f64, f64),
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Times {
    response_ms: Vec<f64>,
    /// Intervals between the ends, or between the beginnings, of consecutive responses.
    interval_ms: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Situation {
    Interactive,
    Animation,
    Ocbench,
}

impl Situation {
    const ALL: [Situation; 3] = [Situation::Interactive, Situation::Animation, Situation::Ocbench];

    /// Name of the scenario.
    fn name(self) -> &'static str {
        match self {
            Situation::Interactive => "interactive",
            Situation::Animation => "animation",
            Situation::Ocbench => "ocbench",
        }
    }

    /// Name of the measured client in the scenario.
    fn client(self) -> &'static str {
        match self {
            Situation::Interactive => "line",
            Situation::Animation => "animation",
            Situation::Ocbench => "ocbench",
        }
    }

    /// The word for a response in verdicts and tables.
    fn response(self) -> &'static str {
        match self {
            Situation::Interactive => "echo",
            Situation::Animation => "drawing",
            Situation::Ocbench => "response",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Situation::Interactive => "interactive: a line with twelve plaids, Xtigervnc",
            Situation::Animation => "animation: a frame every 15 ms with twelve plaids, Xvfb",
            Situation::Ocbench => "ocbench: drawing after each pause of 10 ms, with x11perf -getimagexy100, Xvfb",
        }
    }
}

impl Measure for Simulation {
    const NAME: &'static str = "simulation";
    const ABOUT: &'static str = "the simulator's predictions and measurements, and crowds too large to measure";
    const ESTIMATE: Estimate = Estimate { quick_s: 40, full_s: 300 };

    fn run(bench: &Bench) -> Result<Self> {
        let module = Module { max_utilization_ppm: Some(reserved_share::MAX_UTILIZATION_PPM), ..bench.module() };
        let nested = Stage::of(Setup { screen: (1600, 1200), ..Setup::with_module(Kind::Xtigervnc, bench.module()) })?;
        let plain = Stage::of(Setup { screen: SCREEN, ..Setup::with_module(Kind::Xvfb, module) })?;
        let perf = Perf::calibrate(plain.server().display(), reserved_share::TEST)?;
        let perf = Perf { reps: perf.reps.div_ceil(reserved_share::RUNS_OF_ONE), ..perf };
        let mut turns = Vec::new();
        for turn in 0..bench.pairs {
            bench.say(format!("turn {} of {}", turn + 1, bench.pairs));
            turns.push(Turn::measure(bench, [&nested, &plain], &perf, turn)?);
        }
        bench.say("simulating crowds");
        Ok(Simulation { turns, beyond: crowds::simulate()? })
    }

    fn study(&self) -> Study {
        let mut tables: Vec<Table> = Situation::ALL.map(|situation| self.table(situation)).into();
        tables.extend([self.table_of_reserved(), crowds::table(&self.beyond), self.table_of_costs()]);
        Study {
            title: "The simulator".to_owned(),
            question: "The simulator runs the same scheduler in virtual time. How close does it come to real servers?"
                .to_owned(),
            answer: String::new(),
            verdicts: self.verdicts(),
            tables,
            charts: vec![Chart::Ranges(self.chart())],
            notes: Vec::new(),
        }
    }
}

impl Turn {
    fn measure(bench: &Bench, [nested, plain]: [&Stage; 2], perf: &Perf, turn: u32) -> Result<Turn> {
        let mut measured = Turn { pairs: Vec::new(), reserved: Vec::new(), costs: Vec::new() };
        for situation in Situation::ALL {
            let stage = if situation == Situation::Interactive { nested } else { plain };
            stage.follow(Scheduler::Stock)?;
            let costs = costs::of(situation, bench, stage, perf)?;
            for scheduler in Scheduler::in_turn(turn) {
                stage.follow(scheduler)?;
                let times = live::measure(situation, bench, stage, scheduler, perf)?;
                let simulated = simulate(situation.name(), scheduler, &costs)?;
                let simulated = Times::of(of_client(&simulated, situation.client())?);
                measured.pairs.push(Pair { situation, scheduler, measured: times, simulated });
            }
            if situation == Situation::Ocbench {
                stage.follow(Scheduler::Cbs)?;
                let reserve = |(part, period_ms)| Reserved::measure(stage, perf, &costs, part, period_ms);
                measured.reserved = RESERVED.into_iter().map(reserve).collect::<Result<_>>()?;
            }
            measured.costs.push((situation, costs));
        }
        Ok(measured)
    }
}

impl Reserved {
    fn measure(stage: &Stage, perf: &Perf, costs: &Costs, part: (u32, u32), period_ms: u32) -> Result<Reserved> {
        let (period_us, budget_us) = (period_ms * 1000, period_ms * 1000 * part.0 / part.1);
        let time = std::time::Duration::from_millis(u64::from(period_ms * 1000_u32.div_ceil(period_ms)));
        let measured = reserved_share::measure(stage.server(), stage.control(), perf, (budget_us, period_us), time)?;
        let mut costs = costs.clone();
        costs.insert("budget".to_owned(), budget_us.into());
        costs.insert("period".to_owned(), period_us.into());
        let outcome = simulate("hard", Scheduler::Cbs, &costs)?;
        let of = of_client(&outcome, "x11perf")?;
        let simulated = (of.share(&outcome), of.requests as f64 / outcome.seconds);
        Ok(Reserved { part, period_ms, measured, simulated })
    }
}

impl Times {
    fn of(of: &GroupResult) -> Times {
        let ms = |values: &[u64]| values.iter().map(|&ns| ns as f64 / 1e6).collect();
        Times { response_ms: ms(&of.response_ns), interval_ms: ms(&of.interval_ns) }
    }
}

fn simulate(name: &str, scheduler: Scheduler, costs: &Costs) -> Result<Outcome> {
    let regime = Regime::from_name(scheduler.name()).ok_or_else(|| anyhow!("{scheduler:?} is not simulated"))?;
    Ok(named(name, costs)?.simulate(regime))
}

fn of_client<'a>(outcome: &'a Outcome, name: &str) -> Result<&'a GroupResult> {
    outcome.of(name).ok_or_else(|| anyhow!("the scenario has no clients '{name}'"))
}

impl Simulation {
    fn pairs(&self, situation: Situation, scheduler: Scheduler) -> impl Iterator<Item = &Pair> {
        let pairs = self.turns.iter().flat_map(|turn| &turn.pairs);
        pairs.filter(move |pair| (pair.situation, pair.scheduler) == (situation, scheduler))
    }

    /// Ratio of the simulated to the measured value, for each turn.
    fn ratio(&self, situation: Situation, scheduler: Scheduler, value: fn(&[f64]) -> f64) -> Spread {
        let ratio = |pair: &Pair| value(&pair.simulated.response_ms) / value(&pair.measured.response_ms);
        Spread::of(self.pairs(situation, scheduler).map(ratio))
    }

    fn all(&self, situation: Situation, scheduler: Scheduler, values: impl Fn(&Pair) -> &[f64]) -> Vec<f64> {
        self.pairs(situation, scheduler).flat_map(|pair| values(pair).to_vec()).collect()
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let one = |situation: Situation| {
            let ratios = Scheduler::ALL.map(|scheduler| self.ratio(situation, scheduler, mean).median);
            let what = format!("{}, {}: simulated over measured", situation.name(), situation.response());
            Verdict::of_spread(format!("{what}, all schedulers"), Spread::of(ratios), "x", Goal::Reported)
        };
        let mut verdicts: Vec<Verdict> = Situation::ALL.map(one).into();
        let reserved = self.turns.iter().flat_map(|turn| &turn.reserved);
        let points = reserved.map(|one| (one.simulated.0 - one.measured.0).abs() * 100.0);
        let what = "hard reservation: share simulated minus measured";
        verdicts.push(Verdict::of_spread(what, Spread::of(points), "points", Goal::of(Key("simulation.hard_share"))));
        verdicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ms: f64) -> Times {
        Times { response_ms: vec![ms; 4], interval_ms: vec![10.0 + ms; 3] }
    }

    fn turn(slow: f64) -> Turn {
        let pair = |situation| {
            Scheduler::ALL.map(|scheduler| Pair {
                situation,
                scheduler,
                measured: times(2.0 * slow),
                simulated: times(if scheduler == Scheduler::Fair { slow } else { 2.0 * slow }),
            })
        };
        let reserved = Reserved { part: (1, 2), period_ms: 90, measured: (0.5, 100.0), simulated: (0.53, 99.0) };
        let costs = vec![(Situation::Animation, Costs::from([("wheel".to_owned(), slow)]))];
        Turn { pairs: Situation::ALL.into_iter().flat_map(pair).collect(), reserved: vec![reserved], costs }
    }

    #[test]
    fn ratios_are_taken_within_a_turn() {
        let study = Simulation { turns: vec![turn(1.0), turn(5.0)], beyond: Vec::new() }.study();
        let fair = study.tables[0].rows.iter().find(|row| row[0] == "fair").unwrap();
        assert_eq!(fair[3], "0.500 (0.500 .. 0.500)", "drift cancels out");
        let spread = study.verdicts[0].spread.unwrap();
        assert_eq!((spread.least, spread.median, spread.greatest), (0.5, 1.0, 1.0));
        let reserved = study.verdicts.last().unwrap();
        assert!((reserved.value - 3.0).abs() < 1e-9 && reserved.is_met() == Some(false), "{reserved:?}");
        assert_eq!(study.tables.last().unwrap().rows, [["animation", "wheel", "3 (1 .. 5)"]]);
    }
}
