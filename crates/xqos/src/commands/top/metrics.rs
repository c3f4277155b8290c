//! The figures in the format of OpenMetrics 1.0, for Prometheus. Each metric is described once, here.

use crate::sample::{Client, Sample, Server};
use std::fmt::Write;

enum Kind {
    Counter,
    Gauge,
}

struct Metric<T> {
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<f64>,
}

const SERVER: [Metric<Server>; 9] = [
    gauge("xqos_clients", "", "Connected clients.", |server| Some(server.clients as f64)),
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

const CLIENT: [Metric<Client>; 12] = [
    counter("xqos_client_server_seconds", "seconds", "Server time used.", |client| Some(client.server_time_ms / 1e3)),
    counter("xqos_client_requests", "", "Requests served.", |client| Some(client.requests as f64)),
    counter("xqos_client_waited_seconds", "seconds", "Time from arrival to dispatch, in sum.", |client| {
        Some(client.waited_ms / 1e3)
    }),
    gauge("xqos_client_longest_wait_seconds", "seconds", "Longest time from arrival to dispatch.", |client| {
        Some(client.longest_wait_ms / 1e3)
    }),
    gauge("xqos_client_longest_request_seconds", "seconds", "Longest request seen.", |client| {
        client.longest_request.as_ref().map(|request| request.ms / 1e3)
    }),
    counter("xqos_client_grabs", "", "Server grabs.", |client| Some(f64::from(client.grabs))),
    counter("xqos_client_grabbed_seconds", "seconds", "Time for which it held the server grab.", |client| {
        Some(client.grabbed_ms / 1e3)
    }),
    counter("xqos_client_depletions", "", "Times its budget was used up.", |client| Some(f64::from(client.depletions))),
    counter("xqos_client_misses", "", "Deadlines missed with budget left and work waiting.", |client| {
        Some(f64::from(client.misses))
    }),
    gauge("xqos_client_budget_seconds", "seconds", "Reserved in each period.", |client| {
        client.reservation.as_ref().map(|reserved| reserved.budget_ms / 1e3)
    }),
    gauge("xqos_client_period_seconds", "seconds", "Period of the reservation.", |client| {
        client.reservation.as_ref().map(|reserved| reserved.period_ms / 1e3)
    }),
    gauge("xqos_client_sync_priority", "", "Priority set through the SYNC extension.", |client| {
        Some(f64::from(client.sync_priority))
    }),
];

const fn counter<T>(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<f64>,
) -> Metric<T> {
    Metric { name, kind: Kind::Counter, unit, help, value }
}

const fn gauge<T>(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<f64>,
) -> Metric<T> {
    Metric { name, kind: Kind::Gauge, unit, help, value }
}

impl<T> Metric<T> {
    fn describe(&self, out: &mut String) {
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let _ = writeln!(out, "# TYPE {} {kind}", self.name);
        if !self.unit.is_empty() {
            let _ = writeln!(out, "# UNIT {} {}", self.name, self.unit);
        }
        let _ = writeln!(out, "# HELP {} {}", self.name, self.help);
    }

    fn write(&self, out: &mut String, labels: &str, of: &T) {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge => "",
        };
        if let Some(value) = (self.value)(of) {
            let _ = writeln!(out, "{}{suffix}{labels} {value}", self.name);
        }
    }
}

/// A whole exposition.
pub fn text(sample: &Sample) -> String {
    let mut out = String::new();
    for metric in &SERVER {
        metric.describe(&mut out);
        metric.write(&mut out, "", &sample.server);
    }
    for metric in &CLIENT {
        metric.describe(&mut out);
        for client in &sample.clients {
            metric.write(&mut out, &labels(client), client);
        }
    }
    out.push_str("# EOF\n");
    out
}

fn labels(client: &Client) -> String {
    let pid = client.pid.map_or_else(String::new, |pid| pid.to_string());
    format!("{{client=\"{}\",pid=\"{pid}\",program=\"{}\"}}", client.client, escaped(&client.name))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_end_in_their_unit() {
        let mut names: Vec<&str> = SERVER.iter().map(|metric| metric.name).collect();
        names.extend(CLIENT.iter().map(|metric| metric.name));
        for (name, unit) in SERVER.iter().map(|m| (m.name, m.unit)).chain(CLIENT.iter().map(|m| (m.name, m.unit))) {
            assert!(unit.is_empty() || name.ends_with(&format!("_{unit}")), "{name} is in {unit}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SERVER.len() + CLIENT.len());
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped("a\"b\\c\n"), "a\\\"b\\\\c\\n");
    }
}
