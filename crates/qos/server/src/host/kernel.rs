// SPDX-License-Identifier: MIT
//! System calls for both hosts: clocks, timers, epolls and threads.

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::process::geteuid;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::thread::{self, JoinHandle};
use xqos_core::Time;
use xqos_sys::proc::RunTimes;

/// Waits until a descriptor is readable, a signal arrives, or the time is up. Ignores negative descriptors.
pub fn wait_for(descriptors: impl Iterator<Item = RawFd>, until: Time) {
    // The maximum number of descriptors waited for; any others are ignored.
    const WAITED_FOR: usize = 16;
    let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; WAITED_FOR];
    for (place, fd) in polled.iter_mut().zip(descriptors) {
        place.fd = fd;
    }
    let time = libc::timespec { tv_sec: 0, tv_nsec: until.since(now()) as i64 };
    // SAFETY: the array has room for this many descriptors, and the time lives through the call.
    unsafe { libc::ppoll(polled.as_mut_ptr(), WAITED_FOR as libc::nfds_t, &time, std::ptr::null()) };
}

/// The remote address of a connection from another machine.
pub fn peer_address(fd: RawFd) -> Option<String> {
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor is open and is not closed here.
    let stream = std::mem::ManuallyDrop::new(unsafe { std::net::TcpStream::from_raw_fd(fd) });
    stream.peer_addr().ok().map(|address| address.ip().to_string())
}

/// CLOCK_MONOTONIC.
pub fn now() -> Time {
    Time(read_clock(libc::CLOCK_MONOTONIC))
}

/// Processor time of the calling thread in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// How long the calling thread has run, and has been ready to run without a processor, if the kernel reports it.
pub fn thread_run_times_ns() -> Option<(u64, u64)> {
    RunTimes::of_this_thread()?.read_ns()
}

/// The user that the process runs as.
pub fn user() -> u32 {
    geteuid().as_raw()
}

/// The value of a kernel clock in nanoseconds.
pub fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock is valid, and `time` has room for its value.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Creates a timer of CLOCK_MONOTONIC.
pub fn new_timer() -> io::Result<OwnedFd> {
    Ok(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?)
}

pub fn new_epoll() -> io::Result<OwnedFd> {
    Ok(epoll::create(epoll::CreateFlags::CLOEXEC)?)
}

/// Creates a non-blocking eventfd.
pub fn new_event() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes an eventfd readable.
pub fn notify(event: &OwnedFd) {
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

/// Sets a timer to this time; [`Time::NEVER`] stops it.
pub fn set_timer(timer: &OwnedFd, at: Time) {
    // A value of 0 would stop the timer.
    let at_ns = if at == Time::NEVER { 0 } else { at.0.max(1) };
    let it_value = Timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
    let program = Itimerspec { it_interval: Timespec::default(), it_value };
    let _ = timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &program);
}

/// Resets a timer or an eventfd after it has become readable.
pub fn drain(fd: RawFd) {
    // SAFETY: the descriptor is open, and it does not block.
    let _ = rustix::io::read(unsafe { BorrowedFd::borrow_raw(fd) }, &mut [0u8; 8]);
}

/// Size of a thread's stack. The thread uses few pages, but the stack must also hold the server's thread-local data.
const STACK_BYTES: usize = 256 * 1024;

/// Starts a thread that receives no signals: the server's signal handlers expect to run on its own thread.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let builder = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    // SAFETY: the calls fill in the signal sets, and the calling thread's mask is restored below.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let started = builder.spawn(work);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        started
    }
}
