//! The calls of libc that stand before the server's, and those behind them.
//!
//! Each passes through unless the descriptor is a client's (or the epoll the server's) and the thread is the server's. They
//! are there for a preload only: in an object that Xorg loads as a module nobody calls them.

use super::{OWN, place};
use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use xqos_abi::control::display_of_socket;

type EpollCtl = unsafe extern "C" fn(c_int, c_int, c_int, *mut libc::epoll_event) -> c_int;
type EpollWait = unsafe extern "C" fn(c_int, *mut libc::epoll_event, c_int, c_int) -> c_int;
type Read = unsafe extern "C" fn(c_int, *mut c_void, usize) -> isize;
type RecvMsg = unsafe extern "C" fn(c_int, *mut libc::msghdr, c_int) -> isize;
type SetITimer = unsafe extern "C" fn(c_int, *const libc::itimerval, *mut libc::itimerval) -> c_int;
type WriteV = unsafe extern "C" fn(c_int, *const libc::iovec, c_int) -> isize;

/// The calls behind ours.
#[derive(Clone, Copy)]
struct Behind {
    epoll_ctl: EpollCtl,
    epoll_wait: EpollWait,
    read: Read,
    recvmsg: RecvMsg,
    setitimer: SetITimer,
    writev: WriteV,
}

fn behind() -> &'static Behind {
    static BEHIND: OnceLock<Behind> = OnceLock::new();
    BEHIND.get_or_init(|| {
        let find = |name: &std::ffi::CStr| {
            // SAFETY: a C string and a handle that dlsym documents; libc has all of them.
            let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
            if found.is_null() {
                std::process::abort();
            }
            found
        };
        // SAFETY: functions of libc, of the types of their declarations.
        unsafe {
            Behind {
                epoll_ctl: std::mem::transmute::<*mut c_void, EpollCtl>(find(c"epoll_ctl")),
                epoll_wait: std::mem::transmute::<*mut c_void, EpollWait>(find(c"epoll_wait")),
                read: std::mem::transmute::<*mut c_void, Read>(find(c"read")),
                recvmsg: std::mem::transmute::<*mut c_void, RecvMsg>(find(c"recvmsg")),
                setitimer: std::mem::transmute::<*mut c_void, SetITimer>(find(c"setitimer")),
                writev: std::mem::transmute::<*mut c_void, WriteV>(find(c"writev")),
            }
        }
    })
}

/// Clients have descriptors below that; one above is left alone.
const DESCRIPTORS: usize = 65_536;
/// A bit for each descriptor that is a client's, and one for each of ours in the server's epoll.
static CLIENTS: [AtomicU64; DESCRIPTORS / 64] = [const { AtomicU64::new(0) }; DESCRIPTORS / 64];
static OURS: [AtomicU64; DESCRIPTORS / 64] = [const { AtomicU64::new(0) }; DESCRIPTORS / 64];

fn bit(set: &'static [AtomicU64], fd: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((set.get(fd / 64)?, 1 << (fd % 64)))
}

fn mark(set: &'static [AtomicU64], fd: RawFd, is_in: bool) {
    if let Some((word, bit)) = bit(set, fd) {
        if is_in {
            word.fetch_or(bit, Ordering::Relaxed)
        } else {
            word.fetch_and(!bit, Ordering::Relaxed)
        };
    }
}

/// A client's descriptor, on the server's thread.
fn is_client(fd: RawFd) -> bool {
    bit(&CLIENTS, fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0) && place::is_here()
}

/// True where no client is left.
pub fn has_no_clients() -> bool {
    CLIENTS.iter().all(|word| word.load(Ordering::Relaxed) == 0)
}

/// Has the server's epoll tell of a descriptor of ours.
pub fn watch_own(epoll: RawFd, fd: RawFd) {
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: OWN | fd as u64 };
    mark(&OURS, fd, true);
    // SAFETY: open descriptors, and an event that lives through the call.
    unsafe { (behind().epoll_ctl)(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) };
}

/// Has it tell when a descriptor of ours has room for output, in place of input, or of input again.
pub fn watch_own_for(epoll: RawFd, fd: RawFd, output: bool) {
    let bits = if output { libc::EPOLLOUT } else { libc::EPOLLIN };
    let mut event = libc::epoll_event { events: bits as u32, u64: OWN | fd as u64 };
    // SAFETY: as above.
    unsafe { (behind().epoll_ctl)(epoll, libc::EPOLL_CTL_MOD, fd, &mut event) };
}

/// Takes all of ours out again.
pub fn leave_own(epoll: RawFd) {
    for fd in 0..DESCRIPTORS as RawFd {
        if bit(&OURS, fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0) {
            leave(epoll, fd);
        }
    }
}

/// Takes one of ours out.
pub fn leave(epoll: RawFd, fd: RawFd) {
    mark(&OURS, fd, false);
    // SAFETY: an open epoll and a descriptor of ours.
    unsafe { (behind().epoll_ctl)(epoll, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
}

/// What the epoll has to tell at this moment.
pub fn epoll_wait_now(epoll: RawFd, events: &mut [libc::epoll_event]) -> usize {
    // SAFETY: room for that many events.
    let count = unsafe { (behind().epoll_wait)(epoll, events.as_mut_ptr(), events.len() as c_int, 0) };
    usize::try_from(count).unwrap_or(0)
}

/// Sends bytes with a descriptor.
pub fn send_with_descriptor(socket: RawFd, bytes: &[u8], fd: RawFd) -> io::Result<()> {
    let mut control = [0u64; 4];
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: zeroes are a message of nothing.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: room for one descriptor, which is less than the array, and a message that lives through the call.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(size_of::<c_int>() as u32) as _;
        let header = &mut *libc::CMSG_FIRSTHDR(&message);
        header.cmsg_level = libc::SOL_SOCKET;
        header.cmsg_type = libc::SCM_RIGHTS;
        header.cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
        libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(fd);
        libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL)
    };
    if usize::try_from(sent).is_ok_and(|sent| sent == bytes.len()) { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// # Safety
/// As of epoll_ctl(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int {
    // SAFETY: as the caller says.
    let result = unsafe { (behind().epoll_ctl)(epoll, operation, fd, event) };
    if result == 0 && place::is_wanted() {
        // SAFETY: the kernel has read it.
        let event = unsafe { event.as_ref() }.map(|event| (event.events, event.u64));
        epoll_changed(epoll, operation, fd, event);
    }
    result
}

fn epoll_changed(epoll: RawFd, operation: c_int, fd: RawFd, event: Option<(u32, u64)>) {
    match (operation, event) {
        (libc::EPOLL_CTL_ADD, Some((events, data))) if events == libc::EPOLLET as u32 => {
            place::begin(epoll);
            if place::serves(epoll) {
                mark(&CLIENTS, fd, true);
                place::with_engine(|engine| {
                    engine.added(fd, data);
                    Ok(())
                });
            }
        }
        (libc::EPOLL_CTL_ADD, Some(_)) => {
            if let Some(display) = display_of(fd) {
                place::listens_for(display);
            }
        }
        (libc::EPOLL_CTL_MOD, Some((events, data))) if is_client(fd) && place::serves(epoll) => {
            place::with_engine(|engine| {
                engine.changed(fd, data, events);
                Ok(())
            });
        }
        (libc::EPOLL_CTL_DEL, _) if is_client(fd) && place::serves(epoll) => {
            mark(&CLIENTS, fd, false);
            place::with_engine(|engine| {
                engine.removed(fd);
                Ok(())
            });
        }
        _ => {}
    }
}

/// The display whose clients connect to this listening socket.
fn display_of(fd: RawFd) -> Option<u32> {
    // SAFETY: zeroes are an address of no family, and the call is told its size.
    let (address, length) = unsafe {
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        let mut length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        if libc::getsockname(fd, std::ptr::from_mut(&mut address).cast(), &mut length) != 0 {
            return None;
        }
        (address, length as usize)
    };
    if i32::from(address.sun_family) != libc::AF_UNIX {
        return None;
    }
    let path = &address.sun_path[..length.saturating_sub(2).min(address.sun_path.len())];
    let path: Vec<u8> = path.iter().map(|&byte| byte as u8).collect();
    display_of_socket(String::from_utf8_lossy(&path).trim_end_matches('\0'))
}

/// # Safety
/// As of epoll_wait(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    let behind = behind().epoll_wait;
    if !place::serves(epoll) || most <= 0 {
        // SAFETY: as the caller says.
        return unsafe { behind(epoll, events, most, timeout) };
    }
    place::with_engine(|engine| engine.block());
    let alone = if place::has_untold() { 0 } else { timeout };
    let timeout = place::with_engine(|engine| Ok(engine.host.timeout(timeout))).unwrap_or(alone);
    let room = most as usize;
    // SAFETY: as the caller says; some room is kept for what we add.
    let count = unsafe { behind(epoll, events, most - most / 8, timeout) };
    let Ok(count) = usize::try_from(count) else { return count };
    // SAFETY: the caller gives so much room, and plain numbers in it may be anything.
    let events = unsafe { std::slice::from_raw_parts_mut(events, room) };
    let (mut kept, is_asked) =
        place::with_engine(|engine| Ok(engine.host.take_events(&mut events[..count]))).unwrap_or((count, false));
    if is_asked {
        place::answer_control();
    }
    place::with_engine(|engine| engine.wakeup());
    let mut add = |event| match events.get_mut(kept) {
        Some(place) => {
            *place = event;
            kept += 1;
            true
        }
        None => false,
    };
    place::with_engine(|engine| {
        let choice = engine.choice();
        engine.host.events_for_server(choice, &mut add);
        Ok(())
    });
    while let Some(event) = place::next_untold() {
        if !add(event) {
            break;
        }
    }
    kept as c_int
}

/// How many bytes this read may return at most; none: it says EAGAIN.
fn before_read(fd: RawFd, wanted: usize) -> Option<usize> {
    place::with_engine(|engine| {
        let id = engine.host.of_descriptor(fd);
        Ok(id.map_or(Some(wanted), |id| engine.host.before_read(id, fd, wanted)))
    })
    .unwrap_or(Some(wanted))
}

/// # Safety
/// So many bytes were read to there.
unsafe fn after_read(fd: RawFd, buffer: *const c_void, read: isize) {
    // Interrupted is neither: it is read again.
    if read < 0 && io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock {
        return;
    }
    let bytes = usize::try_from(read).ok();
    // SAFETY: as the caller says.
    let bytes = bytes.map(|bytes| unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), bytes) });
    place::with_engine(|engine| {
        if let Some(id) = engine.host.of_descriptor(fd) {
            engine.host.after_read(id, bytes);
        }
        Ok(())
    });
}

/// What there is to read, without taking it; 0: nothing, or it cannot be said.
pub fn peek(fd: RawFd, buffer: &mut [u8]) -> usize {
    // SAFETY: room for that many bytes.
    let seen = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_PEEK | libc::MSG_DONTWAIT) };
    usize::try_from(seen).unwrap_or(0)
}

/// Says EAGAIN.
fn nothing() -> isize {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() = libc::EAGAIN };
    -1
}

/// Keeps errno as the call left it.
fn keeping_errno(work: impl FnOnce()) {
    // SAFETY: this thread's errno.
    unsafe {
        let errno = *libc::__errno_location();
        work();
        *libc::__errno_location() = errno;
    }
}

/// Sets the timer that sends SIGALRM.
pub fn set_alarm(value: &libc::itimerval) {
    // SAFETY: a value that lives through the call.
    unsafe { (behind().setitimer)(libc::ITIMER_REAL, value, std::ptr::null_mut()) };
}

/// # Safety
/// As of setitimer(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setitimer(which: c_int, new: *const libc::itimerval, old: *mut libc::itimerval) -> c_int {
    if which == libc::ITIMER_REAL && old.is_null() && place::is_here() {
        // SAFETY: as the caller says.
        let new = unsafe { new.as_ref() }.copied();
        let is_kept = new.and_then(|new| place::with_engine(|engine| Ok(engine.host.alarm.keeps(new))));
        if is_kept == Some(true) {
            return 0;
        }
    }
    // SAFETY: as the caller says.
    unsafe { (behind().setitimer)(which, new, old) }
}

/// # Safety
/// As of read(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, most: usize) -> isize {
    if !is_client(fd) {
        // SAFETY: as the caller says.
        return unsafe { (behind().read)(fd, buffer, most) };
    }
    let Some(most) = before_read(fd, most) else { return nothing() };
    // SAFETY: as the caller says, and no more than that.
    let read = unsafe { (behind().read)(fd, buffer, most) };
    // SAFETY: the kernel has written them.
    keeping_errno(|| unsafe { after_read(fd, buffer, read) });
    read
}

/// # Safety
/// As of recvmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> isize {
    // SAFETY: as the caller says: a message with that many parts.
    let part = unsafe { message.as_ref() }.filter(|message| message.msg_iovlen == 1).map(|message| message.msg_iov);
    let Some(part) = part.filter(|_| is_client(fd)) else {
        // SAFETY: as the caller says.
        return unsafe { (behind().recvmsg)(fd, message, flags) };
    };
    // SAFETY: as above.
    let (whole, buffer) = unsafe { ((*part).iov_len, (*part).iov_base) };
    let Some(most) = before_read(fd, whole) else { return nothing() };
    // SAFETY: as the caller says; the part is shorter during the call only. Descriptors come with its first byte.
    let read = unsafe {
        (*part).iov_len = most;
        let read = (behind().recvmsg)(fd, message, flags);
        (*part).iov_len = whole;
        read
    };
    // SAFETY: the kernel has written them.
    keeping_errno(|| unsafe { after_read(fd, buffer, read) });
    read
}

/// # Safety
/// As of writev(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    // SAFETY: as the caller says.
    let written = unsafe { (behind().writev)(fd, parts, count) };
    if let Some(left) = usize::try_from(written).ok().filter(|&written| written > 0 && is_client(fd)) {
        // SAFETY: as the caller says.
        let parts = unsafe { std::slice::from_raw_parts(parts, usize::try_from(count).unwrap_or(0)) };
        keeping_errno(|| wrote(fd, parts, left));
    }
    written
}

/// What the server has written to a client that is being set up.
fn wrote(fd: RawFd, parts: &[libc::iovec], mut left: usize) {
    place::with_engine(|engine| {
        let id = engine.host.of_descriptor(fd);
        let Some(id) = id.filter(|&id| engine.host.known(id).is_some_and(|known| known.is_answered())) else {
            return Ok(());
        };
        for part in parts {
            let bytes = part.iov_len.min(left);
            left -= bytes;
            if bytes > 0 {
                // SAFETY: the kernel has read that many bytes there.
                engine.written(id, unsafe { std::slice::from_raw_parts(part.iov_base.cast(), bytes) });
            }
        }
        Ok(())
    });
}
