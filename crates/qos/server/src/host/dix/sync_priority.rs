// SPDX-License-Identifier: MIT
//! The SYNC priorities that clients set and read.
//!
//! To choose a client, the server first compares `ClientRec.priority`, the field behind SYNC SetPriority and
//! GetPriority. xqos therefore raises this field of the client that it has chosen. While xqos decides, the clients' own
//! values are kept here, and the fields are 1 for the chosen client and 0 for all others, so a client's value can never
//! cause a tie. SYNC's requests are wrapped (`per_request`): before one of these two, the clients' values are put into
//! the fields, and afterwards any changes are collected. While the server decides (policy `stock`, a server grab), the
//! fields always hold the clients' values.

use crate::host::dix::Dix;
use crate::host::dix::cell::update;
use crate::host::dix::client::{Head, LiveClient};
use crate::host::dix::symbols::RequestProc;
use crate::host::dix::tables::call;
use crate::host::kernel::now;
use crate::mechanism::engine::Engine;
use xqos_core::{Choice, ClientId};

/// Minor opcodes of syncproto.h.
const SET_PRIORITY: u32 = 12;
const GET_PRIORITY: u32 = 13;

/// Executes a request of SYNC. While it reads or sets a priority, the fields hold the clients' own values.
pub fn execute(client: LiveClient, head: &Head, procedure: RequestProc) -> i32 {
    if !matches!(head.request >> 16, SET_PRIORITY | GET_PRIORITY) {
        return call(procedure, client.raw());
    }
    update(|engine| engine.host.show_priorities());
    let status = call(procedure, client.raw());
    update(|engine| take_priorities(engine.at(now())));
    status
}

impl Dix {
    /// Puts the clients' own values into the fields.
    pub fn show_priorities(&mut self) {
        if std::mem::replace(&mut self.priorities_shown, true) {
            return;
        }
        let chosen = self.running.and_then(|running| match running.choice {
            Choice::Client(id, _) => Some(id),
            Choice::Server => None,
        });
        for &id in chosen.iter().chain(&self.prioritized) {
            if let Some(known) = self.known(id) {
                known.client.set_priority(known.sync_priority);
            }
        }
    }

    /// Removes the clients' values from the fields, so that xqos can use the fields.
    pub fn hide_priorities(&mut self) {
        if !std::mem::replace(&mut self.priorities_shown, false) {
            return;
        }
        for &id in &self.prioritized {
            if let Some(known) = self.known(id) {
                known.client.set_priority(0);
            }
        }
    }

    /// A client's new priority, if it changed since the last call.
    fn new_priority(&mut self, id: ClientId) -> Option<i32> {
        let known = self.known_mut(id)?;
        let priority = known.client.priority();
        if priority == std::mem::replace(&mut known.sync_priority, priority) {
            return None;
        }
        self.prioritized.retain(|&other| other != id);
        if priority != 0 {
            self.prioritized.push(id);
        }
        Some(priority)
    }
}

/// Collects changed priorities after a request, which may have set the priority of any client.
fn take_priorities(engine: &mut Engine<Dix>) {
    for id in engine.ids() {
        if let Some(priority) = engine.host.new_priority(id) {
            engine.prioritized(id, priority);
        }
    }
}
