// SPDX-License-Identifier: MIT
//! Tests the grid's study with computed figures.

use super::super::far::{Cell, Predicted, PredictedStart, Proxied, RequestCounts, Start};
use super::*;
use crate::render;
use crate::study::Chart;
use std::collections::BTreeSet;

fn invented() -> Grid {
    let cell = |case: Case| {
        let (bytes, trips) = match case.way {
            Route::Raw | Route::Ssh => (60_000.0, 100.0),
            Route::NxTaint => (6_000.0, 95.0),
            _ => (6_000.0, 100.0),
        };
        let fewer = if case.program == Program::ClientText { 0.5 } else { 1.0 };
        let waiting_s = fewer * trips * (2.0 * case.line.delay_us as f64 / 1e6 + 0.0003);
        let delay_s = waiting_s + bytes * 8.0 / (case.line.kbit_per_s as f64 * 1e3);
        let start = Start {
            is_quiet: delay_s < 60.0,
            limit_s: 60.0,
            elapsed_s: delay_s.min(59.5) + 0.5,
            delay_s: delay_s.min(60.0),
            reply_wait_s: waiting_s,
            round_trips: trips as u64,
            x_bytes: 60_000,
            link_bytes: [bytes as u64 / 2; 2],
            link_s: delay_s + 0.5,
            agreement: (case.way == Route::Raw).then_some([0.99, 0.97]),
            ..Start::default()
        };
        Cell { case, outcome: Ok(start) }
    };
    Grid { cells: Cells(all().into_iter().map(cell).collect()) }
}

/// Without a proxy, each predicted start takes a tenth longer than the measured one; with proxies it takes less.
fn with_predictions() -> Grid {
    let mut grid = invented();
    let predicted = |program: Program| {
        let starts = |part: f64| {
            let start = |line| {
                let start = grid.cells.start(program, Route::Raw, line)?;
                Some(PredictedStart { line, elapsed_s: 1.1 * part * start.elapsed_s, delay_s: part * start.delay_s })
            };
            Line::all().filter_map(start).collect()
        };
        Predicted(
            [(100, 1.0), (60, 0.7), (40, 0.5), (20, 0.3), (80, 0.8)]
                .map(|(waits, part)| Proxied { waits, starts: starts(part) })
                .into(),
        )
    };
    let all = Program::ALL.map(|program| (program, predicted(program)));
    for cell in grid.cells.0.iter_mut().filter(|cell| (cell.case.way, cell.case.line) == (Route::Raw, Line::KNOWN)) {
        if let Ok(start) = &mut cell.outcome {
            let counts = |name: &str, sent, waits| {
                let (name, bytes) = (name.to_owned(), 100 * sent);
                RequestCounts { name, sent, waits, avoidable: 1, bytes }
            };
            start.requests =
                [counts("AllocColor", 30, 20), counts("InternAtom", 104, 6), counts("LookupColor", 2, 0)].into();
            match cell.case.program {
                Program::CoreText => start.requests.push(counts("QueryFont", 3, 2)),
                Program::ClientText => start.requests.push(counts("RENDER::AddGlyphs", 50, 0)),
                _ => {}
            }
            start.predicted = all.iter().find(|(program, _)| *program == cell.case.program).map(|(_, all)| all.clone());
        }
    }
    grid
}

fn table<'a>(study: &'a Study, title: &str) -> &'a crate::study::Table {
    study.tables.iter().find(|table| table.title.starts_with(title)).unwrap_or_else(|| panic!("no table {title}"))
}

#[test]
fn the_full_grid_has_each_cell_once_and_the_base_first() {
    let cases = all();
    // Four programs over five transports, eight over two on fewer lines, and the background.
    let count = 24 * 4 * 5 + 14 * 8 * 2 + 24 * 3 + 3;
    assert_eq!((cases.len(), cases.iter().collect::<BTreeSet<_>>().len()), (count, count));
    let (first, rest) = cases.split_at(2 * (4 * 5 + 8 * 2 + 3));
    assert!(first.iter().all(|case| [BASE, Line::KNOWN].contains(&case.line)), "{first:?}");
    assert_eq!((cases[0].line, cases[0].way), (BASE, Route::Raw));
    let turns = rest.windows(2).filter(|two| two[0].line.is_slow() != two[1].line.is_slow()).count();
    assert_eq!((rest[0].line.is_slow(), turns), (true, 1), "one stretch of slow lines");
}

#[test]
fn the_quick_grid_fits_a_minute() {
    assert!(quick().contains(&case(Program::Xterm, Route::Raw, BASE)));
    let seconds: u64 = quick().iter().map(|case| case.estimate(Duration::from_secs(12)).as_secs()).sum();
    assert!(seconds <= 60, "{seconds} s");
}

#[test]
fn the_worst_cell_is_compared_with_the_goal_too() {
    let mut grid = invented();
    let verdicts = grid.study().verdicts;
    assert_eq!((verdicts[0].is_met(), verdicts[1].is_met()), (Some(true), Some(true)));
    grid.cells.0[0].outcome.as_mut().unwrap().agreement = Some([0.99, 0.9]);
    let verdicts = grid.study().verdicts;
    assert_eq!((verdicts[0].is_met(), verdicts[1].value), (Some(true), 90.0));
}

#[test]
fn without_measurements_there_are_no_verdicts() {
    let study = Grid { cells: Cells::default() }.study();
    assert!(study.verdicts.is_empty() && study.tables.is_empty() && study.charts.is_empty(), "{study:?}");
}

#[test]
fn an_unfinished_cell_gives_a_bound_and_a_failed_one_its_reason() {
    let mut grid = invented();
    let last = grid.cells.0.iter_mut().rfind(|cell| cell.case.program == Program::Xterm).unwrap();
    last.outcome = Err("no such proxy".to_owned());
    let study = grid.study();
    let text = |title| render::table(table(&study, title));
    assert!(text("The paper's figures").contains("xterm > "), "{}", text("The paper's figures"));
    // 60 kB and 100 round trips of 200 ms take more than a minute over the slowest link.
    let delays = text("xterm: total network delay");
    assert!(delays.contains("> 60 (") && delays.contains("(1 x)"), "{delays}");
    assert!(text("xterm, raw X").contains("not quiet after 60 s"));
    assert!(text("Cells without figures").contains("no such proxy"));
    assert!(study.tables.iter().any(|table| render::table(table).contains("failed")));
}

#[test]
fn added_delay_is_relative_to_raw_x() {
    let study = with_predictions().study();
    let rows = &table(&study, "What a link adds").rows;
    let row = |line: &str| rows.iter().find(|row| row[0] == line).unwrap_or_else(|| panic!("no row {line}"));
    // Compression leaves a tenth of the bytes and all round trips.
    assert!(row("100 kb/s / 0.1 ms")[2].starts_with("0.100 ("), "{rows:?}");
    let long = row("10 Mb/s / 100 ms");
    assert!(long[1].ends_with("x of 13") && long[2].starts_with('1') && long[3].starts_with("0.700 ("), "{rows:?}");
}

#[test]
fn predictions_are_compared_with_quiet_cells_only() {
    let grid = with_predictions();
    let is_quiet = |line| grid.cells.start(Program::Gtk, Route::Raw, line).is_some_and(|start| start.is_quiet);
    let verdicts = predicted::verdicts(&grid.cells);
    let all = Program::ALL.into_iter().flat_map(|program| Line::all().map(move |line| (program, line)));
    let start = |(program, line)| grid.cells.start(program, Route::Raw, line);
    let quiet = all.filter_map(start).filter(|start| start.is_quiet).count();
    assert!(Line::all().any(|line| !is_quiet(line)) && verdicts[0].samples.had == quiet, "{verdicts:?}");
    assert!((verdicts[1].value - 10.0).abs() < 1e-6, "{verdicts:?}");
    let line = Line { kbit_per_s: 10_000, delay_us: 100_000 };
    let strict = predicted::added(&grid.cells, Program::Gtk, 2, line).unwrap();
    assert!((strict - 0.5).abs() < 1e-6, "{strict}");
}

#[test]
fn a_start_that_would_take_longer_than_the_limit_is_predicted_instead() {
    let mut grid = with_predictions();
    let slowest = Line { kbit_per_s: 10, delay_us: 100_000 };
    let worth = |grid: &Grid, way| is_worth(&grid.cells.0, case(Program::Xterm, way, slowest));
    assert!(worth(&grid, Route::Raw) && worth(&invented(), Route::Raw));
    let of_xterm = |cell: &&mut Cell| cell.case.program == Program::Xterm;
    for start in grid.cells.0.iter_mut().filter(of_xterm).filter_map(|cell| cell.outcome.as_mut().ok()) {
        let starts = start.predicted.iter_mut().flat_map(|all| &mut all.0[0].starts);
        starts.filter(|start| start.line == slowest).for_each(|start| {
            (start.elapsed_s, start.delay_s) = (700.0, 690.0);
        });
    }
    assert_eq!([Route::Raw, Route::Ssh, Route::SshC].map(|way| worth(&grid, way)), [false, false, true]);
    grid.cells.0.retain(|cell| (cell.case.program, cell.case.line) != (Program::Xterm, slowest));
    let study = grid.study();
    let rows = &table(&study, "xterm: total network delay").rows;
    assert!(rows.iter().all(|row| row[0] != slowest.title()), "no cell has this line: {rows:?}");
    grid.cells.0.push(Cell { case: case(Program::Xterm, Route::SshC, slowest), outcome: Ok(Start::default()) });
    let study = grid.study();
    let row = table(&study, "xterm: total network delay").rows.iter().find(|row| row[0] == slowest.title()).unwrap();
    assert!(row[1].starts_with("~ 690 ("), "{row:?}");
}

#[test]
fn prediction_tables_exist_only_for_programs_with_predictions() {
    let tables = predicted::tables(&with_predictions().cells);
    assert_eq!(tables.len(), 1 + Program::ALL.len());
    assert_eq!(tables[0].rows[0][1..], ["100", "60", "40", "20", "80"]);
    assert!(predicted::tables(&invented().cells).iter().all(|table| table.rows.is_empty()));
}

#[test]
fn requests_are_shown_by_name_and_by_group() {
    let study = with_predictions().study();
    let groups = table(&study, "Raw X: requests at the start");
    assert_eq!(groups.rows[0][1..], ["104 (6)", "0 (0)", "32 (20)", "0 (0)"]);
    let fonts = table(&study, "Raw X: fonts").rows.iter().map(|row| row.join(" ")).collect::<Vec<_>>();
    assert_eq!(fonts, ["text, core fonts 300 2 0", "text, client-side fonts 0 0 5000"]);
    let names: Vec<_> = table(&study, "xterm, raw X: replies").rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["AllocColor", "InternAtom"], "nobody waited for LookupColor");
    let paper = render::table(table(&study, "The paper's figures"));
    assert!(paper.contains("kedit 104 (6)") && paper.contains("xterm 104 (6)"), "{paper}");
    assert!(!render::table(table(&invented().study(), "The paper's figures")).contains("kedit 104"));
}

#[test]
fn the_papers_figures_are_drawn_relative_to_the_base() {
    let charts = invented().study().charts;
    let programs = Program::ALL.len();
    // Over 10 ms, the main programs and the background have more than one point.
    let five = programs + Program::MAIN.len() + 1;
    assert_eq!(charts.len(), five + 2 * programs + 1);
    let Chart::Lines(six) = &charts[five] else { panic!("{:?}", charts[five]) };
    assert!(six.title.contains("Figure 6") && six.lines.len() == 4, "{six:?}");
    let base = six.lines[0].points.iter().find(|point| point[0] == BASE.kbit_per_s as f64 / 1e3).unwrap();
    assert_eq!(base[1], 1.0);
}
