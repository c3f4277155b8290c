// SPDX-License-Identifier: MIT
//! A report as CSV: one line per name, for each connection and for the session.
//!
//! `connection` is a number, starting at 1, or `session`. `table` is requests, replies, events, errors, waits,
//! patterns, bandwidth, unused or states. Columns that a table does not have are empty.

use super::{Figures, Report};
use crate::analysis::figure::{Declared, Unit};
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
        names.iter().for_each(|(name, sum)| row(text, connection, table, name, sum));
    }
    figures.waits.iter().for_each(|wait| row(text, connection, "waits", &wait.name, wait));
    figures.patterns.iter().for_each(|pattern| row(text, connection, "patterns", &pattern.pattern, pattern));
    for (name, bytes) in &figures.bandwidth {
        let _ = writeln!(text, "{connection},bandwidth,{name},,{bytes},,");
    }
    figures.unused.iter().for_each(|(name, unused)| row(text, connection, "unused", name, unused));
    for figure in Figures::FIGURES.iter().filter(|figure| !figure.state.is_empty()) {
        let seconds = (figure.of)(figures).unwrap_or_default();
        let _ = writeln!(text, "{connection},states,{},,,{seconds:.6},", figure.state);
    }
}

/// Writes the figures whose keys are columns.
fn row<T: Declared>(text: &mut String, connection: &str, table: &str, name: &str, of: &T) {
    let _ = write!(text, "{connection},{table},{}", quoted(name));
    for key in HEADER.split(',').skip(3) {
        let figure = T::figure(key).and_then(|figure| Some((figure.unit(), (figure.of)(of)?)));
        let _ = match figure {
            None => write!(text, ","),
            Some((Unit::Seconds, value)) => write!(text, ",{value:.6}"),
            Some((_, value)) => write!(text, ",{value}"),
        };
    }
    text.push('\n');
}

/// Quotes a field that contains a comma, a quote or a line break (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
