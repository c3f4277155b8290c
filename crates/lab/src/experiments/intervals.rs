// SPDX-License-Identifier: MIT
//! Slice and timer interval from 0.25 to 20 ms: Packard's section 8, Figures 3 to 5.
//!
//! His server ended slices at ticks of the kernel, 10 ms apart; for shorter ones he built a kernel that ticks every
//! millisecond. Here a timer of the watcher ends a slice wherever it is told to, so the interval changes while a server
//! runs, and all intervals are measured in each turn, on one server. The kernel's own tick, his Figure 6, is a constant
//! of the kernel that runs: what that costs cannot be measured from here, and [`cost`] has in its place what each
//! way of ending a slice costs.

mod cost;
mod latency;
mod rate;
mod setting;
mod speed;

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::statistics::{deviation, mean};
use crate::study::{Study, figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};

const PLAIDS: usize = 12;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Intervals {
    latency: latency::Latency,
    speed: speed::Speed,
    cost: cost::Cost,
}

impl Measure for Intervals {
    const NAME: &'static str = "intervals";
    const ABOUT: &'static str = "slices from 0.25 to 20 ms: latency, jitter, speed, what an end costs (Packard 8)";
    const TAKES: Takes = Takes { quick_s: 45, full_s: 870 };

    fn run(bench: &Bench) -> Result<Self> {
        let latency = latency::Latency::measure(bench)?;
        let stages = speed::Stages::start(bench)?;
        let speed = speed::Speed::measure(bench, &stages)?;
        Ok(Intervals { latency, speed, cost: cost::Cost::measure(bench, &stages)? })
    }

    fn study(&self) -> Study {
        let (latency, speed, cost) = (&self.latency, &self.speed, &self.cost);
        Study {
            title: "Slices from 0.25 to 20 ms".to_owned(),
            question: format!(
                "How late are a line that follows the pointer and an animation beside {PLAIDS} plaids, at which length \
                 of a slice, and what do short slices cost?"
            ),
            answer: String::new(),
            verdicts: [latency.verdicts(), speed.verdicts(), cost.verdicts(speed)].concat(),
            tables: [vec![latency.table()], speed.tables(), vec![cost.table(speed)]].concat(),
            charts: [latency.charts(), speed.charts()].concat(),
            notes: notes(),
        }
    }
}

/// Mean and deviation.
fn with_deviation(values: &[f64]) -> String {
    format!("{} ({})", figure(mean(values)), figure(deviation(values)))
}

fn notes() -> Vec<String> {
    vec![
        "How it was measured. In each turn all intervals of all schedulers, every other turn the other way round; ratios are \
         taken within a turn. The interval is the timer interval of smart and the slice of fair, changed while the server \
         runs; the server's own timer is put out of the way (-schedInterval 500). Line and animation: Xtigervnc, the \
         pointer moved by a viewer. Speed: Xvfb, operations by x11perf's own count. Stock servers are started anew with \
         -schedInterval 1, 5 and 20: that is the signal which ended slices in the paper's server too."
            .to_owned(),
        "What an end costs. The work of a busy client in a second of the server's processor time, against the slices that \
         were ended in it, on a straight line: its slope is what one more end takes away, all that follows from it \
         included. Arrivals are a second client's round trips, four thousand a second if the server lets them; with \
         slices of 20 ms each ends one, with slices of 0.25 ms they wait for the end, as nobody hogs the server then. \
         The difference is the end itself. A round trip alone is all that a server does for one: the client has nothing \
         left, the server sleeps and is woken."
            .to_owned(),
        "Figure 6 of the paper compares kernels that tick 100 and 1000 times a second. It cannot be run again here: the \
         tick is built into the kernel that runs, and a slice no longer depends on it, since the watcher's timer is a \
         high-resolution one. What the paper wanted to know, whether short slices can be afforded, is what an end costs."
            .to_owned(),
        "Reading results. Under smart nobody's arrival ends a slice, so echo and drawing should grow with the interval, \
         by about half of it. Under fair an arrival does, but only while somebody has slices of more than 1 ms: below, \
         arrivals wait for the end of the slice, and above, the interval should hardly matter. Receipt is \
         looked at between slices by Xtigervnc, and by the watcher while somebody hogs. Costs of a few microseconds \
         are told apart only by many ends: stock ends a thousand slices a second at most, and its figure is the least \
         certain; so is everything while others use the processors."
            .to_owned(),
    ]
}
