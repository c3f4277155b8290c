//! The lines of a data file for Xmark, each measured on its own.
//!
//! Xmark wants what `x11perf -v1.3 -rop GXcopy GXxor -all` prints. That is one client which times its round trips,
//! calibrates each test for some seconds and measures it five times for five, nearly four hours for a file. Here each
//! line is a start of its own with set repetitions (`-reps`), and both preparations fall away, as [`crate::load`] tells:
//! so schedulers can take turns at each line. What a line says is still x11perf's own.

use crate::process::Owned;
use anyhow::{Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The tests that Xmark knows, with the labels that it knows them by.
const VERSION: &str = "-v1.3";
/// x11perf's first test: the options before it are no tests.
const FIRST: &str = "dot";
/// A run that the kernel interrupted says nothing about the repetitions, so the shortest of these counts.
const TRIAL_RUNS: u64 = 3;
/// It has printed all that it will by then.
const GRACE: Duration = Duration::from_millis(1500);
/// A run that is this part of what is wanted tells how long the wanted one has to be.
const ENOUGH: f64 = 0.25;
/// Repetitions may cost more when there are more of them: windows that lie on each other do.
const MOST_GROWTH: f64 = 50.0;
/// x11perf takes a number of C's type int.
const MOST_REPS: f64 = i32::MAX as f64;
/// Runs of one start, where x11perf itself limits how long one can be.
const MOST_RUNS: f64 = 10.0;

/// One line of a data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    /// On x11perf's command line, without the dash.
    option: String,
    pub label: String,
}

/// How often x11perf is to do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Runs {
    /// Of one run.
    pub reps: u64,
    /// Runs of one start; x11perf prints totals for two and more.
    pub repeat: u64,
}

/// What x11perf printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Printed(String);

impl Test {
    /// All of [`VERSION`], in x11perf's order.
    pub fn all() -> Result<Vec<Test>> {
        let help = said(Command::new("x11perf").args([VERSION, "-help"]))?.1;
        let mut tests = Vec::new();
        for option in options(&help) {
            let mut command = Command::new("x11perf");
            command.args(["-labels", VERSION, "-rop", "GXcopy", "GXxor"]).arg(format!("-{option}"));
            let labels = said(&mut command)?.0;
            tests.extend(labels.lines().map(|label| Test { option: option.to_owned(), label: label.to_owned() }));
        }
        if tests.is_empty() {
            bail!("x11perf -help names no tests");
        }
        Ok(tests)
    }

    /// The one with this label.
    pub fn find<'a>(all: &'a [Test], label: &str) -> Result<&'a Test> {
        all.iter().find(|test| test.label == label).ok_or_else(|| anyhow!("x11perf has no test \"{label}\""))
    }

    /// Finds out, on an idle server, how often it has to be done for two runs of this length.
    pub fn calibrate(&self, display: &str, run: Duration) -> Result<Runs> {
        let (mut reps, mut before) = (1.0_f64, 0);
        loop {
            let trial = self.run(display, Runs { reps: reps as u64, repeat: TRIAL_RUNS })?;
            let (operations, took_s) = trial.shortest_run()?;
            let part = took_s / run.as_secs_f64();
            if part >= ENOUGH || reps >= MOST_REPS {
                return Ok(Runs { reps: (reps / part).clamp(1.0, MOST_REPS) as u64, repeat: 2 });
            }
            if operations == before {
                // It has not done more than it did: windows must find room on the screen.
                let repeat = (2.0 / part).clamp(2.0, MOST_RUNS) as u64;
                return Ok(Runs { reps: reps as u64, repeat });
            }
            before = operations;
            reps = (reps * (ENOUGH * 1.3 / part).clamp(2.0, MOST_GROWTH)).min(MOST_REPS).ceil();
        }
    }

    pub fn run(&self, display: &str, runs: Runs) -> Result<Printed> {
        let mut command = Command::new("x11perf");
        command.args(["-display", display, VERSION, "-rop"]);
        command.arg(if self.label.starts_with("(xor) ") { "GXxor" } else { "GXcopy" });
        if let Some(kids) = kids(&self.label) {
            command.args(["-subs", kids]);
        }
        command.args(["-reps", &runs.reps.to_string(), "-repeat", &runs.repeat.to_string()]);
        let (output, errors) = said(command.arg(format!("-{}", self.option)))?;
        let printed = Printed(output);
        if printed.lines().next().is_none() {
            let why = errors.lines().next().or_else(|| printed.0.lines().last()).unwrap_or("it said nothing");
            bail!("x11perf -{} measured nothing: {why}", self.option);
        }
        Ok(printed)
    }
}

impl Printed {
    /// Operations each second, over all runs of this start.
    pub fn per_s(&self) -> Result<f64> {
        let totals = self.lines().find(|line| is_of(line, "trep"));
        totals.and_then(rate).ok_or_else(|| anyhow!("x11perf printed no totals:\n{}", self.0))
    }

    /// What stands at the top of a data file.
    pub fn heading(&self) -> String {
        self.0.lines().take_while(|line| !is_measured(line)).fold(String::new(), |text, line| text + line + "\n")
    }

    /// What such a file says about this test: its runs, their totals, and an empty line.
    pub fn section(&self) -> String {
        self.lines().fold(String::new(), |text, line| text + line + "\n") + "\n"
    }

    /// Of one run and its totals.
    #[cfg(test)]
    pub fn made_up(label: &str, per_s: f64) -> Printed {
        let line = |kind: &str| format!("    1000 {kind} @   0.0100 msec ({per_s:8.1}/sec): {label}\n");
        Printed(format!("The X.Org Foundation server version 12101007 on :7\n\n{}{}\n", line("reps"), line("trep")))
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.lines().filter(|line| is_measured(line))
    }

    /// Operations, and seconds; next to none when it was too short for x11perf's clock.
    fn shortest_run(&self) -> Result<(u64, f64)> {
        let runs = || self.lines().filter(|line| is_of(line, "reps"));
        let first = runs().next().and_then(|line| line.split_whitespace().next()?.parse().ok());
        let operations: u64 = first.ok_or_else(|| anyhow!("x11perf printed no run:\n{}", self.0))?;
        let rates: Option<Vec<f64>> = runs().map(rate).collect();
        let fastest = rates.map(|rates| rates.into_iter().fold(f64::MIN_POSITIVE, f64::max));
        Ok((operations, fastest.map_or(1e-6, |per_s| operations as f64 / per_s)))
    }
}

fn is_measured(line: &str) -> bool {
    is_of(line, "reps") || is_of(line, "trep")
}

/// `   90000 trep @   0.0005 msec (2000000.0/sec): 100-pixel ellipse`.
fn is_of(line: &str, kind: &str) -> bool {
    line.split_whitespace().nth(1) == Some(kind)
}

fn rate(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once('(')?;
    rest.split_once("/sec)")?.0.trim().parse().ok()
}

/// `Move window (16 kids)`: a test of windows is told how many.
fn kids(label: &str) -> Option<&str> {
    Some(label.strip_suffix(" kids)")?.rsplit_once('(')?.1)
}

/// Of tests, from x11perf's own list of its options.
fn options(help: &str) -> impl Iterator<Item = &str> {
    let names = help.lines().filter_map(|line| line.trim_start().strip_prefix('-')?.split_whitespace().next());
    names.skip_while(|name| *name != FIRST)
}

/// Its output and its errors, once it has ended.
pub(super) fn said(command: &mut Command) -> Result<(String, String)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Owned::start(command, GRACE)?;
    let (mut output, mut errors) = (String::new(), String::new());
    if let Some(pipe) = &mut process.pipes().stdout {
        pipe.read_to_string(&mut output)?;
    }
    // Less than a pipe holds, so nobody waits for it to be read.
    if let Some(pipe) = &mut process.pipes().stderr {
        pipe.read_to_string(&mut errors)?;
    }
    Ok((output, errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "x11perf - X11 performance program, version 1.3\n\
                           The X.Org Foundation server version 12101007 on :7\nfrom here\nSat Nov 21 16:00:00 2026\n\n\
                           Sync time adjustment is 0.0000 msecs.\n\n\
                           \u{20}      1600 reps @   0.0500 msec ( 20000.0/sec): Move window (4 kids)\n\
                           \u{20}      1600 reps @   0.0300 msec ( 33300.0/sec): Move window (4 kids)\n\
                           \u{20}      3200 trep @   0.0400 msec ( 25000.0/sec): Move window (4 kids)\n\n";

    #[test]
    fn what_x11perf_prints_is_taken_apart_and_put_into_a_file_again() {
        let printed = Printed(PRINTED.to_owned());
        assert_eq!(printed.per_s().unwrap(), 25_000.0);
        assert_eq!(printed.shortest_run().unwrap(), (1600, 1600.0 / 33_300.0));
        assert_eq!(printed.heading() + &printed.section(), PRINTED);
        let fast = "     1 reps @ 0.0 msec (unmeasurably fast): Dot";
        assert_eq!(Printed(fast.to_owned()).shortest_run().unwrap(), (1, 1e-6));
        assert!(Printed(fast.to_owned()).per_s().is_err());
    }

    #[test]
    fn labels_tell_how_x11perf_is_to_be_called() {
        assert_eq!(kids("Move window (16 kids)"), Some("16"));
        assert_eq!(kids("100-pixel line segment (1 kid)"), None);
        let help =
            "where options include:\n    -sync   do it\n    -dot   Dot\n    -rect1   1x1 rectangle\n\nx11perf -help\n";
        assert_eq!(options(help).collect::<Vec<_>>(), ["dot", "rect1"]);
    }
}
