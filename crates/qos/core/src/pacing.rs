// SPDX-License-Identifier: MIT
//! Expose pacing: a client that uncovers others waits until they have redrawn.
//!
//! A dragged window uncovers others, which receive an Expose and have to redraw. The dragging client is served
//! immediately, uncovers more, and takes the processor from the clients that redraw: the window leaves a trail
//! (Shatrov, xorg list, 2 September 2005: "fairness means that all applications redraw with the same frames per
//! second").
//!
//! - A client is **exposing** from an Expose that it receives until it has answered (one of its requests was served and
//!   it is idle again), for at most the limit (the N ms in Shatrov's message).
//! - A client that did not answer its last Expose in time is **behind**: it is still in an earlier redraw, which does
//!   not cover the new Expose. Such a client must answer twice; otherwise the waiting client would be released each
//!   time an old redraw ends.
//! - While clients are exposing, requests of the client that **caused** the Exposes wait at a request boundary until
//!   all of them have answered and 5 ms have passed, because toolkits redraw in parts. The wait ends at the latest when
//!   the limit of the first Expose has passed.
//! - **Floor**: a client that keeps causing Exposes continues at least once per floor interval, no matter how slow the
//!   others are. The interval includes its own running time, so that a slow client is not slowed down further.
//! - Only requests are held back, never input. A client that has a reservation, holds the server grab, or is itself
//!   exposing is not held.

use crate::words::Words;
use crate::{ClientId, Time};

/// The limit while pacing is off, when exposing clients are only marked.
const LIMIT_NS: u64 = 25_000_000;
/// A redraw can have several parts (GTK paints a second frame 1 to 4 ms after the first), so the hold ends this long
/// after the answer.
pub(crate) const SETTLING_NS: u64 = 5_000_000;
/// If a client has not been held for this long, its next floor interval starts with the hold.
const FORGET_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pacing {
    /// The longest wait for one Expose, in nanoseconds; 0: pacing is off.
    pub limit_ns: u64,
    /// The longest time between two releases of a held client, in nanoseconds.
    pub floor_ns: u64,
}

impl Pacing {
    pub fn is_on(&self) -> bool {
        self.limit_ns > 0
    }

    /// The longest time for which a client counts as exposing after an Expose.
    pub(crate) fn mark_ns(&self) -> u64 {
        if self.is_on() { self.limit_ns } else { LIMIT_NS }
    }

    /// The latest end of a hold that begins now (`resumed`: the last release); `None` if the floor allows no hold.
    pub(crate) fn held_until(&self, resumed: Time, now: Time) -> Option<Time> {
        let began = if now.since(resumed) < FORGET_NS { resumed } else { now };
        let until = now.after(self.limit_ns).min(began.after(self.floor_ns));
        (until > now).then_some(until)
    }
}

/// An Expose that has not been answered yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub until: Time,
    /// The client that waits for the answer, and the beginning of its hold, which distinguishes it from a later hold.
    pub holds: Option<(ClientId, Time)>,
    /// The client was still in an earlier redraw, whose end does not count as an answer to this Expose.
    pub mid_redraw: bool,
    pub redraw_ended: bool,
}

impl Mark {
    /// True if another Expose now would find the client in the middle of a redraw. After twice the limit, the client is
    /// assumed not to redraw.
    pub fn is_mid_redraw(&self, limit_ns: u64, now: Time) -> bool {
        !self.redraw_ended && now < self.until.after(limit_ns)
    }

    pub fn carry(self, words: &mut Words<'_>) -> Option<Mark> {
        let (holder, since) = self.holds.unzip();
        let (until, holder) = (words.time(self.until)?, words.client(holder)?);
        let since = words.time(since.unwrap_or_default())?;
        let (mid_redraw, redraw_ended) = (words.flag(self.mid_redraw)?, words.flag(self.redraw_ended)?);
        Some(Mark { until, holds: holder.map(|client| (client, since)), mid_redraw, redraw_ended })
    }
}

/// The hold of a client that waits for other clients' answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hold {
    pub since: Time,
    pub until: Time,
    /// Number of clients that have not answered.
    pub awaited: u32,
}

impl Hold {
    pub fn carry(self, words: &mut Words<'_>) -> Option<Hold> {
        let (since, until) = (words.time(self.since)?, words.time(self.until)?);
        Some(Hold { since, until, awaited: words.u32(self.awaited)? })
    }
}
