// SPDX-License-Identifier: MIT
//! Figures 5 to 8 of the paper, from our cells. Both axes are logarithmic, as the grid consists of powers of ten.

use super::super::far::{Cells, Line, Program, Route};
use super::{BASE, ROUTES, relative};
use crate::study::{Chart, Line as Drawn, Lines};

/// Line styles for the latencies, the shortest first.
const LOOKS: [&str; 4] = ["stock", "fair", "smart", "classic"];

pub(super) fn all(cells: &Cells) -> Vec<Chart> {
    let by_delay = Line::by_delay(BASE.kbit_per_s);
    let mut charts = Vec::new();
    for line in by_delay.into_iter().rev().take(2) {
        charts.extend(cells.programs().into_iter().map(|program| {
            let title = format!("{}: all transports, {} one way (Figure 5)", program.title(), line.delay_title());
            let drawn = |way: Route| over_rates(cells, program, way, line, (way.look(), way.title()));
            over_bandwidth(title, ROUTES.into_iter().map(drawn))
        }));
    }
    for program in cells.programs() {
        charts.extend([(Route::Raw, 6), (Route::SshC, 7)].map(|(way, number)| {
            let title = format!("{} over {}, by latency (Figure {number})", program.title(), way.title());
            let drawn = |(line, look): (Line, _)| over_rates(cells, program, way, line, (look, &line.delay_title()));
            over_bandwidth(title, by_delay.into_iter().zip(LOOKS).map(drawn))
        }));
    }
    let fonts = [(Program::CoreText, "stock"), (Program::ClientText, "fair")].map(|(program, look)| {
        let point = |line: Line| Some([line.delay_us as f64 / 1e3, cells.start(program, Route::Raw, line)?.delay_s]);
        Drawn::new(look, program.title(), Line::by_delay(1_000).into_iter().filter_map(point))
    });
    let title = "The same text with core fonts and with client-side fonts: raw X at 1 Mb/s (Figure 8)";
    charts.push(Lines::new(title, "one-way delay, ms", "total network delay, s", fonts));
    for chart in &mut charts {
        chart.lines.retain(|line| !line.points.is_empty());
    }
    // A line needs two points.
    charts.retain(|chart| chart.lines.iter().any(|line| line.points.len() > 1));
    charts.into_iter().map(|chart| Chart::Lines(chart.log_both())).collect()
}

fn over_bandwidth(title: String, lines: impl Iterator<Item = Drawn>) -> Lines {
    Lines::new(title, "bandwidth, Mb/s", "total network delay, times raw X at 10 Mb/s, 0.1 ms", lines)
}

fn over_rates(cells: &Cells, program: Program, way: Route, line: Line, (look, name): (&str, &str)) -> Drawn {
    let lines = Line::RATES.map(|kbit_per_s| Line { kbit_per_s, ..line });
    let point = |line: Line| Some([line.kbit_per_s as f64 / 1e3, relative(cells, program, way, line)?]);
    Drawn::new(look, name, lines.into_iter().filter_map(point))
}
