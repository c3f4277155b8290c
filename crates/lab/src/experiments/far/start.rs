// SPDX-License-Identifier: MIT
//! Starts a program over each transport, records the time, and installs what near learned at the program's first start.
//!
//! The first command that runs records the time. With `xqos near`, this is near itself, because the user waits for near
//! as well. With ssh, it is the program, because the session may already exist. Near is measured at a program's first
//! start, and at its second: for that, the first one uses a fast link, and the file that near writes is copied to the
//! home folder of each cell. The file contains queries without answers, so the link of the first start does not matter.

use super::site::wait;
use super::{Capture, Case, Line, Program, Route, Site, nx, ssh};
use crate::bench::Bench;
use crate::process::Owned;
use crate::program;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use xqos_wire::link::Side;

const BEGAN: &str = "began";
/// Time limit for a program to end on request and for its proxy to report, with round trips of 0.2 s.
const PATIENCE: Duration = Duration::from_secs(15);
const FIRST_START_LIMIT: Duration = Duration::from_secs(60);
/// The display that ssh forwards in all cells.
const THROUGH_SSH: &str = "ssh";

/// Time of the start, on the clock of captures.
pub(super) fn began_ns(site: &Site) -> Result<u64> {
    let text = fs::read_to_string(site.path(BEGAN)).context("the program was not started")?;
    text.trim().parse().context("the time of the start is not a number")
}

/// Starts the case. The first process returned is the program, or a process that ends together with the program.
pub(super) fn start(site: &Site, case: Case) -> Result<Vec<Owned>> {
    let note = format!("date +%s%N > '{}'", site.path(BEGAN).display());
    site.script("begin", &format!("{note}\nexec \"$@\""))?;
    site.script("xqos-bench", &format!("exec '{}' \"$@\"", program::own("xqos-bench")?.display()))?;
    if case.way.is_near() {
        // `xqos ssh` finds xqos-wire at the program's end by this name.
        site.script("xqos-wire", &format!("{note}\nexec '{}' \"$@\"", program::own("xqos-wire")?.display()))?;
    }
    let begin = site.path("bin/begin").display().to_string();
    let program: Vec<&str> = [begin.as_str()].into_iter().chain(case.program.command().iter().copied()).collect();
    let (side, display) = match case.watched {
        Capture::Local => (Side::Server, site.near_display()),
        Capture::AtProgram | Capture::AtServer => (Side::Client, site.far_display()),
    };
    let near = |options: &[&str]| {
        let mut command = Command::new(site.path("bin/xqos-wire"));
        command.args(["near", "--report"]).args(options).arg("--").args(case.program.command());
        Ok(vec![site.start(side, "program", &display, &mut command)?])
    };
    match case.way {
        Route::Raw => {
            let mut command = Command::new(program[0]);
            Ok(vec![site.start(side, "program", &display, command.args(&program[1..]))?])
        }
        Route::Ssh | Route::SshC => ssh::start(site, &program, case.way == Route::SshC),
        Route::Nx | Route::NxTaint => nx::start(site, &program, case.line, case.way == Route::NxTaint),
        Route::Strict | Route::FirstStrict => near(&[]),
        Route::Relaxed | Route::FirstRelaxed => near(&["--relaxed"]),
        Route::ThroughSsh => {
            let daemon = ssh::daemon(site)?;
            let mut command = Command::new(program::own("xqos-wire")?);
            command.args(["ssh", "--report"]).args(ssh::options(site));
            command.arg(Side::Client.address().to_string()).args(case.program.command());
            Ok(vec![site.start(Side::Server, "program", &site.near_display(), &mut command)?, daemon])
        }
    }
}

/// Asks the process to end, and waits until it has reported.
pub(super) fn let_end(process: &mut Owned) -> Result<()> {
    process.ask_to_end();
    wait(PATIENCE, || Ok(!process.is_running())).map(drop)
}

/// The files that near wrote, one for each program.
#[derive(Debug, Default)]
pub(super) struct StartFiles(BTreeMap<Program, Vec<u8>>);

impl StartFiles {
    /// Starts each program that these cases run through near once.
    pub fn of(bench: &Bench, cases: &[Case]) -> Result<StartFiles> {
        let mut all = BTreeMap::new();
        for program in cases.iter().filter(|case| is_known(case.way)).map(|case| case.program) {
            if let Entry::Vacant(place) = all.entry(program) {
                bench.say(format!("{}: first start through near", program.title()));
                place.insert(learn(program).with_context(|| format!("the first start of {}", program.title()))?);
            }
        }
        Ok(StartFiles(all))
    }

    pub fn install(&self, site: &Site, case: Case) -> Result<()> {
        let Some(bytes) = self.0.get(&case.program).filter(|_| is_known(case.way)) else { return Ok(()) };
        for display in [&site.far_display(), &site.near_display(), THROUGH_SSH] {
            let path = file(site, display, case.program);
            DirBuilder::new().recursive(true).mode(0o700).create(path.parent().context("the file has no folder")?)?;
            fs::write(path, bytes)?;
        }
        Ok(())
    }
}

/// True if near has seen a start of the program.
fn is_known(way: Route) -> bool {
    way.is_near() && !way.is_first()
}

fn file(site: &Site, display: &str, program: Program) -> PathBuf {
    site.path("home/.cache/xqos/near").join(display.replace(':', ".")).join(program.command()[0])
}

fn learn(program: Program) -> Result<Vec<u8>> {
    let case = Case { program, way: Route::Strict, line: Line::KNOWN, watched: Capture::AtServer, turn: 0 };
    let site = Site::open(case.line, 0)?;
    let actor = site.capture(case, FIRST_START_LIMIT)?;
    let mut running = start(&site, case)?;
    site.wait_until_quiet(actor, &mut running[0], FIRST_START_LIMIT)?;
    let_end(&mut running[0])?;
    fs::read(file(&site, &site.far_display(), program)).with_context(|| format!("near: {}", site.complaint("program")))
}
