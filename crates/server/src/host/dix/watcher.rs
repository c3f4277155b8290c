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

use crate::host::dix::cpu::{self, Loan};
use crate::host::dix::polled::Polled;
use crate::mechanism::early_end::{EarlyEnd, Verdict};
use crate::mechanism::fault;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
use std::thread::JoinHandle;
use xqos_core::{ClientId, Contest, Rank, Time};

/// The shortest that the kernel grants.
pub const KERNEL_SLICE_NS: u64 = 100_000;
/// Address space, not memory: the thread uses a few pages; the rest leaves room for the server's thread-local data.
const STACK_BYTES: usize = 256 * 1024;
/// Until the next event.
const ONCE: u32 = (libc::EPOLLIN | libc::EPOLLONESHOT) as u32;
const TIMER_TOKEN: u64 = u64::MAX;
const STOP_TOKEN: u64 = u64::MAX - 1;
const LOAN_TOKEN: u64 = u64::MAX - 2;
const SERVER_TOKEN: u64 = u64::MAX - 3;
const LOOK_TOKEN: u64 = u64::MAX - 4;
/// It is read so often at most which these are. A viewer that has come is not noticed for so long.
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

/// Waits until one of these descriptors has something to read, or until that time; for a signal, too. Those below 0 are
/// passed over.
pub fn wait_for(descriptors: impl Iterator<Item = RawFd>, until: Time) {
    // Of more, the first.
    const WAITED_FOR: usize = 16;
    let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; WAITED_FOR];
    for (place, fd) in polled.iter_mut().zip(descriptors) {
        place.fd = fd;
    }
    let time = libc::timespec { tv_sec: 0, tv_nsec: until.since(now()) as i64 };
    // SAFETY: that many places, and a time that lives through the call.
    unsafe { libc::ppoll(polled.as_mut_ptr(), WAITED_FOR as libc::nfds_t, &time, std::ptr::null()) };
}

/// CLOCK_MONOTONIC.
pub fn now() -> Time {
    Time(read_clock(libc::CLOCK_MONOTONIC))
}

/// Processor time of the calling thread, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// A clock of the kernel, nanoseconds.
pub fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid clock and a place for its value.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just made, and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A timer of CLOCK_MONOTONIC.
pub fn new_timer() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) })
}

pub fn new_epoll() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

fn new_event() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
}

/// Makes an eventfd readable.
fn notify(event: &OwnedFd) {
    let one = 1u64;
    // SAFETY: eight bytes from a place of eight bytes; the descriptor does not block.
    unsafe { libc::write(event.as_raw_fd(), std::ptr::from_ref(&one).cast(), 8) };
}

/// Programs a timer for an instant; [`Time::NEVER`] stops it.
pub fn set_timer(timer: &OwnedFd, at: Time) {
    // An instant of 0 would stop it.
    let at_ns = if at == Time::NEVER { 0 } else { at.0.max(1) };
    let value = libc::timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
    let program = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    // SAFETY: an open timer and a program that lives through the call.
    unsafe { libc::timerfd_settime(timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &program, std::ptr::null_mut()) };
}

/// Empties a timer or an eventfd after it fired.
pub fn drain(fd: RawFd) {
    let mut count = 0u64;
    // SAFETY: eight bytes into a place of eight bytes; the descriptor does not block.
    unsafe { libc::read(fd, std::ptr::from_mut(&mut count).cast(), 8) };
}

impl Shared {
    fn new(fault_in: u64, server_slice_ns: u64) -> io::Result<Self> {
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
            loan: Loan::new(server_slice_ns)?,
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
    /// Starts the thread, for the server whose thread calls and has slices of `server_slice_ns` of the kernel; `end_slice`
    /// has the server end a slice. `polled`: a descriptor that the server polls for us. `fault_in`: a deliberate fault at that
    /// event, 0 for none.
    pub fn start(
        end_slice: impl Fn() + Send + 'static,
        polled: RawFd,
        fault_in: u64,
        server_slice_ns: u64,
    ) -> io::Result<Watcher> {
        let (epoll, timer) = (Arc::new(new_epoll()?), Arc::new(new_timer()?));
        let (stop, look) = (new_event()?, Arc::new(new_event()?));
        let shared = Arc::new(Shared::new(fault_in, server_slice_ns)?);
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
        let thread = with_signals_blocked(|| {
            let builder = std::thread::Builder::new().name("xqos-watcher".to_owned()).stack_size(STACK_BYTES);
            builder.spawn(move || {
                if fault::guarded(|| run.run()).is_err() {
                    run.shared.failed.store(true, Ordering::Release);
                }
            })
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
        cpu::ask_for_slices(KERNEL_SLICE_NS);
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

/// A change of what an epoll watches.
pub fn control(epoll: &OwnedFd, operation: i32, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
    let mut event = libc::epoll_event { events, u64: token };
    // SAFETY: an open epoll and an event that lives through the call.
    let result = unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, fd, &mut event) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A thread started by `start` gets no signals: they are the server's, and its handlers expect its thread.
fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: signal sets that the calls fill in, and the calling thread's mask, put back below.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    struct Server {
        flag: Arc<AtomicBool>,
        watcher: Watcher,
        /// What the server polls: a timer of ours, and what is added.
        epoll: OwnedFd,
        _timer: OwnedFd,
    }

    impl Server {
        fn new() -> Self {
            let flag = Arc::new(AtomicBool::new(false));
            let told = Arc::clone(&flag);
            let (epoll, timer) = (new_epoll().unwrap(), new_timer().unwrap());
            let polled = timer.as_raw_fd();
            let watcher = Watcher::start(move || told.store(true, Ordering::Relaxed), polled, 0, 0).unwrap();
            let server = Server { flag, watcher, epoll, _timer: timer };
            server.polls(polled);
            server
        }

        fn polls(&self, fd: RawFd) {
            control(&self.epoll, libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, 0).unwrap();
        }

        /// Asks for a look, and returns when it is over: something that only that look can have found is told of.
        fn has_looked(&mut self, at: Time) {
            let (probe, end) = socket();
            self.polls(probe);
            send(end);
            self.watcher.slice_begins(&contest(0, 0), Time::NEVER);
            self.watcher.server_fds_may_preempt(at);
            assert!(self.is_told_to_yield(Duration::from_secs(5)), "no look");
            self.watcher.slice_ends();
            drain_socket(probe);
            self.flag.store(false, Ordering::Relaxed);
        }

        fn is_told_to_yield(&self, within: Duration) -> bool {
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
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) }, 0);
        (ends[0], ends[1])
    }

    fn send(fd: RawFd) {
        // SAFETY: one byte from a place of one byte.
        assert_eq!(unsafe { libc::write(fd, b"x".as_ptr().cast(), 1) }, 1);
    }

    fn drain_socket(fd: RawFd) {
        let mut byte = 0u8;
        // SAFETY: one byte into a place of one byte.
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
        assert!(!server.is_told_to_yield(Duration::from_millis(30)));
        assert!(server.watcher.arrival(ClientId(1)).is_some(), "its time is noted all the same");
        server.watcher.slice_ends();
        server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
        server.watcher.arm(ClientId(1), ours, true, Rank { tier: 0, key: 5 }, 0).unwrap();
        assert!(server.is_told_to_yield(Duration::from_secs(5)), "data that was there before counts");
        assert!(server.watcher.slice_ends().is_some());
    }

    #[test]
    fn an_arrival_ends_the_slice_when_the_running_client_has_paid_more() {
        let mut server = Server::new();
        let (ours, theirs) = socket();
        server.watcher.connected(ClientId(1), ours);
        server.watcher.slice_begins(&contest(0, 100), Time::NEVER);
        server.watcher.arm(ClientId(1), ours, false, Rank { tier: 0, key: 60_000_000 }, 0).unwrap();
        send(theirs);
        assert!(!server.is_told_to_yield(Duration::from_millis(20)));
        assert!(server.is_told_to_yield(Duration::from_secs(5)));
    }

    #[test]
    fn a_slice_ends_at_its_time_and_the_next_one_is_not_touched() {
        let mut server = Server::new();
        let until = now().after(20_000_000);
        server.watcher.slice_begins(&contest(0, 0), until);
        assert!(server.is_told_to_yield(Duration::from_secs(5)));
        assert!(now() >= until);
        assert!(server.watcher.slice_ends().is_some());
        server.flag.store(false, Ordering::Relaxed);
        server.watcher.slice_begins(&contest(0, 0), now().after(20_000_000));
        assert!(server.watcher.slice_ends().is_none());
        server.watcher.slice_begins(&contest(0, 0), Time::NEVER);
        assert!(!server.is_told_to_yield(Duration::from_millis(60)), "the end of an earlier slice is stale");
    }

    #[test]
    fn the_servers_own_input_ends_a_slice_each_time_it_is_minded() {
        let mut server = Server::new();
        let (ours, theirs) = socket();
        server.polls(ours);
        server.has_looked(now());
        for turn in 0..3 {
            server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
            server.watcher.server_fds_may_preempt(Time(0));
            assert!(!server.is_told_to_yield(Duration::from_millis(5)), "turn {turn}: nothing has come");
            send(theirs);
            assert!(server.is_told_to_yield(Duration::from_secs(5)), "turn {turn}");
            server.watcher.slice_ends();
            server.flag.store(false, Ordering::Relaxed);
            drain_socket(ours);
        }
    }

    #[test]
    fn a_viewer_that_comes_later_is_seen_by_the_look_after_a_tenth_of_a_second() {
        let mut server = Server::new();
        let start = now();
        server.has_looked(start);
        let (ours, theirs) = socket();
        server.polls(ours);
        send(theirs);
        server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
        server.watcher.server_fds_may_preempt(start.after(LOOK_NS - 1));
        assert!(!server.is_told_to_yield(Duration::from_millis(30)), "too soon for another look");
        server.watcher.server_fds_may_preempt(start.after(LOOK_NS));
        assert!(server.is_told_to_yield(Duration::from_secs(5)));
    }

    #[test]
    fn a_clients_socket_is_not_the_servers_until_the_client_is_gone() {
        let mut server = Server::new();
        let (start, (ours, theirs)) = (now(), socket());
        server.polls(ours);
        server.watcher.connected(ClientId(1), ours);
        server.has_looked(start);
        send(theirs);
        server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
        server.watcher.server_fds_may_preempt(start);
        assert!(!server.is_told_to_yield(Duration::from_millis(30)), "a busy client's");
        server.watcher.gone(ClientId(1));
        server.watcher.server_fds_may_preempt(start.after(LOOK_NS));
        assert!(server.is_told_to_yield(Duration::from_secs(5)), "a viewer's, under the same number");
    }

    #[test]
    fn nothing_wakes_the_watcher_where_the_server_is_not_minded() {
        let mut server = Server::new();
        server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
        let (ours, theirs) = socket();
        server.polls(ours);
        send(theirs);
        assert!(!server.is_told_to_yield(Duration::from_millis(150)), "nobody asked for a look");
    }

    #[test]
    fn many_arrivals_in_one_slice_do_not_put_the_repetition_off() {
        let mut server = Server::new();
        server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
        let ends: Vec<(RawFd, RawFd)> = (0..100).map(|_| socket()).collect();
        for (index, &(ours, theirs)) in ends.iter().enumerate() {
            let id = ClientId(index as u16 + 1);
            server.watcher.connected(id, ours);
            server.watcher.arm(id, ours, false, Rank { tier: 0, key: 5 }, 0).unwrap();
            send(theirs);
        }
        assert!(server.is_told_to_yield(Duration::from_secs(5)));
        // The server clears the flag as a slice begins; the yield must come again soon.
        std::thread::sleep(Duration::from_millis(5));
        server.flag.store(false, Ordering::Relaxed);
        assert!(server.is_told_to_yield(Duration::from_millis(500)), "the repetition was put off");
        assert!(server.watcher.is_alive());
    }

    #[test]
    fn a_client_that_took_over_an_index_is_not_the_old_one() {
        let mut server = Server::new();
        let (ours, theirs) = socket();
        server.watcher.connected(ClientId(1), ours);
        server.watcher.slice_begins(&contest(10, 0), Time::NEVER);
        server.watcher.arm(ClientId(1), ours, false, Rank { tier: 0, key: 5 }, 0).unwrap();
        server.watcher.connected(ClientId(1), ours);
        send(theirs);
        assert!(!server.is_told_to_yield(Duration::from_millis(30)));
        assert_eq!(server.watcher.arrival(ClientId(1)), None);
    }
}
