// SPDX-License-Identifier: MIT
//! What a client waits for: each slice is put down to whoever waited meanwhile.

use super::{Cause, Model, SLICES_KEPT};
use xqos_core::Time;

/// A slice, for those who waited for it.
#[derive(Clone, Copy, Debug)]
pub struct Past {
    pub runs: usize,
    pub request: u32,
    pub long: bool,
    /// When the one before it ended.
    pub before: Time,
    pub start: Time,
    pub end: Time,
}

impl Model {
    /// Puts the time since the last slice, and this one, down to whoever waited for it.
    pub(super) fn blame(&mut self, runs: usize, (request, long): (u32, bool), (start, end): (Time, Time)) {
        if self.without_causes {
            return;
        }
        let past = Past { runs, request, long, before: self.served_until.min(start), start, end };
        for at in 0..self.ready.len() {
            self.blame_on(self.ready[at], &past);
        }
        self.past.push_back(past);
        if self.past.len() > SLICES_KEPT {
            self.past.pop_front();
        }
    }

    pub(super) fn blame_on(&mut self, key: usize, past: &Past) {
        let &Past { runs, request, long, before, start, end } = past;
        let since = self.clients[key].waits_since;
        let absent_ns = self.absent_ns(before.max(since), start);
        let idle_ns = start.since(before.max(since)).saturating_sub(absent_ns);
        let (absent_ns, behind_ns) = if key == runs {
            (absent_ns, 0)
        } else {
            let begin = start.max(since);
            let withheld_ns = self.absent_ns(begin, end);
            (absent_ns.saturating_add(withheld_ns), end.since(begin).saturating_sub(withheld_ns))
        };
        let client = &mut self.clients[key];
        let is_held_back = client.budget.is_some_and(|budget| budget.kind.is_hard() && budget.depleted);
        let mut add = |cause, ns: u64| {
            if ns > 0 {
                let sum = client.behind.entry(cause).or_default();
                *sum = sum.saturating_add(ns);
            }
        };
        if is_held_back {
            return add(Cause::HeldBack, idle_ns.saturating_add(absent_ns).saturating_add(behind_ns));
        }
        add(Cause::Kernel, absent_ns);
        add(Cause::Server, idle_ns);
        add(Cause::Client { key: runs, request, long }, behind_ns);
    }

    /// For how long the server was runnable and did not run.
    fn absent_ns(&self, from: Time, to: Time) -> u64 {
        let recent = self.absences.iter().rev().take_while(|absence| absence.1 > from);
        recent.map(|absence| absence.1.min(to).since(absence.0.max(from))).fold(0, u64::saturating_add)
    }
}
