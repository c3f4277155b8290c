// SPDX-License-Identifier: MIT
//! Formats the report that is printed at the end.

use super::run::ProxyReport;
use crate::program::counted;
use xqos_near::NearReport;
use xqos_near::report::Count;
use xqos_text::time::of_ns;

/// Maximum number of requests that are listed by name.
const MAX_NAMED: usize = 12;

pub fn lines(report: &ProxyReport) -> Vec<String> {
    let Count { asked, answered, left, saved } = report.counts.total();
    let mut lines = vec![format!(
        "{}: {asked} queries, {answered} answered locally; {left} round trips left, {saved} saved{}",
        counted(report.counts.connections, "connection"),
        match report.counts.round_trip_ns {
            Some(ns) => format!(" ({} at {} each)", of_ns(report.counts.saved_ns()), of_ns(ns)),
            None => String::new(),
        }
    )];
    let mut left: Vec<_> = report.counts.by_request.iter().filter(|(_, count)| count.left > 0).collect();
    left.sort_by_key(|(_, count)| std::cmp::Reverse(count.left));
    let named: Vec<String> = left
        .iter()
        .take(MAX_NAMED)
        .map(|(opcodes, count)| format!("{} {}", count.left, name(report, **opcodes)))
        .collect();
    if !named.is_empty() {
        lines.push(format!("remaining: {}{}", named.join(", "), if left.len() > MAX_NAMED { ", ..." } else { "" }));
    }
    lines
}

/// The result of `--verify`.
pub fn verdict(report: &NearReport) -> String {
    match report.differences {
        0 => format!("{} answers were compared with the server's, and none differed", report.confirmed),
        count => format!("{count} of {} answers differed from the server's", count + report.confirmed),
    }
}

fn name(report: &ProxyReport, opcodes: (u8, u8)) -> &str {
    report.names.iter().find(|(known, _)| *known == opcodes).map_or("unknown", |(_, name)| name)
}
