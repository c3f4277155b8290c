// SPDX-License-Identifier: MIT
//! Hard reservations: a client gets its Q in every T, and no more.
//!
//! After Manica et al., section 4.2 (Table 2, Figure 9): one x11perf with a hard reservation, alone on the server, for
//! their Q/T and T, five times each. Its share is the server time that it was given, as xqos counts it, over the time of
//! the server's clock; what it got done with that is x11perf's own count, which is what the paper measured. The measured
//! time is a whole number of periods, so that it does not matter where in a period it begins.
//!
//! x11perf -getimagexy100 waits for the answer to each request, and reads it before it asks again: alone and without a
//! limit it does not use the whole server either. That share is measured too; a Q/T beyond it cannot be reached by any
//! scheduler. While a virtual machine's host has its processor the client asks for nothing, and of a short period nothing
//! is left then to ask in: a window in which the host took much is taken again.

mod throughput;

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::disturbance::Watch;
use crate::goals::Key;
use crate::load::{Load, Perf, Placement};
use crate::process::SchedStat;
use crate::server::{Module, Server};
use crate::statistics::{Spread, median};
use crate::study::{Columns, Goal, Study, Table, Verdict, figure, percent, spread_figure};
use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use xqos_abi::{ClientEntry, PolicyChange};
use xqos_client::Control;

pub(super) const TEST: &str = "getimagexy100";
const PARTS: [(u32, u32); 5] = [(1, 6), (1, 3), (1, 2), (2, 3), (5, 6)];
const PERIODS_MS: [u32; 7] = [30, 60, 90, 120, 150, 180, 210];
/// Of [`PERIODS_MS`], where it is to be quick: the first, the last, and one between.
const QUICK_PERIODS_MS: [u32; 3] = [30, 90, 210];
/// As in the paper.
const TRIALS: u32 = 5;
/// x11perf tells its count at the end of a run. Runs of a few milliseconds: one that lies across a pause between two
/// budgets is counted by its part, and must not be much.
pub(super) const RUNS_OF_ONE: u64 = 20;
/// 5/6 and B/T of the shortest period must fit below it: the highest that the server takes.
pub(super) const MAX_UTILIZATION_PPM: u32 = 950_000;
/// Blocking time for admission: above any request of the test, and not what a busy machine made of one.
const BLOCKING_US: u32 = 1000;
/// Part of the processors that the host may take in a window. Of 30 ms, 5/6 leave 5 ms to spare.
const MOST_STEAL: f64 = 0.02;
/// The quietest of so many windows counts.
const MOST_WINDOWS: u32 = 4;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hard {
    test: String,
    reps: u64,
    /// The client without a reservation.
    unlimited: Vec<Given>,
    cells: Vec<Cell>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Cell {
    /// Q/T as a fraction.
    part: (u32, u32),
    period_ms: u32,
    measured: Vec<Given>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Given {
    elapsed_ns: u64,
    server_time_ns: u64,
    reserved_time_ns: u64,
    depletions: u32,
    /// The server and the client were runnable and had no processor; the client cannot ask in that time.
    kernel_ns: u64,
    /// Part of the processors that the host took; 0 where the kernel does not tell.
    #[serde(default)]
    steal: f64,
    /// Windows taken besides, since it took too much.
    #[serde(default)]
    again: u32,
    /// By x11perf's own count.
    pub(super) operations_per_s: f64,
}

impl Measure for Hard {
    const NAME: &'static str = "hard";
    const ABOUT: &'static str = "share and throughput of a hard reservation against Q/T and T";
    const PAIRED: bool = false;
    const TAKES: Takes = Takes { quick_s: 18, full_s: 540 };

    fn run(bench: &Bench) -> Result<Self> {
        let module = Module { max_utilization_ppm: Some(MAX_UTILIZATION_PPM), ..bench.module() };
        let server = bench.xqos(module, 256)?;
        let perf = Perf::calibrate(server.display(), TEST)?;
        let perf = Perf { reps: perf.reps.div_ceil(RUNS_OF_ONE), ..perf };
        let control = server.control()?;
        control.set_policy(PolicyChange { blocking_us: Some(BLOCKING_US), ..PolicyChange::default() })?;
        let (periods_ms, trials) = if bench.quick { (&QUICK_PERIODS_MS[..], 1) } else { (&PERIODS_MS[..], TRIALS) };
        let mut cells: Vec<Cell> = periods_ms
            .iter()
            .flat_map(|&period_ms| PARTS.iter().map(move |&part| Cell { part, period_ms, measured: Vec::new() }))
            .collect();
        let mut unlimited = Vec::new();
        for trial in 0..trials {
            bench.say(format!("trial {} of {trials}", trial + 1));
            unlimited.push(measure(&server, &control, &perf, None, bench.time(2000, 1000))?);
            for cell in &mut cells {
                let reservation = Some((cell.budget_us(), cell.period_ms * 1000));
                cell.measured.push(measure(&server, &control, &perf, reservation, cell.time(bench))?);
            }
        }
        Ok(Hard { test: perf.test, reps: perf.reps, unlimited, cells })
    }

    fn study(&self) -> Study {
        let unlimited = self.unlimited_share();
        let mut notes = vec![format!(
            "How it was measured. Xvfb with xqos, one x11perf -{}, a new one for each row, hard reservation. Share: \
             reserved server time over elapsed time, both as the server counts them, over whole periods. Without a \
             reservation the client uses {} of the server. The kernel's part is the time in which the server or the \
             client was runnable and had no processor; the host's, what it took of the processors of a virtual machine. \
             While it takes the client's, nothing is asked for, and fewer budgets are depleted than there are periods. \
             So a window in which it took more than {} is taken again, and of at most {MOST_WINDOWS} the one in which it \
             took least counts, whatever its share; {} of {} were taken again. Operations are x11perf's own count over \
             the same time. Admission: utilization at most {}, blocking time {} ms.",
            self.test,
            points(unlimited),
            percent(MOST_STEAL),
            self.all().map(|given| given.again).sum::<u32>(),
            self.all().map(|given| given.again + 1).sum::<u32>(),
            f64::from(MAX_UTILIZATION_PPM) / 1e6,
            figure(f64::from(BLOCKING_US) / 1000.0)
        )];
        let worst =
            |cells: &mut dyn Iterator<Item = &Cell>| cells.map(|cell| cell.distance().abs()).fold(0.0, f64::max);
        let reachable = |cell: &&Cell| cell.asked() <= unlimited;
        let goal = Goal::of(Key("hard.share"));
        let mut verdicts = vec![];
        let all = worst(&mut self.cells.iter());
        if self.cells.iter().all(|cell| reachable(&cell)) {
            verdicts.push(Verdict::of_value("share minus Q/T, largest of all", all, "points", goal));
        } else {
            let within = worst(&mut self.cells.iter().filter(reachable));
            verdicts.push(Verdict::of_value("share minus Q/T, where the client can use Q/T", within, "points", goal));
            verdicts.push(Verdict::of_value("share minus Q/T, largest of all", all, "points", Goal::Reported));
            notes.push(format!(
                "Where Q/T is more than {} the client itself does not ask for as much: it waits for each answer before \
                 it asks again. No scheduler can give it more, and these rows are not held against the goal.",
                points(unlimited)
            ));
        }
        let what = "throughput at a larger Q over that at the next smaller one, least of all";
        verdicts.push(Verdict::of_value(what, self.growth(), "", Goal::of(Key("hard.growth"))));
        notes.push(self.reading());
        Study {
            title: "Hard reservations".to_owned(),
            question:
                "A client with a hard reservation of Q in T gets the share Q/T of the server's time. How exactly, \
                       and does it get as much done?"
                    .to_owned(),
            answer: String::new(),
            verdicts,
            tables: vec![self.table(unlimited), self.table_of_throughput()],
            charts: vec![self.chart_of_throughput()],
            notes,
        }
    }
}

impl Hard {
    fn table(&self, unlimited: f64) -> Table {
        let title = "Share of server time, medians; the distance is in points of a hundred";
        let depletions = |given: &Given| f64::from(given.depletions) / given.elapsed_ns as f64 * 1e9;
        let beyond =
            |cell: &&Cell| if cell.asked() > unlimited { "beyond the client's own use" } else { "" }.to_owned();
        Columns::of(title, &self.cells)
            .cell("Q/T", |cell| format!("{}/{}", cell.part.0, cell.part.1))
            .cell("T ms", |cell| cell.period_ms.to_string())
            .cell("Q ms", |cell| figure(f64::from(cell.budget_us()) / 1000.0))
            .cell("asked %", |cell| figure(cell.asked() * 100.0))
            .cell("share % (least .. greatest)", |cell| spread_figure(&cell.spread(|given| given.share() * 100.0)))
            .cell("distance", |cell| format!("{:+.2}", cell.distance()))
            .cell("depletions /s", |cell| figure(cell.spread(depletions).median))
            .cell("kernel's part", |cell| {
                percent(cell.spread(|given| given.kernel_ns as f64 / given.elapsed_ns as f64).median)
            })
            .cell("host's part", |cell| percent(cell.spread(|given| given.steal).median))
            .cell("windows taken again", |cell| cell.measured.iter().map(|given| given.again).sum::<u32>().to_string())
            .cell("", beyond)
            .table()
    }
}

impl Hard {
    fn all(&self) -> impl Iterator<Item = &Given> {
        self.unlimited.iter().chain(self.cells.iter().flat_map(|cell| &cell.measured))
    }

    fn unlimited_share(&self) -> f64 {
        median(self.unlimited.iter().map(|given| given.server_time_ns as f64 / given.elapsed_ns as f64))
    }
}

impl Cell {
    fn budget_us(&self) -> u32 {
        self.period_ms * 1000 * self.part.0 / self.part.1
    }

    fn asked(&self) -> f64 {
        f64::from(self.budget_us()) / f64::from(self.period_ms * 1000)
    }

    /// Whole periods.
    fn time(&self, bench: &Bench) -> Duration {
        let periods = bench.time(2000, 800).as_millis().div_ceil(u128::from(self.period_ms)) as u32;
        Duration::from_millis(u64::from(periods * self.period_ms))
    }

    fn spread(&self, figure: impl Fn(&Given) -> f64) -> Spread {
        Spread::of(self.measured.iter().map(figure))
    }

    /// In points.
    fn distance(&self) -> f64 {
        (self.spread(Given::share).median - self.asked()) * 100.0
    }
}

impl Given {
    pub(super) fn share(&self) -> f64 {
        self.reserved_time_ns as f64 / self.elapsed_ns as f64
    }
}

/// Takes the window again while a virtual machine's host took much of it.
pub(super) fn measure(
    server: &Server,
    control: &Control,
    perf: &Perf,
    reservation: Option<(u32, u32)>,
    time: Duration,
) -> Result<Given> {
    quietest(|| window(server, control, perf, reservation, time))
}

/// The first window in which the host took no more than [`MOST_STEAL`], or of [`MOST_WINDOWS`] that in which it took least.
fn quietest(mut window: impl FnMut() -> Result<Given>) -> Result<Given> {
    let mut best = window()?;
    for again in 1..MOST_WINDOWS {
        if best.steal <= MOST_STEAL {
            break;
        }
        let next = window()?;
        best = Given { again, ..if next.steal < best.steal { next } else { best } };
    }
    Ok(best)
}

fn window(
    server: &Server,
    control: &Control,
    perf: &Perf,
    reservation: Option<(u32, u32)>,
    time: Duration,
) -> Result<Given> {
    let mut load = Load::start(server.display(), perf, 1, Placement::Stacked)?;
    let pid = load.pids()[0];
    let (_, client) = entry(control, pid)?;
    if let Some((budget_us, period_us)) = reservation {
        control.reserve(client.client, budget_us, period_us, true)?;
        // The first period begins with what the client was doing before.
        std::thread::sleep(Duration::from_micros(u64::from(period_us)));
    }
    let stats = [server.schedstat(), SchedStat::of_main_thread(pid)];
    let delayed = || stats.iter().flatten().filter_map(SchedStat::read).map(|got| got.delayed_ns).sum::<u64>();
    let watch = Watch::begin();
    let delayed_before = delayed();
    let (began_ns, before) = entry(control, pid)?;
    // The server's clock and ours are one.
    let from = Instant::now();
    std::thread::sleep(time);
    let to = Instant::now();
    let (ended_ns, after) = entry(control, pid)?;
    let kernel_ns = delayed().saturating_sub(delayed_before);
    let steal = watch.and_then(Watch::end).map_or(0.0, |disturbance| disturbance.steal);
    let operations: f64 = load.work(from, to)?.iter().sum();
    Ok(Given {
        elapsed_ns: ended_ns - began_ns,
        server_time_ns: after.server_time_ns - before.server_time_ns,
        reserved_time_ns: after.reserved_time_ns - before.reserved_time_ns,
        depletions: after.depletions - before.depletions,
        kernel_ns,
        steal,
        again: 0,
        operations_per_s: operations / (to - from).as_secs_f64(),
    })
}

/// The server's clock, and the client of a process.
fn entry(control: &Control, pid: u32) -> Result<(u64, ClientEntry)> {
    let list = control.clients()?;
    let found = list.clients.into_iter().find(|client| client.pid as u32 == pid);
    Ok((list.now_ns, found.ok_or_else(|| anyhow!("the server does not list the client of process {pid}"))?))
}

fn points(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(share: f64) -> Given {
        let reserved_time_ns = (share * 1e9) as u64;
        Given {
            elapsed_ns: 1_000_000_000,
            server_time_ns: reserved_time_ns,
            reserved_time_ns,
            depletions: 5,
            kernel_ns: 0,
            steal: 0.0,
            again: 0,
            operations_per_s: share * 1000.0,
        }
    }

    pub(super) fn hard(unlimited: f64, shares: [f64; 2]) -> Hard {
        let cell = |part, share| Cell { part, period_ms: 90, measured: vec![given(share)] };
        let cells = vec![cell((1, 3), shares[0]), cell((5, 6), shares[1])];
        Hard { test: TEST.to_owned(), reps: 1, unlimited: vec![given(unlimited)], cells }
    }

    #[test]
    fn the_distance_is_in_points() {
        let study = hard(0.95, [0.34, 0.83]).study();
        assert!((study.verdicts[0].value - 2.0 / 3.0).abs() < 1e-6, "{:?}", study.verdicts);
        let met: Vec<_> = study.verdicts.iter().map(Verdict::is_met).collect();
        assert_eq!(met, [Some(true), Some(true)]);
    }

    #[test]
    fn a_window_that_the_host_took_is_taken_again_and_the_quietest_counts_whatever_its_share() {
        let of = |windows: &[(f64, f64)]| {
            let mut left = windows.iter();
            let window =
                || left.next().map(|&(steal, share)| Given { steal, ..given(share) }).ok_or_else(|| anyhow!("none"));
            quietest(window).map(|best| (best.steal, best.reserved_time_ns / 10_000_000, best.again)).unwrap()
        };
        assert_eq!(of(&[(0.0, 0.25)]), (0.0, 25, 0));
        assert_eq!(of(&[(0.1, 0.5), (0.02, 0.25)]), (0.02, 25, 1));
        assert_eq!(of(&[(0.1, 0.5), (0.3, 0.49), (0.05, 0.25), (0.06, 0.5)]), (0.05, 25, 3));
    }

    #[test]
    fn what_the_client_cannot_use_is_reported_and_not_held_against_the_goal() {
        let study = hard(0.7, [0.333, 0.7]).study();
        let met: Vec<_> = study.verdicts.iter().map(Verdict::is_met).collect();
        assert_eq!(met, [Some(true), None, Some(true)]);
        assert!(study.tables[0].rows[1].last().unwrap().contains("beyond"));
    }
}
