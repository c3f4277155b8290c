// SPDX-License-Identifier: MIT
//! The kernel's scheduler on the same time axis: switches and wakeups of the server and of its local clients, from tracefs.
//!
//! An instance of our own is made, so that nobody else's tracing is touched, with the clock that the server's records use,
//! and removed at the end; one whose owner was killed is removed by the next. Needs the right to write to tracefs, which
//! root has.

use anyhow::{Context, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use xqos_abi::trace::{Event, What};
use xqos_core::Time;

const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PREFIX: &str = "xqos-";
const EVENTS: [&str; 2] = ["sched_switch", "sched_wakeup"];
/// O_NONBLOCK of Linux on all machines that X servers run on.
const O_NONBLOCK: i32 = 0o4000;

/// A running trace of the kernel's scheduler.
#[derive(Debug)]
pub struct Kernel {
    folder: PathBuf,
    /// Taken before the instance is removed: the kernel keeps one that is being read.
    pipe: Option<File>,
    rest: Vec<u8>,
}

impl Kernel {
    /// Begins to trace these threads.
    pub fn start(threads: &[u32]) -> Result<Kernel> {
        let root = TRACEFS.iter().map(Path::new).find(|root| root.join("instances").is_dir());
        let root = root.context(
            "the kernel's tracer is not there: as root, `mount -t tracefs nodev /sys/kernel/tracing`, and run this as root",
        )?;
        remove_orphans(root);
        let folder = root.join("instances").join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder)
            .context("the kernel's tracer cannot be used: run this as root, or leave --kernel away")?;
        match Kernel::begin(&folder, threads) {
            Ok(pipe) => Ok(Kernel { folder, pipe: Some(pipe), rest: Vec::new() }),
            Err(error) => {
                let _ = fs::remove_dir(&folder);
                Err(error.context("the kernel's tracer cannot be set up"))
            }
        }
    }

    fn begin(folder: &Path, threads: &[u32]) -> Result<File> {
        fs::write(folder.join("trace_clock"), "mono")?;
        let list = threads.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        fs::write(folder.join("set_event_pid"), list)?;
        let pipe = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(folder.join("trace_pipe"))?;
        for event in EVENTS {
            fs::write(folder.join("events/sched").join(event).join("enable"), "1")?;
        }
        Ok(pipe)
    }

    /// Traces another thread too.
    pub fn add(&self, thread: u32) {
        let file = OpenOptions::new().append(true).open(self.folder.join("set_event_pid"));
        // A client that has ended meanwhile is none to trace.
        let _ = file.and_then(|mut file| file.write_all(format!("{thread}\n").as_bytes()));
    }

    /// What happened since the last call.
    pub fn read(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let Some(pipe) = &mut self.pipe else { return events };
        let mut buffer = vec![0; 1 << 16];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => self.rest.extend(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') {
            let whole: Vec<u8> = self.rest.drain(..=end).collect();
            events.extend(String::from_utf8_lossy(&whole).lines().filter_map(parse));
        }
        events
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        for event in EVENTS {
            let _ = fs::write(self.folder.join("events/sched").join(event).join("enable"), "0");
        }
        self.pipe = None;
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Instances of processes that are gone.
fn remove_orphans(root: &Path) {
    for entry in fs::read_dir(root.join("instances")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|pid| pid.parse().ok());
        if owner.is_some_and(|pid| !xqos_proc::exists(pid)) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// A line of trace_pipe:
/// `Xvfb-77 [001] d..2. 12.345678: sched_switch: prev_comm=Xvfb prev_pid=77 prev_prio=120 prev_state=R ==> next_comm=a
/// next_pid=78 next_prio=120`, or `...: sched_wakeup: comm=Xvfb pid=77 prio=120 target_cpu=001`.
fn parse(line: &str) -> Option<Event> {
    let is_switch = line.contains(": sched_switch: ");
    let (head, fields) = line.split_once(if is_switch { ": sched_switch: " } else { ": sched_wakeup: " })?;
    let (seconds, micros) = head.split_whitespace().last()?.split_once('.')?;
    let at_ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
    let at = Time(at_ns.checked_mul(1000)?);
    let cpu = head.rsplit_once('[')?.1.split_once(']')?.0.parse().ok()?;
    // A program may be called anything, so fields are looked for from the end.
    let after = |text: &str, name: &str| -> Option<String> {
        let (_, value) = text.rsplit_once(name)?;
        Some(value.split_whitespace().next()?.to_owned())
    };
    let what = if is_switch {
        let (previous, next) = fields.rsplit_once(" ==> ")?;
        What::Switch {
            cpu,
            from: after(previous, " prev_pid=")?.parse().ok()?,
            to: after(next, " next_pid=")?.parse().ok()?,
            still_runnable: after(previous, " prev_state=")?.starts_with('R'),
        }
    } else {
        What::Wakeup { cpu, thread: after(fields, " pid=")?.parse().ok()? }
    };
    Some(Event { at, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_become_events() {
        let switch = "            Xvfb-77      [001] d..2.    12.345678: sched_switch: prev_comm=Xvfb prev_pid=77 \
                      prev_prio=120 prev_state=R+ ==> next_comm=a next_pid=1 b next_pid=78 next_prio=120";
        let what = What::Switch { cpu: 1, from: 77, to: 78, still_runnable: true };
        assert_eq!(parse(switch), Some(Event { at: Time(12_345_678_000), what }));
        let sleeps = switch.replace("R+", "S");
        let what = What::Switch { cpu: 1, from: 77, to: 78, still_runnable: false };
        assert_eq!(parse(&sleeps).map(|event| event.what), Some(what));
        let wakeup = " <idle>-0  [000] dN.4. 7.000001: sched_wakeup: comm=Xvfb pid=77 prio=120 target_cpu=000";
        assert_eq!(parse(wakeup), Some(Event { at: Time(7_000_001_000), what: What::Wakeup { cpu: 0, thread: 77 } }));
    }

    #[test]
    fn other_lines_are_passed_over() {
        for line in
            ["", "CPU:1 [LOST 45 EVENTS]", ": sched_switch: ", "x [0] 1.1: sched_wakeup: pid=", "a: sched_wakeup: b"]
        {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
