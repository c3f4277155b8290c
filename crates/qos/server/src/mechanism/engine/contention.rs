// SPDX-License-Identifier: MIT
//! Measures contention at the end of each slice, informs the scheduler, and asks the kernel for short slices while
//! contention lasts.

use super::Engine;
use crate::mechanism::action::Action;
use crate::mechanism::host::Host;
use crate::mechanism::settings::ContentionMode;
use xqos_core::{BusyTime, Contention, Fact, Time};

/// Short kernel slices stay on for this long after contention ends, so that they change at most a few times a second.
const SHORT_SLICES_OUTLAST_NS: u64 = 500_000_000;

#[derive(Debug)]
pub struct ContentionState {
    /// `None` if contention is always assumed.
    measure: Option<Contention>,
    has_short_slices: bool,
    last: Option<Time>,
}

impl ContentionState {
    pub fn new(mode: ContentionMode, now: Time) -> ContentionState {
        let measure = (mode == ContentionMode::Measured).then(|| Contention::new(now));
        ContentionState { measure, has_short_slices: false, last: None }
    }

    pub fn is_on(&self) -> bool {
        self.measure.is_none_or(|measure| measure.is_on())
    }

    /// The server waited for one client while others were ready.
    pub fn waited(&mut self, until: Time) {
        if let Some(measure) = self.measure.as_mut() {
            measure.waited(until);
        }
    }
}

impl<H: Host> Engine<H> {
    pub(super) fn measure_contention(&mut self, slice: &BusyTime) {
        let end = slice.end;
        let measure = self.contention.measure.as_mut();
        if let Some(is_on) = measure.and_then(|measure| measure.served(slice, || self.host.run_times_ns())) {
            self.awaken();
            self.scheduler.handle(end, Fact::Contention { is_on });
        }
        let state = &mut self.contention;
        if state.is_on() {
            state.last = Some(end);
        }
        let is_wanted = state.last.is_some_and(|last| end.since(last) < SHORT_SLICES_OUTLAST_NS);
        if is_wanted != std::mem::replace(&mut state.has_short_slices, is_wanted) {
            self.actions.push_back(Action::ShortSlices(is_wanted));
        }
    }
}
