// SPDX-License-Identifier: MIT
//! All clients whose reservations are measured, and the advice for them.
//!
//! | result of `share`, compared with the current reservation | advice |
//! |---|---|
//! | a reservation where there was none | reserve |
//! | none where there was one | release |
//! | Q within 10 % and T within 2 %, as long as all fit together | none |
//! | anything else | change |
//!
//! Releases precede decreases, and decreases precede increases, so that each step is admitted. If other new
//! reservations cause a refusal, the advice doubles Q and T; after a second refusal there is none for 10 s.
//!
//! Source: our own design, with the order of AQuoSA's supervisor: decreases before increases.
//!
//! Invariant: once all advice is followed, the reservations fit into the given room.

use crate::client::{ClientAnalysis, Need, RhythmReport};
use crate::jobs::{Burst, LONGEST_NS};
use crate::order;
use crate::share::{Room, WeightedNeed, divide};
use std::collections::BTreeMap;
use xqos_core::{Reservation, Time};

const REFUSED_NS: u64 = 10_000_000_000;
const SAME_BUDGET_PERCENT: u64 = 10;
const SAME_PERIOD_PERCENT: u64 = 2;
/// The default weight, in hundredths.
const USUAL_WEIGHT: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    Reserve(Reservation),
    /// Replace the current reservation with this one.
    Change(Reservation),
    Release,
}

/// The clients, by a key that the caller chooses.
#[derive(Debug, Default)]
pub struct Tuner<K> {
    clients: BTreeMap<K, Tuned>,
}

#[derive(Debug, Default)]
struct Tuned {
    client: ClientAnalysis,
    weight: u32,
    since: Time,
    granted: Option<Reservation>,
    refused_until: Time,
    /// Q and T of its needs are doubled, because a reservation was refused.
    is_doubled: bool,
}

impl<K: Ord + Copy> Tuner<K> {
    pub fn add(&mut self, key: K, now: Time) {
        let tuned = Tuned { weight: USUAL_WEIGHT, since: now, ..Tuned::default() };
        self.clients.entry(key).or_insert(tuned);
    }

    /// Removes a client. Its reservation is not released.
    pub fn remove(&mut self, key: K) {
        self.clients.remove(&key);
    }

    /// Sets a client's weight, in hundredths.
    pub fn weigh(&mut self, key: K, weight: u32) {
        self.with(key, |tuned| tuned.weight = weight);
    }

    /// Takes a burst of a client. Unknown clients are ignored.
    pub fn take(&mut self, key: K, burst: Burst) {
        self.with(key, |tuned| tuned.client.take(burst));
    }

    /// Records that a client has requests or is served at `now`. Unknown clients are ignored.
    pub fn works(&mut self, key: K, now: Time) {
        self.with(key, |tuned| tuned.client.works(now));
    }

    fn with(&mut self, key: K, change: impl FnOnce(&mut Tuned)) {
        if let Some(tuned) = self.clients.get_mut(&key) {
            change(tuned);
        }
    }

    pub fn reports(&self) -> impl Iterator<Item = (K, RhythmReport)> + '_ {
        self.clients.iter().map(|(&key, tuned)| (key, tuned.client.report()))
    }

    /// The reservation that a client is assumed to have.
    pub fn granted(&self, key: K) -> Option<Reservation> {
        self.clients.get(&key)?.granted
    }

    /// Whether any client is active, so that the next update should follow soon.
    pub fn is_active(&self) -> bool {
        self.clients.values().any(|tuned| !tuned.client.is_silent())
    }

    /// The actions to take now, in the order given. They are assumed to succeed; report failures with
    /// [`refused`](Tuner::refused).
    pub fn advise(&mut self, now: Time, room: &Room) -> Vec<(K, Advice)> {
        let targets = self.targets(now, room);
        let mut advice = Vec::new();
        for ((&key, tuned), target) in self.clients.iter_mut().zip(targets) {
            let before = std::mem::replace(&mut tuned.granted, target);
            let advised = match (before, target) {
                (None, Some(target)) => Advice::Reserve(target),
                (Some(_), None) => Advice::Release,
                (Some(before), Some(target)) if before != target => Advice::Change(target),
                _ => continue,
            };
            let grows = target.map_or(0, |target| share_of(&target)) > before.map_or(0, |before| share_of(&before));
            advice.push((target.is_some(), grows, key, advised));
        }
        advice.sort_by_key(|&(stays, grows, key, _)| (stays, grows, key));
        advice.into_iter().map(|(_, _, key, advised)| (key, advised)).collect()
    }

    /// Reports that the server did not admit a reservation. The first time this returns (2Q, 2T) to try, which halves
    /// the blocking. If that is refused as well, there is no advice for the client for a while.
    pub fn refused(&mut self, key: K, now: Time) -> Option<Reservation> {
        let tuned = self.clients.get_mut(&key)?;
        let twice = tuned.granted.filter(|_| !tuned.is_doubled).and_then(doubled);
        (tuned.granted, tuned.is_doubled) = (twice, twice.is_some());
        if twice.is_none() {
            tuned.refused_until = now.after(REFUSED_NS);
        }
        twice
    }

    /// The reservation that each client should have, in order of keys.
    fn targets(&mut self, now: Time, room: &Room) -> Vec<Option<Reservation>> {
        let mut asked = Vec::new();
        for tuned in self.clients.values_mut() {
            tuned.client.advance(now);
            let need = tuned.client.need().filter(|_| now >= tuned.refused_until).map(|need| tuned.adapted(need));
            tuned.is_doubled &= need.is_some();
            asked.push(need.map(|need| WeightedNeed { need, weight: tuned.weight, since: tuned.since }));
        }
        let needs: Vec<WeightedNeed> = asked.iter().copied().flatten().collect();
        let mut given = divide(room, &needs).into_iter();
        let exact: Vec<_> = asked.iter().map(|asked| asked.and_then(|_| given.next().flatten())).collect();
        let kept: Vec<_> = self.clients.values().zip(&exact).map(|(tuned, exact)| tuned.nearly(*exact)).collect();
        let together: Vec<Reservation> = kept.iter().copied().flatten().collect();
        if room.fits(&together) { kept } else { exact }
    }
}

impl Tuned {
    fn adapted(&self, need: Need) -> Need {
        match self.is_doubled && need.period_ns <= LONGEST_NS / 2 {
            true => Need { budget_ns: need.budget_ns * 2, period_ns: need.period_ns * 2, floor_ns: need.floor_ns * 2 },
            false => need,
        }
    }

    /// The current reservation if it is close to the target, else the target.
    fn nearly(&self, target: Option<Reservation>) -> Option<Reservation> {
        let (Some(granted), Some(wanted)) = (self.granted, target) else { return target };
        let is_near = |a: u64, b: u64, percent| order::near(&[a], b, percent) > 0.0;
        let is_same = is_near(wanted.budget_ns, granted.budget_ns, SAME_BUDGET_PERCENT)
            && is_near(wanted.period_ns, granted.period_ns, SAME_PERIOD_PERCENT);
        if is_same { Some(granted) } else { target }
    }
}

fn doubled(reservation: Reservation) -> Option<Reservation> {
    let Reservation { budget_ns, period_ns, .. } = reservation;
    (period_ns <= LONGEST_NS / 2).then_some(Reservation {
        budget_ns: budget_ns * 2,
        period_ns: period_ns * 2,
        ..reservation
    })
}

/// Q/T in units of 2^-32.
fn share_of(reservation: &Reservation) -> u128 {
    (u128::from(reservation.budget_ns) << 32) / u128::from(reservation.period_ns.max(1))
}
