// SPDX-License-Identifier: MIT
//! The table of results in README.md, made from the published data.
//!
//! The rows are named here and nowhere else; a test compares README.md with the data.

use super::results::{Finding, read_some, write};
use super::{Build, print};
use crate::study::Verdict;
use anyhow::{Context, Result, anyhow};
use std::fs;
use std::path::Path;

/// Between these two lines a file has the table.
const BEGIN: &str = "<!-- made by xqos bench table: begin -->\n";
const END: &str = "<!-- made by xqos bench table: end -->\n";

/// What a row says, of which experiment, and of which of its verdicts.
struct Headline(&'static str, &'static str, &'static str);

const HEADLINES: [Headline; 14] = [
    Headline(
        "mean response beside twelve `-ellipse100`, stock over `fair`",
        "response",
        "ellipse100, fair: mean better than stock",
    ),
    Headline("the same beside `-noop`", "response", "noop, fair: mean better than stock"),
    Headline("the same beside `-getimagexy100`", "response", "getimagexy100, fair: mean better than stock"),
    Headline("the same beside `-putimage500`", "response", "putimage500, fair: mean better than stock"),
    Headline(
        "mean response with a reservation over an idle server, beside `-ellipse100`",
        "response",
        "ellipse100, reserved: mean over idle",
    ),
    Headline("the same beside `-getimagexy100`", "response", "getimagexy100, reserved: mean over idle"),
    Headline("`x11perf -noop` alone, over stock", "throughput", "noop alone over stock"),
    Headline(
        "geometric mean of a dozen x11perf tests, over stock",
        "throughput",
        "geometric mean of 12 tests over stock",
    ),
    Headline("wakeups by xqos of an idle server in 10 s", "idle", "wakeups by xqos in 10 s, 0 clients"),
    Headline("memory in the server, once", "memory", "memory added (RSS)"),
    Headline("memory in the server for each client", "memory", "per client (RSS)"),
    Headline("hard reservation, share minus Q/T, largest of 35 settings", "hard", "share minus Q/T, largest of all"),
    Headline(
        "Jain index of three busy clients, `-noop` as the cheap one",
        "fairness",
        "fair: Jain index of server time, noop as the cheap one",
    ),
    Headline("p99 with 500 silent clients over without", "scale", "fair: p99 with 500 silent clients over without"),
];

/// Prints the table of the results in `folder`, or writes it into a file that has its two marks.
pub fn table(folder: &Path, into: Option<&Path>) -> Result<()> {
    let table = markdown(&read_some(folder)?)?;
    let Some(path) = into else { return print(&table) };
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let with_table = replaced(&text, &table).with_context(|| format!("cannot use {}", path.display()))?;
    write(path, &with_table)
}

fn markdown(found: &[Finding]) -> Result<String> {
    let head = "| | measured | from .. to | goal |\n|---|---|---|---|\n".to_owned();
    HEADLINES.iter().try_fold(head, |text, Headline(what, experiment, verdict)| {
        let of = found.iter().find(|finding| finding.experiment == *experiment);
        let verdicts = of.into_iter().flat_map(|finding| &finding.study.verdicts);
        let row =
            verdicts.into_iter().find(|one| one.what == *verdict).zip(of).map(|(one, of)| row(what, one, of, found));
        Ok(text + &row.with_context(|| format!("the results have no verdict {experiment}: {verdict}"))?)
    })
}

fn row(what: &str, verdict: &Verdict, of: &Finding, found: &[Finding]) -> String {
    let mark = Build::of(found).mark(of).map_or(String::new(), |mark| format!(" ({mark})"));
    let is_missed = verdict.is_met() == Some(false);
    let goal = if is_missed { format!("**{}**", verdict.goal_text()) } else { verdict.goal_text() };
    format!("| {what}{mark} | {} | {} | {goal} |\n", verdict.value_text(), verdict.spread_text())
}

fn replaced(text: &str, table: &str) -> Result<String> {
    let (before, rest) = text.split_once(BEGIN).ok_or_else(|| anyhow!("it has no line {}", BEGIN.trim_end()))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| anyhow!("it has no line {}", END.trim_end()))?;
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_the_published_figures() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join("README.md")).unwrap();
        let table = markdown(&read_some(&root.join("docs/report/data")).unwrap()).unwrap();
        assert_eq!(replaced(&text, &table).unwrap(), text, "xqos bench table docs/report/data --into README.md");
    }

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = format!("before\n{BEGIN}old\n{END}after\n");
        assert_eq!(replaced(&text, "new\n").unwrap(), format!("before\n{BEGIN}new\n{END}after\n"));
        let error = replaced("no marks", "new").unwrap_err().to_string();
        assert!(error.contains("it has no line <!-- made by"), "{error}");
    }

    #[test]
    fn a_verdict_that_is_not_there_is_named() {
        let error = markdown(&[]).unwrap_err().to_string();
        assert!(error.contains("response: ellipse100, fair: mean better than stock"), "{error}");
    }
}
