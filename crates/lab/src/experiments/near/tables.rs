// SPDX-License-Identifier: MIT
//! The cells as tables: starts over the farthest link, over all of them, waits, steady work, and what near costs.

use super::Near;
use super::case::{FARTHEST, Place, Way};
use super::cell::{Cell, Start, Waits};
use super::cost::Cost;
use crate::actor::Answered;
use crate::experiments::far::Program;
use crate::papers::Published;
use crate::statistics::{Spread, ratios};
use crate::study::{Columns, Table, figure, spread_figure};

pub(super) fn all(near: &Near) -> Vec<Table> {
    let mut tables = vec![farthest(near), waits(near), beside(near)];
    tables.extend(near.programs().into_iter().map(|program| delays(near, program)));
    tables.extend([steady(near), local(near), costs(&near.costs), failed(near)]);
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn seconds(start: Option<&Start>, of: impl Fn(&Start) -> f64) -> String {
    start.map_or("-".to_owned(), |start| format!("{}{}", if start.is_quiet { "" } else { "> " }, figure(of(start))))
}

/// Where the goals are: seconds, and how many times as fast as ssh.
fn farthest(near: &Near) -> Table {
    let rows = near.programs().into_iter().filter(|&program| near.start(program, Way::Strict, FARTHEST).is_some());
    let title =
        "Start over 10 Mb/s and 100 ms one way: seconds from the command until quiet (times as fast as ssh -C -Y)";
    near.ways()
        .into_iter()
        .fold(Columns::of(title, rows).cell("program", |program| program.title().to_owned()), |columns, way| {
            columns.cell(way.title(), move |&program| {
                let told = seconds(near.start(program, way, FARTHEST), |start| start.elapsed_s);
                match near.faster(program, way, Way::Ssh, FARTHEST).filter(|_| way.is_near()) {
                    Some(times) => format!("{told} ({} x)", figure(times)),
                    None => told,
                }
            })
        })
        .table()
}

/// By near's own report: of the longest delay at which nobody worked with the program.
fn waits_of(near: &Near, program: Program, way: Way) -> Option<Waits> {
    let all = near.cells.iter().filter(|cell| (cell.case.program, cell.case.way) == (program, way));
    let told = all.filter_map(|cell| Some((cell, cell.outcome.as_ref().ok()?)));
    let told = told.filter_map(|(cell, start)| Some(((start.steady.is_none(), cell.case.place), start.waits?)));
    told.max_by_key(|(order, _)| *order).map(|(_, waits)| waits)
}

fn waits(near: &Near) -> Table {
    let left =
        |&program: &Program, way| waits_of(near, program, way).map_or("-".to_owned(), |waits| waits.left.to_string());
    let without = |&program: &Program| {
        waits_of(near, program, Way::Strict).map_or("-".to_owned(), |waits| (waits.left + waits.saved).to_string())
    };
    Columns::of("Waits for a reply, from the start until quiet", near.programs())
        .cell("program", |program| program.title().to_owned())
        .cell("asked and waited for", without)
        .cell("left, strict", |program| left(program, Way::Strict))
        .cell("left, relaxed", |program| left(program, Way::Relaxed))
        .cell("left, xqos ssh", |program| left(program, Way::ThroughSsh))
        .table()
}

/// What the paper says of starts over long links, and the same of ours.
fn beside(near: &Near) -> Table {
    let trips = Published("packard-gettys-2003.nautilus_round_trips").value();
    let ours = |value: &dyn Fn(Program) -> Option<String>| {
        let told = |program: Program| Some(format!("{} {}", program.title(), value(program)?));
        near.programs().into_iter().filter_map(told).collect::<Vec<_>>().join(", ")
    };
    let waits = |program| {
        let waits = waits_of(near, program, Way::Strict)?;
        Some(format!("{} ({} with near)", waits.left + waits.saved, waits.left))
    };
    let faster = |program| Some(format!("{} x", figure(near.faster(program, Way::ThroughSsh, Way::Ssh, FARTHEST)?)));
    let mut table = Table::new("The paper's figures beside ours", &["", "paper", "ours"]);
    for (what, paper, ours) in [
        ("round trips waited for at the start", format!("Nautilus {trips}"), ours(&waits)),
        ("a proxy that answers locally beside ssh, 100 ms", "LBX: never better".to_owned(), ours(&faster)),
    ] {
        if !ours.is_empty() {
            table.rows.push([what.to_owned(), paper, ours].into());
        }
    }
    table
}

/// A row for each delay: from the command, and without what the program loads.
fn delays(near: &Near, program: Program) -> Table {
    let rows = Place::far()
        .into_iter()
        .filter(|&place| near.ways().iter().any(|&way| near.start(program, way, place).is_some()));
    let title = format!("{}: seconds from the command until quiet (from its first connection)", program.title());
    near.ways()
        .into_iter()
        .fold(Columns::of(title, rows).cell("one way", |place| place.title()), |columns, way| {
            columns.cell(way.title(), move |&place| match near.start(program, way, place) {
                None => "-".to_owned(),
                start => format!(
                    "{} ({})",
                    seconds(start, |start| start.elapsed_s),
                    seconds(start, |start| start.connected_s)
                ),
            })
        })
        .table()
}

/// Of each kind of stroke, until the screen changed for the last time.
fn steady(near: &Near) -> Table {
    let is_measured = |cell: &&Cell| cell.outcome.as_ref().is_ok_and(|start| start.steady.is_some());
    let told = |answered: Option<Answered>| answered.map_or("-".to_owned(), |one| figure(one.last_ms));
    let steady = |cell: &&Cell| cell.outcome.as_ref().ok().and_then(|start| start.steady).unwrap_or_default();
    Columns::of(
        "Steady work: ms from a key until the screen changed for the last time",
        near.cells.iter().filter(is_measured),
    )
    .cell("program", |cell| cell.case.program.title().to_owned())
    .cell("one way", |cell| cell.case.place.title())
    .cell("over", |cell| cell.case.way.title().to_owned())
    .cell("typing", |cell| told(steady(cell).typing))
    .cell("scrolling", |cell| told(steady(cell).scrolling))
    .cell("menu", |cell| told(steady(cell).menu))
    .table()
}

fn local(near: &Near) -> Table {
    let rows = near.programs().into_iter().map(|program| (program, local_ratios(near, program)));
    Columns::of(
        "Beside its server: start with near over without, from the command until quiet",
        rows.filter(|row| row.1.count > 0),
    )
    .cell("program", |(program, _)| program.title().to_owned())
    .cell("raw X, s", |(program, _)| seconds(near.start(*program, Way::Raw, Place::Local), |start| start.elapsed_s))
    .cell("near, strict, s", |(program, _)| {
        seconds(near.start(*program, Way::Strict, Place::Local), |start| start.elapsed_s)
    })
    .cell("ratio (least .. greatest)", |(_, ratio)| spread_figure(ratio))
    .table()
}

fn costs(costs: &[Cost]) -> Table {
    let of = |rates: &[f64]| figure(crate::statistics::median(rates.iter().copied()));
    Columns::of("A client that never waits: operations in a second", costs)
        .cell("x11perf", |cost| cost.test.clone())
        .cell("direct", |cost| of(&cost.direct))
        .cell("through the relay of cap", |cost| of(&cost.relay))
        .cell("through near", |cost| of(&cost.near))
        .cell("near over relay (least .. greatest)", |cost| spread_figure(&cost.ratios()))
        .table()
}

/// Each reason once.
fn failed(near: &Near) -> Table {
    let mut table = Table::new("Cells without figures", &["program", "over", "cells", "why"]);
    for cell in &near.cells {
        let Err(why) = &cell.outcome else { continue };
        let (program, way) = (cell.case.program.title(), cell.case.way.title());
        match table.rows.iter_mut().find(|row| row[0] == program && row[1] == way && row[3] == *why) {
            Some(row) => row[2] = (row[2].parse::<u32>().unwrap_or(0) + 1).to_string(),
            None => table.rows.push(vec![program.to_owned(), way.to_owned(), "1".to_owned(), why.clone()]),
        }
    }
    table
}

/// Within each turn.
pub(super) fn local_ratios(near: &Near, program: Program) -> Spread {
    let of = |way| near.of(program, way, Place::Local);
    ratios(of(Way::Strict), of(Way::Raw), |cell| cell.case.turn, |cell| Some(cell.outcome.as_ref().ok()?.elapsed_s))
}
