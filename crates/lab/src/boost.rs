// SPDX-License-Identifier: MIT
//! Runs `xqos boost` for an experiment while it measures.

use crate::process::Owned;
use crate::program;
use anyhow::{Result, bail};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A running `xqos boost`, which ends when this is dropped.
#[derive(Debug)]
pub struct Boost {
    _process: Owned,
}

impl Boost {
    /// Starts `xqos boost` and returns when it is ready. If this fails, the error includes its message. If `expose` is
    /// zero, only the server is boosted.
    pub fn start(display: &str, expose: Duration) -> Result<Boost> {
        let mut command = Command::new(program::own("xqos")?);
        let limit = if expose.is_zero() { "off".to_owned() } else { format!("{}ms", expose.as_millis()) };
        command.args(["boost", "--expose", &limit, "--display", display]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Owned::start(&mut command, Duration::from_secs(1))?;
        let mut said = String::new();
        if let Some(output) = process.pipes().stdout.take() {
            BufReader::new(output).read_line(&mut said)?;
        }
        if said.trim() != "ready" {
            bail!("xqos boost did not start: {}", process.complaint());
        }
        Ok(Boost { _process: process })
    }
}
