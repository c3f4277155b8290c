// SPDX-License-Identifier: MIT
//! The best-effort queue, on two levels: groups, and in each group the clients that wait.
//!
//! `groups` orders the groups by the tier of their best client and by the policy's key; each group has a queue for its
//! clients. Finding the first client costs O(1), moving a client or a whole group O(log n).
//!
//! Invariants: a group is in `groups` if and only if its queue is not empty; `places[c]` is the position of `c` in the
//! queue of its group. Only [`Waiting::join`] allocates.

use crate::ClientId;
use crate::heap::{self, Heap};
use crate::policy::QueueKey;
use alloc::vec::Vec;

/// The tier, then the policy's key.
type WaitingKey = (i64, QueueKey);

#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Groups by number, which fits a `ClientId` because it is below [`ClientId::LIMIT`].
    groups: Heap<WaitingKey>,
    queues: Vec<Vec<(WaitingKey, ClientId)>>,
    /// The position of each client in the queue of its group.
    places: Vec<u16>,
    group_of: Vec<u16>,
    len: usize,
}

impl Waiting {
    /// Makes room for a client in a group with `members` clients.
    pub(crate) fn join(&mut self, client: ClientId, group: usize, members: usize) {
        if self.places.len() <= client.slot() {
            self.places.resize(client.slot() + 1, heap::ABSENT);
            self.group_of.resize(client.slot() + 1, 0);
        }
        if self.queues.len() <= group {
            self.queues.resize_with(group + 1, Vec::new);
        }
        self.groups.reserve(group);
        let queue = &mut self.queues[group];
        let more = members.saturating_sub(queue.len());
        // Most groups have one client: avoid a vector's minimum of four. Large groups must not grow one by one.
        if queue.capacity() == 0 { queue.reserve_exact(more) } else { queue.reserve(more) }
    }

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

    /// Inserts a client into the queue of its group, or changes its position.
    pub(crate) fn set(&mut self, client: ClientId, group: usize, place: WaitingKey) {
        if self.contains(client) && self.group_of[client.slot()] != group as u16 {
            self.remove(client);
        }
        self.len += usize::from(!self.contains(client));
        self.group_of[client.slot()] = group as u16;
        heap::set(&mut self.queues[group], &mut self.places, client, place);
    }

    pub(crate) fn remove(&mut self, client: ClientId) {
        if self.contains(client) {
            let group = self.group_of[client.slot()];
            heap::remove(&mut self.queues[usize::from(group)], &mut self.places, client);
            self.len -= 1;
            if self.queues[usize::from(group)].is_empty() {
                self.groups.remove(ClientId(group));
            }
        }
    }

    /// Moves a group to its position; `key` returns the policy's key, given the first client of the group.
    pub(crate) fn settle(&mut self, group: usize, key: impl FnOnce(ClientId) -> QueueKey) {
        match self.queues.get(group).and_then(|queue| queue.first()) {
            Some(&((tier, _), first)) => self.groups.set(ClientId(group as u16), (tier, key(first))),
            None => {
                self.groups.remove(ClientId(group as u16));
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let entries: usize = self.queues.iter().map(Vec::capacity).sum();
        let queues = self.queues.capacity() * size_of::<Vec<(WaitingKey, ClientId)>>();
        let places = (self.places.capacity() + self.group_of.capacity()) * size_of::<u16>();
        self.groups.memory_bytes() + entries * size_of::<(WaitingKey, ClientId)>() + queues + places
    }

    /// Panics if an invariant is broken; for tests.
    pub(crate) fn check(&self) {
        self.groups.check();
        assert_eq!(self.queues.iter().map(Vec::len).sum::<usize>(), self.len);
        for (group, queue) in self.queues.iter().enumerate() {
            heap::check(queue, &self.places);
            assert_eq!(self.groups.contains(ClientId(group as u16)), !queue.is_empty(), "group {group}");
            assert!(queue.iter().all(|(_, id)| usize::from(self.group_of[id.slot()]) == group), "group {group}");
        }
    }
}
