// SPDX-License-Identifier: MIT
//! Crowds: from 10 to 2,000 connected clients, and from 2 to 200 busy ones.
//!
//! The busy ones are threads of this program that send the cheapest request that draws, so that the server changes
//! clients as often as it can. What a decision costs cannot be told from the server's own figures: its account of server time
//! holds the polling too, and what the kernel took meanwhile. `crates/core/benches/decision.rs` measures that.

use crate::bench::Bench;
use crate::flood::{Flood, Work};
use crate::light::Light;
use crate::scheduler::{Scheduler, Stage};
use crate::server::{Kind, Setup};
use crate::statistics::{Spread, Summary};
use crate::study::{Columns, Line, Lines, Table, figure, spread_figure};
use crate::tiles::SCREEN;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

const CONNECTED: [usize; 5] = [10, 100, 500, 1000, 2000];
const BUSY: [usize; 5] = [2, 10, 50, 100, 200];
/// Beside the connected ones.
const FEW_BUSY: usize = 2;
const SCHEDULERS: [Scheduler; 2] = [Scheduler::Stock, Scheduler::Fair];

/// One measurement.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Crowd {
    silent: usize,
    busy: usize,
    scheduler: Scheduler,
    response_ms: Summary,
    without_kernel_ms: Summary,
    decisions_per_s: f64,
    rss_kb: u64,
    /// The module's own account.
    own_bytes: u32,
}

/// One turn.
pub(super) fn measure(bench: &Bench, turn: u32) -> Result<Vec<Crowd>> {
    let setup = Setup::with_module(Kind::Xvfb, bench.module());
    let stage = Stage::of(Setup { screen: SCREEN, max_clients: 2048, ..setup })?;
    let mut found = Vec::new();
    // The ends and the middle of each when in a hurry; 200 busy ones take as long as all of these.
    let (each, most_busy) = if bench.quick { (2, 50) } else { (1, usize::MAX) };
    for busy in BUSY.into_iter().step_by(each).filter(|&busy| busy <= most_busy) {
        found.extend(both(bench, &stage, turn, 0, busy)?);
    }
    let mut connected = Vec::new();
    for silent in CONNECTED.into_iter().step_by(each) {
        while connected.len() < silent {
            connected.push(stage.server().connect()?);
        }
        found.extend(both(bench, &stage, turn, silent, FEW_BUSY)?);
    }
    Ok(found)
}

fn both(bench: &Bench, stage: &Stage, turn: u32, silent: usize, busy: usize) -> Result<Vec<Crowd>> {
    bench.say(format!("{silent} silent clients, {busy} busy ones"));
    let schedulers = Scheduler::in_turn(turn).into_iter().filter(|one| SCHEDULERS.contains(one));
    schedulers.map(|scheduler| one(bench, stage, scheduler, silent, busy)).collect()
}

fn one(bench: &Bench, stage: &Stage, scheduler: Scheduler, silent: usize, busy: usize) -> Result<Crowd> {
    stage.follow(scheduler)?;
    let (server, control) = (stage.server(), stage.control());
    let flood = Flood::start(server, Work::CHEAP, busy)?;
    let (began, before) = (Instant::now(), control.server_info()?);
    let light = Light { warm_up: Duration::from_millis(200), ..Light::default() };
    let series = light.measure(server, bench.time(2000, 400))?.series;
    let (elapsed, after) = (began.elapsed(), control.server_info()?);
    let memory = server.memory()?;
    drop(flood);
    Ok(Crowd {
        silent,
        busy,
        scheduler,
        response_ms: series.response_ms(),
        without_kernel_ms: series.without_kernel_ms(),
        decisions_per_s: (after.decisions - before.decisions) as f64 / elapsed.as_secs_f64(),
        rss_kb: memory.rss_kb,
        own_bytes: after.memory_bytes,
    })
}

pub(super) fn table(all: &[Crowd]) -> Table {
    let is_measured = |place: &(usize, usize)| all.iter().any(|one| (one.silent, one.busy) == *place);
    let of_one = |scheduler: Scheduler| places().into_iter().filter(is_measured).map(move |place| (scheduler, place));
    type Place = (Scheduler, (usize, usize));
    let of = |place: &Place, value: fn(&Crowd) -> f64| spread(all, place.0, place.1.0, place.1.1, value);
    let median = |place: &Place, value| figure(of(place, value).median);
    // Who got no answer in all the time has no response time.
    let response = |place: &Place, text: String| if of(place, p99).count == 0 { "none".to_owned() } else { text };
    Columns::of("Crowds of cheap requests, medians of the turns", SCHEDULERS.into_iter().flat_map(of_one))
        .cell("server", |(scheduler, _)| scheduler.name().to_owned())
        .cell("silent", |(_, place)| place.0.to_string())
        .cell("busy", |(_, place)| place.1.to_string())
        .cell("mean ms", |place| response(place, median(place, |one| one.response_ms.mean)))
        .cell("p99 ms", |place| response(place, spread_figure(&of(place, p99))))
        .cell("p99 without kernel", |place| response(place, median(place, |one| one.without_kernel_ms.p99)))
        .cell("decisions /s", |place| median(place, |one| one.decisions_per_s))
        .cell("server RSS MB", |place| median(place, |one| one.rss_kb as f64 / 1024.0))
        .cell("xqos KB", |place| median(place, |one| f64::from(one.own_bytes) / 1024.0))
        .table()
}

/// Over the busy clients, and over the silent ones.
pub(super) fn charts(all: &[Crowd]) -> Vec<Lines> {
    let by_busy: Vec<_> = places().into_iter().filter(|(silent, _)| *silent == 0).collect();
    let by_silent: Vec<_> = places().into_iter().filter(|(silent, _)| *silent > 0).collect();
    let chart = |title: &str, x_label: &str, places: &[(usize, usize)], x: fn(&(usize, usize)) -> usize| {
        Lines::new(
            title.to_owned(),
            x_label,
            "response p99, ms",
            SCHEDULERS.map(|scheduler| line(all, scheduler, places, x)),
        )
        .log_y()
    };
    vec![
        chart("Response against busy clients", "clients that never pause", &by_busy, |place| place.1),
        chart("Response against silent clients", "connected clients", &by_silent, |place| place.0),
    ]
}

fn line(all: &[Crowd], scheduler: Scheduler, places: &[(usize, usize)], x: fn(&(usize, usize)) -> usize) -> Line {
    let point = |place: &(usize, usize)| {
        let found = spread(all, scheduler, place.0, place.1, p99);
        (found.count > 0).then(|| [x(place) as f64, found.median])
    };
    Line::new(scheduler.name(), scheduler.title(), places.iter().filter_map(point))
}

/// Silent and busy clients.
fn places() -> Vec<(usize, usize)> {
    let busy = BUSY.iter().map(|&busy| (0, busy));
    busy.chain(CONNECTED.iter().map(|&silent| (silent, FEW_BUSY))).collect()
}

fn spread(all: &[Crowd], scheduler: Scheduler, silent: usize, busy: usize, figure: fn(&Crowd) -> f64) -> Spread {
    let is_there = |one: &&Crowd| (one.scheduler, one.silent, one.busy) == (scheduler, silent, busy);
    Spread::of(all.iter().filter(is_there).map(figure).filter(|value| !value.is_nan()))
}

/// Not a number where there was no answer.
fn p99(one: &Crowd) -> f64 {
    if one.response_ms.count == 0 { f64::NAN } else { one.response_ms.p99 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_got_no_answer_has_no_response_time_and_no_point() {
        let crowd = |busy, count| Crowd {
            silent: 0,
            busy,
            scheduler: Scheduler::Stock,
            response_ms: Summary { count, p99: 7.0, ..Summary::default() },
            without_kernel_ms: Summary::default(),
            decisions_per_s: 100.0,
            rss_kb: 2048,
            own_bytes: 1024,
        };
        let all = [crowd(2, 5), crowd(200, 0)];
        let table = table(&all);
        let stock: Vec<_> = table.rows.iter().filter(|row| row[0] == "stock").collect();
        assert_eq!((stock.len(), stock[0][4].as_str(), stock[1][4].as_str()), (2, "7", "none"));
        assert_eq!(stock[1][7], "2", "memory is known all the same");
        assert_eq!(charts(&all)[0].lines[0].points, [[2.0, 7.0]]);
    }
}
