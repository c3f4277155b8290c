// SPDX-License-Identifier: MIT
//! Tests `xqos-wire` as users call it, with the distribution's programs and servers.
//!
//! | file | what |
//! |---|---|
//! | `analyse` | predicted starts, captures from bug reports, and invalid option values |
//! | `cap` | captures of programs and of interfaces, and what they must not contain |
//! | `cap_events` | captures that start and stop around events, and numbered files |
//! | `documents` | commands from the documents, exactly as printed there |
//! | `link` | programs on a slow link, and that no process is left |
//! | `near` | programs behind the proxy that answers locally |
//! | `ssh` | programs behind the proxy on another machine, which in the tests is this machine |
//! | `plot` | plots of a capture, and messages about captures that cannot be drawn |

mod analyse;
mod cap;
mod cap_events;
mod documents;
// Each test program uses only part of the fixture.
#[allow(dead_code)]
#[path = "../../../../qos/xqos/tests/command_line/fixture.rs"]
mod fixture;
mod link;
mod near;
mod plot;
mod ssh;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_xqos-wire");
