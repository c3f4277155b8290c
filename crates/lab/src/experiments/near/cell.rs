// SPDX-License-Identifier: MIT
//! One cell: a program from its command until it is quiet, seen where its X server is.
//!
//! Between a program and `xqos near` there is no network, so all ways are captured where they come together: at the
//! server's door. What a person sees ends there too.

use super::case::Case;
use super::learnt::Learnt;
use super::start;
use super::steady::Steady;
use crate::actor::{CAPTURE_FILE, Captured};
use crate::experiments::far::{Part, Site};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::time::Duration;
use xqos_wire::analysis::Analysis;
use xqos_wire::link::Side;
use xqos_wire::session::{self, Session};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub case: Case,
    /// Or why there is none.
    pub outcome: Result<Start, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Start {
    /// Otherwise the limit was reached, and the seconds are what there was until then.
    pub is_quiet: bool,
    /// From the command at the program's end until the last packet of X at the server's.
    pub elapsed_s: f64,
    /// The same from when the program's first connection came to the server, without what it loads before.
    pub connected_s: f64,
    /// By near's own report.
    pub waits: Option<Waits>,
    pub steady: Option<Steady>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Waits {
    pub left: u64,
    pub saved: u64,
}

impl Part for Cell {
    type Case = Case;

    fn case(&self) -> Case {
        self.case
    }

    fn left_out(case: Case, missing: String) -> Cell {
        Cell { case, outcome: Err(missing) }
    }
}

impl Cell {
    /// A failure is a finding of this cell; only what no cell could do without is an error.
    pub fn measure(case: Case, place: usize, limit: Duration, learnt: &Learnt) -> Result<Cell> {
        let site = Site::open(case.line(), place)?;
        let outcome = measured(site, case, limit, learnt).map_err(|error| format!("{error:#}"));
        Ok(Cell { case, outcome })
    }
}

fn measured(site: Site, case: Case, limit: Duration, learnt: &Learnt) -> Result<Start> {
    if case.way.is_near() {
        learnt.lay_down(&site, case.program)?;
    }
    start::scripts(&site)?;
    // There X comes from a process beside the server.
    let on_loopback = case.way.has_far_proxy() || case.is_local();
    let actor = site.capture(Side::Server, on_loopback, case.line().silence(), limit)?;
    let mut running = start::start(&site, case)?;
    let captured = site.wait_until_quiet(actor, &mut running[0], limit)?;
    let steady = if captured.is_quiet && case.has_steady() { Some(Steady::measure(&site, case)?) } else { None };
    let waits = case.way.is_near().then(|| {
        start::let_end(&mut running[0]);
        told(&fs::read_to_string(site.path("program.errors")).unwrap_or_default())
    });
    let began_ns = start::began_ns(&site)?;
    // The link ends them all at once, which is gentler than one after the other.
    let folder = site.close()?;
    drop(running);
    let start = conclude(&folder.path(CAPTURE_FILE), case, captured, began_ns, limit)?;
    Ok(Start { waits: waits.flatten(), steady, ..start })
}

fn conclude(capture: &Path, case: Case, captured: Captured, began_ns: u64, limit: Duration) -> Result<Start> {
    let mut analysis = Analysis::default();
    session::read(capture, Session::new(vec![&mut analysis]))?;
    let mut opened_ns: Vec<u64> = analysis.connections.values().map(|connection| connection.opened.at_ns).collect();
    opened_ns.sort_unstable();
    // The first one is the proxy's own.
    let first = usize::from(case.way.is_near());
    let connected_ns = *opened_ns.get(first).context("nothing of the program was captured")?;
    let ended_ns = captured.ended_ns(&analysis, opened_ns[0], limit);
    let since_s = |from_ns: u64| ended_ns.saturating_sub(from_ns) as f64 / 1e9;
    let (elapsed_s, connected_s) = (since_s(began_ns), since_s(connected_ns));
    Ok(Start { is_quiet: captured.is_quiet, elapsed_s, connected_s, ..Start::default() })
}

/// The two numbers in `18 waits left, 240 saved`.
fn told(report: &str) -> Option<Waits> {
    let before = |words: &str| -> Option<u64> {
        let number = report.split(words).next().filter(|before| before.len() < report.len())?;
        number.rsplit(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    };
    Some(Waits { left: before(" waits left,")?, saved: before(" saved")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_near_is_read_and_nothing_else_is() {
        let report =
            "(emacs) a warning\nxqos: 1 connection, 261 questions, 241 answered here; 18 waits left, 240 saved, 48.1 s";
        assert_eq!(told(report), Some(Waits { left: 18, saved: 240 }));
        assert_eq!((told(""), told("xqos: near: no display")), (None, None));
    }
}
