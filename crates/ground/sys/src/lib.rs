// SPDX-License-Identifier: MIT
//! Linux system calls that std lacks. Outside of the X server, these are the project's only direct system calls.
//!
//! | module | contents |
//! |---|---|
//! | `proc` | running processes, from /proc |
//! | `program` | the name of a process's program |
//! | `child` | child processes |
//! | `signals` | sending signals, and receiving them through a file |
//! | `files` | readiness of descriptors, and the process at the other end |
//! | `network` | network namespaces and TUN devices |
//! | `sched` | the kernel's scheduling of a thread |
//! | `sockets` | the kernel's tables of TCP and Unix sockets |
//! | `own` | privileges, user namespace and terminal of this process |
//! | `machine` | hardware, kernel and load of this machine |

mod child;
mod files;
pub mod machine;
mod network;
mod own;
pub mod proc;
mod program;
mod sched;
mod signals;
pub mod sockets;

pub use child::{adopt_orphans, end_with_this_thread, fork, hand_over, isolate, reap, schedule, shared, wait};
pub use files::{peer, peer_pid, poll, readable, ready, select, wait_for_terminal};
pub use network::{Interface, Namespaces, enter_before_exec, network_of, open_tun, unshare};
pub use own::{
    calling_user, effective_ids, has_capabilities, has_keyboard, host_name, may_set_scheduling, monotonic_ns, own_path,
    realtime_offset_ns, terminal_columns, unknown_user,
};
pub use proc::{Process, Processes, Procfs, exists, pids, threads};
pub use program::{last_part, program};
pub use sched::{Attributes, allow_real_time, wake_on_time};
pub use signals::{Signal, Signals, ignore_signals, send, unblock_signals_in};

/// The result of a call that returns -1 on error.
fn checked<N: PartialOrd + Default>(result: N) -> std::io::Result<N> {
    if result < N::default() { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}
