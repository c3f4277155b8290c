// SPDX-License-Identifier: MIT
//! Expose pacing in its simplest form: a list of clients that have to redraw, with the clients that wait for them.

use std::collections::BTreeMap;
use xqos_core::{ClientId, Pacing};

/// How long a client counts as exposing while pacing is off.
const LIMIT_NS: u64 = 25_000_000;
const SETTLING_NS: u64 = 5_000_000;
const FORGET_NS: u64 = 1_000_000_000;

#[derive(Debug)]
struct Mark {
    until: u64,
    /// The client that waits for it, and the beginning of that wait.
    holds: Option<(ClientId, u64)>,
    /// The number of answers that it has to give, and the number given so far.
    owed: u32,
    came: u32,
}

#[derive(Debug, Default)]
pub struct Paced {
    pacing: Pacing,
    marks: BTreeMap<ClientId, Mark>,
    /// The beginning and the end of each hold.
    held: BTreeMap<ClientId, (u64, u64)>,
    resumed: BTreeMap<ClientId, u64>,
}

impl Paced {
    pub fn holds(&self, id: ClientId) -> bool {
        self.held.contains_key(&id)
    }

    pub fn held_until(&self, id: ClientId) -> Option<u64> {
        self.held.get(&id).map(|&(_, until)| until)
    }

    /// Returns true if the client counts as exposing from now on and did not before.
    pub fn exposed(&mut self, id: ClientId, cause: Option<ClientId>, now: u64) -> bool {
        if self.marks.get(&id).is_some_and(|mark| now < mark.until) {
            return false;
        }
        let is_on = self.pacing.limit_ns > 0;
        let limit_ns = if is_on { self.pacing.limit_ns } else { LIMIT_NS };
        // The client is still working on the previous Expose, unless that was too long ago.
        let is_behind = self.marks.get(&id).is_some_and(|mark| mark.came == 0 && now < mark.until + limit_ns);
        self.forgotten(id, now);
        let cause = cause.filter(|&cause| is_on && cause != id);
        let holds = cause.and_then(|cause| Some((cause, self.hold(cause, now)?)));
        let owed = if is_behind { 2 } else { 1 };
        self.marks.insert(id, Mark { until: now + limit_ns, holds, owed, came: 0 });
        true
    }

    fn hold(&mut self, cause: ClientId, now: u64) -> Option<u64> {
        if let Some(&(since, _)) = self.held.get(&cause) {
            return Some(since);
        }
        let resumed = self.resumed.get(&cause).copied().filter(|&at| now - at < FORGET_NS).unwrap_or(now);
        let until = (now + self.pacing.limit_ns).min(resumed + self.pacing.floor_ns);
        if until <= now {
            self.resumed.insert(cause, now);
            return None;
        }
        self.held.insert(cause, (now, until));
        Some(now)
    }

    pub fn answered(&mut self, id: ClientId, now: u64) {
        let Some(mark) = self.marks.get_mut(&id) else { return };
        (mark.owed, mark.came) = (mark.owed - 1, mark.came + 1);
        if mark.owed == 0 {
            self.forgotten(id, now + SETTLING_NS);
        }
    }

    /// After `at`, other clients no longer wait for this client.
    fn forgotten(&mut self, id: ClientId, at: u64) {
        let Some(holds) = self.marks.remove(&id).and_then(|mark| mark.holds) else { return };
        let others_wait = self.marks.values().any(|mark| mark.holds == Some(holds));
        if !others_wait && self.held.get(&holds.0).is_some_and(|&(since, _)| since == holds.1) {
            self.end(holds.0, at);
        }
    }

    /// Ends the client's hold at `at`, if it does not end earlier.
    pub fn end(&mut self, id: ClientId, at: u64) {
        if let Some((_, until)) = self.held.get_mut(&id) {
            *until = (*until).min(at);
        }
    }

    pub fn release_due(&mut self, now: u64) -> Vec<ClientId> {
        let over: Vec<ClientId> = self.held.iter().filter(|(_, (_, until))| *until <= now).map(|(&id, _)| id).collect();
        for &id in &over {
            self.held.remove(&id);
            self.resumed.insert(id, now);
        }
        over
    }

    pub fn set(&mut self, pacing: Pacing, now: u64) {
        self.pacing = pacing;
        for (_, until) in self.held.values_mut() {
            *until = (*until).min(now);
        }
    }

    pub fn gone(&mut self, id: ClientId, now: u64) {
        self.forgotten(id, now);
        self.held.remove(&id);
        self.resumed.remove(&id);
    }
}
