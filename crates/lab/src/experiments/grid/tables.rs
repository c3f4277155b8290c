// SPDX-License-Identifier: MIT
//! The grid as tables: the paper's figures, the delay of each cell, what raw X did in detail, the compressed slow link, and what failed.

use super::case::{BASE, Transport};
use super::cell::Outcome;
use super::{Grid, Measured, foretold};
use crate::experiments::far::{Line, Program, delay_title};
use crate::papers::Published;
use crate::statistics::Spread;
use crate::study::{Columns, Table, figure, percent, spread_figure};

/// Before a figure of a cell that was not quiet within its limit.
const BOUND: &str = "> ";

pub(super) fn all(grid: &Grid) -> Vec<Table> {
    let mut tables = vec![beside(grid), added(grid)];
    tables.extend(grid.programs().into_iter().map(|program| delays(grid, program)));
    tables.extend(grid.programs().into_iter().map(|program| raw(grid, program)));
    tables.extend(foretold::tables(grid));
    tables.extend([bytes(grid), compressed(grid), failed(grid)]);
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// What the paper says in figures, and the same of our cells; nothing where they are not measured.
fn beside(grid: &Grid) -> Table {
    let worst = Line { kbit_per_s: 10, delay_us: 100_000 };
    let of_each = |figure: &dyn Fn(Program) -> Option<String>| {
        let told = |program: Program| Some(format!("{} {}", program.title(), figure(program)?));
        Program::ALL.into_iter().filter_map(told).collect::<Vec<_>>().join(", ")
    };
    let relative = |program| {
        let measured = grid.measured(program, Transport::Raw, worst)?;
        Some(format!("{}{} x", bound(measured), figure(grid.relative(program, Transport::Raw, worst)?)))
    };
    let trips = |program| Some(grid.measured(program, Transport::Raw, BASE)?.round_trips.to_string());
    let effective = |program| {
        let all =
            Line::DELAYS.map(|delay_us| grid.measured(program, Transport::SshC, Line { kbit_per_s: 10, delay_us }));
        let best = all.into_iter().flatten().map(Measured::effective_kbit_per_s).max_by(f64::total_cmp);
        Some(format!("{} kb/s", figure(best?)))
    };
    let paper = |figure_of: &str, published: Published, unit: &str| format!("{figure_of} {}{unit}", published.value());
    let kedit = paper("kedit over", Published("packard-gettys-2003.kedit_slowest"), " x");
    let nautilus = paper("Nautilus", Published("packard-gettys-2003.nautilus_round_trips"), "");
    let mozilla = paper("Mozilla about", Published("packard-gettys-2003.client_fonts"), " x");
    let background = paper("a background, over", Published("packard-gettys-2003.compressed_link"), " Mb/s");
    let mut table = Table::new("The paper's figures beside ours", &["", "paper", "ours"]);
    for (what, paper, ours) in [
        ("relative delay over 10 kb/s, 100 ms; ours by raw X", kedit, of_each(&relative)),
        ("round trips waited for at the start", nautilus, of_each(&trips)),
        ("client-side over core fonts at 1 Mb/s", mozilla, fonts(grid)),
        ("10 kb/s, ssh -C: effective bandwidth", background, of_each(&effective)),
    ] {
        if !ours.is_empty() {
            table.rows.push([what.to_owned(), paper, ours].into());
        }
    }
    table
}

fn fonts(grid: &Grid) -> String {
    let ratio = |delay_us| {
        let line = Line { kbit_per_s: 1_000, delay_us };
        let of = |program| Some(grid.measured(program, Transport::Raw, line)?.delay_s);
        let ratio = of(Program::XtermFa)? / of(Program::Xterm)?;
        Some(format!("{} x at {}", figure(ratio), delay_title(delay_us)))
    };
    let list: Vec<_> = Line::DELAYS.into_iter().filter_map(ratio).collect();
    if list.is_empty() { String::new() } else { format!("xterm {}", list.join(", ")) }
}

/// By the paper's questions: what latency, bandwidth, compression and local answers do; of starts that came to rest.
fn added(grid: &Grid) -> Table {
    let rest_s = |program, way, line| {
        grid.measured(program, way, line).filter(|measured| measured.is_quiet).map(|measured| measured.delay_s)
    };
    let added_s = |program, way, line| Some(rest_s(program, way, line)? - rest_s(program, way, BASE)?);
    let told = |spread: Spread| match spread.count {
        0 => "-".to_owned(),
        count => format!("{} x of {count}", spread_figure(&spread)),
    };
    let growth = |line| {
        let of = |program| Some(rest_s(program, Transport::Raw, line)? / rest_s(program, Transport::Raw, BASE)?);
        told(Spread::of(Program::ALL.into_iter().filter_map(of)))
    };
    let compressed = |line| {
        let of = |program| Some(added_s(program, Transport::SshC, line)? / added_s(program, Transport::Raw, line)?);
        told(Spread::of(Program::ALL.into_iter().filter_map(of).filter(|ratio| ratio.is_finite())))
    };
    let long = [100_000, 10_000].map(|delay_us| Line { delay_us, ..BASE });
    let slow = [10, 100].map(|kbit_per_s| Line { kbit_per_s, ..BASE });
    let mut table = Columns::of(
        "What a link adds to the delay at 10 Mb/s, 0.1 ms: medians of programs",
        long.into_iter().chain(slow),
    )
    .cell("link", |line| line.title())
    .cell("raw X grows", |&line| growth(line))
    .cell("added: ssh -C -Y over raw X", |&line| compressed(line))
    .cell("LBX over raw X (f)", |&line| told(foretold::added(grid, 1, line)))
    .cell("strict over raw X (f)", |&line| told(foretold::added(grid, 2, line)))
    .table();
    table.rows.retain(|row| row[1..].iter().any(|cell| cell != "-"));
    table
}

/// Seconds, and how many times the base; a row for each link.
fn delays(grid: &Grid, program: Program) -> Table {
    let transports = grid.transports();
    let head: Vec<&str> = ["link"].into_iter().chain(transports.iter().map(|transport| transport.title())).collect();
    let mut table =
        Table::new(format!("{}: total network delay, s (times raw X's at 10 Mb/s, 0.1 ms)", program.title()), &head);
    for line in grid.lines() {
        let cells: Vec<String> = transports.iter().map(|&transport| delay(grid, program, transport, line)).collect();
        if cells.iter().any(|cell| cell != "-") {
            table.rows.push([line.title()].into_iter().chain(cells).collect());
        }
    }
    table
}

fn delay(grid: &Grid, program: Program, transport: Transport, line: Line) -> String {
    match grid.cell(program, transport, line).map(|cell| &cell.outcome) {
        None => "-".to_owned(),
        Some(Outcome::Failed(_)) => "failed".to_owned(),
        Some(Outcome::LeftOut(_)) => "left out".to_owned(),
        Some(Outcome::Measured(measured)) => {
            let times = grid
                .relative(program, transport, line)
                .map_or(String::new(), |times| format!(" ({} x)", figure(times)));
            format!("{}{}{times}", bound(measured), figure(measured.delay_s))
        }
    }
}

fn bound(measured: &Measured) -> &'static str {
    if measured.is_quiet { "" } else { BOUND }
}

fn raw(grid: &Grid, program: Program) -> Table {
    let agreement =
        |measured: &Measured| measured.agreement.map_or("-".to_owned(), |[one, other]| percent(one.min(other)));
    let row = |line| Some((line, grid.measured(program, Transport::Raw, line)?));
    Columns::of(format!("{}, raw X", program.title()), grid.lines().into_iter().filter_map(row))
        .cell("link", |(line, _)| line.title())
        .cell("quiet after", |(_, measured)| elapsed(measured))
        .cell("delay", |(_, measured)| format!("{} s", figure(measured.delay_s)))
        .cell("waiting", |(_, measured)| format!("{} s", figure(measured.reply_wait_s)))
        .cell("round trips", |(_, measured)| measured.round_trips.to_string())
        .cell("X bytes", |(_, measured)| measured.x_bytes.to_string())
        .cell("link there", |(_, measured)| measured.link_bytes[0].to_string())
        .cell("link back", |(_, measured)| measured.link_bytes[1].to_string())
        .cell("agreement", |(_, measured)| agreement(measured))
        .table()
}

fn elapsed(measured: &Measured) -> String {
    match measured.is_quiet {
        true => format!("{} s", figure(measured.elapsed_s)),
        false => format!("not quiet after {} s", figure(measured.limit_s)),
    }
}

/// What each way puts on the link, and what the program waits for: on the link where most of them have been measured.
fn bytes(grid: &Grid) -> Table {
    let transports = grid.transports();
    let mut head = vec!["program".to_owned()];
    for transport in &transports {
        head.extend([format!("{}: link bytes", transport.title()), "round trips".to_owned(), "elapsed s".to_owned()]);
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(
        "Over 10 Mb/s, 0.1 ms: bytes on the link both ways, round trips waited for, seconds until quiet",
        &head,
    );
    for program in grid.programs() {
        let mut row = vec![program.title().to_owned()];
        for &transport in &transports {
            match grid.measured(program, transport, BASE) {
                None => row.extend(["-", "-", "-"].map(str::to_owned)),
                Some(measured) => row.extend([
                    measured.link_bytes.iter().sum::<u64>().to_string(),
                    measured.round_trips.to_string(),
                    format!("{}{}", bound(measured), figure(measured.elapsed_s)),
                ]),
            }
        }
        table.rows.push(row);
    }
    table
}

/// The paper's background of a desktop, and ours.
fn compressed(grid: &Grid) -> Table {
    let bytes = Published("packard-gettys-2003.background_bytes").value();
    let seconds = Published("packard-gettys-2003.background_seconds").value();
    let title = format!(
        "The slow link, compressed: bytes of X over the time of the link (paper: {bytes} MB in {seconds} s, {:.1} Mb/s)",
        bytes * 8.0 / seconds
    );
    let slowest = Line::DELAYS.map(|delay_us| Line { kbit_per_s: 10, delay_us });
    let cases = grid.programs().into_iter().flat_map(|program| {
        let ways = [Transport::SshC, Transport::Nx, Transport::NxTaint];
        ways.into_iter().flat_map(move |way| slowest.map(|line| (program, way, line)))
    });
    let rows = cases.filter_map(|(program, way, line)| Some((program, way, line, grid.measured(program, way, line)?)));
    Columns::of(title, rows)
        .cell("program", |(program, ..)| program.title().to_owned())
        .cell("over", |(_, way, ..)| way.title().to_owned())
        .cell("link", |(_, _, line, _)| line.title())
        .cell("X bytes", |(.., measured)| measured.x_bytes.to_string())
        .cell("link bytes", |(.., measured)| measured.link_bytes.iter().sum::<u64>().to_string())
        .cell("seconds", |(.., measured)| format!("{}{}", bound(measured), figure(measured.link_s)))
        .cell("effective kb/s", |(.., measured)| figure(measured.effective_kbit_per_s()))
        .table()
}

/// Each reason once.
fn failed(grid: &Grid) -> Table {
    let mut table = Table::new("Cells without figures", &["program", "over", "cells", "why"]);
    for cell in &grid.cells {
        let (Outcome::Failed(why) | Outcome::LeftOut(why)) = &cell.outcome else { continue };
        let (program, transport) = (cell.case.program.title(), cell.case.transport.title());
        match table.rows.iter_mut().find(|row| row[0] == program && row[1] == transport && row[3] == *why) {
            Some(row) => row[2] = (row[2].parse::<u32>().unwrap_or(0) + 1).to_string(),
            None => table.rows.push(vec![program.to_owned(), transport.to_owned(), "1".to_owned(), why.clone()]),
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::invented;
    use super::*;

    #[test]
    fn a_cell_that_was_not_quiet_is_a_bound_and_a_failed_one_says_why() {
        let mut grid = invented();
        let last = grid.cells.len() - 1;
        grid.cells[last].outcome = Outcome::Failed("no such proxy".to_owned());
        let tables = all(&grid);
        assert!(crate::render::table(&tables[0]).contains("xterm > "), "{:?}", tables[0]);
        let text = crate::render::table(&tables[2]);
        // 60 kB and 100 round trips of 200 ms over the slowest link are more than a minute.
        assert!(text.contains("> 60 (") && text.contains("(1 x)"), "{text}");
        assert!(crate::render::table(&tables[7]).contains("not quiet after 60 s"));
        assert!(crate::render::table(tables.last().unwrap()).contains("no such proxy"));
    }

    #[test]
    fn what_a_link_adds_is_over_raw_x() {
        let row = |line: &str| added(&invented()).rows.into_iter().find(|row| row[0].contains(line)).unwrap();
        // Compression leaves a tenth of the bytes, and all round trips.
        assert!(
            row("/ 100 ms")[2].starts_with('1') && row("100 kb/s")[2].starts_with("0.100 ("),
            "{:?}",
            row("100 kb/s")
        );
        assert!(row("/ 100 ms")[1].ends_with("x of 5") && row("/ 100 ms")[3] == "-");
    }
}
