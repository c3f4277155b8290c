// SPDX-License-Identifier: MIT
//! A proxy that runs next to an X client and answers some requests in place of the X server.
//!
//! While a program starts, it waits for dozens to hundreds of replies, one after another; over a link with 100 ms of
//! one-way delay, each of these round trips takes 200 ms. The proxy can give most of the answers itself: they never
//! change, or the server has reported no change. [`Near`] handles one program's connection: it takes bytes from the
//! program and from the server and produces bytes for both. It reads no clock and does no I/O.
//!
//! ```text
//! program ──requests──▶ Near ──requests, or NoOperation in their place──▶ X server
//!         ◀──answers───   │  ◀──replies, events, errors──────────────────
//!                         ▼
//!                       Store   answers of one server, for all programs of the proxy
//!                         ▲
//!                       Scout ──the questions that the program will ask──▶ X server
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`connection`] | one program's connection, both directions |
//! | [`shared`] | the state that both directions share, and the comparisons of `--verify` |
//! | [`scout`] | the proxy's own connection: prefetches answers and receives change events |
//! | [`store`] | the known answers, and when they become invalid |
//! | [`context`] | the connection state that decides what a request asks |
//! | [`memory`] | the questions of a connection |
//! | [`questions`] | the questions of a program's last start, or of a toolkit's programs, as text |
//! | [`report`] | counts of questions, answers and saved round trips |
//!
//! Invariants, checked by `tests/proxy/random.rs` and by the fuzz target `near`:
//!
//! - Each request from the program reaches the server exactly once and in order, or is replaced by one NoOperation.
//! - Each request with a reply gets exactly one answer, in order. Sequence numbers that the program sees never
//!   decrease.
//! - In strict order, the proxy answers early only if the previous request has been answered, so that no earlier event
//!   or error can follow. In relaxed order, it also answers after one-way requests on the program's own resources.
//! - Malformed lengths or message codes close the connection. Memory use is bounded for any input.

#![forbid(unsafe_code)]

mod bytes;
pub mod connection;
pub mod context;
mod edit;
pub mod memory;
mod opcodes;
mod pending;
pub mod questions;
mod reply;
pub mod report;
mod request;
pub mod scout;
mod sequence;
pub mod setup;
pub mod shared;
pub mod store;
mod windows;

pub use connection::{Fault, Near};
pub use memory::AskedQuestions;
pub use questions::Questions;
pub use report::NearReport;
pub use scout::Scout;
pub use shared::NearSettings;
pub use store::Store;
