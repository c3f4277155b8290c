// SPDX-License-Identifier: MIT
//! Reservations that are found by measurement, beside one that was found by hand: mpv with a film, and ocbench.
//!
//! The film plays as in `player` (mpv leaves out nothing), beside twelve x11perf: alone, with nothing reserved, with 10 ms in 40 ms as
//! a person finds by trying, and under `xqos run --reserve auto`. ocbench draws and sleeps for 10 ms, and `xqos reserve ... auto`
//! begins to watch it when the twelve are busy already: contention must not be learnt as its period.

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::light::Reservation;
use crate::load::{Load, Perf, Placement};
use crate::mpv::{FRAMES_PER_SECOND, Playing};
use crate::ocbench::Ocbench;
use crate::process::Owned;
use crate::program;
use crate::server::Server;
use crate::statistics::{Spread, Summary, mean};
use crate::study::{Columns, Goal, Row, Study, Verdict};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xqos_client::Control;

const CLIENTS: usize = 12;
const FILM_BESIDE: &str = "ellipse100";
const OCBENCH_BESIDE: &str = "getimagexy100";
/// As `player` reserves by hand.
const BUDGET_US: u32 = 10_000;
const PERIOD_US: u32 = 40_000;
const FRAME_MS: f64 = 1000.0 / FRAMES_PER_SECOND as f64;
const TOLERANCE_MS: f64 = 2.0;
/// Measurement needs a dozen frames; the load comes after these.
const FIRST_FRAMES: usize = 40;
/// Of ocbench: what is left out at the beginning of each part, beside the load the time to find a reservation.
const FIRST: usize = 120;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    Idle,
    Nothing,
    Hand,
    Auto,
}

impl Way {
    const ALL: [Way; 4] = [Way::Idle, Way::Nothing, Way::Hand, Way::Auto];

    fn title(self) -> &'static str {
        match self {
            Way::Idle => "nobody beside it",
            Way::Nothing => "nothing reserved",
            Way::Hand => "10 ms in 40 ms, by hand",
            Way::Auto => "auto",
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Auto {
    films: Vec<Film>,
    /// Mean period of ocbench beside the load and idle, ms, and what was reserved of the server.
    wheels: Vec<(f64, f64, f64)>,
}

/// A film beside the load.
#[derive(Debug, Serialize, Deserialize)]
struct Film {
    way: Way,
    intervals_ms: Vec<f64>,
    /// Behind others, p99.
    behind_ms: f64,
    /// Part of the server, the most that was seen.
    reserved: f64,
}

impl Film {
    fn regular(&self) -> f64 {
        let regular = self.intervals_ms.iter().filter(|&&ms| (ms - FRAME_MS).abs() <= TOLERANCE_MS).count();
        regular as f64 / self.intervals_ms.len().max(1) as f64
    }
}

impl Measure for Auto {
    const NAME: &'static str = "auto";
    const ABOUT: &'static str = "reservations found by measurement, beside one found by hand: a film, and ocbench";
    const TAKES: Takes = Takes { quick_s: 60, full_s: 400 };

    fn run(bench: &Bench) -> Result<Self> {
        let server = bench.xqos(bench.module(), 64)?;
        let control = server.control()?;
        let spokes = Ocbench::calibrate(&server)?;
        let [beside_film, beside_wheel] =
            [FILM_BESIDE, OCBENCH_BESIDE].map(|test| Perf::calibrate(server.display(), test));
        let (beside_film, beside_wheel) = (beside_film?, beside_wheel?);
        let (mut films, mut wheels) = (Vec::new(), Vec::new());
        for pair in 0..bench.pairs {
            for way in Way::ALL {
                bench.say(format!("turn {} of {}: a film, {}", pair + 1, bench.pairs, way.title()));
                films.push(film(bench, &server, &control, &beside_film, way)?);
            }
            bench.say(format!("turn {} of {}: ocbench", pair + 1, bench.pairs));
            wheels.push(wheel(bench, &server, spokes, &beside_wheel)?);
        }
        Ok(Auto { films, wheels })
    }

    fn study(&self) -> Study {
        let table = Columns::of(
            "A film beside twelve x11perf, medians",
            Way::ALL.map(|way| Row::new(way.title(), self.of(way))),
        )
        .name("reserved")
        .percent("regular frames", Film::regular)
        .median("p99 ms", |film| Summary::of(film.intervals_ms.iter().copied()).p99)
        .max("worst ms", |film| Summary::of(film.intervals_ms.iter().copied()).worst)
        .median("behind others ms, p99", |film| film.behind_ms)
        .percent("of the server", |film| film.reserved)
        .table();
        let over_hand = |figure: fn(&Film) -> f64| {
            let (auto, hand): (Vec<&Film>, Vec<&Film>) = (self.of(Way::Auto).collect(), self.of(Way::Hand).collect());
            Spread::of(auto.iter().zip(hand).map(|(auto, hand)| figure(auto) / figure(hand)))
        };
        let frames = || self.of(Way::Auto).map(|film| film.intervals_ms.len());
        let wheels = Spread::of(self.wheels.iter().map(|(beside_ms, idle_ms, _)| beside_ms / idle_ms));
        let of_wheels = Spread::of(self.wheels.iter().map(|wheel| wheel.2));
        Study {
            title: "Reservations found by measurement".to_owned(),
            question: "A player and ocbench run beside twelve busy clients, and nobody chooses a budget or a period: do they keep their \
                       pace?"
                .to_owned(),
            verdicts: vec![
                Verdict::of_spread("film: regular frames, auto over by hand", over_hand(Film::regular), "x", Goal::of(Key("auto.frames"))).counting(frames()),
                Verdict::of_spread("film: reserved, auto over by hand", over_hand(|film| film.reserved), "x", Goal::of(Key("auto.reserved"))),
                Verdict::of_spread("ocbench: period beside the load over idle", wheels, "x", Goal::of(Key("auto.ocbench"))),
                Verdict::of_spread("ocbench: part of the server reserved", of_wheels, "", Goal::Reported),
            ],
            tables: vec![table],
            notes: vec![format!(
                "How it was measured. One Xvfb with xqos, policy fair; a film of {FRAMES_PER_SECOND} frames a second, without sound, each a \
                 new mpv that leaves out nothing; {CLIENTS} x11perf -{FILM_BESIDE} side by side come after frame {FIRST_FRAMES}. Regular: \
                 within {TOLERANCE_MS} ms of {FRAME_MS} ms, while all of the load is busy. Beside ocbench: -{OCBENCH_BESIDE}; its first \
                 {FIRST} activations of each part do not count."
            )],
            ..Study::default()
        }
    }
}

impl Auto {
    fn of(&self, way: Way) -> impl Iterator<Item = &Film> {
        self.films.iter().filter(move |film| film.way == way)
    }
}

fn film(bench: &Bench, server: &Server, control: &Control, perf: &Perf, way: Way) -> Result<Film> {
    let launcher = (way == Way::Auto).then(|| xqos(&["run", "--quiet", "--reserve", "auto", "--"])).transpose()?;
    let mut playing = Playing::start(launcher, control, server.display(), false)?;
    if way == Way::Hand {
        playing.reserve(control, Reservation { budget_us: BUDGET_US, period_us: PERIOD_US, hard: false })?;
    }
    playing.reach(FIRST_FRAMES)?;
    let load =
        (way != Way::Idle).then(|| Load::start(server.display(), perf, CLIENTS, Placement::SideBySide)).transpose()?;
    let (from_ns, mut reserved) = (control.clients()?.now_ns, 0.0_f64);
    for _ in 0..8 {
        playing.play(bench.time(8000, 2400) / 8)?;
        reserved = reserved.max(share_reserved(control, |entry| entry.name == "mpv")?);
    }
    let to_ns = control.clients()?.now_ns;
    drop(load);
    let (frames, ..) = playing.end()?;
    control.stop_trace()?;
    let beside: Vec<_> = frames.iter().filter(|frame| (from_ns..=to_ns).contains(&frame.drawn_ns)).collect();
    let intervals_ms = beside.windows(2).map(|pair| (pair[1].drawn_ns - pair[0].drawn_ns) as f64 / 1e6).collect();
    let behind_ms = Summary::of(beside.iter().map(|frame| frame.behind_ns as f64 / 1e6)).p99;
    Ok(Film { way, intervals_ms, behind_ms, reserved })
}

fn wheel(bench: &Bench, server: &Server, spokes: usize, perf: &Perf) -> Result<(f64, f64, f64)> {
    let control = server.control()?;
    let mut ocbench = Ocbench::new(&control, spokes)?;
    let own = ocbench.base();
    let count = FIRST + if bench.quick { 100 } else { 400 };
    let mut period_ms = || {
        let activations = ocbench.activate(server, Instant::now(), count, |_| {})?;
        Ok::<f64, anyhow::Error>(mean(&activations.periods().skip(FIRST).map(|period| period.ms()).collect::<Vec<_>>()))
    };
    let idle_ms = period_ms()?;
    let load = Load::start(server.display(), perf, CLIENTS, Placement::SideBySide)?;
    let mut command = xqos(&["reserve", "--client", &format!("{own:#x}"), "auto"])?;
    command.env("DISPLAY", server.display()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut auto = Owned::start(&mut command, Duration::from_secs(2))?;
    let beside_ms = period_ms()?;
    auto.see_running("xqos reserve")?;
    let reserved = share_reserved(&control, |entry| entry.client == own)?;
    drop(load);
    Ok((beside_ms, idle_ms, reserved))
}

fn share_reserved(control: &Control, is_meant: impl Fn(&xqos_abi::ClientEntry) -> bool) -> Result<f64> {
    let clients = control.clients()?.clients;
    let reserved = clients.iter().filter(|entry| is_meant(entry) && entry.period_us > 0);
    Ok(reserved.map(|entry| f64::from(entry.budget_us) / f64::from(entry.period_us)).sum())
}

fn xqos(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(program::own("xqos")?);
    command.args(arguments);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_held_against_what_a_hand_found() {
        let film = |way, reserved, late_ms| Film {
            way,
            intervals_ms: [[40.0; 98].as_slice(), &[late_ms; 2]].concat(),
            behind_ms: 1.0,
            reserved,
        };
        let met = |auto, wheel| -> Vec<_> {
            let films = vec![film(Way::Hand, 0.25, 80.0), auto];
            Auto { films, wheels: vec![wheel] }.study().verdicts.iter().map(Verdict::is_met).collect()
        };
        assert_eq!(met(film(Way::Auto, 0.1, 40.0), (12.1, 12.0, 0.2)), [Some(true), Some(true), Some(true), None]);
        let worse = Film { intervals_ms: vec![80.0; 10], ..film(Way::Auto, 0.2, 40.0) };
        assert_eq!(met(worse, (13.0, 12.0, 0.2)), [Some(false), Some(false), Some(false), None]);
    }
}
