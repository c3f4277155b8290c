// SPDX-License-Identifier: MIT
//! Our own process tree: its processor time, and how it is ended when we are interrupted.
//!
//! Experiments end processes by dropping them ([`Owned`](crate::process::Owned)). A signal leaves no time for this. A
//! separate thread therefore ends all descendants, each by its own id. Orphans become our children
//! ([`xqos_sys::adopt_orphans`]), so a process whose parent ended first is found as well. Once this has begun, no
//! further process can be started.

use anyhow::{Result, bail};
use std::collections::{BTreeSet, HashMap};
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use xqos_sys::{Process, Processes, Procfs};

/// Locked while a process is started. Becomes true once no more processes may be started.
static IS_ENDING: Mutex<bool> = Mutex::new(false);

/// While the caller holds this lock, [`end_all`] waits, so it sees every process that the caller starts.
pub(crate) fn leave_to_start() -> Result<MutexGuard<'static, bool>> {
    let is_ending = IS_ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_ending {
        bail!("interrupted");
    }
    Ok(is_ending)
}

/// Ends all descendants and waits until they are gone. Those that remain after `grace` are killed. Nothing can be
/// started afterwards.
pub fn end_all(grace: Duration) {
    *IS_ENDING.lock().unwrap_or_else(PoisonError::into_inner) = true;
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let limit = Instant::now() + grace;
        let mut signalled = BTreeSet::new();
        while Instant::now() < limit {
            let all = Procfs.all();
            let left: Vec<i32> = below(process::id() as i32, &all).into_iter().filter(|pid| !all[pid].zombie).collect();
            if left.is_empty() {
                return;
            }
            for pid in left.into_iter().filter(|&pid| signalled.insert(pid)) {
                // This id belonged to a descendant a moment ago. The kernel assigns ids in sequence, so it has not
                // reused this one yet. SIGCONT wakes a stopped process.
                for signal in [signal, libc::SIGCONT] {
                    xqos_sys::send(pid, signal);
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Clock ticks of processor time of this process and its descendants, including those that have ended.
pub(crate) fn used_ticks() -> u64 {
    ticks_of(process::id() as i32, &Procfs.all())
}

fn ticks_of(top: i32, all: &HashMap<i32, Process>) -> u64 {
    let pids = [top].into_iter().chain(below(top, all));
    pids.filter_map(|pid| all.get(&pid)).map(|process| process.ticks).sum()
}

fn below(top: i32, all: &HashMap<i32, Process>) -> Vec<i32> {
    let children = |parent| all.iter().filter(move |(_, process)| process.parent == parent).map(|(&pid, _)| pid);
    let mut found: Vec<i32> = children(top).collect();
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(children(parent));
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(parent: i32, ticks: u64) -> Process {
        Process { parent, started: 0, zombie: false, ticks }
    }

    #[test]
    fn descendants_are_found_and_other_processes_are_not() {
        let all = [(5, 4), (2, 1), (4, 2), (3, 1), (9, 8)].map(|(pid, parent)| (pid, process(parent, 0)));
        assert_eq!(below(2, &HashMap::from(all)), [4, 5]);
    }

    /// Ticks of ended children are included in their parent's.
    #[test]
    fn processor_time_includes_all_descendants() {
        let all = [(5, process(4, 1)), (2, process(1, 10)), (4, process(2, 100)), (3, process(1, 1000))];
        assert_eq!(ticks_of(2, &HashMap::from(all)), 111);
    }
}
