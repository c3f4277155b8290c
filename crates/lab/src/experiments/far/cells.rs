// SPDX-License-Identifier: MIT
//! The cells of an experiment over links: which of them are kept from a run that was broken off, which cannot be measured here,
//! and the rest, measured.

use super::crew::{self, Job, Progress};
use crate::bench::{Bench, Parts};
use anyhow::{Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::env;
use std::time::Duration;

/// What a case led to, as it is kept.
pub(in crate::experiments) trait Part: Serialize + DeserializeOwned + Send {
    type Case: Job;

    fn case(&self) -> Self::Case;

    /// One that is not measured, since this is missing.
    fn left_out(case: Self::Case, missing: String) -> Self;
}

/// All that are wanted, before they are measured.
pub(in crate::experiments) struct Cells<C: Part> {
    pub to_do: Vec<C::Case>,
    parts: Parts<C>,
    left_out: Vec<C>,
    wanted: usize,
}

impl<C: Part> Cells<C> {
    /// Of these cases those that have in their titles what the environment variable `only` says, if it is set.
    pub fn of(bench: &Bench, only: &str, cases: Vec<C::Case>) -> Result<Cells<C>> {
        let wanted = named(only, cases)?;
        let parts: Parts<C> = bench.parts()?;
        let is_kept = |case: C::Case| parts.list().iter().any(|cell| cell.case() == case);
        let (mut to_do, mut left_out) = (Vec::new(), Vec::new());
        for case in wanted.iter().copied().filter(|&case| !is_kept(case)) {
            // Not kept: the next run may find it.
            match case.missing() {
                Some(what) => left_out.push(C::left_out(case, what)),
                None => to_do.push(case),
            }
        }
        Ok(Cells { to_do, parts, left_out, wanted: wanted.len() })
    }

    /// How many are wanted.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Measures what is to be done, no cell for longer than `limit`, and gives all that there are.
    pub fn measure(
        self,
        bench: &Bench,
        limit: Duration,
        work: impl Fn(C::Case, usize) -> Result<C> + Sync,
    ) -> Result<Vec<C>> {
        let Cells { to_do, mut parts, left_out, wanted } = self;
        let mut begun = wanted - to_do.len();
        crew::measure(&to_do, limit, work, |progress| match progress {
            Progress::Begins { case, left } => {
                begun += 1;
                bench.say_with_left(format!("cell {begun} of {wanted}: {}", case.title()), left);
                Ok(())
            }
            Progress::Measured(cell) => parts.add(cell),
        })?;
        let mut cells = parts.into_list();
        cells.extend(left_out);
        Ok(cells)
    }
}

fn named<J: Job>(variable: &str, mut cases: Vec<J>) -> Result<Vec<J>> {
    let part = env::var(variable).unwrap_or_default();
    let example = cases.first().map(|case| case.title()).unwrap_or_default();
    cases.retain(|case| case.title().contains(&part));
    if cases.is_empty() {
        bail!("{variable}={part} names no cell: write a part of a title such as '{example}'");
    }
    Ok(cases)
}
