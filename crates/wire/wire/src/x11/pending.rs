// SPDX-License-Identifier: MIT
//! Requests of a connection that wait for their replies.
//!
//! Replies are matched by sequence number, not by order, so lost replies and errors do no harm. The server answers in
//! order, so a reply also shows that earlier requests can no longer be answered. A request with several replies
//! stays pending until the last one.

use std::collections::VecDeque;

/// A request that can still be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRequest {
    pub sequence: u64,
    pub major: u8,
    pub minor: u8,
    /// For a request with several replies, the second byte of the last reply.
    pub last_of_many: Option<u8>,
    /// Offset of its end in the stream.
    pub end: u64,
}

/// Pending requests, in order of sequence number.
#[derive(Debug)]
pub struct Pending {
    requests: VecDeque<PendingRequest>,
    most: usize,
}

impl Pending {
    /// Keeps at most this many requests; the oldest are dropped first.
    pub fn new(most: usize) -> Pending {
        Pending { requests: VecDeque::new(), most }
    }

    #[inline]
    pub fn push(&mut self, request: PendingRequest) {
        if self.requests.len() >= self.most {
            self.requests.pop_front();
        }
        self.requests.push_back(request);
    }

    /// The request with this number, if it is pending. It stays if more replies follow.
    #[inline]
    pub fn answer(&mut self, sequence: u64, second_byte: u8) -> Option<(PendingRequest, bool)> {
        self.forget_before(sequence);
        let index = self.find(sequence)?;
        let request = self.requests[index];
        let more_follow = request.last_of_many.is_some_and(|last| last != second_byte);
        if !more_follow {
            self.requests.remove(index);
        }
        Some((request, more_follow))
    }

    pub fn fail(&mut self, sequence: u64) {
        self.forget_before(sequence);
        if let Some(index) = self.find(sequence) {
            self.requests.remove(index);
        }
    }

    pub fn contains(&self, sequence: u64) -> bool {
        self.find(sequence).is_some()
    }

    pub fn iter(&self) -> impl Iterator<Item = &PendingRequest> {
        self.requests.iter()
    }

    /// Raises all sequence numbers above `after`, which turned out to be too low.
    pub fn raise(&mut self, after: u64, by: u64) {
        for request in self.requests.iter_mut().filter(|request| request.sequence > after) {
            request.sequence += by;
        }
    }

    fn forget_before(&mut self, sequence: u64) {
        while self.requests.front().is_some_and(|first| first.sequence < sequence && first.last_of_many.is_none()) {
            self.requests.pop_front();
        }
    }

    fn find(&self, sequence: u64) -> Option<usize> {
        if self.requests.front()?.sequence == sequence {
            return Some(0);
        }
        self.requests.binary_search_by_key(&sequence, |request| request.sequence).ok()
    }
}
