// SPDX-License-Identifier: MIT
//! Measures contention at the end of each slice, informs the scheduler, and asks the kernel for short slices while
//! contention lasts.
//!
//! A server that is ready to run but has no processor does not rest. While the server is busy enough that this could
//! matter, the kernel is asked every few milliseconds how long that was.

use super::Engine;
use crate::host::Host;
use crate::mechanism::settings::ContentionMode;
use xqos_core::{Contention, Fact, Time};

/// Short kernel slices stay on for this long after contention ends, so as to change at most a few times a second.
const SHORT_SLICES_OUTLAST_NS: u64 = 500_000_000;
/// Least time between two questions about the time without a processor, unless contention would end.
const ASK_EVERY_NS: u64 = 5_000_000;
/// The load, in percent, below which the kernel is not asked.
const ASK_ABOVE_PERCENT: u64 = 40;

#[derive(Debug)]
pub struct ContentionState {
    /// `None` if contention is always assumed.
    measure: Option<Contention>,
    asked: Asked,
    has_short_slices: bool,
    last: Option<Time>,
}

/// The last question about the time without a processor.
#[derive(Debug)]
struct Asked {
    at: Time,
    /// The answer: the total since the server's start, if the kernel was asked and told.
    delayed_ns: Option<u64>,
    /// How long the server has been busy since then.
    busy_ns: u64,
}

impl ContentionState {
    pub fn new(mode: ContentionMode, now: Time) -> ContentionState {
        let measure = (mode == ContentionMode::Measured).then(|| Contention::new(now));
        let asked = Asked { at: now, delayed_ns: None, busy_ns: 0 };
        ContentionState { measure, asked, has_short_slices: false, last: None }
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
    pub(super) fn measure_contention(&mut self, start: Time, end: Time) {
        let state = &mut self.contention;
        if let Some(measure) = &mut state.measure {
            let asked = &mut state.asked;
            asked.busy_ns += end.since(start);
            let (would_end, passed_ns) = (measure.would_end(start), end.since(asked.at));
            let is_due = would_end || passed_ns >= ASK_EVERY_NS;
            let delayed_ns = is_due.then(|| {
                let matters =
                    would_end || asked.busy_ns.saturating_mul(100) >= passed_ns.saturating_mul(ASK_ABOVE_PERCENT);
                let total = matters.then(|| self.host.delayed_ns()).flatten();
                let before = std::mem::replace(asked, Asked { at: end, delayed_ns: total, busy_ns: 0 });
                total.zip(before.delayed_ns).map_or(0, |(now, before)| now.saturating_sub(before))
            });
            if let Some(is_on) = measure.served(start, end, delayed_ns) {
                self.scheduler.handle(end, Fact::Contention { is_on });
            }
        }
        if state.is_on() {
            state.last = Some(end);
        }
        let is_wanted = state.last.is_some_and(|last| end.since(last) < SHORT_SLICES_OUTLAST_NS);
        if is_wanted != std::mem::replace(&mut state.has_short_slices, is_wanted) {
            self.host.ask_for_short_slices(is_wanted);
        }
    }
}
