// SPDX-License-Identifier: MIT
//! How a program is started, each way; and when.
//!
//! Whatever is started first writes down the time: `xqos near` counts from its own start, since a person waits for that
//! too, and ssh from the program's, since its session may be there already.

use super::case::{Case, Way};
use crate::experiments::far::{Program, Site, nx, ssh};
use crate::process::Owned;
use crate::program;
use anyhow::{Context, Result};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xqos_wire::link::Side;

const BEGAN: &str = "began";
/// For a program that is asked to end, and a proxy that reports then: round trips of a fifth of a second.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The names under which things are started.
pub(super) fn scripts(site: &Site) -> Result<()> {
    let note = format!("date +%s%N > '{}'", site.path(BEGAN).display());
    site.script("begin", &format!("{note}\nexec \"$@\""))?;
    // xqos ssh looks for this name there.
    site.script("xqos-wire", &format!("{note}\nexec '{}' \"$@\"", program::own("xqos-wire")?.display()))
}

/// By the clock of captures.
pub(super) fn began_ns(site: &Site) -> Result<u64> {
    let text = fs::read_to_string(site.path(BEGAN)).context("the program was not started")?;
    text.trim().parse().context("a time is a number")
}

/// The program, or what it ends with, is the first.
pub(super) fn start(site: &Site, case: Case) -> Result<Vec<Owned>> {
    let begin = site.path("bin/begin").display().to_string();
    let program: Vec<&str> = [begin.as_str()].into_iter().chain(case.program.command().iter().copied()).collect();
    let side = if case.is_local() { Side::Server } else { Side::Client };
    match case.way {
        Way::Raw => {
            let mut command = Command::new(program[0]);
            command.args(&program[1..]).env("DISPLAY", display(site, side));
            Ok(vec![site.start(side, "program", &mut command)?])
        }
        Way::Ssh => ssh::start(site, &program, true),
        Way::Nx => nx::start(site, &program, case.line(), true),
        Way::Strict => Ok(vec![near(site, side, case.program, &[])?]),
        Way::Relaxed => Ok(vec![near(site, side, case.program, &["--relaxed"])?]),
        Way::ThroughSsh => through_ssh(site, case.program),
    }
}

/// The server's, as that side calls it.
fn display(site: &Site, side: Side) -> String {
    if side == Side::Server { site.near_display() } else { site.far_display() }
}

pub(super) fn near(site: &Site, side: Side, program: Program, options: &[&str]) -> Result<Owned> {
    let mut command = Command::new(site.path("bin/xqos-wire"));
    command.args(["near", "--report"]).args(options).arg("--").args(program.command());
    site.start(side, "program", command.env("DISPLAY", display(site, side)))
}

fn through_ssh(site: &Site, program: Program) -> Result<Vec<Owned>> {
    let daemon = ssh::daemon(site)?;
    let mut command = Command::new(program::own("xqos-wire")?);
    command.args(["ssh", "--report"]).args(ssh::options(site));
    command.arg(Side::Client.address().to_string()).args(program.command());
    let client = site.start(Side::Server, "program", command.env("DISPLAY", site.near_display()))?;
    Ok(vec![client, daemon])
}

/// Asks it to end, and waits until it has said what it has to say.
pub(super) fn let_end(process: &mut Owned) {
    process.ask_to_end();
    let end = Instant::now() + PATIENCE;
    while process.is_running() && Instant::now() < end {
        sleep(LOOK_AGAIN);
    }
}
