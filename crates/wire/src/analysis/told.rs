// SPDX-License-Identifier: MIT
//! In which stretches of time a transmitter was blocked, and by what.
//!
//! A stretch that the link's account may still overrule waits in `pending` until all packets sent before it are accounted for.

use super::spans::{Span, Spans};
use std::collections::VecDeque;

/// Packets on the way that are told apart; beyond, the last one stands for all.
pub(super) const MAX_IN_FLIGHT: usize = 4096;

/// What keeps a transmitter from sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Data before it are still in the queue or on the slowest link.
    Link,
    /// As much is on the way as TCP allows, and the link is free.
    Window,
    /// The receiver does not read.
    Receiver,
}

#[derive(Debug, Default)]
pub struct Told {
    pub link: Spans,
    pub window: Spans,
    pub receiver: Spans,
    /// Up to here everything is told.
    settled_ns: u64,
    /// Stretches that are told unless the link turns out to have been busy; in order of time.
    pending: VecDeque<(State, Span)>,
}

impl Told {
    /// All stretches in which it was blocked: by the link, the window and the receiver.
    pub fn stretches(&self) -> [&Spans; 3] {
        [&self.link, &self.window, &self.receiver]
    }

    pub fn suspect(&mut self, state: State, from_ns: u64, to_ns: u64) {
        if self.pending.len() >= MAX_IN_FLIGHT {
            self.settle(from_ns);
        }
        self.pending.push_back((state, Span { from_ns, to_ns }));
    }

    /// The link was busy: what was suspected before it is told, as far as it lies before it.
    pub fn busy(&mut self, from_ns: u64, to_ns: u64) {
        self.settle(from_ns);
        let from_ns = from_ns.max(self.settled_ns);
        self.link.add(from_ns, to_ns);
        self.settled_ns = self.settled_ns.max(to_ns);
    }

    /// Tells what was suspected up to `until_ns`.
    pub fn settle(&mut self, until_ns: u64) {
        while let Some((state, span)) = self.pending.front().copied().filter(|(_, span)| span.from_ns < until_ns) {
            self.pending.pop_front();
            let (from_ns, to_ns) = (span.from_ns.max(self.settled_ns), span.to_ns.min(until_ns));
            if from_ns < to_ns {
                match state {
                    State::Receiver => self.receiver.add(from_ns, to_ns),
                    _ => self.window.add(from_ns, to_ns),
                }
                self.settled_ns = to_ns;
            }
            if span.to_ns > until_ns {
                self.pending.push_front((state, Span { from_ns: until_ns, to_ns: span.to_ns }));
                return;
            }
        }
    }

    /// The link's account ends here.
    pub fn link_ns(&self) -> u64 {
        self.link.list().last().map_or(0, |last| last.to_ns)
    }

    /// Before the handshake was over nothing could be sent.
    pub fn shook_hands(&mut self, from_ns: u64, to_ns: u64) {
        self.window.add(from_ns, to_ns);
        self.settled_ns = self.settled_ns.max(to_ns);
    }

    /// The link was busy so much earlier, as far as nothing else is told of that time.
    pub fn reach_back(&mut self, earlier_ns: u64) {
        let told = [&self.window, &self.receiver].map(|spans| spans.list().last().map_or(0, |last| last.to_ns));
        self.link.reach_back(earlier_ns, told[0].max(told[1]));
    }

    /// What is kept; bounded.
    #[cfg(test)]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }
}
