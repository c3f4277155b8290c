// SPDX-License-Identifier: MIT
//! An end before the end: what was started is ended, and the reader told how to go on.
//!
//! Experiments wait in many places, so they are not asked: a thread waits for the signal and ends everything below this
//! process, then the process itself. Whatever the experiment makes of that meanwhile is nobody's business.

use super::progress;
use crate::{folder, tree};
use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// As a shell shows a program that ^C ended.
const STATUS: i32 = 130;
/// Servers end within some milliseconds, an x11perf as soon as its server is gone.
const GRACE: Duration = Duration::from_secs(2);

/// A flag by itself: nothing is read because of it, so no ordering.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// From now on a signal ends this process in order. `out` is where the results are.
pub(super) fn watch(out: &Path) -> Result<()> {
    let mut signals = Signals::new(wanted()).context("cannot watch for signals")?;
    let out = out.to_owned();
    std::thread::spawn(move || {
        if signals.forever().next().is_none() {
            return;
        }
        IS_ENDING.store(true, Ordering::Relaxed);
        tree::end_all(GRACE);
        folder::remove_all();
        progress::line(&format!(
            "interrupted: what was done is kept in {}; the same command goes on with the rest",
            out.display()
        ));
        process::exit(STATUS);
    });
    Ok(())
}

/// Does not return once a signal has come: errors that follow from it are not to be told.
pub(super) fn wait_if_ending() {
    // The signal may have gone to the servers first, as a terminal's ^C does to all at once.
    std::thread::sleep(Duration::from_millis(100));
    while IS_ENDING.load(Ordering::Relaxed) {
        std::thread::park();
    }
}

/// Who starts us with `nohup` wants to go on after the terminal is closed.
fn wanted() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let all = [SIGINT, SIGTERM, SIGHUP];
    all.into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(&status, signal)).collect()
}

fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_known_from_its_mask() {
        let status = "Name:\txqos\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, SIGHUP) && !is_ignored(status, SIGINT) && !is_ignored("", SIGHUP));
    }
}
