// SPDX-License-Identifier: MIT
//! What an experiment uses while it runs: the thoroughness, the module, the progress line, and its finished parts.

mod parts;
mod progress;

pub(crate) use parts::Parts;
pub(crate) use progress::{Pace, Plan, Progress, clear_line, line};

use anyhow::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// The services that the benchmark offers to an experiment.
#[derive(Debug)]
pub(crate) struct Bench {
    pub quick: bool,
    pub pairs: u32,
    pub module: PathBuf,
    pub progress: Progress,
    /// Path of the file of the experiment's parts, and the description of the run to which the parts belong.
    pub parts: (PathBuf, String),
}

impl Bench {
    /// The parts that have already been measured. Parts that the experiment adds survive an interruption.
    pub fn parts<T: Serialize + DeserializeOwned>(&self) -> Result<Parts<T>> {
        let (path, of) = &self.parts;
        Parts::open(path, of)
    }

    pub fn say(&self, what: impl AsRef<str>) {
        self.progress.say(what.as_ref());
    }

    pub fn note(&self, what: impl AsRef<str>) {
        self.progress.note(what.as_ref());
    }
}
