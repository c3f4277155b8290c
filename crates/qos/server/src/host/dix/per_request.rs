// SPDX-License-Identifier: MIT
//! The wrappers around the server's request procedures, the only xqos code that runs per request.
//!
//! | layer | wraps | when |
//! |---|---|---|
//! | cut | the requests that consist of parts or change windows ([`cut`](super::cut)) | while cutting is on |
//! | presented | those of Present, to note their drawables | always |
//! | SYNC | SYNC's requests ([`sync_priority`](super::sync_priority)) | always |
//! | guard | all requests | while the rest of a cut request is pending |
//! | observe | all requests | counts them for the policy `classic`, times them for a trace of level `requests` |
//!
//! [`Tables`] exchanges the entries of the server's request tables.

use crate::host::dix::cell::{note_request, tables};
use crate::host::dix::client::{ClientPtr, Head, LiveClient};
use crate::host::dix::cut::{self, CutOutcome, End};
use crate::host::dix::symbols::{RequestProc, symbols, x_error};
use crate::host::dix::sync_priority;
use crate::host::dix::tables::{Tables, call};

/// The wrapper for clients of this machine's byte order. The server's swapped core procedures also call this wrapper,
/// after `swapped` has counted their request.
pub unsafe extern "C" fn native(raw: ClientPtr) -> i32 {
    // SAFETY: the server passes the client whose request it dispatches.
    let Some(client) = (unsafe { LiveClient::new(raw) }) else { return x_error::IMPLEMENTATION };
    let head = client.head();
    let procedure = tables().original(entry_of(&head), false);
    if head.swapped != 0 { call(procedure, raw) } else { execute(client, &head, procedure) }
}

pub unsafe extern "C" fn swapped(raw: ClientPtr) -> i32 {
    // SAFETY: the server passes the client whose request it dispatches.
    let Some(client) = (unsafe { LiveClient::new(raw) }) else { return x_error::IMPLEMENTATION };
    let head = client.head();
    execute(client, &head, tables().original(entry_of(&head), true))
}

fn entry_of(head: &Head) -> usize {
    (head.request & 0xff) as usize
}

fn execute(client: LiveClient, head: &Head, procedure: RequestProc) -> i32 {
    let Tables { counts, guards, times, .. } = tables();
    // Nearly every request ends here.
    if !(counts.get() || guards.get() || times.get()) && cut::is_short(client, head) {
        return call(procedure, client.raw());
    }
    execute_observed(client, head, procedure)
}

#[inline(never)]
fn execute_observed(client: LiveClient, head: &Head, procedure: RequestProc) -> i32 {
    let (tables, &Head { index, sequence, bytes, .. }) = (tables(), head);
    if tables.counts.get() && tables.count(bytes) {
        if let Ok(symbols) = symbols() {
            symbols.end_slice();
        }
    }
    if tables.guards.get() {
        cut::admit(client, head);
    }
    let entry = entry_of(head);
    let CutOutcome { status, end } = if tables.is_cut(entry) {
        // A slice of `classic` ends after a number of whole requests.
        cut::execute(client, head, procedure, !tables.counts.get())
    } else if tables.is_sync(entry) {
        CutOutcome::whole(sync_priority::execute(client, head, procedure))
    } else {
        CutOutcome::whole(call(procedure, client.raw()))
    };
    // RECORD keeps copies of the table. A copy made while the table was wrapped still calls this function later.
    if !tables.times.get() {
        return status;
    }
    let (now, ns) = tables.lap();
    // A request may end its client. The server takes back a request that must wait and dispatches it again later.
    let is_there = symbols().is_ok_and(|symbols| symbols.client_at(index as usize) == client.raw());
    match end {
        End::Whole if !is_there || client.sequence() == sequence => note_request(head, now, ns),
        End::InParts(ns) => note_request(head, now, ns),
        _ => {}
    }
    status
}
