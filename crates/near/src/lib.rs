// SPDX-License-Identifier: MIT
//! What a proxy beside an X client answers in the server's place, and how it stays right.
//!
//! A program that starts waits for dozens to hundreds of replies, one after another; over a link of 100 ms each of them is
//! a fifth of a second. Most of the answers are known beside the program: they never change, or nobody has said that they
//! did. [`Near`] is one program's connection: bytes of the program and of the server go in, bytes for both come out. It
//! reads no clock and does no I/O.
//!
//! ```text
//! program ──requests──▶ Near ──requests, or NoOperation in their place──▶ X server
//!         ◀──answers───   │  ◀──replies, events, errors──────────────────
//!                         ▼
//!                       Store   answers of one server, for all programs beside it
//!                         ▲
//!                       Scout ──the questions of the program's last start──▶ X server
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`connection`] | one program's connection, both ways |
//! | [`talk`] | what both ways have in common, and what is compared with `--verify` |
//! | [`scout`] | the proxy's own connection: asks ahead, hears of changes, keeps the server from a reset |
//! | [`store`] | the answers that are known, and until when |
//! | [`dialogue`] | from a request to the question that it asks, by what was said before on its connection |
//! | [`memory`] | what a program asked, for its next start |
//! | [`report`] | what was asked, answered and saved |
//!
//! The invariants, which `tests/proxy/random.rs` and the fuzz target `near` hold on to:
//!
//! - Every request of the program reaches the server, or a NoOperation in its place, in order and once.
//! - Every request with a reply is answered once, in order. Numbers that the program hears never fall.
//! - An answer is given early only where the request before it has had its reply (strict order), so that no event or error
//!   of before is still to come; or, in relaxed order, where what came before concerns the program's own resources.
//! - What bytes lie about closes their connection. Memory is bounded whatever they say.

#![forbid(unsafe_code)]

mod bytes;
pub mod connection;
pub mod dialogue;
mod due;
mod edit;
pub mod memory;
mod numbers;
mod opcodes;
mod reply;
pub mod report;
mod request;
pub mod scout;
pub mod setup;
pub mod store;
pub mod talk;
mod windows;

pub use connection::{Fault, Near};
pub use memory::Memory;
pub use report::Report;
pub use scout::Scout;
pub use store::Store;
pub use talk::Settings;
