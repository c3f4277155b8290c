// SPDX-License-Identifier: MIT
//! Chaos: random operations on a real server, and what has to hold all along.
//!
//! Operations are drawn from a seed before they are done, so a failure names the seed and the number of the operation, and
//! the same command does the same again; when the server sees each of them is the machine's affair. What must hold is in
//! `invariants`. An operation that is not done within 90 s means a server that hangs: a watch ends it, and says so.

mod garbage;
mod invariants;
mod op;
mod stage;

use crate::server::{Kind, Module, Setup};
use anyhow::{Context, Result, anyhow, ensure};
use invariants::Sums;
use op::Op;
use stage::Stage;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use xqos_sim::Dice;

/// No operation takes longer, with patience for resets; a server that is that late hangs.
const BOUND_S: u64 = 90;
const CHECKED_EVERY: u64 = 10;
/// The server's first life, from which later ones are compared, sees so many operations.
const FIRST_LIFE: u64 = 60;

/// Which way into the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    Dix,
    Libc,
}

impl Host {
    pub fn name(self) -> &'static str {
        match self {
            Host::Dix => "dix",
            Host::Libc => "libc",
        }
    }

    pub fn from_name(name: &str) -> Option<Host> {
        [Host::Dix, Host::Libc].into_iter().find(|host| host.name() == name)
    }
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Options {
    pub host: Host,
    pub seed: u64,
    /// Whatever comes first.
    pub seconds: u64,
    pub operations: u64,
    pub module: PathBuf,
    /// Prints each operation.
    pub is_told: bool,
}

/// What was done, and stood.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stood {
    pub operations: u64,
    pub resets: u64,
    pub checks: u64,
    pub slowest_answer: Duration,
}

impl Stood {
    /// For people.
    pub fn text(&self) -> String {
        let Stood { operations, resets, checks, slowest_answer } = self;
        format!(
            "{operations} operations, {resets} resets and {checks} checks: everything held; the slowest answer to a new \
             client took {} ms",
            slowest_answer.as_millis()
        )
    }
}

/// Does it. The error says what did not hold, and how to see it again.
pub fn run(options: &Options) -> Result<Stood> {
    let mut setup = Setup::with_module(Kind::Xvfb, Module::new(&options.module));
    setup.resets = true;
    setup.environment.push(("XQOS_HOST".into(), options.host.name().into()));
    let stage = Stage::start(&setup)?;
    let is_below = stage.witness()?.is_served_through_libc().unwrap_or(false);
    ensure!(is_below == (options.host == Host::Libc), "the server is not served by host {}", options.host.name());
    let mut run = Run { stage, sums: Sums::default(), rested: None, stood: Stood::default() };
    let watch = Watch::start(run.stage.server.pid());
    let (mut dice, began) = (Dice::new(options.seed), Instant::now());
    while run.stood.operations < options.operations && began.elapsed() < Duration::from_secs(options.seconds) {
        let op = if run.stood.operations == FIRST_LIFE { Op::Reset } else { op::draw(&mut dice) };
        watch.begins();
        if options.is_told {
            println!("{} {op:?}", run.stood.operations);
        }
        run.step(&op).with_context(|| run.failure(&op, options, &watch))?;
    }
    watch.begins();
    run.step(&Op::Reset).with_context(|| run.failure(&Op::Reset, options, &watch))?;
    Ok(run.stood)
}

struct Run {
    stage: Stage,
    sums: Sums,
    /// After the first life.
    rested: Option<invariants::Rested>,
    stood: Stood,
}

impl Run {
    fn step(&mut self, op: &Op) -> Result<()> {
        self.stage.perform(op)?;
        self.stood.operations += 1;
        if !self.stage.server.is_running() {
            return Err(anyhow!("the server ended"));
        }
        if *op == Op::Reset {
            self.stood.resets += 1;
            self.sums = Sums::default();
            let is_later = self.stood.operations > FIRST_LIFE;
            let rested = invariants::rested(&self.stage, self.rested)?;
            self.rested = is_later.then_some(rested);
        }
        if self.stood.operations % CHECKED_EVERY == 0 {
            self.stood.checks += 1;
            self.stood.slowest_answer = self.stood.slowest_answer.max(invariants::answers(&self.stage)?);
            invariants::adds_up(&self.stage, &mut self.sums)?;
        }
        Ok(())
    }

    fn failure(&self, op: &Op, options: &Options, watch: &Watch) -> String {
        let (seed, host, number) = (options.seed, options.host.name(), self.stood.operations);
        let late = if watch.has_ended_it() { format!("no answer within {BOUND_S} s; ") } else { String::new() };
        let log = self.stage.server.log();
        let said = log.lines().rev().find(|line| line.contains("xqos")).unwrap_or_default();
        format!(
            "{late}operation {number}, {op:?}, did not go well (again: xqos bench chaos --host {host} --seed {seed}; in \
             the server's log: {said})"
        )
    }
}

/// Ends a server that is too late, so that whoever waits for it gets an error.
struct Watch {
    began: Instant,
    /// Seconds since `began` when the operation began; the highest bit: the server was ended.
    since: Arc<AtomicU64>,
}

const ENDED: u64 = 1 << 63;

impl Watch {
    fn start(server: u32) -> Watch {
        let watch = Watch { began: Instant::now(), since: Arc::new(AtomicU64::new(0)) };
        let (began, since) = (watch.began, Arc::downgrade(&watch.since));
        std::thread::spawn(move || {
            while let Some(since) = since.upgrade() {
                // Plain numbers: nothing else is ordered by them.
                if began.elapsed().as_secs() > since.load(Ordering::Relaxed) + BOUND_S {
                    since.store(ENDED, Ordering::Relaxed);
                    xqos_sys::send(server as i32, libc::SIGKILL);
                    return;
                }
                drop(since);
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        watch
    }

    fn begins(&self) {
        if !self.has_ended_it() {
            self.since.store(self.began.elapsed().as_secs(), Ordering::Relaxed);
        }
    }

    fn has_ended_it(&self) -> bool {
        self.since.load(Ordering::Relaxed) == ENDED
    }
}
