// SPDX-License-Identifier: MIT
//! A page of metrics in the OpenMetrics 1.0 format or in the older text format of Prometheus.

use crate::field::{Metric, MetricKind};
use std::fmt::Write;
use xqos_core::WAIT_BOUNDS_NS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    OpenMetrics,
    /// The default format; `promtool check metrics` reads it.
    Text,
}

impl MetricsFormat {
    /// Selects the format by the Accept header.
    pub fn accepted(accept: &str) -> MetricsFormat {
        if accept.contains("application/openmetrics-text") { MetricsFormat::OpenMetrics } else { MetricsFormat::Text }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            MetricsFormat::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

#[derive(Debug)]
pub struct MetricsPage {
    out: String,
    format: MetricsFormat,
}

impl MetricsPage {
    pub fn new(format: MetricsFormat) -> MetricsPage {
        MetricsPage { out: String::new(), format }
    }

    /// Writes the head of a metric. All values of the metric must follow before the next head.
    pub fn begin(&mut self, head: &Metric) {
        let kind = match head.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge | MetricKind::Sum => "gauge",
            MetricKind::Histogram => "histogram",
        };
        // The text format has no metric families; its head names the series.
        let is_series = head.kind == MetricKind::Counter && self.format == MetricsFormat::Text;
        let name = format!("{}{}", head.name, if is_series { "_total" } else { "" });
        let _ = writeln!(self.out, "# TYPE {name} {kind}");
        if head.name.ends_with("_seconds") && self.format == MetricsFormat::OpenMetrics {
            let _ = writeln!(self.out, "# UNIT {name} seconds");
        }
        let _ = writeln!(self.out, "# HELP {name} {}", head.help);
    }

    /// `labels` has the form `display=":7",user="me"`, or is empty.
    pub fn value(&mut self, head: &Metric, labels: &str, value: f64) {
        let suffix = if head.kind == MetricKind::Counter { "_total" } else { "" };
        self.line(head.name, suffix, &[labels], value);
    }

    pub fn waits(&mut self, head: &Metric, labels: &str, counts: &[u64; WAIT_BOUNDS_NS.len() + 1], sum_seconds: f64) {
        let mut below = 0;
        for (&bound_ns, count) in WAIT_BOUNDS_NS.iter().zip(counts) {
            below += count;
            let bound = format!("le=\"{:?}\"", bound_ns as f64 / 1e9);
            self.line(head.name, "_bucket", &[labels, &bound], below as f64);
        }
        let all = counts.iter().sum::<u64>() as f64;
        self.line(head.name, "_bucket", &[labels, "le=\"+Inf\""], all);
        self.line(head.name, "_sum", &[labels], sum_seconds);
        self.line(head.name, "_count", &[labels], all);
    }

    fn line(&mut self, name: &str, suffix: &str, labels: &[&str], value: f64) {
        let out = &mut self.out;
        out.push_str(name);
        out.push_str(suffix);
        let mut before = '{';
        for label in labels.iter().filter(|label| !label.is_empty()) {
            out.push(before);
            out.push_str(label);
            before = ',';
        }
        if before == ',' {
            out.push('}');
        }
        let _ = writeln!(out, " {value}");
    }

    pub fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }
}

pub fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTER: Metric = Metric { name: "a_seconds", kind: MetricKind::Counter, help: "Help." };

    fn page(format: MetricsFormat, labels: &str) -> String {
        let mut page = MetricsPage::new(format);
        page.begin(&COUNTER);
        page.value(&COUNTER, labels, 1.5);
        page.finish()
    }

    #[test]
    fn counters_end_in_total_in_both_formats() {
        assert_eq!(
            page(MetricsFormat::OpenMetrics, ""),
            "# TYPE a_seconds counter\n# UNIT a_seconds seconds\n# HELP a_seconds Help.\na_seconds_total 1.5\n# EOF\n"
        );
        assert_eq!(
            page(MetricsFormat::Text, "b=\"c\""),
            "# TYPE a_seconds_total counter\n# HELP a_seconds_total Help.\na_seconds_total{b=\"c\"} 1.5\n"
        );
    }

    #[test]
    fn histogram_buckets_are_cumulative() {
        let head = Metric { kind: MetricKind::Histogram, ..COUNTER };
        let mut page = MetricsPage::new(MetricsFormat::Text);
        page.waits(&head, "b=\"c\"", &[3, 0, 0, 0, 1, 0, 0, 2], 7.25);
        let said = page.finish();
        for line in [
            "a_seconds_bucket{b=\"c\",le=\"0.001\"} 3",
            "a_seconds_bucket{b=\"c\",le=\"0.05\"} 3",
            "a_seconds_bucket{b=\"c\",le=\"0.1\"} 4",
            "a_seconds_bucket{b=\"c\",le=\"1.0\"} 4",
            "a_seconds_bucket{b=\"c\",le=\"+Inf\"} 6",
            "a_seconds_sum{b=\"c\"} 7.25",
            "a_seconds_count{b=\"c\"} 6",
        ] {
            assert!(said.lines().any(|is| is == line), "{line}: {said}");
        }
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped("a\"b\\c\n"), "a\\\"b\\\\c\\n");
    }

    #[test]
    fn the_accept_header_selects_the_format() {
        let prometheus = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(MetricsFormat::accepted(prometheus), MetricsFormat::OpenMetrics);
        assert_eq!(MetricsFormat::accepted("*/*"), MetricsFormat::Text);
    }
}
