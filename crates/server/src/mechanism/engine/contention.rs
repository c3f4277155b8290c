// SPDX-License-Identifier: MIT
//! Contention is measured where slices end; the scheduler is told, and the kernel asked for short slices while it lasts.

use super::Engine;
use crate::host::Host;
use crate::mechanism::settings::When;
use xqos_core::{Contention, Fact, Time};

/// Short slices of the kernel outlast contention by this: they are asked for and given back a few times a second at most.
const SHORT_SLICES_OUTLAST_NS: u64 = 500_000_000;

/// What the mechanism knows of contention.
#[derive(Debug)]
pub struct Attended {
    /// None: it is taken for granted.
    measure: Option<Contention>,
    has_short_slices: bool,
    /// When there was some last.
    last: Option<Time>,
}

impl Attended {
    pub fn new(when: When, now: Time) -> Attended {
        let measure = (when == When::Measured).then(|| Contention::new(now));
        Attended { measure, has_short_slices: false, last: None }
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
    /// A slice was served in this time.
    pub(super) fn see_contention(&mut self, start: Time, end: Time) {
        let change = self.contention.measure.as_mut().and_then(|measure| measure.served(start, end));
        if let Some(is_on) = change {
            self.scheduler.handle(end, Fact::Contention { is_on });
        }
        let attended = &mut self.contention;
        if attended.is_on() {
            attended.last = Some(end);
        }
        let is_wanted = attended.last.is_some_and(|last| end.since(last) < SHORT_SLICES_OUTLAST_NS);
        if is_wanted != std::mem::replace(&mut attended.has_short_slices, is_wanted) {
            self.host.ask_for_short_slices(is_wanted);
        }
    }
}
