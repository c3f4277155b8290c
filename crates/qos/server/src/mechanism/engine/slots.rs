// SPDX-License-Identifier: MIT
//! The mechanism's records of clients, and how to find a client.

use super::{Engine, FactOutcome, HookResult};
use crate::mechanism::access::Identity;
use crate::mechanism::action::Action;
use crate::mechanism::host::Host;
use crate::mechanism::origins::SettingOrigins;
use crate::mechanism::settings::FaultPlace;
use xqos_abi::{Label, Paced};
use xqos_core::{Choice, ClientId, Fact, GroupId, Time};

/// The part of a resource id that identifies the client and its resource (X11, "Connection setup").
pub const RESOURCE_ID_BITS: u32 = 0x1fff_ffff;

/// A connected client as the mechanism sees it.
#[derive(Debug, Default)]
pub struct Slot {
    pub base: u32,
    pub identity: Identity,
    pub program: Box<str>,
    /// The answer to SYNC GetPriority.
    pub sync_priority: i32,
    /// The remote address of a client on another machine.
    pub host: Box<str>,
    pub(super) control_group: Option<Box<str>>,
    pub group: GroupId,
    /// The group that the client was explicitly put into.
    pub(super) named: Option<Label>,
    /// The pacing of the client: always, never, or as set for all clients.
    pub paced: Paced,
    pub origins: SettingOrigins,
    /// Processor time of the client's longest request that was alone in its slice.
    pub longest_request_ns: u64,
    /// The major opcode + 65536 x minor opcode of that request.
    pub longest_request: u32,
    /// The longest time that others waited for one of its requests, or for a part of one.
    pub longest_part_ns: u64,
    /// How often another client was served between two parts of its requests.
    pub cuts: u32,
    /// The client's own marks are ignored until then.
    pub(super) unmarked_until: Time,
    pub(super) linked: bool,
    pub(super) held: bool,
    /// The last round in which the client was ready.
    pub(super) seen_in: u32,
    pub(super) notified: Notified,
}

/// The depletions and misses that listeners have been notified of, and when.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notified {
    pub depletions: u32,
    pub misses: u32,
    pub at: Time,
}

impl<H: Host> Engine<H> {
    pub fn slot(&self, id: ClientId) -> Option<&Slot> {
        self.slots.get(usize::from(id.0))?.as_ref()
    }

    pub(super) fn slot_mut(&mut self, id: ClientId) -> Option<&mut Slot> {
        self.slots.get_mut(usize::from(id.0))?.as_mut()
    }

    /// The connected client that owns a resource. Each client has an equal block of resource ids.
    pub fn owner_of(&self, resource: u32) -> Option<ClientId> {
        self.ids().find(|&id| self.slot(id).is_some_and(|slot| self.is_of(resource, slot)))
    }

    /// Returns true if a resource belongs to this client.
    pub fn is_of(&self, resource: u32, slot: &Slot) -> bool {
        let block = self.ids_of_a_client.max(1);
        slot.base == (resource & RESOURCE_ID_BITS) / block * block
    }

    /// The maximum number of clients. Each has an equal block of resource ids; the first block is the server's.
    pub fn clients_limit(&self) -> u32 {
        (RESOURCE_ID_BITS + 1).checked_div(self.ids_of_a_client).map_or(0, |blocks| blocks.saturating_sub(1))
    }

    /// The identity of a client, or of a peer on the control socket.
    pub fn identity(&self, asker: ClientId) -> Option<Identity> {
        self.slot(asker).map(|slot| slot.identity).or_else(|| self.host.identity_of_control(asker))
    }

    /// All indices that may hold a client. Does not borrow the engine, so a loop over them may change the engine.
    pub fn ids(&self) -> impl Iterator<Item = ClientId> + use<H> {
        (0..self.slots.len() as u16).map(ClientId)
    }

    pub fn members(&self, group: GroupId) -> impl Iterator<Item = ClientId> + '_ {
        self.ids().filter(move |&id| self.slot(id).is_some_and(|slot| slot.group == group))
    }

    /// Passes a fact to the scheduler with the current time.
    pub(super) fn feed(&mut self, fact: Fact) -> FactOutcome {
        self.scheduler.handle(self.now, fact)
    }

    pub fn choice(&self) -> Option<Choice> {
        self.running.map(|running| running.choice)
    }

    /// The approximate memory that xqos uses for clients.
    pub fn memory_bytes(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Option<Slot>>() + self.ready.capacity() * size_of::<ClientId>();
        size_of::<Self>()
            + slots
            + self.dormancy.memory_bytes()
            + self.departed.memory_bytes()
            + self.host.memory_bytes()
            + self.scheduler.memory_bytes()
    }

    pub fn fail_on_purpose(&mut self, place: FaultPlace) -> HookResult<H> {
        self.faults.pass(place)
    }

    pub(super) fn set_linked(&mut self, id: ClientId, linked: bool) {
        let Some(slot) = self.slot_mut(id) else { return };
        if slot.linked != linked {
            slot.linked = linked;
            if linked { self.linked += 1 } else { self.linked -= 1 }
        }
    }

    /// Holds a client back or releases it, as the scheduler now requires.
    pub fn sync_hold(&mut self, id: ClientId) {
        let held = self.scheduler.is_held_back(id);
        let is_open = self.host.is_open(id);
        let Some(slot) = self.slot_mut(id).filter(|slot| slot.held != held && is_open) else { return };
        slot.held = held;
        if held {
            self.act(Action::Hold(id));
            self.set_linked(id, false);
        } else {
            self.act(Action::Resume(id));
        }
    }
}
