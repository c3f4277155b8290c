// SPDX-License-Identifier: MIT
//! Derives from records how each client used the server, when it waited, and what caused the waits.
//!
//! A client's *burst* starts at its activation and ends when it has been served and has no requests left. Its length is
//! the response time (Manica et al., section 2: activation to deactivation). All time in a burst except the client's
//! own service is waiting time. Each nanosecond of waiting has a [`Cause`]: another client's slice, time when the
//! kernel did not run the server, or the server's own work (input, screen updates, timers) while no client was served.
//!
//! Records come one at a time, live or from a file. A trace may start anywhere and have gaps; no input causes a panic.

mod blame;
mod client;
mod presence;
#[cfg(test)]
mod tests;
mod threads;

pub(crate) use blame::still_absent;
use blame::{BlamedSlice, Grab};
use client::add;
pub use client::{Budget, Burst, Cause, Client, Figures, Identity, RequestTotals};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use threads::Threads;
pub use threads::{DEFAULT_PRIORITY, Owner, RunningThreads, ThreadRun, text};
use xqos_abi::snapshot::Collector;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{ClientId, Fact, Holder, Mode, PolicyKind, Scheduler, Service, Time};

/// Maximum number of longest-waiting bursts that are kept with their causes.
const WORST_KEPT: usize = 32;
/// Minimum length of a request that is named as a separate cause.
const LONG_REQUEST_NS: u64 = 1_000_000;

#[derive(Debug, Default)]
pub struct Model {
    clients: Vec<Client>,
    /// For each index, the key of the client that has the index now.
    present: BTreeMap<ClientId, usize>,
    ready: Vec<usize>,
    /// The last decision: its client, unless the server chooses, and its time.
    running: Option<(Option<usize>, Mode, Time)>,
    /// The server's processor time in the slice that will be reported next.
    worked_ns: Option<u64>,
    /// End of the last service.
    served_until: Time,
    /// The last two known times at which the server polled its clients for requests.
    polled: [Time; 2],
    slices: VecDeque<BlamedSlice>,
    grabs: VecDeque<Grab>,
    pub policy: Option<PolicyKind>,
    pub began: Option<Time>,
    pub now: Time,
    pub decisions: u64,
    pub early_ends: u64,
    pub lost: u64,
    pub kernel: bool,
    server_pid: u32,
    /// The bursts with the longest waits, longest first.
    pub worst: Vec<Burst>,
    /// Total waits by client and cause.
    delays: BTreeMap<(usize, Cause), u64>,
    snapshot: Collector,
    requests_of_slice: BTreeMap<u32, u64>,
    /// Intervals in which the server was runnable but did not run, from kernel events.
    absences: VecDeque<(Time, Time)>,
    runnable_since: Option<Time>,
    /// For each main thread of a client, the time since which it has been runnable without running.
    runnable: BTreeMap<u32, Time>,
    /// Processes that are or were clients.
    local: BTreeSet<u32>,
    threads: Threads,
    without_causes: bool,
    /// Keys of clients that the last call of [`Model::forget_gone`] has forgotten.
    forgotten: Vec<usize>,
    /// Keys of clients that were forgotten before; later clients get them.
    free: Vec<usize>,
}

impl Model {
    pub fn new() -> Model {
        Model::default()
    }

    /// A model without causes, for views of many clients: finding causes takes one step per slice and waiting client.
    /// Bursts have no causes, and the list of worst bursts stays empty.
    pub fn without_causes() -> Model {
        Model { without_causes: true, ..Model::default() }
    }

    /// All clients of the trace, in order of connection unless some were forgotten ([`Model::forget_gone`]).
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// The clients that are connected now.
    pub fn present(&self) -> impl Iterator<Item = &Client> {
        self.present.values().map(|&key| &self.clients[key])
    }

    /// Time from the first record to the last.
    pub fn span_ns(&self) -> u64 {
        self.began.map_or(0, |began| self.now.since(began))
    }

    /// Time from the first record to this time, which may be earlier.
    pub fn since_start_ns(&self, at: Time) -> f64 {
        (i128::from(at.0) - i128::from(self.began.unwrap_or(at).0)) as f64
    }

    /// All waits as (client, cause, ns), largest first.
    pub fn delays(&self) -> Vec<(usize, Cause, u64)> {
        let mut delays: Vec<_> = self.delays.iter().map(|((key, cause), &ns)| (*key, cause.clone(), ns)).collect();
        delays.sort_by_key(|&(_, _, ns)| std::cmp::Reverse(ns));
        delays
    }

    /// Returns the figures of connected clients since the last call, and resets them.
    pub fn take_recent(&mut self) -> Vec<(usize, Figures)> {
        let present: Vec<usize> = self.present.values().copied().collect();
        present.into_iter().map(|key| (key, std::mem::take(&mut self.clients[key].recent))).collect()
    }

    /// Like [`Model::take_recent`], for all clients by key, including those that have disconnected.
    pub fn take_recent_of_all(&mut self) -> Vec<Figures> {
        self.clients.iter_mut().map(|client| std::mem::take(&mut client.recent)).collect()
    }

    /// The display name of a client: "x11perf (1234)".
    pub fn name(&self, key: usize) -> String {
        let Some(client) = self.clients.get(key) else { return "?".to_owned() };
        let Identity { pid, base, program, .. } = &client.identity;
        match (program.is_empty(), pid) {
            (true, 0) => format!("client {base:#x}"),
            (true, pid) => format!("pid {pid}"),
            (false, 0) => program.clone(),
            (false, pid) => format!("{program} ({pid})"),
        }
    }

    /// Key of the client that has this index now.
    pub fn key(&self, id: ClientId) -> Option<usize> {
        self.present.get(&id).copied()
    }

    /// Takes a record. Returns the burst that the record ends, if any.
    pub fn take(&mut self, event: &Event) -> Option<Burst> {
        let at = event.at;
        let is_recorded_late = matches!(event.what, Entry::Fact(Fact::Arrived { .. }));
        if !is_recorded_late && !event.what.is_of_kernel() {
            self.began.get_or_insert(at);
            self.now = self.now.max(at);
        }
        if let Some(words) = self.snapshot.take(&event.what) {
            self.restore(&words, at);
        }
        match event.what {
            Entry::Fact(fact) => return self.take_fact(fact, at),
            Entry::Begin { server_pid, .. } => self.server_pid = server_pid,
            Entry::End => self.grab(None, at),
            Entry::Identity { client, pid, base, uid } => self.identify(client, (pid, base, uid), at),
            Entry::Name { client, part, bytes } => self.rename(client, part, &bytes),
            Entry::Dispatch { client, mode, .. } => {
                self.decided(at);
                self.running = Some((client.map(|client| self.create_unless(client, at)), mode, at));
            }
            Entry::Processor { ns, .. } => self.worked_ns = Some(ns),
            Entry::Budget { client, kind, depleted, left_ns, deadline } => {
                let key = self.key(client)?;
                self.budget(key, Budget { left_ns, deadline, kind, depleted, missed: false });
            }
            Entry::Request { client, request, bytes, ns } => self.request(client, request, bytes, ns),
            Entry::Lost { records } => add(&mut self.lost, records),
            Entry::Switch { from, to, still_runnable, .. } => self.switch(from, to, still_runnable, at),
            Entry::Wakeup { thread, .. } if thread == self.server_pid => {
                self.runnable_since.get_or_insert(at);
            }
            Entry::Wakeup { thread, .. } if self.local.contains(&thread) => {
                self.runnable.entry(thread).or_insert(at);
            }
            Entry::ThreadName { .. } | Entry::InterruptName { .. } | Entry::Thread { .. } | Entry::Priority { .. } => {
                self.threads.take(&event.what)
            }
            Entry::Cut { client, .. } => self.change(client, |client| client.figures(|figures| figures.cuts += 1)),
            Entry::Finished { client, ns, .. } => self.change(client, |client| {
                client.figures(|figures| {
                    figures.finished += 1;
                    add(&mut figures.finished_ns, ns);
                });
            }),
            Entry::Wakeup { .. }
            | Entry::Interrupt { .. }
            | Entry::Refused(_)
            | Entry::State { .. }
            | Entry::Paced { .. } => {}
        }
        None
    }

    fn take_fact(&mut self, fact: Fact, at: Time) -> Option<Burst> {
        match fact {
            Fact::Connected { client, .. } => _ = self.create(client, at),
            Fact::Disconnected { client } => self.destroy(client, at),
            Fact::Arrived { client } => self.activate(client, at),
            Fact::Withdrawn { client } => self.withdraw(self.key(client)?),
            Fact::Served(service) => return self.served(&service),
            Fact::Grabbed { by } => self.grab(by, at),
            Fact::Policy(kind) => self.policy = Some(kind),
            Fact::Input { client } => self.change(client, |client| client.figures(|figures| figures.inputs += 1)),
            Fact::Exposed { client, .. } => {
                self.change(client, |client| client.figures(|figures| figures.exposes += 1))
            }
            Fact::Reserve { holder: Holder::Client(client), reservation } => {
                self.change(client, |client| client.reservation = Some(reservation))
            }
            Fact::Release { holder: Holder::Client(client) } => self.change(client, |client| client.budget = None),
            Fact::Role { client, role } => self.change(client, |client| client.role = role),
            Fact::SyncPriority { client, priority } => self.change(client, |client| client.sync_priority = priority),
            _ => {}
        }
        None
    }

    fn change(&mut self, id: ClientId, change: impl FnOnce(&mut Client)) {
        if let Some(key) = self.key(id) {
            change(&mut self.clients[key]);
        }
    }

    /// Restores clients and policy from the scheduler's snapshot at the start.
    fn restore(&mut self, words: &[u64], at: Time) {
        let Some(scheduler) = Scheduler::restore(words) else { return };
        self.policy = Some(scheduler.policy());
        let holder = scheduler.grab().filter(|&id| scheduler.usage(id).is_some());
        for id in (0..ClientId::LIMIT as u16).map(ClientId) {
            if scheduler.usage(id).is_none() {
                self.destroy(id, at);
                continue;
            }
            let key = self.create_unless(id, at);
            self.clients[key].role = scheduler.role(id);
            let is_ready = self.clients[key].ready_since.is_some();
            if scheduler.is_ready(id) && !is_ready {
                self.activate(id, at);
            } else if !scheduler.is_ready(id) && is_ready {
                self.withdraw(key);
            }
            let (client, state) = (&mut self.clients[key], scheduler.reservation(id));
            client.reservation = state.map(|state| state.reservation).or(client.reservation);
            client.budget = state.map(|state| Budget {
                left_ns: state.budget_left_ns,
                deadline: state.deadline,
                kind: state.reservation.kind,
                depleted: state.depleted,
                missed: false,
            });
        }
        let known = holder.and_then(|id| self.key(id)).filter(|&key| self.clients[key].grabbed_at.is_some());
        if known.is_none() {
            self.grab(holder, at);
        }
    }

    fn activate(&mut self, id: ClientId, at: Time) {
        let key = self.create_unless(id, at);
        let client = &mut self.clients[key];
        if client.ready_since.is_none() {
            client.demand.forget();
            // Polls find requests late: the client was idle until the previous poll, or while the server was idle.
            let before = if at > self.polled[1] { self.polled[1] } else { self.polled[0] };
            let idle_ns = at.since(self.served_until.max(client.waits_since));
            client.demand.add(0, before.since(client.waits_since).max(idle_ns));
            (client.ready_since, client.waits_since) = (Some(at), at);
            (client.own_ns, client.worked_ns) = (0, 0);
            client.waits.clear();
            self.ready.push(key);
            self.polled_at(at);
            // In a model without causes, this list is empty.
            let since: Vec<_> = self.slices.iter().rev().take_while(|slice| slice.end > at).copied().collect();
            since.iter().for_each(|slice| self.blame_on(key, slice));
            // An arrival during a grab may be recorded late. The time before the recorded slices belongs to the grab.
            if let Some(oldest) = since.last().filter(|oldest| oldest.before > at) {
                self.blame_grabs(key, at, oldest.before);
            }
        }
    }

    fn withdraw(&mut self, key: usize) {
        self.clients[key].ready_since = None;
        self.ready.retain(|&other| other != key);
    }

    fn polled_at(&mut self, at: Time) {
        if at > self.polled[1] {
            self.polled = [self.polled[1], at];
        }
    }

    fn request(&mut self, id: ClientId, request: u32, bytes: u32, ns: u64) {
        let Some(key) = self.key(id) else { return };
        add(self.requests_of_slice.entry(request).or_default(), ns);
        self.clients[key].figures(|figures| {
            let kind = figures.kinds.entry(request).or_default();
            kind.count += 1;
            add(&mut kind.ns, ns);
            add(&mut kind.bytes, bytes.into());
            kind.longest_ns = kind.longest_ns.max(ns);
            if figures.longest_request.is_none_or(|(longest, _)| ns > longest) {
                figures.longest_request = Some((ns, request));
            }
        });
    }

    fn served(&mut self, service: &Service) -> Option<Burst> {
        let Service { client: id, end, requests, last_request, still_ready, ended_early, .. } = *service;
        let start = service.start.min(end);
        self.early_ends += u64::from(ended_early);
        let mode = self.running.take().map_or(Mode::BestEffort, |(_, mode, _)| mode);
        // After a gap in the trace, the activation may be missing.
        if self.key(id).is_none_or(|key| self.clients[key].ready_since.is_none()) {
            self.activate(id, start);
        }
        let key = self.key(id)?;
        // The server polls between two slices of the same client.
        self.polled_at(self.clients[key].waits_since);
        let length_ns = end.since(start);
        let worked_ns = self.worked_ns.take().map_or(length_ns, |ns| ns.min(length_ns));
        let costliest = self.requests_of_slice.iter().max_by_key(|&(_, ns)| *ns).map(|(&request, _)| request);
        let request = costliest.unwrap_or(last_request);
        let long = requests == 1 && length_ns >= LONG_REQUEST_NS;
        self.blame(key, (request, long), (start, end));
        self.served_until = end;
        let client = &mut self.clients[key];
        let waited_ns = start.since(client.waits_since);
        client.figures(|figures| {
            add(&mut figures.server_time_ns, length_ns);
            if mode == Mode::Reserved {
                add(&mut figures.reserved_time_ns, length_ns);
            }
            figures.requests += u64::from(requests);
            figures.slices += 1;
            add(&mut figures.waited_ns, waited_ns);
            figures.longest_wait_ns = figures.longest_wait_ns.max(waited_ns);
            if requests == 1 && figures.longest_request.is_none_or(|(longest, _)| length_ns > longest) {
                figures.longest_request = Some((length_ns, last_request));
            }
        });
        add(&mut client.own_ns, length_ns);
        add(&mut client.worked_ns, worked_ns);
        client.waits_since = end;
        if still_ready { None } else { self.finish(key, end) }
    }

    fn finish(&mut self, key: usize, end: Time) -> Option<Burst> {
        self.ready.retain(|&other| other != key);
        let client = &mut self.clients[key];
        let activation = client.ready_since.take()?;
        let response_ns = end.since(activation);
        client.figures(|figures| figures.responses.add(response_ns));
        let mut causes: Vec<(Cause, u64)> = std::mem::take(&mut client.waits).into_iter().collect();
        let waited_ns = response_ns.saturating_sub(client.own_ns);
        let (own_ns, worked_ns) = (client.own_ns, client.worked_ns);
        client.demand.add(own_ns, 0);
        for (cause, ns) in &causes {
            add(self.delays.entry((key, cause.clone())).or_default(), *ns);
        }
        causes.sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
        let burst = Burst { key, activation, end, own_ns, worked_ns, waited_ns, causes };
        let least = if self.worst.len() < WORST_KEPT { 0 } else { self.worst.last().map_or(0, |last| last.waited_ns) };
        if waited_ns > least && !self.without_causes {
            self.worst.push(burst.clone());
            self.worst.sort_by_key(|burst| std::cmp::Reverse(burst.waited_ns));
            self.worst.truncate(WORST_KEPT);
        }
        Some(burst)
    }

    fn budget(&mut self, key: usize, mut budget: Budget) {
        let now = self.now;
        let client = &mut self.clients[key];
        let before = client.budget;
        let is_same_period = before.is_some_and(|before| before.deadline == budget.deadline);
        let depleted = budget.depleted && !before.is_some_and(|before| before.depleted && is_same_period);
        let was_missed = is_same_period && before.is_some_and(|before| before.missed);
        let is_late = !budget.depleted && client.ready_since.is_some() && now > budget.deadline;
        budget.missed = was_missed || is_late;
        let missed = is_late && !was_missed;
        client.budget = Some(budget);
        client.figures(|figures| {
            figures.depletions += u64::from(depleted);
            figures.misses += u64::from(missed);
        });
    }
}
