// SPDX-License-Identifier: MIT
//! Reservations: queries, the order of reservations, and the check of their invariants.

use super::{Member, MemberList, Reservations, Shared};
use crate::heap::{self, ABSENT};
use crate::{ClientId, Holder, ReservationState, Time};

impl Reservations {
    /// Each reservation with its holder, its state and the amount that the member picked last had paid.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Holder, &ReservationState, i64)> + Clone + '_ {
        self.all.iter().flatten().map(|shared| (shared.holder, &shared.state, shared.clock))
    }

    pub(crate) fn get(&self, holder: Holder) -> Option<&ReservationState> {
        self.shared(self.number_of(holder)?).map(|shared| &shared.state)
    }

    pub(crate) fn is_shared(&self, client: ClientId) -> bool {
        self.shared_by(client).is_some_and(|shared| shared.holder != Holder::Client(client))
    }

    pub(crate) fn state_of(&self, client: ClientId) -> Option<&ReservationState> {
        self.shared_by(client).map(|shared| &shared.state)
    }

    pub(crate) fn paid(&self, client: ClientId) -> i64 {
        self.members.get(client.slot()).map_or(0, |member| member.paid)
    }

    pub(crate) fn set_paid(&mut self, client: ClientId, paid: i64) {
        if let Some(member) = self.members.get_mut(client.slot()) {
            member.paid = paid;
        }
    }

    /// The scheduling deadline of a member if it became ready now.
    pub(crate) fn deadline_at_arrival(&self, client: ClientId, now: Time) -> Option<Time> {
        let shared = self.shared_by(client)?;
        let is_idle = shared.ready.is_empty();
        Some(if is_idle { shared.state.deadline_at_arrival(now) } else { shared.state.deadline })
    }

    /// The next member to serve: of the reservation with the earliest deadline among those with budget.
    pub(crate) fn first(&self) -> Option<(Time, ClientId)> {
        let ((deadline, _), number) = self.with_budget.peek()?;
        let (_, client) = *self.all[number.slot()].as_ref()?.ready.first()?;
        Some((deadline, client))
    }

    /// The next idle member to watch among the members of reservations with budget.
    pub(crate) fn first_to_watch(&self) -> Option<(Time, ClientId)> {
        let ((deadline, _), number) = self.to_watch.peek()?;
        let shared = self.all[number.slot()].as_ref()?;
        Some((deadline, *shared.idle.get(shared.known)?))
    }

    pub(crate) fn next_replenish(&self) -> Option<Time> {
        self.depleted.peek().map(|(at, _)| at)
    }

    pub(crate) fn ready(&self) -> impl Iterator<Item = ClientId> + '_ {
        let with_budget = self.all.iter().flatten().filter(|shared| !shared.state.depleted);
        with_budget.flat_map(|shared| shared.ready.iter().map(|&(_, client)| client))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let lists = |shared: &Shared| {
            shared.ready.capacity() * size_of::<(i64, ClientId)>() + shared.idle.capacity() * size_of::<ClientId>()
        };
        self.members.capacity() * (size_of::<Member>() + size_of::<u16>())
            + self.all.capacity() * size_of::<Option<Shared>>()
            + self.all.iter().flatten().map(lists).sum::<usize>()
    }

    /// Panics if an invariant is broken; for tests.
    pub(crate) fn check(&self) {
        self.with_budget.check();
        self.to_watch.check();
        self.depleted.check();
        for (number, shared) in self.all.iter().enumerate() {
            let (Some(shared), id) = (shared, ClientId(number as u16)) else { continue };
            heap::check(&shared.ready, &self.ready_places);
            let has_budget = !shared.state.depleted;
            let in_heaps = [self.with_budget.contains(id), self.to_watch.contains(id), self.depleted.contains(id)];
            let runs = has_budget && !shared.ready.is_empty();
            let is_to_watch = has_budget && shared.known < shared.idle.len();
            assert_eq!(in_heaps, [runs, is_to_watch, !has_budget], "{:?}: {shared:?}", shared.holder);
            assert_eq!(shared.state.budget_left_ns > 0, has_budget, "{:?}", shared.holder);
            for (place, client) in shared.idle.iter().enumerate() {
                assert_eq!(usize::from(self.members[client.slot()].idle_place), place, "{client:?}");
            }
            let members = self.members.iter().filter(|member| usize::from(member.reservation) == number).count();
            assert_eq!(members, shared.members, "{:?}", shared.holder);
        }
    }

    /// The list that a member is in; for tests.
    pub(crate) fn list_of(&self, client: ClientId) -> Option<MemberList> {
        let member = self.members.get(client.slot()).filter(|_| self.shared_by(client).is_some())?;
        Some(match (self.ready_places[client.slot()], member.idle_place) {
            (ABSENT, ABSENT) => MemberList::Neither,
            (ABSENT, _) => MemberList::Idle,
            (_, ABSENT) => MemberList::Ready,
            _ => panic!("{client:?} is ready and idle"),
        })
    }
}
