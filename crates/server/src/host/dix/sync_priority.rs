// SPDX-License-Identifier: MIT
//! The SYNC priorities that clients set and read.
//!
//! To choose a client, the server first compares `ClientRec.priority`, the field behind SYNC SetPriority and
//! GetPriority. xqos therefore raises this field of the client that it has chosen. While xqos decides, the clients' own
//! values are kept here, and the fields are 1 for the chosen client and 0 for all others, so a client's value can never
//! cause a tie. Only the SYNC entry of the request table is wrapped: before one of these two requests, the clients'
//! values are put into the fields, and afterwards any changes are collected. While the server decides (policy `stock`,
//! a server grab), the fields always hold the clients' values.

use crate::host::dix::Dix;
use crate::host::dix::client::{Client, ClientPtr};
use crate::host::dix::symbols::{RequestProc, Symbols};
use crate::mechanism::engine::Engine;
use std::sync::OnceLock;
use xqos_core::{Choice, ClientId};

/// Minor opcodes of syncproto.h.
const SET_PRIORITY: u8 = 12;
const GET_PRIORITY: u8 = 13;

/// The original entries of the request tables, to be restored later.
#[derive(Clone, Copy, Debug)]
pub struct WrappedSync {
    major_opcode: usize,
    original: RequestProc,
    swapped_original: RequestProc,
    wrapper: RequestProc,
}

impl WrappedSync {
    /// Wraps SYNC's requests with `wrapper`. Returns `None` if the server has no SYNC extension.
    pub fn install(symbols: &Symbols, wrapper: RequestProc) -> Option<WrappedSync> {
        let major_opcode = usize::try_from(symbols.extension(c"SYNC")?.base).ok().filter(|&opcode| opcode >= 128)?;
        // SAFETY: this is one of the 256 entries of the server's tables, changed on the server's thread.
        unsafe {
            if std::ptr::fn_addr_eq(*symbols.proc_vector.add(major_opcode), wrapper) {
                return LAST.get().copied();
            }
            let wrapped = WrappedSync {
                major_opcode,
                original: *symbols.proc_vector.add(major_opcode),
                swapped_original: *symbols.swapped_proc_vector.add(major_opcode),
                wrapper,
            };
            *symbols.proc_vector.add(major_opcode) = wrapper;
            *symbols.swapped_proc_vector.add(major_opcode) = wrapper;
            let _ = LAST.set(wrapped);
            Some(wrapped)
        }
    }

    /// The procedure that we wrap, in the client's byte order.
    pub fn original(&self, client: Client) -> RequestProc {
        if client.is_swapped() { self.swapped_original } else { self.original }
    }

    /// Restores the entries. An entry that other code has wrapped after us stays, and our wrapper passes requests on.
    pub fn remove(&self, symbols: &Symbols) {
        // SAFETY: as in `install`.
        unsafe {
            for (table, original) in
                [(symbols.proc_vector, self.original), (symbols.swapped_proc_vector, self.swapped_original)]
            {
                let entry = table.add(self.major_opcode);
                if std::ptr::fn_addr_eq(*entry, self.wrapper) {
                    *entry = original;
                }
            }
        }
    }
}

/// The original entries. SYNC's procedures are the same in every generation of a server.
static LAST: OnceLock<WrappedSync> = OnceLock::new();

/// The procedure to call once the engine is gone.
pub fn last_original(client: Client) -> Option<RequestProc> {
    LAST.get().map(|wrapped| wrapped.original(client))
}

/// Returns true if the request reads or sets a priority.
pub fn concerns_priorities(client: Client) -> bool {
    matches!(client.request_head().0, SET_PRIORITY | GET_PRIORITY)
}

/// Calls a request procedure of the server.
pub fn call(procedure: RequestProc, client: ClientPtr) -> i32 {
    // SAFETY: `procedure` is an entry of the server's table, called with the client being dispatched.
    unsafe { procedure(client) }
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

    /// The original procedure of SYNC's requests.
    pub fn original_of_sync(&self, client: Client) -> Option<RequestProc> {
        self.sync.map(|sync| sync.original(client))
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

impl Engine<Dix> {
    /// Collects changed priorities after a request, which may have set the priority of any client.
    pub fn take_priorities(&mut self) {
        for id in self.ids() {
            if let Some(priority) = self.host.new_priority(id) {
                self.prioritized(id, priority);
            }
        }
    }
}
