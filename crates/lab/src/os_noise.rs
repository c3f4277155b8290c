// SPDX-License-Identifier: MIT
//! Pauses of the machine itself: a virtual machine's host or an interrupt takes the processor from a running program,
//! without a decision of the kernel's scheduler.
//!
//! A program that reads the clock in a loop sees these pauses. They occur while processors are busy, so responses under
//! load include pauses with any scheduler, but responses of an idle server do not.

use std::thread;
use std::time::Duration;
use xqos_sys::monotonic_ns;

/// Shorter gaps are caused by the clock itself and by caches.
const SHORTEST_NS: u64 = 20_000;

/// Figures over all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OsNoise {
    /// Fraction of the time.
    pub part: f64,
    pub longest_ms: f64,
    /// Mean time for which an event at a random moment waits for the end of a pause.
    pub mean_wait_ms: f64,
}

impl OsNoise {
    /// Measures for this time, while keeping every processor busy.
    pub fn measure(time: Duration) -> OsNoise {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let all = thread::scope(|scope| {
            let watchers: Vec<_> = (0..processors).map(|_| scope.spawn(|| watch(time))).collect();
            watchers.into_iter().filter_map(|watcher| watcher.join().ok()).collect::<Vec<_>>()
        });
        let mean = |figure: fn(&OsNoise) -> f64| all.iter().map(figure).sum::<f64>() / all.len().max(1) as f64;
        OsNoise {
            part: mean(|one| one.part),
            longest_ms: all.iter().map(|one| one.longest_ms).fold(0.0, f64::max),
            mean_wait_ms: mean(|one| one.mean_wait_ms),
        }
    }
}

fn watch(time: Duration) -> OsNoise {
    let begin = monotonic_ns();
    let end = begin + time.as_nanos() as u64;
    let (mut last, mut pauses) = (begin, Vec::new());
    while last < end {
        let now = monotonic_ns();
        if now - last >= SHORTEST_NS {
            pauses.push(now - last);
        }
        last = now;
    }
    of(&pauses, last - begin)
}

/// An event hits a pause with a probability equal to its share of the time; on average, half of it is then left.
fn of(pauses: &[u64], time_ns: u64) -> OsNoise {
    let time = time_ns.max(1) as f64;
    let squares: f64 = pauses.iter().map(|&ns| (ns as f64).powi(2)).sum();
    OsNoise {
        part: pauses.iter().sum::<u64>() as f64 / time,
        longest_ms: pauses.iter().max().map_or(0.0, |&ns| ns as f64 / 1e6),
        mean_wait_ms: squares / 2.0 / time / 1e6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn long_pauses_weigh_more_than_many_short_ones() {
        let one = of(&[10_000_000], 1_000_000_000);
        assert_eq!((one.part, one.longest_ms, one.mean_wait_ms), (0.01, 10.0, 0.05));
        let many = of(&[100_000; 100], 1_000_000_000);
        assert_eq!((many.part, many.longest_ms), (0.01, 0.1));
        assert!((many.mean_wait_ms - 0.0005).abs() < 1e-9, "{many:?}");
        assert_eq!(of(&[], 1_000_000_000), OsNoise::default());
    }

    #[test]
    fn pauses_can_be_measured_on_any_machine() {
        let begin = Instant::now();
        let pauses = OsNoise::measure(Duration::from_millis(50));
        let took_ms = begin.elapsed().as_secs_f64() * 1000.0;
        assert!((0.0..=1.0).contains(&pauses.part) && pauses.longest_ms <= took_ms, "{pauses:?} in {took_ms} ms");
    }
}
