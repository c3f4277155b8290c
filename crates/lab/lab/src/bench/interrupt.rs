// SPDX-License-Identifier: MIT
//! Interruption: ends everything that was started, and tells the user how to continue.
//!
//! A signal can arrive while an experiment waits anywhere, so a separate thread handles it: it first ends all
//! descendants of this process, and then the process itself. Errors that this causes in the experiment are not
//! reported.

use crate::{folder, process as processes, workbench};
use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The exit status that shells use for a program that was ended by ^C.
const STATUS: i32 = 130;
/// Time limit for processes to end. Servers end within milliseconds; x11perf ends when its server is gone.
const GRACE: Duration = Duration::from_secs(2);

/// No other data depend on this flag, so relaxed ordering is enough.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Makes signals end this process and its descendants in an orderly way. `out` is the folder of the results.
pub(super) fn watch(out: &Path) -> Result<()> {
    let mut signals = Signals::new(wanted()).context("cannot watch for signals")?;
    let out = out.to_owned();
    std::thread::spawn(move || {
        if signals.forever().next().is_none() {
            return;
        }
        IS_ENDING.store(true, Ordering::Relaxed);
        processes::end_all(GRACE);
        folder::remove_all();
        workbench::line(&format!(
            "interrupted: finished results are in {}; to continue, run the same command again",
            out.display()
        ));
        process::exit(STATUS);
    });
    Ok(())
}

/// Does not return if a signal has arrived, because errors that the signal causes must not be reported.
pub(super) fn wait_if_ending() {
    // A terminal's ^C reaches the servers at the same time, so their errors may arrive before the signal is handled.
    std::thread::sleep(Duration::from_millis(100));
    while IS_ENDING.load(Ordering::Relaxed) {
        std::thread::park();
    }
}

/// Signals to handle. Under `nohup` SIGHUP stays ignored.
fn wanted() -> Vec<i32> {
    let all = [SIGINT, SIGTERM, SIGHUP];
    all.into_iter().filter(|&signal| signal != SIGHUP || !xqos_sys::proc::ignores(signal)).collect()
}
