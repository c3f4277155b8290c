// SPDX-License-Identifier: MIT
//! The real libc calls, which bypass the interposed ones, and the system calls that a host makes for itself; two bit
//! sets of descriptors.
//!
//! Calls made through here never pass `libc::calls`, so xqos's own traffic is not mistaken for the server's.

use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, getsockname, sendmsg};
use std::ffi::{CStr, c_int, c_void};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use xqos_abi::control::display_of_socket;

/// xqos handles only clients whose descriptors are below this limit.
const LIMIT: usize = 65_536;

/// The descriptors of clients. Every interposed libc call, in any thread, first checks this set or the next one, so the
/// check is a single load.
pub static CLIENTS: DescriptorSet = DescriptorSet::new();
/// The descriptors that xqos has added to the server's epoll.
pub static OURS: DescriptorSet = DescriptorSet::new();

#[derive(Debug)]
pub struct DescriptorSet([AtomicU64; LIMIT / 64]);

impl DescriptorSet {
    const fn new() -> DescriptorSet {
        DescriptorSet([const { AtomicU64::new(0) }; LIMIT / 64])
    }

    pub fn set(&self, fd: RawFd, is_in: bool) {
        let Some((word, bit)) = self.bit(fd) else { return };
        if is_in {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    pub fn has(&self, fd: RawFd) -> bool {
        self.bit(fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| word.load(Ordering::Relaxed) == 0)
    }

    pub fn all(&self) -> impl Iterator<Item = RawFd> {
        (0..LIMIT as RawFd).filter(|&fd| self.has(fd))
    }

    fn bit(&self, fd: RawFd) -> Option<(&AtomicU64, u64)> {
        let fd = usize::try_from(fd).ok()?;
        Some((self.0.get(fd / 64)?, 1 << (fd % 64)))
    }
}

/// Tags xqos's own descriptors in the server's epoll. No address in a process has this prefix.
pub const OWN: u64 = 0x5851_0000_0000_0000;

/// The epoll flags for a single notification that a descriptor is readable.
pub const ONCE: u32 = (libc::EPOLLIN | libc::EPOLLONESHOT) as u32;

/// Returns true if an epoll event belongs to xqos.
pub fn is_own(data: u64) -> bool {
    data & 0xffff_0000_0000_0000 == OWN
}

macro_rules! calls {
    ($($name:ident $symbol:literal: $type:ty;)*) => {
        #[derive(Clone, Copy)]
        pub struct RealCalls {
            $(pub $name: $type,)*
        }

        pub fn real() -> &'static RealCalls {
            static CALLS: OnceLock<RealCalls> = OnceLock::new();
            // SAFETY: these are functions of libc, with the types of their declarations.
            CALLS.get_or_init(|| unsafe {
                RealCalls { $($name: std::mem::transmute::<*mut c_void, $type>(find($symbol)),)* }
            })
        }
    };
}

calls! {
    epoll_ctl c"epoll_ctl": unsafe extern "C" fn(c_int, c_int, c_int, *mut libc::epoll_event) -> c_int;
    epoll_wait c"epoll_wait": unsafe extern "C" fn(c_int, *mut libc::epoll_event, c_int, c_int) -> c_int;
    read c"read": unsafe extern "C" fn(c_int, *mut c_void, usize) -> isize;
    recvmsg c"recvmsg": unsafe extern "C" fn(c_int, *mut libc::msghdr, c_int) -> isize;
    sendmsg c"sendmsg": unsafe extern "C" fn(c_int, *const libc::msghdr, c_int) -> isize;
    setitimer c"setitimer": unsafe extern "C" fn(c_int, *const libc::itimerval, *mut libc::itimerval) -> c_int;
    writev c"writev": unsafe extern "C" fn(c_int, *const libc::iovec, c_int) -> isize;
}

fn find(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string, and dlsym documents the handle. libc has all these functions.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        std::process::abort();
    }
    found
}

pub fn control(epoll: &impl AsRawFd, operation: c_int, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
    let mut event = libc::epoll_event { events, u64: token };
    // SAFETY: the epoll is open, and the event lives through the call.
    let result = unsafe { (real().epoll_ctl)(epoll.as_raw_fd(), operation, fd, &mut event) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes an epoll report once when a descriptor is readable. `known`: the descriptor was probably added before.
pub fn arm(epoll: &impl AsRawFd, fd: RawFd, known: bool, token: u64) -> io::Result<()> {
    let (first, second) =
        if known { (libc::EPOLL_CTL_MOD, libc::EPOLL_CTL_ADD) } else { (libc::EPOLL_CTL_ADD, libc::EPOLL_CTL_MOD) };
    control(epoll, first, fd, ONCE, token).or_else(|_| control(epoll, second, fd, ONCE, token))
}

/// Adds one of xqos's own descriptors to the server's epoll.
pub fn watch_own(epoll: RawFd, fd: RawFd) {
    OURS.set(fd, true);
    let _ = control(&epoll, libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, OWN | fd as u64);
}

/// Watches one of xqos's own descriptors for writability if `output` is true, otherwise for readability.
pub fn watch_own_for(epoll: RawFd, fd: RawFd, output: bool) {
    let bits = if output { libc::EPOLLOUT } else { libc::EPOLLIN };
    let _ = control(&epoll, libc::EPOLL_CTL_MOD, fd, bits as u32, OWN | fd as u64);
}

/// Removes all of xqos's own descriptors from the server's epoll.
pub fn leave_own(epoll: RawFd) {
    for fd in OURS.all() {
        leave(epoll, fd);
    }
}

/// Removes one of xqos's own descriptors.
pub fn leave(epoll: RawFd, fd: RawFd) {
    OURS.set(fd, false);
    let _ = control(&epoll, libc::EPOLL_CTL_DEL, fd, 0, 0);
}

/// Reads the events that are pending on the epoll, without waiting. Returns their number.
pub fn epoll_wait_now(epoll: RawFd, events: &mut [libc::epoll_event]) -> usize {
    // SAFETY: the array has room for this many events.
    let count = unsafe { (real().epoll_wait)(epoll, events.as_mut_ptr(), events.len() as c_int, 0) };
    usize::try_from(count).unwrap_or(0)
}

/// Moves the events that are to be kept to the front. Returns their number.
pub fn retain_events(events: &mut [libc::epoll_event], mut is_kept: impl FnMut(libc::epoll_event) -> bool) -> usize {
    let mut kept = 0;
    for at in 0..events.len() {
        if is_kept(events[at]) {
            events[kept] = events[at];
            kept += 1;
        }
    }
    kept
}

pub fn send_with_descriptor(socket: RawFd, bytes: &[u8], fd: RawFd) -> io::Result<()> {
    // SAFETY: both descriptors are open for the whole call.
    let (socket, fd) = unsafe { (BorrowedFd::borrow_raw(socket), [BorrowedFd::borrow_raw(fd)]) };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fd));
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Sets the timer that sends SIGALRM.
pub fn set_alarm(value: &libc::itimerval) {
    // SAFETY: the value lives through the call.
    unsafe { (real().setitimer)(libc::ITIMER_REAL, value, std::ptr::null_mut()) };
}

/// Reads available bytes without consuming them. Returns 0 if there are none or the call failed.
pub fn peek(fd: RawFd, buffer: &mut [u8]) -> usize {
    // SAFETY: the buffer has room for this many bytes.
    let seen = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_PEEK | libc::MSG_DONTWAIT) };
    usize::try_from(seen).unwrap_or(0)
}

/// The display that a listening socket of this process serves.
pub fn display_of_process() -> Option<u32> {
    xqos_sys::proc::own_descriptors().into_iter().filter(|&fd| is_listening(fd)).find_map(display_of)
}

fn is_listening(fd: RawFd) -> bool {
    // SAFETY: a closed descriptor merely makes the call fail.
    socket_acceptconn(unsafe { BorrowedFd::borrow_raw(fd) }).unwrap_or(false)
}

/// The display that this listening socket serves.
pub fn display_of(fd: RawFd) -> Option<u32> {
    // SAFETY: the descriptor is open.
    let address = SocketAddrUnix::try_from(getsockname(unsafe { BorrowedFd::borrow_raw(fd) }).ok()?).ok()?;
    display_of_socket(&String::from_utf8_lossy(address.abstract_name().or(address.path_bytes())?))
}
