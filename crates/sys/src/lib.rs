// SPDX-License-Identifier: MIT
//! What all programs ask of Linux and std has no call for; outside of the X server, the only system calls of our own.
//!
//! | module | what |
//! |---|---|
//! | `process` | the processes that there are, by /proc |
//! | `program` | the name of a process's program |
//! | `sched` | how the kernel schedules a thread |

mod process;
mod program;
mod sched;

pub use process::{Process, Processes, Procfs, exists, pids, threads};
pub use program::{last_part, program};
pub use sched::Attributes;
