// SPDX-License-Identifier: MIT
//! Reservations of groups: their members, and the order of the members.

use super::{Budget, Client};
use std::collections::BTreeMap;
use xqos_core::{ClientId, GroupId, Reservation};

/// How far behind the last picked member another member can return.
const CREDIT_NS: i128 = 3_000_000;

#[derive(Debug)]
struct Shared {
    budget: Budget,
    /// The amount that the last picked member had paid.
    clock: i128,
    /// True if a member could be served at the last update.
    had_work: bool,
}

/// The reservations, and what each member has paid.
#[derive(Debug, Default)]
pub struct SharedBudgets {
    all: BTreeMap<GroupId, Shared>,
    /// The last ended reservation of each group.
    ended: BTreeMap<GroupId, Budget>,
    members: BTreeMap<ClientId, (GroupId, i128)>,
}

impl SharedBudgets {
    pub fn budget(&self, group: GroupId) -> Option<Budget> {
        self.all.get(&group).map(|shared| shared.budget)
    }

    pub fn group_of(&self, id: ClientId) -> Option<GroupId> {
        self.members.get(&id).map(|&(group, _)| group)
    }

    pub fn budget_of(&self, id: ClientId) -> Option<Budget> {
        self.budget(self.group_of(id)?)
    }

    pub fn budgets(&self) -> impl Iterator<Item = Budget> + '_ {
        self.all.values().map(|shared| shared.budget)
    }

    pub fn set(&mut self, group: GroupId, of: Reservation, now: u64, longest_ns: u64) {
        let before = self.budget(group).or(self.ended.get(&group).copied());
        let budget = Budget::replaced_by(before, of, now, longest_ns);
        self.all.entry(group).or_insert(Shared { budget, clock: 0, had_work: false }).budget = budget;
    }

    pub fn end(&mut self, group: GroupId) -> bool {
        let Some(ended) = self.all.remove(&group) else { return false };
        self.members.retain(|_, member| member.0 != group);
        self.ended.insert(group, ended.budget);
        true
    }

    /// Makes a client a member of that group's reservation. Returns true if it was a member before and is not one now.
    pub fn update_member(&mut self, id: ClientId, group: Option<GroupId>) -> bool {
        let group = group.filter(|group| self.all.contains_key(group));
        let before = self.group_of(id);
        match group {
            Some(group) if before != Some(group) => {
                self.members.insert(id, (group, self.all[&group].clock));
            }
            Some(_) => {}
            None => {
                self.members.remove(&id);
            }
        }
        before.is_some() && group.is_none()
    }

    /// A group arrives when the first of its members can be served.
    pub fn update_arrivals(&mut self, now: u64, works: impl Fn(ClientId) -> bool) {
        for (&group, shared) in &mut self.all {
            let has_work = self.members.iter().any(|(&id, member)| member.0 == group && works(id));
            if has_work && !shared.had_work {
                shared.budget = shared.budget.at_arrival(now);
            }
            shared.had_work = has_work;
        }
    }

    /// A member returns from idleness.
    pub fn arrived(&mut self, id: ClientId) {
        if let Some((group, paid)) = self.members.get_mut(&id) {
            *paid = (*paid).max(self.all[group].clock - CREDIT_NS);
        }
    }

    /// The client to serve, and its group's budget.
    pub fn first(&self, works: impl Fn(ClientId) -> bool) -> Option<(ClientId, Budget)> {
        let with_budget = self.all.iter().filter(|(_, shared)| !shared.budget.depleted);
        let first = |group: GroupId| {
            let members = self.members.iter().filter(|&(&id, member)| member.0 == group && works(id));
            members.min_by_key(|&(&id, member)| (member.1, id)).map(|(&id, _)| id)
        };
        let firsts = with_budget.filter_map(|(&group, shared)| Some((first(group)?, group, shared.budget)));
        firsts.min_by_key(|(_, group, budget)| (budget.deadline, *group)).map(|(id, _, budget)| (id, budget))
    }

    pub fn picked(&mut self, id: ClientId) {
        if let Some(&(group, paid)) = self.members.get(&id) {
            let shared = self.all.get_mut(&group).expect("a member's group has a reservation");
            shared.clock = shared.clock.max(paid);
        }
    }

    pub fn served(&mut self, id: ClientId, (ns, end): (u64, u64), weight: u32, has_cap: bool) {
        if let Some((group, paid)) = self.members.get_mut(&id) {
            *paid += i128::from(ns) * 100 / i128::from(weight);
            let budget = &mut self.all.get_mut(group).expect("a member's group has a reservation").budget;
            *budget = budget.charged(ns, end, has_cap);
        }
    }

    /// The groups that have budget again.
    pub fn replenish(&mut self, now: u64) -> Vec<GroupId> {
        let mut told = Vec::new();
        for (&group, shared) in &mut self.all {
            let was_depleted = shared.budget.depleted;
            shared.budget = shared.budget.replenished(now);
            if was_depleted && !shared.budget.depleted {
                told.push(group);
            }
        }
        told
    }

    /// The budget that this idle client would have on arrival.
    pub fn at_arrival(&self, id: ClientId, arrival: u64) -> Option<Budget> {
        let shared = &self.all[&self.group_of(id)?];
        let budget = shared.budget.replenished(arrival);
        Some(if shared.had_work { budget } else { budget.at_arrival(arrival) })
    }

    /// True if a client can be a member of its group's reservation.
    pub fn may_share(client: &Client, has_role: bool) -> bool {
        client.budget.is_none() && !has_role
    }
}
