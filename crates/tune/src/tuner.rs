// SPDX-License-Identifier: MIT
//! All clients whose reservations are to be found by measurement, and what is to be done about them.
//!
//! | what a client is given by `share`, and had | advice |
//! |---|---|
//! | something, and had nothing | reserve |
//! | nothing, and had something | release |
//! | Q at most 10 % and T at most 2 % different | none, as long as all of them fit together |
//! | anything else | change |
//!
//! Releases come first, then what becomes less, then what becomes more: so each step is admitted. Who was refused, since
//! others reserved meanwhile, is advised twice the period once, and then nothing for 10 s.
//!
//! Source: ours; the order is that of AQuoSA's supervisor, decreases before increases.
//!
//! Invariant: what the tuner holds to be reserved after all advice was followed fits into the room that it was given.

use crate::client::{Client, Report, Wish};
use crate::jobs::{Burst, LONGEST_NS};
use crate::order;
use crate::share::{Asked, Room, divide};
use std::collections::BTreeMap;
use xqos_core::{Reservation, Time};

const REFUSED_NS: u64 = 10_000_000_000;
const SAME_BUDGET_PERCENT: u64 = 10;
const SAME_PERIOD_PERCENT: u64 = 2;
/// Hundredths.
const USUAL_WEIGHT: u32 = 100;

/// What to do about a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Reserve that.
    Reserve(Reservation),
    /// Reserve that in place of what is reserved.
    Change(Reservation),
    /// Reserve nothing any more.
    Release,
}

/// Clients by a key of the caller's.
#[derive(Debug)]
pub struct Tuner<K> {
    clients: BTreeMap<K, Tuned>,
}

#[derive(Debug, Default)]
struct Tuned {
    client: Client,
    weight: u32,
    since: Time,
    granted: Option<Reservation>,
    refused_until: Time,
    /// Its wishes are doubled, since one was refused.
    is_doubled: bool,
}

impl<K> Default for Tuner<K> {
    fn default() -> Tuner<K> {
        Tuner { clients: BTreeMap::new() }
    }
}

impl<K: Ord + Copy> Tuner<K> {
    /// Without clients.
    pub fn new() -> Tuner<K> {
        Tuner::default()
    }

    /// A client that shall be looked after from now on.
    pub fn add(&mut self, key: K, now: Time) {
        let tuned = Tuned { weight: USUAL_WEIGHT, since: now, ..Tuned::default() };
        self.clients.entry(key).or_insert(tuned);
    }

    /// It has gone, or shall be left alone. What was reserved for it is not released by this.
    pub fn remove(&mut self, key: K) {
        self.clients.remove(&key);
    }

    /// Its weight among others, in hundredths.
    pub fn weigh(&mut self, key: K, weight: u32) {
        self.with(key, |tuned| tuned.weight = weight);
    }

    /// A burst of one of them; others are passed over.
    pub fn take(&mut self, key: K, burst: Burst) {
        self.with(key, |tuned| tuned.client.take(burst));
    }

    /// One of them has work now, or is served; others are passed over.
    pub fn works(&mut self, key: K, now: Time) {
        self.with(key, |tuned| tuned.client.works(now));
    }

    fn with(&mut self, key: K, change: impl FnOnce(&mut Tuned)) {
        if let Some(tuned) = self.clients.get_mut(&key) {
            change(tuned);
        }
    }

    /// What was found about each.
    pub fn reports(&self) -> impl Iterator<Item = (K, Report)> + '_ {
        self.clients.iter().map(|(&key, tuned)| (key, tuned.client.report()))
    }

    /// What is held to be reserved for one of them.
    pub fn granted(&self, key: K) -> Option<Reservation> {
        self.clients.get(&key)?.granted
    }

    /// True where one of them does something: the next look should come soon.
    pub fn is_active(&self) -> bool {
        self.clients.values().any(|tuned| tuned.client.next_look().is_some())
    }

    /// What is to be done now, in this order. It is held to be done; [`refused`](Tuner::refused) tells what was not.
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

    /// The server did not admit what was advised. The first time (2Q, 2T) is to be tried, for which B is half as much of T; if
    /// that is refused too, nothing is reserved, and the client is not asked for again for a while.
    pub fn refused(&mut self, key: K, now: Time) -> Option<Reservation> {
        let tuned = self.clients.get_mut(&key)?;
        let twice = tuned.granted.filter(|_| !tuned.is_doubled).and_then(doubled);
        (tuned.granted, tuned.is_doubled) = (twice, twice.is_some());
        if twice.is_none() {
            tuned.refused_until = now.after(REFUSED_NS);
        }
        twice
    }

    /// What each should have, in order of keys.
    fn targets(&mut self, now: Time, room: &Room) -> Vec<Option<Reservation>> {
        let mut asked = Vec::new();
        for tuned in self.clients.values_mut() {
            tuned.client.look(now);
            let wish = tuned.client.wish().filter(|_| now >= tuned.refused_until).map(|wish| tuned.adapted(wish));
            tuned.is_doubled &= wish.is_some();
            asked.push(wish.map(|wish| Asked { wish, weight: tuned.weight, since: tuned.since }));
        }
        let wishes: Vec<Asked> = asked.iter().copied().flatten().collect();
        let mut given = divide(room, &wishes).into_iter();
        let exact: Vec<_> = asked.iter().map(|asked| asked.and_then(|_| given.next().flatten())).collect();
        let kept: Vec<_> = self.clients.values().zip(&exact).map(|(tuned, exact)| tuned.nearly(*exact)).collect();
        let together: Vec<Reservation> = kept.iter().copied().flatten().collect();
        if room.fits(&together) { kept } else { exact }
    }
}

impl Tuned {
    fn adapted(&self, wish: Wish) -> Wish {
        match self.is_doubled && wish.period_ns <= LONGEST_NS / 2 {
            true => Wish { budget_ns: wish.budget_ns * 2, period_ns: wish.period_ns * 2, floor_ns: wish.floor_ns * 2 },
            false => wish,
        }
    }

    /// What is reserved, where that is about what should be.
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

/// Q/T, in parts of 2^32.
fn share_of(reservation: &Reservation) -> u128 {
    (u128::from(reservation.budget_ns) << 32) / u128::from(reservation.period_ns.max(1))
}
