// SPDX-License-Identifier: MIT
//! `fixed`: fixed priorities, for comparison (Childs and Ingram's Linux-SRT, cited by Manica et al., section 1).
//!
//! The ready client with the highest priority runs. Clients of equal priority take turns of one slice. An arrival of
//! higher priority ends the running slice at the next request boundary. Starvation is part of the design: a busy client
//! keeps out all clients of lower priority.

use super::{Allowance, Defence, Facts, Policy, PolicyKind, QueueKey, Served};
use crate::words::Words;
use crate::{ClientId, Parameters, Time};
use alloc::vec::Vec;

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    priority: i32,
    turn: u64,
    used_ns: u64,
}

#[derive(Debug)]
pub(crate) struct Fixed {
    standings: Vec<Standing>,
    turns: u64,
    slice_ns: u64,
}

impl Fixed {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Fixed { standings: Vec::new(), turns: 0, slice_ns: parameters.slice_ns }
    }

    fn end_turn(&mut self, client: ClientId) {
        self.turns += 1;
        let standing = &mut self.standings[client.slot()];
        standing.turn = self.turns;
        standing.used_ns = 0;
    }
}

impl Policy for Fixed {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Fixed
    }

    fn join(&mut self, client: ClientId, facts: &Facts) {
        if self.standings.len() <= client.slot() {
            self.standings.resize(client.slot() + 1, Standing::default());
        }
        self.changed(client, facts);
        self.end_turn(client);
    }

    fn changed(&mut self, client: ClientId, facts: &Facts) {
        self.standings[client.slot()].priority = facts.fixed_priority;
    }

    fn ready(&mut self, client: ClientId, _idle_ns: u64) {
        self.end_turn(client);
    }

    fn key(&self, client: ClientId) -> QueueKey {
        let standing = &self.standings[client.slot()];
        QueueKey((i64::from(i32::MAX) - i64::from(standing.priority)) as u64, standing.turn)
    }

    fn picked(&mut self, client: ClientId, _ready: usize, _now: Time) -> Allowance {
        let used_ns = self.standings[client.slot()].used_ns;
        Allowance { slice_ns: self.slice_ns.saturating_sub(used_ns).max(1), ..Allowance::default() }
    }

    fn served(&mut self, client: ClientId, served: &Served) {
        let standing = &mut self.standings[client.slot()];
        standing.used_ns = standing.used_ns.saturating_add(served.length_ns);
        if standing.used_ns >= self.slice_ns {
            self.end_turn(client);
        }
    }

    fn challenge(&self, client: ClientId) -> Option<i64> {
        Some(-i64::from(self.standings[client.slot()].priority))
    }

    fn defence(&self, client: ClientId) -> Defence {
        Defence { key: -i64::from(self.standings[client.slot()].priority), ..Defence::default() }
    }

    fn carry(&mut self, clients: &[ClientId], words: &mut Words<'_>) -> Option<()> {
        self.turns = words.ns(self.turns)?;
        for &client in clients {
            let standing = &mut self.standings[client.slot()];
            (standing.turn, standing.used_ns) = (words.ns(standing.turn)?, words.ns(standing.used_ns)?);
        }
        Some(())
    }
}
