// SPDX-License-Identifier: MIT
//! The interposed libc calls.
//!
//! Each call passes through to libc unless it concerns a client's descriptor (or the server's epoll) and runs on the
//! server's thread. If xqos is preloaded, the loader binds the server's calls to these functions by name. If Xorg loads
//! xqos as a module, `redirect` redirects the program's calls to them.

use super::{clients, instance};
use crate::host::kernel::now;
use crate::host::real_libc::{CLIENTS, display_of, is_own, real, retain_events};
use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::RawFd;

/// Returns true if this is a client's descriptor and the caller is the server's thread.
fn is_client(fd: RawFd) -> bool {
    CLIENTS.has(fd) && instance::is_server_thread()
}

/// # Safety
/// The rules of epoll_ctl(2) apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int {
    // SAFETY: guaranteed by the caller.
    let result = unsafe { (real().epoll_ctl)(epoll, operation, fd, event) };
    if result == 0 && instance::is_enabled() {
        // SAFETY: the kernel has accepted this pointer.
        let event = unsafe { event.as_ref() }.map(|event| (event.events, event.u64));
        epoll_changed(epoll, operation, fd, event);
    }
    result
}

fn epoll_changed(epoll: RawFd, operation: c_int, fd: RawFd, event: Option<(u32, u64)>) {
    match (operation, event) {
        (libc::EPOLL_CTL_ADD, Some((events, data))) if events == libc::EPOLLET as u32 => {
            instance::begin(epoll);
            if instance::serves(epoll) {
                CLIENTS.set(fd, true);
                instance::update(|engine| clients::added(engine, fd, data));
            }
        }
        (libc::EPOLL_CTL_ADD, Some(_)) => {
            if let Some(display) = display_of(fd) {
                instance::listens_for(display);
            }
        }
        (libc::EPOLL_CTL_MOD, Some((events, data))) if is_client(fd) && instance::serves(epoll) => {
            instance::update(|engine| clients::changed(engine, fd, data, events));
            if events & libc::EPOLLIN as u32 == 0 {
                instance::drop_pending(fd, libc::EPOLLIN as u32);
            }
        }
        (libc::EPOLL_CTL_DEL, _) if is_client(fd) && instance::serves(epoll) => {
            CLIENTS.set(fd, false);
            instance::update(|engine| clients::removed(engine, fd));
            instance::drop_pending(fd, u32::MAX);
        }
        _ => {}
    }
}

/// # Safety
/// The rules of epoll_wait(2) apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    let real = real().epoll_wait;
    if !instance::serves(epoll) || most <= 0 {
        // SAFETY: guaranteed by the caller.
        return unsafe { real(epoll, events, most, timeout) };
    }
    instance::with_engine(|engine| engine.at(now()).block());
    let alone = || if instance::has_pending() { 0 } else { timeout };
    let timeout = instance::with_engine(|engine| Ok(engine.host.timeout(timeout))).unwrap_or_else(alone);
    let room = most as usize;
    // SAFETY: guaranteed by the caller. An eighth of the array is kept free for our own events.
    let count = unsafe { real(epoll, events, most - most / 8, timeout) };
    let Ok(count) = usize::try_from(count) else { return count };
    // SAFETY: the caller provides this much room; any bytes are valid events.
    let events = unsafe { std::slice::from_raw_parts_mut(events, room) };
    let (mut kept, is_asked) = instance::with_engine(|engine| Ok(engine.host.take_events(&mut events[..count])))
        .unwrap_or_else(|| (retain_events(&mut events[..count], |event| !is_own(event.u64)), false));
    if is_asked {
        instance::answer_control();
    }
    let now = now();
    instance::with_engine(|engine| {
        if let Some(server) = engine.host.name() {
            engine.server_is_known(&server);
        }
        engine.at(now).wakeup()
    });
    instance::with_engine(|engine| engine.at(now).decide());
    let mut add = |event| match events.get_mut(kept) {
        Some(place) => {
            *place = event;
            kept += 1;
            true
        }
        None => false,
    };
    instance::update(|engine| {
        let choice = engine.choice();
        engine.host.events_for_server(choice, &mut add);
    });
    while let Some(event) = instance::next_pending() {
        if !add(event) {
            break;
        }
    }
    kept as c_int
}

/// The maximum number of bytes that this read may return; `None` makes it fail with EAGAIN.
fn before_read(fd: RawFd, wanted: usize) -> Option<usize> {
    instance::with_engine(|engine| {
        let id = engine.host.of_descriptor(fd);
        Ok(id.map_or(Some(wanted), |id| engine.host.before_read(id, fd, wanted)))
    })
    .unwrap_or(Some(wanted))
}

/// # Safety
/// `read` bytes were read into the buffer.
unsafe fn after_read(fd: RawFd, buffer: *const c_void, read: isize) {
    // The server simply repeats an interrupted read.
    if read < 0 && io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock {
        return;
    }
    let bytes = usize::try_from(read).ok();
    // SAFETY: guaranteed by the caller.
    let bytes = bytes.map(|bytes| unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), bytes) });
    instance::update(|engine| {
        if let Some(id) = engine.host.of_descriptor(fd) {
            engine.host.after_read(id, bytes);
        }
    });
}

/// Makes a read fail with EAGAIN.
fn nothing() -> isize {
    // SAFETY: the pointer is to this thread's own errno.
    unsafe { *libc::__errno_location() = libc::EAGAIN };
    -1
}

/// Runs `work` without changing errno.
fn keeping_errno(work: impl FnOnce()) {
    // SAFETY: the pointer is to this thread's own errno.
    unsafe {
        let errno = *libc::__errno_location();
        work();
        *libc::__errno_location() = errno;
    }
}

/// # Safety
/// The rules of setitimer(2) apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setitimer(which: c_int, new: *const libc::itimerval, old: *mut libc::itimerval) -> c_int {
    if which == libc::ITIMER_REAL && old.is_null() && instance::is_server_thread() {
        // SAFETY: guaranteed by the caller.
        let new = unsafe { new.as_ref() }.copied();
        let is_kept = new.and_then(|new| instance::with_engine(|engine| Ok(engine.host.alarm.keeps(new))));
        if is_kept == Some(true) {
            return 0;
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe { (real().setitimer)(which, new, old) }
}

/// # Safety
/// The rules of read(2) apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, most: usize) -> isize {
    if !is_client(fd) {
        // SAFETY: guaranteed by the caller.
        return unsafe { (real().read)(fd, buffer, most) };
    }
    let Some(most) = before_read(fd, most) else { return nothing() };
    // SAFETY: guaranteed by the caller, and `most` is not larger than the caller's size.
    let read = unsafe { (real().read)(fd, buffer, most) };
    // SAFETY: the kernel has written the bytes read.
    keeping_errno(|| unsafe { after_read(fd, buffer, read) });
    read
}

/// # Safety
/// The rules of recvmsg(2) apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> isize {
    if !CLIENTS.has(fd) {
        // SAFETY: guaranteed by the caller.
        return unsafe { (real().recvmsg)(fd, message, flags) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { read_message(fd, message, flags) }
}

/// # Safety
/// The rules of recvmsg(2) apply.
#[inline(never)]
unsafe fn read_message(fd: RawFd, message: *mut libc::msghdr, flags: c_int) -> isize {
    // SAFETY: the caller guarantees a message with `msg_iovlen` parts.
    let part = unsafe { message.as_ref() }.filter(|message| message.msg_iovlen == 1).map(|message| message.msg_iov);
    let Some(part) = part.filter(|_| instance::is_server_thread()) else {
        // SAFETY: guaranteed by the caller.
        return unsafe { (real().recvmsg)(fd, message, flags) };
    };
    // SAFETY: as above.
    let (whole, buffer) = unsafe { ((*part).iov_len, (*part).iov_base) };
    let Some(most) = before_read(fd, whole) else { return nothing() };
    // SAFETY: guaranteed by the caller. The part is shortened only during the call. Passed descriptors arrive with the
    // first byte, so none of them is lost.
    let read = unsafe {
        (*part).iov_len = most;
        let read = (real().recvmsg)(fd, message, flags);
        (*part).iov_len = whole;
        read
    };
    // SAFETY: the kernel has written the bytes read.
    keeping_errno(|| unsafe { after_read(fd, buffer, read) });
    read
}

/// # Safety
/// The rules of writev(2) apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    if !CLIENTS.has(fd) {
        // SAFETY: guaranteed by the caller.
        return unsafe { (real().writev)(fd, parts, count) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { write_parts(fd, parts, count) }
}

/// # Safety
/// The rules of writev(2) apply.
#[inline(never)]
unsafe fn write_parts(fd: RawFd, parts: *const libc::iovec, count: c_int) -> isize {
    // SAFETY: guaranteed by the caller.
    let written = unsafe { (real().writev)(fd, parts, count) };
    // SAFETY: guaranteed by the caller.
    unsafe { scan_written(fd, parts, count as usize, written) };
    written
}

/// # Safety
/// The rules of sendmsg(2) apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const libc::msghdr, flags: c_int) -> isize {
    // SAFETY: guaranteed by the caller.
    let written = unsafe { (real().sendmsg)(fd, message, flags) };
    if written > 0 {
        // SAFETY: the kernel has read this message.
        unsafe { scan_written(fd, (*message).msg_iov, (*message).msg_iovlen, written) };
    }
    written
}

/// # Safety
/// `parts` points to `count` parts. If `written` is positive, the kernel has read that number of bytes from them.
unsafe fn scan_written(fd: RawFd, parts: *const libc::iovec, count: usize, written: isize) {
    if let Some(left) = usize::try_from(written).ok().filter(|&written| written > 0 && is_client(fd)) {
        // SAFETY: guaranteed by the caller.
        let parts = unsafe { std::slice::from_raw_parts(parts, count) };
        keeping_errno(|| wrote(fd, parts, left));
    }
}

/// The server has written `left` bytes of these parts to a client.
fn wrote(fd: RawFd, parts: &[libc::iovec], mut left: usize) {
    instance::update(|engine| {
        let Some(id) = engine.host.of_descriptor(fd) else { return };
        for part in parts {
            let bytes = part.iov_len.min(left);
            left -= bytes;
            if bytes > 0 {
                // SAFETY: the kernel has read these bytes.
                clients::written(engine, id, unsafe { std::slice::from_raw_parts(part.iov_base.cast(), bytes) });
            }
        }
    });
}
