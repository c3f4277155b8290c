// SPDX-License-Identifier: MIT
//! Events of the kernel on the trace's time axis: which thread each processor runs, wake-ups and interrupts.
//!
//! All threads of the machine are traced, because any of them can take a processor from the server or a client.

use crate::model::DEFAULT_PRIORITY;
use crate::tracefs::Instance;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use xqos_abi::trace::{Entry, Event};
use xqos_core::Time;
use xqos_sys::proc::process_of;

/// The events, each with its folder and its mark in a line of the trace.
const EVENTS: [(&str, &str); 6] = [
    ("sched", ": sched_switch: "),
    ("sched", ": sched_wakeup: "),
    ("irq", ": irq_handler_entry: "),
    ("irq", ": irq_handler_exit: "),
    ("irq", ": softirq_entry: "),
    ("irq", ": softirq_exit: "),
];

/// Buffer for each processor: some 60,000 switches, in case the recorder gets no processor for a while.
const BUFFER_KB: usize = 4096;
/// All buffers together, on a machine with many processors.
const ALL_BUFFERS_KB: usize = 128 * 1024;

#[derive(Debug)]
pub struct Kernel {
    pub instance: Instance,
    lines: Lines,
}

impl Kernel {
    pub fn start() -> Result<Kernel> {
        let kernel = Kernel { instance: Instance::create()?, lines: Lines::default() };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let buffer_kb = BUFFER_KB.min(ALL_BUFFERS_KB / processors).max(64);
        kernel.instance.write("buffer_size_kb", &buffer_kb.to_string())?;
        for (folder, mark) in EVENTS {
            let event = mark.trim_matches([':', ' ']);
            let enabled = kernel.instance.write(&format!("events/{folder}/{event}/enable"), "1");
            enabled.context("cannot trace the kernel's scheduler and interrupts")?;
        }
        Ok(kernel)
    }

    /// The events between the last call and this one. Events that occur during this call stay in the kernel's buffer:
    /// they may occur faster than they are read.
    pub fn read(&mut self) -> Vec<Event> {
        let Kernel { instance, lines } = self;
        let (mut events, now) = (Vec::<Event>::new(), Time(xqos_sys::monotonic_ns()));
        // After an error, keep the events that were read before it.
        let _ = instance.read(|line| {
            lines.take(line, &mut events);
            events.last().is_none_or(|event| event.at <= now)
        });
        events
    }

    /// The latest events, which the kernel's buffers keep, and all names. Nothing is read before this call, so
    /// recording costs this process nothing. Each processor has its own buffer. The result begins at the time from
    /// which all buffers have events.
    pub fn latest(&mut self) -> Vec<Event> {
        self.lines = Lines::default();
        let mut events = self.read();
        let began = self.lines.complete_since;
        events.retain(|event| event.at >= began || is_name(&event.what));
        events
    }
}

/// State from earlier lines.
#[derive(Debug, Default)]
struct Lines {
    threads: BTreeMap<u32, [u8; 16]>,
    priorities: BTreeMap<u32, i32>,
    named: BTreeSet<(u32, bool)>,
    /// Start of the handler that runs on a processor. Soft interrupts are separate, because hard ones interrupt them.
    handlers: BTreeMap<(u32, bool), Time>,
    /// The kernel has reported lost events, which are older than the next event.
    has_lost: bool,
    /// No event was lost after this time.
    complete_since: Time,
}

impl Lines {
    /// Takes a line of trace_pipe: `Xvfb-77 [001] d..2. 12.345678: sched_wakeup: comm=a pid=78 prio=120
    /// target_cpu=001`. `None` if the line is something else.
    fn take(&mut self, line: &str, events: &mut Vec<Event>) -> Option<()> {
        self.has_lost |= line.starts_with("CPU:") && line.ends_with(" EVENTS]");
        let found = |&(_, mark): &(&str, &'static str)| Some((mark, line.split_once(mark)?));
        let (mark, (head, fields)) = EVENTS.iter().find_map(found)?;
        let (seconds, micros) = head.split_whitespace().last()?.split_once('.')?;
        let at_us = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
        let at = Time(at_us.checked_mul(1000)?);
        if std::mem::take(&mut self.has_lost) {
            self.complete_since = at;
        }
        let cpu = head.rsplit_once('[')?.1.split_once(']')?.0.parse().ok()?;
        let is_soft = mark.contains("softirq");
        let number = || fields.split_once('=')?.1.split(' ').next()?.parse::<u32>().ok();
        let what = match mark.trim_matches([':', ' ']) {
            "sched_switch" => {
                let (previous, next) = fields.rsplit_once(" ==> ")?;
                let (from, from_name) = task(previous, "prev_comm=", " prev_pid=")?;
                let (to, to_name) = task(next, "next_comm=", " next_pid=")?;
                let still_runnable = previous.rsplit_once(" prev_state=")?.1.starts_with('R');
                for (thread, name, fields, mark) in
                    [(from, from_name, previous, " prev_prio="), (to, to_name, next, " next_prio=")]
                {
                    self.name(at, thread, name, events);
                    self.prioritise(at, thread, fields.rsplit_once(mark)?.1, events);
                }
                Entry::Switch { cpu, from, to, still_runnable }
            }
            "sched_wakeup" => {
                let (thread, name) = task(fields, "comm=", " pid=")?;
                self.name(at, thread, name, events);
                Entry::Wakeup { cpu, thread }
            }
            "irq_handler_entry" | "softirq_entry" => {
                let (number, name) = (number()?, fields.rsplit_once('=')?.1.trim_end_matches(']'));
                self.handlers.insert((cpu, is_soft), at);
                if !self.named.insert((number, is_soft)) {
                    return Some(());
                }
                Entry::InterruptName { number, is_soft, bytes: padded(name) }
            }
            _ => {
                let ns = at.since(self.handlers.remove(&(cpu, is_soft))?);
                Entry::Interrupt { cpu, number: number()?, is_soft, ns }
            }
        };
        events.push(Event { at, what });
        Some(())
    }

    /// Adds the priority of a thread if it is new.
    fn prioritise(&mut self, at: Time, thread: u32, fields: &str, events: &mut Vec<Event>) {
        let Some(priority) = fields.split(' ').next().and_then(|number| number.parse().ok()) else { return };
        if thread != 0 && self.priorities.insert(thread, priority).unwrap_or(DEFAULT_PRIORITY) != priority {
            events.push(Event { at, what: Entry::Priority { thread, priority } });
        }
    }

    /// Adds the name and the process of a thread if they are new. Thread 0 is the idle thread.
    fn name(&mut self, at: Time, thread: u32, name: &str, events: &mut Vec<Event>) {
        let bytes = padded(name);
        if thread == 0 || self.threads.get(&thread) == Some(&bytes) {
            return;
        }
        events.push(Event { at, what: Entry::ThreadName { thread, bytes } });
        let was_known = self.threads.insert(thread, bytes).is_some();
        // A new name may mean that the number belongs to another thread now.
        if let Some(process) = process_of(thread).filter(|&process| was_known || process != thread) {
            events.push(Event { at, what: Entry::Thread { thread, process } });
        }
    }
}

/// True for names, which are needed for later events too.
pub fn is_name(what: &Entry) -> bool {
    !matches!(what, Entry::Switch { .. } | Entry::Wakeup { .. } | Entry::Interrupt { .. })
}

/// The number and name of a thread. The name may contain anything, even the names of fields.
fn task<'a>(fields: &'a str, name: &str, number: &str) -> Option<(u32, &'a str)> {
    let (before, after) = fields.rsplit_once(number)?;
    Some((after.split(' ').next()?.parse().ok()?, before.strip_prefix(name)?))
}

fn padded(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(name.bytes()).for_each(|(byte, letter)| *byte = letter);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that no real thread has.
    const NOBODY: u32 = 2_000_000_077;

    fn events(lines: &[&str]) -> Vec<Event> {
        let (mut reader, mut events) = (Lines::default(), Vec::new());
        lines.iter().for_each(|line| _ = reader.take(line, &mut events));
        events
    }

    #[test]
    fn switches_and_wake_ups_become_events_and_names_are_added_once() {
        let switch = "  Xvfb-2000000077  [001] d..2.  12.345678: sched_switch: prev_comm=Xvfb prev_pid=2000000077 \
                      prev_prio=120 prev_state=R+ ==> next_comm=a next_pid=1 b next_pid=2000000078 next_prio=120";
        let sleeps = switch.replace("R+", "S");
        let wakeup = " <idle>-0  [000] dN.4. 7.000001: sched_wakeup: comm=Xvfb pid=2000000077 prio=120 target_cpu=000";
        let (at, then) = (Time(12_345_678_000), Time(7_000_001_000));
        let name = |thread, name| Event { at, what: Entry::ThreadName { thread, bytes: padded(name) } };
        let switched = |still_runnable| {
            let (cpu, from, to) = (1, NOBODY, NOBODY + 1);
            Event { at, what: Entry::Switch { cpu, from, to, still_runnable } }
        };
        let woken = Event { at: then, what: Entry::Wakeup { cpu: 0, thread: NOBODY } };
        let names = [name(NOBODY, "Xvfb"), name(NOBODY + 1, "a next_pid=1 b")];
        let expected = [names[0], names[1], switched(true), switched(false), woken];
        assert_eq!(events(&[switch, &sleeps, wakeup]), expected);
    }

    #[test]
    fn an_interrupt_inside_a_soft_interrupt_has_its_own_length() {
        let line = |us: u32, event: &str| format!(" Xvfb-77 [001] d.h1. 5.{us:06}: {event}");
        let lines = [
            line(10, "softirq_entry: vec=1 [action=TIMER]"),
            line(20, "irq_handler_entry: irq=34 name=virtio4-input"),
            line(25, "irq_handler_exit: irq=34 ret=handled"),
            line(50, "softirq_exit: vec=1 [action=TIMER]"),
            line(60, "irq_handler_exit: irq=35 ret=handled"),
        ];
        let seen: Vec<Entry> = events(&lines.each_ref().map(String::as_str)).iter().map(|event| event.what).collect();
        let (hard, soft) = ((34, false), (1, true));
        let named = |(number, is_soft), name| Entry::InterruptName { number, is_soft, bytes: padded(name) };
        let ran = |(number, is_soft), ns| Entry::Interrupt { cpu: 1, number, is_soft, ns };
        assert_eq!(seen, [named(soft, "TIMER"), named(hard, "virtio4-input"), ran(hard, 5_000), ran(soft, 40_000)]);
    }

    #[test]
    fn a_changed_priority_becomes_an_event() {
        let line = |state: &str, priority: i32| {
            format!(
                " hog-77 [001] d..2. 5.000001: sched_switch: prev_comm=hog prev_pid={NOBODY} prev_prio={priority} \
                 prev_state={state} ==> next_comm=swapper/1 next_pid=0 next_prio=120"
            )
        };
        let lines = [line("S", 120), line("S", 49), line("R", 49), line("S", -1)];
        let seen = events(&lines.each_ref().map(String::as_str));
        let told = seen.iter().filter_map(|event| match event.what {
            Entry::Priority { thread: NOBODY, priority } => Some(priority),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), [49, -1]);
    }

    #[test]
    fn other_lines_are_ignored() {
        for line in
            ["", "CPU:1 [LOST 45 EVENTS]", ": sched_switch: ", "x [0] 1.1: sched_wakeup: pid=", "a: sched_wakeup: b"]
        {
            assert_eq!(events(&[line]), [], "{line}");
        }
    }

    #[test]
    fn lost_events_move_the_start_of_the_complete_part() {
        let wakeup =
            |at| format!(" <idle>-0 [000] dN.4. {at}: sched_wakeup: comm=Xvfb pid=2000000077 prio=120 target_cpu=000");
        let mut lines = Lines::default();
        let mut since = |line: &str| {
            lines.take(line, &mut Vec::new());
            lines.complete_since
        };
        assert_eq!(since(&wakeup("7.000001")), Time(0));
        assert_eq!(since("CPU:1 [LOST 45 EVENTS]"), Time(0));
        assert_eq!([since(&wakeup("7.000002")), since(&wakeup("7.000003"))], [Time(7_000_002_000); 2]);
    }

    #[test]
    fn a_thread_is_assigned_to_its_process() {
        let own = std::process::id();
        let of_another_thread = || {
            let path = std::fs::read_link("/proc/thread-self").unwrap();
            let thread = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
            (thread, process_of(thread))
        };
        let (thread, process) = std::thread::spawn(of_another_thread).join().unwrap();
        assert!(thread != own && process == Some(own), "{thread} of {process:?}");
    }
}
