//! The rules of the scheduler, written as plainly as they can be: lists that are searched from end to end, no queues,
//! nothing computed ahead. Slow, and easy to compare with the essays at the top of the sources.
//!
//! Where two clients stand equal, the lower id is first.

mod desktop;
mod paced;
mod policy;

use desktop::Desktop;
use paced::Paced;
use policy::{Rules, Standing};
use std::collections::BTreeMap;
use xqos_core::{ClientId, Fact, Mode, Pacing, Parameters, PolicyKind, RESTED_NS, Reservation, Role};

/// A slice longer than this is a hog's, and idle clients are watched for so long after it.
const HOG_SLICE_NS: u64 = 1_000_000;
const HOG_MEMORY_NS: u64 = 100_000_000;

/// A reservation as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub of: Reservation,
    pub left_ns: i128,
    pub deadline: u64,
    pub depleted: bool,
}

impl Budget {
    fn fresh(of: Reservation, now: u64) -> Self {
        Budget { of, left_ns: i128::from(of.budget_ns), deadline: now + of.period_ns, depleted: false }
    }

    /// What an arrival makes of it: q >= (d - t) Q/T, or d <= t, gives a fresh one.
    fn at_arrival(self, now: u64) -> Self {
        let left_to_deadline = i128::from(self.deadline) - i128::from(now);
        let covers = self.left_ns * i128::from(self.of.period_ns) >= left_to_deadline * i128::from(self.of.budget_ns);
        let is_renewed = !self.depleted && (left_to_deadline <= 0 || covers);
        if is_renewed { Budget::fresh(self.of, now) } else { self }
    }

    /// By how much its client is ahead of its bandwidth.
    fn ahead_ns(self, now: u64) -> i128 {
        let left_to_deadline = i128::from(self.deadline) - i128::from(now);
        let due_ns = left_to_deadline * i128::from(self.of.budget_ns) / i128::from(self.of.period_ns);
        (due_ns - self.left_ns).max(0)
    }

    /// The deadlines that have come: each gives Q, until there is budget again.
    fn replenished(mut self, now: u64) -> Self {
        while self.depleted && self.deadline <= now {
            self.left_ns += i128::from(self.of.budget_ns);
            self.deadline += self.of.period_ns;
            self.depleted = self.left_ns <= 0;
            // Periods in which nothing was served are not caught up on.
            if !self.depleted && self.deadline <= now {
                self.deadline = now + self.of.period_ns;
            }
        }
        self
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub ready: bool,
    pub budget: Option<Budget>,
    /// The reservation that it had last.
    released: Option<Budget>,
    idle_since: u64,
    /// Idle before it came, or got input, and no desktop client had work by it since.
    is_rested: bool,
    /// Since it arrived, or since the end of its last slice.
    waits_since: u64,
    /// Its last slice, where that was one request and then it waited.
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
        self.budget.is_some_and(|budget| budget.of.hard)
    }
}

/// What runs, as it stood when it was chosen.
#[derive(Clone, Copy, Debug)]
enum Running {
    /// Whom the server chooses; under a grab nobody can come between.
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
    },
    /// A client that works for others, with its place.
    Desktop {
        client: ClientId,
        place: (i64, bool),
    },
}

/// Whom the rules choose, and the end of the budget or of the policy's slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// `None`: the server's choice.
    pub client: Option<(ClientId, Mode)>,
    pub end: u64,
    pub requests: u32,
    pub bytes: u32,
}

#[derive(Debug)]
pub struct Reference {
    pub clients: BTreeMap<ClientId, Client>,
    pub grab: Option<ClientId>,
    rules: Rules,
    parameters: Parameters,
    running: Option<(u64, Running)>,
    hogged: Option<u64>,
    pub paced: Paced,
    pub desktop: Desktop,
}

impl Reference {
    pub fn new(policy: PolicyKind, parameters: Parameters) -> Self {
        let rules = Rules::new(policy, parameters);
        Reference {
            clients: BTreeMap::new(),
            grab: None,
            rules,
            parameters,
            running: None,
            hogged: None,
            paced: Paced::default(),
            desktop: Desktop::default(),
        }
    }

    /// What a fact changes; whether that is to be told. Not for those that the test tells one by one.
    pub fn handle(&mut self, now: u64, fact: Fact) -> bool {
        match fact {
            Fact::Connected { client, descriptor } => self.connected(client, descriptor, now),
            Fact::Gone { client } => self.gone(client, now),
            Fact::Arrived { client } => self.arrived(client, now),
            Fact::Withdrawn { client } => self.withdrawn(client, now),
            Fact::Input { client } => self.noticed(client, true),
            Fact::Exposed { client, cause } => {
                self.noticed(client, false);
                return self.exposed(client, cause, now);
            }
            Fact::MadeWork { client } => return self.made_work(client),
            Fact::Grabbed { by } => self.grabbed(by),
            Fact::Policy(policy) => self.set_policy(policy),
            Fact::Parameters(parameters) => self.set_parameters(parameters),
            Fact::Pacing(pacing) => self.set_pacing(pacing, now),
            Fact::DesktopShare { ppm } => self.set_desktop_share(ppm),
            Fact::SyncPriority { client, priority } => self.set_sync_priority(client, priority),
            Fact::Weight { client, weight } => self.set_weight(client, weight),
            Fact::FixedPriority { client, priority } => self.set_fixed_priority(client, priority),
            Fact::Role { client, role } => self.set_role(client, role),
            Fact::Release { client } => return self.cleared(client),
            Fact::Overran { .. } | Fact::Supply(_) => {}
            Fact::Served(_) | Fact::Replenish | Fact::Reserve { .. } => panic!("told one by one: {fact:?}"),
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
        self.desktop.roles.remove(&id);
        self.paced.gone(id, now);
        self.rules.leave(id);
        self.grab = self.grab.filter(|&holder| holder != id);
    }

    fn arrived(&mut self, id: ClientId, now: u64) {
        let Some(client) = self.clients.get_mut(&id).filter(|client| !client.ready) else { return };
        (client.ready, client.waits_since) = (true, now);
        client.is_rested |= now - client.idle_since >= RESTED_NS;
        client.budget = client.budget.map(|budget| budget.at_arrival(now));
        self.rules.enter(id, now - client.idle_since);
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

    fn made_work(&mut self, id: ClientId) -> bool {
        let is_rested = |client: &&mut Client| client.is_rested && !self.desktop.roles.contains_key(&id);
        let Some(client) = self.clients.get_mut(&id).filter(is_rested) else { return false };
        client.is_rested = false;
        self.desktop.called();
        true
    }

    fn exposed(&mut self, id: ClientId, cause: Option<ClientId>, now: u64) -> bool {
        let is_known = self.clients.contains_key(&id);
        let cause = cause.filter(|cause| self.clients.get(cause).is_some_and(|client| client.budget.is_none()));
        is_known && self.paced.exposed(id, cause, now)
    }

    fn set_pacing(&mut self, pacing: Pacing, now: u64) {
        self.paced.set(pacing, now);
    }

    fn grabbed(&mut self, by: Option<ClientId>) {
        self.grab = by.filter(|id| self.clients.contains_key(id));
    }

    pub fn served(&mut self, id: ClientId, start: u64, end: u64, (requests, bytes): (u32, u64), still_ready: bool) {
        let running = self.running.take();
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
                if let Some(budget) = client.budget.as_mut() {
                    budget.left_ns -= i128::from(end - start);
                    budget.depleted = budget.left_ns <= 0;
                }
            }
            _ if self.is_desktop(id) => {}
            _ => self.rules.pay(id, end - start, requests, bytes),
        }
        let best_effort = !matches!(running, Some((_, Running::Reserved { client, .. })) if client == id);
        if best_effort && self.is_desktop(id) && self.others_wait() {
            self.desktop.served(start, end);
        }
        if end - start > HOG_SLICE_NS {
            self.hogged = Some(end);
        }
    }

    // Control.

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

    /// A higher SYNC priority first, then who works for others.
    fn place(&self, id: ClientId) -> (i64, bool) {
        (-i64::from(self.rules.standings[&id].sync_priority), !self.is_desktop(id))
    }

    /// Until when this client's next request is waited for, before others are served.
    pub fn next_request_of(&self, id: ClientId, now: u64) -> Option<u64> {
        let is_first = |(&id, client): (&ClientId, &Client)| {
            client.ready
                && !self.paced.holds(id)
                && !client.is_held_back()
                && (client.has_budget() || self.is_desktop(id))
        };
        let is_free = self.grab.is_none() && !self.clients.iter().any(is_first);
        let is_idle = self.clients.get(&id).is_some_and(|client| !client.ready);
        let waits = is_free && is_idle && self.is_desktop(id) && self.others_wait();
        self.desktop.waits_until(now).filter(|_| waits)
    }

    /// Somebody without a role is ready and not held back.
    fn others_wait(&self) -> bool {
        self.clients.iter().any(|(id, client)| {
            let is_member = self.desktop.roles.contains_key(id);
            client.ready && !is_member && !client.is_held_back() && !self.paced.holds(*id)
        })
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

    fn set_weight(&mut self, id: ClientId, weight: u32) {
        if let Some(standing) = self.rules.standings.get_mut(&id) {
            standing.weight = weight.max(1);
        }
    }

    fn set_fixed_priority(&mut self, id: ClientId, priority: i32) {
        if let Some(standing) = self.rules.standings.get_mut(&id) {
            standing.fixed_priority = priority;
        }
    }

    /// A reservation that was admitted, in place of the one before.
    pub fn reserved(&mut self, id: ClientId, of: Reservation, now: u64) {
        self.cleared(id);
        let client = self.clients.get_mut(&id).expect("only connected clients are admitted");
        let mut budget = Budget::fresh(of, now);
        // What it was ahead under the one before, it has had of this one.
        budget.left_ns -= client.released.map_or(0, |before| before.ahead_ns(now));
        budget.depleted = budget.left_ns <= 0;
        client.budget = Some(budget);
        self.paced.end(id, now);
    }

    /// Ends a reservation. True where there was one.
    fn cleared(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.get_mut(&id).filter(|client| client.budget.is_some()) else { return false };
        client.released = client.budget.take();
        // To the policy it comes as from idleness: time paid from a reservation saves nothing up.
        self.rules.enter(id, 0);
        true
    }

    // Decisions.

    /// Who has budget again.
    pub fn replenish(&mut self, now: u64) -> Vec<ClientId> {
        let mut told = self.paced.let_go(now);
        for (&id, client) in &mut self.clients {
            let Some(before) = client.budget else { continue };
            client.budget = Some(before.replenished(now));
            if before.depleted && client.has_budget() {
                told.push(id);
            }
        }
        told.sort();
        told
    }

    pub fn pick(&mut self, now: u64) -> Option<Decision> {
        self.running = None;
        let ready = self.clients.iter().filter(|&(&id, client)| client.ready && !self.paced.holds(id));
        let with_budget = ready.clone().filter(|(_, client)| client.has_budget());
        let earliest = with_budget.min_by_key(|(_, client)| client.budget.map(|budget| budget.deadline));
        let best_effort: Vec<ClientId> =
            ready.filter(|(_, client)| !client.has_budget() && !client.is_held_back()).map(|(&id, _)| id).collect();
        let servers_choice = Decision { client: None, end: u64::MAX, requests: 0, bytes: 0 };
        let (decision, running) = if self.grab.is_some() {
            (servers_choice, Running::Server { grabbed: true })
        } else if let Some((&client, Client { budget: Some(budget), .. })) = earliest {
            let end = now + u64::try_from(budget.left_ns).expect("who is not depleted has budget");
            let decision = Decision { client: Some((client, Mode::Reserved)), end, requests: 0, bytes: 0 };
            (decision, Running::Reserved { client, deadline: budget.deadline })
        } else if best_effort.is_empty() {
            return None;
        } else if self.rules.kind == PolicyKind::Stock {
            (servers_choice, Running::Server { grabbed: false })
        } else {
            // Who works for others has a turn, or others come first.
            let others_first = self.desktop.first_from(now) > now && best_effort.iter().any(|&id| !self.is_desktop(id));
            let best_effort_now = best_effort.iter().copied().filter(|&id| !others_first || !self.is_desktop(id));
            let best = best_effort_now.clone().map(|id| self.place(id)).min();
            let contenders: Vec<ClientId> = best_effort_now.filter(|&id| Some(self.place(id)) == best).collect();
            if self.is_desktop(contenders[0]) {
                return Some(self.pick_desktop(&contenders, now));
            }
            let client = self.rules.first(&contenders);
            let standing = self.rules.standings[&client];
            let turn = self.rules.run(client, best_effort.len() == 1, now);
            let (mut end, requests, bytes) = (now.saturating_add(turn.length_ns), turn.requests, turn.bytes);
            if best_effort.iter().any(|&id| self.is_desktop(id) && self.place(id) < self.place(client)) {
                end = end.min(self.desktop.first_from(now));
            }
            let decision = Decision { client: Some((client, Mode::BestEffort)), end, requests, bytes };
            (decision, Running::BestEffort { client, standing })
        };
        self.running = Some((now, running));
        Some(decision)
    }

    /// Who waits longest, for a slice, and no longer than the turn if others wait.
    fn pick_desktop(&mut self, contenders: &[ClientId], now: u64) -> Decision {
        let longest = contenders.iter().min_by_key(|&&id| (self.clients[&id].waits_since, id));
        let client = *longest.expect("somebody is ready");
        let slice_end = now + self.parameters.slice_ns;
        let end = if self.others_wait() { slice_end.min(now + self.desktop.left_ns(now)) } else { slice_end };
        self.running = Some((now, Running::Desktop { client, place: self.place(client) }));
        Decision { client: Some((client, Mode::BestEffort)), end, requests: 0, bytes: 0 }
    }

    /// When an arrival of this idle client at `arrival` would end the slice that was chosen last; `None`: not at all.
    pub fn ends_at(&self, id: ClientId, arrival: u64) -> Option<u64> {
        let client = self.clients[&id];
        let (start, running) = self.running?;
        if self.paced.holds(id) {
            return None;
        }
        // Who is replenished until then has budget then.
        let budget = client.budget.map(|budget| budget.replenished(arrival).at_arrival(arrival));
        let deadline = budget.filter(|budget| !budget.depleted).map(|budget| budget.deadline);
        let is_held_back = deadline.is_none() && client.is_hard();
        match (running, deadline) {
            (Running::Server { grabbed: true }, _) => None,
            (Running::Reserved { deadline: before, .. }, Some(deadline)) => (deadline < before).then_some(start),
            (_, Some(_)) => Some(start),
            (Running::Desktop { place, .. }, None) if !is_held_back => (self.place(id) < place).then_some(start),
            (Running::BestEffort { standing, .. }, None) if !is_held_back && self.is_desktop(id) => {
                let turn = self.desktop.first_from(start);
                (self.place(id) < (-i64::from(standing.sync_priority), true)).then_some(turn)
            }
            (Running::BestEffort { standing, .. }, None) if !is_held_back => {
                Some(start + self.rules.ends_after(standing, id)?)
            }
            (_, None) => None,
        }
    }

    /// True where this idle client has to be watched during the slice that was chosen last, which ends at `until`.
    pub fn is_to_be_watched(&self, id: ClientId, now: u64, until: u64) -> bool {
        let somebody_hogs = self.hogged.is_some_and(|end| now.saturating_sub(end) < HOG_MEMORY_NS);
        let slice_end = until.min(now + self.parameters.slice_ns);
        let runs = match self.running {
            Some((_, Running::Reserved { client, .. } | Running::BestEffort { client, .. })) => Some(client),
            Some((_, Running::Desktop { client, .. })) => Some(client),
            _ => None,
        };
        let runs = runs.and_then(|client| self.clients[&client].asked_for_ns);
        let likely_end = runs.map_or(u64::MAX, |ns| now + 2 * ns);
        let wins = self.ends_at(id, now).is_some_and(|at| at < slice_end && (at <= now || at < likely_end));
        wins && (somebody_hogs || self.clients[&id].has_budget() || self.is_desktop(id))
    }

    /// The times before `end` at which a depleted client comes back and is better than the one chosen last.
    pub fn comebacks(&self, now: u64, end: u64) -> impl Iterator<Item = u64> + '_ {
        let depleted = self.clients.iter().filter(|(_, client)| client.is_depleted());
        depleted.filter_map(move |(&id, client)| {
            let at = client.budget.map(|budget| budget.deadline).filter(|&at| at < end)?;
            let wins =
                client.budget?.replenished(at).left_ns > 0 && self.ends_at(id, at).is_some_and(|ends| ends <= at);
            wins.then_some(at.max(now))
        })
    }
}
