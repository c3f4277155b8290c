// SPDX-License-Identifier: MIT
//! Measures what one x11perf with a hard reservation gets from a real server.

use crate::load::{Load, Perf, Placement};
use crate::server::Server;
use anyhow::{Result, anyhow};
use std::time::{Duration, Instant};
use xqos_abi::ClientEntry;
use xqos_client::Control;

pub(super) const TEST: &str = "getimagexy100";
/// x11perf prints its count at the end of a run, so short runs give a finer count.
pub(super) const RUNS_OF_ONE: u64 = 20;
/// Reservations of 5/6 of a period must be admitted, so this is the highest value that the server accepts.
pub(super) const MAX_UTILIZATION_PPM: u32 = 950_000;

/// Share of the server's time, and operations per second by x11perf's own count.
pub(super) fn measure(
    server: &Server,
    control: &Control,
    perf: &Perf,
    (budget_us, period_us): (u32, u32),
    time: Duration,
) -> Result<(f64, f64)> {
    let mut load = Load::start(server.display(), perf, 1, Placement::Stacked)?;
    let pid = load.pids()[0];
    control.reserve(entry(control, pid)?.1.client, budget_us, period_us, true)?;
    // The first period still includes service from before the reservation.
    std::thread::sleep(Duration::from_micros(u64::from(period_us)));
    let ((began_ns, before), from) = (entry(control, pid)?, Instant::now());
    std::thread::sleep(time);
    let (to, (ended_ns, after)) = (Instant::now(), entry(control, pid)?);
    let operations: f64 = load.work(from, to)?.iter().sum();
    let share = (after.reserved_time_ns - before.reserved_time_ns) as f64 / (ended_ns - began_ns) as f64;
    Ok((share, operations / (to - from).as_secs_f64()))
}

/// Reads the server's clock and the entry of the client with this process id.
fn entry(control: &Control, pid: u32) -> Result<(u64, ClientEntry)> {
    let list = control.clients()?;
    let found = list.clients.into_iter().find(|client| client.pid as u32 == pid);
    Ok((list.now_ns, found.ok_or_else(|| anyhow!("the server does not list the client of process {pid}"))?))
}
