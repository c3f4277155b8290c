// SPDX-License-Identifier: MIT
//! /usr/bin/Xwayland itself, for compositors whose path to it is fixed: Debian's package keeps the diverted one up to date.

use super::files;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};

pub const PROGRAM: &str = "/usr/bin/Xwayland";
const DIVERTED: &str = "/usr/bin/Xwayland.distrib";

/// Whether our script stands in its place.
pub fn is_in_force() -> bool {
    files::is_ours(Path::new(PROGRAM)) && Path::new(DIVERTED).exists()
}

/// Moves Xwayland aside and puts the script in its place; all of it or nothing.
pub fn install(module: &Path) -> Result<()> {
    if !Path::new(PROGRAM).exists() {
        bail!("{PROGRAM} is not installed");
    }
    divert(&["--add"])?;
    files::write(Path::new(PROGRAM), &files::wrapper(module, Path::new(DIVERTED)), true)
        .inspect_err(|_| _ = divert(&["--remove"]))
}

pub fn remove() -> Result<()> {
    // dpkg-divert moves nothing over a file.
    std::fs::remove_file(PROGRAM).with_context(|| format!("cannot remove the script at {PROGRAM}"))?;
    divert(&["--remove"])
}

fn divert(what: &[&str]) -> Result<()> {
    let mut command = Command::new("dpkg-divert");
    command.args(["--local", "--rename", "--divert", DIVERTED]).args(what).arg(PROGRAM);
    let output =
        command.stdin(Stdio::null()).output().context("dpkg-divert cannot be run: this is for Debian and its kin")?;
    if !output.status.success() {
        bail!("dpkg-divert: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
