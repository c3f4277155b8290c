// SPDX-License-Identifier: MIT
//! What this process is: its rights, its program, its terminal and its machine.

use rustix::fs::getxattr;
use rustix::process::{getegid, geteuid};
use rustix::termios::tcgetwinsize;
use rustix::time::{ClockId, clock_gettime};
use std::io;

/// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
pub fn realtime_offset_ns() -> i64 {
    let read = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    read(ClockId::Realtime) - read(ClockId::Monotonic)
}

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The user who called sudo, else the one whose rights this process has.
pub fn calling_user() -> u32 {
    let by_sudo = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    by_sudo.unwrap_or_else(|| effective_ids().0)
}

/// The path of this program, for advice that names it.
pub fn own_path() -> String {
    std::env::current_exe().map_or_else(|_| "xqos".to_owned(), |path| path.display().to_string())
}

/// Columns of the terminal at standard output, if there is one.
pub fn terminal_columns() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// The user and the group whose rights this process has.
pub fn effective_ids() -> (u32, u32) {
    (geteuid().as_raw(), getegid().as_raw())
}

/// Whether the file carries capabilities, by which the loader treats it like a setuid program.
pub fn has_capabilities(path: &std::path::Path) -> bool {
    getxattr(path, "security.capability", &mut [0; 64]).is_ok_and(|bytes| bytes > 0)
}
