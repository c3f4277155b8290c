// SPDX-License-Identifier: MIT
//! What a trace costs the server: nothing for a request at level `slices`, a clock read and a record at `requests`.
//!
//! NoOp, the cheapest request there is (18 ns of the server), shows it best. One server with xqos is measured without a
//! trace, with one of level `slices` and with one of level `requests`, in turn, beside a reader that reads as the recorder
//! does. What a request costs more is taken from the server's processor time: its rate also has the client's pauses in it.

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::load::{Perf, Run};
use crate::order::in_turn;
use crate::server::Server;
use crate::statistics::{Spread, median, ratios};
use crate::study::{Columns, Goal, Row, Study, Verdict, figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use xqos_abi::ring::Next;
use xqos_abi::trace::Level;

const TEST: &str = "noop";
/// One client alone drifts by percents within seconds on a shared machine, so there are many short pairs.
const SHORT_PAIRS: u32 = 4;
/// As the recorder does.
const READ_EVERY: Duration = Duration::from_millis(20);
const CASES: [(&str, Option<Level>); 3] =
    [("untraced", None), ("slices", Some(Level::Slices)), ("requests", Some(Level::Requests))];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tracing {
    rates: Vec<Rate>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Rate {
    pair: u32,
    case: String,
    per_s: f64,
    per_cpu_s: f64,
    records: u64,
    lost: u64,
}

impl Measure for Tracing {
    const NAME: &'static str = "tracing";
    const ABOUT: &'static str = "what a trace of slices, and of each request, costs the server";
    const TAKES: Takes = Takes { quick_s: 8, full_s: 120 };

    fn run(bench: &Bench) -> Result<Self> {
        let server = bench.xqos(bench.module(), 256)?;
        let perf = Perf::calibrate(server.display(), TEST)?;
        let mut rates = Vec::new();
        let pairs = bench.pairs * if bench.quick { 2 } else { SHORT_PAIRS };
        for pair in 0..pairs {
            bench.say(format!("pair {} of {pairs}", pair + 1));
            for (case, level) in in_turn(CASES, pair) {
                rates.push(measure(&server, &perf, pair, case, level)?);
            }
        }
        Ok(Tracing { rates })
    }

    fn study(&self) -> Study {
        let rows = CASES.map(|(case, _)| Row::new(case, self.rates.iter().filter(move |rate| rate.case == case)));
        let table = Columns::of(format!("One x11perf -{TEST}, medians"), rows)
            .name("trace")
            .median("requests /s", |rate| rate.per_s)
            .cell("of untraced", |row| figure(self.ratio(&row.name).median))
            .median("ns of the server for a request", |rate| 1e9 / rate.per_cpu_s)
            .median("records", |rate| rate.records as f64)
            .median("lost", |rate| rate.lost as f64)
            .table();
        let more =
            |case| Spread::of(self.pairs(case).map(|(with, without)| 1e9 / with.per_cpu_s - 1e9 / without.per_cpu_s));
        Study {
            title: "What a trace costs".to_owned(),
            question: "How much slower is the cheapest request while slices, or each request, are traced?".to_owned(),
            verdicts: vec![
                Verdict::of_spread("slices: noop over untraced", self.per_cpu("slices"), "x", Goal::of(Key("tracing.slices"))),
                Verdict::of_spread("requests: cost of a request", more("requests"), "ns", Goal::of(Key("tracing.request"))),
            ],
            tables: vec![table],
            notes: vec![
                "How it was measured. One Xvfb with xqos; x11perf alone, its own count of operations, without a trace and \
                 with one, in turn forwards and backwards. A reader empties the ring every 20 ms; what it loses is \
                 counted, and costs the server nothing."
                    .to_owned(),
            ],
            ..Study::default()
        }
    }
}

impl Tracing {
    fn pairs<'a>(&'a self, case: &'a str) -> impl Iterator<Item = (&'a Rate, &'a Rate)> {
        let of = move |case: &'a str| self.rates.iter().filter(move |rate| rate.case == case);
        of(case).filter_map(move |with| Some((with, of("untraced").find(|rate| rate.pair == with.pair)?)))
    }

    /// By the server's processor time: a single x11perf cannot keep the server busy with NoOp.
    fn per_cpu(&self, case: &str) -> Spread {
        self.over_untraced(case, |rate| rate.per_cpu_s)
    }

    fn ratio(&self, case: &str) -> Spread {
        self.over_untraced(case, |rate| rate.per_s)
    }

    fn over_untraced(&self, case: &str, value: fn(&Rate) -> f64) -> Spread {
        let of = |case: &str| self.rates.iter().filter(|rate| rate.case == case).collect::<Vec<_>>();
        ratios(of(case), of("untraced"), |rate| rate.pair, |rate| Some(value(rate)))
    }
}

fn measure(server: &Server, perf: &Perf, pair: u32, case: &str, level: Option<Level>) -> Result<Rate> {
    let control = server.control()?;
    let stop = Arc::new(AtomicBool::new(false));
    let reading = match level {
        Some(level) => {
            let (mut reader, stop) = (control.start_trace(level, 0)?, Arc::clone(&stop));
            Some(std::thread::spawn(move || {
                let (mut records, mut lost) = (0, 0);
                while !stop.load(Ordering::Relaxed) {
                    match reader.read() {
                        Next::Record(_) => records += 1,
                        Next::Lost(more) => lost += more,
                        Next::Nothing => std::thread::sleep(READ_EVERY),
                        Next::Ended => break,
                    }
                }
                (records, lost)
            }))
        }
        None => None,
    };
    let cpu_before = server.cpu_time()?;
    let runs = perf.run(server.display(), 5)?;
    let cpu_s = (server.cpu_time()? - cpu_before).as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let (records, lost) = reading.and_then(|thread| thread.join().ok()).unwrap_or_default();
    let rate = |pair: &[Run]| pair[1].operations as f64 / pair[1].ended.duration_since(pair[0].ended).as_secs_f64();
    let operations: u64 = runs.iter().map(|run| run.operations).sum();
    Ok(Rate {
        pair,
        case: case.to_owned(),
        per_s: median(runs.windows(2).map(rate)),
        per_cpu_s: operations as f64 / cpu_s,
        records,
        lost,
    })
}
