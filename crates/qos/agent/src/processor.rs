// SPDX-License-Identifier: MIT
//! Processor time from the kernel: reservations, the reasons for refusals, and the scheduling of a process.

use crate::error::{Error, Result, asking, bail, refused};
use crate::field::Value;
use serde::Serialize;
use serde_json::json;
use std::fmt;
use std::io;
use xqos_sys::{self as sys, Attributes};
use xqos_text::quantity::{Micros, Reservation};

/// The kernel refuses shorter budgets and longer periods.
const MIN_BUDGET: Micros = Micros(10);
const MAX_PERIOD: Micros = Micros(4_000_000);

/// Scheduling attributes of a kernel reservation (SCHED_DEADLINE).
pub fn attributes(wanted: Reservation) -> Attributes {
    Attributes::deadline(wanted.budget.ns(), wanted.period.ns())
}

/// Nice value and slice (ns) for the other threads of a program with a reservation: they get nearly all processor time
/// that normal threads share, and get it without delay.
const OTHER_THREADS: (i32, u64) = (-15, 100_000);

/// Explains how to get the missing privilege to do `what`: run another command, or grant the capabilities.
pub fn missing_right(what: &str, run: &str, capabilities: &str) -> String {
    let program = sys::own_path();
    format!(
        "this user may not {what}: run {run}, or grant the program the right with `sudo setcap {capabilities}+ep {program}`"
    )
}

pub fn missing_reserve_right() -> String {
    missing_right("reserve processor time", "it as root", "cap_sys_nice")
}

/// Explains how to get the privilege to raise programs.
pub fn missing_raise_right() -> String {
    missing_right("set priorities", "`xqos rules run` as root", "cap_sys_nice")
}

/// Returns true if this process may raise priorities. Tries it on a separate thread.
pub fn may_raise() -> bool {
    let try_it = || Attributes::real_time(1).give(0).or_else(|_| Attributes::normal(-10, 0).give(0)).is_ok();
    std::thread::spawn(try_it).join().unwrap_or(false)
}

/// Raises all threads with default scheduling except the main thread, which has the reservation: players draw in
/// another thread. A thread that has copied the reservation, as GLib's thread pools do, loses it.
pub fn raise_other_threads(pid: i32) {
    let reserved = Attributes::of(pid).ok().filter(|main| main.reservation().is_some());
    for (thread, now) in other_threads(pid) {
        if now.is_normal() && now.nice() == 0 || Some(now) == reserved {
            // The thread may have ended.
            let _ = Attributes::favoured(OTHER_THREADS.0, OTHER_THREADS.1).give(thread);
        }
    }
}

/// All threads of a process except the main thread, with their scheduling.
pub fn other_threads(pid: i32) -> Vec<(i32, Attributes)> {
    let threads = xqos_sys::threads(pid).into_iter();
    threads.filter(|&thread| thread != pid).filter_map(|thread| Some((thread, Attributes::of(thread).ok()?))).collect()
}

/// Refuses reservations that every kernel refuses.
pub fn check(wanted: Reservation) -> Result<()> {
    if wanted.budget < MIN_BUDGET || wanted.period > MAX_PERIOD {
        bail!(
            "{wanted} of a processor is out of range: the budget is at least {MIN_BUDGET}, the period at most {MAX_PERIOD}"
        );
    }
    Ok(())
}

/// The error for a program that did not start: the kernel's refusal of the reservation, or `otherwise`. There is no
/// trial reservation: the kernel frees its bandwidth only after some time and would refuse the real one.
pub fn not_started(wanted: Option<Reservation>, error: io::Error, otherwise: String) -> Error {
    let refusal = wanted.and_then(|wanted| refusal(wanted, &error));
    refusal.unwrap_or_else(|| asking(otherwise)(error))
}

/// Explains the kernel's refusal of a reservation; `None` if the error has another cause.
pub fn refusal(wanted: Reservation, error: &io::Error) -> Option<Error> {
    match error.raw_os_error()? {
        libc::EPERM => Some(Error::Refused(missing_reserve_right())),
        libc::EBUSY => Some(refused!(
            "the kernel refuses {wanted} of a processor, because too much is reserved already: ask for less \
             (/proc/sys/kernel/sched_rt_runtime_us is the limit)"
        )),
        libc::EINVAL => Some(refused!("the kernel refuses {wanted} of a processor: {error}")),
        _ => None,
    }
}

/// Scheduling of a process's main thread, if it is not the default.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Processor {
    Reserved { budget_ms: f64, period_ms: f64 },
    RealTime { priority: u32 },
    Nice { nice: i32 },
}

impl Processor {
    /// The value as JSON and as text.
    pub fn value(&self) -> Value {
        Value::Other(json!(self), self.to_string())
    }

    /// `None` for default scheduling, or if it is unknown.
    pub fn of(pid: i32) -> Option<Processor> {
        let attributes = Attributes::of(pid).ok()?;
        let ms = |ns: u64| ns as f64 / 1e6;
        if let Some((budget_ns, period_ns)) = attributes.reservation() {
            return Some(Processor::Reserved { budget_ms: ms(budget_ns), period_ms: ms(period_ns) });
        }
        if let Some(priority) = attributes.real_time_priority() {
            return Some(Processor::RealTime { priority });
        }
        Some(attributes.nice()).filter(|&nice| nice != 0).map(|nice| Processor::Nice { nice })
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Processor::Reserved { budget_ms, period_ms } => write!(out, "{budget_ms} / {period_ms} ms"),
            Processor::RealTime { priority } => write!(out, "real-time {priority}"),
            Processor::Nice { nice } => write!(out, "nice {nice}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_scheduling_is_not_shown() {
        assert_eq!(Processor::of(i32::MAX), None);
        let reserved = Processor::Reserved { budget_ms: 2.0, period_ms: 10.0 };
        assert_eq!(reserved.to_string(), "2 / 10 ms");
        assert_eq!(serde_json::to_value(&reserved).unwrap()["period_ms"], 10.0);
    }

    #[test]
    fn reservations_that_every_kernel_refuses_are_refused() {
        let wanted = |text: &str| text.parse::<Reservation>().unwrap();
        assert!(check(wanted("1us/10ms")).unwrap_err().to_string().contains("out of range"));
        assert!(check(wanted("1ms/10s")).unwrap_err().to_string().contains("out of range"));
    }

    #[test]
    fn a_refusal_by_the_kernel_differs_from_a_missing_program() {
        let told = |code| {
            let wanted = "6ms/10ms".parse().unwrap();
            refusal(wanted, &io::Error::from_raw_os_error(code)).map(|why| why.to_string())
        };
        assert!(told(libc::EBUSY).unwrap().contains("refuses 6 ms / 10 ms of a processor"));
        assert!(told(libc::EPERM).unwrap().contains("setcap"));
        assert_eq!(told(libc::ENOENT), None);
    }
}
