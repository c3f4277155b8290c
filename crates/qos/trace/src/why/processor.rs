// SPDX-License-Identifier: MIT
//! Records which threads the kernel ran while the server waited for a processor.

use super::{Party, Ran, shared_ns};
use crate::model::{Model, RunningThreads, ThreadRun, still_absent};
use std::collections::BTreeMap;
use xqos_abi::trace::{Entry, Event};
use xqos_core::Time;

/// A time in which the server was runnable and did not run, and the processor on which it ran afterwards.
#[derive(Clone, Copy, Debug)]
struct Absence {
    cpu: u32,
    from: Time,
    to: Time,
}

#[derive(Debug, Default)]
pub struct Processor {
    server: u32,
    runnable_since: Option<Time>,
    running: RunningThreads,
    runs: Vec<ThreadRun>,
    absences: Vec<Absence>,
}

impl Processor {
    /// Takes an event. Returns the time for which the server waited for a processor, if the event ends this wait.
    pub fn take(&mut self, event: &Event) -> Option<(Time, Time)> {
        let at = event.at;
        self.runs.extend(self.running.take(event, Time(0)));
        match event.what {
            Entry::Begin { server_pid, .. } => self.server = server_pid,
            Entry::Wakeup { thread, .. } if thread == self.server => _ = self.runnable_since.get_or_insert(at),
            Entry::Switch { cpu, from, to, still_runnable } => {
                if from == self.server {
                    self.runnable_since = still_runnable.then_some(at);
                }
                if to == self.server {
                    let from = self.runnable_since.take()?;
                    self.absences.push(Absence { cpu, from, to: at });
                    return Some((from, at));
                }
            }
            Entry::Dispatch { .. } => self.runnable_since = still_absent(self.runnable_since, at),
            _ => {}
        }
        None
    }

    /// The time within this interval in which the server waited for a processor.
    pub fn absent_ns(&self, within: (Time, Time)) -> u64 {
        self.absences.iter().map(|absence| shared_ns((absence.from, absence.to), within)).sum()
    }

    /// The threads that ran instead, longest first.
    pub fn ran_instead(&self, within: (Time, Time), model: &Model) -> Vec<Ran> {
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        for absence in self.absences.iter().filter(|absence| absence.from < within.1 && absence.to > within.0) {
            let span = (absence.from.max(within.0), absence.to.min(within.1));
            for run in self.runs.iter().filter(|run| run.cpu == absence.cpu && run.thread != self.server) {
                let ns = shared_ns((run.from, run.to), span);
                if ns > 0 {
                    *sums.entry(run.thread).or_default() += ns;
                }
            }
        }
        let ran = |(thread, ns)| {
            let party = Party { name: model.thread_name(thread), pid: thread, ..Party::default() };
            Ran { thread: party, ns, priority: model.thread_priority(thread) }
        };
        let mut all: Vec<Ran> = sums.into_iter().map(ran).collect();
        all.sort_by_key(|ran| std::cmp::Reverse(ran.ns));
        all
    }
}
