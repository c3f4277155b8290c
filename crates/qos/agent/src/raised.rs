// SPDX-License-Identifier: MIT
//! Processes with raised priority, and their previous scheduling.
//!
//! The list is in memory that is shared with the guard process. An entry is written before its process is raised, and
//! cleared after the process is restored. If this process or the guard dies, the other one thus finds all processes to
//! restore. A process is identified by its pid and start time, because pids are reused.
//!
//! The guard is forked before any process is raised. It ignores the signals that a terminal sends to end programs, and
//! only waits for end of file on a pipe that its parent holds open. Its priority is above that of raised processes, so
//! that it gets the processor in time. If the guard itself is killed, its parent notices and exits.

use crate::processor::other_threads;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use xqos_sys::{Attributes, Processes, Procfs, proc};

/// Maximum number of raised processes. In practice, fewer programs redraw at the same time.
const MAX_RAISED: usize = 64;

/// Real-time priority of the guard and its parent; raised programs get a lower one.
pub const PRIORITY: u32 = 5;

/// Entry for one process, shared with the guard: pid (0 if unused), start time and previous scheduling.
type RaisedEntry = [AtomicU64; 6];

/// Result of an attempt to raise a process.
#[derive(Debug)]
pub enum RaiseResult {
    Raised,
    /// The process belongs to another user.
    Foreign,
    /// The process does not have default scheduling, or is already raised.
    Otherwise,
    Impossible(io::Error),
}

#[derive(Debug)]
pub struct Raised {
    entries: &'static [RaisedEntry; MAX_RAISED],
    until: [Option<Instant>; MAX_RAISED],
    /// Only processes of this user are raised; `None` means any user.
    user: Option<u32>,
}

impl Raised {
    /// Prepares to raise processes of `user`; `None` for any user.
    pub fn new(user: Option<u32>) -> io::Result<Raised> {
        Ok(Raised { entries: xqos_sys::shared()?, until: [None; MAX_RAISED], user })
    }

    /// Raises a process until that time, or until [`Raised::take_back`].
    pub fn raise(&mut self, pid: i32, attributes: Attributes, until: Option<Instant>) -> RaiseResult {
        let Some(process) = Procfs.look(pid) else { return RaiseResult::Impossible(io::ErrorKind::NotFound.into()) };
        match proc::owner(pid) {
            Ok(owner) if self.user.is_none_or(|user| owner == user) => {}
            Ok(_) => return RaiseResult::Foreign,
            Err(error) => return RaiseResult::Impossible(error),
        }
        let before = match Attributes::of(pid) {
            Ok(before) if before.is_normal() => before,
            Ok(_) => return RaiseResult::Otherwise,
            Err(error) => return RaiseResult::Impossible(error),
        };
        let Some(at) = self.position(0) else { return RaiseResult::Otherwise };
        let [entry_pid, started, words @ ..] = &self.entries[at];
        started.store(process.started, Ordering::SeqCst);
        for (cell, word) in words.iter().zip(before.words()) {
            cell.store(word, Ordering::SeqCst);
        }
        entry_pid.store(pid as u64, Ordering::SeqCst);
        match attributes.give(pid) {
            Ok(()) => {
                self.until[at] = until;
                RaiseResult::Raised
            }
            Err(error) => {
                entry_pid.store(0, Ordering::SeqCst);
                RaiseResult::Impossible(error)
            }
        }
    }

    pub fn change(&self, pid: i32, attributes: Attributes) -> io::Result<()> {
        self.position(pid).ok_or(io::ErrorKind::NotFound)?;
        attributes.give(pid)
    }

    /// Restores the previous scheduling of a process. Returns true if it was raised.
    pub fn take_back(&mut self, pid: i32) -> bool {
        let entry = self.position(pid);
        if let Some(at) = entry {
            self.put_back(at);
        }
        entry.is_some()
    }

    /// Restores the processes whose time limit has expired.
    pub fn take_back_late(&mut self, now: Instant) {
        for at in 0..MAX_RAISED {
            if self.until[at].is_some_and(|until| until <= now) {
                self.put_back(at);
            }
        }
    }

    pub fn take_back_all(&mut self) {
        self.until = [None; MAX_RAISED];
        put_all_back(self.entries);
    }

    pub fn next(&self) -> Option<Instant> {
        self.until.iter().flatten().min().copied()
    }

    fn position(&self, pid: i32) -> Option<usize> {
        self.entries.iter().position(|[entry_pid, ..]| entry_pid.load(Ordering::SeqCst) == pid as u64)
    }

    fn put_back(&mut self, at: usize) {
        self.until[at] = None;
        put_back(&self.entries[at]);
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        self.take_back_all();
    }
}

/// The parent's handle of the guard process. Dropping it ends the guard.
#[derive(Debug)]
pub struct Guard(UnixStream);

impl Guard {
    /// Starts the guard. Call this before any thread is started.
    pub fn start(raised: &Raised) -> io::Result<Guard> {
        let (ours, mut theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (entries, mut ours) = (raised.entries, Some(ours));
        xqos_sys::fork(|| {
            // Only the parent may hold the other end.
            ours = None;
            xqos_sys::ignore_signals();
            // Without the privilege, the guard may act late.
            let _ = Attributes::real_time(PRIORITY).give(0);
            // Nothing is ever written, so read() returns when the other end is closed.
            let _ = theirs.read(&mut [0]);
            put_all_back(entries);
        })?;
        ours.map(Guard).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    pub fn is_gone(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0))
    }
}

impl AsRawFd for Guard {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

fn put_all_back(entries: &[RaisedEntry; MAX_RAISED]) {
    entries.iter().for_each(put_back);
}

fn put_back([entry_pid, started, words @ ..]: &RaisedEntry) {
    let pid = entry_pid.load(Ordering::SeqCst) as i32;
    if pid == 0 {
        return;
    }
    if Procfs.look(pid).is_some_and(|process| process.started == started.load(Ordering::SeqCst)) {
        let before = Attributes::from_words([0, 1, 2, 3].map(|at: usize| words[at].load(Ordering::SeqCst)));
        let raised = Attributes::of(pid).ok();
        // Ignore errors here and below, because the process may have ended.
        let _ = before.give(pid);
        // New threads do not inherit the scheduling, but may have copied it, as GLib's thread pools do if they have
        // the privilege.
        let copies = other_threads(pid).into_iter().filter(|(_, now)| Some(*now) == raised);
        copies.for_each(|(thread, _)| _ = before.give(thread));
    }
    entry_pid.store(0, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
    use std::time::Duration;
    use xqos_sys::calling_user;

    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Sleeper {
            Sleeper(Command::new("sleep").arg("60").spawn().unwrap())
        }

        fn pid(&self) -> i32 {
            self.0.id() as i32
        }

        fn nice(&self) -> i32 {
            Attributes::of(self.pid()).unwrap().nice()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    // Anybody may lower a priority, but raising it again needs the privilege.
    fn is_allowed() -> bool {
        let may = std::thread::spawn(|| Attributes::normal(-1, 0).give(0).is_ok()).join().unwrap();
        if !may {
            xqos_testkit::left_out("this user may not raise priorities");
        }
        may
    }

    #[test]
    fn a_raised_process_is_restored() {
        if !is_allowed() {
            return;
        }
        let sleeper = Sleeper::start();
        Attributes::normal(3, 0).give(sleeper.pid()).unwrap();
        let mut raised = Raised::new(Some(calling_user())).unwrap();
        let nicer = Attributes::normal(-5, 0);
        let end = Instant::now() + Duration::from_secs(1);
        assert!(matches!(raised.raise(sleeper.pid(), nicer, Some(end)), RaiseResult::Raised));
        assert_eq!((sleeper.nice(), raised.next()), (-5, Some(end)));
        raised.take_back_late(end - Duration::from_nanos(1));
        assert_eq!(sleeper.nice(), -5, "its time is not over");
        raised.take_back_late(end);
        assert_eq!((sleeper.nice(), raised.next()), (3, None));
        assert!(!raised.take_back(sleeper.pid()), "nothing is left to take back");
        assert!(matches!(raised.raise(sleeper.pid(), nicer, Some(end)), RaiseResult::Raised));
        drop(raised);
        assert_eq!(sleeper.nice(), 3);
    }

    #[test]
    fn a_thread_that_copied_the_priority_is_restored() {
        if !is_allowed() {
            return;
        }
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            let _ = ended.recv();
        });
        let path = told.recv().unwrap();
        let copier: i32 = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let own = std::process::id() as i32;
        let (before, nicer) = (Attributes::of(copier).unwrap(), Attributes::favoured(-5, 0));
        let mut raised = Raised::new(Some(calling_user())).unwrap();
        assert!(matches!(raised.raise(own, nicer, Some(Instant::now())), RaiseResult::Raised));
        Attributes::of(own).unwrap().give(copier).unwrap();
        assert_eq!(Attributes::of(copier).unwrap().nice(), -5);
        assert!(raised.take_back(own));
        assert_eq!(Attributes::of(copier).unwrap(), before);
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn foreign_missing_and_real_time_processes_are_not_raised() {
        let sleeper = Sleeper::start();
        let (soon, nicer) = (Instant::now(), Attributes::normal(5, 0));
        let mut of_others = Raised::new(Some(calling_user() + 1)).unwrap();
        assert!(matches!(of_others.raise(sleeper.pid(), nicer, Some(soon)), RaiseResult::Foreign));
        let mut raised = Raised::new(Some(calling_user())).unwrap();
        assert!(matches!(raised.raise(i32::MAX, nicer, Some(soon)), RaiseResult::Impossible(_)));
        if is_allowed() && Attributes::real_time(1).give(sleeper.pid()).is_ok() {
            assert!(matches!(raised.raise(sleeper.pid(), nicer, Some(soon)), RaiseResult::Otherwise));
        }
    }
}
