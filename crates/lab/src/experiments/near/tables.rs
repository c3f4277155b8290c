// SPDX-License-Identifier: MIT
//! The cells as tables: starts over the farthest link, starts over all links, waits, steady work, and the cost of near.

use super::super::far::{Capture, Line, Program, Route, Start, by_program, comparison_table};
use super::{FARTHEST, KBIT_PER_S, Near};
use crate::actor::ResponseTimes;
use crate::papers::Published;
use crate::statistics::median;
use crate::study::{Columns, Table, figure, spread_figure};

pub(super) fn all(near: &Near) -> Vec<Table> {
    let mut tables = vec![farthest(near), waits(near), comparison(near)];
    tables.extend(near.cells.programs().into_iter().map(|program| delays(near, program)));
    tables.extend([steady(near), local(near), costs(near), near.cells.failed()]);
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn seconds(start: &Start) -> String {
    format!("{}{}", start.bound(), figure(start.from_command_s))
}

/// The cells with goals: start-up time in seconds, and speed relative to ssh.
fn farthest(near: &Near) -> Table {
    let programs = near.cells.programs().into_iter();
    let rows = programs.filter(|&program| near.cells.start(program, Route::Strict, FARTHEST).is_some());
    let title =
        "Start over 10 Mb/s and 100 ms one way: seconds from the command until quiet (times as fast as ssh -C -Y)";
    near.cells
        .by_route(by_program(title, rows), |program, way| {
            let gain = near.gain(program, way).filter(|_| way.is_near());
            near.cells.text(program, way, FARTHEST, seconds)
                + &gain.map_or(String::new(), |times| format!(" ({} x)", figure(times)))
        })
        .keyed("start")
}

/// Remaining waits and all waits, by near's own report, in the cell with the longest delay but without steady work.
fn waits_of(near: &Near, program: Program, way: Route) -> Option<(u64, u64)> {
    let all = near.cells.0.iter().filter(|cell| (cell.case.program, cell.case.way) == (program, way));
    let starts = all.filter_map(|cell| Some((cell.case, cell.outcome.as_ref().ok()?)));
    let waits = starts.filter_map(|(case, start)| {
        let order = (start.steady.is_none(), case.watched != Capture::Local, case.line.delay_us);
        Some((order, start.waits?))
    });
    waits.max_by_key(|(order, _)| *order).map(|(_, waits)| (waits.left, waits.left + waits.saved))
}

fn waits(near: &Near) -> Table {
    let left =
        |&program: &Program, way| waits_of(near, program, way).map_or("-".to_owned(), |(left, _)| left.to_string());
    by_program("Round trips from the start until quiet", near.cells.programs())
        .cell("without near", |&program| {
            waits_of(near, program, Route::Strict).map_or("-".to_owned(), |(_, all)| all.to_string())
        })
        .cell("left at a first start, strict", |program| left(program, Route::FirstStrict))
        .cell("left, strict", |program| left(program, Route::Strict))
        .cell("left, relaxed", |program| left(program, Route::Relaxed))
        .cell("left, xqos ssh", |program| left(program, Route::ThroughSsh))
        .table()
        .keyed("waits")
}

/// The paper's statements about starts over long links, and our results.
fn comparison(near: &Near) -> Table {
    let trips = Published("packard-gettys-2003.nautilus_round_trips").value();
    let waits = |program| waits_of(near, program, Route::Strict).map(|(left, all)| format!("{all} ({left} with near)"));
    let faster = |program| Some(format!("{} x", figure(near.gain(program, Route::ThroughSsh)?)));
    let (waits, faster) = (near.cells.of_each(waits), near.cells.of_each(faster));
    comparison_table([
        ("round trips at the start", format!("Nautilus {trips}"), waits),
        ("speed of a proxy that answers locally, relative to ssh, 100 ms", "LBX: never better".to_owned(), faster),
    ])
}

/// Start-up times with a row for each delay: from the command, and without the time to load the program.
fn delays(near: &Near, program: Program) -> Table {
    let has = |line: &Line| near.cells.routes().iter().any(|&way| near.cells.start(program, way, *line).is_some());
    let title = format!("{}: seconds from the command until quiet (from its first connection)", program.title());
    let columns = Columns::of(title, Line::by_delay(KBIT_PER_S).into_iter().filter(has));
    let both = |start: &Start| format!("{} ({}{})", seconds(start), start.bound(), figure(start.elapsed_s));
    let columns = columns.cell("one way", |line| line.delay_title());
    near.cells.by_route(columns, |line, way| near.cells.text(program, way, line, both))
}

/// Time until the last change of the screen, for each kind of stroke.
fn steady(near: &Near) -> Table {
    let last = |answered: Option<ResponseTimes>| answered.map_or("-".to_owned(), |one| figure(one.last_ms));
    let rows = near.cells.0.iter().filter_map(|cell| Some((cell.case, cell.outcome.as_ref().ok()?.steady?)));
    Columns::of("Steady work: ms from a key until the screen changed for the last time", rows)
        .cell("program", |(case, _)| case.program.title().to_owned())
        .cell("one way", |(case, _)| case.line.delay_title())
        .cell("over", |(case, _)| case.way.title().to_owned())
        .cell("typing", |(_, steady)| last(steady.typing))
        .cell("scrolling", |(_, steady)| last(steady.scrolling))
        .cell("menu", |(_, steady)| last(steady.menu))
        .table()
}

fn local(near: &Near) -> Table {
    let rows = near.cells.programs().into_iter().filter(|&program| near.local_ratios(program).count > 0);
    let median_s = |program, way| figure(median(near.local(program, way).map(|(_, seconds)| seconds)));
    by_program("On the server's machine: start-up time with and without near, from the command until quiet", rows)
        .cell("raw X, s", |&program| median_s(program, Route::Raw))
        .cell("near, strict, s", |&program| median_s(program, Route::Strict))
        .cell("ratio (range)", |&program| spread_figure(&near.local_ratios(program)))
        .table()
}

fn costs(near: &Near) -> Table {
    let of = |rates: &[f64]| figure(median(rates.iter().copied()));
    Columns::of("A client that never waits: operations per second", &near.costs)
        .cell("x11perf", |cost| cost.test.clone())
        .cell("direct", |cost| of(&cost.direct))
        .cell("through the relay of cap", |cost| of(&cost.relay))
        .cell("through near", |cost| of(&cost.near))
        .cell("near over relay (range)", |cost| spread_figure(&cost.ratios()))
        .table()
}
