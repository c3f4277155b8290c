// SPDX-License-Identifier: MIT
//! What `auto` would find of each client, measured beside it: from the trace that is read anyway, by the same rules.
//!
//! Whoever keeps an automatic reservation is another process, and a server knows only what was set. Invariant: clients that are gone
//! are forgotten at the next look.

use std::collections::BTreeMap;
use xqos_abi::ClientList;
use xqos_core::Time;
use xqos_trace::model::{Burst, Model};
use xqos_tune::{Client, Report};

/// By resource base.
#[derive(Debug, Default)]
pub struct Measured {
    clients: BTreeMap<u32, Client>,
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

    pub fn of(&self, base: u32) -> Option<Report> {
        self.clients.get(&base).map(Client::report)
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
        let found = client.report();
        let wish = found.wish.unwrap();
        let near = |ns: u64, wanted: f64| (ns as f64 / 1e6 / wanted - 1.0).abs() < 0.3;
        assert!(near(wish.period_ns, 40.0) && near(wish.budget_ns, 4.6) && found.confidence > 0.8, "{found:?}");
    }
}
