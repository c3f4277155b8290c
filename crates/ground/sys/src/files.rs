// SPDX-License-Identifier: MIT
//! File descriptors: readiness, and the process at the other end.

use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;
use std::time::Duration;

/// Waits until one of the files is readable or its peer has closed, or until `timeout`; `None`: forever.
pub fn poll(files: &[RawFd], timeout: Option<Duration>) -> io::Result<()> {
    // SAFETY: the descriptors are borrowed only for the call. A closed one merely makes the call return.
    let borrowed = files.iter().map(|&fd| unsafe { BorrowedFd::borrow_raw(fd) });
    wait_for(&mut borrowed.map(as_input).collect::<Vec<_>>(), timeout)
}

/// Waits like [`poll`] and returns which files are readable.
pub fn readable<const N: usize>(files: [BorrowedFd<'_>; N], timeout: Option<Duration>) -> io::Result<[bool; N]> {
    let mut polled = files.map(as_input);
    wait_for(&mut polled, timeout)?;
    Ok(polled.map(|polled| !polled.revents().is_empty()))
}

/// Waits until a descriptor is ready for the flags given with it. Returns the flags that apply to each, empty after a
/// timeout. Descriptors with empty flags are not polled: a hang-up on one of them would end every wait immediately.
pub fn ready(wanted: &[(BorrowedFd<'_>, PollFlags)], timeout: Option<Duration>) -> io::Result<Vec<PollFlags>> {
    let asked = wanted.iter().filter(|(_, flags)| !flags.is_empty());
    let mut polled: Vec<PollFd<'_>> = asked.map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
    wait_for(&mut polled, timeout)?;
    let mut told = polled.iter().map(PollFd::revents);
    let told_of = |(_, flags): &(_, PollFlags)| if flags.is_empty() { None } else { told.next() };
    Ok(wanted.iter().map(told_of).map(|told| told.unwrap_or(PollFlags::empty())).collect())
}

/// Waits until a terminal has input. Returns true if it is gone.
pub fn wait_for_terminal(terminal: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    let mut polled = [as_input(terminal)];
    wait_for(&mut polled, Some(timeout))?;
    Ok(polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
}

fn as_input(file: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::from_borrowed_fd(file, PollFlags::IN)
}

fn wait_for(polled: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    // A timeout that is too large to express means forever.
    let timeout = timeout.and_then(|left| Timespec::try_from(left).ok());
    match event::poll(polled, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// `select` for reading, without waiting. Fails for descriptors of 1024 or more, for which `select` has no room.
pub fn select(files: &[BorrowedFd<'_>]) -> io::Result<libc::c_int> {
    let most = files.iter().map(AsRawFd::as_raw_fd).max().unwrap_or(0);
    if most as usize >= libc::FD_SETSIZE {
        return Err(Errno::MFILE.into());
    }
    // SAFETY: an all-zero fd_set is empty, and each descriptor has a bit in it. select writes only to its arguments.
    let result = unsafe {
        let (mut set, mut timeout): (libc::fd_set, libc::timeval) = mem::zeroed();
        files.iter().for_each(|file| libc::FD_SET(file.as_raw_fd(), &mut set));
        libc::select(most + 1, &mut set, ptr::null_mut(), ptr::null_mut(), &mut timeout)
    };
    crate::checked(result)
}

/// The pid and user of the process at the other end of a Unix socket: the one that connected, or the one that listened.
/// The pid is 0 if that process is in another pid namespace. `None` for other sockets.
pub fn peer(socket: &impl AsRawFd) -> Option<(i32, u32)> {
    // rustix cannot represent pid 0. SAFETY: an all-zero ucred is valid; getsockopt writes at most `length` bytes into
    // it.
    let (result, peer) = unsafe {
        let mut peer: libc::ucred = mem::zeroed();
        let mut length = mem::size_of_val(&peer) as libc::socklen_t;
        let fd = socket.as_raw_fd();
        let result =
            libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, ptr::from_mut(&mut peer).cast(), &mut length);
        (result, peer)
    };
    // The kernel reports the user -1 for sockets without a peer.
    (result == 0 && peer.uid != u32::MAX).then_some((peer.pid.max(0), peer.uid))
}

/// The pid of [`peer`], if it is in this pid namespace.
pub fn peer_pid(socket: &impl AsRawFd) -> Option<i32> {
    peer(socket).map(|(pid, _)| pid).filter(|&pid| pid > 0)
}
