// SPDX-License-Identifier: MIT
//! Handlers for clients that connect, are set up, set priorities, grab the server, and disconnect.

use super::{Engine, Slot};
use crate::mechanism::host::{Established, Host, NewConnection};
use xqos_abi::NotifyKind;
use xqos_core::{ClientId, Fact};

impl<H: Host> Engine<H> {
    /// A client has a connection but is not set up yet.
    pub fn connected(&mut self, id: ClientId, connection: NewConnection) {
        self.awaken();
        let index = usize::from(id.0);
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let NewConnection { identity, base, ids, descriptor } = connection;
        self.ids_of_a_client = ids;
        self.slots[index] = Some(Slot { base, identity, ..Slot::default() });
        self.ready.reserve(self.slots.len() - self.ready.len());
        self.dormancy.connected(self.slots.len());
        self.scheduler.handle(self.now, Fact::Connected { client: id, descriptor });
    }

    /// The client's resource ids became known only after it connected.
    pub fn ids_known(&mut self, id: ClientId, base: u32, ids: u32) {
        self.ids_of_a_client = ids;
        if let Some(slot) = self.slot_mut(id) {
            slot.base = base;
        }
    }

    /// The client is set up.
    pub fn established(&mut self, id: ClientId, known: Established) {
        self.awaken();
        if let Some(slot) = self.slot_mut(id) {
            slot.control_group = known.control_group.map(Into::into);
            (slot.program, slot.host) = (known.program.into(), known.host.unwrap_or_default().into());
        }
        self.note_identity(id);
        self.regroup(id);
        self.notify(NotifyKind::ClientConnected, id, 0);
    }

    pub fn gone(&mut self, id: ClientId) {
        if self.slot(id).is_none() {
            return;
        }
        self.awaken();
        self.notify(NotifyKind::ClientGone, id, 0);
        if let Some(entry) = self.entry(id, id) {
            self.departed.add(&entry);
        }
        self.roles.leave(id);
        self.set_linked(id, false);
        self.scheduler.handle(self.now, Fact::Disconnected { client: id });
        self.leave_group(id);
        self.owed_answers.end(id);
        self.control_gone(id);
        self.slots[usize::from(id.0)] = None;
        self.follow_pacing();
    }

    /// Ends the events, trace, loan and leases of a client whose connection has closed.
    pub fn control_gone(&mut self, asker: ClientId) {
        self.awaken();
        if self.scheduler.trace.end(asker, self.now) {
            self.observe_requests();
        }
        self.listeners.retain(|&(other, _)| other != asker);
        if self.lender.is_some_and(|(lender, _)| lender == asker) {
            self.end_loan();
        }
        self.end_leases(asker);
    }

    /// A client set a SYNC priority, its own or another client's.
    pub fn prioritized(&mut self, id: ClientId, priority: i32) {
        self.awaken();
        let at = self.now;
        if let Some(slot) = self.slot_mut(id) {
            slot.sync_priority = priority;
            self.scheduler.handle(at, Fact::SyncPriority { client: id, priority });
        }
    }

    pub fn grabbed(&mut self, id: ClientId, grabs: bool) {
        self.awaken();
        self.scheduler.handle(self.now, Fact::Grabbed { by: grabs.then_some(id) });
        self.grab_reported = false;
        self.grab_watched = self.grab_watched.filter(|_| !grabs);
        // A client is never held back while it holds the grab, but may have to be held back afterwards.
        self.sync_hold(id);
    }
}
