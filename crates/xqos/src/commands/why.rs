// SPDX-License-Identifier: MIT
//! `xqos why`: explains why programs waited for the X server.
//!
//! A flight recorder: the latest records stay in memory until a client has waited too long, or until it is asked. Then
//! they become a folder with the trace, its page and the explanation. [`xqos_trace::why`] finds the cause, `text` puts
//! it into words.
//!
//! The kernel's events stay in the kernel's own buffer, which overwrites the oldest ones. They are read after each long
//! wait and for a report.

mod kernel_history;
mod report;
mod text;

use anyhow::Result;
use clap::Args;
use kernel_history::KernelHistory;
use report::Folders;
use std::collections::VecDeque;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use xqos_abi::trace::{Entry, Event, Level};
use xqos_agent::recording::{Backlog, Source};
use xqos_agent::session::Session;
use xqos_cli::output::{self, note};
use xqos_cli::program::one_line;
use xqos_core::Time;
use xqos_sys::proc::RunTimes;
use xqos_sys::{self as sys, Signals};
use xqos_text::quantity::Micros;
use xqos_text::time::of_ns;
use xqos_trace::file::Header;
use xqos_trace::why::{Question, Trigger, diagnose};

/// Polling interval of the ring, which a busy server fills in twice that time or more.
const READ_EVERY: Duration = Duration::from_millis(50);
/// Maximum number of records in memory: 32 MB.
const RECORDS: usize = 1 << 20;
/// How long the recording continues after a long wait.
const AFTER_WAIT: Duration = Duration::from_secs(1);
/// Shorter times in which the server waits for a processor are not kept.
const ABSENT_NS: u64 = 1_000_000;
const SIGUSR1: i32 = libc::SIGUSR1;

/// Explains why programs waited for the X server: who, for how long, for what, and what to do
///
/// Records the server and keeps the last seconds in memory. When a client has waited longer than the limit, when Enter
/// is pressed, or at SIGUSR1, it explains the longest wait of these seconds and writes a folder xqos-why-DATE-TIME with
/// the explanation, the trace and the trace as a page. It runs until ^C, or for the time of --time.
///
/// Causes that it tells apart: one long request, a server grab, many busy clients, a server without processor, the
/// client's own slow link, a used-up reservation, and the server's own work.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Explain this trace instead of a running server; writes no folder
    #[arg(value_name = "TRACE", conflicts_with_all = ["time", "history", "every", "keep", "output", "no_kernel"])]
    file: Option<PathBuf>,
    /// Record for this time, then explain the longest wait, even if it was short
    #[arg(long, value_name = "TIME")]
    time: Option<Micros>,
    /// Waits up to this time are normal
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    limit: Micros,
    /// How much of the time before a wait to keep [default: 10s, or the time of --time]
    #[arg(long, value_name = "TIME")]
    history: Option<Micros>,
    /// Shortest time between two folders that nobody asked for
    #[arg(long, value_name = "TIME", default_value = "1min")]
    every: Micros,
    /// Keep this many folders of this run, and remove the oldest ones
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    keep: u16,
    /// Where to make the folders; created if it does not exist
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// As root: leave out what the kernel ran
    #[arg(long)]
    no_kernel: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos why                      wait for a stutter; Enter explains the last 10 s
  xqos why --time 30s           record for 30 s, then explain the longest wait
  sudo xqos why --limit 50ms    as root, it names the programs that took the
                                server's processor
  pkill -USR1 -f 'xqos why'     explain now
  xqos why desk.trace           explain a recorded trace

Only waits of clients that are not busy make a folder: busy clients wait for
each other by design. A trace in a folder is at level slices, which adds no cost
to requests; at most 32 MB of records are kept in memory. As root, the kernel's
threads and interrupts are recorded too, in the kernel's own buffer.

In a folder: why.txt, why.html (open it in a browser), and why.trace (for
`xqos trace stats`, `xqos replay` and `xqos trace export`).";

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        if let Some(file) = &self.file {
            let (trace, names) = crate::commands::trace::open(file)?;
            let diagnosis = diagnose(trace.events(), &names, &self.question());
            return output::print(&text::explained(&diagnosis, &trace.header, self.limit.ns()));
        }
        let (session, info) = Session::open_armed(display)?;
        let folders = Folders::new(&self.output, self.keep.into())?;
        let signals = Signals::watch_with_user_signal()?;
        let kernel = if self.no_kernel { None } else { KernelHistory::start() };
        let source = Source::open(&session, Level::Slices, 0)?;
        let header = source.header(info.server_pid, kernel.is_some())?;
        note(&match self.time {
            Some(time) => {
                format!("recording {} for {}; Enter or ^C ends it earlier", session.display, of_ns(time.ns()))
            }
            None => format!(
                "recording {}: a wait longer than {}, Enter or SIGUSR1 makes a folder; ^C ends",
                session.display,
                of_ns(self.limit.ns())
            ),
        });
        let recorder = Recorder {
            arguments: self,
            trigger: Trigger::new(self.limit.ns(), std::process::id()),
            backlog: Backlog::default(),
            run_delay: RunDelay::of(info.server_pid),
            absences: VecDeque::new(),
            source,
            header,
            kernel,
            folders,
        };
        recorder.run(&signals)
    }

    fn question(&self) -> Question {
        Question { limit_ns: self.limit.ns(), asker: std::process::id(), absences: Vec::new() }
    }

    fn history(&self) -> Duration {
        const DEFAULT: Duration = Duration::from_secs(10);
        self.history.or(self.time).map_or(DEFAULT, Micros::duration)
    }
}

struct Recorder<'a> {
    arguments: &'a Arguments,
    source: Source<'a>,
    header: Header,
    backlog: Backlog,
    trigger: Trigger,
    kernel: Option<KernelHistory>,
    run_delay: Option<RunDelay>,
    /// Times in which the server waited for a processor.
    absences: VecDeque<(Time, Time)>,
    folders: Folders,
}

impl Recorder<'_> {
    fn run(mut self, signals: &Signals) -> Result<()> {
        let began = Instant::now();
        let (mut renewed, mut due, mut reported) = (began, None, None::<Instant>);
        loop {
            let is_long = self.read()?;
            let (now, is_asked) = (Instant::now(), is_enter_pressed());
            let signal = signals.next().map(|signal| signal.number);
            let is_over = self.arguments.time.is_some_and(|time| now - began >= time.duration());
            let ends = signal.is_some_and(|number| number != SIGUSR1 && number != libc::SIGCHLD);
            if self.arguments.time.is_some() {
                if is_over || ends || is_asked || self.source.ended.is_some() {
                    return self.report();
                }
            } else if ends {
                return Ok(());
            } else {
                let is_rested = reported.is_none_or(|at| now - at >= self.arguments.every.duration());
                if is_long && is_rested && due.is_none() {
                    due = Some(now + AFTER_WAIT);
                }
                if is_asked || signal == Some(SIGUSR1) || due.is_some_and(|due| now >= due) || self.ended_with(due) {
                    (due, reported) = (None, Some(now));
                    self.report().unwrap_or_else(|error| note(&one_line(&error)));
                }
                if let Some(why) = self.source.ended {
                    note(why);
                    return Ok(());
                }
            }
            if now - renewed >= self.arguments.history() / 2 || self.backlog.limit(RECORDS) {
                renewed = now;
                self.source.begin_anew()?;
            }
            std::thread::sleep(READ_EVERY);
        }
    }

    /// True if the server has exited before a report that is due.
    fn ended_with(&self, due: Option<Instant>) -> bool {
        self.source.ended.is_some() && due.is_some()
    }

    /// Takes the records since the last call. Returns true if a client has waited too long.
    fn read(&mut self) -> Result<bool> {
        let history = self.arguments.history();
        let mut is_long = false;
        for words in self.source.read()? {
            let event = Event::decode(words);
            let is_begin = matches!(event, Some(Event { what: Entry::Begin { .. }, .. }));
            is_long |= event.is_some_and(|event| self.trigger.take(&event));
            self.backlog.add(words, is_begin, history);
        }
        if let Some(absence) = self.run_delay.as_mut().and_then(RunDelay::absence) {
            is_long |= absence.1.since(absence.0) > self.arguments.limit.ns();
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
        let keep = self.arguments.history() * 2;
        self.kernel.iter_mut().for_each(|kernel| kernel.read(keep));
    }

    /// Explains the longest wait, and writes a folder.
    fn report(&mut self) -> Result<()> {
        // Reading the kernel's events takes time, for which there are no records yet.
        let now_ns = sys::monotonic_ns();
        self.read()?;
        self.read_kernel();
        // The kernel's events are more exact.
        let is_known = |absence| self.kernel.as_ref().is_some_and(|kernel| kernel.covers(absence));
        let absences = self.absences.iter().copied().filter(|&absence| !is_known(absence)).collect();
        let question = Question { absences, ..self.arguments.question() };
        let of_kernel = self.kernel.iter().flat_map(KernelHistory::events);
        let records = report::records(&self.backlog, of_kernel, now_ns);
        let folder = self.folders.write(&self.header, &records, &question)?;
        note(&format!("{} has the explanation, the trace and its page", folder.display()));
        Ok(())
    }
}

/// The time that a process has waited for a processor.
struct RunDelay {
    times: RunTimes,
    before_ns: u64,
}

impl RunDelay {
    fn of(pid: u32) -> Option<RunDelay> {
        let times = RunTimes::of(pid as i32)?;
        Some(RunDelay { before_ns: times.waited_ns()?, times })
    }

    /// The time since the last call in which the process waited for a processor, if it is long. The kernel counts it
    /// when the process runs again, which is at or after the end of the returned time.
    fn absence(&mut self) -> Option<(Time, Time)> {
        let ns = self.times.waited_ns()?;
        let waited_ns = ns.saturating_sub(std::mem::replace(&mut self.before_ns, ns));
        let end = sys::monotonic_ns().saturating_sub(READ_EVERY.as_nanos() as u64);
        (waited_ns >= ABSENT_NS).then(|| (Time(end.saturating_sub(waited_ns)), Time(end)))
    }
}

/// True if Enter was pressed in the terminal since the last call.
fn is_enter_pressed() -> bool {
    let stdin = std::io::stdin();
    let is_ready = || sys::readable([std::os::fd::AsFd::as_fd(&stdin)], Some(Duration::ZERO)).is_ok_and(|[is]| is);
    sys::has_keyboard() && is_ready() && stdin.lock().read(&mut [0; 256]).is_ok_and(|bytes| bytes > 0)
}
