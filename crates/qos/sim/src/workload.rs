// SPDX-License-Identifier: MIT
//! Client requests in bursts, and the time between bursts.
//!
//! The time from the end of a client's burst to its next burst is taken from the trace: clients wait for replies, so a
//! later end delays the next burst. The first burst starts at its recorded time. A burst takes its recorded server
//! time, split into the requests that the trace records (level `requests`), or else into equal requests for each slice.

use std::collections::BTreeMap;
use xqos_abi::snapshot::Collector;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{ClientId, Fact, Role, Scheduler, Service, Time};

/// Requests of equal length, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRun {
    pub requests: u32,
    pub request_ns: u64,
    /// Major opcode + 65536 x minor opcode.
    pub request: u32,
    pub bytes: u32,
}

/// Requests that a client sends together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestBurst {
    /// Time after the end of the previous burst, or after the start of the workload.
    pub after_ns: u64,
    /// Input events delivered before the burst.
    pub inputs: u32,
    pub runs: Vec<RequestRun>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub id: ClientId,
    pub identity: Vec<Entry>,
    pub sync_priority: i32,
    pub role: Role,
    pub bursts: Vec<RequestBurst>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    pub began: Time,
    pub ended: Time,
    pub plans: Vec<Plan>,
}

#[derive(Debug)]
struct Reading {
    plan: Plan,
    done: Option<Time>,
    current: Option<RequestBurst>,
    of_slice: Vec<RequestRun>,
    inputs: u32,
}

impl Workload {
    pub fn of_events(events: impl IntoIterator<Item = Event>) -> Workload {
        let mut workload = Workload::default();
        let mut reading: BTreeMap<ClientId, Reading> = BTreeMap::new();
        let mut snapshot = Collector::default();
        for event in events {
            let at = event.at;
            if workload.began == Time(0) {
                workload.began = at;
            }
            workload.ended = workload.ended.max(at);
            if let Some(words) = snapshot.take(&event.what) {
                workload.begin(&mut reading, &words, at);
            }
            workload.take(&mut reading, &event);
        }
        for one in reading.into_values() {
            workload.finish(Some(one));
        }
        workload
    }

    fn take(&mut self, reading: &mut BTreeMap<ClientId, Reading>, event: &Event) {
        let at = event.at;
        match event.what {
            Entry::Fact(Fact::Disconnected { client }) => self.finish(reading.remove(&client)),
            Entry::Fact(Fact::Connected { client, .. }) => self.finish(reading.insert(client, Reading::new(client))),
            Entry::Identity { client, .. } | Entry::Name { client, .. } => {
                Reading::of(reading, client).plan.identity.push(event.what);
            }
            Entry::Fact(Fact::SyncPriority { client, priority }) => {
                Reading::change(reading, client, |one| one.plan.sync_priority = priority)
            }
            Entry::Fact(Fact::Role { client, role }) if role.is_any() => {
                Reading::change(reading, client, |one| one.plan.role = role)
            }
            Entry::Fact(Fact::Input { client }) => Reading::change(reading, client, |one| one.inputs += 1),
            Entry::Fact(Fact::Arrived { client }) => Reading::of(reading, client).arrive(self.began, at),
            Entry::Request { client, request, bytes, ns } => Reading::change(reading, client, |one| {
                one.add(RequestRun { requests: 1, request_ns: ns, request, bytes })
            }),
            Entry::Fact(Fact::Served(Service {
                client, start, requests, last_request, bytes, still_ready, ..
            })) => {
                let (began, bytes) = (self.began, u32::try_from(bytes).unwrap_or(u32::MAX));
                let one = Reading::of(reading, client);
                one.arrive(began, start);
                one.serve(at.since(start), requests, last_request, bytes);
                if !still_ready {
                    one.done(at);
                }
            }
            _ => {}
        }
    }

    /// Adds the clients that existed at the start, and marks those with waiting requests.
    fn begin(&mut self, reading: &mut BTreeMap<ClientId, Reading>, state: &[u64], at: Time) {
        let Some(scheduler) = Scheduler::restore(state) else { return };
        for id in (0..ClientId::LIMIT as u16).map(ClientId).filter(|&id| scheduler.usage(id).is_some()) {
            let one = Reading::of(reading, id);
            one.plan.role = scheduler.role(id);
            if scheduler.is_ready(id) {
                one.arrive(self.began, at);
            }
        }
    }

    fn finish(&mut self, one: Option<Reading>) {
        let Some(mut one) = one else { return };
        one.done(self.ended);
        if !one.plan.bursts.is_empty() {
            self.plans.push(one.plan);
        }
    }
}

impl Reading {
    fn new(id: ClientId) -> Reading {
        let plan = Plan { id, identity: Vec::new(), sync_priority: 0, role: Role::NONE, bursts: Vec::new() };
        Reading { plan, done: None, current: None, of_slice: Vec::new(), inputs: 0 }
    }

    fn change(reading: &mut BTreeMap<ClientId, Reading>, id: ClientId, change: impl FnOnce(&mut Reading)) {
        if let Some(one) = reading.get_mut(&id) {
            change(one);
        }
    }

    fn of(reading: &mut BTreeMap<ClientId, Reading>, id: ClientId) -> &mut Reading {
        reading.entry(id).or_insert_with(|| Reading::new(id))
    }

    fn arrive(&mut self, began: Time, at: Time) {
        if self.current.is_none() {
            let after_ns = at.since(self.done.unwrap_or(began));
            self.current = Some(RequestBurst { after_ns, inputs: std::mem::take(&mut self.inputs), runs: Vec::new() });
        }
    }

    fn add(&mut self, run: RequestRun) {
        match self.of_slice.last_mut() {
            Some(last) if last.request == run.request && last.request_ns == run.request_ns => last.requests += 1,
            _ => self.of_slice.push(run),
        }
    }

    fn serve(&mut self, ns: u64, requests: u32, request: u32, bytes: u32) {
        let mut runs = std::mem::take(&mut self.of_slice);
        if runs.is_empty() {
            let count = requests.max(1);
            let request_ns = ns / u64::from(count);
            runs.push(RequestRun { requests: count, request_ns, request, bytes: bytes / count });
        }
        if let Some(burst) = &mut self.current {
            burst.runs.extend(runs);
        }
    }

    fn done(&mut self, at: Time) {
        let Some(burst) = self.current.take() else { return };
        self.done = Some(at);
        if !burst.runs.is_empty() {
            self.plan.bursts.push(burst);
        }
    }
}
