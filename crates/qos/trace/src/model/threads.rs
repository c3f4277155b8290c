// SPDX-License-Identifier: MIT
//! Names of the kernel's threads and interrupts, and which threads belong to the server and its clients.

use super::Model;
use std::collections::BTreeMap;
use xqos_abi::trace::{Entry, Event};
use xqos_core::Time;
use xqos_text::escape::printable;

/// The process to which a thread belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    Server,
    Client,
    Other,
}

/// The kernel's number for nice value 0.
pub const DEFAULT_PRIORITY: i32 = 120;

#[derive(Debug, Default)]
pub(super) struct Threads {
    names: BTreeMap<u32, String>,
    processes: BTreeMap<u32, u32>,
    priorities: BTreeMap<u32, i32>,
    /// The key is the number, and whether the interrupt is soft.
    interrupts: BTreeMap<(u32, bool), String>,
}

impl Threads {
    pub(super) fn take(&mut self, what: &Entry) {
        match *what {
            Entry::ThreadName { thread, bytes } => _ = self.names.insert(thread, text(&bytes)),
            Entry::Thread { thread, process } => _ = self.processes.insert(thread, process),
            Entry::Priority { thread, priority } => _ = self.priorities.insert(thread, priority),
            Entry::InterruptName { number, is_soft, bytes } => {
                self.interrupts.insert((number, is_soft), text(&bytes));
            }
            _ => {}
        }
    }
}

/// An interval in which a processor ran a thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadRun {
    pub cpu: u32,
    pub thread: u32,
    pub from: Time,
    pub to: Time,
}

/// The thread that each processor runs, and since when.
#[derive(Debug, Default)]
pub struct RunningThreads(BTreeMap<u32, (u32, Time)>);

impl RunningThreads {
    /// Takes an event. If it ends a run, returns that run; the first one of a processor has lasted since `began`.
    pub fn take(&mut self, event: &Event, began: Time) -> Option<ThreadRun> {
        let Entry::Switch { cpu, from, to, .. } = event.what else { return None };
        let (thread, since) = self.0.insert(cpu, (to, event.at)).unwrap_or((from, began));
        // If events were lost, it is unknown which thread ran.
        (thread == from).then(|| run(cpu, thread, since, event.at)).flatten()
    }

    /// The runs that have not ended.
    pub fn unfinished(self, now: Time) -> impl Iterator<Item = ThreadRun> {
        self.0.into_iter().filter_map(move |(cpu, (thread, since))| run(cpu, thread, since, now))
    }
}

/// Thread 0 is the idle thread.
fn run(cpu: u32, thread: u32, from: Time, to: Time) -> Option<ThreadRun> {
    (thread != 0 && from < to).then_some(ThreadRun { cpu, thread, from, to })
}

impl Model {
    /// The display name of a thread: "Xvfb (77)", or "mpv: vo (1235)" if it is not the first of its process.
    pub fn thread_name(&self, thread: u32) -> String {
        let name = |id| self.threads.names.get(&id);
        let own = name(thread).map_or_else(|| format!("thread {thread}"), |own| format!("{own} ({thread})"));
        let process = Some(self.process_of(thread)).filter(|&process| process != thread);
        process.and_then(name).map_or_else(|| own.clone(), |main| format!("{main}: {own}"))
    }

    /// The last known priority of a thread, as the kernel counts it.
    pub fn thread_priority(&self, thread: u32) -> i32 {
        self.threads.priorities.get(&thread).copied().unwrap_or(DEFAULT_PRIORITY)
    }

    pub fn thread_owner(&self, thread: u32) -> Owner {
        match self.process_of(thread) {
            process if process == self.server_pid => Owner::Server,
            process if self.local.contains(&process) => Owner::Client,
            _ => Owner::Other,
        }
    }

    /// The display name of an interrupt: "i8042 (1)", "soft: TIMER".
    pub fn interrupt_name(&self, number: u32, is_soft: bool) -> String {
        let name = self.threads.interrupts.get(&(number, is_soft)).map_or("?", String::as_str);
        if is_soft { format!("soft: {name}") } else { format!("{name} ({number})") }
    }

    fn process_of(&self, thread: u32) -> u32 {
        self.threads.processes.get(&thread).copied().unwrap_or(thread)
    }
}

/// A name up to the first zero byte. Control characters become "?".
pub fn text(bytes: &[u8]) -> String {
    let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    printable(&String::from_utf8_lossy(name))
}
