// SPDX-License-Identifier: MIT
//! Scenarios that no available machine can run. Their costs come from their files, and nothing is measured.

use crate::scheduler::Scheduler;
use crate::statistics::Summary;
use crate::study::{Table, figure, percent};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use xqos_sim::outcome::{GroupResult, Outcome};
use xqos_sim::scenario::Costs;

const NAMES: [&str; 2] = ["ten-thousand-clients", "sixty-four-players"];

/// One kind of client in a scenario.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Crowd {
    scenario: String,
    scheduler: Scheduler,
    clients: String,
    count: usize,
    /// `None` for clients that are always busy and wait for nothing.
    response_ms: Option<Summary>,
    /// Requests that were not finished at the end.
    waiting: u64,
    /// Clients that were never served.
    starved: usize,
    share: f64,
    /// Number of reservations that clients requested.
    asked: u32,
    admitted: u32,
    took_s: f64,
}

pub(super) fn simulate() -> Result<Vec<Crowd>> {
    let mut all = Vec::new();
    for name in NAMES {
        for scheduler in Scheduler::ALL {
            let began = Instant::now();
            let outcome = super::simulate(name, scheduler, &Costs::new())?;
            let took_s = began.elapsed().as_secs_f64();
            all.extend(outcome.groups.iter().map(|of| Crowd::of(name, scheduler, &outcome, of, took_s)));
        }
    }
    Ok(all)
}

impl Crowd {
    fn of(scenario: &str, scheduler: Scheduler, outcome: &Outcome, of: &GroupResult, took_s: f64) -> Crowd {
        let response = of.response_ns.iter().map(|&ns| ns as f64 / 1e6);
        Crowd {
            scenario: scenario.to_owned(),
            scheduler,
            clients: of.name.clone(),
            count: of.served_ns.len(),
            response_ms: of.is_measured.then(|| Summary::of(response)),
            waiting: of.waiting,
            starved: of.served_ns.iter().filter(|&&ns| ns == 0).count(),
            share: of.share(outcome),
            asked: of.asked,
            admitted: of.admitted,
            took_s,
        }
    }

    fn row(&self) -> Vec<String> {
        let times = match &self.response_ms {
            Some(response) => [response.mean, response.p99, response.worst].map(figure),
            None => [(); 3].map(|()| "-".to_owned()),
        };
        let admission = match self.asked {
            0 => "-".to_owned(),
            asked => format!("{} of {asked}", self.admitted),
        };
        let mut row = vec![self.scenario.clone(), self.scheduler.name().to_owned()];
        row.push(format!("{} ({})", self.clients, self.count));
        row.extend(times);
        row.extend([self.waiting.to_string(), self.starved.to_string(), percent(self.share), admission]);
        row.push(figure(self.took_s));
        row
    }
}

pub(super) fn table(all: &[Crowd]) -> Table {
    let head = [
        "scenario",
        "scheduler",
        "clients",
        "response: mean",
        "p99",
        "worst",
        "unfinished at the end",
        "never served",
        "share",
        "admitted",
        "took s",
    ];
    let title = "Crowds too large to measure, simulated only; milliseconds";
    Table { rows: all.iter().map(Crowd::row).collect(), ..Table::new(title, &head) }
}
