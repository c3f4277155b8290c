// SPDX-License-Identifier: MIT
//! Renders results as text, as a page, and as verdicts in JSON; publishes them; and fills documents with their figures.
//!
//! Published results have everything that the report shows, without the raw samples. The code that renders complete
//! results also makes the published ones, so both give the same report and the same comparison.

use super::{Experiment, print};
use crate::results::{BEGIN, Build, FIGURE, Finding, Stored, conclusions, filled, goals, headlines, read_some, write};
use crate::{page, render};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

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

/// Writes the results of `folder` to `out`: `data/NAME.json` without raw data, and `report.html` with everything in
/// `data`.
pub fn publish(known: &[Experiment], folder: &Path, out: &Path) -> Result<()> {
    let found = read_some(known, folder)?;
    let data = out.join("data");
    fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
    for finding in found {
        Stored::from(finding).write(&data)?;
    }
    let report = out.join("report.html");
    write(&report, &page::html(&read_some(known, &data)?)?)?;
    print(&format!("{}\n", report.display()))
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
    let conclusions = conclusions(found).join("\n");
    let studies: Vec<String> = found.iter().map(|finding| of_one(finding, build)).collect();
    let machine = build.first(found).map(|finding| render::machine(&finding.machine)).unwrap_or_default();
    let (studies, goals) = (studies.join("\n\n"), goals(found));
    match found {
        [_] => format!("{studies}\n{conclusions}\n\n{machine}"),
        _ => format!("{conclusions}\n\n{studies}\n{goals}\n{machine}"),
    }
}

pub(super) fn of_one(finding: &Finding, build: Build) -> String {
    let doubts = build.caution(finding).into_iter().chain(finding.noise());
    doubts.fold(render::study(&finding.study), |text, doubt| format!("{text}\n{doubt}\n"))
}

/// Prints the headlines of the results in `folder`, or regenerates the tables and figures in these files. Files without
/// them are left unchanged.
pub fn table(known: &[Experiment], folder: &Path, into: &[PathBuf]) -> Result<()> {
    let found = read_some(known, folder)?;
    if into.is_empty() {
        return print(&headlines(&found)?);
    }
    let mut made = Vec::new();
    for path in into {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let text = filled(&text, &found).with_context(|| format!("cannot use {}", path.display()))?;
        made.extend(text.map(|text| (path, text)));
    }
    if made.is_empty() {
        bail!("there is nothing to generate: none of the files has a comment {BEGIN}... --> or {}... -->", FIGURE[0]);
    }
    // Write nothing unless all files can be generated.
    made.iter().try_for_each(|(path, text)| write(path, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;
    use crate::machine::Machine;
    use crate::results::{Data, read_all};
    use serde_json::json;

    #[test]
    fn a_folder_without_results_is_an_error_with_a_next_step() {
        let error = report(&crate::experiments::all(), Path::new("/nowhere"), None).unwrap_err().to_string();
        assert!(error.contains("bench run"), "{error}");
    }

    /// A stored result with raw data, of an experiment that needs only one value per trial.
    fn stored() -> Stored {
        let trial = |server: &str, switches: u64| {
            let case = json!({"clients": "0", "server": server});
            json!({"case": case, "turn": 0, "values": {"switches": switches}, "samples": {}})
        };
        let raw = json!({"file": "", "trials": [trial("stock", 1), trial("xqos", 3)]});
        let machine = Machine { server: "Xvfb 1".into(), ..Machine::default() };
        Stored { experiment: "idle".into(), quick: false, pairs: 1, machine, disturbance: None, data: Data::Raw(raw) }
    }

    #[test]
    fn the_published_set_has_no_raw_data_and_gives_the_same_report() {
        let known = crate::experiments::all();
        let (results, out) = (Folder::create().unwrap(), Folder::create().unwrap());
        stored().write(&results.path("")).unwrap();
        publish(&known, &results.path(""), &out.path("")).unwrap();
        let file = fs::read_to_string(out.path("data/idle.json")).unwrap();
        assert!(!file.contains("\"raw\"") && file.contains("\"study\""), "{file}");
        let complete = read_all(&known, &results.path("")).unwrap();
        assert_eq!(fs::read_to_string(out.path("report.html")).unwrap(), page::html(&complete).unwrap());
    }

    #[test]
    fn earlier_published_results_stay_in_the_report() {
        let known = crate::experiments::all();
        let (results, out) = (Folder::create().unwrap(), Folder::create().unwrap());
        stored().write(&results.path("")).unwrap();
        publish(&known, &results.path(""), &out.path("")).unwrap();
        let other = Stored {
            experiment: "memory".into(),
            ..Stored::from(read_all(&known, &results.path("")).unwrap().remove(0))
        };
        fs::remove_file(results.path("idle.json")).unwrap();
        other.write(&results.path("")).unwrap();
        publish(&known, &results.path(""), &out.path("")).unwrap();
        let names: Vec<String> =
            read_all(&known, &out.path("data")).unwrap().into_iter().map(|finding| finding.experiment).collect();
        assert_eq!(names, ["idle", "memory"]);
    }
}
