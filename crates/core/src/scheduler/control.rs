// SPDX-License-Identifier: MIT
//! What is set from outside: policy, parameters, pacing, each client's weight and priorities, and reservations.

use super::Scheduler;
use crate::admission::{self, Admission, Holder};
use crate::blocking::Blocking;
use crate::desktop::{MAX_SHARE_PPM, Role};
use crate::pacing::Pacing;
use crate::policy::PolicyKind;
use crate::{ClientId, GroupId, Outcome, Parameters, Reservation, Supply, Time};
use alloc::vec::Vec;

impl Scheduler {
    /// Sets another policy; every client begins in it anew.
    pub(super) fn set_policy(&mut self, kind: PolicyKind, now: Time) {
        self.policy = kind.build(&self.parameters);
        self.rejoin(now);
    }

    /// Sets the parameters; the policy begins anew where they concern it.
    pub(super) fn set_parameters(&mut self, parameters: Parameters, now: Time) {
        let policy_part = |p: &Parameters| (p.slice_ns, p.timer_interval_ns, p.maximum_slice_ns);
        let concerns_policy = policy_part(&parameters) != policy_part(&self.parameters);
        self.parameters = parameters;
        if concerns_policy {
            self.set_policy(self.policy.kind(), now);
        }
    }

    /// Sets how clients are paced that uncover others. Who is held is let go.
    pub(super) fn set_pacing(&mut self, pacing: Pacing, now: Time) {
        self.pacing = pacing;
        let held: Vec<ClientId> = self.paced.ids().collect();
        for client in held {
            self.release(client, now);
        }
    }

    /// The most that clients that work for others get of the server while somebody else waits, millionths; 0 switches the
    /// desktop rule off.
    pub(super) fn set_desktop_share(&mut self, share_ppm: u32, now: Time) {
        let was_on = self.desktop.is_on();
        self.desktop.share_ppm = share_ppm.min(MAX_SHARE_PPM);
        if was_on != self.desktop.is_on() {
            for at in 0..self.desktop.members.len() {
                self.begin_anew(self.desktop.members[at]);
            }
        }
        self.requeue_desktop(now);
    }

    /// The weight of a group, hundredths; 0: none was set.
    pub fn group_weight(&self, group: GroupId) -> u32 {
        self.group_weights.iter().find(|(id, _)| *id == group).map_or(0, |&(_, weight)| weight)
    }

    /// The weight of a group, now and for who comes into it.
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

    /// The most that a group gets. Its clients begin with all of it, and none of them is held back for it.
    pub(super) fn set_group_cap(&mut self, group: GroupId, ppm: u32, now: Time) {
        self.caps.set(group, ppm, now);
        self.ids().for_each(|client| self.see_cap(client, now));
    }

    /// What a client does for others.
    pub(super) fn set_role(&mut self, client: ClientId, role: Role, now: Time) {
        let Some(record) = self.client_mut(client).filter(|record| record.role != role) else { return };
        let had_one = core::mem::replace(&mut record.role, role).is_any();
        if had_one != role.is_any() {
            self.desktop.members.retain(|&other| other != client);
            if role.is_any() {
                self.desktop.members.push(client);
            }
            self.begin_anew(client);
        }
        self.see_cap(client, now);
        self.see_reservation(client, now);
        self.requeue(client, now);
    }

    /// The desktop rule begins or ends for a client: in the policy it stands as if it came from idleness.
    fn begin_anew(&mut self, client: ClientId) {
        if self.policy.favours_desktop() {
            self.policy.ready(client, 0);
        }
    }

    /// What the server itself gets of a processor.
    pub fn supply(&self) -> Supply {
        self.supply
    }

    /// How clients are paced.
    pub fn pacing(&self) -> Pacing {
        self.pacing
    }

    /// Would this reservation be admitted beside the others? `None` for a client that is not connected, and for
    /// [`GroupId::NONE`].
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

    /// The longest period, with that of a reservation that comes.
    fn longest_period_ns(&self, coming: Reservation) -> u64 {
        self.reservations().map(|(_, reservation)| reservation.period_ns).fold(coming.period_ns, u64::max)
    }

    /// Gives a client or a group a reservation if it is admitted, in place of the one it may have. Nothing where there is no such
    /// client, or group.
    pub(super) fn reserve(&mut self, holder: Holder, reservation: Reservation, now: Time) -> Outcome {
        let admission = self.check_admission(holder, reservation, now);
        if matches!(admission, Some(Admission::Admitted(_))) {
            if let Holder::Client(client) = holder {
                if self.reservations.end(holder, now) {
                    // From idleness: time paid from a reservation saves nothing up.
                    self.policy.ready(client, 0);
                }
                self.release(client, now);
            }
            let longest_ns = self.longest_period_ns(reservation);
            self.reservations.set(holder, reservation, now, longest_ns);
            self.reservation_changed(holder, now);
        }
        admission.map_or(Outcome::None, Outcome::Admission)
    }

    /// Ends a reservation. True where there was one.
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
                self.see_reservation(client, now);
            }
        }
    }

    /// Notes of which reservation a client is a member.
    pub(super) fn see_reservation(&mut self, client: ClientId, now: Time) {
        let Some(record) = self.client(client) else { return };
        let group = Some(Holder::Group(record.facts.group)).filter(|_| !record.role.is_any());
        if self.reservations.join(client, group) {
            self.policy.ready(client, 0);
        }
        self.requeue(client, now);
    }
}
