// SPDX-License-Identifier: MIT
//! Which client is in which group, and what that does to it.

use super::{Engine, Target};
use crate::host::Host;
use crate::mechanism::groups::Member;
use xqos_abi::{Grouping, Label};
use xqos_core::{ClientId, Fact, GroupId, Holder};

impl<H: Host> Engine<H> {
    /// Puts a client into the group that is its now.
    pub(super) fn regroup(&mut self, id: ClientId) {
        self.leave_group(id);
        let Some(slot) = self.slots.get_mut(usize::from(id.0)).and_then(Option::as_mut) else { return };
        slot.group = self.groups.enter(&Member {
            identity: slot.identity,
            program: &slot.program,
            control_group: slot.control_group.as_deref(),
            named: slot.named,
        });
        let group = slot.group;
        self.scheduler.handle(self.host.now(), Fact::Group { client: id, group });
        self.sync_hold(id);
    }

    pub(super) fn leave_group(&mut self, id: ClientId) {
        let Some(group) = self.slot_mut(id).map(|slot| std::mem::replace(&mut slot.group, GroupId::NONE)) else {
            return;
        };
        // Its number may be another's soon.
        let ended = self.groups.leave(group).unwrap_or_default();
        ended.kinds().for_each(|kind| self.put_initial(Target::Group(group, id), kind));
    }

    pub(super) fn set_grouping(&mut self, grouping: Grouping) {
        if std::mem::replace(&mut self.groups.grouping, grouping) != grouping {
            self.ids().for_each(|id| self.regroup(id));
        }
    }

    /// Puts a client into a group by name; empty: into that of the grouping.
    pub(super) fn set_group_name(&mut self, id: ClientId, name: Label) {
        if let Some(slot) = self.slot_mut(id) {
            slot.named = Some(name).filter(|name| !name.is_empty());
        }
        self.regroup(id);
    }

    /// A group has budget again.
    pub(super) fn group_resumed(&mut self, group: GroupId) {
        let is_hard = self.scheduler.group_reservation(group).is_some_and(|state| state.reservation.kind.is_hard());
        if is_hard || self.scheduler.has_caps() {
            self.sync_holds();
        }
    }

    /// Whether the budget of a client's hard group is used up.
    pub(super) fn is_out_with_group(&self, id: ClientId) -> bool {
        let state = self.scheduler.reservation_in_use(id).filter(|_| self.scheduler.shares_reservation(id));
        // Without budget of a soft one, who is capped goes no further.
        state.is_some_and(|state| state.depleted && (state.reservation.kind.is_hard() || self.scheduler.has_caps()))
    }

    /// Holds back, or serves again, whom the cap of a group concerns.
    pub fn sync_holds(&mut self) {
        self.ids().for_each(|id| self.sync_hold(id));
    }

    /// Whether the reservations of a client's user may have so much more, besides that of this holder.
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
