// SPDX-License-Identifier: MIT
//! Captures X traffic in the network namespace in which the actor was started. Processes outside that namespace cannot.
//!
//! Only this actor sees the packets, so it decides when to stop: when a window has been mapped and no more packets
//! arrive, or after a time limit. The capture is written to [`FILE`] in the working folder.

use super::{Ready, say};
use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufWriter;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xqos_wire::analysis::Analysis;
use xqos_wire::capture::Writer;
use xqos_wire::capture::live::{Live, LiveError, filter_of};
use xqos_wire::capture::trigger::{EventWatcher, Settings, Start, TriggerEvent};
use xqos_wire::session::ObservedSession;

pub(crate) const FILE: &str = "capture.pcapng";
/// The link's device has this name in both namespaces.
const LINK: &str = "link0";
/// Displays 0 to 63, including those of ssh and of proxies.
const PORTS: std::ops::RangeInclusive<u16> = 6000..=6063;
/// Polling interval. The kernel's buffer can hold far more packets than arrive in one interval.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The result that the actor prints when it ends.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Captured {
    pub has_window: bool,
    /// False if the time limit was reached.
    pub is_quiet: bool,
    pub packets: u64,
    pub dropped: u64,
}

impl Captured {
    /// When a program start that began at `began_ns` ended: the time of its last packet, according to the analysis. If
    /// the capture reached its limit, this is at least `limit` after `began_ns`, even if no packet arrived that late.
    pub fn ended_ns(&self, analysis: &Analysis, began_ns: u64, limit: Duration) -> u64 {
        let last_ns = analysis.connections.values().map(|connection| connection.ended_ns).max().unwrap_or(began_ns);
        if self.is_quiet { last_ns } else { last_ns.max(began_ns + limit.as_nanos() as u64) }
    }
}

pub(super) fn perform(on_loopback: bool, silence_ms: u64, limit_ms: u64) -> Result<()> {
    let interface = if on_loopback { "lo" } else { LINK };
    let mut live = Live::open(interface, &filter_of(&PORTS))?;
    let mut writer = Writer::new(BufWriter::new(File::create(FILE)?), "xqos")?;
    let start = Start::On(TriggerEvent::Window(None));
    let lookout = EventWatcher::new(&Settings { start, ..Settings::default() });
    let mut session = ObservedSession::new(lookout);
    say(&Ready { window: 0 })?;
    let mut captured = Captured::default();
    let (mut first_ns, mut last_ns) = (None, 0);
    loop {
        while let Some(record) = live.take().map_err(broken)? {
            captured.packets += 1;
            first_ns.get_or_insert(record.at_ns);
            last_ns = record.at_ns;
            writer.write(&record)?;
            session.packet(&record);
        }
        captured.has_window |= session.observers.take().start;
        let since_ms = |ns: u64| now_ns().saturating_sub(ns) / 1_000_000;
        captured.is_quiet = captured.has_window && since_ms(last_ns) >= silence_ms;
        if captured.is_quiet || first_ns.is_some_and(|first_ns| since_ms(first_ns) >= limit_ms) {
            break;
        }
        sleep(LOOK_AGAIN);
    }
    writer.flush()?;
    captured.dropped = live.drops().by_kernel;
    say(&captured)
}

fn broken(error: LiveError) -> anyhow::Error {
    anyhow!(error).context("the capture stopped")
}

/// Time on the clock that captures and the link's log use.
pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
