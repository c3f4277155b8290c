// SPDX-License-Identifier: MIT
//! The grid as tables: comparison with the paper, the delay of each cell, details of raw X, the slow link with
//! compression, and failures.

use super::super::far::{Cells, Line, Program, Route, Start, by_program, comparison_table};
use super::{BACKGROUND, BASE, delay, predicted, relative, requests};
use crate::papers::Published;
use crate::statistics::Spread;
use crate::study::{Columns, Table, figure, percent, spread_figure};

pub(super) fn all(cells: &Cells) -> Vec<Table> {
    let mut tables = vec![comparison(cells), added(cells)];
    tables.extend(cells.programs().into_iter().map(|program| delays(cells, program)));
    tables.extend(cells.programs().into_iter().map(|program| raw(cells, program)));
    tables.extend(requests::tables(cells));
    tables.push(requests::fonts(cells));
    tables.extend(predicted::tables(cells));
    tables.extend([bytes(cells), background(cells), cells.failed()]);
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn comparison(cells: &Cells) -> Table {
    let worst = Line { kbit_per_s: 10, delay_us: 100_000 };
    let growth = cells.of_each(|program| {
        let (mark, _) = delay(cells, program, Route::Raw, worst)?;
        Some(format!("{mark}{} x", figure(relative(cells, program, Route::Raw, worst)?)))
    });
    let trips = cells.of_each(|program| Some(cells.start(program, Route::Raw, BASE)?.round_trips.to_string()));
    let effective = cells.of_each(|program| {
        let start = cells.start(program, Route::SshC, Line { kbit_per_s: 10, ..BASE })?;
        Some(format!("{}{} kb/s", start.bound(), figure(start.effective_kbit_per_s())))
    });
    let paper = |figure_of: &str, published: Published, unit: &str| format!("{figure_of} {}{unit}", published.value());
    let atoms = format!(
        "Nautilus ({}), kedit {} ({})",
        Published("packard-gettys-2003.nautilus_atoms").value(),
        Published("packard-gettys-2003.kedit_atoms").value(),
        Published("packard-gettys-2003.kedit_atom_waits").value()
    );
    let kedit = paper("kedit over", Published("packard-gettys-2003.kedit_slowest"), " x");
    let nautilus = paper("Nautilus", Published("packard-gettys-2003.nautilus_round_trips"), "");
    let mozilla = paper("Mozilla about", Published("packard-gettys-2003.client_fonts"), " x");
    let background = format!(
        "a background: {} MB in {} s, over {} Mb/s",
        Published("packard-gettys-2003.background_bytes").value(),
        Published("packard-gettys-2003.background_seconds").value(),
        Published("packard-gettys-2003.compressed_link").value()
    );
    comparison_table([
        ("relative delay over 10 kb/s, 100 ms (ours: raw X)", kedit, growth),
        ("round trips at the start", nautilus, trips),
        ("requests for atoms (replies waited for)", atoms, cells.of_each(|program| requests::atoms(cells, program))),
        ("client-side fonts over core fonts at 1 Mb/s", mozilla, fonts(cells)),
        ("10 kb/s, ssh -C: effective bandwidth", background, effective),
    ])
}

fn fonts(cells: &Cells) -> String {
    let ratio = |line: Line| {
        let of = |program| Some(cells.start(program, Route::Raw, line)?.delay_s);
        Some(format!("{} x at {}", figure(of(Program::ClientText)? / of(Program::CoreText)?), line.delay_title()))
    };
    let list: Vec<_> = Line::by_delay(1_000).into_iter().filter_map(ratio).collect();
    if list.is_empty() { String::new() } else { format!("a clock {}", list.join(", ")) }
}

/// The paper's questions: effects of latency, bandwidth, compression and local answers. Only starts that became quiet
/// count.
fn added(cells: &Cells) -> Table {
    let rest_s = |program, way, line| Some(cells.start(program, way, line).filter(|start| start.is_quiet)?.delay_s);
    let added_s = |program, way, line| Some(rest_s(program, way, line)? - rest_s(program, way, BASE)?);
    let median = |ratio: &dyn Fn(Program) -> Option<f64>| {
        let spread = Spread::of(cells.programs().into_iter().filter_map(ratio).filter(|ratio| ratio.is_finite()));
        if spread.count == 0 { "-".to_owned() } else { format!("{} x of {}", spread_figure(&spread), spread.count) }
    };
    let long = [100_000, 10_000].map(|delay_us| Line { delay_us, ..BASE });
    let slow = [10, 100].map(|kbit_per_s| Line { kbit_per_s, ..BASE });
    let title = "What a link adds to the delay at 10 Mb/s, 0.1 ms: medians of programs";
    let mut table = Columns::of(title, long.into_iter().chain(slow))
        .cell("link", |line| line.title())
        .cell("raw X grows", |&line| {
            median(&|program| Some(rest_s(program, Route::Raw, line)? / rest_s(program, Route::Raw, BASE)?))
        })
        .cell("added: ssh -C -Y over raw X", |&line| {
            median(&|program| Some(added_s(program, Route::SshC, line)? / added_s(program, Route::Raw, line)?))
        })
        .cell("predicted: LBX over raw X", |&line| median(&|program| predicted::added(cells, program, 1, line)))
        .cell("predicted: strict over raw X", |&line| median(&|program| predicted::added(cells, program, 2, line)))
        .table();
    table.rows.retain(|row| row[1..].iter().any(|cell| cell != "-"));
    table
}

/// Delays in seconds and relative to the base, with a row for each link.
fn delays(cells: &Cells, program: Program) -> Table {
    let text = |line, way| {
        if cells.far(program, way, line).is_some_and(|cell| cell.outcome.is_err()) {
            return "failed".to_owned();
        }
        let Some((mark, delay_s)) = delay(cells, program, way, line) else { return "-".to_owned() };
        let times = relative(cells, program, way, line).map(|times| format!(" ({} x)", figure(times)));
        format!("{mark}{}{}", figure(delay_s), times.unwrap_or_default())
    };
    let title = format!("{}: total network delay, s (times raw X's at 10 Mb/s, 0.1 ms)", program.title());
    let has = |line: &Line| cells.routes().iter().any(|&way| cells.far(program, way, *line).is_some());
    let columns = Columns::of(title, cells.lines().into_iter().filter(has)).cell("link", |line| line.title());
    cells.by_route(columns, text).keyed(&format!("delay[{}]", program.title()))
}

fn raw(cells: &Cells, program: Program) -> Table {
    let elapsed = |start: &Start| match start.is_quiet {
        true => format!("{} s", figure(start.elapsed_s)),
        false => format!("not quiet after {} s", figure(start.limit_s)),
    };
    let agreement = |start: &Start| start.agreement.map_or("-".to_owned(), |[one, other]| percent(one.min(other)));
    let row = |line| Some((line, cells.start(program, Route::Raw, line)?));
    Columns::of(format!("{}, raw X", program.title()), cells.lines().into_iter().filter_map(row))
        .cell("link", |(line, _)| line.title())
        .cell("quiet after", |(_, start)| elapsed(start))
        .cell("delay", |(_, start)| format!("{} s", figure(start.delay_s)))
        .cell("waiting", |(_, start)| format!("{} s", figure(start.reply_wait_s)))
        .cell("round trips", |(_, start)| start.round_trips.to_string())
        .cell("X bytes", |(_, start)| start.x_bytes.to_string())
        .cell("bytes to server", |(_, start)| start.link_bytes[0].to_string())
        .cell("bytes back", |(_, start)| start.link_bytes[1].to_string())
        .cell("agreement", |(_, start)| agreement(start))
        .table()
}

/// Round trips, and the bytes that each transport sends, on the link with the most measurements.
fn bytes(cells: &Cells) -> Table {
    let title = "Over 10 Mb/s, 0.1 ms: bytes on the link in both directions, round trips, seconds until quiet";
    let columns = by_program(title, cells.programs());
    let of = |way, text: fn(&Start) -> String| move |&program: &Program| cells.text(program, way, BASE, text);
    let add = |columns: Columns<Program>, way: Route| {
        columns
            .cell(
                format!("{}: link bytes", way.title()),
                of(way, |start| start.link_bytes.iter().sum::<u64>().to_string()),
            )
            .cell("round trips", of(way, |start| start.round_trips.to_string()))
            .cell("elapsed s", of(way, |start| format!("{}{}", start.bound(), figure(start.elapsed_s))))
    };
    cells.routes().into_iter().fold(columns, add).table()
}

/// Effective rates of a background, for comparison with the paper's over 10 kb/s.
fn background(cells: &Cells) -> Table {
    let lines = Line::all().chain([BACKGROUND]);
    let has = |line: &Line| cells.far(Program::Background, Route::SshC, *line).is_some();
    let text = |start: &Start| {
        let (bytes, rate) = (start.link_bytes.iter().sum::<u64>(), figure(start.effective_kbit_per_s()));
        format!("{}{} s, {bytes} bytes ({rate} kb/s)", start.bound(), figure(start.link_s))
    };
    let title = "A background of 3.4 MB: seconds and bytes on the link (bytes of X over this time)";
    let columns = Columns::of(title, lines.filter(has)).cell("link", |line| line.title());
    let add = |columns: Columns<Line>, way: Route| {
        columns.cell(way.title(), move |&line| cells.text(Program::Background, way, line, text))
    };
    [Route::Raw, Route::Ssh, Route::SshC].into_iter().fold(columns, add).table().keyed("background")
}
