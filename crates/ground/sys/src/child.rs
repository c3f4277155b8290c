// SPDX-License-Identifier: MIT
//! Child processes: fork, exec and wait.

use crate::checked;
use crate::sched::Attributes;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, set_child_subreaper, set_parent_process_death_signal, wait as wait_for_any,
    waitpid,
};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::ptr;
use std::sync::atomic::AtomicU64;

/// Runs `child` in a copy of this process, which then exits. Returns the pid.
///
/// The copy has only one thread. Locks held by other threads may stay locked in it forever: glibc and musl keep memory
/// allocation usable, but `child` must not use standard streams, the environment or other threads.
pub fn fork(child: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the copy runs `child`, catches its panics and never returns into the caller's frames. A lock held by
    // another thread can make it wait forever, but it never sees torn data.
    match unsafe { libc::fork() } {
        0 => {
            let _ = catch_unwind(AssertUnwindSafe(child));
            // SAFETY: exits the copy without touching anything that it shares with the parent.
            unsafe { libc::_exit(0) }
        }
        pid => checked(pid),
    }
}

/// Zeroed numbers in memory that this process shares with the children that it forks from now on. The memory is never
/// freed.
pub fn shared<const WIDTH: usize, const ROWS: usize>() -> io::Result<&'static [[AtomicU64; WIDTH]; ROWS]> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    let bytes = mem::size_of::<[[AtomicU64; WIDTH]; ROWS]>();
    // SAFETY: the mapping is new, of that size, page-aligned and zeroed; zeros are valid numbers. It is never unmapped.
    unsafe {
        let start = libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0);
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(&*start.cast()) }
    }
}

/// For a forked process: blocks all signals, leaves the terminal, and closes all files except `kept`.
pub fn isolate(kept: BorrowedFd<'_>) {
    let kept = kept.as_raw_fd();
    // SAFETY: the set is initialised before use; the strings are zero-terminated; the closed descriptors belong to
    // frames of the parent's copy, which never run again.
    unsafe {
        let mut all = mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, ptr::null_mut());
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, c"xqos link guard".as_ptr());
        // Standard streams go to /dev/null: otherwise the copy would hold our output open, or a file opened later could
        // become a standard stream.
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in (0..3).filter(|&standard| standard != kept) {
            libc::dup2(null, standard);
        }
        libc::syscall(libc::SYS_close_range, 3, kept.max(3) - 1, 0);
        libc::syscall(libc::SYS_close_range, kept.max(2) + 1, libc::c_uint::MAX, 0);
    }
}

pub fn wait(pid: i32) {
    while let Err(Errno::INTR) = waitpid(Pid::from_raw(pid), WaitOptions::empty()) {}
}

/// Returns a child that has exited: its pid, and its exit status as in a shell (128 + n for signal n).
pub fn reap() -> Option<(i32, u8)> {
    let (pid, status) = wait_for_any(WaitOptions::NOHANG).ok()??;
    let by_signal = status.terminating_signal().map(|signal| 128 + signal);
    Some((pid.as_raw_pid(), by_signal.or(status.exit_status()).unwrap_or(0) as u8))
}

/// Orphaned descendants become our children instead of init's.
pub fn adopt_orphans() -> io::Result<()> {
    // Any nonzero argument enables it.
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Sets the scheduling of a command's program from its start; its children and new threads are not affected.
pub fn schedule(command: &mut Command, attributes: Attributes) {
    // SAFETY: only a system call is made between fork and exec.
    unsafe { command.pre_exec(move || attributes.give(0)) };
}

/// Sends SIGTERM to the command's program when the thread that starts it exits.
pub fn end_with_this_thread(command: &mut Command) {
    // SAFETY: only a system call is made between fork and exec.
    unsafe { command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?)) };
}

/// Passes an open descriptor to the command's program under the same number.
pub fn hand_over(command: &mut Command, descriptor: RawFd) {
    // SAFETY: only a system call with numeric arguments is made between fork and exec.
    unsafe { command.pre_exec(move || checked(libc::fcntl(descriptor, libc::F_SETFD, 0)).map(drop)) };
}
