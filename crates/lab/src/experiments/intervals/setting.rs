// SPDX-License-Identifier: MIT
//! What is changed from one measurement to the next: who schedules, and at which interval.

use crate::bench::Bench;
use crate::scheduler::{Scheduler, Stage};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use xqos_abi::PolicyChange;

/// The schedulers whose intervals xqos can set: the paper's, and its own.
pub(super) const SCHEDULERS: [Scheduler; 2] = [Scheduler::Smart, Scheduler::Fair];
/// A slice of exactly 5 ms, and one of 20 ms or more, xqos leaves to the server's own timer, which [`OWN_TIMER_AWAY`] puts
/// away: so each interval is this much less than it is said to be.
const LESS_US: u32 = 1;
/// To a server, in milliseconds: its own timer shall not end the slices whose ends are measured. The server takes less than
/// a second.
pub(super) const OWN_TIMER_AWAY: [&str; 2] = ["-schedInterval", "500"];
/// The interval that the paper gives its figures for, and the one that they are compared with.
pub(super) const SHORT_US: u32 = 1000;
pub(super) const LONG_US: u32 = 20_000;

/// A scheduler with its interval. Under [`Scheduler::Stock`] it is that of the server's own timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Setting {
    pub scheduler: Scheduler,
    /// Of `smart` the timer interval, of `fair` the slice.
    pub interval_us: u32,
    /// To which `smart` lets the slice of a client alone grow.
    pub maximum_us: u32,
}

impl Setting {
    pub fn of(scheduler: Scheduler, interval_us: u32) -> Setting {
        Setting { scheduler, interval_us, maximum_us: interval_us }
    }

    /// From now on the server follows it. In one request: under the usual slice of 5 ms the server's own timer would be
    /// waited for.
    pub fn set(self, stage: &Stage) -> Result<()> {
        let (interval_us, maximum_us) = (self.interval_us - LESS_US, self.maximum_us - LESS_US);
        Ok(stage.control().set_policy(PolicyChange {
            policy: Some(self.scheduler.policy()),
            slice_us: Some(interval_us),
            timer_interval_us: Some(interval_us),
            maximum_slice_us: Some(maximum_us),
            ..PolicyChange::default()
        })?)
    }

    /// Slices of a client alone become longer than the interval.
    pub fn grows(self) -> bool {
        self.maximum_us > self.interval_us
    }

    pub fn interval_ms(self) -> f64 {
        f64::from(self.interval_us) / 1000.0
    }
}

/// From the shortest to the longest.
pub(super) fn intervals_us(bench: &Bench) -> &'static [u32] {
    if bench.quick { &[250, SHORT_US, LONG_US] } else { &[250, 500, SHORT_US, 2000, 5000, 10_000, LONG_US] }
}

/// All schedulers at these intervals.
pub(super) fn all_at(intervals_us: &[u32]) -> Vec<Setting> {
    let of = |scheduler| intervals_us.iter().map(move |&us| Setting::of(scheduler, us));
    SCHEDULERS.into_iter().flat_map(of).collect()
}
