// SPDX-License-Identifier: MIT
//! Measures the cells of an experiment: one at a time on links that keep a machine busy, eight at a time on slow links.
//!
//! On a slow link, a cell can take its whole time limit, but its programs mostly wait, so eight cells together use only
//! a few percent of a processor. Each cell has its own link, server, proxies and capture, so cells do not affect each
//! other. Each finished cell is stored, so an interrupted run continues with the next one.

use super::{Case, Cell, Cells, ssh, start::StartFiles};
use crate::bench::{Bench, Parts};
use anyhow::{Result, bail};
use std::env;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// Number of slow cells at a time.
const CREW: usize = 8;

enum Progress {
    /// The case with this index.
    Begins(usize),
    Ends(Result<Box<Cell>>),
}

/// Measures the cases whose title contains the value of the environment variable `only`, each for at most `limit`.
/// Before each stretch of slow or fast lines, cases that are not worth it after the cells so far are left out.
pub(in crate::experiments) fn measure(
    bench: &Bench,
    only: &str,
    all: &[Case],
    limit: Duration,
    is_worth: fn(&[Cell], Case) -> bool,
) -> Result<Cells> {
    let part = env::var(only).unwrap_or_default();
    let wanted: Vec<Case> = all.iter().copied().filter(|case| case.title().contains(&part)).collect();
    if wanted.is_empty() {
        bail!("{only}={part} matches no cell: use a part of a title such as '{}'", all[0].title());
    }
    let count = wanted.len();
    let mut parts: Parts<Cell> = bench.parts()?;
    let (mut to_do, mut left_out) = (Vec::new(), Vec::new());
    for case in wanted.into_iter().filter(|case| parts.list().iter().all(|cell| cell.case != *case)) {
        // Not stored, since the program may be installed for the next run.
        match case.missing() {
            Some(missing) => left_out.push(Cell { case, outcome: Err(missing) }),
            None => to_do.push(case),
        }
    }
    let start_files = StartFiles::of(bench, &to_do)?;
    let _folder = ssh::PrivilegeFolder::make();
    let work = |case, slot| Cell::measure(case, slot, limit, &start_files);
    let mut done = count - to_do.len();
    let mut rest = to_do.as_slice();
    for stretch in to_do.chunk_by(|one, other| one.line.is_slow() == other.line.is_slow()) {
        rest = &rest[stretch.len()..];
        let chosen: Vec<Case> = stretch.iter().copied().filter(|&case| is_worth(parts.list(), case)).collect();
        done += stretch.len() - chosen.len();
        crew(&chosen, &work, |progress| match progress {
            Progress::Begins(index) => {
                done += 1;
                let what = format!("cell {done} of {count}: {}", chosen[index].title());
                bench.say_with_left(what, left(&[&chosen[index..], rest].concat(), limit));
                Ok(())
            }
            Progress::Ends(cell) => parts.add(*cell?),
        })?;
    }
    let mut cells = parts.into_list();
    cells.extend(left_out);
    Ok(Cells(cells))
}

fn left(cases: &[Case], limit: Duration) -> Duration {
    let of = |slow: bool| -> Duration {
        cases.iter().filter(|case| case.line.is_slow() == slow).map(|case| case.estimate(limit)).sum()
    };
    of(false) + of(true) / CREW as u32
}

/// Measures cases on lines that are all slow or all fast, approximately in their order. No two cells use the same slot
/// at the same time. After an error, no further cell begins.
fn crew(
    cases: &[Case],
    work: &(impl Fn(Case, usize) -> Result<Cell> + Sync),
    mut report: impl FnMut(Progress) -> Result<()>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = sync_channel(0);
    thread::scope(|scope| {
        // Processes end with the thread that started them, and this thread lives until all its cells are done.
        for slot in 0..if cases.first().is_some_and(|case| case.line.is_slow()) { CREW } else { 1 } {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&case) = cases.get(index) else { return };
                    // Once the receiver is gone, the send fails, and no further cell begins.
                    let begins = sender.send(Progress::Begins(index));
                    if begins.is_err() || sender.send(Progress::Ends(work(case, slot).map(Box::new))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        receiver.into_iter().try_for_each(&mut report)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Capture, Line, Program, Route};
    use super::*;
    use anyhow::anyhow;

    fn cases(slow: bool) -> Vec<Case> {
        let case = |line| Case { program: Program::Xterm, way: Route::Raw, line, watched: Capture::AtProgram, turn: 0 };
        Line::all().map(case).filter(|case| case.line.is_slow() == slow).collect()
    }

    #[test]
    fn each_case_is_measured_once_and_concurrent_cases_use_different_slots() {
        let slots: Vec<AtomicUsize> = (0..CREW).map(|_| AtomicUsize::new(0)).collect();
        let work = |case, slot: usize| {
            assert_eq!(slots[slot].fetch_add(1, Ordering::SeqCst), 0);
            slots[slot].fetch_sub(1, Ordering::SeqCst);
            Ok(Cell { case, outcome: Err(String::new()) })
        };
        let (mut begun, mut ended) = (Vec::new(), Vec::new());
        let report = |progress| {
            match progress {
                Progress::Begins(index) => begun.push(cases(true)[index]),
                Progress::Ends(cell) => ended.push(cell?.case),
            }
            Ok(())
        };
        crew(&cases(true), &work, report).unwrap();
        let mut all = cases(true);
        for cases in [&mut begun, &mut ended, &mut all] {
            cases.sort();
        }
        assert_eq!((&begun, &ended), (&all, &all));
    }

    #[test]
    fn after_an_error_no_further_case_begins() {
        let begun = AtomicUsize::new(0);
        let work = |_, _| {
            begun.fetch_add(1, Ordering::SeqCst);
            Err(anyhow!("no link"))
        };
        let report = |progress| match progress {
            Progress::Begins(_) => Ok(()),
            Progress::Ends(cell) => cell.map(drop),
        };
        assert!(crew(&cases(false), &work, report).is_err());
        assert_eq!(begun.into_inner(), 1);
    }
}
