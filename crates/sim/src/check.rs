//! Gives a scheduler the very calls that a trace says it had, and compares each decision with the recorded one.
//!
//! It begins with the snapshot at a `Begin`. Where records are missing it stops, and begins again with the next one;
//! decisions in between are counted as not checked.

use xqos_abi::snapshot::Collector;
use xqos_abi::trace::{Event, What, pacing, parameters};
use xqos_core::{Admission, Scheduler, Service, Supply, Time};

/// Differences that are kept to be shown.
const KEPT: usize = 10;

/// A decision that was not the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub at: Time,
    pub recorded: What,
    /// What the scheduler decides here; `None`: it serves nobody, or refuses.
    pub decided: Option<What>,
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
    intervals: (u32, u32, u32),
}

impl Check {
    pub fn take(&mut self, event: &Event) {
        if let Some(words) = self.snapshot.take(&event.what) {
            self.scheduler = Scheduler::restore(&words);
        }
        if matches!(event.what, What::Lost { .. }) {
            self.scheduler = None;
        }
        let Some(mut scheduler) = self.scheduler.take() else {
            self.unchecked += u64::from(matches!(event.what, What::Dispatch { .. }));
            return;
        };
        self.tell(&mut scheduler, event);
        self.scheduler = Some(scheduler);
    }

    fn tell(&mut self, scheduler: &mut Scheduler, event: &Event) {
        let at = event.at;
        match event.what {
            What::Creation { client, descriptor } => scheduler.connected(client, descriptor, at),
            What::Destruction { client } => scheduler.gone(client, at),
            What::Activation { client } => scheduler.arrived(client, at),
            What::Withdrawal { client } => scheduler.withdrawn(client, at),
            What::Input { client } => scheduler.input(client, at),
            What::Exposed { client, cause } => {
                scheduler.exposed(client, cause, at);
            }
            What::Supply { budget_ns, period_ns } => scheduler.set_supply(Supply { budget_ns, period_ns }),
            What::Pacing { limit_us, floor_us } => scheduler.set_pacing(pacing(limit_us, floor_us), at),
            What::Role { client, role } => scheduler.set_role(client, role, at),
            What::MadeWork { client } => {
                scheduler.made_work(client);
            }
            What::Desktop { share_ppm } => scheduler.set_desktop_share(share_ppm, at),
            What::Grab { client } => scheduler.grabbed(client, at),
            What::Overran { ns } => scheduler.overran(ns),
            What::Replenish => {
                scheduler.replenish(at);
            }
            What::Served { client, still_ready, requests, last_request, bytes, start, .. } => {
                let bytes = bytes.into();
                scheduler.served(&Service { client, start, end: at, requests, bytes, last_request, still_ready });
            }
            What::Dispatch { reason, .. } => {
                let decided = scheduler.pick(at).map(|slice| What::dispatch(&slice, reason));
                self.compare(at, event.what, decided);
            }
            What::Reserve { client, reservation, .. } => {
                let admission = scheduler.reserve(client, reservation, at);
                let admitted = matches!(admission, Some(Admission::Admitted(_)));
                let decided = What::Reserve { client, reservation, admitted };
                if decided != event.what {
                    self.compare(at, event.what, Some(decided));
                }
            }
            What::Clear { client } => {
                scheduler.clear_reservation(client, at);
            }
            What::Policy { kind } => scheduler.set_policy(kind, at),
            What::Intervals { slice_us, timer_interval_us, maximum_slice_us } => {
                self.intervals = (slice_us, timer_interval_us, maximum_slice_us);
            }
            What::Limits { max_utilization_ppm, blocking_us } => {
                let (slice_us, timer_interval_us, maximum_slice_us) = self.intervals;
                let limits = (max_utilization_ppm, blocking_us);
                let changed = parameters(slice_us, timer_interval_us, maximum_slice_us, limits);
                scheduler.set_parameters(changed, at);
            }
            What::SyncPriority { client, priority } => scheduler.set_sync_priority(client, priority, at),
            What::Weight { client, weight } => scheduler.set_weight(client, weight, at),
            What::FixedPriority { client, priority } => scheduler.set_fixed_priority(client, priority, at),
            _ => {}
        }
    }

    fn compare(&mut self, at: Time, recorded: What, decided: Option<What>) {
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
