// SPDX-License-Identifier: MIT
//! The thread that ends slices early. It waits for the sockets of idle clients and for a timer, and sets
//! `isItTimeToYield`, which the server tests before each request.
//!
//! It also watches the server's own descriptors ([`server_fds`]), because the server reads input only
//! between slices. It updates their list when the server's thread asks, at most every 100 ms and only while a client
//! hogs the server.
//!
//! Section 9.3 of Packard's paper asks how to learn of new data without a select call. This thread does so at little
//! cost: a socket is armed one-shot, only while its client is idle and the running slice could be cut short, and the
//! timer is set at most once per slice. On an idle server the thread sleeps. It starts when it is first needed, because
//! system calls are cheaper in a process with one thread.
//!
//! The server's thread and the watcher share [`Shared`] without a lock: if the kernel preempted a lock holder, the
//! whole server would wait. The watcher's view may be slightly out of date. At worst, a slice ends needlessly or is not
//! ended early.
//!
//! | written by | fields |
//! |---|---|
//! | the server's thread | `slice`, `until`, the contest, ranks, descriptors and generations of slots |
//! | the watcher | `arrived` of slots, `yielded`, `yield_cpu_ns`, `failed` |
//! | both | `timer_at`, `missed`, `server_fired` |
//!
//! Stores and loads of `timer_at`, `until`, `missed` and the start of `slice` are SeqCst on both sides: either the
//! server's thread sees that the timer is not set, or the watcher sees the new end; either the server's thread sees a
//! missed arrival, or the watcher sees the new slice. A sequence lock over relaxed fields protects
//! the contest.

mod server_fds;
mod shared;
mod thread;

use crate::host::cpu::Loan;
use crate::host::kernel::{new_event, notify, read_clock, set_timer, spawn};
use crate::host::real_libc::{ONCE, arm, control};
use crate::mechanism::early_end::EarlyEnd;
use crate::mechanism::fault::{self, FaultCounter};
use crate::mechanism::settings::PlannedFault;
use server_fds::ServerFds;
use shared::{SEVERAL, Shared, Slot};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use thread::WatcherThread;
use xqos_core::{ClientId, Contest, Rank, Time};

const TIMER_TOKEN: u64 = u64::MAX;
const STOP_TOKEN: u64 = u64::MAX - 1;
const LOAN_TOKEN: u64 = u64::MAX - 2;
const SERVER_TOKEN: u64 = u64::MAX - 3;
const UPDATE_TOKEN: u64 = u64::MAX - 4;
/// The minimum time between two updates of the list. A new viewer may go unnoticed for this long.
const UPDATE_NS: u64 = 100_000_000;

/// The server thread's handle for the watcher. Dropping it ends the thread.
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<Shared>,
    update_at: Time,
    /// The server's own descriptors ([`ServerFds::gathered`]).
    of_server: Arc<OwnedFd>,
    stop: OwnedFd,
    thread: ThreadState,
    slices: u64,
    in_slice: bool,
}

enum ThreadState {
    /// Not needed yet; this runs on the thread.
    NotStarted(Box<dyn FnOnce() + Send>),
    Started(JoinHandle<()>),
    None,
}

impl std::fmt::Debug for ThreadState {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(if matches!(self, ThreadState::Started(_)) { "started" } else { "not started" })
    }
}

impl Watcher {
    /// A watcher for the calling thread, which must be the server's. `end_slice` makes the server end a slice. `polled`
    /// is a descriptor that the server polls for us. `fault` is a deliberate fault of a test.
    pub fn new(
        end_slice: impl Fn() + Send + 'static,
        polled: RawFd,
        fault: Option<PlannedFault>,
    ) -> io::Result<Watcher> {
        let (shared, stop) = (Arc::new(Shared::new()?), new_event()?);
        let server_fds = ServerFds::new(polled)?;
        let of_server = server_fds.gathered();
        let Shared { epoll, timer, update, loan, .. } = &*shared;
        let input = libc::EPOLLIN as u32;
        for (fd, events, token) in [
            (timer.as_raw_fd(), input, TIMER_TOKEN),
            (loan.timer.as_raw_fd(), input, LOAN_TOKEN),
            (stop.as_raw_fd(), input, STOP_TOKEN),
            (update.as_raw_fd(), input, UPDATE_TOKEN),
            (of_server.as_raw_fd(), ONCE, SERVER_TOKEN),
        ] {
            control(epoll, libc::EPOLL_CTL_ADD, fd, events, token)?;
        }
        let (its_shared, early_end, faults) = (Arc::clone(&shared), EarlyEnd::default(), FaultCounter::new(fault));
        let mut run = WatcherThread { shared: its_shared, server_fds, end_slice, early_end, faults };
        let work = move || {
            if fault::guarded(|| run.run()).is_err() {
                run.shared.failed.store(true, Ordering::Release);
            }
        };
        let thread = ThreadState::NotStarted(Box::new(work));
        Ok(Watcher { shared, update_at: Time(0), of_server, stop, thread, slices: 0, in_slice: false })
    }

    fn start(&mut self) {
        let ThreadState::NotStarted(work) = mem::replace(&mut self.thread, ThreadState::None) else { return };
        match spawn("xqos-watcher", work) {
            Ok(thread) => self.thread = ThreadState::Started(thread),
            Err(_) => self.shared.failed.store(true, Ordering::Release),
        }
    }

    fn start_if_needed(&mut self) {
        if matches!(self.thread, ThreadState::NotStarted(_)) {
            self.start();
        }
    }

    /// Begins a loan, for which there must be a thread that can lower the server again.
    pub fn begin_loan(&mut self) -> io::Result<()> {
        self.start_if_needed();
        if matches!(self.thread, ThreadState::Started(_)) {
            self.shared.loan.wait_for_watcher();
        }
        self.shared.loan.begin()
    }

    /// The approximate memory of a watcher in bytes.
    pub fn memory_bytes() -> usize {
        size_of::<Shared>() + ClientId::LIMIT * size_of::<Slot>()
    }

    /// False after a fault in the watcher thread, or if it could not be started.
    pub fn is_alive(&self) -> bool {
        !self.shared.failed.load(Ordering::Acquire)
    }

    pub fn connected(&mut self, client: ClientId, fd: RawFd) {
        let slot = &self.shared.slots[usize::from(client.0)];
        // Pairs with the load of `descriptors`, as in `gone`.
        slot.descriptor.store(fd, Ordering::Release);
        slot.generation.fetch_add(1, Ordering::Relaxed);
        slot.arrived.store(0, Ordering::Relaxed);
        slot.loan_ns.store(0, Ordering::Relaxed);
    }

    /// The connection of the client with this index is closed, so its descriptor may be reused.
    pub fn gone(&mut self, client: ClientId) {
        self.shared.slots[usize::from(client.0)].descriptor.store(-1, Ordering::Release);
    }

    /// Watches the socket of an idle client. `known`: the socket was armed before on this connection. `loan_ns`: how
    /// long the client's arrival may raise the server; 0 without a budget.
    pub fn arm(&mut self, client: ClientId, fd: RawFd, known: bool, rank: Rank, loan_ns: u64) -> io::Result<()> {
        self.start_if_needed();
        let slot = &self.shared.slots[usize::from(client.0)];
        self.set_rank(client, rank);
        slot.loan_ns.store(loan_ns, Ordering::Relaxed);
        slot.arrived.store(0, Ordering::Relaxed);
        let token = (u64::from(slot.generation.load(Ordering::Relaxed)) << 16) | u64::from(client.0);
        arm(&self.shared.epoll, fd, known, token)
    }

    pub fn loan(&self) -> &Loan {
        &self.shared.loan
    }

    /// Lets the server's own descriptors end the slice that starts now.
    pub fn server_fds_may_preempt(&mut self, now: Time) {
        if self.shared.server_fired.swap(false, Ordering::Relaxed) {
            // `of_server` stays registered until one of the two epolls is closed.
            let _ = control(&self.shared.epoll, libc::EPOLL_CTL_MOD, self.of_server.as_raw_fd(), ONCE, SERVER_TOKEN);
        }
        if now >= self.update_at {
            self.update_at = now.after(UPDATE_NS);
            notify(&self.shared.update);
        }
    }

    /// Sets the rank that an armed client has on arrival.
    pub fn set_rank(&self, client: ClientId, rank: Rank) {
        let slot = &self.shared.slots[usize::from(client.0)];
        slot.tier.store(rank.tier, Ordering::Relaxed);
        slot.key.store(rank.key, Ordering::Relaxed);
    }

    /// When the watcher saw the armed client arrive, if it did.
    pub fn arrival(&self, client: ClientId) -> Option<Time> {
        let at = self.shared.slots[usize::from(client.0)].arrived.load(Ordering::Relaxed);
        (at != 0).then_some(Time(at))
    }

    /// Starts a slice that ends at `until` at the latest. Not called for a slice that cannot end early.
    pub fn slice_begins(&mut self, contest: &Contest, until: Time) {
        self.start_if_needed();
        self.slices += 1;
        self.in_slice = true;
        self.shared.publish_contest(contest);
        self.shared.until.store(until.0, Ordering::SeqCst);
        self.shared.slice.store(self.slices, Ordering::SeqCst);
        if until.0 < self.shared.timer_at.load(Ordering::SeqCst) {
            self.shared.timer_at.store(until.0, Ordering::SeqCst);
            set_timer(&self.shared.timer, until);
        }
    }

    /// The client whose data arrived before this slice began, possibly after the server had polled. `Some(None)`: there
    /// are several.
    pub fn missed(&self) -> Option<Option<ClientId>> {
        if !self.in_slice || self.shared.missed.load(Ordering::SeqCst) == 0 {
            return None;
        }
        match self.shared.missed.swap(0, Ordering::SeqCst) {
            0 => None,
            SEVERAL => Some(None),
            index => Some(Some(ClientId(index as u16))),
        }
    }

    /// Ends the slice that has just begun at `at`, if it does not end earlier.
    pub fn end_at(&self, at: Time) {
        if at.0 < self.shared.until.load(Ordering::SeqCst) {
            self.shared.until.store(at.0, Ordering::SeqCst);
            self.shared.timer_at.store(at.0, Ordering::SeqCst);
            set_timer(&self.shared.timer, at);
        }
    }

    /// Ends the slice. If it was ended early, returns the processor time (ns) that the last request took after that.
    pub fn slice_ends(&mut self) -> Option<u64> {
        if !mem::take(&mut self.in_slice) {
            return None;
        }
        self.shared.slice.store(0, Ordering::Release);
        self.shared.until.store(u64::MAX, Ordering::SeqCst);
        if self.shared.yielded.load(Ordering::Acquire) != self.slices {
            return None;
        }
        // Cancel the repeated yield, which would wake the watcher needlessly.
        if self.shared.timer_at.swap(u64::MAX, Ordering::SeqCst) != u64::MAX {
            set_timer(&self.shared.timer, Time::NEVER);
        }
        let since = self.shared.yield_cpu_ns.load(Ordering::Relaxed);
        Some(read_clock(self.shared.server_cpu_clock).saturating_sub(since))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        notify(&self.stop);
        if let ThreadState::Started(thread) = mem::replace(&mut self.thread, ThreadState::None) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
