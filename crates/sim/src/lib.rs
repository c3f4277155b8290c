// SPDX-License-Identifier: MIT
//! A server that is not there: virtual time, the real scheduler, and the records that a real server writes.
//!
//! | file | what |
//! |---|---|
//! | `workload` | what clients ask for, from a trace |
//! | `scenario` | what clients ask for, from a file that somebody wrote |
//! | `generator` | makes the bursts of either, one at a time |
//! | `server` | serves them under a policy and reservations |
//! | `stock` | the choice of today's X servers, for policy `stock` |
//! | `outcome` | what came of a scenario: response times, shares, admission |
//! | `check` | gives a scheduler the very calls of a trace, and compares its decisions |
//!
//! The same workload gives the same records, on any machine.

#![forbid(unsafe_code)]

pub mod check;
mod generator;
pub mod outcome;
pub mod scenario;
pub mod server;
mod stock;
pub mod workload;

pub use generator::Dice;
