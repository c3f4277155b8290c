// SPDX-License-Identifier: MIT
//! The floor of every response: how long it takes beside a client whose requests are long.
//!
//! A request in progress is never cut, so a light client waits at most for the longest one, whoever decides; that is B of
//! Manica et al., section 3.3. One client of our own sends requests of a set length and never pauses; beside it the light
//! client is measured under the server's own scheduler, `fair`, and with a reservation, in turn on one server.

use super::trial::{BLOCKING_US, RESERVATION};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::flood::{Flood, Work};
use crate::goals::Key;
use crate::light::Light;
use crate::scheduler::{Scheduler, Stage};
use crate::server::{Kind, Setup};
use crate::statistics::{Spread, Summary};
use crate::study::{Chart, Columns, Goal, Line, Lines, Row, Study, Table, Verdict, figure, spread_figure};
use crate::tiles::SCREEN;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use xqos_abi::PolicyChange;
use xqos_client::Control;

const LENGTHS_US: [u64; 6] = [100, 300, 1000, 3000, 10_000, 30_000];
const SCHEDULERS: [Scheduler; 3] = [Scheduler::Stock, Scheduler::Fair, Scheduler::Cbs];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Blocking {
    /// The light client alone.
    idle: Vec<Summary>,
    measured: Vec<Measured>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    length_us: u64,
    /// That the server had, as xqos saw it; 0 if it saw none in a slice of its own.
    longest_request_ms: f64,
    scheduler: Scheduler,
    response_ms: Summary,
    kernel_ms: Summary,
    without_kernel_ms: Summary,
}

impl Measure for Blocking {
    const NAME: &'static str = "blocking";
    const ABOUT: &'static str = "response beside one client with requests of 0.1 to 30 ms: stock, fair, reserved";
    const TAKES: Takes = Takes { quick_s: 25, full_s: 300 };

    fn run(bench: &Bench) -> Result<Self> {
        let setup = Setup::with_module(Kind::Xvfb, bench.module());
        let stage = Stage::of(Setup { screen: SCREEN, ..setup })?;
        // Admission would refuse any reservation beside requests of 30 ms; what it would then be worth is the question.
        stage.control().set_policy(PolicyChange { blocking_us: Some(BLOCKING_US), ..PolicyChange::default() })?;
        let works = LENGTHS_US.map(|length_us| Work::of_length(stage.server(), Duration::from_micros(length_us)));
        let mut found = Blocking { idle: Vec::new(), measured: Vec::new() };
        for turn in 0..bench.pairs {
            bench.say(format!("turn {} of {}", turn + 1, bench.pairs));
            found.idle.push(light(None).measure(stage.server(), time(bench))?.series.response_ms());
            for (length_us, work) in LENGTHS_US.into_iter().zip(&works) {
                let work = work.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))?;
                for scheduler in Scheduler::in_turn(turn).into_iter().filter(|one| SCHEDULERS.contains(one)) {
                    stage.follow(scheduler)?;
                    let flood = Flood::start(stage.server(), *work, 1)?;
                    let series = light(Some(scheduler)).measure(stage.server(), time(bench))?.series;
                    let longest_request_ms = longest_request_ms(stage.control(), &flood)?;
                    drop(flood);
                    found.measured.push(Measured {
                        length_us,
                        longest_request_ms,
                        scheduler,
                        response_ms: series.response_ms(),
                        kernel_ms: series.kernel_ms(),
                        without_kernel_ms: series.without_kernel_ms(),
                    });
                }
            }
        }
        Ok(found)
    }

    fn study(&self) -> Study {
        let above = |scheduler: Scheduler| {
            let goal = if scheduler == Scheduler::Stock { Goal::Reported } else { Goal::of(Key("blocking.above")) };
            let what = format!("{}: p99 above the longest request, largest of all", scheduler.name());
            Verdict::of_spread(what, self.most(scheduler, |one| one.response_ms.p99 - one.bound_ms()), "ms", goal)
                .counting(self.responses(scheduler))
        };
        let above_set = |scheduler: Scheduler| {
            let what = format!("{}: p99 above the length that was set, largest of all", scheduler.name());
            let most = self.most(scheduler, |one| one.response_ms.p99 - one.length_ms());
            Verdict::of_spread(what, most, "ms", Goal::Reported).counting(self.responses(scheduler))
        };
        let without = |scheduler: Scheduler| {
            let what = format!("{}: the same without the kernel's part of the waiting", scheduler.name());
            let most = self.most(scheduler, |one| one.without_kernel_ms.p99 - one.length_ms());
            Verdict::of_spread(what, most, "ms", Goal::Reported).counting(self.responses(scheduler))
        };
        Study {
            title: "Blocking by long requests".to_owned(),
            question: "A request in progress is never cut. How close does the light client's response come to that \
                       floor, the length of the longest request?"
                .to_owned(),
            answer: String::new(),
            verdicts: SCHEDULERS.iter().flat_map(|&one| [above(one), above_set(one), without(one)]).collect(),
            tables: vec![self.table()],
            charts: vec![Chart::Lines(self.lines(3000)), Chart::Lines(self.lines(30_000))],
            notes: self.notes(),
        }
    }
}

impl Measured {
    fn length_ms(&self) -> f64 {
        self.length_us as f64 / 1000.0
    }

    /// What a response may take, since a request is never cut.
    fn bound_ms(&self) -> f64 {
        self.longest_request_ms.max(self.length_ms())
    }
}

/// Of the flood's clients, as xqos saw it.
fn longest_request_ms(control: &Control, flood: &Flood) -> Result<f64> {
    let list = control.clients()?;
    let of_flood = list.clients.iter().filter(|client| flood.clients().any(|base| base == client.client));
    Ok(of_flood.map(|client| client.longest_request_ns).max().unwrap_or_default() as f64 / 1e6)
}

impl Blocking {
    fn of(&self, scheduler: Scheduler, length_us: u64) -> Vec<&Measured> {
        self.measured.iter().filter(|one| (one.scheduler, one.length_us) == (scheduler, length_us)).collect()
    }

    fn spread(&self, scheduler: Scheduler, length_us: u64, of: impl Fn(&Measured) -> f64) -> Spread {
        Spread::of(self.of(scheduler, length_us).into_iter().map(of))
    }

    /// At the length where its median is largest.
    /// In each measurement.
    fn responses(&self, scheduler: Scheduler) -> impl Iterator<Item = usize> {
        self.measured.iter().filter(move |one| one.scheduler == scheduler).map(|one| one.response_ms.count)
    }

    fn most(&self, scheduler: Scheduler, of: fn(&Measured) -> f64) -> Spread {
        let all = LENGTHS_US.map(|length_us| self.spread(scheduler, length_us, of));
        all.into_iter().max_by(|a, b| a.median.total_cmp(&b.median)).unwrap_or_default()
    }

    fn table(&self) -> Table {
        let length_ms = |row: &Row<Measured>| row.samples.first().map_or(0.0, |one| one.length_ms());
        let p99_over = |row: &Row<Measured>| figure(row.spread(|one| one.response_ms.p99).median / length_ms(row));
        let of_one = |scheduler: Scheduler| LENGTHS_US.map(|us| Row::new(scheduler.name(), self.of(scheduler, us)));
        let rows = SCHEDULERS.into_iter().flat_map(of_one);
        Columns::of_measured("Response of the light client, medians of the turns", rows)
            .name("scheduler")
            .cell("request ms", |row| figure(length_ms(row)))
            .median("longest ms", |one| one.longest_request_ms)
            .median("mean ms", |one| one.response_ms.mean)
            .spread("p99 ms", |one| one.response_ms.p99)
            .median("worst ms", |one| one.response_ms.worst)
            .cell("p99 over request", p99_over)
            .median("kernel's part ms", |one| one.kernel_ms.mean)
            .median("p99 without it", |one| one.without_kernel_ms.p99)
            .table()
    }

    /// Up to a length; on straight axes, so that the floor is a straight line.
    fn lines(&self, most_us: u64) -> Lines {
        let lengths = || LENGTHS_US.into_iter().filter(|&us| us <= most_us);
        let floor = Line::new("idle", "y = x, the floor", lengths().map(|us| [us as f64 / 1000.0; 2]));
        let measured = SCHEDULERS.map(|scheduler| {
            let p99 = |us| self.spread(scheduler, us, |one| one.response_ms.p99).median;
            Line::new(scheduler.name(), scheduler.title(), lengths().map(|us| [us as f64 / 1000.0, p99(us)]))
        });
        Lines::new(
            format!("99th percentile of the response, requests of up to {} ms", most_us / 1000),
            "length of a request, ms",
            "response p99, ms",
            std::iter::once(floor).chain(measured),
        )
    }

    fn notes(&self) -> Vec<String> {
        let idle = Spread::of(self.idle.iter().map(|summary| summary.p99));
        vec![
            format!(
                "How it was measured. One Xvfb with xqos, one client of our own that sends PolyFillRectangle of so many \
                 rectangles that an otherwise idle server takes the given time for each, and never pauses. The light \
                 client as everywhere (200 lines every 10 ms); alone its p99 is {} ms. Admission was told to reckon with \
                 {} ms, or it would refuse the reservation.",
                spread_figure(&idle),
                figure(f64::from(BLOCKING_US) / 1000.0)
            ),
            "Reading results. Under fair and cbs a response is at most the request in progress and the client's own \
             work, so the lines should run just above y = x, and a reservation cannot do better: that is the blocking \
             time B of the admission test (Manica et al. 3.3), which the paper bounds and does not measure. A p99 below \
             the line is no contradiction: who arrives in the middle of a request waits for its rest only. Under stock \
             the length of the slice is added. Requests take longer than set while the server has not its processor, or its              caches, for itself; so the goal is held against the longest request that the server had in the same              measurement, as xqos timed it, and the distance to the length that was set is given beside it."
                .to_owned(),
        ]
    }
}

fn time(bench: &Bench) -> Duration {
    bench.time(2000, 600)
}

fn light(scheduler: Option<Scheduler>) -> Light {
    let reservation = (scheduler == Some(Scheduler::Cbs)).then_some(RESERVATION);
    Light { warm_up: Duration::from_millis(300), reservation, ..Light::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_to_the_floor_is_told_where_it_is_largest() {
        let measured = |length_us, longest_request_ms, p99| Measured {
            length_us,
            longest_request_ms,
            scheduler: Scheduler::Fair,
            response_ms: Summary { p99, ..Summary::default() },
            kernel_ms: Summary::default(),
            without_kernel_ms: Summary::default(),
        };
        let measured = vec![
            measured(100, 0.0, 0.6),
            measured(1000, 0.5, 4.0),
            measured(1000, 1.2, 4.4),
            measured(30_000, 45.0, 46.0),
        ];
        let study = Blocking { idle: Vec::new(), measured }.study();
        let fair = study.verdicts.iter().find(|verdict| verdict.what.starts_with("fair")).unwrap();
        assert!((fair.value - 3.1).abs() < 1e-9 && fair.is_met() == Some(false), "{fair:?}");
        let above_set =
            study.verdicts.iter().find(|verdict| verdict.what.starts_with("fair: p99 above the length")).unwrap();
        assert!((above_set.value - 16.0).abs() < 1e-9 && above_set.is_met().is_none(), "{above_set:?}");
    }
}
