// SPDX-License-Identifier: MIT
//! What has to hold, whatever is done to the server.
//!
//! | when | what |
//! |---|---|
//! | after each operation | the server runs, and xqos has not stepped aside |
//! | after every tenth | a new client is answered; server time adds up; reservations are counted right and admitted |
//! | after each reset | no thread is raised; descriptors are no more than at first; memory is bounded; nobody has a reservation |

use super::stage::{PATIENCE, Stage};
use crate::process;
use anyhow::{Result, bail, ensure};
use std::fs;
use std::time::{Duration, Instant};
use x11rb::protocol::xproto::ConnectionExt;
use xqos_abi::entry_flag::RESERVED;
use xqos_sys::Attributes;

/// Private memory of the server beyond that after its first life: its allocator keeps what clients had.
const MORE_KB: u64 = 32 << 10;
/// The same of what xqos says that it uses.
const MORE_BYTES: u32 = 256 << 10;

/// What a server without clients has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rested {
    files: usize,
    private_kb: u64,
    memory_bytes: u32,
    reservations: u32,
}

/// Sums that never go back, within a life of the server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    busy_ns: u64,
    decisions: u64,
    uptime_ns: u64,
}

/// A new client is answered; tells after what time.
pub(super) fn answers(stage: &Stage) -> Result<Duration> {
    let began = Instant::now();
    stage.server.connect()?.get_input_focus()?.reply()?;
    Ok(began.elapsed())
}

/// What the server says of itself agrees.
pub(super) fn adds_up(stage: &Stage, before: &mut Sums) -> Result<()> {
    let control = stage.witness()?;
    let earlier = control.server_info()?;
    let list = control.clients()?;
    let info = control.server_info()?;
    ensure!(info.armed, "xqos stepped aside: {}", info.reason);
    let now = Sums { busy_ns: info.busy_ns, decisions: info.decisions, uptime_ns: info.uptime_ns };
    let goes_on =
        now.busy_ns >= before.busy_ns && now.decisions >= before.decisions && now.uptime_ns >= before.uptime_ns;
    ensure!(goes_on, "sums went back from {before:?} to {now:?}");
    *before = now;
    ensure!(info.busy_ns <= info.uptime_ns, "busy for {} of {} ns", info.busy_ns, info.uptime_ns);
    let served: u64 = list.clients.iter().map(|client| client.server_time_ns).sum();
    ensure!(served <= info.busy_ns, "clients were served for {served} ns, the server was busy for {}", info.busy_ns);
    if let Some(odd) = list.clients.iter().find(|client| client.reserved_time_ns > client.server_time_ns) {
        bail!("more of a client's server time is reserved than there is: {odd:?}");
    }
    let limit = info.max_utilization_ppm.max(earlier.max_utilization_ppm);
    let admitted = info.admitted_utilization_ppm;
    // A limit that was lowered takes back no reservation.
    ensure!(admitted <= limit.max(900_000), "{admitted} ppm are reserved, the limit is {limit}");
    let reserved = list.clients.iter().filter(|client| client.flags & RESERVED != 0).count() as u32;
    // A client may leave between the answers.
    let counts = earlier.reservations.min(info.reservations)..=earlier.reservations.max(info.reservations);
    ensure!(counts.contains(&reserved), "{reserved} clients have reservations, the server counts {counts:?}");
    Ok(())
}

/// What is left after a reset, once everything has gone.
pub(super) fn rested(stage: &Stage, first: Option<Rested>) -> Result<Rested> {
    let pid = stage.server.pid();
    let until = Instant::now() + PATIENCE;
    let mut now = look(stage)?;
    // What clients had goes when the server notices that they have.
    let is_settled = |now: &Rested| first.is_none_or(|first| now.files <= first.files) && now.reservations == 0;
    while !is_settled(&now) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
        now = look(stage)?;
    }
    // A server has the niceness of who starts it.
    let nice = Attributes::of(0)?.nice();
    for thread in process::switches(pid)? {
        let attributes = Attributes::of(thread.tid as i32)?;
        let is_plain = attributes.is_normal() && attributes.nice() >= nice;
        ensure!(is_plain, "the thread {} is left raised: {attributes:?}", thread.name);
    }
    ensure!(now.reservations == 0, "{} reservations are left of clients that are gone", now.reservations);
    if let Some(first) = first {
        let (files, before) = (now.files, first.files);
        ensure!(
            files <= before,
            "{files} descriptors are open, {before} were at first: {}",
            open_files(pid)?.join(" ")
        );
        let more_kb = now.private_kb.saturating_sub(first.private_kb);
        ensure!(more_kb <= MORE_KB, "{more_kb} kB more than after the first life");
        let more = now.memory_bytes.saturating_sub(first.memory_bytes);
        ensure!(more <= MORE_BYTES, "xqos uses {more} bytes more than after the first life");
    }
    // After the first life some that were about to be closed may have been counted.
    let files = first.map_or(now.files, |first| first.files.min(now.files));
    Ok(Rested { files, ..first.unwrap_or(now) })
}

fn look(stage: &Stage) -> Result<Rested> {
    let pid = stage.server.pid();
    let files = open_files(pid)?.len();
    let private_kb = process::memory(pid)?.private_dirty_kb;
    let info = stage.witness()?.server_info()?;
    Ok(Rested { files, private_kb, memory_bytes: info.memory_bytes, reservations: info.reservations })
}

/// What a server has open, as /proc tells it, but for what xqos reads of the server's epoll: that is opened once, when somebody
/// first keeps others waiting.
fn open_files(pid: u32) -> Result<Vec<String>> {
    let links = fs::read_dir(format!("/proc/{pid}/fd"))?.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    let names = links.map(|link| link.to_string_lossy().into_owned());
    Ok(names.filter(|name| !(name.starts_with("/proc/") && name.contains("/fdinfo/"))).collect())
}
