// SPDX-License-Identifier: MIT
//! The spans of time in which a transmitter was blocked, by cause.
//!
//! A span that the link model may still overrule stays in `pending` until all packets sent before it are accounted for.

use super::spans::{Span, Spans};
use std::collections::VecDeque;

/// Maximum number of packets in flight that are tracked separately. Any more are merged into the last.
pub(super) const MAX_IN_FLIGHT: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockCause {
    /// Earlier data are still in the queue or on the slowest link.
    Link,
    /// TCP's window is full, and the link is free.
    Window,
    /// The receiver does not read.
    Receiver,
}

#[derive(Debug, Default)]
pub struct BlockedTime {
    pub link: Spans,
    pub window: Spans,
    pub receiver: Spans,
    /// Spans before this time are final.
    settled_ns: u64,
    /// Spans, in order of time, that become final unless the link turns out to have been busy during them.
    pending: VecDeque<(BlockCause, Span)>,
}

impl BlockedTime {
    /// Time blocked by the link, the window and the receiver.
    pub fn by_cause(&self) -> [&Spans; 3] {
        [&self.link, &self.window, &self.receiver]
    }

    pub fn total_ns(&self) -> u64 {
        self.by_cause().map(Spans::total_ns).iter().sum()
    }

    pub fn hold(&mut self, cause: BlockCause, from_ns: u64, to_ns: u64) {
        if self.pending.len() >= MAX_IN_FLIGHT {
            self.settle(from_ns);
        }
        self.pending.push_back((cause, Span { from_ns, to_ns }));
    }

    /// Records that the link was busy from `from_ns` to `to_ns`. Pending spans before `from_ns` become final.
    pub fn busy(&mut self, from_ns: u64, to_ns: u64) {
        self.settle(from_ns);
        let from_ns = from_ns.max(self.settled_ns);
        self.link.add(from_ns, to_ns);
        self.settled_ns = self.settled_ns.max(to_ns);
    }

    /// Makes pending spans final up to `until_ns`.
    pub fn settle(&mut self, until_ns: u64) {
        while let Some((cause, span)) = self.pending.front().copied().filter(|(_, span)| span.from_ns < until_ns) {
            self.pending.pop_front();
            let (from_ns, to_ns) = (span.from_ns.max(self.settled_ns), span.to_ns.min(until_ns));
            if from_ns < to_ns {
                match cause {
                    BlockCause::Receiver => self.receiver.add(from_ns, to_ns),
                    _ => self.window.add(from_ns, to_ns),
                }
                self.settled_ns = to_ns;
            }
            if span.to_ns > until_ns {
                self.pending.push_front((cause, Span { from_ns: until_ns, to_ns: span.to_ns }));
                return;
            }
        }
    }

    /// End of the last span in which the link was busy.
    pub fn link_ns(&self) -> u64 {
        self.link.list().last().map_or(0, |last| last.to_ns)
    }

    /// Counts the handshake as blocked by the window, because nothing could be sent.
    pub fn add_handshake(&mut self, from_ns: u64, to_ns: u64) {
        self.window.add(from_ns, to_ns);
        self.settled_ns = self.settled_ns.max(to_ns);
    }

    /// Extends the last busy span backwards by up to `earlier_ns`, but not into spans of other states.
    pub fn reach_back(&mut self, earlier_ns: u64) {
        let ends = [&self.window, &self.receiver].map(|spans| spans.list().last().map_or(0, |last| last.to_ns));
        self.link.reach_back(earlier_ns, ends[0].max(ends[1]));
    }

    /// Number of pending spans. Tests check that it is bounded.
    #[cfg(test)]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }
}
