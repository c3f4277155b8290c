// SPDX-License-Identifier: MIT
//! A ranking of the longest requests.

use xqos_abi::LongRequest;

/// The longest requests since the start, of slices that were one request; the longest first.
#[derive(Debug, Default)]
pub struct Longest {
    requests: Vec<LongRequest>,
}

impl Longest {
    const KEPT: usize = 16;
    /// Shorter ones delay nobody.
    const MIN_NS: u64 = 100_000;

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
