// SPDX-License-Identifier: MIT
//! A simulated server: virtual time, one request at a time, clients that follow a given load.
//!
//! It calls a [`Scheduler`]'s methods in the same order as the main loop of a real server. A slice ends as in a real
//! server: at a request boundary, when its time is up, when the client has no more requests, or when a watched client
//! becomes readable and the rank stored when its watch began wins the contest. Decisions take no time.
//!
//! Invariant: time passes only while a request runs or while no client has a request.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use xqos_core::{
    Choice, ClientId, Fact, FactOutcome, Mode, Parameters, PolicyKind, Rank, Reservation, Scheduler, Service, Slice,
    Time,
};
use xqos_testkit::Random;

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// The slice of the real server's own scheduler.
const STOCK_SLICE_NS: u64 = 5 * MS;

/// The times at which a client sends requests.
#[derive(Clone, Copy, Debug)]
pub enum Behaviour {
    /// It always has another request.
    Backlogged,
    /// It sends each request `think_ns` after the previous one was done.
    RoundTrip { think_ns: u64 },
    /// It sends `requests` together in each period, whether or not the previous ones are done.
    Periodic { period_ns: u64, requests: u32 },
}

/// The load of a client.
#[derive(Clone, Debug)]
pub struct Load {
    pub behaviour: Behaviour,
    /// Each request costs a random time in this range.
    pub cost_ns: RangeInclusive<u64>,
    pub request_bytes: u64,
    /// The arrival of its first request.
    pub start_ns: u64,
    /// The interval at which it receives input and an Expose alternately; 0: never.
    pub noticed_every_ns: u64,
    /// Each request causes work for compositors and window managers.
    pub causes_work: bool,
}

impl Load {
    pub fn new(behaviour: Behaviour, cost_ns: RangeInclusive<u64>) -> Self {
        Load { behaviour, cost_ns, request_bytes: 16, start_ns: 0, noticed_every_ns: 0, causes_work: false }
    }

    pub fn backlogged(cost_ns: RangeInclusive<u64>) -> Self {
        Load::new(Behaviour::Backlogged, cost_ns)
    }
}

/// One executed request.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub client: ClientId,
    pub mode: Mode,
    pub arrived_ns: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    /// The number of the slice in which it ran.
    pub slice: usize,
}

impl Run {
    /// The length of the part of this request within a window.
    pub fn within(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.end_ns.min(to_ns).saturating_sub(self.start_ns.max(from_ns))
    }
}

#[derive(Debug)]
struct Client {
    id: ClientId,
    load: Load,
    /// Arrival times of the requests that wait in its socket.
    pending: VecDeque<u64>,
    next_arrival_ns: u64,
    next_notice_ns: u64,
    notices: u64,
    waits_since_ns: Option<u64>,
    longest_wait_ns: u64,
}

impl Client {
    /// Adds the requests that have reached the socket by now.
    fn receive(&mut self, now_ns: u64) {
        while self.next_arrival_ns <= now_ns {
            let at = self.next_arrival_ns;
            self.waits_since_ns.get_or_insert(at);
            match self.load.behaviour {
                Behaviour::Backlogged | Behaviour::RoundTrip { .. } => {
                    self.pending.push_back(at);
                    self.next_arrival_ns = u64::MAX;
                }
                Behaviour::Periodic { period_ns, requests } => {
                    self.pending.extend(std::iter::repeat_n(at, requests as usize));
                    self.next_arrival_ns = at + period_ns;
                }
            }
        }
    }

    /// Takes the request that begins now, and plans the next one.
    fn begin(&mut self, now_ns: u64, cost_ns: u64) -> u64 {
        let arrived_ns = self.pending.pop_front().expect("a client without requests was chosen");
        let waited = now_ns - self.waits_since_ns.expect("a client with requests waits");
        self.longest_wait_ns = self.longest_wait_ns.max(waited);
        let done_ns = now_ns + cost_ns;
        match self.load.behaviour {
            Behaviour::Backlogged => self.next_arrival_ns = done_ns,
            Behaviour::RoundTrip { think_ns } => self.next_arrival_ns = done_ns + think_ns.max(1),
            Behaviour::Periodic { .. } => {}
        }
        self.waits_since_ns = (!self.pending.is_empty()).then_some(done_ns);
        self.receive(done_ns);
        arrived_ns
    }
}

/// The server, its clients and its history.
#[derive(Debug)]
pub struct Server {
    pub scheduler: Scheduler,
    pub now_ns: u64,
    pub runs: Vec<Run>,
    /// The choice and limits of each slice, by its number.
    pub slices: Vec<Slice>,
    clients: Vec<Client>,
    armed: BTreeMap<ClientId, Rank>,
    random: Random,
    stock_turn: usize,
}

impl Server {
    pub fn new(policy: PolicyKind, parameters: Parameters, seed: u64) -> Self {
        Server {
            scheduler: Scheduler::new(policy, parameters),
            now_ns: 0,
            runs: Vec::new(),
            slices: Vec::new(),
            clients: Vec::new(),
            armed: BTreeMap::new(),
            random: Random(seed),
            stock_turn: 0,
        }
    }

    /// Connects a client. Descriptors grow in the order of connection.
    pub fn connect(&mut self, load: Load) -> ClientId {
        self.connect_as(load, self.clients.len() as u32 + 11)
    }

    pub fn connect_as(&mut self, load: Load, descriptor: u32) -> ClientId {
        let id = ClientId(self.clients.len() as u16 + 1);
        self.scheduler.handle(Time(self.now_ns), Fact::Connected { client: id, descriptor });
        self.clients.push(Client {
            id,
            pending: VecDeque::new(),
            next_arrival_ns: load.start_ns.max(self.now_ns),
            next_notice_ns: if load.noticed_every_ns == 0 { u64::MAX } else { load.start_ns + load.noticed_every_ns },
            notices: 0,
            waits_since_ns: None,
            longest_wait_ns: 0,
            load,
        });
        id
    }

    pub fn try_reserve(&mut self, client: ClientId, reservation: Reservation) -> bool {
        let now = Time(self.now_ns);
        self.scheduler.handle(now, Fact::Reserve { holder: client.into(), reservation }).is_admitted()
    }

    /// Closes the client's connection.
    pub fn disconnect(&mut self, client: ClientId) {
        let closed = &mut self.clients[usize::from(client.0) - 1];
        closed.pending.clear();
        (closed.next_arrival_ns, closed.next_notice_ns, closed.waits_since_ns) = (u64::MAX, u64::MAX, None);
        self.armed.remove(&client);
        self.scheduler.handle(Time(self.now_ns), Fact::Disconnected { client });
    }

    /// The process is stopped for a while (a debugger, a page fault, a grab): time passes and no client is served.
    pub fn stall(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    pub fn run_until(&mut self, end_ns: u64) {
        while self.now_ns < end_ns {
            self.decide_and_serve();
        }
    }

    /// Server time of a client in this mode; `None`: in both modes.
    pub fn service_ns(&self, client: ClientId, mode: Option<Mode>) -> u64 {
        let of_client = self.runs.iter().filter(|run| run.client == client && mode.is_none_or(|mode| run.mode == mode));
        of_client.map(|run| run.end_ns - run.start_ns).sum()
    }

    /// The time from the arrival to the end of each request of the client.
    pub fn responses_ns(&self, client: ClientId) -> Vec<u64> {
        self.runs.iter().filter(|run| run.client == client).map(|run| run.end_ns - run.arrived_ns).collect()
    }

    /// The longest time so far during which the client had a request but was not served.
    pub fn longest_wait_ns(&self, client: ClientId) -> u64 {
        let client = &self.clients[usize::from(client.0) - 1];
        let waits = client.waits_since_ns.map_or(0, |since| self.now_ns.saturating_sub(since));
        client.longest_wait_ns.max(waits)
    }

    /// True if a request of the client had arrived by `at_ns` and had not begun before then.
    pub fn had_work_at(&self, client: ClientId, at_ns: u64) -> bool {
        let client = &self.clients[usize::from(client.0) - 1];
        let served_since = self.runs.iter().rev().take_while(|run| run.start_ns >= at_ns);
        let first = served_since.filter(|run| run.client == client.id).last().map(|run| run.arrived_ns);
        first.or(client.pending.front().copied()).is_some_and(|arrived_ns| arrived_ns <= at_ns)
    }

    fn decide_and_serve(&mut self) {
        let now = Time(self.now_ns);
        while self.scheduler.handle(now, Fact::Replenish) != FactOutcome::None {}
        for client in &mut self.clients {
            client.receive(self.now_ns);
            if !client.pending.is_empty() && !self.scheduler.is_ready(client.id) {
                self.armed.remove(&client.id);
                self.scheduler.handle(now, Fact::Arrived { client: client.id });
            }
        }
        self.deliver_notices();
        let Some(slice) = self.scheduler.decide(now) else { return self.sleep() };
        while let Some((client, rank)) = self.scheduler.next_to_watch(now) {
            self.armed.insert(client, rank);
        }
        self.serve(slice);
        self.scheduler.verify();
    }

    /// Sleeps until the next arrival or replenishment.
    fn sleep(&mut self) {
        let arrival = self.clients.iter().map(|client| client.next_arrival_ns).min().unwrap_or(u64::MAX);
        let replenishment = self.scheduler.next_replenish().map_or(u64::MAX, |at| at.0);
        let until = arrival.min(replenishment);
        assert!(until > self.now_ns, "no client is picked at {} although a client was due at {until}", self.now_ns);
        self.now_ns = until;
    }

    fn serve(&mut self, slice: Slice) {
        let (id, mode) = match slice.choice {
            Choice::Client(id, mode) => (id, mode),
            Choice::Server => (self.stock_choice(), Mode::BestEffort),
        };
        let place = usize::from(id.0) - 1;
        let start_ns = self.now_ns;
        let until_ns = match slice.choice {
            Choice::Client(..) => slice.until.0,
            Choice::Server => slice.until.0.min(start_ns + STOCK_SLICE_NS),
        };
        let (mut requests, mut bytes) = (0, 0);
        loop {
            let client = &mut self.clients[place];
            let (begin_ns, cost_ns) = (self.now_ns, self.random.within(client.load.cost_ns.clone()));
            let arrived_ns = client.begin(begin_ns, cost_ns);
            self.now_ns += cost_ns;
            requests += 1;
            bytes += client.load.request_bytes;
            let slice_number = self.slices.len();
            let end_ns = self.now_ns;
            self.runs.push(Run { client: id, mode, arrived_ns, start_ns: begin_ns, end_ns, slice: slice_number });
            self.deliver_notices();
            let limited = slice.requests != 0 && requests >= slice.requests
                || slice.bytes != 0 && bytes >= u64::from(slice.bytes);
            let drained = self.clients[place].pending.is_empty();
            let calls = self.clients[place].load.causes_work && self.caused_work(id);
            if drained || limited || calls || self.now_ns >= until_ns || self.is_contested(&slice) {
                break;
            }
        }
        self.slices.push(slice);
        self.scheduler.handle(
            Time(self.now_ns),
            Fact::Served(Service {
                requests,
                bytes: if slice.bytes == 0 { 0 } else { bytes },
                still_ready: !self.clients[place].pending.is_empty(),
                ..Service::new(id, Time(start_ns), Time(self.now_ns))
            }),
        );
        // Waits for the next request, like a real server during a desktop turn.
        if let Some(until) = self.scheduler.next_request_of(id, Time(self.now_ns)) {
            self.now_ns = until.0.min(self.clients[place].next_arrival_ns.max(self.now_ns));
        }
    }

    fn caused_work(&mut self, client: ClientId) -> bool {
        self.scheduler.handle(Time(self.now_ns), Fact::CausedWork { client }) == FactOutcome::Changed
    }

    /// True if a watched socket is readable and its client now beats the running client.
    fn is_contested(&self, slice: &Slice) -> bool {
        self.armed.iter().any(|(id, &rank)| {
            let arrival_ns = self.clients[usize::from(id.0) - 1].next_arrival_ns;
            slice.contest.ends_for(rank).0.max(arrival_ns) <= self.now_ns
        })
    }

    /// Round robin, for choices left to the server.
    fn stock_choice(&mut self) -> ClientId {
        let n = self.clients.len();
        let selectable = |id: &ClientId| {
            self.scheduler.is_ready(*id)
                && !self.scheduler.is_held_back(*id)
                && self.scheduler.grab().is_none_or(|holder| holder == *id)
        };
        let turns = (1..=n).map(|step| (self.stock_turn + step) % n).map(|place| self.clients[place].id);
        let id = turns.into_iter().find(selectable).expect("the server should choose, but no client is ready");
        self.stock_turn = usize::from(id.0) - 1;
        id
    }

    fn deliver_notices(&mut self) {
        for client in &mut self.clients {
            while client.next_notice_ns <= self.now_ns {
                client.notices += 1;
                client.next_notice_ns += client.load.noticed_every_ns;
                match client.notices % 2 {
                    1 => self.scheduler.handle(Time(self.now_ns), Fact::Input { client: client.id }),
                    _ => self.scheduler.handle(Time(self.now_ns), Fact::Exposed { client: client.id, cause: None }),
                };
            }
        }
    }
}
