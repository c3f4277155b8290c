// SPDX-License-Identifier: MIT
//! Replays the facts of a trace into a scheduler and compares its decisions with the recorded decisions.
//!
//! Each snapshot after a `Begin` record restores the scheduler. Missing records stop the comparison until the next
//! snapshot; decisions in between are counted as unchecked.

use xqos_abi::snapshot::Collector;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{Scheduler, Time};

/// Number of differences that are kept for display.
const MAX_DIFFERENCES: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub at: Time,
    pub recorded: Entry,
    /// The scheduler's own decision. `None` if it serves no client.
    pub decided: Option<Entry>,
}

#[derive(Debug, Default)]
pub struct Check {
    pub agreed: u64,
    pub differed: u64,
    /// Decisions before the first snapshot or after missing records.
    pub unchecked: u64,
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
        if self.differences.len() < MAX_DIFFERENCES {
            self.differences.push(Difference { at, recorded, decided });
        }
    }
}
