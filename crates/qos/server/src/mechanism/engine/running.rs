// SPDX-License-Identifier: MIT
//! The slice that is running, and when it ends.

use super::Engine;
use crate::mechanism::host::Host;
use xqos_core::{BusyTime, Choice, Mode, Slice, Time};

/// The server ends every slice by itself after at most this time, so xqos needs no timer for a later end.
const SERVER_MAXIMUM_SLICE_NS: u64 = 20_000_000;
/// The interval of the server's own timer, which ends each slice while two or more clients are ready.
pub(super) const SERVER_INTERVAL_NS: u64 = 5_000_000;

#[derive(Clone, Copy, Debug)]
pub struct RunningSlice {
    pub choice: Choice,
    pub start: Time,
    /// If the slice ends at this time or later, it has its full length and did not end early.
    pub whole_at: Time,
    /// The server's processor time at the start, if a trace records processor time.
    pub cpu_ns: Option<u64>,
    /// See [`BusyTime`].
    pub others_waited: bool,
    pub another_waited: bool,
}

impl RunningSlice {
    pub fn busy_until(&self, end: Time) -> BusyTime {
        let RunningSlice { start, others_waited, another_waited, .. } = *self;
        BusyTime { start, end, others_waited, another_waited }
    }
}

impl<H: Host> Engine<H> {
    /// A slice that begins now. It cannot end early.
    pub(super) fn new_slice(&self, choice: Choice, start: Time) -> RunningSlice {
        let others_waited = self.ready.len() > 1;
        let another_waited = self.ready.iter().any(|&id| Some(id) != self.last_served);
        RunningSlice { choice, start, whole_at: Time::NEVER, cpu_ns: None, others_waited, another_waited }
    }
}

/// When our timer must end a slice; [`Time::NEVER`] if the server ends it by itself. With a single ready client, the
/// server lets slices grow beyond what a cap allows.
pub fn timed_end(slice: &Slice, now: Time, is_capped: bool) -> Time {
    let length_ns = slice.until.since(now);
    let is_best_effort = matches!(slice.choice, Choice::Client(_, Mode::BestEffort));
    // True if the policy set the end. A slice that ends for another client's replenishment has a different length.
    let is_a_whole_slice = is_best_effort && !is_capped && length_ns == SERVER_INTERVAL_NS;
    if length_ns >= SERVER_MAXIMUM_SLICE_NS || is_a_whole_slice { Time::NEVER } else { slice.until }
}
