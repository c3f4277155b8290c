// SPDX-License-Identifier: MIT
//! The server's tables of request procedures. Wrappers replace their entries while a layer of
//! [`per_request`](super::per_request) needs them.
//!
//! The entries of the request tables are exchanged, not those of the client's own vector, which RECORD swaps. They are
//! restored when no layer needs them, at a server reset, and when xqos steps aside.

use crate::host::dix::client::ClientPtr;
use crate::host::dix::symbols::{RequestProc, Symbols, x_error};
use crate::host::dix::ticks::Ticks;
use crate::host::kernel;
use std::cell::Cell;
use xqos_core::Time;

pub const ENTRIES: usize = 256;

/// One request: the server's procedures for both byte orders, and how the request is treated.
struct TableEntry {
    originals: [Cell<RequestProc>; 2],
    is_wrapped: Cell<bool>,
    is_cut: Cell<bool>,
}

/// All fields are cells, so that no reference to them has to end before a call into the server.
pub struct Tables {
    entries: [TableEntry; ENTRIES],
    /// The wrappers for both byte orders.
    wrappers: Cell<[RequestProc; 2]>,
    /// SYNC's major opcode; 0 if its requests are not wrapped.
    sync: Cell<usize>,
    pub guards: Cell<bool>,
    pub counts: Cell<bool>,
    pub times: Cell<bool>,
    requests_left: Cell<u32>,
    bytes_left: Cell<u32>,
    bytes: Cell<u64>,
    ticks: Cell<Ticks>,
    /// The start of the next request's time: the end of the previous request or the start of the slice.
    since: Cell<Time>,
}

unsafe extern "C" fn never(_: ClientPtr) -> i32 {
    x_error::IMPLEMENTATION
}

/// Calls an original entry of the server's table.
pub fn call(procedure: RequestProc, client: ClientPtr) -> i32 {
    // SAFETY: `procedure` is an original entry of the server's table, called with the client being dispatched.
    unsafe { procedure(client) }
}

impl Tables {
    pub const fn new() -> Tables {
        Tables {
            entries: [const {
                TableEntry {
                    originals: [const { Cell::new(never as RequestProc) }; 2],
                    is_wrapped: Cell::new(false),
                    is_cut: Cell::new(false),
                }
            }; ENTRIES],
            wrappers: Cell::new([never; 2]),
            sync: Cell::new(0),
            guards: Cell::new(false),
            counts: Cell::new(false),
            times: Cell::new(false),
            requests_left: Cell::new(0),
            bytes_left: Cell::new(0),
            bytes: Cell::new(0),
            ticks: Cell::new(Ticks::UNKNOWN),
            since: Cell::new(Time(0)),
        }
    }

    /// Sets the wrappers for clients of this machine's byte order and of the other one.
    pub fn set_wrappers(&self, native: RequestProc, swapped: RequestProc) {
        self.wrappers.set([native, swapped]);
    }

    pub fn original(&self, entry: usize, is_swapped: bool) -> RequestProc {
        self.entries[entry].originals[usize::from(is_swapped)].get()
    }

    pub fn is_cut(&self, entry: usize) -> bool {
        self.entries[entry].is_cut.get()
    }

    pub fn is_sync(&self, entry: usize) -> bool {
        entry != 0 && self.sync.get() == entry
    }

    pub fn configure(&self, symbols: &Symbols, counts: bool, times: bool) {
        if times && !self.times.get() {
            self.since.set(kernel::now());
            self.ticks.set(Ticks::begin());
        }
        self.counts.set(counts);
        self.times.set(times);
        self.install(symbols);
    }

    pub fn set_cuts(&self, symbols: &Symbols, cuts: [bool; ENTRIES]) {
        self.entries.iter().zip(cuts).for_each(|(entry, is_cut)| entry.is_cut.set(is_cut));
        self.install(symbols);
    }

    /// Wraps the requests of SYNC, which has this major opcode; 0: wraps none.
    pub fn set_sync(&self, symbols: &Symbols, major_opcode: usize) {
        self.sync.set(major_opcode);
        self.install(symbols);
    }

    pub fn set_guard(&self, symbols: &Symbols, guards: bool) {
        if self.guards.replace(guards) != guards {
            self.install(symbols);
        }
    }

    /// Wraps or restores each entry as needed. An entry that other code has changed meanwhile is not restored.
    fn install(&self, symbols: &Symbols) {
        let all = self.counts.get() || self.times.get() || self.guards.get();
        let tables = [symbols.proc_vector, symbols.swapped_proc_vector];
        for (at, entry) in self.entries.iter().enumerate() {
            let wanted = all || self.is_sync(at) || entry.is_cut.get();
            if entry.is_wrapped.replace(wanted) == wanted {
                continue;
            }
            for ((table, ours), original) in tables.into_iter().zip(self.wrappers.get()).zip(&entry.originals) {
                // SAFETY: the server's tables have 256 entries and are changed only on its thread.
                unsafe {
                    let place = table.add(at);
                    let is_ours = std::ptr::fn_addr_eq(*place, ours);
                    if wanted && !is_ours {
                        original.set(*place);
                        *place = ours;
                    } else if !wanted && is_ours {
                        *place = original.get();
                    }
                }
            }
        }
    }

    /// Starts a slice that ends after this number of requests or bytes; 0 means unlimited.
    pub fn slice_begins(&self, requests: u32, bytes: u32, now: Time) {
        let or_unlimited = |count: u32| if count == 0 { u32::MAX } else { count };
        self.requests_left.set(or_unlimited(requests));
        self.bytes_left.set(or_unlimited(bytes));
        self.bytes.set(0);
        self.since.set(now);
        if self.times.get() {
            let mut ticks = self.ticks.get();
            ticks.synchronise(now);
            self.ticks.set(ticks);
        }
    }

    /// The number of bytes in the requests since the slice began.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Counts a request of this length. Returns true if the slice is over.
    pub fn count(&self, length: u32) -> bool {
        self.bytes.set(self.bytes.get() + u64::from(length));
        self.requests_left.set(self.requests_left.get().saturating_sub(1));
        self.bytes_left.set(self.bytes_left.get().saturating_sub(length));
        self.requests_left.get() == 0 || self.bytes_left.get() == 0
    }

    /// The time now, and since the last call or the start of the slice.
    pub fn lap(&self) -> (Time, u64) {
        let now = self.ticks.get().now();
        (now, now.since(self.since.replace(now)))
    }
}
