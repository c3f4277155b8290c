// SPDX-License-Identifier: MIT
//! What follows from the cells: the classifier and the predictions against what was measured, and the paper's figures.

use super::{Grid, charts, foretold, tables};
use crate::goals::Key;
use crate::statistics::Spread;
use crate::study::{Goal, Study, Verdict};

pub(super) fn study(grid: &Grid) -> Study {
    Study {
        title: "X over slow links".to_owned(),
        question: "How long does the network keep a program that starts waiting?".to_owned(),
        verdicts: verdicts(grid).into_iter().chain(foretold::verdicts(grid)).collect(),
        tables: tables::all(grid),
        charts: charts::all(grid),
        ..Study::default()
    }
}

fn verdicts(grid: &Grid) -> Vec<Verdict> {
    let agreed = grid.cells.iter().filter_map(|cell| cell.measured()?.agreement);
    // The worse direction of each cell, in percent.
    let spread = Spread::of(agreed.map(|[requests, replies]| 100.0 * requests.min(replies)));
    if spread.count == 0 {
        return Vec::new();
    }
    let dropped: u64 = grid.cells.iter().filter_map(|cell| Some(cell.measured()?.dropped)).sum();
    let goal = Goal::of(Key("grid.agreement"));
    vec![
        Verdict::of_spread("idle or blocked, against the queue's log: time in agreement, raw X", spread, "%", goal),
        Verdict::of_value("the same, the worst cell", spread.least, "%", goal),
        Verdict::of_value("packets that the captures lost", dropped as f64, "", Goal::Reported),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::cell::Outcome;
    use super::super::{Grid, invented};
    use super::*;

    #[test]
    fn the_worst_cell_is_held_against_the_goal_too() {
        let mut grid = invented();
        let verdicts = study(&grid).verdicts;
        assert_eq!((verdicts[0].is_met(), verdicts[1].is_met()), (Some(true), Some(true)));
        if let Outcome::Measured(measured) = &mut grid.cells[0].outcome {
            measured.agreement = Some([0.99, 0.9]);
        }
        let verdicts = study(&grid).verdicts;
        assert_eq!((verdicts[0].is_met(), verdicts[1].value), (Some(true), 90.0));
    }

    #[test]
    fn nothing_measured_is_no_verdict() {
        let study = study(&Grid { cells: Vec::new() });
        assert!(study.verdicts.is_empty() && study.charts.is_empty() && study.tables.is_empty());
    }
}
