// SPDX-License-Identifier: MIT
//! What all programs ask of Linux and std has no call for; outside of the X server, the only system calls of our own.
//!
//! | module | what |
//! |---|---|
//! | `process` | the processes that there are, by /proc |
//! | `program` | the name of a process's program |
//! | `child` | processes that we start |
//! | `signals` | signals, as a file and sent |
//! | `files` | which descriptors are readable, and who is at the other end |
//! | `network` | network namespaces and TUN devices |
//! | `sched` | how the kernel schedules a thread |
//! | `sockets` | the table of Unix sockets, by netlink |
//! | `own` | rights, terminal and machine of this process |

mod child;
mod files;
mod network;
mod own;
mod process;
mod program;
mod sched;
mod signals;
mod sockets;

pub use child::{adopt_orphans, end_with_this_thread, fork, hand_over, reap, schedule, shared, stand_alone, wait};
pub use files::{peer_pid, poll, readable, ready};
pub use network::{Interface, New, enter_before_exec, open_tun, unshare};
pub use own::{
    calling_user, effective_ids, has_capabilities, host_name, own_path, realtime_offset_ns, terminal_columns,
};
pub use process::{Process, Processes, Procfs, exists, pids, threads};
pub use program::{last_part, program};
pub use sched::{Attributes, allow_real_time, be_punctual};
pub use signals::{Signal, Signals, ignore_signals, send, unblock_signals_in};
pub use sockets::connected_sockets;

/// What a call says that has -1 for an error.
fn checked(result: libc::c_int) -> std::io::Result<libc::c_int> {
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}
