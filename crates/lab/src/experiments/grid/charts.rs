// SPDX-License-Identifier: MIT
//! Figures 5 to 8 of the paper, from our cells. Both axes are logarithmic: the grid is one of powers of ten.

use super::super::far::{Cells, Line, Program, Way};
use super::{BASE, WAYS, relative};
use crate::study::{Chart, Line as Drawn, Lines};

/// The looks of the latencies, the shortest first.
const LOOKS: [&str; 4] = ["stock", "fair", "smart", "classic"];

pub(super) fn all(cells: &Cells) -> Vec<Chart> {
    let mut charts = Vec::new();
    for line in Line::by_delay(BASE.kbit_per_s).into_iter().rev().take(2) {
        charts.extend(cells.programs().into_iter().map(|program| by_way(cells, program, line)));
    }
    for program in cells.programs() {
        charts.extend([(Way::Raw, 6), (Way::SshC, 7)].map(|(way, number)| by_delay(cells, program, way, number)));
    }
    charts.push(fonts(cells));
    // A line needs two points.
    charts.retain(|lines| lines.lines.iter().any(|line| line.points.len() > 1));
    charts.into_iter().map(Chart::Lines).collect()
}

/// Figure 5: the ways to carry X beside each other, at the delay of this line.
fn by_way(cells: &Cells, program: Program, line: Line) -> Lines {
    let title = format!("{}: each way to carry X, {} one way (Figure 5)", program.title(), line.delay_title());
    let drawn = |way: Way| over_rates(cells, program, way, line, (way.look(), way.title().to_owned()));
    over_bandwidth(title, WAYS.into_iter().map(drawn))
}

/// Figures 6 and 7: one way to carry X, a line for each latency.
fn by_delay(cells: &Cells, program: Program, way: Way, number: u32) -> Lines {
    let title = format!("{} over {}, by latency (Figure {number})", program.title(), way.title());
    let drawn = |(line, look): (Line, _)| over_rates(cells, program, way, line, (look, line.delay_title()));
    over_bandwidth(title, Line::by_delay(BASE.kbit_per_s).into_iter().zip(LOOKS).map(drawn))
}

/// Figure 8: core and client-side fonts at 1 Mb/s, over latency.
fn fonts(cells: &Cells) -> Lines {
    let drawn = |(program, look): (Program, _)| {
        let point = |line: Line| Some([line.delay_us as f64 / 1e3, cells.start(program, Way::Raw, line)?.delay_s]);
        Drawn::new(look, program.title(), Line::by_delay(1_000).into_iter().filter_map(point))
    };
    let title = "Core fonts and client-side fonts: xterm over raw X at 1 Mb/s (Figure 8)";
    let lines = [(Program::Xterm, "stock"), (Program::XtermFa, "fair")].into_iter().map(drawn);
    logarithmic(title.to_owned(), ["one-way delay, ms", "total network delay, s"], lines)
}

fn over_bandwidth(title: String, lines: impl Iterator<Item = Drawn>) -> Lines {
    logarithmic(title, ["bandwidth, Mb/s", "total network delay, times raw X at 10 Mb/s, 0.1 ms"], lines)
}

fn logarithmic(title: String, [x, y]: [&str; 2], lines: impl Iterator<Item = Drawn>) -> Lines {
    Lines::new(title, x, y, lines.filter(|line| !line.points.is_empty())).log_both()
}

fn over_rates(cells: &Cells, program: Program, way: Way, line: Line, (look, name): (&str, String)) -> Drawn {
    let lines = Line::RATES.map(|kbit_per_s| Line { kbit_per_s, ..line });
    let point = |line: Line| Some([line.kbit_per_s as f64 / 1e3, relative(cells, program, way, line)?]);
    Drawn::new(look, name, lines.into_iter().filter_map(point))
}
