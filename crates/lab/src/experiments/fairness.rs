// SPDX-License-Identifier: MIT
//! Fairness between clients whose requests differ in cost ten thousand times.
//!
//! Three x11perf that never pause: a cheap one, ellipses (300 in a request, a tenth of a millisecond), and wide ellipses
//! of 500 pixels (a millisecond and more). Requests of equal number would give the last one nearly all of the server;
//! fair means equal server time. Measured twice, since the cheapest requests have a trap: NoOp costs the server less
//! than x11perf needs to write one, so that client may not be able to use its third; what each can use is measured with
//! it alone on the server. Changes of a graphics context (a tenth of a microsecond and more) have no such limit. The same
//! server is measured with the policies `stock`, which only observes, and `fair`.

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::load::{Load, Perf, Placement};
use crate::server::Server;
use crate::statistics::{Spread, jain_index, median};
use crate::study::{Goal, Study, Table, Verdict, figure, percent};
use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use xqos_abi::PolicyChange;
use xqos_client::Control;
use xqos_core::PolicyKind;

/// The cheap client; the other two are the same.
const CHEAP: [&str; 2] = ["gc", "noop"];
const OTHERS: [&str; 2] = ["ellipse100", "wellipse500"];
const POLICIES: [PolicyKind; 2] = [PolicyKind::Stock, PolicyKind::Fair];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Fairness {
    trials: Vec<Shares>,
    /// Each client alone.
    alone: Vec<Shares>,
}

/// In one trial; the first client is the cheap one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Shares {
    policy: String,
    elapsed_ns: u64,
    clients: Vec<Share>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Share {
    test: String,
    server_time_ns: u64,
    requests: u64,
}

impl Measure for Fairness {
    const NAME: &'static str = "fairness";
    const ABOUT: &'static str = "server time of cheap, middling and costly clients that never pause";
    const TAKES: Takes = Takes { quick_s: 20, full_s: 240 };

    fn run(bench: &Bench) -> Result<Self> {
        let server = bench.xqos(bench.module(), 256)?;
        let control = server.control()?;
        let perf = |test: &&str| Perf::calibrate(server.display(), test);
        let cheap = CHEAP.iter().map(perf).collect::<Result<Vec<Perf>>>()?;
        let others = OTHERS.iter().map(perf).collect::<Result<Vec<Perf>>>()?;
        let (mut trials, mut alone) = (Vec::new(), Vec::new());
        for pair in 0..bench.pairs {
            bench.say(format!("pair {} of {}", pair + 1, bench.pairs));
            for perf in cheap.iter().chain(&others) {
                alone.push(Shares::measure(bench, &server, &control, &[perf], PolicyKind::Fair)?);
            }
            for cheap in &cheap {
                let perfs: Vec<&Perf> = std::iter::once(cheap).chain(&others).collect();
                for policy in POLICIES {
                    trials.push(Shares::measure(bench, &server, &control, &perfs, policy)?);
                }
            }
        }
        Ok(Fairness { trials, alone })
    }

    fn study(&self) -> Study {
        let mut tables = Vec::new();
        let mut verdicts = Vec::new();
        for cheap in CHEAP {
            tables.push(self.table(cheap));
            for policy in POLICIES.map(PolicyKind::name) {
                let jain = Spread::of(self.trials(cheap, policy).iter().map(|trial| trial.jain()));
                let goal = if policy == "fair" { Goal::of(Key("fairness.jain")) } else { Goal::Reported };
                let what = format!("{policy}: Jain index of server time, {cheap} as the cheap one");
                verdicts.push(Verdict::of_spread(what, jain, "", goal));
            }
        }
        Study {
            title: "Fairness".to_owned(),
            question: "Three clients that never pause, with cheap, middling and costly requests: how is the server's \
                       time divided?"
                .to_owned(),
            answer: String::new(),
            verdicts,
            tables,
            charts: Vec::new(),
            notes: vec![
                "How it was measured. One Xvfb with xqos, three x11perf, server time of each client as xqos counts it \
                 (ListClients before and after). Jain's index is 1 when all get the same and 1/3 when one gets all. \
                 Server time used alone is what the client can use at all: who cannot use a third of it alone, with a \
                 processor for itself, cannot use a third beside others either."
                    .to_owned(),
            ],
        }
    }
}

impl Fairness {
    fn trials(&self, cheap: &str, policy: &str) -> Vec<&Shares> {
        let is_one =
            |trial: &&Shares| trial.policy == policy && trial.clients.first().is_some_and(|share| share.test == cheap);
        self.trials.iter().filter(is_one).collect()
    }

    fn table(&self, cheap: &str) -> Table {
        let head = ["policy", "client", "share of server time", "request us", "requests /s", "server time used alone"];
        let mut table = Table::new(format!("Medians, {cheap} as the cheap one"), &head);
        for policy in POLICIES.map(PolicyKind::name) {
            let trials = self.trials(cheap, policy);
            for (index, test) in std::iter::once(cheap).chain(OTHERS).enumerate() {
                let over = |figure: &dyn Fn(&Shares, &Share) -> f64| {
                    median(trials.iter().filter_map(|trial| Some(figure(trial, trial.clients.get(index)?))))
                };
                table.rows.push(vec![
                    policy.to_owned(),
                    test.to_owned(),
                    percent(over(&|trial, share| share.server_time_ns as f64 / trial.total_ns())),
                    figure(over(&|_, share| share.server_time_ns as f64 / share.requests.max(1) as f64 / 1e3)),
                    figure(over(&|trial, share| share.requests as f64 / trial.elapsed_ns as f64 * 1e9)),
                    percent(self.used_alone(test)),
                ]);
            }
        }
        table
    }

    fn used_alone(&self, test: &str) -> f64 {
        let of_test = self.alone.iter().filter(|trial| trial.clients.iter().all(|share| share.test == test));
        median(of_test.map(|trial| trial.total_ns() / trial.elapsed_ns as f64))
    }
}

impl Shares {
    pub(super) fn measure(
        bench: &Bench,
        server: &Server,
        control: &Control,
        perfs: &[&Perf],
        policy: PolicyKind,
    ) -> Result<Shares> {
        control.set_policy(PolicyChange { policy: Some(policy), ..PolicyChange::default() })?;
        let start = |perf: &&Perf| Load::start(server.display(), perf, 1, Placement::SideBySide);
        let mut loads: Vec<Load> = perfs.iter().map(start).collect::<Result<_>>()?;
        let before = control.clients()?;
        std::thread::sleep(bench.time(4000, 1000));
        let after = control.clients()?;
        loads.iter_mut().try_for_each(Load::see_running)?;
        let share = |(load, perf): (&Load, &&Perf)| {
            let find = |list: &xqos_abi::ClientList| {
                let found = list.clients.iter().find(|client| load.pids().contains(&(client.pid as u32)));
                found.map(|client| (client.server_time_ns, client.requests))
            };
            let missing = || anyhow!("the server does not list the client of {}", perf.test);
            let (before, after) = find(&before).zip(find(&after)).ok_or_else(missing)?;
            let (server_time_ns, requests) = (after.0 - before.0, after.1 - before.1);
            Ok(Share { test: perf.test.clone(), server_time_ns, requests })
        };
        let clients = loads.iter().zip(perfs).map(share).collect::<Result<_>>()?;
        Ok(Shares { policy: policy.name().to_owned(), elapsed_ns: after.now_ns - before.now_ns, clients })
    }

    fn total_ns(&self) -> f64 {
        self.clients.iter().map(|share| share.server_time_ns as f64).sum::<f64>().max(1.0)
    }

    pub(super) fn jain(&self) -> f64 {
        jain_index(&self.clients.iter().map(|share| share.server_time_ns as f64).collect::<Vec<_>>())
    }
}
