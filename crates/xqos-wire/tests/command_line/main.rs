// SPDX-License-Identifier: MIT
//! Tests `xqos-wire` as users call it, with programs and servers of the distribution.
//!
//! | file | what |
//! |---|---|
//! | `analyse` | predicted starts, faulty captures, and values that are refused |
//! | `cap` | captures of programs and of interfaces, and what they must not contain |
//! | `documents` | commands of the documents, as they stand there |
//! | `link` | programs on a slow link, and that nothing is left of it |
//! | `near` | programs behind the proxy that answers locally |
//! | `ssh` | the same on another machine, which is this one |
//! | `plot` | plots of a capture, and what cannot be drawn |

mod analyse;
mod cap;
mod documents;
// Each test program uses only part of the fixture.
#[allow(dead_code)]
#[path = "../../../xqos/tests/command_line/fixture.rs"]
mod fixture;
mod link;
mod near;
mod plot;
mod ssh;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_xqos-wire");
