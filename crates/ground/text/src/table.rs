// SPDX-License-Identifier: MIT
//! Tables that fit the terminal. If a table is too wide, empty columns are left out first, and then the least important
//! ones. A line below the table names the omitted columns.

use crate::width::{Align, columns, fitted, wrapped};
use std::fmt::Write;

const GAP: usize = 2;
/// Minimum width of an elastic column, enough to tell programs apart.
const MIN_COLUMNS: usize = 8;

/// Minimum width of the lines that name omitted columns.
const NOTE: usize = 20;

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    /// Align to the right, so that the digits of numbers line up.
    pub right: bool,
    /// Columns of rank 0 are always shown. The largest rank is left out first.
    pub rank: u8,
    /// Cells are shortened before a column is left out.
    pub elastic: bool,
}

impl Column {
    /// A column of numbers, aligned right.
    pub const fn number(title: &'static str, rank: u8) -> Column {
        Column { title, right: true, rank, elastic: false }
    }

    /// A column of words, aligned left.
    pub const fn words(title: &'static str, rank: u8) -> Column {
        Column { title, right: false, rank, elastic: false }
    }

    /// Allows its cells to be shortened.
    pub const fn elastic(self) -> Column {
        Column { elastic: true, ..self }
    }
}

#[derive(Debug)]
pub struct TextTable {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    pub fn new(columns: Vec<Column>) -> TextTable {
        TextTable { columns, rows: Vec::new() }
    }

    pub fn column(mut self, column: Column) -> TextTable {
        self.columns.push(column);
        self
    }

    pub fn numbers(mut self, rank: u8, titles: &[&'static str]) -> TextTable {
        self.columns.extend(titles.iter().map(|&title| Column::number(title, rank)));
        self
    }

    /// Adds a row with one cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Renders the table in lines of at most `width` columns (`None`: unlimited) if the columns of rank 0 fit in them.
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
        let is_missed = |at: &usize| !shown[*at] && !self.is_empty(*at);
        let hidden: Vec<_> = (0..shown.len()).filter(is_missed).map(|at| self.columns[at].title).collect();
        if !hidden.is_empty() {
            let note = format!("Not shown: {}. Widen the terminal, or use --json.", hidden.join(", "));
            for line in wrapped(&note, width.unwrap_or(usize::MAX).max(NOTE)) {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }

    /// Leaves out empty columns, then shortens cells, then leaves out the least important columns.
    fn fit(&self, width: usize, widths: &mut [usize], shown: &mut [bool]) {
        let least = |at: usize| MIN_COLUMNS.max(columns(self.columns[at].title));
        loop {
            let over = total(widths, shown).saturating_sub(width);
            if over == 0 {
                return;
            }
            let shortest = |at: usize| if self.columns[at].elastic { widths[at].min(least(at)) } else { widths[at] };
            let spare: usize = (0..widths.len()).filter(|&at| shown[at]).map(|at| widths[at] - shortest(at)).sum();
            let rank = |at: &usize| (self.is_empty(*at), self.columns[*at].rank);
            let last = (0..widths.len()).filter(|&at| shown[at]).max_by_key(rank);
            match last.filter(|at| rank(at) > (false, 0)) {
                Some(last) if self.is_empty(last) || spare < over => shown[last] = false,
                // Shorten the widest table column by one character at a time, so that the longest cells lose the most.
                _ => {
                    let longer = |at: &usize| shown[*at] && widths[*at] > shortest(*at);
                    let Some(longest) = (0..widths.len()).filter(longer).max_by_key(|&at| widths[at]) else { return };
                    widths[longest] -= 1;
                }
            }
        }
    }

    /// Returns true if all cells of a column are empty. A table without rows has no empty column.
    fn is_empty(&self, at: usize) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row[at].is_empty())
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

    fn table() -> TextTable {
        let column = |title, rank, elastic: bool| Column { title, right: !elastic, rank, elastic };
        let mut table =
            TextTable::new(vec![column("PID", 0, false), column("PROGRAM", 0, true), column("WEIGHT", 2, false)]);
        table.row(vec!["1".into(), "xclock".into(), "1".into()]);
        table.row(vec!["20000".into(), "a-program-of-long-name".into(), "0.5".into()]);
        table
    }

    #[test]
    fn a_wide_terminal_shows_aligned_columns() {
        let text = table().render(None);
        assert_eq!(
            text,
            "  PID  PROGRAM                 WEIGHT\n    1  xclock                       1\n20000  a-program-of-long-name     0.5\n"
        );
        assert_eq!(table().render(Some(37)), text);
    }

    #[test]
    fn names_are_shortened_before_columns_are_left_out() {
        let text = table().render(Some(30));
        assert!(text.contains("a-program-of-l…     0.5"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
    }

    #[test]
    fn omitted_columns_are_named() {
        let text = table().render(Some(20));
        assert!(text.ends_with("Not shown: WEIGHT.\nWiden the terminal,\nor use --json.\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 20), "{text}");
        assert!(text.contains("20000  a-program-of…"), "{text}");
    }

    #[test]
    fn empty_columns_are_omitted_first() {
        let columns = vec![Column::words("NAME", 0), Column::words("RESERVED", 0), Column::number("WAIT", 9)];
        let mut table = TextTable::new(columns);
        table.row(vec!["mpv".into(), String::new(), "2 ms".into()]);
        assert_eq!(table.render(Some(12)), "NAME  WAIT\nmpv   2 ms\n");
        assert_eq!(table.render(Some(20)), "NAME  RESERVED  WAIT\nmpv             2 ms\n");
    }

    #[test]
    fn cells_keep_the_width_of_their_title_and_the_longest_shrink_most() {
        let columns = vec![Column::words("PROGRAM", 0).elastic(), Column::words("LONGEST REQUEST", 0).elastic()];
        let mut table = TextTable::new(columns);
        table.row(vec!["gnome-settings".into(), "11.2 ms RENDER CompositeGlyphs".into()]);
        assert_eq!(table.render(Some(36)).lines().nth(1), Some("gnome-settings  11.2 ms RENDER Comp…"));
        assert_eq!(table.render(Some(9)).lines().next(), Some("PROGRAM   LONGEST REQUEST"));
    }

    #[test]
    fn the_most_important_columns_stay_at_any_width() {
        let text = table().render(Some(1));
        assert!(text.contains("PID") && text.contains("a-progr…"), "{text}");
    }

    #[test]
    fn names_in_any_script_are_aligned() {
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
