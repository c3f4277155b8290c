// SPDX-License-Identifier: MIT
//! What was seen of one play, reduced to what is compared.

use super::case::{Case, Play};
use crate::onlooker::Sight;
use crate::statistics::{deviation, mean, quantile};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How often it is looked whether the screen shows something stale.
const LOOK_EVERY_NS: u64 = 5_000_000;

/// A key that was pressed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub at_ns: u64,
    pub code: u8,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shot {
    pub turn: u32,
    pub case: Case,
    pub play: Play,
    pub seconds: f64,
    /// Redraws of the exposed program.
    pub answers: u32,
    /// Times between the places of the window that moves.
    pub between_moves_us: Vec<u32>,
    /// Of each Expose, until the redraw that began after it was done; at least, for those of `unanswered`.
    pub answered_after_us: Vec<u32>,
    /// Not before all was at rest for a while.
    pub unanswered: u32,
    /// How old the oldest Expose was that had no answer, every 5 ms; 0: nothing was stale.
    pub age_us: Vec<u32>,
    /// From a key to its drawn answer.
    pub echo_us: Vec<u32>,
    pub keys: u32,
}

impl Shot {
    /// Turn, case and play are the caller's to say.
    pub fn of(seen: &[(u64, Sight)], keys: &[Key], time: Range<u64>) -> Shot {
        let of = |sight: Sight| seen.iter().filter(move |one| one.1 == sight).map(|one| one.0).collect::<Vec<u64>>();
        let (moves, mut exposes) = (of(Sight::Moved), of(Sight::Exposed));
        let answers: Vec<Answer> = seen.iter().filter_map(Answer::of).collect();
        // Who redrew knew of an Expose when it began, even if the server had not told the looker-on yet.
        for answer in &answers {
            for at in exposes.iter_mut().take(answer.exposes).rev().take_while(|at| **at > answer.began_ns) {
                *at = answer.began_ns;
            }
        }
        let last = seen.last().map_or(time.end, |one| one.0.max(time.end));
        let waits = exposes.iter().enumerate().filter(|(_, at)| time.contains(at)).map(|(number, &at)| {
            let answer = answers.iter().find(|answer| answer.exposes > number);
            (answer.map_or(last, |answer| answer.at_ns).saturating_sub(at), answer.is_some())
        });
        let (waits, answered): (Vec<u64>, Vec<bool>) = waits.unzip();
        let inside: Vec<u64> = moves.into_iter().filter(|at| time.contains(at)).collect();
        let echoes = keys.iter().filter_map(|key| {
            let echo = Sight::Echoed(key.code.into());
            let at = seen.iter().find(|&&(at, sight)| at >= key.at_ns && sight == echo)?.0;
            Some(at - key.at_ns)
        });
        let us = |ns: u64| (ns / 1000) as u32;
        Shot {
            turn: 0,
            case: Case::Stock,
            play: Play::Drag,
            seconds: (time.end - time.start) as f64 / 1e9,
            answers: answers.iter().filter(|answer| time.contains(&answer.at_ns)).count() as u32,
            between_moves_us: inside.windows(2).map(|pair| us(pair[1] - pair[0])).collect(),
            answered_after_us: waits.into_iter().map(us).collect(),
            unanswered: answered.iter().filter(|&&is_answered| !is_answered).count() as u32,
            age_us: ages(&exposes, &answers, &time).into_iter().map(us).collect(),
            echo_us: echoes.map(us).collect(),
            keys: keys.len() as u32,
        }
    }

    /// Redraws a second of the exposed program.
    pub fn answers_per_s(&self) -> f64 {
        f64::from(self.answers) / self.seconds
    }

    /// Places a second of the window that moves.
    pub fn moves_per_s(&self) -> f64 {
        // One more than there are times between.
        let moves = if self.between_moves_us.is_empty() { 0 } else { self.between_moves_us.len() + 1 };
        moves as f64 / self.seconds
    }

    /// Of the faster party: a slower one that did nothing at all has starved.
    pub fn redraws_or_moves(&self) -> usize {
        self.between_moves_us.len().max(self.answers as usize)
    }

    /// The slower party's rate, as a part of the faster one's.
    pub fn evenness(&self) -> f64 {
        let (one, other) = (self.answers_per_s(), self.moves_per_s());
        one.min(other) / one.max(other).max(f64::MIN_POSITIVE)
    }

    pub fn answered_after_ms(&self) -> Vec<f64> {
        ms(&self.answered_after_us)
    }

    /// That of 95 % of the Exposes.
    pub fn p95_answer_ms(&self) -> f64 {
        quantile(self.answered_after_ms(), 0.95)
    }

    /// Exposes that were answered within so much, as a part of all.
    pub fn within(&self, limit_ms: f64) -> f64 {
        let all = self.answered_after_ms();
        all.iter().filter(|&&ms| ms <= limit_ms).count() as f64 / all.len().max(1) as f64
    }

    pub fn mean_age_ms(&self) -> f64 {
        mean(&ms(&self.age_us))
    }

    pub fn p95_age_ms(&self) -> f64 {
        quantile(ms(&self.age_us), 0.95)
    }

    /// Of the times between the moving window's places.
    pub fn jerk_ms(&self) -> f64 {
        deviation(&ms(&self.between_moves_us))
    }

    pub fn echo_ms(&self) -> Vec<f64> {
        ms(&self.echo_us)
    }

    /// Keys whose answer was never seen.
    pub fn lost_keys(&self) -> u32 {
        self.keys - self.echo_us.len() as u32
    }
}

/// A redraw that was done, and the Exposes that were known when it began.
struct Answer {
    at_ns: u64,
    began_ns: u64,
    exposes: usize,
}

impl Answer {
    fn of(&(at_ns, sight): &(u64, Sight)) -> Option<Answer> {
        let Sight::Answered { exposes, began_ns } = sight else { return None };
        Some(Answer { at_ns, began_ns, exposes: exposes as usize })
    }
}

/// Puts the Exposes of a trace among what was seen without them: a redraw knew of those before it began.
pub(super) fn add_exposes(seen: &mut Vec<(u64, Sight)>, exposes_ns: &[u64]) {
    for (_, sight) in seen.iter_mut() {
        if let Sight::Answered { exposes, began_ns } = sight {
            *exposes = exposes_ns.partition_point(|at| at <= began_ns) as u32;
        }
    }
    seen.extend(exposes_ns.iter().map(|&at| (at, Sight::Exposed)));
    seen.sort_by_key(|one| one.0);
}

fn ages(exposes: &[u64], answers: &[Answer], time: &Range<u64>) -> Vec<u64> {
    let looks = (time.start..time.end).step_by(LOOK_EVERY_NS as usize);
    looks
        .map(|now| {
            let answered = answers.iter().take_while(|answer| answer.at_ns <= now).map(|answer| answer.exposes).max();
            let oldest = exposes.get(answered.unwrap_or(0));
            oldest.map_or(0, |&at| now.saturating_sub(at))
        })
        .collect()
}

fn ms(all_us: &[u32]) -> Vec<f64> {
    all_us.iter().map(|&us| f64::from(us) / 1e3).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A second with a move each so many milliseconds, each of which exposes, and an answer each so many.
    pub fn shot(case: Case, play: Play, move_ms: u64, answer_ms: u64, echo_ms: u64) -> Shot {
        let mut seen = Vec::new();
        for at in (1..1000).step_by(move_ms as usize) {
            seen.extend([(at * MS, Sight::Moved), (at * MS, Sight::Exposed)]);
        }
        for at in (answer_ms..1000).step_by(answer_ms as usize) {
            let exposes = (at - answer_ms).div_ceil(move_ms) as u32;
            seen.push((at * MS, Sight::Answered { exposes, began_ns: (at - answer_ms) * MS }));
        }
        let keys = [200, 500, 800].map(|at_ms| Key { at_ns: at_ms * MS, code: 24 });
        seen.extend(keys.iter().map(|key| (key.at_ns + echo_ms * MS, Sight::Echoed(24))));
        seen.sort_by_key(|one| one.0);
        Shot { case, play, ..Shot::of(&seen, &keys, 0..1000 * MS) }
    }

    #[test]
    fn an_answer_is_for_the_exposes_that_came_before_its_redraw_began() {
        let seen = [
            (MS, Sight::Exposed),
            (2 * MS, Sight::Exposed),
            (3 * MS, Sight::Exposed),
            (27 * MS, Sight::Answered { exposes: 2, began_ns: 2 * MS }),
            (28 * MS, Sight::Exposed),
            (52 * MS, Sight::Answered { exposes: 3, began_ns: 27 * MS }),
            (60 * MS, Sight::Moved),
        ];
        let shot = Shot::of(&seen, &[], 0..40 * MS);
        assert_eq!(shot.answered_after_ms(), [26.0, 25.0, 49.0, 32.0]);
        assert_eq!((shot.answers, shot.unanswered), (1, 1), "one came after the time, the last never did");
        assert_eq!(shot.within(30.0), 0.5);
        let age = |at_ms: usize| shot.age_us[at_ms / 5] / 1000;
        assert_eq!([age(0), age(20), age(30)], [0, 19, 27], "of the oldest without an answer");
    }

    #[test]
    fn an_expose_that_was_seen_late_is_as_old_as_the_redraw_that_knew_of_it() {
        let late = (25 * MS, Sight::Exposed);
        let answer = (26 * MS, Sight::Answered { exposes: 1, began_ns: MS });
        assert_eq!(Shot::of(&[late, answer], &[], 0..40 * MS).answered_after_ms(), [25.0]);
    }

    #[test]
    fn exposes_of_a_trace_are_answered_by_the_redraw_that_began_after_them() {
        let answered =
            |at_ms: u64, began_ms: u64| (at_ms * MS, Sight::Answered { exposes: 0, began_ns: began_ms * MS });
        let mut seen = vec![answered(27, 2), answered(52, 27)];
        add_exposes(&mut seen, &[MS, 20 * MS]);
        assert_eq!(Shot::of(&seen, &[], 0..60 * MS).answered_after_ms(), [26.0, 32.0]);
    }

    #[test]
    fn the_slower_party_is_held_against_the_faster_one_whichever_that_is() {
        let starved = shot(Case::Without, Play::Drag, 8, 40, 3);
        assert_eq!((starved.moves_per_s(), starved.answers_per_s()), (125.0, 24.0));
        assert!((starved.evenness() - 0.192).abs() < 1e-9, "{}", starved.evenness());
        assert!(shot(Case::Both, Play::Drag, 40, 40, 3).evenness() > 0.95);
        assert_eq!((starved.jerk_ms(), starved.echo_ms(), starved.lost_keys()), (0.0, vec![3.0; 3], 0));
    }

    #[test]
    fn a_key_without_an_answer_is_counted_and_an_old_answer_is_not_taken_for_it() {
        let seen = [(MS, Sight::Echoed(24)), (9 * MS, Sight::Echoed(25))];
        let key = |at_ms, code| Key { at_ns: at_ms * MS, code };
        let shot = Shot::of(&seen, &[key(2, 24), key(5, 25)], 0..10 * MS);
        assert_eq!((shot.echo_ms(), shot.lost_keys()), (vec![4.0], 1));
    }
}
