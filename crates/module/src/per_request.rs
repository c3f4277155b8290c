//! Counting requests, only while the policy `classic` is set: its turns are ten requests long and its buffers end.
//!
//! The only place where xqos runs per request, and only because a comparison was asked for. All entries of the request
//! tables are wrapped (not a client's own vector, which RECORD swaps), and put back when another policy is set, at a
//! server reset and when xqos steps aside.

use crate::client::Client;
use crate::host::{ClientPtr, Host, RequestProc, host};
use std::cell::UnsafeCell;

const ENTRIES: usize = 256;

struct Counting {
    original: [RequestProc; ENTRIES],
    swapped_original: [RequestProc; ENTRIES],
    installed: bool,
    requests_left: u32,
    bytes_left: u32,
    bytes: u64,
}

/// Touched on the server's thread only.
struct OnServerThread(UnsafeCell<Counting>);

// SAFETY: the server dispatches, and calls our hooks, on one thread.
unsafe impl Sync for OnServerThread {}

static COUNTING: OnServerThread = OnServerThread(UnsafeCell::new(Counting {
    original: [never; ENTRIES],
    swapped_original: [never; ENTRIES],
    installed: false,
    requests_left: 0,
    bytes_left: 0,
    bytes: 0,
}));

unsafe extern "C" fn never(_: ClientPtr) -> i32 {
    crate::host::x_error::IMPLEMENTATION
}

fn counting() -> *mut Counting {
    COUNTING.0.get()
}

/// Wraps the tables, once.
pub fn install(host: &Host) {
    // SAFETY: the server's tables have 256 entries; on its thread.
    unsafe {
        let counting = &mut *counting();
        if counting.installed {
            return;
        }
        for entry in 0..ENTRIES {
            counting.original[entry] = *host.proc_vector.add(entry);
            counting.swapped_original[entry] = *host.swapped_proc_vector.add(entry);
            *host.proc_vector.add(entry) = counted;
            *host.swapped_proc_vector.add(entry) = counted_swapped;
        }
        counting.installed = true;
    }
}

/// Puts the tables back.
pub fn remove(host: &Host) {
    // SAFETY: as in `install`; entries that somebody else changed meanwhile are left alone.
    unsafe {
        let counting = &mut *counting();
        if !counting.installed {
            return;
        }
        for entry in 0..ENTRIES {
            let entries = [
                (host.proc_vector, counted as RequestProc, counting.original[entry]),
                (host.swapped_proc_vector, counted_swapped as RequestProc, counting.swapped_original[entry]),
            ];
            for (table, ours, original) in entries {
                if std::ptr::fn_addr_eq(*table.add(entry), ours) {
                    *table.add(entry) = original;
                }
            }
        }
        counting.installed = false;
    }
}

/// A slice begins: it ends after so many requests or bytes; 0: not limited.
pub fn slice_begins(requests: u32, bytes: u32) {
    // SAFETY: on the server's thread, between requests.
    let counting = unsafe { &mut *counting() };
    counting.requests_left = if requests == 0 { u32::MAX } else { requests };
    counting.bytes_left = if bytes == 0 { u32::MAX } else { bytes };
    counting.bytes = 0;
}

/// Bytes of requests since the slice began.
pub fn bytes() -> u64 {
    // SAFETY: on the server's thread, between requests.
    unsafe { (*counting()).bytes }
}

/// In the table for clients of this machine's byte order. The core's swapped procedures end here too, after
/// `counted_swapped` has counted their request.
unsafe extern "C" fn counted(client: ClientPtr) -> i32 {
    // SAFETY: the client that the server dispatches.
    unsafe {
        let Some(record) = Client::new(client) else { return crate::host::x_error::IMPLEMENTATION };
        if !record.is_swapped() {
            count(record);
        }
        let procedure = (*counting()).original[entry_of(record)];
        procedure(client)
    }
}

unsafe extern "C" fn counted_swapped(client: ClientPtr) -> i32 {
    // SAFETY: the client that the server dispatches.
    unsafe {
        let Some(record) = Client::new(client) else { return crate::host::x_error::IMPLEMENTATION };
        count(record);
        let procedure = (*counting()).swapped_original[entry_of(record)];
        procedure(client)
    }
}

fn entry_of(client: Client) -> usize {
    (client.last_request() & 0xff) as usize
}

fn count(client: Client) {
    let (_, length) = client.request_head();
    // SAFETY: on the server's thread; the reference does not outlive this function, which calls nobody of the server.
    let counting = unsafe { &mut *counting() };
    counting.bytes += u64::from(length);
    counting.requests_left = counting.requests_left.saturating_sub(1);
    counting.bytes_left = counting.bytes_left.saturating_sub(length);
    // RECORD keeps copies of the table: one made in our time leads here still when another policy is set.
    let is_over = counting.requests_left == 0 || counting.bytes_left == 0;
    if is_over && counting.installed {
        if let Ok(host) = host() {
            host.end_slice();
        }
    }
}
