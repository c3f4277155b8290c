// SPDX-License-Identifier: MIT
//! Blocks: times in which the server did not poll its clients for requests.
//!
//! The server polls its clients between slices. Requests that arrive within a slice are noticed at its end. Unless the
//! watcher saw them arrive, the trace has only the time of the poll. The clients of these requests may have waited for
//! the whole slice. The same holds for a server grab, and for a server that gets no processor.

use crate::model::Model;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{Fact, Service, Time};

/// Longest time from the end of a slice to the server's poll.
const POLLED_NS: u64 = 2_000_000;
/// The same after a time without a processor, whose end is not always known exactly.
const WOKEN_NS: u64 = 50_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// A slice with this number of requests; `request` is the last one.
    Slice {
        key: usize,
        requests: u32,
        request: u32,
    },
    Grab {
        key: usize,
    },
    NoProcessor,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub by: Blocker,
    pub from: Time,
    pub to: Time,
    /// Clients that had requests when the server polled again, and whose arrival was not seen before.
    pub waiting: Vec<usize>,
}

impl Block {
    pub fn ns(&self) -> u64 {
        self.to.since(self.from)
    }

    /// True if clients waited. A server that waits for a processor always has work.
    pub fn counts(&self) -> bool {
        !self.waiting.is_empty() || self.by == Blocker::NoProcessor
    }

    /// True if requests that are found at this time may have arrived within the block.
    fn ends_before(&self, found: Time) -> bool {
        let rest_ns = if self.by == Blocker::NoProcessor { WOKEN_NS } else { POLLED_NS };
        found >= self.to && found.since(self.to) <= rest_ns
    }

    fn client(&self) -> Option<usize> {
        match self.by {
            Blocker::Slice { key, .. } | Blocker::Grab { key } => Some(key),
            Blocker::NoProcessor => None,
        }
    }
}

#[derive(Debug, Default)]
pub struct Blocks {
    /// The longest block since the last decision.
    open: Option<Block>,
    grab: Option<(usize, Time)>,
}

impl Blocks {
    /// Takes an event after the model. Returns a block after which clients were found waiting.
    pub fn take(&mut self, event: &Event, model: &Model) -> Option<Block> {
        let at = event.at;
        let grab = model.grab_holder();
        if grab != self.grab {
            if let Some((key, since)) = std::mem::replace(&mut self.grab, grab) {
                self.offer(Blocker::Grab { key }, since, at);
            }
        }
        match event.what {
            Entry::Fact(Fact::Served(Service { client, start, end, requests, last_request: request, .. })) => {
                let key = model.key(client)?;
                self.offer(Blocker::Slice { key, requests, request }, start.min(end), end);
            }
            Entry::Fact(Fact::Arrived { client }) => {
                let key = model.key(client)?;
                let block = self.open.as_mut().filter(|block| block.ends_before(at) && block.client() != Some(key))?;
                block.waiting.push(key);
            }
            Entry::Dispatch { .. } => return self.open.take().filter(Block::counts),
            _ => {}
        }
        None
    }

    /// Adds a time in which the server had no processor.
    pub fn absent(&mut self, from: Time, to: Time) {
        self.offer(Blocker::NoProcessor, from, to);
    }

    /// The last block, even if no client was found waiting, if it lasts until `now`.
    pub fn finish(self, now: Time) -> Option<Block> {
        self.open.filter(|block| block.to >= now)
    }

    fn offer(&mut self, by: Blocker, from: Time, to: Time) {
        let block = Block { by, from, to, waiting: Vec::new() };
        if self.open.as_ref().is_none_or(|open| open.ns() < block.ns()) {
            self.open = Some(block);
        }
    }
}
