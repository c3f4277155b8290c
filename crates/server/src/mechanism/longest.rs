// SPDX-License-Identifier: MIT
//! A ranking of the longest requests, by the processor time that they took.
//!
//! A request is timed as the slice that it was alone. The clock on the wall goes on while the kernel runs something else, so a
//! slice that may be the longest is judged by the processor time of the server's thread.

use xqos_abi::LongRequest;
use xqos_core::Time;

/// The longest requests since the start, of slices that were one request; the longest first.
#[derive(Debug, Default)]
pub struct Longest {
    requests: Vec<LongRequest>,
}

impl Longest {
    const KEPT: usize = 16;
    /// Shorter ones delay nobody, and are not worth a question to the kernel.
    pub const MIN_NS: u64 = 100_000;

    pub fn floor_ns(&self) -> u64 {
        let last = self.requests.get(Self::KEPT - 1).map_or(0, |request| request.ns);
        last.max(Self::MIN_NS)
    }

    /// One for each client and kind of request: or one client would fill the list.
    pub fn add(&mut self, ns: u64, client: u32, request: u32, make: impl FnOnce() -> LongRequest) {
        let same = |other: &LongRequest| (other.client, other.request) == (client, request);
        match self.requests.iter().position(same) {
            Some(at) if self.requests[at].ns >= ns => return,
            Some(at) => self.requests[at] = make(),
            None => self.requests.push(make()),
        }
        self.requests.sort_by_key(|request| std::cmp::Reverse(request.ns));
        self.requests.truncate(Self::KEPT);
    }

    pub fn list(&self) -> Vec<LongRequest> {
        self.requests.clone()
    }
}

/// Processor time of the server's thread, read when slices begin.
#[derive(Debug, Default)]
pub struct ProcessorTime {
    read_at: Time,
    ns: u64,
}

impl ProcessorTime {
    /// Reading it is a system call, so that a slice that begins sooner after the last reading goes without.
    const READ_EVERY_NS: u64 = 50_000;

    /// The reading that counts for this slice; where it has to be exact, one of now.
    pub fn slice_begins(&mut self, now: Time, is_exact: bool, read: impl FnOnce() -> u64) -> u64 {
        if is_exact || now.since(self.read_at) >= Self::READ_EVERY_NS {
            *self = ProcessorTime { read_at: now, ns: read() };
        }
        self.ns
    }

    /// What a slice of this length took, if this is the reading at its end; too much by at most the time between two readings.
    pub fn used(&self, slice_ns: u64, at_end: u64) -> u64 {
        at_end.saturating_sub(self.ns).min(slice_ns)
    }
}
