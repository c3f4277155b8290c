// SPDX-License-Identifier: MIT
//! Decides when the running slice ends early: for a client of better rank that becomes ready, for work on the server's
//! own descriptors, or when its time is up. At each such event, the host asks what to do.

use xqos_core::{Contest, Rank, Time};

/// A server may miss the first call to end a slice: the dix host's flag is cleared when a slice begins, and the kernel
/// may preempt the server just before. The call is repeated until the slice has ended, first after this time, and then
/// with the delay doubled each time.
const REPEAT_NS: u64 = 50_000;
/// The server's own descriptors end at most one slice in this time, so that a flood of input costs little.
const SERVER_PAUSE_NS: u64 = 1_000_000;

/// The action that the host must take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyEndAction {
    Nothing,
    /// End the slice now, and call [`EarlyEnd::ended`].
    End,
    /// Call [`EarlyEnd::time_has_come`] at this time, unless an earlier time is pending.
    AskAt(Time),
}

/// State kept from one event to the next. Slices are identified by their numbers.
#[derive(Debug, Default)]
pub struct EarlyEnd {
    /// The slice to end, and when. Set if an arrived client has not waited long enough, or to repeat the call.
    cut: Option<(u64, Time)>,
    /// The slice that was ended last, and the delay before the call is repeated next.
    repeated: (u64, u64),
    /// When one of the server's own descriptors last ended a slice.
    server_since: Time,
}

impl EarlyEnd {
    /// A watched client with this rank has data. `contest` describes the running slice.
    pub fn arrived(&mut self, slice: u64, contest: &Contest, rank: Rank, now: Time) -> EarlyEndAction {
        match contest.ends_for(rank) {
            Time::NEVER => EarlyEndAction::Nothing,
            at if at <= now => EarlyEndAction::End,
            at => self.cut_at(slice, at),
        }
    }

    /// The server's own descriptors have work, such as input. The server reads them between two slices.
    pub fn server_has_work(&mut self, slice: u64, now: Time) -> EarlyEndAction {
        match self.server_since.after(SERVER_PAUSE_NS) {
            at if at <= now => {
                self.server_since = now;
                EarlyEndAction::End
            }
            at => self.cut_at(slice, at),
        }
    }

    /// The time from [`EarlyEndAction::AskAt`] has come. `until`: when the slice ends; [`Time::NEVER`] if it has.
    pub fn time_has_come(&mut self, slice: u64, until: Time, now: Time) -> EarlyEndAction {
        match until.min(self.cut_of(slice)) {
            Time::NEVER => EarlyEndAction::Nothing,
            end if end <= now => EarlyEndAction::End,
            end => EarlyEndAction::AskAt(end),
        }
    }

    /// The host has ended this slice. Further arrivals in the slice, such as a thousand clients that disconnect at the
    /// same time, do not postpone a pending repetition.
    pub fn ended(&mut self, slice: u64, now: Time) -> EarlyEndAction {
        let (ended, next_ns) = self.repeated;
        let is_first = ended != slice;
        if !is_first && self.cut.is_some_and(|(cut, at)| cut == slice && at > now) {
            return EarlyEndAction::Nothing;
        }
        let repeat_ns = if is_first { REPEAT_NS } else { next_ns };
        let at = now.after(repeat_ns);
        self.repeated = (slice, repeat_ns.saturating_mul(2));
        self.cut = Some((slice, at));
        EarlyEndAction::AskAt(at)
    }

    fn cut_of(&self, slice: u64) -> Time {
        self.cut.filter(|&(cut, _)| cut == slice).map_or(Time::NEVER, |(_, at)| at)
    }

    fn cut_at(&mut self, slice: u64, at: Time) -> EarlyEndAction {
        if self.cut_of(slice) <= at {
            return EarlyEndAction::Nothing;
        }
        self.cut = Some((slice, at));
        EarlyEndAction::AskAt(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_in_an_ended_slice_do_not_delay_the_repetition() {
        let (mut early, begun) = (EarlyEnd::default(), Time(1_000_000));
        let rank = Rank { tier: 0, key: 5 };
        let contest =
            Contest { rank: Rank { tier: 0, key: 10 }, start: begun, growth: 0, margin: 0, desktop_turn: begun };
        let (mut now, mut repetitions) = (begun, Vec::new());
        assert_eq!(early.arrived(1, &contest, rank, now), EarlyEndAction::End);
        let mut pending = early.ended(1, now);
        // A thousand clients arrive, one each microsecond.
        for _ in 0..1000 {
            now = now.after(1000);
            if pending == EarlyEndAction::AskAt(now) {
                repetitions.push(now.since(begun));
                assert_eq!(early.time_has_come(1, Time::NEVER, now), EarlyEndAction::End);
                pending = early.ended(1, now);
            }
            assert_eq!(early.arrived(1, &contest, rank, now), EarlyEndAction::End);
            assert_eq!(early.ended(1, now), EarlyEndAction::Nothing, "an arrival changed the time of the repetition");
        }
        assert_eq!(repetitions, [50_000, 150_000, 350_000, 750_000], "each delay is twice the one before");
    }
}
