// SPDX-License-Identifier: MIT
//! Tests `xqos-bench` as users call it.
//!
//! | file | what |
//! |---|---|
//! | `bench` | interrupted runs, resumed runs, missing programs |
//! | `manual` | man pages of its commands |
//! | `grid` | one cell of the grid of slow links, and resuming a grid |
//! | `near` | one program start behind `xqos near`, over a slow link |
//!
//! The tests take the module from XQOS_MODULE, or from target/release.

mod bench;
// Each test program uses only part of the fixture.
#[allow(dead_code)]
#[path = "../../../../qos/xqos/tests/command_line/fixture.rs"]
mod fixture;
mod grid;
mod manual;
mod near;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_xqos-bench");
