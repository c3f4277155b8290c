// SPDX-License-Identifier: MIT
//! Formats reports as tables, like Tables 1 and 2 of Packard and Gettys (2003).

use std::collections::BTreeMap;
use std::fmt::Write;
use xqos_text::table::{Column, Table};
use xqos_wire::report::compare::{Change, Comparison, Unit, Verdict};
use xqos_wire::analysis::counts::MessageSum;
use xqos_wire::analysis::images::CodecFigures;
use xqos_wire::analysis::proxied::figures::ProxyFigures;
use xqos_wire::report::{
    ConnectionReport, Figures, PhaseFigures, Report, Session, StartupFigures, StreamFigures, WaitFigures,
};
use xqos_wire::predict::{Prediction, StartPrediction};

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

fn section(title: &str, table: &Table) -> String {
    format!("\n{title}\n{}", table.render(xqos_sys::terminal_columns()))
}

fn connections(list: &[ConnectionReport]) -> String {
    let mut table = Table::new(vec![Column::number("", 0), Column::words("CLIENT", 0).elastic()])
        .numbers(0, &["SECONDS", "IDLE", "NETWORK", "RECEIVER", "REPLIES", "DELAY", "ROUND TRIPS", "AVOIDABLE"])
        .numbers(1, &["BYTES"]);
    for (place, connection) in list.iter().enumerate() {
        let figures = &connection.figures;
        let mut row = vec![(place + 1).to_string(), client(connection)];
        row.extend(
            [
                connection.seconds,
                figures.idle_s,
                figures.blocked_network_s,
                figures.blocked_receiver_s,
                figures.reply_wait_s,
                figures.network_delay_s,
            ]
            .map(seconds),
        );
        row.extend([figures.round_trips, figures.avoidable, figures.bytes].map(|count| count.to_string()));
        table.row(row);
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
    let mut table = Table::new(vec![Column::number("", 0), Column::words("STREAM", 0)])
        .numbers(2, &["PACKETS"])
        .numbers(1, &["BYTES"])
        .numbers(3, &["RESENT"])
        .numbers(0, &["IDLE", "LINK", "WINDOW", "RECEIVER"])
        .numbers(4, &["LINK kB/s"]);
    for (place, connection) in list.iter().enumerate() {
        for (name, stream) in [("requests", &connection.streams.requests), ("replies", &connection.streams.replies)] {
            let StreamFigures { packets, bytes, retransmitted_bytes, .. } = stream;
            let mut row = vec![(place + 1).to_string(), name.to_owned()];
            row.extend([packets, bytes, retransmitted_bytes].map(ToString::to_string));
            row.extend(
                [stream.idle_s, stream.blocked_link_s, stream.blocked_window_s, stream.blocked_receiver_s].map(seconds),
            );
            row.push(stream.link_bytes_per_s.map(|rate| (rate / 1000).to_string()).unwrap_or_default());
            table.row(row);
        }
    }
    section("Streams, in seconds: why the sender could not send", &table)
}

fn waits(list: &[WaitFigures]) -> String {
    let mut table = Table::new(vec![Column::words("REQUEST", 0).elastic()])
        .numbers(0, &["ROUND TRIPS", "SECONDS", "AVOIDABLE"])
        .column(Column::words("WHY", 1));
    for wait in list.iter().take(MAX_ROWS) {
        let why = wait.reasons.iter().max_by_key(|(_, count)| **count).map_or("", |(reason, _)| reason.advice());
        let (count, avoidable) = (wait.count.to_string(), wait.avoidable.to_string());
        table.row(vec![wait.name.clone(), count, seconds(wait.seconds), avoidable, why.to_owned()]);
    }
    section(&heading("Waits, by request", list.len()), &table)
}

fn heading(title: &str, count: usize) -> String {
    if count > MAX_ROWS { format!("{title} (the first {MAX_ROWS} of {count})") } else { title.to_owned() }
}

fn patterns(figures: &Figures) -> String {
    let mut table = Table::new(vec![Column::words("SENT BEFORE THE WAIT", 0).elastic()])
        .numbers(0, &["ROUND TRIPS", "IN A ROW", "SECONDS", "AVOIDABLE"]);
    for pattern in figures.patterns.iter().take(MAX_ROWS) {
        let [count, in_a_row, avoidable] =
            [pattern.count, pattern.in_a_row, pattern.avoidable].map(|count| count.to_string());
        table.row(vec![pattern.pattern.clone(), count, in_a_row, seconds(pattern.seconds), avoidable]);
    }
    section(&heading("Waits, by calling pattern", figures.patterns.len()), &table)
}

fn messages(figures: &Figures) -> String {
    let kinds: [(&str, &BTreeMap<String, MessageSum>); 4] = [
        ("request", &figures.requests),
        ("reply", &figures.replies),
        ("event", &figures.events),
        ("error", &figures.errors),
    ];
    let mut list: Vec<_> = kinds
        .into_iter()
        .flat_map(|(kind, names)| names.iter().map(move |(name, tally)| (kind, name, tally)))
        .collect();
    list.sort_by_key(|(.., tally)| std::cmp::Reverse(tally.bytes));
    let mut table = Table::new(vec![Column::words("KIND", 0), Column::words("NAME", 0).elastic()])
        .numbers(0, &["COUNT", "BYTES", "MEAN"]);
    for (kind, name, tally) in list.iter().take(MAX_ROWS) {
        let mean = tally.bytes as f64 / tally.count.max(1) as f64;
        let [count, bytes] = [tally.count, tally.bytes].map(|count| count.to_string());
        table.row(vec![(*kind).to_owned(), (*name).clone(), count, bytes, format!("{mean:.0}")]);
    }
    section(&heading("Messages", list.len()), &table)
}

fn bandwidth(figures: &Figures) -> String {
    let total = figures.bandwidth.values().sum();
    let mut table = Table::new(vec![Column::words("USED FOR", 0)]).numbers(0, &["BYTES", "SHARE"]);
    for (name, bytes) in &figures.bandwidth {
        table.row(vec![name.clone(), bytes.to_string(), percent(*bytes, total)]);
    }
    section("Bandwidth", &table)
}

fn compression(session: &Session) -> String {
    let mut table =
        Table::new(vec![Column::words("BYTES OF", 0)]).numbers(1, &["SAMPLED"]).numbers(0, &["ZSTD -3", "SSH -C"]);
    for (name, sample) in &session.compression {
        let [zstd, deflate] = [sample.zstd, sample.deflate].map(|left| format!("{:.1}%", 100.0 * left));
        table.row(vec![(*name).to_owned(), sample.sampled_bytes.to_string(), zstd, deflate]);
    }
    section("Compression: what remains", &table)
}

/// How well images and glyphs compress, and how fast.
pub fn images(list: &[CodecFigures]) -> String {
    let mut table = Table::new(vec![Column::words("OF", 0), Column::words("CODEC", 0)])
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
    let mut table = Table::new(vec![Column::words("START-UP UNTIL", 0)])
        .numbers(0, &["SECONDS", "REPLIES", "BLOCKED", "CLIENT", "ROUND TRIPS", "AVOIDABLE"])
        .numbers(1, &["REQUESTS", "BYTES"])
        .column(Column::words("WAITED FOR", 0).elastic());
    let quiet = if startup.is_quiet { "quiet" } else { "the end" };
    let phases = startup.window.iter().map(|phase| ("the window", phase)).chain([(quiet, &startup.quiet)]);
    phases.for_each(|(name, phase)| table.row(phase_cells(name, phase)));
    section(&format!("Connection {title}"), &table)
}

fn phase_cells(name: &str, phase: &PhaseFigures) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    row.extend([phase.seconds, phase.reply_wait_s, phase.blocked_s, phase.client_s].map(seconds));
    row.extend([phase.round_trips, phase.avoidable, phase.requests, phase.bytes].map(|count| count.to_string()));
    let waited: Vec<String> =
        phase.waits.iter().take(3).map(|wait| format!("{} {}", wait.name, seconds(wait.seconds))).collect();
    row.push(waited.join(", "));
    row
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

fn changes(list: &[Change]) -> Table {
    let mut table = Table::new(vec![Column::words("WHAT", 0).elastic()])
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
    let mut table =
        Table::new(vec![Column::words("REQUEST", 0).elastic()]).numbers(0, &["COUNT", "UNUSED BYTES", "NOT ZERO"]);
    for (name, unused) in list.iter().take(MAX_ROWS) {
        let [count, bytes, not_zero] = [unused.count, unused.bytes, unused.not_zero].map(|count| count.to_string());
        table.row(vec![(*name).clone(), count, bytes, not_zero]);
    }
    let text = section(&heading("Unused bytes", list.len()), &table);
    if figures.repeated.is_empty() { text } else { text + &repeated(figures) }
}

fn repeated(figures: &Figures) -> String {
    let mut table =
        Table::new(vec![Column::words("REQUEST", 0).elastic()]).numbers(0, &["SHAPES", "COORDINATES", "REPEATED"]);
    for (name, repeated) in &figures.repeated {
        let share = percent(repeated.repeated, repeated.coordinates);
        table.row(vec![name.clone(), repeated.shapes.to_string(), repeated.coordinates.to_string(), share]);
    }
    section("Coordinates that occur in the preceding shape of the request", &table)
}

/// Formats the round trips that remain behind a proxy, by request.
fn proxy(figures: &ProxyFigures) -> String {
    let mut table =
        Table::new(vec![Column::words("REQUEST", 0).elastic()]).numbers(0, &["ROUND TRIPS", "LEFT", "SAVED s"]);
    let sum = ("all", figures.waits, figures.left, figures.saving_s);
    let names = figures.names.iter().map(|left| (left.name.as_str(), left.waits, left.left, left.saving_s));
    for (name, waits, left, saving_s) in [sum].into_iter().chain(names.take(MAX_ROWS)) {
        table.row(vec![name.to_owned(), waits.to_string(), left.to_string(), seconds(saving_s)]);
    }
    let title = if figures.proxy == "batch" { "With requests for many answers" } else { "Behind a proxy" };
    section(&heading(&format!("{title} ({})", figures.proxy), figures.names.len()), &table)
}

/// Formats the predicted starts over simulated links; empty without --predict.
fn predictions(report: &Report) -> String {
    let Some(first) = report.predictions.first() else { return String::new() };
    let mut table = Table::new(vec![Column::words("LINK", 0), Column::words("ONE WAY", 0)]);
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
