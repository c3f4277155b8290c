// SPDX-License-Identifier: MIT
//! The demonstration: what one interactive program feels beside twelve busy ones, with and without xqos.
//!
//! Two rounds of the four cases, the second in reverse order so that a drift of the machine cancels out, on Xvfb with
//! twelve `x11perf -ellipse100` side by side, so that all of them really draw. A minute in all; the figures
//! that are held against goals in earnest, in pairs, are those of `response` and `throughput`.
//!
//! The server always has one of their requests in progress then, and no policy cuts a request. So the responses are held
//! against the idle server's and one request, and not against a multiple of the idle server's, which says more about how fast
//! that is: where x11perf's windows lie upon each other, as in `response`, their requests are clipped and short.

use super::trial::{Case, RESERVATION, Servers, Trial, of_case, order, range, responses};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::load::{Perf, Placement};
use crate::study::{
    Chart, Columns, Goal, Group, Panel, Ranges, Scatter, Study, Table, Verdict, duration, figure, percent,
};
use anyhow::Result;
use serde::{Deserialize, Serialize};

const TEST: &str = "ellipse100";
const CLIENTS: usize = 12;
const ROUNDS: u32 = 2;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Demo {
    test: String,
    reps: u64,
    clients: usize,
    trials: Vec<Trial>,
}

impl Measure for Demo {
    const NAME: &'static str = "demo";
    const ABOUT: &'static str = "one interactive client beside twelve busy ones: idle, stock, fair, reserved";
    const TAKES: Takes = Takes { quick_s: 25, full_s: 75 };

    const PAIRED: bool = false;

    fn run(bench: &Bench) -> Result<Self> {
        let servers = Servers::start(bench, 256)?;
        let perf = Perf::calibrate(servers.stock.display(), TEST)?;
        let mut trials = Vec::new();
        for round in 0..ROUNDS {
            for case in order(round) {
                let time = bench.time(6000, 1000);
                bench.say(format!("{}: {} for {} s", case.name(), describe(case), time.as_secs()));
                let load = (case != Case::Idle).then_some((&perf, CLIENTS, Placement::SideBySide));
                trials.push(Trial::run(&servers, case, round, load, time)?);
            }
        }
        Ok(Demo { test: perf.test, reps: perf.reps, clients: CLIENTS, trials })
    }

    fn study(&self) -> Study {
        let mut study = self.joined().study_joined();
        study.verdicts.extend(self.scatter_of_work());
        study
    }
}

impl Demo {
    /// One trial for each case: its rounds one after the other.
    fn joined(&self) -> Demo {
        let join = |case| of_case(&self.trials, case).into_iter().cloned().reduce(Trial::followed_by);
        Demo { trials: Case::ALL.into_iter().filter_map(join).collect(), test: self.test.clone(), ..*self }
    }

    /// What the same server did in one round over the other: how far the machine's own speed moves the work of the twelve.
    fn scatter_of_work(&self) -> Option<Verdict> {
        let [first, second] = of_case(&self.trials, Case::Stock)[..] else { return None };
        let ratio = second.operations_per_second() / first.operations_per_second();
        Some(Verdict::of_value("stock: work of its second round over its first", ratio, "x", Goal::Reported))
    }

    fn study_joined(&self) -> Study {
        Study {
            title: format!("One interactive client beside {} busy ones", self.clients),
            question: format!(
                "{} copies of x11perf -{} keep the server busy. Beside them a program draws 200 lines every 10 ms and \
                 waits for the answer. How long does it wait?",
                self.clients, self.test
            ),
            answer: self.answer(),
            verdicts: self.verdicts(),
            tables: vec![self.table()],
            charts: vec![Chart::Scatter(self.scatter()), Chart::Ranges(self.ranges())],
            notes: self.notes(),
        }
    }

    fn trial(&self, case: Case) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.case == case)
    }

    fn mean(&self, case: Case) -> f64 {
        self.trial(case).map_or(0.0, |trial| trial.series.response_ms().mean)
    }

    fn answer(&self) -> String {
        let (stock, fair) = (self.mean(Case::Stock), self.mean(Case::Fair));
        let sooner = match stock / fair {
            ratio if ratio >= 10.0 => format!("{ratio:.0} times sooner"),
            ratio if ratio > 1.0 => format!("{ratio:.1} times sooner"),
            _ => "not sooner".to_owned(),
        };
        format!("{} on average with the stock server, {} with xqos: {sooner}.", duration(stock), duration(fair))
    }

    fn work(&self, case: Case) -> f64 {
        let of = |case| self.trial(case).map_or(0.0, Trial::operations_per_second);
        of(case) / of(Case::Stock)
    }

    fn request_ms(&self) -> f64 {
        self.trial(Case::Fair).and_then(|trial| trial.served).map_or(0.0, |served| served.mean_request_ms())
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let (idle, stock, fair) = (self.mean(Case::Idle), self.mean(Case::Stock), self.mean(Case::Fair));
        let reserved = self.mean(Case::Reserved);
        let trials = |case| of_case(&self.trials, case);
        let counted =
            |verdict: Verdict, case| verdict.counting(responses(&[trials(case), trials(Case::Idle)].concat()));
        let requests_above_idle = |mean: f64| (mean - idle) / self.request_ms();
        let of = |what: &str, value, unit, key| Verdict::of_value(what, value, unit, Goal::of(key));
        let better = of("fair: mean response better than stock", stock / fair, "x", Key("demo.fair_better_than_stock"));
        let fair_above = requests_above_idle(fair);
        let reserved_above = requests_above_idle(reserved);
        let work = self.work(Case::Fair);
        vec![
            better.counting(responses(&[trials(Case::Fair), trials(Case::Stock)].concat())),
            counted(of("fair: mean above idle", fair_above, "requests", Key("demo.fair_above_idle")), Case::Fair),
            counted(
                of("reserved: mean above idle", reserved_above, "requests", Key("demo.reserved_above_idle")),
                Case::Reserved,
            ),
            counted(of("fair: mean over idle", fair / idle, "x", Key("demo.fair_over_idle")), Case::Fair),
            counted(
                of("reserved: mean over idle", reserved / idle, "x", Key("demo.reserved_over_idle")),
                Case::Reserved,
            ),
            of("fair: work of the twelve over stock", work, "x", Key("demo.fair_work_over_stock")),
        ]
    }

    fn table(&self) -> Table {
        let work = |trial: &&Trial| match trial.operations.is_empty() {
            true => "-".to_owned(),
            false => percent(self.work(trial.case)),
        };
        Columns::of("Response time of the interactive client", &self.trials)
            .cell("case", |trial| trial.case.name().to_owned())
            .cell("mean ms", |trial| figure(trial.series.response_ms().mean))
            .cell("p50 ms", |trial| figure(trial.series.response_ms().p50))
            .cell("p99 ms", |trial| figure(trial.series.response_ms().p99))
            .cell("worst ms", |trial| figure(trial.series.response_ms().worst))
            .cell("kernel's part ms", |trial| figure(trial.series.kernel_ms().mean))
            .cell("missed turns", |trial| percent(trial.series.missed_part()))
            .cell("work of the twelve", work)
            .table()
    }

    fn scatter(&self) -> Scatter {
        let points = |trial: &Trial| {
            let both = trial.series.at_us.iter().zip(&trial.series.response_ns);
            // Microseconds are enough for the eye, and short in the page.
            both.map(|(&at_us, &ns)| [(at_us / 100) as f64 / 1e4, ((ns + 500) / 1000) as f64 / 1e3]).collect()
        };
        let panel = |trial: &Trial| Panel {
            case: trial.case.name().to_owned(),
            name: format!("{}: {}", trial.case.name(), describe(trial.case)),
            points: points(trial),
        };
        Scatter {
            title: "Every response of the interactive client".to_owned(),
            x_label: "measured time, s".to_owned(),
            y_label: "response time, ms".to_owned(),
            panels: self.trials.iter().map(panel).collect(),
        }
    }

    fn ranges(&self) -> Ranges {
        let ranges = Case::ALL.iter().map(|&case| range(&of_case(&self.trials, case))).collect();
        Ranges {
            title: "From the median to the 99th percentile".to_owned(),
            x_label: "response time, ms".to_owned(),
            groups: vec![Group { name: format!("{} x {}", self.clients, self.test), ranges }],
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            format!(
                "How it was measured. Two Xvfb of this machine's distribution, one as it comes (idle, stock), one with \
                 xqos in it as it comes (fair), and with {} ms in {} ms reserved by the interactive client (reserved). \
                 {} x11perf clients (-{} -reps {}) drew without a pause from before to after each measurement. The four \
                 cases were measured twice, the second time in reverse order.",
                RESERVATION.budget_us / 1000,
                RESERVATION.period_us / 1000,
                self.clients,
                self.test,
                self.reps
            ),
            "The response time is from just before the interactive client writes its 200 requests until the answer is \
             there. Its turns are at fixed instants; a turn that passes while an answer is still out is missed. The \
             kernel's part is the time in which the server or the client was runnable and had no processor, as the \
             kernel counts it (schedstat): no X server can change that."
                .to_owned(),
            "The work of the twelve is the number of operations that the x11perf clients completed in the measured \
             time, by their own count, relative to the stock server. Two rounds tell it no better than the same server \
             repeats itself (last line): `throughput` measures it in pairs, against a goal."
                .to_owned(),
            format!(
                "Their windows lie side by side, so that all of them really draw: a request takes {} on the mean, one \
                 is always in progress, and no policy cuts it. So the goal is one request above the idle server's \
                 mean. The experiments `response` and `throughput` also measure the twelve where x11perf puts them, \
                 one upon the other: their requests are mostly clipped there, and the mean is held against a multiple \
                 of the idle server's.",
                duration(self.request_ms())
            ),
        ];
        if let Some(us) = self.trials.iter().find_map(|trial| trial.refused_at_blocking_us) {
            notes.push(format!(
                "Admission had observed a blocking time of {} ms and would have refused the reservation; it was told to \
                 reckon with {} ms.",
                figure(f64::from(us) / 1000.0),
                figure(f64::from(super::trial::BLOCKING_US) / 1000.0)
            ));
        }
        notes
    }
}

fn describe(case: Case) -> &'static str {
    match case {
        Case::Idle => "nobody else",
        Case::Stock => "the server as it comes",
        Case::Fair => "with xqos, nothing set up",
        Case::Reserved => "with xqos, 3 ms in 10 ms reserved",
        Case::Both => "with xqos, 3 ms in 10 ms reserved, and 2 ms in 10 ms of a processor",
    }
}
