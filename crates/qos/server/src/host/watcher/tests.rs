// SPDX-License-Identifier: MIT
//! Tests of the watcher thread with real sockets and a timer. A flag stands in for the server.

use super::*;
use crate::host::kernel::{new_epoll, new_timer, now};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A time limit that is long enough on a busy machine.
const SOON: Duration = Duration::from_secs(60);

struct Server {
    flag: Arc<AtomicBool>,
    watcher: Watcher,
    /// The descriptors that the server polls: our timer and those that a test adds.
    epoll: OwnedFd,
    _timer: OwnedFd,
}

impl Server {
    fn new() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let yielded = Arc::clone(&flag);
        let (epoll, timer) = (new_epoll().unwrap(), new_timer().unwrap());
        let polled = timer.as_raw_fd();
        let watcher = Watcher::new(move || yielded.store(true, Ordering::Relaxed), polled, None).unwrap();
        let server = Server { flag, watcher, epoll, _timer: timer };
        server.polls(polled);
        server
    }

    fn polls(&self, fd: RawFd) {
        control(&self.epoll, libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, 0).unwrap();
    }

    /// Asks for an update of the list and waits until it is done, by adding a probe that only the update can find.
    fn wait_for_update(&mut self, at: Time) {
        let (probe, end) = socket();
        self.polls(probe);
        send(end);
        self.watcher.slice_begins(&contest(0, 0), Time::NEVER);
        self.watcher.server_fds_may_preempt(at);
        assert!(self.yields(SOON), "no update");
        self.watcher.slice_ends();
        drain_socket(probe);
        self.flag.store(false, Ordering::Relaxed);
    }

    fn wait_for_arrival(&self, id: ClientId) {
        xqos_testkit::wait_for("an arrival is recorded", SOON, || self.watcher.arrival(id).is_some());
    }

    fn yields(&self, within: Duration) -> bool {
        let end = Instant::now() + within;
        while Instant::now() < end {
            if self.flag.load(Ordering::Relaxed) {
                return true;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        false
    }
}

fn contest(key: i64, growth: u32) -> Contest {
    let start = now();
    Contest { rank: Rank { tier: 0, key }, start, growth, margin: 0, desktop_turn: start }
}

fn socket() -> (RawFd, RawFd) {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    assert_eq!(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) }, 0);
    (ends[0], ends[1])
}

fn send(fd: RawFd) {
    // SAFETY: the call reads one byte of a string.
    assert_eq!(unsafe { libc::write(fd, b"x".as_ptr().cast(), 1) }, 1);
}

fn drain_socket(fd: RawFd) {
    let mut byte = 0u8;
    // SAFETY: `byte` has room for one byte.
    assert_eq!(unsafe { libc::read(fd, std::ptr::from_mut(&mut byte).cast(), 1) }, 1);
}

#[test]
fn a_better_arrival_ends_the_slice_and_a_worse_one_does_not() {
    let mut server = Server::new();
    let (ours, theirs) = socket();
    server.watcher.connected(ClientId(1), ours);
    server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
    server.watcher.arm(ClientId(1), ours, false, Rank { tier: 0, key: 50 }, 0).unwrap();
    send(theirs);
    server.wait_for_arrival(ClientId(1));
    assert!(!server.yields(Duration::from_millis(30)));
    server.watcher.slice_ends();
    server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
    server.watcher.arm(ClientId(1), ours, true, Rank { tier: 0, key: 5 }, 0).unwrap();
    assert!(server.yields(SOON), "earlier data counts, too");
    assert!(server.watcher.slice_ends().is_some());
}

#[test]
fn an_arrival_ends_the_slice_when_the_running_client_has_paid_more() {
    let mut server = Server::new();
    let (ours, theirs) = socket();
    server.watcher.connected(ClientId(1), ours);
    let (contest, rank) = (contest(0, 100), Rank { tier: 0, key: 60_000_000 });
    let end = contest.ends_for(rank);
    assert!(end > contest.start.after(20_000_000));
    server.watcher.slice_begins(&contest, Time::NEVER);
    server.watcher.arm(ClientId(1), ours, false, rank, 0).unwrap();
    send(theirs);
    assert!(server.yields(SOON));
    assert!(now() >= end);
}

#[test]
fn a_slice_ends_at_its_time_and_the_next_one_is_not_touched() {
    let mut server = Server::new();
    let until = now().after(20_000_000);
    server.watcher.slice_begins(&contest(0, 0), until);
    assert!(server.yields(SOON));
    assert!(now() >= until);
    assert!(server.watcher.slice_ends().is_some());
    server.flag.store(false, Ordering::Relaxed);
    loop {
        server.watcher.slice_begins(&contest(0, 0), now().after(20_000_000));
        if server.watcher.slice_ends().is_none() {
            break;
        }
        // This thread had no processor until the slice was over.
        server.flag.store(false, Ordering::Relaxed);
    }
    server.watcher.slice_begins(&contest(0, 0), Time::NEVER);
    assert!(!server.yields(Duration::from_millis(60)), "the end of an earlier slice is stale");
}

#[test]
fn the_servers_own_input_ends_each_slice_that_allows_it() {
    let mut server = Server::new();
    let (ours, theirs) = socket();
    server.polls(ours);
    server.wait_for_update(now());
    for turn in 0..3 {
        server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
        server.watcher.server_fds_may_preempt(Time(0));
        assert!(!server.yields(Duration::from_millis(5)), "turn {turn}: no data yet");
        send(theirs);
        assert!(server.yields(SOON), "turn {turn}");
        server.watcher.slice_ends();
        server.flag.store(false, Ordering::Relaxed);
        drain_socket(ours);
    }
}

#[test]
fn a_new_viewer_is_found_by_the_update_after_100_ms() {
    let mut server = Server::new();
    let start = now();
    server.wait_for_update(start);
    let (ours, theirs) = socket();
    server.polls(ours);
    send(theirs);
    server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
    server.watcher.server_fds_may_preempt(start.after(UPDATE_NS - 1));
    assert!(!server.yields(Duration::from_millis(30)), "too soon for another update");
    server.watcher.server_fds_may_preempt(start.after(UPDATE_NS));
    assert!(server.yields(SOON));
}

#[test]
fn a_clients_descriptor_counts_as_the_servers_only_after_it_disconnects() {
    let mut server = Server::new();
    let (start, (ours, theirs)) = (now(), socket());
    server.polls(ours);
    server.watcher.connected(ClientId(1), ours);
    server.wait_for_update(start);
    send(theirs);
    server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
    server.watcher.server_fds_may_preempt(start);
    assert!(!server.yields(Duration::from_millis(30)), "the socket of a busy client");
    server.watcher.gone(ClientId(1));
    server.watcher.server_fds_may_preempt(start.after(UPDATE_NS));
    assert!(server.yields(SOON), "the number belongs to a viewer now");
}

#[test]
fn the_watcher_sleeps_if_the_servers_descriptors_may_not_preempt() {
    let mut server = Server::new();
    server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
    let (ours, theirs) = socket();
    server.polls(ours);
    send(theirs);
    assert!(!server.yields(Duration::from_millis(150)), "no update was requested");
}

#[test]
fn many_arrivals_in_a_slice_do_not_delay_the_repetition() {
    let mut server = Server::new();
    let began = now();
    server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
    let ends: Vec<(RawFd, RawFd)> = (0..100).map(|_| socket()).collect();
    for (index, &(ours, theirs)) in ends.iter().enumerate() {
        let id = ClientId(index as u16 + 1);
        server.watcher.connected(id, ours);
        server.watcher.arm(id, ours, false, Rank { tier: 0, key: 5 }, 0).unwrap();
        send(theirs);
        server.wait_for_arrival(id);
    }
    assert!(server.yields(SOON));
    // The server clears the flag when a slice begins, so the yield must be repeated. The delays double from 50 us, so
    // each one is at most 50 us longer than the sum of all earlier ones.
    let end = Instant::now() + SOON;
    loop {
        let at = Time(server.watcher.shared.timer_at.load(Ordering::SeqCst));
        let now = now();
        // While the watcher repeats the yield, the timer is not set.
        if at.since(now) <= now.since(began) + 50_000 {
            break;
        }
        assert!(at == Time::NEVER && Instant::now() < end, "{} ns until the repetition", at.since(now));
    }
    server.flag.store(false, Ordering::Relaxed);
    assert!(server.yields(SOON), "the yield is not repeated");
    assert!(server.watcher.is_alive());
}

#[test]
fn a_client_with_a_reused_index_is_not_mistaken_for_the_old_one() {
    let mut server = Server::new();
    let (ours, theirs) = socket();
    server.watcher.connected(ClientId(1), ours);
    server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
    server.watcher.arm(ClientId(1), ours, false, Rank { tier: 0, key: 5 }, 0).unwrap();
    server.watcher.connected(ClientId(1), ours);
    send(theirs);
    assert!(!server.yields(Duration::from_millis(30)));
    assert_eq!(server.watcher.arrival(ClientId(1)), None);
}

#[test]
fn an_arrival_between_two_slices_is_reported_when_the_next_one_begins() {
    let mut server = Server::new();
    let armed = [1, 2].map(|index| {
        let (ours, theirs) = socket();
        let id = ClientId(index);
        server.watcher.connected(id, ours);
        server.watcher.arm(id, ours, false, Rank { tier: 0, key: 0 }, 0).unwrap();
        (id, theirs)
    });
    server.watcher.slice_begins(&contest(0, 0), Time::NEVER);
    assert_eq!(server.watcher.missed(), None);
    server.watcher.slice_ends();
    let [(first, theirs), (second, others)] = armed;
    let is_noted = |server: &Server| server.watcher.shared.missed.load(Ordering::SeqCst) != 0;
    send(theirs);
    xqos_testkit::wait_for("the arrival is noted", SOON, || is_noted(&server));
    assert_eq!(server.watcher.missed(), None, "no slice has begun");
    server.watcher.slice_begins(&contest(0, 0), Time::NEVER);
    assert_eq!((server.watcher.missed(), server.watcher.missed()), (Some(Some(first)), None));
    assert!(!server.yields(Duration::from_millis(20)), "the server's thread decides");
    server.watcher.end_at(now());
    assert!(server.yields(SOON));
    server.watcher.slice_ends();
    send(others);
    xqos_testkit::wait_for("the arrival is noted", SOON, || is_noted(&server));
    server.watcher.slice_begins(&contest(0, 0), Time::NEVER);
    assert_eq!(server.watcher.missed(), Some(Some(second)));
}
