// SPDX-License-Identifier: MIT
//! libc's own calls, behind those that stand before them, and what a host asks of the kernel for itself.
//!
//! What goes through here is never seen by `libc::calls`, so that nothing of ours is taken for the server's.

use crate::host::descriptors::OURS;
use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use xqos_abi::control::display_of_socket;

/// Events of ours in the server's epoll: a descriptor beneath this tag, which is no address of a process.
pub const OWN: u64 = 0x5851_0000_0000_0000;

/// Whether an event is of a descriptor of ours.
pub fn is_own(data: u64) -> bool {
    data & 0xffff_0000_0000_0000 == OWN
}

type EpollCtl = unsafe extern "C" fn(c_int, c_int, c_int, *mut libc::epoll_event) -> c_int;
type EpollWait = unsafe extern "C" fn(c_int, *mut libc::epoll_event, c_int, c_int) -> c_int;
type Read = unsafe extern "C" fn(c_int, *mut c_void, usize) -> isize;
type RecvMsg = unsafe extern "C" fn(c_int, *mut libc::msghdr, c_int) -> isize;
type SetITimer = unsafe extern "C" fn(c_int, *const libc::itimerval, *mut libc::itimerval) -> c_int;
type SendMsg = unsafe extern "C" fn(c_int, *const libc::msghdr, c_int) -> isize;
type WriteV = unsafe extern "C" fn(c_int, *const libc::iovec, c_int) -> isize;

/// The calls behind ours.
#[derive(Clone, Copy)]
pub struct Behind {
    pub epoll_ctl: EpollCtl,
    pub epoll_wait: EpollWait,
    pub read: Read,
    pub recvmsg: RecvMsg,
    pub sendmsg: SendMsg,
    pub setitimer: SetITimer,
    pub writev: WriteV,
}

pub fn behind() -> &'static Behind {
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
                sendmsg: std::mem::transmute::<*mut c_void, SendMsg>(find(c"sendmsg")),
                setitimer: std::mem::transmute::<*mut c_void, SetITimer>(find(c"setitimer")),
                writev: std::mem::transmute::<*mut c_void, WriteV>(find(c"writev")),
            }
        }
    })
}

/// Adds a descriptor of ours to the server's epoll.
pub fn watch_own(epoll: RawFd, fd: RawFd) {
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: OWN | fd as u64 };
    OURS.set(fd, true);
    // SAFETY: open descriptors, and an event that lives through the call.
    unsafe { (behind().epoll_ctl)(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) };
}

/// Waits for room for output on a descriptor of ours, in place of input, or for input again.
pub fn watch_own_for(epoll: RawFd, fd: RawFd, output: bool) {
    let bits = if output { libc::EPOLLOUT } else { libc::EPOLLIN };
    let mut event = libc::epoll_event { events: bits as u32, u64: OWN | fd as u64 };
    // SAFETY: as above.
    unsafe { (behind().epoll_ctl)(epoll, libc::EPOLL_CTL_MOD, fd, &mut event) };
}

/// Waits once until this descriptor can be read, in an epoll of ours.
pub fn watch_once(epoll: RawFd, fd: RawFd, data: u64) {
    let mut event = libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLONESHOT) as u32, u64: data };
    // SAFETY: open descriptors, and an event that lives through the calls. It may be in there from an earlier time.
    unsafe {
        if (behind().epoll_ctl)(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) < 0 {
            (behind().epoll_ctl)(epoll, libc::EPOLL_CTL_MOD, fd, &mut event);
        }
    }
}

/// Removes all of ours.
pub fn leave_own(epoll: RawFd) {
    for fd in OURS.all() {
        leave(epoll, fd);
    }
}

/// Removes one of ours.
pub fn leave(epoll: RawFd, fd: RawFd) {
    OURS.set(fd, false);
    // SAFETY: an open epoll and a descriptor of ours.
    unsafe { (behind().epoll_ctl)(epoll, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
}

/// The events that the epoll has now.
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

/// Sets the timer that sends SIGALRM.
pub fn set_alarm(value: &libc::itimerval) {
    // SAFETY: a value that lives through the call.
    unsafe { (behind().setitimer)(libc::ITIMER_REAL, value, std::ptr::null_mut()) };
}

/// Looks at the bytes that can be read without taking them; 0: none, or the call failed.
pub fn peek(fd: RawFd, buffer: &mut [u8]) -> usize {
    // SAFETY: room for that many bytes.
    let seen = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_PEEK | libc::MSG_DONTWAIT) };
    usize::try_from(seen).unwrap_or(0)
}

/// The display whose clients connect to a listening socket of this process.
pub fn display_of_process() -> Option<u32> {
    let numbers =
        std::fs::read_dir("/proc/self/fd").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(|&fd| is_listening(fd)).find_map(display_of)
}

fn is_listening(fd: RawFd) -> bool {
    let (mut listens, mut length): (c_int, _) = (0, size_of::<c_int>() as libc::socklen_t);
    // SAFETY: room for the number, and the call is told its size.
    let known = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_ACCEPTCONN,
            std::ptr::from_mut(&mut listens).cast(),
            &mut length,
        )
    };
    known == 0 && listens != 0
}

/// The display whose clients connect to this listening socket.
pub fn display_of(fd: RawFd) -> Option<u32> {
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
