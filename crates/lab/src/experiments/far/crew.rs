// SPDX-License-Identifier: MIT
//! Who measures: one cell after the other on links that keep a machine busy, several at once on those that do not.
//!
//! On a slow link a cell takes up to its whole limit, in which its programs wait: all of them together use some percent of
//! a processor. What a cell has is its own (link, server, proxies, capture), so cells know nothing of each other.

use crate::program;
use anyhow::Result;
use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Of slow cells, at once.
const CREW: usize = 8;

/// Something to measure on a link of its own.
pub(in crate::experiments) trait Job: Copy + PartialEq + Send {
    fn title(self) -> String;

    /// Whether the machine is idle nearly all of the time meanwhile.
    fn is_slow(self) -> bool;

    /// How long it takes, about, where it ends after `limit` in any case.
    fn estimate(self, limit: Duration) -> Duration;

    /// Programs without which there is none.
    fn needs(self) -> impl Iterator<Item = &'static str>;

    /// What keeps it from being measured here.
    fn missing(self) -> Option<String> {
        self.needs().find_map(|program| program::find(program).err()).map(|missing| missing.to_string())
    }
}

/// What is told while the cells are measured.
#[derive(Debug)]
pub(super) enum Progress<J, R> {
    /// And about how long all that is not done yet will take.
    Begins {
        case: J,
        left: Duration,
    },
    Measured(R),
}

/// Measures them all, in their order as far as that can be; no two have the same place (the number) at a time. An error of
/// one, or of `told`, ends it: what is being measured then is still waited for.
pub(super) fn measure<J: Job, R: Send>(
    cases: &[J],
    limit: Duration,
    work: impl Fn(J, usize) -> Result<R> + Sync,
    mut told: impl FnMut(Progress<J, R>) -> Result<()>,
) -> Result<()> {
    let mut rest = cases;
    while let Some(first) = rest.first() {
        let length = rest.iter().take_while(|case| case.is_slow() == first.is_slow()).count();
        let (stretch, later) = rest.split_at(length);
        together(stretch, limit, left(later, limit), &work, &mut told)?;
        rest = later;
    }
    Ok(())
}

/// About; cases of one kind may be far from each other.
fn left<J: Job>(cases: &[J], limit: Duration) -> Duration {
    let of = |slow: bool| -> Duration {
        cases.iter().filter(|case| case.is_slow() == slow).map(|case| case.estimate(limit)).sum()
    };
    of(false) + of(true) / CREW as u32
}

fn together<J: Job, R: Send>(
    cases: &[J],
    limit: Duration,
    later: Duration,
    work: &(impl Fn(J, usize) -> Result<R> + Sync),
    told: &mut impl FnMut(Progress<J, R>) -> Result<()>,
) -> Result<()> {
    let crew = if cases[0].is_slow() { CREW } else { 1 };
    let queue: Mutex<VecDeque<J>> = Mutex::new(cases.iter().copied().collect());
    let (teller, hearer) = channel();
    thread::scope(|scope| {
        for place in 0..crew {
            let (queue, teller) = (&queue, teller.clone());
            // Processes end with the thread that started them, and that is here for all of its cells.
            scope.spawn(move || work_off((queue, limit), place, work, &teller));
        }
        drop(teller);
        hearer.iter().try_for_each(|progress: Result<Progress<J, R>>| {
            let progress = match progress? {
                Progress::Begins { case, left } => Progress::Begins { case, left: left + later },
                measured => measured,
            };
            told(progress)
        })
        // With the hearer gone nobody of the crew begins another cell.
    })
}

fn work_off<J: Job, R>(
    (queue, limit): (&Mutex<VecDeque<J>>, Duration),
    place: usize,
    work: &impl Fn(J, usize) -> Result<R>,
    teller: &Sender<Result<Progress<J, R>>>,
) {
    loop {
        let (case, left) = {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            let left = left(queue.make_contiguous(), limit);
            let Some(case) = queue.pop_front() else { return };
            (case, left)
        };
        if teller.send(Ok(Progress::Begins { case, left })).is_err() {
            return;
        }
        if teller.send(work(case, place).map(Progress::Measured)).is_err() {
            return;
        }
    }
}
