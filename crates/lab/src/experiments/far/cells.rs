// SPDX-License-Identifier: MIT
//! The cells of an experiment, with look-ups for its study and the tables that `grid` and `near` share.

use super::{Capture, Case, Cell, Line, Program, Route, Start};
use crate::study::{Columns, Table};
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::experiments) struct Cells(pub Vec<Cell>);

impl Cells {
    /// The cell of this case over the link.
    pub fn far(&self, program: Program, way: Route, line: Line) -> Option<&Cell> {
        let is_it = |case: &Case| (case.program, case.way, case.line) == (program, way, line);
        self.0.iter().find(|cell| cell.case.watched != Capture::Local && is_it(&cell.case))
    }

    pub fn start(&self, program: Program, way: Route, line: Line) -> Option<&Start> {
        self.far(program, way, line)?.outcome.as_ref().ok()
    }

    /// A figure of a start, or `-`.
    pub fn text(&self, program: Program, way: Route, line: Line, text: impl Fn(&Start) -> String) -> String {
        self.start(program, way, line).map_or("-".to_owned(), text)
    }

    /// The programs that have cells. Programs, transports and lines are in the order of the tables.
    pub fn programs(&self) -> Vec<Program> {
        Program::ALL.into_iter().filter(|&program| self.has(|case| case.program == program)).collect()
    }

    pub fn routes(&self) -> Vec<Route> {
        Route::ALL.into_iter().filter(|&way| self.has(|case| case.way == way)).collect()
    }

    pub fn lines(&self) -> Vec<Line> {
        Line::all().filter(|&line| self.has(|case| case.line == line)).collect()
    }

    fn has(&self, is_so: impl Fn(&Case) -> bool) -> bool {
        self.0.iter().any(|cell| is_so(&cell.case))
    }

    /// A table with a column for each transport.
    pub fn by_route<R: Copy>(&self, columns: Columns<R>, text: impl Fn(R, Route) -> String) -> Table {
        let add = |columns: Columns<R>, way: Route| columns.cell(way.title(), |&row| text(row, way));
        self.routes().into_iter().fold(columns, add).table()
    }

    /// Lists the programs for which `text` returns a figure, as in `xterm 260, emacs 412`.
    pub fn of_each(&self, text: impl Fn(Program) -> Option<String>) -> String {
        let named = |program: Program| Some(format!("{} {}", program.title(), text(program)?));
        self.programs().into_iter().filter_map(named).collect::<Vec<_>>().join(", ")
    }

    /// A table of the cells without figures. Cells that differ only in the line and have the same reason share a row.
    pub fn failed(&self) -> Table {
        let mut table = Table::new("Cells without figures", &["program", "over", "cells", "reason"]);
        for cell in &self.0 {
            let Err(why) = &cell.outcome else { continue };
            let (program, way) = (cell.case.program.title(), cell.case.way.title());
            match table.rows.iter_mut().find(|row| row[0] == program && row[1] == way && row[3] == *why) {
                Some(row) => row[2] = (row[2].parse::<u32>().unwrap_or(0) + 1).to_string(),
                None => table.rows.push(vec![program.to_owned(), way.to_owned(), "1".to_owned(), why.clone()]),
            }
        }
        table
    }
}

/// A table that begins with the programs' names.
pub(in crate::experiments) fn by_program(title: &str, rows: impl IntoIterator<Item = Program>) -> Columns<Program> {
    Columns::of(title, rows).cell("program", |program| program.title().to_owned())
}

/// The paper's figures and those of our cells. Rows without a measurement are left out.
pub(in crate::experiments) fn comparison_table<const N: usize>(rows: [(&str, String, String); N]) -> Table {
    let mut table = Table::new("The paper's figures and ours", &["", "paper", "ours"]).keyed("paper");
    let measured = rows.into_iter().filter(|(.., ours)| !ours.is_empty());
    table.rows.extend(measured.map(|(what, paper, ours)| vec![what.to_owned(), paper, ours]));
    table
}
