// SPDX-License-Identifier: MIT
//! The system calls that std lacks, by rustix, and those that rustix lacks: the only unsafe code of this program.

use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::fs::getxattr;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal as SignalNumber, WaitOptions, getegid, geteuid, getpid, kill_process, set_child_subreaper, wait,
};
use rustix::termios::tcgetwinsize;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use xqos_sys::Attributes;

/// The signals that `xqos run` looks after.
const WATCHED: [i32; 4] = [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    pub number: i32,
    /// Sent by the kernel, as a terminal's ^C is: the whole foreground group has it already.
    pub from_kernel: bool,
}

/// Signals as a file to poll.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// From now on the watched signals arrive here only.
    pub fn watch() -> io::Result<Signals> {
        let set = watched_set();
        // SAFETY: `set` is initialised and lives through the calls; SIG_DFL is a valid disposition. An inherited
        // SIG_IGN for SIGCHLD would make children vanish without a status.
        unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            if libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY (continued): `fd` is new and nobody else's.
            Ok(Signals(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// The next signal, if one has arrived.
    pub fn next(&self) -> Option<Signal> {
        // SAFETY: a signalfd_siginfo is plain numbers, valid as zeros; read writes at most its size into it.
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

fn watched_set() -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set; sigaddset of valid signal numbers cannot fail.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in WATCHED {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
pub fn realtime_offset_ns() -> i64 {
    let read = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    read(ClockId::Realtime) - read(ClockId::Monotonic)
}

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The program is to get the signals that we watch, as it would without us.
pub fn unblock_signals_in(command: &mut Command) {
    let set = watched_set();
    // SAFETY: between fork and exec only sigprocmask is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(move || match libc::sigprocmask(libc::SIG_UNBLOCK, &set, ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// Orphans below us become our children instead of init's.
pub fn adopt_orphans() -> io::Result<()> {
    // Any pid switches it on.
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// A child that has ended: its pid, and its exit status as a shell shows it (128 + n for signal n).
pub fn reap() -> Option<(i32, u8)> {
    let (pid, status) = wait(WaitOptions::NOHANG).ok()??;
    let by_signal = status.terminating_signal().map(|signal| 128 + signal);
    Some((pid.as_raw_pid(), by_signal.or(status.exit_status()).unwrap_or(0) as u8))
}

/// Sends a signal; a process that is gone is no error.
pub fn send(pid: i32, signal: i32) {
    // A pid above 0 is one process.
    if let (true, Some(pid), Some(signal)) = (pid > 0, Pid::from_raw(pid), SignalNumber::from_named_raw(signal)) {
        let _ = kill_process(pid, signal);
    }
}

/// Waits until one of the files is readable or its peer has gone, or until `timeout`; `None` is for ever.
pub fn poll(files: &[RawFd], timeout: Option<Duration>) -> io::Result<()> {
    // SAFETY: they are borrowed for the call only. A descriptor that is not open only makes it return.
    let borrowed = files.iter().map(|&fd| unsafe { BorrowedFd::borrow_raw(fd) });
    let mut polled: Vec<PollFd> = borrowed.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    // A time that is too long to be told is for ever.
    let timeout = timeout.and_then(|left| Timespec::try_from(left).ok());
    match event::poll(&mut polled, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sets how high real-time priorities a process may give itself (RLIMIT_RTPRIO), and tells how high before.
pub fn allow_real_time(pid: i32, priority: u32) -> io::Result<u32> {
    let wanted = libc::rlimit { rlim_cur: priority.into(), rlim_max: priority.into() };
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: limits that live through the calls. What the process may already, it keeps.
    unsafe {
        if libc::prlimit(pid, libc::RLIMIT_RTPRIO, ptr::null(), &mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        let is_enough = before.rlim_cur >= wanted.rlim_cur && priority > 0;
        if !is_enough && libc::prlimit(pid, libc::RLIMIT_RTPRIO, &wanted, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(u32::try_from(before.rlim_max).unwrap_or(u32::MAX))
}

/// The user who called sudo, else the one whose rights this process has.
pub fn calling_user() -> u32 {
    let by_sudo = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    by_sudo.unwrap_or_else(|| effective_ids().0)
}

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    Parent,
    Child,
}

/// Splits this process, which has one thread.
pub fn fork() -> io::Result<Fork> {
    // SAFETY: with one thread nobody else can hold a lock in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        _ => Ok(Fork::Parent),
    }
}

/// Ends this process and runs nothing of the parent's in it.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(status) }
}

/// What ends a terminal's programs does not end this one.
pub fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: SIG_IGN is a valid disposition.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// A type of which all bytes zero are a value.
///
/// # Safety
/// That must be true of the type that implements this.
pub unsafe trait ZeroIsValid: Sync {}

// SAFETY: a number.
unsafe impl ZeroIsValid for AtomicU64 {}
// SAFETY: an array of such values is one.
unsafe impl<T: ZeroIsValid, const N: usize> ZeroIsValid for [T; N] {}

/// A value in memory that this process shares with those that it forks.
#[derive(Debug)]
pub struct Shared<T: ZeroIsValid + 'static>(&'static T);

impl<T: ZeroIsValid> Shared<T> {
    /// All bytes are zero.
    pub fn zeroed() -> io::Result<Shared<T>> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping of that size, page-aligned and zeroed, which is a value of T; it is never unmapped, so it
        // lives as long as the process.
        unsafe {
            let place = libc::mmap(ptr::null_mut(), mem::size_of::<T>(), protection, flags, -1, 0);
            if place == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Shared(&*place.cast::<T>()))
        }
    }
}

impl<T: ZeroIsValid> std::ops::Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

/// The program of a command is scheduled so from its start; its children and new threads are not.
pub fn schedule(command: &mut Command, attributes: Attributes) {
    // SAFETY: between fork and exec only a system call is made.
    unsafe {
        command.pre_exec(move || attributes.give(0));
    }
}

/// The pid of the process at the other end of a Unix socket: the one that listened. `None` for other sockets.
pub fn peer_pid(socket: &impl AsRawFd) -> Option<i32> {
    // Not by rustix, whose pids are never 0: that is what a peer of another pid namespace has.
    // SAFETY: an all-zero ucred is valid; getsockopt writes at most `length` bytes into it.
    unsafe {
        let mut peer: libc::ucred = mem::zeroed();
        let mut length = mem::size_of_val(&peer) as libc::socklen_t;
        let fd = socket.as_raw_fd();
        let result =
            libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, ptr::from_mut(&mut peer).cast(), &mut length);
        (result == 0 && peer.pid > 0).then_some(peer.pid)
    }
}

/// The path of this program, for advice that names it.
pub fn own_path() -> String {
    std::env::current_exe().map_or_else(|_| "xqos".to_owned(), |path| path.display().to_string())
}

/// Columns of the terminal at standard output, if there is one.
pub fn terminal_columns() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// The user and the group whose rights this process has.
pub fn effective_ids() -> (u32, u32) {
    (geteuid().as_raw(), getegid().as_raw())
}

/// Whether the file carries capabilities, by which the loader treats it like a setuid program.
pub fn has_capabilities(path: &std::path::Path) -> bool {
    getxattr(path, "security.capability", &mut [0; 64]).is_ok_and(|bytes| bytes > 0)
}
