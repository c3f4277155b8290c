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
//! The entries of the request tables are exchanged, not those of the client's own vector, which RECORD swaps. They are
//! restored when no layer needs them, at a server reset, and when xqos steps aside.

use crate::host::dix::client::{Client, ClientPtr, Head};
use crate::host::dix::cut::{self, End, Outcome};
use crate::host::dix::symbols::{RequestProc, Symbols, symbols, x_error};
use crate::host::dix::sync_priority;
use crate::host::dix::ticks::Ticks;
use crate::host::engine_cell::OnServerThread;
use crate::host::kernel;
use xqos_abi::trace::Entry;
use xqos_core::{ClientId, Time};

pub const ENTRIES: usize = 256;

struct WrappedTables {
    original: [RequestProc; ENTRIES],
    swapped_original: [RequestProc; ENTRIES],
    /// The entries that are wrapped now.
    installed: [bool; ENTRIES],
    cuts: [bool; ENTRIES],
    /// SYNC's major opcode; 0 if its requests are not wrapped.
    sync: usize,
    guards: bool,
    counts: bool,
    times: bool,
    requests_left: u32,
    bytes_left: u32,
    bytes: u64,
    ticks: Ticks,
    /// The start of the next request's time: the end of the previous request or the start of the slice.
    since: Time,
}

static WRAPPED: OnServerThread<WrappedTables> = OnServerThread::new(WrappedTables {
    original: [never; ENTRIES],
    swapped_original: [never; ENTRIES],
    installed: [false; ENTRIES],
    cuts: [false; ENTRIES],
    sync: 0,
    guards: false,
    counts: false,
    times: false,
    requests_left: 0,
    bytes_left: 0,
    bytes: 0,
    ticks: Ticks::UNKNOWN,
    since: Time(0),
});

unsafe extern "C" fn never(_: ClientPtr) -> i32 {
    x_error::IMPLEMENTATION
}

/// The reference must not be held across a call into the server.
fn wrapped() -> &'static mut WrappedTables {
    // SAFETY: this runs on the server's thread, and one function at a time holds the reference, as required above.
    unsafe { &mut *WRAPPED.get() }
}

pub fn configure(symbols: &Symbols, counts: bool, times: bool) {
    let wrapped = wrapped();
    if times && !wrapped.times {
        wrapped.since = kernel::now();
        wrapped.ticks = Ticks::begin();
    }
    (wrapped.counts, wrapped.times) = (counts, times);
    install(wrapped, symbols);
}

pub fn set_cuts(symbols: &Symbols, cuts: [bool; ENTRIES]) {
    let wrapped = wrapped();
    wrapped.cuts = cuts;
    install(wrapped, symbols);
}

/// Wraps the requests of SYNC, which has this major opcode; 0: wraps none.
pub fn set_sync(symbols: &Symbols, major_opcode: usize) {
    let wrapped = wrapped();
    wrapped.sync = major_opcode;
    install(wrapped, symbols);
}

pub fn set_guard(symbols: &Symbols, guards: bool) {
    let wrapped = wrapped();
    if std::mem::replace(&mut wrapped.guards, guards) != guards {
        install(wrapped, symbols);
    }
}

/// Wraps or restores each entry as needed. An entry that other code has changed meanwhile is not restored.
fn install(wrapped: &mut WrappedTables, symbols: &Symbols) {
    let all = wrapped.counts || wrapped.times || wrapped.guards;
    for entry in 0..ENTRIES {
        let is_sync = entry == wrapped.sync && entry != 0;
        let (is, wanted) = (wrapped.installed[entry], all || is_sync || wrapped.cuts[entry]);
        if is == wanted {
            continue;
        }
        wrapped.installed[entry] = wanted;
        let tables: [(_, RequestProc, _); 2] = [
            (symbols.proc_vector, native, &mut wrapped.original[entry]),
            (symbols.swapped_proc_vector, swapped, &mut wrapped.swapped_original[entry]),
        ];
        for (table, ours, original) in tables {
            // SAFETY: the server's tables have 256 entries and are changed only on its thread.
            unsafe {
                let place = table.add(entry);
                let is_ours = std::ptr::fn_addr_eq(*place, ours);
                if wanted && !is_ours {
                    (*original, *place) = (*place, ours);
                } else if !wanted && is_ours {
                    *place = *original;
                }
            }
        }
    }
}

/// Starts a slice that ends after this number of requests or bytes; 0 means unlimited.
pub fn slice_begins(requests: u32, bytes: u32, now: Time) {
    let wrapped = wrapped();
    wrapped.requests_left = if requests == 0 { u32::MAX } else { requests };
    wrapped.bytes_left = if bytes == 0 { u32::MAX } else { bytes };
    wrapped.bytes = 0;
    wrapped.since = now;
    if wrapped.times {
        wrapped.ticks.synchronise(now);
    }
}

/// The number of bytes in the requests since the slice began.
pub fn bytes() -> u64 {
    wrapped().bytes
}

/// The wrapper for clients of this machine's byte order. The server's swapped core procedures also call this wrapper,
/// after `swapped` has counted their request.
unsafe extern "C" fn native(raw: ClientPtr) -> i32 {
    // SAFETY: the server passes the client whose request it dispatches.
    let Some(client) = (unsafe { Client::new(raw) }) else { return x_error::IMPLEMENTATION };
    let head = client.head();
    let procedure = wrapped().original[entry_of(&head)];
    if head.swapped != 0 { call(procedure, raw) } else { execute(client, &head, procedure) }
}

unsafe extern "C" fn swapped(raw: ClientPtr) -> i32 {
    // SAFETY: the server passes the client whose request it dispatches.
    let Some(client) = (unsafe { Client::new(raw) }) else { return x_error::IMPLEMENTATION };
    let head = client.head();
    execute(client, &head, wrapped().swapped_original[entry_of(&head)])
}

pub fn call(procedure: RequestProc, client: ClientPtr) -> i32 {
    // SAFETY: `procedure` is an original entry of the server's table, called with the client being dispatched.
    unsafe { procedure(client) }
}

fn entry_of(head: &Head) -> usize {
    (head.request & 0xff) as usize
}

fn execute(client: Client, head: &Head, procedure: RequestProc) -> i32 {
    let WrappedTables { counts, guards, times, .. } = *wrapped();
    // Nearly every request ends here.
    if !(counts || guards || times) && cut::is_short(client, head) {
        return call(procedure, client.raw());
    }
    execute_observed(client, head, procedure)
}

#[inline(never)]
fn execute_observed(client: Client, head: &Head, procedure: RequestProc) -> i32 {
    let &Head { index, sequence, bytes, .. } = head;
    if wrapped().counts {
        count(bytes);
    }
    if wrapped().guards {
        cut::admit(client, head);
    }
    let entry = entry_of(head);
    let Outcome { status, end } = if wrapped().cuts[entry] {
        // A slice of `classic` ends after a number of whole requests.
        cut::execute(client, head, procedure, !wrapped().counts)
    } else if wrapped().sync == entry {
        Outcome::whole(sync_priority::execute(client, head, procedure))
    } else {
        Outcome::whole(call(procedure, client.raw()))
    };
    // RECORD keeps copies of the table. A copy made while the table was wrapped still calls this function later.
    if !wrapped().times {
        return status;
    }
    let now = wrapped().ticks.now();
    let since = std::mem::replace(&mut wrapped().since, now);
    // A request may end its client. The server takes back a request that must wait and dispatches it again later.
    let is_there = symbols().is_ok_and(|symbols| symbols.client_at(index as usize) == client.raw());
    match end {
        End::Whole if !is_there || client.sequence() == sequence => note_request(head, now, now.since(since)),
        End::InParts(ns) => note_request(head, now, ns),
        _ => {}
    }
    status
}

/// Records a request if requests are timed.
pub fn note_request(head: &Head, now: Time, ns: u64) {
    if wrapped().times {
        let &Head { index, request, bytes, .. } = head;
        cut::note(now, Entry::Request { client: ClientId(index as u16), request, bytes, ns });
    }
}

fn count(length: u32) {
    let wrapped = wrapped();
    wrapped.bytes += u64::from(length);
    wrapped.requests_left = wrapped.requests_left.saturating_sub(1);
    wrapped.bytes_left = wrapped.bytes_left.saturating_sub(length);
    let is_over = wrapped.requests_left == 0 || wrapped.bytes_left == 0;
    if is_over && wrapped.counts {
        if let Ok(symbols) = symbols() {
            symbols.end_slice();
        }
    }
}
