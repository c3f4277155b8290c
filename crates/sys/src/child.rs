// SPDX-License-Identifier: MIT
//! Processes that we start: forked or executed, and waited for.

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

/// Runs `child` in a copy of this process, which then ends; gives its pid.
///
/// The copy has one thread, whatever locks the others held: glibc and musl see to it that memory can be allocated there,
/// but `child` has to leave standard streams, the environment and other threads alone.
pub fn fork(child: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the copy runs `child`, which is caught when it panics, and never returns into the caller's frames; a lock
    // that another thread held could make it wait for ever, but never see torn data.
    match unsafe { libc::fork() } {
        0 => {
            let _ = catch_unwind(AssertUnwindSafe(child));
            // SAFETY: ends the copy without touching what it shares with us.
            unsafe { libc::_exit(0) }
        }
        pid => checked(pid),
    }
}

/// Numbers in memory that this process shares with those that it forks from now on; all are 0. It is never given back.
pub fn shared<const WIDTH: usize, const ROWS: usize>() -> io::Result<&'static [[AtomicU64; WIDTH]; ROWS]> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    let bytes = mem::size_of::<[[AtomicU64; WIDTH]; ROWS]>();
    // SAFETY: a new mapping of that size, page-aligned and zeroed, which are valid numbers; it lives as long as the process.
    unsafe {
        let start = libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0);
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(&*start.cast()) }
    }
}

/// For a forked process: no signal reaches it, no terminal, and no file but this one stays open.
pub fn stand_alone(kept: BorrowedFd<'_>) {
    let kept = kept.as_raw_fd();
    // SAFETY: the set is initialised before it is used; strings end with a zero; the descriptors that are closed belong
    // to frames of the parent's copy, which never run again.
    unsafe {
        let mut all = mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, ptr::null_mut());
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, c"xqos link guard".as_ptr());
        // Nobody waits for the end of our output, and what opens next is no standard stream.
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in (0..3).filter(|&standard| standard != kept) {
            libc::dup2(null, standard);
        }
        libc::syscall(libc::SYS_close_range, 3, kept.max(3) - 1, 0);
        libc::syscall(libc::SYS_close_range, kept.max(2) + 1, libc::c_uint::MAX, 0);
    }
}

/// Waits for the end of a child.
pub fn wait(pid: i32) {
    while let Err(Errno::INTR) = waitpid(Pid::from_raw(pid), WaitOptions::empty()) {}
}

/// A child that has ended: its pid, and its exit status as a shell shows it (128 + n for signal n).
pub fn reap() -> Option<(i32, u8)> {
    let (pid, status) = wait_for_any(WaitOptions::NOHANG).ok()??;
    let by_signal = status.terminating_signal().map(|signal| 128 + signal);
    Some((pid.as_raw_pid(), by_signal.or(status.exit_status()).unwrap_or(0) as u8))
}

/// Orphans below us become our children instead of init's.
pub fn adopt_orphans() -> io::Result<()> {
    // Any pid switches it on.
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// The program of a command is scheduled so from its start; its children and new threads are not.
pub fn schedule(command: &mut Command, attributes: Attributes) {
    // SAFETY: between fork and exec only a system call is made.
    unsafe { command.pre_exec(move || attributes.give(0)) };
}

/// The program of a command is asked to end when the thread that starts it does.
pub fn end_with_this_thread(command: &mut Command) {
    // SAFETY: between fork and exec only a system call is made.
    unsafe { command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?)) };
}

/// The program of a command gets this descriptor, which is open when it starts, under its own number.
pub fn hand_over(command: &mut Command, descriptor: RawFd) {
    // SAFETY: between fork and exec only a system call is made, which takes numbers.
    unsafe { command.pre_exec(move || checked(libc::fcntl(descriptor, libc::F_SETFD, 0)).map(drop)) };
}
