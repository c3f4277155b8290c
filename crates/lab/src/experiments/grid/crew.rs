// SPDX-License-Identifier: MIT
//! Who measures: one cell after the other on links that keep a machine busy, several at once on those that do not.
//!
//! On a slow link a cell takes up to its whole limit, in which its programs wait: all of them together use some percent of
//! a processor. What a cell has is its own (link, server, proxies, capture), so cells know nothing of each other.

use super::case::Case;
use super::cell::Cell;
use anyhow::Result;
use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Of slow cells, at once.
const CREW: usize = 8;

/// What is told while the cells are measured.
#[derive(Debug)]
pub(super) enum Progress {
    /// And about how long all that is not done yet will take.
    Begins {
        case: Case,
        left: Duration,
    },
    Measured(Cell),
}

/// Measures them all, in their order as far as that can be. An error of one, or of `told`, ends it: what is being measured
/// then is still waited for.
pub(super) fn measure(cases: &[Case], limit: Duration, mut told: impl FnMut(Progress) -> Result<()>) -> Result<()> {
    let mut rest = cases;
    while let Some(first) = rest.first() {
        let length = rest.iter().take_while(|case| case.line.is_slow() == first.line.is_slow()).count();
        let (stretch, later) = rest.split_at(length);
        together(stretch, limit, left(later, limit), &mut told)?;
        rest = later;
    }
    Ok(())
}

/// About; cases of one kind may be far from each other.
fn left(cases: &[Case], limit: Duration) -> Duration {
    let of = |slow: bool| -> Duration {
        cases.iter().filter(|case| case.line.is_slow() == slow).map(|case| case.estimate(limit)).sum()
    };
    of(false) + of(true) / CREW as u32
}

fn together(
    cases: &[Case],
    limit: Duration,
    later: Duration,
    told: &mut impl FnMut(Progress) -> Result<()>,
) -> Result<()> {
    let crew = if cases[0].line.is_slow() { CREW } else { 1 };
    let queue: Mutex<VecDeque<Case>> = Mutex::new(cases.iter().copied().collect());
    let (teller, hearer) = channel();
    thread::scope(|scope| {
        for place in 0..crew {
            let (queue, teller) = (&queue, teller.clone());
            // Processes end with the thread that started them, and that is here for all of its cells.
            scope.spawn(move || work(queue, place, limit, &teller));
        }
        drop(teller);
        hearer.iter().try_for_each(|progress| {
            let progress = match progress? {
                Progress::Begins { case, left } => Progress::Begins { case, left: left + later },
                measured => measured,
            };
            told(progress)
        })
        // With the hearer gone nobody of the crew begins another cell.
    })
}

fn work(queue: &Mutex<VecDeque<Case>>, place: usize, limit: Duration, teller: &Sender<Result<Progress>>) {
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
        if teller.send(Cell::measure(case, place, limit).map(Progress::Measured)).is_err() {
            return;
        }
    }
}
