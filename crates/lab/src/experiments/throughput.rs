//! What xqos costs: x11perf alone, and twelve together, on a server with xqos over a stock server.
//!
//! One client alone needs no scheduling, so all that xqos does for it is a loss: this measures the loss. Work is counted
//! by x11perf's own operations (see [`crate::load`]). A rate is the median of the runs of one start of x11perf, the first
//! left out, and the two servers take turns. Beside it stands the work for each second of the server's processor time,
//! which tells apart what the server itself does more or less of and what the kernel gave to others.

use super::trial::{Case, Servers};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::load::{Load, Perf, Placement, Run};
use crate::order::in_turn;
use crate::server::Server;
use crate::statistics::{Spread, geometric_mean, median};
use crate::study::{Goal, Study, Table, Verdict, figure, spread_figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Drawing short and long, images both ways, compositing, state, windows, and round trips.
const DOZEN: [&str; 12] = [
    "dot",
    "rect100",
    "seg100",
    "ellipse100",
    "fellipse100",
    "copywinwin100",
    "scroll100",
    "putimage100",
    "getimage100",
    "compwinwin100",
    "gc",
    "pointer",
];
const TOGETHER: [&str; 6] = ["ellipse100", "noop", "rect100", "getimagexy100", "putimage500", "getimagexy500"];
const CLIENTS: usize = 12;
/// One client alone is measured in as many short pairs for each pair asked for: the losses looked for are of percents,
/// and a shared machine drifts more than that within seconds.
const SHORT_PAIRS: u32 = 3;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Throughput {
    alone: Vec<Rates>,
    together: Vec<Rates>,
}

/// The i-th of each are a pair.
#[derive(Debug, Serialize, Deserialize)]
struct Rates {
    test: String,
    reps: u64,
    stock: Vec<Rate>,
    xqos: Vec<Rate>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Rate {
    /// Operations per second.
    per_s: f64,
    /// Operations per second of the server's processor time.
    per_cpu_s: f64,
}

impl Measure for Throughput {
    const NAME: &'static str = "throughput";
    const ABOUT: &'static str = "work done with xqos over stock: x11perf alone, and twelve together";
    const TAKES: Takes = Takes { quick_s: 65, full_s: 540 };

    fn run(bench: &Bench) -> Result<Self> {
        let servers = Servers::start(bench, 256)?;
        let mut alone = Vec::new();
        let pairs = bench.pairs * if bench.quick { 2 } else { SHORT_PAIRS };
        for test in std::iter::once("noop").chain(DOZEN) {
            bench.say(format!("{test} alone, {pairs} short pairs"));
            alone.push(Rates::measure(pairs, &servers, test, rate_alone)?);
        }
        let mut together = Vec::new();
        // In a hurry, drawing, nothing, and images stand for all.
        for test in TOGETHER.into_iter().take(if bench.quick { 4 } else { TOGETHER.len() }) {
            bench.say(format!("{CLIENTS} x {test}, {} pairs", bench.pairs));
            let rate = |perf: &Perf, server: &Server| rate_together(bench, perf, server);
            together.push(Rates::measure(bench.pairs, &servers, test, rate)?);
        }
        Ok(Throughput { alone, together })
    }

    fn study(&self) -> Study {
        let mut verdicts = Vec::new();
        for rates in self.alone.iter().filter(|rates| rates.test == "noop") {
            verdicts.push(Verdict::of_spread("noop alone over stock", rates.ratios(), "x", Goal::AtLeast(0.98)));
        }
        let dozen: Vec<f64> =
            self.alone.iter().filter(|rates| rates.test != "noop").map(|rates| rates.ratios().median).collect();
        let what = format!("geometric mean of {} tests over stock", dozen.len());
        verdicts.push(Verdict::of_value(what, geometric_mean(&dozen), "x", Goal::AtLeast(0.99)));
        for rates in &self.together {
            let what = format!("{CLIENTS} x {} together over stock", rates.test);
            verdicts.push(Verdict::of_spread(what, rates.ratios(), "x", Goal::AtLeast(0.98)));
        }
        Study {
            title: "Work done with xqos".to_owned(),
            question: "What do clients lose because xqos is there: one alone, and twelve together?".to_owned(),
            answer: String::new(),
            verdicts,
            tables: vec![
                table("One x11perf alone", &self.alone),
                table(&format!("{CLIENTS} x11perf together"), &self.together),
            ],
            charts: Vec::new(),
            notes: vec![
                "How it was measured. Two Xvfb, one of them with xqos (policy fair, nothing set up), both up all the \
                 time; x11perf runs on one and then on the other, in turn first on this and on that. Work is the \
                 number of operations that x11perf completed, by its own count, between two instants of our clock. \
                 The windows of the twelve lie side by side, so that an operation costs the same whoever asks for it. \
                 Ratios are taken within a pair; given are their median, the least and the greatest."
                    .to_owned(),
            ],
        }
    }
}

impl Rates {
    fn measure(
        pairs: u32,
        servers: &Servers,
        test: &str,
        rate: impl Fn(&Perf, &Server) -> Result<Rate>,
    ) -> Result<Rates> {
        let perf = Perf::calibrate(servers.stock.display(), test)?;
        let (mut stock, mut xqos) = (Vec::new(), Vec::new());
        for pair in 0..pairs {
            for case in in_turn([Case::Stock, Case::Fair], pair) {
                let side = if case == Case::Stock { &mut stock } else { &mut xqos };
                side.push(rate(&perf, servers.of(case))?);
            }
        }
        Ok(Rates { test: perf.test, reps: perf.reps, stock, xqos })
    }

    fn ratios(&self) -> Spread {
        self.compare(|rate| rate.per_s)
    }

    fn compare(&self, of: impl Fn(&Rate) -> f64) -> Spread {
        Spread::of(self.xqos.iter().zip(&self.stock).map(|(xqos, stock)| of(xqos) / of(stock)))
    }
}

fn rate_alone(perf: &Perf, server: &Server) -> Result<Rate> {
    let cpu_before = server.cpu_time()?;
    let runs = perf.run(server.display(), 4)?;
    let rate = |pair: &[Run]| pair[1].operations as f64 / pair[1].ended.duration_since(pair[0].ended).as_secs_f64();
    let cpu_s = (server.cpu_time()? - cpu_before).as_secs_f64();
    let operations: u64 = runs.iter().map(|run| run.operations).sum();
    Ok(Rate { per_s: median(runs.windows(2).map(rate)), per_cpu_s: operations as f64 / cpu_s })
}

fn rate_together(bench: &Bench, perf: &Perf, server: &Server) -> Result<Rate> {
    let mut load = Load::start(server.display(), perf, CLIENTS, Placement::SideBySide)?;
    let cpu_before = server.cpu_time()?;
    let from = Instant::now();
    std::thread::sleep(bench.time(3000, 700));
    let to = Instant::now();
    let cpu_s = (server.cpu_time()? - cpu_before).as_secs_f64();
    let operations: f64 = load.work(from, to)?.iter().sum();
    Ok(Rate { per_s: operations / to.duration_since(from).as_secs_f64(), per_cpu_s: operations / cpu_s })
}

fn table(title: &str, all: &[Rates]) -> Table {
    let head = ["x11perf", "stock /s", "xqos /s", "ratio (least .. greatest)", "the same per server processor time"];
    let mut table = Table::new(title, &head);
    for rates in all {
        table.rows.push(vec![
            rates.test.clone(),
            figure(median(rates.stock.iter().map(|rate| rate.per_s))),
            figure(median(rates.xqos.iter().map(|rate| rate.per_s))),
            spread_figure(&rates.ratios()),
            spread_figure(&rates.compare(|rate| rate.per_cpu_s)),
        ]);
    }
    table
}
