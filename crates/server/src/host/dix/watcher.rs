// SPDX-License-Identifier: MIT
//! The thread that ends a slice early: it sleeps on the sockets of idle clients and on a timer, and sets
//! `isItTimeToYield`, which the server tests before each request.
//!
//! The server's own descriptors ([`crate::host::dix::polled`]) are watched with them, for input is looked at between slices. Which
//! they are is read here, too, when the server's thread asks for it: at most every 100 ms, and only while somebody hogs.
//!
//! This answers section 9.3 of Packard's paper (know of new data without a select call). What it costs: a socket is
//! armed one-shot, only while its client is idle, and only while somebody runs who could be cut short; the timer is
//! programmed lazily, at most once in a slice. On an idle server the thread sleeps.
//!
//! The server's thread and the watcher share [`Shared`] and no lock: a lock holder that the kernel puts aside would hold
//! up the whole server. The watcher's view may be a moment old; at worst a slice ends for nothing, or at its usual end.
//!
//! | written by | fields |
//! |---|---|
//! | the server's thread | `slice`, `until`, the contest, ranks, descriptors and generations of slots |
//! | the watcher | `arrived` of slots, `yielded`, `yield_cpu_ns`, `fault` |
//! | both | `timer_at`, `server_fired` |
//!
//! Store and load of `timer_at`, `until` and the beginning of `slice` are SeqCst on both sides: either the server's thread sees that the timer is
//! not programmed, or the watcher sees the new end. The contest is a sequence lock over relaxed fields.

use crate::host::cpu::{self, Loan, WATCHER_SLICE_NS};
use crate::host::dix::polled::Polled;
use crate::host::kernel::{control, drain, new_epoll, new_event, new_timer, notify, now, read_clock, set_timer, spawn};
use crate::mechanism::early_end::{EarlyEnd, Verdict};
use crate::mechanism::fault;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
use std::thread::JoinHandle;
use xqos_core::{ClientId, Contest, Rank, Time};

/// Until the next event.
const ONCE: u32 = (libc::EPOLLIN | libc::EPOLLONESHOT) as u32;
const TIMER_TOKEN: u64 = u64::MAX;
const STOP_TOKEN: u64 = u64::MAX - 1;
const LOAN_TOKEN: u64 = u64::MAX - 2;
const SERVER_TOKEN: u64 = u64::MAX - 3;
const LOOK_TOKEN: u64 = u64::MAX - 4;
/// Minimum time between two looks which these are: a viewer that has come may go unnoticed for that long.
const LOOK_NS: u64 = 100_000_000;

/// One client as the watcher knows it.
#[derive(Debug, Default)]
struct Slot {
    tier: AtomicI64,
    key: AtomicI64,
    /// When the watcher saw its socket readable; 0: not since it was armed.
    arrived: AtomicU64,
    /// Longest loan for it ([`Loan`]); 0: it has no reservation.
    loan_ns: AtomicU64,
    /// Its socket; -1: there is no client, or it has none.
    descriptor: AtomicI32,
    /// Distinguishes clients that had the same index one after the other.
    generation: AtomicU32,
}

/// What the two threads share.
#[derive(Debug)]
pub struct Shared {
    slots: Box<[Slot]>,
    /// Number of the running slice; 0 between slices.
    slice: AtomicU64,
    until: AtomicU64,
    timer_at: AtomicU64,
    contest_version: AtomicU64,
    contest: [AtomicI64; 6],
    /// One of the server's own descriptors had something: they are to be armed again.
    server_fired: AtomicBool,
    /// The last slice that was told to yield.
    yielded: AtomicU64,
    /// CPU time of the server's thread at that moment.
    yield_cpu_ns: AtomicU64,
    /// The thread had a fault and ended.
    failed: AtomicBool,
    stop: AtomicBool,
    /// Passages left to a deliberate fault; 0: none.
    fault_in: AtomicU64,
    loan: Loan,
}

/// The watcher as the server's thread holds it. Dropping it ends the thread.
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<Shared>,
    epoll: Arc<OwnedFd>,
    timer: Arc<OwnedFd>,
    /// An eventfd: the watcher shall read which the server's own descriptors are.
    look: Arc<OwnedFd>,
    look_at: Time,
    /// The server's own descriptors ([`Polled::gathered`]).
    of_server: Arc<OwnedFd>,
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
    slices: u64,
    /// The slice was published.
    in_slice: bool,
    server_cpu_clock: libc::clockid_t,
}

impl Shared {
    fn new(fault_in: u64) -> io::Result<Self> {
        Ok(Shared {
            slots: (0..ClientId::LIMIT).map(|_| Slot { descriptor: AtomicI32::new(-1), ..Slot::default() }).collect(),
            slice: AtomicU64::new(0),
            until: AtomicU64::new(u64::MAX),
            timer_at: AtomicU64::new(u64::MAX),
            contest_version: AtomicU64::new(0),
            contest: Default::default(),
            server_fired: AtomicBool::new(false),
            yielded: AtomicU64::new(0),
            yield_cpu_ns: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            fault_in: AtomicU64::new(fault_in),
            loan: Loan::new()?,
        })
    }

    fn publish_contest(&self, contest: &Contest) {
        let version = self.contest_version.load(Ordering::Relaxed);
        self.contest_version.store(version + 1, Ordering::Relaxed);
        // Pairs with the acquire fence of `contest`: who reads a new field sees the odd version.
        fence(Ordering::Release);
        let Contest { rank, start, growth, margin, desktop_turn } = *contest;
        let fields = [rank.tier, rank.key, start.0 as i64, i64::from(growth), margin, desktop_turn.0 as i64];
        for (place, field) in self.contest.iter().zip(fields) {
            place.store(field, Ordering::Relaxed);
        }
        self.contest_version.store(version + 2, Ordering::Release);
    }

    /// The sockets of all clients.
    fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.slots.iter().map(|slot| slot.descriptor.load(Ordering::Acquire)).filter(|&fd| fd >= 0)
    }

    /// The contest, unless it is being changed: then the slice has just begun or ended, and its end looks again.
    fn contest(&self) -> Option<Contest> {
        let version = self.contest_version.load(Ordering::Acquire);
        let [tier, key, start, growth, margin, desktop_turn] =
            [0, 1, 2, 3, 4, 5].map(|i: usize| self.contest[i].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        if version % 2 == 1 || self.contest_version.load(Ordering::Relaxed) != version {
            return None;
        }
        let rank = Rank { tier, key };
        let (start, desktop_turn) = (Time(start as u64), Time(desktop_turn as u64));
        Some(Contest { rank, start, growth: growth as u32, margin, desktop_turn })
    }
}

impl Watcher {
    /// Starts the thread, for the server whose thread calls; `end_slice` has the server end a slice. `polled`: a descriptor that
    /// the server polls for us. `fault_in`: a deliberate fault at that event, 0 for none.
    pub fn start(end_slice: impl Fn() + Send + 'static, polled: RawFd, fault_in: u64) -> io::Result<Watcher> {
        let (epoll, timer) = (Arc::new(new_epoll()?), Arc::new(new_timer()?));
        let (stop, look) = (new_event()?, Arc::new(new_event()?));
        let shared = Arc::new(Shared::new(fault_in)?);
        let polled = Polled::new(polled)?;
        let of_server = polled.gathered();
        control(&epoll, libc::EPOLL_CTL_ADD, timer.as_raw_fd(), libc::EPOLLIN as u32, TIMER_TOKEN)?;
        control(&epoll, libc::EPOLL_CTL_ADD, shared.loan.timer(), libc::EPOLLIN as u32, LOAN_TOKEN)?;
        control(&epoll, libc::EPOLL_CTL_ADD, stop.as_raw_fd(), libc::EPOLLIN as u32, STOP_TOKEN)?;
        control(&epoll, libc::EPOLL_CTL_ADD, look.as_raw_fd(), libc::EPOLLIN as u32, LOOK_TOKEN)?;
        control(&epoll, libc::EPOLL_CTL_ADD, of_server.as_raw_fd(), ONCE, SERVER_TOKEN)?;
        let mut server_cpu_clock = libc::CLOCK_THREAD_CPUTIME_ID;
        // SAFETY: the calling thread, which lives as long as the server.
        unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut server_cpu_clock) };
        let mut run = Run {
            shared: Arc::clone(&shared),
            epoll: Arc::clone(&epoll),
            timer: Arc::clone(&timer),
            look: Arc::clone(&look),
            polled,
            end_slice,
            server_cpu_clock,
            early_end: EarlyEnd::default(),
        };
        let thread = spawn("xqos-watcher", move || {
            if fault::guarded(|| run.run()).is_err() {
                run.shared.failed.store(true, Ordering::Release);
            }
        })?;
        Ok(Watcher {
            shared,
            epoll,
            timer,
            look,
            look_at: Time(0),
            of_server,
            stop,
            thread: Some(thread),
            slices: 0,
            in_slice: false,
            server_cpu_clock,
        })
    }

    /// Memory that a watcher takes, about.
    pub fn memory_bytes() -> usize {
        size_of::<Shared>() + ClientId::LIMIT * size_of::<Slot>()
    }

    /// False after the thread had a fault.
    pub fn is_alive(&self) -> bool {
        !self.shared.failed.load(Ordering::Acquire)
    }

    /// A client with this index connected, over this descriptor.
    pub fn connected(&mut self, client: ClientId, fd: RawFd) {
        let slot = &self.shared.slots[usize::from(client.0)];
        // Pairs with the load of `descriptors`, as in `gone`.
        slot.descriptor.store(fd, Ordering::Release);
        slot.generation.fetch_add(1, Ordering::Relaxed);
        slot.arrived.store(0, Ordering::Relaxed);
        slot.loan_ns.store(0, Ordering::Relaxed);
    }

    /// The client with this index has no connection any more: its descriptor may become anybody's.
    pub fn gone(&mut self, client: ClientId) {
        self.shared.slots[usize::from(client.0)].descriptor.store(-1, Ordering::Release);
    }

    /// Watches the socket of an idle client; `known`: it was armed before since the client connected. `loan_ns`: how long
    /// the server may be raised for it, 0 where it has no budget.
    pub fn arm(&self, client: ClientId, fd: RawFd, known: bool, rank: Rank, loan_ns: u64) -> io::Result<()> {
        let slot = &self.shared.slots[usize::from(client.0)];
        self.set_rank(client, rank);
        slot.loan_ns.store(loan_ns, Ordering::Relaxed);
        slot.arrived.store(0, Ordering::Relaxed);
        let token = (u64::from(slot.generation.load(Ordering::Relaxed)) << 16) | u64::from(client.0);
        self.arm_once(fd, known, token)
    }

    /// The loan.
    pub fn loan(&self) -> &Loan {
        &self.shared.loan
    }

    /// Whatever the server polls for itself ends the slice that begins now.
    pub fn server_fds_may_preempt(&mut self, now: Time) {
        if self.shared.server_fired.swap(false, Ordering::Relaxed) {
            // It is in there until both are closed.
            let _ = control(&self.epoll, libc::EPOLL_CTL_MOD, self.of_server.as_raw_fd(), ONCE, SERVER_TOKEN);
        }
        if now >= self.look_at {
            self.look_at = now.after(LOOK_NS);
            notify(&self.look);
        }
    }

    /// Until the next event; `known`: probably in the epoll already.
    fn arm_once(&self, fd: RawFd, known: bool, token: u64) -> io::Result<()> {
        let (first, second) =
            if known { (libc::EPOLL_CTL_MOD, libc::EPOLL_CTL_ADD) } else { (libc::EPOLL_CTL_ADD, libc::EPOLL_CTL_MOD) };
        control(&self.epoll, first, fd, ONCE, token).or_else(|_| control(&self.epoll, second, fd, ONCE, token))
    }

    /// How an armed client would stand on arrival.
    pub fn set_rank(&self, client: ClientId, rank: Rank) {
        let slot = &self.shared.slots[usize::from(client.0)];
        slot.tier.store(rank.tier, Ordering::Relaxed);
        slot.key.store(rank.key, Ordering::Relaxed);
    }

    /// When the watcher saw an armed client arrive, if it did.
    pub fn arrival(&self, client: ClientId) -> Option<Time> {
        let at = self.shared.slots[usize::from(client.0)].arrived.load(Ordering::Relaxed);
        (at != 0).then_some(Time(at))
    }

    /// A slice begins. `until`: end it then at the latest. Not called for one that nobody can cut short.
    pub fn slice_begins(&mut self, contest: &Contest, until: Time) {
        self.slices += 1;
        self.in_slice = true;
        self.shared.publish_contest(contest);
        self.shared.until.store(until.0, Ordering::SeqCst);
        self.shared.slice.store(self.slices, Ordering::SeqCst);
        if until.0 < self.shared.timer_at.load(Ordering::SeqCst) {
            self.shared.timer_at.store(until.0, Ordering::SeqCst);
            set_timer(&self.timer, until);
        }
    }

    /// The slice ended. If it was told to yield: the CPU time in nanoseconds that the request in progress took since.
    pub fn slice_ends(&mut self) -> Option<u64> {
        if !std::mem::take(&mut self.in_slice) {
            return None;
        }
        self.shared.slice.store(0, Ordering::Release);
        self.shared.until.store(u64::MAX, Ordering::SeqCst);
        if self.shared.yielded.load(Ordering::Acquire) != self.slices {
            return None;
        }
        // The repetition of the yield is not needed any more: it would wake the watcher for nothing.
        if self.shared.timer_at.swap(u64::MAX, Ordering::SeqCst) != u64::MAX {
            set_timer(&self.timer, Time::NEVER);
        }
        let since = self.shared.yield_cpu_ns.load(Ordering::Relaxed);
        Some(read_clock(self.server_cpu_clock).saturating_sub(since))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        notify(&self.stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's own state.
struct Run<F> {
    shared: Arc<Shared>,
    epoll: Arc<OwnedFd>,
    timer: Arc<OwnedFd>,
    look: Arc<OwnedFd>,
    polled: Polled,
    end_slice: F,
    server_cpu_clock: libc::clockid_t,
    early_end: EarlyEnd,
}

impl<F: Fn()> Run<F> {
    fn run(&mut self) {
        // So that a wakeup comes through where all processors are busy; the thread hardly runs.
        cpu::ask_for_slices(WATCHER_SLICE_NS);
        self.shared.loan.watcher_is_here();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 32];
        while !self.shared.stop.load(Ordering::SeqCst) {
            // SAFETY: an open epoll and room for that many events.
            let count =
                unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, -1) };
            let now = now();
            for event in events.iter().take(usize::try_from(count).unwrap_or(0)) {
                self.fail_on_purpose();
                let token = event.u64;
                match token {
                    STOP_TOKEN => return,
                    TIMER_TOKEN => self.timer_fired(now),
                    LOAN_TOKEN => {
                        drain(self.shared.loan.timer());
                        self.shared.loan.lower();
                    }
                    SERVER_TOKEN => self.server_has_work(now),
                    LOOK_TOKEN => {
                        drain(self.look.as_raw_fd());
                        self.polled.look(self.shared.descriptors(), now);
                    }
                    _ => self.arrived(token, now),
                }
            }
        }
    }

    fn arrived(&mut self, token: u64, now: Time) {
        let Some(slot) = self.shared.slots.get((token & 0xffff) as usize) else { return };
        if u64::from(slot.generation.load(Ordering::Relaxed)) != token >> 16 {
            return;
        }
        slot.arrived.store(now.0, Ordering::Relaxed);
        let loan_ns = slot.loan_ns.load(Ordering::Relaxed);
        if loan_ns > 0 && self.shared.loan.is_on() {
            self.shared.loan.raise(now.after(loan_ns));
        }
        let slice = self.shared.slice.load(Ordering::Acquire);
        let Some(contest) = self.shared.contest().filter(|_| slice != 0) else { return };
        let rank = Rank { tier: slot.tier.load(Ordering::Relaxed), key: slot.key.load(Ordering::Relaxed) };
        let verdict = self.early_end.arrived(slice, &contest, rank, now);
        self.carry_out(verdict, slice, now);
    }

    /// Input, or something else that the server itself waits for: it is looked at between two slices.
    fn server_has_work(&mut self, now: Time) {
        self.shared.server_fired.store(true, Ordering::Relaxed);
        let slice = self.shared.slice.load(Ordering::Acquire);
        if slice == 0 {
            return;
        }
        let verdict = self.early_end.server_has_work(slice, now);
        self.carry_out(verdict, slice, now);
    }

    fn timer_fired(&mut self, now: Time) {
        drain(self.timer.as_raw_fd());
        self.shared.timer_at.store(u64::MAX, Ordering::SeqCst);
        let slice = self.shared.slice.load(Ordering::SeqCst);
        if slice == 0 {
            return;
        }
        let has_yielded = self.shared.yielded.load(Ordering::Relaxed) == slice;
        let until = if has_yielded { Time::NEVER } else { Time(self.shared.until.load(Ordering::SeqCst)) };
        let verdict = self.early_end.time_has_come(slice, until, now);
        self.carry_out(verdict, slice, now);
    }

    fn carry_out(&mut self, verdict: Verdict, slice: u64, now: Time) {
        match verdict {
            Verdict::Nothing => {}
            Verdict::End => self.end(slice, now),
            Verdict::AskAt(at) if at.0 < self.shared.timer_at.load(Ordering::SeqCst) => self.program(at),
            Verdict::AskAt(_) => {}
        }
    }

    /// Ends the slice at the next request boundary.
    fn end(&mut self, slice: u64, now: Time) {
        if self.shared.yielded.load(Ordering::Relaxed) != slice {
            self.shared.yield_cpu_ns.store(read_clock(self.server_cpu_clock), Ordering::Relaxed);
            self.shared.yielded.store(slice, Ordering::Release);
        }
        if self.shared.slice.load(Ordering::Acquire) == slice {
            (self.end_slice)();
            if let Verdict::AskAt(at) = self.early_end.ended(slice, now) {
                self.program(at);
            }
        }
    }

    fn program(&self, at: Time) {
        self.shared.timer_at.store(at.0, Ordering::SeqCst);
        set_timer(&self.timer, at);
        // The server's thread may have begun a slice with an earlier end meanwhile, and our later one stand in its place.
        let until = self.shared.until.load(Ordering::SeqCst);
        if until < at.0 && self.shared.yielded.load(Ordering::Relaxed) != self.shared.slice.load(Ordering::SeqCst) {
            self.shared.timer_at.store(until, Ordering::SeqCst);
            set_timer(&self.timer, Time(until));
        }
    }

    fn fail_on_purpose(&self) {
        let left = self.shared.fault_in.load(Ordering::Relaxed);
        if left > 0 {
            self.shared.fault_in.store(left - 1, Ordering::Relaxed);
            assert!(left > 1, "a test asked for a fault in the watcher");
        }
    }
}

#[cfg(test)]
mod tests;
