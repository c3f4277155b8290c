// SPDX-License-Identifier: MIT
//! Tables and single figures in documents, generated from the published data. Each stands between two comments. The
//! first comment says what it is.
//!
//! ```text
//! <!-- xqos bench table: headlines -->
//! <!-- end of table -->
//! <!-- figure: packard-2000.echo_old -->170 ms<!-- end -->
//! ```
//!
//! A test compares all documents with the data, so no figure is copied manually.

use super::{Build, Finding, verdicts};
use crate::papers;
use crate::study::{GoalCheck, Table};
use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(crate) const BEGIN: &str = "<!-- xqos bench table: ";
const BEGIN_ENDS: &str = " -->\n";
const END: &str = "<!-- end of table -->\n";
pub(crate) const FIGURE: [&str; 3] = ["<!-- figure: ", " -->", "<!-- end -->"];

/// Text of each row and the key of the verdict that it shows, from `lab/headlines.toml`.
static HEADLINES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Headlines {
        headline: Vec<(String, String)>,
    }
    let read = toml::from_str::<Headlines>(include_str!("../../../../../lab/headlines.toml"));
    read.expect("lab/headlines.toml is sound").headline
});

/// The text with regenerated tables and figures; `None` if it contains none.
pub(crate) fn filled(text: &str, found: &[Finding]) -> Result<Option<String>> {
    let with_tables = replaced(text, [BEGIN, BEGIN_ENDS, END], |what| table(what, found))?;
    let with_figures = replaced(with_tables.as_deref().unwrap_or(text), FIGURE, |what| figure(what, found))?;
    Ok(with_figures.or(with_tables))
}

/// The text with the figures of these results, and a dash where they have none.
pub(crate) fn with_figures(text: &str, found: &[Finding]) -> String {
    let value = |what: &str| Ok(figure(what, found).unwrap_or_else(|_| "-".to_owned()));
    replaced(text, FIGURE, value).ok().flatten().unwrap_or_else(|| text.to_owned())
}

/// Replaces the text between the comments `begin WHAT begin_ends` and `end`; `None` if the text has no such comment.
fn replaced(
    text: &str,
    [begin, begin_ends, end]: [&str; 3],
    make: impl Fn(&str) -> Result<String>,
) -> Result<Option<String>> {
    let mut pieces = text.split(begin);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    let mut any = false;
    for piece in pieces {
        any = true;
        let (what, rest) = piece.split_once(begin_ends).ok_or_else(|| anyhow!("a comment '{begin}' has no '-->'"))?;
        let (_, after) =
            rest.split_once(end).ok_or_else(|| anyhow!("after '{begin}{what}' there is no '{}'", end.trim_end()))?;
        let made = make(what).with_context(|| format!("in '{begin}{what}'"))?;
        out += &format!("{begin}{what}{begin_ends}{made}{end}{after}");
    }
    Ok(any.then_some(out))
}

/// A figure of a paper, `PAPER.FIGURE`; of a verdict, `EXPERIMENT // KEY`; or of a cell,
/// `EXPERIMENT.KEY // ROW // COLUMN`. A verdict or table without a key is named by its text, a row by its first cells.
fn figure(what: &str, found: &[Finding]) -> Result<String> {
    match what.split(" // ").collect::<Vec<_>>()[..] {
        [published] => papers::text(published).with_context(|| format!("lab/papers has no {published}")),
        [name, key] => {
            let verdicts = &named(found, name)?.study.verdicts;
            let verdict = verdicts.iter().find(|one| one.key == key || one.what == key);
            Ok(verdict.with_context(|| format!("the results of {name} have no verdict '{key}'"))?.value_text())
        }
        [place, row, column] => {
            let (name, key) = place.split_once('.').with_context(|| format!("write EXPERIMENT.KEY, not '{place}'"))?;
            let table = table_of(found, name, key)?;
            let at = table.head.iter().position(|head| head == column);
            let row = table.rows.iter().find(|cells| (cells.join(", ") + ",").starts_with(&format!("{row},")));
            let cell = row.zip(at).and_then(|(row, at)| row.get(at));
            Ok(cell.with_context(|| format!("the table '{key}' of {name} has no such row or column"))?.clone())
        }
        _ => bail!("write PAPER.FIGURE, 'EXPERIMENT // VERDICT', or 'EXPERIMENT.TABLE // ROW // COLUMN'"),
    }
}

/// A table in Markdown: `headlines`, `goals`, `missed` (goals that were not met), `builds`, `verdicts of NAME` (with
/// and without goals), or `NAME.KEY` (a table of experiment NAME).
fn table(what: &str, found: &[Finding]) -> Result<String> {
    let build = Build::of(found);
    let with = |is_met: fn(Option<bool>) -> bool| {
        let chosen = verdicts(found).filter(|(_, verdict)| is_met(verdict.is_met()));
        rows(chosen.map(|(of, verdict)| row(&format!("{}: {}", build.label(of), verdict.what), verdict)))
    };
    Ok(match (what, what.strip_prefix("verdicts of "), what.split_once('.')) {
        ("headlines", ..) => headlines(found)?,
        ("goals", ..) => with(|is_met| is_met.is_some()),
        ("missed", ..) => with(|is_met| is_met == Some(false)),
        ("builds", ..) => builds(found),
        (_, Some(name), _) => rows(named(found, name)?.study.verdicts.iter().map(|one| row(&one.what, one))),
        (_, None, Some((name, key))) => {
            let table = table_of(found, name, key)?;
            lines(&table.head, &table.rows)
        }
        _ => bail!(
            "there is no table '{what}': write headlines, goals, missed, builds, 'verdicts of NAME', or 'NAME.KEY'"
        ),
    })
}

/// One row for each build on each machine. Each experiment is listed with its number of trials and, if it is noisy,
/// with the processor time of other programs.
fn builds(found: &[Finding]) -> String {
    let mut groups: BTreeMap<[&str; 3], Vec<String>> = BTreeMap::new();
    for Finding { experiment, machine, disturbance, pairs, .. } in found {
        let noise = disturbance.as_ref().filter(|disturbance| disturbance.noise().is_some());
        let others = noise.map_or(String::new(), |noise| format!(", others {:.0} %", 100.0 * noise.others));
        let experiments = groups.entry([&machine.module, &machine.processor, &machine.kernel]).or_default();
        experiments.push(format!("{experiment} ({pairs}{others})"));
    }
    let rows = groups.iter().map(|(of, all)| vec![of[0].into(), of[1].into(), of[2].into(), all.join(", ")]);
    let head = ["build", "processor", "kernel", "experiments (trials)"].map(str::to_owned);
    lines(&head, &rows.collect::<Vec<_>>())
}

fn named<'a>(found: &'a [Finding], name: &str) -> Result<&'a Finding> {
    found.iter().find(|of| of.experiment == name).with_context(|| format!("there are no results of {name}"))
}

fn table_of<'a>(found: &'a [Finding], name: &str, key: &str) -> Result<&'a Table> {
    let tables = &named(found, name)?.study.tables;
    let table = tables.iter().find(|table| table.key == key || table.title == key);
    table.with_context(|| format!("the results of {name} have no table with the key {key}"))
}

/// The verdicts that `lab/headlines.toml` lists.
pub(crate) fn headlines(found: &[Finding]) -> Result<String> {
    let build = Build::of(found);
    let line = |(what, key): &(String, String)| {
        let found = verdicts(found).find(|(_, verdict)| verdict.key == *key);
        let (of, one) = found.with_context(|| format!("the results have no verdict {key}"))?;
        let mark = build.mark(of).map_or(String::new(), |mark| format!(" ({mark})"));
        Ok(row(&format!("{what}{mark}"), one))
    };
    Ok(rows(HEADLINES.iter().map(line).collect::<Result<Vec<_>>>()?))
}

fn row(what: &str, verdict: &GoalCheck) -> Vec<String> {
    let text = verdict.text();
    let text = if verdict.is_met() == Some(false) { format!("**{text}**") } else { text };
    vec![what.to_owned(), verdict.value_text(), verdict.spread_text(), verdict.goal_text(), text]
}

fn rows(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let head = ["", "measured", "from .. to", "goal", ""].map(str::to_owned);
    lines(&head, &rows.into_iter().collect::<Vec<_>>())
}

fn lines(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        cells
            .iter()
            .fold("|".to_owned(), |line, cell| line + &format!(" {} |", cell.replace('|', "\\|")).replace("  ", " "))
            + "\n"
    };
    let rule = "|".to_owned() + &"---|".repeat(head.len()) + "\n";
    rows.iter().fold(line(head) + &rule, |text, row| text + &line(row))
}

#[cfg(test)]
mod tests {
    use super::super::read_some;
    use super::*;
    use crate::disturbance::Disturbance;
    use crate::machine::Machine;
    use crate::study::{Goal, Study};
    use std::fs;
    use std::path::{Path, PathBuf};

    /// All Markdown files of the project with generated tables or figures.
    fn documents(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                documents(&path, into);
            } else if path.extension().is_some_and(|ext| ext == "md") {
                let text = fs::read_to_string(&path).unwrap();
                into.extend([BEGIN, FIGURE[0]].iter().any(|mark| text.contains(mark)).then_some(path));
            }
        }
    }

    fn finding() -> Finding {
        let verdicts = vec![
            GoalCheck::of_value("late | a", 1.5, "x", Goal::AtMost(1.0)),
            GoalCheck::of_value("soon", 0.5, "x", Goal::AtMost(1.0)),
            GoalCheck::of_value("shown", 2.0, "", Goal::Reported),
        ];
        let mut table = Table { key: "means".to_owned(), ..Table::new("Means, in ms", &["case", "mean"]) };
        table.rows.push(vec!["fair".into(), "0.2".into()]);
        let study = Study { verdicts, tables: vec![table], ..Study::default() };
        let machine = Machine { module: "0.1".into(), ..Machine::default() };
        Finding { experiment: "idle".into(), quick: false, pairs: 1, machine, disturbance: None, study }
    }

    fn fill(what: &str) -> Result<String> {
        let text = format!("before\n{BEGIN}{what}{BEGIN_ENDS}old\n{END}after\n");
        Ok(filled(&text, &[finding()])?.unwrap())
    }

    #[test]
    fn tables_in_documents_match_the_published_data() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut paths = vec![root.join("README.md")];
        documents(&root.join("docs"), &mut paths);
        let found = read_some(&crate::experiments::all(), &root.join("docs/report/data")).unwrap();
        for path in paths {
            let text = fs::read_to_string(&path).unwrap();
            let made = filled(&text, &found).unwrap().unwrap();
            assert!(made == text, "regenerate it: xqos bench table docs/report/data --into {}", path.display());
        }
    }

    #[test]
    fn only_text_between_the_markers_is_replaced() {
        let table = "| case | mean |\n|---|---|\n| fair | 0.2 |\n";
        let what = "idle.means";
        assert_eq!(fill(what).unwrap(), format!("before\n{BEGIN}{what}{BEGIN_ENDS}{table}{END}after\n"));
        assert_eq!(filled("no marks", &[]).unwrap(), None);
    }

    #[test]
    fn a_figure_comes_from_a_paper_a_verdict_or_a_cell() {
        let figure = |what: &str| figure(what, &[finding()]).map_err(|error| format!("{error:#}"));
        for (what, value) in [
            ("packard-2000.echo_old", "170 ms"),
            ("packard-2000.drawing_new", "10 ms (derived)"),
            ("idle // late | a", "1.50 x"),
            ("idle.means // fair // mean", "0.2"),
            ("idle.Means, in ms // fair // mean", "0.2"),
        ] {
            assert_eq!(figure(what), Ok(value.to_owned()), "{what}");
            let [begin, begin_ends, end] = FIGURE;
            let text = |shown: &str| format!("{begin}{what}{begin_ends}{shown}{end}, ");
            let made = filled(&text("old").repeat(2), &[finding()]).unwrap();
            assert_eq!(made, Some(text(value).repeat(2)));
        }
        for (what, fault) in [
            ("packard-2000.nothing", "lab/papers has no packard-2000.nothing"),
            ("idle // other", "of idle have no verdict 'other'"),
            ("idle.means // fai // mean", "has no such row or column"),
            ("idle.means // fair // median", "has no such row or column"),
            ("a // b // c // d", "write PAPER.FIGURE"),
        ] {
            assert!(figure(what).is_err_and(|error| error.contains(fault)), "{what}");
        }
    }

    #[test]
    fn goals_missed_goals_and_verdicts_are_separate_tables() {
        let late = "| idle: late \\| a | 1.50 x | | <= 1 x | **missed by 50 %** |\n";
        let soon = "| idle: soon | 0.500 x | | <= 1 x | met |\n";
        let [goals, missed, all] = ["goals", "missed", "verdicts of idle"].map(|what| fill(what).unwrap());
        assert!(goals.contains(late) && goals.contains(soon) && !goals.contains("shown"), "{goals}");
        assert!(missed.contains(late) && !missed.contains("soon"), "{missed}");
        assert!(all.contains("| soon |") && all.contains("| shown | 2 | | - | |\n"), "{all}");
    }

    #[test]
    fn the_table_of_builds_has_the_trials_and_the_noise_of_each_experiment() {
        let with = |experiment: &str, module: &str, others: f64| {
            let machine = Machine { module: module.into(), processor: "P".into(), ..Machine::default() };
            let disturbance = Some(Disturbance { others, steal: 0.0, pressure: None });
            Finding { experiment: experiment.into(), machine, disturbance, ..finding() }
        };
        let made = builds(&[with("soft", "0.1", 0.0), with("idle", "0.1", 0.5), with("hard", "0.2", 0.0)]);
        assert!(made.contains("| 0.1 | P | | soft (1), idle (1, others 50 %) |\n| 0.2 | P | | hard (1) |\n"), "{made}");
    }

    #[test]
    fn an_error_names_what_is_missing() {
        let error = |what: &str| format!("{:#}", fill(what).unwrap_err());
        assert!(error("headlines").contains("no verdict response.ellipse100_better_than_stock"));
        assert!(error("verdicts of grid").contains("there are no results of grid"));
        assert!(error("idle.other").contains("of idle have no table with the key other"));
        assert!(error("nonsense").contains("write headlines, goals"));
        let open = format!("{BEGIN}goals{BEGIN_ENDS}old\n");
        assert!(filled(&open, &[]).unwrap_err().to_string().contains("no '<!-- end of table -->'"));
    }
}
