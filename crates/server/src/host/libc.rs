// SPDX-License-Identifier: MIT
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
//! | bound the work of one read | lets it return whole requests of less than half a millisecond, by what the client's bytes took so far |
//! | hold back | does not tell the server of the client |
//! | see arrivals within a slice | looks into the server's epoll at a read, at most each 50 us |
//!
//! | file | what |
//! |---|---|
//! | `calls` | the calls that stand before libc's |
//! | `slots` | turns the program's calls to them, where we are no preload |
//! | `place` | the engine of this process; each call a panic boundary |
//! | `alarm` | the server's own timer |
//! | `clients` | clients, as their sockets come and go |
//! | `reading` | what a read may return, and when the slice is over |
//! | `framing` | where requests begin and end in what is read |
//! | `output` | events in what is written |
//! | `lender` | a real-time priority that somebody lends |
//!
//! The server's own timer, which ends its slices, is kept from it while we choose. Single requests are not timed, and a policy
//! that counts them cannot be had; of a flood of small ones the number is an estimate unless there is a trace.

mod alarm;
pub mod calls;
pub mod clients;
mod framing;
mod lender;
mod output;
pub mod place;
mod reading;
pub mod slots;
#[cfg(test)]
mod tests;

use crate::host::behind::{self, OWN, is_own};
use crate::host::control::Connections;
use crate::host::cpu;
use crate::host::identity::Identity;
use crate::host::kernel::{self, now};
use crate::host::{Host, SeenRequests, Work};
use crate::mechanism::early_end::EarlyEnd;
use alarm::Alarm;
use clients::Known;
use lender::Lender;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use xqos_abi::Notify;
use xqos_core::{Choice, ClientId, Contest, Rank, Slice, Time};

/// Bytes that are looked at to find where the first request ends.
const MIN_PEEK_BYTES: usize = 256;
/// How long a client that hung up is still served what it sent before; a stock server drops that at once.
const HANGUP_NS: u64 = 100_000_000;
const HANGUP: u32 = (libc::EPOLLHUP | libc::EPOLLRDHUP) as u32;
/// Why a server cannot be served; never, since nothing of it has to be known.
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
    /// The client that is read from; not the chosen one where the server still had requests of another.
    reader: Option<ClientId>,
    chunks: u32,
    requests: u32,
    bytes: u64,
    last_request: u32,
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
    /// Clients with data, in the order in which these came; and some that had data before.
    queue: Vec<ClientId>,
    /// Clients that the server does not listen to.
    muted: usize,
    /// What a read may return is the work of this time, or one request.
    chunk_ns: u64,
    /// Size of the server's buffer for what a client sends; 0: nobody has connected yet.
    buffer_bytes: usize,
    is_traced: bool,
    running: Running,
    slice: u64,
    early: RefCell<EarlyEnd>,
    ask_at: Cell<Time>,
    end: Cell<bool>,
    timer: OwnedFd,
    /// Sockets of clients that the server does not listen to, until they have something.
    waiting: OwnedFd,
    pub alarm: Alarm,
    pub control: Connections,
    lender: Option<Lender>,
    /// How often earlier lenders raised the thread.
    raised_before: u32,
    named: bool,
}

impl Libc {
    pub fn new(epoll: RawFd, chunk_ns: u64) -> io::Result<Libc> {
        let timer = kernel::new_timer()?;
        let waiting = kernel::new_epoll()?;
        behind::watch_own(epoll, timer.as_raw_fd());
        behind::watch_own(epoll, waiting.as_raw_fd());
        Ok(Libc {
            epoll,
            clients: Vec::new(),
            by_data: HashMap::new(),
            by_descriptor: Vec::new(),
            queue: Vec::new(),
            muted: 0,
            chunk_ns,
            buffer_bytes: 0,
            is_traced: false,
            running: Running::default(),
            slice: 0,
            early: RefCell::default(),
            ask_at: Cell::new(Time::NEVER),
            end: Cell::new(false),
            timer,
            waiting,
            alarm: Alarm::new(),
            control: Connections::default(),
            lender: None,
            raised_before: 0,
            named: false,
        })
    }

    pub fn epoll(&self) -> RawFd {
        self.epoll
    }

    /// How long the server may sleep, at most as long as it wants to, milliseconds; below 0: for ever.
    pub fn timeout(&self, wanted: c_int) -> c_int {
        let mut limit = c_int::MAX;
        for known in self.queue.iter().filter_map(|&id| self.known(id)) {
            if known.is_ready() {
                return 0;
            }
            if known.saved & HANGUP != 0 {
                limit = (HANGUP_NS / 1_000_000) as c_int;
            }
        }
        match (wanted < 0, limit) {
            (true, c_int::MAX) => wanted,
            (true, limit) => limit,
            (false, limit) => limit.min(wanted),
        }
    }

    /// Takes what the server's epoll told; what is not ours is left in place, and its number returned. True: a control
    /// connection has something.
    pub fn take_events(&mut self, events: &mut [libc::epoll_event]) -> (usize, bool) {
        let (mut kept, mut is_asked) = (0, false);
        for at in 0..events.len() {
            let event = events[at];
            let (data, bits) = (event.u64, event.events);
            if data == OWN | self.timer.as_raw_fd() as u64 {
                kernel::drain(self.timer.as_raw_fd());
            } else if data == OWN | self.waiting.as_raw_fd() as u64 {
                self.see_waiting();
            } else if is_own(data) {
                is_asked = true;
            } else if let Some(id) = self.by_data.get(&data).copied() {
                self.has(id, bits);
            } else {
                events[kept] = event;
                kept += 1;
            }
        }
        (kept, is_asked)
    }

    /// Notes when clients came that the server does not listen to.
    fn see_waiting(&mut self) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
        // Those that find no room are told of again.
        let count = behind::epoll_wait_now(self.waiting.as_raw_fd(), &mut events);
        for event in &events[..count] {
            if let Some(known) = self.known_mut(ClientId(event.u64 as u16)) {
                known.arrived = Some(now());
            }
        }
    }

    /// The events that have the server do what was decided.
    pub fn events_for_server(&mut self, choice: Option<Choice>, mut add: impl FnMut(libc::epoll_event) -> bool) {
        let chosen = match choice {
            Some(Choice::Client(id, _)) => Some(id),
            _ => None,
        };
        let now = now();
        let leaves_all = choice == Some(Choice::Server);
        if choice.is_some() {
            self.alarm.keep(!leaves_all);
        }
        let Libc { queue, clients, .. } = self;
        for &id in queue.iter() {
            let Some(known) = clients.get_mut(usize::from(id.0)).and_then(Option::as_mut) else { continue };
            let is_served = known.is_ready() && (leaves_all || chosen == Some(id));
            // A hangup closes a client at once: it is told when its data have been read, or when that takes too long.
            let later = if known.pending && known.hung_up_at.after(HANGUP_NS) > now { HANGUP } else { 0 };
            let rest = known.saved & !later;
            let bits = rest | if is_served { libc::EPOLLIN as u32 } else { 0 };
            if bits != 0 && add(libc::epoll_event { events: bits, u64: known.data }) {
                known.saved &= !rest;
            }
        }
    }

    /// The epoll reported these events of a client.
    fn has(&mut self, id: ClientId, bits: u32) {
        let Some(known) = self.known_mut(id) else { return };
        known.has(bits);
        if bits & HANGUP != 0 {
            known.hung_up_at = now();
        }
        if !std::mem::replace(&mut known.is_queued, true) {
            self.queue.push(id);
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

    fn log(&self, line: &str) {
        eprintln!("xqos: {line}");
    }

    fn check(&mut self) -> Result<Option<String>, Error> {
        let program = || std::fs::read_link("/proc/self/exe").unwrap_or_default().display().to_string();
        Ok((!std::mem::replace(&mut self.named, true)).then(|| format!("{}, from below, by libc", program())))
    }

    fn screens(&self) -> usize {
        0
    }

    fn redirector(&self, _screen: usize) -> Option<u32> {
        None
    }

    fn memory_bytes(&self) -> usize {
        self.clients.capacity() * size_of::<Option<Known>>()
    }

    fn is_open(&self, client: ClientId) -> bool {
        self.known(client).is_some()
    }

    fn address(&self, client: ClientId) -> Option<String> {
        kernel::peer_address(self.known(client)?.descriptor)
    }

    fn forget(&mut self, client: ClientId) {
        let Some(known) = self.clients.get_mut(usize::from(client.0)).and_then(Option::take) else { return };
        self.by_data.remove(&known.data);
        self.muted -= usize::from(known.muted);
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
        let clients = &mut self.clients;
        self.queue.retain(|id| {
            let Some(known) = clients.get_mut(usize::from(id.0)).and_then(Option::as_mut) else { return false };
            known.is_queued = known.pending || known.saved != 0;
            if known.is_ready() {
                ready.push(*id);
            }
            known.is_queued
        });
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
        let Running { requests, bytes, last_request, .. } = running;
        Some(Work { client, requests, bytes, last_request, still_ready })
    }

    fn who_runs(&self) -> Option<ClientId> {
        self.running.reader
    }

    fn end_slice(&self) {
        self.end.set(true);
    }

    fn see_requests(&mut self, _seen: SeenRequests) {}

    fn see_all_slices(&mut self, is_traced: bool) {
        self.is_traced = is_traced;
    }

    fn watch(&mut self, contest: &Contest, until: Time) {
        self.slice += 1;
        self.running.contest = Some((*contest, until));
        self.ask_at.set(until);
    }

    fn unwatch(&mut self) -> Option<u64> {
        self.running.contest.take()?;
        self.running.ended_at.take().map(|at| now().since(at))
    }

    fn watch_client(&mut self, client: ClientId, rank: Rank, loan_ns: u64) {
        let Some(known) = self.known_mut(client) else { return };
        (known.watched, known.arrived) = (Some(rank), None);
        let (descriptor, muted) = (known.descriptor, known.muted);
        if muted {
            behind::watch_once(self.waiting.as_raw_fd(), descriptor, client.0.into());
        }
        if let Some(lender) = self.lender.as_ref().filter(|_| loan_ns > 0) {
            lender.watch(descriptor, loan_ns);
        }
    }

    fn arrival(&self, client: ClientId) -> Option<Time> {
        self.known(client)?.arrived
    }

    fn server_fds_may_preempt(&mut self, _now: Time) {
        self.running.server_may_preempt = true;
    }

    fn wake_at(&mut self, at: Time) {
        kernel::set_timer(&self.timer, at);
    }

    fn wait_for(&self, clients: impl Iterator<Item = ClientId>, until: Time) {
        kernel::wait_for(clients.filter_map(|id| self.known(id)).map(|known| known.descriptor), until);
    }

    fn begin_loan(&mut self) -> io::Result<()> {
        self.lender = Some(Lender::begin()?);
        Ok(())
    }

    fn end_loan(&mut self, limit_before: u32) {
        self.raised_before = self.raises();
        self.lender = None;
        cpu::limit_real_time(limit_before);
    }

    fn raise(&self, until: Time) {
        if let Some(lender) = &self.lender {
            lender.loan().raise(until);
        }
    }

    fn lower(&self) {
        if let Some(lender) = &self.lender {
            lender.loan().lower();
        }
    }

    fn raises(&self) -> u32 {
        self.raised_before + self.lender.as_ref().map_or(0, |lender| lender.loan().raises())
    }

    fn step_back(&mut self) {
        self.alarm.keep(false);
        self.lender = None;
        for known in self.clients.iter_mut().flatten() {
            known.held = false;
        }
    }
}
