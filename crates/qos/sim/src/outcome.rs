// SPDX-License-Identifier: MIT
//! The results of a scenario under one policy: response times, shares and admission.

use crate::generator::{Generator, Habit};
use crate::scenario::{BEGAN, ClientGroup, Regime, Scenario};
use crate::server::{BurstResult, Observer, SimulatedServer};
use xqos_abi::trace::{Entry, Event};
use xqos_core::{ClientId, Fact, Service, Time};

/// Difference between the seeds of two clients. Because it is odd, no two seeds are equal.
const SEED_STEP: u64 = 0x2545_f491_4f6c_dd1d;

/// Results of the whole scenario after its warm-up.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub regime: Regime,
    /// Length of the counted part.
    pub seconds: f64,
    pub groups: Vec<GroupResult>,
}

#[derive(Clone, Debug, Default)]
pub struct GroupResult {
    pub name: String,
    pub is_measured: bool,
    pub served_ns: Vec<u64>,
    pub requests: u64,
    /// For each burst, the time from its request or input until it was finished.
    pub response_ns: Vec<u64>,
    /// The times from input until the server saw it.
    pub receipt_ns: Vec<u64>,
    /// The times between the ends of a client's successive bursts.
    pub interval_ns: Vec<u64>,
    /// Bursts that were unfinished at the end.
    pub waiting: u64,
    /// Numbers of requested and admitted reservations.
    pub asked: u32,
    pub admitted: u32,
}

impl GroupResult {
    /// The fraction of server time that these clients got together.
    pub fn share(&self, outcome: &Outcome) -> f64 {
        self.served_ns.iter().sum::<u64>() as f64 / 1e9 / outcome.seconds
    }
}

impl Outcome {
    pub fn of(&self, name: &str) -> Option<&GroupResult> {
        self.groups.iter().find(|group| group.name == name)
    }
}

impl Scenario {
    /// Runs the scenario. The same scenario gives the same outcome.
    pub fn simulate(&self, regime: Regime) -> Outcome {
        let mut server = SimulatedServer::new(regime.policy(), self.parameters, BEGAN);
        server.polling = self.polling;
        let mut counter = Counter::new(self);
        for (index, group) in self.groups.iter().enumerate() {
            for _ in 0..group.count {
                let client = server.connect(counter.connect(index, group), 0);
                server.set(client, &group.settings);
                if let Some(reservation) = group.reservation.filter(|_| regime == Regime::Cbs) {
                    counter.groups[index].asked += 1;
                    counter.groups[index].admitted += u32::from(server.reserve(client, reservation));
                }
            }
        }
        server.run(BEGAN.after(self.duration_ns), &mut counter);
        let seconds = (self.duration_ns - self.warm_up_ns) as f64 / 1e9;
        Outcome { regime, seconds, groups: counter.groups }
    }
}

/// Collects results while the scenario runs.
struct Counter {
    from: Time,
    groups: Vec<GroupResult>,
    clients: Vec<ClientProgress>,
}

struct ClientProgress {
    group: usize,
    member: usize,
    last_done: Option<Time>,
}

impl Counter {
    fn new(scenario: &Scenario) -> Counter {
        let of = |group: &ClientGroup| GroupResult {
            name: group.name.clone(),
            is_measured: group.is_measured,
            served_ns: vec![0; group.count as usize],
            ..GroupResult::default()
        };
        let groups = scenario.groups.iter().map(of).collect();
        Counter { from: BEGAN.after(scenario.warm_up_ns), groups, clients: Vec::new() }
    }

    fn connect(&mut self, index: usize, group: &ClientGroup) -> Generator {
        let seed = group.habit.seed.wrapping_add((self.clients.len() as u64).wrapping_mul(SEED_STEP));
        let member = self.clients.iter().rev().take_while(|client| client.group == index).count();
        self.clients.push(ClientProgress { group: index, member, last_done: None });
        Generator::of_habit(Habit { seed, ..group.habit.clone() })
    }

    fn of(&mut self, client: ClientId) -> (&mut ClientProgress, &mut GroupResult) {
        let client = &mut self.clients[usize::from(client.0) - 1];
        let group = &mut self.groups[client.group];
        (client, group)
    }
}

impl Observer for Counter {
    fn record(&mut self, event: Event) {
        if let Entry::Fact(Fact::Served(Service { client, requests, start, .. })) = event.what {
            if start >= self.from {
                let (client, of) = self.of(client);
                of.served_ns[client.member] += event.at.since(start);
                of.requests += u64::from(requests);
            }
        }
    }

    fn burst(&mut self, result: &BurstResult) {
        let is_counted = result.asked >= self.from;
        let (client, of) = self.of(result.client);
        if !is_counted || !of.is_measured {
            return;
        }
        let Some(done) = result.done else {
            of.waiting += 1;
            return;
        };
        of.response_ns.push(done.since(result.asked));
        of.receipt_ns.push(result.seen.since(result.asked));
        if let Some(last) = client.last_done.replace(done) {
            of.interval_ns.push(done.since(last));
        }
    }
}
