// SPDX-License-Identifier: MIT
//! The scheduler with its trace: every fact is recorded, so that a replay can repeat it.
//!
//! Reads go straight to the scheduler ([`std::ops::Deref`]). All changes go through the methods here, which keeps the
//! trace complete.

use crate::mechanism::tracer::Tracer;
use std::ops::Deref;
use xqos_abi::trace::{Entry, Reason};
use xqos_core::{ClientId, Fact, FactOutcome, Holder, Rank, Scheduler, Service, Slice, Time};

#[derive(Debug)]
pub struct TracedScheduler {
    scheduler: Scheduler,
    pub trace: Tracer,
    /// An overrun was recorded, and no decision has followed yet.
    overran: bool,
}

impl Deref for TracedScheduler {
    type Target = Scheduler;

    fn deref(&self) -> &Scheduler {
        &self.scheduler
    }
}

impl TracedScheduler {
    pub fn new(scheduler: Scheduler) -> TracedScheduler {
        TracedScheduler { scheduler, trace: Tracer::default(), overran: false }
    }

    /// Passes a fact to the scheduler and records it, unless it would change nothing. Returns the scheduler's outcome.
    pub fn handle(&mut self, now: Time, fact: Fact) -> FactOutcome {
        if !self.changes_anything(now, &fact) {
            return FactOutcome::None;
        }
        self.overran |= matches!(fact, Fact::Overran { .. });
        let outcome = self.scheduler.handle(now, fact);
        let changed_nothing = matches!(fact, Fact::CausedWork { .. }) && outcome == FactOutcome::None;
        if !self.trace.is_on() || changed_nothing {
            return outcome;
        }
        self.trace.note(now, Entry::from_fact(fact, outcome));
        match (fact, outcome) {
            (Fact::Exposed { cause: Some(client), .. }, FactOutcome::Held(until)) => {
                self.trace.note(now, Entry::Paced { client, until });
            }
            (
                Fact::Arrived { client }
                | Fact::Reserve { holder: Holder::Client(client), .. }
                | Fact::Served(Service { client, .. }),
                _,
            )
            | (_, FactOutcome::Resumed(client)) => self.note_budget(client, now),
            _ => {}
        }
        outcome
    }

    fn changes_anything(&self, now: Time, fact: &Fact) -> bool {
        match *fact {
            Fact::Arrived { client } => !self.scheduler.is_ready(client),
            Fact::Withdrawn { client } => self.scheduler.is_ready(client),
            Fact::Replenish => {
                self.scheduler.next_replenish().is_some_and(|at| at <= now) || self.scheduler.is_uncapped_to_resume()
            }
            Fact::Supply(supply) => supply != self.scheduler.supply(),
            Fact::WorksFor { client, payer } => Some(payer) != self.scheduler.works_for(client),
            Fact::Role { client, role } => role != self.scheduler.role(client),
            _ => true,
        }
    }

    pub fn decide(&mut self, now: Time) -> Option<Slice> {
        let slice = self.scheduler.decide(now);
        match &slice {
            Some(slice) if self.trace.is_on() => {
                self.trace.note(now, Entry::dispatch(slice, Reason::for_slice(slice, &self.scheduler)))
            }
            // A decision consumes the overrun even if it serves no client.
            None if self.overran => self.trace.note(now, Entry::Fact(Fact::Overran { ns: 0 })),
            _ => {}
        }
        self.overran = false;
        slice
    }

    // Dormancy. There is no trace then.

    pub fn dormant_slice_begins(&mut self, client: ClientId, now: Time) {
        self.scheduler.dormant_slice_begins(client, now);
    }

    pub fn served_dormant(&mut self, service: &Service, arrived: Time) {
        self.scheduler.served_dormant(service, arrived);
    }

    pub fn awaken(&mut self, now: Time) {
        self.scheduler.awaken(now);
    }

    pub fn next_to_watch(&mut self, now: Time) -> Option<(ClientId, Rank)> {
        self.scheduler.next_to_watch(now)
    }

    pub fn snapshot(&mut self) -> Vec<u64> {
        self.scheduler.snapshot()
    }

    /// Records the budget for trace readers that do not compute budgets themselves.
    fn note_budget(&mut self, client: ClientId, now: Time) {
        if !self.trace.is_on() {
            return;
        }
        if let Some(state) = self.scheduler.reservation(client) {
            self.trace.note(now, Entry::budget(client, &state));
        }
    }
}
