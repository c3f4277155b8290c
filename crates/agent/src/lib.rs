// SPDX-License-Identifier: MIT
//! What runs for long beside an X server: the rules daemon, `auto`, the exporter, and the watch of servers without xqos.
//!
//! The commands of crates/xqos start it and present what it finds. What both need is here too: the session with a server, its
//! clients in words, the table of their fields and samples of them.

#![forbid(unsafe_code)]

pub mod admission;
pub mod attach;
pub mod auto;
pub mod client;
pub mod displays;
mod error;
pub mod exporter;
pub mod feed;
pub mod field;
pub mod http;
pub mod processor;
pub mod raised;
pub mod requests;
pub mod rules;
pub mod sample;
pub mod session;
pub mod windows;

pub use error::{Error, Result};

// The fixture is shared with the tests of crates/xqos, which know this crate by its name.
#[cfg(test)]
extern crate self as xqos_agent;
#[cfg(test)]
#[path = "../tests/fixture/client.rs"]
mod fixture;
