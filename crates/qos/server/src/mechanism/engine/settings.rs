// SPDX-License-Identifier: MIT
//! Applies settings, records their origins, and undoes leased settings when a lease ends.
//!
//! `requests` decides whether a client may make a setting, and which values are valid.

use super::Engine;
use crate::mechanism::action::Action;
use crate::mechanism::host::Host;
use crate::mechanism::origins::{Origin, SettingOrigins};
use xqos_abi::{Label, NO_RESERVATION, NotifyKind, Setting, SettingKind, Subject};
use xqos_core::{Admission, ClientId, Fact, GroupId, Holder, Parameters, PolicyKind, Reservation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Client(ClientId),
    /// A group, and the member by which the request identified it.
    Group(GroupId, ClientId),
    Server,
}

impl<H: Host> Engine<H> {
    pub fn set_policy(&mut self, policy: Option<PolicyKind>, parameters: Parameters) {
        let at = self.now;
        self.scheduler.handle(at, Fact::Parameters(parameters));
        if let Some(policy) = policy {
            self.scheduler.handle(at, Fact::Policy(policy));
            self.observe_requests();
        }
    }

    pub fn set_cut(&mut self, part_ns: u64) {
        self.part_ns = part_ns;
        self.act(Action::Cut { part_ns });
    }

    /// Reads how much of a processor the kernel grants the server's thread, for admission control.
    pub fn update_supply(&mut self) {
        self.scheduler.handle(self.now, Fact::Supply(self.host.supply()));
    }

    /// Applies a setting. Returns the admission result if the setting is a reservation.
    pub fn apply(&mut self, target: Target, setting: Setting) -> Option<Admission> {
        match (target, setting) {
            (Target::Client(id), Setting::Reservation(reservation)) => {
                return self.apply_reservation(Holder::Client(id), reservation);
            }
            (Target::Group(group, named), Setting::Reservation(reservation)) => {
                let admission = self.apply_reservation(Holder::Group(group), reservation);
                if !matches!(admission, Some(Admission::Refused(_))) {
                    let uid = self.identity(named).filter(|_| reservation != NO_RESERVATION).map(|named| named.uid);
                    self.groups.set_reserved_for(group, uid);
                }
                return admission;
            }
            (Target::Client(id), Setting::Weight(weight)) => _ = self.feed(Fact::Weight { holder: id.into(), weight }),
            (Target::Client(client), Setting::Priority(priority)) => {
                self.feed(Fact::FixedPriority { client, priority });
            }
            (Target::Client(client), Setting::Slice(us)) => _ = self.feed(Fact::Slice { client, us }),
            (Target::Client(id), Setting::Paced(paced)) => self.set_client_pacing(id, paced),
            (Target::Client(id), Setting::Group(name)) => self.set_group_name(id, name),
            (Target::Group(group, _), Setting::Weight(weight)) => {
                self.feed(Fact::Weight { holder: group.into(), weight });
            }
            (Target::Group(group, _), Setting::Cap(ppm)) => {
                self.feed(Fact::GroupCap { group, ppm });
                self.sync_holds();
            }
            (Target::Server, Setting::Pacing(pacing)) => self.set_pacing(pacing),
            (Target::Server, Setting::Cut(us)) => self.set_cut(u64::from(us) * 1000),
            (Target::Server, Setting::Desktop(ppm)) => _ = self.feed(Fact::DesktopShare { ppm }),
            (Target::Server, Setting::Grouping(grouping)) => self.set_grouping(grouping),
            (Target::Server, Setting::UserLimit(ppm)) => self.groups.user_limit_ppm = ppm,
            // `SettingKind::initial` refuses all other combinations.
            _ => {}
        }
        None
    }

    fn apply_reservation(&mut self, holder: Holder, reservation: Reservation) -> Option<Admission> {
        let before = match holder {
            Holder::Client(id) => self.scheduler.reservation(id),
            Holder::Group(group) => self.scheduler.group_reservation(group),
        };
        let fact = match holder {
            _ if reservation != NO_RESERVATION => Fact::Reserve { holder, reservation },
            _ if before.is_none() => return None,
            _ => Fact::Release { holder },
        };
        if let (Fact::Release { .. }, Holder::Client(client)) = (fact, holder) {
            self.notify(NotifyKind::ReservationCleared, client, 0);
        }
        let admission = self.scheduler.handle(self.now, fact).admission();
        if !matches!(admission, Some(Admission::Refused(_))) {
            // Hold back or release clients, then decide again: the running client may be affected.
            self.sync_holds();
            self.act(Action::EndSlice);
        }
        admission
    }

    pub(super) fn apply_initial(&mut self, target: Target, kind: SettingKind) {
        if let Some(initial) = kind.initial(target.subject()) {
            self.apply(target, initial);
        }
    }

    pub fn set_origin(&mut self, asker: ClientId, name: Label, lease: bool) {
        self.declared_origins.set(asker, name, lease);
    }

    /// The origin of a new setting; `None` if the new setting is leased and would replace one that is not leased.
    pub fn origin_for(&self, asker: ClientId, target: Target, kind: SettingKind) -> Option<Origin> {
        let origin = self.declared_origins.origin_for(asker, self.is_for_itself(asker, target));
        let gives_way = |target, kind| self.origins_of(target).is_none_or(|origins| origins.gives_way(kind, &origin));
        let may = match target {
            // A leased setting also must not change a group into which the named member was put manually.
            Target::Group(_, named) => gives_way(target, kind) && gives_way(Target::Client(named), SettingKind::Group),
            _ => gives_way(target, kind),
        };
        may.then_some(origin)
    }

    fn is_for_itself(&self, asker: ClientId, target: Target) -> bool {
        let (Target::Client(id) | Target::Group(_, id)) = target else { return false };
        let pid = |id| self.identity(id).map(|identity| identity.pid).filter(|&pid| pid > 0);
        asker == id || pid(id).is_some() && pid(asker) == pid(id)
    }

    /// Records the origin of a setting; `None` means that the setting has its initial value again.
    pub fn note_origin(&mut self, target: Target, setting: &Setting, origin: Option<Origin>) {
        let kind = setting.kind();
        match target {
            Target::Client(id) => {
                if let Some(slot) = self.slot_mut(id) {
                    slot.origins.set(kind, origin);
                }
            }
            Target::Group(group, _) => {
                if let Some(origins) = self.groups.origins_mut(group) {
                    origins.set(kind, origin);
                }
            }
            Target::Server if kind == SettingKind::UserLimit => self.origins.set(kind, origin),
            // No other server setting can be leased.
            Target::Server => {}
        }
        match (target, setting) {
            (Target::Client(_), Setting::Reservation(NO_RESERVATION)) | (Target::Server, _) => {}
            (Target::Client(id), Setting::Reservation(_)) => self.notify(NotifyKind::ReservationSet, id, 0),
            (Target::Client(id) | Target::Group(_, id), _) => self.notify(NotifyKind::Settings, id, 0),
        }
    }

    pub(super) fn end_leases(&mut self, asker: ClientId) {
        self.declared_origins.end(asker);
        let of_group = |group| self.members(group).next().map(|named| Target::Group(group, named));
        let groups: Vec<Target> = self.groups.leased_by(asker).filter_map(of_group).collect();
        for target in groups.into_iter().chain([Target::Server]).chain(self.ids().map(Target::Client)) {
            for kind in self.origins_of(target).map(|origins| origins.leased_by(asker)).unwrap_or_default() {
                if let Some(initial) = kind.initial(target.subject()) {
                    self.apply(target, initial);
                    self.note_origin(target, &initial, None);
                }
            }
        }
    }

    fn origins_of(&self, target: Target) -> Option<&SettingOrigins> {
        match target {
            Target::Client(id) => self.slot(id).map(|slot| &slot.origins),
            Target::Group(group, _) => self.groups.origins(group),
            Target::Server => Some(&self.origins),
        }
    }
}

impl Target {
    /// The protocol's subject for this target, without the client's id.
    fn subject(self) -> Subject {
        match self {
            Target::Client(_) => Subject::Client(0),
            Target::Group(..) => Subject::Group(0),
            Target::Server => Subject::Server,
        }
    }
}
