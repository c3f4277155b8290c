// SPDX-License-Identifier: MIT
//! What near costs a client that never waits: requests and images through it, over those through the relay of `xqos cap`.
//!
//! Both are measured one right after the other on one Xvfb, in turn first this and then that. The relay keeps 96 bytes of
//! each packet, so that what is compared is not the disk.

use crate::bench::Bench;
use crate::folder::Folder;
use crate::load::{Perf, parse_rate};
use crate::order::in_turn;
use crate::program;
use crate::server::Server;
use crate::statistics::{Spread, median};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::process::Command;

/// Of x11perf: requests of 4 bytes, and images of 40 kB.
pub(super) const TESTS: [&str; 2] = ["noop", "putimage100"];
const PAIRS: u32 = 6;
/// Runs of a tenth of a second on an idle server.
const RUNS: u32 = 8;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Cost {
    pub test: String,
    /// Operations in a second; the i-th of each are a pair.
    pub near: Vec<f64>,
    pub relay: Vec<f64>,
    pub direct: Vec<f64>,
}

/// What the client's requests go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Through {
    Nothing,
    Relay,
    Near,
}

impl Cost {
    pub fn measure_all(bench: &Bench) -> Result<Vec<Cost>> {
        let server = bench.stock(64)?;
        let pairs = if bench.quick { 1 } else { PAIRS };
        let measure = |test| {
            bench.say(format!("x11perf -{test} through near and through the relay"));
            Cost::measure(&server, test, pairs)
        };
        TESTS.into_iter().map(measure).collect()
    }

    fn measure(server: &Server, test: &str, pairs: u32) -> Result<Cost> {
        let perf = Perf::calibrate(server.display(), test)?;
        let mut cost = Cost { test: test.to_owned(), ..Cost::default() };
        for pair in 0..pairs {
            for through in in_turn([Through::Nothing, Through::Relay, Through::Near], pair) {
                let rate = rate(server, &perf, through)?;
                match through {
                    Through::Nothing => cost.direct.push(rate),
                    Through::Relay => cost.relay.push(rate),
                    Through::Near => cost.near.push(rate),
                }
            }
        }
        Ok(cost)
    }

    /// Near over the relay.
    pub fn ratios(&self) -> Spread {
        Spread::of(self.near.iter().zip(&self.relay).map(|(near, relay)| near / relay))
    }
}

fn rate(server: &Server, perf: &Perf, through: Through) -> Result<f64> {
    let folder = Folder::create()?;
    let capture = folder.path("capture.pcapng").display().to_string();
    let own = |arguments: &[&str]| -> Result<Command> {
        let mut command = Command::new(program::own("xqos-wire")?);
        command.args(arguments).arg("x11perf");
        Ok(command)
    };
    let mut command = match through {
        Through::Nothing => Command::new("x11perf"),
        Through::Relay => own(&["cap", "--quiet", "--snaplen", "96", "-o", &capture, "--"])?,
        Through::Near => own(&["near", "--quiet", "--forget", "--"])?,
    };
    command.arg(format!("-{}", perf.test));
    command.args(["-reps", &perf.reps.to_string(), "-repeat", &RUNS.to_string()]).env("DISPLAY", server.display());
    let output = command.output()?;
    let rates: Vec<f64> = String::from_utf8_lossy(&output.stdout).lines().filter_map(parse_rate).collect();
    if !output.status.success() || rates.len() != RUNS as usize {
        bail!("x11perf -{}: {}", perf.test, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(median(rates))
}
