// SPDX-License-Identifier: MIT
//! A simulated X server: virtual time, the real scheduler, and the records that a real server writes.
//!
//! | file | content |
//! |---|---|
//! | `workload` | client requests taken from a trace |
//! | `scenario` | client requests described by a file |
//! | `generator` | generates the bursts of both, one at a time |
//! | `server` | serves the clients under a policy and reservations |
//! | `stock` | a model of the scheduler of today's X servers, for policy `stock` |
//! | `outcome` | results of a scenario: response times, shares, admission |
//! | `check` | replays the facts of a trace into a scheduler and compares decisions |
//!
//! The same workload gives the same records on any machine.

#![forbid(unsafe_code)]

pub mod check;
mod generator;
pub mod outcome;
pub mod scenario;
pub mod server;
mod stock;
pub mod workload;

pub use generator::Dice;
