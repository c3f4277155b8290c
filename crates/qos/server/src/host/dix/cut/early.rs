// SPDX-License-Identifier: MIT
//! Finishes rests before their clients are served again: for requests of other clients, changes of windows, and clients
//! that disconnect.

use super::run::run;
use super::{End, update_guard};
use crate::host::dix::cell::{note, note_request, with_cutting as with};
use crate::host::dix::client::{ClientPtr, Head, LiveClient};
use crate::host::dix::cutting::{Cut, Cutting};
use crate::host::dix::order_of;
use crate::host::kernel;
use std::ffi::{c_int, c_void};
use xqos_abi::trace::Entry;
use xqos_core::ClientId;

/// Called before another client's request runs. Finishes the rests that touch the same pixels or resources.
pub fn admit(client: LiveClient, head: &Head) {
    let is_pending = |state: &mut Cutting| {
        // A request that is dispatched again was admitted before.
        let is_new = state.rests.iter().all(|rest| rest.client != client);
        (is_new && !state.rests.is_empty()).then(|| (state.server, state.guard.clone()))
    };
    let Some((server, guard)) = with(is_pending).flatten() else { return };
    // SAFETY: the request is being dispatched, and the slice is used before its procedure runs.
    let request = unsafe { client.request_bytes() };
    let Some(footprint) = guard.footprint(&server, head.request, request, order_of(client)) else { return };
    let by = ClientId(head.index as u16);
    // This client's request may be cut next, so events from the rests must have the previous sequence number.
    server.set_sequence(client, head.sequence.wrapping_sub(1));
    finish_where(by, |rest| footprint.touches(&rest.footprint));
    server.set_sequence(client, head.sequence);
}

pub(super) fn finish_where(by: ClientId, is_meant: impl Fn(&Cut) -> bool) {
    let next = |state: &mut Cutting| {
        let at = state.rests.iter().position(|rest| rest.result.is_none() && is_meant(rest))?;
        state.totals.finished += 1;
        Some(state.rests.swap_remove(at))
    };
    while let Some(rest) = with(next).flatten() {
        finish(rest, by);
    }
    update_guard();
}

/// Executes a rest now, because of client `by`. The next dispatch of the rest's client returns the status.
fn finish(rest: Cut, by: ClientId) {
    let (client, head, began) = (rest.client, rest.head, kernel::now());
    let End::InParts(used_ns) = run(rest, false).end else { return };
    let now = kernel::now();
    let ns = now.since(began);
    with(|state| state.finished.push((client, head.request, ns)));
    note_request(&head, now, used_ns);
    note(now, Entry::Finished { client: ClientId(head.index as u16), request: head.request, by, ns });
}

/// A client's connection is closed. `frees`: its windows are about to be destroyed, and [`leaves`] was called before.
pub fn gone(client: LiveClient, frees: bool) {
    finish_where(ClientId(client.index() as u16), |rest| rest.client != client);
    if frees {
        with(|state| {
            state.windows_changed = true;
            state.rests.retain(|rest| rest.client != client);
            state.finished.retain(|&(of, ..)| of != client);
            state.queued.retain(|&of| of != client);
        });
        update_guard();
    }
}

/// The server calls this between slices, and before it frees the requests of a client whose connection has ended.
pub(super) unsafe extern "C" fn leaves(raw: ClientPtr, _closure: *mut c_void) -> c_int {
    // SAFETY: the server passes a client that it still has.
    let Some(client) = (unsafe { LiveClient::new(raw) }) else { return 1 };
    if client.is_gone() {
        finish_where(ClientId(client.index() as u16), |rest| rest.client == client);
        // A client whose resources are kept is not dispatched again.
        with(|state| state.rests.retain(|rest| rest.client != client));
        update_guard();
    }
    let is_needed = with(|state| {
        let is_needed = state.rests.iter().any(|rest| rest.client == client && rest.result.is_none());
        if !is_needed {
            state.queued.retain(|&of| of != client);
        }
        is_needed
    });
    c_int::from(is_needed != Some(true))
}

/// The server is about to change which parts of windows are visible.
pub(super) unsafe extern "C" fn windows_change() {
    finish_where(ClientId(0), |_| true);
}
