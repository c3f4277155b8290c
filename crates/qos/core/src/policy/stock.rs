// SPDX-License-Identifier: MIT
//! `stock`: decides nothing and only observes.
//!
//! The server's own scheduler chooses among best-effort clients. Accounting, statistics and reservations work as usual,
//! so this policy is the baseline of comparisons.

use super::{Allowance, Facts, Policy, PolicyKind, QueueKey, Served};
use crate::{ClientId, Time};

#[derive(Debug)]
pub(crate) struct Stock;

impl Policy for Stock {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Stock
    }

    fn decides(&self) -> bool {
        false
    }

    fn join(&mut self, _client: ClientId, _facts: &Facts) {}

    fn key(&self, client: ClientId) -> QueueKey {
        QueueKey(0, u64::from(client.0))
    }

    fn picked(&mut self, _client: ClientId, _ready: usize, _now: Time) -> Allowance {
        Allowance { slice_ns: u64::MAX, ..Allowance::default() }
    }

    fn served(&mut self, _client: ClientId, _served: &Served) {}
}
