// SPDX-License-Identifier: MIT
//! A binary heap that records the position of each client, so that a client can be moved or removed in O(log n).
//!
//! Invariants: `places[c]` is the position of `c` in `entries`, or `ABSENT`; no entry is smaller than its parent. Only
//! [`Heap::reserve`] allocates; it makes room for all clients. The free functions serve several heaps that share one
//! `places`; each client is in at most one of these heaps.

use crate::ClientId;
use alloc::vec::Vec;

pub(crate) const ABSENT: u16 = u16::MAX;

#[derive(Debug)]
pub(crate) struct Heap<K> {
    entries: Vec<(K, ClientId)>,
    places: Vec<u16>,
}

impl<K> Default for Heap<K> {
    fn default() -> Self {
        Heap { entries: Vec::new(), places: Vec::new() }
    }
}

impl<K: Ord + Copy> Heap<K> {
    /// Makes room for client slots up to `slot`.
    pub(crate) fn reserve(&mut self, slot: usize) {
        if self.places.len() <= slot {
            self.places.resize(slot + 1, ABSENT);
        }
        self.entries.reserve(self.places.len().saturating_sub(self.entries.len()));
    }

    pub(crate) fn peek(&self) -> Option<(K, ClientId)> {
        self.entries.first().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn contains(&self, client: ClientId) -> bool {
        place(&self.places, client).is_some()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.entries.iter().map(|entry| entry.1)
    }

    /// Inserts a client, or changes its key.
    pub(crate) fn set(&mut self, client: ClientId, key: K) {
        set(&mut self.entries, &mut self.places, client, key);
    }

    pub(crate) fn remove(&mut self, client: ClientId) -> bool {
        remove(&mut self.entries, &mut self.places, client)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(K, ClientId)>() + self.places.capacity() * size_of::<u16>()
    }

    /// Panics if an invariant is broken; for tests.
    pub(crate) fn check(&self) {
        check(&self.entries, &self.places);
        assert_eq!(self.places.iter().filter(|&&place| place != ABSENT).count(), self.entries.len());
    }
}

/// Inserts a client, or changes its key.
pub(crate) fn set<K: Ord + Copy>(entries: &mut Vec<(K, ClientId)>, places: &mut [u16], client: ClientId, key: K) {
    let place = match place(places, client) {
        Some(place) => {
            entries[place].0 = key;
            place
        }
        None => {
            entries.push((key, client));
            entries.len() - 1
        }
    };
    settle(entries, places, place);
}

pub(crate) fn remove<K: Ord + Copy>(entries: &mut Vec<(K, ClientId)>, places: &mut [u16], client: ClientId) -> bool {
    let Some(place) = place(places, client) else { return false };
    places[client.slot()] = ABSENT;
    entries.swap_remove(place);
    if place < entries.len() {
        settle(entries, places, place);
    }
    true
}

fn place(places: &[u16], client: ClientId) -> Option<usize> {
    places.get(client.slot()).filter(|&&place| place != ABSENT).map(|&place| usize::from(place))
}

/// Moves the entry at `place` up or down to its position.
fn settle<K: Ord + Copy>(entries: &mut [(K, ClientId)], places: &mut [u16], mut place: usize) {
    let mut swap = |entries: &mut [(K, ClientId)], a: usize, b: usize| {
        entries.swap(a, b);
        places[entries[a].1.slot()] = a as u16;
    };
    while place > 0 && entries[place] < entries[(place - 1) / 2] {
        swap(entries, place, (place - 1) / 2);
        place = (place - 1) / 2;
    }
    loop {
        let mut least = place;
        for child in [2 * place + 1, 2 * place + 2] {
            if child < entries.len() && entries[child] < entries[least] {
                least = child;
            }
        }
        if least == place {
            break;
        }
        swap(entries, place, least);
        place = least;
    }
    places[entries[place].1.slot()] = place as u16;
}

/// Panics if an invariant is broken; for tests.
pub(crate) fn check<K: Ord + Copy>(entries: &[(K, ClientId)], places: &[u16]) {
    for (place, &(key, client)) in entries.iter().enumerate() {
        assert_eq!(usize::from(places[client.slot()]), place, "the heap has a wrong position for {client:?}");
        assert!(place == 0 || entries[(place - 1) / 2].0 <= key, "a child is smaller than its parent");
    }
}
