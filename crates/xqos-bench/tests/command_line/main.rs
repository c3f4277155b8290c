// SPDX-License-Identifier: MIT
//! `xqos-bench` as users call it.
//!
//! | file | what |
//! |---|---|
//! | `bench` | benchmarks that are interrupted, go on, and miss a program |
//! | `manual` | man pages of its commands |
//! | `grid` | one corner of the grid of slow links, and that it goes on |
//! | `near` | one start behind `xqos near`, and the work after it |
//!
//! The module is found through XQOS_MODULE, or in target/release.

mod bench;
// Each of the programs needs a part of it.
#[allow(dead_code)]
#[path = "../../../xqos/tests/command_line/fixture.rs"]
mod fixture;
mod grid;
mod manual;
mod near;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_xqos-bench");
