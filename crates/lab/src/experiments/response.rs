// SPDX-License-Identifier: MIT
//! Response of a light client beside twelve busy ones, under loads of short and long requests.
//!
//! For each load and pair the four cases follow each other; what is compared is compared within a pair. The longest
//! request of a load is measured with one client alone on the server, once for each pair, and the least of these is taken:
//! a request that is long comes in every pair, one that the kernel interrupted shall not make its own bound wider. xqos
//! can only time a request that was a slice of its own; where all that it saw are shorter than the mean request, the
//! mean stands for the longest.

use super::trial::{
    BLOCKING_US, Case, Served, Servers, Trial, may_reserve_processors, of_case, order, range, ratios, responses,
};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::load::{Load, Perf, Placement};
use crate::pauses::Pauses;
use crate::statistics::{Spread, median};
use crate::study::{
    Chart, Columns, Goal, Group, Ranges, Row, Study, Table, Verdict, duration, figure, percent, spread_figure,
};
use anyhow::Result;
use serde::{Deserialize, Serialize};

const CLIENTS: usize = 12;

/// A load, and what is asked of the responses beside it.
struct Goals {
    test: &'static str,
    placement: Placement,
    /// Mean under fair over idle.
    fair_over_idle: Option<Key>,
    /// Mean under stock over fair.
    stock_over_fair: Option<Key>,
    /// Mean with the reservation over idle.
    reserved_over_idle: Option<Key>,
    /// 99th percentile above the longest request, in milliseconds.
    fair_p99_above: Option<Key>,
    reserved_p99_above: Option<Key>,
}

/// As x11perf places them, then those of longer requests side by side: there every client really draws.
const LOADS: [Goals; 8] = [
    Goals {
        fair_over_idle: Some(Key("response.ellipse100_fair_over_idle")),
        stock_over_fair: Some(Key("response.ellipse100_better_than_stock")),
        reserved_over_idle: Some(Key("response.ellipse100_reserved_over_idle")),
        fair_p99_above: Some(Key("response.ellipse100_fair_p99_above")),
        ..stacked("ellipse100")
    },
    Goals {
        stock_over_fair: Some(Key("response.noop_better_than_stock")),
        reserved_over_idle: Some(Key("response.noop_reserved_over_idle")),
        ..stacked("noop")
    },
    Goals {
        stock_over_fair: Some(Key("response.getimagexy100_better_than_stock")),
        reserved_over_idle: Some(Key("response.getimagexy100_reserved_over_idle")),
        fair_p99_above: Some(Key("response.getimagexy100_fair_p99_above")),
        ..stacked("getimagexy100")
    },
    Goals {
        stock_over_fair: Some(Key("response.putimage500_better_than_stock")),
        reserved_over_idle: Some(Key("response.putimage500_reserved_over_idle")),
        ..stacked("putimage500")
    },
    Goals {
        fair_p99_above: Some(Key("response.getimagexy500_fair_p99_above")),
        reserved_p99_above: Some(Key("response.getimagexy500_reserved_p99_above")),
        ..stacked("getimagexy500")
    },
    Goals {
        stock_over_fair: Some(Key("response.side_by_side_ellipse100_better_than_stock")),
        fair_p99_above: Some(Key("response.side_by_side_ellipse100_fair_p99_above")),
        ..side_by_side("ellipse100")
    },
    Goals {
        stock_over_fair: Some(Key("response.side_by_side_getimagexy100_better_than_stock")),
        fair_p99_above: Some(Key("response.side_by_side_getimagexy100_fair_p99_above")),
        ..side_by_side("getimagexy100")
    },
    Goals {
        fair_p99_above: Some(Key("response.side_by_side_getimagexy500_fair_p99_above")),
        reserved_p99_above: Some(Key("response.side_by_side_getimagexy500_reserved_p99_above")),
        ..side_by_side("getimagexy500")
    },
];

const fn stacked(test: &'static str) -> Goals {
    Goals {
        test,
        placement: Placement::Stacked,
        fair_over_idle: None,
        stock_over_fair: None,
        reserved_over_idle: None,
        fair_p99_above: None,
        reserved_p99_above: None,
    }
}

const fn side_by_side(test: &'static str) -> Goals {
    Goals { placement: Placement::SideBySide, ..stacked(test) }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Response {
    clients: usize,
    loads: Vec<LoadTrials>,
}

#[derive(Debug, Serialize, Deserialize)]
struct LoadTrials {
    test: String,
    placement: Placement,
    reps: u64,
    /// One client alone on the server with xqos, once for each pair.
    alone: Vec<Served>,
    /// What the machine took, once for each pair; none in results of earlier versions.
    #[serde(default)]
    pauses: Vec<Pauses>,
    trials: Vec<Trial>,
}

impl Measure for Response {
    const NAME: &'static str = "response";
    const ABOUT: &'static str = "response times beside loads of short and long requests, in pairs";
    const TAKES: Takes = Takes { quick_s: 90, full_s: 1400 };

    fn run(bench: &Bench) -> Result<Self> {
        // In a hurry: side by side, the longest requests stand for all, and nowhere else.
        let is_left_out = |goals: &Goals| (goals.placement == Placement::SideBySide) != (goals.test == "getimagexy500");
        let loads = LOADS.iter().filter(|goals| !(bench.quick && is_left_out(goals)));
        let loads = loads.map(|goals| LoadTrials::run(bench, goals)).collect::<Result<_>>()?;
        Ok(Response { clients: CLIENTS, loads })
    }

    fn study(&self) -> Study {
        let mut study = Study {
            title: format!("Response beside {} busy clients", self.clients),
            question: "A light client draws 200 lines every 10 ms and waits for the answer, beside clients with short \
                       and with long requests. How long does it wait, and what of that is the kernel's?"
                .to_owned(),
            notes: notes(),
            ..Study::default()
        };
        let mut groups = Vec::new();
        for load in &self.loads {
            study.tables.push(load.table());
            study.verdicts.extend(load.verdicts());
            let ranges = load.cases().map(|case| range(&of_case(&load.trials, case))).collect();
            groups.push(Group { name: load.name(), ranges });
        }
        let title = "From the median to the 99th percentile".to_owned();
        study.charts.push(Chart::Ranges(Ranges { title, x_label: "response time, ms".to_owned(), groups }));
        study.tables.push(self.machine());
        study
    }
}

impl Response {
    /// What no X server can mend, in the measure of the goals.
    fn machine(&self) -> Table {
        let over_idle = |load: &&LoadTrials| {
            let idle_ms = median(of_case(&load.trials, Case::Idle).into_iter().map(mean_ms));
            figure(load.pauses(|pauses| pauses.mean_wait_ms).median / idle_ms)
        };
        let loads = self.loads.iter().filter(|load| !load.pauses.is_empty());
        Columns::of("What the machine takes from a program that only computes", loads)
            .cell("before", |load| load.name())
            .cell("of the time", |load| percent(load.pauses(|pauses| pauses.part).median))
            .cell("longest ms", |load| figure(load.pauses(|pauses| pauses.longest_ms).greatest))
            .cell("mean wait ms", |load| spread_figure(&load.pauses(|pauses| pauses.mean_wait_ms)))
            .cell("over the idle mean", over_idle)
            .table()
    }
}

impl LoadTrials {
    fn run(bench: &Bench, goals: &Goals) -> Result<LoadTrials> {
        let Goals { test, placement, .. } = *goals;
        // New servers for each load: the blocking time observed under one says nothing about the next.
        let servers = Servers::start(bench, 256)?;
        let perf = Perf::calibrate(servers.stock.display(), test)?;
        let (mut alone, mut pauses, mut trials) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 0..bench.pairs {
            bench.say(format!("{CLIENTS} x {test}, {placement:?}: pair {} of {}", pair + 1, bench.pairs));
            alone.push(serve_one(bench, &servers, &perf)?);
            pauses.push(Pauses::measure(bench.time(2000, 500)));
            let both = (!bench.quick && may_reserve_processors()).then_some(Case::Both);
            for case in order(pair).into_iter().chain(both) {
                let load = (case != Case::Idle).then_some((&perf, CLIENTS, placement));
                trials.push(Trial::run(&servers, case, pair, load, bench.time(4000, 1000))?);
            }
        }
        Ok(LoadTrials { test: perf.test, placement, reps: perf.reps, alone, pauses, trials })
    }

    fn pauses(&self, value: fn(&Pauses) -> f64) -> Spread {
        Spread::of(self.pauses.iter().map(value))
    }

    fn name(&self) -> String {
        match self.placement {
            Placement::Stacked => self.test.clone(),
            Placement::SideBySide => format!("{} side by side", self.test),
        }
    }

    /// Those that were measured.
    fn cases(&self) -> impl Iterator<Item = Case> + '_ {
        let measured = |case: &Case| self.trials.iter().any(|trial| trial.case == *case);
        Case::ALL.into_iter().chain([Case::Both]).filter(measured)
    }

    fn longest_ms(&self) -> f64 {
        let longest = |alone: &Served| (alone.longest_request_ns as f64 / 1e6).max(alone.mean_request_ms());
        Spread::of(self.alone.iter().map(longest)).least
    }

    fn table(&self) -> Table {
        let mean = duration(median(self.alone.iter().map(Served::mean_request_ms)));
        let longest = duration(self.longest_ms());
        let title = format!("{CLIENTS} x {}; alone, its requests take {mean}, at most {longest}", self.name());
        let over_idle = |row: &Row<Trial>| match row.samples.first().map(|trial| trial.case) {
            Some(case) if case != Case::Idle => spread_figure(&ratios(&self.trials, case, Case::Idle, mean_ms)),
            _ => "1".to_owned(),
        };
        let longest = |row: &Row<Trial>| {
            let longest = row.spread(|trial| trial.served.map_or(0.0, |served| served.longest_request_ns as f64 / 1e6));
            if longest.greatest > 0.0 { figure(longest.median) } else { "-".to_owned() }
        };

        Columns::of(title, self.cases().map(|case| Row::new(case.name(), of_case(&self.trials, case))))
            .name("case")
            .median("mean ms", mean_ms)
            .median("p50 ms", |trial| trial.series.response_ms().p50)
            .median("p99 ms", |trial| trial.series.response_ms().p99)
            .max("worst ms", |trial| trial.series.response_ms().worst)
            .cell("mean over idle", over_idle)
            .median("kernel's part ms", |trial| trial.series.kernel_ms().mean)
            .median("p99 without it", |trial| trial.series.without_kernel_ms().p99)
            .percent("missed turns", |trial| trial.series.missed_part())
            .cell("longest request ms", longest)
            .table()
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let Some(goals) = LOADS.iter().find(|goals| goals.test == self.test && goals.placement == self.placement)
        else {
            return Vec::new();
        };
        let mut verdicts = Vec::new();
        let mut add = |what: &str, spread: Spread, cases: &[Case], unit: &str, key: Option<Key>| {
            let trials: Vec<_> = cases.iter().flat_map(|&case| of_case(&self.trials, case)).collect();
            if let Some(key) = key {
                let what = format!("{}, {what}", self.name());
                verdicts.push(Verdict::of_spread(what, spread, unit, Goal::of(key)).counting(responses(&trials)));
            }
        };
        let over_idle = |case| ratios(&self.trials, case, Case::Idle, mean_ms);
        add("fair: mean over idle", over_idle(Case::Fair), &[Case::Fair, Case::Idle], "x", goals.fair_over_idle);
        let better = ratios(&self.trials, Case::Stock, Case::Fair, mean_ms);
        add("fair: mean better than stock", better, &[Case::Stock, Case::Fair], "x", goals.stock_over_fair);
        add(
            "reserved: mean over idle",
            over_idle(Case::Reserved),
            &[Case::Reserved, Case::Idle],
            "x",
            goals.reserved_over_idle,
        );
        if self.cases().any(|case| case == Case::Both) {
            let what = "reserved on both levels: mean over idle";
            add(what, over_idle(Case::Both), &[Case::Both, Case::Idle], "x", goals.reserved_over_idle);
        }
        let above = |case| {
            let longest = self.longest_ms();
            let trials = of_case(&self.trials, case);
            Spread::of(trials.iter().map(|trial| trial.series.response_ms().p99 - longest))
        };
        add("fair: p99 above the longest request", above(Case::Fair), &[Case::Fair], "ms", goals.fair_p99_above);
        add(
            "reserved: p99 above the longest request",
            above(Case::Reserved),
            &[Case::Reserved],
            "ms",
            goals.reserved_p99_above,
        );
        verdicts
    }
}

fn mean_ms(trial: &Trial) -> f64 {
    trial.series.response_ms().mean
}

/// One client without anyone beside it.
fn serve_one(bench: &Bench, servers: &Servers, perf: &Perf) -> Result<Served> {
    let control = servers.xqos.control()?;
    let mut load = Load::start(servers.xqos.display(), perf, 1, Placement::Stacked)?;
    std::thread::sleep(bench.time(1500, 500));
    load.see_running()?;
    Served::read(&control, &load.pids())
}

fn notes() -> Vec<String> {
    vec![
        "How it was measured. Xvfb, stock and with xqos, both up all the time; for each pair the four cases follow each \
         other, in turn forwards and backwards, each with twelve new x11perf clients that draw from before to after the \
         measurement. Their windows lie where x11perf puts them, one upon the other, so that most of what they draw is \
         clipped away; side by side every client really draws. Figures are medians of the pairs, worst is the worst of all pairs, ratios are taken within a pair \
         and their median is given, with the least and the greatest."
            .to_owned(),
        "The kernel's part is the time in which the server or the light client was runnable and had no processor, as \
         the kernel counts it for each of them (schedstat, run delay), for each response; the next column is the 99th \
         percentile of the responses without it. The clients of the load compete with the server for the processors. The \
         last table is what not even the kernel can help: a loop on each processor that only looks at the clock, and the \
         pauses that it sees, on a server that is idle. A virtual machine's host makes them, and only while processors are \
         busy: so they are in every mean beside a load, and in no idle one."
            .to_owned(),
        "Both: the light client has 2 ms in 10 ms of a processor too (SCHED_DEADLINE), and the server a real-time priority \
         while it works for it (xqos boost). Left out where this user may not do that, and in a quick run."
            .to_owned(),
        format!(
            "The longest request is what xqos saw of a slice that was one request; the bound of the goals is the one of \
             a client alone on the server. Where admission refuses 3 ms in 10 ms because it observed a longer blocking \
             time, it is told to reckon with {} ms: the guarantee then holds up to one request, which is what is \
             measured.",
            figure(f64::from(BLOCKING_US) / 1000.0)
        ),
    ]
}
