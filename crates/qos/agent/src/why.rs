// SPDX-License-Identifier: MIT
//! A flight recorder: keeps a server's latest records in memory, and returns them when a client has waited too long or
//! on request.
//!
//! The kernel's events stay in the kernel's own buffer until a long wait or a report ([`KernelHistory`]).

use crate::error::Result;
use crate::recording::{Backlog, Source, merged};
use crate::session::Session;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use xqos_abi::trace::{Entry, Event, Level, Words};
use xqos_cli::output::note;
use xqos_cli::program::one_line;
use xqos_core::Time;
use xqos_sys::proc::RunTimes;
use xqos_sys::{self as sys, Signals};
use xqos_trace::file::Header;
use xqos_trace::kernel::{Kernel, is_name};
use xqos_trace::why::{Trigger, WaitQuery};

/// Polling interval of the ring, which a busy server fills in twice that time or more.
const READ_EVERY: Duration = Duration::from_millis(50);
/// Maximum number of records in memory: 32 MB.
const RECORDS: usize = 1 << 20;
/// Maximum number of events of the kernel that are kept.
const EVENTS: usize = 1 << 20;
/// How long the recording continues after a long wait.
const AFTER_WAIT: Duration = Duration::from_secs(1);
/// Shorter waits of the server for a processor are ignored.
const ABSENT_NS: u64 = 1_000_000;
const SIGUSR1: i32 = libc::SIGUSR1;

#[derive(Debug)]
pub struct Wish {
    /// Waits up to this length are normal.
    pub limit_ns: u64,
    /// Record for this time only, then report once. `None`: report each long wait, until a signal.
    pub time: Option<Duration>,
    /// How long before a wait the records begin.
    pub history: Duration,
    /// Shortest time between two automatic reports.
    pub every: Duration,
    /// Also record the kernel's scheduling events, if this user may.
    pub has_kernel: bool,
}

/// The input of a report.
#[derive(Debug, Default)]
pub struct Recording {
    pub header: Header,
    pub records: Vec<Words>,
    pub question: WaitQuery,
}

#[derive(Debug)]
pub struct WaitRecorder<'a> {
    wish: Wish,
    source: Source<'a>,
    header: Header,
    backlog: Backlog,
    trigger: Trigger,
    kernel: Option<KernelHistory>,
    run_delay: Option<RunDelay>,
    /// Times in which the server waited for a processor.
    absences: VecDeque<(Time, Time)>,
    began: Instant,
    /// When the complete state was last requested.
    renewed: Instant,
    /// When the report of a long wait is due.
    due: Option<Instant>,
    reported: Option<Instant>,
}

impl<'a> WaitRecorder<'a> {
    pub fn start(session: &'a Session, server_pid: u32, wish: Wish) -> Result<WaitRecorder<'a>> {
        let kernel = wish.has_kernel.then(KernelHistory::start).flatten();
        let source = Source::open(session, Level::Slices, 0)?;
        let now = Instant::now();
        Ok(WaitRecorder {
            header: source.header(server_pid, kernel.is_some())?,
            backlog: Backlog::default(),
            trigger: Trigger::new(wish.limit_ns, std::process::id()),
            run_delay: RunDelay::of(server_pid),
            absences: VecDeque::new(),
            began: now,
            renewed: now,
            due: None,
            reported: None,
            wish,
            source,
            kernel,
        })
    }

    /// Records until a report is due: after a long wait, when `is_asked`, or at SIGUSR1. `None` at another signal, or
    /// when the server has ended the trace.
    pub fn next(&mut self, signals: &Signals, is_asked: impl Fn() -> bool) -> Result<Option<Recording>> {
        loop {
            let is_long = self.read()?;
            let (now, is_asked) = (Instant::now(), is_asked());
            let signal = signals.next().map(|signal| signal.number);
            let ends = signal.is_some_and(|number| number != SIGUSR1 && number != libc::SIGCHLD);
            let has_ended = self.source.ended.is_some();
            if let Some(time) = self.wish.time {
                if now - self.began >= time || ends || is_asked || has_ended {
                    return self.recording().map(Some);
                }
            } else if ends {
                return Ok(None);
            } else if is_asked || signal == Some(SIGUSR1) || self.is_due(is_long, now) {
                (self.due, self.reported) = (None, Some(now));
                return self.recording().map(Some);
            } else if let Some(why) = self.source.ended {
                note(why);
                return Ok(None);
            }
            if now - self.renewed >= self.wish.history / 2 || self.backlog.limit(RECORDS) {
                self.renewed = now;
                self.source.begin_anew()?;
            }
            std::thread::sleep(READ_EVERY);
        }
    }

    /// True if a long wait is to be reported now: a while after it, or when the server has exited.
    fn is_due(&mut self, is_long: bool, now: Instant) -> bool {
        let is_rested = self.reported.is_none_or(|at| now - at >= self.wish.every);
        if is_long && is_rested {
            self.due.get_or_insert(now + AFTER_WAIT);
        }
        self.due.is_some_and(|due| now >= due || self.source.ended.is_some())
    }

    /// Takes the records since the last call. Returns true if a client has waited too long.
    fn read(&mut self) -> Result<bool> {
        let history = self.wish.history;
        let mut is_long = false;
        for words in self.source.read()? {
            let event = Event::decode(words);
            let is_begin = matches!(event, Some(Event { what: Entry::Begin { .. }, .. }));
            is_long |= event.is_some_and(|event| self.trigger.take(&event));
            self.backlog.add(words, is_begin, history);
        }
        if let Some(absence) = self.run_delay.as_mut().and_then(RunDelay::absence) {
            is_long |= absence.1.since(absence.0) > self.wish.limit_ns;
            self.absences.push_back(absence);
            while self.absences.front().is_some_and(|first| absence.1.since(first.1) > 2 * history.as_nanos() as u64) {
                self.absences.pop_front();
            }
        }
        if is_long {
            self.read_kernel();
        }
        Ok(is_long)
    }

    /// Reads the kernel's events. The records cover up to one and a half times the history.
    fn read_kernel(&mut self) {
        let keep = self.wish.history * 2;
        self.kernel.iter_mut().for_each(|kernel| kernel.read(keep));
    }

    fn recording(&mut self) -> Result<Recording> {
        // Take the end time first: no records exist yet for the time that reading the kernel's events takes.
        let now_ns = sys::monotonic_ns();
        self.read()?;
        self.read_kernel();
        // The kernel's events are more exact.
        let is_known = |absence| self.kernel.as_ref().is_some_and(|kernel| kernel.covers(absence));
        let absences = self.absences.iter().copied().filter(|&absence| !is_known(absence)).collect();
        let of_kernel = self.kernel.iter().flat_map(KernelHistory::events);
        Ok(Recording {
            // The wall clock may have been set since the recording began.
            header: Header { realtime_offset_ns: sys::realtime_offset_ns(), ..self.header.clone() },
            records: records(&self.backlog, of_kernel, now_ns),
            question: WaitQuery { limit_ns: self.wish.limit_ns, asker: std::process::id(), absences },
        })
    }
}

/// The kept records with the kernel's events of the same time, and an end record.
fn records(backlog: &Backlog, of_kernel: impl Iterator<Item = Event>, now_ns: u64) -> Vec<Words> {
    let mut records: Vec<Words> = backlog.records().collect();
    let Some(began) = records.first().map(|words| Time(words[0])) else { return records };
    let end = Time(records.iter().map(|words| words[0]).max().unwrap_or(0).max(now_ns));
    // Thread names from before that time are still needed; switches are not.
    let is_within = |event: &Event| event.at <= end && (event.at >= began || is_name(&event.what));
    let of_kernel = of_kernel.filter(is_within).map(|event| Event { at: event.at.max(began), ..event }).collect();
    records.push(Event { at: end, what: Entry::End }.encode());
    merged(records, of_kernel).collect()
}

/// The kernel's scheduling events of the last seconds. On a busy machine, the kernel's buffer covers only one or two
/// seconds. It is read soon after each long wait, and its events are kept here until a report needs them.
#[derive(Debug)]
struct KernelHistory {
    kernel: Kernel,
    /// The events of each reading, with all names that they need.
    readings: VecDeque<Vec<Event>>,
}

impl KernelHistory {
    /// Starts to record, or reports why this is impossible.
    fn start() -> Option<KernelHistory> {
        let unnamed = "programs that take the server's processor will not be named";
        let started = Kernel::start().inspect_err(|error| note(&format!("{unnamed}: {}", one_line(error))));
        Some(KernelHistory { kernel: started.ok()?, readings: VecDeque::new() })
    }

    /// Reads the kernel's buffer. Forgets readings that are older than the time to keep.
    fn read(&mut self, keep: Duration) {
        self.readings.push_back(self.kernel.latest());
        let began = Time(xqos_sys::monotonic_ns().saturating_sub(keep.as_nanos() as u64));
        let ended_before = |reading: &Vec<Event>| reading.last().is_none_or(|last| last.at < began);
        while self.readings.front().is_some_and(ended_before) || self.readings.len() > 1 && self.count() > EVENTS {
            self.readings.pop_front();
        }
    }

    fn count(&self) -> usize {
        self.readings.iter().map(Vec::len).sum()
    }

    /// True if a reading has all events of this time.
    fn covers(&self, (from, to): (Time, Time)) -> bool {
        let began = |reading: &[Event]| reading.iter().find(|event| !is_name(&event.what)).map(|first| first.at);
        let covers = |reading: &Vec<Event>| {
            began(reading).is_some_and(|began| began <= from) && reading.last().is_some_and(|last| last.at >= to)
        };
        self.readings.iter().any(covers)
    }

    fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.readings.iter().flatten().copied()
    }
}

/// The time that a process has waited for a processor.
#[derive(Debug)]
struct RunDelay {
    times: RunTimes,
    before_ns: u64,
}

impl RunDelay {
    fn of(pid: u32) -> Option<RunDelay> {
        let times = RunTimes::of(pid as i32)?;
        Some(RunDelay { before_ns: times.read_ns()?.1, times })
    }

    /// The time for which the process waited for a processor since the last call, if it is long. The kernel counts a
    /// wait when the process runs again, which is at or after the end of the returned time.
    fn absence(&mut self) -> Option<(Time, Time)> {
        let (_, ns) = self.times.read_ns()?;
        let waited_ns = ns.saturating_sub(std::mem::replace(&mut self.before_ns, ns));
        let end = sys::monotonic_ns().saturating_sub(READ_EVERY.as_nanos() as u64);
        (waited_ns >= ABSENT_NS).then(|| (Time(end.saturating_sub(waited_ns)), Time(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_thread_names_are_kept_and_earlier_switches_dropped() {
        let mut backlog = Backlog::default();
        let begin = Entry::Begin { level: xqos_abi::trace::Level::Slices, server_pid: 9, words: 0 };
        backlog.add(Event { at: Time(100), what: begin }.encode(), true, std::time::Duration::MAX);
        let at = |at, what| Event { at: Time(at), what };
        let name = Entry::ThreadName { thread: 7, bytes: [b'a'; 16] };
        let switch = Entry::Switch { cpu: 0, from: 7, to: 9, still_runnable: false };
        let all = records(&backlog, [at(10, name), at(11, switch), at(120, switch), at(151, name)].into_iter(), 150);
        let all: Vec<Event> = all.into_iter().filter_map(Event::decode).collect();
        assert_eq!(all, [at(100, name), at(100, begin), at(120, switch), at(150, Entry::End)]);
    }
}
