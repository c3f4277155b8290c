// SPDX-License-Identifier: MIT
//! Many clients: does the light client feel five hundred that are connected and silent?
//!
//! Most clients of a real desktop are silent at any moment. Twelve busy ones and the light client are measured with and
//! without 500 silent ones beside them, on the server with xqos and, for comparison, on a stock server. How it goes on,
//! up to 2,000 silent and 200 busy ones, is `crowd`.

mod crowd;

use super::trial::{Case, Served, Servers, Trial, responses};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::load::{Perf, Placement};
use crate::order::in_turn;
use crate::statistics::{Spread, ratios};
use crate::study::{Chart, Columns, Goal, Group, Range, Ranges, Study, Verdict, figure, spread_figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};

const TEST: &str = "ellipse100";
const BUSY: usize = 12;
const SILENT: usize = 500;
const CASES: [Case; 2] = [Case::Stock, Case::Fair];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Scale {
    test: String,
    reps: u64,
    busy: usize,
    trials: Vec<WithSilent>,
    #[serde(default)]
    crowds: Vec<crowd::Crowd>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WithSilent {
    silent: usize,
    trial: Trial,
}

impl Measure for Scale {
    const NAME: &'static str = "scale";
    const ABOUT: &'static str = "response beside up to 2,000 silent and 200 busy clients";
    const TAKES: Takes = Takes { quick_s: 25, full_s: 480 };

    fn run(bench: &Bench) -> Result<Self> {
        let servers = Servers::start(bench, 1024)?;
        let perf = Perf::calibrate(servers.stock.display(), TEST)?;
        let mut trials = Vec::new();
        let mut crowds = Vec::new();
        for pair in 0..bench.pairs {
            bench.say(format!("pair {} of {}", pair + 1, bench.pairs));
            for case in CASES {
                for silent in in_turn([0, SILENT], pair) {
                    let server = servers.of(case);
                    let connections = (0..silent).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
                    let trial = Trial::run(
                        &servers,
                        case,
                        pair,
                        Some((&perf, BUSY, Placement::Stacked)),
                        bench.time(4000, 1000),
                    )?;
                    drop(connections);
                    trials.push(WithSilent { silent, trial });
                }
            }
            crowds.extend(crowd::measure(bench, pair)?);
        }
        Ok(Scale { test: perf.test, reps: perf.reps, busy: BUSY, trials, crowds })
    }

    fn study(&self) -> Study {
        let places = || CASES.into_iter().flat_map(|case| [(case, 0), (case, SILENT)]);
        type Place = (Case, usize);
        let range = |(case, silent): &Place| self.range(*case, *silent);
        let median = |(case, silent): &Place, value: fn(&Trial) -> f64| figure(self.median(*case, *silent, value));
        let over_none = |(case, silent): &Place| match silent {
            0 => "1".to_owned(),
            _ => spread_figure(&self.ratio(*case, p99)),
        };
        let rate = |(case, silent): &Place| self.requests_per_second(*case, *silent).map_or("-".to_owned(), figure);
        let table = Columns::of(format!("Beside {} x {}, medians of the pairs", self.busy, self.test), places())
            .cell("server", |(case, _)| case.name().to_owned())
            .cell("silent clients", |(_, silent)| silent.to_string())
            .cell("mean ms", |place| figure(range(place).mean))
            .cell("p50 ms", |place| figure(range(place).p50))
            .cell("p99 ms", |place| figure(range(place).p99))
            .cell("worst ms", |place| figure(range(place).worst))
            .cell("kernel's part ms", |place| median(place, |trial| trial.series.kernel_ms().mean))
            .cell("p99 without it", |place| median(place, |trial| trial.series.without_kernel_ms().p99))
            .cell("p99 over 0 silent", over_none)
            .cell("requests /s", rate)
            .table();
        let group = |(case, silent)| Group {
            name: format!("{}, {silent} silent", Case::name(case)),
            ranges: vec![self.range(case, silent)],
        };
        let groups = places().map(group).collect();
        let title = "From the median to the 99th percentile".to_owned();
        let ranges = Chart::Ranges(Ranges { title, x_label: "response time, ms".to_owned(), groups });
        let charts = std::iter::once(ranges).chain(crowd::charts(&self.crowds).into_iter().map(Chart::Lines)).collect();
        Study {
            title: "Many clients".to_owned(),
            question: format!(
                "Does the light client, beside {} busy clients, feel {SILENT} more that are connected and silent?",
                self.busy
            ),
            answer: String::new(),
            verdicts: self.verdicts(),
            tables: vec![table, crowd::table(&self.crowds)],
            charts,
            notes: vec![
                "How it was measured. As in `response`, on servers of 1,024 clients; within a pair with and without the \
                 silent clients, in turn."
                    .to_owned(),
                "Crowds. One Xvfb with xqos, the server's own scheduler and fair in turn; busy clients are threads of one \
                 program that fill one pixel over and over, two of them beside the silent ones. none: not one answer in \
                 the measured time. With hundreds of busy threads the kernel's part is large: see the column without it."
                    .to_owned(),
            ],
        }
    }
}

impl Scale {
    fn of(&self, case: Case, silent: usize) -> Vec<&Trial> {
        let chosen = self.trials.iter().filter(|one| one.trial.case == case && one.silent == silent);
        chosen.map(|one| &one.trial).collect()
    }

    fn range(&self, case: Case, silent: usize) -> Range {
        super::trial::range(&self.of(case, silent))
    }

    fn median(&self, case: Case, silent: usize, figure: impl Fn(&Trial) -> f64) -> f64 {
        Spread::of(self.of(case, silent).into_iter().map(figure)).median
    }

    /// With the silent clients over without, within each pair.
    fn verdicts(&self) -> Vec<Verdict> {
        let verdict = |what: &str, case, figure: fn(&Trial) -> f64, goal| {
            let trials = [self.of(case, 0), self.of(case, SILENT)].concat();
            Verdict::of_spread(what, self.ratio(case, figure), "x", goal).counting(responses(&trials))
        };
        let without_kernel = |trial: &Trial| trial.series.without_kernel_ms().p99;
        let fair = format!("fair: p99 with {SILENT} silent clients over without");
        vec![
            verdict(&fair, Case::Fair, p99, Goal::of(Key("scale.p99"))),
            verdict("fair: the same without the kernel's part", Case::Fair, without_kernel, Goal::Reported),
            verdict("stock: p99 with them over without", Case::Stock, p99, Goal::Reported),
        ]
    }

    fn ratio(&self, case: Case, figure: impl Fn(&Trial) -> f64) -> Spread {
        let (with, without) = (self.of(case, SILENT), self.of(case, 0));
        ratios(with, without, |trial| trial.pair, |trial| Some(figure(trial)))
    }

    fn requests_per_second(&self, case: Case, silent: usize) -> Option<f64> {
        let rate = |trial: &&Trial| trial.served.map(|Served { requests, .. }| requests as f64 / trial.elapsed_s);
        let rates: Vec<f64> = self.of(case, silent).iter().filter_map(rate).collect();
        (!rates.is_empty()).then(|| Spread::of(rates).median)
    }
}

fn p99(trial: &Trial) -> f64 {
    trial.series.response_ms().p99
}
