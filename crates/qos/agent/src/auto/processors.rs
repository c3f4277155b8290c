// SPDX-License-Identifier: MIT
//! Reserves processor time (SCHED_DEADLINE) for the busiest thread of programs whose period is known.
//!
//! A simple program's busiest thread is its main thread; a player's is the thread that draws or decodes. The budget is
//! computed by [`demand`](super::demand). A guard process restores the thread's previous scheduling if this program is
//! killed. If the kernel refuses a reservation, that is reported once, and the program runs without it.

use super::demand::Demand;
use crate::client::in_us;
use crate::error::{Result, asking, bail};
use crate::processor;
use crate::raised::{Guard, RaiseResult, Raised};
use std::collections::BTreeMap;
use std::io;
use std::time::Instant;
use xqos_sys::proc::RunTimes;
use xqos_text::quantity::{Micros, Reservation};

/// Time over which the usage of threads is compared.
const COMPARED_NS: u64 = 500_000_000;

#[derive(Debug, Default)]
struct MeasuredProgram {
    /// Time of the first sample, and the processor time that each thread had used by then.
    first: Option<(u64, BTreeMap<i32, u64>)>,
    thread: Option<i32>,
    demand: Demand,
    reserved: Option<Reservation>,
    refused: Option<String>,
}

/// The programs that have processor time reserved.
#[derive(Debug)]
pub struct Processors {
    began: Instant,
    raised: Raised,
    guard: Guard,
    /// This process started the programs, so their other threads get a higher priority.
    are_own_children: bool,
    programs: BTreeMap<i32, MeasuredProgram>,
}

impl Processors {
    /// The error names the missing privilege.
    pub fn start(are_own_children: bool) -> Result<Processors> {
        // A trial reservation would occupy bandwidth for some time after its release.
        if !xqos_sys::may_set_scheduling() {
            bail!("no processor time is reserved: {}", processor::missing_reserve_right());
        }
        let raised = Raised::new(None).map_err(asking("cannot allocate the list of raised threads"))?;
        let guard = Guard::start(&raised).map_err(asking("cannot start the guard process"))?;
        Ok(Processors { began: Instant::now(), raised, guard, are_own_children, programs: BTreeMap::new() })
    }

    /// Reserves processor time for exactly these programs, each with its period. Returns messages for the user.
    pub fn update(&mut self, periods: impl Iterator<Item = (i32, Micros)>, now: Instant) -> Result<Vec<String>> {
        if self.guard.is_gone() {
            bail!("the guard process has ended, so no processor time is reserved any more");
        }
        let mut shortest: BTreeMap<i32, Micros> = BTreeMap::new();
        for (pid, period) in periods {
            let known = shortest.entry(pid).or_insert(period);
            *known = (*known).min(period);
        }
        let over: Vec<i32> = self.programs.keys().copied().filter(|pid| !shortest.contains_key(pid)).collect();
        over.into_iter().for_each(|pid| self.forget(pid));
        let now_ns = u64::try_from(now.duration_since(self.began).as_nanos()).unwrap_or(u64::MAX);
        Ok(shortest.into_iter().filter_map(|(pid, period)| self.update_program(pid, period, now_ns)).collect())
    }

    fn update_program(&mut self, pid: i32, period: Micros, now_ns: u64) -> Option<String> {
        let program = self.programs.entry(pid).or_default();
        let thread = program.busiest(pid, now_ns)?;
        let Some(used_ns) = used_ns(thread) else {
            // The thread has ended; another one may be the busiest now.
            self.forget(pid);
            return None;
        };
        let (budget_ns, period_ns) = program.demand.sample(now_ns, used_ns, period.ns())?;
        let wanted = in_us(budget_ns, period_ns);
        if self.are_own_children {
            processor::raise_other_threads(pid);
        }
        match give(&mut self.raised, thread, wanted, program.reserved.is_some()) {
            Ok(()) => {
                program.reserved = Some(wanted);
                Some(format!("reserved {wanted} of a processor for thread {thread} of pid {pid}"))
            }
            Err(error) => {
                let refusal = processor::refusal(wanted, &error).map(|why| why.to_string());
                let why = refusal.unwrap_or_else(|| error.to_string());
                let before = program.refused.replace(why.clone());
                (before.as_ref() != Some(&why)).then(|| format!("no processor time for pid {pid}: {why}"))
            }
        }
    }

    fn forget(&mut self, pid: i32) {
        let reserved = self.programs.remove(&pid).filter(|program| program.reserved.is_some());
        reserved.and_then(|program| program.thread).into_iter().for_each(|thread| _ = self.raised.take_back(thread));
    }
}

impl MeasuredProgram {
    /// The thread that has used the most processor time since the first sample; `None` if it is too early to decide.
    fn busiest(&mut self, pid: i32, now_ns: u64) -> Option<i32> {
        if self.thread.is_some() {
            return self.thread;
        }
        let used = || xqos_sys::threads(pid).into_iter().filter_map(|thread| Some((thread, used_ns(thread)?)));
        let (began_ns, before) = self.first.get_or_insert_with(|| (now_ns, used().collect()));
        if now_ns - *began_ns < COMPARED_NS {
            return None;
        }
        let gained =
            used().map(|(thread, used)| (used.saturating_sub(before.get(&thread).copied().unwrap_or(0)), thread));
        let busiest = gained.max_by_key(|&(gained, thread)| (gained, -thread));
        // If even that thread hardly ran, others may have waited for a processor: compare again.
        self.thread = busiest.filter(|&(gained, _)| gained >= COMPARED_NS / 100).map(|(_, thread)| thread);
        if self.thread.is_none() {
            self.first = None;
        }
        self.thread
    }
}

fn give(raised: &mut Raised, thread: i32, wanted: Reservation, is_reserved: bool) -> io::Result<()> {
    let attributes = processor::attributes(wanted);
    if is_reserved {
        return raised.change(thread, attributes);
    }
    match raised.raise(thread, attributes, None) {
        RaiseResult::Raised => Ok(()),
        RaiseResult::Otherwise | RaiseResult::Foreign => Err(io::Error::other("it has a priority of its own")),
        RaiseResult::Impossible(error) => Err(error),
    }
}

fn used_ns(thread: i32) -> Option<u64> {
    Some(RunTimes::of(thread)?.read_ns()?.0)
}
