// SPDX-License-Identifier: MIT
//! Everyday load: a desktop on a server that is not overloaded. Is anything later than on the stock server?
//!
//! A player, a terminal that prints and a page that scrolls in a browser; beside them a client that draws where nobody sees it,
//! so much that the server is busy for 10, 30, 60 and 90 % of the time. Rectangles are painted, and keys typed,
//! and looked for on the screen.

use super::desktop::{Desk, PAINTER_AT, TERMINAL_AT};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::composited::{Composited, Managers};
use crate::filler::Filler;
use crate::goals::Key;
use crate::onscreen::{FrameCounter, LIMIT, Painter, Typist};
use crate::order::in_turn;
use crate::process::cpu_time;
use crate::rfb::Viewer;
use crate::server::{Compositor, Kind, Server, Setup};
use crate::statistics::{Spread, Summary, ratios};
use crate::study::{Columns, Goal, Row, Samples, Study, Table, Verdict, figure};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use xqos_client::Control;

const SCREEN: (u32, u32) = (1280, 1024);
/// Between two looks, longer by up to [`MORE`]: in step with the load they would all meet it at the same place.
const PAUSE: Duration = Duration::from_millis(55);
const MORE: Duration = Duration::from_millis(11);
/// After the load has changed.
const SETTLING: Duration = Duration::from_millis(500);
/// How busy the server is to be, percent.
const LOADS: [u32; 4] = [10, 30, 60, 90];

/// Which server, and who manages its windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Setting {
    Openbox,
    Picom,
    Xfwm4,
    Vnc,
    Weston,
}

impl Setting {
    const ALL: [Setting; 5] = [Setting::Openbox, Setting::Picom, Setting::Xfwm4, Setting::Vnc, Setting::Weston];

    fn name(self) -> &'static str {
        match self {
            Setting::Openbox => "openbox",
            Setting::Picom => "openbox + picom",
            Setting::Xfwm4 => "xfwm4 with its compositor",
            Setting::Vnc => "Xtigervnc, openbox, a viewer",
            Setting::Weston => "Xwayland under weston",
        }
    }

    fn kind(self) -> Kind {
        match self {
            Setting::Vnc => Kind::Xtigervnc,
            Setting::Weston => Kind::Xwayland(Compositor::Weston),
            _ => Kind::Xvfb,
        }
    }

    fn managers(self) -> Option<Managers> {
        match self {
            Setting::Openbox | Setting::Vnc => Some(Managers::Openbox),
            Setting::Picom => Some(Managers::Picom),
            Setting::Xfwm4 => Some(Managers::Xfwm4),
            Setting::Weston => None,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Sample {
    turn: u32,
    setting: Setting,
    load: u32,
    is_served: bool,
    /// A thousand where it was never seen.
    shown_ms: Vec<f64>,
    echo_ms: Vec<f64>,
    /// Of the player.
    frames_per_s: f64,
    /// Processor time in each second, of the server and of who composites.
    server: f64,
    compositor: f64,
    /// Early ends and decisions of xqos a second.
    early_ends_per_s: f64,
    decisions_per_s: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Everyday {
    samples: Vec<Sample>,
}

impl Measure for Everyday {
    const NAME: &'static str = "everyday";
    const ABOUT: &'static str = "a desktop on a server that is not overloaded: is anything later than without xqos?";
    const TAKES: Takes = Takes { quick_s: 90, full_s: 2400 };

    fn run(bench: &Bench) -> Result<Self> {
        let mut samples = Vec::new();
        let settings = if bench.quick { &Setting::ALL[1..2] } else { &Setting::ALL[..] };
        for &setting in settings {
            let mut batches = None;
            for turn in 0..bench.pairs {
                bench.say(format!("{}, turn {} of {}", setting.name(), turn + 1, bench.pairs));
                // The first one is the stock server: its loads are those of all.
                for is_served in in_turn([false, true], turn) {
                    let measured = measure(bench, setting, is_served, &mut batches);
                    let measured = measured.with_context(|| format!("{}, served: {is_served}", setting.name()))?;
                    samples.extend(measured.into_iter().map(|sample| Sample { turn, ..sample }));
                }
            }
        }
        Ok(Everyday { samples })
    }

    fn study(&self) -> Study {
        let mut study = Study {
            title: "Everyday load".to_owned(),
            question: "A desktop on a server that is idle for a part of the time: is anything later with xqos?"
                .to_owned(),
            notes: vec![notes()],
            ..Study::default()
        };
        for setting in Setting::ALL.into_iter().filter(|&setting| self.samples.iter().any(|one| one.setting == setting))
        {
            study.tables.push(self.table(setting));
            study.verdicts.extend(LOADS.iter().flat_map(|&load| self.verdicts(setting, load)));
        }
        study
    }
}

/// One server, at each load in turn. `batches`: what the filler draws for each.
fn measure(bench: &Bench, setting: Setting, is_served: bool, batches: &mut Option<Vec<u32>>) -> Result<Vec<Sample>> {
    let module = is_served.then(|| bench.module());
    let server = Setup { module, screen: SCREEN, ..Setup::stock(setting.kind()) }.start()?;
    let _viewer = server.viewer_socket().map(|socket| Viewer::connect(&socket)).transpose()?;
    let mut managers = setting.managers().map(|managers| Composited::start(&server, managers)).transpose()?;
    let mut desk = Desk::everyday(&server)?;
    let mut painter = Painter::start(&server, PAINTER_AT)?;
    // Under Wayland the keyboard is the compositor's to give.
    let mut typist = managers.is_some().then(|| Typist::start(&server, TERMINAL_AT)).transpose()?;
    let filler = Filler::start(server.display())?;
    if batches.is_none() {
        *batches = Some(LOADS.iter().map(|&load| filler.calibrate(&server, load)).collect::<Result<_>>()?);
    }
    let frames = FrameCounter::of(&server, &[desk.player()?])?;
    let control = is_served.then(|| server.control()).transpose()?;
    let mut samples = Vec::new();
    for (&load, &batch) in LOADS.iter().zip(batches.iter().flatten()) {
        filler.set(batch);
        std::thread::sleep(SETTLING);
        frames.count()?;
        let compositor = managers.as_ref().map(Composited::compositor_pid).unwrap_or(server.compositor_pid());
        let before = Figures::of(&server, control.as_ref(), compositor)?;
        let (mut shown_ms, mut echo_ms) = (Vec::new(), Vec::new());
        let ms = |seen: Option<Duration>| seen.unwrap_or(LIMIT).as_secs_f64() * 1e3;
        while before.at.elapsed() < bench.time(4000, 2000) || shown_ms.len() < Samples::MIN {
            shown_ms.push(ms(painter.paint()?));
            pause(shown_ms.len());
            if let Some(typist) = typist.as_mut().filter(|_| shown_ms.len() % 3 == 0) {
                typist.take_focus()?;
                echo_ms.push(ms(typist.echo()?));
                pause(shown_ms.len() + echo_ms.len());
            }
        }
        let after = Figures::of(&server, control.as_ref(), compositor)?;
        let seconds = (after.at - before.at).as_secs_f64();
        samples.push(Sample {
            turn: 0,
            setting,
            load,
            is_served,
            shown_ms,
            echo_ms,
            frames_per_s: f64::from(frames.count()?) / seconds,
            server: (after.server - before.server).as_secs_f64() / seconds,
            compositor: (after.compositor - before.compositor).as_secs_f64() / seconds,
            early_ends_per_s: (after.early_ends - before.early_ends) as f64 / seconds,
            decisions_per_s: (after.decisions - before.decisions) as f64 / seconds,
        });
    }
    desk.check()?;
    managers.as_mut().map_or(Ok(()), Composited::see_running)?;
    ensure!(filler.is_running(), "the client that fills the server has ended");
    Ok(samples)
}

fn pause(nth: usize) {
    // A step by the golden section fills a range evenly.
    let part = (nth as f64 * 0.618_034).fract();
    std::thread::sleep(PAUSE + MORE.mul_f64(part));
}

/// What is counted from the beginning of a server on.
struct Figures {
    at: Instant,
    server: Duration,
    compositor: Duration,
    early_ends: u64,
    decisions: u64,
}

impl Figures {
    fn of(server: &Server, control: Option<&Control>, compositor: Option<u32>) -> Result<Figures> {
        let (at, of_server) = (Instant::now(), server.cpu_time()?);
        let info = control.map(Control::server_info).transpose()?;
        Ok(Figures {
            at,
            server: of_server,
            compositor: compositor.map_or(Ok(Duration::ZERO), cpu_time)?,
            early_ends: info.as_ref().map_or(0, |info| info.early_ends),
            decisions: info.as_ref().map_or(0, |info| info.decisions),
        })
    }
}

impl Everyday {
    fn of(&self, setting: Setting, load: u32, is_served: bool) -> impl Iterator<Item = &Sample> {
        let is_it = move |one: &&Sample| (one.setting, one.load, one.is_served) == (setting, load, is_served);
        self.samples.iter().filter(is_it)
    }

    /// One ratio a turn.
    fn over_stock(&self, setting: Setting, load: u32, value: impl Fn(&Sample) -> Option<f64>) -> Spread {
        ratios(self.of(setting, load, true), self.of(setting, load, false), |one| one.turn, value)
    }

    fn verdicts(&self, setting: Setting, load: u32) -> Vec<Verdict> {
        let mean = |values: &[f64]| (!values.is_empty()).then(|| Summary::of(values.iter().copied()).mean);
        let p99 = |values: &[f64]| (!values.is_empty()).then(|| Summary::of(values.iter().copied()).p99);
        let goal = Goal::of(if load < 90 { Key("everyday.mean") } else { Key("everyday.mean_full") });
        let worst = Goal::of(Key("everyday.p99"));
        let figures = [
            ("on screen after", self.over_stock(setting, load, |one| mean(&one.shown_ms)), goal),
            ("key to screen", self.over_stock(setting, load, |one| mean(&one.echo_ms)), goal),
            ("on screen after, p99", self.over_stock(setting, load, |one| p99(&one.shown_ms)), worst),
            ("key to screen, p99", self.over_stock(setting, load, |one| p99(&one.echo_ms)), worst),
            (
                "processor time of the server",
                self.over_stock(setting, load, |one| Some(one.server)),
                Goal::of(Key("everyday.processor")),
            ),
        ];
        let measured = figures.into_iter().filter(|(_, spread, _)| spread.count > 0);
        let verdict = |(what, spread, goal)| {
            Verdict::of_spread(format!("{}, {load} %: {what}, over stock", setting.name()), spread, "", goal)
        };
        measured.map(verdict).collect()
    }

    fn table(&self, setting: Setting) -> Table {
        let rows = LOADS.iter().flat_map(|&load| {
            [(false, "stock"), (true, "xqos")]
                .map(|(is_served, name)| Row::new(format!("{load} %, {name}"), self.of(setting, load, is_served)))
        });
        let summary = |values: &[f64]| Summary::of(values.iter().copied());
        let typed = |row: &Row<Sample>, value: fn(&Summary) -> f64| {
            let is_typed = row.samples.iter().any(|one| !one.echo_ms.is_empty());
            if is_typed { figure(row.spread(|one| value(&summary(&one.echo_ms))).median) } else { "-".to_owned() }
        };
        Columns::of(setting.name(), rows)
            .name("busy, server")
            .median("on screen after ms, mean", |one| summary(&one.shown_ms).mean)
            .median("p99", |one| summary(&one.shown_ms).p99)
            .cell("key to screen ms, mean", |row| typed(row, |echo| echo.mean))
            .cell("p99", |row| typed(row, |echo| echo.p99))
            .median("frames of the player /s", |one| one.frames_per_s)
            .percent("server's processor time", |one| one.server)
            .percent("compositor's", |one| one.compositor)
            .median("early ends /s", |one| one.early_ends_per_s)
            .median("slices /s", |one| one.decisions_per_s)
            .table()
    }
}

fn notes() -> String {
    format!(
        "How it was measured. For each turn a new server of {} x {}, with mpv playing 30 pictures of 640 x 360 a second, an xterm that \
         prints 30 lines every 30 ms, and chromium with a page that scrolls. A client draws rectangles into a pixmap every 5 ms, so many that \
         the stock server is busy for the time that is told, or for what the desktop alone makes of it; the same for both. A rectangle of 60 x 60 \
         is painted and looked for on the root window, under Wayland in its own window, once a millisecond; each third time a key is \
         typed into an xterm by XTEST. Frames of the player are those that DAMAGE tells of. Medians over the turns.",
        SCREEN.0, SCREEN.1
    )
}
