// SPDX-License-Identifier: MIT
//! Clients that measure before, during and after a load: a film played by mpv, and ocbench's wheel.
//!
//! Each trial includes time without the load, so the compared samples are measured within seconds of each other. The
//! suffix of a sample names its part of the trial ([`PARTS`]).

use super::bursts::BurstRecorder;
use super::case::Case;
use super::data::{Figures, named};
use super::loads::{Calibrated, Running};
use super::measure::{Measure, PARTS};
use crate::mpv::{Drawn, Playing};
use crate::periodic::{Periodic, STREAM, Stretch};
use crate::process::Owned;
use crate::processor::boost;
use crate::program;
use crate::server::Server;
use anyhow::{Result, anyhow};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use xqos_abi::{ClientEntry, Setting, Subject};
use xqos_client::Control;
use xqos_sys::monotonic_ns;
use xqos_sys::proc::RunTimes;

/// The first frames do not count, because mpv creates and shows its window during them.
const FIRST: usize = 10;
/// Enough records for several seconds, because the trace is not read in between.
pub(super) const CAPACITY: u32 = 1 << 19;
/// How often the reserved share is read while the load runs and the film's reservation is being found.
const LOOKS: u32 = 8;

/// Start and end of the load, on the clock of traces.
struct Stay {
    /// Times at which its clients were started, were all busy, were asked to end, and were all gone.
    began_ns: u64,
    busy_ns: u64,
    ended_ns: u64,
    gone_ns: u64,
    /// Fraction of the load's time in which the server was runnable but had no processor.
    delayed: f64,
}

impl Stay {
    /// Starts the load unless it is already running, and ends it when `until` returns.
    fn begin(
        case: &Case,
        server: &Server,
        calibrated: &mut Calibrated,
        until: impl FnOnce() -> Result<()>,
    ) -> Result<Stay> {
        let schedstat = server.schedstat();
        let delayed_ns = || schedstat.as_ref().map_or(0, RunTimes::delayed_ns);
        let (began_ns, delayed_before_ns) = (monotonic_ns(), delayed_ns());
        let mut loads = Vec::new();
        for load in case.loads.iter().filter(|_| case.setting.before.is_some()) {
            let running = calibrated.start(load, server)?;
            running.set(load, &server.control()?)?;
            loads.push(running);
        }
        let busy_ns = monotonic_ns() + case.warm_up.as_nanos() as u64;
        until()?;
        let (ended_ns, delayed_ns) = (monotonic_ns(), delayed_ns() - delayed_before_ns);
        loads.iter_mut().try_for_each(Running::see_running)?;
        drop(loads);
        let delayed = delayed_ns as f64 / (ended_ns - began_ns) as f64;
        Ok(Stay { began_ns, busy_ns, ended_ns, gone_ns: monotonic_ns(), delayed })
    }

    /// Splits samples into the parts of the trial. Each sample has a beginning, an end and a value.
    fn cut(&self, name: &str, all: impl Iterator<Item = (u64, u64, f64)>) -> Vec<(String, Vec<f64>)> {
        let mut parts = PARTS.map(|part| (format!("{name}_{part}"), Vec::new()));
        for (from, to, value) in all {
            let (is_before, is_within) = (to <= self.began_ns, to <= self.ended_ns);
            let is_of = [
                is_before,
                is_before || from >= self.gone_ns,
                is_within && from >= self.began_ns,
                is_within && from >= self.busy_ns,
            ];
            parts.iter_mut().zip(is_of).filter(|(_, is_of)| *is_of).for_each(|((_, part), _)| part.push(value));
        }
        parts.into()
    }
}

/// Plays a film with mpv and measures the intervals at which the server draws its frames.
pub(super) fn film(case: &Case, server: &Server, calibrated: &mut Calibrated, quick: bool) -> Result<Figures> {
    let control = server.control()?;
    let _boost = case.processor.map(|_| boost(server.display(), Duration::ZERO)).transpose()?;
    let mut playing =
        Playing::start(launcher(case)?, &control, server.display(), case.setting.framedrop == Some(true))?;
    if let (Some(wanted), None) = (case.reserve, case.processor) {
        playing.reserve(&control, wanted)?;
    }
    playing.reach(case.before(quick).unwrap_or(FIRST))?;
    let mut reserved = 0.0_f64;
    let stay = Stay::begin(case, server, calibrated, || {
        // On a busy machine, each reading delays a frame. Read repeatedly only if the reservation is still being found.
        let readings = if case.finds_reservation { LOOKS } else { 1 };
        for _ in 0..readings {
            playing.play(case.time(quick) / readings)?;
            reserved = reserved.max(share_reserved(&control, |client| client.name == "mpv")?);
        }
        Ok(())
    })?;
    playing.reach(playing.frames() + case.after(quick))?;
    let (frames, dropped, lost) = playing.end()?;
    control.stop_trace()?;
    let ms = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) as f64 / 1e6;
    let apart = |time: fn(&Drawn) -> u64| {
        frames.windows(2).map(move |pair| (pair[1].drawn_ns, pair[1].drawn_ns, ms(time(&pair[0]), time(&pair[1]))))
    };
    let each = |value: fn(&Drawn) -> u64| {
        frames.iter().map(move |frame| (frame.drawn_ns, frame.drawn_ns, value(frame) as f64 / 1e6))
    };
    let mut samples = named([
        ("frame", (1..frames.len()).map(|frame| frame as f64).collect()),
        ("interval", apart(|frame| frame.drawn_ns).map(|(.., ms)| ms).collect()),
    ]);
    samples.extend(stay.cut("interval", apart(|frame| frame.drawn_ns).skip(FIRST - 1)));
    samples.extend(stay.cut("asking", apart(|frame| frame.asked_ns).skip(FIRST - 1)));
    samples.extend(stay.cut("drawing", each(|frame| frame.drawn_ns - frame.asked_ns).skip(FIRST)));
    samples.extend(stay.cut("behind", each(|frame| frame.behind_ns).skip(FIRST)));
    let (dropped, lost) = (dropped as f64, lost as f64);
    let values = [("dropped", dropped), ("lost", lost), ("delayed_beside", stay.delayed), ("reserved", reserved)];
    Ok((samples, named(values)))
}

/// Runs ocbench in the calling thread. With a trace, this also measures its bursts.
pub(super) fn wheel(case: &Case, server: &Server, calibrated: &mut Calibrated, quick: bool) -> Result<Figures> {
    let control = server.control()?;
    case.reserve.map_or(Ok(()), |wanted| control.set(Subject::Client(0), Setting::Reservation(wanted)))?;
    let is_stream = case.measure == Measure::Stream;
    let habit = if is_stream { STREAM } else { calibrated.wheel(server)? };
    let ocbench = Periodic::new(control.connection()?, habit)?;
    if let Some(level) = case.trace {
        ocbench.run(None, FIRST, |_| {})?;
        let mut trace = control.start_trace(level, CAPACITY)?;
        ocbench.run(None, case.count(quick, 40), |_| {})?;
        let mut recorder = BurstRecorder::new(ocbench.base());
        recorder.read(&mut trace);
        control.stop_trace()?;
        return Ok(recorder.figures());
    }
    let (base, load_from) = (ocbench.base(), case.before(quick).unwrap_or(FIRST));
    let load_until = load_from + case.count(quick, 450);
    // Starting and ending the load's processes takes time, which must not delay ocbench.
    let (frames, (stay, reserved)) = std::thread::scope(|scope| {
        let (signal, signals) = channel();
        let loading = scope.spawn(move || beside_wheel(case, server, calibrated, base, &signals));
        let frames = ocbench.run(server.schedstat(), load_until + case.after(quick).max(1), |activation| {
            if [load_from, load_until].contains(&activation) {
                // If the load cannot be started, the other thread reports it.
                let _ = signal.send(());
            }
        })?;
        let stay = loading.join().map_err(|_| anyhow!("the thread that starts the load failed"))??;
        Ok::<_, anyhow::Error>((frames, stay))
    })?;
    let whole = |(from, to, _): Stretch| (from, to, (to - from) as f64 / 1e6);
    let without = |(from, to, kernel): Stretch| (from, to, (to - from).saturating_sub(kernel) as f64 / 1e6);
    let first_ns = frames.at_ns.first().copied().unwrap_or_default();
    let mut samples = named([
        ("activation", (0..frames.at_ns.len()).map(|activation| activation as f64).collect()),
        ("at", frames.at_ns.iter().map(|at| (at - first_ns) as f64 / 1e9).collect()),
        ("latency", frames.latency_ms()),
    ]);
    samples.extend(stay.cut("latency", frames.latencies().skip(FIRST).map(whole)));
    if is_stream {
        let intervals = frames.interval_ms();
        let ends = frames.drawn_ns.iter().skip(1).zip(&intervals).map(|(&end, &ms)| (end, end, ms));
        samples.extend(stay.cut("interval", ends.skip(FIRST)));
        samples.insert("frame".to_owned(), (1..frames.drawn_ns.len()).map(|frame| frame as f64).collect());
        samples.insert("interval".to_owned(), intervals);
    } else {
        samples.extend(stay.cut("period", frames.periods().skip(FIRST).map(whole)));
        samples.extend(stay.cut("period_without_kernel", frames.periods().skip(FIRST).map(without)));
        samples.extend(stay.cut("latency_without_kernel", frames.latencies().skip(FIRST).map(without)));
    }
    Ok((samples, named([("delayed_beside", stay.delayed), ("reserved", reserved)])))
}

/// Starts the load at the first signal and ends it at the second. In between, runs `xqos reserve auto` if needed.
fn beside_wheel(
    case: &Case,
    server: &Server,
    calibrated: &mut Calibrated,
    base: u32,
    signals: &Receiver<()>,
) -> Result<(Stay, f64)> {
    signals.recv()?;
    let mut reserved = 0.0;
    let stay = Stay::begin(case, server, calibrated, || {
        let mut auto = None;
        if case.finds_reservation {
            let mut command = Command::new(program::own("xqos")?);
            command.args(["reserve", "--client", &format!("{base:#x}"), "auto"]).env("DISPLAY", server.display());
            auto = Some(Owned::start_silent(&mut command, Duration::from_secs(2))?);
        }
        signals.recv()?;
        reserved = share_reserved(&server.control()?, |client| client.client == base)?;
        auto.as_mut().map_or(Ok(()), |auto| auto.see_running("xqos reserve"))
    })?;
    Ok((stay, reserved))
}

/// The program that starts mpv: `xqos run`, if the case searches for a reservation or also reserves processor time. If
/// the server refuses the reservation, `xqos run` does not start mpv.
fn launcher(case: &Case) -> Result<Option<Command>> {
    let both = case.reserve.zip(case.processor);
    if both.is_none() && !case.finds_reservation {
        return Ok(None);
    }
    let mut command = Command::new(program::own("xqos")?);
    command.args(["run", "--quiet"]);
    if let Some((server, (budget, period))) = both {
        command.args([
            "--strict",
            "--reserve",
            &format!("{}us/{}us", server.budget_ns / 1000, server.period_ns / 1000),
        ]);
        command.args(["--cpu", &format!("{}us/{}us", budget.as_micros(), period.as_micros()), "--"]);
    } else {
        command.args(["--reserve", "auto", "--"]);
    }
    Ok(Some(command))
}

/// The fraction of the server's time that is reserved for the clients which `is_meant` selects.
fn share_reserved(control: &Control, is_meant: impl Fn(&ClientEntry) -> bool) -> Result<f64> {
    let clients = control.clients()?.clients;
    let reserved = clients.iter().filter(|client| is_meant(client) && client.period_us > 0);
    let parts = reserved.map(|client| f64::from(client.budget_us) / f64::from(client.period_us));
    // `sum` would return -0 for no values.
    Ok(parts.fold(0.0, std::ops::Add::add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_split_by_start_and_end_of_the_load() {
        let stay = Stay { began_ns: 20, busy_ns: 30, ended_ns: 50, gone_ns: 55, delayed: 0.0 };
        let all =
            [(0, 10, 1.0), (10, 20, 2.0), (19, 21, 3.0), (20, 29, 4.0), (30, 50, 5.0), (49, 51, 6.0), (55, 60, 7.0)];
        let cut = stay.cut("period", all.into_iter());
        let parts = |name: &str| cut.iter().find(|(one, _)| one == name).map(|(_, part)| part.as_slice()).unwrap();
        assert_eq!((parts("period_before"), parts("period_idle")), (&[1.0, 2.0][..], &[1.0, 2.0, 7.0][..]));
        assert_eq!((parts("period_beside"), parts("period_busy")), (&[4.0, 5.0][..], &[5.0][..]));
    }
}
