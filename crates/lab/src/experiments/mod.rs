// SPDX-License-Identifier: MIT
//! The experiments, one file each: what is measured (`run`), and what follows from it (`study`).
//!
//! `run` gives raw data that can be stored; `study` never measures, so that stored data can be looked at again.

mod animation;
mod auto;
mod below;
mod blocking;
mod demo;
mod desktop;
mod endtoend;
mod everyday;
mod expose;
mod fairness;
mod far;
mod grid;
mod groups;
mod hard;
mod idle;
mod interactive;
mod intervals;
mod memory;
mod near;
mod ocbench;
mod player;
mod response;
mod rules;
mod scale;
mod simulation;
mod soft;
#[cfg(test)]
pub(crate) mod sources;
mod throughput;
mod tracing;
mod trial;
mod turns;

use crate::bench::Bench;
use crate::study::Study;
use anyhow::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An experiment as the benchmark sees it: raw data are JSON.
#[derive(Debug)]
pub(crate) struct Experiment {
    pub name: &'static str,
    pub about: &'static str,
    pub takes: Takes,
    pub paired: bool,
    pub run: fn(&Bench) -> Result<Value>,
    pub study: fn(Value) -> Result<Study>,
}

/// About how long an experiment takes, on two cores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Takes {
    pub quick_s: u32,
    /// With the usual number of trials.
    pub full_s: u32,
}

/// In the order of the report.
pub(crate) const ALL: [Experiment; 27] = [
    of::<demo::Demo>(),
    of::<response::Response>(),
    of::<desktop::Desktop>(),
    of::<everyday::Everyday>(),
    of::<throughput::Throughput>(),
    of::<below::Below>(),
    of::<hard::Hard>(),
    of::<soft::Soft>(),
    of::<ocbench::Progress>(),
    of::<player::Player>(),
    of::<auto::Auto>(),
    of::<rules::Rules>(),
    of::<fairness::Fairness>(),
    of::<groups::Groups>(),
    of::<idle::Idle>(),
    of::<memory::Memory>(),
    of::<scale::Scale>(),
    of::<blocking::Blocking>(),
    of::<tracing::Tracing>(),
    of::<interactive::Interactive>(),
    of::<animation::Animation>(),
    of::<intervals::Intervals>(),
    of::<expose::Expose>(),
    of::<endtoend::EndToEnd>(),
    of::<simulation::Simulation>(),
    of::<grid::Grid>(),
    of::<near::Near>(),
];

/// What each file of this folder provides.
trait Measure: Serialize + DeserializeOwned {
    const NAME: &'static str;
    const ABOUT: &'static str;
    /// For the time left; state it for each experiment.
    const TAKES: Takes = Takes { quick_s: 40, full_s: 240 };
    /// Whether it measures in pairs; else everything once.
    const PAIRED: bool = true;

    /// Measures: the value is the raw data.
    fn run(bench: &Bench) -> Result<Self>;

    fn study(&self) -> Study;
}

const fn of<M: Measure>() -> Experiment {
    Experiment {
        name: M::NAME,
        about: M::ABOUT,
        takes: M::TAKES,
        paired: M::PAIRED,
        run: |bench| Ok(serde_json::to_value(M::run(bench)?)?),
        study: |raw| Ok(serde_json::from_value::<M>(raw)?.study()),
    }
}
