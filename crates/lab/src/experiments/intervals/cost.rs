// SPDX-License-Identifier: MIT
//! What each way of ending a slice costs: in place of Figure 6, the cost of the kernel's own tick.
//!
//! The more slices are ended, the less a busy client gets done in a second of the server's processor time. A straight line
//! through both tells how much processor time one more end takes, with all that follows from it: the poll, the decision,
//! and the caches. The ways:
//!
//! | a slice ends | and is measured |
//! |---|---|
//! | by its own time, told by the watcher's timer | with the figures of [`super::speed`], of a client alone and of two |
//! | by the server's own timer, a signal | the same on stock servers |
//! | by an arrival that the watcher sees | a client that asks for a round trip four thousand times a second beside a busy one |
//! | by having nothing left | the same client where slices are so short that arrivals wait for their end |
//! | the same, and the server goes to sleep | round trips of one client alone, with and without xqos |

use super::rate::Rate;
use super::setting::{LONG_US, SCHEDULERS, Setting};
use super::speed::{BUSIEST, Speed, Stages, TOGETHER};
use crate::bench::Bench;
use crate::light::Light;
use crate::load::{Load, Perf, Placement};
use crate::order::in_turn;
use crate::scheduler::Scheduler;
use crate::statistics::{Spread, straight_line};
use crate::study::{Goal, Table, Verdict, spread_figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// Between two arrivals: many, so that what they cost can be told from the noise.
const OFTEN: Duration = Duration::from_micros(250);
/// Arrivals end slices of this length, as somebody hogs the server ...
const CUT_US: u32 = LONG_US;
/// ... and wait for the end of these, which are no hog's.
const UNCUT_US: u32 = 250;
/// There and back in a turn: what an end costs is little beside what the machine does.
const PASSES: u32 = 2;
/// A request of nothing but a round trip.
const ROUND_TRIP: &str = "pointer";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Cost {
    beside: Vec<Beside>,
    round_trips: Vec<RoundTrips>,
}

/// A busy client beside one that arrives now and then.
#[derive(Debug, Serialize, Deserialize)]
struct Beside {
    turn: u32,
    slice_us: u32,
    arrivals: u64,
    /// Of the busy one.
    rate: Rate,
}

#[derive(Debug, Serialize, Deserialize)]
struct RoundTrips {
    turn: u32,
    scheduler: Scheduler,
    rate: Rate,
}

impl Cost {
    pub fn measure(bench: &Bench, stages: &Stages) -> Result<Cost> {
        let (busy, round_trip) = (stages.calibrate(BUSIEST)?, stages.calibrate(ROUND_TRIP)?);
        let mut cost = Cost { beside: Vec::new(), round_trips: Vec::new() };
        for turn in 0..bench.pairs {
            bench.say(format!("cost of a slice's end, turn {} of {}", turn + 1, bench.pairs));
            cost.beside_busy(bench, stages, &busy, turn)?;
            cost.alone(bench, stages, &round_trip, turn)?;
        }
        Ok(cost)
    }

    fn beside_busy(&mut self, bench: &Bench, stages: &Stages, busy: &Perf, turn: u32) -> Result<()> {
        let (stage, time) = (&stages.xqos, bench.time(700, 300));
        let mut load = Load::start(stage.server().display(), busy, 1, Placement::SideBySide)?;
        let cases = [(CUT_US, time), (CUT_US, OFTEN), (UNCUT_US, OFTEN), (UNCUT_US, time)];
        let passes = if bench.quick { 1 } else { PASSES };
        for (slice_us, period) in (0..passes).flat_map(|pass| in_turn(cases, turn + pass)) {
            Setting::of(Scheduler::Fair, slice_us).set(stage)?;
            // Once in all, where nothing else shall arrive: so that connecting costs the same.
            let light = Light { lines: 0, period, warm_up: Duration::ZERO, ..Light::default() };
            let (rate, measured) =
                Rate::during(stage.server(), None, &mut load, || light.measure(stage.server(), time))?;
            let arrivals = measured.series.response_ns.len() as u64;
            self.beside.push(Beside { turn, slice_us, arrivals, rate });
        }
        Ok(())
    }

    fn alone(&mut self, bench: &Bench, stages: &Stages, round_trip: &Perf, turn: u32) -> Result<()> {
        Setting::of(Scheduler::Fair, CUT_US).set(&stages.xqos)?;
        let stock = stages.stock.iter().take(1).map(|(_, server)| (Scheduler::Stock, server));
        let both: Vec<_> = stock.chain([(Scheduler::Fair, stages.xqos.server())]).collect();
        for (scheduler, server) in in_turn(both, turn) {
            let mut load = Load::start(server.display(), round_trip, 1, Placement::SideBySide)?;
            let time = bench.time(400, 200);
            let (rate, ()) = Rate::during(server, None, &mut load, || {
                std::thread::sleep(time);
                Ok(())
            })?;
            self.round_trips.push(RoundTrips { turn, scheduler, rate });
        }
        Ok(())
    }

    pub fn verdicts(&self, speed: &Speed) -> Vec<Verdict> {
        let told = self.ways(speed).into_iter().filter(|way| way.is_told);
        told.map(|way| Verdict::of_spread(format!("an end: {}", way.ends), way.us, "us", Goal::Reported)).collect()
    }

    pub fn table(&self, speed: &Speed) -> Table {
        let mut table = Table::new(
            "Server processor time that one more end of a slice takes, microseconds",
            &["a slice ends", "median of the turns (least .. greatest)", "measured with"],
        );
        let row = |way: Way| vec![way.ends, spread_figure(&way.us), way.with.to_owned()];
        table.rows = self.ways(speed).into_iter().map(row).collect();
        table
    }

    fn ways(&self, speed: &Speed) -> Vec<Way> {
        [by_time(speed), self.by_arrival(), self.with_nothing_left()].concat()
    }

    fn by_arrival(&self) -> Vec<Way> {
        let over_turns = |us: &dyn Fn(u32) -> Option<f64>| Spread::of(self.turns().filter_map(us));
        let [cut, uncut] = [CUT_US, UNCUT_US].map(|slice_us| move |turn| self.arrival_us(turn, slice_us));
        vec![
            Way {
                ends: "fair, by an arrival that the watcher sees, and its round trip".to_owned(),
                with: "round trips of a second client beside it",
                us: over_turns(&cut),
                is_told: false,
            },
            Way {
                ends: "fair, with nothing left: a round trip at the end of a slice".to_owned(),
                with: "the same, with slices that no arrival ends",
                us: over_turns(&uncut),
                is_told: false,
            },
            Way {
                ends: "fair, by an arrival, without its round trip".to_owned(),
                with: "the difference of these two",
                us: over_turns(&|turn| Some(cut(turn)? - uncut(turn)?)),
                is_told: true,
            },
        ]
    }

    fn with_nothing_left(&self) -> Vec<Way> {
        let way = |scheduler: Scheduler, with| Way {
            ends: format!("{}, with nothing left: a round trip, and the server sleeps", scheduler.name()),
            with,
            us: Spread::of(self.round_trips_us(scheduler)),
            is_told: false,
        };
        vec![way(Scheduler::Stock, "x11perf -pointer alone"), way(Scheduler::Fair, "the same with xqos")]
    }

    fn turns(&self) -> Range<u32> {
        0..self.beside.iter().map(|one| one.turn + 1).max().unwrap_or(0)
    }

    fn arrival_us(&self, turn: u32, slice_us: u32) -> Option<f64> {
        let is_it = |one: &&Beside| (one.turn, one.slice_us) == (turn, slice_us);
        let point = |one: &Beside| [one.arrivals as f64 / one.rate.server_cpu_s, one.rate.per_cpu_s()];
        per_end_us(&self.beside.iter().filter(is_it).map(point).collect::<Vec<_>>())
    }

    fn round_trips_us(&self, scheduler: Scheduler) -> impl Iterator<Item = f64> {
        let of = self.round_trips.iter().filter(move |one| one.scheduler == scheduler);
        of.map(|one| 1e6 / one.rate.per_cpu_s())
    }
}

/// A way in which slices end.
#[derive(Clone, Debug)]
struct Way {
    ends: String,
    with: &'static str,
    /// Over the turns.
    us: Spread,
    /// Among the verdicts too.
    is_told: bool,
}

fn by_time(speed: &Speed) -> Vec<Way> {
    let way = |scheduler: Scheduler, clients: usize, is_told| {
        let whose = if scheduler == Scheduler::Stock { "the server's own timer" } else { "the watcher's timer" };
        let who = if clients == 1 { "a client alone".to_owned() } else { format!("{clients} clients") };
        let us = speed.turns().filter_map(|turn| per_end_us(&speed.ends_and_work(scheduler, clients, turn)));
        Way {
            ends: format!("{}, by {whose}, {who}", scheduler.name()),
            with: "one busy client or two, at all intervals",
            us: Spread::of(us),
            is_told,
        }
    };
    let [smart, fair] = SCHEDULERS;
    let of_watcher = Way {
        ends: format!("{}, of that the watcher's own thread, {TOGETHER} clients", fair.name()),
        with: "its processor time, with slices of 1 ms and less",
        us: Spread::of(speed.turns().filter_map(|turn| speed.watcher_us(fair, TOGETHER, turn))),
        is_told: false,
    };
    vec![
        way(smart, 1, false),
        way(smart, TOGETHER, false),
        way(fair, 1, false),
        way(fair, TOGETHER, true),
        of_watcher,
        way(Scheduler::Stock, TOGETHER, true),
    ]
}

/// Of points (ends, work), both for a second of processor time: the processor time that is not there for work.
fn per_end_us(points: &[[f64; 2]]) -> Option<f64> {
    straight_line(points).map(|line| -line.slope / line.at_0 * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_costs_the_work_that_is_missing() {
        // A million operations a second; a thousand ends take 5 ms of it.
        let points = [[0.0, 1e6], [1000.0, 995_000.0], [2000.0, 990_000.0]];
        assert!((per_end_us(&points).unwrap() - 5.0).abs() < 1e-9);
        assert_eq!(per_end_us(&points[..1]), None);
    }
}
