// SPDX-License-Identifier: MIT
//! A media player: the times between its frames, while others keep the server busy.
//!
//! After Manica et al., section 4.3 and Figure 10: a film of 25 frames per second, and x11perf that begins at about frame
//! 110 and ends at about frame 210; with one x11perf, as there, and with twelve, of
//! requests that wait and of such that do not. The player is mpv, told to leave out
//! nothing, as theirs was, and then as it comes, when it leaves out what is late. What is compared is the time between two
//! frames as the server executed them ([`crate::mpv`]), under one scheduler after the other on one server.

mod showing;

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::boost::Boost;
use crate::goals::Key;
use crate::load::{Load, Perf, Placement};
use crate::mpv::Playing;
use crate::process::SchedStat;
use crate::program;
use crate::scheduler::Stage;
use crate::server::{Kind, Setup};
use crate::statistics::{Spread, Summary, deviation, mean};
use crate::study::{Chart, Columns, Goal, Line, Lines, Row, Study, Table, Verdict, figure};
use crate::tiles::SCREEN;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use showing::{FIRST_FRAMES, FRAME_MS, Showing, TOLERANCE_MS, Way, regular};
use std::process::Command;
use std::time::Duration;

/// Of server time, soft.
const BUDGET_US: u32 = 10_000;
const PERIOD_US: u32 = 40_000;
/// Of a processor, for mpv's main thread, which is not the one that makes the picture; the others go before most.
const PROCESSOR: &str = "4ms/10ms";
const SECOND: Duration = Duration::from_secs(1);
/// A film takes 13 s, and there are twenty in a turn.
const MOST_TURNS: u32 = 3;

/// What plays beside what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    /// Of x11perf.
    test: &'static str,
    clients: usize,
    /// Whether mpv may leave out frames.
    drops: bool,
    /// Also where it is to be quick.
    quick: bool,
}

/// The paper's test waits for each answer; ellipses are sent without waiting, and fill the server's queue.
const CASES: [Case; 5] = [
    Case { test: "getimagexy100", clients: 1, drops: false, quick: false },
    Case { test: "getimagexy100", clients: 12, drops: false, quick: true },
    Case { test: "getimagexy100", clients: 12, drops: true, quick: false },
    Case { test: "ellipse100", clients: 12, drops: false, quick: false },
    Case { test: "ellipse100", clients: 12, drops: true, quick: true },
];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Player {
    load_at_frame: usize,
    load_s: f64,
    films: Vec<Showing>,
}

/// What happens in a film.
struct Script {
    load_at_frame: usize,
    load: Duration,
    after: Duration,
}

impl Measure for Player {
    const NAME: &'static str = "player";
    const TAKES: Takes = Takes { quick_s: 45, full_s: 800 };
    const ABOUT: &'static str = "a film's inter-frame times beside busy clients (4 minutes a turn, at most 3)";

    fn run(bench: &Bench) -> Result<Self> {
        let script = match bench.quick {
            true => Script { load_at_frame: 30, load: SECOND * 2, after: SECOND / 2 },
            false => Script { load_at_frame: 110, load: SECOND * 4, after: SECOND * 4 },
        };
        let stage = Stage::of(Setup { screen: SCREEN, ..Setup::with_module(Kind::Xvfb, bench.module()) })?;
        let mut films = Vec::new();
        for turn in 0..bench.pairs.min(MOST_TURNS) {
            for case in CASES.iter().filter(|case| case.quick || !bench.quick) {
                bench.say(format!("turn {}: {}", turn + 1, case.name()));
                let perf = Perf::calibrate(stage.server().display(), case.test)?;
                for way in Way::in_turn(turn) {
                    films.push(Showing { turn, ..show(&stage, way, case, &script, &perf)? });
                }
            }
        }
        Ok(Player { load_at_frame: script.load_at_frame, load_s: script.load.as_secs_f64(), films })
    }

    fn study(&self) -> Study {
        let mut study = Study {
            title: "A media player".to_owned(),
            question:
                "A film of 25 frames per second, and x11perf that keeps the server busy for a while: how regular \
                       are the player's frames?"
                    .to_owned(),
            notes: self.notes(),
            ..Study::default()
        };
        for case in &CASES {
            let films: Vec<&Showing> = self.films.iter().filter(|film| case.is_of(film)).collect();
            if films.is_empty() {
                continue;
            }
            study.tables.push(table(&films, case));
            if !case.drops {
                study.verdicts.extend(ways(&films).map(|way| verdict(&films, way, case)));
                study.charts.push(self.chart(&films, case));
            }
        }
        study
    }
}

impl Case {
    fn name(&self) -> String {
        let player = if self.drops { "mpv leaves out late frames" } else { "mpv leaves out nothing" };
        format!("{} x {}, {player}", self.clients, self.test)
    }

    fn is_of(&self, film: &Showing) -> bool {
        (self.test, self.clients, self.drops) == (film.test.as_str(), film.clients, film.drops)
    }
}

impl Player {
    /// Figure 10; the first turn.
    fn chart(&self, films: &[&Showing], case: &Case) -> Chart {
        let lines = ways(films).filter_map(|way| {
            let film = films.iter().find(|film| film.way == way)?;
            let points = film.intervals().map(|interval| [interval.frame as f64, interval.ms]);
            let end = film.beside().last().map_or(self.load_at_frame, |interval| interval.frame);
            Some(Line::new(way.name(), format!("{}; load until frame {end}", way.title()), points))
        });
        let title = format!("Inter-frame times; {} x {} from frame {} on", case.clients, case.test, self.load_at_frame);
        Chart::Lines(Lines::new(title, "frame", "time since the frame before, ms", lines))
    }

    fn notes(&self) -> Vec<String> {
        let lost: u64 = self.films.iter().map(|film| film.lost).sum();
        let (budget, period) = (f64::from(BUDGET_US) / 1e3, f64::from(PERIOD_US) / 1e3);
        vec![
            format!(
                "How it was measured. One Xvfb with xqos; a film of 640 x 360 in mpv, without sound, each film a new mpv. \
                 x11perf is started when frame {} was drawn and ended {} s after all of it was busy; twelve have their \
                 windows side by side. With cbs mpv has {} ms in {} ms reserved, soft; with CPU, besides, {PROCESSOR} of a processor \
                 (SCHED_DEADLINE; its other threads nice -15), and the server has one at once while it works for mpv. A frame is drawn when the server \
                 has executed its request, by its trace ({lost} records lost). Regular: within {TOLERANCE_MS} ms of \
                 {FRAME_MS} ms. Beside the load: from the start of the first x11perf to the end; busy: without the time \
                 in which they start; before it: the same film until then, from frame {FIRST_FRAMES} on.",
                self.load_at_frame,
                figure(self.load_s),
                figure(budget),
                figure(period),
            ),
            "What is whose. mpv's own: whether it asked in time, from the moments at which the server knew of a frame. \
             Behind others: what a frame waited while others were served, all that a scheduler of the server can change \
             (with a server that the kernel stopped in the middle of it). The kernel's part: of the time beside the load \
             the server was runnable and had no processor; mpv itself competes with x11perf for the processors too."
                .to_owned(),
            "Reading results. Figure 10 of Manica et al. shows, without numbers, 40 ms for the reserved player all the \
             time, and for the other one a large increase from frame 110 on and, when x11perf ends, a run of short times \
             while the server works off what was queued. That was a server that one x11perf could overload, and a player \
             whose frames queued up without a limit; mpv has at most two on the way and waits, so its late frames \
             lengthen the film, and it hurries by at most 0.2 s. getimagexy100 waits for each answer and is little of an \
             overload today; ellipse100 does not wait, and shows what the paper saw. Comparable are the shapes of the \
             lines, not their heights."
                .to_owned(),
        ]
    }
}

fn table(films: &[&Showing], case: &Case) -> Table {
    let beside = |film: &Showing| -> Vec<f64> { film.beside().map(|interval| interval.ms).collect() };
    let row = |way: Way| Row::new(way.title(), films.iter().copied().filter(move |film| film.way == way));
    Columns::of(case.name(), ways(films).map(row))
        .name("scheduler")
        .percent("regular before it", |film| regular(film.before()))
        .percent("beside it", |film| regular(film.beside()))
        .percent("while busy", |film| regular(film.busy()))
        .percent("mpv's own", Showing::own_regular)
        .median("mean ms", |film| mean(&beside(film)))
        .median("deviation", |film| deviation(&beside(film)))
        .max("worst ms", |film| Summary::of(beside(film)).worst)
        .median("asked to drawn ms, p99", |film| film.response_ms().p99)
        .median("behind others ms, p99", |film| film.behind_ms().p99)
        .percent("kernel's part", Showing::kernel_part)
        .median("left out", |film| film.dropped as f64)
        .table()
}

/// Those that were measured.
fn ways(films: &[&Showing]) -> impl Iterator<Item = Way> {
    Way::ALL.into_iter().filter(|&way| films.iter().any(|film| film.way == way))
}

fn verdict(films: &[&Showing], way: Way, case: &Case) -> Verdict {
    let films = films.iter().filter(|film| film.way == way);
    let frames = films.clone().map(|film| film.beside().count());
    let parts = Spread::of(films.clone().map(|film| regular(film.beside())));
    let what = format!("{}: part of regular frames beside {} x {}", way.name(), case.clients, case.test);
    // Beside one x11perf the stock server shows all frames in time too.
    let has_goal = way.is_reserved() && case.clients > 1;
    let goal = if has_goal { Goal::of(Key("player.regular")) } else { Goal::Reported };
    Verdict::of_spread(what, parts, "", goal).counting(frames)
}

fn show(stage: &Stage, way: Way, case: &Case, script: &Script, perf: &Perf) -> Result<Showing> {
    let Case { clients, drops, .. } = *case;
    let (control, server) = (stage.control(), stage.server());
    stage.follow(way.scheduler())?;
    let _boost = (way == Way::Both).then(|| Boost::start(server.display(), Duration::ZERO)).transpose()?;
    let launcher = (way == Way::Both).then(launcher).transpose()?;
    let mut playing = Playing::start(launcher, control, server.display(), drops)?;
    if way == Way::Cbs {
        playing.reserve(control, BUDGET_US, PERIOD_US)?;
    }
    playing.reach(script.load_at_frame)?;
    let now_ns = || Ok::<_, anyhow::Error>(control.clients()?.now_ns);
    let schedstat = server.schedstat();
    let delayed_ns = || schedstat.as_ref().and_then(SchedStat::read).map_or(0, |got| got.delayed_ns);
    let (load_began_ns, delayed_before_ns) = (now_ns()?, delayed_ns());
    let placement = if clients == 1 { Placement::Stacked } else { Placement::SideBySide };
    let mut load = Load::start(server.display(), perf, clients, placement)?;
    let load_busy_ns = now_ns()?;
    playing.play(script.load)?;
    let (load_ended_ns, kernel_ns) = (now_ns()?, delayed_ns() - delayed_before_ns);
    load.see_running()?;
    drop(load);
    playing.play(script.after)?;
    let (frames, dropped, lost) = playing.end()?;
    control.stop_trace()?;
    Ok(Showing {
        turn: 0,
        way,
        test: perf.test.clone(),
        clients,
        drops,
        load_began_ns,
        load_busy_ns,
        load_ended_ns,
        kernel_ns,
        frames,
        dropped,
        lost,
    })
}

/// `xqos run` with both reservations; refused, mpv does not play.
fn launcher() -> Result<Command> {
    program::run_reserved(&format!("{BUDGET_US}us/{PERIOD_US}us"), PROCESSOR)
}

#[cfg(test)]
mod tests {
    use super::showing::tests::showing;
    use super::*;

    fn player(films: Vec<Showing>) -> Study {
        Player { load_at_frame: 1, load_s: 4.0, films }.study()
    }

    #[test]
    fn only_the_reserved_player_is_held_against_the_goal() {
        let beside = |clients, way| Showing { clients, ..showing(way, &[10, 50, 90, 130, 171]) };
        let alone = player(Way::ALL.map(|way| beside(1, way)).into());
        assert!(alone.verdicts.iter().all(|verdict| verdict.is_met().is_none()), "the stock server meets it too");
        let study = player(Way::ALL.map(|way| beside(12, way)).into());
        let met: Vec<_> = study.verdicts.iter().map(Verdict::is_met).collect();
        assert_eq!(met, [None, None, Some(true), Some(true)]);
        assert_eq!((study.charts.len(), study.tables.len()), (1, 1));
        let worse = player(vec![Showing { clients: 12, ..showing(Way::Cbs, &[10, 50, 90, 150]) }]);
        assert_eq!(worse.verdicts[0].is_met(), Some(false));
    }

    #[test]
    fn a_player_that_may_leave_out_frames_has_a_table_and_no_goal() {
        let films = vec![Showing { drops: true, dropped: 7, ..showing(Way::Stock, &[10, 50, 130]) }];
        let study = player(films);
        assert!(study.verdicts.is_empty() && study.charts.is_empty());
        assert_eq!(study.tables[0].rows[0].last().unwrap(), "7");
    }
}
