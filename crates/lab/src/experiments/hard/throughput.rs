// SPDX-License-Identifier: MIT
//! What a hard reservation gets done, beside the paper's own figures: Table 2, and Figure 9 as lines.
//!
//! The paper gives operations per second of a machine of 2008; what can be compared is their part of those without a
//! limit.

use super::{Cell, Hard, PARTS, PERIODS_MS, points};
use crate::papers::Published;
use crate::statistics::{Spread, deviation, mean, median};
use crate::study::{Chart, Line, Lines, Table, figure, percent};

/// A row for each of [`PERIODS_MS`], a column for each of [`PARTS`].
const PAPER: Published = Published("manica-2008.hard");
/// The same x11perf under their soft CBS, which limits nothing.
const PAPER_UNLIMITED: Published = Published("manica-2008.soft_cbs");

impl Hard {
    pub(super) fn table_of_throughput(&self) -> Table {
        let unlimited = self.unlimited_per_s();
        let title = format!(
            "Operations per second, mean and standard deviation; without a limit {} here, {} in the paper",
            figure(unlimited),
            figure(PAPER_UNLIMITED.value())
        );
        let head = ["Q/T", "T ms", "here", "deviation", "of unlimited", "paper", "deviation", "of unlimited", "ratio"];
        let mut table = Table::new(title, &head);
        for cell in &self.cells {
            let per_s: Vec<f64> = cell.measured.iter().map(|given| given.operations_per_s).collect();
            let part = mean(&per_s) / unlimited;
            let mut row = vec![format!("{}/{}", cell.part.0, cell.part.1), cell.period_ms.to_string()];
            row.extend([figure(mean(&per_s)), figure(deviation(&per_s)), percent(part)]);
            if let Some((paper, deviation)) = cell.paper() {
                let paper_part = paper / PAPER_UNLIMITED.value();
                row.extend([figure(paper), figure(deviation), percent(paper_part), figure(part / paper_part)]);
            }
            table.rows.push(row);
        }
        table
    }

    /// Figure 9, whose third axis is T.
    pub(super) fn chart_of_throughput(&self) -> Chart {
        let unlimited = self.unlimited_per_s();
        let line = |row: &[Cell], case: &str, whose: &str, part: &dyn Fn(&Cell) -> Option<(f64, f64)>| {
            let found: Vec<_> = row.iter().filter_map(|cell| Some((cell.asked(), part(cell)?))).collect();
            let points = found.iter().map(|(asked, (part, _))| [*asked, *part]);
            let name = format!("T = {} ms{whose}", row[0].period_ms);
            Line::new(case, name, points).deviating(found.iter().map(|(_, (_, deviation))| *deviation))
        };
        let ours = self.rows().map(|row| line(row, "cbs", "", &|cell| Some(cell.part_of(unlimited))));
        let paper = |cell: &Cell| {
            let (per_s, deviation) = cell.paper()?;
            let unlimited = PAPER_UNLIMITED.value();
            Some((per_s / unlimited, deviation / unlimited))
        };
        let theirs = self.rows().map(|row| line(row, "paper", ", paper", &paper));
        Chart::Lines(Lines::new(
            "Throughput over Q/T, by T",
            "Q/T",
            "operations, as a part of those without a limit",
            ours.chain(theirs),
        ))
    }

    /// What a Q got done over the next smaller one at the same T: the least of all.
    pub(super) fn growth(&self) -> f64 {
        let of_row = |row: &[Cell]| {
            row.windows(2).map(|pair| pair[1].per_s().median / pair[0].per_s().median).fold(f64::INFINITY, f64::min)
        };
        self.rows().map(of_row).fold(f64::INFINITY, f64::min)
    }

    pub(super) fn reading(&self) -> String {
        let paper = |column| Spread::of((0..PERIODS_MS.len()).filter_map(|row| Some(PAPER.cell(row, column)?.0)));
        let [least, most] = [0, PARTS.len() - 1].map(paper);
        format!(
            "Reading results. Manica et al. measured operations: {} to {} per second at 1/6, {} to {} at 5/6, {} \
             without a limit. Those of another machine are not comparable; their part of the unlimited ones is, and the \
             last column compares it. More than Q/T is to be expected: an x11perf without a limit waits for its answers \
             part of the time, in which it uses nothing ({} of the server used here; what it was there, the paper does \
             not say). In the paper a row falls by some percent from the shortest T to the longest. The distance of the \
             share says how exact xqos is; operations have the machine's own noise in them too, and where the kernel's \
             part is large it is most of what they show.",
            figure(least.least),
            figure(least.greatest),
            figure(most.least),
            figure(most.greatest),
            figure(PAPER_UNLIMITED.value()),
            points(self.unlimited_share())
        )
    }

    fn unlimited_per_s(&self) -> f64 {
        median(self.unlimited.iter().map(|given| given.operations_per_s))
    }

    /// The cells of each T, in the order of Q.
    fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.cells.chunk_by(|a, b| a.period_ms == b.period_ms)
    }
}

impl Cell {
    /// Operations per second and their deviation.
    fn paper(&self) -> Option<(f64, f64)> {
        let row = PERIODS_MS.iter().position(|&period_ms| period_ms == self.period_ms)?;
        let column = PARTS.iter().position(|&part| part == self.part)?;
        PAPER.cell(row, column)
    }

    fn per_s(&self) -> Spread {
        self.spread(|given| given.operations_per_s)
    }

    /// Mean and deviation as parts of so many operations per second.
    fn part_of(&self, unlimited: f64) -> (f64, f64) {
        let parts: Vec<f64> = self.measured.iter().map(|given| given.operations_per_s / unlimited).collect();
        (mean(&parts), deviation(&parts))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::hard;
    use crate::experiments::Measure;

    #[test]
    fn the_least_growth_says_where_more_budget_gets_less_done() {
        assert!(hard(0.95, [0.34, 0.83]).growth() > 1.0);
        assert!(hard(0.95, [0.34, 0.33]).growth() < 1.0);
    }

    #[test]
    fn the_papers_own_cell_stands_beside_ours() {
        let study = hard(1.0, [128.0 / 360.0, 0.8]).study();
        let row = &study.tables[1].rows[0];
        assert_eq!(row[5..], ["128", "1.51", "36 %", "1"].map(str::to_owned), "{row:?}");
    }
}
