//! A server that is not there: virtual time, the real scheduler, and the records that a real server writes.
//!
//! | file | what |
//! |---|---|
//! | `workload` | what clients ask for, from a trace |
//! | `server` | serves a workload under a policy and reservations |
//! | `check` | gives a scheduler the very calls of a trace, and compares its decisions |
//!
//! The same workload gives the same records, on any machine.

#![forbid(unsafe_code)]

pub mod check;
pub mod server;
pub mod workload;
