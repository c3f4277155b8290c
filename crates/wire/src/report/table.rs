// SPDX-License-Identifier: MIT
//! A report as CSV: one line per name, for each connection and for the session.
//!
//! `connection` is a number, starting at 1, or `session`. `table` is requests, replies, events, errors, waits,
//! patterns, bandwidth, unused or states. Columns that a table does not have are empty.

use super::{Figures, Report};
use std::fmt::Write;

pub const HEADER: &str = "connection,table,name,count,bytes,seconds,avoidable";

pub fn csv(report: &Report) -> String {
    let mut text = format!("{HEADER}\n");
    for (place, connection) in report.connections.iter().enumerate() {
        rows(&mut text, &(place + 1).to_string(), &connection.figures);
    }
    rows(&mut text, "session", &report.session.figures);
    text
}

fn rows(text: &mut String, connection: &str, figures: &Figures) {
    let kinds = [
        ("requests", &figures.requests),
        ("replies", &figures.replies),
        ("events", &figures.events),
        ("errors", &figures.errors),
    ];
    for (table, names) in kinds {
        for (name, tally) in names {
            let _ = writeln!(text, "{connection},{table},{},{},{},,", quoted(name), tally.count, tally.bytes);
        }
    }
    for wait in &figures.waits {
        let (count, seconds, avoidable) = (wait.count, wait.seconds, wait.avoidable);
        let _ = writeln!(text, "{connection},waits,{},{count},,{seconds:.6},{avoidable}", quoted(&wait.name));
    }
    for pattern in &figures.patterns {
        let (count, seconds, avoidable) = (pattern.count, pattern.seconds, pattern.avoidable);
        let _ = writeln!(text, "{connection},patterns,{},{count},,{seconds:.6},{avoidable}", quoted(&pattern.pattern));
    }
    for (name, bytes) in &figures.bandwidth {
        let _ = writeln!(text, "{connection},bandwidth,{name},,{bytes},,");
    }
    for (name, unused) in &figures.unused {
        let _ = writeln!(text, "{connection},unused,{},{},{},,", quoted(name), unused.count, unused.bytes);
    }
    for (name, seconds) in [
        ("idle", figures.idle_s),
        ("blocked by network", figures.blocked_network_s),
        ("blocked by receiver", figures.blocked_receiver_s),
        ("waiting for replies", figures.reply_wait_s),
        ("network delay", figures.network_delay_s),
    ] {
        let _ = writeln!(text, "{connection},states,{name},,,{seconds:.6},");
    }
}

/// Quotes a field that contains a comma, a quote or a line break (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
