// SPDX-License-Identifier: MIT
//! The composited desktop: how late the screen is while others keep the server busy.
//!
//! A desktop as users have it: a window manager, a compositing manager, a terminal; beside it twelve x11perf, or a player, a
//! terminal that prints and a window that is scrolled and resized, or a page that animates in a browser. A client paints
//! a rectangle ten times a second and looks at the root window until it is there; a key is typed into the terminal, and
//! its echo looked for in the same way. Stock server, `fair` without the desktop rule, and `fair` with it, in turn.

mod desk;

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::composited::{Composited, Managers};
use crate::goals::Key;
use crate::load::{Load, Perf, Placement};
use crate::onscreen::{FrameCounter, LIMIT, Painter, Typist};
use crate::order::in_turn;
use crate::rfb::Viewer;
use crate::server::{Kind, Module, Server, Setup};
use crate::statistics::{Spread, Summary, ratios};
use crate::study::{Columns, Goal, Row, Samples, Study, Table, Verdict, figure};
use anyhow::{Context, Result, ensure};
pub(in crate::experiments) use desk::Desk;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

const SCREEN: (u32, u32) = (1280, 1024);
/// Beside the windows of x11perf.
pub(super) const PAINTER_AT: (i16, i16) = (1100, 100);
pub(super) const TERMINAL_AT: (i16, i16) = (640, 850);
/// Between two rectangles; each third time a key is typed too.
const PAUSE: Duration = Duration::from_millis(80);
const CLIENTS: usize = 12;

/// What keeps the server busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Busy {
    Rect100,
    Copywinwin100,
    Putimage100,
    Ellipse100,
    Shmput500,
    Desk,
    Browser,
}

impl Busy {
    /// The test of x11perf, where it is one.
    fn test(self) -> Option<&'static str> {
        match self {
            Busy::Rect100 => Some("rect100"),
            Busy::Copywinwin100 => Some("copywinwin100"),
            Busy::Putimage100 => Some("putimage100"),
            Busy::Ellipse100 => Some("ellipse100"),
            Busy::Shmput500 => Some("shmput500"),
            Busy::Desk | Busy::Browser => None,
        }
    }

    fn name(self) -> String {
        match self {
            Busy::Desk => "player, printing terminal, window scrolled and resized".to_owned(),
            Busy::Browser => "animated page in a browser".to_owned(),
            busy => format!("{CLIENTS} x {}", busy.test().unwrap_or_default()),
        }
    }
}

/// A desktop and what happens on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Case {
    vnc: bool,
    managers: Managers,
    busy: Busy,
}

impl Case {
    const fn xvfb(managers: Managers, busy: Busy) -> Case {
        Case { vnc: false, managers, busy }
    }

    fn name(&self) -> String {
        let server = if self.vnc { "Xtigervnc" } else { "Xvfb" };
        format!("{server}, {}: {}", self.managers.name(), self.busy.name())
    }

    /// What the rule's time until a rectangle is on the screen may be of the stock server's.
    fn goal(&self) -> Goal {
        match (self.vnc, self.managers, self.busy) {
            (false, Managers::Picom, Busy::Ellipse100) => Goal::of(Key("desktop.shown_picom_ellipse100")),
            (false, Managers::Picom, Busy::Rect100 | Busy::Copywinwin100 | Busy::Putimage100) => {
                Goal::of(Key("desktop.shown_picom"))
            }
            _ => Goal::of(Key("desktop.shown")),
        }
    }
}

const CASES: [Case; 16] = [
    Case::xvfb(Managers::Picom, Busy::Rect100),
    Case::xvfb(Managers::Picom, Busy::Desk),
    Case::xvfb(Managers::Picom, Busy::Copywinwin100),
    Case::xvfb(Managers::Picom, Busy::Putimage100),
    Case::xvfb(Managers::Picom, Busy::Ellipse100),
    Case::xvfb(Managers::Picom, Busy::Shmput500),
    Case::xvfb(Managers::Picom, Busy::Browser),
    Case::xvfb(Managers::Xfwm4, Busy::Rect100),
    Case::xvfb(Managers::Xfwm4, Busy::Copywinwin100),
    Case::xvfb(Managers::Xfwm4, Busy::Putimage100),
    Case::xvfb(Managers::Xfwm4, Busy::Ellipse100),
    Case::xvfb(Managers::Xfwm4, Busy::Shmput500),
    Case::xvfb(Managers::Xfwm4, Busy::Desk),
    Case::xvfb(Managers::PicomGl, Busy::Rect100),
    Case { vnc: true, managers: Managers::Picom, busy: Busy::Rect100 },
    Case { vnc: true, managers: Managers::Xfwm4, busy: Busy::Rect100 },
];
/// Of them, where it is to be quick.
const QUICK: usize = 2;

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    Stock,
    /// `fair`, every connection alike.
    Fair,
    /// `fair` as it comes.
    Rule,
}

impl Way {
    const ALL: [Way; 3] = [Way::Stock, Way::Fair, Way::Rule];

    fn title(self) -> &'static str {
        match self {
            Way::Stock => "stock server",
            Way::Fair => "fair, desktop off",
            Way::Rule => "fair",
        }
    }

    fn module(self, bench: &Bench) -> Option<Module> {
        match self {
            Way::Stock => None,
            Way::Fair => Some(Module { desktop_share_ppm: Some(0), ..bench.module() }),
            Way::Rule => Some(bench.module()),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Sample {
    turn: u32,
    case: Case,
    way: Way,
    /// A thousand where it was never seen.
    shown_ms: Vec<f64>,
    echo_ms: Vec<f64>,
    frames_per_s: f64,
    /// Operations of all x11perf a second.
    work: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Desktop {
    samples: Vec<Sample>,
}

impl Measure for Desktop {
    const NAME: &'static str = "desktop";
    const ABOUT: &'static str = "a composited desktop: when is on the screen what was drawn, beside busy clients";
    const TAKES: Takes = Takes { quick_s: 60, full_s: 2000 };

    fn run(bench: &Bench) -> Result<Self> {
        let mut samples = Vec::new();
        let cases = if bench.quick { &CASES[..QUICK] } else { &CASES[..] };
        let perfs = calibrate(bench, cases)?;
        for turn in 0..bench.pairs {
            for (case, perf) in cases.iter().zip(&perfs) {
                bench.say(format!("turn {} of {}: {}", turn + 1, bench.pairs, case.name()));
                for way in in_turn(Way::ALL, turn) {
                    let sample = measure(bench, case, way, perf.as_ref());
                    let sample = sample.with_context(|| format!("{}, {}", case.name(), way.title()))?;
                    samples.push(Sample { turn, ..sample });
                }
            }
        }
        Ok(Desktop { samples })
    }

    fn study(&self) -> Study {
        let mut study = Study {
            title: "A composited desktop".to_owned(),
            question:
                "A window manager and a compositing manager, and clients that keep the server busy: how long does \
                       it take until something that was drawn is on the screen?"
                    .to_owned(),
            notes: notes(),
            ..Study::default()
        };
        for case in CASES.iter().filter(|case| self.of(case, Way::Rule).next().is_some()) {
            study.tables.push(self.table(case));
            study.verdicts.push(self.shown_verdict(case));
            study.verdicts.extend(self.work_verdict(case));
        }
        study
    }
}

/// Once for each case: its x11perf draw from the first moment on.
fn calibrate(bench: &Bench, cases: &[Case]) -> Result<Vec<Option<Perf>>> {
    bench.say("calibrating x11perf");
    let idle = Setup { screen: SCREEN, ..Setup::stock(Kind::Xvfb) }.start()?;
    let perf = |case: &Case| case.busy.test().map(|test| Perf::calibrate(idle.display(), test)).transpose();
    cases.iter().map(perf).collect()
}

fn measure(bench: &Bench, case: &Case, way: Way, perf: Option<&Perf>) -> Result<Sample> {
    let kind = if case.vnc { Kind::Xtigervnc } else { Kind::Xvfb };
    let server = Setup { module: way.module(bench), screen: SCREEN, ..Setup::stock(kind) }.start()?;
    let _viewer = server.viewer_socket().map(|socket| Viewer::connect(&socket)).transpose()?;
    let mut managers = Composited::start(&server, case.managers)?;
    if way == Way::Rule {
        let recognised = server.control()?.desktop()?.clients;
        ensure!(recognised > 0, "nobody was recognised as compositor or window manager");
    }
    let (mut painter, mut typist) = (Painter::start(&server, PAINTER_AT)?, Typist::start(&server, TERMINAL_AT)?);
    let mut load = perf.map(|perf| Load::start(server.display(), perf, CLIENTS, Placement::Stacked)).transpose()?;
    let mut desk = match case.busy {
        Busy::Desk => Some(Desk::start(&server)?),
        Busy::Browser => Some(Desk::browser(&server)?),
        _ => None,
    };
    let frames = FrameCounter::start(&server)?;
    let looked = look(&server, &mut painter, &mut typist, desk.as_mut(), bench.time(4000, 2000))?;
    desk.as_mut().map_or(Ok(()), Desk::check)?;
    managers.see_running()?;
    let (from, to) = looked.window;
    let frames_per_s = f64::from(frames.count()?) / (to - from).as_secs_f64();
    let work = load.as_mut().map(|load| load.work(from, to)).transpose()?;
    let work = work.map(|work| work.iter().sum::<f64>() / (to - from).as_secs_f64());
    let (shown_ms, echo_ms) = (looked.shown_ms, looked.echo_ms);
    ensure!(shown_ms.len() >= Samples::MIN, "only {} rectangles were painted", shown_ms.len());
    Ok(Sample { turn: 0, case: *case, way, shown_ms, echo_ms, frames_per_s, work })
}

struct Looked {
    window: (Instant, Instant),
    shown_ms: Vec<f64>,
    echo_ms: Vec<f64>,
}

fn look(
    server: &Server,
    painter: &mut Painter,
    typist: &mut Typist,
    mut desk: Option<&mut Desk>,
    time: Duration,
) -> Result<Looked> {
    let ms = |seen: Option<Duration>| seen.unwrap_or(LIMIT).as_secs_f64() * 1e3;
    let (mut shown_ms, mut echo_ms, from) = (Vec::new(), Vec::new(), Instant::now());
    while from.elapsed() < time || shown_ms.len() < Samples::MIN {
        let seen = painter.paint().with_context(|| format!("the server's log: {}", server.log()))?;
        shown_ms.push(ms(seen));
        std::thread::sleep(PAUSE);
        let is_resizing = desk.as_ref().is_some_and(|desk| desk.is_resizing());
        if shown_ms.len() % 3 == 0 && !is_resizing {
            typist.take_focus()?;
            echo_ms.push(ms(typist.echo()?));
            std::thread::sleep(PAUSE);
        } else if let Some(desk) = &mut desk {
            desk.use_it()?;
        }
    }
    Ok(Looked { window: (from, Instant::now()), shown_ms, echo_ms })
}

impl Desktop {
    fn of<'a>(&'a self, case: &'a Case, way: Way) -> impl Iterator<Item = &'a Sample> + 'a {
        self.samples.iter().filter(move |sample| sample.case == *case && sample.way == way)
    }

    /// One ratio a turn.
    fn over_stock(&self, case: &Case, way: Way, figure: impl Fn(&Sample) -> Option<f64>) -> Spread {
        ratios(self.of(case, way), self.of(case, Way::Stock), |sample| sample.turn, figure)
    }

    fn shown_verdict(&self, case: &Case) -> Verdict {
        let ratios = self.over_stock(case, Way::Rule, |sample| Some(Summary::of(sample.shown_ms.iter().copied()).mean));
        let shown =
            [Way::Stock, Way::Rule].into_iter().flat_map(|way| self.of(case, way)).map(|one| one.shown_ms.len());
        let what = format!("{}: on screen after, over stock", case.name());
        Verdict::of_spread(what, ratios, "", case.goal()).counting(shown)
    }

    fn work_verdict(&self, case: &Case) -> Option<Verdict> {
        case.busy.test()?;
        let ratios = self.over_stock(case, Way::Rule, |sample| sample.work);
        Some(Verdict::of_spread(
            format!("{}: work, over stock", case.name()),
            ratios,
            "",
            Goal::of(Key("desktop.work")),
        ))
    }

    fn table(&self, case: &Case) -> Table {
        let summary = |samples: &[f64]| Summary::of(samples.iter().copied());
        let work =
            |row: &Row<Sample>| match row.samples.first().map(|one| self.over_stock(case, one.way, |one| one.work)) {
                Some(work) if work.count > 0 => figure(work.median),
                _ => "-".to_owned(),
            };

        Columns::of(case.name(), Way::ALL.map(|way| Row::new(way.title(), self.of(case, way))))
            .name("")
            .median("on screen after ms, mean", |sample| summary(&sample.shown_ms).mean)
            .median("p99", |sample| summary(&sample.shown_ms).p99)
            .median("key to screen ms, mean", |sample| summary(&sample.echo_ms).mean)
            .median("p99", |sample| summary(&sample.echo_ms).p99)
            .median("frames /s", |sample| sample.frames_per_s)
            .cell("work, of stock", work)
            .table()
    }
}

fn notes() -> Vec<String> {
    vec![
        format!(
            "How it was measured. For each line a new server of {} x {}, its managers, an xterm, and a client that paints a \
             rectangle of 60 x 60 every 80 ms and looks at its middle on the root window once a millisecond; what is not \
             seen after {} s counts as that. Each third time a key is typed into the xterm by XTEST, and its echo looked \
             for. Frames are what the compositing manager paints into the overlay or the root window, by DAMAGE. Work is \
             what all x11perf got done by their own count. Medians over the turns; stock, off and on in turn.",
            SCREEN.0,
            SCREEN.1,
            LIMIT.as_secs(),
        ),
        "Reading results. picom asks for the damage of each window and waits for the reply; on a server that serves twelve \
         others between two of its requests there is always more damage when the reply comes, so it never comes to paint, \
         and the screen stands still. Work over the stock server's is therefore below one: there nothing was painted. What \
         the twelve lose is what the frames cost, and the processor time of a compositor that works."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(turn: u32, way: Way, shown_ms: f64, work: f64) -> Sample {
        let case = CASES[0];
        Sample {
            turn,
            case,
            way,
            shown_ms: vec![shown_ms; 5],
            echo_ms: vec![9.0],
            frames_per_s: 30.0,
            work: Some(work),
        }
    }

    #[test]
    fn ratios_are_taken_within_a_turn() {
        let samples = vec![
            sample(0, Way::Stock, 100.0, 50.0),
            sample(0, Way::Fair, 200.0, 40.0),
            sample(0, Way::Rule, 10.0, 40.0),
            sample(1, Way::Rule, 30.0, 90.0),
            sample(1, Way::Stock, 1000.0, 100.0),
        ];
        let study = Desktop { samples }.study();
        assert_eq!((study.tables.len(), study.verdicts.len()), (1, 2), "what was not measured is not shown");
        assert!((study.verdicts[0].value - 0.065).abs() < 1e-9 && study.verdicts[0].is_met() == Some(true));
        assert_eq!(study.verdicts[1].is_met(), Some(false), "0.85 of the work");
        assert_eq!(study.tables[0].rows[1][6], "0.800");
    }
}
