// SPDX-License-Identifier: MIT
//! A film: mpv plays a test pattern, and the server's trace shows when each frame was drawn.
//!
//! mpv generates the picture itself (testsrc2 of libavfilter), so no file is needed. It draws with X11 requests
//! (`--vo=x11`): one ShmPutImage per frame, or one PutImage without shared memory. It sends the next frame only when at
//! most one is in progress. A frame counts as requested when the server learns of mpv's work, and as drawn when the
//! server has executed its request. In between, mpv waits for other clients or a processor. All times come from a trace
//! of level `requests`, on the server's clock, so the measurement costs mpv nothing.
//!
//! mpv plays without sound, by its own clock. If it is less than 0.2 s late, it catches up; otherwise it continues from
//! its current position.

use crate::folder::Folder;
use crate::process::Owned;
use crate::trace::events;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use x11rb::connection::RequestConnection;
use xqos_abi::ring::RingReader;
use xqos_abi::trace::{Entry, Event, Level};
use xqos_abi::{Setting, Subject};
use xqos_client::Control;
use xqos_core::{ClientId, Fact, Reservation, Service};
use xqos_sys::{Processes, Procfs};

const FRAMES_PER_SECOND: u32 = 25;
/// Place of the film on the screen of [`crate::tiles`], next to the windows of the load.
const PLACE: (i32, i32) = (2432, 40);
const SIZE: (u32, u32) = (640, 360);
/// Enough records for half a minute, because the trace is read only afterwards.
const CAPACITY: u32 = 1 << 19;
const LIMIT: Duration = Duration::from_secs(60);
const PUT_IMAGE: u32 = 72;
const SHM_PUT_IMAGE: u32 = 3;

/// A playing film. It ends when this is dropped.
#[derive(Debug)]
pub struct Playing {
    process: Owned,
    // Drop order: the folder is removed after the process ends, because the process's socket is in it.
    folder: Folder,
    images: [u32; 2],
    trace: RingReader,
    clients: BTreeSet<ClientId>,
    activated_ns: u64,
    /// Slices of other clients since the last frame.
    others: Vec<(u64, u64)>,
    drawn: Vec<Drawn>,
    lost: u64,
}

/// A frame, on the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// When the server had learned of mpv's work and had drawn the previous frame.
    pub asked_ns: u64,
    /// Time for which other clients were served since `asked_ns`.
    pub behind_ns: u64,
    /// When the server had executed the request.
    pub drawn_ns: u64,
}

impl Playing {
    /// Starts a trace of the server of `control`, and the film on that server, through `launcher` if there is one.
    /// `drops` lets mpv drop late frames, as it does by default.
    pub fn start(launcher: Option<Command>, control: &Control, display: &str, drops: bool) -> Result<Playing> {
        let shared = control.connection()?.extension_information("MIT-SHM")?;
        let shared = shared.map_or(PUT_IMAGE, |shm| u32::from(shm.major_opcode) | (SHM_PUT_IMAGE << 16));
        // The trace starts before mpv connects, so it includes mpv's identity.
        let trace = control.start_trace(Level::Requests, CAPACITY)?;
        let folder = Folder::create()?;
        let mut command = Command::new("mpv");
        if let Some(launcher) = launcher {
            command = launcher;
            command.arg("mpv");
        }
        arguments(&mut command, drops).env("DISPLAY", display);
        command.arg(format!("--input-ipc-server={}", folder.path("ipc").display()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let process = Owned::start(&mut command, Duration::from_secs(2)).context("cannot start mpv")?;
        let images = [PUT_IMAGE, shared];
        Ok(Playing {
            process,
            folder,
            images,
            trace,
            clients: BTreeSet::new(),
            activated_ns: 0,
            others: Vec::new(),
            drawn: Vec::new(),
            lost: 0,
        })
    }

    pub fn reserve(&mut self, control: &Control, wanted: Reservation) -> Result<()> {
        let limit = Instant::now() + LIMIT;
        loop {
            let list = control.clients()?.clients;
            let pid = self.process.pid();
            let mut own = list.iter().filter(|client| client.pid as u32 == pid).peekable();
            if own.peek().is_some() {
                return own.try_for_each(|client| {
                    Ok(control.set(Subject::Client(client.client), Setting::Reservation(wanted))?)
                });
            }
            self.go_on(limit, "connect")?;
        }
    }

    pub fn frames(&self) -> usize {
        self.drawn.len()
    }

    pub fn reach(&mut self, frame: usize) -> Result<()> {
        let limit = Instant::now() + LIMIT;
        while self.drawn.len() < frame {
            self.go_on(limit, "draw its frames")?;
            self.read();
        }
        Ok(())
    }

    pub fn play(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.go_on(Instant::now() + LIMIT, "go on")?;
            self.read();
        }
        Ok(())
    }

    /// Ends the film. Returns the frames, and the numbers of dropped frames and of lost records.
    pub fn end(mut self) -> Result<(Vec<Drawn>, u64, u64)> {
        let dropped = self.dropped().ok_or_else(|| anyhow!("mpv does not report how many frames it dropped"))?;
        self.read();
        Ok((self.drawn, dropped, self.lost))
    }

    fn go_on(&mut self, limit: Instant, what: &str) -> Result<()> {
        if !self.process.is_running() {
            let mut said = String::new();
            if let Some(output) = &mut self.process.pipes().stdout {
                let _ = output.read_to_string(&mut said);
            }
            return Err(anyhow!("mpv ended before it could {what}: {}", said.trim()));
        }
        if Instant::now() > limit {
            bail!("mpv did not {what}");
        }
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    }

    /// Frames that mpv has dropped so far; `None` if it does not answer.
    fn dropped(&self) -> Option<u64> {
        let mut socket = UnixStream::connect(self.folder.path("ipc")).ok()?;
        socket.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
        socket.write_all(b"{\"command\":[\"get_property\",\"frame-drop-count\"]}\n").ok()?;
        // Events may arrive before the answer.
        BufReader::new(socket)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| serde_json::from_str::<Value>(&line).ok()?.get("data")?.as_u64())
    }

    fn read(&mut self) {
        let (events, lost) = events(&mut self.trace);
        self.lost += lost;
        events.into_iter().for_each(|event| self.take(event));
    }

    /// True for mpv itself, which may be a child of a launcher. The launcher is a separate client.
    fn is_of_mpv(&self, pid: u32) -> bool {
        let (own, pid) = (self.process.pid() as i32, pid as i32);
        let is_child = || Procfs.look(pid).is_some_and(|process| process.parent == own);
        xqos_sys::program(pid) == "mpv" && (pid == own || is_child())
    }

    fn take(&mut self, event: Event) {
        let at_ns = event.at.0;
        match event.what {
            Entry::Identity { client, pid, .. } if self.is_of_mpv(pid) => {
                self.clients.insert(client);
            }
            Entry::Fact(Fact::Disconnected { client }) => {
                self.clients.remove(&client);
            }
            Entry::Fact(Fact::Arrived { client }) if self.clients.contains(&client) => self.activated_ns = at_ns,
            Entry::Fact(Fact::Served(Service { client, start, .. })) if !self.clients.contains(&client) => {
                self.others.push((start.0, at_ns))
            }
            Entry::Request { client, request, ns, .. }
                if self.clients.contains(&client) && self.images.contains(&request) =>
            {
                let before_ns = self.drawn.last().map_or(0, |drawn| drawn.drawn_ns);
                let asked_ns = self.activated_ns.max(before_ns).min(at_ns.saturating_sub(ns));
                let behind = |(start, end): (u64, u64)| end.saturating_sub(start.max(asked_ns));
                let behind_ns = self.others.drain(..).map(behind).sum();
                self.drawn.push(Drawn { asked_ns, behind_ns, drawn_ns: at_ns });
            }
            _ => {}
        }
    }
}

fn arguments(command: &mut Command, drops: bool) -> &mut Command {
    let ((width, height), (x, y)) = (SIZE, PLACE);
    command.arg(if drops { "--framedrop=vo" } else { "--framedrop=no" });
    command.arg(format!("--geometry={width}x{height}+{x}+{y}"));
    command.args(film(SIZE, FRAMES_PER_SECOND))
}

/// Arguments with which mpv generates and shows an endless, silent test pattern of this size.
pub fn film((width, height): (u32, u32), frames_per_second: u32) -> Vec<String> {
    let film = format!("av://lavfi:testsrc2=size={width}x{height}:rate={frames_per_second}");
    let quiet = ["--no-config", "--vo=x11", "--ao=null", "--no-audio", "--no-osc", "--no-input-terminal"];
    quiet.into_iter().chain(["--msg-level=all=error"]).map(str::to_owned).chain([film]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiles::SCREEN;

    #[test]
    fn the_film_lies_within_the_screen() {
        assert!(PLACE.0 as u32 + SIZE.0 <= SCREEN.0 && PLACE.1 as u32 + SIZE.1 <= SCREEN.1);
    }

    #[test]
    fn frames_are_dropped_only_if_allowed() {
        let shown = |drops| format!("{:?}", arguments(&mut Command::new("mpv"), drops));
        assert!(shown(true).contains("framedrop=vo") && shown(false).contains("framedrop=no"));
    }
}
