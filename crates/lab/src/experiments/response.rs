//! Response of a light client beside twelve busy ones, under loads of short and long requests.
//!
//! For each load and pair the four cases follow each other; what is compared is compared within a pair. The longest
//! request of a load is measured with one client alone on the server, where nobody competes for the processors, and the
//! median of the pairs is taken, so that a request that the kernel interrupted does not make its own bound wider. xqos
//! can only time a request that was a slice of its own; where all that it saw are shorter than the mean request, the
//! mean stands for the longest.

use super::Measure;
use super::trial::{BLOCKING_US, Case, Served, Servers, Trial, of_case, order, range, ratios};
use crate::bench::Bench;
use crate::load::{Load, Perf};
use crate::statistics::{Spread, median};
use crate::study::{Chart, Goal, Group, Ranges, Study, Table, Verdict, duration, figure, percent, spread_figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};

const CLIENTS: usize = 12;

/// What is asked of each load.
struct Goals {
    test: &'static str,
    /// Mean under fair over idle.
    fair_over_idle: Option<f64>,
    /// Mean under stock over fair.
    stock_over_fair: Option<f64>,
    /// Mean with the reservation over idle.
    reserved_over_idle: Option<f64>,
    /// 99th percentile above the longest request, with this policy.
    fair_p99_above: Option<f64>,
    reserved_p99_above: Option<f64>,
}

const LOADS: [Goals; 5] = [
    Goals {
        test: "ellipse100",
        fair_over_idle: Some(1.2),
        stock_over_fair: Some(10.0),
        reserved_over_idle: Some(1.2),
        fair_p99_above: Some(2.0),
        reserved_p99_above: None,
    },
    Goals {
        test: "noop",
        fair_over_idle: None,
        stock_over_fair: Some(2.0),
        reserved_over_idle: Some(1.5),
        fair_p99_above: None,
        reserved_p99_above: None,
    },
    Goals {
        test: "getimagexy100",
        fair_over_idle: None,
        stock_over_fair: Some(2.0),
        reserved_over_idle: Some(1.2),
        fair_p99_above: Some(2.0),
        reserved_p99_above: None,
    },
    Goals {
        test: "putimage500",
        fair_over_idle: None,
        stock_over_fair: Some(1.0),
        reserved_over_idle: Some(1.5),
        fair_p99_above: None,
        reserved_p99_above: None,
    },
    Goals {
        test: "getimagexy500",
        fair_over_idle: None,
        stock_over_fair: None,
        reserved_over_idle: None,
        fair_p99_above: Some(2.0),
        reserved_p99_above: Some(2.0),
    },
];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Response {
    clients: usize,
    loads: Vec<LoadTrials>,
}

#[derive(Debug, Serialize, Deserialize)]
struct LoadTrials {
    test: String,
    reps: u64,
    /// One client alone on the server with xqos, once for each pair.
    alone: Vec<Served>,
    trials: Vec<Trial>,
}

impl Measure for Response {
    const NAME: &'static str = "response";
    const ABOUT: &'static str = "response times beside five loads of short and long requests, in pairs (10 minutes)";

    fn run(bench: &Bench) -> Result<Self> {
        let loads = LOADS.iter().map(|goals| LoadTrials::run(bench, goals.test)).collect::<Result<_>>()?;
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
            let ranges = Case::ALL.iter().map(|&case| range(&of_case(&load.trials, case))).collect();
            groups.push(Group { name: load.test.clone(), ranges });
        }
        let title = "From the median to the 99th percentile".to_owned();
        study.charts.push(Chart::Ranges(Ranges { title, x_label: "response time, ms".to_owned(), groups }));
        study
    }
}

impl LoadTrials {
    fn run(bench: &Bench, test: &str) -> Result<LoadTrials> {
        // New servers for each load: the blocking time observed under one says nothing about the next.
        let servers = Servers::start(bench, 256)?;
        let perf = Perf::calibrate(servers.stock.display(), test)?;
        let (mut alone, mut trials) = (Vec::new(), Vec::new());
        for pair in 0..bench.pairs {
            bench.say(format!("{CLIENTS} x {test}: pair {} of {}", pair + 1, bench.pairs));
            alone.push(serve_one(bench, &servers, &perf)?);
            for case in order(pair) {
                let load = (case != Case::Idle).then_some((&perf, CLIENTS));
                trials.push(Trial::run(&servers, case, pair, load, bench.time(4000, 1000))?);
            }
        }
        Ok(LoadTrials { test: perf.test, reps: perf.reps, alone, trials })
    }

    fn longest_ms(&self) -> f64 {
        let longest = |alone: &Served| (alone.longest_request_ns as f64 / 1e6).max(alone.mean_request_ms());
        median(self.alone.iter().map(longest))
    }

    fn table(&self) -> Table {
        let mean = duration(median(self.alone.iter().map(Served::mean_request_ms)));
        let longest = duration(self.longest_ms());
        let title = format!("{CLIENTS} x {}; alone, its requests take {mean}, at most {longest}", self.test);
        let head = [
            "case",
            "mean ms",
            "p50 ms",
            "p99 ms",
            "worst ms",
            "mean over idle",
            "kernel's part ms",
            "p99 without it",
            "missed turns",
            "longest request ms",
        ];
        let mut table = Table::new(title, &head);
        for case in Case::ALL {
            let trials = of_case(&self.trials, case);
            let over = |figure: fn(&Trial) -> f64| Spread::of(trials.iter().map(|trial| figure(trial)));
            let missed = over(|trial| trial.series.missed_turns as f64 / (trial.elapsed_s * 100.0));
            let longest = over(|trial| trial.served.map_or(0.0, |served| served.longest_request_ns as f64 / 1e6));
            let over_idle = ratios(&self.trials, case, Case::Idle, mean_ms);
            table.rows.push(vec![
                case.name().to_owned(),
                figure(over(mean_ms).median),
                figure(over(|trial| trial.series.response_ms().p50).median),
                figure(over(|trial| trial.series.response_ms().p99).median),
                figure(over(|trial| trial.series.response_ms().worst).greatest),
                if case == Case::Idle { "1".to_owned() } else { spread_figure(&over_idle) },
                figure(over(|trial| trial.series.kernel_ms().mean).median),
                figure(over(|trial| trial.series.without_kernel_ms().p99).median),
                percent(missed.median),
                if longest.greatest > 0.0 { figure(longest.median) } else { "-".to_owned() },
            ]);
        }
        table
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let Some(goals) = LOADS.iter().find(|goals| goals.test == self.test) else { return Vec::new() };
        let mut verdicts = Vec::new();
        let mut add = |what: &str, spread: Spread, unit: &str, goal: Option<Goal>| {
            if let Some(goal) = goal {
                verdicts.push(Verdict::of_spread(format!("{}, {what}", self.test), spread, unit, goal));
            }
        };
        let over_idle = |case| ratios(&self.trials, case, Case::Idle, mean_ms);
        add("fair: mean over idle", over_idle(Case::Fair), "x", goals.fair_over_idle.map(Goal::AtMost));
        let better = ratios(&self.trials, Case::Stock, Case::Fair, mean_ms);
        add("fair: mean better than stock", better, "x", goals.stock_over_fair.map(Goal::AtLeast));
        add("reserved: mean over idle", over_idle(Case::Reserved), "x", goals.reserved_over_idle.map(Goal::AtMost));
        let above = |case, goal: Option<f64>| {
            let longest = self.longest_ms();
            let trials = of_case(&self.trials, case);
            (Spread::of(trials.iter().map(|trial| trial.series.response_ms().p99 - longest)), goal.map(Goal::AtMost))
        };
        let (spread, goal) = above(Case::Fair, goals.fair_p99_above);
        add("fair: p99 above the longest request", spread, "ms", goal);
        let (spread, goal) = above(Case::Reserved, goals.reserved_p99_above);
        add("reserved: p99 above the longest request", spread, "ms", goal);
        verdicts
    }
}

fn mean_ms(trial: &Trial) -> f64 {
    trial.series.response_ms().mean
}

/// One client without anyone beside it.
fn serve_one(bench: &Bench, servers: &Servers, perf: &Perf) -> Result<Served> {
    let control = servers.xqos.control()?;
    let load = Load::start(servers.xqos.display(), perf, 1)?;
    std::thread::sleep(bench.time(1500, 500));
    Served::read(&control, &load.pids())
}

fn notes() -> Vec<String> {
    vec![
        "How it was measured. Xvfb, stock and with xqos, both up all the time; for each pair the four cases follow each \
         other, in turn forwards and backwards, each with twelve new x11perf clients that draw from before to after the \
         measurement. Figures are medians of the pairs, worst is the worst of all pairs, ratios are taken within a pair \
         and their median is given, with the least and the greatest."
            .to_owned(),
        "The kernel's part is the time in which the server or the light client was runnable and had no processor, as \
         the kernel counts it for each of them (schedstat, run delay), for each response; the next column is the 99th \
         percentile of the responses without it. The clients of the load compete with the server for the processors."
            .to_owned(),
        format!(
            "The longest request is what xqos saw of a slice that was one request; the bound of the goals is the one of \
             a client alone on the server. Where admission refuses 3 ms in 10 ms because it observed a longer blocking \
             time, as with getimagexy500 it must, it is told to reckon with {} ms: the guarantee then holds up to one \
             request, which is what is measured.",
            figure(f64::from(BLOCKING_US) / 1000.0)
        ),
    ]
}
