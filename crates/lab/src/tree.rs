// SPDX-License-Identifier: MIT
//! Our own process tree: what it used of the processors, and its end when we are interrupted.
//!
//! Experiments end what they start when they drop it ([`Owned`](crate::process::Owned)). A signal leaves no time for that:
//! then everything below this process is ended from beside the experiment, each by its own id. Orphans below us become
//! our children ([`xqos_sys::adopt_orphans`]), so a process whose parent ended first is found as well, and once the end has begun
//! nothing is started any more.

use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Held while a process is started; true once nothing may be started any more.
static IS_ENDING: Mutex<bool> = Mutex::new(false);

/// What is started while this is held is seen by [`end_all`].
pub(crate) fn leave_to_start() -> Result<MutexGuard<'static, bool>> {
    let is_ending = IS_ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_ending {
        bail!("interrupted");
    }
    Ok(is_ending)
}

/// Ends all processes below this one and waits until they are gone; who does not within `grace` is killed. Nothing can
/// be started afterwards.
pub fn end_all(grace: Duration) {
    *IS_ENDING.lock().unwrap_or_else(PoisonError::into_inner) = true;
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let limit = Instant::now() + grace;
        let mut told = BTreeSet::new();
        while Instant::now() < limit {
            let left = below(process::id(), &tasks());
            if left.iter().all(|task| task.is_over) {
                return;
            }
            for task in left.iter().filter(|task| !task.is_over && told.insert(task.pid)) {
                // A moment ago this id was that of a process below us; the kernel gives ids out in turn, so it is not
                // another one's so soon. One that was stopped would not notice.
                for signal in [signal, libc::SIGCONT] {
                    xqos_sys::send(task.pid as i32, signal);
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Clock ticks of processor time that this process and all below it have used, also those that have ended.
pub(crate) fn used_ticks() -> u64 {
    ticks_of(process::id(), &tasks())
}

fn ticks_of(top: u32, all: &[Task]) -> u64 {
    let own = all.iter().filter(|task| task.pid == top).map(|task| task.ticks);
    own.chain(below(top, all).iter().map(|task| task.ticks)).sum()
}

/// One line of /proc/PID/stat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Task {
    pid: u32,
    parent: u32,
    /// It has ended, and its parent has not asked how.
    is_over: bool,
    /// Its own, and those of its children that have ended.
    ticks: u64,
}

fn tasks() -> Vec<Task> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

fn below(top: u32, all: &[Task]) -> Vec<Task> {
    let mut found: Vec<Task> = all.iter().filter(|task| task.parent == top).copied().collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|task| task.pid) {
        found.extend(all.iter().filter(|task| task.parent == parent));
        next += 1;
    }
    found
}

fn parse(stat: &str) -> Option<Task> {
    // A program's name may hold anything, also brackets and blanks.
    let (front, rest) = stat.rsplit_once(')')?;
    let pid = front.split_once(' ')?.0.parse().ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let ticks = (11..=14).map(number).sum::<Option<u64>>()?;
    Some(Task { pid, parent: number(1)? as u32, is_over: matches!(fields[0], "Z" | "X"), ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_program_is_called() {
        let stat = "42 (a) b (c)) Z 7 42 42 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1";
        assert_eq!(parse(stat), Some(Task { pid: 42, parent: 7, is_over: true, ticks: 100 }));
        assert_eq!(parse("42 (short) R 7"), None);
    }

    #[test]
    fn children_of_children_are_below_us_and_strangers_are_not() {
        let task = |pid, parent| Task { pid, parent, is_over: false, ticks: 0 };
        let all = [task(5, 4), task(2, 1), task(4, 2), task(3, 1), task(9, 8)];
        let found: Vec<u32> = below(2, &all).iter().map(|task| task.pid).collect();
        assert_eq!(found, [4, 5]);
    }

    /// That of children that have ended stands in their parent's line, as the first test reads it.
    #[test]
    fn work_of_all_below_is_ours() {
        let task = |pid, parent, ticks| Task { pid, parent, is_over: pid == 4, ticks };
        let all = [task(5, 4, 1), task(2, 1, 10), task(4, 2, 100), task(3, 1, 1000)];
        assert_eq!(ticks_of(2, &all), 111);
    }
}
