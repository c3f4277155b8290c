// SPDX-License-Identifier: MIT
//! All experiments of the program: the files of lab/experiments.

use crate::file::Experiment;

/// Name, file and page of each experiment.
macro_rules! experiments {
    ($($name:literal)*) => {
        &[$((
            $name,
            include_str!(concat!("../../../../lab/experiments/", $name, ".toml")),
            include_str!(concat!("../../../../docs/experiments/", $name, ".md")),
        )),*]
    };
}

/// In the order of the report.
const ALL: &[(&str, &str, &str)] = experiments!(
    "demo" "response" "policies" "desktop" "everyday" "throughput" "below" "below_cost" "below_shares" "hard"
    "families" "soft" "ocbench" "bursts" "player" "queue" "auto" "rules" "fairness" "priorities" "groups" "idle"
    "memory" "scale" "crowds" "blocking" "cut" "sync" "tracing" "interactive" "xorg" "animation" "intervals"
    "intervals_latency" "intervals_ends" "xmark" "system_calls" "expose" "drag_priorities" "endtoend" "simulation"
    "starts" "grid" "near" "near_cost" "drop" "instructions"
);

pub fn all() -> Vec<Experiment> {
    // A test parses all of them.
    let parse = |&(name, text, _): &(&str, &str, _)| Experiment::parse(name, name, text).expect("the file is valid");
    ALL.iter().map(parse).collect()
}

/// The page of an experiment, in Markdown.
pub(crate) fn page(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(of, ..)| *of == name).map(|&(.., page)| page)
}
