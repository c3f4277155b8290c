// SPDX-License-Identifier: MIT
//! Processor time from the kernel: what is asked for, what is refused and why, and what a process has.

use crate::error::{Error, Result, asking, bail, refused};
use crate::field::Value;
use serde::Serialize;
use serde_json::json;
use std::fmt;
use std::io;
use xqos_cli::quantity::{Micros, Reservation};
use xqos_sys::{self as sys, Attributes};

/// The kernel refuses shorter budgets and longer periods.
const MIN_BUDGET: Micros = Micros(10);
const MAX_PERIOD: Micros = Micros(4_000_000);

/// A reservation of the kernel (SCHED_DEADLINE).
pub fn attributes(wanted: Reservation) -> Attributes {
    Attributes::deadline(wanted.budget.ns(), wanted.period.ns())
}

/// What the other threads of a program with a reservation get: nearly all of what competes with the usual policy, at once.
const BESIDE: (i32, u64) = (-15, 100_000);

/// CAP_SYS_NICE (linux/capability.h).
const SYS_NICE: u32 = 23;

/// How to get a right: what it is for, how to run the program otherwise, and which capabilities it takes.
pub fn missing_right(what: &str, run: &str, capabilities: &str) -> String {
    let program = sys::own_path();
    format!(
        "this user may not {what}: run {run}, or give the program the right, as in `sudo setcap {capabilities}+ep {program}`"
    )
}

pub fn no_right() -> String {
    missing_right("reserve processor time", "it as root", "cap_sys_nice")
}

/// How to get the right to raise programs.
pub fn to_raise() -> String {
    missing_right("set priorities", "`xqos rules run` as root", "cap_sys_nice")
}

/// Whether the rights of this process allow it to reserve processor time. It is not tried: the kernel takes time to forget it.
pub fn may_reserve() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    (bits >> SYS_NICE) & 1 == 1
}

/// Whether the rights of this process allow it to raise the priority of others, tried on a thread of its own.
pub fn may_raise() -> bool {
    let try_it = || Attributes::real_time(1).give(0).or_else(|_| Attributes::usual(-10, 0).give(0)).is_ok();
    std::thread::spawn(try_it).join().unwrap_or(false)
}

/// Puts the threads of a process ahead that are as usual; the reservation is the main thread's alone, and players draw in
/// another one. A thread that copied it (GLib's pools take over what their creator has) loses it.
pub fn put_threads_ahead(pid: i32) {
    let reserved = Attributes::of(pid).ok().filter(|main| main.reservation().is_some());
    for (thread, now) in other_threads(pid) {
        if now.is_usual() && now.nice() == 0 || Some(now) == reserved {
            // It may have ended meanwhile.
            let _ = Attributes::ahead(BESIDE.0, BESIDE.1).give(thread);
        }
    }
}

/// All threads of a process but its main one, and how each is scheduled.
pub fn other_threads(pid: i32) -> Vec<(i32, Attributes)> {
    let threads = xqos_sys::threads(pid).into_iter();
    threads.filter(|&thread| thread != pid).filter_map(|thread| Some((thread, Attributes::of(thread).ok()?))).collect()
}

/// A kernel would refuse it everywhere.
pub fn check(wanted: Reservation) -> Result<()> {
    if wanted.budget < MIN_BUDGET || wanted.period > MAX_PERIOD {
        bail!(
            "{wanted} of a processor is out of range: a budget of {MIN_BUDGET} and more, a period of {MAX_PERIOD} at most"
        );
    }
    Ok(())
}

/// Why a program was not started: the kernel's refusal of its reservation, or `otherwise`. There is no trying first: the kernel
/// takes time to forget a reservation that was given up, and would refuse the second.
pub fn not_started(wanted: Option<Reservation>, error: io::Error, otherwise: String) -> Error {
    let refusal = wanted.and_then(|wanted| refusal(wanted, &error));
    refusal.unwrap_or_else(|| asking(otherwise)(error))
}

/// `None`: the error is not the reservation's fault.
pub fn refusal(wanted: Reservation, error: &io::Error) -> Option<Error> {
    match error.raw_os_error()? {
        libc::EPERM => Some(Error::Refused(no_right())),
        libc::EBUSY => Some(refused!(
            "the kernel refuses {wanted} of a processor, because too much is promised already: ask for less \
             (/proc/sys/kernel/sched_rt_runtime_us is the limit)"
        )),
        libc::EINVAL => Some(refused!("the kernel refuses {wanted} of a processor: {error}")),
        _ => None,
    }
}

/// How the kernel schedules the main thread of a process, where that is not as usual.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Processor {
    Reserved { budget_ms: f64, period_ms: f64 },
    RealTime { priority: u32 },
    Nice { nice: i32 },
}

impl Processor {
    /// As JSON and in words.
    pub fn value(&self) -> Value {
        Value::Other(json!(self), self.to_string())
    }

    /// `None`: as usual, or not to be found out.
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
    fn a_process_as_usual_is_not_worth_a_word() {
        assert_eq!(Processor::of(i32::MAX), None);
        let reserved = Processor::Reserved { budget_ms: 2.0, period_ms: 10.0 };
        assert_eq!(reserved.to_string(), "2 / 10 ms");
        assert_eq!(serde_json::to_value(&reserved).unwrap()["period_ms"], 10.0);
    }

    #[test]
    fn impossible_reservations_are_told_before_anything_is_started() {
        let wanted = |text: &str| text.parse::<Reservation>().unwrap();
        assert!(check(wanted("1us/10ms")).unwrap_err().to_string().contains("out of range"));
        assert!(check(wanted("1ms/10s")).unwrap_err().to_string().contains("out of range"));
    }

    #[test]
    fn a_refusal_by_the_kernel_is_told_from_a_program_that_cannot_be_started() {
        let told = |code| {
            let wanted = "6ms/10ms".parse().unwrap();
            refusal(wanted, &io::Error::from_raw_os_error(code)).map(|why| why.to_string())
        };
        assert!(told(libc::EBUSY).unwrap().contains("refuses 6 ms / 10 ms of a processor"));
        assert!(told(libc::EPERM).unwrap().contains("setcap"));
        assert_eq!(told(libc::ENOENT), None);
    }
}
