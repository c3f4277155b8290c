// SPDX-License-Identifier: MIT
//! System calls for both hosts: clocks, timers, epolls and threads.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::thread::{self, JoinHandle};
use xqos_core::Time;

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

/// The user that the process runs as.
pub fn user() -> u32 {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// The value of a kernel clock in nanoseconds.
pub fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock is valid, and `time` has room for its value.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Creates a timer of CLOCK_MONOTONIC.
pub fn new_timer() -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) })
}

pub fn new_epoll() -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

/// Creates a non-blocking eventfd.
pub fn new_event() -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
}

/// Makes an eventfd readable.
pub fn notify(event: &OwnedFd) {
    let one = 1u64;
    // SAFETY: the call reads the eight bytes of `one`, and the descriptor does not block.
    unsafe { libc::write(event.as_raw_fd(), std::ptr::from_ref(&one).cast(), 8) };
}

/// Sets a timer to this time; [`Time::NEVER`] stops it.
pub fn set_timer(timer: &OwnedFd, at: Time) {
    // A value of 0 would stop the timer.
    let at_ns = if at == Time::NEVER { 0 } else { at.0.max(1) };
    let value = libc::timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
    let program = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    // SAFETY: the timer is open, and the value lives through the call.
    unsafe { libc::timerfd_settime(timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &program, std::ptr::null_mut()) };
}

/// Resets a timer or an eventfd after it has become readable.
pub fn drain(fd: RawFd) {
    let mut count = 0u64;
    // SAFETY: `count` has room for eight bytes, and the descriptor does not block.
    unsafe { libc::read(fd, std::ptr::from_mut(&mut count).cast(), 8) };
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
