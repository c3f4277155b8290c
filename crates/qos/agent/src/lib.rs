// SPDX-License-Identifier: MIT
//! The work of the xqos commands outside the X server: the rules daemon, `auto`, `run`, `boost`, the exporter, the
//! recorder of long waits, the observation of servers without xqos, and the set-up of Xwayland.
//!
//! The commands in crates/qos/xqos parse the command line, start this work and print its results. They also share code
//! from this crate: the session with a server, descriptions of clients, the table of their fields, and samples.

#![forbid(unsafe_code)]

pub mod admission;
pub mod amount;
pub mod attach;
pub mod auto;
pub mod boost;
pub mod client;
pub mod displays;
mod error;
pub mod exporter;
pub mod feed;
pub mod field;
pub mod holder;
pub mod host;
pub mod http;
pub mod pick;
pub mod processor;
pub mod raised;
pub mod recording;
pub mod rules;
pub mod run;
pub mod sample;
pub mod session;
pub mod why;
pub mod windows;
pub mod xwayland;

pub use error::{Error, Result};

// The tests of crates/qos/xqos share the fixture, so the fixture must refer to this crate by its name.
#[cfg(test)]
extern crate self as xqos_agent;
#[cfg(test)]
#[path = "../tests/fixture/client.rs"]
mod fixture;
