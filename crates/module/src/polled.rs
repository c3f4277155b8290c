//! What a server polls for itself: input of a nested server, viewers of a VNC server, devices, the display's events.
//!
//! The server looks at these only between two slices. Xorg reads its input devices in a thread and delivers between two
//! requests; Xephyr and Xtigervnc get theirs over a socket, and a key or a motion would wait for the end of a slice, that
//! is 5 ms and more. No call tells which descriptors they are, but the kernel does: all that the server's epoll watches,
//! less the clients.

use std::fs;
use std::os::fd::RawFd;

/// The descriptors in the epoll that also holds `known`; empty where there is none, or where the kernel does not tell.
pub fn beside(known: RawFd) -> Vec<RawFd> {
    let Ok(open) = fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let epolls = open
        .flatten()
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == "anon_inode:[eventpoll]"));
    let watched = epolls.filter_map(|entry| {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", entry.file_name().to_str()?)).ok()?;
        Some(descriptors(&info))
    });
    let mut found = watched.filter(|watched| watched.contains(&known));
    found.next().unwrap_or_default()
}

/// Of lines such as `tfd:        5 events:       19 data: 7f01a8  pos:0 ino:1c2 sdev:9`.
fn descriptors(info: &str) -> Vec<RawFd> {
    let targets = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
    targets.filter_map(|rest| rest.split_whitespace().next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    #[test]
    fn targets_are_read_and_other_lines_are_not() {
        let info = "pos:\t0\nflags:\t02\nmnt_id:\t15\ntfd:        5 events:       19 data: 7f01a8  pos:0\n\
                    tfd:       12 events: 80000019 data:  1\ntfd: x\n";
        assert_eq!(descriptors(info), [5, 12]);
    }

    #[test]
    fn an_epoll_is_found_by_one_of_its_descriptors() {
        let add = |epoll: &OwnedFd, fd: RawFd| {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            // SAFETY: open descriptors, and an event that lives through the call.
            assert_eq!(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) }, 0);
        };
        // SAFETY: no pointers; each is a new descriptor of ours.
        let (epoll, other, timer, event) = unsafe {
            let own = |fd| OwnedFd::from_raw_fd(fd);
            let epoll = || own(libc::epoll_create1(libc::EPOLL_CLOEXEC));
            (epoll(), epoll(), own(libc::timerfd_create(libc::CLOCK_MONOTONIC, 0)), own(libc::eventfd(0, 0)))
        };
        add(&epoll, timer.as_raw_fd());
        add(&epoll, event.as_raw_fd());
        add(&other, event.as_raw_fd());
        let mut found = beside(timer.as_raw_fd());
        found.sort_unstable();
        let mut expected = vec![timer.as_raw_fd(), event.as_raw_fd()];
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
