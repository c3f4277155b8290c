// SPDX-License-Identifier: MIT
//! The desktop rule in its simplest form: the roles, and all slices of the last turn.

use std::collections::BTreeMap;
use xqos_core::{
    CALLED_GAP_NS, CALLED_TURNS, ClientId, DEFAULT_SHARE_PPM, DEFERRAL_FACTOR, FRAME_NS, MANAGERS_NS, Role, WAIT_NS,
};

#[derive(Debug)]
pub struct Desktop {
    pub share_ppm: u32,
    pub roles: BTreeMap<ClientId, Role>,
    /// The client that each window manager works for.
    pub work: BTreeMap<ClientId, ClientId>,
    /// The slices of the last turn: beginning, end, and whether a compositor ran.
    slices: Vec<(u64, u64, bool)>,
    /// The number of turns that are not deferred, because a rested client has caused work.
    pub calls: u8,
}

impl Default for Desktop {
    fn default() -> Self {
        Desktop {
            share_ppm: DEFAULT_SHARE_PPM,
            roles: BTreeMap::new(),
            work: BTreeMap::new(),
            slices: Vec::new(),
            calls: 0,
        }
    }
}

impl Desktop {
    fn most_ns(&self) -> u64 {
        FRAME_NS * u64::from(self.share_ppm) / 1_000_000
    }

    /// The client that pays for this client's work; `None`: no single client does.
    pub fn paid_by(&self, id: ClientId) -> Option<ClientId> {
        self.work.get(&id).copied().filter(|_| !self.roles[&id].compositor)
    }

    /// The total length of the slices, and of the wait before each slice except the first.
    fn used_ns(&self) -> u64 {
        let served: u64 = self.slices.iter().map(|(start, end, _)| end - start).sum();
        let waited: u64 = self.slices.windows(2).map(|pair| (pair[1].0 - pair[0].1).min(WAIT_NS)).sum();
        served + waited
    }

    fn by_managers_ns(&self) -> u64 {
        self.slices.iter().filter(|slice| !slice.2).map(|(start, end, _)| end - start).sum()
    }

    fn is_used_up(&self) -> bool {
        self.used_ns() >= self.most_ns() || self.by_managers_ns() >= MANAGERS_NS
    }

    fn is_open(&self, now: u64) -> bool {
        self.slices.last().is_some_and(|&(_, end, _)| now < end + WAIT_NS) && !self.is_used_up()
    }

    /// The time from which desktop clients are served first.
    pub fn first_from(&self, now: u64) -> u64 {
        let Some(&(began, ..)) = self.slices.first().filter(|_| !self.is_open(now)) else { return now };
        let used_ns = self.used_ns() + WAIT_NS;
        let paid_ns = (u128::from(used_ns) * 1_000_000 / u128::from(self.share_ppm.max(1))) as u64;
        let deferred_ns = match (self.calls > 0, self.is_used_up()) {
            (true, _) => CALLED_GAP_NS,
            (false, false) => (used_ns * DEFERRAL_FACTOR).min(2 * FRAME_NS),
            (false, true) => 0,
        };
        now.max(began + paid_ns.max(deferred_ns))
    }

    pub fn left_ns(&self, now: u64) -> u64 {
        if self.is_open(now) { self.most_ns() - self.used_ns() } else { self.most_ns() }
    }

    /// The time left in the turn for this client.
    pub fn left_for(&self, id: ClientId, now: u64) -> u64 {
        let by_managers_ns = if self.is_open(now) { self.by_managers_ns() } else { 0 };
        let for_manager_ns = if self.roles[&id].compositor { u64::MAX } else { MANAGERS_NS - by_managers_ns };
        self.left_ns(now).min(for_manager_ns)
    }

    /// The time until which the server waits for the next request.
    pub fn waits_until(&self, now: u64) -> Option<u64> {
        let &(_, end, _) = self.slices.last().filter(|_| self.is_open(now))?;
        Some(end + WAIT_NS.min(self.left_ns(now))).filter(|&until| now < until)
    }

    /// Has no effect before the first turn, because no turn is deferred yet.
    pub fn called(&mut self) {
        self.calls = if self.slices.is_empty() { 0 } else { CALLED_TURNS };
    }

    /// Records a slice if it counts: if others waited, or a window manager used up its part.
    pub fn served(&mut self, id: ClientId, start: u64, end: u64, others_wait: bool) {
        let used_its_part = !self.roles[&id].compositor && end - start >= MANAGERS_NS;
        if (!others_wait || self.first_from(start) > start) && !used_its_part {
            return;
        }
        if !self.is_open(start) {
            self.slices.clear();
            self.calls = self.calls.saturating_sub(1);
        }
        self.slices.push((start, end, self.roles[&id].compositor));
    }
}
