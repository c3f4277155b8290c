// SPDX-License-Identifier: MIT
//! The kernel's trace of the server's system calls.

use super::events::Event;
use anyhow::{Context, Result, bail};
use std::fs;
use xqos_trace::tracefs;

/// Reads, closes, opened files, and waits with their ends.
const CALLS: [&str; 20] = [
    "enter_recvmsg",
    "enter_recvfrom",
    "enter_read",
    "enter_readv",
    "enter_close",
    "exit_openat",
    "enter_epoll_wait",
    "enter_epoll_pwait",
    "enter_epoll_pwait2",
    "enter_select",
    "enter_pselect6",
    "enter_poll",
    "enter_ppoll",
    "exit_epoll_wait",
    "exit_epoll_pwait",
    "exit_epoll_pwait2",
    "exit_select",
    "exit_pselect6",
    "exit_poll",
    "exit_ppoll",
];
/// For each processor. A busy server makes some hundred thousand calls a second, each of less than 64 bytes.
const BUFFER_KB: &str = "8192";

#[derive(Debug)]
pub struct Instance {
    trace: tracefs::Instance,
}

impl Instance {
    /// Watches the main threads of processes.
    pub fn start(pids: &[i32]) -> Result<Instance> {
        let instance = Instance { trace: tracefs::Instance::create()? };
        instance.set_up(pids).context("the kernel does not trace system calls for us")?;
        Ok(instance)
    }

    fn set_up(&self, pids: &[i32]) -> Result<()> {
        self.trace.write("buffer_size_kb", BUFFER_KB)?;
        self.trace.write("set_event_pid", &pids.iter().map(i32::to_string).collect::<Vec<_>>().join(" "))?;
        for call in CALLS {
            let event = format!("events/syscalls/sys_{call}/enable");
            // Not every machine has all of them.
            if self.trace.folder().join(&event).exists() {
                self.trace.write(&event, "1")?;
            } else if call == "enter_recvmsg" {
                bail!("it has no events of system calls (CONFIG_FTRACE_SYSCALLS)");
            }
        }
        Ok(())
    }

    /// The events that have come since.
    pub fn read(&mut self, mut take: impl FnMut(Event)) -> Result<()> {
        self.trace.read(|line| {
            if let Some(event) = Event::parse(line) {
                take(event);
            }
        })
    }

    /// Events that found no room so far.
    pub fn lost(&self) -> u64 {
        let processors = fs::read_dir(self.trace.folder().join("per_cpu")).into_iter().flatten().flatten();
        let lost = |stats: String| {
            let line = stats.lines().find_map(|line| line.strip_prefix("overrun: ")?.trim().parse::<u64>().ok());
            line.unwrap_or(0)
        };
        processors.filter_map(|entry| fs::read_to_string(entry.path().join("stats")).ok()).map(lost).sum()
    }
}
