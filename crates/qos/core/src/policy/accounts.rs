// SPDX-License-Identifier: MIT
//! Accounts of groups and clients under `fair`: the server time that each has paid.
//!
//! A group has one account for each SYNC priority of its clients. A client in no group has its own group account.
//! Invariant: each connected client has an account and is counted in exactly one group account; a group account without
//! clients does not exist.

use super::Facts;
use crate::{ClientId, GroupId};
use alloc::vec::Vec;

/// `paid` is nanoseconds of server time * 100 / weight. It is signed because it can be negative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    group: usize,
    pub(super) paid: i64,
    pub(super) weight: u32,
    pub(super) noticed: bool,
    /// How long the client was idle before it became ready, in microseconds.
    pub(super) rested_us: u32,
}

/// The account of a group, for its clients of one SYNC priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupAccount {
    id: GroupId,
    pub(super) sync_priority: i32,
    pub(super) members: usize,
    pub(super) weight: u32,
    /// 0: not set.
    set_weight: u32,
    pub(super) paid: i64,
    /// The amount that the last picked client of the group had paid; returning clients start near it.
    pub(super) clock: i64,
}

impl GroupAccount {
    pub(super) fn is_for(&self, facts: &Facts) -> bool {
        self.id == facts.group && self.sync_priority == facts.sync_priority
    }
}

#[derive(Debug, Default)]
pub(super) struct Accounts {
    clients: Vec<Option<Account>>,
    groups: Vec<Option<GroupAccount>>,
}

const NO_ACCOUNT: Account = Account { group: usize::MAX, paid: 0, weight: 100, noticed: false, rested_us: 0 };
const NO_GROUP: GroupAccount =
    GroupAccount { id: GroupId::NONE, sync_priority: 0, members: 0, weight: 100, set_weight: 0, paid: 0, clock: 0 };

impl Accounts {
    pub(super) fn account(&self, client: ClientId) -> Account {
        self.clients.get(client.slot()).copied().flatten().unwrap_or(NO_ACCOUNT)
    }

    pub(super) fn account_mut(&mut self, client: ClientId) -> Option<&mut Account> {
        self.clients.get_mut(client.slot())?.as_mut()
    }

    /// The index of a client's group; indices are smaller than the number of clients.
    pub(super) fn group_number(&self, client: ClientId) -> usize {
        self.account(client).group
    }

    pub(super) fn group(&self, client: ClientId) -> GroupAccount {
        self.groups.get(self.group_number(client)).copied().flatten().unwrap_or(NO_GROUP)
    }

    pub(super) fn group_mut(&mut self, client: ClientId) -> Option<&mut GroupAccount> {
        let number = self.group_number(client);
        self.groups.get_mut(number)?.as_mut()
    }

    pub(super) fn has_sync_priority(&self, sync_priority: i32) -> bool {
        self.groups.iter().flatten().any(|group| group.sync_priority == sync_priority)
    }

    /// Opens an account for a client and adds it to its group's account; a new group account starts with `paid`. Only
    /// this call allocates memory.
    pub(super) fn enter(&mut self, client: ClientId, facts: &Facts, paid: i64) {
        let is_its = |group: &Option<GroupAccount>| group.as_ref().is_some_and(|group| group.is_for(facts));
        let known = if facts.group == GroupId::NONE { None } else { self.groups.iter().position(is_its) };
        let number = known.unwrap_or_else(|| {
            let free = self.groups.iter().position(Option::is_none).unwrap_or(self.groups.len());
            self.groups.resize(self.groups.len().max(free + 1), None);
            let (id, sync_priority) = (facts.group, facts.sync_priority);
            self.groups[free] = Some(GroupAccount { id, sync_priority, paid, ..NO_GROUP });
            free
        });
        let clock = self.groups[number].as_mut().map_or(0, |group| {
            group.members += 1;
            group.clock
        });
        if self.clients.len() <= client.slot() {
            self.clients.resize(client.slot() + 1, None);
        }
        self.clients[client.slot()] = Some(Account { group: number, paid: clock, ..NO_ACCOUNT });
        self.set_weights(client, facts);
    }

    /// Closes a client's account, and its group's account if this was the group's last client.
    pub(super) fn leave(&mut self, client: ClientId) -> Account {
        let account = self.account(client);
        if let Some(closed) = self.clients.get_mut(client.slot()) {
            *closed = None;
        }
        if let Some(group) = self.groups.get_mut(account.group) {
            *group = group.filter(|one| one.members > 1).map(|one| GroupAccount { members: one.members - 1, ..one });
            self.weigh(account.group);
        }
        account
    }

    pub(super) fn set_weights(&mut self, client: ClientId, facts: &Facts) {
        if let Some(account) = self.account_mut(client) {
            account.weight = facts.weight;
        }
        if let Some(group) = self.group_mut(client) {
            group.set_weight = facts.group_weight;
        }
        self.weigh(self.group_number(client));
    }

    /// Sets a group's weight to the configured weight, or else to the weight of its heaviest client.
    fn weigh(&mut self, number: usize) {
        let Some(group) = self.groups.get_mut(number).and_then(Option::as_mut) else { return };
        let members = self.clients.iter().flatten().filter(|account| account.group == number);
        let heaviest = members.map(|account| account.weight).max().unwrap_or(100);
        group.weight = if group.set_weight > 0 { group.set_weight } else { heaviest };
    }
}
