// SPDX-License-Identifier: MIT
//! Signals: receiving them through a file, sending them, and unblocking them in child processes.

use crate::checked;
use rustix::process::{Pid, Signal as SignalNumber, kill_process};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

/// The signals that `xqos run` handles.
const WATCHED: [i32; 4] = [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
const WITH_USER_SIGNAL: [i32; 5] = [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    pub number: i32,
    /// Sent by the kernel, like ^C on a terminal: the whole foreground process group has received it.
    pub from_kernel: bool,
}

/// Signals as a file to poll.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// From now on, the watched signals arrive only here.
    pub fn watch() -> io::Result<Signals> {
        Signals::watch_these(watched_set(&WATCHED))
    }

    /// Also watches SIGUSR1, which otherwise ends the process.
    pub fn watch_with_user_signal() -> io::Result<Signals> {
        Signals::watch_these(watched_set(&WITH_USER_SIGNAL))
    }

    fn watch_these(set: libc::sigset_t) -> io::Result<Signals> {
        // SAFETY: `set` is initialised and outlives the calls; SIG_DFL is a valid disposition. An inherited SIG_IGN for
        // SIGCHLD would make children vanish without a status.
        unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            checked(libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut()))?;
            let fd = checked(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
            // SAFETY (continued): `fd` is new and has no other owner.
            Ok(Signals(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// True if a signal has arrived that ends this process: any signal except SIGCHLD.
    pub fn termination_requested(&self) -> bool {
        std::iter::from_fn(|| self.next()).any(|signal| signal.number != libc::SIGCHLD)
    }

    pub fn next(&self) -> Option<Signal> {
        // SAFETY: a signalfd_siginfo consists of plain numbers, for which zeros are valid; read writes at most its
        // size.
        unsafe {
            let mut info: libc::signalfd_siginfo = mem::zeroed();
            let size = mem::size_of_val(&info);
            let got = libc::read(self.0.as_raw_fd(), ptr::from_mut(&mut info).cast(), size);
            let whole = usize::try_from(got).is_ok_and(|got| got == size);
            whole.then_some(Signal { number: info.ssi_signo as i32, from_kernel: info.ssi_code == libc::SI_KERNEL })
        }
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

fn watched_set(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set; sigaddset of valid signal numbers cannot fail.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        set
    }
}

/// Unblocks the watched signals in a command's program, so that it receives them as usual.
pub fn unblock_signals_in(command: &mut Command) {
    let set = watched_set(&WITH_USER_SIGNAL);
    // SAFETY: between fork and exec only sigprocmask is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(move || checked(libc::sigprocmask(libc::SIG_UNBLOCK, &set, ptr::null_mut())).map(drop));
    }
}

/// Sends a signal; a process that has exited is not an error.
pub fn send(pid: i32, signal: i32) {
    // Only a pid above 0 stands for a single process.
    if let (true, Some(pid), Some(signal)) = (pid > 0, Pid::from_raw(pid), SignalNumber::from_named_raw(signal)) {
        let _ = kill_process(pid, signal);
    }
}

/// Ignores SIGINT, SIGTERM, SIGHUP and SIGPIPE.
pub fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: SIG_IGN is a valid disposition.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
