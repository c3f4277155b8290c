// SPDX-License-Identifier: MIT
//! Random sequences of all operations. After each one, the test checks the scheduler's invariants (`verify`) and rules
//! that hold for every decision.

mod operations;

use operations::{CLIENTS, Op, config, report, sequence};
use proptest::prelude::*;
use xqos_core::{
    Admission, Choice, ClientId, Fact, FactOutcome, GroupId, Holder, Mode, Pacing, Parameters, PolicyKind, Rank,
    ReservationState, Role, Scheduler, Service, Slice, Time,
};

/// A scheduler, its clock, and state for which the scheduler has no query.
#[derive(Debug)]
struct Server {
    scheduler: Scheduler,
    now: Time,
    sync_priorities: [i32; CLIENTS as usize],
}

fn all() -> impl Iterator<Item = ClientId> {
    (0..CLIENTS).map(ClientId)
}

impl Server {
    fn new(policy: PolicyKind) -> Self {
        let scheduler = Scheduler::new(policy, Parameters::default());
        Server { scheduler, now: Time(1_000_000_000), sync_priorities: [0; CLIENTS as usize] }
    }

    fn is_connected(&self, client: ClientId) -> bool {
        self.scheduler.usage(client).is_some()
    }

    fn has_budget(&self, client: ClientId) -> Option<ReservationState> {
        let is_paced = self.scheduler.paced_until(client).is_some();
        self.scheduler.reservation_in_use(client).filter(|state| !state.depleted && !is_paced)
    }

    /// True if the client is paced or held back with its group, and does not hold the grab.
    fn is_held_for_others(&self, client: ClientId) -> bool {
        let is_capped = self.scheduler.is_capped(client);
        let shared = self.scheduler.reservation_in_use(client).filter(|_| self.scheduler.shares_reservation(client));
        let is_out = match shared {
            Some(state) => state.depleted && (state.reservation.kind.is_hard() || is_capped),
            None => is_capped,
        };
        let is_held = self.scheduler.paced_until(client).is_some() || is_out;
        is_held && self.scheduler.grab() != Some(client)
    }

    fn check_group_reserve(&self, group: GroupId, outcome: FactOutcome, expected: Option<Admission>) {
        assert_eq!(outcome.admission(), expected, "the check predicts the outcome");
        if matches!(expected, Some(Admission::Admitted(_))) {
            let members: Vec<ClientId> = all().filter(|&id| self.scheduler.shares_reservation(id)).collect();
            assert!(self.scheduler.group_reservation(group).is_some(), "the reservation was admitted");
            assert!(
                members.iter().all(|&id| self.scheduler.reservation(id).is_none() && !self.scheduler.role(id).is_any())
            );
        }
    }

    fn sync_priority(&self, client: ClientId) -> i32 {
        self.sync_priorities[usize::from(client.0)]
    }

    /// The order: by SYNC priority, then compositors and window managers before other clients.
    fn place(&self, client: ClientId) -> (i64, bool) {
        (-i64::from(self.sync_priority(client)), !self.scheduler.is_desktop_client(client))
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Tell(fact) => self.tell(fact),
            Op::DecideAndServe { length_ns, requests, still_ready, index } => {
                self.decide_and_serve(length_ns, requests, still_ready, index);
            }
            Op::Decide => {
                self.decide();
            }
            Op::ServeUnchosen { client, length_ns } => self.serve(client, length_ns, 1, false),
            Op::TimePasses { ns } => self.now = self.now.after(ns),
        }
    }

    fn tell(&mut self, fact: Fact) {
        let now = self.now;
        match fact {
            Fact::Replenish => return self.replenish(),
            Fact::Exposed { client, cause } => return self.exposed(client, cause),
            Fact::Parameters(mut parameters) => {
                // Another test covers limits below the utilization already admitted.
                let admitted_ppm = self.scheduler.admitted_utilization_ppm();
                parameters.max_utilization_ppm = parameters.max_utilization_ppm.max(admitted_ppm);
                self.scheduler.handle(now, Fact::Parameters(parameters));
                assert_eq!(self.scheduler.parameters(), parameters);
                return;
            }
            _ => {}
        }
        let (before, expected) = match fact {
            Fact::Reserve { holder, reservation } => (None, self.scheduler.check_admission(holder, reservation, now)),
            Fact::Release { holder: Holder::Group(group) } => (self.scheduler.group_reservation(group), None),
            Fact::Release { holder: Holder::Client(client) } => (self.scheduler.reservation(client), None),
            _ => (None, None),
        };
        let outcome = self.scheduler.handle(now, fact);
        let (scheduler, is_connected) = (&self.scheduler, |client| self.is_connected(client));
        match fact {
            Fact::Connected { client, .. } => {
                assert!(!scheduler.is_ready(client) && scheduler.reservation(client).is_none());
                self.sync_priorities[usize::from(client.0)] = 0;
            }
            Fact::Disconnected { client } => assert_eq!(scheduler.rank_on_arrival(client, now), Rank::LAST),
            Fact::CausedWork { client } => {
                assert_eq!(
                    self.scheduler.handle(now, Fact::CausedWork { client }),
                    FactOutcome::None,
                    "it counts once"
                );
            }
            Fact::Role { client, role } => {
                assert_eq!(scheduler.role(client), if is_connected(client) { role } else { Role::NONE });
            }
            Fact::SyncPriority { client, priority } if is_connected(client) => {
                self.sync_priorities[usize::from(client.0)] = priority;
            }
            Fact::Reserve { holder: Holder::Client(client), reservation } => {
                assert_eq!(outcome.admission(), expected, "the check predicts the outcome");
                if matches!(expected, Some(Admission::Admitted(_))) {
                    let state = scheduler.reservation(client).expect("the reservation was admitted");
                    assert_eq!(state.reservation, reservation);
                }
            }
            Fact::Reserve { holder: Holder::Group(group), .. } => self.check_group_reserve(group, outcome, expected),
            Fact::Release { holder: Holder::Group(_) } => assert_eq!(outcome == FactOutcome::Changed, before.is_some()),
            Fact::Release { holder: Holder::Client(client) } => {
                assert_eq!(outcome == FactOutcome::Changed, before.is_some());
                assert_eq!(scheduler.is_held_back(client), self.is_held_for_others(client));
            }
            _ => {}
        }
    }

    /// Replenishes until nothing changes. Each client may resume only once: this accounts for all time that has passed.
    fn replenish(&mut self) {
        let (mut told, mut groups) = (Vec::new(), Vec::new());
        loop {
            let paced: Vec<ClientId> = all().filter(|&id| self.scheduler.paced_until(id).is_some()).collect();
            let capped: Vec<ClientId> = all().filter(|&id| self.scheduler.is_capped(id)).collect();
            let client = match self.scheduler.handle(self.now, Fact::Replenish) {
                FactOutcome::Resumed(client) => client,
                FactOutcome::GroupResumed(group) => {
                    assert!(!groups.contains(&group), "{group:?} is replenished twice at {:?}", self.now);
                    assert!(self.scheduler.group_reservation(group).is_some_and(|state| !state.depleted));
                    groups.push(group);
                    continue;
                }
                _ => break,
            };
            if paced.contains(&client) {
                assert_eq!(self.scheduler.paced_until(client), None, "its hold has ended");
                continue;
            }
            if capped.contains(&client) && !self.scheduler.is_capped(client) {
                continue;
            }
            assert!(!told.contains(&client), "{client:?} is replenished twice at {:?}", self.now);
            let state = self.scheduler.reservation(client).expect("only reservations are replenished");
            assert!(!state.depleted && state.budget_left_ns > 0, "{state:?} has been replenished");
            told.push(client);
        }
        assert!(self.scheduler.next_replenish().is_none_or(|at| at > self.now), "a replenishment is overdue");
    }

    /// A client that uncovers others is held for at most the limit, unless it has a reservation or is itself exposing.
    fn exposed(&mut self, client: ClientId, cause: Option<ClientId>) {
        let before = cause.and_then(|cause| self.scheduler.paced_until(cause));
        let was_exposing = self.scheduler.is_exposing(client, self.now);
        let outcome = self.scheduler.handle(self.now, Fact::Exposed { client, cause });
        let is_new = outcome != FactOutcome::None;
        assert_eq!(is_new, self.is_connected(client) && !was_exposing);
        assert_eq!(self.scheduler.is_exposing(client, self.now), self.is_connected(client));
        let after = cause.and_then(|cause| self.scheduler.paced_until(cause));
        let held_until = after.filter(|_| before.is_none());
        assert_eq!(held_until, if let FactOutcome::Held(until) = outcome { Some(until) } else { None });
        let Some(cause) = cause else { return };
        let Pacing { limit_ns, floor_ns } = self.scheduler.pacing();
        if before.is_none() && after.is_some() {
            assert!(is_new && cause != client && limit_ns > 0, "{cause:?} is held for {client:?}");
            assert!(self.scheduler.reservation_in_use(cause).is_none(), "{cause:?} has a reservation");
            assert!(after <= Some(self.now.after(limit_ns.min(floor_ns))), "{after:?} exceeds limit or floor");
            let grabs = self.scheduler.grab() == Some(cause);
            assert_eq!(self.scheduler.is_held_back(cause), !grabs);
        } else {
            assert_eq!(before, after, "a hold is not prolonged");
        }
    }

    fn decide(&mut self) -> Option<Slice> {
        let slice = self.scheduler.decide(self.now);
        match &slice {
            Some(slice) => self.check_choice(slice),
            None => {
                let served = all().find(|&id| self.scheduler.is_ready(id) && !self.scheduler.is_held_back(id));
                assert_eq!(served, None, "no client is picked although this one is ready");
            }
        }
        slice
    }

    fn check_choice(&self, slice: &Slice) {
        let scheduler = &self.scheduler;
        let ready = || all().filter(|&id| scheduler.is_ready(id) && !scheduler.is_held_back(id));
        let with_budget = || ready().filter_map(|id| Some((self.has_budget(id)?.deadline, id)));
        assert!(slice.until >= self.now && slice.contest.start == self.now, "{slice:?} at {:?}", self.now);
        match slice.choice {
            Choice::Server => {
                let is_free = scheduler.policy() == PolicyKind::Fair && !scheduler.is_contended();
                let leaves = is_free || scheduler.policy() == PolicyKind::Stock;
                let is_allowed = scheduler.grab().is_some() || leaves && with_budget().next().is_none();
                assert!(is_allowed, "the choice was left to the server without a reason");
            }
            Choice::Client(client, _) => {
                assert_eq!(scheduler.grab(), None, "under a grab the choice is the server's");
                assert!(ready().any(|id| id == client), "{client:?} is picked but idle or held back");
            }
        }
        match slice.choice {
            Choice::Server => {}
            Choice::Client(client, Mode::Reserved) => {
                let earliest = with_budget().map(|(deadline, _)| deadline).min();
                let state = self.has_budget(client).expect("a client picked as reserved has budget");
                assert_eq!(Some(state.deadline), earliest, "{client:?} does not have the earliest deadline");
                let budget_end = self.now.after(state.budget_left_ns as u64);
                assert!(slice.until <= budget_end, "the slice is longer than the budget: {slice:?}, {state:?}");
            }
            Choice::Client(client, Mode::BestEffort) => {
                assert_eq!(with_budget().next(), None, "best effort is picked while a reserved client has work");
                assert_ne!(scheduler.policy(), PolicyKind::Stock, "stock picks no client");
                // Between two turns, desktop clients wait until the other clients have been served.
                let must_wait = |id| scheduler.is_desktop_client(id) && scheduler.desktop_turn(self.now) > self.now;
                let higher = ready().find(|&id| !must_wait(id) && self.place(id) < self.place(client));
                assert_eq!(higher, None, "{client:?} is picked before this client of a better tier");
            }
        }
    }

    fn decide_and_serve(&mut self, length_ns: u64, requests: u32, still_ready: bool, index: usize) {
        self.replenish();
        let Some(slice) = self.decide() else { return };
        self.watch(&slice);
        let client = match slice.choice {
            Choice::Client(client, _) => client,
            Choice::Server => match self.servers_choice(index) {
                Some(client) => client,
                None => return,
            },
        };
        self.serve(client, length_ns, requests, still_ready);
    }

    fn watch(&mut self, slice: &Slice) {
        while let Some((client, rank)) = self.scheduler.next_to_watch(self.now) {
            assert!(self.is_connected(client) && !self.scheduler.is_ready(client), "{client:?} cannot arrive");
            assert!(self.scheduler.is_watched(client));
            assert_eq!(rank, self.scheduler.rank_on_arrival(client, self.now));
            assert_eq!(self.scheduler.grab(), None, "under a grab no arrival ends a slice: {slice:?}");
        }
        for client in all().filter(|&id| self.is_connected(id) && !self.scheduler.is_ready(id)) {
            let ends = slice.contest.ends_for(self.scheduler.rank_on_arrival(client, self.now));
            let is_reserved = self.has_budget(client).is_some();
            let matters = is_reserved && ends < slice.until.min(self.now.after(self.scheduler.parameters().slice_ns));
            assert!(!matters || self.scheduler.is_watched(client), "{client:?} would win but is not watched");
        }
    }

    fn servers_choice(&self, index: usize) -> Option<ClientId> {
        if let Some(holder) = self.scheduler.grab() {
            return Some(holder).filter(|&id| self.scheduler.is_ready(id));
        }
        let ready: Vec<ClientId> =
            all().filter(|&id| self.scheduler.is_ready(id) && !self.scheduler.is_held_back(id)).collect();
        ready.get(index % ready.len().max(1)).copied()
    }

    fn serve(&mut self, client: ClientId, length_ns: u64, requests: u32, still_ready: bool) {
        let before = self.scheduler.usage(client);
        let (start, end) = (self.now, self.now.after(length_ns));
        let bytes = u64::from(requests) * 16;
        self.scheduler
            .handle(end, Fact::Served(Service { requests, bytes, still_ready, ..Service::new(client, start, end) }));
        self.now = end;
        if let (Some(before), Some(after)) = (before, self.scheduler.usage(client)) {
            assert_eq!(after.server_time_ns, before.server_time_ns + length_ns);
            assert_eq!(after.requests, before.requests + u64::from(requests));
            assert!(after.reserved_time_ns <= after.server_time_ns);
        }
    }

    fn check(&self) {
        self.scheduler.verify();
        let limit_ppm = self.scheduler.parameters().max_utilization_ppm;
        let admitted_ppm = self.scheduler.admitted_utilization_ppm();
        assert!(admitted_ppm <= limit_ppm, "{admitted_ppm} are admitted, the limit is {limit_ppm}");
        assert_eq!(self.scheduler.client_count(), all().filter(|&id| self.is_connected(id)).count());
        let reservations = self.scheduler.reservations().count();
        assert_eq!(self.scheduler.reservation_count(), reservations);
        for client in all() {
            if let Some(state) = self.scheduler.reservation_in_use(client) {
                let most_ns = state.reservation.budget_ns as i64;
                assert!(state.budget_left_ns <= most_ns, "{client:?} has more than Q: {state:?}");
                assert_eq!(state.depleted, state.budget_left_ns <= 0, "{client:?}: {state:?}");
            }
            let watched = self.scheduler.is_watched(client);
            assert!(!watched || !self.scheduler.is_ready(client), "{client:?} has arrived and counts as watched");
        }
    }
}

/// The client that an operation concerns, if it concerns one.
fn client_of(op: Op) -> Option<ClientId> {
    match op {
        Op::ServeUnchosen { client, .. } => Some(client),
        Op::Tell(Fact::Connected { .. }) => None,
        Op::Tell(Fact::Grabbed { by }) => by,
        Op::Tell(fact) => fact.client(),
        _ => None,
    }
}

fn apply_and_check(server: &mut Server, op: Op) {
    let unknown = client_of(op).filter(|&client| !server.is_connected(client));
    let before = unknown.map(|_| format!("{:?}", server.scheduler));
    server.apply(op);
    server.check();
    if let (Some(client), Some(before)) = (unknown, before) {
        // Serving an unknown client ends the running slice, and a grab by an unknown client ends another client's grab.
        let may_end_something = matches!(op, Op::ServeUnchosen { .. } | Op::Tell(Fact::Grabbed { .. }));
        let after = format!("{:?}", server.scheduler);
        assert!(
            may_end_something || before == after,
            "{op:?} of {client:?}, which is not connected, changed\n{before}\nto\n{after}"
        );
        assert!(!server.scheduler.is_ready(client) && server.scheduler.grab() != Some(client));
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn any_sequence_of_operations_keeps_the_invariants((policy, ops) in sequence(200)) {
        report(|| {
            let mut server = Server::new(policy);
            for op in ops {
                apply_and_check(&mut server, op);
            }
        })?;
    }
}
