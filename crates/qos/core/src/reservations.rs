// SPDX-License-Identifier: MIT
//! Reservations: Constant Bandwidth Servers ([`crate::reservation`]), each for one client or shared by the clients of a
//! group.
//!
//! Reservations are ordered by their scheduling deadlines. Within a group, the client that has used the least budget
//! relative to its weight goes first, as in `fair` (two levels: Lipari and Baruah, "A hierarchical extension to the
//! constant bandwidth server framework", RTAS 2001). A client's own reservation is a group of one.
//!
//! - The **members** of a group's reservation are its clients that have neither a reservation of their own nor a role.
//!   Compositors and window managers are excluded because other clients wait for them.
//! - A reservation **arrives** when its first member becomes ready. A member that returns from idleness starts at most
//!   [`CREDIT_NS`] behind the member picked last.
//! - A slice from a group's budget is at most as long as a slice of `fair`, so that members take turns within a period.
//! - When the budget is used up, members of a **soft** reservation continue as best effort, each on its own account.
//!   Members of a **hard** one are held back. Under the **paper's** soft rule the next budget begins immediately, with
//!   a later deadline.
//!
//! Members are not moved one by one when a budget ends or is renewed: members of a soft reservation are always in the
//! best-effort queue as well, which is not consulted while a reservation has budget. The watcher knows the first
//! `known` members in `idle`. A renewal resets `known`, because idle members must then be watched again.
//!
//! Invariants: a member that is not paced is in `ready` or in `idle`. A reservation is in `with_budget` if it has
//! budget and a ready member, in `to_watch` if it has budget and an idle member that the watcher does not know, and in
//! `depleted` if it has no budget. Memory is allocated when a client connects or becomes a member.

mod view;

use crate::heap::{self, ABSENT, Heap};
use crate::policy::{CREDIT_NS, price};
use crate::{ClientId, Holder, Reservation, ReservationState, Time};
use alloc::vec::Vec;

#[derive(Debug)]
struct Shared {
    holder: Holder,
    state: ReservationState,
    members: usize,
    /// The amount that the member picked last has paid; a new member starts with this amount.
    clock: i64,
    ready: Vec<(i64, ClientId)>,
    idle: Vec<ClientId>,
    known: usize,
}

/// The membership of a client; `reservation` is [`ABSENT`] if it is not a member.
#[derive(Clone, Copy, Debug)]
struct Member {
    reservation: u16,
    idle_place: u16,
    /// Virtual time: the budget used, in nanoseconds * 100 / weight. It starts at the group's `clock`.
    paid: i64,
}

const NO_MEMBER: Member = Member { reservation: ABSENT, idle_place: ABSENT, paid: 0 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberList {
    Ready,
    Idle,
    /// A paced member is in neither list.
    Neither,
}

#[derive(Debug, Default)]
pub(crate) struct Reservations {
    /// The reservations by number. A number never changes, so there can be gaps.
    all: Vec<Option<Shared>>,
    members: Vec<Member>,
    ready_places: Vec<u16>,
    with_budget: Heap<(Time, Holder)>,
    to_watch: Heap<(Time, Holder)>,
    depleted: Heap<Time>,
    /// Ended reservations whose use still counts against the next one of the same holder.
    pub(crate) past: Vec<(Holder, ReservationState)>,
}

impl Reservations {
    // Settings.

    /// Makes room for a client that is not a member.
    pub(crate) fn connected(&mut self, client: ClientId) {
        if self.members.len() <= client.slot() {
            self.members.resize(client.slot() + 1, NO_MEMBER);
            self.ready_places.resize(client.slot() + 1, ABSENT);
        }
    }

    /// Gives a client or a group a reservation, in place of its current one. `longest_ns`: the longest period of all
    /// reservations.
    pub(crate) fn set(&mut self, holder: Holder, reservation: Reservation, now: Time, longest_ns: u64) {
        let number = self.number_of(holder);
        let before = number.and_then(|number| self.shared(number)).map(|shared| shared.state);
        let past = self.past.iter().find(|(id, _)| *id == holder).map(|(_, state)| *state);
        self.past.retain(|(id, _)| *id != holder);
        let state = match before.or(past) {
            Some(before) => before.replaced_by(reservation, now, longest_ns),
            None => ReservationState::new(reservation, now),
        };
        self.put(holder, state, 0);
    }

    /// Sets the state of a reservation or creates it. `clock`: the initial payment of new members.
    pub(crate) fn put(&mut self, holder: Holder, state: ReservationState, clock: i64) {
        let number = self.number_of(holder).unwrap_or_else(|| {
            let free = self.all.iter().position(Option::is_none).unwrap_or(self.all.len());
            self.all.resize_with(self.all.len().max(free + 1), || None);
            let (ready, idle) = (Vec::new(), Vec::new());
            self.all[free] = Some(Shared { holder, state, members: 0, clock, ready, idle, known: 0 });
            for heap in [&mut self.with_budget, &mut self.to_watch] {
                heap.reserve(free);
            }
            self.depleted.reserve(free);
            free
        });
        if let Some(shared) = self.all.get_mut(number).and_then(Option::as_mut) {
            (shared.state, shared.known) = (state, 0);
        }
        self.settle(number);
    }

    /// Ends a reservation; the caller then calls [`join`](Self::join) for its members. Returns true if there was one.
    pub(crate) fn end(&mut self, holder: Holder, now: Time) -> bool {
        let Some(number) = self.number_of(holder) else { return false };
        if let Holder::Client(client) = holder {
            self.leave(client);
        }
        let Some(ended) = self.all[number].take() else { return false };
        self.past.retain(|(_, state)| state.is_ahead(now));
        self.past.push((holder, ended.state));
        for (_, client) in ended.ready {
            self.ready_places[client.slot()] = ABSENT;
        }
        for client in ended.idle {
            self.members[client.slot()].idle_place = ABSENT;
        }
        self.settle(number);
        true
    }

    /// Makes a client a member of its own reservation, or else of its group's if there is one. Returns true if it left
    /// a group's reservation to do so.
    pub(crate) fn join(&mut self, client: ClientId, group: Option<Holder>) -> bool {
        let own = self.number_of(Holder::Client(client));
        let number = own.or_else(|| group.and_then(|group| self.number_of(group)));
        let reservation = number.map_or(ABSENT, |number| number as u16);
        if self.members[client.slot()].reservation == reservation {
            return false;
        }
        // The reservation of its group may just have ended.
        let did_share = match self.shared_by(client) {
            Some(shared) => shared.holder != Holder::Client(client),
            None => self.members[client.slot()].reservation != ABSENT,
        };
        self.leave(client);
        if let Some(shared) = number.and_then(|number| self.all[number].as_mut()) {
            shared.members += 1;
            shared.ready.reserve(shared.members - shared.ready.len());
            shared.idle.reserve(shared.members - shared.idle.len());
            self.members[client.slot()] = Member { reservation, paid: shared.clock, ..NO_MEMBER };
        }
        did_share && !self.is_shared(client)
    }

    pub(crate) fn leave(&mut self, client: ClientId) {
        self.place(client, MemberList::Neither, Time(0));
        let Some(left) = self.members.get_mut(client.slot()) else { return };
        let reservation = core::mem::replace(left, NO_MEMBER).reservation;
        if let Some(shared) = self.all.get_mut(usize::from(reservation)).and_then(Option::as_mut) {
            shared.members -= 1;
        }
    }

    /// Ends the reservation of a client that has disconnected.
    pub(crate) fn gone(&mut self, client: ClientId, now: Time) {
        self.end(Holder::Client(client), now);
        self.past.retain(|(holder, _)| *holder != Holder::Client(client));
        self.leave(client);
    }

    // Events.

    /// Moves a member to the list that it belongs to.
    pub(crate) fn place(&mut self, client: ClientId, list: MemberList, now: Time) {
        let Some(&Member { reservation, paid, idle_place }) = self.members.get(client.slot()) else { return };
        let Some(shared) = self.all.get_mut(usize::from(reservation)).and_then(Option::as_mut) else { return };
        if list == MemberList::Ready {
            if shared.ready.is_empty() {
                shared.state.arrived(now);
            }
            heap::set(&mut shared.ready, &mut self.ready_places, client, paid);
        } else {
            heap::remove(&mut shared.ready, &mut self.ready_places, client);
        }
        match (list, idle_place) {
            (MemberList::Idle, ABSENT) => {
                self.members[client.slot()].idle_place = shared.idle.len() as u16;
                shared.idle.push(client);
            }
            (MemberList::Idle, _) | (_, ABSENT) => {}
            (_, place) => {
                let mut place = usize::from(place);
                if place < shared.known {
                    shared.known -= 1;
                    swap(&mut shared.idle, &mut self.members, place, shared.known);
                    place = shared.known;
                }
                let last = shared.idle.len() - 1;
                swap(&mut shared.idle, &mut self.members, place, last);
                shared.idle.pop();
                self.members[client.slot()].idle_place = ABSENT;
            }
        }
        self.settle(usize::from(reservation));
    }

    /// A member was idle and became ready.
    pub(crate) fn arrived(&mut self, client: ClientId) {
        let Some(least) = self.shared_by(client).map(|shared| shared.clock.saturating_sub(CREDIT_NS)) else { return };
        let member = &mut self.members[client.slot()];
        member.paid = member.paid.max(least);
    }

    /// A member was picked. Returns when the budget ends, and whether a deadline was missed.
    pub(crate) fn picked(&mut self, client: ClientId, now: Time) -> Option<(Time, bool)> {
        let Member { reservation, paid, .. } = *self.members.get(client.slot())?;
        let shared = self.all.get_mut(usize::from(reservation))?.as_mut()?;
        shared.clock = shared.clock.max(paid);
        Some((shared.state.budget_end(now), shared.state.misses(now)))
    }

    /// Charges a member for a service of `ns` that ended at `end`; `is_capped`: its group has a cap. Returns whether
    /// the budget is depleted now and whether a deadline was missed. The caller then places the member again.
    pub(crate) fn served(
        &mut self,
        client: ClientId,
        (ns, end): (u64, Time),
        weight: u32,
        is_capped: bool,
    ) -> Option<(bool, bool)> {
        let member = self.members.get_mut(client.slot())?;
        let shared = self.all.get_mut(usize::from(member.reservation))?.as_mut()?;
        member.paid = member.paid.saturating_add(price(ns, weight));
        let number = usize::from(member.reservation);
        let missed = shared.state.misses(end);
        let depleted = shared.state.charge(ns);
        if !is_capped {
            shared.state.postpone(end);
        }
        self.settle(number);
        Some((depleted, missed))
    }

    /// Replenishes one depleted reservation whose deadline has passed. Returns its holder once it has budget again.
    pub(crate) fn replenish(&mut self, now: Time) -> Option<Holder> {
        while let Some((_, number)) = self.depleted.peek().filter(|&(at, _)| at <= now) {
            let Some(shared) = self.all[number.slot()].as_mut() else {
                self.depleted.remove(number);
                continue;
            };
            let holder = shared.holder;
            let has_budget = shared.state.replenish(now);
            shared.known = 0;
            self.settle(number.slot());
            if has_budget {
                return Some(holder);
            }
        }
        None
    }

    /// Records that the watcher knows this member, which was the next one to watch.
    pub(crate) fn mark_known(&mut self, client: ClientId) {
        let Some(&Member { reservation, idle_place, .. }) = self.members.get(client.slot()) else { return };
        let Some(shared) = self.all.get_mut(usize::from(reservation)).and_then(Option::as_mut) else { return };
        let place = usize::from(idle_place);
        if shared.state.depleted || idle_place == ABSENT || place < shared.known {
            return;
        }
        swap(&mut shared.idle, &mut self.members, place, shared.known);
        shared.known += 1;
        self.settle(usize::from(reservation));
    }

    fn shared_by(&self, client: ClientId) -> Option<&Shared> {
        self.shared(usize::from(self.members.get(client.slot())?.reservation))
    }

    fn shared(&self, number: usize) -> Option<&Shared> {
        self.all.get(number)?.as_ref()
    }

    fn number_of(&self, holder: Holder) -> Option<usize> {
        self.all.iter().position(|shared| shared.as_ref().is_some_and(|shared| shared.holder == holder))
    }

    /// Moves a reservation to the queues that it belongs to.
    fn settle(&mut self, number: usize) {
        let id = ClientId(number as u16);
        let state = self.shared(number).map(|shared| {
            let has_budget = !shared.state.depleted;
            let runs = has_budget && !shared.ready.is_empty();
            let is_to_watch = has_budget && shared.known < shared.idle.len();
            ((shared.state.deadline, shared.holder), runs, is_to_watch, !has_budget)
        });
        let nowhere = ((Time(0), Holder::Client(id)), false, false, false);
        let (key, runs, is_to_watch, depleted) = state.unwrap_or(nowhere);
        put(&mut self.with_budget, id, key, runs);
        put(&mut self.to_watch, id, key, is_to_watch);
        put(&mut self.depleted, id, key.0, depleted);
    }
}

fn put<K: Ord + Copy>(heap: &mut Heap<K>, id: ClientId, key: K, is_in: bool) {
    if is_in {
        heap.set(id, key);
    } else {
        heap.remove(id);
    }
}

fn swap(idle: &mut [ClientId], members: &mut [Member], a: usize, b: usize) {
    idle.swap(a, b);
    for place in [a, b] {
        members[idle[place].slot()].idle_place = place as u16;
    }
}
