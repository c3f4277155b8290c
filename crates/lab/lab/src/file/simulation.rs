// SPDX-License-Identifier: MIT
//! Measures a client on a real server, and lets the simulator predict the same situation.
//!
//! Each client first runs alone: the server time of its requests, and its own time. The simulator gets only these
//! costs. Then the clients run together under the scheduler of the case, both live and as a scenario, so the comparison
//! shows the effect of scheduling. A scenario without a live counterpart, because no available machine can run it, is
//! only simulated.

use super::case::Case;
use super::data::{Figures, named};
use super::started::follow;
use crate::flood::{Drawing, Flood};
use crate::light::Light;
use crate::line;
use crate::load::{Load, Perf, Placement};
use crate::periodic::{ANIMATION, animate};
use crate::server::Server;
use crate::statistics::median;
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use xqos_abi::{ClientEntry, Setting, Subject};
use xqos_client::Control;
use xqos_core::{PolicyKind, Reservation};
use xqos_sim::outcome::{GroupResult, Outcome};
use xqos_sim::scenario::{Costs, Regime, named as scenario};

const PLAIDS: usize = 12;
const TEST: &str = "getimagexy100";
/// x11perf prints its count at the end of a run, so short runs give a finer count.
const RUNS_OF_ONE: u64 = 20;
const READING_INTERVAL: Duration = Duration::from_millis(40);

#[derive(Clone, Copy, PartialEq, Eq)]
enum ComparedClient {
    Line,
    Animation,
    Ocbench,
    /// x11perf with a hard reservation.
    Reserved,
}

/// Measured or simulated, in milliseconds. Intervals are those between the ends, or between the beginnings, of
/// consecutive responses.
#[derive(Default)]
struct Times {
    response: Vec<f64>,
    interval: Vec<f64>,
}

pub(super) fn measure(case: &Case, server: &Server, quick: bool) -> Result<Figures> {
    let name = case.command[0].as_str();
    let policy = case.policy.unwrap_or(PolicyKind::Fair);
    let regime = if case.reserve.is_some() { Regime::Cbs } else { Regime::Policy(policy) };
    let client = match name {
        "interactive" => ComparedClient::Line,
        "animation" => ComparedClient::Animation,
        "ocbench" => ComparedClient::Ocbench,
        "hard" => ComparedClient::Reserved,
        _ => return Ok(of_crowd(&scenario(name, &Costs::new())?.simulate(regime))),
    };
    let control = server.control()?;
    let has_perf = matches!(client, ComparedClient::Ocbench | ComparedClient::Reserved);
    let perf = has_perf.then(|| Perf::calibrate(server.display(), TEST)).transpose()?;
    let perf = perf.map(|perf| Perf { reps: perf.reps.div_ceil(RUNS_OF_ONE), ..perf });
    let stage = SimulationStage { server, control: &control, client, perf, quick };
    follow(&control, PolicyKind::Stock, [None; 2], false)?;
    let (mut costs, mut values) = stage.costs()?;
    follow(&control, policy, case.slices_us, case.reserve.is_some())?;
    if client == ComparedClient::Reserved {
        let wanted = case.reserve.context("this scenario needs a reservation")?;
        let (share, operations) = stage.reserved_share(wanted)?;
        costs.insert("budget".to_owned(), wanted.budget_ns as f64 / 1e3);
        costs.insert("period".to_owned(), wanted.period_ns as f64 / 1e3);
        let outcome = scenario(name, &costs)?.simulate(regime);
        let of = of_client(&outcome, "x11perf")?;
        let (simulated, requests) = (of.share(&outcome), of.requests as f64 / outcome.seconds);
        values.extend(named([("measured_share", share), ("operations", operations)]));
        values.extend(named([("simulated_share", simulated), ("simulated_requests", requests)]));
        return Ok((BTreeMap::new(), values));
    }
    let (mut load, _plaids) = stage.load(PLAIDS)?;
    let measured = stage.alone(case.reserve)?;
    load.as_mut().map_or(Ok(()), Load::see_running)?;
    let outcome = scenario(name, &costs)?.simulate(regime);
    let simulated = Times::of(of_client(&outcome, if client == ComparedClient::Line { "line" } else { name })?);
    let samples = [
        ("measured", measured.response),
        ("measured_interval", measured.interval),
        ("simulated", simulated.response),
        ("simulated_interval", simulated.interval),
    ];
    Ok((named(samples), values))
}

/// Responses of a few clients and of the crowd around them, and the outcome for all clients.
fn of_crowd(outcome: &Outcome) -> Figures {
    let mut measured: Vec<&GroupResult> = outcome.groups.iter().filter(|group| group.is_measured).collect();
    measured.sort_by_key(|group| group.served_ns.len());
    let names = ["simulated", "simulated_crowd"].into_iter();
    let responses = measured.into_iter().map(|group| Times::of(group).response);
    let sum = |figure: fn(&GroupResult) -> u64| outcome.groups.iter().map(figure).sum::<u64>() as f64;
    let values = [
        ("unfinished", sum(|group| group.waiting)),
        ("starved", sum(|group| group.served_ns.iter().filter(|&&ns| ns == 0).count() as u64)),
        ("asked", sum(|group| group.asked.into())),
        ("admitted", sum(|group| group.admitted.into())),
    ];
    (named(names.zip(responses)), named(values))
}

fn of_client<'a>(outcome: &'a Outcome, name: &str) -> Result<&'a GroupResult> {
    outcome.of(name).ok_or_else(|| anyhow!("the scenario has no clients '{name}'"))
}

impl Times {
    fn of(of: &GroupResult) -> Times {
        let ms = |values: &[u64]| values.iter().map(|&ns| ns as f64 / 1e6).collect();
        Times { response: ms(&of.response_ns), interval: ms(&of.interval_ns) }
    }
}

struct SimulationStage<'a> {
    server: &'a Server,
    control: &'a Control,
    client: ComparedClient,
    /// The load for ocbench. The load for other clients is plaids.
    perf: Option<Perf>,
    quick: bool,
}

impl SimulationStage<'_> {
    /// Costs under the names that the scenario's file uses, and under names that are the same for all scenarios.
    fn costs(&self) -> Result<(Costs, BTreeMap<String, f64>)> {
        let wait = || {
            std::thread::sleep(Duration::from_millis(if self.quick { 500 } else { 1000 }));
            Ok(())
        };
        let loads = self.load(1)?;
        let (got, ()) = self.readings_of_busiest_client(wait)?;
        drop(loads);
        let (load_us, load_rest_us) = (got.each_us(), got.every_us() - got.each_us());
        let mut costs = match self.perf {
            Some(_) => Costs::from([("getimage".to_owned(), load_us), ("getimage-rest".to_owned(), load_rest_us)]),
            None => Costs::from([("plaid".to_owned(), load_us)]),
        };
        let mut values = named([("load", load_us), ("load_rest", load_rest_us)]);
        // The name of its costs, and the requests of its burst, as in the scenario's file.
        let (name, requests) = match self.client {
            ComparedClient::Line => ("line", 2.0),
            ComparedClient::Animation => ("wheel", 27.0),
            ComparedClient::Ocbench => ("ocbench", 201.0),
            ComparedClient::Reserved => return Ok((costs, values)),
        };
        let (got, times) = self.readings_of_busiest_client(|| self.alone(None))?;
        // Medians, because a stall of the machine is not a property of a client.
        let (response_us, interval_us) = (median(times.response) * 1e3, median(times.interval) * 1e3);
        let own_us = (response_us - requests * got.each_us()).max(0.0);
        costs.extend([(name.to_owned(), got.each_us()), (format!("{name}-way"), own_us)]);
        match self.client {
            ComparedClient::Animation => _ = costs.insert("wheel-interval".into(), interval_us),
            ComparedClient::Ocbench => _ = costs.insert("ocbench-rest".into(), (interval_us - response_us).max(0.0)),
            ComparedClient::Line | ComparedClient::Reserved => {}
        }
        values.extend(named([("client", got.each_us()), ("client_own", own_us)]));
        Ok((costs, values))
    }

    /// The clients that keep the server busy, until this is dropped.
    fn load(&self, plaids: usize) -> Result<(Option<Load>, Option<Flood>)> {
        Ok(match &self.perf {
            Some(perf) => (Some(Load::start(self.server.display(), perf, 1, Placement::SideBySide)?), None),
            None => (None, Some(Flood::start(self.server, Drawing::Heavy, plaids)?)),
        })
    }

    /// Measures the client without starting others.
    fn alone(&self, reservation: Option<Reservation>) -> Result<Times> {
        let count = |full, quick| if self.quick { quick } else { full };
        match self.client {
            ComparedClient::Line => {
                let echoes = line::measure(self.server, reservation, count(150, 40))?;
                Ok(Times { response: echoes.echo_ms, ..Times::default() })
            }
            ComparedClient::Animation => {
                let frames = animate(self.server, ANIMATION, reservation, count(120, 40) as usize)?;
                Ok(Times { response: frames.latency_ms(), interval: frames.interval_ms() })
            }
            ComparedClient::Ocbench | ComparedClient::Reserved => {
                let warm_up = Duration::from_millis(200);
                let light = Light { rests: true, warm_up, reservation, ..Light::default() };
                let time = Duration::from_millis(count(1500, 700).into());
                let series = light.measure(self.server, time)?.series;
                let response = series.response_ns.iter().map(|&ns| ns as f64 / 1e6).collect();
                let interval = series.at_us.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e3).collect();
                Ok(Times { response, interval })
            }
        }
    }

    /// Share of the server of one x11perf with a reservation, and the operations per second that it prints.
    fn reserved_share(&self, wanted: Reservation) -> Result<(f64, f64)> {
        let (mut load, _) = self.load(0)?;
        let load = load.as_mut().context("the load is x11perf")?;
        let period = Duration::from_nanos(wanted.period_ns);
        let entry = || -> Result<(u64, ClientEntry)> {
            let (list, pid) = (self.control.clients()?, load.pids()[0]);
            let found = list.clients.into_iter().find(|client| client.pid as u32 == pid);
            Ok((list.now_ns, found.context("the server does not list x11perf")?))
        };
        self.control.set(Subject::Client(entry()?.1.client), Setting::Reservation(wanted))?;
        // The first period still includes service from before the reservation.
        std::thread::sleep(period);
        let ((began_ns, before), from) = (entry()?, Instant::now());
        // A second, in whole periods.
        std::thread::sleep(period * 1_000_000_000_u64.div_ceil(wanted.period_ns) as u32);
        let (to, (ended_ns, after)) = (Instant::now(), entry()?);
        let operations: f64 = load.work(from, to)?.iter().sum();
        let share = (after.reserved_time_ns - before.reserved_time_ns) as f64 / (ended_ns - began_ns) as f64;
        Ok((share, operations / (to - from).as_secs_f64()))
    }

    /// Runs `doing`, and returns its result with the readings of the client that made the most requests meanwhile.
    fn readings_of_busiest_client<T>(&self, doing: impl FnOnce() -> Result<T>) -> Result<(Readings, T)> {
        let control = self.server.control()?;
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
}

/// Consecutive readings of one client that runs alone: requests, its server time, and the server's clock.
#[derive(Debug, Default)]
struct Readings(Vec<(u64, u64, u64)>);

impl Readings {
    fn requests(&self) -> u64 {
        self.0.last().zip(self.0.first()).map_or(0, |(last, first)| last.0 - first.0)
    }

    fn each_us(&self) -> f64 {
        self.of_a_request(|reading| reading.1)
    }

    /// Time from the beginning of one request to that of the next.
    fn every_us(&self) -> f64 {
        self.of_a_request(|reading| reading.2)
    }

    /// Median over the intervals between readings, because intervals in which the machine stalled say nothing about
    /// requests.
    fn of_a_request(&self, ns: fn(&(u64, u64, u64)) -> u64) -> f64 {
        let pairs = self.0.windows(2).filter(|pair| pair[1].0 > pair[0].0);
        median(pairs.map(|pair| (ns(&pair[1]) - ns(&pair[0])) as f64 / (pair[1].0 - pair[0].0) as f64 / 1e3))
    }
}

fn read_clients(control: &Control, is_over: &AtomicBool) -> Result<BTreeMap<u32, Readings>> {
    let mut asked: BTreeMap<u32, Readings> = BTreeMap::new();
    while !is_over.load(Ordering::Relaxed) {
        let list = control.clients()?;
        for client in list.clients {
            asked.entry(client.client).or_default().0.push((client.requests, client.server_time_ns, list.now_ns));
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
        let readings = [(5, 0, 0), (15, 100, 200), (15, 100, 300), (25, 50_000, 60_000), (35, 50_120, 60_220)];
        let asked = Readings(readings.map(|(requests, us, now_us)| (requests, us * 1000, now_us * 1000)).to_vec());
        assert_eq!((asked.requests(), asked.each_us(), asked.every_us()), (30, 12.0, 22.0));
    }

    #[test]
    fn each_client_of_a_crowd_counts() {
        let outcome = scenario("sixty-four-players", &Costs::new()).unwrap().simulate(Regime::Cbs);
        let (samples, values) = of_crowd(&outcome);
        assert!(samples["simulated_crowd"].len() > 4 * samples["simulated"].len(), "64 players and 8 late ones");
        assert!(values["admitted"] > 0.0 && values["asked"] > values["admitted"], "{values:?}");
    }
}
