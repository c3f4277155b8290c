// SPDX-License-Identifier: MIT
//! A mock server in virtual time. Only requests take time; the test states how long each one takes.
//!
//! [`Server::run_until`] runs a server's main loop: it polls, lets the mechanism decide, executes requests until the
//! slice is over, and polls again. If the server chooses, it serves ready clients in turn and ends a slice after 5 ms
//! while two or more clients are ready.

mod server;

pub use server::Server;

use crate::mechanism::access::Identity;
use crate::mechanism::action::Action;
use crate::mechanism::early_end::{EarlyEnd, EarlyEndAction};
use crate::mechanism::engine::{Engine, HookResult};
use crate::mechanism::fault::Fault;
use crate::mechanism::host::{Established, Host, NewConnection, ObservedRequests, Work};
use crate::mechanism::requests::{self, Format, Refused};
use crate::mechanism::settings::Settings;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use xqos_abi::{ByteOrder, Notify, Request};
use xqos_core::{Choice, ClientId, Contest, Rank, Supply, Time};

/// The number of resource ids per client.
pub const IDS: u32 = 0x20_0000;
const SLICE_NS: u64 = 5_000_000;
const LONGEST_SLICE_NS: u64 = 15_000_000;
pub const MS: u64 = 1_000_000;

/// The effect of executing a request.
#[derive(Clone, Debug)]
pub enum Effect {
    Nothing,
    Grab,
    Ungrab,
    /// Sends an Expose to this client.
    Expose(ClientId),
    /// Marks itself as exposing.
    Mark,
    /// Sends another kind of event to this client.
    Event(ClientId),
    /// Sets a client's SYNC priority.
    Prioritize(ClientId, i32),
    /// During the request, the kernel runs something else for this many nanoseconds.
    Stalls(u64),
    /// The request is executed in parts; the longest takes this many nanoseconds.
    Parts(u64),
}

#[derive(Clone, Debug)]
pub struct Job {
    pub ns: u64,
    pub effect: Effect,
}

/// A client as the mock server knows it.
#[derive(Debug)]
struct Peer {
    jobs: VecDeque<Job>,
    held: bool,
    /// The rank of this client, if the mechanism watches the client.
    watched: Option<Rank>,
    arrived: Option<Time>,
}

/// The error of a server that a test has made unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsound;

impl std::fmt::Display for Unsound {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a test made the server unsound")
    }
}

impl std::error::Error for Unsound {}

/// The host side of the mock server.
#[derive(Debug, Default)]
pub struct Mock {
    now: Cell<Time>,
    peers: Vec<Option<Peer>>,
    /// Ready clients in order of arrival.
    queue: Vec<ClientId>,
    grab: Option<ClientId>,
    chosen: Option<Choice>,
    ran: Option<Work>,
    /// True if the slice must end before the next request.
    end: Cell<bool>,
    slice: u64,
    watching: Option<(Contest, Time)>,
    early: RefCell<EarlyEnd>,
    ask_at: Cell<Option<Time>>,
    ended_at: Cell<Option<Time>>,
    wake_at: Option<Time>,
    named: bool,
    pub unsound: bool,
    pub redirector: Option<u32>,
    pub supply: Supply,
    /// The number of other threads that take turns with the server on the processor.
    pub processor_shared_with: u64,
    /// The percentage of its idle time in which the server is ready to run without a processor.
    pub delayed_percent: u64,
    rested_ns: u64,
    /// The time until which the server's thread is raised.
    pub raised: Option<Time>,
    pub lent: bool,
    pub refuses_loans: bool,
    /// The limit on real-time priorities that was restored after a loan.
    pub limit_restored: Option<u32>,
    pub raises: u32,
    pub seen: ObservedRequests,
    /// Each call to ask for short kernel slices (true) or to give them up (false).
    pub short_slices: Vec<bool>,
    /// Time that other threads took from the server's processor.
    pub stolen_ns: Cell<u64>,
    pub lines: Vec<String>,
    pub events: Vec<(ClientId, Notify)>,
    pub handed: Vec<OwnedFd>,
    pub step_back: bool,
    /// All actions that were carried out.
    pub acted: Vec<Action>,
    /// The peer on the control socket.
    pub control: Option<Identity>,
}

impl Mock {
    fn peer(&self, id: ClientId) -> Option<&Peer> {
        self.peers.get(usize::from(id.0))?.as_ref()
    }

    fn peer_mut(&mut self, id: ClientId) -> Option<&mut Peer> {
        self.peers.get_mut(usize::from(id.0))?.as_mut()
    }

    pub fn is_held(&self, id: ClientId) -> bool {
        self.peer(id).is_some_and(|peer| peer.held)
    }

    /// Returns true if a server without xqos could serve this client.
    fn can_be_served(&self, id: ClientId) -> bool {
        let is_free = self.grab.is_none_or(|holder| holder == id);
        is_free && self.peer(id).is_some_and(|peer| !peer.held && !peer.jobs.is_empty())
    }

    fn judge(&self, verdict: EarlyEndAction) {
        let now = self.now.get();
        match verdict {
            EarlyEndAction::Nothing => {}
            EarlyEndAction::AskAt(at) => self.ask_at.set(Some(self.ask_at.get().map_or(at, |before| before.min(at)))),
            EarlyEndAction::End => {
                self.ended_at.set(Some(self.ended_at.get().unwrap_or(now)));
                self.end.set(true);
                let repeat = self.early.borrow_mut().ended(self.slice, now);
                self.judge(repeat);
            }
        }
    }

    /// The timer that the mechanism has set within the slice expires.
    fn time_has_come(&self) {
        let Some((_, until)) = self.watching else { return };
        let until = if self.ended_at.get().is_some() { Time::NEVER } else { until };
        self.ask_at.set(None);
        let verdict = self.early.borrow_mut().time_has_come(self.slice, until, self.now.get());
        self.judge(verdict);
    }

    fn data_arrived(&mut self, id: ClientId, job: Job) {
        let now = self.now.get();
        let contest = self.watching.map(|(contest, _)| contest);
        let slice = self.slice;
        let Some(peer) = self.peer_mut(id) else { return };
        let was_idle = peer.jobs.is_empty();
        peer.jobs.push_back(job);
        let rank = peer.watched.take().filter(|_| was_idle);
        // Like the real hosts, keep the last arrival until the client is watched again.
        peer.arrived = rank.map(|_| now).or(peer.arrived);
        if was_idle {
            self.queue.push(id);
        }
        if let (Some(rank), Some(contest)) = (rank, contest) {
            let verdict = self.early.borrow_mut().arrived(slice, &contest, rank, now);
            self.judge(verdict);
        }
    }
}

impl Host for Mock {
    type Error = Unsound;

    fn user(&self) -> u32 {
        900
    }

    fn cpu_ns(&self) -> u64 {
        (self.now.get().0 - self.stolen_ns.get()) / (1 + self.processor_shared_with)
    }

    fn run_times_ns(&self) -> Option<(u64, u64)> {
        let away_ns = self.rested_ns + self.stolen_ns.get();
        Some((self.now.get().0 - away_ns, self.rested_ns * self.delayed_percent / 100 + self.stolen_ns.get()))
    }

    fn supply(&self) -> Supply {
        self.supply
    }

    fn begin_loan(&mut self) -> io::Result<()> {
        if self.refuses_loans {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.lent = true;
        Ok(())
    }

    fn raises(&self) -> u32 {
        self.raises
    }

    fn screens(&self) -> usize {
        1
    }

    fn redirector(&self, _screen: usize) -> Option<u32> {
        self.redirector
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn is_open(&self, client: ClientId) -> bool {
        self.peer(client).is_some()
    }

    fn identity_of_control(&self, asker: ClientId) -> Option<Identity> {
        self.control.filter(|_| usize::from(asker.0) >= ClientId::LIMIT)
    }

    fn hand_over(&mut self, _client: ClientId, fd: OwnedFd) -> io::Result<()> {
        self.handed.push(fd);
        Ok(())
    }

    fn sees_each_request(&self) -> bool {
        true
    }

    fn ends_slices_itself(&self) -> bool {
        true
    }

    fn ready(&mut self, ready: &mut Vec<ClientId>) -> Result<(), Unsound> {
        ready.extend(self.queue.iter().copied().filter(|&id| self.can_be_served(id)));
        Ok(())
    }

    fn arrival(&self, client: ClientId) -> Option<Time> {
        self.peer(client)?.arrived
    }

    fn running_client(&self) -> Option<ClientId> {
        self.ran.map(|work| work.client)
    }

    fn unwatch(&mut self) -> Option<u64> {
        self.watching.take()?;
        self.ask_at.set(None);
        self.ended_at.take().map(|at| self.now.get().since(at))
    }

    fn finish(&mut self) -> Option<Work> {
        self.chosen = None;
        self.ran.take()
    }
}

impl Mock {
    /// The server's name once.
    fn check(&mut self) -> Result<Option<String>, Unsound> {
        if self.unsound {
            return Err(Unsound);
        }
        Ok((!std::mem::replace(&mut self.named, true)).then(|| "a mock".to_owned()))
    }

    fn forget(&mut self, client: ClientId) {
        self.queue.retain(|&other| other != client);
        self.peers[usize::from(client.0)] = None;
    }

    pub fn carry_out(&mut self, action: Action) {
        self.acted.push(action.clone());
        match action {
            Action::Serve { slice, .. } => self.chosen = Some(slice.choice),
            Action::EndSlice => self.end.set(true),
            Action::Watch { contest, until } => {
                self.slice += 1;
                self.watching = Some((contest, until));
                self.ended_at.set(None);
                self.ask_at.set(Some(until).filter(|&until| until != Time::NEVER));
            }
            Action::WatchServer { .. } | Action::Await(_) | Action::WaitUntil(_) | Action::Cut { .. } => {}
            Action::WatchClient { client, rank, .. } => self.watch_client(client, rank),
            Action::Hold(client) => {
                let peer = self.peer_mut(client).expect("an open client");
                assert!(!std::mem::replace(&mut peer.held, true), "held twice");
            }
            Action::Resume(client) => {
                let peer = self.peer_mut(client).expect("an open client");
                assert!(std::mem::replace(&mut peer.held, false), "resumed without being held");
            }
            Action::Notify { listener, event } => self.events.push((listener, event)),
            Action::WakeAt(at) => self.wake_at = Some(at).filter(|&at| at != Time::NEVER),
            Action::ShortSlices(is_wanted) => self.short_slices.push(is_wanted),
            Action::Raise(until) => {
                self.raised = Some(until);
                self.raises += 1;
            }
            Action::Lower => self.raised = None,
            Action::EndLoan { limit_before } => {
                (self.lent, self.raised, self.limit_restored) = (false, None, Some(limit_before));
            }
            Action::Observe(seen) => self.seen = seen,
            Action::Log(line) => self.lines.push(line),
        }
    }

    fn watch_client(&mut self, client: ClientId, rank: Rank) {
        let now = self.now.get();
        let peer = self.peer_mut(client).expect("an open client");
        peer.watched = Some(rank);
        // Like an epoll, report data that have already arrived.
        peer.arrived = (!peer.jobs.is_empty()).then_some(now);
    }
}

/// The first resource id of a client.
pub fn base(id: ClientId) -> u32 {
    u32::from(id.0) * IDS
}

/// The time this many microseconds after the start.
pub fn at_us(us: u64) -> Time {
    Time(us * 1000)
}
