// SPDX-License-Identifier: MIT
//! Instants, in nanoseconds of a clock that only goes forward. The core never reads one; it is told.

/// An instant: nanoseconds of CLOCK_MONOTONIC in a server, of the simulated clock elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Later than everything.
    pub const NEVER: Time = Time(u64::MAX);

    /// Nanoseconds since `earlier`; 0 where `earlier` is the later one.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant `ns` nanoseconds later.
    pub fn after(self, ns: u64) -> Time {
        Time(self.0.saturating_add(ns))
    }
}
