// SPDX-License-Identifier: MIT
//! Chaos: random operations on a real server, and the invariants that must hold.
//!
//! Operations are drawn from a seed before they run. A report of a failure names the seed and the operation's number.
//! The same command repeats the sequence, but not its timing. `invariants` lists what must hold. If an operation takes
//! more than 90 s, the server hangs: a watchdog kills it, and the run reports this.

mod garbage;
mod invariants;
mod op;
mod stage;

use crate::names::named;
use crate::server::{Module, ServerKind, Setup};
use anyhow::{Context, Result, anyhow, ensure};
use invariants::Counters;
use op::Op;
use stage::ChaosStage;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use xqos_sim::Dice;

/// Time limit for an operation, including the wait for a reset.
const BOUND_S: u64 = 90;
const CHECKED_EVERY: u64 = 10;
/// Operations before the first reset. Later resets are compared with the state after this one.
const FIRST_LIFE: u64 = 60;

named! {
    /// How xqos is loaded into the server.
    pub enum Host {
        Dix = "dix",
        Libc = "libc",
    }
}

impl Host {
    pub fn name(self) -> &'static str {
        Host::ALL[self as usize].0
    }
}

#[derive(Clone, Debug)]
pub struct ChaosOptions {
    pub host: Host,
    pub seed: u64,
    /// The run ends at either limit, whichever is reached first.
    pub seconds: u64,
    pub operations: u64,
    pub module: PathBuf,
    pub is_verbose: bool,
}

/// Counts of a run in which all invariants held.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunCounts {
    pub operations: u64,
    pub resets: u64,
    pub checks: u64,
    pub slowest_answer: Duration,
}

impl RunCounts {
    pub fn text(&self) -> String {
        let RunCounts { operations, resets, checks, slowest_answer } = self;
        format!(
            "{operations} operations, {resets} resets and {checks} checks: all invariants held; the slowest answer to \
             a new client took {} ms",
            slowest_answer.as_millis()
        )
    }
}

/// Runs the operations. The error names what failed and how to repeat it.
pub fn run(options: &ChaosOptions) -> Result<RunCounts> {
    let mut setup = Setup::with_module(ServerKind::Xvfb, Module::new(&options.module));
    setup.resets = true;
    setup.environment.push(("XQOS_HOST".into(), options.host.name().into()));
    let stage = ChaosStage::start(&setup)?;
    let is_below = stage.witness()?.is_served_through_libc().unwrap_or(false);
    ensure!(is_below == (options.host == Host::Libc), "xqos is not loaded through host {}", options.host.name());
    let mut run = ChaosRun { stage, counters: Counters::default(), idle_state: None, counts: RunCounts::default() };
    let watch = Watchdog::start(run.stage.server.pid());
    let (mut dice, began) = (Dice::new(options.seed), Instant::now());
    while run.counts.operations < options.operations && began.elapsed() < Duration::from_secs(options.seconds) {
        let op = if run.counts.operations == FIRST_LIFE { Op::Reset } else { op::draw(&mut dice) };
        // An error means that the watchdog has killed the server.
        let _ = watch.begins.send(());
        if options.is_verbose {
            println!("{} {op:?}", run.counts.operations);
        }
        run.step(&op).with_context(|| run.failure(&op, options, &watch))?;
    }
    let _ = watch.begins.send(());
    run.step(&Op::Reset).with_context(|| run.failure(&Op::Reset, options, &watch))?;
    Ok(run.counts)
}

struct ChaosRun {
    stage: ChaosStage,
    counters: Counters,
    /// State after the first reset.
    idle_state: Option<invariants::IdleState>,
    counts: RunCounts,
}

impl ChaosRun {
    fn step(&mut self, op: &Op) -> Result<()> {
        self.stage.perform(op)?;
        self.counts.operations += 1;
        if !self.stage.server.is_running() {
            return Err(anyhow!("the server ended"));
        }
        if *op == Op::Reset {
            self.counts.resets += 1;
            self.counters = Counters::default();
            let is_later = self.counts.operations > FIRST_LIFE;
            let idle_state = invariants::idle_state(&self.stage, self.idle_state)?;
            self.idle_state = is_later.then_some(idle_state);
        }
        if self.counts.operations % CHECKED_EVERY == 0 {
            self.counts.checks += 1;
            self.counts.slowest_answer = self.counts.slowest_answer.max(invariants::answers(&self.stage)?);
            invariants::check_figures(&self.stage, &mut self.counters)?;
        }
        Ok(())
    }

    fn failure(&self, op: &Op, options: &ChaosOptions, watch: &Watchdog) -> String {
        let (seed, host, number) = (options.seed, options.host.name(), self.counts.operations);
        let late = if watch.has_ended_it.load(Ordering::Relaxed) {
            format!("no answer within {BOUND_S} s; ")
        } else {
            String::new()
        };
        let log = self.stage.server.log();
        let said = log.lines().rev().find(|line| line.contains("xqos")).unwrap_or_default();
        format!(
            "{late}operation {number}, {op:?}, failed (repeat with xqos bench chaos --host {host} --seed {seed}; \
             server log: {said})"
        )
    }
}

/// Kills a server that takes too long, so that threads that wait for it get an error.
struct Watchdog {
    begins: Sender<()>,
    has_ended_it: Arc<AtomicBool>,
}

impl Watchdog {
    fn start(server: u32) -> Watchdog {
        let (begins, begun) = channel();
        let watch = Watchdog { begins, has_ended_it: Arc::default() };
        let has_ended_it = Arc::clone(&watch.has_ended_it);
        std::thread::spawn(move || {
            let bound = Duration::from_secs(BOUND_S);
            let ended = std::iter::repeat_with(|| begun.recv_timeout(bound)).find_map(Result::err);
            if ended == Some(RecvTimeoutError::Timeout) {
                // No other data depend on this flag, so relaxed ordering is enough.
                has_ended_it.store(true, Ordering::Relaxed);
                xqos_sys::send(server as i32, libc::SIGKILL);
            }
        });
        watch
    }
}
