// SPDX-License-Identifier: MIT
//! The scheduler: one decision at a time, with reservations above any policy.
//!
//! Each connected client is in one of these places:
//!
//! | place | clients | order |
//! |---|---|---|
//! | `reservations` | ready, with a reservation (its own or its group's) | scheduling deadline, then budget used |
//! | `waiting` | ready, with a soft reservation or none | SYNC priority, the policy's key of its group, its own key |
//! | `desktop.ready` | as in `waiting`, if the desktop rule applies | SYNC priority, then time waited |
//! | `idle` | not ready; to be watched once it could end a slice early | rank on arrival |
//! | none | not ready and watched at its present rank, or held back (depleted and hard, or paced) | - |
//!
//! See [`crate::reservations`], [`crate::waiting`] and [`crate::desktop`]. A ready client with a soft reservation is
//! also in `waiting` or `desktop.ready`, so nothing moves when the budget ends. A paced client ([`crate::pacing`]) is
//! in `paced`, ordered by the end of its hold; whether ready or not, it does not wait for service in any queue.
//! [`Scheduler::verify`] checks this.

mod control;
mod decide;
mod dormant;
mod events;
mod snapshot;
mod view;

use crate::admission;
use crate::blocking::Blocking;
use crate::caps::Caps;
use crate::desktop::{Desktop, Role};
use crate::heap::Heap;
use crate::pacing::{Hold, Mark, Pacing};
use crate::policy::{Facts, Policy, PolicyKind};
use crate::reservations::{MemberList, Reservations};
use crate::waiting::Waiting;
use crate::{
    ClientId, Contest, Fact, FactOutcome, GroupId, Holder, Mode, Parameters, Rank, Service, Supply, Time, Usage,
};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// After a slice longer than this, idle clients are watched, because they might have to wait.
const LONG_SLICE_NS: u64 = 1_000_000;
/// A client that issued one request and waited for the reply is expected to run at most this many times as long as its
/// last slice. Clients whose arrival could end the slice only after that are not watched. With a dozen synchronous
/// clients, watching all idle clients caused 8000 useless wakeups per second.
const EXPECTED_FACTOR: u64 = 2;
/// Idle clients are watched for 100 ms after a long slice. Without long slices, watching would only cost time.
const LONG_SLICE_MEMORY_NS: u64 = 100_000_000;

#[derive(Debug, Default)]
struct ClientRecord {
    facts: Facts,
    ready: bool,
    /// The beginning of its wait for service; valid while the client is ready.
    waits_since: Time,
    idle_since: Time,
    role: Role,
    /// The maximum length of its slices; 0: that of the policy.
    slice_us: u32,
    works_for: Option<ClientId>,
    /// How long the client was idle before it became ready; infinite after input; 0 once it has caused work for a
    /// desktop client.
    rested_ns: u64,
    /// The expected maximum length of its next slice; at least 1, so that an arrival that wins immediately is always
    /// watched.
    expected_ns: u64,
    watched: bool,
    grabbed_at: Option<Time>,
    exposing: Option<Mark>,
    /// The cap of its group is used up.
    capped: bool,
    /// It uncovered other clients and waits for them.
    paced: Option<Hold>,
    /// The end of its last hold.
    resumed: Time,
    /// It was served in dormancy ([`dormant`]), for this time without paying.
    is_unsettled: bool,
    unpaid_ns: u64,
    usage: Usage,
}

impl ClientRecord {
    /// Accounts for a service, for which the client had waited since `since`.
    fn account(&mut self, service: &Service, since: Time, mode: Mode) {
        self.usage.waited(service.start.since(since));
        self.usage.served(service, mode);
        let length_ns = service.end.since(service.start);
        let is_synchronous = service.requests == 1 && !service.still_ready;
        self.expected_ns = if is_synchronous { length_ns.saturating_mul(EXPECTED_FACTOR).max(1) } else { u64::MAX };
        if !service.still_ready {
            (self.ready, self.idle_since, self.rested_ns) = (false, service.end, 0);
        }
    }

    fn member_list(&self) -> MemberList {
        match self.paced {
            Some(_) => MemberList::Neither,
            None if self.ready => MemberList::Ready,
            None => MemberList::Idle,
        }
    }
}

/// The clients of a server, and the choice of the next one to run.
#[derive(Debug)]
pub struct Scheduler {
    clients: Vec<Option<ClientRecord>>,
    connected: usize,
    policy: Box<dyn Policy>,
    parameters: Parameters,
    reservations: Reservations,
    waiting: Waiting,
    group_weights: Vec<(GroupId, u32)>,
    caps: Caps,
    idle: Heap<Rank>,
    paced: Heap<Time>,
    pacing: Pacing,
    desktop: Desktop,
    supply: Supply,
    running: Option<(ClientId, Mode)>,
    contest: Contest,
    until: Time,
    grab: Option<ClientId>,
    contended: bool,
    watched: usize,
    last_long_slice: Option<Time>,
    blocking: Blocking,
    /// The overrun of the last slice; 0 if it ended in time.
    overran_ns: u64,
    reservation_count: usize,
    admitted_ppm: u32,
    /// The clients served in dormancy, each once.
    unsettled: Vec<ClientId>,
}

impl Scheduler {
    /// The scheduler of a server without clients.
    pub fn new(policy: PolicyKind, parameters: Parameters) -> Self {
        Scheduler {
            clients: Vec::new(),
            connected: 0,
            policy: policy.build(&parameters),
            parameters,
            reservations: Reservations::default(),
            waiting: Waiting::default(),
            group_weights: Vec::new(),
            caps: Caps::default(),
            idle: Heap::default(),
            paced: Heap::default(),
            pacing: Pacing::default(),
            desktop: Desktop::new(),
            supply: Supply::default(),
            running: None,
            contest: Contest::new(Rank::LAST, Time(0)),
            until: Time::NEVER,
            grab: None,
            contended: true,
            watched: 0,
            last_long_slice: None,
            blocking: Blocking::default(),
            overran_ns: 0,
            reservation_count: 0,
            admitted_ppm: 0,
            unsettled: Vec::new(),
        }
    }

    pub fn handle(&mut self, now: Time, fact: Fact) -> FactOutcome {
        match fact {
            Fact::Connected { client, descriptor } => self.connected(client, descriptor, now),
            Fact::Disconnected { client } => self.gone(client, now),
            Fact::Arrived { client } => self.arrived(client, now),
            Fact::Withdrawn { client } => self.withdrawn(client, now),
            Fact::Input { client } => self.input(client, now),
            Fact::Exposed { client, cause } => return self.exposed(client, cause, now),
            Fact::CausedWork { client } => return FactOutcome::from_change(self.caused_work(client)),
            Fact::WorksFor { client, payer } => {
                let payer = Some(payer).filter(|&payer| self.client(payer).is_some());
                self.change(client, |record| record.works_for = payer);
            }
            Fact::Grabbed { by } => self.grabbed(by, now),
            Fact::Overran { ns } => self.overran_ns = ns,
            Fact::Served(service) => self.served(&service),
            Fact::Replenish => return self.replenish(now),
            Fact::Policy(kind) => self.set_policy(kind, now),
            Fact::Parameters(parameters) => self.set_parameters(parameters, now),
            Fact::Pacing(pacing) => self.set_pacing(pacing, now),
            Fact::Supply(supply) => self.supply = supply,
            Fact::DesktopShare { ppm } => self.set_desktop_share(ppm, now),
            Fact::Contention { is_on } => self.contended = is_on,
            Fact::SyncPriority { client, priority } => {
                self.change_facts(client, now, |facts| facts.sync_priority = priority);
            }
            Fact::Weight { holder: Holder::Client(client), weight } => {
                self.change_facts(client, now, |facts| facts.weight = weight.max(1));
            }
            Fact::Weight { holder: Holder::Group(group), weight } => self.set_group_weight(group, weight, now),
            Fact::Group { client, group } => {
                let weight = self.group_weight(group);
                self.change_facts(client, now, |facts| (facts.group, facts.group_weight) = (group, weight));
                self.update_cap(client, now);
                self.update_membership(client, now);
            }
            Fact::GroupCap { group, ppm } => self.set_group_cap(group, ppm, now),
            Fact::FixedPriority { client, priority } => {
                self.change_facts(client, now, |facts| facts.fixed_priority = priority);
            }
            Fact::Slice { client, us } => self.change(client, |record| record.slice_us = us),
            Fact::Role { client, role } => self.set_role(client, role, now),
            Fact::Reserve { holder, reservation } => return self.reserve(holder, reservation, now),
            Fact::Release { holder } => return FactOutcome::from_change(self.end_reservation(holder, now)),
        }
        FactOutcome::None
    }

    fn client(&self, client: ClientId) -> Option<&ClientRecord> {
        self.clients.get(client.slot())?.as_ref()
    }

    fn client_mut(&mut self, client: ClientId) -> Option<&mut ClientRecord> {
        self.clients.get_mut(client.slot())?.as_mut()
    }

    fn change(&mut self, client: ClientId, change: impl FnOnce(&mut ClientRecord)) {
        if let Some(record) = self.client_mut(client) {
            change(record);
        }
    }

    /// All indices that may hold a client. The iterator borrows nothing, so callers can change clients.
    fn ids(&self) -> impl Iterator<Item = ClientId> + use<> {
        (0..self.clients.len() as u16).map(ClientId)
    }

    /// Moves a client to the queues that its present state requires.
    fn requeue(&mut self, client: ClientId, now: Time) {
        let Some(record) = self.client(client) else { return };
        let (ready, waits_since, is_desktop) = (record.ready, record.waits_since, self.is_desktop_client(client));
        let tier = Rank::tier_of(record.facts.sync_priority);
        let held_back = record.paced.is_some() || record.capped || self.has_hard(client);
        let list = record.member_list();
        self.reservations.place(client, list, now);
        let is_waiting = ready && !held_back;
        let group = self.policy.group(client);
        if is_waiting && !is_desktop {
            self.waiting.set(client, group, (tier, self.policy.key(client)));
        } else {
            self.waiting.remove(client);
        }
        self.settle(group);
        if is_waiting && is_desktop {
            self.desktop.ready.set(client, (tier, waits_since));
        } else {
            self.desktop.ready.remove(client);
        }
        if ready {
            self.idle.remove(client);
        } else {
            // Watched clients are included, because the watcher has to learn of a changed rank.
            let rank = self.rank_by_itself(client);
            self.idle.set(client, rank);
        }
    }

    fn settle(&mut self, group: usize) {
        let policy = &self.policy;
        self.waiting.settle(group, |first| policy.group_key(first));
    }

    fn make_room(&mut self, client: ClientId) {
        let members = self.policy.members(client).unwrap_or(self.connected);
        self.waiting.join(client, self.policy.group(client), members);
    }

    /// Marks a client as not watched, because it became ready or disconnected.
    fn unwatch(&mut self, client: ClientId) {
        if let Some(record) = self.client_mut(client) {
            let was_watched = core::mem::take(&mut record.watched);
            self.watched -= usize::from(was_watched);
        }
    }

    /// Registers every client with a new policy.
    fn rejoin(&mut self, now: Time) {
        // All clients have to join first, because the groups get new numbers.
        self.waiting = Waiting::default();
        for client in self.ids() {
            let Some(facts) = self.client(client).map(|record| record.facts) else { continue };
            self.policy.join(client, &facts);
            self.make_room(client);
        }
        self.ids().for_each(|client| self.requeue(client, now));
    }

    fn change_facts(&mut self, client: ClientId, now: Time, change: impl FnOnce(&mut Facts)) {
        let Some(record) = self.client_mut(client) else { return };
        change(&mut record.facts);
        let facts = record.facts;
        let group = self.policy.group(client);
        self.waiting.remove(client);
        self.policy.changed(client, &facts);
        self.settle(group);
        self.make_room(client);
        self.requeue(client, now);
    }

    fn count_reservations(&mut self) {
        self.reservation_count = self.reservations().count();
        let sum = self.reservations().map(|(_, reservation)| admission::utilization_ppm(reservation));
        self.admitted_ppm = sum.fold(0, u32::saturating_add);
    }

    /// True if the desktop rule applies to this client now.
    pub fn is_desktop_client(&self, client: ClientId) -> bool {
        self.client(client).is_some_and(|record| record.role.is_any())
            && self.desktop.is_on()
            && self.policy.favours_desktop()
    }

    fn tier(&self, client: ClientId) -> i64 {
        let sync_priority = self.client(client).map_or(0, |record| record.facts.sync_priority);
        Rank::tier_of(sync_priority) - i64::from(self.is_desktop_client(client))
    }

    /// Requeues all clients with a role, after the desktop rule was switched on or off.
    fn requeue_desktop(&mut self, now: Time) {
        for at in 0..self.desktop.members.len() {
            self.requeue(self.desktop.members[at], now);
        }
    }

    fn verify_reservation(&self, id: ClientId, record: &ClientRecord) {
        let has_one = |holder| self.reservations.get(holder).is_some();
        let shares = !record.role.is_any() && has_one(Holder::Group(record.facts.group));
        let is_member = has_one(Holder::Client(id)) || shares;
        let list = is_member.then(|| record.member_list());
        assert_eq!(self.reservations.list_of(id), list, "{id:?} with a reservation");
    }

    /// Panics unless every client is in the places listed at the top of this file; for tests.
    pub fn verify(&self) {
        self.waiting.check();
        self.desktop.ready.check();
        self.idle.check();
        self.paced.check();
        self.reservations.check();
        let queued = self.waiting.ids().chain(self.idle.ids()).chain(self.paced.ids()).chain(self.desktop.ready.ids());
        for id in queued {
            assert!(self.client(id).is_some(), "{id:?} is queued but not connected");
        }
        assert_eq!(self.clients.iter().flatten().count(), self.connected);
        assert_eq!(self.clients.iter().flatten().filter(|record| record.watched).count(), self.watched);
        for (slot, record) in self.clients.iter().enumerate() {
            let (Some(record), id) = (record, ClientId(slot as u16)) else { continue };
            let paced = record.paced.is_some();
            assert_eq!(self.paced.contains(id), paced, "{id:?} paced");
            let capped = self.caps.is_used_up(record.facts.group) && !record.role.is_any();
            assert_eq!(record.capped, capped, "{id:?} capped");
            self.verify_reservation(id, record);
            let waits = record.ready && !paced && !record.capped && !self.has_hard(id);
            let is_desktop = self.is_desktop_client(id);
            assert_eq!(self.waiting.contains(id), waits && !is_desktop, "{id:?} waiting");
            assert_eq!(self.desktop.ready.contains(id), waits && is_desktop, "{id:?} waiting, desktop");
            assert!(!(record.ready && record.watched), "{id:?} has arrived and is watched");
            assert!(!(record.ready && self.idle.contains(id)), "{id:?} idle");
            assert!(record.ready || record.watched || self.idle.contains(id), "{id:?} idle");
            assert_eq!(self.desktop.members.contains(&id), record.role.is_any(), "{id:?} has a role");
            if let Some(state) = self.reservation(id) {
                assert_eq!(state.budget_left_ns > 0, !state.depleted, "{id:?} budget and depletion");
                assert!(state.budget_left_ns <= state.reservation.budget_ns as i64, "{id:?} has more than Q");
            }
        }
        assert!(self.admitted_ppm <= self.parameters.max_utilization_ppm, "the admitted utilization exceeds the limit");
    }
}
