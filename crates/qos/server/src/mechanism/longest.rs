// SPDX-License-Identifier: MIT
//! The longest requests, ranked by processor time.
//!
//! A request is timed if it was alone in its slice. Wall-clock time includes whatever else the kernel ran meanwhile, so
//! a slice that may be among the longest is measured in processor time of the server's thread.

use xqos_abi::LongRequest;
use xqos_core::Time;

/// The longest requests since the start among those that were alone in their slice, in descending order.
#[derive(Debug, Default)]
pub struct RequestRanking {
    requests: Vec<LongRequest>,
}

impl RequestRanking {
    const MAX_ENTRIES: usize = 16;
    /// Shorter requests delay no client noticeably and are not worth a system call.
    pub const MIN_NS: u64 = 100_000;

    pub fn floor_ns(&self) -> u64 {
        let last = self.requests.get(Self::MAX_ENTRIES - 1).map_or(0, |request| request.ns);
        last.max(Self::MIN_NS)
    }

    /// Keeps one entry for each client and kind of request, so that no single client fills the list.
    pub fn add(&mut self, ns: u64, client: u32, request: u32, make: impl FnOnce() -> LongRequest) {
        let same = |other: &LongRequest| (other.client, other.request) == (client, request);
        match self.requests.iter().position(same) {
            Some(at) if self.requests[at].ns >= ns => return,
            Some(at) => self.requests[at] = make(),
            None => self.requests.push(make()),
        }
        self.requests.sort_by_key(|request| std::cmp::Reverse(request.ns));
        self.requests.truncate(Self::MAX_ENTRIES);
    }

    pub fn list(&self) -> Vec<LongRequest> {
        self.requests.clone()
    }
}

/// Processor time of the server's thread, read when a slice begins.
#[derive(Debug, Default)]
pub struct ProcessorTime {
    ns: u64,
    read_at: Time,
    /// The busy time of the server at the reading, and the number of slices since then.
    busy_ns: u64,
    slices: u32,
}

impl ProcessorTime {
    /// A reading costs a system call, so it is reused for slices of this total length, for this many slices, and for
    /// this time.
    const READ_EVERY_BUSY_NS: u64 = 100_000;
    const READ_EVERY_SLICES: u32 = 8;
    const READ_EVERY_NS: u64 = 5_000_000;

    /// Returns the reading for a slice that begins now, when the server has been busy for `busy_ns` since its start. If
    /// `is_exact`, it is always a new reading.
    pub fn slice_begins(&mut self, now: Time, busy_ns: u64, is_exact: bool, read: impl FnOnce() -> u64) -> u64 {
        self.slices += 1;
        let is_old = busy_ns - self.busy_ns >= Self::READ_EVERY_BUSY_NS
            || self.slices > Self::READ_EVERY_SLICES
            || now.since(self.read_at) >= Self::READ_EVERY_NS;
        if is_exact || is_old {
            *self = ProcessorTime { ns: read(), read_at: now, busy_ns, slices: 0 };
        }
        self.ns
    }

    /// The processor time of a slice, given the reading at its end. The result is too long by at most
    /// `READ_EVERY_BUSY_NS`, and what the server did between these slices.
    pub fn used(&self, slice_ns: u64, at_end: u64) -> u64 {
        at_end.saturating_sub(self.ns).min(slice_ns)
    }
}
