// SPDX-License-Identifier: MIT
//! Stored results, and their renderings as text, as a page, and as verdicts in JSON.
//!
//! A stored result contains the raw data. A published result contains only the study made of them.

use super::{Build, Experiment, print, summary};
use crate::disturbance::Disturbance;
use crate::machine::Machine;
use crate::study::{Chart, Study};
use crate::{page, render};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use xqos_cli::output::NewFile;

/// Renders the results of a folder again: as its own report, or as one page at `page`.
pub fn report(known: &[Experiment], folder: &Path, page: Option<&Path>) -> Result<()> {
    let found = read_some(known, folder)?;
    let written = match page {
        Some(path) => {
            write(path, &page::html(&found)?)?;
            path.to_owned()
        }
        None => {
            write_findings(folder, &found)?;
            folder.join("index.html")
        }
    };
    print(&format!("{}\n{}\n", text(&found), written.display()))
}

/// The measured server and module. Results of another server or module do not belong to this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub server: String,
    pub module: String,
}

/// The stored result of one experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    pub experiment: String,
    pub quick: bool,
    pub pairs: u32,
    pub machine: Machine,
    #[serde(default)]
    pub disturbance: Option<Disturbance>,
    #[serde(flatten)]
    pub data: Data,
}

/// Content of a stored result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Data {
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

    pub fn text(&self, build: Build) -> String {
        let doubts = build.caution(self).into_iter().chain(self.noise());
        doubts.fold(render::study(&self.study), |text, doubt| format!("{text}\n{doubt}\n"))
    }
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
pub(super) fn read_some(known: &[Experiment], folder: &Path) -> Result<Vec<Finding>> {
    let found = read_all(known, folder)?;
    if found.is_empty() {
        bail!("{} has no results: measure first, with `xqos bench run all --out {0}`", folder.display());
    }
    Ok(found)
}

pub(super) fn write_findings(folder: &Path, found: &[Finding]) -> Result<()> {
    // Leave out charts, which repeat the raw data in the same folder.
    let mut brief = found.to_vec();
    brief.iter_mut().for_each(|finding| finding.study.charts.clear());
    write(&folder.join("results.json"), &serde_json::to_string_pretty(&brief)?)?;
    write(&folder.join("index.html"), &page::html(found)?)
}

/// The text of one experiment starts with its result; the text of several starts with the conclusions.
pub(crate) fn text(found: &[Finding]) -> String {
    let build = Build::of(found);
    let conclusions = summary::conclusions(found).join("\n");
    let studies: Vec<String> = found.iter().map(|finding| finding.text(build)).collect();
    let machine = build.first(found).map(|finding| render::machine(&finding.machine)).unwrap_or_default();
    let (studies, goals) = (studies.join("\n\n"), summary::text(found));
    match found {
        [_] => format!("{studies}\n{conclusions}\n\n{machine}"),
        _ => format!("{conclusions}\n\n{studies}\n{goals}\n{machine}"),
    }
}

/// Replaces the file atomically: even after an interruption, a reader finds either the old or the new text.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let written = NewFile::create(path, 0o666).and_then(|new| {
        let mut file = new.file()?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        new.finish()
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_results_is_an_error_with_a_next_step() {
        let error = report(&crate::experiments::all(), Path::new("/nowhere"), None).unwrap_err().to_string();
        assert!(error.contains("bench run"), "{error}");
    }

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
