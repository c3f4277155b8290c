// SPDX-License-Identifier: MIT
//! Load: real x11perf clients that draw without a pause, and a reliable count of their work.
//!
//! **How x11perf works.** It first times an empty loop (`sync time`, a second or more of round trips). Then it
//! calibrates: it runs the test with more and more repetitions until one run takes two seconds. Only then does it draw,
//! in `-repeat` runs of about `-time` seconds, with a round trip (GetImage of one pixel) before and after each. `-reps
//! N` skips both preparations: every run is N repetitions from the start. Here N is chosen so that a run takes a tenth
//! of a second on an idle server ([`Perf::calibrate`]). The two round trips then take well below one percent of a run,
//! and the client draws from its start until it is ended.
//!
//! **How work is counted.** The rates that x11perf prints cannot be added, because each copy subtracts its own estimate
//! of the round trip and rounds to three digits. But each copy also prints the number of operations when a run is done.
//! These lines are read as they arrive (`stdbuf -oL`) and stamped with our clock. Operations between two instants are
//! counted; a run that crosses one of the instants counts in proportion. Thus the load itself is counted, x11perf does
//! the counting, and a stock server, which reports nothing, is measured exactly like one with xqos.
//!
//! **Where it draws.** x11perf always puts its window in the same place, so the twelfth copy hides the other eleven.
//! Hidden drawing is clipped, so a hidden request costs only two thirds (ellipses) or a hundredth (rectangles and
//! images) of a visible one. This placement is [`Placement::Stacked`]. Operations then show which client was served,
//! not how much work was done. If work is compared, or if every client must send the longest request, windows are
//! therefore placed [`Placement::SideBySide`]: each client really draws, and a request costs the same for all.
//!
//! A load counts as busy when its windows are in place and every client has completed a run since then.

use crate::poll::poll;
use crate::process::Owned;
use crate::program;
use crate::tiles;
use anyhow::{Context, Result, anyhow, bail};
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Usual duration of a run on an idle server; see above.
pub const RUN: Duration = Duration::from_millis(100);
/// A run of this length consists mostly of work, not of the round trips before and after it.
const ENOUGH: Duration = Duration::from_millis(8);
/// More runs than any experiment needs.
const REPEAT: u64 = 1_000_000;
/// Time for x11perf to end: it handles signals only between requests, and its requests wait for the server.
const GRACE: Duration = Duration::from_millis(1500);

/// An x11perf test and the number of repetitions in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perf {
    /// The name on x11perf's command line, without the dash.
    pub test: String,
    pub reps: u64,
}

impl Perf {
    /// Determines the repetitions of a run, on an idle server.
    pub fn calibrate(display: &str, test: &str) -> Result<Perf> {
        const MOST: u64 = i32::MAX as u64;
        let mut perf = Perf { test: test.to_owned(), reps: 1 };
        loop {
            let runs = perf.run(display, 4)?;
            // Use the shortest interval, because a run that the kernel interrupted says nothing about the repetitions.
            let took = runs.windows(2).map(|pair| pair[1].ended.duration_since(pair[0].ended)).min();
            let took = took.unwrap_or_default();
            let scale = if took >= ENOUGH { RUN.as_secs_f64() / took.as_secs_f64() } else { 12.0 };
            perf.reps = ((perf.reps as f64 * scale) as u64).clamp(1, MOST);
            if took >= ENOUGH || perf.reps == MOST {
                return Ok(perf);
            }
        }
    }

    pub fn run(&self, display: &str, repeat: u64) -> Result<Vec<PerfRun>> {
        let mut client = PerfClient::start(display, self, repeat)?;
        poll(Duration::from_secs(120), Duration::from_millis(2), || Ok((!client.process.is_running()).then_some(())))?
            .with_context(|| format!("x11perf -{} did not end", self.test))?;
        client.end();
        let runs = client.runs();
        if runs.len() as u64 != repeat {
            return Err(client.failure(&self.test));
        }
        Ok(runs)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct PerfRun {
    pub ended: Instant,
    pub operations: u64,
}

/// Placement of the clients' windows; see above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// At x11perf's default place, on top of each other.
    Stacked,
    /// Moved apart, as many as the screen has room for.
    SideBySide,
}

/// Several x11perf clients that draw until this is dropped.
#[derive(Debug)]
pub struct Load {
    test: String,
    clients: Vec<PerfClient>,
}

impl Load {
    /// Starts the clients and returns when all of them are busy.
    pub fn start(display: &str, perf: &Perf, count: usize, placement: Placement) -> Result<Load> {
        let clients = (0..count).map(|_| PerfClient::start(display, perf, REPEAT)).collect::<Result<_>>()?;
        let mut load = Load { test: perf.test.clone(), clients };
        if placement == Placement::SideBySide {
            let (connection, _) = xqos_client::connect(Some(display))?;
            tiles::arrange(&connection, count, Duration::from_secs(30))?;
        }
        let arranged = Instant::now();
        load.wait_until("become busy", |client| client.runs().last().is_some_and(|run| run.ended > arranged))?;
        Ok(load)
    }

    pub fn pids(&self) -> Vec<u32> {
        self.clients.iter().map(|client| client.process.pid()).collect()
    }

    /// Fails if a client has ended. Call this, or [`Load::work`], at the end of a measurement.
    pub fn see_running(&mut self) -> Result<()> {
        let name = format!("x11perf -{}", self.test);
        self.clients.iter_mut().try_for_each(|client| client.process.see_running(&name))
    }

    /// Suspends all clients, whatever they are doing, or lets them continue. The server becomes idle when it has
    /// processed their requests.
    pub fn stop(&mut self, stops: bool) {
        self.clients.iter_mut().for_each(|client| client.process.stop(stops));
    }

    /// Bytes that the clients have written so far: requests and a proportional amount of result lines.
    pub fn written(&self) -> Result<u64> {
        self.clients.iter().map(|client| Ok(xqos_sys::proc::written(client.process.pid() as i32)?)).sum()
    }

    /// Operations of each client between two instants. Waits until the runs in progress at the end are done.
    pub fn work(&mut self, from: Instant, to: Instant) -> Result<Vec<f64>> {
        self.wait_until("end a run", |client| client.runs().last().is_some_and(|run| run.ended >= to))?;
        Ok(self.clients.iter().map(|client| operations_between(&client.runs(), from, to)).collect())
    }

    fn wait_until(&mut self, what: &str, done: impl Fn(&PerfClient) -> bool) -> Result<()> {
        let limit = Instant::now() + Duration::from_secs(60);
        while let Some(waiting) = self.clients.iter().position(|client| !done(client)) {
            let client = &mut self.clients[waiting];
            if !client.process.is_running() {
                return Err(client.failure(&self.test));
            }
            if Instant::now() > limit {
                bail!("x11perf -{} client {} of {} did not {what}", self.test, waiting + 1, self.clients.len());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for client in &mut self.clients {
            client.process.ask_to_end();
        }
        for client in &mut self.clients {
            client.end();
        }
    }
}

#[derive(Debug)]
struct PerfClient {
    process: Owned,
    runs: Arc<Mutex<Vec<PerfRun>>>,
    reader: Option<JoinHandle<()>>,
}

impl PerfClient {
    fn start(display: &str, perf: &Perf, repeat: u64) -> Result<PerfClient> {
        program::require("x11perf")?;
        let mut command = Command::new("stdbuf");
        command.args(["-oL", "x11perf", "-display", display, &format!("-{}", perf.test)]);
        command.args(["-reps", &perf.reps.to_string(), "-repeat", &repeat.to_string()]);
        let (process, output) = Owned::start_with_output(&mut command, GRACE)?;
        let runs = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&runs);
        let reader = std::thread::spawn(move || stamp_lines(output, &written));
        Ok(PerfClient { process, runs, reader: Some(reader) })
    }

    fn runs(&self) -> Vec<PerfRun> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn end(&mut self) {
        self.process.end();
        if let Some(reader) = self.reader.take() {
            // The thread ends when the pipe closes. A panic in it would have been printed.
            let _ = reader.join();
        }
    }

    fn failure(&mut self, test: &str) -> anyhow::Error {
        self.end();
        // x11perf answers an unknown test with the whole list of tests; the first line is enough.
        anyhow!("x11perf -{test} ended early: {}", self.process.complaint())
    }
}

fn stamp_lines(output: ChildStdout, runs: &Mutex<Vec<PerfRun>>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let ended = Instant::now();
        if let Some(operations) = parse_run(&line) {
            runs.lock().unwrap_or_else(PoisonError::into_inner).push(PerfRun { ended, operations });
        }
    }
}

/// `  90000 reps @   0.0005 msec (2000000.0/sec): 100-pixel ellipse`; the line of totals says `trep`.
fn parse_run(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    let operations = words.next()?.parse().ok()?;
    (words.next()? == "reps").then_some(operations)
}

/// Runs follow each other without a gap. A run that crosses `from` or `to` counts in proportion.
fn operations_between(runs: &[PerfRun], from: Instant, to: Instant) -> f64 {
    runs.windows(2)
        .map(|pair| {
            let (began, ended) = (pair[0].ended, pair[1].ended);
            let inside = ended.min(to).saturating_duration_since(began.max(from));
            let whole = ended.duration_since(began);
            if whole.is_zero() { 0.0 } else { pair[1].operations as f64 * inside.as_secs_f64() / whole.as_secs_f64() }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_result_lines_of_runs_are_parsed() {
        let run = "   90000 reps @   0.0005 msec (2000000.0/sec): 100-pixel ellipse";
        assert_eq!(parse_run(run), Some(90_000));
        assert_eq!(parse_run("   400 reps @ 0.0 msec (unmeasurably fast): Dot"), Some(400));
        assert_eq!(parse_run(&run.replace("reps", "trep")), None);
        for other in ["", "x11perf - X11 performance program, version 1.5", "Sync time adjustment is 0.0 msecs."] {
            assert_eq!(parse_run(other), None);
        }
    }

    #[test]
    fn a_run_across_the_border_counts_in_proportion() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let runs: Vec<PerfRun> =
            [(100, 50), (200, 50), (400, 100)].map(|(ms, operations)| PerfRun { ended: at(ms), operations }).to_vec();
        let close = |from, to, expected: f64| {
            let counted = operations_between(&runs, at(from), at(to));
            assert!((counted - expected).abs() < 1e-9, "{from}..{to}: {counted}, not {expected}");
        };
        close(100, 400, 150.0);
        close(150, 300, 75.0);
        close(250, 260, 5.0);
        close(0, 100, 0.0);
    }
}
