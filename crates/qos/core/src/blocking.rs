// SPDX-License-Identifier: MIT
//! The blocking time B: the longest time for which a running request kept a client with a reservation waiting.
//!
//! The server cannot interrupt a request, or a part of a cut request, so B is a lower bound on the response time
//! (Manica et al., section 3.3) and a term of the admission test. The observed value is the maximum over a sliding
//! window of two halves, so an old outlier does not cause refusals forever. Only waits of clients with a reservation
//! count, and the value is cleared when the last reservation ends. The first reservation is therefore admitted by
//! utilization alone, even on a server with long requests.

use crate::Time;
use crate::words::Words;

/// Half of the window is 30 s, so an observation is forgotten after 30 to 60 s.
const HALF_WINDOW_NS: u64 = 30_000_000_000;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blocking {
    current_ns: u64,
    previous_ns: u64,
    half_began: Time,
}

impl Blocking {
    pub(crate) fn note(&mut self, ns: u64, now: Time) {
        self.roll(now);
        self.current_ns = self.current_ns.max(ns);
    }

    /// The longest blocking time within the window.
    pub(crate) fn observed_ns(&self, now: Time) -> u64 {
        let mut seen = *self;
        seen.roll(now);
        seen.current_ns.max(seen.previous_ns)
    }

    pub(crate) fn carry(self, words: &mut Words<'_>) -> Option<Blocking> {
        let (current_ns, previous_ns) = (words.ns(self.current_ns)?, words.ns(self.previous_ns)?);
        Some(Blocking { current_ns, previous_ns, half_began: words.time(self.half_began)? })
    }

    fn roll(&mut self, now: Time) {
        let age = now.since(self.half_began);
        if age < HALF_WINDOW_NS {
            return;
        }
        self.previous_ns = if age < 2 * HALF_WINDOW_NS { self.current_ns } else { 0 };
        self.current_ns = 0;
        self.half_began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_blocking_time_expires_with_the_window() {
        let mut blocking = Blocking::default();
        let s = |seconds: u64| Time(seconds * 1_000_000_000);
        blocking.note(7_000_000, s(100));
        blocking.note(1_000_000, s(125));
        assert_eq!(blocking.observed_ns(s(129)), 7_000_000);
        blocking.note(2_000_000, s(131));
        assert_eq!(blocking.observed_ns(s(131)), 7_000_000, "still within the older half of the window");
        assert_eq!(blocking.observed_ns(s(162)), 2_000_000);
        assert_eq!(blocking.observed_ns(s(300)), 0);
    }
}
