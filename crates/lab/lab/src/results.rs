// SPDX-License-Identifier: MIT
//! Stored results: their files, the build that they describe, and the conclusions and tables that they give.
//!
//! A stored result contains the raw data. A published result contains only the study made of them.

mod summary;
mod tables;

pub(crate) use summary::{conclusions, goals};
pub(crate) use tables::{BEGIN, FIGURE, filled, headlines, with_figures};

use crate::disturbance::Disturbance;
use crate::file::Experiment;
use crate::machine::Machine;
use crate::study::{Chart, GoalCheck, Study};
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

fn verdicts(found: &[Finding]) -> impl Iterator<Item = (&Finding, &GoalCheck)> {
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

const MARK: &str = "another build";

/// The build that a report describes: that of the module that was measured last. A run repeats only the experiments
/// that were requested. Results of other modules stay in the folder, and the report marks each of their lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Build<'a>(&'a str);

impl<'a> Build<'a> {
    pub fn of(found: &'a [Finding]) -> Build<'a> {
        let last = found.iter().max_by_key(|finding| finding.machine.measured_at);
        Build(last.map_or("", |finding| &finding.machine.module))
    }

    /// Version and hash, such as `0.1.0 (a3ebcec2a98130f8)`.
    pub fn name(self) -> &'a str {
        if self.0.is_empty() { "unknown" } else { self.0 }
    }

    /// Returns `another build` for a result of a different build.
    pub fn mark(self, finding: &Finding) -> Option<&'static str> {
        (finding.machine.module != self.0).then_some(MARK)
    }

    pub fn first(self, found: &'a [Finding]) -> Option<&'a Finding> {
        found.iter().find(|finding| self.mark(finding).is_none())
    }

    /// The experiment's name, marked if the result comes from another build.
    pub fn label(self, finding: &Finding) -> String {
        let mark = self.mark(finding).map_or(String::new(), |mark| format!(" ({mark})"));
        finding.experiment.clone() + &mark
    }

    pub fn caution(self, finding: &Finding) -> Option<String> {
        let of = &finding.machine.module;
        let of = if of.is_empty() { "an unknown module" } else { of };
        self.mark(finding).map(|mark| format!("From {mark}: measured with {of}; the report is about {}.", self.name()))
    }

    pub fn others(self, found: &[Finding]) -> Option<String> {
        let others = found.iter().filter(|finding| self.mark(finding).is_some());
        let names: Vec<&str> = others.map(|finding| finding.experiment.as_str()).collect();
        (!names.is_empty()).then(|| format!("Results from other builds, marked as such: {}.", names.join(", ")))
    }
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

    fn finding(name: &str, module: &str, measured_at: u64) -> Finding {
        let machine = Machine { module: module.into(), measured_at, ..Machine::default() };
        let study = Study::default();
        Finding { experiment: name.into(), quick: false, pairs: 1, machine, disturbance: None, study }
    }

    #[test]
    fn the_report_describes_the_latest_build_and_marks_others() {
        let found = [finding("demo", "0.1 (a)", 2), finding("hard", "0.1 (b)", 3), finding("soft", "", 1)];
        let build = Build::of(&found);
        assert_eq!(build.name(), "0.1 (b)");
        let labels: Vec<String> = found.iter().map(|finding| build.label(finding)).collect();
        assert_eq!(labels, ["demo (another build)", "hard", "soft (another build)"]);
        assert_eq!(build.others(&found).unwrap(), "Results from other builds, marked as such: demo, soft.");
        let caution = build.caution(&found[0]).unwrap();
        assert_eq!(caution, "From another build: measured with 0.1 (a); the report is about 0.1 (b).");
        assert!(build.caution(&found[2]).unwrap().contains("an unknown module"));
        assert_eq!(build.caution(&found[1]), None);
    }

    #[test]
    fn results_of_one_build_have_no_mark() {
        let found = [finding("demo", "0.1 (a)", 2), finding("hard", "0.1 (a)", 3)];
        assert_eq!(Build::of(&found).others(&found), None);
    }
}
