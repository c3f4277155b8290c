// SPDX-License-Identifier: MIT
//! Stored results: their files, the build that they describe, and the conclusions and tables that they give.
//!
//! A stored result contains the raw data. A published result contains only the study made of them.

mod build;
mod summary;
mod tables;

pub(crate) use build::Build;
pub(crate) use summary::{conclusions, goals};
pub(crate) use tables::{BEGIN, FIGURE, filled, headlines, with_figures};

use crate::disturbance::Disturbance;
use crate::file::Experiment;
use crate::machine::Machine;
use crate::study::{Chart, Study, Verdict};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use xqos_cli::output;

/// The measured server and module. Results of another server or module do not belong to this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub server: String,
    pub module: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub experiment: String,
    pub quick: bool,
    pub pairs: u32,
    pub machine: Machine,
    #[serde(default)]
    pub disturbance: Option<Disturbance>,
    #[serde(flatten)]
    pub data: Data,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Data {
    /// Raw data, which are evaluated each time they are read.
    Raw(Value),
    /// The study, as evaluated when it was published.
    Study(Box<Study>),
}

impl Stored {
    /// `None` if there is no such file.
    pub fn read(folder: &Path, experiment: &str) -> Option<Result<Stored>> {
        let path = folder.join(format!("{experiment}.json"));
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            text => text.with_context(|| format!("cannot read {}", path.display())),
        };
        Some(text.and_then(|text| {
            serde_json::from_str(&text).with_context(|| format!("this version cannot read {}", path.display()))
        }))
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        write(&folder.join(format!("{}.json", self.experiment)), &serde_json::to_string(self)?)
    }

    pub fn is_of(&self, subject: &Subject, quick: bool, pairs: u32) -> bool {
        let machine = &self.machine;
        (&machine.server, &machine.module) == (&subject.server, &subject.module)
            && (self.quick, self.pairs) == (quick, pairs)
    }

    /// `of` is the experiment that evaluates raw data; it is not needed for a published study.
    pub fn finding(self, of: Option<&Experiment>) -> Result<Finding> {
        let Stored { experiment, quick, pairs, machine, disturbance, data } = self;
        let study = match data {
            Data::Raw(raw) => {
                let not_ours = || format!("this version cannot evaluate the result of {experiment}");
                let mut study = of.with_context(not_ours)?.study(raw).with_context(not_ours)?;
                study.charts.iter_mut().for_each(Chart::reduce);
                study
            }
            Data::Study(study) => *study,
        };
        Ok(Finding { experiment, quick, pairs, machine, disturbance, study })
    }
}

impl From<Finding> for Stored {
    fn from(finding: Finding) -> Stored {
        let Finding { experiment, quick, pairs, machine, disturbance, study } = finding;
        Stored { experiment, quick, pairs, machine, disturbance, data: Data::Study(Box::new(study)) }
    }
}

/// The study of an experiment, and the circumstances of the measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    pub experiment: String,
    pub quick: bool,
    pub pairs: u32,
    pub machine: Machine,
    pub disturbance: Option<Disturbance>,
    #[serde(flatten)]
    pub study: Study,
}

impl Finding {
    /// A sentence about the disturbance, if the measurement was disturbed.
    pub fn noise(&self) -> Option<String> {
        self.disturbance?.noise().map(|causes| format!("Noisy: during this measurement, {causes}."))
    }
}

fn verdicts(found: &[Finding]) -> impl Iterator<Item = (&Finding, &Verdict)> {
    found.iter().flat_map(|of| of.study.verdicts.iter().map(move |verdict| (of, verdict)))
}

/// Reads all results in the order of the report, followed by those of users' own files.
pub(crate) fn read_all(known: &[Experiment], folder: &Path) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    let cannot = || format!("cannot use the results in {}", folder.display());
    for experiment in known {
        if let Some(stored) = Stored::read(folder, &experiment.name) {
            found.push(stored.and_then(|stored| stored.finding(Some(experiment))).with_context(cannot)?);
        }
    }
    for name in others(known, folder) {
        // Ignore files that are not results.
        if let Some(Ok(stored)) = Stored::read(folder, &name) {
            let own = if let Data::Raw(raw) = &stored.data { Experiment::of_raw(&name, raw) } else { None };
            found.push(stored.finding(own.as_ref()).with_context(cannot)?);
        }
    }
    Ok(found)
}

/// Names of results in the folder that belong to none of these experiments.
fn others(known: &[Experiment], folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some(name.strip_suffix(".json")?.to_owned())
    });
    let mut others: Vec<String> = names.filter(|name| known.iter().all(|one| one.name != *name)).collect();
    others.sort();
    others
}

/// Like [`read_all`], but fails if there are no results.
pub(crate) fn read_some(known: &[Experiment], folder: &Path) -> Result<Vec<Finding>> {
    let found = read_all(known, folder)?;
    if found.is_empty() {
        bail!("{} has no results: measure first, with `xqos bench run all --out {0}`", folder.display());
    }
    Ok(found)
}

/// Replaces the file atomically: even after an interruption, a reader finds either the old or the new text.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    output::write(path, 0o666, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = crate::folder::Folder::create().unwrap();
        let path = folder.path("idle.json");
        write(&path, "old").unwrap();
        // A folder with the temporary file's name makes the write fail.
        let part = folder.path(&format!(".idle.json.{}.part", std::process::id()));
        fs::create_dir(&part).unwrap();
        assert!(write(&path, "new").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        fs::remove_dir(&part).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(!part.exists());
    }

    #[test]
    fn only_results_of_the_same_server_module_and_trials_are_reused() {
        let machine = Machine { server: "Xvfb 1".into(), module: "0.1 (a)".into(), ..Machine::default() };
        let data = Data::Raw(Value::Null);
        let stored = Stored { experiment: "idle".into(), quick: true, pairs: 1, machine, disturbance: None, data };
        let subject = |server: &str, module: &str| Subject { server: server.into(), module: module.into() };
        assert!(stored.is_of(&subject("Xvfb 1", "0.1 (a)"), true, 1));
        assert!(!stored.is_of(&subject("Xvfb 2", "0.1 (a)"), true, 1));
        assert!(!stored.is_of(&subject("Xvfb 1", "0.1 (b)"), true, 1));
        assert!(!stored.is_of(&subject("Xvfb 1", "0.1 (a)"), false, 1));
        assert!(!stored.is_of(&subject("Xvfb 1", "0.1 (a)"), true, 2));
    }
}
