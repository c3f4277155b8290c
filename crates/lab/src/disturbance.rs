// SPDX-License-Identifier: MIT
//! Disturbances of a measurement: work of other processes, and processor time that the host took away.
//!
//! The work of others is all processor time used (/proc/stat), minus that of this process and its descendants. If it is
//! large, a figure says little about the server. All values are fractions of the total time of all processors.

use crate::process::used_ticks;
use crate::study::percent;
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::Instant;

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

/// State at the beginning of a measurement. [`Watch::end`] reports the disturbance since then.
#[derive(Debug)]
pub struct Watch {
    ticks: Ticks,
    own: u64,
    pressure_us: Option<u64>,
    began: Instant,
}

impl Watch {
    /// `None` if the kernel does not report it.
    pub fn begin() -> Option<Watch> {
        let ticks = Ticks::now()?;
        Some(Watch { ticks, own: used_ticks(), pressure_us: pressure_us(), began: Instant::now() })
    }

    /// Servers and clients may have ended meanwhile, but this process must have waited for (reaped) them.
    pub fn end(self) -> Option<Disturbance> {
        let own = used_ticks().saturating_sub(self.own);
        let pressed = self.pressure_us.zip(pressure_us()).map(|(before, after)| after.saturating_sub(before));
        let elapsed_us = self.began.elapsed().as_micros().max(1) as f64;
        let (others, steal) = Ticks::now()?.since(self.ticks).parts(own);
        Some(Disturbance { others, steal, pressure: pressed.map(|us| us as f64 / elapsed_us) })
    }
}

/// Sums over all processors since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    idle: u64,
    steal: u64,
}

impl Ticks {
    fn now() -> Option<Ticks> {
        parse_stat(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn since(self, before: Ticks) -> Ticks {
        Ticks {
            busy: self.busy.saturating_sub(before.busy),
            // The kernel's idle figure can decrease.
            idle: self.idle.saturating_sub(before.idle),
            steal: self.steal.saturating_sub(before.steal),
        }
    }

    /// Fractions of the processor time that other processes used and that the host took.
    fn parts(self, own: u64) -> (f64, f64) {
        let all = (self.busy + self.idle + self.steal).max(1) as f64;
        (self.busy.saturating_sub(own) as f64 / all, self.steal as f64 / all)
    }
}

/// Fields: user nice system idle iowait irq softirq steal. Time of guests is already included in user.
fn parse_stat(text: &str) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = *fields.get(..8)? else { return None };
    Some(Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal })
}

fn pressure_us() -> Option<u64> {
    parse_pressure(&fs::read_to_string("/proc/pressure/cpu").ok()?)
}

fn parse_pressure(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("some "))?.rsplit_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_figures_are_read() {
        let stat = "cpu  100 20 30 400 50 6 4 7 90 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
        assert_eq!(parse_stat(stat), Some(Ticks { busy: 160, idle: 450, steal: 7 }));
        assert_eq!(parse_stat("cpu  1 2 3\n"), None);
        let pressure = "some avg10=96.21 avg60=74.10 avg300=44.13 total=996368194\nfull avg10=0.00 total=1\n";
        assert_eq!(parse_pressure(pressure), Some(996_368_194));
    }

    #[test]
    fn only_foreign_load_above_the_limits_is_noise() {
        let (others, steal) = Ticks { busy: 150, idle: 42, steal: 8 }.parts(120);
        assert_eq!((others, steal), (0.15, 0.04));
        let noise = Disturbance { others, steal, pressure: None }.noise().unwrap();
        assert_eq!(noise, "other processes used 15 % of the processors");
        let noise = Disturbance { others: 0.0, steal: 0.06, pressure: Some(1.0) }.noise().unwrap();
        assert!(noise.contains("steal") && noise.contains("6.0 %"), "{noise}");
        assert_eq!(Disturbance { others: 0.1, steal: 0.05, pressure: Some(1.0) }.noise(), None);
        // Our own time can exceed the total, because the two were not read at the same instant.
        assert_eq!(Ticks { busy: 10, idle: 90, steal: 0 }.parts(12), (0.0, 0.0));
    }
}
