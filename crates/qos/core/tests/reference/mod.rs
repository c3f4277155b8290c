// SPDX-License-Identifier: MIT
//! The rules of the scheduler in their simplest form: all lists are searched completely, and nothing is queued or
//! computed ahead. This is slow, but easy to compare with the descriptions at the top of the sources.
//!
//! Among equal clients, the one with the lower id comes first.

mod budget;
mod decide;
mod desktop;
mod paced;
mod policy;
mod shared;

pub use budget::Budget;
use desktop::Desktop;
use paced::Paced;
use policy::{Defence, Rules, Standing};
use shared::SharedBudgets;
use std::collections::BTreeMap;
use xqos_core::{
    CAP_PERIOD_NS, ClientId, Fact, GroupId, Holder, Mode, Pacing, Parameters, PolicyKind, RESTED_NS, Reservation,
    ReservationKind, Role,
};

/// After a slice longer than this, idle clients are watched for `HOG_MEMORY_NS`.
const HOG_SLICE_NS: u64 = 1_000_000;
const HOG_MEMORY_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub ready: bool,
    pub budget: Option<Budget>,
    /// Its previous reservation.
    released: Option<Budget>,
    idle_since: u64,
    /// True if it was idle long enough before it became ready, or received input, and has caused no desktop work since.
    is_rested: bool,
    /// The time of its arrival or of the end of its last slice.
    waits_since: u64,
    /// The length of its last slice, if that was a single request after which the client became idle.
    asked_for_ns: Option<u64>,
}

impl Client {
    pub fn has_budget(&self) -> bool {
        self.budget.is_some_and(|budget| !budget.depleted)
    }

    fn is_depleted(&self) -> bool {
        self.budget.is_some_and(|budget| budget.depleted)
    }

    fn is_held_back(&self) -> bool {
        self.is_depleted() && self.is_hard()
    }

    fn is_hard(&self) -> bool {
        self.budget.is_some_and(|budget| budget.of.kind.is_hard())
    }
}

/// The running client as it was when it was chosen.
#[derive(Clone, Copy, Debug)]
enum Running {
    /// The server's choice; no arrival can interrupt a grab.
    Server {
        grabbed: bool,
    },
    Reserved {
        client: ClientId,
        deadline: u64,
    },
    BestEffort {
        client: ClientId,
        standing: Standing,
        defence: Defence,
    },
    /// A compositor or window manager, with its position.
    Desktop {
        client: ClientId,
        place: (i64, bool),
    },
}

/// The choice, and the end of the budget or of the policy's slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// `None`: the server chooses.
    pub client: Option<(ClientId, Mode)>,
    pub end: u64,
    pub requests: u32,
    pub bytes: u32,
}

#[derive(Debug)]
pub struct Reference {
    pub clients: BTreeMap<ClientId, Client>,
    pub grab: Option<ClientId>,
    contended: bool,
    rules: Rules,
    parameters: Parameters,
    running: Option<(u64, Running)>,
    hogged: Option<u64>,
    pub paced: Paced,
    pub desktop: Desktop,
    /// The caps of groups.
    caps: BTreeMap<GroupId, Budget>,
    pub shared: SharedBudgets,
}

impl Reference {
    pub fn new(policy: PolicyKind, parameters: Parameters) -> Self {
        let rules = Rules::new(policy, parameters);
        Reference {
            clients: BTreeMap::new(),
            grab: None,
            contended: true,
            rules,
            parameters,
            running: None,
            hogged: None,
            paced: Paced::default(),
            desktop: Desktop::default(),
            caps: BTreeMap::new(),
            shared: SharedBudgets::default(),
        }
    }

    /// Applies a fact that has no method of its own here. Returns true if the outcome reports a change.
    pub fn handle(&mut self, now: u64, fact: Fact) -> bool {
        let changed = self.take(now, fact);
        self.update_groups(now);
        changed
    }

    /// Updates which clients are members of which reservation, and whether a group has arrived.
    fn update_groups(&mut self, now: u64) {
        let ids: Vec<ClientId> = self.clients.keys().copied().collect();
        for id in ids {
            let may_share = SharedBudgets::may_share(&self.clients[&id], self.desktop.roles.contains_key(&id));
            let group = Some(self.rules.standings[&id].group).filter(|_| may_share);
            if self.shared.update_member(id, group) {
                // The client restarts in the policy, as after the end of its own reservation.
                self.rules.enter(id, 0);
            }
        }
        let (clients, paced) = (&self.clients, &self.paced);
        self.shared.update_arrivals(now, |id| clients[&id].ready && !paced.holds(id));
    }

    fn take(&mut self, now: u64, fact: Fact) -> bool {
        match fact {
            Fact::Connected { client, descriptor } => self.connected(client, descriptor, now),
            Fact::Disconnected { client } => self.gone(client, now),
            Fact::Arrived { client } => self.arrived(client, now),
            Fact::Withdrawn { client } => self.withdrawn(client, now),
            Fact::Input { client } => self.noticed(client, true),
            Fact::Exposed { client, cause } => {
                self.noticed(client, false);
                return self.exposed(client, cause, now);
            }
            Fact::CausedWork { client } => return self.caused_work(client),
            Fact::WorksFor { client, payer } => self.works_for(client, payer),
            Fact::Grabbed { by } => self.grabbed(by),
            Fact::Policy(policy) => self.set_policy(policy),
            Fact::Parameters(parameters) => self.set_parameters(parameters),
            Fact::Pacing(pacing) => self.set_pacing(pacing, now),
            Fact::DesktopShare { ppm } => self.set_desktop_share(ppm),
            Fact::Contention { is_on } => self.contended = is_on,
            Fact::SyncPriority { client, priority } => self.set_sync_priority(client, priority),
            Fact::Weight { holder: Holder::Client(client), weight } => self.set_weight(client, weight),
            Fact::Group { client, group } => self.set_group(client, group),
            Fact::Weight { holder: Holder::Group(group), weight } => self.rules.set_group_weight(group, weight),
            Fact::GroupCap { group, ppm } => self.set_cap(group, ppm, now),
            Fact::FixedPriority { client, priority } => self.set_fixed_priority(client, priority),
            Fact::Slice { client, us } => self.set_slice(client, us),
            Fact::Role { client, role } => self.set_role(client, role),
            Fact::Release { holder: Holder::Client(client) } => return self.cleared(client),
            Fact::Release { holder: Holder::Group(group) } => return self.released_group(group),
            Fact::Overran { .. } | Fact::Supply(_) => {}
            Fact::Served(_) | Fact::Replenish | Fact::Reserve { .. } => {
                panic!("this fact has a method of its own: {fact:?}")
            }
        }
        false
    }

    // Facts.

    fn connected(&mut self, id: ClientId, descriptor: u32, now: u64) {
        self.gone(id, now);
        let client = Client {
            ready: false,
            budget: None,
            released: None,
            is_rested: false,
            idle_since: now,
            waits_since: now,
            asked_for_ns: None,
        };
        self.clients.insert(id, client);
        self.rules.join(id, descriptor);
    }

    fn gone(&mut self, id: ClientId, now: u64) {
        self.clients.remove(&id);
        self.shared.update_member(id, None);
        self.desktop.roles.remove(&id);
        self.desktop.work.retain(|&manager, &mut payer| manager != id && payer != id);
        self.paced.gone(id, now);
        self.rules.leave(id);
        self.grab = self.grab.filter(|&holder| holder != id);
    }

    fn arrived(&mut self, id: ClientId, now: u64) {
        let Some(client) = self.clients.get_mut(&id).filter(|client| !client.ready) else { return };
        (client.ready, client.waits_since) = (true, now);
        client.is_rested |= now - client.idle_since >= RESTED_NS;
        client.budget = client.budget.map(|budget| budget.at_arrival(now));
        let idle_ns = now - client.idle_since;
        self.shared.arrived(id);
        self.rules.enter(id, idle_ns);
    }

    fn withdrawn(&mut self, id: ClientId, now: u64) {
        if let Some(client) = self.clients.get_mut(&id).filter(|client| client.ready) {
            (client.ready, client.idle_since) = (false, now);
        }
    }

    fn noticed(&mut self, id: ClientId, is_input: bool) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.is_rested |= is_input;
            self.rules.noticed(id, is_input);
        }
    }

    fn caused_work(&mut self, id: ClientId) -> bool {
        if self.is_servers_choice() {
            return false;
        }
        let is_rested = |client: &&mut Client| client.is_rested && !self.desktop.roles.contains_key(&id);
        let Some(client) = self.clients.get_mut(&id).filter(is_rested) else { return false };
        client.is_rested = false;
        self.desktop.called();
        true
    }

    fn works_for(&mut self, id: ClientId, payer: ClientId) {
        if self.clients.contains_key(&id) {
            self.desktop.work.remove(&id);
            if self.clients.contains_key(&payer) {
                self.desktop.work.insert(id, payer);
            }
        }
    }

    fn exposed(&mut self, id: ClientId, cause: Option<ClientId>, now: u64) -> bool {
        let is_known = self.clients.contains_key(&id);
        let is_free = |id: &ClientId| self.clients.get(id).is_some_and(|client| client.budget.is_none());
        let cause = cause.filter(|cause| is_free(cause) && self.shared.group_of(*cause).is_none());
        is_known && self.paced.exposed(id, cause, now)
    }

    fn set_pacing(&mut self, pacing: Pacing, now: u64) {
        self.paced.set(pacing, now);
    }

    fn grabbed(&mut self, by: Option<ClientId>) {
        self.grab = by.filter(|id| self.clients.contains_key(id));
    }

    pub fn served(&mut self, id: ClientId, start: u64, end: u64, work: (u32, u64), still_ready: bool) {
        self.serve(id, start, end, work, still_ready);
        self.update_groups(end);
    }

    fn serve(&mut self, id: ClientId, start: u64, end: u64, (requests, bytes): (u32, u64), still_ready: bool) {
        let running = self.running.take();
        let is_servers_choice = self.is_servers_choice();
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.waits_since = end;
        client.asked_for_ns = (requests == 1 && !still_ready).then_some(end - start);
        if !still_ready {
            (client.ready, client.idle_since, client.is_rested) = (false, end, false);
            if requests > 0 {
                self.paced.answered(id, end);
            }
        }
        match running {
            Some((_, Running::Reserved { client: picked, .. })) if picked == id => {
                let standing = self.rules.standings[&id];
                let has_cap = self.caps.contains_key(&standing.group);
                if let Some(budget) = client.budget.as_mut() {
                    *budget = budget.charged(end - start, end, has_cap);
                } else {
                    self.shared.served(id, (end - start, end), standing.weight, has_cap);
                }
            }
            _ if self.is_desktop(id) => {
                if let Some(payer) = self.desktop.paid_by(id).filter(|&payer| !self.is_desktop(payer)) {
                    self.rules.pay(payer, end - start, 0, 0);
                }
            }
            picked => {
                if picked.is_none_or(|(_, picked)| matches!(picked, Running::Server { .. })) && is_servers_choice {
                    self.rules.run(id, 1, start);
                }
                self.rules.pay(id, end - start, requests, bytes);
            }
        }
        let best_effort = !matches!(running, Some((_, Running::Reserved { client, .. })) if client == id);
        if best_effort && !is_servers_choice && self.is_desktop(id) {
            let others_wait = self.others_wait();
            self.desktop.served(id, start, end, others_wait);
        }
        if end - start > HOG_SLICE_NS {
            self.hogged = Some(end);
        }
        if let Some(cap) = self.caps.get_mut(&self.rules.standings[&id].group) {
            if !cap.depleted && start >= cap.deadline {
                *cap = Budget::fresh(cap.of, start);
            }
            let is_held_back_by_it = best_effort && !self.desktop.roles.contains_key(&id);
            let half_ns = i128::from(cap.of.budget_ns / 2);
            let most_ns = if is_held_back_by_it { i128::MAX } else { (cap.left_ns - half_ns).max(0) };
            cap.left_ns -= i128::from(end - start).min(most_ns);
            cap.depleted = cap.left_ns <= 0;
        }
    }

    // Settings.

    fn set_role(&mut self, id: ClientId, role: Role) {
        if !self.clients.contains_key(&id) {
            return;
        }
        let had_one = self.desktop.roles.remove(&id).is_some();
        if role.is_any() {
            self.desktop.roles.insert(id, role);
        }
        if had_one != role.is_any() && self.rules.kind == PolicyKind::Fair {
            self.rules.enter(id, 0);
        }
    }

    fn set_desktop_share(&mut self, share_ppm: u32) {
        let was_on = self.desktop.share_ppm > 0;
        self.desktop.share_ppm = share_ppm;
        if was_on != (share_ppm > 0) && self.rules.kind == PolicyKind::Fair {
            for &id in self.desktop.roles.keys() {
                self.rules.enter(id, 0);
            }
        }
    }

    fn is_desktop(&self, id: ClientId) -> bool {
        self.desktop.roles.contains_key(&id) && self.desktop.share_ppm > 0 && self.rules.kind == PolicyKind::Fair
    }

    /// The order: highest SYNC priority first, then compositors and window managers before other clients.
    fn place(&self, id: ClientId) -> (i64, bool) {
        (-i64::from(self.rules.standings[&id].sync_priority), !self.is_desktop(id))
    }

    /// True under `stock`, and under `fair` without contention and caps.
    fn is_servers_choice(&self) -> bool {
        let is_free = self.rules.kind == PolicyKind::Fair && !self.contended && self.caps.is_empty();
        is_free || self.rules.kind == PolicyKind::Stock
    }

    /// The time until which the server waits for this client's next request before it serves others.
    pub fn next_request_of(&self, id: ClientId, now: u64) -> Option<u64> {
        let is_first = |(&id, client): (&ClientId, &Client)| {
            client.ready && !self.is_out(id) && (self.has_budget(id) || self.is_desktop(id))
        };
        let is_free = self.grab.is_none() && !self.clients.iter().any(is_first);
        let is_idle = self.clients.get(&id).is_some_and(|client| !client.ready);
        let waits = is_free && is_idle && !self.is_servers_choice() && self.is_desktop(id) && self.others_wait();
        self.desktop.waits_until(now).filter(|_| waits)
    }

    /// True if a client without a role is ready and not held back.
    fn others_wait(&self) -> bool {
        self.clients.iter().any(|(id, client)| {
            let is_member = self.desktop.roles.contains_key(id);
            client.ready && !is_member && !self.is_out(*id)
        })
    }

    /// True if the client is held back: depleted and hard, paced, or in a group whose cap is used up.
    fn is_out(&self, id: ClientId) -> bool {
        let client = &self.clients[&id];
        let is_depleted = match self.shared.budget_of(id) {
            Some(shared) => shared.depleted && shared.of.kind.is_hard(),
            None => client.is_held_back(),
        };
        is_depleted || self.paced.holds(id) || !self.has_budget(id) && self.is_capped(id)
    }

    /// True if the client's own reservation or its group's has budget.
    fn has_budget(&self, id: ClientId) -> bool {
        self.clients[&id].has_budget() || self.shared.budget_of(id).is_some_and(|shared| !shared.depleted)
    }

    fn is_capped(&self, id: ClientId) -> bool {
        let cap = self.caps.get(&self.rules.standings[&id].group);
        cap.is_some_and(|cap| cap.depleted) && !self.desktop.roles.contains_key(&id)
    }

    fn set_cap(&mut self, group: GroupId, ppm: u32, now: u64) {
        self.caps.remove(&group);
        if ppm > 0 {
            let budget_ns = (CAP_PERIOD_NS * u64::from(ppm) / 1_000_000).max(1);
            let of = Reservation { budget_ns, period_ns: CAP_PERIOD_NS, kind: ReservationKind::Hard };
            self.caps.insert(group, Budget::fresh(of, now));
        }
    }

    fn set_policy(&mut self, policy: PolicyKind) {
        self.rules = self.rules.replaced_by(policy, self.parameters);
    }

    fn set_parameters(&mut self, parameters: Parameters) {
        let for_policy = |p: Parameters| (p.slice_ns, p.timer_interval_ns, p.maximum_slice_ns);
        let begins_anew = for_policy(parameters) != for_policy(self.parameters);
        self.parameters = parameters;
        if begins_anew {
            self.set_policy(self.rules.kind);
        }
    }

    fn set_sync_priority(&mut self, id: ClientId, priority: i32) {
        if self.clients.contains_key(&id) {
            self.rules.set_sync_priority(id, priority);
        }
    }

    fn set_group(&mut self, id: ClientId, group: GroupId) {
        if self.clients.contains_key(&id) {
            self.rules.set_group(id, group);
        }
    }

    fn set_weight(&mut self, id: ClientId, weight: u32) {
        if let Some(standing) = self.rules.standings.get_mut(&id) {
            standing.weight = weight.max(1);
        }
    }

    fn set_slice(&mut self, id: ClientId, us: u32) {
        if let Some(standing) = self.rules.standings.get_mut(&id) {
            standing.slice_us = us;
        }
    }

    fn set_fixed_priority(&mut self, id: ClientId, priority: i32) {
        if let Some(standing) = self.rules.standings.get_mut(&id) {
            standing.fixed_priority = priority;
        }
    }

    /// Sets a reservation that was admitted, in place of the previous one.
    pub fn reserved(&mut self, holder: Holder, of: Reservation, now: u64) {
        match holder {
            Holder::Client(id) => self.reserved_for(id, of, now),
            Holder::Group(group) => self.shared.set(group, of, now, self.longest_period_ns(of)),
        }
        self.update_groups(now);
    }

    /// The members enter the policy as if they had been idle.
    fn released_group(&mut self, group: GroupId) -> bool {
        let members: Vec<ClientId> =
            self.clients.keys().copied().filter(|&id| self.shared.group_of(id) == Some(group)).collect();
        members.into_iter().for_each(|id| self.rules.enter(id, 0));
        self.shared.end(group)
    }

    /// The longest period of all reservations and the new one.
    fn longest_period_ns(&self, coming: Reservation) -> u64 {
        let budgets = self.clients.values().filter_map(|client| client.budget).chain(self.shared.budgets());
        budgets.map(|budget| budget.of.period_ns).chain([coming.period_ns]).max().unwrap_or(0)
    }

    fn reserved_for(&mut self, id: ClientId, of: Reservation, now: u64) {
        self.cleared(id);
        let longest_ns = self.longest_period_ns(of);
        let client = self.clients.get_mut(&id).expect("only connected clients are admitted");
        client.budget = Some(Budget::replaced_by(client.released, of, now, longest_ns));
        self.paced.end(id, now);
    }

    /// Ends a reservation. Returns true if there was one.
    fn cleared(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.get_mut(&id).filter(|client| client.budget.is_some()) else { return false };
        client.released = client.budget.take();
        // The client restarts as if it had been idle, so no time is saved up while a reservation pays.
        self.rules.enter(id, 0);
        true
    }

    // Decisions.

    /// The clients and groups that have budget again.
    pub fn replenish(&mut self, now: u64) -> (Vec<ClientId>, Vec<GroupId>) {
        let mut told = self.paced.release_due(now);
        // A client that got a reservation while it was paced counts as arriving now.
        for id in &told {
            let client = self.clients.get_mut(id).filter(|client| client.ready);
            if let Some(budget) = client.and_then(|client| client.budget.as_mut()) {
                *budget = budget.at_arrival(now);
            }
        }
        self.update_groups(now);
        let capped: Vec<ClientId> = self.clients.keys().copied().filter(|&id| self.is_capped(id)).collect();
        self.caps.values_mut().for_each(|cap| *cap = cap.replenished(now));
        told.extend(capped.into_iter().filter(|&id| !self.is_capped(id)));
        for (&id, client) in &mut self.clients {
            let Some(before) = client.budget else { continue };
            client.budget = Some(before.replenished(now));
            if before.depleted && client.has_budget() {
                told.push(id);
            }
        }
        told.sort();
        (told, self.shared.replenish(now))
    }
}
