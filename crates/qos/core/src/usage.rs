// SPDX-License-Identifier: MIT
//! Accounting: what a client has used and how long it has waited, counted per slice, never per request.
//!
//! Sums saturate, because a replayed trace can contain any times.

use crate::{Mode, Service, Time};

/// Upper bounds of the classes in which waits are counted; the last class has no bound. The bounds range from 1 ms,
/// which is not noticeable, to 1 s, which users complain about.
pub const WAIT_BOUNDS_NS: [u64; 7] =
    [1_000_000, 5_000_000, 20_000_000, 50_000_000, 100_000_000, 250_000_000, 1_000_000_000];
/// A grab of at least this length visibly freezes the screen.
pub const LONG_GRAB_NS: u64 = 1_000_000_000;

/// Accounting of one client since it connected. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub connected: Time,
    pub server_time_ns: u64,
    /// Server time charged to it. Includes the work of window managers for it, but not its own work for other clients.
    pub charged_ns: u64,
    /// The part of the server time that was paid from its reservation.
    pub reserved_time_ns: u64,
    pub requests: u64,
    pub slices: u64,
    /// Sum of its waits. A wait begins with an arrival, or with the end of a slice if more requests are left.
    pub waited_ns: u64,
    pub longest_wait_ns: u64,
    /// Number of waits in each class (bounds: [`WAIT_BOUNDS_NS`]; none for the last class). The counters wrap around.
    pub waits: [u32; WAIT_BOUNDS_NS.len() + 1],
    /// Total time for which it held the server grab.
    pub grabbed_ns: u64,
    pub grabs: u32,
    /// Number of server grabs of at least [`LONG_GRAB_NS`].
    pub long_grabs: u32,
    /// Number of times that its budget ran out.
    pub depletions: u32,
    /// Deadlines that passed while it had budget and requests.
    pub misses: u32,
}

impl Usage {
    pub(crate) fn waited(&mut self, ns: u64) {
        self.waited_ns = self.waited_ns.saturating_add(ns);
        self.longest_wait_ns = self.longest_wait_ns.max(ns);
        let class = WAIT_BOUNDS_NS.iter().filter(|&&bound| ns > bound).count();
        self.waits[class] = self.waits[class].wrapping_add(1);
    }

    /// The client has released the server grab.
    pub(crate) fn held_grab(&mut self, ns: u64) {
        self.grabbed_ns = self.grabbed_ns.saturating_add(ns);
        self.long_grabs = self.long_grabs.wrapping_add(u32::from(ns >= LONG_GRAB_NS));
    }

    pub(crate) fn served(&mut self, service: &Service, mode: Mode) {
        let length = service.end.since(service.start);
        self.server_time_ns = self.server_time_ns.saturating_add(length);
        self.charged_ns = self.charged_ns.saturating_add(length);
        if mode == Mode::Reserved {
            self.reserved_time_ns = self.reserved_time_ns.saturating_add(length);
        }
        self.requests += u64::from(service.requests);
        self.slices += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_counted_once_by_its_length() {
        let mut usage = Usage::default();
        for ns in [0, 1_000_000, 1_000_001, 99_999_999, 100_000_000, 100_000_001, 1_000_000_001, u64::MAX] {
            usage.waited(ns);
        }
        assert_eq!(usage.waits, [2, 1, 0, 0, 2, 1, 0, 2]);
    }

    #[test]
    fn only_grabs_of_a_second_are_long() {
        let mut usage = Usage::default();
        for ns in [0, LONG_GRAB_NS - 1, LONG_GRAB_NS, u64::MAX] {
            usage.held_grab(ns);
        }
        assert_eq!((usage.long_grabs, usage.grabbed_ns), (2, u64::MAX));
    }
}
