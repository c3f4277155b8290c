//! A server that exports nothing: scheduled by the calls of libc that it makes.
//!
//! An X server of today waits in `epoll_wait` for clients with data, which it adds edge-triggered, and reads a client's
//! requests until a read says EAGAIN. So:
//!
//! | to | this host |
//! |---|---|
//! | know who is ready | keeps the clients whose data the server has not read to the end |
//! | choose | tells the server of this client alone, by an event with the data that the server gave |
//! | end a slice | answers EAGAIN to the next read of the client that runs |
//! | bound the work of one read | lets it return the bytes of about half a millisecond, by what the client's bytes took so far |
//! | hold back | does not tell the server of the client |
//! | see arrivals within a slice | looks into the server's epoll at a read, at most each 50 us |
//!
//! | file | what |
//! |---|---|
//! | `calls` | the calls that stand before libc's, and those behind them |
//! | `place` | the engine of this process; each call a panic boundary |
//! | `clients` | clients, as their sockets come and go |
//! | `control` | the control socket, for there is no extension |
//!
//! Requests, grabs and events are not seen: work is told in reads, and policies that count requests cannot be had.

pub mod calls;
pub mod clients;
pub mod control;
pub mod place;

use crate::host::dix::cpu;
use crate::host::dix::watcher::{self, now};
use crate::host::{Host, SeenRequests, Work};
use crate::mechanism::access::Identity;
use crate::mechanism::early_end::{EarlyEnd, Verdict};
use clients::Known;
use control::Connections;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use xqos_abi::Notify;
use xqos_core::{Choice, ClientId, Contest, Rank, Slice, Supply, Time};

/// A read may return the bytes of so much work.
const CHUNK_NS: u64 = 400_000;
/// The fewest bytes that a read is cut to: below that the server's main loop costs more than the work.
const MIN_CHUNK_BYTES: usize = 256;
/// Arrivals are looked for at most so often.
const LOOK_NS: u64 = 50_000;
const HANGUP: u32 = (libc::EPOLLHUP | libc::EPOLLRDHUP) as u32;
/// Events of ours in the server's epoll: a descriptor beneath this tag, which is no address of a process.
const OWN: u64 = 0x5851_0000_0000_0000;

/// Nothing is wrong with a server that nothing is known of.
#[derive(Debug)]
pub struct Error(&'static str);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Error {}

/// The slice that runs.
#[derive(Debug, Default)]
struct Running {
    chosen: Option<ClientId>,
    /// Who reads; somebody else than was chosen where the server had a rest of its requests.
    reader: Option<ClientId>,
    chunks: u32,
    bytes: u64,
    looked: Time,
    contest: Option<(Contest, Time)>,
    server_may_preempt: bool,
    ended_at: Option<Time>,
}

/// The server of this process.
#[derive(Debug)]
pub struct Libc {
    epoll: RawFd,
    clients: Vec<Option<Known>>,
    /// By the data that the server gave to its epoll.
    by_data: HashMap<u64, ClientId>,
    by_descriptor: Vec<Option<ClientId>>,
    running: Running,
    slice: u64,
    early: RefCell<EarlyEnd>,
    ask_at: Cell<Time>,
    end: Cell<bool>,
    timer: OwnedFd,
    pub control: Connections,
    named: bool,
}

impl Libc {
    pub fn new(epoll: RawFd) -> io::Result<Libc> {
        let timer = watcher::new_timer()?;
        calls::watch_own(epoll, timer.as_raw_fd());
        Ok(Libc {
            epoll,
            clients: Vec::new(),
            by_data: HashMap::new(),
            by_descriptor: Vec::new(),
            running: Running::default(),
            slice: 0,
            early: RefCell::default(),
            ask_at: Cell::new(Time::NEVER),
            end: Cell::new(false),
            timer,
            control: Connections::default(),
            named: false,
        })
    }

    pub fn epoll(&self) -> RawFd {
        self.epoll
    }

    /// Whether anybody could be served at once.
    pub fn has_ready(&self) -> bool {
        self.clients.iter().flatten().any(Known::is_ready)
    }

    /// Takes what the server's epoll told; what is not ours is left in place, and its number returned. True: a control
    /// connection has something.
    pub fn take_events(&mut self, events: &mut [libc::epoll_event]) -> (usize, bool) {
        let (mut kept, mut is_asked) = (0, false);
        for at in 0..events.len() {
            let event = events[at];
            let (data, bits) = (event.u64, event.events);
            if data == OWN | self.timer.as_raw_fd() as u64 {
                watcher::drain(self.timer.as_raw_fd());
            } else if data & 0xffff_0000_0000_0000 == OWN {
                is_asked = true;
            } else if let Some(known) = self.by_data.get(&data).copied().and_then(|id| self.known_mut(id)) {
                known.has(bits);
            } else {
                events[kept] = event;
                kept += 1;
            }
        }
        (kept, is_asked)
    }

    /// The events that have the server do what was decided.
    pub fn events_for_server(&mut self, choice: Option<Choice>, mut add: impl FnMut(libc::epoll_event) -> bool) {
        let chosen = match choice {
            Some(Choice::Client(id, _)) => Some(id),
            _ => None,
        };
        let leaves_all = choice == Some(Choice::Server);
        for (index, known) in self.clients.iter_mut().enumerate() {
            let Some(known) = known else { continue };
            let is_served = known.is_ready() && (leaves_all || chosen.is_some_and(|id| usize::from(id.0) == index));
            // A hangup closes a client at once: it is told when its data have been read.
            let later = if known.pending { HANGUP } else { 0 };
            let rest = known.saved & !later;
            let bits = rest | if is_served { libc::EPOLLIN as u32 } else { 0 };
            if bits != 0 && add(libc::epoll_event { events: bits, u64: known.data }) {
                known.saved &= !rest;
            }
        }
    }

    /// Before a client's read: the most bytes that it may return, or none: the slice is over.
    pub fn before_read(&mut self, id: ClientId, most: usize) -> Option<usize> {
        let now = now();
        self.measure(now);
        let is_first = self.running.reader != Some(id) || self.running.chunks == 0;
        self.running.reader = Some(id);
        if !is_first && (self.is_over(now) || self.running.chosen.is_some_and(|chosen| chosen != id)) {
            return None;
        }
        let known = self.known_mut(id)?;
        known.reading = Some(now);
        let cut = known.bytes_in(CHUNK_NS).max(MIN_CHUNK_BYTES);
        Some(if cut < most { cut & !3 } else { most })
    }

    /// After it: so many bytes were read; 0: the client has closed; below 0: there is nothing more.
    pub fn after_read(&mut self, id: ClientId, read: isize) {
        let Some(known) = self.known_mut(id) else { return };
        match usize::try_from(read) {
            Err(_) | Ok(0) => (known.pending, known.reading) = (false, None),
            Ok(bytes) => {
                known.last_bytes = bytes;
                known.begin_setup();
                self.running.chunks += 1;
                self.running.bytes += bytes as u64;
            }
        }
    }

    /// What the last read's bytes took.
    fn measure(&mut self, now: Time) {
        if let Some(known) = self.running.reader.and_then(|id| self.known_mut(id)) {
            known.measure(now);
        }
    }

    fn is_over(&mut self, now: Time) -> bool {
        let Some((_, until)) = self.running.contest else { return self.end.get() };
        if now >= self.ask_at.get() {
            self.ask_at.set(Time::NEVER);
            let until = if self.running.ended_at.is_some() { Time::NEVER } else { until };
            let verdict = self.early.borrow_mut().time_has_come(self.slice, until, now);
            self.carry_out(verdict, now);
        }
        if !self.end.get() && now.since(self.running.looked) >= LOOK_NS {
            self.running.looked = now;
            self.look(now);
        }
        self.end.get()
    }

    /// Who has come since the slice began.
    fn look(&mut self, now: Time) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let count = calls::epoll_wait_now(self.epoll, &mut events);
        let Some((contest, _)) = self.running.contest else { return };
        for event in &events[..count] {
            let (data, bits) = (event.u64, event.events);
            let Some(id) = self.by_data.get(&data).copied() else {
                if self.running.server_may_preempt {
                    let verdict = self.early.borrow_mut().server_has_work(self.slice, now);
                    self.carry_out(verdict, now);
                }
                continue;
            };
            let Some(known) = self.known_mut(id) else { continue };
            let was_idle = !known.pending;
            known.has(bits);
            let Some(rank) = known.watched.filter(|_| was_idle && known.is_ready()) else { continue };
            (known.watched, known.arrived) = (None, Some(now));
            let verdict = self.early.borrow_mut().arrived(self.slice, &contest, rank, now);
            self.carry_out(verdict, now);
        }
    }

    fn carry_out(&mut self, verdict: Verdict, now: Time) {
        match verdict {
            Verdict::Nothing => {}
            Verdict::AskAt(at) => self.ask_at.set(self.ask_at.get().min(at)),
            Verdict::End => {
                self.running.ended_at.get_or_insert(now);
                self.end.set(true);
            }
        }
    }

    pub fn known(&self, id: ClientId) -> Option<&Known> {
        self.clients.get(usize::from(id.0))?.as_ref()
    }

    pub fn known_mut(&mut self, id: ClientId) -> Option<&mut Known> {
        self.clients.get_mut(usize::from(id.0))?.as_mut()
    }
}

impl Host for Libc {
    type Error = Error;

    fn now(&self) -> Time {
        now()
    }

    fn cpu_ns(&self) -> u64 {
        watcher::thread_cpu_ns()
    }

    fn log(&self, line: &str) {
        eprintln!("xqos: {line}");
    }

    fn check(&mut self) -> Result<Option<String>, Error> {
        let program = || std::fs::read_link("/proc/self/exe").unwrap_or_default().display().to_string();
        Ok((!std::mem::replace(&mut self.named, true)).then(|| format!("{}, from below, by libc", program())))
    }

    fn user(&self) -> u32 {
        // SAFETY: no arguments, cannot fail.
        unsafe { libc::geteuid() }
    }

    fn screens(&self) -> usize {
        0
    }

    fn redirector(&self, _screen: usize) -> Option<u32> {
        None
    }

    fn supply(&self) -> Supply {
        cpu::supply()
    }

    fn memory_bytes(&self) -> usize {
        self.clients.capacity() * size_of::<Option<Known>>()
    }

    fn is_open(&self, client: ClientId) -> bool {
        self.known(client).is_some()
    }

    fn forget(&mut self, client: ClientId) {
        let Some(known) = self.clients.get_mut(usize::from(client.0)).and_then(Option::take) else { return };
        self.by_data.remove(&known.data);
        if let Some(place) = self.by_descriptor.get_mut(known.descriptor as usize) {
            *place = None;
        }
    }

    fn hold(&mut self, client: ClientId) {
        if let Some(known) = self.known_mut(client) {
            known.held = true;
        }
    }

    fn resume(&mut self, client: ClientId) {
        if let Some(known) = self.known_mut(client) {
            known.held = false;
        }
    }

    fn identity_of_control(&self, asker: ClientId) -> Option<Identity> {
        self.control.identity(asker)
    }

    fn notify(&self, listener: ClientId, event: &Notify) {
        self.control.send_event(listener, event);
    }

    fn hand_over(&mut self, client: ClientId, fd: OwnedFd) -> io::Result<()> {
        self.control.hand_over(client, fd)
    }

    fn sees_each_request(&self) -> bool {
        false
    }

    /// It sees one ready client at a time, and would let that one run on.
    fn ends_slices_itself(&self) -> bool {
        false
    }

    fn ready(&mut self, ready: &mut Vec<ClientId>) -> Result<(), Error> {
        let is_ready = |known: &Option<Known>| known.as_ref().is_some_and(Known::is_ready);
        let places = self.clients.iter().enumerate().filter(|(_, known)| is_ready(known));
        ready.extend(places.map(|(index, _)| ClientId(index as u16)));
        Ok(())
    }

    fn begin(&mut self, slice: &Slice, _ready: &[ClientId], now: Time) {
        let chosen = match slice.choice {
            Choice::Client(id, _) => Some(id),
            Choice::Server => None,
        };
        self.end.set(false);
        self.running = Running { chosen, looked: now, ..Running::default() };
    }

    fn finish(&mut self) -> Option<Work> {
        self.measure(now());
        let running = std::mem::take(&mut self.running);
        let client = running.reader.or(running.chosen)?;
        let still_ready = self.known(client).is_some_and(Known::is_ready);
        Some(Work { client, requests: running.chunks, bytes: running.bytes, last_request: 0, still_ready })
    }

    fn who_runs(&self) -> Option<ClientId> {
        self.running.reader
    }

    fn end_slice(&self) {
        self.end.set(true);
    }

    fn see_requests(&mut self, _seen: SeenRequests) {}

    fn watch(&mut self, contest: &Contest, until: Time) {
        self.slice += 1;
        self.running.contest = Some((*contest, until));
        self.ask_at.set(until);
    }

    fn unwatch(&mut self) -> Option<u64> {
        self.running.contest.take()?;
        self.running.ended_at.take().map(|at| now().since(at))
    }

    fn watch_client(&mut self, client: ClientId, rank: Rank, _loan_ns: u64) {
        if let Some(known) = self.known_mut(client) {
            (known.watched, known.arrived) = (Some(rank), None);
        }
    }

    fn arrival(&self, client: ClientId) -> Option<Time> {
        self.known(client)?.arrived
    }

    fn server_fds_may_preempt(&mut self, _now: Time) {
        self.running.server_may_preempt = true;
    }

    fn wake_at(&mut self, at: Time) {
        watcher::set_timer(&self.timer, at);
    }

    fn wait_for(&self, _clients: impl Iterator<Item = ClientId>, _until: Time) {}

    fn begin_loan(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn end_loan(&mut self, _limit_before: u32) {}

    fn raise(&self, _until: Time) {}

    fn lower(&self) {}

    fn raises(&self) -> u32 {
        0
    }

    fn step_back(&mut self) {
        for known in self.clients.iter_mut().flatten() {
            known.held = false;
        }
    }
}
