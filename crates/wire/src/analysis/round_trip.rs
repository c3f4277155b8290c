// SPDX-License-Identifier: MIT
//! A round trip that a client waited for, and the sum of many.

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

/// All waits of one name.
#[derive(Clone, Debug, Default)]
pub struct Total {
    pub count: u64,
    pub ns: u64,
    pub avoidable: BTreeMap<Reason, (u64, u64)>,
}

impl Total {
    pub fn add(&mut self, wait: &Wait) {
        let ns = wait.to_ns.saturating_sub(wait.from_ns);
        self.count += 1;
        self.ns += ns;
        if let Some(reason) = wait.avoidable {
            let (count, sum_ns) = self.avoidable.entry(reason).or_default();
            *count += 1;
            *sum_ns += ns;
        }
    }

    pub fn merge(&mut self, other: &Total) {
        self.count += other.count;
        self.ns += other.ns;
        for (&reason, (count, ns)) in &other.avoidable {
            let sums = self.avoidable.entry(reason).or_default();
            sums.0 += count;
            sums.1 += ns;
        }
    }

    pub fn avoidable_count(&self) -> u64 {
        self.avoidable.values().map(|(count, _)| count).sum()
    }
}
