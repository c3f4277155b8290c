// SPDX-License-Identifier: MIT
//! What follows from the cells: the answers to the paper's hypotheses, the classifier against the truth, and how to read it.

use super::cell::Outcome;
use super::{Grid, charts, foretold, hypotheses, tables};
use crate::goals::Key;
use crate::statistics::Spread;
use crate::study::{Goal, Study, Verdict};

pub(super) fn study(grid: &Grid) -> Study {
    Study {
        title: "X over slow links".to_owned(),
        question:
            "A program starts at one end of a link, its X server is at the other. How long does the network keep it \
                   waiting, by bandwidth, by latency, and by how X is carried?"
                .to_owned(),
        answer: answer(grid),
        verdicts: verdicts(grid).into_iter().chain(foretold::verdicts(grid)).collect(),
        tables: tables::all(grid),
        charts: charts::all(grid),
        notes: hypotheses::all(grid).into_iter().chain(notes(grid)).collect(),
    }
}

fn count(grid: &Grid, is_so: impl Fn(&Outcome) -> bool) -> usize {
    grid.cells.iter().filter(|cell| is_so(&cell.outcome)).count()
}

fn answer(grid: &Grid) -> String {
    let measured = count(grid, |outcome| matches!(outcome, Outcome::Measured(_)));
    let late = count(grid, |outcome| matches!(outcome, Outcome::Measured(measured) if !measured.is_quiet));
    let failed = count(grid, |outcome| matches!(outcome, Outcome::Failed(_)));
    let left_out = count(grid, |outcome| matches!(outcome, Outcome::LeftOut(_)));
    format!(
        "{measured} of the grid's {} cells were measured, {late} of them were not quiet within their limit; {failed} failed, \
         and {left_out} lack a program.",
        grid.wanted
    )
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

fn notes(grid: &Grid) -> Vec<String> {
    let mut notes = vec![
        "How it was measured. Two network namespaces and the emulator between them (the same as xqos link); at one end Xvfb \
         without MIT-SHM, at the other the program, each cell with its own. The clock begins with the program's first packet \
         of X and stops with the last one before 2 s of silence (more on slow links: a round trip and four full packets), \
         once a window is mapped. The start of ssh or nxproxy is not in it."
            .to_owned(),
        "Where it was captured. Raw X at the program's end of the link. Behind a proxy X is not on the link any more: it was \
         captured between the program and the proxy beside it, as in the paper, so that blocked means that this proxy did not \
         read. The bytes of the link are those of the emulator's log, IP headers and a proxy's own words included."
            .to_owned(),
        "Total network delay is the time in which a connection was not idle, by the same analysis as xqos analyse: either \
         direction blocked, or a reply waited for, summed over the program's connections. It holds what the server took to \
         answer, and in a cell that was cut off the wait that went on. Relative figures are over the same \
         program with raw X at 10 Mb/s and 0.1 ms; behind '>' is a cell that reached its limit, a bound from below."
            .to_owned(),
        "ssh is trusted forwarding (-Y): with untrusted one today's toolkits do not start. nxproxy is told the link's kind by \
         its rate (modem, isdn, wan, lan), that it carries single programs (type=proxy; without that it turns taint off), and has \
         a head start of 8 s, since it holds the first program back until it has been up for about 5 s. 'taint' answers \
         GetInputFocus, the sync, and nothing else: it is no LBX. speedcrunch ends behind nxproxy, which hides BIG-REQUESTS, \
         by a request that is longer than 256 kB. Browsers are left \
         out: their start does not come to an end within a cell's limit on half of the links."
            .to_owned(),
    ];
    if grid.cells.len() < grid.wanted {
        notes.push(format!(
            "Left out: {} cells of the grid. A quick run has xterm over raw X and ssh -C at 10 and 1 Mb/s, 0.1 and 1 ms; \
             at 100 ms or 10 kb/s a cell takes a minute.",
            grid.wanted - grid.cells.len()
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
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
        let study = study(&Grid { cells: Vec::new(), wanted: 500 });
        assert!(study.verdicts.is_empty() && study.charts.is_empty() && study.tables.is_empty());
        assert!(study.answer.starts_with("0 of the grid's 500 cells"), "{}", study.answer);
    }
}
