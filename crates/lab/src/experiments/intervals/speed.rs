// SPDX-License-Identifier: MIT
//! Packard's 8.3, Figure 5: what shorter intervals cost in work.
//!
//! x11perf alone, where `smart` has the paper's two parameters: the timer interval, and the maximum slice to which that of
//! a client alone grows; and two at once, where slices do not grow. Beside them stock servers, whose own timer ends
//! slices: the signal that the paper's server used.

use super::rate::Rate;
use super::setting::{LONG_US, OWN_TIMER_AWAY, SCHEDULERS, SHORT_US, Setting, all_at};
use crate::bench::Bench;
use crate::goals::Key;
use crate::load::{Load, Perf, Placement};
use crate::order::in_turn;
use crate::scheduler::{Scheduler, Stage};
use crate::server::{Kind, Server, Setup};
use crate::statistics::{Spread, deviation, geometric_mean};
use crate::study::{Chart, Goal, Line, Lines, Table, Verdict, figure, spread_figure};
use crate::tiles::SCREEN;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// From the cheapest request to one of a tenth of a millisecond.
const TESTS: [&str; 4] = [BUSIEST, "noop", "rect100", "ellipse100"];
/// Cheap to send and not to serve, in requests well below the shortest slice: so the server is always busy with it, and its
/// slices end by their time. A client that sends points or NoOp has nothing left before 20 ms are over.
pub(super) const BUSIEST: &str = "seg10";
pub(super) const TOGETHER: usize = 2;
/// Of a stock server's own timer, which counts whole milliseconds.
const STOCK_US: [u32; 3] = [SHORT_US, 5000, LONG_US];
/// Of what [`Perf::calibrate`] finds: the work is counted by whole runs, and a measurement is short.
const RUNS_ARE_SHORTER: u64 = 4;
/// After a change: clients that waited under the old setting have had their turn.
const SETTLE: Duration = Duration::from_millis(80);
/// Where slices grow: they begin to after a second alone, by an interval with each slice.
const GROW: Duration = Duration::from_millis(2100);

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Speed {
    trials: Vec<Trial>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Trial {
    turn: u32,
    test: String,
    clients: usize,
    setting: Setting,
    rate: Rate,
}

/// The servers: one whose slices xqos ends, and a stock one for each interval of its own timer.
#[derive(Debug)]
pub(super) struct Stages {
    pub xqos: Stage,
    pub stock: Vec<(Setting, Server)>,
}

impl Stages {
    pub fn start(bench: &Bench) -> Result<Stages> {
        let setup = |setup: Setup, arguments: Vec<_>| Setup { screen: SCREEN, arguments, ..setup };
        let module = Setup::with_module(Kind::Xvfb, bench.module());
        let xqos = Stage::of(setup(module, OWN_TIMER_AWAY.map(Into::into).to_vec()))?;
        Setting::of(Scheduler::Fair, SHORT_US).set(&xqos)?;
        let stock = STOCK_US.into_iter().map(|us| {
            let arguments = vec![OWN_TIMER_AWAY[0].into(), (us / 1000).to_string().into()];
            Ok((Setting::of(Scheduler::Stock, us), setup(Setup::stock(Kind::Xvfb), arguments).start()?))
        });
        Ok(Stages { xqos, stock: stock.collect::<Result<_>>()? })
    }

    pub fn calibrate(&self, test: &str) -> Result<Perf> {
        let mut perf = Perf::calibrate(self.xqos.server().display(), test)?;
        perf.reps = (perf.reps / RUNS_ARE_SHORTER).max(1);
        Ok(perf)
    }
}

impl Speed {
    pub fn measure(bench: &Bench, stages: &Stages) -> Result<Speed> {
        let tests = if bench.quick { &TESTS[..1] } else { &TESTS[..] };
        let perfs = tests.iter().map(|test| stages.calibrate(test)).collect::<Result<Vec<Perf>>>()?;
        let mut speed = Speed { trials: Vec::new() };
        for turn in 0..bench.pairs {
            for perf in &perfs {
                bench.say(format!("speed of {}, turn {} of {}", perf.test, turn + 1, bench.pairs));
                for clients in [1, TOGETHER] {
                    speed.with_xqos(bench, &stages.xqos, perf, turn, clients)?;
                }
                speed.stock(bench, &stages.stock, perf, turn)?;
            }
        }
        Ok(speed)
    }

    fn with_xqos(&mut self, bench: &Bench, stage: &Stage, perf: &Perf, turn: u32, clients: usize) -> Result<()> {
        let (server, test) = (stage.server(), &perf.test);
        let mut load = Load::start(server.display(), perf, clients, Placement::SideBySide)?;
        for setting in in_turn(settings(bench, clients), turn) {
            setting.set(stage)?;
            // Who asks the server is one more client, and the other is no longer alone.
            let control = if setting.grows() { None } else { Some(stage.control()) };
            std::thread::sleep(if setting.grows() { GROW } else { SETTLE });
            let (rate, ()) = Rate::during(server, control, &mut load, || rest(bench))?;
            self.trials.push(Trial { turn, test: test.clone(), clients, setting, rate });
        }
        Ok(())
    }

    fn stock(&mut self, bench: &Bench, servers: &[(Setting, Server)], perf: &Perf, turn: u32) -> Result<()> {
        for (setting, server) in in_turn(servers, turn) {
            let mut load = Load::start(server.display(), perf, TOGETHER, Placement::SideBySide)?;
            let (rate, ()) = Rate::during(server, None, &mut load, || rest(bench))?;
            self.trials.push(Trial { turn, test: perf.test.clone(), clients: TOGETHER, setting: *setting, rate });
        }
        Ok(())
    }

    pub fn verdicts(&self) -> Vec<Verdict> {
        let verdict = |clients: usize, setting: Setting, goal| {
            let who = if clients == 1 { "alone".to_owned() } else { format!("{clients} clients") };
            let (name, short, long) = (setting.scheduler.name(), SHORT_US / 1000, LONG_US / 1000);
            let what = format!("{name}, speed {who}: {short} ms over {long} ms");
            Verdict::of_spread(what, self.relative(clients, setting, Rate::per_s), "x", goal)
        };
        let short = |scheduler| Setting::of(scheduler, SHORT_US);
        let paper = Goal::of(Key("intervals.speed_alone"));
        let alone = SCHEDULERS.map(|scheduler| verdict(1, short(scheduler), paper));
        let together = SCHEDULERS.into_iter().chain([Scheduler::Stock]);
        alone
            .into_iter()
            .chain(together.map(|scheduler| verdict(TOGETHER, short(scheduler), Goal::Reported)))
            .filter(|verdict| verdict.spread.as_ref().is_some_and(|spread| spread.count > 0))
            .collect()
    }

    pub fn tables(&self) -> Vec<Table> {
        vec![self.table("One x11perf alone", 1), self.table(&format!("{TOGETHER} x11perf at once"), TOGETHER)]
    }

    fn table(&self, title: &str, clients: usize) -> Table {
        let tests = self.tests();
        let mut head = vec!["scheduler", "interval ms", "maximum slice ms", "all tests", "per server processor time"];
        head.extend(tests.iter().map(String::as_str));
        let title =
            format!("{title}: speed over that at {} ms, geometric means and medians of the turns", LONG_US / 1000);
        let mut table = Table::new(title, &head);
        for setting in self.settings(clients) {
            let mut row = vec![
                setting.scheduler.name().to_owned(),
                figure(setting.interval_ms()),
                if clients == 1 { figure(f64::from(setting.maximum_us) / 1000.0) } else { "-".to_owned() },
                spread_figure(&self.relative(clients, setting, Rate::per_s)),
                spread_figure(&self.relative(clients, setting, Rate::per_cpu_s)),
            ];
            let of_one = |test: &String| self.relative_of(&[test], clients, setting, Rate::per_s).median;
            row.extend(tests.iter().map(|test| figure(of_one(test))));
            table.rows.push(row);
        }
        table
    }

    pub fn charts(&self) -> Vec<Chart> {
        let alone = [
            self.line("smart", "smart, slices do not grow", 1, |one| one.scheduler == Scheduler::Smart && !one.grows()),
            self.line("idle", "smart, slices grow to 20 ms", 1, |one| {
                one.scheduler == Scheduler::Smart && one.maximum_us == LONG_US
            }),
            self.line("fair", "fair", 1, |one| one.scheduler == Scheduler::Fair),
        ];
        let together = SCHEDULERS.into_iter().chain([Scheduler::Stock]).map(|scheduler| {
            self.line(scheduler.name(), scheduler.title(), TOGETHER, |one| one.scheduler == scheduler)
        });
        let chart = |who: &str, lines: Vec<Line>| {
            let title = format!("Figure 5, {who}: speed over that at {} ms", LONG_US / 1000);
            Chart::Lines(Lines::new(title, "timer interval or slice, ms", "x", lines))
        };
        vec![chart("one client", alone.into()), chart(&format!("{TOGETHER} clients"), together.collect())]
    }

    fn line(&self, case: &str, name: &str, clients: usize, of: impl Fn(&Setting) -> bool) -> Line {
        let settings: Vec<Setting> = self.settings(clients).into_iter().filter(of).collect();
        let means = |setting: &Setting| self.means(&self.tests(), clients, *setting, Rate::per_s);
        let points = settings.iter().map(|one| [one.interval_ms(), Spread::of(means(one)).median]);
        Line::new(case, name, points).deviating(settings.iter().map(|one| deviation(&means(one))))
    }

    /// Slice ends a second of the server's processor time, and the work done in it: a point for each interval of a turn.
    /// How many slices a stock server ended is known by its timer.
    pub fn ends_and_work(&self, scheduler: Scheduler, clients: usize, turn: u32) -> Vec<[f64; 2]> {
        let is_it = |trial: &&Trial| {
            (trial.turn, trial.clients, trial.setting.scheduler) == (turn, clients, scheduler) && trial.test == BUSIEST
        };
        let point = |trial: &Trial| {
            let of_timer = trial.rate.elapsed_s * 1e6 / f64::from(trial.setting.interval_us);
            let ends = match (scheduler, trial.rate.told_to_end) {
                (Scheduler::Stock, _) => of_timer,
                (_, told) => told? as f64,
            };
            Some([ends / trial.rate.server_cpu_s, trial.rate.per_cpu_s()])
        };
        self.trials.iter().filter(is_it).filter_map(point).collect()
    }

    /// Processor time of the watcher's thread for each slice that it ended in a turn, where they are short and many.
    pub fn watcher_us(&self, scheduler: Scheduler, clients: usize, turn: u32) -> Option<f64> {
        let is_it = |trial: &&Trial| {
            (trial.turn, trial.clients, trial.setting.scheduler) == (turn, clients, scheduler)
                && trial.test == BUSIEST
                && trial.setting.interval_us <= SHORT_US
        };
        let short = self.trials.iter().filter(is_it).filter_map(|trial| Some((trial.rate, trial.rate.told_to_end?)));
        let (cpu_s, ends) = short.fold((0.0, 0), |sum, (rate, told)| (sum.0 + rate.watcher_cpu_s, sum.1 + told));
        (ends > 0).then(|| cpu_s / ends as f64 * 1e6)
    }

    fn relative(&self, clients: usize, setting: Setting, of: fn(&Rate) -> f64) -> Spread {
        Spread::of(self.means(&self.tests(), clients, setting, of))
    }

    fn relative_of(&self, tests: &[&String], clients: usize, setting: Setting, of: fn(&Rate) -> f64) -> Spread {
        let tests: Vec<String> = tests.iter().map(|&test| test.clone()).collect();
        Spread::of(self.means(&tests, clients, setting, of))
    }

    /// One for each turn: the geometric mean over the tests of the speed over that at the longest interval.
    fn means(&self, tests: &[String], clients: usize, setting: Setting, of: fn(&Rate) -> f64) -> Vec<f64> {
        let rate = |turn: u32, test: &str, setting: Setting| {
            let is_it = |trial: &&Trial| (trial.turn, trial.clients, trial.setting) == (turn, clients, setting);
            self.trials.iter().filter(is_it).find(|trial| trial.test == test).map(|trial| of(&trial.rate))
        };
        let long = Setting::of(setting.scheduler, LONG_US);
        let ratio = |turn, test: &String| Some(rate(turn, test, setting)? / rate(turn, test, long)?);
        let of_turn = |turn| tests.iter().map(|test| ratio(turn, test)).collect::<Option<Vec<f64>>>();
        self.turns().filter_map(of_turn).map(|ratios| geometric_mean(&ratios)).collect()
    }

    pub fn turns(&self) -> Range<u32> {
        0..self.trials.iter().map(|trial| trial.turn + 1).max().unwrap_or(0)
    }

    fn tests(&self) -> Vec<String> {
        TESTS
            .iter()
            .filter(|&&test| self.trials.iter().any(|trial| trial.test == test))
            .map(|&test| test.into())
            .collect()
    }

    /// Those that were measured, in the order of the tables.
    fn settings(&self, clients: usize) -> Vec<Setting> {
        let mut settings: Vec<Setting> = Vec::new();
        for trial in self.trials.iter().filter(|trial| trial.clients == clients) {
            if !settings.contains(&trial.setting) {
                settings.push(trial.setting);
            }
        }
        settings.sort_by_key(|setting| (setting.scheduler, setting.grows(), setting.interval_us));
        settings
    }
}

/// Fewer than in the other figures: each test needs them all.
fn intervals_us(bench: &Bench) -> &'static [u32] {
    if bench.quick { &[250, SHORT_US, LONG_US] } else { &[250, SHORT_US, 5000, LONG_US] }
}

/// Of timer intervals that are shorter than the maximum slice.
fn growing_us(bench: &Bench) -> &'static [u32] {
    if bench.quick { &[250] } else { &[250, SHORT_US] }
}

fn settings(bench: &Bench, clients: usize) -> Vec<Setting> {
    let mut settings = all_at(intervals_us(bench));
    if clients == 1 {
        let grown = |&us| Setting { maximum_us: LONG_US, ..Setting::of(Scheduler::Smart, us) };
        settings.extend(growing_us(bench).iter().map(grown));
    }
    settings
}

fn rest(bench: &Bench) -> Result<()> {
    std::thread::sleep(bench.time(450, 250));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(turn: u32, test: &str, interval_us: u32, operations: f64) -> Trial {
        let rate = Rate { elapsed_s: 2.0, server_cpu_s: 0.5, watcher_cpu_s: 0.02, operations, told_to_end: Some(4000) };
        let setting = Setting::of(Scheduler::Smart, interval_us);
        Trial { turn, test: test.to_owned(), clients: 1, setting, rate }
    }

    #[test]
    fn speeds_are_compared_within_a_turn_and_test_and_then_averaged() {
        let trials = vec![
            trial(0, BUSIEST, SHORT_US, 50.0),
            trial(0, BUSIEST, LONG_US, 100.0),
            trial(0, "noop", LONG_US, 100.0),
            trial(0, "noop", SHORT_US, 200.0),
            trial(1, BUSIEST, SHORT_US, 1.0),
            trial(1, BUSIEST, LONG_US, 1.0),
        ];
        let speed = Speed { trials };
        let spread = speed.relative(1, Setting::of(Scheduler::Smart, SHORT_US), Rate::per_s);
        assert_eq!((spread.count, spread.median), (1, 1.0), "a turn without all tests tells nothing");
        let verdicts = speed.verdicts();
        assert_eq!((verdicts.len(), verdicts[0].is_met()), (1, Some(true)), "what was not measured is no verdict");
        assert_eq!(speed.ends_and_work(Scheduler::Smart, 1, 0), [[8000.0, 100.0], [8000.0, 200.0]]);
        assert_eq!(speed.watcher_us(Scheduler::Smart, 1, 1), Some(5.0), "20 ms for 4000 ends");
        assert_eq!(speed.table("", 1).rows[0], ["smart", "1", "1", "1", "1", "0.750", "2"]);
    }
}
