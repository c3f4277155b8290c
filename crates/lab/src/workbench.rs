// SPDX-License-Identifier: MIT
//! What an experiment uses while it runs: the thoroughness, the module, the progress line, and its finished parts.

mod parts;
mod progress;

pub(crate) use parts::Parts;
pub(crate) use progress::{Pace, Plan, Progress, clear_line, line};

use std::path::PathBuf;

/// The services that the benchmark offers to an experiment.
#[derive(Debug)]
pub(crate) struct Bench {
    pub quick: bool,
    pub pairs: u32,
    pub module: PathBuf,
    pub progress: Progress,
    /// Path of the file of the experiment's parts, and the description of the run to which the parts belong; see
    /// [`Parts::open`].
    pub parts: (PathBuf, String),
}
