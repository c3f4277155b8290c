// SPDX-License-Identifier: MIT
//! The scheduler with its trace: each fact is written down, so that replay can give it again.
//!
//! Reading goes straight through ([`std::ops::Deref`]); changing is only possible by the methods here, which is what
//! makes a trace complete.

use crate::mechanism::tracer::Tracer;
use std::ops::Deref;
use xqos_abi::trace::{Reason, What};
use xqos_core::{ClientId, Fact, Holder, Outcome, Rank, Scheduler, Service, Slice, Time};

#[derive(Debug)]
pub struct Recorded {
    scheduler: Scheduler,
    pub trace: Tracer,
    /// An overrun was written down, and no decision since.
    overran: bool,
}

impl Deref for Recorded {
    type Target = Scheduler;

    fn deref(&self) -> &Scheduler {
        &self.scheduler
    }
}

impl Recorded {
    pub fn new(scheduler: Scheduler) -> Recorded {
        Recorded { scheduler, trace: Tracer::default(), overran: false }
    }

    /// Takes a fact, and writes it down where it is news. What came of it is what the scheduler says.
    pub fn handle(&mut self, now: Time, fact: Fact) -> Outcome {
        if !self.is_news(now, &fact) {
            return Outcome::None;
        }
        self.overran |= matches!(fact, Fact::Overran { .. });
        let outcome = self.scheduler.handle(now, fact);
        let changed_nothing = matches!(fact, Fact::MadeWork { .. }) && outcome == Outcome::None;
        if !self.trace.is_on() || changed_nothing {
            return outcome;
        }
        self.trace.note(now, What::of(fact, outcome));
        match (fact, outcome) {
            (Fact::Exposed { cause: Some(client), .. }, Outcome::Held(until)) => {
                self.trace.note(now, What::Paced { client, until });
            }
            (
                Fact::Arrived { client }
                | Fact::Reserve { holder: Holder::Client(client), .. }
                | Fact::Served(Service { client, .. }),
                _,
            )
            | (_, Outcome::Resumed(client)) => self.note_budget(client, now),
            _ => {}
        }
        outcome
    }

    /// False where a fact would change nothing.
    fn is_news(&self, now: Time, fact: &Fact) -> bool {
        match *fact {
            Fact::Arrived { client } => !self.scheduler.is_ready(client),
            Fact::Withdrawn { client } => self.scheduler.is_ready(client),
            Fact::Replenish => {
                self.scheduler.next_replenish().is_some_and(|at| at <= now) || self.scheduler.is_uncapped_to_resume()
            }
            Fact::Supply(supply) => supply != self.scheduler.supply(),
            Fact::WorksFor { client, whom } => Some(whom) != self.scheduler.works_for(client),
            Fact::Role { client, role } => role != self.scheduler.role(client),
            _ => true,
        }
    }

    pub fn decide(&mut self, now: Time) -> Option<Slice> {
        let slice = self.scheduler.decide(now);
        match &slice {
            Some(slice) if self.trace.is_on() => {
                self.trace.note(now, What::dispatch(slice, Reason::of(slice, &self.scheduler)))
            }
            // Also a decision for nobody uses an overrun up.
            None if self.overran => self.trace.note(now, What::Fact(Fact::Overran { ns: 0 })),
            _ => {}
        }
        self.overran = false;
        slice
    }

    pub fn next_to_watch(&mut self, now: Time) -> Option<(ClientId, Rank)> {
        self.scheduler.next_to_watch(now)
    }

    /// For readers that do not compute it.
    fn note_budget(&mut self, client: ClientId, now: Time) {
        if !self.trace.is_on() {
            return;
        }
        if let Some(state) = self.scheduler.reservation(client) {
            self.trace.note(now, What::budget(client, &state));
        }
    }
}
