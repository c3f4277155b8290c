//! Serves a workload: the main loop of a server in virtual time.
//!
//! A slice ends where a real one does: at a request boundary, when the decision says so, when the client has nothing
//! left, or when a better one has arrived ([`xqos_core::Contest`]). Decisions and everything else that a server does cost
//! nothing here, and a wakeup comes at once; a real server is slower by that.

use crate::workload::{Plan, Run, Workload};
use std::collections::{BTreeMap, VecDeque};
use xqos_abi::trace::{Event, Level, Reason, What};
use xqos_core::{
    Admission, Choice, ClientId, Contest, Parameters, PolicyKind, Reservation, Scheduler, Service, Slice, Time,
};

/// What the stock server gives a client in one go.
const STOCK_SLICE_NS: u64 = 5_000_000;

/// Under which rules.
#[derive(Clone, Debug)]
pub struct Rules {
    pub policy: PolicyKind,
    pub parameters: Parameters,
    /// Of these plans, by their place in the workload.
    pub reservations: BTreeMap<usize, Reservation>,
    /// Look at the sockets of idle clients during slices, as the watcher does.
    pub watches: bool,
}

/// Why a workload cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The reservation of this plan is not admitted.
    Admission(usize),
    /// More clients than a server can have.
    TooManyClients,
}

struct Client {
    bursts: VecDeque<crate::workload::Burst>,
    /// What is left of the burst that it asked for.
    left: VecDeque<Run>,
    arrives: Time,
}

/// Serves it, and gives each record to `write`.
pub fn serve(workload: &Workload, rules: &Rules, mut write: impl FnMut(Event)) -> Result<(), Refused> {
    if workload.plans.len() >= ClientId::LIMIT {
        return Err(Refused::TooManyClients);
    }
    let mut scheduler = Scheduler::new(rules.policy, rules.parameters);
    let began = workload.began;
    write(Event { at: began, what: What::Begin { level: Level::Slices, server_pid: 0, words: 0 } });
    write(Event { at: began, what: What::Policy { kind: rules.policy } });
    let mut clients = Vec::new();
    for (place, plan) in workload.plans.iter().enumerate() {
        let id = id_of(place);
        let descriptor = place as u32 + 4;
        scheduler.connected(id, descriptor, began);
        scheduler.set_sync_priority(id, plan.sync_priority, began);
        introduce(plan, id, descriptor, began, &mut write);
        if let Some(&reservation) = rules.reservations.get(&place) {
            match scheduler.reserve(id, reservation, began) {
                Some(Admission::Admitted(_)) => {}
                _ => return Err(Refused::Admission(place)),
            }
            write(Event { at: began, what: What::Reserve { client: id, reservation, admitted: true } });
        }
        let bursts: VecDeque<_> = plan.bursts.iter().cloned().collect();
        let arrives = bursts.front().map_or(Time::NEVER, |burst| began.after(burst.after_ns));
        clients.push(Client { bursts, left: VecDeque::new(), arrives });
    }
    let mut server = Server { scheduler, clients, now: began, watches: rules.watches, turn: 0 };
    server.run(workload.ended, &mut write);
    write(Event { at: server.now, what: What::End });
    Ok(())
}

/// Indices as a server deals them out: 0 is its own.
fn id_of(place: usize) -> ClientId {
    ClientId(place as u16 + 1)
}

fn introduce(plan: &Plan, id: ClientId, descriptor: u32, at: Time, write: &mut impl FnMut(Event)) {
    write(Event { at, what: What::Creation { client: id, descriptor } });
    for &what in &plan.identity {
        let what = match what {
            What::Identity { pid, base, uid, .. } => What::Identity { client: id, pid, base, uid },
            What::Name { part, bytes, .. } => What::Name { client: id, part, bytes },
            other => other,
        };
        write(Event { at, what });
    }
}

struct Server {
    scheduler: Scheduler,
    clients: Vec<Client>,
    now: Time,
    watches: bool,
    /// Whom the stock server served last.
    turn: usize,
}

impl Server {
    fn run(&mut self, until: Time, write: &mut impl FnMut(Event)) {
        while self.now < until {
            while self.scheduler.replenish(self.now).is_some() {}
            self.look(write);
            match self.scheduler.pick(self.now) {
                Some(slice) => self.slice(&slice, until, write),
                None => {
                    let next = self.next_arrival().min(self.scheduler.next_replenish().unwrap_or(Time::NEVER));
                    if next == Time::NEVER {
                        return;
                    }
                    self.now = next.max(Time(self.now.0 + 1));
                }
            }
        }
    }

    fn next_arrival(&self) -> Time {
        let waiting = self.clients.iter().filter(|client| client.left.is_empty());
        waiting.map(|client| client.arrives).min().unwrap_or(Time::NEVER)
    }

    /// Bursts whose time has come.
    fn look(&mut self, write: &mut impl FnMut(Event)) {
        for place in 0..self.clients.len() {
            let client = &mut self.clients[place];
            if !client.left.is_empty() || client.arrives > self.now {
                continue;
            }
            let Some(burst) = client.bursts.pop_front() else { continue };
            let (id, at) = (id_of(place), client.arrives);
            client.left = burst.runs.into();
            for _ in 0..burst.inputs.min(1) {
                self.scheduler.noticed(id, true, at);
                write(Event { at, what: What::Noticed { client: id, is_input: true } });
            }
            self.scheduler.arrived(id, at);
            write(Event { at, what: What::Activation { client: id } });
        }
    }

    fn slice(&mut self, slice: &Slice, until: Time, write: &mut impl FnMut(Event)) {
        let start = self.now;
        write(Event { at: start, what: What::dispatch(slice, Reason::of(slice, &self.scheduler)) });
        let (place, end) = match slice.choice {
            Choice::Client(id, _) => (usize::from(id.0) - 1, slice.until),
            Choice::Server => (self.next_turn(), slice.until.min(start.after(STOCK_SLICE_NS))),
        };
        let mut done = Done::default();
        let mut ended_early = false;
        loop {
            let limit = end.min(until);
            let cut = if self.watches { self.cut(place, &slice.contest) } else { Time::NEVER };
            if self.now >= cut {
                ended_early = self.now < end;
                break;
            }
            let (most_requests, most_bytes) = (slice.requests, slice.bytes);
            if !self.advance(place, limit.min(cut), (most_requests, most_bytes), &mut done) {
                break;
            }
            if self.now >= limit {
                break;
            }
        }
        self.finish(place, start, done, ended_early, write);
    }

    /// When an arrival ends the slice.
    fn cut(&self, runs: usize, contest: &Contest) -> Time {
        let idle = self.clients.iter().enumerate().filter(|&(place, client)| place != runs && client.left.is_empty());
        let cut = |(place, client): (usize, &Client)| {
            let arrives = client.arrives;
            if arrives == Time::NEVER {
                return Time::NEVER;
            }
            contest.ends_for(self.scheduler.rank_on_arrival(id_of(place), arrives)).max(arrives)
        };
        idle.map(cut).min().unwrap_or(Time::NEVER)
    }

    /// Serves requests of equal length up to an instant, and one over it. False where the slice is over by itself.
    fn advance(&mut self, place: usize, to: Time, (requests, bytes): (u32, u32), done: &mut Done) -> bool {
        let Some(run) = self.clients[place].left.front_mut() else { return false };
        let fit = to.since(self.now).div_ceil(run.request_ns.max(1)).max(1);
        let mut count = fit.min(run.requests.into());
        if requests > 0 {
            count = count.min(u64::from(requests.saturating_sub(done.requests)).max(1));
        }
        if bytes > 0 {
            let left = u64::from(bytes).saturating_sub(done.bytes);
            count = count.min(left.div_ceil(u64::from(run.bytes.max(1))).max(1));
        }
        self.now = self.now.after(count.saturating_mul(run.request_ns));
        done.requests = done.requests.saturating_add(count as u32);
        done.bytes += count * u64::from(run.bytes);
        done.last_request = run.request;
        run.requests -= count as u32;
        if run.requests == 0 {
            self.clients[place].left.pop_front();
        }
        let is_limited = (requests > 0 && done.requests >= requests) || (bytes > 0 && done.bytes >= u64::from(bytes));
        !is_limited && !self.clients[place].left.is_empty()
    }

    fn finish(&mut self, place: usize, start: Time, done: Done, ended_early: bool, write: &mut impl FnMut(Event)) {
        let (client, end) = (id_of(place), self.now);
        let Done { requests, bytes, last_request } = done;
        let still_ready = !self.clients[place].left.is_empty();
        if !still_ready {
            let next = self.clients[place].bursts.front().map_or(Time::NEVER, |burst| end.after(burst.after_ns));
            self.clients[place].arrives = next;
        }
        self.scheduler.served(&Service { client, start, end, requests, bytes, last_request, still_ready });
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let what = What::Served { client, still_ready, ended_early, requests, last_request, bytes, start };
        write(Event { at: end, what });
        if let Some(state) = self.scheduler.reservation(client) {
            write(Event { at: end, what: What::budget(client, &state) });
        }
    }

    /// The stock server with three busy clients and more: they take turns.
    fn next_turn(&mut self) -> usize {
        let count = self.clients.len();
        let is_ready = |place: &usize| !self.clients[*place].left.is_empty();
        let next = (1..=count).map(|step| (self.turn + step) % count).find(is_ready);
        self.turn = next.unwrap_or(self.turn);
        self.turn
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Done {
    requests: u32,
    bytes: u64,
    last_request: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Burst;

    const MS: u64 = 1_000_000;

    fn plan(id: u16, bursts: Vec<Burst>) -> Plan {
        Plan { id: ClientId(id), identity: Vec::new(), sync_priority: 0, bursts }
    }

    fn run(requests: u32, request_ns: u64) -> Run {
        Run { requests, request_ns, request: 1, bytes: 16 }
    }

    /// A busy client of 1 ms requests, and one that draws for 1 ms and rests for 7.3.
    fn busy_and_light() -> Workload {
        let busy = plan(1, vec![Burst { after_ns: 0, inputs: 0, runs: vec![run(2000, MS)] }]);
        let light = Burst { after_ns: 7 * MS + MS / 3, inputs: 0, runs: vec![run(10, MS / 10)] };
        Workload { began: Time(MS), ended: Time(1001 * MS), plans: vec![busy, plan(2, vec![light; 100])] }
    }

    fn rules(policy: PolicyKind) -> Rules {
        Rules { policy, parameters: Parameters::default(), reservations: BTreeMap::new(), watches: true }
    }

    fn events(workload: &Workload, rules: &Rules) -> Vec<Event> {
        let mut events = Vec::new();
        serve(workload, rules, |event| events.push(event)).unwrap();
        events
    }

    fn longest_response_ns(events: &[Event], id: u16) -> u64 {
        let (mut since, mut longest) = (None, 0);
        for event in events {
            match event.what {
                What::Activation { client } if client.0 == id => since = Some(event.at),
                What::Served { client, still_ready: false, .. } if client.0 == id => {
                    longest = longest.max(since.take().map_or(0, |since| event.at.since(since)));
                }
                _ => {}
            }
        }
        longest
    }

    #[test]
    fn fair_serves_a_light_client_at_the_next_request_and_stock_does_not() {
        let workload = busy_and_light();
        let fair = longest_response_ns(&events(&workload, &rules(PolicyKind::Fair)), 2);
        assert!(fair <= 2 * MS, "{fair} ns under fair");
        let stock = longest_response_ns(&events(&workload, &rules(PolicyKind::Stock)), 2);
        assert!(stock >= 3 * MS, "{stock} ns under stock");
    }

    #[test]
    fn the_same_workload_gives_the_same_records() {
        let workload = busy_and_light();
        for policy in PolicyKind::ALL {
            assert_eq!(events(&workload, &rules(policy)), events(&workload, &rules(policy)));
        }
    }

    #[test]
    fn a_simulated_trace_gives_the_workload_back() {
        let workload = busy_and_light();
        let again = Workload::of_events(events(&workload, &rules(PolicyKind::Fair)));
        let sum = |bursts: &[Burst]| -> u64 {
            bursts.iter().flat_map(|burst| &burst.runs).map(|run| run.request_ns * u64::from(run.requests)).sum()
        };
        assert_eq!(again.plans.len(), 2);
        let light = again.plans.iter().find(|plan| plan.id == ClientId(2)).unwrap();
        assert!((80..=100).contains(&light.bursts.len()), "{} bursts", light.bursts.len());
        assert!(light.bursts.iter().all(|burst| burst.after_ns == 7 * MS + MS / 3));
        assert_eq!(sum(&light.bursts), light.bursts.len() as u64 * MS);
    }

    #[test]
    fn a_hard_reservation_is_not_exceeded() {
        let workload = busy_and_light();
        let mut rules = rules(PolicyKind::Fair);
        let reservation = Reservation { budget_ns: 3 * MS, period_ns: 10 * MS, hard: true };
        rules.reservations.insert(0, reservation);
        let mut busy_ns = 0;
        serve(&workload, &rules, |event| {
            if let What::Served { client: ClientId(1), start, .. } = event.what {
                busy_ns += event.at.since(start);
            }
        })
        .unwrap();
        assert!((290 * MS..=304 * MS).contains(&busy_ns), "{busy_ns} ns in a second");
        let too_much = Reservation { budget_ns: 99 * MS, period_ns: 100 * MS, hard: true };
        rules.reservations.insert(0, too_much);
        assert_eq!(serve(&workload, &rules, |_| {}), Err(Refused::Admission(0)));
    }
}
