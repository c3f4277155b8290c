// SPDX-License-Identifier: MIT
//! An experiment of the benchmark, defined by a file, or by code if a file cannot express it.

use super::{Bench, USUAL_TRIALS};
use crate::file::File;
use crate::study::Study;
use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// An experiment. Its raw data are JSON.
#[derive(Debug)]
pub struct Experiment {
    pub name: String,
    pub about: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    File(Box<File>),
    Code { estimate: Estimate, is_paired: bool, run: fn(&Bench) -> Result<Value>, study: fn(Value) -> Result<Study> },
}

/// Approximate duration of an experiment on two cores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub quick_s: u32,
    /// With the usual number of trials.
    pub full_s: u32,
}

/// An experiment that is written as code.
pub(crate) trait Measure: Serialize + DeserializeOwned {
    const NAME: &'static str;
    const ABOUT: &'static str;
    /// Used to predict the time left. Each experiment should state its own.
    const ESTIMATE: Estimate = Estimate { quick_s: 40, full_s: 240 };
    /// True if the experiment measures in pairs; false if it measures everything once.
    const PAIRED: bool = true;

    /// Measures and returns the raw data.
    fn run(bench: &Bench) -> Result<Self>;

    fn study(&self) -> Study;
}

impl Experiment {
    pub(crate) fn of<M: Measure>() -> Experiment {
        let run = |bench: &Bench| Ok(serde_json::to_value(M::run(bench)?)?);
        let study = |raw| Ok(serde_json::from_value::<M>(raw)?.study());
        let kind = Kind::Code { estimate: M::ESTIMATE, is_paired: M::PAIRED, run, study };
        Experiment { name: M::NAME.to_owned(), about: M::ABOUT.to_owned(), kind }
    }

    pub(crate) fn of_file(file: File) -> Experiment {
        Experiment { name: file.name().to_owned(), about: file.about().to_owned(), kind: Kind::File(Box::new(file)) }
    }

    /// Reads a user's experiment, which is named after its file.
    pub fn read(path: &Path) -> Result<Experiment> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_stem().and_then(|name| name.to_str()).context("the file name is not valid UTF-8")?;
        File::read(name, &path.display().to_string(), &text).map(Experiment::of_file).map_err(anyhow::Error::msg)
    }

    /// Keys of the goals that the file uses.
    #[cfg(test)]
    pub(crate) fn goal_keys(&self) -> Vec<String> {
        if let Kind::File(file) = &self.kind { file.goal_keys() } else { Vec::new() }
    }

    /// Keys of the published figures that the file uses.
    #[cfg(test)]
    pub(crate) fn published_keys(&self) -> Vec<String> {
        if let Kind::File(file) = &self.kind { file.published_keys() } else { Vec::new() }
    }

    /// Approximate duration in seconds.
    pub fn estimate_s(&self, quick: bool, trials: u32) -> f64 {
        match &self.kind {
            Kind::File(file) => file.estimate_s(quick, trials),
            Kind::Code { estimate, .. } if quick => f64::from(estimate.quick_s),
            Kind::Code { estimate, is_paired, .. } => {
                let of_usual = if *is_paired { f64::from(trials) / f64::from(USUAL_TRIALS) } else { 1.0 };
                f64::from(estimate.full_s) * of_usual
            }
        }
    }

    /// Number of trials that the experiment actually runs.
    pub(super) fn trials(&self, quick: bool, trials: u32) -> u32 {
        let is_once = matches!(self.kind, Kind::Code { is_paired: false, .. });
        if quick || is_once { 1 } else { trials.max(1) }
    }

    pub(super) fn run(&self, bench: &Bench) -> Result<Value> {
        match &self.kind {
            Kind::File(file) => file.run(bench),
            Kind::Code { run, .. } => run(bench),
        }
    }

    /// Evaluates raw data without measuring anything, so stored data can be evaluated again.
    pub(super) fn study(&self, raw: Value) -> Result<Study> {
        match &self.kind {
            Kind::File(file) => file.study(raw),
            Kind::Code { study, .. } => study(raw),
        }
    }
}
