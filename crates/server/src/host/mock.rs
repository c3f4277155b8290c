//! A server in virtual time, for tests of the mechanism: clients send requests that take so long, and nothing else passes.
//!
//! [`Server::run_until`] does what a server does: it polls, lets the mechanism decide, executes requests until the slice is
//! over, and polls again. By itself it ends a slice after 5 ms where two clients are ready, and serves them in turn.

use crate::host::{Connection, Host, SeenRequests, Work};
use crate::mechanism::access::Identity;
use crate::mechanism::early_end::{EarlyEnd, Verdict};
use crate::mechanism::engine::{Engine, Outcome};
use crate::mechanism::fault::Fault;
use crate::mechanism::requests::{self, Form, Refused};
use crate::mechanism::settings::Settings;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use xqos_abi::{Notify, Order, Request};
use xqos_core::{Choice, ClientId, Contest, Rank, Slice, Supply, Time};

/// Resource ids of a client.
pub const IDS: u32 = 0x20_0000;
const SLICE_NS: u64 = 5_000_000;
const LONGEST_SLICE_NS: u64 = 15_000_000;
pub const MS: u64 = 1_000_000;

/// What executing a request does.
#[derive(Clone, Debug)]
pub enum Does {
    Nothing,
    Grab,
    Ungrab,
    /// An Expose for that client.
    Expose(ClientId),
    /// An event of some other kind for that client.
    Event(ClientId),
    /// Sets a client's SYNC priority.
    Prioritize(ClientId, i32),
}

#[derive(Clone, Debug)]
pub struct Job {
    pub ns: u64,
    pub does: Does,
}

/// A client as the server knows it.
#[derive(Debug)]
struct Peer {
    jobs: VecDeque<Job>,
    held: bool,
    /// The mechanism has it watched, with this rank.
    watched: Option<Rank>,
    arrived: Option<Time>,
}

/// Why this server cannot be served any more: a test said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsound;

impl std::fmt::Display for Unsound {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a test made the server unsound")
    }
}

impl std::error::Error for Unsound {}

/// The server's side of the seam.
#[derive(Debug, Default)]
pub struct Mock {
    now: Cell<Time>,
    peers: Vec<Option<Peer>>,
    /// Ready clients, in the order in which they came.
    queue: Vec<ClientId>,
    grab: Option<ClientId>,
    chosen: Option<Choice>,
    ran: Option<Work>,
    /// The slice is to end at the next request.
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
    /// Until when the server's thread is raised; who lent it, if anybody.
    pub raised: Cell<Option<Time>>,
    pub lent: bool,
    pub refuses_loans: bool,
    pub raises: Cell<u32>,
    pub seen: SeenRequests,
    pub lines: RefCell<Vec<String>>,
    pub events: RefCell<Vec<(ClientId, Notify)>>,
    pub handed: Vec<OwnedFd>,
    pub step_back: bool,
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

    /// Whom a server without us could serve.
    fn can_be_served(&self, id: ClientId) -> bool {
        let is_free = self.grab.is_none_or(|holder| holder == id);
        is_free && self.peer(id).is_some_and(|peer| !peer.held && !peer.jobs.is_empty())
    }

    fn judge(&self, verdict: Verdict) {
        let now = self.now.get();
        match verdict {
            Verdict::Nothing => {}
            Verdict::AskAt(at) => self.ask_at.set(Some(self.ask_at.get().map_or(at, |before| before.min(at)))),
            Verdict::End => {
                self.ended_at.set(Some(self.ended_at.get().unwrap_or(now)));
                self.end.set(true);
                let repeat = self.early.borrow_mut().ended(self.slice, now);
                self.judge(repeat);
            }
        }
    }

    /// The time that the mechanism asked for within the slice.
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
        peer.arrived = rank.map(|_| now);
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

    fn now(&self) -> Time {
        self.now.get()
    }

    fn cpu_ns(&self) -> u64 {
        self.now.get().0
    }

    fn log(&self, line: &str) {
        self.lines.borrow_mut().push(line.to_owned());
    }

    fn check(&mut self) -> Result<Option<String>, Unsound> {
        if self.unsound {
            return Err(Unsound);
        }
        Ok((!std::mem::replace(&mut self.named, true)).then(|| "a mock".to_owned()))
    }

    fn user(&self) -> u32 {
        900
    }

    fn screens(&self) -> usize {
        1
    }

    fn redirector(&self, _screen: usize) -> Option<u32> {
        self.redirector
    }

    fn supply(&self) -> Supply {
        self.supply
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn is_open(&self, client: ClientId) -> bool {
        self.peer(client).is_some()
    }

    fn forget(&mut self, client: ClientId) {
        self.queue.retain(|&other| other != client);
        self.peers[usize::from(client.0)] = None;
    }

    fn hold(&mut self, client: ClientId) {
        let peer = self.peer_mut(client).expect("an open client");
        assert!(!std::mem::replace(&mut peer.held, true), "held twice");
    }

    fn resume(&mut self, client: ClientId) {
        let peer = self.peer_mut(client).expect("an open client");
        assert!(std::mem::replace(&mut peer.held, false), "resumed, and was not held");
    }

    fn notify(&self, listener: ClientId, event: &Notify) {
        self.events.borrow_mut().push((listener, *event));
    }

    fn hand_over(&mut self, _client: ClientId, fd: OwnedFd) -> io::Result<()> {
        self.handed.push(fd);
        Ok(())
    }

    fn ready(&mut self, ready: &mut Vec<ClientId>) -> Result<(), Unsound> {
        ready.extend(self.queue.iter().copied().filter(|&id| self.can_be_served(id)));
        Ok(())
    }

    fn begin(&mut self, slice: &Slice, _ready: &[ClientId], _now: Time) {
        self.chosen = Some(slice.choice);
    }

    fn finish(&mut self) -> Option<Work> {
        self.chosen = None;
        self.ran.take()
    }

    fn who_runs(&self) -> Option<ClientId> {
        self.ran.map(|work| work.client)
    }

    fn end_slice(&self) {
        self.end.set(true);
    }

    fn see_requests(&mut self, seen: SeenRequests) {
        self.seen = seen;
    }

    fn watch(&mut self, contest: &Contest, until: Time) {
        self.slice += 1;
        self.watching = Some((*contest, until));
        self.ended_at.set(None);
        self.ask_at.set(Some(until).filter(|&until| until != Time::NEVER));
    }

    fn unwatch(&mut self) -> Option<u64> {
        self.watching.take()?;
        self.ask_at.set(None);
        self.ended_at.take().map(|at| self.now.get().since(at))
    }

    fn watch_client(&mut self, client: ClientId, rank: Rank, _loan_ns: u64) {
        let peer = self.peer_mut(client).expect("an open client");
        peer.watched = Some(rank);
        peer.arrived = None;
    }

    fn arrival(&self, client: ClientId) -> Option<Time> {
        self.peer(client)?.arrived
    }

    fn server_fds_may_preempt(&mut self, _now: Time) {}

    fn wake_at(&mut self, at: Time) {
        self.wake_at = Some(at).filter(|&at| at != Time::NEVER);
    }

    fn wait_for(&self, _clients: impl Iterator<Item = ClientId>, _until: Time) {}

    fn begin_loan(&mut self) -> io::Result<()> {
        if self.refuses_loans {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.lent = true;
        Ok(())
    }

    fn end_loan(&mut self, _limit_before: u32) {
        self.lent = false;
        self.lower();
    }

    fn raise(&self, until: Time) {
        self.raised.set(Some(until));
        self.raises.set(self.raises.get() + 1);
    }

    fn lower(&self) {
        self.raised.set(None);
    }

    fn raises(&self) -> u32 {
        self.raises.get()
    }

    fn step_back(&mut self) {
        self.chosen = None;
        self.step_back = true;
    }
}

/// What was executed, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub client: ClientId,
    pub start: Time,
    pub end: Time,
}

/// The server around the mechanism.
#[derive(Debug)]
pub struct Server {
    /// None after xqos stepped aside.
    pub engine: Option<Engine<Mock>>,
    pub host_aside: Option<Mock>,
    pub fault: Option<Fault<Unsound>>,
    /// Jobs that come later, by time.
    coming: Vec<(Time, ClientId, Job)>,
    pub done: Vec<Done>,
    /// How often the server was woken with nothing to do.
    pub idle_wakeups: u32,
}

impl Server {
    pub fn new(settings: &Settings) -> Server {
        let engine = Some(Engine::new(Mock::default(), settings));
        let (done, coming) = (Vec::new(), Vec::new());
        Server { engine, host_aside: None, fault: None, coming, done, idle_wakeups: 0 }
    }

    pub fn engine(&mut self) -> &mut Engine<Mock> {
        self.engine.as_mut().expect("xqos is there")
    }

    pub fn host(&mut self) -> &mut Mock {
        match &mut self.engine {
            Some(engine) => &mut engine.host,
            None => self.host_aside.as_mut().expect("a server"),
        }
    }

    pub fn now(&mut self) -> Time {
        self.host().now.get()
    }

    /// A client of this user connects and is set up.
    pub fn connect(&mut self, uid: u32) -> ClientId {
        let host = self.host();
        let index = (1..).find(|&index| host.peers.get(index).is_none_or(Option::is_none)).unwrap();
        host.peers.resize_with(host.peers.len().max(index + 1), || None);
        host.peers[index] = Some(Peer { jobs: VecDeque::new(), held: false, watched: None, arrived: None });
        let id = ClientId(index as u16);
        let identity = Identity { pid: 1000 + index as i32, uid };
        if let Some(engine) = &mut self.engine {
            engine.connected(id, Connection { identity, base: base(id), ids: IDS, descriptor: index as u32 });
            engine.established(id, Some(format!("program{index}")));
        }
        id
    }

    pub fn disconnect(&mut self, id: ClientId) {
        match &mut self.engine {
            Some(engine) => engine.gone(id),
            None => self.host().forget(id),
        }
        self.coming.retain(|&(_, of, _)| of != id);
        if self.host().grab == Some(id) {
            self.host().grab = None;
            if let Some(engine) = &mut self.engine {
                engine.grabbed(id, false);
            }
        }
    }

    /// So many requests of this length come at once, now.
    pub fn send(&mut self, id: ClientId, count: usize, ns: u64) {
        (0..count).for_each(|_| self.host().data_arrived(id, Job { ns, does: Does::Nothing }));
    }

    pub fn send_at(&mut self, at: Time, id: ClientId, ns: u64, does: Does) {
        let place = self.coming.partition_point(|&(other, ..)| other <= at);
        self.coming.insert(place, (at, id, Job { ns, does }));
    }

    /// A request of XQOS, as if it were executed at this moment.
    pub fn ask(&mut self, id: ClientId, request: Request) -> Result<Option<Vec<u8>>, Refused> {
        let form = Form { sequence: 0, order: Order::Native };
        requests::answer(self.engine(), id, &request.encode(0), form)
    }

    /// Requests that are still to be executed.
    pub fn left(&mut self, id: ClientId) -> usize {
        self.host().peer(id).map_or(0, |peer| peer.jobs.len())
    }

    pub fn time_of(&self, id: ClientId, from: Time, to: Time) -> u64 {
        let part = |done: &Done| done.end.min(to).since(done.start.max(from));
        self.done.iter().filter(|done| done.client == id && done.end > from && done.start < to).map(part).sum()
    }

    /// Serves until that time, or until nothing is left to do before it.
    pub fn run_until(&mut self, to: Time) {
        while self.now() < to {
            self.call(Engine::block);
            if !self.poll(to) {
                return;
            }
            self.call(Engine::wakeup);
            self.serve();
        }
        self.call(Engine::block);
    }

    fn call(&mut self, work: impl FnOnce(&mut Engine<Mock>) -> Outcome<Mock>) {
        let Some(engine) = &mut self.engine else { return };
        let result =
            crate::mechanism::fault::guarded(|| work(engine)).unwrap_or_else(|panic| Err(Fault::Panicked(panic)));
        if let Err(fault) = result {
            let mut engine = self.engine.take().unwrap();
            engine.step_back();
            self.fault = Some(fault);
            self.host_aside = Some(engine.into_host());
        }
    }

    /// Waits for something to do; false where nothing comes before that time.
    fn poll(&mut self, to: Time) -> bool {
        self.let_arrive();
        loop {
            let host = self.host();
            if host.queue.clone().into_iter().any(|id| host.can_be_served(id)) {
                return true;
            }
            let (next, wake) = (self.coming.first().map(|&(at, ..)| at), self.host().wake_at);
            let at = next.into_iter().chain(wake).min().filter(|&at| at <= to);
            let Some(at) = at else {
                self.host().now.set(to);
                return false;
            };
            let now = self.now();
            self.host().now.set(at.max(now));
            self.let_arrive();
            if wake.is_some_and(|wake| wake <= at) {
                self.host().wake_at = None;
                self.idle_wakeups += 1;
                return true;
            }
        }
    }

    /// What has come by now.
    fn let_arrive(&mut self) {
        let now = self.now();
        while self.coming.first().is_some_and(|&(at, ..)| at <= now) {
            let (_, id, job) = self.coming.remove(0);
            self.host().data_arrived(id, job);
        }
    }

    /// Executes requests until the slice is over.
    fn serve(&mut self) {
        let host = self.host();
        let ready: Vec<ClientId> = host.queue.iter().copied().filter(|&id| host.can_be_served(id)).collect();
        host.end.set(false);
        let chosen = match host.chosen {
            Some(Choice::Client(id, _)) => Some(id),
            _ => ready.first().copied(),
        };
        let Some(id) = chosen else { return };
        assert!(ready.contains(&id), "{id:?} was chosen, and cannot be served");
        let start = host.now.get();
        let slice_ns = if ready.len() > 1 { SLICE_NS } else { LONGEST_SLICE_NS };
        host.ran = Some(Work { client: id, requests: 0, bytes: 0, last_request: 0, still_ready: true });
        while let Some(job) = self.host().peer_mut(id).and_then(|peer| peer.jobs.pop_front()) {
            self.execute(id, job);
            let host = self.host();
            let Some(work) = &mut host.ran else { break };
            work.requests += 1;
            work.still_ready = host.peers[usize::from(id.0)].as_ref().is_some_and(|peer| !peer.jobs.is_empty());
            let is_over = host.now.get().since(start) >= slice_ns;
            if !work.still_ready || host.end.get() || is_over {
                break;
            }
        }
        // In turn, where the server chooses.
        let host = self.host();
        host.queue.retain(|&other| other != id);
        if host.peer(id).is_some_and(|peer| !peer.jobs.is_empty()) {
            host.queue.push(id);
        }
    }

    /// One request: others arrive meanwhile, and the mechanism's time may come.
    fn execute(&mut self, id: ClientId, job: Job) {
        let start = self.now();
        let end = start.after(job.ns);
        loop {
            let (next, ask) = (self.coming.first().map(|&(at, ..)| at), self.host().ask_at.get());
            let Some(at) = next.into_iter().chain(ask).min().filter(|&at| at <= end) else { break };
            let now = self.now();
            self.host().now.set(at.max(now));
            self.let_arrive();
            if ask.is_some_and(|ask| ask <= at) {
                self.host().time_has_come();
            }
        }
        self.host().now.set(end);
        self.done.push(Done { client: id, start, end });
        self.effect(id, job.does);
    }

    fn effect(&mut self, id: ClientId, does: Does) {
        match does {
            Does::Grab => self.host().grab = Some(id),
            Does::Ungrab => self.host().grab = None,
            _ => {}
        }
        let Some(engine) = &mut self.engine else { return };
        match does {
            Does::Nothing => {}
            Does::Grab => engine.grabbed(id, true),
            Does::Ungrab => engine.grabbed(id, false),
            Does::Expose(client) => engine.noticed(client, false),
            Does::Event(client) => engine.delivered(client),
            Does::Prioritize(client, priority) => engine.prioritized(client, priority),
        }
    }
}

/// First resource id of a client.
pub fn base(id: ClientId) -> u32 {
    u32::from(id.0) * IDS
}

/// A time, in microseconds from the start.
pub fn at_us(us: u64) -> Time {
    Time(us * 1000)
}
