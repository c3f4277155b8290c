//! When a reserved client comes next, for one that comes regularly: a film, an animation, a control loop.
//!
//! A request is never cut, so a reserved client waits for the one that runs when it comes, half a request on the average;
//! and where the clients that are being served keep the processors busy, it waits for one of those too. Where it can be
//! told when it comes, the server begins nothing just before, and waits for it: idle time that is inserted on purpose.
//!
//! | fact | what is learnt |
//! |---|---|
//! | arrival at t | the beat: t should have been one interval after the last; beat and interval follow by a part of the error |
//! | the same, after having been idle for r | the rest: r should have been as long as the last ones; it follows by a part of the error |
//!
//! Each of the two guesses keeps its usual error, as the round trip estimator of TCP does, and the better one tells when the
//! client comes next: one that is paced by a clock keeps the beat, one that sleeps after each answer keeps the rest. The
//! client is expected from twice the usual error before that instant until twice after it, if that is a short time, and a
//! small part of the interval: what is lost to the others is bounded ([`MOST_PART`]).

use crate::Time;
use crate::scheduler::Words;
use alloc::vec::Vec;

/// A usual error of half of that makes a client irregular.
const MOST_TOLERANCE_NS: u64 = 150_000;
/// Timers of the kernel are late by some tens of microseconds, whatever the usual error.
const LEAST_TOLERANCE_NS: u64 = 20_000;
/// A greater error is none that a regular client makes; counted as this, one outlier makes nobody irregular for long.
const MOST_ERROR_NS: i64 = 1_000_000;
/// An expected client may keep the server idle for this part of its interval: 5 %.
const MOST_PART: u64 = 20;

/// What is known of a client's arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expectation {
    /// Arrivals so far, up to 2.
    seen: u8,
    /// The last arrival, as it should have been.
    beat: Time,
    interval_ns: u64,
    beat_error_ns: u64,
    rest_ns: u64,
    rest_error_ns: u64,
}

/// From when until when a client is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub begin: Time,
    pub end: Time,
}

impl Expectation {
    pub(crate) fn new() -> Self {
        Expectation {
            seen: 0,
            beat: Time(0),
            interval_ns: 0,
            beat_error_ns: MOST_ERROR_NS as u64,
            rest_ns: 0,
            rest_error_ns: MOST_ERROR_NS as u64,
        }
    }

    /// The client came, after having been idle for so long.
    pub(crate) fn arrived(&mut self, at: Time, idle_ns: u64) {
        if self.seen < 2 {
            self.seen += 1;
            (self.interval_ns, self.beat, self.rest_ns) = (at.since(self.beat), at, idle_ns);
            return;
        }
        let late_ns = difference(at, self.beat.after(self.interval_ns));
        learn(&mut self.beat_error_ns, late_ns);
        // A client that lost its beat begins a new one.
        let is_off = late_ns.unsigned_abs() > self.interval_ns / 4;
        self.beat = if is_off { at } else { moved(self.beat.after(self.interval_ns), late_ns / 4) };
        self.interval_ns = moved(Time(self.interval_ns), clipped(late_ns) / 32).0;
        let longer_ns = difference(Time(idle_ns), Time(self.rest_ns));
        learn(&mut self.rest_error_ns, longer_ns);
        self.rest_ns = moved(Time(self.rest_ns), if is_off { longer_ns } else { clipped(longer_ns) / 8 }).0;
    }

    /// When it is expected next, having been idle since then; `lead_ns`: what is begun earlier before is not over.
    pub(crate) fn next(&self, idle_since: Time, lead_ns: u64) -> Option<Window> {
        let (at, error_ns) = match self.beat_error_ns <= self.rest_error_ns {
            true => (self.beat.after(self.interval_ns), self.beat_error_ns),
            false => (idle_since.after(self.rest_ns), self.rest_error_ns),
        };
        let tolerance_ns = (2 * error_ns).max(LEAST_TOLERANCE_NS);
        let before_ns = tolerance_ns.saturating_add(lead_ns);
        let is_short = before_ns.saturating_add(tolerance_ns) <= self.interval_ns / MOST_PART;
        let window = Window { begin: Time(at.0.saturating_sub(before_ns)), end: at.after(tolerance_ns) };
        (self.seen == 2 && tolerance_ns <= MOST_TOLERANCE_NS && is_short).then_some(window)
    }

    pub(crate) fn save(&self, out: &mut Vec<u64>) {
        out.extend([u64::from(self.seen), self.beat.0, self.interval_ns, self.beat_error_ns]);
        out.extend([self.rest_ns, self.rest_error_ns]);
    }

    pub(crate) fn load(words: &mut Words) -> Option<Self> {
        Some(Expectation {
            seen: words.below(3)? as u8,
            beat: words.time()?,
            interval_ns: words.ns()?,
            beat_error_ns: words.below(MOST_ERROR_NS as u64 + 1)?,
            rest_ns: words.ns()?,
            rest_error_ns: words.below(MOST_ERROR_NS as u64 + 1)?,
        })
    }
}

/// An eighth of the way from the usual error to this one.
fn learn(usual_ns: &mut u64, error_ns: i64) {
    let error_ns = error_ns.unsigned_abs().min(MOST_ERROR_NS as u64);
    *usual_ns = (*usual_ns * 7 + error_ns) / 8;
}

fn clipped(error_ns: i64) -> i64 {
    error_ns.clamp(-MOST_ERROR_NS, MOST_ERROR_NS)
}

fn difference(at: Time, expected: Time) -> i64 {
    i64::try_from(i128::from(at.0) - i128::from(expected.0)).unwrap_or(if at > expected { i64::MAX } else { i64::MIN })
}

fn moved(at: Time, by_ns: i64) -> Time {
    Time(at.0.saturating_add_signed(by_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Arrivals at these instants, each served at once for 0.2 ms.
    fn after(arrivals: impl IntoIterator<Item = u64>) -> (Expectation, Time) {
        let (mut expectation, mut idle_since) = (Expectation::new(), Time(0));
        for at in arrivals.into_iter().map(Time) {
            expectation.arrived(at, at.since(idle_since));
            idle_since = at.after(MS / 5);
        }
        (expectation, idle_since)
    }

    fn jitter(turn: u64) -> u64 {
        turn * 12_347 % 30_000
    }

    #[test]
    fn a_client_with_a_beat_is_expected_around_the_next_one() {
        let (expectation, idle_since) = after((1..60).map(|turn| turn * 10 * MS + jitter(turn)));
        let window = expectation.next(idle_since, 100_000).expect("it is regular");
        assert!(window.begin.0 < 600 * MS - 90_000 && window.end.0 > 600 * MS, "{window:?}");
        assert!(window.end.since(window.begin) < 400_000, "{window:?}");
    }

    #[test]
    fn a_client_that_sleeps_after_each_answer_is_expected_after_its_rest() {
        let (mut expectation, mut at) = (Expectation::new(), Time(MS));
        for turn in 0..60 {
            expectation.arrived(at, 10 * MS + jitter(turn));
            // What the answer takes differs by milliseconds.
            at = at.after(10 * MS + jitter(turn) + turn % 5 * MS);
        }
        let window = expectation.next(Time(900 * MS), 0).expect("its rest is regular");
        assert!(window.begin.0 < 910 * MS + 15_000 && window.end.0 > 910 * MS + 15_000, "{window:?}");
    }

    #[test]
    fn one_late_arrival_does_not_move_the_beat() {
        let late = |turn: u64| if turn == 50 { 3 * MS } else { jitter(turn) };
        let (expectation, idle_since) = after((1..70).map(|turn| turn * 10 * MS + late(turn)));
        let window = expectation.next(idle_since, 0).expect("it is regular again");
        assert!(window.begin.0 < 700 * MS + 15_000 && window.end.0 > 700 * MS, "{window:?}");
    }

    #[test]
    fn an_irregular_client_and_one_that_would_cost_too_much_are_not_expected() {
        let (random, idle_since) = after((1..200).map(|turn| turn * 10 * MS + turn * 1_234_567 % (3 * MS)));
        assert_eq!(random.next(idle_since, 0), None);
        let (often, idle_since) = after((1..200).map(|turn| turn * MS));
        assert_eq!(often.next(idle_since, 50_000), None, "50 us before each millisecond are more than 5 %");
        let (regular, idle_since) = after((1..200).map(|turn| turn * 10 * MS));
        assert!(regular.next(idle_since, 0).is_some() && regular.next(idle_since, 10 * MS).is_none());
        assert_eq!(Expectation::new().next(Time(0), 0), None);
    }

    #[test]
    fn absurd_instants_do_not_panic() {
        let (expectation, _) = after([u64::MAX, 0, u64::MAX / 2, 3, u64::MAX - 1, 0]);
        let _ = expectation.next(Time::NEVER, u64::MAX);
    }
}
