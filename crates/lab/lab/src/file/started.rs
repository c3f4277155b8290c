// SPDX-License-Identifier: MIT
//! A running server of an experiment with the policy of a case, its desktop, and a client that watches when drawings
//! and typed letters appear on the screen. A change that does not appear within [`LIMIT`] counts as taking [`LIMIT`].

use super::case::{Case, Desktop};
use super::data::{Figures, named};
use crate::desk::{Composited, Desk};
use crate::onscreen::{FrameCounter, LIMIT, Painter, Typist};
use crate::process::cpu_time;
use crate::server::{Server, Setup};
use crate::study::Samples;
use crate::viewer::Viewer;
use anyhow::{Context, Result, bail, ensure};
use std::time::{Duration, Instant};
use xqos_abi::{Grouping, PolicyChange, Setting, Subject};
use xqos_client::Control;
use xqos_core::{Parameters, PolicyKind};

/// A paced client may continue at least once in this time, so it still reaches 20 frames a second.
const FLOOR_US: u32 = 50_000;
/// Blocking time that admission assumes for the reservation of a measured client.
const BLOCKING_US: u32 = 1000;

#[derive(Debug)]
pub(super) struct Started {
    // Drop order: the clients of the screen end before the server.
    pub screen: Option<OnScreen>,
    pub server: Server,
    pub control: Option<Control>,
}

impl Started {
    /// Fails if xqos has stepped aside, because xqos would then not be measured.
    pub fn new(setup: &Setup, desktop: Option<&Desktop>) -> Result<Started> {
        let server = setup.start()?;
        // Connect once, because the first client causes allocations that the server makes only once.
        drop(server.connect()?);
        let control = setup.module.as_ref().map(|_| server.armed()).transpose()?;
        if let Some(control) = &control {
            let is_below = setup.environment.iter().any(|(name, host)| name == "XQOS_HOST" && host == "libc");
            if is_below && control.is_served_through_libc() != Some(true) {
                bail!("{:?} is not served by libc:\n{}", setup.kind, server.log());
            }
        }
        let screen = desktop.map(|desktop| OnScreen::start(&server, control.as_ref(), desktop)).transpose()?;
        Ok(Started { screen, server, control })
    }

    /// Lets the server follow the case's policy and cut long requests, with the case's slices or the policy's own.
    pub fn follow(&self, case: &Case) -> Result<()> {
        let Some(control) = &self.control else { return Ok(()) };
        control.set_pacing(case.pacing.map_or(0, |limit| limit.as_micros() as u32), FLOOR_US)?;
        control.set(Subject::Server, Setting::Cut(case.cut_us))?;
        control.set(Subject::Server, Setting::Grouping(case.groups.unwrap_or(Grouping::Application)))?;
        let reserves = case.reserve.is_some() || case.loads.iter().any(|load| load.reserve.is_some());
        follow(control, case.policy.unwrap_or(PolicyKind::Fair), case.slices_us, reserves)
    }
}

/// Makes the server follow this policy, with these slices or the policy's own: the maximum, and the limit to which
/// `smart` lets slices grow if a client runs alone. `reserves` is true if a measured client has a reservation.
pub(super) fn follow(
    control: &Control,
    policy: PolicyKind,
    [slice_us, maximum_us]: [Option<u32>; 2],
    reserves: bool,
) -> Result<()> {
    let usual = Parameters::default();
    let us = |ns: u64| Some((ns / 1000) as u32);
    // Send a single request, because with slices of 5 ms a second one would wait for the server's own timer.
    Ok(control.set_policy(PolicyChange {
        policy: Some(policy),
        slice_us: slice_us.or(us(usual.slice_ns)),
        timer_interval_us: slice_us.or(us(usual.timer_interval_ns)),
        maximum_slice_us: maximum_us.or(us(usual.maximum_slice_ns)),
        // Otherwise admission might refuse the reservation because of a long request that another client has made.
        blocking_us: Some(if reserves { BLOCKING_US } else { 0 }),
        ..PolicyChange::default()
    })?)
}

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
