// SPDX-License-Identifier: MIT
//! What `auto` would find of each client, measured beside it: from the trace that is read anyway, by the same rules.
//!
//! Whoever keeps an automatic reservation is another process, and a server knows only what was set. Invariant: clients that are gone
//! are forgotten at the next look.

use serde::Serialize;
use std::collections::BTreeMap;
use xqos_abi::ClientList;
use xqos_core::Time;
use xqos_trace::model::{Burst, Model};
use xqos_tune::{Client, Report, State};

/// By resource base.
#[derive(Debug, Default)]
pub struct Measured {
    clients: BTreeMap<u32, Client>,
}

/// What was found, to be shown.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// gathering, periodic, aperiodic or silent
    pub state: &'static str,
    /// What would be reserved; null: nothing.
    pub period_ms: Option<f64>,
    pub budget_ms: Option<f64>,
    /// 0 to 1.
    pub confidence: f64,
}

impl Measured {
    pub fn take(&mut self, model: &Model, burst: &Burst) {
        let Some(client) = model.clients().get(burst.key) else { return };
        let (start, end, served_ns) = (burst.activation, burst.end, burst.worked_ns);
        self.clients.entry(client.identity.base).or_default().take(xqos_tune::Burst { start, end, served_ns });
    }

    /// Looks at what has come.
    pub fn look(&mut self, now: Time, list: &ClientList) {
        self.clients.retain(|&base, _| list.clients.iter().any(|entry| entry.client == base));
        self.clients.values_mut().for_each(|client| client.look(now));
    }

    pub fn of(&self, base: u32) -> Option<Found> {
        self.clients.get(&base).map(|client| Found::new(&client.report()))
    }
}

impl Found {
    fn new(report: &Report) -> Found {
        let state = match report.state {
            State::Gathering => "gathering",
            State::Periodic => "periodic",
            State::Aperiodic | State::GivenUp => "aperiodic",
            State::Silent => "silent",
        };
        let ms = |ns: u64| ns as f64 / 1e6;
        let (period_ms, budget_ms) =
            (report.wish.map(|wish| ms(wish.period_ns)), report.wish.map(|wish| ms(wish.budget_ns)));
        Found { state, period_ms, budget_ms, confidence: report.confidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_to_be_periodic_and_what_they_need() {
        let mut client = Client::new();
        for frame in 0..100 {
            let start = Time(1_000_000_000 + frame * 40_000_000);
            client.take(xqos_tune::Burst { start, end: start.after(4_000_000), served_ns: 4_000_000 });
            client.look(start.after(4_000_000));
        }
        let found = Found::new(&client.report());
        assert_eq!(found.state, "periodic");
        let near = |value: Option<f64>, wanted: f64| value.is_some_and(|value| (value / wanted - 1.0).abs() < 0.3);
        assert!(near(found.period_ms, 40.0) && near(found.budget_ms, 4.6) && found.confidence > 0.8, "{found:?}");
    }
}
