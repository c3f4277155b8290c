// SPDX-License-Identifier: MIT
//! The policies, rule by rule. A client has a standing under each policy; the current policy decides which part counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use xqos_core::{ClientId, GroupId, Parameters, PolicyKind};

/// `fair`: how far behind the virtual clock a client can return.
const CREDIT_NS: i128 = 3_000_000;
/// `fair`: how much less an arrival must have paid to end a slice.
const MARGIN_NS: i128 = 1_000_000;
/// `smart`: the value of a level in intervals, and its maximum.
const LEVEL_INTERVALS: i128 = 10;
const MOST_LEVEL_NS: i128 = 50_000_000;
/// `classic`
const TURN_REQUESTS: u32 = 10;
const BUFFER_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub descriptor: u32,
    pub weight: u32,
    pub fixed_priority: i32,
    /// The maximum length of its slices; 0: that of the policy.
    pub slice_us: u32,
    pub sync_priority: i32,
    pub group: GroupId,
    /// `fair`: server time / weight, compared within its group.
    paid: i128,
    noticed: bool,
    rested_us: u32,
    /// `smart`
    priority: i32,
    /// `smart`: the server time of all clients at the end of its last turn.
    turn_over_at: u64,
    /// `smart` and `fixed`: used in the current turn.
    used_ns: u64,
    /// `classic`
    pass: u64,
    round: u64,
    turn_requests: u32,
    pass_bytes: u64,
}

/// `fair`: the payment and the weight of the running client's group.
#[derive(Clone, Copy, Debug)]
pub struct Defence {
    paid: i128,
    weight: u32,
}

/// The limits of the chosen client's slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub length_ns: u64,
    pub requests: u32,
    pub bytes: u32,
}

/// `fair`: the account of a group, or of a client in no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AccountKey {
    Alone(ClientId),
    Group(GroupId, i32),
}

/// `fair`: what an account has paid.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    paid: i128,
    /// The amount that the last picked client of the account had paid.
    clock: i128,
}

#[derive(Debug)]
pub struct Rules {
    pub kind: PolicyKind,
    parameters: Parameters,
    pub standings: BTreeMap<ClientId, Standing>,
    accounts: BTreeMap<AccountKey, Account>,
    group_weights: BTreeMap<GroupId, u32>,
    /// `fair`: for each SYNC priority, the amount that the last picked client had paid.
    clocks: BTreeMap<i32, i128>,
    /// `smart` and `fixed`: clients in the order in which their last turns ended.
    rotation: Vec<ClientId>,
    /// `smart`: server time that all clients used.
    used_by_all: u64,
    /// `classic`
    pass: u64,
    /// `smart`: the running client, the time since which it has run alone, and its slice.
    last: Option<ClientId>,
    alone_since: u64,
    slice_ns: u64,
    /// `smart`: the number of ready clients at the last choice.
    ready: usize,
}

impl Rules {
    pub fn new(kind: PolicyKind, parameters: Parameters) -> Self {
        Rules {
            kind,
            parameters,
            standings: BTreeMap::new(),
            accounts: BTreeMap::new(),
            group_weights: BTreeMap::new(),
            clocks: BTreeMap::new(),
            rotation: Vec::new(),
            used_by_all: 0,
            pass: 0,
            last: None,
            alone_since: 0,
            slice_ns: parameters.timer_interval_ns,
            ready: 1,
        }
    }

    /// The same clients under another policy, which starts without any history of them.
    pub fn replaced_by(&self, kind: PolicyKind, parameters: Parameters) -> Self {
        let mut rules = Rules::new(kind, parameters);
        rules.group_weights = self.group_weights.clone();
        for (&id, standing) in &self.standings {
            rules.standings.insert(id, *standing);
            rules.begin(id);
        }
        rules
    }

    pub fn join(&mut self, id: ClientId, descriptor: u32) {
        let standing = Standing {
            descriptor,
            weight: 100,
            fixed_priority: 0,
            slice_us: 0,
            sync_priority: 0,
            group: GroupId::NONE,
            paid: 0,
            noticed: false,
            rested_us: 0,
            priority: 0,
            turn_over_at: 0,
            used_ns: 0,
            pass: 0,
            round: 0,
            turn_requests: 0,
            pass_bytes: 0,
        };
        self.standings.insert(id, standing);
        self.begin(id);
    }

    pub fn leave(&mut self, id: ClientId) {
        self.close(id);
        self.standings.remove(&id);
        self.rotation.retain(|&other| other != id);
        self.last = self.last.filter(|&last| last != id);
    }

    fn begin(&mut self, id: ClientId) {
        let (paid, pass) = (self.clock_of(id), self.pass + 1);
        self.open(id, paid);
        let standing = self.standing(id);
        (standing.noticed, standing.rested_us, standing.priority) = (false, 0, 0);
        self.end_turn(id);
        self.enter_pass(id, pass);
    }

    fn standing(&mut self, id: ClientId) -> &mut Standing {
        self.standings.get_mut(&id).expect("the client is connected")
    }

    fn clock_of(&self, id: ClientId) -> i128 {
        self.clocks.get(&self.standings[&id].sync_priority).copied().unwrap_or(0)
    }

    fn account_key(&self, id: ClientId) -> AccountKey {
        let Standing { group, sync_priority, .. } = self.standings[&id];
        if group == GroupId::NONE { AccountKey::Alone(id) } else { AccountKey::Group(group, sync_priority) }
    }

    fn account_of(&mut self, id: ClientId) -> &mut Account {
        let key = self.account_key(id);
        self.accounts.get_mut(&key).expect("each client has one")
    }

    /// Opens the client's account, or joins its group's. A new account starts with `paid`.
    fn open(&mut self, id: ClientId, paid: i128) {
        let clock = self.accounts.entry(self.account_key(id)).or_insert(Account { paid, clock: 0 }).clock;
        self.standing(id).paid = clock;
    }

    /// Leaves the account.
    fn close(&mut self, id: ClientId) -> Option<Account> {
        let key = self.standings.contains_key(&id).then(|| self.account_key(id))?;
        let is_shared = self.standings.keys().any(|&other| other != id && self.account_key(other) == key);
        if is_shared { self.accounts.get(&key).copied() } else { self.accounts.remove(&key) }
    }

    fn account_weight(&self, id: ClientId) -> u32 {
        let of_group = self.group_weights.get(&self.standings[&id].group).copied().filter(|&weight| weight > 0);
        let members = self.standings.iter().filter(|&(&other, _)| self.account_key(other) == self.account_key(id));
        of_group.unwrap_or_else(|| members.map(|(_, standing)| standing.weight).max().expect("it is one of them"))
    }

    fn end_turn(&mut self, id: ClientId) {
        self.rotation.retain(|&other| other != id);
        self.rotation.push(id);
        let used_by_all = self.used_by_all;
        let standing = self.standing(id);
        (standing.turn_over_at, standing.used_ns) = (used_by_all, 0);
    }

    fn enter_pass(&mut self, id: ClientId, pass: u64) {
        let standing = self.standing(id);
        (standing.pass, standing.round, standing.turn_requests, standing.pass_bytes) = (pass, 0, 0, 0);
    }

    // Facts.

    pub fn set_sync_priority(&mut self, id: ClientId, priority: i32) {
        if self.standings[&id].sync_priority == priority {
            return;
        }
        self.move_to(id, |standing| standing.sync_priority = priority);
    }

    pub fn set_group(&mut self, id: ClientId, group: GroupId) {
        if self.standings[&id].group != group {
            self.move_to(id, |standing| standing.group = group);
        }
    }

    pub fn set_group_weight(&mut self, group: GroupId, weight: u32) {
        if group != GroupId::NONE {
            self.group_weights.insert(group, weight);
        }
    }

    /// Moves the client to another account; a new one starts as far from the clock as the old one was.
    fn move_to(&mut self, id: ClientId, change: impl FnOnce(&mut Standing)) {
        let behind = self.account_of(id).paid - self.clock_of(id);
        self.close(id);
        change(self.standing(id));
        let paid = self.clock_of(id) + behind.max(-CREDIT_NS);
        self.open(id, paid);
    }

    /// Input or an Expose was delivered to the client.
    pub fn noticed(&mut self, id: ClientId, is_input: bool) {
        let standing = self.standing(id);
        standing.noticed = true;
        if is_input {
            standing.priority = (standing.priority + 1).min(20);
        }
    }

    /// The client became ready after `idle_ns`.
    pub fn enter(&mut self, id: ClientId, idle_ns: u64) {
        let rests = idle_ns / (2 * self.parameters.timer_interval_ns);
        let (least_paid, pass) = (self.clock_of(id) - CREDIT_NS, self.pass + 1);
        self.enter_pass(id, pass);
        // Waiting for a reply does not end a turn of `smart`.
        if rests > 0 || self.kind == PolicyKind::Fixed {
            self.end_turn(id);
        }
        let account = self.account_of(id);
        account.paid = account.paid.max(least_paid);
        let least_of_group = account.clock - CREDIT_NS;
        let standing = self.standing(id);
        standing.paid = standing.paid.max(least_of_group);
        standing.rested_us = u32::try_from(idle_ns / 1000).unwrap_or(u32::MAX);
        standing.priority = standing.priority.max(0.min(standing.priority.saturating_add(rests.min(99) as i32)));
    }

    pub fn pay(&mut self, id: ClientId, length_ns: u64, requests: u32, bytes: u64) {
        let turn_ns = if self.is_smart() { self.slice_ns } else { self.parameters.slice_ns };
        let next_pass = self.standings[&id].pass + 1;
        self.used_by_all += length_ns;
        let (used_by_all, ready, level_ns) = (self.used_by_all, self.ready as i128, self.level_ns());
        let is_bounded = self.kind == PolicyKind::Smart;
        let group_price = i128::from(length_ns) * 100 / i128::from(self.account_weight(id));
        self.account_of(id).paid += group_price;
        let standing = self.standing(id);
        standing.paid += i128::from(length_ns) * 100 / i128::from(standing.weight);
        standing.turn_requests += requests;
        standing.pass_bytes += bytes;
        if standing.turn_requests >= TURN_REQUESTS {
            (standing.round, standing.turn_requests) = (standing.round + 1, 0);
        }
        let buffer_is_empty = standing.pass_bytes >= BUFFER_BYTES;
        standing.used_ns += length_ns;
        let turn_is_over = standing.used_ns >= turn_ns;
        if turn_is_over {
            // A client with less than half of an equal share regains the levels for which it waited.
            let since = i128::from(used_by_all - standing.turn_over_at);
            let regained =
                if is_bounded && since > 2 * ready * i128::from(standing.used_ns) { since / level_ns } else { 0 };
            if standing.priority < 0 {
                standing.priority = (standing.priority + regained.min(99) as i32).min(0);
            }
            standing.priority = (standing.priority - 1).max(-20);
            self.end_turn(id);
        }
        if buffer_is_empty {
            self.enter_pass(id, next_pass);
        }
    }

    // Decisions.

    /// The first of these clients, which all have the same SYNC priority.
    pub fn first(&self, contenders: &[ClientId]) -> ClientId {
        let standing = |id: ClientId| self.standings[&id];
        let turn = |id: ClientId| self.rotation.iter().position(|&other| other == id);
        let order = |&a: &ClientId, &b: &ClientId| match self.kind {
            PolicyKind::Classic => {
                let place = |id| (standing(id).pass, standing(id).round, standing(id).descriptor, id);
                place(a).cmp(&place(b))
            }
            PolicyKind::Smart => {
                // A level counts as much as a wait of this length.
                let level_ns = self.level_ns();
                let place = |id| {
                    let Standing { turn_over_at, priority, .. } = standing(id);
                    turn_over_at as i128 - i128::from(priority) * level_ns
                };
                place(a).cmp(&place(b)).then(turn(a).cmp(&turn(b)))
            }
            PolicyKind::SmartStrict => standing(b).priority.cmp(&standing(a).priority).then(turn(a).cmp(&turn(b))),
            PolicyKind::Fixed => {
                standing(b).fixed_priority.cmp(&standing(a).fixed_priority).then(turn(a).cmp(&turn(b)))
            }
            _ => {
                let place = |id| (self.place(id), Reverse(standing(id).rested_us), id);
                if self.account_key(a) == self.account_key(b) {
                    return place(a).cmp(&place(b));
                }
                // A group is ordered by the first of its contenders.
                let first = |id| {
                    contenders
                        .iter()
                        .copied()
                        .filter(|&it| self.account_key(it) == self.account_key(id))
                        .min_by_key(|&it| place(it))
                };
                let (a, b) = (first(a).expect("it is one"), first(b).expect("it is one"));
                let of_group = |id| (self.place_of_group(id), Reverse(standing(id).rested_us), id);
                of_group(a).cmp(&of_group(b))
            }
        };
        contenders.iter().copied().min_by(order).expect("there are contenders")
    }

    /// Records that the client runs now.
    pub fn run(&mut self, id: ClientId, ready: usize, now: u64) -> Turn {
        let Standing { paid, noticed, sync_priority, pass, turn_requests, pass_bytes, used_ns, .. } =
            self.standings[&id];
        let of_group = *self.account_of(id);
        match self.kind {
            PolicyKind::Classic => {
                self.pass = self.pass.max(pass);
                self.standing(id).pass = self.pass;
                let bytes = (BUFFER_BYTES - pass_bytes) as u32;
                Turn { length_ns: u64::MAX, requests: TURN_REQUESTS - turn_requests, bytes }
            }
            PolicyKind::Smart | PolicyKind::SmartStrict => {
                self.ready = ready;
                self.lengthen_slice(id, ready == 1, now);
                Turn { length_ns: self.slice_ns.saturating_sub(used_ns).max(1), requests: 0, bytes: 0 }
            }
            PolicyKind::Fixed => {
                Turn { length_ns: self.parameters.slice_ns.saturating_sub(used_ns).max(1), requests: 0, bytes: 0 }
            }
            _ => {
                let clock = self.clocks.entry(sync_priority).or_insert(0);
                *clock = of_group.paid.max(*clock);
                self.account_of(id).clock = of_group.clock.max(paid);
                self.standing(id).noticed = false;
                let slice_ns = self.parameters.slice_ns;
                Turn { length_ns: if noticed { slice_ns - slice_ns / 2 } else { slice_ns }, requests: 0, bytes: 0 }
            }
        }
    }

    fn is_smart(&self) -> bool {
        matches!(self.kind, PolicyKind::Smart | PolicyKind::SmartStrict)
    }

    fn level_ns(&self) -> i128 {
        (LEVEL_INTERVALS * i128::from(self.parameters.timer_interval_ns)).min(MOST_LEVEL_NS)
    }

    /// `smart`: a client that was alone for a second gets a longer slice, up to the maximum.
    fn lengthen_slice(&mut self, id: ClientId, alone: bool, now: u64) {
        let Parameters { timer_interval_ns, maximum_slice_ns, .. } = self.parameters;
        if self.last != Some(id) || !alone {
            (self.last, self.alone_since, self.slice_ns) = (Some(id), now, timer_interval_ns);
        } else if now - self.alone_since > 1_000_000_000 && self.slice_ns < maximum_slice_ns {
            self.slice_ns = (self.slice_ns + timer_interval_ns).min(maximum_slice_ns);
        }
    }

    /// The time after which an arrival of this idle client ends a slice; `running` is the standing at its beginning.
    pub fn ends_after(&self, running: Standing, defence: Defence, arrival: ClientId) -> Option<u64> {
        let standing = self.standings[&arrival];
        if !matches!(self.kind, PolicyKind::Fair | PolicyKind::Fixed) || standing.sync_priority < running.sync_priority
        {
            return None;
        }
        if standing.sync_priority > running.sync_priority {
            return Some(0);
        }
        if self.kind == PolicyKind::Fixed {
            return (standing.fixed_priority > running.fixed_priority).then_some(0);
        }
        let paid = self.accounts[&self.account_key(arrival)].paid;
        let back_at =
            paid.max(self.clock_of(arrival) - CREDIT_NS) - self.head_start(&standing, self.account_weight(arrival));
        let lead = back_at + MARGIN_NS - defence.paid;
        Some(u64::try_from(lead.max(0) * i128::from(defence.weight) / 100).expect("a lead of less than 500 years"))
    }

    /// The values that an arrival must beat: the payment and the weight of the client's group.
    pub fn defence(&self, id: ClientId) -> Defence {
        Defence { paid: self.accounts[&self.account_key(id)].paid, weight: self.account_weight(id) }
    }

    /// `fair`: the position of the group of this client; smaller comes first.
    fn place_of_group(&self, first: ClientId) -> i128 {
        let head_start = self.head_start(&self.standings[&first], self.account_weight(first));
        self.accounts[&self.account_key(first)].paid - head_start
    }

    /// `fair`: the position of a client within its group; smaller comes first.
    fn place(&self, id: ClientId) -> i128 {
        let standing = &self.standings[&id];
        standing.paid - self.head_start(standing, standing.weight)
    }

    fn head_start(&self, standing: &Standing, weight: u32) -> i128 {
        let half_slice = i128::from(self.parameters.slice_ns / 2) * 100 / i128::from(weight);
        if standing.noticed { half_slice } else { 0 }
    }
}
