// SPDX-License-Identifier: MIT
//! The figures in words that Prometheus knows: each metric's name, unit and help is here, once.

mod page;

pub use page::{Format, Head, Kind, Page, escaped};

use crate::sample::Server;
use xqos_abi::{ClientEntry, entry_flag};

/// A figure of each `T`.
pub struct Metric<T> {
    pub head: Head,
    pub together: Together,
    pub value: fn(&T) -> Option<f64>,
}

/// How figures of several clients become one of their program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    Sum,
    Greatest,
}

pub const SERVER: [Metric<Server>; 10] = [
    gauge("xqos_clients", "", "Connected clients.", |server| Some(server.clients as f64)),
    gauge("xqos_clients_limit", "", "How many clients the server can have.", |server| {
        (server.clients_limit > 0).then_some(f64::from(server.clients_limit))
    }),
    gauge("xqos_armed", "", "1 while xqos schedules, 0 after it stepped aside.", |server| {
        Some(f64::from(u8::from(server.aside.is_none())))
    }),
    counter("xqos_server_busy_seconds", "seconds", "Server time spent for clients.", |server| Some(server.busy_s)),
    counter("xqos_server_cpu_seconds", "seconds", "Processor time of the server's thread.", |server| {
        Some(server.cpu_s)
    }),
    counter("xqos_early_ends", "", "Slices ended early for a better client.", |server| Some(server.early_ends as f64)),
    gauge("xqos_utilization_admitted", "", "Sum of budget over period of all reservations.", |server| {
        Some(server.utilization_admitted)
    }),
    gauge("xqos_utilization_limit", "", "What may be admitted.", |server| Some(server.utilization_limit)),
    gauge(
        "xqos_blocking_seconds",
        "seconds",
        "Longest time for which a request kept a reserved client waiting lately.",
        |server| Some(server.blocking_ms / 1e3),
    ),
    gauge("xqos_reservations", "", "Clients with a reservation.", |server| Some(f64::from(server.reservations))),
];

pub const CLIENT: [Metric<ClientEntry>; 11] = [
    counter("xqos_client_server_seconds", "seconds", "Server time used.", |client| {
        Some(seconds(client.server_time_ns))
    }),
    counter("xqos_client_requests", "", "Requests served.", |client| Some(client.requests as f64)),
    counter("xqos_client_waited_seconds", "seconds", "Time from arrival to dispatch, in sum.", |client| {
        Some(seconds(client.waited_ns))
    }),
    counter("xqos_client_grabs", "", "Server grabs.", |client| Some(f64::from(client.grabs))),
    counter("xqos_client_long_grabs", "", "Server grabs of a second and more.", |client| {
        Some(f64::from(client.long_grabs))
    }),
    counter("xqos_client_grabbed_seconds", "seconds", "Time for which it held the server grab.", |client| {
        Some(seconds(client.grabbed_ns))
    }),
    counter("xqos_client_depletions", "", "Times its budget was used up.", |client| Some(f64::from(client.depletions))),
    counter("xqos_client_misses", "", "Deadlines missed with budget left and work waiting.", |client| {
        Some(f64::from(client.misses))
    }),
    among("xqos_client_longest_wait_seconds", "Longest time from arrival to dispatch.", Together::Greatest, |client| {
        Some(seconds(client.longest_wait_ns))
    }),
    among("xqos_client_longest_request_seconds", "Longest request seen.", Together::Greatest, |client| {
        (client.longest_request != 0).then(|| seconds(client.longest_request_ns))
    }),
    among("xqos_client_reserved_ratio", "Budget over period of the reservation.", Together::Sum, |client| {
        let is_reserved = client.flags & entry_flag::RESERVED != 0;
        is_reserved.then(|| f64::from(client.budget_us) / f64::from(client.period_us.max(1)))
    }),
];

/// The waits of a client by their length, and their sum.
pub const WAITS: Head = Head {
    name: "xqos_client_wait_seconds",
    kind: Kind::Histogram,
    unit: "seconds",
    help: "Times from arrival to dispatch.",
};

const fn counter<T>(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<f64>,
) -> Metric<T> {
    Metric { head: Head { name, kind: Kind::Counter, unit, help }, together: Together::Sum, value }
}

const fn gauge<T>(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<f64>,
) -> Metric<T> {
    Metric { head: Head { name, kind: Kind::Gauge, unit, help }, together: Together::Greatest, value }
}

/// A gauge of clients.
const fn among(
    name: &'static str,
    help: &'static str,
    together: Together,
    value: fn(&ClientEntry) -> Option<f64>,
) -> Metric<ClientEntry> {
    let unit = if ends_with(name, b"_seconds") { "seconds" } else { "" };
    Metric { head: Head { name, kind: Kind::Gauge, unit, help }, together, value }
}

const fn ends_with(name: &str, end: &[u8]) -> bool {
    let name = name.as_bytes();
    let mut at = 0;
    while at < end.len() {
        if name.len() < end.len() || name[name.len() - end.len() + at] != end[at] {
            return false;
        }
        at += 1;
    }
    true
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_end_in_their_unit() {
        let heads =
            || SERVER.iter().map(|metric| metric.head).chain(CLIENT.iter().map(|metric| metric.head)).chain([WAITS]);
        for Head { name, unit, .. } in heads() {
            assert!(unit.is_empty() || name.ends_with(&format!("_{unit}")), "{name} is in {unit}");
            assert_eq!(name.ends_with("_seconds"), unit == "seconds", "{name}");
        }
        let mut names: Vec<&str> = heads().map(|head| head.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SERVER.len() + CLIENT.len() + 1);
    }
}
