//! What clients cost, each alone on the server: the only figures that the simulator gets.

use super::{Situation, Times, live};
use crate::bench::Bench;
use crate::control::Control;
use crate::load::{Load, Perf, Placement};
use crate::plaid::Plaids;
use crate::scheduler::Stage;
use crate::statistics::median;
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use xqos_sim::scenario::Costs;

/// Between two looks at the server's list of clients.
const LOOK: Duration = Duration::from_millis(40);
/// Of a burst, as in the scenarios' files: the line and a property,
const LINE_REQUESTS: f64 = 2.0;
/// a background, 24 spokes, a hub and a property,
const WHEEL_REQUESTS: f64 = 27.0;
/// 200 lines and a question.
const OCBENCH_REQUESTS: f64 = 201.0;

/// By the names that the scenario's file gives them.
pub(super) fn of(situation: Situation, bench: &Bench, stage: &Stage, perf: &Perf) -> Result<Costs> {
    let display = stage.server().display();
    let wait = || {
        std::thread::sleep(bench.time(1000, 500));
        Ok(())
    };
    let mut costs = Costs::new();
    let mut set = |name: &str, us: f64| costs.insert(name.to_owned(), us.max(0.0));
    if situation == Situation::Ocbench {
        let load = Load::start(display, perf, 1, Placement::SideBySide)?;
        let (got, ()) = Asked::by_the_busiest(stage, wait)?;
        drop(load);
        set("getimage", got.each_us());
        set("getimage-rest", got.every_us() - got.each_us());
    } else {
        let plaids = Plaids::start(display, 1)?;
        let (got, ()) = Asked::by_the_busiest(stage, wait)?;
        drop(plaids);
        set("plaid", got.each_us());
    }
    let (got, times) = Asked::by_the_busiest(stage, || live::alone(situation, bench, stage, None))?;
    // Medians: a stall of the machine is no habit of a client.
    let Times { response_ms, interval_ms } = times;
    let (response_us, interval_us) = (median(response_ms) * 1e3, median(interval_ms) * 1e3);
    match situation {
        Situation::Interactive => {
            set("line", got.each_us());
            set("line-way", response_us - LINE_REQUESTS * got.each_us());
        }
        Situation::Animation => {
            set("wheel", got.each_us());
            set("wheel-way", response_us - WHEEL_REQUESTS * got.each_us());
            set("wheel-interval", interval_us);
        }
        Situation::Ocbench => {
            set("ocbench", got.each_us());
            set("ocbench-way", response_us - OCBENCH_REQUESTS * got.each_us());
            set("ocbench-rest", interval_us - response_us);
        }
    }
    Ok(costs)
}

/// What the server did for one client between two looks.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    requests: u64,
    server_time_ns: u64,
    elapsed_ns: u64,
}

/// The first look at a client, and the last.
type Looks = BTreeMap<u32, (Asked, Asked)>;

impl Asked {
    /// By the client with most requests while something is done.
    fn by_the_busiest<T>(stage: &Stage, doing: impl FnOnce() -> Result<T>) -> Result<(Asked, T)> {
        let control = stage.server().control()?;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looking = scope.spawn(|| look(&control, &is_over));
            let done = doing();
            is_over.store(true, Ordering::Relaxed);
            let looks = looking.join().map_err(|_| anyhow!("the thread that looks at clients failed"))??;
            let asked = looks.values().map(|(first, last)| last.since(first));
            let busiest = asked.max_by_key(|asked| asked.requests).context("no client asked for anything")?;
            Ok((busiest, done?))
        })
    }

    fn since(&self, first: &Asked) -> Asked {
        Asked {
            requests: self.requests - first.requests,
            server_time_ns: self.server_time_ns - first.server_time_ns,
            elapsed_ns: self.elapsed_ns - first.elapsed_ns,
        }
    }

    /// Server time of a request.
    fn each_us(&self) -> f64 {
        self.server_time_ns as f64 / self.requests.max(1) as f64 / 1e3
    }

    /// From one request to the next.
    fn every_us(&self) -> f64 {
        self.elapsed_ns as f64 / self.requests.max(1) as f64 / 1e3
    }
}

fn look(control: &Control, is_over: &AtomicBool) -> Result<Looks> {
    let mut looks = Looks::new();
    while !is_over.load(Ordering::Relaxed) {
        let list = control.clients()?;
        for client in list.clients {
            let (requests, server_time_ns) = (client.requests, client.server_time_ns);
            let asked = Asked { requests, server_time_ns, elapsed_ns: list.now_ns };
            looks.entry(client.client).or_insert((asked, asked)).1 = asked;
        }
        std::thread::sleep(LOOK);
    }
    Ok(looks)
}
