// SPDX-License-Identifier: MIT
//! Round trips that a client waited for, and what they cost.

use super::avoidable::Reason;
use super::names::NameId;
use std::collections::BTreeMap;

/// A round trip that the client waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub name: NameId,
    pub from_ns: u64,
    pub to_ns: u64,
    pub avoidable: Option<Reason>,
}

#[derive(Clone, Debug, Default)]
pub struct WaitTotal {
    pub count: u64,
    pub ns: u64,
    pub avoidable: BTreeMap<Reason, u64>,
}

impl WaitTotal {
    pub fn add(&mut self, wait: &Wait) {
        self.count += 1;
        self.ns += wait.to_ns.saturating_sub(wait.from_ns);
        if let Some(reason) = wait.avoidable {
            *self.avoidable.entry(reason).or_default() += 1;
        }
    }

    pub fn avoidable_count(&self) -> u64 {
        self.avoidable.values().sum()
    }
}

/// Time saved by avoiding round trips: twice the one-way latency for each.
pub fn saving_s(round_trips: u64, latency_s: f64) -> f64 {
    round_trips as f64 * 2.0 * latency_s
}
