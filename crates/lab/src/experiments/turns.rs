// SPDX-License-Identifier: MIT
//! One measurement under every scheduler, turn by turn: what the experiments of Packard's paper are made of.
//!
//! A turn is idle first, under the server's own scheduler, then all schedulers beside a load, forwards and backwards in
//! turn. Ratios are taken within a turn, so that what drifts cancels out.

use crate::bench::Bench;
use crate::papers::Published;
use crate::plaid::{Pattern, Plaids};
use crate::scheduler::{Scheduler, Stage};
use crate::statistics::{Spread, deviation, mean, ratios};
use crate::study::figure;
use anyhow::Result;
use serde::{Deserialize, Serialize};

pub(super) const PLAIDS: usize = 12;

/// Results of all turns.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Turns<T>(Vec<Trial<T>>);

#[derive(Debug, Serialize, Deserialize)]
struct Trial<T> {
    turn: u32,
    /// `None`: idle.
    scheduler: Option<Scheduler>,
    result: T,
}

impl<T> Turns<T> {
    /// Measures beside twelve plaids, and without them.
    pub fn beside_plaids(
        bench: &Bench,
        stage: &Stage,
        pattern: Pattern,
        measure: impl Fn(&Stage, Option<Scheduler>) -> Result<T>,
    ) -> Result<Turns<T>> {
        let mut trials = Vec::new();
        for turn in 0..bench.pairs {
            bench.say(format!("turn {} of {}", turn + 1, bench.pairs));
            stage.follow(Scheduler::Stock)?;
            trials.push(Trial { turn, scheduler: None, result: measure(stage, None)? });
            for scheduler in Scheduler::in_turn(turn) {
                stage.follow(scheduler)?;
                let plaids = Plaids::start(stage.server().display(), PLAIDS, pattern)?;
                let result = measure(stage, Some(scheduler))?;
                drop(plaids);
                trials.push(Trial { turn, scheduler: Some(scheduler), result });
            }
        }
        Ok(Turns(trials))
    }

    /// Those of one scheduler, `None` for idle.
    pub fn of(&self, scheduler: Option<Scheduler>) -> impl Iterator<Item = &T> {
        self.0.iter().filter(move |trial| trial.scheduler == scheduler).map(|trial| &trial.result)
    }

    /// Their single values together.
    pub fn all(&self, scheduler: Option<Scheduler>, values: fn(&T) -> Vec<f64>) -> Vec<f64> {
        self.of(scheduler).flat_map(values).collect()
    }

    /// Within each turn.
    pub fn ratio(&self, above: Option<Scheduler>, below: Option<Scheduler>, value: impl Fn(&T) -> f64) -> Spread {
        let of = |scheduler| self.0.iter().filter(move |trial| trial.scheduler == scheduler);
        ratios(of(above), of(below), |trial| trial.turn, |trial| Some(value(&trial.result)))
    }

    /// Samples in each turn of these.
    pub fn count(&self, of: [Option<Scheduler>; 2], samples: fn(&T) -> usize) -> Vec<usize> {
        of.into_iter().flat_map(|scheduler| self.of(scheduler).map(samples)).collect()
    }

    #[cfg(test)]
    pub fn made_up(results: impl IntoIterator<Item = (u32, Option<Scheduler>, T)>) -> Turns<T> {
        Turns(results.into_iter().map(|(turn, scheduler, result)| Trial { turn, scheduler, result }).collect())
    }
}

/// Idle, and all schedulers: the rows of a table.
pub(super) fn rows() -> impl Iterator<Item = Option<Scheduler>> {
    std::iter::once(None).chain(Scheduler::ALL.map(Some))
}

/// Of a row, and of its colour.
pub(super) fn name(scheduler: Option<Scheduler>) -> &'static str {
    scheduler.map_or("idle", Scheduler::name)
}

/// For people.
pub(super) fn title(scheduler: Option<Scheduler>) -> &'static str {
    scheduler.map_or("idle", Scheduler::title)
}

/// Mean and deviation.
pub(super) fn with_deviation(values: &[f64]) -> String {
    format!("{} ({})", figure(mean(values)), figure(deviation(values)))
}

/// What a paper states for a scheduler, and ours over it.
pub(super) fn beside_published(
    published: &[(Scheduler, Published)],
    scheduler: Option<Scheduler>,
    ours: f64,
) -> [String; 2] {
    match published.iter().find(|(one, _)| Some(*one) == scheduler) {
        Some((_, theirs)) => [theirs.text(), figure(ours / theirs.value())],
        None => ["-".to_owned(), "-".to_owned()],
    }
}
