//! A binary heap of clients that knows where each one stands, so that a client can be moved or removed in O(log n).
//!
//! Invariants: `places[c]` is the position of `c` in `entries` and `ABSENT` elsewhere; no entry is smaller than its
//! parent. Room for all clients is taken by [`Heap::reserve`]; nothing else allocates.

use crate::ClientId;
use alloc::vec::Vec;

const ABSENT: u16 = u16::MAX;

#[derive(Debug, Default)]
pub(crate) struct Heap<K> {
    entries: Vec<(K, ClientId)>,
    places: Vec<u16>,
}

impl<K: Ord + Copy> Heap<K> {
    pub(crate) fn new() -> Self {
        Heap { entries: Vec::new(), places: Vec::new() }
    }

    /// Makes room for clients up to `slot`.
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
        self.place(client).is_some()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.entries.iter().map(|entry| entry.1)
    }

    /// Puts a client in, or moves it to another key.
    pub(crate) fn set(&mut self, client: ClientId, key: K) {
        let place = match self.place(client) {
            Some(place) => {
                self.entries[place].0 = key;
                place
            }
            None => {
                self.entries.push((key, client));
                self.entries.len() - 1
            }
        };
        self.settle(place);
    }

    pub(crate) fn remove(&mut self, client: ClientId) -> bool {
        let Some(place) = self.place(client) else { return false };
        self.places[client.slot()] = ABSENT;
        self.entries.swap_remove(place);
        if place < self.entries.len() {
            self.settle(place);
        }
        true
    }

    fn place(&self, client: ClientId) -> Option<usize> {
        self.places.get(client.slot()).filter(|&&place| place != ABSENT).map(|&place| usize::from(place))
    }

    /// Moves the entry at `place` up or down to where it belongs.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.entries[place] < self.entries[(place - 1) / 2] {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.entries.len() && self.entries[child] < self.entries[least] {
                    least = child;
                }
            }
            if least == place {
                break;
            }
            self.swap(place, least);
            place = least;
        }
        self.note(place);
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.entries.swap(a, b);
        self.note(a);
        self.note(b);
    }

    fn note(&mut self, place: usize) {
        let slot = self.entries[place].1.slot();
        self.places[slot] = place as u16;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(K, ClientId)>() + self.places.capacity() * size_of::<u16>()
    }

    /// Panics unless the invariants hold; for tests.
    pub(crate) fn check(&self) {
        for (place, &(key, client)) in self.entries.iter().enumerate() {
            assert_eq!(usize::from(self.places[client.slot()]), place, "{client:?} is not where the heap notes it");
            assert!(place == 0 || self.entries[(place - 1) / 2].0 <= key, "a child is smaller than its parent");
        }
        assert_eq!(self.places.iter().filter(|&&place| place != ABSENT).count(), self.entries.len());
    }
}
