// SPDX-License-Identifier: MIT
//! Uses the processor's time-stamp counter as a clock within a slice when each request is timed. Reading it takes a
//! third as long as reading the kernel's clock.
//!
//! Each slice starts with a reading of CLOCK_MONOTONIC. The time since then is computed from the counter, at a rate
//! measured over earlier slices. The counter is used only if the kernel's own clock is based on it.

use crate::host::kernel;
use xqos_core::Time;

/// The rate is known after this time and becomes more accurate with each slice.
const MEASURE_NS: u64 = 2_000_000;

#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// True if the kernel's clock is based on the counter.
    usable: bool,
    /// Nanoseconds per tick, times 2^32; 0 if not known yet.
    rate: u64,
    began: (Time, u64),
    slice: (Time, u64),
}

impl Ticks {
    pub const UNKNOWN: Ticks = Ticks { usable: false, rate: 0, began: (Time(0), 0), slice: (Time(0), 0) };

    pub fn begin() -> Ticks {
        let usable = cfg!(target_arch = "x86_64") && xqos_sys::machine::clock_source() == "tsc";
        let at = read_both();
        Ticks { usable, rate: 0, began: at, slice: at }
    }

    /// Starts a slice.
    pub fn synchronise(&mut self, now: Time) {
        self.slice = (now, counter());
        let (elapsed_ns, ticks) = (now.since(self.began.0), self.slice.1.wrapping_sub(self.began.1));
        if self.usable && ticks > 0 && elapsed_ns >= MEASURE_NS {
            self.rate = u64::try_from((u128::from(elapsed_ns) << 32) / u128::from(ticks)).unwrap_or(0);
        }
    }

    pub fn now(&self) -> Time {
        if self.rate == 0 {
            return kernel::now();
        }
        let ticks = u128::from(counter().wrapping_sub(self.slice.1));
        self.slice.0.after(((ticks * u128::from(self.rate)) >> 32) as u64)
    }
}

/// Reads both clocks at nearly the same moment: if the thread were interrupted between the two readings, the rate would
/// be wrong. The fastest of five attempts counts.
fn read_both() -> (Time, u64) {
    let read = |_| {
        let (before, now, after) = (counter(), kernel::now(), counter());
        (after.wrapping_sub(before), (now, after))
    };
    (0..5).map(read).min_by_key(|&(ticks, _)| ticks).map_or((Time(0), 0), |(_, at)| at)
}

#[cfg(target_arch = "x86_64")]
fn counter() -> u64 {
    // SAFETY: this reads a register and touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If two readings are further apart, the thread was interrupted and they cannot be compared.
    const DISTURBED_NS: u64 = 2000;

    #[test]
    fn the_counter_agrees_with_the_kernels_clock() {
        let mut ticks = Ticks::begin();
        let mut undisturbed = 0;
        for _ in 0..1000 {
            std::thread::sleep(std::time::Duration::from_millis(3));
            let began = kernel::now();
            ticks.synchronise(began);
            let (before, read, after) = (kernel::now(), ticks.now(), kernel::now());
            if after.since(began) > DISTURBED_NS {
                continue;
            }
            assert!(before.0 <= read.0 + 2000 && read.0 <= after.0 + 2000, "{before:?} {read:?} {after:?}");
            undisturbed += 1;
            if undisturbed == 20 {
                return;
            }
        }
        panic!("{undisturbed} of a thousand turns were not interrupted");
    }
}
