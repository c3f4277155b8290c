// SPDX-License-Identifier: MIT
//! Invariants of the server that must hold after any operation.
//!
//! | when | what |
//! |---|---|
//! | after each operation | the server runs, and xqos has not stepped aside |
//! | every ten operations | a new client is answered; server times and reservations add up; the limit is kept |
//! | after each reset | no thread has a raised priority; no new descriptors; bounded memory; no reservation is left |

use super::stage::{ChaosStage, PATIENCE};
use crate::poll::poll;
use anyhow::{Result, bail, ensure};
use std::time::{Duration, Instant};
use x11rb::protocol::xproto::ConnectionExt;
use xqos_abi::entry_flag::RESERVED;
use xqos_sys::Attributes;

/// Allowed growth of the server's private memory since the first reset. Its allocator keeps freed memory.
const MORE_KB: u64 = 32 << 10;
/// Allowed growth of the memory that xqos reports.
const MORE_BYTES: u32 = 256 << 10;

/// State of a server without clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleState {
    files: usize,
    private_kb: u64,
    memory_bytes: u32,
    reservations: u32,
}

/// Counters that never decrease until the server resets: busy time, decisions, and uptime.
pub(super) type Counters = [u64; 3];

/// Checks that a new client is answered, and returns how long this took.
pub(super) fn answers(stage: &ChaosStage) -> Result<Duration> {
    let began = Instant::now();
    stage.server.connect()?.get_input_focus()?.reply()?;
    Ok(began.elapsed())
}

/// Checks that the server's figures agree with each other.
pub(super) fn check_figures(stage: &ChaosStage, before: &mut Counters) -> Result<()> {
    let control = stage.witness()?;
    let earlier = control.server_info()?;
    let list = control.clients()?;
    let info = control.server_info()?;
    ensure!(info.armed, "xqos stepped aside: {}", info.reason);
    let now = [info.busy_ns, info.decisions, info.uptime_ns];
    let goes_on = before.iter().zip(now).all(|(before, now)| now >= *before);
    ensure!(goes_on, "totals decreased from {before:?} to {now:?}");
    *before = now;
    ensure!(info.busy_ns <= info.uptime_ns, "busy for {} of {} ns", info.busy_ns, info.uptime_ns);
    let served: u64 = list.clients.iter().map(|client| client.server_time_ns).sum();
    ensure!(served <= info.busy_ns, "clients were served for {served} ns, the server was busy for {}", info.busy_ns);
    if let Some(odd) = list.clients.iter().find(|client| client.reserved_time_ns > client.server_time_ns) {
        bail!("a client's reserved time exceeds its server time: {odd:?}");
    }
    let limit = info.max_utilization_ppm.max(earlier.max_utilization_ppm);
    let admitted = info.admitted_utilization_ppm;
    // Lowering the limit does not revoke reservations.
    ensure!(admitted <= limit.max(900_000), "{admitted} ppm are reserved, the limit is {limit}");
    let reserved = list.clients.iter().filter(|client| client.flags & RESERVED != 0).count() as u32;
    // A client can disconnect between the two replies.
    let counts = earlier.reservations.min(info.reservations)..=earlier.reservations.max(info.reservations);
    ensure!(counts.contains(&reserved), "{reserved} clients have reservations, the server counts {counts:?}");
    Ok(())
}

/// Checks the state of the server after a reset, once all clients have disconnected.
pub(super) fn idle_state(stage: &ChaosStage, first: Option<IdleState>) -> Result<IdleState> {
    let pid = stage.server.pid();
    let mut now = read_state(stage)?;
    // The server frees the resources of clients when it notices that the clients are gone.
    let is_settled = |now: &IdleState| first.is_none_or(|first| now.files <= first.files) && now.reservations == 0;
    poll(PATIENCE, Duration::from_millis(50), || {
        now = read_state(stage)?;
        Ok(is_settled(&now).then_some(()))
    })?;
    // A server inherits the niceness of its parent.
    let nice = Attributes::of(0)?.nice();
    for thread in stage.server.switches()? {
        let attributes = Attributes::of(thread.tid)?;
        let is_plain = attributes.is_normal() && attributes.nice() >= nice;
        ensure!(is_plain, "the thread {} still has a raised priority: {attributes:?}", thread.name);
    }
    ensure!(now.reservations == 0, "{} reservations of disconnected clients are left", now.reservations);
    if let Some(first) = first {
        let (files, before) = (now.files, first.files);
        ensure!(
            files <= before,
            "{files} descriptors are open, {before} were after the first reset: {}",
            open_files(pid).join(" ")
        );
        let more_kb = now.private_kb.saturating_sub(first.private_kb);
        ensure!(more_kb <= MORE_KB, "the server uses {more_kb} kB more than after the first reset");
        let more = now.memory_bytes.saturating_sub(first.memory_bytes);
        ensure!(more <= MORE_BYTES, "xqos uses {more} bytes more than after the first reset");
    }
    // The count after the first reset may include descriptors that were about to be closed.
    let files = first.map_or(now.files, |first| first.files.min(now.files));
    Ok(IdleState { files, ..first.unwrap_or(now) })
}

fn read_state(stage: &ChaosStage) -> Result<IdleState> {
    let pid = stage.server.pid();
    let files = open_files(pid).len();
    let private_kb = stage.server.memory()?.private_dirty_kb;
    let info = stage.witness()?.server_info()?;
    Ok(IdleState { files, private_kb, memory_bytes: info.memory_bytes, reservations: info.reservations })
}

/// Open descriptors of the server, from /proc. Descriptors of its epoll's fdinfo are left out, because xqos does not
/// open them until a client first keeps others waiting.
fn open_files(pid: u32) -> Vec<String> {
    let names = xqos_sys::proc::open_files(pid as i32).map(|link| link.to_string_lossy().into_owned());
    names.filter(|name| !(name.starts_with("/proc/") && name.contains("/fdinfo/"))).collect()
}
