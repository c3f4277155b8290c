// SPDX-License-Identifier: MIT
//! Formats all displays as one page of metrics. The metrics of servers and clients are fields of [`crate::sample`]; the
//! others are defined here.

use super::account::{Labels, Totals};
use super::attached::TracedUsage;
use super::format::{MetricsFormat, MetricsPage, escaped};
use super::{Display, DisplayState, Exporter};
use crate::field::{Metric, MetricKind, metrics};
use crate::sample::{CLIENT, SERVER};
use rustix::time::{ClockId, clock_gettime};
use xqos_text::escape::printable;

/// Histogram of a client's waits, and their sum.
const WAITS: Metric =
    Metric { name: "xqos_client_wait_seconds", kind: MetricKind::Histogram, help: "times from arrival to dispatch" };
const UP: Metric = gauge("xqos_display_up", "0 if the X server did not answer in time or refused the query, else 1.");
const SERVED: Metric = gauge("xqos_display_served", "1 if the X server runs xqos; only for servers with clients.");
const INFO: Metric = gauge("xqos_display_info", "Always 1; the labels are program, user and policy of the X server.");
const TOOK: Metric = gauge("xqos_display_answer_seconds", "Time that the X server took to answer.");
const CONNECTIONS: Metric = gauge("xqos_client_connections", "Connections of a user's program.");
const OBSERVED: Metric = counter("xqos_attached_observed_seconds", "Time for which a server without xqos was watched.");
const BUSY: Metric = counter("xqos_attached_busy_seconds", "Server time used while the server was watched.");
const CALLS: Metric = counter("xqos_attached_reads", "Reads by the server while it was watched.");
const LONGEST: Metric = gauge("xqos_attached_longest_seconds", "Longest uninterrupted work in the last scrape.");
const LOST: Metric =
    counter("xqos_attached_lost_events", "Lost events of the kernel's trace; busy seconds are too low.");
const QUERY_TIME: Metric = gauge("xqos_exporter_look_seconds", "Time that it took to query all X servers.");
const CPU: Metric = counter("xqos_exporter_cpu_seconds", "Processor time of the exporter.");

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Gauge, help }
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Counter, help }
}

pub fn render(exporter: &Exporter, format: MetricsFormat) -> String {
    let mut page = MetricsPage::new(format);
    // A display whose socket is gone has no metrics.
    let displays: Vec<(String, &Display)> =
        exporter.displays.iter().map(|(number, known)| (format!("display=\":{number}\""), known)).collect();
    write_displays(&mut page, &displays);
    write_servers(&mut page, &displays);
    write_clients(&mut page, &displays);
    if exporter.options.attach {
        write_attached(&mut page, &displays);
        single(&mut page, &LOST, exporter.lost_events as f64);
    }
    single(&mut page, &QUERY_TIME, exporter.took.as_secs_f64());
    single(&mut page, &CPU, processor_seconds());
    page.finish()
}

type Displays<'a> = [(String, &'a Display)];

fn write_displays(page: &mut MetricsPage, displays: &Displays) {
    let flag = |is: bool| f64::from(u8::from(is));
    family(page, &UP, displays, |known| Some(flag(known.is_up())));
    family(page, &SERVED, displays, |known| match known.state {
        DisplayState::Served => Some(1.0),
        DisplayState::Stock => Some(0.0),
        DisplayState::Idle | DisplayState::Failed(_) => None,
    });
    family(page, &TOOK, displays, |known| match known.state {
        DisplayState::Served | DisplayState::Stock => Some(known.took.as_secs_f64()),
        DisplayState::Idle | DisplayState::Failed(_) => None,
    });
    page.begin(&INFO);
    for (display, known) in displays {
        let Some(process) = &known.process else { continue };
        let policy = known.server.as_ref().map_or("", |server| server.info.policy.name());
        let (program, uid) = (escaped(&printable(&process.program)), process.peer.uid);
        page.value(&INFO, &format!("{display},server=\"{program}\",uid=\"{uid}\",policy=\"{policy}\""), 1.0);
    }
}

fn write_servers(page: &mut MetricsPage, displays: &Displays) {
    for (metric, field) in metrics(SERVER) {
        let is_current = |known: &Display| metric.kind == MetricKind::Counter || known.is_up();
        family(page, &metric, displays, |known| {
            known.server.as_ref().filter(|_| is_current(known)).and_then(|server| field.number_of(server))
        });
    }
}

fn write_clients(page: &mut MetricsPage, displays: &Displays) {
    let programs: Vec<(String, &Display, &Totals)> = displays
        .iter()
        .filter_map(|(display, known)| Some((display, *known, known.account.as_ref()?)))
        .flat_map(|(display, known, account)| {
            account.totals().iter().map(move |(labels, totals)| (labels.with(display), known, totals))
        })
        .collect();
    page.begin(&CONNECTIONS);
    for (labels, _, totals) in programs.iter().filter(|(_, known, _)| known.is_up()) {
        page.value(&CONNECTIONS, labels, totals.connections as f64);
    }
    for (metric, _) in metrics(CLIENT) {
        page.begin(&metric);
        // Gauges of a server that does not answer would be out of date, so only counters are written.
        for (labels, _, totals) in
            programs.iter().filter(|(_, known, _)| metric.kind == MetricKind::Counter || known.is_up())
        {
            if let Some(&value) = totals.values.get(metric.name) {
                page.value(&metric, labels, value);
            }
        }
    }
    page.begin(&WAITS);
    for (labels, _, totals) in &programs {
        page.waits(&WAITS, labels, &totals.waits, totals.waited_ns as f64 / 1e9);
    }
}

fn write_attached(page: &mut MetricsPage, displays: &Displays) {
    let seconds = |ns: u64| ns as f64 / 1e9;
    family(page, &OBSERVED, displays, |known| known.watched.as_ref().map(|watched| seconds(watched.observed_ns)));
    let each = |page: &mut MetricsPage, head: &Metric, value: &dyn Fn(&TracedUsage) -> Option<f64>| {
        page.begin(head);
        for (display, watched) in
            displays.iter().filter_map(|(display, known)| Some((display, known.watched.as_ref()?)))
        {
            for (labels, used) in &watched.totals.all {
                if let Some(value) = value(used) {
                    page.value(head, &labels.with(display), value);
                }
            }
        }
    };
    each(page, &BUSY, &|used| Some(seconds(used.busy_ns)));
    each(page, &CALLS, &|used| Some(used.calls as f64));
    each(page, &LONGEST, &|used| used.longest_ns.map(seconds));
}

fn family(page: &mut MetricsPage, head: &Metric, displays: &Displays, value: impl Fn(&Display) -> Option<f64>) {
    page.begin(head);
    for (labels, known) in displays {
        if let Some(value) = value(known) {
            page.value(head, labels, value);
        }
    }
}

fn single(page: &mut MetricsPage, head: &Metric, value: f64) {
    page.begin(head);
    page.value(head, "", value);
}

impl Labels {
    /// The labels in Prometheus syntax, preceded by the display.
    fn with(&self, display: &str) -> String {
        format!("{display},user=\"{}\",program=\"{}\"", escaped(&self.user), escaped(&self.program))
    }
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
