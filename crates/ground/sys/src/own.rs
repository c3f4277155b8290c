// SPDX-License-Identifier: MIT
//! This process: its privileges, user namespace, program and terminal.

use rustix::fs::getxattr;
use rustix::process::{getegid, geteuid, getpgrp};
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use rustix::thread::{CapabilitySet, capabilities};
use rustix::time::{ClockId, clock_gettime};
use std::{fs, io};

/// CLOCK_REALTIME minus CLOCK_MONOTONIC, in nanoseconds.
pub fn realtime_offset_ns() -> i64 {
    let read = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    read(ClockId::Realtime) - read(ClockId::Monotonic)
}

/// The time by CLOCK_MONOTONIC, which traces use.
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The user that called sudo, otherwise the effective user.
pub fn calling_user() -> u32 {
    let by_sudo = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    by_sudo.unwrap_or_else(|| effective_ids().0)
}

/// The path of this program, for messages that suggest a command.
pub fn own_path() -> String {
    std::env::current_exe().map_or_else(|_| "xqos".to_owned(), |path| path.display().to_string())
}

/// The width of the terminal at standard output in columns, if there is a terminal.
pub fn terminal_columns() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// True if standard input is a terminal whose keys this process gets. A process in the background is stopped when it
/// reads from the terminal.
pub fn has_keyboard() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

pub fn effective_ids() -> (u32, u32) {
    (geteuid().as_raw(), getegid().as_raw())
}

/// True if this process may set any scheduling (CAP_SYS_NICE).
pub fn may_set_scheduling() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE))
}

/// True if the file has capabilities; the dynamic loader then treats it like a setuid program.
pub fn has_capabilities(path: &std::path::Path) -> bool {
    getxattr(path, "security.capability", &mut [0; 64]).is_ok_and(|bytes| bytes > 0)
}

/// The id that stands for all users without an id in this process's user namespace; `None` if every user has one.
pub fn unknown_user() -> Option<u32> {
    /// The default of `overflowuid` in the kernel.
    const OVERFLOW: u32 = 65534;
    let overflow = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    let overflow = overflow.and_then(|text| text.trim().parse().ok()).unwrap_or(OVERFLOW);
    // Without /proc the user namespace is unknown, so assume that this id stands for unknown users.
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    (!is_mapped(&map, overflow)).then_some(overflow)
}

/// Returns true if this uid_map (user_namespaces(7)) maps the given user id.
fn is_mapped(map: &str, uid: u32) -> bool {
    map.lines().any(|line| {
        let mut words = line.split_ascii_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) = (words.next(), words.next(), words.next()) else {
            return false;
        };
        (first..first.saturating_add(count)).contains(&uid.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_number_in_the_namespace_is_not_mapped() {
        const ALL: &str = "         0          0 4294967295\n";
        const CONTAINER: &str = "         0     100000      65536\n";
        const ROOTLESS: &str = "         0       1000          1\n         1     100000       1000\n";
        assert_eq!([ALL, CONTAINER, ROOTLESS, ""].map(|map| is_mapped(map, 65534)), [true, true, false, false]);
        assert!(is_mapped(ROOTLESS, 1000) && !is_mapped(ROOTLESS, 1001));
        assert!(!is_mapped("no map", 0));
    }
}
