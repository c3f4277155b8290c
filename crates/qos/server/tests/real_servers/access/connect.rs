// SPDX-License-Identifier: MIT
//! Connects as other users and from other namespaces. The kernel reports to the server the process that connected, even
//! if another process uses the connection later.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The user that connects.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    pub user: u32,
    /// True if the process is root in user and pid namespaces of its own.
    pub is_sandboxed: bool,
}

/// Connects a socket in a child process that has this identity.
pub fn connect_as(identity: Identity, path: &Path) -> io::Result<UnixStream> {
    // SAFETY: the call takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    let stream = unsafe { UnixStream::from_raw_fd(fd) };
    let call = Call::new(identity, path);
    match in_a_child(|| call.make(stream.as_raw_fd())) {
        0 => Ok(stream),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// The child's data, prepared in advance: the child must not allocate, because another thread may hold the allocator's
/// lock.
struct Call {
    identity: Identity,
    address: libc::sockaddr_un,
    map: CString,
}

impl Call {
    fn new(identity: Identity, path: &Path) -> Call {
        let family = libc::AF_UNIX as libc::sa_family_t;
        let mut address = libc::sockaddr_un { sun_family: family, sun_path: [0; 108] };
        let bytes = path.as_os_str().as_bytes();
        assert!(bytes.len() < address.sun_path.len());
        for (place, &byte) in address.sun_path.iter_mut().zip(bytes) {
            *place = byte as libc::c_char;
        }
        Call { identity, address, map: CString::new(format!("0 {} 1", identity.user)).unwrap() }
    }

    /// Returns 0 or an error number.
    fn make(&self, socket: RawFd) -> i32 {
        let user = self.identity.user;
        // SAFETY: the bare system call takes no pointers. Another thread may hold a lock of the C library.
        let failed = unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) } != 0;
        if failed {
            return errno();
        }
        if !self.identity.is_sandboxed {
            return self.connect(socket);
        }
        match self.enter_sandbox() {
            // Only children are in the new pid namespace.
            0 => in_a_child(|| self.connect(socket)),
            error => error,
        }
    }

    fn enter_sandbox(&self) -> i32 {
        // SAFETY: all pointers are to strings that live through the calls.
        unsafe {
            // Otherwise a process that has changed its user could not write to its own files in /proc.
            libc::prctl(libc::PR_SET_DUMPABLE, 1);
            if libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID) != 0 {
                return errno();
            }
            let map = libc::open(c"/proc/self/uid_map".as_ptr(), libc::O_WRONLY);
            let bytes = self.map.as_bytes();
            if map < 0 || libc::write(map, bytes.as_ptr().cast(), bytes.len()) < 0 {
                return errno();
            }
            libc::close(map);
        }
        0
    }

    fn connect(&self, socket: RawFd) -> i32 {
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        // SAFETY: the address has this length.
        let result = unsafe { libc::connect(socket, (&raw const self.address).cast(), length) };
        if result == 0 { 0 } else { errno() }
    }
}

/// Runs a function in a child process and returns its result, from 0 to 255. The function may only make system calls.
fn in_a_child(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child only makes system calls and exits.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return errno();
    }
    if child == 0 {
        let result = work();
        // SAFETY: the call does not return.
        unsafe { libc::_exit(result) };
    }
    let mut status = 0;
    // SAFETY: `child` is our own child, and `status` has room for its status.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        if errno() != libc::EINTR {
            return errno();
        }
    }
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { libc::ECANCELED }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
