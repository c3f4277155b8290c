// SPDX-License-Identifier: MIT
//! Processes and threads from /proc: a list of them, with their parents and processor times.
//!
//! A process is identified by its pid and start time, because pids are reused.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// A process that is running, or that has exited but has not been waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub parent: i32,
    /// Start time, in clock ticks since boot.
    pub started: u64,
    /// It has exited; only its entry is left.
    pub zombie: bool,
    /// Processor time in clock ticks, including that of its children that have exited.
    pub ticks: u64,
}

/// A source of processes: /proc, or a model of it in tests.
pub trait Processes {
    fn look(&self, pid: i32) -> Option<Process>;
    fn all(&self) -> HashMap<i32, Process>;
}

#[derive(Clone, Copy, Debug)]
pub struct Procfs;

impl Processes for Procfs {
    fn look(&self, pid: i32) -> Option<Process> {
        parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn all(&self) -> HashMap<i32, Process> {
        pids().into_iter().filter_map(|pid| Some((pid, self.look(pid)?))).collect()
    }
}

pub fn pids() -> Vec<i32> {
    numbers("/proc")
}

/// The threads of a process; empty if the process has exited.
pub fn threads(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// True if the process exists. A pid from another pid namespace may be 0 or unknown here.
pub fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn numbers(folder: &str) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Parses /proc/PID/stat. Field 2 is the program's name in parentheses; the name can contain spaces and parentheses.
fn parse_stat(stat: &[u8]) -> Option<Process> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    // Fields 3 (state), 4 (parent), 14 to 17 (ticks) and 22 (start).
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let mut number = |skipped| fields.nth(skipped)?.parse::<u64>().ok();
    let ticks = number(9)? + number(0)? + number(0)? + number(0)?;
    let started = number(4)?;
    Some(Process { parent, started, zombie: matches!(state, "Z" | "X"), ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_parentheses_do_not_shift_the_fields() {
        let stat = b"42 (a ) S 7 (b) S 17 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10 0";
        assert_eq!(parse_stat(stat), Some(Process { parent: 17, started: 98765, zombie: false, ticks: 26 }));
        let stat = b"42 (x) Z 17 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10 0";
        assert!(parse_stat(stat).unwrap().zombie);
        assert_eq!(parse_stat(b"42 (x"), None);
        assert_eq!(parse_stat(b"42 (x) S 1"), None);
    }

    #[test]
    fn this_process_is_listed() {
        let me = std::process::id() as i32;
        let process = Procfs.look(me).expect("/proc is mounted");
        assert_eq!(process.parent, std::os::unix::process::parent_id() as i32);
        assert_eq!(Procfs.all().get(&me).map(|one| one.started), Some(process.started));
        assert_eq!(Procfs.look(-1), None);
        assert!(threads(me).contains(&me) && threads(-1).is_empty());
        assert!(exists(me) && !exists(0));
    }
}
