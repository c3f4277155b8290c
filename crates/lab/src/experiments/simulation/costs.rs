// SPDX-License-Identifier: MIT
//! The costs of each client when it is alone on the server: the only measurements that the simulator gets.

use super::{Situation, Times, live};
use crate::bench::Bench;
use crate::flood::{Drawing, Flood};
use crate::load::{Load, Perf, Placement};
use crate::scheduler::Stage;
use crate::statistics::median;
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use xqos_client::Control;
use xqos_sim::scenario::Costs;

/// Interval between two readings of the server's list of clients.
const READING_INTERVAL: Duration = Duration::from_millis(40);
/// Requests of a burst, as in the scenario files: the line and a property.
const LINE_REQUESTS: f64 = 2.0;
/// A background, 24 spokes, a hub and a property.
const WHEEL_REQUESTS: f64 = 27.0;
/// 200 lines and a query.
const OCBENCH_REQUESTS: f64 = 201.0;

/// Costs under the names that the scenario's file uses.
pub(super) fn of(situation: Situation, bench: &Bench, stage: &Stage, perf: &Perf) -> Result<Costs> {
    let display = stage.server().display();
    let wait = || {
        std::thread::sleep(bench.time(1000, 500));
        Ok(())
    };
    let mut costs = Costs::new();
    let mut set = |name: &str, us: f64| costs.insert(name.to_owned(), us.max(0.0));
    if situation == Situation::Ocbench {
        let mut load = Load::start(display, perf, 1, Placement::SideBySide)?;
        let (got, ()) = Readings::of_busiest_client(stage, wait)?;
        load.see_running()?;
        drop(load);
        set("getimage", got.each_us());
        set("getimage-rest", got.every_us() - got.each_us());
    } else {
        let plaids = Flood::start(stage.server(), Drawing::Heavy, 1)?;
        let (got, ()) = Readings::of_busiest_client(stage, wait)?;
        drop(plaids);
        set("plaid", got.each_us());
    }
    let (got, times) = Readings::of_busiest_client(stage, || live::alone(situation, bench, stage, None))?;
    // Medians, because a stall of the machine is not a property of a client.
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

/// The server's figures for one client at one reading.
#[derive(Clone, Copy, Debug)]
struct Reading {
    requests: u64,
    server_time_ns: u64,
    now_ns: u64,
}

/// Consecutive readings of one client that runs alone.
#[derive(Debug, Default)]
struct Readings(Vec<Reading>);

impl Readings {
    /// Runs `doing`, and returns its result with the readings of the client that made the most requests meanwhile.
    fn of_busiest_client<T>(stage: &Stage, doing: impl FnOnce() -> Result<T>) -> Result<(Readings, T)> {
        let control = stage.server().control()?;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looking = scope.spawn(|| read_clients(&control, &is_over));
            let done = doing();
            is_over.store(true, Ordering::Relaxed);
            let asked = looking.join().map_err(|_| anyhow!("the thread that reads the clients' figures failed"))??;
            let busiest = asked.into_values().max_by_key(Readings::requests).context("no client sent a request")?;
            Ok((busiest, done?))
        })
    }

    fn requests(&self) -> u64 {
        self.0.last().zip(self.0.first()).map_or(0, |(last, first)| last.requests - first.requests)
    }

    /// Server time of a request.
    fn each_us(&self) -> f64 {
        self.of_a_request(|look| look.server_time_ns)
    }

    /// Time from the beginning of one request to that of the next.
    fn every_us(&self) -> f64 {
        self.of_a_request(|look| look.now_ns)
    }

    /// Median over the intervals between readings, because intervals in which the machine stalled say nothing about
    /// requests.
    fn of_a_request(&self, ns: fn(&Reading) -> u64) -> f64 {
        let pairs = self.0.windows(2).filter(|pair| pair[1].requests > pair[0].requests);
        median(pairs.map(|pair| {
            let requests = pair[1].requests - pair[0].requests;
            (ns(&pair[1]) - ns(&pair[0])) as f64 / requests as f64 / 1e3
        }))
    }
}

/// Readings of each client.
fn read_clients(control: &Control, is_over: &AtomicBool) -> Result<BTreeMap<u32, Readings>> {
    let mut asked: BTreeMap<u32, Readings> = BTreeMap::new();
    while !is_over.load(Ordering::Relaxed) {
        let list = control.clients()?;
        for client in list.clients {
            let (requests, server_time_ns) = (client.requests, client.server_time_ns);
            let look = Reading { requests, server_time_ns, now_ns: list.now_ns };
            asked.entry(client.client).or_default().0.push(look);
        }
        std::thread::sleep(READING_INTERVAL);
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_do_not_count_as_request_costs() {
        let look = |(requests, us, now_us): (u64, u64, u64)| Reading {
            requests,
            server_time_ns: us * 1000,
            now_ns: now_us * 1000,
        };
        let looks = [(5, 0, 0), (15, 100, 200), (15, 100, 300), (25, 50_000, 60_000), (35, 50_120, 60_220)];
        let asked = Readings(looks.map(look).to_vec());
        assert_eq!((asked.requests(), asked.each_us(), asked.every_us()), (30, 12.0, 22.0));
    }
}
