// SPDX-License-Identifier: MIT
//! Runs the measuring client of a case.

use super::around_load::{self, CAPACITY};
use super::bursts::BurstRecorder;
use super::case::Case;
use super::data::{Figures, named};
use super::drag::drag;
use super::loads::Calibrated;
use super::measure::Measure;
use super::simulation;
use super::started::OnScreen;
use crate::disturbance::OsNoise;
use crate::light::{Light, Measured, Series};
use crate::line;
use crate::periodic::{ENGINE, animate};
use crate::poll::poll;
use crate::process::Owned;
use crate::program::{self as programs, Missing};
use crate::server::Server;
use crate::system_calls::cost_us;
use crate::waiting;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::sync::ConnectionExt as _;
use xqos_sys::monotonic_ns;

/// Samples and values, with the measured time.
#[derive(Debug)]
pub(super) struct Measurement {
    pub samples: BTreeMap<String, Vec<f64>>,
    pub values: BTreeMap<String, f64>,
    pub from: Instant,
    pub to: Instant,
}

/// Status of a script that lacks a program, whose name is then on its standard error.
const NOT_FOUND: i32 = 127;
/// Time limit for a run of the user's own program, unless the case's `time` is longer.
const LONGEST_RUN: Duration = Duration::from_secs(900);
/// A script that several experiments share. A command can begin with its name.
const SCRIPT: (&str, &str) = ("start-over-link", include_str!("../../../../../lab/start-over-link.sh"));

pub(super) fn measure(
    case: &Case,
    (server, screen): (&Server, Option<&mut OnScreen>),
    calibrated: &mut Calibrated,
    quick: bool,
) -> Result<Measurement> {
    let from = Instant::now();
    let (samples, values) = match case.measure {
        Measure::Light => return light(case, server, quick),
        Measure::Film => around_load::film(case, server, calibrated, quick)?,
        Measure::Wheel | Measure::Stream => around_load::wheel(case, server, calibrated, quick)?,
        Measure::Drag => drag(case, server, quick)?,
        Measure::Line => {
            let echoes = line::measure(server, case.reserve, case.count(quick, 300) as u32)?;
            let unanswered = echoes.moved as f64 - echoes.echo_ms.len() as f64;
            let by_server = ("echo_by_server", echoes.echo_server_ms);
            let samples = [("receipt", echoes.receipt_ms), ("echo", echoes.echo_ms), by_server];
            (named(samples), named([("unanswered", unanswered)]))
        }
        Measure::Frames => {
            let frames = animate(server, ENGINE, case.reserve, case.count(quick, 400))?;
            let interval = ("interval", frames.interval_by_server_ms());
            let samples = [("drawing", frames.latency_ms()), interval, ("spacing", frames.interval_ms())];
            (named(samples), BTreeMap::new())
        }
        Measure::Sync => {
            let every = case.period.unwrap_or(Light::default().period);
            let (released, recognized) = waiting::measure(server, every, case.count(quick, 100))?;
            (named([("released", released), ("recognized", recognized)]), BTreeMap::new())
        }
        Measure::Call => (BTreeMap::new(), named([("cost", cost_us(&case.command[0])?)])),
        Measure::Pauses => {
            let OsNoise { part, longest_ms, mean_wait_ms } = OsNoise::measure(case.time(quick));
            let values = [("pause_part", part), ("pause_longest", longest_ms), ("pause_wait", mean_wait_ms)];
            (BTreeMap::new(), named(values))
        }
        Measure::OnScreen => screen.context("the screen is not observed")?.look(server, case.time(quick))?,
        Measure::Simulation => simulation::measure(case, server, quick)?,
        Measure::Nothing => {
            std::thread::sleep(case.whole_periods(quick));
            Figures::default()
        }
        Measure::Command => {
            let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for _ in 0..case.count(quick, 20) {
                let (took, printed) = run(&case.command, server, LONGEST_RUN.max(case.time(quick)))?;
                let took = ("run".to_owned(), took.as_secs_f64() * 1e3);
                printed.into_iter().chain([took]).for_each(|(name, one)| samples.entry(name).or_default().push(one));
            }
            (samples, BTreeMap::new())
        }
    };
    Ok(Measurement { samples, values, from, to: Instant::now() })
}

fn light(case: &Case, server: &Server, quick: bool) -> Result<Measurement> {
    let usual = Light::default();
    let period = case.period.unwrap_or(usual.period);
    let light = Light { reservation: case.reserve, warm_up: case.warm_up, period, ..usual };
    let connection = server.connect()?;
    if let Some(priority) = case.setting.priority {
        connection.sync_initialize(3, 1)?.reply()?;
        connection.sync_set_priority(x11rb::NONE, priority)?.check()?;
    }
    let base = connection.setup().resource_id_base;
    let start = |level| {
        let control = server.control()?;
        control.start_trace(level, CAPACITY).map(|trace| (control, trace)).map_err(anyhow::Error::from)
    };
    let trace = case.trace.map(start).transpose()?;
    let Measured { series, from, to } = light.measure_with(connection, server, case.time(quick))?;
    let (mut samples, mut values) = of_light(&series);
    if let Some((control, mut trace)) = trace {
        let from_ns = monotonic_ns().saturating_sub(from.elapsed().as_nanos() as u64);
        let sent_ns = series.at_us.iter().map(|at_us| from_ns + at_us * 1000);
        let mut recorder = BurstRecorder::of_turns(base, sent_ns.collect());
        recorder.read(&mut trace);
        control.stop_trace()?;
        let (bursts, of_bursts) = recorder.figures();
        let served_ms: f64 = bursts.get("burst_served").map_or(0.0, |served| served.iter().sum());
        values.insert("own_share".to_owned(), served_ms / 1e3 / (to - from).as_secs_f64());
        values.extend(of_bursts.into_iter().filter(|(name, _)| name == "lost"));
        samples.extend(bursts.into_iter().filter(|(name, _)| name.starts_with("burst_")));
    }
    Ok(Measurement { samples, values, from, to })
}

fn of_light(series: &Series) -> Figures {
    let ms = |ns: u64| ns as f64 / 1e6;
    let delays = series.server_delay_ns.iter().zip(&series.own_delay_ns).map(|(server, own)| server + own);
    let both = || series.response_ns.iter().copied().zip(delays.clone());
    let samples = named([
        ("at", series.at_us.iter().map(|&us| us as f64 / 1e6).collect()),
        ("response", series.response_ns.iter().map(|&ns| ms(ns)).collect()),
        ("kernel", both().map(|(all, delay)| ms(delay.min(all))).collect()),
        ("without_kernel", both().map(|(all, delay)| ms(all.saturating_sub(delay))).collect()),
    ]);
    (samples, named([("missed", series.missed_part())]))
}

/// One run of the user's own program: its duration, and its lines `NAME NUMBER`.
fn run(words: &[String], server: &Server, limit: Duration) -> Result<(Duration, Vec<(String, f64)>)> {
    let (program, arguments) = words.split_first().context("the command is empty")?;
    let mut command = Command::new(if program == SCRIPT.0 { "sh" } else { program });
    if program == SCRIPT.0 {
        command.args(["-c", SCRIPT.1, SCRIPT.0]);
    }
    command.args(arguments).env("DISPLAY", server.display()).env("PATH", programs::path());
    let began = Instant::now();
    let (mut process, mut output) = Owned::start_with_output(&mut command, Duration::from_secs(1))?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        // Ignore errors: output that is not text has no numbers to read.
        let _ = output.read_to_string(&mut text);
        (text, Instant::now())
    });
    poll(limit, Duration::from_millis(1), || Ok((!process.is_running()).then_some(())))?
        .with_context(|| format!("{program} did not end within {} s: each run must end by itself", limit.as_secs()))?;
    let status = process.pipes().wait()?;
    if status.code() == Some(NOT_FOUND) {
        return Err(Missing::new(process.complaint()).into());
    }
    if !status.success() {
        bail!("{program} ended with {status}: {}", process.complaint());
    }
    let (text, ended) = reader.join().unwrap_or_else(|_| (String::new(), Instant::now()));
    let number = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    Ok((ended - began, text.lines().filter_map(number).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_part_is_taken_from_each_sample() {
        let series = Series {
            at_us: vec![0, 10_000],
            response_ns: vec![3_000_000, 5_000_000],
            server_delay_ns: vec![1_000_000, 0],
            own_delay_ns: vec![500_000, 6_000_000],
            missed_turns: 0,
        };
        let (samples, _) = of_light(&series);
        let of = |name: &str| samples.iter().find(|(one, _)| *one == name).unwrap().1.clone();
        assert_eq!((of("response"), of("kernel")), (vec![3.0, 5.0], vec![1.5, 5.0]));
        assert_eq!(of("without_kernel"), [1.5, 0.0]);
    }
}
