// SPDX-License-Identifier: MIT
//! Observes each request, but only when needed: counts requests for the policy `classic`, which ends a slice after ten
//! requests or at the end of a buffer, and times them for a trace of level `requests`.
//!
//! This is the only xqos code that runs per request. It wraps all entries of the request tables (not the client's own
//! vector, which RECORD swaps). It restores them when no observation is needed, at a server reset, and when xqos steps
//! aside.

use crate::host::dix::client::{Client, ClientPtr, Head};
use crate::host::dix::hooks::with_engine;
use crate::host::dix::symbols::{RequestProc, Symbols, symbols, x_error};
use crate::host::dix::ticks::Ticks;
use crate::host::engine_cell::OnServerThread;
use crate::host::kernel;
use xqos_abi::trace::Entry;
use xqos_core::{ClientId, Time};

const ENTRIES: usize = 256;

struct WrappedTables {
    original: [RequestProc; ENTRIES],
    swapped_original: [RequestProc; ENTRIES],
    installed: bool,
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
    installed: false,
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

/// Wraps or restores the tables as needed.
pub fn configure(symbols: &Symbols, counts: bool, times: bool) {
    let wrapped = wrapped();
    if times && !wrapped.times {
        wrapped.since = kernel::now();
        wrapped.ticks = Ticks::begin(wrapped.since);
    }
    (wrapped.counts, wrapped.times) = (counts, times);
    match (wrapped.installed, counts || times) {
        (false, true) => install(wrapped, symbols),
        (true, false) => remove(wrapped, symbols),
        _ => {}
    }
}

fn install(wrapped: &mut WrappedTables, symbols: &Symbols) {
    for entry in 0..ENTRIES {
        // SAFETY: the server's tables have 256 entries and are changed only on its thread.
        unsafe {
            wrapped.original[entry] = *symbols.proc_vector.add(entry);
            wrapped.swapped_original[entry] = *symbols.swapped_proc_vector.add(entry);
            *symbols.proc_vector.add(entry) = native;
            *symbols.swapped_proc_vector.add(entry) = swapped;
        }
    }
    wrapped.installed = true;
}

/// Restores the tables, except entries that other code has changed meanwhile.
fn remove(wrapped: &mut WrappedTables, symbols: &Symbols) {
    for entry in 0..ENTRIES {
        let entries = [
            (symbols.proc_vector, native as RequestProc, wrapped.original[entry]),
            (symbols.swapped_proc_vector, swapped as RequestProc, wrapped.swapped_original[entry]),
        ];
        for (table, ours, original) in entries {
            // SAFETY: as in `install`.
            unsafe {
                if std::ptr::fn_addr_eq(*table.add(entry), ours) {
                    *table.add(entry) = original;
                }
            }
        }
    }
    wrapped.installed = false;
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
    if head.swapped != 0 { call(procedure, raw) } else { seen(client, &head, procedure) }
}

unsafe extern "C" fn swapped(raw: ClientPtr) -> i32 {
    // SAFETY: the server passes the client whose request it dispatches.
    let Some(client) = (unsafe { Client::new(raw) }) else { return x_error::IMPLEMENTATION };
    let head = client.head();
    seen(client, &head, wrapped().swapped_original[entry_of(&head)])
}

fn call(procedure: RequestProc, client: ClientPtr) -> i32 {
    // SAFETY: `procedure` is an original entry of the server's table, called with the client being dispatched.
    unsafe { procedure(client) }
}

fn entry_of(head: &Head) -> usize {
    (head.request & 0xff) as usize
}

fn seen(client: Client, head: &Head, procedure: RequestProc) -> i32 {
    let &Head { index, sequence, request, bytes, .. } = head;
    if wrapped().counts {
        count(bytes);
    }
    // RECORD keeps copies of the table. A copy made while the table was wrapped still calls this function later.
    if !wrapped().times {
        return call(procedure, client.raw());
    }
    let result = call(procedure, client.raw());
    let now = wrapped().ticks.now();
    let since = std::mem::replace(&mut wrapped().since, now);
    // A request may end its client. The server takes back a request that must wait and dispatches it again later.
    let is_there = symbols().is_ok_and(|symbols| symbols.client_at(index as usize) == client.raw());
    if !is_there || client.sequence() == sequence {
        let client = ClientId(index as u16);
        let what = Entry::Request { client, request, bytes, ns: now.since(since) };
        with_engine(|engine| {
            engine.scheduler.trace.note(now, what);
            Ok(())
        });
    }
    result
}

fn count(length: u32) {
    let wrapped = wrapped();
    wrapped.bytes += u64::from(length);
    wrapped.requests_left = wrapped.requests_left.saturating_sub(1);
    wrapped.bytes_left = wrapped.bytes_left.saturating_sub(length);
    let is_over = wrapped.requests_left == 0 || wrapped.bytes_left == 0;
    if is_over && wrapped.installed {
        if let Ok(symbols) = symbols() {
            symbols.end_slice();
        }
    }
}
