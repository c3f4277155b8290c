// SPDX-License-Identifier: MIT
//! Settings: policy, parameters, pacing, reservations, and each client's weight and priorities.

use super::Scheduler;
use crate::admission::{self, Admission, Holder};
use crate::blocking::Blocking;
use crate::desktop::{MAX_SHARE_PPM, Role};
use crate::pacing::Pacing;
use crate::policy::PolicyKind;
use crate::{ClientId, FactOutcome, GroupId, Parameters, Reservation, Supply, Time};
use alloc::vec::Vec;

impl Scheduler {
    pub(super) fn set_policy(&mut self, kind: PolicyKind, now: Time) {
        self.policy = kind.build(&self.parameters);
        self.rejoin(now);
    }

    pub(super) fn set_parameters(&mut self, parameters: Parameters, now: Time) {
        let policy_part = |p: &Parameters| (p.slice_ns, p.timer_interval_ns, p.maximum_slice_ns);
        let concerns_policy = policy_part(&parameters) != policy_part(&self.parameters);
        self.parameters = parameters;
        if concerns_policy {
            self.set_policy(self.policy.kind(), now);
        }
    }

    pub(super) fn set_pacing(&mut self, pacing: Pacing, now: Time) {
        self.pacing = pacing;
        let held: Vec<ClientId> = self.paced.ids().collect();
        for client in held {
            self.release(client, now);
        }
    }

    pub(super) fn set_desktop_share(&mut self, share_ppm: u32, now: Time) {
        let was_on = self.desktop.is_on();
        self.desktop.share_ppm = share_ppm.min(MAX_SHARE_PPM);
        if was_on != self.desktop.is_on() {
            for at in 0..self.desktop.members.len() {
                self.reset_standing(self.desktop.members[at]);
            }
        }
        self.requeue_desktop(now);
    }

    /// The weight of a group, in hundredths; 0: not set.
    pub fn group_weight(&self, group: GroupId) -> u32 {
        self.group_weights.iter().find(|(id, _)| *id == group).map_or(0, |&(_, weight)| weight)
    }

    pub(super) fn set_group_weight(&mut self, group: GroupId, weight: u32, now: Time) {
        if group == GroupId::NONE {
            return;
        }
        self.group_weights.retain(|(id, _)| *id != group);
        if weight > 0 {
            self.group_weights.push((group, weight));
        }
        for client in self.ids() {
            if self.client(client).is_some_and(|record| record.facts.group == group) {
                self.change_facts(client, now, |facts| facts.group_weight = weight);
            }
        }
    }

    /// Sets the cap of a group. The group starts with a full budget, so the cap does not hold back any client at first.
    pub(super) fn set_group_cap(&mut self, group: GroupId, ppm: u32, now: Time) {
        self.caps.set(group, ppm, now);
        self.ids().for_each(|client| self.update_cap(client, now));
    }

    pub(super) fn set_role(&mut self, client: ClientId, role: Role, now: Time) {
        let Some(record) = self.client_mut(client).filter(|record| record.role != role) else { return };
        let had_one = core::mem::replace(&mut record.role, role).is_any();
        if had_one != role.is_any() {
            self.desktop.members.retain(|&other| other != client);
            if role.is_any() {
                self.desktop.members.push(client);
            }
            self.reset_standing(client);
        }
        self.update_cap(client, now);
        self.update_membership(client, now);
        self.requeue(client, now);
    }

    /// Restarts a client in the policy as if it had been idle, because the desktop rule starts or stops applying to it.
    fn reset_standing(&mut self, client: ClientId) {
        if self.policy.favours_desktop() {
            self.policy.ready(client, 0);
        }
    }

    /// The processor time that the server itself gets.
    pub fn supply(&self) -> Supply {
        self.supply
    }

    pub fn pacing(&self) -> Pacing {
        self.pacing
    }

    /// Tests whether this reservation would be admitted along with the others. `None` if the client is not connected,
    /// and for [`GroupId::NONE`].
    pub fn check_admission(&self, holder: impl Into<Holder>, reservation: Reservation, now: Time) -> Option<Admission> {
        let holder = holder.into();
        match holder {
            Holder::Client(client) => _ = self.client(client)?,
            Holder::Group(GroupId::NONE) => return None,
            Holder::Group(_) => {}
        }
        let others = self.reservations().filter(|&(other, _)| other != holder);
        let mut set: Vec<(Holder, Reservation)> = others.chain([(holder, reservation)]).collect();
        set.sort_by_key(|&(holder, reservation)| (reservation.period_ns, holder));
        admission::test(set.into_iter(), self.blocking_ns(now), self.limit_ppm())
    }

    /// The longest reserved period, including that of the new reservation.
    fn longest_period_ns(&self, coming: Reservation) -> u64 {
        self.reservations().map(|(_, reservation)| reservation.period_ns).fold(coming.period_ns, u64::max)
    }

    /// Gives a holder a reservation if it is admitted, in place of its current one. Does nothing for an unknown client
    /// or group.
    pub(super) fn reserve(&mut self, holder: Holder, reservation: Reservation, now: Time) -> FactOutcome {
        let admission = self.check_admission(holder, reservation, now);
        if matches!(admission, Some(Admission::Admitted(_))) {
            if let Holder::Client(client) = holder {
                if self.reservations.end(holder, now) {
                    // The client restarts as if it had been idle, so no time is saved up while a reservation pays.
                    self.policy.ready(client, 0);
                }
                self.release(client, now);
            }
            let longest_ns = self.longest_period_ns(reservation);
            self.reservations.set(holder, reservation, now, longest_ns);
            self.reservation_changed(holder, now);
        }
        admission.map_or(FactOutcome::None, FactOutcome::Admission)
    }

    /// Ends a reservation. Returns true if there was one.
    pub(super) fn end_reservation(&mut self, holder: Holder, now: Time) -> bool {
        let had_one = self.reservations.end(holder, now);
        if had_one {
            if let Holder::Client(client) = holder {
                self.policy.ready(client, 0);
            }
            self.reservation_changed(holder, now);
        }
        had_one
    }

    fn reservation_changed(&mut self, holder: Holder, now: Time) {
        self.count_reservations();
        if self.reservation_count == 0 {
            self.blocking = Blocking::default();
        }
        for client in self.ids() {
            let is_concerned = self.client(client).is_some_and(|record| match holder {
                Holder::Client(holder) => holder == client,
                Holder::Group(group) => record.facts.group == group,
            });
            if is_concerned {
                self.update_membership(client, now);
            }
        }
    }

    pub(super) fn update_membership(&mut self, client: ClientId, now: Time) {
        let Some(record) = self.client(client) else { return };
        let group = Some(Holder::Group(record.facts.group)).filter(|_| !record.role.is_any());
        if self.reservations.join(client, group) {
            self.policy.ready(client, 0);
        }
        self.requeue(client, now);
    }
}
