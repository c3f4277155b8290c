// SPDX-License-Identifier: MIT
//! Runs `xqos boost` for an experiment while it measures.

use crate::process::Owned;
use crate::program;
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::Duration;

/// Starts `xqos boost` and returns when it is ready. If this fails, the error includes its message. If `expose` is
/// zero, only the server is boosted.
pub fn start(display: &str, expose: Duration) -> Result<Owned> {
    let mut command = Command::new(program::own("xqos")?);
    let limit = if expose.is_zero() { "off".to_owned() } else { format!("{}ms", expose.as_millis()) };
    command.args(["boost", "--expose", &limit, "--display", display]);
    let started = Owned::start_until_line(&mut command, Duration::from_secs(1));
    let (process, line) = started.context("xqos boost did not start")?;
    ensure!(line.trim() == "ready", "xqos boost did not start: {line}");
    Ok(process)
}
