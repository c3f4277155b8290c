// SPDX-License-Identifier: MIT
//! Requests of raw X by name, from one fast line: Table 2 of the paper, atoms, extensions, colours, fonts.

use super::super::far::{Cells, Line, Program, RequestCounts, Route, by_program};
use crate::study::{Columns, Table};

/// The requests that the paper discusses.
const GROUPS: [(&str, &[&str]); 4] = [
    ("atoms", &["InternAtom"]),
    ("extensions", &["QueryExtension"]),
    ("colours", &["AllocColor", "AllocNamedColor", "LookupColor", "QueryColors"]),
    ("properties", &["GetProperty"]),
];

fn of(cells: &Cells, program: Program) -> &[RequestCounts] {
    cells.start(program, Route::Raw, Line::KNOWN).map_or(&[], |start| start.requests.as_slice())
}

/// Requests with these names, and how often the program waited for their replies.
fn sums(list: &[RequestCounts], names: &[&str]) -> (u64, u64) {
    let chosen = || list.iter().filter(|counts| names.contains(&counts.name.as_str()));
    (chosen().map(|counts| counts.sent).sum(), chosen().map(|counts| counts.waits).sum())
}

/// Requests for atoms, and in brackets the waits. `None` if the cell was not measured.
pub(super) fn atoms(cells: &Cells, program: Program) -> Option<String> {
    let list = of(cells, program);
    let (sent, waits) = sums(list, GROUPS[0].1);
    (!list.is_empty()).then(|| format!("{sent} ({waits})"))
}

/// Bytes of the requests with these names and of their replies.
fn bytes(list: &[RequestCounts], names: &[&str]) -> String {
    let chosen = list.iter().filter(|counts| names.contains(&counts.name.as_str()));
    chosen.map(|counts| counts.bytes).sum::<u64>().to_string()
}

/// What the paper compares for the two kinds of fonts. Programs that use neither are left out.
pub(super) fn fonts(cells: &Cells) -> Table {
    const METRICS: [&str; 4] = ["QueryFont", "ListFonts", "ListFontsWithInfo", "QueryTextExtents"];
    const GLYPHS: [&str; 2] = ["RENDER::AddGlyphs", "RENDER::AddGlyphsFromPicture"];
    let has = |program: &Program| sums(of(cells, *program), &[&METRICS[..], &GLYPHS].concat()).0 > 0;
    let waits = |program: &Program| sums(of(cells, *program), &METRICS).1.to_string();
    by_program("Raw X: fonts at the start", cells.programs().into_iter().filter(has))
        .cell("metrics, bytes", |program| bytes(of(cells, *program), &METRICS))
        .cell("round trips for them", waits)
        .cell("glyphs, bytes", |program| bytes(of(cells, *program), &GLYPHS))
        .table()
        .keyed("fonts")
}

pub(super) fn tables(cells: &Cells) -> Vec<Table> {
    let measured: Vec<Program> =
        cells.programs().into_iter().filter(|&program| !of(cells, program).is_empty()).collect();
    let title = "Raw X: requests at the start, and in brackets the replies that the program waited for";
    let add = |columns: Columns<Program>, (group, names): (&str, &'static [&'static str])| {
        columns.cell(group, move |&program| {
            let (sent, waits) = sums(of(cells, program), names);
            format!("{sent} ({waits})")
        })
    };
    let groups = GROUPS.into_iter().fold(by_program(title, measured.clone()), add).table().keyed("groups");
    [groups].into_iter().chain(measured.into_iter().map(|program| by_request(cells, program))).collect()
}

fn by_request(cells: &Cells, program: Program) -> Table {
    let waited = of(cells, program).iter().filter(|counts| counts.waits > 0);
    Columns::of(format!("{}, raw X: replies that it waited for at the start", program.title()), waited)
        .cell("request", |counts| counts.name.clone())
        .cell("sent", |counts| counts.sent.to_string())
        .cell("waits", |counts| counts.waits.to_string())
        .cell("avoidable", |counts| counts.avoidable.to_string())
        .table()
        .keyed(&format!("requests[{}]", program.title()))
}
