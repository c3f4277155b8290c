// SPDX-License-Identifier: MIT
//! The situations on real servers, with the lab's own clients.

use super::{Situation, Times};
use crate::bench::Bench;
use crate::flood::{Drawing, Flood};
use crate::light::{Light, Series};
use crate::line;
use crate::load::{Load, Perf, Placement};
use crate::periodic::{ANIMATION, animate};
use crate::scheduler::{Scheduler, Stage};
use anyhow::Result;
use std::time::Duration;

const PLAIDS: usize = 12;

/// Measures the client together with its load, under the scheduler that the server follows.
pub(super) fn measure(
    situation: Situation,
    bench: &Bench,
    stage: &Stage,
    scheduler: Scheduler,
    perf: &Perf,
) -> Result<Times> {
    let display = stage.server().display();
    if situation == Situation::Ocbench {
        let mut load = Load::start(display, perf, 1, Placement::SideBySide)?;
        let times = alone(situation, bench, stage, Some(scheduler))?;
        load.see_running()?;
        return Ok(times);
    }
    let _plaids = Flood::start(stage.server(), Drawing::Heavy, PLAIDS)?;
    alone(situation, bench, stage, Some(scheduler))
}

/// Measures the client without other clients.
pub(super) fn alone(situation: Situation, bench: &Bench, stage: &Stage, scheduler: Option<Scheduler>) -> Result<Times> {
    let (server, reservation) = (stage.server(), scheduler.and_then(Scheduler::reservation));
    match situation {
        Situation::Interactive => {
            let echoes = line::measure(server, reservation, if bench.quick { 40 } else { 150 })?;
            Ok(Times { response_ms: echoes.echo_ms(), interval_ms: Vec::new() })
        }
        Situation::Animation => {
            let frames = animate(server, ANIMATION, reservation, if bench.quick { 40 } else { 120 })?;
            Ok(Times { response_ms: frames.latency_ms(), interval_ms: frames.interval_ms() })
        }
        Situation::Ocbench => {
            let warm_up = Duration::from_millis(200);
            let light = Light { rests: true, warm_up, reservation, ..Light::default() };
            Ok(Times::of_series(&light.measure(server, bench.time(1500, 700))?.series))
        }
    }
}

impl Times {
    /// Intervals between the beginnings of two bursts.
    fn of_series(series: &Series) -> Times {
        let response_ms = series.response_ns.iter().map(|&ns| ns as f64 / 1e6).collect();
        let interval_ms = series.at_us.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e3).collect();
        Times { response_ms, interval_ms }
    }
}
