// SPDX-License-Identifier: MIT
//! The entry of a client in the list of all clients.

use super::Engine;
use crate::mechanism::host::Host;
use xqos_abi::{ClientEntry, Label, Paced, entry_flag, us};
use xqos_core::{ClientId, ReservationKind};

impl<H: Host> Engine<H> {
    /// The data that is reported about a client.
    pub fn entry(&self, id: ClientId, asker: ClientId) -> Option<ClientEntry> {
        let slot = self.slot(id)?;
        let scheduler = &self.scheduler;
        let usage = scheduler.usage(id)?;
        let (weight, fixed_priority) = scheduler.weight_and_priority(id)?;
        let state = scheduler.reservation(id);
        let holds_grab = scheduler.grab() == Some(id);
        let of_group = scheduler.group_reservation(slot.group).map(|state| state.reservation);
        Some(ClientEntry {
            client: slot.base,
            pid: slot.identity.pid,
            uid: slot.identity.uid,
            sync_priority: slot.sync_priority,
            weight,
            fixed_priority,
            flags: self.flags(id) | if id == asker { entry_flag::YOU } else { 0 },
            budget_us: state.map_or(0, |state| us(state.reservation.budget_ns)),
            period_us: state.map_or(0, |state| us(state.reservation.period_ns)),
            depletions: usage.depletions,
            misses: usage.misses,
            longest_request: slot.longest_request,
            budget_left_ns: state.map_or(0, |state| state.budget_left_ns),
            deadline_ns: state.map_or(0, |state| state.deadline.0),
            server_time_ns: usage.server_time_ns,
            charged_ns: usage.charged_ns,
            reserved_time_ns: usage.reserved_time_ns,
            requests: usage.requests,
            slices: usage.slices,
            waited_ns: usage.waited_ns,
            longest_wait_ns: usage.longest_wait_ns,
            longest_request_ns: slot.longest_request_ns,
            connected_ns: usage.connected.0,
            grabbed_ns: usage.grabbed_ns
                + scheduler.grab_began().filter(|_| holds_grab).map_or(0, |since| self.now.since(since)),
            grabs: usage.grabs,
            name: slot.program.to_string(),
            group_cap_ppm: scheduler.cap_ppm(slot.group),
            slice_us: scheduler.slice_us(id),
            longest_part_us: us(slot.longest_part_ns),
            cuts: slot.cuts,
            group: slot.group.0.into(),
            group_weight: scheduler.group_weight(slot.group),
            group_name: self.groups.label(slot.group),
            reservation_origin: state.map_or(Label::default(), |_| slot.origins.reservation_name()),
            settings_origin: slot.origins.last_name(),
            host: slot.host.to_string(),
            waits: usage.waits,
            long_grabs: usage.long_grabs,
            group_budget_us: of_group.map_or(0, |reservation| us(reservation.budget_ns)),
            group_period_us: of_group.map_or(0, |reservation| us(reservation.period_ns)),
        })
    }

    /// The flags of a client that do not depend on the asker.
    fn flags(&self, id: ClientId) -> u32 {
        let Some(slot) = self.slot(id) else { return 0 };
        let scheduler = &self.scheduler;
        let (own, role) = (scheduler.reservation(id), scheduler.role(id));
        let own_kind = own.map(|state| state.reservation.kind);
        let group_kind = scheduler.group_reservation(slot.group).map(|state| state.reservation.kind);
        let [pointer, keyboard] = self.host.device_grabs().map(|resource| resource != 0 && self.is_of(resource, slot));
        let flags = [
            (own.is_some(), entry_flag::RESERVED),
            (own_kind == Some(ReservationKind::Hard), entry_flag::HARD),
            (own_kind == Some(ReservationKind::SoftPaper), entry_flag::SOFT_PAPER),
            (scheduler.is_held_back(id), entry_flag::HELD_BACK),
            (scheduler.is_ready(id), entry_flag::READY),
            (slot.identity.is_local(), entry_flag::LOCAL),
            (scheduler.grab() == Some(id), entry_flag::GRABS_SERVER),
            (pointer, entry_flag::GRABS_POINTER),
            (keyboard, entry_flag::GRABS_KEYBOARD),
            (role.compositor, entry_flag::COMPOSITOR),
            (role.window_manager, entry_flag::WINDOW_MANAGER),
            (slot.paced == Paced::Always, entry_flag::PACED),
            (slot.paced == Paced::Never, entry_flag::NEVER_PACED),
            (group_kind == Some(ReservationKind::Hard), entry_flag::GROUP_HARD),
            (group_kind == Some(ReservationKind::SoftPaper), entry_flag::GROUP_SOFT_PAPER),
        ];
        flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum()
    }
}
