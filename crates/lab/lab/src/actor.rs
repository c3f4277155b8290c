// SPDX-License-Identifier: MIT
//! Separate processes that experiments need, so that the kernel and `xqos boost` treat them as any other program.
//!
//! An actor is this program, started again as `xqos bench act ROLE`, where the role is JSON. An actor that draws prints
//! `{"window": ID}` when it is ready, and ends on SIGTERM. Scripts of experiments also start actors.

mod answerer;
mod background;
mod long;

pub use long::Long;

use crate::canvas::ScreenArea;
use crate::input::ProgramWindow;
use crate::process::Owned;
use crate::program;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use x11rb::protocol::xproto::Window;
use xqos_wire::analysis::Analysis;
use xqos_wire::link::log::LogReader;
use xqos_wire::session::{self, Session};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Agreement,
    /// Redraws after each Expose and each key press, once it has used this much processor time.
    Answerer {
        work_us: u32,
        place: ScreenArea,
    },
    /// Shows an image of 3.4 MB.
    Background,
    /// Sends one long request after another, of this kind.
    Long {
        kind: Long,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Ready {
    window: Window,
}

/// Starts an actor, and returns when it is ready. The actor ends when the result is dropped.
pub(crate) fn start(display: &str, role: Role) -> Result<ProgramWindow> {
    const GRACE: Duration = Duration::from_millis(500);
    let mut command = Command::new(program::own("xqos-bench")?);
    command.args(["act", &serde_json::to_string(&role)?]).env("DISPLAY", display);
    let (process, line) = Owned::start_until_line(&mut command, GRACE)?;
    Ok(ProgramWindow { process, window: serde_json::from_str::<Ready>(&line)?.window })
}

/// Performs a role, for `xqos bench act`. The process gets SIGTERM when its parent ends.
pub fn perform(role: &str) -> Result<()> {
    match serde_json::from_str(role).context("an actor's role must be JSON that this program wrote")? {
        Role::Agreement => agreement(),
        Role::Answerer { work_us, place } => answerer::perform(Duration::from_micros(work_us.into()), place),
        Role::Background => background::perform(),
        Role::Long { kind } => long::perform(kind),
    }
}

fn say_ready(window: Window) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(&Ready { window })?)?;
    Ok(out.flush()?)
}

/// Files in the working folder.
const CAPTURE: &str = "start.pcapng";
const LOG: &str = "queue.log";

/// Compares a capture with the log of the emulated link: the percentage of the time for which both agree on whether the
/// link was busy, in the worse direction.
fn agreement() -> Result<()> {
    let mut analysis = Analysis::default();
    session::read(Path::new(CAPTURE), Session::new(vec![&mut analysis]))?;
    if let Some(agreed) = xqos_wire::analysis::agreement::agreement(&analysis, LogReader::open(Path::new(LOG))?)? {
        println!("agreement {}", 100.0 * agreed.requests.min(agreed.replies));
    }
    Ok(())
}
