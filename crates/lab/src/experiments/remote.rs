//! A remote desktop: from a key at the far end to its echo in the picture, while a video plays beside the terminal.
//!
//! Everything is outside the X server's clients: a viewer sends the key to Xtigervnc and waits until the terminal's part
//! of the picture changes. So the time holds all that somebody at the other end waits for: the key's way through the
//! server, xterm, its drawing, and the VNC server's own cycle of updates. How much the last is, a client of our own
//! tells: it draws a rectangle and waits until the viewer has it. The VNC server reads keys and encodes pictures in the
//! thread that serves X clients; neither is a client that a scheduler could choose.

use super::trial::{BLOCKING_US, RESERVATION};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::desktop::{Film, Painter, Terminal};
use crate::light::Reservation;
use crate::load::{Load, Perf, Placement};
use crate::process::SchedStat;
use crate::rfb::{Area, Viewer};
use crate::scheduler::{Scheduler, Stage};
use crate::server::{Kind, Setup};
use crate::statistics::{Spread, Summary};
use crate::study::{Chart, Goal, Group, Range, Ranges, Study, Table, Verdict, figure, spread_figure};
use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use std::thread::sleep;
use std::time::{Duration, Instant};
use xqos_abi::PolicyChange;

const SCREEN: (u32, u32) = (1280, 800);
/// The upper part of the screen: x11perf's windows lie there too.
const VIDEO: (u16, u16) = (1280, 630);
const TERMINAL: (u16, u16) = (4, 650);
const RECTANGLE: Area = Area { x: 900, y: 660, width: 100, height: 100 };
const PERF: &str = "putimage500";
const PERF_CLIENTS: usize = 4;
/// After so many keys without an echo nobody types on: the terminal is starved.
const MOST_LOST: u32 = 5;
const SEED: u64 = 20_080_422;

/// What else goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Beside {
    Nothing,
    Video,
    Images,
}

impl Beside {
    fn title(self) -> String {
        match self {
            Beside::Nothing => "nothing".to_owned(),
            Beside::Video => format!("mpv, {} x {}, 30 pictures a second", VIDEO.0, VIDEO.1),
            Beside::Images => format!("{PERF_CLIENTS} x {PERF}"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Beside::Nothing => "idle",
            Beside::Video => "video",
            Beside::Images => PERF,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Remote {
    trials: Vec<Trial>,
}

/// One scheduler beside one load, once.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Trial {
    turn: u32,
    beside: Beside,
    scheduler: Scheduler,
    /// From a key to its echo.
    echo_ns: Vec<u64>,
    /// Of each echo: the server or xterm was runnable and had no processor.
    kernel_ns: Vec<u64>,
    /// Keys whose echo was not seen at all.
    lost: u32,
    /// From a client's flush to the picture.
    drawing_ns: Vec<u64>,
    /// The viewer's traffic.
    bytes_per_s: f64,
}

impl Measure for Remote {
    const NAME: &'static str = "remote";
    const ABOUT: &'static str = "from a key to its echo on a remote desktop beside a video";
    const TAKES: Takes = Takes { quick_s: 40, full_s: 780 };

    fn run(bench: &Bench) -> Result<Self> {
        let setup = Setup { screen: SCREEN, ..Setup::with_module(Kind::Xtigervnc, bench.module()) };
        let stage = Stage::of(setup).context("Xtigervnc is in Debian's package tigervnc-standalone-server")?;
        stage.control().set_policy(PolicyChange { blocking_us: Some(BLOCKING_US), ..PolicyChange::default() })?;
        let film = Film::make(VIDEO.0, VIDEO.1)?;
        let perf = Perf::calibrate(stage.server().display(), PERF)?;
        let desk = Desk::open(stage)?;
        let mut trials = Vec::new();
        for turn in 0..bench.pairs {
            for beside in [Beside::Nothing, Beside::Video, Beside::Images] {
                bench.say(format!("beside {}: turn {} of {}", beside.title(), turn + 1, bench.pairs));
                trials.extend(desk.measure(bench, turn, beside, &film, &perf)?);
            }
        }
        Ok(Remote { trials })
    }

    fn study(&self) -> Study {
        let mut study = Study {
            title: "Typing on a remote desktop".to_owned(),
            question: "Somebody types into xterm through a VNC viewer while a video plays beside it. How long until \
                       the letter is there?"
                .to_owned(),
            notes: notes(),
            ..Study::default()
        };
        let mut groups = Vec::new();
        for beside in [Beside::Video, Beside::Images] {
            study.tables.push(self.table(beside));
            study.verdicts.extend(self.verdicts(beside));
            let ranges = self.cases(beside).map(|(name, trials)| range(name, &trials)).collect();
            groups.push(Group { name: format!("beside {}", beside.name()), ranges });
        }
        let title = "From a key to its echo: from the median to the 99th percentile".to_owned();
        study.charts.push(Chart::Ranges(Ranges { title, x_label: "ms".to_owned(), groups }));
        study
    }
}

impl Remote {
    /// The idle server, and each scheduler beside a load.
    fn cases(&self, beside: Beside) -> impl Iterator<Item = (&'static str, Vec<&Trial>)> {
        let of = move |beside, scheduler| {
            let fits = move |trial: &&Trial| trial.beside == beside && trial.scheduler == scheduler;
            self.trials.iter().filter(fits).collect()
        };
        let idle = ("idle", of(Beside::Nothing, Scheduler::Stock));
        let all = Scheduler::ALL.iter().map(move |&scheduler| (scheduler.name(), of(beside, scheduler)));
        std::iter::once(idle).chain(all)
    }

    /// One ratio of means for each turn in which both have echoes.
    fn ratios(&self, above: (Beside, Scheduler), below: (Beside, Scheduler)) -> Spread {
        let find = |turn, (beside, scheduler)| {
            let fits = |trial: &&Trial| (trial.turn, trial.beside, trial.scheduler) == (turn, beside, scheduler);
            self.trials.iter().find(fits).map(|trial| trial.echo_ms().mean).filter(|&mean| mean > 0.0)
        };
        let turns = self.trials.iter().map(|trial| trial.turn).max().map_or(0, |last| last + 1);
        Spread::of((0..turns).filter_map(|turn| Some(find(turn, above)? / find(turn, below)?)))
    }

    fn table(&self, beside: Beside) -> Table {
        let head = [
            "scheduler",
            "mean ms",
            "p50 ms",
            "p99 ms",
            "worst ms",
            "mean over idle",
            "kernel's part ms",
            "drawing to picture ms",
            "lost keys",
            "picture MB/s",
        ];
        let mut table = Table::new(format!("Key to echo beside {}, medians of the turns", beside.title()), &head);
        for (name, trials) in self.cases(beside) {
            let range = range(name, &trials);
            let over = |figure: fn(&Trial) -> f64| Spread::of(trials.iter().map(|trial| figure(trial)));
            let scheduler = Scheduler::ALL.into_iter().find(|scheduler| scheduler.name() == name);
            let over_idle = scheduler
                .map(|scheduler| self.ratios((beside, scheduler), (Beside::Nothing, Scheduler::Stock)))
                .map_or_else(|| "1".to_owned(), |ratios| spread_figure(&ratios));
            table.rows.push(vec![
                scheduler.map_or(name, Scheduler::title).to_owned(),
                spread_figure(&over(|trial| trial.echo_ms().mean)),
                figure(range.p50),
                figure(range.p99),
                figure(over(|trial| trial.echo_ms().worst).greatest),
                over_idle,
                figure(over(|trial| trial.kernel_ms().mean).median),
                figure(over(|trial| trial.drawing_ms().mean).median),
                trials.iter().map(|trial| trial.lost).sum::<u32>().to_string(),
                figure(over(|trial| trial.bytes_per_s / 1e6).median),
            ]);
        }
        table
    }

    fn verdicts(&self, beside: Beside) -> Vec<Verdict> {
        let (stock, fair, cbs) = (Scheduler::Stock, Scheduler::Fair, Scheduler::Cbs);
        let idle = (Beside::Nothing, stock);
        let reported = |what: &str, above, below| {
            let what = format!("beside {}, {what}", beside.name());
            Verdict::of_spread(what, self.ratios(above, below), "x", Goal::Reported)
        };
        vec![
            reported("fair: mean over idle", (beside, fair), idle),
            reported("stock: mean over fair", (beside, stock), (beside, fair)),
            reported("cbs: mean over idle", (beside, cbs), idle),
        ]
    }
}

impl Trial {
    fn echo_ms(&self) -> Summary {
        Summary::of(self.echo_ns.iter().map(|&ns| ns as f64 / 1e6))
    }

    fn kernel_ms(&self) -> Summary {
        Summary::of(self.kernel_ns.iter().map(|&ns| ns as f64 / 1e6))
    }

    fn drawing_ms(&self) -> Summary {
        Summary::of(self.drawing_ns.iter().map(|&ns| ns as f64 / 1e6))
    }
}

/// The server, who looks at it, and a client that draws.
struct Desk {
    // The viewer goes before the server that it looks at.
    viewer: Viewer,
    painter: Painter,
    stage: Stage,
}

impl Desk {
    fn open(stage: Stage) -> Result<Desk> {
        let socket = stage.server().viewer_socket().ok_or_else(|| anyhow!("the server has no viewers"))?;
        Ok(Desk {
            viewer: Viewer::connect(&socket)?,
            painter: Painter::start(stage.server().connect()?, RECTANGLE)?,
            stage,
        })
    }

    /// All schedulers in turn; beside nothing they have nothing to choose, and one is enough.
    fn measure(&self, bench: &Bench, turn: u32, beside: Beside, film: &Film, perf: &Perf) -> Result<Vec<Trial>> {
        let display = self.stage.server().display();
        self.stage.follow(Scheduler::Stock)?;
        let terminal = Terminal::start(display, &self.viewer, TERMINAL.0, TERMINAL.1)?;
        let _video = (beside == Beside::Video).then(|| film.play(display, &self.viewer)).transpose()?;
        let start = || Load::start(display, perf, PERF_CLIENTS, Placement::Stacked);
        let mut images = (beside == Beside::Images).then(start).transpose()?;
        let all = if beside == Beside::Nothing { vec![Scheduler::Stock] } else { Scheduler::in_turn(turn) };
        let trials = all.into_iter().map(|scheduler| self.trial(bench, &terminal, turn, beside, scheduler)).collect();
        images.as_mut().map_or(Ok(()), Load::see_running)?;
        trials
    }

    fn trial(
        &self,
        bench: &Bench,
        terminal: &Terminal,
        turn: u32,
        beside: Beside,
        scheduler: Scheduler,
    ) -> Result<Trial> {
        self.stage.follow(scheduler)?;
        let reserved = (scheduler == Scheduler::Cbs).then(|| self.reserve(terminal.pid())).transpose()?;
        terminal.take_focus(&self.viewer)?;
        let (keys, drawings) = if bench.quick { (15, 4) } else { (60, 20) };
        let mut pauses = Pauses(SEED + u64::from(turn));
        let (began, bytes) = (Instant::now(), self.viewer.bytes());
        let stats = [self.stage.server().schedstat(), SchedStat::of_main_thread(terminal.pid())];
        let delayed = || stats.iter().flatten().filter_map(SchedStat::read).map(|got| got.delayed_ns).sum::<u64>();
        let (mut echo_ns, mut kernel_ns, mut drawing_ns, mut lost) = (Vec::new(), Vec::new(), Vec::new(), 0);
        while echo_ns.len() < keys && lost < MOST_LOST {
            sleep(pauses.next());
            let before = delayed();
            match terminal.echo(&self.viewer)? {
                Some(echo) => {
                    echo_ns.push(echo.as_nanos() as u64);
                    kernel_ns.push(delayed().saturating_sub(before));
                }
                None => lost += 1,
            }
        }
        for _ in 0..drawings {
            sleep(pauses.next());
            drawing_ns.push(self.painter.draw(&self.viewer)?.as_nanos() as u64);
        }
        let bytes_per_s = (self.viewer.bytes() - bytes) as f64 / began.elapsed().as_secs_f64();
        if let Some(client) = reserved {
            self.stage.control().release(client)?;
        }
        Ok(Trial { turn, beside, scheduler, echo_ns, kernel_ns, lost, drawing_ns, bytes_per_s })
    }

    /// For the client of a process.
    fn reserve(&self, pid: u32) -> Result<u32> {
        let control = self.stage.control();
        let found = control.clients()?.clients.into_iter().find(|client| client.pid as u32 == pid);
        let client = found.ok_or_else(|| anyhow!("the server does not list the client of process {pid}"))?.client;
        let Reservation { budget_us, period_us, hard } = RESERVATION;
        control.reserve(client, budget_us, period_us, hard)?;
        Ok(client)
    }
}

/// 80 to 200 ms, the same ones in each run.
struct Pauses(u64);

impl Pauses {
    fn next(&mut self) -> Duration {
        // Knuth's multiplier; the upper bits are the random ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_micros(80_000 + (self.0 >> 33) % 120_001)
    }
}

/// Medians over the turns of one case.
fn range(case: &str, trials: &[&Trial]) -> Range {
    let over = |figure: fn(&Summary) -> f64| Spread::of(trials.iter().map(|trial| figure(&trial.echo_ms()))).median;
    Range {
        case: case.to_owned(),
        p50: over(|echo| echo.p50),
        mean: over(|echo| echo.mean),
        p99: over(|echo| echo.p99),
        worst: over(|echo| echo.worst),
    }
}

fn notes() -> Vec<String> {
    vec![
        format!(
            "How it was measured. One Xtigervnc of {} x {} with xqos, which follows one scheduler after the other, and \
             one viewer (raw pixels, on a Unix socket), attached all the time. A key is pressed 80 to 200 ms after the \
             last echo, the same pauses in every run; its echo is the first change of the picture where xterm is. Nothing \
             overlaps. With cbs xterm's client has {} ms in {} ms reserved. Idle: no load. Worst is the worst of all turns. A key that has no echo for 3 s is lost and in no other figure; after \
             {MOST_LOST} of them nobody types on.",
            SCREEN.0,
            SCREEN.1,
            figure(f64::from(RESERVATION.budget_us) / 1000.0),
            figure(f64::from(RESERVATION.period_us) / 1000.0)
        ),
        "Reading results. The column \"drawing to picture\" is the VNC server's own cycle and encoding, with the \
         service of one small client before it: TigerVNC collects changes and sends at most 60 updates a second, so \
         that even on an idle server a change waits for half an update. No scheduler of X clients can take that away, \
         and it is in every figure here. The key itself reaches the server on the viewer's connection, which is not an X \
         client: it is read between two slices. Where xqos decides, the key ends the slice; under `stock` and \
         `classic` it waits for the slice's end."
            .to_owned(),
        "The kernel's part is the time within an echo in which the server or xterm was runnable and had no processor \
         (schedstat, run delay), both added, so it can be longer than the echo itself. The viewer, the player and the line discipline compete for processors too and are not in \
         it. On a machine with other work, single echoes of 100 ms and more come from there, under any scheduler and on \
         the idle server too: with few keys a mean is then made of two or three of them, and the median tells more."
            .to_owned(),
        "What is not comparable. No paper measured a remote desktop. Video, decoder, viewer and server share the \
         processors here, which a viewer on another machine would not; the viewer takes raw pixels, so that there is no \
         compression as over a slow line. A slower picture (MB/s) under one of the schedulers would be the price of its \
         echo."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(turn: u32, beside: Beside, scheduler: Scheduler, echo_ms: u64) -> Trial {
        let echo_ns = vec![echo_ms * 1_000_000; 3];
        let (kernel_ns, drawing_ns) = (vec![100_000; 3], vec![8_000_000]);
        Trial { turn, beside, scheduler, echo_ns, kernel_ns, lost: 0, drawing_ns, bytes_per_s: 1e6 }
    }

    fn remote() -> Remote {
        let mut trials = Vec::new();
        for turn in 0..2 {
            trials.push(trial(turn, Beside::Nothing, Scheduler::Stock, 10 + u64::from(turn)));
            for beside in [Beside::Video, Beside::Images] {
                let echo = |scheduler| if scheduler == Scheduler::Stock { 60 } else { 20 };
                trials.extend(Scheduler::ALL.map(|scheduler| trial(turn, beside, scheduler, echo(scheduler))));
            }
        }
        Remote { trials }
    }

    #[test]
    fn ratios_are_of_one_turn_and_without_a_goal() {
        let study = remote().study();
        let values: Vec<f64> = study.verdicts.iter().map(|verdict| verdict.value).collect();
        let over_idle = (20.0 / 10.0 + 20.0 / 11.0) / 2.0;
        assert_eq!(values, [over_idle, 3.0, over_idle, over_idle, 3.0, over_idle]);
        assert!(study.verdicts.iter().all(|verdict| verdict.is_met().is_none()));
    }

    #[test]
    fn a_starved_terminal_is_shown_by_its_lost_keys_and_is_in_no_ratio() {
        let mut remote = remote();
        let stock = remote.trials.iter_mut().filter(|trial| trial.scheduler == Scheduler::Stock);
        for trial in stock.filter(|trial| trial.beside == Beside::Images && trial.turn == 1) {
            (trial.echo_ns, trial.lost) = (Vec::new(), MOST_LOST);
        }
        let study = remote.study();
        let spread = study.verdicts[4].spread.unwrap();
        assert_eq!((spread.count, spread.median), (1, 3.0));
        assert_eq!(study.tables[1].rows[3][8], MOST_LOST.to_string());
    }

    #[test]
    fn every_table_begins_with_the_idle_server_and_names_each_scheduler() {
        let study = remote().study();
        assert_eq!(study.tables.len(), 2);
        for table in &study.tables {
            let names: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
            assert_eq!(names[0], "idle");
            assert_eq!(names[1..], Scheduler::ALL.map(Scheduler::title));
        }
    }

    #[test]
    fn pauses_are_the_same_in_each_run_and_within_their_bounds() {
        let pauses = |seed| {
            let mut pauses = Pauses(seed);
            (0..500).map(|_| pauses.next()).collect::<Vec<_>>()
        };
        let one = pauses(SEED);
        assert_eq!(one, pauses(SEED));
        assert_ne!(one, pauses(SEED + 1));
        assert!(one.iter().all(|pause| (80_000..=200_000).contains(&pause.as_micros())));
        assert!(one.iter().max() > one.iter().min().map(|least| *least * 2).as_ref());
    }
}
