// SPDX-License-Identifier: MIT
//! Gives a scheduler the very facts that a trace says it had, and compares each decision with the recorded one.
//!
//! It begins with the snapshot at a `Begin`. Where records are missing it stops, and begins again with the next one;
//! decisions in between are counted as not checked.

use xqos_abi::snapshot::Collector;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{Scheduler, Time};

/// Differences that are kept to be shown.
const KEPT: usize = 10;

/// A decision that was not the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub at: Time,
    pub recorded: Entry,
    /// What the scheduler decides here; `None`: it serves nobody, or refuses.
    pub decided: Option<Entry>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Check {
    pub agreed: u64,
    pub differed: u64,
    /// Before the first beginning, or after missing records.
    pub unchecked: u64,
    /// The first ones.
    pub differences: Vec<Difference>,
    scheduler: Option<Scheduler>,
    snapshot: Collector,
}

impl Check {
    pub fn take(&mut self, event: &Event) {
        if let Some(words) = self.snapshot.take(&event.what) {
            self.scheduler = Scheduler::restore(&words);
        }
        if matches!(event.what, Entry::Lost { .. }) {
            self.scheduler = None;
        }
        let Some(mut scheduler) = self.scheduler.take() else {
            self.unchecked += u64::from(matches!(event.what, Entry::Dispatch { .. }));
            return;
        };
        self.apply(&mut scheduler, event);
        self.scheduler = Some(scheduler);
    }

    fn apply(&mut self, scheduler: &mut Scheduler, event: &Event) {
        let at = event.at;
        if let Entry::Dispatch { reason, .. } = event.what {
            let decided = scheduler.decide(at).map(|slice| Entry::dispatch(&slice, reason));
            self.compare(at, event.what, decided);
        }
        let Some(fact) = event.what.fact() else { return };
        let decided = Entry::from_fact(fact, scheduler.handle(at, fact));
        if decided != event.what {
            self.compare(at, event.what, Some(decided));
        }
    }

    fn compare(&mut self, at: Time, recorded: Entry, decided: Option<Entry>) {
        if decided == Some(recorded) {
            self.agreed += 1;
            return;
        }
        self.differed += 1;
        if self.differences.len() < KEPT {
            self.differences.push(Difference { at, recorded, decided });
        }
    }
}
