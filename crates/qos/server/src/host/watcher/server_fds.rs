// SPDX-License-Identifier: MIT
//! The server's own descriptors: input of a nested server, viewers of a VNC server, devices, the display's events.
//!
//! The server reads these only between two slices. Xorg reads input devices in a thread and delivers their events
//! between requests, but Xephyr and Xtigervnc get input over a socket, so a key press would wait for the end of a slice
//! (5 ms and more). No server call lists these descriptors, but the kernel does: they are everything in the server's
//! epoll except the clients.
//!
//! The watcher thread reads that list and adds the descriptors to an epoll of its own, which becomes readable when any
//! of them does. Only that thread uses this epoll, so a list that is slightly out of date does little harm. A client's
//! socket added by mistake ends slices needlessly until the next update. The kernel removes closed descriptors.

use crate::host::kernel::new_epoll;
use crate::host::real_libc::control;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use xqos_core::Time;
use xqos_sys::proc::{epoll_targets, own_epolls};

/// The time between two searches through all open descriptors, if the server's epoll is not found.
const SEARCH_NS: u64 = 1_000_000_000;

/// The server's own descriptors, as the watcher sees them. Once they are found, an update allocates nothing: the
/// allocator has locks that the server's thread may need.
#[derive(Debug)]
pub struct ServerFds {
    /// A descriptor of ours that the server polls. The epoll that contains it is the server's.
    known: RawFd,
    gathered: Arc<OwnedFd>,
    members: Vec<RawFd>,
    /// The fdinfo file of the server's epoll. The file stays open, but the descriptor may later refer to another epoll.
    info: Option<File>,
    search_at: Time,
    text: String,
    found: Vec<RawFd>,
    clients: Vec<RawFd>,
}

impl ServerFds {
    pub fn new(known: RawFd) -> io::Result<ServerFds> {
        Ok(ServerFds {
            known,
            gathered: Arc::new(new_epoll()?),
            members: Vec::new(),
            info: None,
            search_at: Time(0),
            text: String::new(),
            found: Vec::new(),
            clients: Vec::new(),
        })
    }

    /// The epoll that is readable while any of the server's own descriptors is readable.
    pub fn gathered(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.gathered)
    }

    /// Reads the list again and only then `clients`, so that `clients` includes every client in the list.
    pub fn update(&mut self, clients: impl Iterator<Item = RawFd>, now: Time) {
        self.read(now);
        self.clients.clear();
        self.clients.extend(clients);
        self.clients.push(self.known);
        remove(&mut self.found, &mut self.clients);
        self.gather();
    }

    /// Reads which descriptors the server's epoll watches; none if it is not found or the kernel does not list them.
    fn read(&mut self, now: Time) {
        if let Some(info) = &mut self.info {
            if holds(info, self.known, &mut self.text, &mut self.found) {
                return;
            }
            self.info = None;
        }
        self.found.clear();
        if now >= self.search_at {
            self.search_at = now.after(SEARCH_NS);
            self.info = self.search();
        }
    }

    /// Searches all open descriptors for the server's epoll.
    fn search(&mut self) -> Option<File> {
        let found = own_epolls()
            .find_map(|mut info| holds(&mut info, self.known, &mut self.text, &mut self.found).then_some(info));
        if found.is_none() {
            self.found.clear();
        }
        found
    }

    /// Watches the descriptors that were found, and no others.
    fn gather(&mut self) {
        self.found.sort_unstable();
        for &fd in self.members.iter().filter(|fd| self.found.binary_search(fd).is_err()) {
            // The kernel has already removed a closed descriptor.
            let _ = control(&*self.gathered, libc::EPOLL_CTL_DEL, fd, 0, 0);
        }
        for &fd in &self.found {
            // Add all of them, because a number may have been reused. The call fails for those already added.
            let _ = control(&*self.gathered, libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, 0);
        }
        std::mem::swap(&mut self.members, &mut self.found);
    }
}

/// Returns true if the epoll watches `known`. Fills `found` with all descriptors that the epoll watches.
fn holds(info: &mut File, known: RawFd, text: &mut String, found: &mut Vec<RawFd>) -> bool {
    text.clear();
    found.clear();
    if info.rewind().and_then(|()| info.read_to_string(text)).is_err() {
        return false;
    }
    found.extend(epoll_targets(text));
    found.contains(&known)
}

/// Removes the clients' descriptors by binary search.
fn remove(found: &mut Vec<RawFd>, clients: &mut [RawFd]) {
    clients.sort_unstable();
    found.retain(|fd| clients.binary_search(fd).is_err());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::kernel::new_timer;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    /// The part of a server that is visible in /proc: an epoll with our timer and further descriptors.
    struct Server {
        epoll: OwnedFd,
        timer: OwnedFd,
        now: Time,
    }

    impl Server {
        fn new() -> Server {
            let server = Server { epoll: new_epoll().unwrap(), timer: new_timer().unwrap(), now: Time(1) };
            server.polls(server.timer.as_raw_fd());
            server
        }

        fn polls(&self, fd: RawFd) {
            control(&self.epoll, libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, 7).unwrap();
        }

        /// Updates the list. Returns the server's own descriptors in it, in ascending order.
        fn update(&self, fds: &mut ServerFds, clients: &[RawFd]) -> Vec<RawFd> {
            fds.update(clients.iter().copied(), self.now);
            fds.members.clone()
        }
    }

    fn pair() -> (UnixStream, UnixStream) {
        UnixStream::pair().unwrap()
    }

    fn is_readable(epoll: &OwnedFd) -> bool {
        let mut fds = libc::pollfd { fd: epoll.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: there is room for one entry.
        unsafe { libc::poll(&mut fds, 1, 0) == 1 }
    }

    fn send(to: &mut UnixStream) {
        std::io::Write::write_all(to, b"x").unwrap();
    }

    #[test]
    fn clients_and_our_timer_are_not_among_the_servers_descriptors() {
        let (server, other) = (Server::new(), Server::new());
        let mut fds = ServerFds::new(server.timer.as_raw_fd()).unwrap();
        let ((viewer, _a), (client, _b), (elsewhere, _c)) = (pair(), pair(), pair());
        server.polls(viewer.as_raw_fd());
        server.polls(client.as_raw_fd());
        other.polls(elsewhere.as_raw_fd());
        let idle_client = elsewhere.as_raw_fd();
        assert_eq!(server.update(&mut fds, &[idle_client, client.as_raw_fd()]), [viewer.as_raw_fd()]);
    }

    #[test]
    fn only_the_servers_descriptors_make_the_epoll_readable() {
        let server = Server::new();
        let mut fds = ServerFds::new(server.timer.as_raw_fd()).unwrap();
        let ((viewer, mut from_viewer), (client, mut from_client)) = (pair(), pair());
        server.polls(viewer.as_raw_fd());
        server.polls(client.as_raw_fd());
        server.update(&mut fds, &[client.as_raw_fd()]);
        send(&mut from_client);
        assert!(!is_readable(&fds.gathered()));
        send(&mut from_viewer);
        assert!(is_readable(&fds.gathered()));
    }

    #[test]
    fn a_client_added_by_mistake_is_removed_by_the_next_update() {
        let server = Server::new();
        let mut fds = ServerFds::new(server.timer.as_raw_fd()).unwrap();
        let (client, mut from_client) = pair();
        server.polls(client.as_raw_fd());
        assert_eq!(server.update(&mut fds, &[]), [client.as_raw_fd()]);
        assert_eq!(server.update(&mut fds, &[client.as_raw_fd()]), []);
        send(&mut from_client);
        assert!(!is_readable(&fds.gathered()));
    }

    #[test]
    fn a_viewer_with_a_reused_descriptor_number_is_watched() {
        let server = Server::new();
        let mut fds = ServerFds::new(server.timer.as_raw_fd()).unwrap();
        let ((first, _first_end), (second, mut second_end)) = (pair(), pair());
        let number = first.as_raw_fd();
        server.polls(number);
        assert_eq!(server.update(&mut fds, &[]), [number]);
        // Use dup2 so that no other test gets the number in between.
        // SAFETY: both descriptors are open, and `first` keeps owning its own.
        assert_eq!(unsafe { libc::dup2(second.as_raw_fd(), number) }, number);
        send(&mut second_end);
        assert!(!is_readable(&fds.gathered()), "the kernel has removed the closed viewer");
        server.polls(number);
        assert_eq!(server.update(&mut fds, &[]), [number]);
        assert!(is_readable(&fds.gathered()));
    }

    #[test]
    fn a_viewer_with_the_number_of_a_former_client_is_watched() {
        let server = Server::new();
        let mut fds = ServerFds::new(server.timer.as_raw_fd()).unwrap();
        let ((client, _client_end), (viewer, mut viewer_end)) = (pair(), pair());
        let number = client.as_raw_fd();
        server.polls(number);
        assert_eq!(server.update(&mut fds, &[number]), []);
        // SAFETY: both descriptors are open, and `client` keeps owning its own.
        assert_eq!(unsafe { libc::dup2(viewer.as_raw_fd(), number) }, number);
        server.polls(number);
        assert_eq!(server.update(&mut fds, &[]), [number]);
        send(&mut viewer_end);
        assert!(is_readable(&fds.gathered()));
    }

    #[test]
    fn a_missing_epoll_is_searched_for_once_a_second() {
        let (mut server, viewer) = (Server::new(), pair());
        let mut fds = ServerFds::new(server.timer.as_raw_fd()).unwrap();
        server.polls(viewer.0.as_raw_fd());
        control(&server.epoll, libc::EPOLL_CTL_DEL, server.timer.as_raw_fd(), 0, 0).unwrap();
        assert_eq!(server.update(&mut fds, &[]), []);
        server.polls(server.timer.as_raw_fd());
        server.now = server.now.after(SEARCH_NS - 1);
        assert_eq!(server.update(&mut fds, &[]), []);
        server.now = server.now.after(1);
        assert_eq!(server.update(&mut fds, &[]), [viewer.0.as_raw_fd()]);
        // From now on the epoll is known and needs no search.
        let next = pair();
        server.polls(next.0.as_raw_fd());
        assert_eq!(server.update(&mut fds, &[viewer.0.as_raw_fd()]), [next.0.as_raw_fd()]);
    }

    #[test]
    fn the_servers_epoll_is_found_again_under_another_number() {
        let (mut server, viewer) = (Server::new(), pair());
        let mut fds = ServerFds::new(server.timer.as_raw_fd()).unwrap();
        server.polls(viewer.0.as_raw_fd());
        assert_eq!(server.update(&mut fds, &[]).len(), 1);
        let closed = std::mem::replace(&mut server.epoll, new_epoll().unwrap());
        server.polls(server.timer.as_raw_fd());
        drop(closed);
        server.now = server.now.after(SEARCH_NS);
        assert_eq!(server.update(&mut fds, &[]), [], "the viewer is not in the new one");
        server.polls(viewer.0.as_raw_fd());
        assert_eq!(server.update(&mut fds, &[]), [viewer.0.as_raw_fd()]);
    }

    #[test]
    fn an_update_of_known_descriptors_allocates_nothing() {
        let server = Server::new();
        let mut fds = ServerFds::new(server.timer.as_raw_fd()).unwrap();
        let clients: Vec<_> = (0..200).map(|_| pair()).collect();
        clients.iter().for_each(|(client, _)| server.polls(client.as_raw_fd()));
        let numbers: Vec<RawFd> = clients.iter().map(|(client, _)| client.as_raw_fd()).collect();
        let room = |fds: &ServerFds| {
            let vectors = fds.found.capacity() + fds.members.capacity();
            (fds.text.capacity(), vectors, fds.clients.capacity())
        };
        // The two vectors swap places at each update.
        (0..3).for_each(|_| assert_eq!(server.update(&mut fds, &numbers), []));
        let before = room(&fds);
        (0..5).for_each(|_| assert_eq!(server.update(&mut fds, &numbers), []));
        assert_eq!(room(&fds), before);
    }
}
