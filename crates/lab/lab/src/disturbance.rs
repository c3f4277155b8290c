// SPDX-License-Identifier: MIT
//! Disturbances of a measurement: work of other processes, processor time that the host took away, and pauses.
//!
//! The work of others is all processor time used (/proc/stat), minus that of this process and its descendants. If it is
//! large, a figure says little about the server. All values are fractions of the total time of all processors.
//!
//! A pause occurs when a virtual machine's host or an interrupt takes the processor from a running program, without a
//! decision of the kernel's scheduler. A program that reads the clock in a loop sees it. Pauses occur while processors
//! are busy, so responses under load include them with any scheduler, but responses of an idle server do not.

use crate::process::used_ticks;
use crate::study::percent;
use serde::{Deserialize, Serialize};
use std::thread;
use std::time::{Duration, Instant};
use xqos_sys::machine::{self, Ticks, pressure_us};
use xqos_sys::monotonic_ns;

/// Limits above which a run is reported as noisy.
const MOST_OTHERS: f64 = 0.10;
const MOST_STEAL: f64 = 0.05;

/// Fractions of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Processor time of other processes, including the kernel.
    pub others: f64,
    /// Processor time that a virtual machine's host gave to other guests.
    pub steal: f64,
    /// Time in which a runnable task waited for a processor; tasks of our own load count as well. `None` if the kernel
    /// does not record it.
    pub pressure: Option<f64>,
}

impl Disturbance {
    /// Reasons why the run is noisy; `None` if it is not.
    pub fn noise(&self) -> Option<String> {
        let mut causes = Vec::new();
        if self.others > MOST_OTHERS {
            causes.push(format!("other processes used {} of the processors", percent(self.others)));
        }
        if self.steal > MOST_STEAL {
            causes.push(format!("the host took {} of the processors away (steal)", percent(self.steal)));
        }
        (!causes.is_empty()).then(|| causes.join(", "))
    }

    pub fn worse(self, other: Disturbance) -> Disturbance {
        Disturbance {
            others: self.others.max(other.others),
            steal: self.steal.max(other.steal),
            pressure: self.pressure.into_iter().chain(other.pressure).reduce(f64::max),
        }
    }

    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("other work", percent(self.others)), ("steal", percent(self.steal))];
        lines.extend(self.pressure.map(|pressure| ("cpu pressure", percent(pressure))));
        lines
    }
}

/// State at the beginning of a measurement. [`DisturbanceWatch::end`] reports the disturbance since then.
#[derive(Debug)]
pub struct DisturbanceWatch {
    ticks: Ticks,
    own: u64,
    pressure_us: Option<u64>,
    began: Instant,
}

impl DisturbanceWatch {
    /// `None` if the kernel does not report it.
    pub fn begin() -> Option<DisturbanceWatch> {
        let ticks = machine::ticks()?;
        Some(DisturbanceWatch { ticks, own: used_ticks(), pressure_us: pressure_us(), began: Instant::now() })
    }

    /// Servers and clients may have ended meanwhile, but this process must have waited for (reaped) them.
    pub fn end(self) -> Option<Disturbance> {
        let own = used_ticks().saturating_sub(self.own);
        let pressed = self.pressure_us.zip(pressure_us()).map(|(before, after)| after.saturating_sub(before));
        let elapsed_us = self.began.elapsed().as_micros().max(1) as f64;
        let (others, steal) = parts(between(self.ticks, machine::ticks()?), own);
        Some(Disturbance { others, steal, pressure: pressed.map(|us| us as f64 / elapsed_us) })
    }
}

/// The ticks between two readings. The kernel's idle figure can decrease.
fn between(before: Ticks, after: Ticks) -> Ticks {
    Ticks {
        busy: after.busy.saturating_sub(before.busy),
        idle: after.idle.saturating_sub(before.idle),
        steal: after.steal.saturating_sub(before.steal),
    }
}

/// Fractions of the processor time that other processes used and that the host took.
fn parts(ticks: Ticks, own: u64) -> (f64, f64) {
    let all = (ticks.busy + ticks.idle + ticks.steal).max(1) as f64;
    (ticks.busy.saturating_sub(own) as f64 / all, ticks.steal as f64 / all)
}

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
            let watchers: Vec<_> = (0..processors).map(|_| scope.spawn(|| pauses(time))).collect();
            watchers.into_iter().filter_map(|watcher| watcher.join().ok()).collect::<Vec<_>>()
        });
        let mean = |figure: fn(&OsNoise) -> f64| all.iter().map(figure).sum::<f64>() / all.len().max(1) as f64;
        OsNoise {
            part: mean(|one| one.part),
            longest_ms: all.iter().map(|one| one.longest_ms).fold(0.0, f64::max),
            mean_wait_ms: mean(|one| one.mean_wait_ms),
        }
    }

    /// An event falls into a pause with a probability equal to the pause's share of the time; on average, half remains.
    fn of(pauses: &[u64], time_ns: u64) -> OsNoise {
        let time = time_ns.max(1) as f64;
        let squares: f64 = pauses.iter().map(|&ns| (ns as f64).powi(2)).sum();
        OsNoise {
            part: pauses.iter().sum::<u64>() as f64 / time,
            longest_ms: pauses.iter().max().map_or(0.0, |&ns| ns as f64 / 1e6),
            mean_wait_ms: squares / 2.0 / time / 1e6,
        }
    }
}

fn pauses(time: Duration) -> OsNoise {
    let begin = monotonic_ns();
    let end = begin + time.as_nanos() as u64;
    let (mut last, mut found) = (begin, Vec::new());
    while last < end {
        let now = monotonic_ns();
        if now - last >= SHORTEST_NS {
            found.push(now - last);
        }
        last = now;
    }
    OsNoise::of(&found, last - begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_foreign_load_above_the_limits_is_noise() {
        let (others, steal) = parts(Ticks { busy: 150, idle: 42, steal: 8 }, 120);
        assert_eq!((others, steal), (0.15, 0.04));
        let noise = Disturbance { others, steal, pressure: None }.noise().unwrap();
        assert_eq!(noise, "other processes used 15 % of the processors");
        let noise = Disturbance { others: 0.0, steal: 0.06, pressure: Some(1.0) }.noise().unwrap();
        assert!(noise.contains("steal") && noise.contains("6.0 %"), "{noise}");
        assert_eq!(Disturbance { others: 0.1, steal: 0.05, pressure: Some(1.0) }.noise(), None);
        // Our own time can exceed the total, because the two were not read at the same instant.
        assert_eq!(parts(Ticks { busy: 10, idle: 90, steal: 0 }, 12), (0.0, 0.0));
    }

    #[test]
    fn long_pauses_weigh_more_than_many_short_ones() {
        let one = OsNoise::of(&[10_000_000], 1_000_000_000);
        assert_eq!((one.part, one.longest_ms, one.mean_wait_ms), (0.01, 10.0, 0.05));
        let many = OsNoise::of(&[100_000; 100], 1_000_000_000);
        assert_eq!((many.part, many.longest_ms), (0.01, 0.1));
        assert!((many.mean_wait_ms - 0.0005).abs() < 1e-9, "{many:?}");
        assert_eq!(OsNoise::of(&[], 1_000_000_000), OsNoise::default());
    }

    #[test]
    fn pauses_can_be_measured_on_any_machine() {
        let begin = Instant::now();
        let pauses = OsNoise::measure(Duration::from_millis(50));
        let took_ms = begin.elapsed().as_secs_f64() * 1000.0;
        assert!((0.0..=1.0).contains(&pauses.part) && pauses.longest_ms <= took_ms, "{pauses:?} in {took_ms} ms");
    }
}
