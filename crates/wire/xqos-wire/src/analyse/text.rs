// SPDX-License-Identifier: MIT
//! Formats reports as tables, like Tables 1 and 2 of Packard and Gettys (2003).

use std::collections::BTreeMap;
use std::fmt::Write;
use xqos_text::table::{Column, TextTable};
use xqos_wire::analysis::counts::MessageSum;
use xqos_wire::analysis::figure::{Declared, Figure, Unit};
use xqos_wire::analysis::images::CodecFigures;
use xqos_wire::analysis::proxied::figures::{LeftFigures, ProxyFigures};
use xqos_wire::analysis::redundancy::{RepeatedCoordinates, UnusedBytes};
use xqos_wire::predict::{Prediction, StartPrediction};
use xqos_wire::report::compare::{Change, Comparison, Verdict};
use xqos_wire::report::{
    ConnectionReport, Figures, PatternFigures, Report, SessionReport, StartupFigures, StreamFigures, WaitFigures,
};

/// Maximum number of rows per table; --json and --csv contain all rows.
const MAX_ROWS: usize = 15;

pub fn session(report: &Report) -> String {
    let mut text = connections(&report.connections);
    text += &streams(&report.connections);
    text += &figures(&report.session.figures);
    text += &compression(&report.session);
    for (place, connection) in report.connections.iter().enumerate() {
        let title = format!("{} ({})", place + 1, client(connection));
        text += &startup(&title, &connection.startup);
    }
    text += &predictions(report);
    text + "\n" + &conclusion(report)
}

pub fn connection(connection: &ConnectionReport) -> String {
    let mut text = connections(std::slice::from_ref(connection));
    text += &streams(std::slice::from_ref(connection));
    text += &figures(&connection.figures);
    text + &startup(&client(connection), &connection.startup)
}

fn figures(figures: &Figures) -> String {
    let left = figures.proxy.as_ref().map(proxy).unwrap_or_default();
    waits(&figures.waits) + &left + &patterns(figures) + &messages(figures) + &bandwidth(figures) + &unused(figures)
}

fn seconds(value: f64) -> String {
    format!("{value:.3}")
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

fn section(title: &str, table: &TextTable) -> String {
    format!("\n{title}\n{}", table.render(xqos_sys::terminal_columns()))
}

/// The figures that have a column.
fn shown<T: Declared>() -> Vec<&'static Figure<T>> {
    T::FIGURES.iter().filter(|figure| !figure.title.is_empty()).collect()
}

fn add_columns<T>(table: TextTable, figures: &[&Figure<T>]) -> TextTable {
    figures.iter().fold(table, |table, figure| table.column(Column::number(figure.title, figure.rank)))
}

/// Begins a table of figures, with these columns before them.
fn table<T: Declared>(first: Vec<Column>) -> TextTable {
    add_columns(TextTable::new(first), &shown::<T>())
}

/// A row of figures, after these cells.
fn row<T: Declared>(first: &[&str], of: &T) -> Vec<String> {
    let first = first.iter().map(|&cell| cell.to_owned());
    first.chain(shown().iter().map(|figure| figure.text(of))).collect()
}

/// A column of names.
fn names(title: &'static str) -> Column {
    Column::words(title, 0).elastic()
}

fn connections(list: &[ConnectionReport]) -> String {
    let table = TextTable::new(vec![Column::number("", 0), names("CLIENT"), Column::number("SECONDS", 0)]);
    let mut table = add_columns(table, &shown::<Figures>());
    for (place, connection) in list.iter().enumerate() {
        let number = (place + 1).to_string();
        table.row(row(&[&number, &client(connection), &seconds(connection.seconds)], &connection.figures));
    }
    let title =
        "Connections, in seconds: idle, blocked by the network or the receiver, waiting for replies; total delay";
    section(title, &table).trim_start().to_owned()
}

/// The client's program, if known, and its address, which distinguishes clients of the same program.
fn client(connection: &ConnectionReport) -> String {
    let ConnectionReport { client, program, .. } = connection;
    program.as_ref().map_or_else(|| client.clone(), |program| format!("{program} {client}"))
}

fn streams(list: &[ConnectionReport]) -> String {
    let mut table = table::<StreamFigures>(vec![Column::number("", 0), Column::words("STREAM", 0)]);
    for (place, ConnectionReport { streams, .. }) in list.iter().enumerate() {
        for (name, stream) in [("requests", &streams.requests), ("replies", &streams.replies)] {
            table.row(row(&[&(place + 1).to_string(), name], stream));
        }
    }
    section("Streams, in seconds: why the sender could not send", &table)
}

fn waits(list: &[WaitFigures]) -> String {
    let mut table = table::<WaitFigures>(vec![names("REQUEST")]).column(Column::words("WHY", 1));
    for wait in list.iter().take(MAX_ROWS) {
        let why = wait.reasons.iter().max_by_key(|(_, count)| **count).map_or("", |(reason, _)| reason.advice());
        table.row([row(&[&wait.name], wait), vec![why.to_owned()]].concat());
    }
    section(&heading("Waits, by request", list.len()), &table)
}

fn heading(title: &str, count: usize) -> String {
    if count > MAX_ROWS { format!("{title} (the first {MAX_ROWS} of {count})") } else { title.to_owned() }
}

fn patterns(figures: &Figures) -> String {
    let mut table = table::<PatternFigures>(vec![names("SENT BEFORE THE WAIT")]);
    let patterns = figures.patterns.iter().take(MAX_ROWS);
    patterns.for_each(|pattern| table.row(row(&[&pattern.pattern], pattern)));
    section(&heading("Waits, by calling pattern", figures.patterns.len()), &table)
}

fn messages(figures: &Figures) -> String {
    let kinds: [(&str, &BTreeMap<String, MessageSum>); 4] = [
        ("request", &figures.requests),
        ("reply", &figures.replies),
        ("event", &figures.events),
        ("error", &figures.errors),
    ];
    let all = kinds.into_iter().flat_map(|(kind, names)| names.iter().map(move |(name, sum)| (kind, name, sum)));
    let mut list: Vec<_> = all.collect();
    list.sort_by_key(|(.., sum)| std::cmp::Reverse(sum.bytes));
    let mut table =
        table::<MessageSum>(vec![Column::words("KIND", 0), names("NAME")]).column(Column::number("MEAN", 0));
    for (kind, name, sum) in list.iter().take(MAX_ROWS) {
        let mean = sum.bytes as f64 / sum.count.max(1) as f64;
        table.row([row(&[kind, name], *sum), vec![format!("{mean:.0}")]].concat());
    }
    section(&heading("Messages", list.len()), &table)
}

fn bandwidth(figures: &Figures) -> String {
    let total = figures.bandwidth.values().sum();
    let mut table = TextTable::new(vec![Column::words("USED FOR", 0)]).numbers(0, &["BYTES", "SHARE"]);
    for (name, bytes) in &figures.bandwidth {
        table.row(vec![name.clone(), bytes.to_string(), percent(*bytes, total)]);
    }
    section("Bandwidth", &table)
}

fn compression(session: &SessionReport) -> String {
    let mut table =
        TextTable::new(vec![Column::words("BYTES OF", 0)]).numbers(1, &["SAMPLED"]).numbers(0, &["ZSTD -3", "SSH -C"]);
    for (name, sample) in &session.compression {
        let [zstd, deflate] = [sample.zstd, sample.deflate].map(|left| format!("{:.1}%", 100.0 * left));
        table.row(vec![(*name).to_owned(), sample.sampled_bytes.to_string(), zstd, deflate]);
    }
    section("Compression: remaining size", &table)
}

/// How well images and glyphs compress, and how fast.
pub fn images(list: &[CodecFigures]) -> String {
    let mut table = TextTable::new(vec![Column::words("OF", 0), Column::words("CODEC", 0)])
        .numbers(0, &["REQUESTS", "BYTES", "COMPRESSED", "LEFT", "CPU s", "MB/s"]);
    for CodecFigures { of, codec, requests, bytes, compressed_bytes, processor_s } in list {
        let rate = format!("{:.0}", *bytes as f64 / 1e6 / processor_s.max(1e-9));
        let mut row = vec![(*of).to_owned(), (*codec).to_owned()];
        row.extend([requests, bytes, compressed_bytes].map(ToString::to_string));
        row.extend([percent(*compressed_bytes, *bytes), seconds(*processor_s), rate]);
        table.row(row);
    }
    section("Compression of each image, and of the glyphs of each request", &table).trim_start().to_owned()
}

fn startup(title: &str, startup: &StartupFigures) -> String {
    let mut figures = shown();
    figures.sort_by_key(|figure| (figure.rank, figure.unit() != Unit::Seconds));
    let mut table =
        add_columns(TextTable::new(vec![Column::words("START-UP UNTIL", 0)]), &figures).column(names("WAITED FOR"));
    let quiet = if startup.is_quiet { "quiet" } else { "the end" };
    let phases = startup.window.iter().map(|phase| ("the window", phase)).chain([(quiet, &startup.quiet)]);
    for (name, phase) in phases {
        let waited: Vec<String> =
            phase.waits.iter().take(3).map(|wait| format!("{} {}", wait.name, seconds(wait.seconds))).collect();
        let cells = figures.iter().map(|figure| figure.text(phase));
        table.row([name.to_owned()].into_iter().chain(cells).chain([waited.join(", ")]).collect());
    }
    section(&format!("Connection {title}"), &table)
}

/// A closing sentence about all starts together. If messages are missing, the sentence says only what is certain.
fn conclusion(report: &Report) -> String {
    let starts = || report.connections.iter().map(|connection| &connection.startup.quiet);
    let [trips, avoidable] =
        [starts().map(|phase| phase.round_trips).sum::<u64>(), starts().map(|phase| phase.avoidable).sum()];
    let milliseconds = 1000.0 * report.latency_s;
    let cost = |count: u64| 2.0 * report.latency_s * count as f64;
    let is_whole = report.connections.iter().all(|connection| connection.is_whole);
    if !is_whole && trips == 0 {
        return "The number of round trips at start-up is unknown: messages are missing from the capture.\n".to_owned();
    }
    let least = if is_whole { "" } else { "at least " };
    let mut text = format!("Start-up makes {least}{trips} round trips");
    let _ = match avoidable {
        0 => write!(text, "; none of them is known to be avoidable"),
        count => write!(text, "; {least}{count} of them are avoidable"),
    };
    let _ = write!(text, "; over a link of {milliseconds} ms one way they cost {least}{:.1} s", cost(trips));
    if avoidable > 0 {
        let _ = write!(text, ", the avoidable ones {:.1} s", cost(avoidable));
    }
    text + ".\n"
}

pub fn comparison(comparison: &Comparison) -> String {
    let mut text = section("Sums", &changes(&comparison.sums)).trim_start().to_owned();
    for (title, list) in [("Round trips", &comparison.round_trips), ("Bytes", &comparison.bytes)] {
        if !list.is_empty() {
            text += &section(&heading(title, list.len()), &changes(list));
        }
    }
    text
}

fn changes(list: &[Change]) -> TextTable {
    let mut table = TextTable::new(vec![Column::words("WHAT", 0).elastic()])
        .numbers(0, &["BEFORE", "AFTER", "CHANGE"])
        .column(Column::words("", 0));
    for change in list.iter().take(MAX_ROWS) {
        let figure = |value: f64| if change.unit == Unit::Seconds { seconds(value) } else { format!("{value:.0}") };
        let difference = change.after - change.before;
        let sign = if difference > 0.0 { "+" } else { "" };
        let verdict = match change.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "",
        };
        table.row(vec![
            change.what.clone(),
            figure(change.before),
            figure(change.after),
            format!("{sign}{}", figure(difference)),
            verdict.to_owned(),
        ]);
    }
    table
}

/// Formats unused bytes and repeated coordinates; the latter only if a program drew such shapes.
fn unused(figures: &Figures) -> String {
    let mut list: Vec<_> = figures.unused.iter().collect();
    list.sort_by_key(|(_, unused)| std::cmp::Reverse(unused.bytes));
    let mut table = table::<UnusedBytes>(vec![names("REQUEST")]);
    list.iter().take(MAX_ROWS).for_each(|(name, unused)| table.row(row(&[name], *unused)));
    let text = section(&heading("Unused bytes", list.len()), &table);
    if figures.repeated.is_empty() { text } else { text + &repeated(figures) }
}

fn repeated(figures: &Figures) -> String {
    let mut table = table::<RepeatedCoordinates>(vec![names("REQUEST")]).column(Column::number("REPEATED", 0));
    for (name, repeated) in &figures.repeated {
        let share = percent(repeated.repeated, repeated.coordinates);
        table.row([row(&[name], repeated), vec![share]].concat());
    }
    section("Coordinates that occur in the preceding shape of the request", &table)
}

/// Formats the round trips that remain behind a proxy, by request.
fn proxy(figures: &ProxyFigures) -> String {
    let mut table = table::<LeftFigures>(vec![names("REQUEST")]);
    let rows = figures.names.iter().take(MAX_ROWS);
    [&figures.sum()].into_iter().chain(rows).for_each(|left| table.row(row(&[&left.name], left)));
    let title = if figures.proxy == "batch" { "With requests for many answers" } else { "Behind a proxy" };
    section(&heading(&format!("{title} ({})", figures.proxy), figures.names.len()), &table)
}

/// Formats the predicted starts over simulated links; empty without --predict.
fn predictions(report: &Report) -> String {
    let Some(first) = report.predictions.first() else { return String::new() };
    let mut table = TextTable::new(vec![Column::words("LINK", 0), Column::words("ONE WAY", 0)]);
    let proxy = report.session.figures.proxy.as_ref().filter(|_| first.proxy.is_some());
    let starts = 1 + usize::from(proxy.is_some());
    for _ in 0..starts {
        table = table.numbers(0, &["START-UP", "DELAY", "REPLIES", "ROUND TRIPS"]).numbers(1, &["LINK BYTES"]);
    }
    for Prediction { rate_bit_per_s, delay_s, start, proxy, .. } in &report.predictions {
        let rate = rate_bit_per_s.map_or("unlimited".to_owned(), rate);
        let mut row = vec![rate, format!("{} ms", 1000.0 * delay_s)];
        [Some(start), proxy.as_ref()].into_iter().flatten().for_each(|start| row.extend(start_cells(start)));
        table.row(row);
    }
    let title = match proxy {
        Some(figures) if figures.proxy == "batch" => {
            "Predicted, in seconds: as captured, then with requests for many answers".to_owned()
        }
        Some(figures) => format!("Predicted, in seconds: as captured, then behind a proxy ({})", figures.proxy),
        None => "Predicted, in seconds".to_owned(),
    };
    section(&title, &table)
}

fn rate(bits: u64) -> String {
    let (unit, name) = if bits >= 1_000_000 { (1e6, "Mb/s") } else { (1e3, "kb/s") };
    format!("{} {name}", bits as f64 / unit)
}

fn start_cells(start: &StartPrediction) -> [String; 5] {
    let [elapsed, delay, replies] =
        [start.elapsed_ns, start.delay_ns, start.wait_ns].map(|ns| seconds(ns as f64 / 1e9));
    [elapsed, delay, replies, start.round_trips.to_string(), start.link_bytes.iter().sum::<u64>().to_string()]
}
