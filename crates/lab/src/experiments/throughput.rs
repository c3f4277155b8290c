//! What xqos costs: x11perf alone, and twelve together, on a server with xqos over a stock server.
//!
//! One client alone needs no scheduling, so all that xqos does for it is a loss: this measures the loss, and that of
//! twelve. The losses looked for are of a percent or two, and a shared machine drifts more than that within seconds. So
//! both servers and the clients of both are there all the time, and take turns of some tenths of a second: the clients of
//! one are stopped in the middle of what they do while those of the other go on. A client that goes on first fills what
//! lies between it and its server; from then on it can write as fast as it is served, and bytes written are work done.
//! Beside it stands the work for each second of the server's processor time, which tells apart what the server itself
//! does more or less of and what the kernel gave to others.

use super::trial::{Case, Servers};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::load::{Load, Perf, Placement};
use crate::order::in_turn;
use crate::server::Server;
use crate::statistics::{Spread, geometric_mean, median};
use crate::study::{Goal, Study, Table, Verdict, figure, spread_figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::thread::sleep;
use std::time::{Duration, Instant};

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
/// Of windows, for each pair asked for.
const WINDOWS: u32 = 4;

/// Of a turn: until work is even, while it is counted, and until the server has done what was asked for.
#[derive(Clone, Copy, Debug)]
struct Times {
    lead: Duration,
    window: Duration,
    rest: Duration,
}

const ALONE: Times = Times::of_ms([50, 300, 30]);
const ALONE_QUICK: Times = Times::of_ms([30, 120, 20]);
/// Requests of 10 ms, one of each client.
const TOGETHER_FULL: Times = Times::of_ms([250, 1000, 250]);
const TOGETHER_QUICK: Times = Times::of_ms([150, 350, 150]);

impl Times {
    const fn of_ms([lead, window, rest]: [u64; 3]) -> Times {
        Times {
            lead: Duration::from_millis(lead),
            window: Duration::from_millis(window),
            rest: Duration::from_millis(rest),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Throughput {
    alone: Vec<Rates>,
    together: Vec<Rates>,
}

/// The i-th of each are a pair.
#[derive(Debug, Serialize, Deserialize)]
struct Rates {
    test: String,
    /// Of a byte that a client writes, about.
    operations_per_byte: f64,
    stock: Vec<Rate>,
    xqos: Vec<Rate>,
}

/// Work in one window.
#[derive(Debug, Serialize, Deserialize)]
struct Rate {
    bytes_per_s: f64,
    /// For each second of the server's processor time.
    bytes_per_cpu_s: f64,
}

impl Measure for Throughput {
    const NAME: &'static str = "throughput";
    const ABOUT: &'static str = "work done with xqos over stock: x11perf alone, and twelve together";
    const TAKES: Takes = Takes { quick_s: 70, full_s: 700 };

    fn run(bench: &Bench) -> Result<Self> {
        let servers = Servers::start(bench, 256)?;
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        let windows = if bench.quick { WINDOWS } else { bench.pairs * WINDOWS };
        let times = if bench.quick { ALONE_QUICK } else { ALONE };
        for test in std::iter::once("noop").chain(DOZEN) {
            bench.say(format!("{test} alone, {windows} pairs of windows"));
            alone.push(Rates::measure(&servers, test, 1, windows, times)?);
        }
        let times = if bench.quick { TOGETHER_QUICK } else { TOGETHER_FULL };
        // In a hurry, drawing, nothing, and images stand for all.
        for test in TOGETHER.into_iter().take(if bench.quick { 4 } else { TOGETHER.len() }) {
            bench.say(format!("{CLIENTS} x {test}, {windows} pairs of windows"));
            together.push(Rates::measure(&servers, test, CLIENTS, windows, times)?);
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
                 time, and x11perf on both; the clients of one are stopped while those of the other go on, in turn \
                 first on this and on that. Work is what the clients wrote in a window of each turn that begins when \
                 they write as fast as they are served; in operations it is about, by x11perf's own count of all that \
                 it did. The windows of the twelve lie side by side, so that an operation costs the same whoever asks \
                 for it. Ratios are taken within a pair of turns; given are their median and, as the spread, the \
                 least and the greatest."
                    .to_owned(),
            ],
        }
    }
}

impl Rates {
    fn measure(servers: &Servers, test: &str, clients: usize, windows: u32, times: Times) -> Result<Rates> {
        let perf = Perf::calibrate(servers.stock.display(), test)?;
        let mut stock = Side::start(&servers.stock, &perf, clients)?;
        let mut xqos = Side::start(&servers.xqos, &perf, clients)?;
        for window in 0..windows {
            for case in in_turn([Case::Stock, Case::Fair], window) {
                let side = if case == Case::Stock { &mut stock } else { &mut xqos };
                side.take_turn(times)?;
            }
        }
        let operations_per_byte = stock.load.operations(&perf) / stock.load.written()? as f64;
        Ok(Rates { test: perf.test, operations_per_byte, stock: stock.rates, xqos: xqos.rates })
    }

    fn ratios(&self) -> Spread {
        self.compare(|rate| rate.bytes_per_s)
    }

    fn compare(&self, of: impl Fn(&Rate) -> f64) -> Spread {
        Spread::of(self.xqos.iter().zip(&self.stock).map(|(xqos, stock)| of(xqos) / of(stock)))
    }

    fn operations_per_s(&self, rates: &[Rate]) -> f64 {
        median(rates.iter().map(|rate| rate.bytes_per_s)) * self.operations_per_byte
    }
}

/// One server with its clients, which are stopped when it is not its turn.
#[derive(Debug)]
struct Side<'a> {
    server: &'a Server,
    load: Load,
    rates: Vec<Rate>,
}

impl<'a> Side<'a> {
    fn start(server: &'a Server, perf: &Perf, clients: usize) -> Result<Side<'a>> {
        let mut load = Load::start(server.display(), perf, clients, Placement::SideBySide)?;
        load.pause();
        Ok(Side { server, load, rates: Vec::new() })
    }

    fn take_turn(&mut self, times: Times) -> Result<()> {
        self.load.go_on();
        sleep(times.lead);
        let count = || Ok::<_, anyhow::Error>((self.load.written()?, self.server.cpu_time()?, Instant::now()));
        let (bytes_before, cpu_before, from) = count()?;
        sleep(times.window);
        let (bytes, cpu, to) = count()?;
        self.load.pause();
        sleep(times.rest);
        let bytes = (bytes - bytes_before) as f64;
        self.rates.push(Rate {
            bytes_per_s: bytes / to.duration_since(from).as_secs_f64(),
            bytes_per_cpu_s: bytes / (cpu - cpu_before).as_secs_f64(),
        });
        Ok(())
    }
}

fn table(title: &str, all: &[Rates]) -> Table {
    let head = ["x11perf", "stock /s", "xqos /s", "ratio (least .. greatest)", "the same per server processor time"];
    let mut table = Table::new(title, &head);
    for rates in all {
        table.rows.push(vec![
            rates.test.clone(),
            figure(rates.operations_per_s(&rates.stock)),
            figure(rates.operations_per_s(&rates.xqos)),
            spread_figure(&rates.ratios()),
            spread_figure(&rates.compare(|rate| rate.bytes_per_cpu_s)),
        ]);
    }
    table
}
