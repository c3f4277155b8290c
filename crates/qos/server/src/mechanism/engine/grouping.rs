// SPDX-License-Identifier: MIT
//! Assigns clients to groups, and keeps their holds and the groups' settings up to date.

use super::{Engine, Target};
use crate::mechanism::groups::Member;
use crate::mechanism::host::Host;
use xqos_abi::{Grouping, Label};
use xqos_core::{ClientId, Fact, GroupId, Holder};

impl<H: Host> Engine<H> {
    /// Moves a client into the group it now belongs to. If the client stays in its group, the group keeps its settings,
    /// even without another client.
    pub(super) fn regroup(&mut self, id: ClientId) {
        let Some(slot) = self.slots.get_mut(usize::from(id.0)).and_then(Option::as_mut) else { return };
        let group = self.groups.enter(&Member {
            identity: slot.identity,
            program: &slot.program,
            control_group: slot.control_group.as_deref(),
            named: slot.named,
        });
        let before = std::mem::replace(&mut slot.group, group);
        self.scheduler.handle(self.now, Fact::Group { client: id, group });
        self.leave(id, before);
        self.sync_hold(id);
    }

    pub(super) fn leave_group(&mut self, id: ClientId) {
        let group = self.slot_mut(id).map(|slot| std::mem::replace(&mut slot.group, GroupId::NONE));
        self.leave(id, group.unwrap_or_default());
    }

    fn leave(&mut self, id: ClientId, group: GroupId) {
        // Reset the group's settings: its number may soon belong to another group.
        let ended = self.groups.leave(group).unwrap_or_default();
        ended.kinds().for_each(|kind| self.apply_initial(Target::Group(group, id), kind));
    }

    pub(super) fn set_grouping(&mut self, grouping: Grouping) {
        if std::mem::replace(&mut self.groups.grouping, grouping) != grouping {
            self.ids().for_each(|id| self.regroup(id));
        }
    }

    /// Puts a client into the group of this name; an empty name restores the automatic group.
    pub(super) fn set_group_name(&mut self, id: ClientId, name: Label) {
        if let Some(slot) = self.slot_mut(id) {
            slot.named = Some(name).filter(|name| !name.is_empty());
        }
        self.regroup(id);
    }

    pub(super) fn group_resumed(&mut self, group: GroupId) {
        let is_hard = self.scheduler.group_reservation(group).is_some_and(|state| state.reservation.kind.is_hard());
        if is_hard || self.scheduler.has_caps() {
            self.sync_holds();
        }
    }

    /// Returns true if the client is held back because the budget of its group is used up.
    pub(super) fn is_held_with_group(&self, id: ClientId) -> bool {
        let state = self.scheduler.reservation_in_use(id).filter(|_| self.scheduler.shares_reservation(id));
        // A soft reservation whose budget is used up no longer exempts its clients from a cap.
        state.is_some_and(|state| state.depleted && (state.reservation.kind.is_hard() || self.scheduler.has_caps()))
    }

    /// Holds back or releases every client, as the scheduler now requires.
    pub fn sync_holds(&mut self) {
        self.ids().for_each(|id| self.sync_hold(id));
    }

    /// Returns true if the client's user may reserve this much in addition to the user's other reservations.
    pub fn is_within_user_limit(&self, id: ClientId, holder: Holder, ppm: u32) -> bool {
        let Some(uid) = self.slot(id).map(|slot| slot.identity.uid) else { return true };
        let limit_ppm = self.groups.user_limit_ppm;
        if limit_ppm == 0 || uid == 0 || uid == self.host.user() {
            return true;
        }
        let is_of_user = |holder: Holder| match holder {
            Holder::Client(other) => self.slot(other).is_some_and(|slot| slot.identity.uid == uid),
            Holder::Group(group) => self.groups.is_reserved_for(group, uid),
        };
        let others = self.scheduler.reservations().filter(|&(other, _)| other != holder && is_of_user(other));
        let sum: u64 = others.map(|(_, reservation)| reservation.utilization_ppm()).map(u64::from).sum();
        sum + u64::from(ppm) <= u64::from(limit_ppm)
    }
}
