// SPDX-License-Identifier: MIT
//! Generates a client's bursts, either from a plan taken from a trace or from a habit that the client repeats.
//!
//! A habit stores no bursts, so the memory of ten thousand clients does not grow with the length of the scenario. Its
//! random numbers come from a seed: the same seed gives the same bursts.

use crate::workload::{RequestBurst, RequestRun};
use std::collections::VecDeque;
use xqos_core::Time;

/// The time at which a client sends its next burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Immediately, without waiting for replies: its connection always has requests.
    Busy,
    /// `rest_ns` after the last burst was finished.
    Waits { rest_ns: u64 },
    /// At fixed intervals, no matter how late the server is.
    Periodic { every_ns: u64 },
}

#[derive(Clone, Debug)]
pub struct Habit {
    pub pace: Pace,
    /// Maximum random time added to each rest or interval.
    pub jitter_ns: u64,
    /// Time that a burst needs outside the server: the client's own work and the transport in both directions.
    pub way_ns: u64,
    /// The burst responds to input, which the server must see and deliver first.
    pub has_input: bool,
    pub from: Time,
    pub until: Time,
    pub runs: Vec<RequestRun>,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextBurst {
    /// Time of the client's decision, or of the input.
    pub(crate) asked: Time,
    /// Time until the requests reach the server, from `asked` or, with input, from the server's receipt of the input.
    pub(crate) way_ns: u64,
    pub(crate) has_input: bool,
}

#[derive(Debug)]
pub(crate) enum Generator {
    Plan { bursts: VecDeque<RequestBurst>, began: Time },
    Habit { habit: Habit, dice: Dice, next: Time },
}

impl Generator {
    pub(crate) fn of_plan(bursts: &[RequestBurst], began: Time) -> Generator {
        Generator::Plan { bursts: bursts.iter().cloned().collect(), began }
    }

    pub(crate) fn of_habit(habit: Habit) -> Generator {
        let (dice, next) = (Dice(habit.seed), habit.from);
        Generator::Habit { habit, dice, next }
    }

    /// The first burst. A habit starts at a random time in its first interval, so that clients do not run in step.
    pub(crate) fn first(&mut self) -> Option<NextBurst> {
        match self {
            Generator::Plan { began, .. } => {
                let began = *began;
                self.after(began)
            }
            Generator::Habit { habit, dice, next } => {
                let interval_ns = match habit.pace {
                    Pace::Busy => 0,
                    Pace::Waits { rest_ns } => rest_ns,
                    Pace::Periodic { every_ns } => every_ns,
                };
                *next = habit.from.after(dice.below(interval_ns));
                next_burst(habit, *next)
            }
        }
    }

    /// The next burst of a periodic client, once the current one has started.
    pub(crate) fn unprompted(&mut self) -> Option<NextBurst> {
        let Generator::Habit { habit, dice, next } = self else { return None };
        let Pace::Periodic { every_ns } = habit.pace else { return None };
        *next = next.after(every_ns.saturating_add(dice.below(habit.jitter_ns)));
        next_burst(habit, *next)
    }

    /// The next burst of a client that waits, after the last one was finished at `done`.
    pub(crate) fn after(&mut self, done: Time) -> Option<NextBurst> {
        match self {
            Generator::Plan { bursts, .. } => {
                let asked = done.after(bursts.front()?.after_ns);
                Some(NextBurst { asked, way_ns: 0, has_input: false })
            }
            Generator::Habit { habit, dice, .. } => {
                let Pace::Waits { rest_ns } = habit.pace else { return None };
                next_burst(habit, done.after(rest_ns.saturating_add(dice.below(habit.jitter_ns))))
            }
        }
    }

    /// The next requests of a busy client, after its last requests were finished.
    pub(crate) fn next_runs(&self, now: Time) -> Option<&[RequestRun]> {
        match self {
            Generator::Habit { habit: Habit { pace: Pace::Busy, until, runs, .. }, .. } if now < *until => Some(runs),
            _ => None,
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Generator::Habit { habit: Habit { pace: Pace::Busy, .. }, .. })
    }

    pub(crate) fn has_input(&self) -> bool {
        matches!(self, Generator::Habit { habit: Habit { has_input: true, .. }, .. })
    }

    /// Whether a burst can arrive while another one is waiting.
    pub(crate) fn queues(&self) -> bool {
        matches!(self, Generator::Habit { habit: Habit { pace: Pace::Periodic { .. }, .. }, .. })
    }

    pub(crate) fn burst(&mut self) -> RequestBurst {
        match self {
            Generator::Plan { bursts, .. } => bursts.pop_front().unwrap_or_default(),
            Generator::Habit { habit, .. } => RequestBurst { after_ns: 0, inputs: 0, runs: habit.runs.clone() },
        }
    }
}

fn next_burst(habit: &Habit, asked: Time) -> Option<NextBurst> {
    (asked < habit.until).then_some(NextBurst { asked, way_ns: habit.way_ns, has_input: habit.has_input })
}

/// Random numbers, the same on any machine for the same seed (SplitMix, Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn habit(pace: Pace) -> Habit {
        let runs = vec![RequestRun { requests: 2, request_ns: 10, request: 1, bytes: 16 }];
        let (from, until) = (Time(1000), Time(100_000));
        Habit { pace, jitter_ns: 50, way_ns: 7, has_input: false, from, until, runs, seed: 3 }
    }

    #[test]
    fn the_same_seed_repeats_the_same_intervals() {
        let times = |seed| {
            let mut generator = Generator::of_habit(Habit { seed, ..habit(Pace::Periodic { every_ns: 1000 }) });
            let first = generator.first().unwrap().asked.0;
            let others = std::iter::from_fn(|| generator.unprompted()).map(|next| next.asked.0);
            std::iter::once(first).chain(others).collect::<Vec<u64>>()
        };
        let all = times(3);
        assert!((90..=99).contains(&all.len()), "{} in 99 intervals and their jitter", all.len());
        assert!(all.windows(2).all(|pair| (1000..1050).contains(&(pair[1] - pair[0]))), "{all:?}");
        assert_eq!(all, times(3));
        assert_ne!(all, times(4));
    }

    #[test]
    fn waiting_clients_rest_and_busy_clients_do_not() {
        let mut waits = Generator::of_habit(habit(Pace::Waits { rest_ns: 100 }));
        let asked = waits.after(Time(5000)).unwrap().asked;
        assert!((5100..5150).contains(&asked.0), "{asked:?}");
        assert_eq!((waits.unprompted(), waits.after(Time(100_000))), (None, None));
        let busy = Generator::of_habit(habit(Pace::Busy));
        assert_eq!(busy.next_runs(Time(99_999)).map(<[RequestRun]>::len), Some(1));
        assert_eq!(busy.next_runs(Time(100_000)), None, "the habit has ended");
    }
}
