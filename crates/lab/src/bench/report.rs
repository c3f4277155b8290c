// SPDX-License-Identifier: MIT
//! Renders results as text, as a page, and as verdicts in JSON; and the tables and figures of documents.

use super::{Experiment, print};
use crate::results::{BEGIN, Build, FIGURE, Finding, conclusions, filled, goals, headlines, read_some, write};
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

/// The text of one result, with the reasons to doubt it.
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

    #[test]
    fn a_folder_without_results_is_an_error_with_a_next_step() {
        let error = report(&crate::experiments::all(), Path::new("/nowhere"), None).unwrap_err().to_string();
        assert!(error.contains("bench run"), "{error}");
    }
}
