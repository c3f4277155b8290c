// SPDX-License-Identifier: MIT
//! `xqos reserve` and `xqos release`: reservations of running clients.

mod watch;

use crate::groups::{self, Groups};
use crate::kind::{Amount, Kind, options};
use crate::selector::Selector;
use anyhow::{Result, bail};
use clap::Args;
use xqos_abi::ClientEntry;
use xqos_agent::client::{adopt_command, described, reservation_of, words};
use xqos_agent::rules;
use xqos_agent::session::{Account, Session};
use xqos_cli::output;
use xqos_cli::quantity::Reservation;
use xqos_core::ReservationKind;

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
    kind: Kind,
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
#[command(after_help = RELEASE_EXAMPLES)]
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

const RELEASE_EXAMPLES: &str = "\
Examples:
  xqos release --pid 4711
  xqos release --class mpv
  xqos release --group firefox
  xqos release --all";

/// Processor time has the same period as the reserved server time.
pub(super) const CPU_NEEDS_AUTO: &str = "--cpu auto takes its period from the measured reservation";

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
        if let Some(name) = &self.group {
            return self.for_groups(&session, name, wanted);
        }
        let clients = self.selector.as_ref().map_or(Ok(Vec::new()), |selector| selector.resolve(&session))?;
        let Some(reservation) = wanted.fixed() else {
            return watch::watch(&session, &clients, rules::auto_limit(), self.cpu.is_some());
        };
        for entry in clients {
            session.reserve(&Account::of_client(&entry), reservation, self.kind.get())?;
            output::line(&reserved(&entry, reservation, self.kind.get()))?;
        }
        Ok(())
    }

    fn for_groups(&self, session: &Session, name: &str, wanted: Amount) -> Result<()> {
        let Some(reservation) = wanted.fixed() else {
            bail!(
                "auto measures one client at a time: select clients instead, or give the group a budget and a period"
            );
        };
        output::line(&groups::named(session, name)?.reserve(session, reservation, self.kind.get())?)
    }
}

impl Release {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let session = Session::open(display)?;
        if let Some(name) = &self.group {
            let released = groups::named(&session, name)?.release(&session)?;
            let nothing = || format!("nothing to release: the group {name} has no reservation; see `xqos list`");
            return output::line(&released.unwrap_or_else(nothing));
        }
        let groups = if self.all { groups::all(&session)? } else { Vec::new() };
        let clients = match &self.selector {
            Some(selector) if !self.all => selector.resolve(&session)?,
            _ => {
                let mut clients = session.others()?;
                clients.retain(|entry| reservation_of(entry).is_some());
                clients
            }
        };
        if self.all && clients.is_empty() && !groups.iter().any(Groups::is_reserved) {
            return output::line("no client has a reservation");
        }
        if !self.all && clients.iter().all(|entry| reservation_of(entry).is_none()) {
            let names: Vec<_> = clients.iter().map(described).collect();
            let names = names.join(" and ");
            return output::line(&format!("nothing to release: {names} has no reservation; see `xqos list`"));
        }
        for entry in clients {
            let Some(previous) = reservation_of(&entry) else { continue };
            session.control.release(entry.client).map_err(|error| session.explained(error, &entry))?;
            output::line(&released(&entry, previous))?;
        }
        for groups in groups {
            groups.release(&session)?.iter().try_for_each(|line| output::line(line))?;
        }
        Ok(())
    }
}

/// Describes the change and how to undo it. Undoing restores the previous reservation.
fn reserved(entry: &ClientEntry, reservation: Reservation, kind: ReservationKind) -> String {
    let (was, undo) = match reservation_of(entry) {
        Some((before, was)) => (format!(", was {before}{}", words(was)), set_again(entry, before, was)),
        None => (String::new(), format!("xqos release --client {:#x}", entry.client)),
    };
    format!("reserved {reservation}{} for {}{was}; undo: {undo}", words(kind), described(entry))
}

fn released(entry: &ClientEntry, (before, kind): (Reservation, ReservationKind)) -> String {
    format!("released {before}{} of {}; undo: {}", words(kind), described(entry), set_again(entry, before, kind))
}

pub(super) fn set_again(entry: &ClientEntry, reservation: Reservation, kind: ReservationKind) -> String {
    if let Some(undo) = adopt_command(entry, &entry.reservation_origin, "reserve") {
        return undo;
    }
    format!("xqos reserve --client {:#x} {}{}", entry.client, reservation.typed(), options(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::entry_flag;

    fn mpv(flags: u32) -> ClientEntry {
        ClientEntry {
            client: 0x40_0000,
            pid: 7,
            name: "mpv".into(),
            flags,
            budget_us: 2000,
            period_us: 8000,
            ..Default::default()
        }
    }

    #[test]
    fn undo_restores_the_previous_reservation() {
        let wanted = "3ms/10ms".parse().unwrap();
        assert_eq!(
            reserved(&mpv(0), wanted, ReservationKind::SoftPaper),
            "reserved 3 ms / 10 ms soft=paper for mpv (pid 7, client 0x400000); undo: xqos release --client 0x400000"
        );
        assert_eq!(
            reserved(&mpv(entry_flag::RESERVED | entry_flag::HARD), wanted, ReservationKind::Soft),
            "reserved 3 ms / 10 ms for mpv (pid 7, client 0x400000), was 2 ms / 8 ms hard; \
             undo: xqos reserve --client 0x400000 2ms/8ms --hard"
        );
        let before = reservation_of(&mpv(entry_flag::RESERVED)).unwrap();
        assert_eq!(
            released(&mpv(entry_flag::RESERVED), before),
            "released 2 ms / 8 ms of mpv (pid 7, client 0x400000); undo: xqos reserve --client 0x400000 2ms/8ms"
        );
    }
}
