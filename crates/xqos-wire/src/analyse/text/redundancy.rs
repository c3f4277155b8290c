// SPDX-License-Identifier: MIT
//! Formats tables of the bytes of requests that say nothing.

use super::{MAX_ROWS, heading, section};
use xqos_cli::table::{Column, Table};
use xqos_wire::analysis::report::Figures;

/// Formats unused bytes and repeated coordinates; the latter only if a program drew such shapes.
pub fn tables(figures: &Figures) -> String {
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
        let share = format!("{:.1}%", 100.0 * repeated.repeated as f64 / repeated.coordinates.max(1) as f64);
        table.row(vec![name.clone(), repeated.shapes.to_string(), repeated.coordinates.to_string(), share]);
    }
    section("Coordinates that occur in the preceding shape of the request", &table)
}
