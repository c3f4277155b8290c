//! The policies, rule by rule. A client has a standing under all of them; the one in force decides which part counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use xqos_core::{ClientId, Parameters, PolicyKind};

/// `fair`: the furthest that a client comes back behind the virtual clock.
const CREDIT_NS: i128 = 3_000_000;
/// `fair`: by how much an arrival must have paid less.
const MARGIN_NS: i128 = 1_000_000;
/// `smart`
const LEVEL_NS: i128 = 50_000_000;
/// `classic`
const TURN_REQUESTS: u32 = 10;
const BUFFER_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub descriptor: u32,
    pub weight: u32,
    pub fixed_priority: i32,
    pub sync_priority: i32,
    /// `fair`: server time / weight.
    paid: i128,
    noticed: bool,
    rested_us: u32,
    /// `smart`
    priority: i32,
    /// `smart`: what all had used when its last turn was over.
    turn_over_at: u64,
    /// `smart` and `fixed`: of the present turn.
    used_ns: u64,
    /// `classic`
    pass: u64,
    round: u64,
    turn_requests: u32,
    pass_bytes: u64,
}

/// For how long the chosen client may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub length_ns: u64,
    pub requests: u32,
    pub bytes: u32,
}

#[derive(Debug)]
pub struct Rules {
    pub kind: PolicyKind,
    parameters: Parameters,
    pub standings: BTreeMap<ClientId, Standing>,
    /// `fair`: of each SYNC priority, what the client that was picked last had paid.
    clocks: BTreeMap<i32, i128>,
    /// `smart` and `fixed`: whose last turn is over longest comes first.
    rotation: Vec<ClientId>,
    /// `smart`: server time that all clients used.
    used_by_all: u64,
    /// `classic`
    pass: u64,
    /// `smart`: who runs, since when nobody else did, and the slice.
    last: Option<ClientId>,
    alone_since: u64,
    slice_ns: u64,
}

impl Rules {
    pub fn new(kind: PolicyKind, parameters: Parameters) -> Self {
        Rules {
            kind,
            parameters,
            standings: BTreeMap::new(),
            clocks: BTreeMap::new(),
            rotation: Vec::new(),
            used_by_all: 0,
            pass: 0,
            last: None,
            alone_since: 0,
            slice_ns: parameters.timer_interval_ns,
        }
    }

    /// The same clients under another policy, where all of them begin anew.
    pub fn replaced_by(&self, kind: PolicyKind, parameters: Parameters) -> Self {
        let mut rules = Rules::new(kind, parameters);
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
            sync_priority: 0,
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
        self.standings.remove(&id);
        self.rotation.retain(|&other| other != id);
        self.last = self.last.filter(|&last| last != id);
    }

    fn begin(&mut self, id: ClientId) {
        let (paid, pass) = (self.clock_of(id), self.pass + 1);
        let standing = self.standing(id);
        (standing.paid, standing.noticed, standing.rested_us, standing.priority) = (paid, false, 0, 0);
        self.end_turn(id);
        self.enter_pass(id, pass);
    }

    fn standing(&mut self, id: ClientId) -> &mut Standing {
        self.standings.get_mut(&id).expect("the client is connected")
    }

    fn clock_of(&self, id: ClientId) -> i128 {
        self.clocks.get(&self.standings[&id].sync_priority).copied().unwrap_or(0)
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
        let behind = self.standings[&id].paid - self.clock_of(id);
        self.standing(id).sync_priority = priority;
        self.standing(id).paid = self.clock_of(id) + behind.max(-CREDIT_NS);
    }

    /// Delivered to it: input, or an Expose.
    pub fn noticed(&mut self, id: ClientId, is_input: bool) {
        let standing = self.standing(id);
        standing.noticed = true;
        if is_input {
            standing.priority = (standing.priority + 1).min(20);
        }
    }

    /// It has work, and had none for so long.
    pub fn enter(&mut self, id: ClientId, idle_ns: u64) {
        let rests = idle_ns / (2 * self.parameters.timer_interval_ns);
        let (least_paid, pass) = (self.clock_of(id) - CREDIT_NS, self.pass + 1);
        self.enter_pass(id, pass);
        // Waiting for a reply does not end a turn of `smart`.
        if rests > 0 || self.kind == PolicyKind::Fixed {
            self.end_turn(id);
        }
        let standing = self.standing(id);
        standing.paid = standing.paid.max(least_paid);
        standing.rested_us = u32::try_from(idle_ns / 1000).unwrap_or(u32::MAX);
        standing.priority = standing.priority.max(0.min(standing.priority.saturating_add(rests.min(99) as i32)));
    }

    pub fn pay(&mut self, id: ClientId, length_ns: u64, requests: u32, bytes: u64) {
        let turn_ns = if self.kind == PolicyKind::Smart { self.slice_ns } else { self.parameters.slice_ns };
        let next_pass = self.standings[&id].pass + 1;
        self.used_by_all += length_ns;
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
            standing.priority = (standing.priority - 1).max(-20);
            self.end_turn(id);
        }
        if buffer_is_empty {
            self.enter_pass(id, next_pass);
        }
    }

    // Decisions.

    /// The first of these clients, who are all of one SYNC priority.
    pub fn first(&self, contenders: &[ClientId]) -> ClientId {
        let standing = |id: ClientId| self.standings[&id];
        let turn = |id: ClientId| self.rotation.iter().position(|&other| other == id);
        let order = |&a: &ClientId, &b: &ClientId| match self.kind {
            PolicyKind::Classic => {
                let place = |id| (standing(id).pass, standing(id).round, standing(id).descriptor, id);
                place(a).cmp(&place(b))
            }
            PolicyKind::Smart => {
                // A level weighs as much as a wait of LEVEL_NS.
                let place = |id| {
                    let Standing { turn_over_at, priority, .. } = standing(id);
                    turn_over_at as i128 - i128::from(priority) * LEVEL_NS
                };
                place(a).cmp(&place(b)).then(turn(a).cmp(&turn(b)))
            }
            PolicyKind::Fixed => {
                standing(b).fixed_priority.cmp(&standing(a).fixed_priority).then(turn(a).cmp(&turn(b)))
            }
            _ => {
                let place = |id| (self.place(id), Reverse(standing(id).rested_us), id);
                place(a).cmp(&place(b))
            }
        };
        contenders.iter().copied().min_by(order).expect("there are contenders")
    }

    /// It will run now.
    pub fn run(&mut self, id: ClientId, alone: bool, now: u64) -> Turn {
        let Standing { paid, noticed, sync_priority, pass, turn_requests, pass_bytes, used_ns, .. } =
            self.standings[&id];
        match self.kind {
            PolicyKind::Classic => {
                self.pass = self.pass.max(pass);
                self.standing(id).pass = self.pass;
                let bytes = (BUFFER_BYTES - pass_bytes) as u32;
                Turn { length_ns: u64::MAX, requests: TURN_REQUESTS - turn_requests, bytes }
            }
            PolicyKind::Smart => {
                self.lengthen_slice(id, alone, now);
                Turn { length_ns: self.slice_ns.saturating_sub(used_ns).max(1), requests: 0, bytes: 0 }
            }
            PolicyKind::Fixed => {
                Turn { length_ns: self.parameters.slice_ns.saturating_sub(used_ns).max(1), requests: 0, bytes: 0 }
            }
            _ => {
                let clock = self.clocks.entry(sync_priority).or_insert(0);
                *clock = paid.max(*clock);
                self.standing(id).noticed = false;
                let slice_ns = self.parameters.slice_ns;
                Turn { length_ns: if noticed { slice_ns - slice_ns / 2 } else { slice_ns }, requests: 0, bytes: 0 }
            }
        }
    }

    /// `smart`: a client that was alone for a second gets more, up to the maximum.
    fn lengthen_slice(&mut self, id: ClientId, alone: bool, now: u64) {
        let Parameters { timer_interval_ns, maximum_slice_ns, .. } = self.parameters;
        if self.last != Some(id) || !alone {
            (self.last, self.alone_since, self.slice_ns) = (Some(id), now, timer_interval_ns);
        } else if now - self.alone_since > 1_000_000_000 && self.slice_ns < maximum_slice_ns {
            self.slice_ns = (self.slice_ns + timer_interval_ns).min(maximum_slice_ns);
        }
    }

    /// After how long the arrival of an idle client ends the slice that `running` began with this standing.
    pub fn ends_after(&self, running: Standing, arrival: ClientId) -> Option<u64> {
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
        let back_at = standing.paid.max(self.clock_of(arrival) - CREDIT_NS) - self.head_start(&standing);
        let lead = back_at + MARGIN_NS - running.paid;
        Some(u64::try_from(lead.max(0) * i128::from(running.weight) / 100).expect("a lead of less than 500 years"))
    }

    /// `fair`: smaller is first.
    fn place(&self, id: ClientId) -> i128 {
        self.standings[&id].paid - self.head_start(&self.standings[&id])
    }

    fn head_start(&self, standing: &Standing) -> i128 {
        let half_slice = i128::from(self.parameters.slice_ns / 2) * 100 / i128::from(standing.weight);
        if standing.noticed { half_slice } else { 0 }
    }
}
