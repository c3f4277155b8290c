// SPDX-License-Identifier: MIT
//! The lanes of processors: the threads that the kernel ran, interrupts and wake-ups.

use super::Column;
use crate::model::{Model, Owner};
use serde::Serialize;
use std::collections::BTreeMap;
use xqos_abi::trace::{Entry, Event};
use xqos_core::Time;

/// A processor's lane.
#[derive(Debug, Default, Serialize)]
pub struct Processor {
    number: u32,
    /// Begin and end of each time that a thread ran, and the index of the thread.
    runs: [Column; 2],
    threads: Column,
    /// Hard interrupts and soft ones, which hard ones interrupt.
    interrupts: [Interrupts; 2],
    /// Time of each wake-up, and the index of the thread that was woken.
    wakeups: Column,
    woken: Column,
}

/// Interrupts that do not overlap: the page searches them by time.
#[derive(Debug, Default, Serialize)]
struct Interrupts {
    begins: Column,
    ends: Column,
    /// The index of each one's name.
    names: Column,
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
    /// The thread that each processor runs, and since when.
    running: BTreeMap<u32, (u32, Time)>,
    threads: Indices<u32>,
    interrupts: Indices<(u32, bool)>,
}

/// Indices of distinct values, in the order in which they appeared.
#[derive(Debug)]
struct Indices<T> {
    of: BTreeMap<T, u32>,
    all: Vec<T>,
}

impl<T> Default for Indices<T> {
    fn default() -> Indices<T> {
        Indices { of: BTreeMap::new(), all: Vec::new() }
    }
}

impl<T: Ord + Copy> Indices<T> {
    fn index(&mut self, value: T) -> u32 {
        let all = &mut self.all;
        *self.of.entry(value).or_insert_with(|| {
            all.push(value);
            all.len() as u32 - 1
        })
    }
}

impl Processors {
    /// `since` converts a time to nanoseconds since the start of the trace.
    pub fn take(&mut self, event: &Event, began: Time, since: impl Fn(Time) -> f64) {
        let at = event.at;
        match event.what {
            Entry::Switch { cpu, from, to, .. } => {
                let (thread, start) = self.running.insert(cpu, (to, at)).unwrap_or((from, began));
                // If events were lost, it is unknown what ran.
                if thread == from {
                    self.run(cpu, thread, [since(start), since(at)]);
                }
            }
            Entry::Wakeup { cpu, thread } => {
                let lane = self.lanes.entry(cpu).or_default();
                lane.wakeups.push(since(at));
                lane.woken.push_integer(self.threads.index(thread));
            }
            Entry::Interrupt { cpu, number, is_soft, ns } => {
                let of_kind = &mut self.lanes.entry(cpu).or_default().interrupts[usize::from(is_soft)];
                of_kind.begins.push(since(at) - ns as f64);
                of_kind.ends.push(since(at));
                of_kind.names.push_integer(self.interrupts.index((number, is_soft)));
            }
            _ => {}
        }
    }

    /// Thread 0 is the idle thread.
    fn run(&mut self, cpu: u32, thread: u32, [begin, end]: [f64; 2]) {
        let lane = self.lanes.entry(cpu).or_default();
        if thread != 0 && begin < end {
            lane.runs[0].push(begin);
            lane.runs[1].push(end);
            lane.threads.push_integer(self.threads.index(thread));
        }
    }

    /// The lanes, the threads and the names of the interrupts. `end` is the end of the trace.
    pub fn finish(mut self, model: &Model, end: f64, since: impl Fn(Time) -> f64) -> Page {
        for (cpu, (thread, start)) in std::mem::take(&mut self.running) {
            self.run(cpu, thread, [since(start), end]);
        }
        let thread = |&thread: &u32| Thread {
            name: model.thread_name(thread),
            owner: match model.thread_owner(thread) {
                Owner::Server => "server",
                Owner::Client => "client",
                Owner::Other => "other",
            },
        };
        Page {
            threads: self.threads.all.iter().map(thread).collect(),
            interrupts: self.interrupts.all.iter().map(|&(number, soft)| model.interrupt_name(number, soft)).collect(),
            processors: self.lanes.into_iter().map(|(number, lane)| Processor { number, ..lane }).collect(),
        }
    }
}

/// What the page gets; without records of the kernel, all of it is empty.
#[derive(Debug, Serialize)]
pub struct Page {
    processors: Vec<Processor>,
    threads: Vec<Thread>,
    interrupts: Vec<String>,
}
