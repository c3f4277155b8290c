// SPDX-License-Identifier: MIT
//! `xqos reserve ... auto`: measures running clients until they exit, another command changes their reservations, or a
//! signal arrives.

use anyhow::{Context, Result, bail};
use std::os::fd::AsRawFd;
use xqos_abi::{ClientEntry, NotifyKind, event_mask};
use xqos_agent::auto::Auto;
use xqos_agent::client::{described, reservation_of};
use xqos_agent::session::Session;
use xqos_cli::output;
use xqos_sys::{self as sys, Signals};

/// Clears all its own settings when it ends, even after an error. `with_processors`: also reserve processor time.
pub fn watch(session: &Session, clients: &[ClientEntry], limit_ppm: Option<u32>, with_processors: bool) -> Result<()> {
    if let Some(reserved) = clients.iter().find(|entry| reservation_of(entry).is_some()) {
        bail!(
            "{} already has a reservation, which auto does not change: run `xqos release --client {:#x}` first",
            described(reserved),
            reserved.client
        );
    }
    let signals = Signals::watch().context("cannot watch for ^C")?;
    session.control.select_events(event_mask::CLIENTS)?;
    let mut auto = Auto::start(session, "auto", limit_ppm)?;
    auto.report_all();
    if with_processors {
        auto.reserve_processors(false).unwrap_or_else(|error| output::note(&error.in_one_line()));
    }
    // A client that exited since it was selected causes no event.
    let present = session.others()?;
    for entry in present.iter().filter(|entry| clients.iter().any(|chosen| chosen.client == entry.client)) {
        if !auto.adopt(entry) {
            continue;
        }
        output::note(&format!("watching {}; press ^C to stop and to release what was reserved", described(entry)));
    }
    let ended = look_after(session, &mut auto, &signals);
    auto.end(session).iter().try_for_each(|line| output::line(line))?;
    ended
}

fn look_after(session: &Session, auto: &mut Auto, signals: &Signals) -> Result<()> {
    loop {
        while let Some(notify) = session.control.next_notify().context("the X server has gone")? {
            if notify.kind == NotifyKind::ClientGone {
                auto.gone(notify.client).iter().try_for_each(|line| output::line(line))?;
            }
        }
        if signals.termination_requested() {
            return Ok(());
        }
        auto.turn(session)?.iter().try_for_each(|line| output::line(line))?;
        if auto.is_empty() {
            return Ok(());
        }
        let Some(wait) = auto.wait() else { bail!("the server's trace has ended, so nothing more can be measured") };
        let files = [signals.as_raw_fd(), session.control.descriptor()];
        sys::poll(&files, Some(wait)).context("cannot wait for the clients")?;
    }
}
