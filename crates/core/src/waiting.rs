// SPDX-License-Identifier: MIT
//! The best-effort queue, in two levels: groups, and in each group the clients that wait.
//!
//! A group stands in `groups` by its best client's tier and by what the policy says of the group; its clients stand in a
//! queue of its own. So the first client is found at once, and a client or a whole group is moved in O(log n).
//!
//! Invariants: a group is in `groups` where its queue is not empty, and nowhere else; `places[c]` is the position of `c` in
//! the queue of its group. Room is taken by [`Waiting::join`] alone; nothing else allocates.

use crate::ClientId;
use crate::heap::{self, Heap};
use crate::policy::Key;
use alloc::vec::Vec;

/// Tier, then what the policy says.
type Place = (i64, Key);

#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Groups by number, which is below [`ClientId::LIMIT`] too.
    groups: Heap<Place>,
    queues: Vec<Vec<(Place, ClientId)>>,
    /// Where each client stands in the queue of its group.
    places: Vec<u16>,
    /// In whose queue it stands.
    of: Vec<u16>,
    len: usize,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Waiting::default()
    }

    /// Makes room for a client in a group that has so many.
    pub(crate) fn join(&mut self, client: ClientId, group: usize, members: usize) {
        if self.places.len() <= client.slot() {
            self.places.resize(client.slot() + 1, heap::ABSENT);
            self.of.resize(client.slot() + 1, 0);
        }
        if self.queues.len() <= group {
            self.queues.resize_with(group + 1, Vec::new);
        }
        self.groups.reserve(group);
        let queue = &mut self.queues[group];
        let more = members.saturating_sub(queue.len());
        // Most groups have one client. A vector's first room by itself is for four; a crowd's must grow faster than one by one.
        if queue.capacity() == 0 { queue.reserve_exact(more) } else { queue.reserve(more) }
    }

    /// The first client, with its tier.
    pub(crate) fn peek(&self) -> Option<(i64, ClientId)> {
        let (_, group) = self.groups.peek()?;
        let ((tier, _), client) = *self.queues[group.slot()].first()?;
        Some((tier, client))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn contains(&self, client: ClientId) -> bool {
        self.places.get(client.slot()).is_some_and(|&place| place != heap::ABSENT)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.queues.iter().flatten().map(|entry| entry.1)
    }

    /// Puts a client into the queue of its group, or moves it there.
    pub(crate) fn set(&mut self, client: ClientId, group: usize, place: Place) {
        if self.contains(client) && self.of[client.slot()] != group as u16 {
            self.remove(client);
        }
        self.len += usize::from(!self.contains(client));
        self.of[client.slot()] = group as u16;
        heap::set(&mut self.queues[group], &mut self.places, client, place);
    }

    pub(crate) fn remove(&mut self, client: ClientId) {
        if self.contains(client) {
            let group = self.of[client.slot()];
            heap::remove(&mut self.queues[usize::from(group)], &mut self.places, client);
            self.len -= 1;
            if self.queues[usize::from(group)].is_empty() {
                self.groups.remove(ClientId(group));
            }
        }
    }

    /// Puts a group where it belongs: `key` is the policy's, given the first of its clients.
    pub(crate) fn settle(&mut self, group: usize, key: impl FnOnce(ClientId) -> Key) {
        match self.queues.get(group).and_then(|queue| queue.first()) {
            Some(&((tier, _), first)) => self.groups.set(ClientId(group as u16), (tier, key(first))),
            None => {
                self.groups.remove(ClientId(group as u16));
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let entries: usize = self.queues.iter().map(Vec::capacity).sum();
        let queues = self.queues.capacity() * size_of::<Vec<(Place, ClientId)>>();
        let places = (self.places.capacity() + self.of.capacity()) * size_of::<u16>();
        self.groups.memory_bytes() + entries * size_of::<(Place, ClientId)>() + queues + places
    }

    /// Panics unless the invariants hold; for tests.
    pub(crate) fn check(&self) {
        self.groups.check();
        assert_eq!(self.queues.iter().map(Vec::len).sum::<usize>(), self.len);
        for (group, queue) in self.queues.iter().enumerate() {
            heap::check(queue, &self.places);
            assert_eq!(self.groups.contains(ClientId(group as u16)), !queue.is_empty(), "group {group}");
            assert!(queue.iter().all(|(_, client)| usize::from(self.of[client.slot()]) == group), "group {group}");
        }
    }
}
