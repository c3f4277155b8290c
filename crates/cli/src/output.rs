// SPDX-License-Identifier: MIT
//! Words to the user: results on standard output, everything else on standard error.
//!
//! A reader that goes away (`xqos list | head`) is no error: whatever is left to say is dropped quietly.

use crate::sys;
use anyhow::{Context, Result};
use serde::Serialize;
use std::io::{ErrorKind, Write};

/// Writes `text` as it is.
pub fn print(text: &str) -> Result<()> {
    is_read(text).map(|_| ())
}

/// Writes `text` as it is. False: the reader has gone away.
pub fn is_read(text: &str) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).context("cannot write to standard output"),
    }
}

/// One line on standard output.
pub fn line(text: &str) -> Result<()> {
    print(&format!("{text}\n"))
}

/// A value as JSON, indented: it is read by people as well.
pub fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// As wide as the terminal, or as COLUMNS; `None`, any width, for a file or a pipe.
pub fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.filter(|&columns| columns > 0).or_else(sys::terminal_columns)
}

/// One line on standard error, marked as ours among those of a program that we started.
pub fn note(text: &str) {
    // Nobody is left to be told when even this fails.
    let _ = writeln!(std::io::stderr().lock(), "xqos: {text}");
}
