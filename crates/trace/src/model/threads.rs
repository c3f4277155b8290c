// SPDX-License-Identifier: MIT
//! Names of the kernel's threads and interrupts, and which threads belong to the server and its clients.

use super::Model;
use std::collections::BTreeMap;
use xqos_abi::trace::Entry;

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
    let name = String::from_utf8_lossy(name);
    name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}
