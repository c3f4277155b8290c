// SPDX-License-Identifier: MIT
//! Groups of clients, and settings with their origins.

use super::Engine;
use crate::host::Host;
use crate::mechanism::groups::{Member, Reserved, Set};
use crate::mechanism::origins::{Origin, Setting};
use xqos_abi::{Grouping, Label, NotifyKind, Paced};
use xqos_core::{Admission, ClientId, Fact, GroupId, Holder, Reservation};

/// A setting was made by hand, and whoever asks has a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByHand;

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
        if self.groups.leave(group) {
            // Its number may be another's soon.
            self.set_group_weight(group, Set::default());
            self.set_group_cap(group, Set::default());
            self.release_group(group);
        }
    }

    /// Which clients are one group, and the limit of users, which ends with a lease.
    pub fn set_grouping(&mut self, asker: ClientId, grouping: Grouping, user_limit_ppm: u32) -> Result<(), ByHand> {
        let leased_by = self.origins.of(asker, false).leased_by;
        if !self.groups.limit_users(Set { value: user_limit_ppm, leased_by }) {
            return Err(ByHand);
        }
        if std::mem::replace(&mut self.groups.grouping, grouping) != grouping {
            for id in self.ids() {
                self.regroup(id);
            }
        }
        Ok(())
    }

    /// Puts a client into a group by name; empty: into that of the grouping.
    pub fn set_group_name(&mut self, id: ClientId, name: Label) {
        if let Some(slot) = self.slot_mut(id) {
            slot.named = Some(name).filter(|name| !name.is_empty());
        }
        self.regroup(id);
    }

    pub fn set_group_weight(&mut self, group: GroupId, weight: Set) {
        self.groups.set_weight(group, weight);
        self.scheduler.handle(self.host.now(), Fact::GroupWeight { group, weight: weight.value });
    }

    pub fn set_group_cap(&mut self, group: GroupId, cap_ppm: Set) {
        self.groups.set_cap(group, cap_ppm);
        self.scheduler.handle(self.host.now(), Fact::GroupCap { group, ppm: cap_ppm.value });
        self.sync_holds();
    }

    /// A reservation that the clients of a group use together; `None` where there is no such group.
    pub fn reserve_for_group(&mut self, group: GroupId, reservation: Reservation, by: Reserved) -> Option<Admission> {
        let fact = Fact::GroupReserve { group, reservation };
        let admission = self.scheduler.handle(self.host.now(), fact).admission()?;
        if matches!(admission, Admission::Admitted(_)) {
            self.groups.set_reserved(group, Some(by));
            self.group_reservation_changed();
        }
        Some(admission)
    }

    pub fn release_group(&mut self, group: GroupId) {
        self.groups.set_reserved(group, None);
        if self.scheduler.group_reservation(group).is_some() {
            self.scheduler.handle(self.host.now(), Fact::GroupRelease { group });
            self.group_reservation_changed();
        }
    }

    /// As for a client: hold back or attend its clients, and decide anew.
    fn group_reservation_changed(&mut self) {
        self.sync_holds();
        self.host.end_slice();
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
        let limit_ppm = self.groups.user_limit_ppm();
        if limit_ppm == 0 || uid == 0 || uid == self.host.user() {
            return true;
        }
        let is_of_user = |other: ClientId| self.slot(other).is_some_and(|slot| slot.identity.uid == uid);
        let of_clients = self.scheduler.reservations().filter(|&(other, _)| is_of_user(other));
        let of_clients = of_clients.map(|(other, reservation)| (Holder::Client(other), reservation));
        let of_groups = self.scheduler.group_reservations().filter(|&(group, _)| self.groups.reserved_for(group, uid));
        let of_groups = of_groups.map(|(group, reservation)| (Holder::Group(group), reservation));
        let others = of_clients.chain(of_groups).filter(|&(other, _)| other != holder);
        let sum: u64 = others.map(|(_, reservation)| reservation.utilization_ppm()).map(u64::from).sum();
        sum + u64::from(ppm) <= u64::from(limit_ppm)
    }

    // Origins and leases.

    pub fn set_origin(&mut self, asker: ClientId, name: Label, lease: bool) {
        self.origins.set(asker, name, lease);
    }

    /// The origin of a setting that somebody is about to make.
    pub fn origin_for(&self, asker: ClientId, id: ClientId, setting: Setting) -> Result<Origin, ByHand> {
        let pid = |identity: crate::mechanism::access::Identity| Some(identity.pid).filter(|&pid| pid > 0);
        let of_subject = self.slot(id).and_then(|slot| pid(slot.identity));
        let for_itself = asker == id || of_subject.is_some() && self.identity(asker).and_then(pid) == of_subject;
        let origin = self.origins.of(asker, for_itself);
        let gives_way = self.slot(id).is_none_or(|slot| slot.made.gives_way(setting, &origin));
        if gives_way { Ok(origin) } else { Err(ByHand) }
    }

    /// A setting was made, or ended where there is no origin.
    pub fn note_made(&mut self, id: ClientId, setting: Setting, origin: Option<Origin>) {
        if let Some(slot) = self.slot_mut(id) {
            slot.made.set(setting, origin);
        }
        if setting != Setting::Reservation {
            self.notify(NotifyKind::Settings, id, 0);
        }
    }

    /// Undoes what ends with this connection.
    pub(super) fn end_leases(&mut self, asker: ClientId) {
        self.origins.end(asker);
        self.groups.end_limit_of(asker);
        let leased = self.groups.leased_by(asker);
        leased.weights.into_iter().for_each(|group| self.set_group_weight(group, Set::default()));
        leased.caps.into_iter().for_each(|group| self.set_group_cap(group, Set::default()));
        leased.reservations.into_iter().for_each(|group| self.release_group(group));
        for id in self.ids() {
            for setting in Setting::ALL {
                let made_by = self.slot(id).and_then(|slot| slot.made.by(setting));
                if made_by.is_some_and(|origin| origin.leased_by == Some(asker)) {
                    self.undo(id, setting);
                }
            }
        }
    }

    fn undo(&mut self, id: ClientId, setting: Setting) {
        let now = self.host.now();
        match setting {
            Setting::Reservation => self.release(id),
            Setting::Weight => _ = self.scheduler.handle(now, Fact::Weight { client: id, weight: 100 }),
            Setting::Priority => _ = self.scheduler.handle(now, Fact::FixedPriority { client: id, priority: 0 }),
            Setting::Group => self.set_group_name(id, Label::default()),
            Setting::Pacing => self.set_client_pacing(id, Paced::AsAll),
        }
        self.note_made(id, setting, None);
    }

    /// Ends a client's reservation, where it has one.
    pub fn release(&mut self, id: ClientId) {
        if self.scheduler.reservation(id).is_some() {
            self.notify(NotifyKind::ReservationCleared, id, 0);
            self.scheduler.handle(self.host.now(), Fact::Release { client: id });
            self.reservation_changed(id);
        }
    }
}
