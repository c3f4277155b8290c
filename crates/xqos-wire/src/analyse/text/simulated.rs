// SPDX-License-Identifier: MIT
//! Formats tables of simulations: a capture's waits behind a proxy, and its starts over other links.

use super::{MAX_ROWS, heading, seconds, section};
use xqos_cli::table::{Column, Table};
use xqos_wire::analysis::proxied::figures::ProxyFigures;
use xqos_wire::analysis::report::Report;
use xqos_wire::analysis::spans;
use xqos_wire::predict::StartPrediction;
use xqos_wire::predict::figures::Prediction;

/// Formats the round trips that remain behind a proxy, by request.
pub fn proxy(figures: &ProxyFigures) -> String {
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
pub fn predictions(report: &Report) -> String {
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
        [Some(start), proxy.as_ref()].into_iter().flatten().for_each(|start| row.extend(cells(start)));
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

fn cells(start: &StartPrediction) -> [String; 5] {
    let [elapsed, delay, replies] =
        [start.elapsed_ns, start.delay_ns, start.wait_ns].map(|ns| seconds(spans::seconds(ns)));
    [elapsed, delay, replies, start.round_trips.to_string(), start.link_bytes.iter().sum::<u64>().to_string()]
}
