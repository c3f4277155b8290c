// SPDX-License-Identifier: MIT
//! Expose pacing: who uncovers others moves on when they have redrawn.
//!
//! A window that is dragged uncovers others, which get an Expose and have to draw. Who drags is served at once, uncovers
//! more, and takes the processor from those who draw: their windows become a trail (Shatrov, xorg list, 2 September 2005:
//! "fairness means that all applications redraw with the same frames per second"). So:
//!
//! - A client is **exposing** from the Expose until it has answered (a request of its was served and it is idle again), at
//!   most for the limit (N ms of that message).
//! - One whose last Expose was not answered in time is **behind**: it is in the middle of a redraw that does not know of the
//!   new Expose. It owes two answers, or who waits would be let go at the end of the old redraw, each time.
//! - While clients are exposing, the requests of the client that **caused** it wait, at a request boundary, until all of
//!   them have answered and 5 ms have passed, for toolkits redraw in parts; at most until the first one's limit.
//! - Down to a **floor**: who causes Exposes again and again comes on at least once in each such interval, however slow
//!   the others are. Its own time counts, so that a slow mover is not made slower.
//! - Input is never held back, for nothing is but requests; nor is a client with a reservation, or who holds the server
//!   grab, or who exposes itself.

use crate::{ClientId, Time};

/// The limit where pacing is off: marks are for others who want to know them.
const LIMIT_NS: u64 = 25_000_000;
/// A redraw comes in several parts (GTK paints a second frame 1 to 4 ms after the first): an answer counts when so much time
/// has passed since the first.
pub(crate) const SETTLING_NS: u64 = 5_000_000;
/// Who has not been held for so long begins anew.
const FORGET_NS: u64 = 1_000_000_000;

/// How clients are paced that uncover others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pacing {
    /// Longest wait for one Expose, nanoseconds; 0: nobody is paced.
    pub limit_ns: u64,
    /// Longest time between two times that a client comes on, nanoseconds.
    pub floor_ns: u64,
}

impl Pacing {
    /// Whether anybody is held.
    pub fn is_on(&self) -> bool {
        self.limit_ns > 0
    }

    /// For how long a client that got an Expose counts as exposing at most.
    pub(crate) fn mark_ns(&self) -> u64 {
        if self.is_on() { self.limit_ns } else { LIMIT_NS }
    }

    /// Until when to hold a client that came on at `resumed`; `None`: the floor does not allow it.
    pub(crate) fn held_until(&self, resumed: Time, now: Time) -> Option<Time> {
        let began = if now.since(resumed) < FORGET_NS { resumed } else { now };
        let until = now.after(self.limit_ns).min(began.after(self.floor_ns));
        (until > now).then_some(until)
    }
}

/// An Expose that has not been answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub until: Time,
    /// Who waits for the answer, and since when: a later hold of the same client is another one.
    pub holds: Option<(ClientId, Time)>,
    /// It was in the middle of an older redraw, whose end is no answer.
    pub behind: bool,
    /// That end came.
    pub caught_up: bool,
}

impl Mark {
    /// Whether who gets another Expose now is in the middle of a redraw; after another limit it is taken for one that does
    /// not draw at all.
    pub fn leaves_behind(&self, limit_ns: u64, now: Time) -> bool {
        !self.caught_up && now < self.until.after(limit_ns)
    }
}

/// A client that waits for the answers of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub since: Time,
    pub until: Time,
    /// How many have not answered.
    pub awaited: u32,
}
