// SPDX-License-Identifier: MIT
//! Pins a thread to a processor, uses processor time by the thread's own clock, reserves processor time, and runs
//! `xqos boost`.
//!
//! Children and threads inherit the processors of the thread that starts them, so a whole scene (server and programs)
//! runs on one processor if it is started while a [`Pinned`] exists.

use crate::process::Owned;
use crate::program;
use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::process::Command;
use std::time::Duration;
use xqos_sys::Attributes;

/// The processor on which experiments about a single processor run their programs.
pub const SCENE: usize = 0;

/// Keeps the calling thread on one processor until this is dropped.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
}

impl Pinned {
    pub fn to(processor: usize) -> Result<Pinned> {
        let before = sched_getaffinity(None).context("cannot read the CPU affinity")?;
        let mut one = CpuSet::new();
        one.set(processor);
        sched_setaffinity(None, &one).with_context(|| format!("cannot run on processor {processor}"))?;
        Ok(Pinned { before })
    }

    /// Pins the calling thread to the last processor. If there is only one, that is [`SCENE`].
    pub fn beside_the_scene() -> Result<Pinned> {
        Pinned::to(std::thread::available_parallelism().map_or(0, |count| count.get() - 1))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The set came from the kernel, so it is valid.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Spins until this thread has used this much processor time, however long that takes.
pub fn burn(work: Duration) {
    let end = used() + work;
    while used() < end {
        std::hint::spin_loop();
    }
}

fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A reservation of processor time for the calling thread (SCHED_DEADLINE), which ends when this is dropped. Children
/// do not inherit it. It requires CAP_SYS_NICE.
#[derive(Debug)]
pub struct Reserved(());

impl Reserved {
    pub fn this_thread(budget: Duration, period: Duration) -> Result<Reserved> {
        Attributes::deadline(budget.as_nanos() as u64, period.as_nanos() as u64)
            .give(0)
            .context("cannot reserve processor time; this needs CAP_SYS_NICE")?;
        Ok(Reserved(()))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // Switching to the normal class requires no capability.
        let _ = Attributes::normal(0, 0).give(0);
    }
}

/// Starts `xqos boost` and returns when it is ready. If this fails, the error includes its message. If `expose` is
/// zero, only the server is boosted.
pub fn boost(display: &str, expose: Duration) -> Result<Owned> {
    let mut command = Command::new(program::own("xqos")?);
    let limit = if expose.is_zero() { "off".to_owned() } else { format!("{}ms", expose.as_millis()) };
    command.args(["boost", "--expose", &limit, "--display", display]);
    let started = Owned::start_until_line(&mut command, Duration::from_secs(1));
    let (process, line) = started.context("xqos boost did not start")?;
    ensure!(line.trim() == "ready", "xqos boost did not start: {line}");
    Ok(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn work_takes_its_processor_time_and_no_less() {
        let began = Instant::now();
        burn(Duration::from_millis(3));
        assert!(began.elapsed() >= Duration::from_millis(3));
    }

    #[test]
    fn a_reservation_is_released_or_the_error_names_the_capability() {
        let is_normal = || Attributes::of(0).unwrap().is_normal();
        match Reserved::this_thread(Duration::from_millis(1), Duration::from_millis(10)) {
            Ok(reserved) => {
                assert!(!is_normal());
                drop(reserved);
            }
            Err(error) => assert!(format!("{error:#}").contains("CAP_SYS_NICE"), "{error:#}"),
        }
        assert!(is_normal());
    }

    #[test]
    fn a_pinned_thread_gets_its_processors_back() {
        let count = || std::thread::available_parallelism().unwrap().get();
        let before = count();
        let pinned = Pinned::to(SCENE).unwrap();
        assert_eq!(count(), 1);
        drop(pinned);
        assert_eq!(count(), before);
    }
}
