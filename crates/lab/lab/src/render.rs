// SPDX-License-Identifier: MIT
//! Findings as plain text.

use crate::machine::Machine;
use crate::study::{GoalCheck, Study, Table};
use std::fmt::Write;
use xqos_text::width;

pub fn study(study: &Study) -> String {
    let mut out = format!("{}\n{}\n", study.title, "=".repeat(study.title.len()));
    if !study.answer.is_empty() {
        let _ = write!(out, "\n{}\n", wrap(&study.answer));
    }
    let _ = write!(out, "\n{}\n", wrap(&study.question));
    for one in &study.tables {
        let _ = write!(out, "\n{}", table(one));
    }
    if !study.verdicts.is_empty() {
        let _ = write!(out, "\n{}", verdicts(&study.verdicts));
    }
    out
}

pub fn verdicts(verdicts: &[GoalCheck]) -> String {
    let mut result = Table::new("", &["", "measured", "goal", "verdict", "range of the pairs"]);
    for verdict in verdicts {
        let cells = [verdict.value_text(), verdict.goal_text(), verdict.text(), verdict.spread_text()];
        result.rows.push(std::iter::once(verdict.what.clone()).chain(cells).collect());
    }
    table(&result)
}

pub fn machine(machine: &Machine) -> String {
    machine.lines().iter().fold(String::new(), |out, (name, value)| out + &format!("{name:12} {value}\n"))
}

/// Renders a table with columns as wide as their widest cell, and numbers aligned to the right.
pub fn table(table: &Table) -> String {
    let mut widths: Vec<usize> = table.head.iter().map(|name| name.chars().count()).collect();
    for row in &table.rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let right: Vec<bool> = (0..table.head.len()).map(|column| is_numeric(table, column)).collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(widths.iter().zip(&right))
            .map(|(cell, (&width, &right))| if right { format!("{cell:>width$}") } else { format!("{cell:width$}") })
            .collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let mut out = if table.title.is_empty() { String::new() } else { format!("{}\n", table.title) };
    out += &line(&table.head);
    out += &line(&widths.iter().map(|&width| "-".repeat(width)).collect::<Vec<_>>());
    table.rows.iter().fold(out, |out, row| out + &line(row))
}

/// True if a column contains numbers and is aligned to the right.
pub fn is_numeric(table: &Table, column: usize) -> bool {
    let numeric = |cell: &String| cell.is_empty() || cell.starts_with(|first: char| "-+0123456789<>".contains(first));
    column > 0 && table.rows.iter().filter_map(|row| row.get(column)).all(numeric)
}

fn wrap(paragraph: &str) -> String {
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    width::wrapped(&words.join(" "), 100).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Goal;

    #[test]
    fn columns_line_up_and_numbers_are_right_aligned() {
        let mut sample = Table::new("title", &["case", "mean ms"]);
        sample.rows = vec![vec!["stock".into(), "4.50".into()], vec!["reserved".into(), "0.180".into()]];
        let text = table(&sample);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1..], ["case      mean ms", "--------  -------", "stock        4.50", "reserved    0.180"]);
    }

    #[test]
    fn long_paragraphs_are_broken_between_words() {
        let text = wrap(&"word ".repeat(60));
        assert!(text.lines().all(|line| line.len() <= 100) && text.lines().count() == 3, "{text}");
    }

    #[test]
    fn a_verdict_shows_value_goal_and_outcome() {
        let text = verdicts(&[GoalCheck::of_value("mean over idle", 1.5, "x", Goal::AtMost(1.2))]);
        assert!(text.contains("1.50 x") && text.contains("<= 1.20 x") && text.contains("missed by 25 %"), "{text}");
    }
}
