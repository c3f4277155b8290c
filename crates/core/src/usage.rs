//! What a client has used and suffered so far; observed in slices, never per request.
//!
//! Times are added up without overflow: a replayed trace may claim any.

use crate::{Mode, Service, Time};

/// Accounting of one client since it connected. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// When it connected.
    pub connected: Time,
    /// Server time spent in its slices.
    pub server_time_ns: u64,
    /// The part of it paid from its reservation.
    pub reserved_time_ns: u64,
    /// Requests executed.
    pub requests: u64,
    /// Slices in which it ran.
    pub slices: u64,
    /// Sum of the time from arrival, or from the end of its last slice while still ready, to dispatch.
    pub waited_ns: u64,
    /// The longest of these waits.
    pub longest_wait_ns: u64,
    /// The longest slice that was one request.
    pub longest_request_ns: u64,
    /// That request: major opcode + 65536 x minor opcode.
    pub longest_request: u32,
    /// Time for which it held the server grab.
    pub grabbed_ns: u64,
    /// How often it grabbed the server.
    pub grabs: u32,
    /// Times its budget ran out.
    pub depletions: u32,
    /// Deadlines that passed with budget left and work waiting.
    pub misses: u32,
}

impl Usage {
    pub(crate) fn waited(&mut self, ns: u64) {
        self.waited_ns = self.waited_ns.saturating_add(ns);
        self.longest_wait_ns = self.longest_wait_ns.max(ns);
    }

    pub(crate) fn served(&mut self, service: &Service, mode: Mode) {
        let length = service.end.since(service.start);
        self.server_time_ns = self.server_time_ns.saturating_add(length);
        if mode == Mode::Reserved {
            self.reserved_time_ns = self.reserved_time_ns.saturating_add(length);
        }
        self.requests += u64::from(service.requests);
        self.slices += 1;
        if service.requests == 1 && length > self.longest_request_ns {
            self.longest_request_ns = length;
            self.longest_request = service.last_request;
        }
    }
}
