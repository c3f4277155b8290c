// SPDX-License-Identifier: MIT
//! What xqos costs: x11perf alone, and twelve together, on a server with xqos over a stock server.
//!
//! One client alone needs no scheduling, so all that xqos does for it is a loss: this measures the loss, and that of
//! twelve. The losses looked for are of a percent or two, and a shared machine drifts more than that within seconds. So
//! both servers and the clients of both are there at the same time, and take many short turns: the clients of
//! one are stopped in the middle of what they do while those of the other go on. Where a server's memory lies is luck, so
//! each round has new servers. A client that goes on first fills what
//! lies between it and its server; from then on it can write as fast as it is served, and bytes written are work done.
//! Beside it stands the work for each second of the server's processor time, which tells apart what the server itself
//! does more or less of and what the kernel gave to others.

use super::trial::{Case, Servers};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::load::{Load, Perf, Placement};
use crate::order::in_turn;
use crate::server::Server;
use crate::statistics::{Spread, geometric_mean, median};
use crate::study::{Columns, Goal, Study, Table, Verdict, figure, spread_figure};
use anyhow::{Result, bail};
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

/// Of a turn: until work is even, while it is counted, and until the server has done what was asked for.
#[derive(Clone, Copy, Debug)]
struct Times {
    lead: Duration,
    window: Duration,
    rest: Duration,
}

const ALONE: Times = Times::of_ms([30, 100, 20]);
/// Requests of 10 ms, one of each client.
const TOGETHER_TIMES: Times = Times::of_ms([150, 350, 150]);

/// Pairs of windows in each round.
const WINDOWS_ALONE: u32 = 12;
/// The one with a goal of its own.
const WINDOWS_NOOP: u32 = 48;
const WINDOWS_TOGETHER: u32 = 10;
const WINDOWS_QUICK: u32 = 4;
/// Windows that follow each other in which a server may have had no processor.
const MOST_PAUSES: u32 = 50;

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
    /// Turns of stock and of xqos that were taken again, since the server did not run in them.
    #[serde(default)]
    again: [u32; 2],
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
    const TAKES: Takes = Takes { quick_s: 70, full_s: 900 };

    fn run(bench: &Bench) -> Result<Self> {
        let mut alone: Vec<Rates> = std::iter::once("noop").chain(DOZEN).map(Rates::of).collect();
        // In a hurry, drawing, nothing, and images stand for all.
        let mut together: Vec<Rates> =
            TOGETHER.into_iter().take(if bench.quick { 4 } else { TOGETHER.len() }).map(Rates::of).collect();
        let rounds = if bench.quick { 1 } else { bench.pairs };
        let in_time = |windows| if bench.quick { WINDOWS_QUICK } else { windows };
        for round in 0..rounds {
            let servers = Servers::start(bench, 256)?;
            let say = |what: String| bench.say(format!("servers {} of {rounds}: {what}", round + 1));
            for rates in &mut alone {
                say(format!("{} alone", rates.test));
                let windows = if rates.test == "noop" { WINDOWS_NOOP } else { WINDOWS_ALONE };
                rates.measure(&servers, 1, in_time(windows), ALONE)?;
            }
            for rates in &mut together {
                say(format!("{CLIENTS} x {}", rates.test));
                rates.measure(&servers, CLIENTS, in_time(WINDOWS_TOGETHER), TOGETHER_TIMES)?;
            }
        }
        Ok(Throughput { alone, together })
    }

    fn study(&self) -> Study {
        let mut verdicts = Vec::new();
        for rates in self.alone.iter().filter(|rates| rates.test == "noop") {
            verdicts.push(Verdict::of_spread(
                "noop alone over stock",
                rates.ratios(),
                "x",
                Goal::of(Key("throughput.noop_alone")),
            ));
        }
        let dozen: Vec<f64> =
            self.alone.iter().filter(|rates| rates.test != "noop").map(|rates| rates.ratios().median).collect();
        let what = format!("geometric mean of {} tests over stock", dozen.len());
        verdicts.push(Verdict::of_value(what, geometric_mean(&dozen), "x", Goal::of(Key("throughput.dozen_alone"))));
        for rates in &self.together {
            let what = format!("{CLIENTS} x {} together over stock", rates.test);
            verdicts.push(Verdict::of_spread(what, rates.ratios(), "x", Goal::of(Key("throughput.together"))));
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
                "How it was measured. Two Xvfb, one of them with xqos (policy fair, nothing set up), both new in each \
                 round, and x11perf on both; the clients of one are stopped while those of the other go on, in turn \
                 first on this and on that. Work is what the clients wrote in a window of each turn that begins when \
                 they write as fast as they are served; in operations it is about, by x11perf's own count of all that \
                 it did; a turn in which the server did not run at all is taken again and counted: a machine that \
                 stands still takes them from both. The windows of the twelve lie side by side, so that an operation \
                 costs the same whoever asks for it. Ratios are taken within a pair of turns; given are their median \
                 and, as the spread, the least and the greatest."
                    .to_owned(),
            ],
        }
    }
}

impl Rates {
    fn of(test: &str) -> Rates {
        Rates { test: test.to_owned(), operations_per_byte: 0.0, stock: Vec::new(), xqos: Vec::new(), again: [0; 2] }
    }

    /// Adds a round.
    fn measure(&mut self, servers: &Servers, clients: usize, windows: u32, times: Times) -> Result<()> {
        let perf = Perf::calibrate(servers.stock.display(), &self.test)?;
        let mut stock = Side::start(&servers.stock, &perf, clients)?;
        let mut xqos = Side::start(&servers.xqos, &perf, clients)?;
        for window in 0..windows {
            for case in in_turn([Case::Stock, Case::Fair], window) {
                let side = if case == Case::Stock { &mut stock } else { &mut xqos };
                side.take_turn(times)?;
            }
        }
        self.operations_per_byte = stock.load.operations(&perf) / stock.load.written()? as f64;
        self.again[0] += stock.again;
        self.again[1] += xqos.again;
        self.stock.extend(stock.rates);
        self.xqos.extend(xqos.rates);
        Ok(())
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
    again: u32,
}

impl<'a> Side<'a> {
    fn start(server: &'a Server, perf: &Perf, clients: usize) -> Result<Side<'a>> {
        let mut load = Load::start(server.display(), perf, clients, Placement::SideBySide)?;
        load.pause();
        Ok(Side { server, load, rates: Vec::new(), again: 0 })
    }

    /// Takes another one where the server did not run at all: that has no ratio.
    fn take_turn(&mut self, times: Times) -> Result<()> {
        for _ in 0..MOST_PAUSES {
            if let Some(rate) = self.rate(times)? {
                self.rates.push(rate);
                return Ok(());
            }
            self.again += 1;
        }
        bail!("the X server {} did nothing in {MOST_PAUSES} windows in turn", self.server.display())
    }

    fn rate(&mut self, times: Times) -> Result<Option<Rate>> {
        self.load.go_on();
        sleep(times.lead);
        let count = || Ok::<_, anyhow::Error>((self.load.written()?, self.server.cpu_time()?, Instant::now()));
        let (bytes_before, cpu_before, from) = count()?;
        sleep(times.window);
        let (bytes, cpu, to) = count()?;
        self.load.pause();
        sleep(times.rest);
        let (bytes, cpu) = ((bytes - bytes_before) as f64, cpu - cpu_before);
        Ok((bytes > 0.0 && !cpu.is_zero()).then(|| Rate {
            bytes_per_s: bytes / to.duration_since(from).as_secs_f64(),
            bytes_per_cpu_s: bytes / cpu.as_secs_f64(),
        }))
    }
}

fn table(title: &str, all: &[Rates]) -> Table {
    Columns::of(title, all)
        .cell("x11perf", |rates| rates.test.clone())
        .cell("stock /s", |rates| figure(rates.operations_per_s(&rates.stock)))
        .cell("xqos /s", |rates| figure(rates.operations_per_s(&rates.xqos)))
        .cell("ratio (least .. greatest)", |rates| spread_figure(&rates.ratios()))
        .cell("the same per server processor time", |rates| spread_figure(&rates.compare(|rate| rate.bytes_per_cpu_s)))
        .cell("turns taken again, stock + xqos", |rates| format!("{} + {}", rates.again[0], rates.again[1]))
        .table()
}
