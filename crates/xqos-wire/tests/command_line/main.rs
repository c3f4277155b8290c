// SPDX-License-Identifier: MIT
//! `xqos-wire` as users call it, with programs and servers as they come from the distribution.
//!
//! | file | what |
//! |---|---|
//! | `analyse` | starts behind a proxy and over other links, and values that are refused |
//! | `cap` | captures of programs and of interfaces, with what they are to leave out |
//! | `documents` | commands of the documents, as they stand there |
//! | `link` | programs on a slow link, and that nothing is left of it |
//! | `near` | programs behind the proxy that answers in the server's place |
//! | `ssh` | the same on another machine, which is this one |
//! | `plot` | plots of a capture, and what cannot be drawn |

mod analyse;
mod cap;
mod documents;
// Each of the programs needs a part of it.
#[allow(dead_code)]
#[path = "../../../xqos/tests/command_line/fixture.rs"]
mod fixture;
mod link;
mod near;
mod plot;
mod ssh;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_xqos-wire");
