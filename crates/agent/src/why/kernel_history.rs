// SPDX-License-Identifier: MIT
//! What the kernel ran in the last seconds.
//!
//! The kernel's buffer keeps its latest events. On a busy machine these are the events of one or two seconds, so they
//! are read soon after each long wait, and kept here until a report needs them.

use std::collections::VecDeque;
use std::time::Duration;
use xqos_abi::trace::Event;
use xqos_cli::output::note;
use xqos_cli::program::one_line;
use xqos_core::Time;
use xqos_trace::kernel::{Kernel, is_name};

/// Maximum number of events that are kept.
const EVENTS: usize = 1 << 20;

#[derive(Debug)]
pub struct KernelHistory {
    kernel: Kernel,
    /// The events of each reading, with all names that they need.
    readings: VecDeque<Vec<Event>>,
}

impl KernelHistory {
    /// Starts to record, or reports why this is impossible.
    pub fn start() -> Option<KernelHistory> {
        let unnamed = "programs that take the server's processor will not be named";
        let started = Kernel::start().inspect_err(|error| note(&format!("{unnamed}: {}", one_line(error))));
        Some(KernelHistory { kernel: started.ok()?, readings: VecDeque::new() })
    }

    /// Reads the kernel's buffer. Forgets readings that are older than the time to keep.
    pub fn read(&mut self, keep: Duration) {
        self.readings.push_back(self.kernel.latest());
        let began = Time(xqos_sys::monotonic_ns().saturating_sub(keep.as_nanos() as u64));
        let ended_before = |reading: &Vec<Event>| reading.last().is_none_or(|last| last.at < began);
        while self.readings.front().is_some_and(ended_before) || self.readings.len() > 1 && self.count() > EVENTS {
            self.readings.pop_front();
        }
    }

    fn count(&self) -> usize {
        self.readings.iter().map(Vec::len).sum()
    }

    /// True if a reading has all events of this time.
    pub fn covers(&self, (from, to): (Time, Time)) -> bool {
        let began = |reading: &[Event]| reading.iter().find(|event| !is_name(&event.what)).map(|first| first.at);
        let covers = |reading: &Vec<Event>| {
            began(reading).is_some_and(|began| began <= from) && reading.last().is_some_and(|last| last.at >= to)
        };
        self.readings.iter().any(covers)
    }

    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.readings.iter().flatten().copied()
    }
}
