// SPDX-License-Identifier: MIT
//! One run of ocbench under one scheduler: activations, when the load came and went, and the figures of both times.

use super::Case;
use crate::load::{Load, Perf, Placement};
use crate::ocbench::{Activations, Ocbench, Period};
use crate::scheduler::Stage;
use crate::statistics::{Summary, deviation, mean};
use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// The window is made and shown in the first ones.
const FIRST_ACTIVATIONS: usize = 10;

/// What happens in a run, by the number of the activation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Script {
    pub load_from: usize,
    pub load_until: usize,
    pub activations: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Course {
    pub turn: u32,
    pub case: Case,
    /// Of x11perf.
    pub clients: usize,
    pub load: Stay,
    pub activations: Activations,
}

/// Of the load, in time since the start of the run: its clients were started, all of them were busy, they were told to
/// end, and were gone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Stay {
    pub began_ns: u64,
    pub busy_ns: u64,
    pub ended_ns: u64,
    pub gone_ns: u64,
}

/// Of periods: in milliseconds, or over those of another time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    pub mean: f64,
    pub deviation: f64,
}

/// What of a period counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    WithoutKernel,
}

impl Course {
    pub fn run(stage: &Stage, case: Case, spokes: usize, load: (&Perf, usize), script: &Script) -> Result<Course> {
        stage.follow(case.scheduler())?;
        let (server, (perf, clients)) = (stage.server(), load);
        let control = server.control()?;
        case.reserve(&control)?;
        let _help = case.help(server.display())?;
        let mut ocbench = Ocbench::new(&control, spokes)?;
        let start = Instant::now();
        // Starting and ending twelve processes takes time, which must not be ocbench's.
        let (activations, load) = std::thread::scope(|scope| {
            let (signal, signals) = channel();
            let loading = scope.spawn(move || stay(server.display(), perf, clients, start, &signals));
            let activations = ocbench.activate(server, start, script.activations, |activation| {
                if [script.load_from, script.load_until].contains(&activation) {
                    // A load that could not be started is the other thread's to tell.
                    let _ = signal.send(());
                }
            })?;
            let load = loading.join().map_err(|_| anyhow!("the thread that starts the load failed"))??;
            Ok::<_, anyhow::Error>((activations, load))
        })?;
        Ok(Course { turn: 0, case, clients, load, activations })
    }

    /// Before the load came and after it was gone.
    pub fn idle(&self) -> Vec<Period> {
        let Stay { began_ns, gone_ns, .. } = self.load;
        let periods = self.activations.periods().skip(FIRST_ACTIVATIONS);
        periods.filter(|period| period.to_ns <= began_ns || period.from_ns >= gone_ns).collect()
    }

    /// From the start of the load's first client until it is told to end.
    pub fn beside(&self) -> Vec<Period> {
        let Stay { began_ns, ended_ns, .. } = self.load;
        self.activations.periods().filter(|period| period.from_ns >= began_ns && period.to_ns <= ended_ns).collect()
    }

    /// X latencies while idle, and beside the load.
    pub fn latency_ms(&self) -> (Summary, Summary) {
        self.latencies_by(|latency_ns, _| latency_ns)
    }

    /// The same without the kernel's part.
    pub fn latency_without_kernel_ms(&self) -> (Summary, Summary) {
        self.latencies_by(u64::saturating_sub)
    }

    /// Beside the load over idle.
    pub fn ratio(&self, part: Part) -> Pace {
        let (idle, beside) = (Pace::of(&self.idle(), part), Pace::of(&self.beside(), part));
        Pace { mean: beside.mean / idle.mean, deviation: beside.deviation / idle.deviation }
    }

    /// Activations against seconds, both from the first.
    pub fn progress(&self) -> Vec<[f64; 2]> {
        let at_ns = &self.activations.at_ns;
        let first_ns = at_ns.first().copied().unwrap_or_default();
        let point = |(activation, &at_ns): (usize, &u64)| [activation as f64, seconds(at_ns - first_ns)];
        at_ns.iter().enumerate().map(point).collect()
    }

    /// X latencies in milliseconds against seconds.
    pub fn latencies(&self) -> Vec<[f64; 2]> {
        let all = self.activations.at_ns.iter().zip(&self.activations.latency_ns);
        all.map(|(&at_ns, &latency_ns)| [seconds(at_ns), (latency_ns / 1000) as f64 / 1e3]).collect()
    }

    /// Part of the time beside the load.
    pub fn kernel_part(&self) -> f64 {
        let beside = self.beside();
        let all: f64 = beside.iter().map(Period::ms).sum();
        1.0 - beside.iter().map(Period::without_kernel_ms).sum::<f64>() / all
    }

    fn latencies_by(&self, of: fn(u64, u64) -> u64) -> (Summary, Summary) {
        let Stay { began_ns, ended_ns, gone_ns, .. } = self.load;
        let Activations { at_ns, latency_ns, latency_kernel_ns, .. } = &self.activations;
        let all = || at_ns.iter().zip(latency_ns.iter().zip(latency_kernel_ns)).skip(FIRST_ACTIVATIONS);
        let among = |wanted: &dyn Fn(u64, u64) -> bool| {
            let wanted = all().filter(|&(&at, (&latency, _))| wanted(at, at + latency));
            Summary::of(wanted.map(|(_, (&latency, &kernel))| of(latency, kernel) as f64 / 1e6))
        };
        (among(&|from, to| to <= began_ns || from >= gone_ns), among(&|from, to| from >= began_ns && to <= ended_ns))
    }
}

impl Pace {
    pub fn of(periods: &[Period], part: Part) -> Pace {
        let ms = |period: &Period| match part {
            Part::Whole => period.ms(),
            Part::WithoutKernel => period.without_kernel_ms(),
        };
        let values: Vec<f64> = periods.iter().map(ms).collect();
        Pace { mean: mean(&values), deviation: deviation(&values) }
    }
}

/// To a tenth of a millisecond, which is enough for a picture.
fn seconds(ns: u64) -> f64 {
    (ns / 100_000) as f64 / 1e4
}

/// Starts the load at the first signal and ends it at the second.
fn stay(display: &str, perf: &Perf, clients: usize, start: Instant, signals: &Receiver<()>) -> Result<Stay> {
    let now_ns = || start.elapsed().as_nanos() as u64;
    signals.recv()?;
    let began_ns = now_ns();
    let mut load = Load::start(display, perf, clients, placement(clients))?;
    let busy_ns = now_ns();
    signals.recv()?;
    let ended_ns = now_ns();
    load.see_running()?;
    drop(load);
    Ok(Stay { began_ns, busy_ns, ended_ns, gone_ns: now_ns() })
}

/// One lies where x11perf puts it; of several each is to draw.
pub(super) fn placement(clients: usize) -> Placement {
    if clients == 1 { Placement::Stacked } else { Placement::SideBySide }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Twenty idle periods of 12 and 13 ms in turn, then ten beside the load, of these milliseconds in turn.
    pub fn course(case: Case, clients: usize, beside_ms: [u64; 2]) -> Course {
        let steps = (0..20).map(|i| 12 + i % 2).chain((0..10).map(|i| beside_ms[i % 2]));
        let mut at_ns = vec![0];
        steps.for_each(|ms| at_ns.push(at_ns[at_ns.len() - 1] + ms * 1_000_000));
        let count = at_ns.len();
        let load = Stay { began_ns: at_ns[20], busy_ns: at_ns[20], ended_ns: at_ns[30], gone_ns: at_ns[30] + 1 };
        let activations = Activations {
            at_ns,
            latency_ns: vec![2_000_000; count],
            latency_kernel_ns: vec![500_000; count],
            wake_kernel_ns: vec![0; count],
        };
        Course { turn: 0, case, clients, load, activations }
    }

    #[test]
    fn a_run_carries_its_own_idle() {
        let course = course(Case::Stock, 1, [24, 26]);
        assert_eq!((course.idle().len(), course.beside().len()), (20 - FIRST_ACTIVATIONS, 10));
        let ratio = course.ratio(Part::Whole);
        assert!((ratio.mean - 2.0).abs() < 1e-9 && (ratio.deviation - 2.0).abs() < 1e-9, "{ratio:?}");
        assert!((course.ratio(Part::WithoutKernel).mean - 24.5 / 12.0).abs() < 1e-9);
        assert!((course.kernel_part() - 0.02).abs() < 1e-9);
        let (idle, beside) = course.latency_without_kernel_ms();
        assert_eq!((idle.count, beside.count, beside.worst), (10, 10, 1.5));
    }
}
