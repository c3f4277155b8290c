// SPDX-License-Identifier: MIT
//! Figures 5 to 8 of the paper, from our cells. Both axes are logarithmic: the grid is one of powers of ten.

use super::Grid;
use super::case::Transport;
use crate::experiments::far::{Line, Program, delay_title};
use crate::study::{Chart, Line as Drawn, Lines};

/// The looks of the latencies, the shortest first.
const LOOKS: [&str; 4] = ["stock", "fair", "smart", "classic"];
const BANDWIDTH: &str = "bandwidth, Mb/s";
const RELATIVE: &str = "total network delay, times raw X at 10 Mb/s, 0.1 ms";

pub(super) fn all(grid: &Grid) -> Vec<Chart> {
    let mut charts = Vec::new();
    for delay_us in [100_000, 10_000] {
        charts.extend(grid.programs().into_iter().map(|program| proxies(grid, program, delay_us)));
    }
    for program in grid.programs() {
        charts.push(latencies(grid, program, Transport::Raw, "6"));
        charts.push(latencies(grid, program, Transport::SshC, "7"));
    }
    charts.push(fonts(grid));
    // A line needs two points.
    charts.retain(|lines| lines.lines.iter().any(|line| line.points.len() > 1));
    charts.into_iter().map(Chart::Lines).collect()
}

/// Figure 5: the ways to carry X beside each other, at one latency.
fn proxies(grid: &Grid, program: Program, delay_us: u64) -> Lines {
    let line = |transport: Transport| {
        Drawn::new(transport.look(), transport.title(), over_rates(grid, program, transport, delay_us))
    };
    let title = format!("{}: each way to carry X, {} one way (Figure 5)", program.title(), delay_title(delay_us));
    over_bandwidth(title, grid.transports().into_iter().map(line))
}

/// Figures 6 and 7: one way to carry X, a line for each latency.
fn latencies(grid: &Grid, program: Program, transport: Transport, number: &str) -> Lines {
    let line = |(delay_us, look): (u64, &str)| {
        Drawn::new(look, delay_title(delay_us), over_rates(grid, program, transport, delay_us))
    };
    let title = format!("{} over {}, by latency (Figure {number})", program.title(), transport.title());
    over_bandwidth(title, Line::DELAYS.into_iter().zip(LOOKS).map(line))
}

/// Figure 8: core and client-side fonts at 1 Mb/s, over latency.
fn fonts(grid: &Grid) -> Lines {
    let line = |(program, look): (Program, &str)| {
        let lines = Line::DELAYS.map(|delay_us| Line { kbit_per_s: 1_000, delay_us });
        let points = lines.into_iter().filter_map(|line| {
            let measured = grid.measured(program, Transport::Raw, line)?;
            Some([line.delay_us as f64 / 1e3, measured.delay_s])
        });
        Drawn::new(look, program.title(), points)
    };
    Lines::new(
        "Core fonts and client-side fonts: xterm over raw X at 1 Mb/s (Figure 8)",
        "one-way delay, ms",
        "total network delay, s",
        shown([(Program::Xterm, "stock"), (Program::XtermFa, "fair")].into_iter().map(line)),
    )
    .log_both()
}

fn over_bandwidth(title: String, lines: impl Iterator<Item = Drawn>) -> Lines {
    Lines::new(title, BANDWIDTH, RELATIVE, shown(lines)).log_both()
}

fn shown(lines: impl Iterator<Item = Drawn>) -> Vec<Drawn> {
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn over_rates(grid: &Grid, program: Program, transport: Transport, delay_us: u64) -> Vec<[f64; 2]> {
    let lines = Line::RATES.map(|kbit_per_s| Line { kbit_per_s, delay_us });
    let point = |line: Line| Some([line.kbit_per_s as f64 / 1e3, grid.relative(program, transport, line)?]);
    lines.into_iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::super::case::BASE;
    use super::super::invented;
    use super::*;

    #[test]
    fn the_figures_of_the_paper_are_there_and_relative_to_their_base() {
        let charts = all(&invented());
        assert_eq!(charts.len(), 2 * 5 + 2 * 5 + 1);
        let Chart::Lines(six) = &charts[10] else { panic!("{:?}", charts[10]) };
        assert!(six.title.contains("Figure 6") && six.lines.len() == 4, "{six:?}");
        let base = six.lines[0].points.iter().find(|point| point[0] == BASE.kbit_per_s as f64 / 1e3).unwrap();
        assert_eq!(base[1], 1.0);
    }
}
