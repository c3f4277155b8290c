// SPDX-License-Identifier: MIT
//! All experiments: files of lab/experiments, and code where a file cannot express them.
//!
//! In code, `run` returns raw data that can be stored. `study` never measures, so stored data can be evaluated again.

mod rules;
#[cfg(test)]
pub(crate) mod sources;

use crate::bench::{Estimate, Experiment, Measure};
use crate::file::File;

macro_rules! file {
    ($name:literal) => {{
        let text = include_str!(concat!("../../../lab/experiments/", $name, ".toml"));
        let file = File::read($name, concat!("lab/experiments/", $name, ".toml"), text);
        // A test parses all of them.
        Experiment::of_file(file.expect("the built-in experiments are valid"))
    }};
}

/// All experiments, in the order of the report.
pub fn all() -> Vec<Experiment> {
    vec![
        file!("demo"),
        file!("response"),
        file!("policies"),
        file!("desktop"),
        file!("everyday"),
        file!("throughput"),
        file!("below"),
        file!("below_cost"),
        file!("below_shares"),
        file!("hard"),
        file!("families"),
        file!("soft"),
        file!("ocbench"),
        file!("bursts"),
        file!("player"),
        file!("queue"),
        file!("auto"),
        Experiment::of::<rules::Rules>(),
        file!("fairness"),
        file!("priorities"),
        file!("groups"),
        file!("idle"),
        file!("memory"),
        file!("scale"),
        file!("crowds"),
        file!("blocking"),
        file!("cut"),
        file!("sync"),
        file!("tracing"),
        file!("interactive"),
        file!("xorg"),
        file!("animation"),
        file!("intervals"),
        file!("intervals_latency"),
        file!("intervals_ends"),
        file!("xmark"),
        file!("system_calls"),
        file!("expose"),
        file!("drag_priorities"),
        file!("endtoend"),
        file!("simulation"),
        file!("grid"),
        file!("near"),
        file!("near_cost"),
        file!("drop"),
    ]
}
