// SPDX-License-Identifier: MIT
//! Tables that fit: columns too many for the terminal are left out, the least important first, and named below.

use std::fmt::Write;
use xqos_text::width::{Align, columns, fitted};

/// Space between columns.
const GAP: usize = 2;
/// A cell that may be shortened keeps at least this much, enough to tell programs apart.
const MIN_COLUMNS: usize = 8;

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    /// Numbers stand at the right, so that their digits line up.
    pub right: bool,
    /// 0 is always shown; the largest goes first.
    pub rank: u8,
    /// Cells may be shortened before a column is left out.
    pub elastic: bool,
}

impl Column {
    /// Of numbers, at the right.
    pub const fn number(title: &'static str, rank: u8) -> Column {
        Column { title, right: true, rank, elastic: false }
    }

    /// Of words, at the left.
    pub const fn words(title: &'static str, rank: u8) -> Column {
        Column { title, right: false, rank, elastic: false }
    }

    /// Cells may be shortened.
    pub const fn elastic(self) -> Column {
        Column { elastic: true, ..self }
    }
}

/// Rows below their titles.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(columns: Vec<Column>) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// `cells` are as many as there are columns.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The table in lines of at most `width` columns of a terminal, as far as columns of rank 0 allow; `None` is any width.
    pub fn render(&self, width: Option<usize>) -> String {
        let mut widths: Vec<usize> = (0..self.columns.len()).map(|at| self.natural_width(at)).collect();
        let mut shown = vec![true; self.columns.len()];
        if let Some(width) = width {
            self.fit(width, &mut widths, &mut shown);
        }
        let mut text = String::new();
        let titles = self.columns.iter().map(|column| column.title);
        self.line(&mut text, titles, &widths, &shown);
        for row in &self.rows {
            self.line(&mut text, row.iter().map(String::as_str), &widths, &shown);
        }
        let hidden: Vec<_> =
            self.columns.iter().zip(&shown).filter(|(_, shown)| !**shown).map(|(column, _)| column.title).collect();
        if !hidden.is_empty() {
            let _ = writeln!(text, "Not shown: {}. Widen the terminal, or use --json.", hidden.join(", "));
        }
        text
    }

    fn fit(&self, width: usize, widths: &mut [usize], shown: &mut [bool]) {
        loop {
            let total = total(widths, shown);
            if total <= width {
                return;
            }
            let elastic = (0..widths.len()).find(|&at| self.columns[at].elastic && widths[at] > MIN_COLUMNS);
            let last = (0..widths.len()).filter(|&at| shown[at]).max_by_key(|&at| self.columns[at].rank);
            let Some(last) = last.filter(|&at| self.columns[at].rank > 0) else {
                // Only what is always shown is left: shorten as far as it goes.
                if let Some(at) = elastic {
                    widths[at] = widths[at].saturating_sub(total - width).max(MIN_COLUMNS);
                }
                return;
            };
            match elastic {
                Some(at) if widths[at] - MIN_COLUMNS >= total - width => widths[at] -= total - width,
                _ => shown[last] = false,
            }
        }
    }

    fn natural_width(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| columns(&row[at]));
        cells.chain([columns(self.columns[at].title)]).max().unwrap_or(0)
    }

    fn line<'a>(&self, text: &mut String, cells: impl Iterator<Item = &'a str>, widths: &[usize], shown: &[bool]) {
        let mut line = String::new();
        for ((cell, column), (&width, _)) in
            cells.zip(&self.columns).zip(widths.iter().zip(shown)).filter(|(_, (_, shown))| **shown)
        {
            if !line.is_empty() {
                line.push_str(&" ".repeat(GAP));
            }
            line.push_str(&fitted(cell, width, if column.right { Align::Right } else { Align::Left }));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

fn total(widths: &[usize], shown: &[bool]) -> usize {
    let sum: usize = widths.iter().zip(shown).filter(|(_, shown)| **shown).map(|(width, _)| width + GAP).sum();
    sum.saturating_sub(GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let column = |title, rank, elastic: bool| Column { title, right: !elastic, rank, elastic };
        let mut table =
            Table::new(vec![column("PID", 0, false), column("PROGRAM", 0, true), column("WEIGHT", 2, false)]);
        table.row(vec!["1".into(), "xclock".into(), "1".into()]);
        table.row(vec!["20000".into(), "a-program-of-long-name".into(), "0.5".into()]);
        table
    }

    #[test]
    fn a_wide_terminal_shows_everything_in_line() {
        let text = table().render(None);
        assert_eq!(
            text,
            "  PID  PROGRAM                 WEIGHT\n    1  xclock                       1\n20000  a-program-of-long-name     0.5\n"
        );
        assert_eq!(table().render(Some(37)), text);
    }

    #[test]
    fn names_are_shortened_before_a_column_goes() {
        let text = table().render(Some(30));
        assert!(text.contains("a-program-of-l…     0.5"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
    }

    #[test]
    fn what_is_left_out_is_named() {
        let text = table().render(Some(20));
        assert!(text.ends_with("Not shown: WEIGHT. Widen the terminal, or use --json.\n"), "{text}");
        assert!(text.lines().take(3).all(|line| line.chars().count() <= 20), "{text}");
        assert!(text.contains("20000  a-program-of…"), "{text}");
    }

    #[test]
    fn the_columns_that_matter_most_stay_at_any_width() {
        let text = table().render(Some(1));
        assert!(text.contains("PID") && text.contains("a-progr…"), "{text}");
    }

    #[test]
    fn names_in_any_script_stand_in_line() {
        let mut table = table();
        table.row(vec!["7".into(), "東京都庁の時計プログラム".into(), "2".into()]);
        table.row(vec!["8".into(), "cafe\u{301}".into(), "2".into()]);
        for width in [None, Some(30)] {
            let text = table.render(width);
            let widths: Vec<usize> = text.lines().map(columns).collect();
            assert!(widths.iter().all(|&width| width == widths[0]), "{text}");
        }
    }
}
