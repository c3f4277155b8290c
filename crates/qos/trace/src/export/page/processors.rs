// SPDX-License-Identifier: MIT
//! The lanes of processors: the threads that the kernel ran, interrupts and wake-ups.

use super::PackedNumbers;
use crate::model::{Model, Owner, RunningThreads, ThreadRun};
use indexmap::IndexSet;
use serde::Serialize;
use std::collections::BTreeMap;
use xqos_abi::trace::{Entry, Event};

#[derive(Debug, Default, Serialize)]
pub struct Processor {
    number: u32,
    /// Begin and end of each time that a thread ran, and the index of the thread.
    runs: [PackedNumbers; 2],
    threads: PackedNumbers,
    /// Hard interrupts, and soft interrupts. A hard one can interrupt a soft one.
    interrupts: [Interrupts; 2],
    /// Time of each wake-up, and the index of the thread that was woken.
    wakeups: PackedNumbers,
    woken: PackedNumbers,
}

/// Interrupts that do not overlap: the page searches them by time.
#[derive(Debug, Default, Serialize)]
struct Interrupts {
    begins: PackedNumbers,
    ends: PackedNumbers,
    names: PackedNumbers,
}

#[derive(Debug, Serialize)]
pub struct Thread {
    name: String,
    /// `server`, `client` or `other`.
    owner: &'static str,
}

/// The lanes of all processors read so far.
#[derive(Debug, Default)]
pub struct Processors {
    lanes: BTreeMap<u32, Processor>,
    running: RunningThreads,
    threads: IndexSet<u32>,
    interrupts: IndexSet<(u32, bool)>,
}

impl Processors {
    /// Takes an event after the model.
    pub fn take(&mut self, event: &Event, model: &Model) {
        let at = model.since_start_ns(event.at);
        if let Some(run) = self.running.take(event, model.began.unwrap_or(event.at)) {
            self.run(run, model);
        }
        match event.what {
            Entry::Wakeup { cpu, thread } => {
                let lane = self.lanes.entry(cpu).or_default();
                lane.wakeups.push(at);
                lane.woken.push_index(&mut self.threads, thread);
            }
            Entry::Interrupt { cpu, number, is_soft, ns } => {
                let of_kind = &mut self.lanes.entry(cpu).or_default().interrupts[usize::from(is_soft)];
                of_kind.begins.push(at - ns as f64);
                of_kind.ends.push(at);
                of_kind.names.push_index(&mut self.interrupts, (number, is_soft));
            }
            _ => {}
        }
    }

    fn run(&mut self, run: ThreadRun, model: &Model) {
        let lane = self.lanes.entry(run.cpu).or_default();
        lane.runs[0].push(model.since_start_ns(run.from));
        lane.runs[1].push(model.since_start_ns(run.to));
        lane.threads.push_index(&mut self.threads, run.thread);
    }

    /// The lanes, the threads and the names of the interrupts.
    pub fn finish(mut self, model: &Model) -> ProcessorPage {
        std::mem::take(&mut self.running).unfinished(model.now).for_each(|run| self.run(run, model));
        let thread = |&thread: &u32| Thread {
            name: model.thread_name(thread),
            owner: match model.thread_owner(thread) {
                Owner::Server => "server",
                Owner::Client => "client",
                Owner::Other => "other",
            },
        };
        ProcessorPage {
            threads: self.threads.iter().map(thread).collect(),
            interrupts: self.interrupts.iter().map(|&(number, soft)| model.interrupt_name(number, soft)).collect(),
            processors: self.lanes.into_iter().map(|(number, lane)| Processor { number, ..lane }).collect(),
        }
    }
}

/// The kernel's data for the page. All lists are empty if the trace has no kernel records.
#[derive(Debug, Serialize)]
pub struct ProcessorPage {
    processors: Vec<Processor>,
    threads: Vec<Thread>,
    interrupts: Vec<String>,
}
