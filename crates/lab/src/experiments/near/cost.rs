// SPDX-License-Identifier: MIT
//! The cost of near for a client that never waits: requests and images through near, relative to the relay of `xqos
//! cap`.
//!
//! Near and the relay are measured in turn on one Xvfb, in alternating order. The relay stores only 96 bytes of each
//! packet, so the disk does not dominate.

use crate::bench::Bench;
use crate::folder::Folder;
use crate::load::{Perf, parse_rate};
use crate::order::in_turn;
use crate::program;
use crate::statistics::{Spread, median};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::process::Command;

/// x11perf tests: requests of 4 bytes, and images of 40 kB.
pub(super) const TESTS: [&str; 2] = ["noop", "putimage100"];
const PAIRS: u32 = 6;
/// Number of x11perf runs, each of which takes 0.1 s on an idle server.
const RUNS: u32 = 8;

/// Arguments of xqos-wire, through which the client's requests pass.
const DIRECT: &[&str] = &[];
const RELAY: &[&str] = &["cap", "--quiet", "--snaplen", "96", "-o", "capture.pcapng", "--"];
const NEAR: &[&str] = &["near", "--quiet", "--forget", "--"];

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Cost {
    pub test: String,
    /// Operations per second. Values with the same index were measured one after the other.
    pub direct: Vec<f64>,
    pub relay: Vec<f64>,
    pub near: Vec<f64>,
}

impl Cost {
    pub fn measure_all(bench: &Bench) -> Result<Vec<Cost>> {
        let server = bench.stock(64)?;
        TESTS.into_iter().map(|test| Cost::measure(bench, server.display(), test)).collect()
    }

    fn measure(bench: &Bench, display: &str, test: &str) -> Result<Cost> {
        bench.say(format!("x11perf -{test} through near and through the relay"));
        let perf = Perf::calibrate(display, test)?;
        let mut cost = Cost { test: test.to_owned(), ..Cost::default() };
        for pair in 0..if bench.quick { 1 } else { PAIRS } {
            let all = [(DIRECT, &mut cost.direct), (RELAY, &mut cost.relay), (NEAR, &mut cost.near)];
            for (through, rates) in in_turn(all, pair) {
                rates.push(rate(display, &perf, through)?);
            }
        }
        Ok(cost)
    }

    /// Ratios of near to the relay.
    pub fn ratios(&self) -> Spread {
        Spread::of(self.near.iter().zip(&self.relay).map(|(near, relay)| near / relay))
    }
}

fn rate(display: &str, perf: &Perf, through: &[&str]) -> Result<f64> {
    let folder = Folder::create()?;
    let mut command = Command::new(if through.is_empty() { "x11perf".into() } else { program::own("xqos-wire")? });
    command.args(through).args((!through.is_empty()).then_some("x11perf")).arg(format!("-{}", perf.test));
    command.args(["-reps", &perf.reps.to_string(), "-repeat", &RUNS.to_string()]);
    let output = command.env("DISPLAY", display).current_dir(folder.path("")).output()?;
    let rates: Vec<f64> = String::from_utf8_lossy(&output.stdout).lines().filter_map(parse_rate).collect();
    if !output.status.success() || rates.len() != RUNS as usize {
        bail!("x11perf -{}: {}", perf.test, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(median(rates))
}
