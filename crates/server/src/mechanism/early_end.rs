// SPDX-License-Identifier: MIT
//! When the running slice ends before it would by itself: for a client that came and wins the contest, for what the server
//! polls for itself, or at its time. A host asks at each such event and ends the slice, or asks again at a time.

use xqos_core::{Contest, Rank, Time};

/// A server may miss the first call to end a slice (the dix host's flag is cleared when a slice begins, and the kernel may
/// put the server aside just before): it is repeated until the slice has ended, first after this time, then after twice as
/// long each time.
const REPEAT_NS: u64 = 50_000;
/// The server's own descriptors end slices at most so often: a source that never dries up shall cost little.
const SERVER_PAUSE_NS: u64 = 1_000_000;

/// What a host has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Nothing,
    /// End the slice now, and call [`EarlyEnd::ended`].
    End,
    /// Call [`EarlyEnd::time_has_come`] then, if nothing earlier is due.
    AskAt(Time),
}

/// What is remembered from one event to the next. Slices are told apart by their numbers.
#[derive(Debug, Default)]
pub struct EarlyEnd {
    /// End this slice at that instant: an arrival has not waited long enough yet, or the end is to be repeated.
    cut: Option<(u64, Time)>,
    /// The slice that was ended last, and after how long that is repeated next.
    repeated: (u64, u64),
    /// When one of the server's own descriptors last ended a slice.
    server_since: Time,
}

impl EarlyEnd {
    /// A watched client has data; it stands so against the client that runs.
    pub fn arrived(&mut self, slice: u64, contest: &Contest, rank: Rank, now: Time) -> Verdict {
        match contest.ends_for(rank) {
            Time::NEVER => Verdict::Nothing,
            at if at <= now => Verdict::End,
            at => self.cut_at(slice, at),
        }
    }

    /// Input, or something else that the server itself waits for: it is looked at between two slices.
    pub fn server_has_work(&mut self, slice: u64, now: Time) -> Verdict {
        match self.server_since.after(SERVER_PAUSE_NS) {
            at if at <= now => {
                self.server_since = now;
                Verdict::End
            }
            at => self.cut_at(slice, at),
        }
    }

    /// `until`: the slice's own end; [`Time::NEVER`] where it was ended before.
    pub fn time_has_come(&mut self, slice: u64, until: Time, now: Time) -> Verdict {
        match until.min(self.cut_of(slice)) {
            Time::NEVER => Verdict::Nothing,
            end if end <= now => Verdict::End,
            end => Verdict::AskAt(end),
        }
    }

    /// The server was told to end this slice. More arrivals in the slice, say of a thousand clients that go away at once, leave
    /// a repetition that is due as it is.
    pub fn ended(&mut self, slice: u64, now: Time) -> Verdict {
        let (ended, next_ns) = self.repeated;
        let is_first = ended != slice;
        if !is_first && self.cut.is_some_and(|(cut, at)| cut == slice && at > now) {
            return Verdict::Nothing;
        }
        let repeat_ns = if is_first { REPEAT_NS } else { next_ns };
        let at = now.after(repeat_ns);
        self.repeated = (slice, repeat_ns.saturating_mul(2));
        self.cut = Some((slice, at));
        Verdict::AskAt(at)
    }

    fn cut_of(&self, slice: u64) -> Time {
        self.cut.filter(|&(cut, _)| cut == slice).map_or(Time::NEVER, |(_, at)| at)
    }

    fn cut_at(&mut self, slice: u64, at: Time) -> Verdict {
        if self.cut_of(slice) <= at {
            return Verdict::Nothing;
        }
        self.cut = Some((slice, at));
        Verdict::AskAt(at)
    }
}
