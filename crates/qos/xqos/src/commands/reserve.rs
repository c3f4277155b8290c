// SPDX-License-Identifier: MIT
//! `xqos reserve` and `xqos release`: reservations of running clients.

use crate::selector::{Selector, holders};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::os::fd::AsRawFd;
use xqos_abi::{ClientEntry, NotifyKind, event_mask};
use xqos_agent::amount::{Amount, CPU_NEEDS_AUTO, KindOptions};
use xqos_agent::auto::Auto;
use xqos_agent::client::{described, reservation_of};
use xqos_agent::session::Session;
use xqos_agent::{holder, rules};
use xqos_cli::output;
use xqos_sys::{self as sys, Signals};

/// Reserves server time for a running program
///
/// A reservation of 3ms/10ms guarantees 3 ms of server time in every 10 ms, whatever other clients do. It lasts until
/// `xqos release`, or until the client exits.
///
/// A client that has used up its budget continues among the clients without a reservation until the period ends. With
/// --hard it is held back until then, so it never gets more than its budget. With --soft=paper it gets its next budget
/// immediately, with a later deadline: while it is busy, clients without a reservation get only what reservations
/// leave.
///
/// The server admits a reservation only if it can keep this one and all existing ones. It adds up all budgets divided
/// by their periods, plus the blocking time: a request, or a part of one that is cut, is never interrupted.
///
/// With auto, xqos keeps running and measures the clients: a client with a steady rhythm gets what it needs, and its
/// reservation follows later changes. ^C stops this and releases the reservations. `xqos suggest` does the same for a
/// recorded trace.
#[derive(Args, Debug)]
#[command(after_help = RESERVE_EXAMPLES)]
#[command(mut_group("selector", |group| group.required(true)))]
pub struct Reserve {
    #[command(flatten)]
    selector: Option<Selector>,
    /// All clients of this group together, by the name in `xqos list`. Clients with their own reservation keep it, and
    /// do not use the group's
    #[arg(long, value_name = "NAME", group = "selector")]
    group: Option<String>,
    /// Server time and period, such as 3ms/10ms or 500us/0.01s; auto measures the need
    #[arg(value_name = "BUDGET/PERIOD|auto")]
    reservation: Amount,
    #[command(flatten)]
    kind: KindOptions,
    /// With auto: also reserve processor time for the busiest thread, as measured (needs CAP_SYS_NICE)
    #[arg(long, value_name = "auto")]
    cpu: Option<Amount>,
}

const RESERVE_EXAMPLES: &str = "\
Examples:
  xqos reserve --pid 4711 3ms/10ms
  xqos reserve --class mpv 5ms/16ms
  xqos reserve --pick 3ms/10ms            click on the window
  xqos reserve --window 0x1c00007 3ms/10ms --hard
  xqos reserve --class game 8ms/16ms --soft=paper
  xqos reserve --class mpv auto           until ^C, or until mpv exits
  sudo -E xqos reserve --class mpv auto --cpu auto
  xqos reserve --group firefox 5ms/16ms   for all its clients together

Times need a unit: us, ms or s. To choose a budget, see how much server time a
program uses in `xqos list`, which also shows each reservation and what is left
of it.";

/// Releases reservations
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  xqos release --pid 4711
  xqos release --class mpv
  xqos release --group firefox
  xqos release --all")]
#[command(mut_group("selector", |group| group.required(true)))]
pub struct Release {
    #[command(flatten)]
    selector: Option<Selector>,
    /// All clients of this group, by the name in `xqos list`
    #[arg(long, value_name = "NAME", group = "selector")]
    group: Option<String>,
    /// All clients and groups that have a reservation
    #[arg(long, group = "selector")]
    all: bool,
}

impl Reserve {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let wanted = self.reservation.checked(self.kind.get())?;
        match self.cpu {
            Some(Amount::Fixed(_)) => {
                bail!("--cpu takes only the word auto here; `xqos run --cpu` starts a program with a fixed budget")
            }
            Some(Amount::Auto) if wanted != Amount::Auto => bail!("{CPU_NEEDS_AUTO}: write auto instead of {wanted}"),
            _ => {}
        }
        let (session, _) = Session::open_armed(display)?;
        let Some(reservation) = wanted.fixed() else { return self.watch(&session) };
        for holder in holders(&session, self.selector.as_ref(), self.group.as_deref())? {
            output::line(&holder.reserve(&session, reservation, self.kind.get())?)?;
        }
        Ok(())
    }

    fn watch(&self, session: &Session) -> Result<()> {
        let Some(selector) = self.selector.as_ref().filter(|_| self.group.is_none()) else {
            bail!(
                "auto measures one client at a time: select clients instead, or give the group a budget and a period"
            );
        };
        watch(session, &selector.resolve(session)?, rules::auto_limit(), self.cpu.is_some())
    }
}

impl Release {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let session = Session::open(display)?;
        let holders = match self.all {
            true => holder::all(&session)?,
            false => holders(&session, self.selector.as_ref(), self.group.as_deref())?,
        };
        let mut is_any = false;
        for holder in &holders {
            if let Some(released) = holder.release(&session)? {
                is_any = true;
                output::line(&released)?;
            }
        }
        let names: Vec<String> = holders.iter().map(ToString::to_string).collect();
        match (is_any, self.all) {
            (true, _) => Ok(()),
            (false, true) => output::line("no client has a reservation"),
            (false, false) => output::line(&format!(
                "nothing to release: {} has no reservation; see `xqos list`",
                names.join(" and ")
            )),
        }
    }
}

/// Measures running clients until they exit, another command changes their reservations, or a signal arrives. Clears
/// all its own settings when it ends, even after an error. `with_processors`: also reserve processor time.
fn watch(session: &Session, clients: &[ClientEntry], limit_ppm: Option<u32>, with_processors: bool) -> Result<()> {
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
    auto.reports_all = true;
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
