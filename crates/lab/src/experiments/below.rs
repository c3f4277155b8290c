// SPDX-License-Identifier: MIT
//! Servers that are served from below, by what they ask of libc, beside the same as they come and, where the server exports
//! its functions, beside xqos by these.
//!
//! Three questions: how a light client is answered beside twelve busy ones, what each operation costs the server, and how
//! near hard reservations and equal shares come to what was asked. Costs are processor time of the server for an operation,
//! so that the noise of the machine counts little; responses are wall-clock time within a pair.

mod tables;

use super::fairness::Shares;
use super::hard::{self, Given};
use super::trial::{Case, Trial};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::load::{Load, Perf, Placement};
use crate::program;
use crate::server::{Compositor, Kind, Module, Server, Setup};
use crate::study::Study;
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use xqos_abi::PolicyChange;
use xqos_core::PolicyKind;

const CLIENTS: usize = 12;
/// Loads beside which the light client is measured.
const LOADS: [&str; 3] = ["ellipse100", "noop", "getimagexy100"];
/// What costs are measured with, one client alone.
const COSTS: [&str; 12] = [
    "noop",
    "dot",
    "rect10",
    "rect100",
    "seg100",
    "ellipse10",
    "ftext",
    "putimage100",
    "getimage100",
    "scroll100",
    "copywinwin100",
    "gc",
];
const UNLIKE: [&str; 3] = ["gc", "ellipse100", "wellipse500"];
/// Q and T in milliseconds.
const RESERVATIONS: [(u32, u32); 6] = [(3, 10), (10, 30), (45, 90), (5, 50), (20, 30), (4, 8)];
const BUSY: &str = "ellipse100";

/// Which way into the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Host {
    Stock,
    Libc,
    Dix,
}

impl Host {
    fn name(self) -> &'static str {
        match self {
            Host::Stock => "stock",
            Host::Libc => "libc",
            Host::Dix => "dix",
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Below {
    servers: Vec<OfServer>,
}

/// What was measured on one kind of server.
#[derive(Debug, Serialize, Deserialize)]
struct OfServer {
    name: String,
    loads: Vec<OfLoad>,
    costs: Vec<Cost>,
    reservations: Vec<OfReservation>,
    /// Jain's index of three unlike clients.
    jain: Vec<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OfLoad {
    test: String,
    trials: Vec<(Host, Trial)>,
}

/// Processor time of the server for an operation of one client alone, in a pair.
#[derive(Debug, Serialize, Deserialize)]
struct Cost {
    test: String,
    stock_ns: f64,
    libc_ns: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct OfReservation {
    budget_ms: u32,
    period_ms: u32,
    measured: Vec<Given>,
}

impl Measure for Below {
    const NAME: &'static str = "below";
    const ABOUT: &'static str =
        "servers served by their calls of libc: response, cost, shares, on Xvfb and on Xwayland under each compositor";
    const TAKES: Takes = Takes { quick_s: 300, full_s: 2200 };

    fn run(bench: &Bench) -> Result<Self> {
        for needed in ["Xwayland", "weston"] {
            program::find(needed)?;
        }
        let mut servers = vec![OfServer::measure(bench, Kind::Xvfb, &[Host::Stock, Host::Libc, Host::Dix])?];
        for compositor in Compositor::ALL.into_iter().filter(|compositor| compositor.is_here()) {
            servers.push(OfServer::measure(bench, Kind::Xwayland(compositor), &[Host::Stock, Host::Libc])?);
        }
        Ok(Below { servers })
    }

    fn study(&self) -> Study {
        self.tables()
    }
}

impl OfServer {
    fn measure(bench: &Bench, kind: Kind, hosts: &[Host]) -> Result<OfServer> {
        let servers = hosts.iter().map(|&host| Ok((host, start(bench, kind, host)?))).collect::<Result<Vec<_>>>()?;
        let of = |wanted| &servers.iter().find(|(host, _)| *host == wanted).expect("among those that were started").1;
        let loads = LOADS.iter().map(|test| measure_load(bench, kind, test, &servers)).collect::<Result<_>>()?;
        let mut costs = Vec::new();
        for test in if bench.quick { &COSTS[..3] } else { &COSTS[..] } {
            bench.say(format!("{kind:?}: cost of {test}"));
            let perf = Perf::calibrate(of(Host::Stock).display(), test)?;
            for _ in 0..bench.pairs {
                let [stock_ns, libc_ns] = [Host::Stock, Host::Libc].map(|host| cost_ns(bench, of(host), &perf));
                costs.push(Cost { test: perf.test.clone(), stock_ns: stock_ns?, libc_ns: libc_ns? });
            }
        }
        let reservations = measure_reservations(bench, kind, of(Host::Libc))?;
        let jain = measure_shares(bench, kind, of(Host::Libc))?;
        Ok(OfServer { name: name(kind), loads, costs, reservations, jain })
    }
}

fn name(kind: Kind) -> String {
    match kind {
        Kind::Xwayland(compositor) => format!("Xwayland under {}", compositor.program()),
        kind => format!("{kind:?}"),
    }
}

fn start(bench: &Bench, kind: Kind, host: Host) -> Result<Server> {
    if host == Host::Stock {
        return Setup::stock(kind).start();
    }
    let module = Module { max_utilization_ppm: Some(hard::MAX_UTILIZATION_PPM), ..bench.module() };
    let mut setup = Setup::with_module(kind, module);
    setup.environment.push(("XQOS_HOST".into(), host.name().into()));
    let server = setup.start()?;
    let control = server.control()?;
    if control.is_below() != Some(host == Host::Libc) || !control.server_info()?.armed {
        bail!("{kind:?} is not served by {}:\n{}", host.name(), server.log());
    }
    Ok(server)
}

fn measure_load(bench: &Bench, kind: Kind, test: &str, servers: &[(Host, Server)]) -> Result<OfLoad> {
    let perf = Perf::calibrate(servers[0].1.display(), test)?;
    let mut trials = Vec::new();
    for pair in 0..bench.pairs {
        bench.say(format!("{kind:?}, {CLIENTS} x {test}: pair {} of {}", pair + 1, bench.pairs));
        for (host, server) in servers {
            let case = if *host == Host::Stock { Case::Stock } else { Case::Fair };
            let load = Some((&perf, CLIENTS, Placement::Stacked));
            trials.push((*host, Trial::on(server, case, pair, load, bench.time(4000, 1000))?));
        }
    }
    Ok(OfLoad { test: perf.test, trials })
}

fn cost_ns(bench: &Bench, server: &Server, perf: &Perf) -> Result<f64> {
    let mut load = Load::start(server.display(), perf, 1, Placement::Stacked)?;
    let (cpu, from) = (server.cpu_time()?, Instant::now());
    std::thread::sleep(bench.time(2000, 600));
    let (cpu, to) = (server.cpu_time()? - cpu, Instant::now());
    let operations: f64 = load.work(from, to)?.iter().sum();
    Ok(cpu.as_nanos() as f64 / operations.max(1.0))
}

fn measure_reservations(bench: &Bench, kind: Kind, server: &Server) -> Result<Vec<OfReservation>> {
    let perf = Perf::calibrate(server.display(), BUSY)?;
    let perf = Perf { reps: perf.reps.div_ceil(hard::RUNS_OF_ONE), ..perf };
    let control = server.control()?;
    control.set_policy(PolicyChange { blocking_us: Some(1000), ..PolicyChange::default() })?;
    let mut all = Vec::new();
    for (budget_ms, period_ms) in RESERVATIONS {
        bench.say(format!("{kind:?}: {budget_ms} ms in {period_ms} ms, hard"));
        let time = std::time::Duration::from_millis(u64::from(period_ms) * if bench.quick { 20 } else { 60 });
        let reservation = Some((budget_ms * 1000, period_ms * 1000));
        let one = |_| hard::measure(server, &control, &perf, reservation, time);
        all.push(OfReservation { budget_ms, period_ms, measured: (0..bench.pairs).map(one).collect::<Result<_>>()? });
    }
    Ok(all)
}

fn measure_shares(bench: &Bench, kind: Kind, server: &Server) -> Result<Vec<f64>> {
    bench.say(format!("{kind:?}: shares of three unlike clients"));
    let perfs = UNLIKE.map(|test| Perf::calibrate(server.display(), test)).into_iter().collect::<Result<Vec<_>>>()?;
    let perfs: Vec<&Perf> = perfs.iter().collect();
    let control = server.control()?;
    let one = |_| Ok(Shares::measure(bench, server, &control, &perfs, PolicyKind::Fair)?.jain());
    (0..bench.pairs).map(one).collect()
}
