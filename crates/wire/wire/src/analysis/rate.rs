// SPDX-License-Identifier: MIT
//! Estimates the rate of the slowest link from the packets that crossed it.
//!
//! **Captured before the link:** a measurement starts when nothing is in flight. It ends before an acknowledgement, by
//! the shortest round trip. All acknowledged data crossed the link in between, so each measurement is a lower bound of
//! the rate. Once data have been queued for a while, the largest measurement equals the rate.
//!
//! **Captured after the link:** packets that follow full packets arrive at the link's rate. However, a delayed machine
//! receives several packets together, and a transmitter can pause. Measurements are therefore short and counted in bins
//! of similar rate. The result is the rate of the three neighbouring bins with the most measurements.

/// Minimum bytes per measurement. Errors in the round trip (a few tenths of a millisecond) then matter only on links
/// that are rarely busy.
const MIN_BYTES: u64 = 2_500;
/// Minimum duration of a measurement. Captures have microsecond timestamps, so a shorter measurement says nothing about
/// a link.
const MIN_NS: u64 = 1_000;
/// Number of bins, three per doubling of the rate, up to 2^43 bytes per second.
const BINS: usize = 128;

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    count: u64,
    size: u64,
    ns: u64,
}

/// Measurements of one link, and the rate derived from them.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Rate with headers, if enough was sent to measure it.
    pub bytes_per_second: Option<u64>,
    pub began_ns: u64,
    passed: u64,
    bins: [Bin; BINS],
}

impl Default for Rate {
    fn default() -> Self {
        Rate { bytes_per_second: None, began_ns: 0, passed: 0, bins: [Bin::default(); BINS] }
    }
}

impl Rate {
    /// Keeps the rate, but starts with nothing in flight.
    pub fn restarted(&self) -> Rate {
        Rate { began_ns: 0, passed: 0, ..self.clone() }
    }

    /// Starts a measurement, when a packet is sent while nothing is in flight.
    pub fn start(&mut self, at_ns: u64) {
        (self.began_ns, self.passed) = (at_ns, 0);
    }

    /// `size` more bytes had left the link by `left_ns`. The shortest round trip covers `unseen` bytes of the total.
    pub fn acknowledged(&mut self, left_ns: u64, size: u64, unseen: u64) {
        self.passed = self.passed.saturating_add(size);
        let passed = self.passed.saturating_sub(unseen);
        if passed >= MIN_BYTES {
            let rate = rate(passed, left_ns.saturating_sub(self.began_ns));
            self.bytes_per_second = self.bytes_per_second.max(Some(rate));
        }
    }

    /// A packet of `size` bytes arrived from the link. `is_after_full`: it follows a full packet.
    pub fn passed(&mut self, at_ns: u64, size: u64, is_after_full: bool) {
        if !is_after_full || self.began_ns == 0 {
            return self.start(at_ns);
        }
        self.passed = self.passed.saturating_add(size);
        if self.passed >= MIN_BYTES {
            self.add_to_bin(self.passed, at_ns.saturating_sub(self.began_ns));
            self.start(at_ns);
        }
    }

    fn add_to_bin(&mut self, size: u64, ns: u64) {
        let bin = &mut self.bins[bin_index(rate(size, ns))];
        bin.count += 1;
        bin.size = bin.size.saturating_add(size);
        bin.ns = bin.ns.saturating_add(ns);
        self.bytes_per_second = self.agreed();
    }

    /// Rate of the three neighbouring bins with the most measurements; three, because a rate can lie between two bins.
    fn agreed(&self) -> Option<u64> {
        let most = self.bins.windows(3).max_by_key(|bins| bins.iter().map(|bin| bin.count).sum::<u64>())?;
        let size = most.iter().map(|bin| bin.size).fold(0, u64::saturating_add);
        Some(rate(size, most.iter().map(|bin| bin.ns).fold(0, u64::saturating_add)))
    }
}

/// Time that a link with this rate needs for `size` bytes.
pub fn ns_of(size: u64, bytes_per_second: u64) -> u64 {
    let ns = u128::from(size) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

fn rate(size: u64, ns: u64) -> u64 {
    let rate = u128::from(size) * 1_000_000_000 / u128::from(ns.max(MIN_NS));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Index of a rate's bin. It is never the first or last bin, so that each bin has two neighbours.
fn bin_index(rate: u64) -> usize {
    let bin_index = (rate.max(1) as f64).log2() * 3.0;
    (bin_index as usize).clamp(1, BINS - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_shows_the_rate_and_a_pause_does_not_lower_it() {
        let mut rate = Rate::default();
        rate.start(1);
        for packet in 1..=10 {
            rate.acknowledged(1 + packet * 12_000_000, 1500, 0);
        }
        assert_eq!(rate.bytes_per_second, Some(125_000));
        rate.acknowledged(9_000_000_000, 1500, 0);
        assert_eq!(rate.bytes_per_second, Some(125_000));
        assert_eq!(ns_of(1500, 125_000), 12_000_000);
    }

    #[test]
    fn pauses_and_delayed_packets_do_not_distort_the_rate() {
        let mut rate = Rate::default();
        for packet in 1..=400u64 {
            // Every 20th packet follows a pause, and 5 of every 20 arrive late and together.
            let pause_ns = packet / 20 * 200_000_000;
            let late = if (10..15).contains(&(packet % 20)) { 15 - packet % 20 } else { 0 };
            rate.passed(1 + pause_ns + (packet + late) * 12_000_000, 1500, true);
        }
        let found = rate.bytes_per_second.unwrap();
        assert!(found.abs_diff(125_000) < 5_000, "{found}");
    }

    #[test]
    fn small_packets_alone_give_no_rate() {
        let mut rate = Rate::default();
        for packet in 1..100 {
            rate.passed(packet * 100_000_000, 84, false);
        }
        assert_eq!(rate.bytes_per_second, None);
    }

    #[test]
    fn extreme_numbers_cause_no_error() {
        let mut rate = Rate::default();
        rate.start(5);
        rate.acknowledged(0, u64::MAX, 0);
        rate.acknowledged(0, u64::MAX, 0);
        for at_ns in [u64::MAX, 1, u64::MAX, 7] {
            rate.passed(at_ns, u64::MAX, true);
        }
        assert!(rate.bytes_per_second.is_some());
        assert_eq!(ns_of(u64::MAX, 0), u64::MAX);
    }
}
