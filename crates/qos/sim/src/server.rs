// SPDX-License-Identifier: MIT
//! The main loop of a server in virtual time: arrivals, scheduling decisions and service.
//!
//! A slice ends as in a real server: at a request boundary when a limit of the decision is reached, when the client has
//! no more requests, when an arriving client wins the contest ([`xqos_core::Contest`]), or at a tick of the server's
//! own clock. Decisions and wakeups take no time here; a real server is slower by their cost.
//!
//! Future events are sorted by time, so a decision costs O(log n) in the number of clients. Policy `stock` is the
//! exception: it examines every ready client.

mod slice;
#[cfg(test)]
mod tests;

use crate::generator::{Generator, NextBurst};
use crate::stock::Stock;
use crate::workload::{Plan, RequestRun, Workload};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use xqos_abi::trace::{Entry, Event, Level};
use xqos_core::{
    ClientId, Contention, Fact, FactOutcome, GroupId, Parameters, PolicyKind, Reservation, Scheduler, Time,
};

/// Core's client numbers have 16 bits, and its queues use the largest number internally. X servers allow 2,048 clients.
pub const MAX_CLIENTS: usize = 60_000;

#[derive(Clone, Debug)]
pub struct Rules {
    pub policy: PolicyKind,
    pub parameters: Parameters,
    /// Reservations, by index of the plan in the workload.
    pub reservations: BTreeMap<usize, Reservation>,
    /// Checks the sockets of idle clients during slices, as the watcher does.
    pub watches: bool,
    /// An arrival can interrupt a core request with parts at multiples of this time; 0: requests are executed whole.
    pub part_ns: u64,
}

/// The reason why a workload cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The reservation of this plan is not admitted.
    Admission(usize),
    /// More than [`MAX_CLIENTS`].
    TooManyClients,
}

/// Settings for all clients with the same name, in addition to the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientSettings {
    /// Weight for policy `fair`, in hundredths.
    pub weight: Option<u32>,
    /// A group, and the maximum share of all its members together.
    pub cap: Option<(GroupId, Ppm)>,
}

/// Millionths of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ppm(pub u32);

/// When a server reads its input.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Polling {
    /// Between requests: Xorg, which has an input thread.
    #[default]
    BetweenRequests,
    /// Between slices: Xephyr and Xtigervnc. xqos ends slices early for input.
    BetweenSlices,
}

pub(crate) trait Observer {
    fn record(&mut self, event: Event);

    /// A burst is finished, or the simulation ended before that.
    fn burst(&mut self, _result: &BurstResult) {}
}

impl<F: FnMut(Event)> Observer for F {
    fn record(&mut self, event: Event) {
        self(event);
    }
}

/// The result of a burst of a client that is not busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BurstResult {
    pub(crate) client: ClientId,
    pub(crate) asked: Time,
    /// Time at which the server saw its input; without input, `asked`.
    pub(crate) seen: Time,
    pub(crate) done: Option<Time>,
}

/// Serves a workload and passes each record to `write`.
pub fn serve(workload: &Workload, rules: &Rules, mut write: impl FnMut(Event)) -> Result<(), Refused> {
    if workload.plans.len() > MAX_CLIENTS {
        return Err(Refused::TooManyClients);
    }
    let began = workload.began;
    write(Event { at: began, what: Entry::Begin { level: Level::Slices, server_pid: 0, words: 0 } });
    write(Event { at: began, what: Entry::Fact(Fact::Policy(rules.policy)) });
    write(Event { at: began, what: Entry::Fact(Fact::Contention { is_on: false }) });
    let mut server = SimulatedServer::new(rules.policy, rules.parameters, began);
    (server.watches, server.part_ns) = (rules.watches, rules.part_ns);
    for (index, plan) in workload.plans.iter().enumerate() {
        let id = server.connect(Generator::of_plan(&plan.bursts, began), plan.sync_priority);
        server.scheduler.handle(began, Fact::Role { client: id, role: plan.role });
        introduce(plan, id, began, &mut write);
        if let Some(&reservation) = rules.reservations.get(&index) {
            if !server.reserve(id, reservation) {
                return Err(Refused::Admission(index));
            }
            write(Event { at: began, what: Entry::Fact(Fact::Reserve { holder: id.into(), reservation }) });
        }
    }
    server.run(workload.ended, &mut write);
    write(Event { at: server.now, what: Entry::End });
    Ok(())
}

fn introduce(plan: &Plan, id: ClientId, at: Time, write: &mut impl FnMut(Event)) {
    write(Event { at, what: Entry::Fact(Fact::Connected { client: id, descriptor: descriptor_of(id) }) });
    for &what in &plan.identity {
        let what = match what {
            Entry::Identity { pid, base, uid, .. } => Entry::Identity { client: id, pid, base, uid },
            Entry::Name { part, bytes, .. } => Entry::Name { client: id, part, bytes },
            other => other,
        };
        write(Event { at, what });
    }
    if plan.role.is_any() {
        write(Event { at, what: Entry::Fact(Fact::Role { client: id, role: plan.role }) });
    }
}

/// Lower descriptors belong to the server itself.
fn descriptor_of(id: ClientId) -> u32 {
    u32::from(id.0) + 3
}

/// Client 0 is the server itself.
fn id_of(index: usize) -> ClientId {
    ClientId(index as u16 + 1)
}

/// A burst on its way to the server, sorted by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Time,
    index: usize,
    asked: Time,
    seen: Time,
}

#[derive(Debug)]
struct Task {
    asked: Time,
    seen: Time,
    runs: VecDeque<RequestRun>,
    /// The time spent on its first request so far, if that request was cut.
    done_ns: u64,
}

#[derive(Debug)]
struct SimulatedClient {
    generator: Generator,
    /// Empty while the client is idle.
    tasks: VecDeque<Task>,
}

#[derive(Debug)]
pub(crate) struct SimulatedServer {
    scheduler: Scheduler,
    contention: Contention,
    stock: Stock,
    clients: Vec<SimulatedClient>,
    arrivals: BTreeSet<Arrival>,
    /// Input that the server has not seen yet: time, client's index, and `way_ns`.
    inputs: BTreeSet<(Time, usize, u64)>,
    now: Time,
    last_input_end: Time,
    watches: bool,
    part_ns: u64,
    pub(crate) polling: Polling,
}

impl SimulatedServer {
    pub(crate) fn new(policy: PolicyKind, parameters: Parameters, began: Time) -> SimulatedServer {
        let mut scheduler = Scheduler::new(policy, parameters);
        scheduler.handle(began, Fact::Contention { is_on: false });
        SimulatedServer {
            scheduler,
            contention: Contention::new(began),
            stock: Stock::new(),
            clients: Vec::new(),
            arrivals: BTreeSet::new(),
            inputs: BTreeSet::new(),
            now: began,
            last_input_end: Time(0),
            watches: true,
            part_ns: 0,
            polling: Polling::default(),
        }
    }

    /// Adds a client; at most [`MAX_CLIENTS`].
    pub(crate) fn connect(&mut self, mut generator: Generator, sync_priority: i32) -> ClientId {
        let (index, first) = (self.clients.len(), generator.first());
        let id = id_of(index);
        self.scheduler.handle(self.now, Fact::Connected { client: id, descriptor: descriptor_of(id) });
        self.scheduler.handle(self.now, Fact::SyncPriority { client: id, priority: sync_priority });
        self.stock.connected(id, sync_priority);
        self.clients.push(SimulatedClient { generator, tasks: VecDeque::new() });
        self.expect(index, first);
        id
    }

    pub(crate) fn set(&mut self, client: ClientId, settings: &ClientSettings) {
        if let Some(weight) = settings.weight {
            self.scheduler.handle(self.now, Fact::Weight { holder: client.into(), weight });
        }
        if let Some((group, Ppm(ppm))) = settings.cap {
            self.scheduler.handle(self.now, Fact::GroupCap { group, ppm });
            self.scheduler.handle(self.now, Fact::Group { client, group });
        }
    }

    pub(crate) fn reserve(&mut self, client: ClientId, reservation: Reservation) -> bool {
        self.scheduler.handle(self.now, Fact::Reserve { holder: client.into(), reservation }).is_admitted()
    }

    pub(crate) fn run(&mut self, until: Time, observer: &mut impl Observer) {
        while self.now < until {
            while self.scheduler.handle(self.now, Fact::Replenish) != FactOutcome::None {}
            self.take_arrivals(observer);
            match self.scheduler.decide(self.now) {
                Some(slice) => self.slice(&slice, until, observer),
                None => {
                    self.stock.sleeps(self.now);
                    let next = self.next_event();
                    if next == Time::NEVER {
                        break;
                    }
                    self.now = next.max(Time(self.now.0 + 1));
                }
            }
        }
        self.notify_unserved(observer);
    }

    fn next_event(&self) -> Time {
        let burst = self.arrivals.first().map_or(Time::NEVER, |arrival| arrival.at);
        burst.min(self.next_input()).min(self.scheduler.next_replenish().unwrap_or(Time::NEVER))
    }

    fn next_input(&self) -> Time {
        self.inputs.first().map_or(Time::NEVER, |&(at, ..)| at)
    }

    fn expect(&mut self, index: usize, next: Option<NextBurst>) {
        let Some(NextBurst { asked, way_ns, has_input }) = next else { return };
        if has_input {
            self.inputs.insert((asked, index, way_ns));
        } else {
            self.arrivals.insert(Arrival { at: asked.after(way_ns), index, asked, seen: asked });
        }
    }

    /// Takes input and bursts that have arrived by now.
    fn take_arrivals(&mut self, observer: &mut impl Observer) {
        self.take_input(observer);
        while let Some(&arrival) = self.arrivals.first().filter(|arrival| arrival.at <= self.now) {
            self.arrivals.remove(&arrival);
            self.arrive(&arrival, observer);
        }
    }

    fn take_input(&mut self, observer: &mut impl Observer) {
        while let Some(&(asked, index, way_ns)) = self.inputs.first().filter(|&&(at, ..)| at <= self.now) {
            self.inputs.pop_first();
            let seen = self.now;
            self.deliver(index, seen, observer);
            self.arrivals.insert(Arrival { at: seen.after(way_ns), index, asked, seen });
            let next = self.clients[index].generator.unprompted();
            self.expect(index, next);
        }
    }

    fn tell(&mut self, at: Time, fact: Fact, observer: &mut impl Observer) {
        self.scheduler.handle(at, fact);
        observer.record(Event { at, what: Entry::Fact(fact) });
    }

    fn deliver(&mut self, index: usize, at: Time, observer: &mut impl Observer) {
        let client = id_of(index);
        self.stock.input(client);
        self.tell(at, Fact::Input { client }, observer);
    }

    fn arrive(&mut self, arrival: &Arrival, observer: &mut impl Observer) {
        let &Arrival { at, index, asked, seen } = arrival;
        let client = &mut self.clients[index];
        let burst = client.generator.burst();
        client.tasks.push_back(Task { asked, seen, runs: burst.runs.into(), done_ns: 0 });
        // If bursts respond to input, the next burst was scheduled when its input was seen.
        if !client.generator.has_input() {
            let next = client.generator.unprompted();
            self.expect(index, next);
        }
        if burst.inputs > 0 {
            self.deliver(index, at, observer);
        }
        if !self.scheduler.is_ready(id_of(index)) {
            self.stock.arrived(id_of(index));
            self.tell(at, Fact::Arrived { client: id_of(index) }, observer);
        }
    }

    fn notify_unserved(&self, observer: &mut impl Observer) {
        for (index, client) in self.clients.iter().enumerate().filter(|(_, client)| !client.generator.is_busy()) {
            for &Task { asked, seen, .. } in &client.tasks {
                observer.burst(&BurstResult { client: id_of(index), asked, seen, done: None });
            }
        }
    }
}
