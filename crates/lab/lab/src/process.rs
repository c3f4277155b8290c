// SPDX-License-Identifier: MIT
//! Processes that we start and end only by their own id, and their processor time.
//!
//! Experiments end processes by dropping them ([`Owned`]). A signal leaves no time for this, so a separate thread ends
//! all descendants, each by its own id ([`end_all`]). Orphans become our children ([`xqos_sys::adopt_orphans`]), so a
//! process whose parent ended first is found as well.

use crate::program::Missing;
use anyhow::{Context, Error, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufRead, BufReader};
use std::process::{self, Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use xqos_sys::proc::{self, RunTimes};
use xqos_sys::{Process, Processes, Procfs};

/// A process that we started. It is ended when this is dropped.
///
/// The process also ends when the thread that started it ends, so nothing is left when we are killed. Start processes
/// from a thread that outlives them.
#[derive(Debug)]
pub struct Owned {
    child: Child,
    grace: Duration,
}

impl Owned {
    /// Starts the process. It gets `grace` to end after SIGTERM. Fails with [`Missing`] if it is not installed.
    pub fn start(command: &mut Command, grace: Duration) -> Result<Owned> {
        xqos_sys::end_with_this_thread(command);
        let program = command.get_program().to_string_lossy().into_owned();
        let _leave = leave_to_start()?;
        let child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Missing::new(&program).into(),
            _ => Error::new(error).context(format!("cannot start {program}")),
        })?;
        Ok(Owned { child, grace })
    }

    /// Like [`Owned::start`], without input and output.
    pub fn start_silent(command: &mut Command, grace: Duration) -> Result<Owned> {
        Owned::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()), grace)
    }

    /// Like [`Owned::start`], without input. Returns the output as well; [`Owned::complaint`] reads the errors.
    pub fn start_with_output(command: &mut Command, grace: Duration) -> Result<(Owned, ChildStdout)> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Owned::start(command, grace)?;
        let output = process.child.stdout.take().context("the process has no output")?;
        Ok((process, output))
    }

    /// Like [`Owned::start_with_output`], but waits for the first line of the output and returns it. If the process
    /// prints nothing, the error is its complaint.
    pub fn start_until_line(command: &mut Command, grace: Duration) -> Result<(Owned, String)> {
        let (mut process, output) = Owned::start_with_output(command, grace)?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(!line.is_empty(), "{}", process.complaint());
        Ok((process, line))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn pipes(&mut self) -> &mut Child {
        &mut self.child
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Call this at the end of a measurement. Fails if the process is gone, because the measurement is then not valid.
    pub fn see_running(&mut self, name: &str) -> Result<()> {
        ensure!(self.is_running(), "{name} ended before the measurement did");
        Ok(())
    }

    /// The first line of its standard error, which must be a pipe. Waits for a line or for the end of the process.
    pub fn complaint(&mut self) -> String {
        let mut line = String::new();
        if let Some(errors) = self.child.stderr.take() {
            // A line that cannot be read counts as no line.
            let _ = BufReader::new(errors).read_line(&mut line);
        }
        if line.is_empty() { "it ended without an error message".to_owned() } else { line.trim().to_owned() }
    }

    /// Asks the process to end, without waiting for it. To end several processes, ask all of them first.
    pub fn ask_to_end(&mut self) {
        // A stopped process would not handle SIGTERM.
        for signal in [libc::SIGTERM, libc::SIGCONT] {
            self.signal(signal);
        }
    }

    /// Suspends the process, whatever it is doing, or lets it continue.
    pub fn stop(&mut self, stops: bool) {
        self.signal(if stops { libc::SIGSTOP } else { libc::SIGCONT });
    }

    fn signal(&mut self, signal: i32) {
        if self.is_running() {
            // The process has not been waited for yet, so its id has not been reused.
            xqos_sys::send(self.child.id() as i32, signal);
        }
    }

    pub fn end(&mut self) {
        self.ask_to_end();
        let deadline = Instant::now() + self.grace;
        while self.is_running() {
            if Instant::now() >= deadline {
                // An error means that the process is gone already.
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.end();
    }
}

pub fn cpu_time(pid: u32) -> Result<Duration> {
    cpu_time_where(pid, |_| true)
}

/// Processor time of the threads with this name; zero if there are none.
pub fn cpu_time_of_threads(pid: u32, name: &str) -> Result<Duration> {
    cpu_time_where(pid, |&tid| proc::name(tid).as_deref() == Some(name))
}

fn cpu_time_where(pid: u32, counts: impl Fn(&i32) -> bool) -> Result<Duration> {
    let threads = xqos_sys::threads(pid as i32);
    ensure!(!threads.is_empty(), "cannot read /proc/{pid}/task");
    // A thread that ended between the two readings is not an error.
    let times = threads.into_iter().filter(counts).filter_map(|tid| RunTimes::of(tid)?.read_ns());
    Ok(Duration::from_nanos(times.map(|(ran_ns, _)| ran_ns).sum()))
}

/// Raises our limit of open files, which children inherit: with 2,048 clients, we and a server each need as many.
pub fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // The soft limit can always be raised to the hard limit.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Locked while a process is started. Becomes true once no more processes may be started.
static IS_ENDING: Mutex<bool> = Mutex::new(false);

/// While the caller holds this lock, [`end_all`] waits, so it sees every process that the caller starts.
pub(crate) fn leave_to_start() -> Result<MutexGuard<'static, bool>> {
    let is_ending = IS_ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(!*is_ending, "interrupted");
    Ok(is_ending)
}

/// Ends all descendants and waits until they are gone. Those that remain after `grace` are killed. Nothing can be
/// started afterwards.
pub fn end_all(grace: Duration) {
    *IS_ENDING.lock().unwrap_or_else(PoisonError::into_inner) = true;
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let limit = Instant::now() + grace;
        let mut signalled = BTreeSet::new();
        while Instant::now() < limit {
            let all = Procfs.all();
            let left: Vec<i32> = below(process::id() as i32, &all).into_iter().filter(|pid| !all[pid].zombie).collect();
            if left.is_empty() {
                return;
            }
            for pid in left.into_iter().filter(|&pid| signalled.insert(pid)) {
                // This id belonged to a descendant a moment ago. The kernel assigns ids in sequence, so it has not
                // reused this one yet. SIGCONT wakes a stopped process.
                for signal in [signal, libc::SIGCONT] {
                    xqos_sys::send(pid, signal);
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Clock ticks of processor time of this process and its descendants, including those that have ended.
pub(crate) fn used_ticks() -> u64 {
    ticks_of(process::id() as i32, &Procfs.all())
}

fn ticks_of(top: i32, all: &HashMap<i32, Process>) -> u64 {
    let pids = [top].into_iter().chain(below(top, all));
    pids.filter_map(|pid| all.get(&pid)).map(|process| process.ticks).sum()
}

fn below(top: i32, all: &HashMap<i32, Process>) -> Vec<i32> {
    let children = |parent| all.iter().filter(move |(_, process)| process.parent == parent).map(|(&pid, _)| pid);
    let mut found: Vec<i32> = children(top).collect();
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(children(parent));
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn wait_for(what: &str, is_so: impl Fn() -> bool) {
        xqos_testkit::wait_for(what, Duration::from_secs(60), is_so);
    }

    #[test]
    fn an_error_names_a_process_that_ended_early() {
        let start = |seconds: &str| Owned::start(Command::new("sleep").arg(seconds), Duration::from_secs(1)).unwrap();
        let (mut short, mut long) = (start("0"), start("60"));
        while short.is_running() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let error = short.see_running("twm").unwrap_err();
        assert_eq!(error.to_string(), "twm ended before the measurement did");
        assert!(long.see_running("twm").is_ok());
    }

    #[test]
    fn processor_time_of_this_process_can_be_read() {
        let pid = std::process::id();
        assert!(cpu_time(pid).unwrap() > Duration::ZERO);
        assert_eq!(cpu_time_of_threads(pid, "no such thread").unwrap(), Duration::ZERO);
    }

    #[test]
    fn a_process_that_ignores_sigterm_is_killed() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; while :; do sleep 0.01; done"]);
        let mut process = Owned::start(&mut command, Duration::from_millis(50)).unwrap();
        assert!(process.is_running());
        std::thread::sleep(Duration::from_millis(50));
        process.end();
        assert!(!process.is_running());
    }

    #[test]
    fn a_stopped_process_writes_nothing_and_still_ends() {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do echo; done"]).stdout(Stdio::null());
        let mut process = Owned::start(&mut command, Duration::from_secs(60)).unwrap();
        let pid = process.pid() as i32;
        process.stop(true);
        wait_for("it stops", || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T "));
        let before = proc::written(pid).unwrap();
        std::thread::sleep(Duration::from_millis(100)); // time: nothing is written meanwhile
        assert_eq!(proc::written(pid).unwrap(), before);
        process.stop(false);
        wait_for("the process writes", || proc::written(pid).unwrap() > before);
        process.stop(true);
        process.end();
        let status = process.child.try_wait().unwrap().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGTERM), "the process ended without SIGKILL");
    }

    fn process(parent: i32, ticks: u64) -> Process {
        Process { parent, started: 0, zombie: false, ticks }
    }

    #[test]
    fn descendants_are_found_and_other_processes_are_not() {
        let all = [(5, 4), (2, 1), (4, 2), (3, 1), (9, 8)].map(|(pid, parent)| (pid, process(parent, 0)));
        assert_eq!(below(2, &HashMap::from(all)), [4, 5]);
    }

    /// Ticks of ended children are included in their parent's.
    #[test]
    fn processor_time_includes_all_descendants() {
        let all = [(5, process(4, 1)), (2, process(1, 10)), (4, process(2, 100)), (3, process(1, 1000))];
        assert_eq!(ticks_of(2, &HashMap::from(all)), 111);
    }
}
