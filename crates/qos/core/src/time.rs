// SPDX-License-Identifier: MIT
//! Instants in nanoseconds of a monotonic clock. The core never reads a clock; the caller passes the time.

/// An instant in nanoseconds, of CLOCK_MONOTONIC in a server and of the simulated clock elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Later than any other instant.
    pub const NEVER: Time = Time(u64::MAX);

    /// Nanoseconds since `earlier`; 0 if `earlier` is later.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant `ns` nanoseconds later.
    pub fn after(self, ns: u64) -> Time {
        Time(self.0.saturating_add(ns))
    }
}
