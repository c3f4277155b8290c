// SPDX-License-Identifier: MIT
//! Model test: given the same facts, the scheduler and a naive reference make the same decisions.
//!
//! The scheduler keeps heaps and keys; [`reference`] searches everything each time. They must agree on the client that
//! runs, the account that pays, the length of the slice, the arrivals that end it, the watched clients, and each budget
//! and deadline.

mod operations;
mod reference;

use operations::{CLIENTS, Op, config, report, sequence};
use proptest::prelude::*;
use reference::{Decision, Reference};
use std::collections::BTreeMap;
use xqos_core::{
    Admission, Choice, ClientId, Fact, FactOutcome, GroupId, Holder, Mode, Parameters, PolicyKind, Rank, Reservation,
    Scheduler, Service, Slice, Time,
};

#[derive(Debug)]
struct Pair {
    scheduler: Scheduler,
    reference: Reference,
    /// The watched clients with their ranks, which is all that a watcher knows.
    watched: BTreeMap<ClientId, Rank>,
    now: u64,
}

impl Pair {
    fn new(policy: PolicyKind) -> Self {
        let parameters = Parameters::default();
        let scheduler = Scheduler::new(policy, parameters);
        Pair { scheduler, reference: Reference::new(policy, parameters), watched: BTreeMap::new(), now: 1_000_000_000 }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Tell(fact) => self.tell(fact),
            Op::DecideAndServe { length_ns, requests, still_ready, index } => {
                if let Some(client) = self.decide().and_then(|slice| self.chosen(slice.choice, index)) {
                    self.serve(client, length_ns, requests, still_ready);
                }
            }
            Op::Decide => {
                self.decide();
            }
            Op::ServeUnchosen { client, length_ns } => self.serve(client, length_ns, 1, false),
            Op::TimePasses { ns } => self.now += ns,
        }
    }

    fn tell(&mut self, fact: Fact) {
        // As in the main loop, all replenishments that are due precede an arrival.
        use Holder::Client;
        if matches!(
            fact,
            Fact::Arrived { .. }
                | Fact::Reserve { holder: Client(_), .. }
                | Fact::Release { holder: Client(_) }
                | Fact::Replenish
        ) {
            self.replenish();
        }
        match fact {
            Fact::Replenish => {}
            Fact::Reserve { holder, reservation } => self.reserve(holder, fact, reservation),
            fact => {
                let changed = self.scheduler.handle(Time(self.now), fact) != FactOutcome::None;
                assert_eq!(changed, self.reference.handle(self.now, fact), "the outcome of {fact:?}");
            }
        }
    }

    fn replenish(&mut self) {
        let (mut told, mut groups) = (Vec::new(), Vec::new());
        loop {
            match self.scheduler.handle(Time(self.now), Fact::Replenish) {
                FactOutcome::Resumed(client) => told.push(client),
                FactOutcome::GroupResumed(group) => groups.push(group),
                _ => break,
            }
        }
        told.sort();
        groups.sort();
        assert_eq!((told, groups), self.reference.replenish(self.now), "clients and groups that resume");
    }

    fn decide(&mut self) -> Option<Slice> {
        self.replenish();
        let now = self.now;
        let (slice, decision) = (self.scheduler.decide(Time(now)), self.reference.pick(now));
        let (Some(slice), Some(decision)) = (slice, decision) else {
            assert_eq!(slice.map(|slice| slice.choice), decision.map(choice), "only one of them picks a client");
            return None;
        };
        assert_eq!(slice.choice, choice(decision), "the client that runs");
        assert_eq!((slice.requests, slice.bytes), (decision.requests, decision.bytes), "limits of {decision:?}");
        self.check_end(&slice, &decision);
        self.check_contest(&slice);
        Some(slice)
    }

    /// A slice ends when the budget or the policy's time is used up, or earlier when a depleted client resumes. If that
    /// client would win, the slice must end then.
    fn check_end(&self, slice: &Slice, decision: &Decision) {
        let until = slice.until.0;
        let first_resumption = self.reference.resumptions(self.now, decision.end).min();
        assert!(
            until <= first_resumption.unwrap_or(decision.end),
            "{slice:?} lasts beyond the resumption at {first_resumption:?}"
        );
        let next_replenish = self.scheduler.next_replenish().map(|at| at.0.max(self.now));
        assert!(
            until == decision.end || Some(until) == next_replenish,
            "{slice:?} ends early, not at {}",
            decision.end
        );
    }

    fn check_contest(&mut self, slice: &Slice) {
        let now = Time(self.now);
        while let Some((client, rank)) = self.scheduler.next_to_watch(now) {
            assert!(!self.scheduler.is_ready(client), "{client:?} has arrived");
            self.watched.insert(client, rank);
        }
        self.watched.retain(|&client, _| self.scheduler.is_watched(client));
        for (&client, state) in &self.reference.clients {
            if state.ready {
                continue;
            }
            let ends = slice.contest.ends_for(self.scheduler.rank_on_arrival(client, now));
            let expected = self.reference.ends_at(client, now.0).map_or(Time::NEVER, Time);
            assert_eq!(ends, expected, "when an arrival of {client:?} ends {slice:?}");
            if self.reference.is_to_be_watched(client, now.0, slice.until.0) {
                let watched_as = self.watched.get(&client).copied().unwrap_or(Rank::LAST);
                let seen_to_end = slice.contest.ends_for(watched_as);
                assert!(
                    seen_to_end <= expected,
                    "an arrival of {client:?} ends {slice:?} at {expected:?}; watched as {watched_as:?} at {seen_to_end:?}"
                );
            }
        }
    }

    fn chosen(&self, choice: Choice, index: usize) -> Option<ClientId> {
        let selectable = |&id: &ClientId| {
            let held_back = self.scheduler.is_held_back(id);
            self.scheduler.is_ready(id) && !held_back && self.reference.grab.is_none_or(|holder| holder == id)
        };
        match choice {
            Choice::Client(client, _) => Some(client),
            Choice::Server => {
                let ready: Vec<ClientId> = (0..CLIENTS).map(ClientId).filter(selectable).collect();
                ready.get(index % ready.len().max(1)).copied()
            }
        }
    }

    fn serve(&mut self, client: ClientId, length_ns: u64, requests: u32, still_ready: bool) {
        let (start, end, bytes) = (self.now, self.now + length_ns, u64::from(requests) * 16);
        let service = Service { requests, bytes, still_ready, ..Service::new(client, Time(start), Time(end)) };
        self.scheduler.handle(service.end, Fact::Served(service));
        self.reference.served(client, start, end, (requests, bytes), still_ready);
        self.now = end;
    }

    /// Admission rounds by at most a millionth for each reservation and for B.
    fn reserve(&mut self, holder: Holder, fact: Fact, reservation: Reservation) {
        let share = |part_ns: u64, whole_ns: u64| part_ns as f64 / whole_ns as f64;
        let others = self.scheduler.reservations().filter(|&(other, _)| other != holder);
        let set: Vec<Reservation> = others.map(|(_, reservation)| reservation).chain([reservation]).collect();
        let blocking_ns = self.scheduler.blocking_ns(Time(self.now));
        let term = |period_ns| {
            let sooner = set.iter().filter(|other| other.period_ns <= period_ns);
            let sum: f64 = sooner.map(|other| share(other.budget_ns, other.period_ns)).sum();
            sum + share(blocking_ns, period_ns)
        };
        let largest = set.iter().map(|one| term(one.period_ns)).fold(0.0, f64::max);
        let limit = f64::from(self.scheduler.parameters().max_utilization_ppm) / 1e6;
        let rounding = (set.len() + 2) as f64 / 1e6;
        match self.scheduler.handle(Time(self.now), fact).admission() {
            None => assert!(matches!(holder, Holder::Client(client) if !self.reference.clients.contains_key(&client))),
            Some(Admission::Admitted(_)) => {
                assert!(largest <= limit + 1e-9, "{set:?} is admitted with {largest}, the limit is {limit}");
                self.reference.reserved(holder, reservation, self.now);
            }
            Some(Admission::Refused(_)) => {
                assert!(largest > limit - rounding, "{set:?} is refused with {largest}, the limit is {limit}");
            }
        }
    }

    fn check_states(&self) {
        for client in (0..CLIENTS).map(ClientId) {
            let expected = self.reference.clients.get(&client);
            assert_eq!(self.scheduler.usage(client).is_some(), expected.is_some(), "{client:?} is connected");
            assert_eq!(
                self.scheduler.is_ready(client),
                expected.is_some_and(|state| state.ready),
                "{client:?} is ready"
            );
            let budget = self.scheduler.reservation(client);
            let budget =
                budget.map(|state| (state.reservation, state.budget_left_ns, state.deadline.0, state.depleted));
            let expected = expected.and_then(|state| state.budget);
            let expected = expected.map(|budget| (budget.of, budget.left_ns as i64, budget.deadline, budget.depleted));
            assert_eq!(budget, expected, "reservation, budget left, deadline, depleted of {client:?}");
            let held_until = self.scheduler.paced_until(client).map(|until| until.0);
            assert_eq!(held_until, self.reference.paced.held_until(client), "how long {client:?} is paced");
        }
        for group in (1..3).map(GroupId) {
            let budget = self.scheduler.group_reservation(group);
            let budget = budget.map(|state| (state.reservation, i128::from(state.budget_left_ns), state.deadline.0));
            let expected = self.reference.shared.budget(group);
            let expected = expected.map(|budget| (budget.of, budget.left_ns, budget.deadline));
            assert_eq!(budget, expected, "reservation, budget left, deadline of {group:?}");
        }
        assert_eq!(self.scheduler.grab(), self.reference.grab, "the holder of the grab");
        let turn = self.scheduler.desktop_turn(Time(self.now)).0;
        assert_eq!(turn, self.reference.desktop.first_from(self.now), "when desktop clients go first");
        for client in (0..CLIENTS).map(ClientId) {
            let waited_for = self.scheduler.next_request_of(client, Time(self.now)).map(|until| until.0);
            assert_eq!(waited_for, self.reference.next_request_of(client, self.now), "the client that is waited for");
        }
    }
}

fn choice(decision: Decision) -> Choice {
    decision.client.map_or(Choice::Server, |(client, mode): (ClientId, Mode)| Choice::Client(client, mode))
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn the_scheduler_and_the_naive_reference_decide_alike((policy, ops) in sequence(200)) {
        report(|| {
            let mut pair = Pair::new(policy);
            for op in ops {
                pair.apply(op);
                pair.check_states();
            }
        })?;
    }
}
