// SPDX-License-Identifier: MIT
//! `xqos cap -i`: captures the packets of a network interface until a signal, a time limit or an event.

use super::Arguments;
use super::progress::Progress;
use anyhow::{Context, Error, Result, anyhow};
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use xqos_cli::output::note;
use xqos_sys::{self as sys, Signals};
use xqos_wire::capture::live::{Drops, GATHERED_FOR, Live, LiveError, filter_of};
use xqos_wire::recording::Recorder;

/// The ports of displays 0 to 63.
const DISPLAY_PORTS: RangeInclusive<u16> = 6000..=6063;
/// Maximum time between two checks of the clock, and minimum time between two writes of buffered data to the file.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub fn capture(arguments: &Arguments, interface: &str) -> Result<()> {
    let ports = arguments.port.clone().unwrap_or(DISPLAY_PORTS);
    let filter = arguments.filter.clone().unwrap_or_else(|| filter_of(&ports));
    let mut live = Live::open(interface, &filter).map_err(|error| explained(error, interface))?;
    let settings = arguments.settings();
    let recorder = Recorder::new(arguments.target()?, Some((live.link, interface)), &settings);
    let mut recorder = recorder.with_context(|| arguments.cannot_write())?;
    let signals = arguments.signals().context("cannot watch for ^C")?;
    // The kernel drops packets if this process runs too late. Without the right to do this, the capture runs as usual.
    let _ = rustix::process::setpriority_process(None, -20);
    if !arguments.quiet {
        note(&format!("capturing on {interface} ({filter}); press ^C to stop"));
    }
    let drops = run(arguments, &mut live, &mut recorder, &signals, &settings.trigger.signal)?;
    arguments.conclude(&recorder.finish(), &format!("{}; ", summary(&drops)))
}

fn run(
    arguments: &Arguments,
    live: &mut Live,
    recorder: &mut Recorder,
    signals: &Signals,
    user_signal: &AtomicBool,
) -> Result<Drops> {
    let mut progress = Progress::new(arguments.quiet);
    let end = arguments.duration.map(|time| Instant::now() + time);
    let (mut is_last, mut flushed) = (false, Instant::now());
    loop {
        take_all(live, recorder)?;
        if flushed.elapsed() >= POLL_INTERVAL {
            recorder.flush();
            flushed = Instant::now();
        }
        let drops = live.drops();
        if is_last || recorder.is_over() {
            return Ok(drops);
        }
        let recorded = recorder.recorded();
        progress.update(|| format!("{} packets, {} bytes; {}", recorded.packets, recorded.bytes, summary(&drops)));
        let left = end.map_or(POLL_INTERVAL, |end| end.saturating_duration_since(Instant::now()).min(POLL_INTERVAL));
        let mut is_signalled = false;
        while let Some(signal) = signals.next() {
            match signal.number {
                // A child that this process inherited through exec has exited. The capture continues.
                libc::SIGCHLD => {}
                libc::SIGUSR1 => user_signal.store(true, Ordering::Relaxed),
                _ => is_signalled = true,
            }
        }
        if is_signalled || left.is_zero() {
            // The kernel delivers packets in batches: wait for the last one.
            std::thread::sleep(2 * GATHERED_FOR);
            is_last = true;
        } else {
            sys::poll(&[live.as_raw_fd(), signals.as_raw_fd()], Some(left)).context("cannot wait for packets")?;
        }
    }
}

/// Takes the packets that have arrived, up to a limit, so that a flood of packets does not delay timers and signals.
fn take_all(live: &mut Live, recorder: &mut Recorder) -> Result<()> {
    const MAX_PACKETS: usize = 10_000;
    for _ in 0..MAX_PACKETS {
        match live.take().map_err(|error| anyhow!(error).context("the capture failed"))? {
            Some(record) => recorder.take(&record),
            None => {
                recorder.advance_to(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64);
                break;
            }
        }
    }
    Ok(())
}

fn summary(drops: &Drops) -> String {
    let Drops { received, by_kernel, by_interface } = drops;
    format!("{received} received, {by_kernel} dropped by the kernel, {by_interface} by the interface")
}

fn explained(error: LiveError, interface: &str) -> Error {
    let what = format!("cannot capture on {interface}");
    match error {
        LiveError::NotAllowed => anyhow!(error).context(format!(
            "{what}: run it with sudo, or give this program the capability: sudo setcap cap_net_raw+ep {}",
            sys::own_path()
        )),
        error => anyhow!(error).context(what),
    }
}
