// SPDX-License-Identifier: MIT
//! All experiments of the program: the files of lab/experiments.

use crate::file::Experiment;

macro_rules! file {
    ($name:literal) => {{
        let text = include_str!(concat!("../../../lab/experiments/", $name, ".toml"));
        // A test parses all of them.
        Experiment::parse($name, concat!("lab/experiments/", $name, ".toml"), text).expect("the file is valid")
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
        file!("rules"),
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

/// Keys of goals and of papers' figures that the experiments use.
#[cfg(test)]
pub(crate) fn keys() -> [std::collections::BTreeSet<String>; 2] {
    let all = all();
    let of = |names: fn(&Experiment) -> Vec<String>| all.iter().flat_map(names).collect();
    [of(Experiment::goal_keys), of(Experiment::published_keys)]
}
