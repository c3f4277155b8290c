// SPDX-License-Identifier: MIT
//! What a link is like: its rate, its delay, and how long nothing may come over it from who is not done.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The line between the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::experiments) struct Line {
    pub kbit_per_s: u64,
    /// One way.
    pub delay_us: u64,
}

impl Line {
    pub const RATES: [u64; 5] = [100_000, 10_000, 1_000, 100, 10];
    pub const DELAYS: [u64; 4] = [100, 1_000, 10_000, 100_000];

    /// Whatever goes over it, both machines are idle nearly all of the time.
    pub fn is_slow(self) -> bool {
        self.kbit_per_s <= 100 || self.delay_us >= 100_000
    }

    pub fn title(self) -> String {
        format!("{} / {}", rate_title(self.kbit_per_s), delay_title(self.delay_us))
    }

    /// So long nothing may come until a program counts as quiet: 2 s, a round trip, and four full packets, since two of
    /// them may wait for one acknowledgement on their way through.
    pub fn silence(self) -> Duration {
        let packets_us = 4 * 1500 * 8 * 1000 / self.kbit_per_s;
        Duration::from_secs(2) + Duration::from_micros(2 * self.delay_us + packets_us)
    }
}

pub(in crate::experiments) fn rate_title(kbit_per_s: u64) -> String {
    if kbit_per_s >= 1000 { format!("{} Mb/s", kbit_per_s / 1000) } else { format!("{kbit_per_s} kb/s") }
}

pub(in crate::experiments) fn delay_title(delay_us: u64) -> String {
    format!("{} ms", delay_us as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_outlasts_the_packets_of_a_slow_line() {
        let silence = |kbit_per_s, delay_us| Line { kbit_per_s, delay_us }.silence().as_millis();
        assert_eq!((silence(100_000, 100), silence(10, 100_000)), (2000, 7000));
    }
}
