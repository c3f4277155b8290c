// SPDX-License-Identifier: MIT
//! Explains the result of the admission test, with the term that fails and its numbers.
//!
//! For every reservation i, in order of period, the server tests sum(Qj/Tj, j <= i) + B/Ti <= U. The sum is the
//! utilization promised to i and to all reservations with shorter periods; B is the length of the longest request that
//! can still be executing when i should be served.

use crate::client::described;
use xqos_abi::{AdmissionReport, ClientEntry};
use xqos_text::quantity::Micros;

/// Explains why a reservation for `wanted_by` is not admitted. The names come from `clients`, the list of all clients.
pub fn explain(report: &AdmissionReport, wanted_by: u32, clients: &[ClientEntry]) -> String {
    if report.admitted {
        return "there is room for it now: ask again".to_owned();
    }
    let whose = match clients.iter().find(|entry| entry.client == report.failing_client) {
        Some(entry) if entry.client != wanted_by => format!(", which would break the promise to {}", described(entry)),
        _ => String::new(),
    };
    format!(
        "{}{whose}; ask for less, release another one (`xqos list`), or raise the limit (`xqos policy \
         --max-utilization`)",
        sum(report)
    )
}

/// "0.60 reserved + blocking 3.5 ms / 10 ms = 0.95 > 0.90"
pub fn sum(report: &AdmissionReport) -> String {
    let total = report.sum_ppm.saturating_add(report.blocking_ppm);
    // Use as many decimals as are needed to show that the sum is above the limit.
    let places = (2..6).find(|&places| ratio(total, places) != ratio(report.limit_ppm, places)).unwrap_or(6);
    let relation = if total > report.limit_ppm { ">" } else { "<=" };
    format!(
        "{} reserved + blocking {} / {} = {} {relation} {}",
        ratio(report.sum_ppm, places),
        Micros(report.blocking_us),
        Micros(report.failing_period_us),
        ratio(total, places),
        ratio(report.limit_ppm, places)
    )
}

/// Formats millionths as a decimal number.
pub fn ratio(ppm: u32, places: usize) -> String {
    format!("{:.places$}", f64::from(ppm) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> AdmissionReport {
        AdmissionReport {
            admitted: false,
            failing_client: 0x40_0000,
            failing_period_us: 10_000,
            sum_ppm: 600_000,
            blocking_ppm: 350_000,
            limit_ppm: 900_000,
            blocking_us: 3500,
        }
    }

    #[test]
    fn a_refusal_names_the_failing_term() {
        assert_eq!(sum(&refused()), "0.60 reserved + blocking 3.5 ms / 10 ms = 0.95 > 0.90");
        let text = explain(&refused(), 0x40_0000, &[]);
        assert!(text.starts_with("0.60 reserved") && text.contains("xqos policy"), "{text}");
        assert!(!text.contains("break the promise"), "{text}");
    }

    #[test]
    fn a_sum_slightly_above_the_limit_gets_enough_decimals() {
        let report = AdmissionReport { sum_ppm: 900_040, blocking_ppm: 0, blocking_us: 0, ..refused() };
        assert_eq!(sum(&report), "0.90004 reserved + blocking 0 ms / 10 ms = 0.90004 > 0.90000");
    }

    #[test]
    fn a_refusal_names_the_client_whose_promise_would_break() {
        let mpv = ClientEntry { client: 0x40_0000, pid: 7, name: "mpv".into(), ..Default::default() };
        let text = explain(&refused(), 0x60_0000, &[mpv]);
        assert!(text.contains("would break the promise to mpv (pid 7, client 0x400000)"), "{text}");
    }

    #[test]
    fn a_reservation_that_fits_by_now_may_be_requested_again() {
        let report = AdmissionReport { admitted: true, ..refused() };
        assert!(explain(&report, 1, &[]).contains("ask again"));
    }
}
