// SPDX-License-Identifier: MIT
//! A desktop on the server of a case, and a client that watches when drawings and typed letters appear on the screen.
//!
//! Both end with the server. A change that does not appear within [`LIMIT`] counts as taking [`LIMIT`].

use super::case::Desktop;
use super::data::{Figures, named};
use crate::composited::Composited;
use crate::desk::Desk;
use crate::onscreen::{FrameCounter, LIMIT, Painter, Typist};
use crate::process::cpu_time;
use crate::server::Server;
use crate::study::Samples;
use crate::viewer::Viewer;
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};
use xqos_client::Control;

/// Outside the windows of x11perf and of the desktop's programs.
const PAINTER_AT: (i16, i16) = (1100, 100);
const TERMINAL_AT: (i16, i16) = (640, 850);
/// Pause after each reading. Up to [`MORE`] is added, so that readings do not always see the same phase of the load.
const PAUSE: Duration = Duration::from_millis(55);
const MORE: Duration = Duration::from_millis(11);

#[derive(Debug)]
pub(super) struct OnScreen {
    // Drop order: observers end before what they observe.
    painter: Painter,
    typist: Option<Typist>,
    frames: Vec<(&'static str, FrameCounter)>,
    desk: Desk,
    managers: Option<Composited>,
    _viewer: Option<Viewer>,
}

impl OnScreen {
    /// `control` is a connection to a server with xqos.
    pub fn start(server: &Server, control: Option<&Control>, desktop: &Desktop) -> Result<OnScreen> {
        let viewer = server.viewer_socket().map(|socket| Viewer::connect(&socket)).transpose()?;
        let managers = desktop.managers.map(|managers| Composited::start(server, managers)).transpose()?;
        if let Some(control) = control.filter(|_| managers.is_some()) {
            ensure!(control.desktop()?.clients > 0, "xqos recognised no compositor or window manager");
        }
        let painter = Painter::start(server, PAINTER_AT)?;
        // Under Wayland only the compositor can set the keyboard focus.
        let typist = managers.is_some().then(|| Typist::start(server, TERMINAL_AT)).transpose()?;
        let desk = Desk::start(server, &desktop.programs)?;
        let mut frames = Vec::new();
        if let Some(player) = desk.player() {
            frames.push(("player_frames", FrameCounter::of(server.connect()?, &[player])?));
        }
        if managers.as_ref().and_then(Composited::compositor_pid).is_some() {
            frames.push(("frames", FrameCounter::of_compositor(server)?));
        }
        Ok(OnScreen { painter, typist, frames, desk, managers, _viewer: viewer })
    }

    /// Paints a rectangle repeatedly. Every third time it then types a key; otherwise it continues the user's input.
    pub fn look(&mut self, server: &Server, time: Duration) -> Result<Figures> {
        let compositor = self.managers.as_ref().map_or(server.compositor_pid(), Composited::compositor_pid);
        let composited = || compositor.map_or(Ok(Duration::ZERO), cpu_time);
        self.frames.iter().try_for_each(|(_, frames)| frames.count().map(drop))?;
        let (began, before) = (Instant::now(), composited()?);
        let ms = |seen: Option<Duration>| seen.unwrap_or(LIMIT).as_secs_f64() * 1e3;
        let (mut shown, mut echo) = (Vec::new(), Vec::new());
        while began.elapsed() < time || shown.len() < Samples::MIN {
            let seen = self.painter.paint().with_context(|| format!("the server's log: {}", server.log()))?;
            shown.push(ms(seen));
            pause(shown.len() + echo.len());
            match &mut self.typist {
                Some(typist) if shown.len() % 3 == 0 && !self.desk.is_resizing() => {
                    typist.take_focus()?;
                    echo.push(ms(typist.echo()?));
                    pause(shown.len() + echo.len());
                }
                _ => self.desk.use_it()?,
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let mut values = vec![("compositor_cpu", (composited()? - before).as_secs_f64() / seconds)];
        for (name, frames) in &self.frames {
            values.push((*name, f64::from(frames.count()?) / seconds));
        }
        self.desk.check()?;
        self.managers.as_mut().map_or(Ok(()), Composited::see_running)?;
        Ok((named([("shown", shown), ("echo", echo)]), named(values)))
    }
}

fn pause(nth: usize) {
    // Steps by the golden ratio fill a range evenly.
    let part = (nth as f64 * 0.618_034).fract();
    std::thread::sleep(PAUSE + MORE.mul_f64(part));
}
