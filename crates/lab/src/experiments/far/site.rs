// SPDX-License-Identifier: MIT
//! A link with an X server at its far end and the program at the near end. Each cell has its own site, which is removed
//! completely afterwards.
//!
//! ```text
//! the program's end, 10.0.0.2            10.0.0.1, the server's end
//!   program ─ raw ──────────── link0 ════ link0 ──────── Xvfb
//!   program ─ lo ─ sshd ────── link0 ════ link0 ── ssh ─ Xvfb
//!   program ─ lo ─ nxproxy ─── link0 ════ link0 ── nxproxy ─ Xvfb
//! ```
//!
//! The server listens only on TCP inside the two namespaces, where no other process can reach it, so it needs no
//! cookie. It has no MIT-SHM: both ends are one machine, and pixels would bypass the link.

use super::{Case, Line};
use crate::actor::{Actor, Captured, Role, Strokes};
use crate::folder::Folder;
use crate::process::Owned;
use crate::program;
use anyhow::{Context, Result, bail};
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use xqos_wire::link::{self, Link, Settings, Side};
use xqos_wire::predict::grid;

/// Display of Xvfb in the first slot. Its TCP socket is in its own namespace, so another server may use the same number
/// outside.
const FIRST_DISPLAY: u16 = 10;
const SERVER_ERRORS: &str = "server.errors";
const GRACE: Duration = Duration::from_millis(500);
/// Time limit for a proxy's handshake and for the program to load, until the first X packet.
const START: Duration = Duration::from_secs(60);
/// Time limit for a server to listen. Two nxproxy processes may have to shake hands over 10 kb/s.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The two ends of the link.
#[derive(Debug)]
pub(super) struct Site {
    // Drop order: the link ends everything that runs on it, and the folder is removed last.
    server: Owned,
    link: Link,
    folder: Folder,
    slot: usize,
}

impl Site {
    pub fn open(line: Line, slot: usize) -> Result<Site> {
        let folder = Folder::create()?;
        for name in ["bin", "home", "home/run"] {
            // Programs refuse a runtime directory that other users can read.
            fs::DirBuilder::new().mode(0o700).create(folder.path(name))?;
        }
        let shape = grid::link(line.kbit_per_s, line.delay_us);
        let settings = Settings { shape, log: Some(folder.path("queue.log")), ..Settings::default() };
        let link = Link::start(&settings)?;
        let mut command = Command::new(program::find("Xvfb")?);
        // Each slot has its own number: servers with the same number would write their keyboard maps to one file.
        let display = display(slot);
        command.args([&format!(":{display}"), "-nolock", "-displayfd", "1", "-ac", "-noreset"]);
        command.args(["-listen", "tcp", "-nolisten", "unix", "-nolisten", "local"]);
        command.args(["-screen", "0", "1280x1024x24", "-extension", "MIT-SHM"]);
        let errors = fs::File::create(folder.path(SERVER_ERRORS))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).env_remove("LD_PRELOAD");
        let mut server = Owned::start(link.command_in(Side::Server, &mut command), GRACE)?;
        let said = server.pipes().stdout.take().context("Xvfb has no output")?;
        let mut number = String::new();
        // If Xvfb dies, it closes its end of the pipe.
        BufReader::new(said).read_line(&mut number)?;
        if number.trim() != display.to_string() {
            let said = fs::read_to_string(folder.path(SERVER_ERRORS)).unwrap_or_default();
            bail!("Xvfb did not start on the link: {}", said.lines().map(str::trim).collect::<Vec<_>>().join(" "));
        }
        Ok(Site { server, link, folder, slot })
    }

    /// No other current site has this slot. Names that must be unique among sites contain it.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The server's display, as seen at its own end.
    pub fn near_display(&self) -> String {
        format!("127.0.0.1:{}", display(self.slot))
    }

    /// The server's display, as seen over the link.
    pub fn far_display(&self) -> String {
        format!("{}:{}", Side::Server.address(), display(self.slot))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// The environment of programs: no variables of the user, and no session bus (the user's is on another machine).
    pub fn environment(&self) -> Vec<(String, String)> {
        let home = self.path("home").display().to_string();
        let set = [
            ("HOME", home.clone()),
            ("XDG_RUNTIME_DIR", format!("{home}/run")),
            ("XAUTHORITY", format!("{home}/authority")),
            ("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={home}/none")),
            ("NO_AT_BRIDGE", "1".to_owned()),
            // GTK 4 would draw with OpenGL and send whole pictures.
            ("GSK_RENDERER", "cairo".to_owned()),
            ("LC_ALL", "C.UTF-8".to_owned()),
            ("PATH", format!("{}:{}", self.path("bin").display(), env::var("PATH").unwrap_or_default())),
        ];
        set.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Creates a script. Both ends find it before any other program of that name.
    pub fn script(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n"))?;
        Ok(fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?)
    }

    /// Starts a command on that side for a display. The command's errors are written to the file `NAME.errors`.
    pub fn start(&self, side: Side, name: &str, display: &str, command: &mut Command) -> Result<Owned> {
        let errors = fs::File::create(self.path(&format!("{name}.errors")))?;
        command.env_clear().envs(self.environment()).env("DISPLAY", display);
        command.current_dir(self.path("home")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        Owned::start(self.link.command_in(side, command), GRACE)
    }

    /// The last error line of the program and of its proxies, since any of them may be the cause.
    pub fn complaint(&self, name: &str) -> String {
        let own = format!("{name}.errors");
        let files = [own.as_str(), "sshd.errors", "near/errors", "far/errors"];
        let said: Vec<String> = files.iter().filter_map(|file| self.last_line(file)).collect();
        if said.is_empty() { "no error message".to_owned() } else { said.join("; ") }
    }

    fn last_line(&self, file: &str) -> Option<String> {
        let text = fs::read(self.path(file)).ok()?;
        // The folder's name differs in each cell; remove it.
        let text = String::from_utf8_lossy(&text).replace(&self.path("").display().to_string(), "");
        // nxproxy prints version lines that are not errors.
        text.lines().map(str::trim).rfind(|line| !line.is_empty() && !line.starts_with("Loop:")).map(str::to_owned)
    }

    /// Waits until the first of these processes listens on this port.
    pub fn wait_for(&self, port: u16, processes: &mut [(&str, &mut Owned)]) -> Result<()> {
        let listens = wait(PATIENCE, || {
            for (name, process) in processes.iter_mut() {
                if !process.is_running() {
                    bail!("{name} ended: {}", self.complaint(name));
                }
            }
            Ok(link::listens(processes[0].1.pid(), port).unwrap_or(false))
        })?;
        if !listens {
            bail!("nothing listens on port {port}: {}", self.complaint(processes[0].0));
        }
        Ok(())
    }

    /// Captures packets where the case says, for at most `limit` after the first packet.
    pub fn capture(&self, case: Case, limit: Duration) -> Result<Actor> {
        let (side, on_loopback) = case.capture();
        let (silence_ms, limit_ms) = (case.silence().as_millis() as u64, limit.as_millis() as u64);
        let role = Role::Capture { on_loopback, silence_ms, limit_ms };
        self.act(side, "", role)
    }

    /// Starts an actor at the server's keyboard.
    pub fn typist(&self, strokes: Strokes, silence: Duration) -> Result<Actor> {
        let silence_ms = silence.as_millis() as u64;
        self.act(Side::Server, &self.near_display(), Role::Typist { strokes, silence_ms })
    }

    fn act(&self, side: Side, display: &str, role: Role) -> Result<Actor> {
        let mut command = Command::new(program::own("xqos-bench")?);
        command.current_dir(self.folder.path(""));
        self.link.command_in(side, &mut command);
        Actor::start_by(command, display, role)
    }

    /// Waits until the capture stops.
    pub fn wait_until_quiet(&self, mut actor: Actor, program: &mut Owned, limit: Duration) -> Result<Captured> {
        let is_over = wait(START + limit, || {
            if actor.is_running() && !program.is_running() {
                bail!("the program ended: {}", self.complaint("program"));
            }
            Ok(!actor.is_running())
        })?;
        if !is_over {
            let limit_s = (START + limit).as_secs();
            bail!("the program was not quiet within {limit_s} s: {}", self.complaint("program"));
        }
        let captured: Captured = actor.hear().context("the capture failed")?;
        if captured.packets == 0 {
            bail!("the program sent nothing to the server");
        }
        Ok(captured)
    }

    /// Waits until no packet has crossed the link for `silence`, or until `limit` has passed.
    pub fn wait_until_silent(&self, silence: Duration, limit: Duration) -> Result<bool> {
        let (mut last, mut since) = (0, Instant::now());
        wait(limit, || {
            let length = fs::metadata(self.path("queue.log")).map_or(0, |file| file.len());
            if length != last {
                (last, since) = (length, Instant::now());
            }
            Ok(since.elapsed() >= silence)
        })
    }

    /// Ends all processes. The files stay as long as the folder exists.
    pub fn close(self) -> Result<Folder> {
        let Site { mut server, link, folder, .. } = self;
        server.end();
        link.finish()?;
        Ok(folder)
    }
}

fn display(slot: usize) -> u16 {
    FIRST_DISPLAY + slot as u16
}

/// Waits until `is_done` returns true. Returns false if `limit` passes first.
pub(super) fn wait(limit: Duration, mut is_done: impl FnMut() -> Result<bool>) -> Result<bool> {
    let end = Instant::now() + limit;
    while !is_done()? {
        if Instant::now() > end {
            return Ok(false);
        }
        sleep(LOOK_AGAIN);
    }
    Ok(true)
}
