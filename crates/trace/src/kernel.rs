// SPDX-License-Identifier: MIT
//! Events of the kernel's scheduler on the trace's time axis: switches and wakeups of the server and its local clients.

use crate::tracefs::Instance;
use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::io::Write;
use xqos_abi::trace::{Entry, Event};
use xqos_core::Time;

const PIDS: &str = "set_event_pid";
const EVENTS: [&str; 2] = ["sched_switch", "sched_wakeup"];

/// A running trace of the kernel's scheduler.
#[derive(Debug)]
pub struct Kernel {
    instance: Instance,
}

impl Kernel {
    /// Starts tracing these threads.
    pub fn start(threads: &[u32]) -> Result<Kernel> {
        let kernel = Kernel { instance: Instance::create()? };
        kernel.begin(threads).context("cannot trace the kernel's scheduler")?;
        Ok(kernel)
    }

    fn begin(&self, threads: &[u32]) -> Result<()> {
        self.instance.write(PIDS, &threads.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))?;
        EVENTS.iter().try_for_each(|event| self.instance.write(&format!("events/sched/{event}/enable"), "1"))
    }

    /// Adds a thread to the traced threads.
    pub fn add(&self, thread: u32) {
        let file = OpenOptions::new().append(true).open(self.instance.folder().join(PIDS));
        // This fails if the client has exited in the meantime; it then needs no tracing.
        let _ = file.and_then(|mut file| file.write_all(format!("{thread}\n").as_bytes()));
    }

    /// The events since the last call.
    pub fn read(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        // After an error, keep the events that were read before it.
        let _ = self.instance.read(|line| events.extend(parse(line)));
        events
    }
}

/// Parses a line of trace_pipe: `Xvfb-77 [001] d..2. 12.345678: sched_switch: prev_comm=Xvfb prev_pid=77 prev_prio=120
/// prev_state=R ==> next_comm=a next_pid=78 next_prio=120`, or `...: sched_wakeup: comm=Xvfb pid=77 prio=120
/// target_cpu=001`.
fn parse(line: &str) -> Option<Event> {
    let is_switch = line.contains(": sched_switch: ");
    let (head, fields) = line.split_once(if is_switch { ": sched_switch: " } else { ": sched_wakeup: " })?;
    let (seconds, micros) = head.split_whitespace().last()?.split_once('.')?;
    let at_ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
    let at = Time(at_ns.checked_mul(1000)?);
    let cpu = head.rsplit_once('[')?.1.split_once(']')?.0.parse().ok()?;
    // A program's name may contain anything, even field names, so search for fields from the end.
    let after = |text: &str, name: &str| -> Option<String> {
        let (_, value) = text.rsplit_once(name)?;
        Some(value.split_whitespace().next()?.to_owned())
    };
    let what = if is_switch {
        let (previous, next) = fields.rsplit_once(" ==> ")?;
        Entry::Switch {
            cpu,
            from: after(previous, " prev_pid=")?.parse().ok()?,
            to: after(next, " next_pid=")?.parse().ok()?,
            still_runnable: after(previous, " prev_state=")?.starts_with('R'),
        }
    } else {
        Entry::Wakeup { cpu, thread: after(fields, " pid=")?.parse().ok()? }
    };
    Some(Event { at, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lines_become_events() {
        let switch = "            Xvfb-77      [001] d..2.    12.345678: sched_switch: prev_comm=Xvfb prev_pid=77 \
                      prev_prio=120 prev_state=R+ ==> next_comm=a next_pid=1 b next_pid=78 next_prio=120";
        let what = Entry::Switch { cpu: 1, from: 77, to: 78, still_runnable: true };
        assert_eq!(parse(switch), Some(Event { at: Time(12_345_678_000), what }));
        let sleeps = switch.replace("R+", "S");
        let what = Entry::Switch { cpu: 1, from: 77, to: 78, still_runnable: false };
        assert_eq!(parse(&sleeps).map(|event| event.what), Some(what));
        let wakeup = " <idle>-0  [000] dN.4. 7.000001: sched_wakeup: comm=Xvfb pid=77 prio=120 target_cpu=000";
        assert_eq!(parse(wakeup), Some(Event { at: Time(7_000_001_000), what: Entry::Wakeup { cpu: 0, thread: 77 } }));
    }

    #[test]
    fn other_lines_are_ignored() {
        for line in
            ["", "CPU:1 [LOST 45 EVENTS]", ": sched_switch: ", "x [0] 1.1: sched_wakeup: pid=", "a: sched_wakeup: b"]
        {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
