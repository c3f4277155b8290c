// SPDX-License-Identifier: MIT
//! The scheduler: reservations above any policy, one decision at a time.
//!
//! Each connected client is in exactly one place:
//!
//! | place | who | order |
//! |---|---|---|
//! | `reservations` | ready, with a reservation of its own or of its group ([`crate::reservations`]) | scheduling deadline, then what it used of the budget |
//! | `waiting` | ready, without reservation or with a soft one | SYNC priority, then the policy's key of its group, then its own ([`crate::waiting`]) |
//! | `desktop.ready` | the same, where the desktop rule holds for it ([`crate::desktop`]) | SYNC priority, then the time waited |
//! | `idle` | not ready, to be watched once somebody runs who could be cut short | how it would stand on arrival |
//! | none of them | not ready and watched at its present rank, or held back (depleted and hard, or paced) | - |
//!
//! A ready client with a soft reservation stands in `waiting` or `desktop.ready` besides, so that nothing is moved when the budget ends.
//! One that is paced ([`crate::pacing`]) is in `paced`, by the end of its hold, and ready or not it waits in no queue.
//! [`Scheduler::verify`] checks this.

mod control;
mod decide;
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
use crate::reservations::{Reservations, Stand};
use crate::waiting::Waiting;
use crate::{ClientId, Contest, Fact, GroupId, Holder, Mode, Outcome, Parameters, Rank, Supply, Time, Usage};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A slice longer than this makes others wait, so that idle clients are watched.
const LONG_SLICE_NS: u64 = 1_000_000;
/// A client whose last slice was one request, after which it waited for the answer, is expected to run at most this many
/// times as long. Clients whose arrival would end the slice only later than that are not watched: watching all of them woke the
/// server of a dozen such clients for eight thousand arrivals a second that ended nothing.
const LIKELY_TIMES: u64 = 2;
/// Watch idle clients for 100 ms after a long slice. Without long slices nobody is watched, which costs nothing.
const LONG_SLICE_MEMORY_NS: u64 = 100_000_000;

#[derive(Debug, Default)]
struct Client {
    facts: Facts,
    ready: bool,
    /// Since when it waits to be dispatched, while ready.
    waits_since: Time,
    idle_since: Time,
    role: Role,
    /// Its longest slice; 0: as long as the policy's.
    slice_us: u32,
    /// For whom a window manager works.
    works_for: Option<ClientId>,
    /// How long it was idle before it came, or for ever where it got input; 0 once it made work for a desktop client.
    rested_ns: u64,
    /// How long its next slice is at most, by its last one; at least 1, so that who wins at once is always watched.
    likely_ns: u64,
    /// Somebody watches its socket.
    watched: bool,
    grabbed_at: Option<Time>,
    /// An Expose that it has to answer.
    exposing: Option<Mark>,
    /// The cap of its group is used up.
    capped: bool,
    /// It uncovered others, and waits for them.
    paced: Option<Hold>,
    /// When its last hold ended.
    resumed: Time,
    usage: Usage,
}

impl Client {
    /// Where it stands as a member of a reservation.
    fn stand(&self) -> Stand {
        match self.paced {
            Some(_) => Stand::Nowhere,
            None if self.ready => Stand::Ready,
            None => Stand::Idle,
        }
    }
}

/// All clients, and who of them runs next.
#[derive(Debug)]
pub struct Scheduler {
    clients: Vec<Option<Client>>,
    connected: usize,
    policy: Box<dyn Policy>,
    parameters: Parameters,
    reservations: Reservations,
    waiting: Waiting,
    /// Weights of groups, where they were set.
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
    /// Clients that are watched.
    watched: usize,
    hogged: Option<Time>,
    blocking: Blocking,
    /// By how much the last slice overran; 0 where nothing was to end it.
    overran_ns: u64,
    reservation_count: usize,
    admitted_ppm: u32,
}

impl Scheduler {
    /// An empty server.
    pub fn new(policy: PolicyKind, parameters: Parameters) -> Self {
        Scheduler {
            clients: Vec::new(),
            connected: 0,
            policy: policy.build(&parameters),
            parameters,
            reservations: Reservations::new(),
            waiting: Waiting::new(),
            group_weights: Vec::new(),
            caps: Caps::default(),
            idle: Heap::new(),
            paced: Heap::new(),
            pacing: Pacing::default(),
            desktop: Desktop::new(),
            supply: Supply::default(),
            running: None,
            contest: Contest::of(Rank::LAST, Time(0)),
            until: Time::NEVER,
            grab: None,
            contended: true,
            watched: 0,
            hogged: None,
            blocking: Blocking::default(),
            overran_ns: 0,
            reservation_count: 0,
            admitted_ppm: 0,
        }
    }

    /// Takes a fact that happened at `now`.
    pub fn handle(&mut self, now: Time, fact: Fact) -> Outcome {
        match fact {
            Fact::Connected { client, descriptor } => self.connected(client, descriptor, now),
            Fact::Gone { client } => self.gone(client, now),
            Fact::Arrived { client } => self.arrived(client, now),
            Fact::Withdrawn { client } => self.withdrawn(client, now),
            Fact::Input { client } => self.input(client, now),
            Fact::Exposed { client, cause } => return self.exposed(client, cause, now),
            Fact::MadeWork { client } => return Outcome::of(self.made_work(client)),
            Fact::WorksFor { client, whom } => {
                let whom = Some(whom).filter(|&whom| self.client(whom).is_some());
                self.change(client, |record| record.works_for = whom);
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
                self.see_cap(client, now);
                self.see_reservation(client, now);
            }
            Fact::GroupCap { group, ppm } => self.set_group_cap(group, ppm, now),
            Fact::FixedPriority { client, priority } => {
                self.change_facts(client, now, |facts| facts.fixed_priority = priority);
            }
            Fact::Slice { client, us } => self.change(client, |record| record.slice_us = us),
            Fact::Role { client, role } => self.set_role(client, role, now),
            Fact::Reserve { holder, reservation } => return self.reserve(holder, reservation, now),
            Fact::Release { holder } => return Outcome::of(self.end_reservation(holder, now)),
        }
        Outcome::None
    }

    fn client(&self, client: ClientId) -> Option<&Client> {
        self.clients.get(client.slot())?.as_ref()
    }

    fn client_mut(&mut self, client: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(client.slot())?.as_mut()
    }

    fn change(&mut self, client: ClientId, change: impl FnOnce(&mut Client)) {
        if let Some(record) = self.client_mut(client) {
            change(record);
        }
    }

    /// Indices that may hold a client; does not borrow, so that clients can be changed on the way.
    fn ids(&self) -> impl Iterator<Item = ClientId> + use<> {
        (0..self.clients.len() as u16).map(ClientId)
    }

    /// Puts a client where it belongs by its present state.
    fn requeue(&mut self, client: ClientId, now: Time) {
        let Some(record) = self.client(client) else { return };
        let (ready, waits_since, is_desktop) = (record.ready, record.waits_since, self.is_desktop(client));
        let tier = Rank::tier_of(record.facts.sync_priority);
        let held_back = record.paced.is_some() || record.capped || self.has_hard(client);
        let stand = record.stand();
        self.reservations.place(client, stand, now);
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
            // Also where it is watched already: its rank may have changed, and its watcher is to be told.
            let rank = self.rank_by_itself(client);
            self.idle.set(client, rank);
        }
    }

    /// Puts a group where it belongs.
    fn settle(&mut self, group: usize) {
        let policy = &self.policy;
        self.waiting.settle(group, |first| policy.group_key(first));
    }

    /// Makes room for a client in its group.
    fn make_room(&mut self, client: ClientId) {
        let members = self.policy.members(client).unwrap_or(self.connected);
        self.waiting.join(client, self.policy.group(client), members);
    }

    /// It has arrived, or is gone.
    fn unwatch(&mut self, client: ClientId) {
        if let Some(record) = self.client_mut(client) {
            let was_watched = core::mem::take(&mut record.watched);
            self.watched -= usize::from(was_watched);
        }
    }

    /// For a new policy: its state of each client.
    fn rejoin(&mut self, now: Time) {
        // First all of them, since the numbers of the groups are new.
        self.waiting = Waiting::new();
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

    /// Whether the desktop rule holds for this client now.
    fn is_desktop(&self, client: ClientId) -> bool {
        self.client(client).is_some_and(|record| record.role.is_any())
            && self.desktop.is_on()
            && self.policy.favours_desktop()
    }

    /// Where a client stands in a contest without budget of a reservation.
    fn tier(&self, client: ClientId) -> i64 {
        let sync_priority = self.client(client).map_or(0, |record| record.facts.sync_priority);
        Rank::tier_of(sync_priority) - i64::from(self.is_desktop(client))
    }

    /// The desktop rule begins or ends for those that have a role.
    fn requeue_desktop(&mut self, now: Time) {
        for at in 0..self.desktop.members.len() {
            self.requeue(self.desktop.members[at], now);
        }
    }

    fn verify_reservation(&self, id: ClientId, record: &Client) {
        let has_one = |holder| self.reservations.get(holder).is_some();
        let shares = !record.role.is_any() && has_one(Holder::Group(record.facts.group));
        let is_member = has_one(Holder::Client(id)) || shares;
        let stand = is_member.then(|| record.stand());
        assert_eq!(self.reservations.stand_of(id), stand, "{id:?} with a reservation");
    }

    /// Panics unless every client is in its place; for tests.
    pub fn verify(&self) {
        self.waiting.check();
        self.desktop.ready.check();
        self.idle.check();
        self.paced.check();
        self.reservations.check();
        let queued = self.waiting.ids().chain(self.idle.ids()).chain(self.paced.ids()).chain(self.desktop.ready.ids());
        for id in queued {
            assert!(self.client(id).is_some(), "{id:?} is queued and not connected");
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
            let is_desktop = self.is_desktop(id);
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
        assert!(self.admitted_ppm <= self.parameters.max_utilization_ppm, "more is admitted than may be");
    }
}
