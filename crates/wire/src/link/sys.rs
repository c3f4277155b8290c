// SPDX-License-Identifier: MIT
//! The system calls that std lacks, by rustix, and those that rustix lacks: namespaces and TUN devices. The only unsafe code of this crate.

#![allow(unsafe_code)]

use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, getegid, geteuid, pidfd_open, pidfd_send_signal, waitpid};
use rustix::thread::set_current_timer_slack;
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

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

/// Waits for the end of a child.
pub fn wait(pid: i32) {
    while let Err(Errno::INTR) = waitpid(Pid::from_raw(pid), WaitOptions::empty()) {}
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

/// Which namespaces to leave for new ones.
#[derive(Clone, Copy, Debug)]
pub enum New {
    Network,
    UserAndNetwork,
}

pub fn unshare(what: New) -> io::Result<()> {
    let flags = match what {
        New::Network => libc::CLONE_NEWNET,
        New::UserAndNetwork => libc::CLONE_NEWUSER | libc::CLONE_NEWNET,
    };
    // SAFETY: takes a number.
    checked(unsafe { libc::unshare(flags) }).map(drop)
}

/// The user and the group whose rights this process has.
pub fn effective_ids() -> (u32, u32) {
    (geteuid().as_raw(), getegid().as_raw())
}

/// The command will run in these namespaces, entered in this order.
pub fn enter_before_exec(command: &mut Command, namespaces: Vec<Arc<OwnedFd>>) {
    // SAFETY: between fork and exec only setns is called, which is a bare system call; the closure owns the descriptors.
    unsafe {
        command.pre_exec(move || namespaces.iter().try_for_each(|namespace| enter(namespace.as_raw_fd())));
    }
}

fn enter(namespace: RawFd) -> io::Result<()> {
    // SAFETY: takes numbers; 0 is a namespace of any kind.
    checked(unsafe { libc::setns(namespace, 0) }).map(drop)
}

/// A TUN device of the namespace that we are in: whole IP packets, nothing before them, none larger than its MTU.
pub fn open_tun(name: &CStr) -> io::Result<File> {
    let options = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let tun = OpenOptions::new().read(true).write(true).custom_flags(options).open("/dev/net/tun")?;
    let mut request = request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    control(tun.as_fd(), libc::TUNSETIFF, &mut request)?;
    Ok(tun)
}

/// A network interface of the namespace that we are in.
#[derive(Debug)]
pub struct Interface {
    socket: OwnedFd,
    name: &'static CStr,
}

impl Interface {
    pub fn named(name: &'static CStr) -> io::Result<Interface> {
        // SAFETY: takes numbers; what it gives is new and nobody else's.
        let socket = unsafe {
            let socket = checked(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
            OwnedFd::from_raw_fd(socket)
        };
        Ok(Interface { socket, name })
    }

    pub fn bring_up(&self) -> io::Result<()> {
        let mut request = request(self.name);
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        self.control(libc::SIOCSIFFLAGS, request)
    }

    /// With everything that begins with the same three bytes behind it.
    pub fn set_address(&self, address: Ipv4Addr) -> io::Result<()> {
        self.control(libc::SIOCSIFADDR, self.request_with(address))?;
        self.control(libc::SIOCSIFNETMASK, self.request_with(Ipv4Addr::new(255, 255, 255, 0)))
    }

    /// How many packets the kernel keeps for us until we read them.
    pub fn set_kernel_queue(&self, packets: i32) -> io::Result<()> {
        let mut request = request(self.name);
        request.ifr_ifru.ifru_metric = packets;
        self.control(libc::SIOCSIFTXQLEN, request)
    }

    fn control(&self, code: libc::Ioctl, mut request: libc::ifreq) -> io::Result<()> {
        control(self.socket.as_fd(), code, &mut request)
    }

    fn request_with(&self, address: Ipv4Addr) -> libc::ifreq {
        let address = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: 0,
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
            sin_zero: [0; 8],
        };
        let mut request = request(self.name);
        // SAFETY: both are 16 bytes that begin with the family, which says which of them it is.
        request.ifr_ifru.ifru_addr = unsafe { mem::transmute::<libc::sockaddr_in, libc::sockaddr>(address) };
        request
    }
}

fn request(name: &CStr) -> libc::ifreq {
    // SAFETY: an ifreq is plain numbers, valid as zeros.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    for (to, &from) in request.ifr_name[..room].iter_mut().zip(name.to_bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn control(file: BorrowedFd<'_>, code: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: all codes that are used here take an ifreq, which lives through the call.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), code, ptr::from_mut(request)) }).map(drop)
}

/// A process that keeps its identity, even when it ends and its number is used again.
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    pub fn open(pid: i32) -> io::Result<Process> {
        let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
        Ok(Process(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// A process that is gone is no error.
    pub fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.0, signal);
    }
}

/// Waits until one of the files is readable or its peer has gone, or until `timeout`; says which are.
pub fn poll<const N: usize>(files: [BorrowedFd<'_>; N], timeout: Option<Duration>) -> io::Result<[bool; N]> {
    let mut polled = files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
    // A time that is too long to be told is for ever.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match event::poll(&mut polled, timeout.as_ref()) {
        Ok(_) => Ok(polled.map(|polled| !polled.revents().is_empty())),
        Err(Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error.into()),
    }
}

/// This thread wakes on time: no slack for its timers, and before all ordinary threads where that is allowed.
pub fn be_punctual() {
    // Where either fails nothing changes.
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: a structure that lives through the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &priority) };
}
