// SPDX-License-Identifier: MIT
//! Reservations of X and of the processor together, beside programs that use all the processor they can get.
//!
//! A reservation of server time is worth what processor time the server has, and the client with it. Beside four programs
//! that only burn processor time: a light client among six busy ones, whose server is lent a priority while it has
//! work (`xqos boost`), and who has processor time itself (SCHED_DEADLINE); and players of 25 frames a second that are
//! started with both reservations (`xqos run --reserve --cpu`), or with none. In turn on one server, in one run.

mod case;
mod film;

use super::{Measure, Takes};
use crate::actor::{Actor, Role};
use crate::bench::Bench;
use crate::boost::Boost;
use crate::goals::Key;
use crate::light::{Light, Reservation, Series};
use crate::load::{Load, Perf, Placement};
use crate::order::in_turn;
use crate::processor::Reserved;
use crate::scheduler::{Scheduler, Stage};
use crate::server::{Kind, Server, Setup};
use crate::statistics::{Spread, Summary, ratios};
use crate::study::{Chart, Columns, Goal, Group, Line, Lines, Range, Ranges, Row, Study, Table, Verdict};
use crate::tiles::SCREEN;
use anyhow::{Result, anyhow};
use case::Case;
use film::{FRAME_MS, Film, Player, TOLERANCE_MS};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// More than there are processors, on most machines that run a desktop.
const BURNERS: usize = 4;
const CLIENTS: usize = 6;
/// Its requests are sent without waiting: six of them are an overload.
const TEST: &str = "ellipse100";
/// Of the light client: server time, and processor time.
const OF_X: Reservation = Reservation { budget_us: 3_000, period_us: 10_000, hard: false };
const OF_PROCESSOR: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(10)];
/// Nobody is exposed here; `xqos boost` wants a limit.
const EXPOSE: Duration = Duration::from_millis(25);
const MOST_TURNS: u32 = 4;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EndToEnd {
    responses: Vec<Response>,
    films: Vec<Film>,
    /// What could not be measured, and why; each once.
    missing: Vec<(String, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Response {
    turn: u32,
    case: Case,
    series: Series,
}

impl Measure for EndToEnd {
    const NAME: &'static str = "endtoend";
    const ABOUT: &'static str = "reservations of X and of the processor, beside programs that burn processor time";
    const TAKES: Takes = Takes { quick_s: 30, full_s: 480 };

    fn run(bench: &Bench) -> Result<Self> {
        let stage = Stage::of(Setup { screen: SCREEN, ..Setup::with_module(Kind::Xvfb, bench.module()) })?;
        stage.follow(Scheduler::Cbs)?;
        let (server, display) = (stage.server(), stage.server().display());
        let perf = Perf::calibrate(display, TEST)?;
        let mut burners = (0..BURNERS).map(|_| Actor::start(display, Role::Burner)).collect::<Result<Vec<_>>>()?;
        let mut all = EndToEnd { responses: Vec::new(), films: Vec::new(), missing: Vec::new() };
        for turn in 0..bench.pairs.min(MOST_TURNS) {
            bench.say(format!("turn {}: a light client beside {CLIENTS} x {TEST}", turn + 1));
            let mut load = Load::start(display, &perf, CLIENTS, Placement::SideBySide)?;
            for case in Case::in_turn(turn) {
                match respond(server, case, bench.time(10_000, 1_500)) {
                    Ok(series) => all.responses.push(Response { turn, case, series }),
                    Err(error) if case == Case::Unreserved => return Err(error),
                    Err(error) => all.leave_out(case.title(), &format!("{error:#}")),
                }
            }
            load.see_running()?;
            drop(load);
            for player in Player::ALL {
                bench.say(format!("turn {}: {}", turn + 1, player.title()));
                for reserved in in_turn([false, true], turn) {
                    match film::show(&stage, player, reserved, bench.time(15_000, 2_000)) {
                        Ok(film) => all.films.push(Film { turn, ..film }),
                        Err(error) => all.leave_out(&film::title(player, reserved), &format!("{error:#}")),
                    }
                }
            }
        }
        burners.iter_mut().try_for_each(|burner| burner.see_running("a burner"))?;
        drop(burners);
        Ok(all)
    }

    fn study(&self) -> Study {
        Study {
            title: "Reservations from end to end".to_owned(),
            question: format!(
                "{BURNERS} programs burn processor time beside the server and its clients. How long does a light client \
                 wait, and how regular is a player, with reservations of server time and of processor time?"
            ),
            verdicts: self.verdicts(),
            tables: vec![self.table_of_responses(), self.table_of_films()],
            charts: vec![Chart::Ranges(self.chart_of_responses()), Chart::Lines(self.chart_of_films())],
            notes: self.notes(),
            ..Study::default()
        }
    }
}

/// In a thread of its own, which takes its reservation with it.
fn respond(server: &Server, case: Case, time: Duration) -> Result<Series> {
    let _boost = case.is_boosted().then(|| Boost::start(server.display(), EXPOSE)).transpose()?;
    let reservation = (case != Case::Unreserved).then_some(OF_X);
    std::thread::scope(|scope| {
        let client = scope.spawn(move || {
            let [budget, period] = OF_PROCESSOR;
            let _reserved = case.has_processor().then(|| Reserved::this_thread(budget, period)).transpose()?;
            Ok(Light { reservation, ..Light::default() }.measure(server, time)?.series)
        });
        client.join().map_err(|_| anyhow!("the thread of the light client failed"))?
    })
}

impl EndToEnd {
    fn leave_out(&mut self, what: &str, why: &str) {
        if self.missing.iter().all(|missing| missing.0 != what) {
            self.missing.push((what.to_owned(), why.to_owned()));
        }
    }

    fn of(&self, case: Case) -> impl Iterator<Item = &Response> {
        self.responses.iter().filter(move |response| response.case == case)
    }

    fn films_of(&self, player: Player, reserved: bool) -> impl Iterator<Item = &Film> {
        self.films.iter().filter(move |film| (film.player, film.reserved) == (player, reserved))
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for case in Case::ALL.into_iter().skip(1).filter(|&case| self.of(case).next().is_some()) {
            let mean = |one: &Response| Some(one.series.response_ms().mean);
            let ratios = ratios(self.of(Case::Unreserved), self.of(case), |one| one.turn, mean);
            let what = format!("light client: mean response unreserved over {}", case.title());
            verdicts.push(Verdict::of_spread(what, ratios, "x", Goal::Reported));
        }
        for (player, reserved) in film::all() {
            if self.films_of(player, reserved).next().is_none() {
                continue;
            }
            let regular = Spread::of(self.films_of(player, reserved).map(Film::regular));
            let what = format!("{}: part of the frames within {TOLERANCE_MS} ms", film::title(player, reserved));
            let goal = if reserved { Goal::of(Key("endtoend.regular")) } else { Goal::Reported };
            let frames = self.films_of(player, reserved).map(|film| film.intervals_ms().len());
            verdicts.push(Verdict::of_spread(what, regular, "", goal).counting(frames));
        }
        verdicts
    }

    fn table_of_responses(&self) -> Table {
        let title = format!("Response beside {CLIENTS} x {TEST} and {BURNERS} burners; medians of the turns");
        let rows = Case::ALL.into_iter().map(|case| Row::new(case.title(), self.of(case)));
        Columns::of_measured(title, rows)
            .name("light client")
            .spread("mean ms", |one| one.series.response_ms().mean)
            .median("median", |one| one.series.response_ms().p50)
            .spread("p99", |one| one.series.response_ms().p99)
            .max("worst", |one| one.series.response_ms().worst)
            .median("kernel's part, mean", |one| one.series.kernel_ms().mean)
            .median("its p99", |one| one.series.kernel_ms().p99)
            .percent("turns left out", |one| one.series.missed_part())
            .table()
    }

    fn table_of_films(&self) -> Table {
        let row = |(player, reserved)| Row::new(film::title(player, reserved), self.films_of(player, reserved));
        let rows = film::all().map(row);
        Columns::of_measured(format!("Inter-frame times beside {BURNERS} burners; medians of the turns"), rows)
            .name("player")
            .percent("within 3 ms", Film::regular)
            .median("mean ms", |film| film.summary().mean)
            .median("deviation", Film::deviation_ms)
            .median("p99", |film| film.summary().p99)
            .median("worst ms", |film| film.summary().worst)
            .median("frames left out", Film::left_out)
            .table()
    }

    fn chart_of_responses(&self) -> Ranges {
        let range = |case: Case| {
            let all = self.of(case).flat_map(|one| one.series.response_ns.iter().map(|&ns| ns as f64 / 1e6));
            Range::of(case.name(), Summary::of(all))
        };
        Ranges {
            title: "Response of the light client".to_owned(),
            x_label: "milliseconds".to_owned(),
            groups: vec![Group {
                name: format!("{CLIENTS} x {TEST}, {BURNERS} burners"),
                ranges: Case::ALL.into_iter().filter_map(range).collect(),
            }],
        }
    }

    /// The first turn.
    fn chart_of_films(&self) -> Lines {
        let lines = film::all().filter_map(|(player, reserved)| {
            let film = self.films_of(player, reserved).next()?;
            let case = match (player, reserved) {
                (Player::Plain, false) => "stock",
                (Player::Plain, true) => "cbs",
                (Player::Mpv, false) => "classic",
                (Player::Mpv, true) => "smart",
            };
            let points = film.intervals_ms().into_iter().enumerate().map(|(frame, ms)| [frame as f64, ms]);
            Some(Line::new(case, film::title(player, reserved), points))
        });
        Lines::new("Inter-frame times of the first turn", "frame", "time since the frame before, ms", lines)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            format!(
                "How it was measured. One Xvfb with xqos, policy fair, and {BURNERS} processes that burn processor time \
                 all the while. The light client draws 200 lines every 10 ms and waits for the answer, beside {CLIENTS} \
                 x11perf -{TEST} with their windows side by side; it has 3 ms in 10 ms of the server, that and `xqos boost` \
                 beside it, and that and 2 ms in 10 ms of a processor itself. A player shows a frame every {FRAME_MS} ms: one \
                 of ours, of one thread, that works for 2 ms and draws a wheel, by its own clock after the server's \
                 answer; and mpv, by the server's trace of its requests. Both are started by `xqos run --reserve \
                 --cpu`, with `xqos boost`, or plainly."
            ),
            "Reading results. Kernel's part: of a response, the server or the light client was runnable and had no \
             processor. That is what a reservation of server time alone cannot mend: between the burners the server gets \
             its turn late whoever is first in its own queue. SCHED_DEADLINE is for one thread; the other \
             threads of a program, of which mpv has many, get a nice value of -15 and short slices."
                .to_owned(),
        ];
        notes.extend(self.missing.iter().map(|(what, why)| format!("Not measured: {what}: {why}")));
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::film::tests::film;
    use super::*;

    fn response(turn: u32, case: Case, response_ns: u64) -> Response {
        Response { turn, case, series: Series { response_ns: vec![response_ns; 3], ..Series::default() } }
    }

    fn study(responses: Vec<Response>, films: Vec<Film>) -> Study {
        EndToEnd { responses, films, missing: vec![("both".to_owned(), "no right".to_owned())] }.study()
    }

    #[test]
    fn responses_are_compared_within_a_turn() {
        let responses = vec![
            response(0, Case::Unreserved, 9_000_000),
            response(0, Case::Inherited, 1_000_000),
            response(1, Case::Inherited, 2_000_000),
            response(1, Case::Unreserved, 10_000_000),
        ];
        let study = study(responses, Vec::new());
        assert_eq!(study.verdicts.len(), 1, "what was not measured has no verdict");
        let spread = study.verdicts[0].spread.unwrap();
        assert_eq!((spread.least, spread.greatest), (5.0, 9.0));
        assert!(study.notes.last().unwrap().contains("both: no right"));
    }

    #[test]
    fn only_a_player_with_both_reservations_has_a_goal() {
        let films = vec![film(Player::Plain, false, &[40, 40, 60]), film(Player::Plain, true, &[40, 41, 43])];
        let study = study(Vec::new(), films);
        let met: Vec<_> = study.verdicts.iter().map(Verdict::is_met).collect();
        assert_eq!(met, [None, Some(true)]);
        let late = super::tests::study(Vec::new(), vec![film(Player::Mpv, true, &[40, 36, 44])]);
        assert_eq!(late.verdicts[0].is_met(), Some(false));
    }
}
