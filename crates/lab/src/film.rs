// SPDX-License-Identifier: MIT
//! A film of a moving test picture, made by ffmpeg, and mpv that plays it.

use crate::folder::Folder;
use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// A film of our own making.
#[derive(Debug)]
pub struct Film {
    folder: Folder,
    width: u16,
    height: u16,
}

impl Film {
    /// Ten seconds of a moving test picture, 30 pictures a second.
    pub fn make(width: u16, height: u16) -> Result<Film> {
        let film = Film { folder: Folder::create()?, width, height };
        let mut command = Command::new("ffmpeg");
        let source = format!("testsrc2=size={width}x{height}:rate=30:duration=10");
        command.args(["-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", &source, "-c:v", "mpeg4", "-q:v", "4"]);
        command.arg(film.folder.path(Film::NAME)).stdin(Stdio::null());
        let made = command.output().context("cannot start ffmpeg; it is in Debian's package ffmpeg")?;
        ensure!(made.status.success(), "ffmpeg made no film: {}", String::from_utf8_lossy(&made.stderr));
        Ok(film)
    }

    /// What plays it again and again, in the upper left corner.
    pub fn player(&self, display: &str) -> Command {
        let mut command = Command::new("mpv");
        command.args(["--no-config", "--no-terminal", "--no-audio", "--no-osc", "--osd-level=0", "--no-border"]);
        command.args(["--vo=x11", "--hwdec=no", "--loop-file=inf", "--keepaspect=no"]);
        command.arg(format!("--geometry={}x{}+0+0", self.width, self.height));
        command.arg(self.folder.path(Film::NAME)).env("DISPLAY", display);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    const NAME: &'static str = "film.mkv";
}
