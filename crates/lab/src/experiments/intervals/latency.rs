// SPDX-License-Identifier: MIT
//! Packard's 8.1 and 8.2, Figures 3 and 4: the line and the animation beside twelve plaids, at each interval.
//!
//! The plaids go on while the interval changes. Each interval has the line first: it waits for more than a second before
//! the first motion, in which the priorities of `smart` move apart.

use super::setting::{LONG_US, OWN_TIMER_AWAY, SCHEDULERS, SHORT_US, Setting, all_at, intervals_us};
use super::{PLAIDS, with_deviation};
use crate::bench::Bench;
use crate::flood::{Drawing, Flood};
use crate::line::{self, Echoes};
use crate::order::in_turn;
use crate::periodic::{Frames, animate};
use crate::scheduler::{Scheduler, Stage};
use crate::server::{Kind, Setup};
use crate::statistics::{Spread, Summary, deviation, mean};
use crate::study::{Chart, Columns, Goal, Line, Lines, Table, Verdict, figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Latency {
    trials: Vec<Trial>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Trial {
    turn: u32,
    setting: Setting,
    echoes: Echoes,
    shown: Frames,
}

/// What the figures show, in milliseconds.
#[derive(Clone, Copy, Debug)]
enum Quantity {
    Receipt,
    Echo,
    Drawing,
    Frame,
}

impl Quantity {
    fn name(self) -> &'static str {
        match self {
            Quantity::Receipt => "receipt",
            Quantity::Echo => "echo",
            Quantity::Drawing => "drawing",
            Quantity::Frame => "frame interval",
        }
    }

    fn of(self, trial: &Trial) -> Vec<f64> {
        match self {
            Quantity::Receipt => trial.echoes.receipt_ms(),
            Quantity::Echo => trial.echoes.echo_ms(),
            Quantity::Drawing => trial.shown.latency_ms(),
            // The paper's timestamps count milliseconds, which would hide what the short intervals gain.
            Quantity::Frame => trial.shown.interval_ms(),
        }
    }
}

impl Latency {
    pub fn measure(bench: &Bench) -> Result<Latency> {
        let setup = Setup::with_module(Kind::Xtigervnc, bench.module());
        let arguments = OWN_TIMER_AWAY.map(Into::into).to_vec();
        let stage = Stage::of(Setup { screen: (1600, 1200), arguments, ..setup })?;
        let (moves, frames) = if bench.quick { (50, 30) } else { (150, 120) };
        let mut trials = Vec::new();
        for turn in 0..bench.pairs {
            bench.say(format!("line and animation, turn {} of {}", turn + 1, bench.pairs));
            Setting::of(Scheduler::Fair, SHORT_US).set(&stage)?;
            let plaids = Flood::start(stage.server(), Drawing::Heavy, PLAIDS)?;
            for setting in in_turn(all_at(intervals_us(bench)), turn) {
                setting.set(&stage)?;
                let echoes = line::measure(stage.server(), None, moves)?;
                let shown = animate(stage.server(), None, frames)?;
                trials.push(Trial { turn, setting, echoes, shown });
            }
            drop(plaids);
        }
        Ok(Latency { trials })
    }

    pub fn verdicts(&self) -> Vec<Verdict> {
        let short = format!("{} ms over {} ms", SHORT_US / 1000, LONG_US / 1000);
        let verdict = |scheduler: Scheduler, what: &str, quantity, figure| {
            let what = format!("{}, {what}: {short}", scheduler.name());
            Verdict::of_spread(what, self.short_over_long(scheduler, quantity, figure), "x", Goal::Reported)
        };
        let of_one = |scheduler| {
            [
                verdict(scheduler, "receipt", Quantity::Receipt, mean),
                verdict(scheduler, "echo", Quantity::Echo, mean),
                verdict(scheduler, "deviation of the echo", Quantity::Echo, deviation),
                verdict(scheduler, "drawing", Quantity::Drawing, mean),
                verdict(scheduler, "deviation of the frame interval", Quantity::Frame, deviation),
            ]
        };
        SCHEDULERS.into_iter().flat_map(of_one).collect()
    }

    pub fn table(&self) -> Table {
        let both = |row: &Setting, quantity| with_deviation(&self.all(*row, quantity));
        let p99 = |row: &Setting, quantity| figure(Summary::of(self.all(*row, quantity)).p99);
        Columns::of(format!("Beside {PLAIDS} plaids, over all turns; milliseconds"), self.settings())
            .cell("scheduler", |row| row.scheduler.name().to_owned())
            .cell("interval ms", |row| figure(row.interval_ms()))
            .cell("receipt ms (deviation)", |row| both(row, Quantity::Receipt))
            .cell("echo ms (deviation)", |row| both(row, Quantity::Echo))
            .cell("p99 echo", |row| p99(row, Quantity::Echo))
            .cell("drawing ms (deviation)", |row| both(row, Quantity::Drawing))
            .cell("p99 drawing", |row| p99(row, Quantity::Drawing))
            .cell("frame interval ms (deviation)", |row| both(row, Quantity::Frame))
            .table()
    }

    pub fn charts(&self) -> Vec<Chart> {
        let interactive = |scheduler| self.chart("Figure 3", scheduler, [Quantity::Receipt, Quantity::Echo]);
        let animation = |scheduler| self.chart("Figure 4", scheduler, [Quantity::Frame, Quantity::Drawing]);
        SCHEDULERS.map(interactive).into_iter().chain(SCHEDULERS.map(animation)).map(Chart::Lines).collect()
    }

    /// The second quantity has the scheduler's colour.
    fn chart(&self, title: &str, scheduler: Scheduler, quantities: [Quantity; 2]) -> Lines {
        let line = |(quantity, case): (Quantity, &str)| {
            let at_each: Vec<(f64, Vec<f64>)> = self
                .settings()
                .into_iter()
                .filter(|setting| setting.scheduler == scheduler)
                .map(|setting| (setting.interval_ms(), self.all(setting, quantity)))
                .collect();
            let points = at_each.iter().map(|(ms, values)| [*ms, mean(values)]);
            Line::new(case, quantity.name(), points).deviating(at_each.iter().map(|(_, values)| deviation(values)))
        };
        let names = quantities.map(Quantity::name).join(" and ");
        Lines::new(
            format!("{title}, {}: {names}, with deviations", scheduler.title()),
            "interval, ms",
            "ms",
            quantities.into_iter().zip(["idle", scheduler.name()]).map(line),
        )
    }

    /// Those that were measured, in the order of the tables.
    fn settings(&self) -> Vec<Setting> {
        let mut settings: Vec<Setting> =
            self.trials.iter().filter(|trial| trial.turn == 0).map(|trial| trial.setting).collect();
        settings.sort_by_key(|setting| (setting.scheduler, setting.interval_us));
        settings
    }

    fn all(&self, setting: Setting, quantity: Quantity) -> Vec<f64> {
        self.trials.iter().filter(|trial| trial.setting == setting).flat_map(|trial| quantity.of(trial)).collect()
    }

    /// Within each turn.
    fn short_over_long(&self, scheduler: Scheduler, quantity: Quantity, figure: fn(&[f64]) -> f64) -> Spread {
        let value = |turn: u32, interval_us| {
            let is_it = |trial: &&Trial| (trial.turn, trial.setting) == (turn, Setting::of(scheduler, interval_us));
            self.trials.iter().find(is_it).map(|trial| figure(&quantity.of(trial)))
        };
        let turns = self.trials.iter().map(|trial| trial.turn).max().map_or(0, |last| last + 1);
        Spread::of((0..turns).filter_map(|turn| Some(value(turn, SHORT_US)? / value(turn, LONG_US)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(turn: u32, interval_us: u32, echo_ns: u64) -> Trial {
        let echoes = Echoes { receipt_ns: vec![1_000_000], echo_ns: vec![echo_ns], ..Echoes::default() };
        Trial { turn, setting: Setting::of(Scheduler::Smart, interval_us), echoes, shown: Frames::default() }
    }

    #[test]
    fn intervals_are_compared_within_a_turn_and_shown_in_order() {
        let trials = vec![
            trial(0, SHORT_US, 2_000_000),
            trial(0, LONG_US, 10_000_000),
            trial(1, LONG_US, 40_000_000),
            trial(1, SHORT_US, 4_000_000),
            trial(2, SHORT_US, 1),
        ];
        let latency = Latency { trials };
        let spread = latency.short_over_long(Scheduler::Smart, Quantity::Echo, mean);
        assert_eq!((spread.count, spread.least, spread.greatest), (2, 0.1, 0.2));
        let Chart::Lines(chart) = &latency.charts()[0] else { panic!("no lines") };
        assert_eq!(chart.lines[1].points[1], [20.0, 25.0]);
        assert_eq!(chart.lines[1].deviations[1], 15.0);
        assert_eq!(latency.table().rows[1][..3], ["smart", "20", "1 (0)"]);
    }
}
