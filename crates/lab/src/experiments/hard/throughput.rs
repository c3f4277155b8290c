//! What a hard reservation gets done, beside the paper's own figures: Table 2, and Figure 9 as lines.
//!
//! The paper gives operations per second of a machine of 2008; what can be compared is their part of those without a
//! limit.

use super::{Cell, Hard, PARTS, PERIODS_MS, points};
use crate::statistics::{Spread, deviation, mean, median};
use crate::study::{Chart, Line, Lines, Table, figure, percent};

/// Operations per second, Table 2: a row for each of [`PERIODS_MS`], a column for each of [`PARTS`].
const PAPER: [[f64; 5]; 7] = [
    [67.0, 132.0, 193.0, 264.0, 318.0],
    [66.2, 133.0, 192.0, 251.0, 313.0],
    [66.0, 128.0, 189.0, 253.0, 310.0],
    [65.8, 126.0, 186.0, 248.0, 310.0],
    [63.7, 126.0, 187.0, 248.0, 306.0],
    [62.5, 126.0, 188.0, 245.0, 308.0],
    [62.8, 125.0, 187.0, 246.0, 305.0],
];
/// The standard deviations of the five trials of each.
const PAPER_DEVIATIONS: [[f64; 5]; 7] = [
    [1.14, 3.64, 2.40, 2.3, 2.48],
    [0.96, 0.55, 1.78, 1.58, 1.34],
    [0.55, 1.51, 2.04, 1.30, 1.48],
    [1.01, 1.22, 2.28, 1.92, 1.82],
    [1.12, 1.34, 2.28, 2.49, 2.30],
    [0.99, 1.64, 2.34, 3.36, 2.00],
    [1.04, 1.08, 2.30, 2.60, 4.1833],
];
/// The same x11perf under their soft CBS, which limits nothing (section 4.2).
const PAPER_UNLIMITED: f64 = 360.0;

impl Hard {
    pub(super) fn table_of_throughput(&self) -> Table {
        let unlimited = self.unlimited_per_s();
        let title = format!(
            "Operations per second, mean and standard deviation; without a limit {} here, {} in the paper",
            figure(unlimited),
            figure(PAPER_UNLIMITED)
        );
        let head = ["Q/T", "T ms", "here", "deviation", "of unlimited", "paper", "deviation", "of unlimited", "ratio"];
        let mut table = Table::new(title, &head);
        for cell in &self.cells {
            let per_s: Vec<f64> = cell.measured.iter().map(|given| given.operations_per_s).collect();
            let part = mean(&per_s) / unlimited;
            let mut row = vec![format!("{}/{}", cell.part.0, cell.part.1), cell.period_ms.to_string()];
            row.extend([figure(mean(&per_s)), figure(deviation(&per_s)), percent(part)]);
            if let Some((paper, deviation)) = cell.paper() {
                let paper_part = paper / PAPER_UNLIMITED;
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
            Line {
                case: case.to_owned(),
                name: format!("T = {} ms{whose}", row[0].period_ms),
                points: found.iter().map(|(asked, (part, _))| [*asked, *part]).collect(),
                deviations: found.iter().map(|(_, (_, deviation))| *deviation).collect(),
            }
        };
        let ours = self.rows().map(|row| line(row, "cbs", "", &|cell| Some(cell.part_of(unlimited))));
        let paper = |cell: &Cell| {
            let (per_s, deviation) = cell.paper()?;
            Some((per_s / PAPER_UNLIMITED, deviation / PAPER_UNLIMITED))
        };
        let theirs = self.rows().map(|row| line(row, "paper", ", paper", &paper));
        Chart::Lines(Lines {
            title: "Throughput over Q/T, by T".to_owned(),
            x_label: "Q/T".to_owned(),
            y_label: "operations, as a part of those without a limit".to_owned(),
            log_y: false,
            log_x: false,
            lines: ours.chain(theirs).collect(),
        })
    }

    /// Periods in which a greater Q got less done somewhere.
    pub(super) fn falls(&self) -> u32 {
        let falls = |row: &&[Cell]| row.windows(2).any(|pair| pair[1].per_s().median < pair[0].per_s().median);
        self.rows().filter(falls).count() as u32
    }

    pub(super) fn reading(&self) -> String {
        format!(
            "Reading results. Manica et al. measured operations: 62 to 67 per second at 1/6, 305 to 318 at 5/6, 360 \
             without a limit. Those of another machine are not comparable; their part of the unlimited ones is, and the \
             last column compares it. More than Q/T is to be expected: an x11perf without a limit waits for its answers \
             part of the time, in which it uses nothing ({} of the server used here; what it was there, the paper does \
             not say). In the paper a row falls by some percent from the shortest T to the longest. The distance of the \
             share says how exact xqos is; operations have the machine's own noise in them too, and where the kernel's \
             part is large it is most of what they show.",
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
        Some((PAPER[row][column], PAPER_DEVIATIONS[row][column]))
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
    fn a_period_in_which_more_budget_gets_less_done_is_counted() {
        assert_eq!(hard(0.95, [0.34, 0.83]).falls(), 0);
        assert_eq!(hard(0.95, [0.34, 0.33]).falls(), 1);
    }

    #[test]
    fn the_papers_own_cell_stands_beside_ours() {
        let study = hard(1.0, [128.0 / 360.0, 0.8]).study();
        let row = &study.tables[1].rows[0];
        assert_eq!(row[5..], ["128", "1.51", "36 %", "1"].map(str::to_owned), "{row:?}");
    }
}
