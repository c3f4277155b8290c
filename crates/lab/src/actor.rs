// SPDX-License-Identifier: MIT
//! Separate processes that experiments need, so that the kernel and `xqos boost` treat them as any other program.
//!
//! An actor is this program, started again as `xqos bench act ROLE`. The role and the results that it prints are JSON.
//! When it is ready, it first prints `{"window": ID}`. It ends on SIGTERM or when its role is finished.

mod answerer;
mod background;
mod capture;
mod long;
mod typist;

pub(crate) use capture::{Captured, FILE as CAPTURE_FILE, now_ns as capture_now_ns};
pub use long::Long;
pub(crate) use typist::ResponseTimes;
pub use typist::{KeyOrButton, Stroke, Strokes};

use crate::canvas::Place;
use crate::process::Owned;
use crate::program;
use anyhow::{Context, Result, anyhow, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;
use x11rb::protocol::xproto::Window;

/// A task that an actor performs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Redraws after each Expose and each key press, once it has used this much processor time.
    Answerer { work_us: u32, place: Place },
    /// Shows an image of 3.4 MB.
    Background,
    /// Captures X traffic on the loopback interface or on the link. The capture stops when a window has been mapped and
    /// no packet has arrived for `silence_ms`, or else `limit_ms` after the first packet.
    Capture { on_loopback: bool, silence_ms: u64, limit_ms: u64 },
    /// Sends one long request after another, of this kind.
    Long { kind: Long },
    /// Presses keys and reports when the screen changed. A stroke is over when nothing has changed for `silence_ms`.
    Typist { strokes: Strokes, silence_ms: u64 },
}

/// A running actor. Its process ends when this is dropped.
#[derive(Debug)]
pub struct Actor {
    process: Owned,
    said: BufReader<ChildStdout>,
    /// Zero if the actor has no window.
    pub window: Window,
}

#[derive(Debug, Serialize, Deserialize)]
struct Ready {
    window: Window,
}

impl Actor {
    pub fn start(display: &str, role: Role) -> Result<Actor> {
        Actor::start_by(Command::new(program::own("xqos-bench")?), display, role)
    }

    /// Appends the actor's arguments to `command` and starts the actor with it.
    pub fn start_by(mut command: Command, display: &str, role: Role) -> Result<Actor> {
        const GRACE: Duration = Duration::from_millis(500);
        command.args(["act", &serde_json::to_string(&role)?]).env("DISPLAY", display);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Owned::start(&mut command, GRACE)?;
        let said = process.pipes().stdout.take().ok_or_else(|| anyhow!("an actor has no output"))?;
        let mut actor = Actor { process, said: BufReader::new(said), window: 0 };
        actor.window = actor.hear::<Ready>()?.window;
        Ok(actor)
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    pub fn see_running(&mut self, name: &str) -> Result<()> {
        self.process.see_running(name)
    }

    /// Reads the next line of JSON that the actor prints.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        if line.is_empty() {
            bail!("{}", self.process.complaint());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

/// Performs a role, for `xqos bench act`. The process gets SIGTERM when its parent ends.
pub fn perform(role: &str) -> Result<()> {
    match serde_json::from_str(role).context("an actor's role must be JSON that this program wrote")? {
        Role::Answerer { work_us, place } => answerer::perform(Duration::from_micros(work_us.into()), place),
        Role::Background => background::perform(),
        Role::Capture { on_loopback, silence_ms, limit_ms } => capture::perform(on_loopback, silence_ms, limit_ms),
        Role::Long { kind } => long::perform(kind),
        Role::Typist { strokes, silence_ms } => typist::perform(strokes, Duration::from_millis(silence_ms)),
    }
}

fn say<T: Serialize>(what: &T) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(what)?)?;
    Ok(out.flush()?)
}
