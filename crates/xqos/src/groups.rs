// SPDX-License-Identifier: MIT
//! Groups of clients, as commands name them and people read of them.

use crate::admission;
use crate::client::{described, kind, printable};
use crate::session::{Session, out_of_limits};
use anyhow::{Result, anyhow, bail};
use std::collections::BTreeMap;
use xqos_abi::{ClientEntry, entry_flag};
use xqos_cli::quantity::{Micros, Reservation};
use xqos_client::Error;

/// A group by its clients, one at least.
#[derive(Clone, Debug)]
pub struct Group {
    clients: Vec<ClientEntry>,
}

/// All groups of this name: two windows of one program are two groups, where nobody named them.
pub fn named(session: &Session, name: &str) -> Result<Vec<Group>> {
    let groups =
        all(session)?.into_iter().filter(|group| group.first().group_name.as_str() == name).collect::<Vec<_>>();
    if groups.is_empty() {
        bail!(
            "no client of the X server {} is in a group {name}: `xqos list` shows them in the column GROUP",
            session.display
        );
    }
    Ok(groups)
}

/// All groups of which there are clients.
pub fn all(session: &Session) -> Result<Vec<Group>> {
    let mut groups: BTreeMap<u32, Vec<ClientEntry>> = BTreeMap::new();
    for entry in session.others()?.into_iter().filter(|entry| entry.group != 0) {
        groups.entry(entry.group).or_default().push(entry);
    }
    Ok(groups.into_values().map(|clients| Group { clients }).collect())
}

/// The reservation that a client's group has, and whether it is hard.
pub fn reservation_of_group(entry: &ClientEntry) -> Option<(Reservation, bool)> {
    (entry.group_period_us != 0).then(|| {
        let (budget, period) = (Micros(entry.group_budget_us), Micros(entry.group_period_us));
        (Reservation { budget, period }, entry.flags & entry_flag::GROUP_HARD != 0)
    })
}

impl Group {
    fn first(&self) -> &ClientEntry {
        &self.clients[0]
    }

    pub fn reservation(&self) -> Option<(Reservation, bool)> {
        reservation_of_group(self.first())
    }

    /// Sets a reservation; gives what was done and how to undo it.
    pub fn reserve(&self, session: &Session, wanted: Reservation, hard: bool) -> Result<String> {
        let (budget, period) = (wanted.budget.0, wanted.period.0);
        session.control.reserve_group(self.first().client, budget, period, hard).map_err(|error| match error {
            Error::Admission { .. } => self.refusal(session, wanted, hard),
            error => self.explained(session, error, wanted),
        })?;
        let (was, undo) = match self.reservation() {
            Some((before, was_hard)) => (format!(", was {before}{}", kind(was_hard)), self.set_again(before, was_hard)),
            None => (String::new(), format!("xqos release --group {}", self.typed())),
        };
        Ok(format!("reserved {wanted}{} for {self}{was}; undo: {undo}", kind(hard)))
    }

    /// Ends the reservation, where there is one; gives what was done and how to undo it.
    pub fn release(&self, session: &Session) -> Result<Option<String>> {
        let Some((before, hard)) = self.reservation() else { return Ok(None) };
        let released = session.control.release_group(self.first().client);
        released.map_err(|error| session.explained(error, self.first()))?;
        Ok(Some(format!("released {before}{} of {self}; undo: {}", kind(hard), self.set_again(before, hard))))
    }

    fn refusal(&self, session: &Session, wanted: Reservation, hard: bool) -> anyhow::Error {
        // The server tells the figures of clients only. Those of one without anything are the same as its group's.
        let free = self.clients.iter().find(|entry| entry.flags & entry_flag::RESERVED == 0);
        let asked = free.filter(|_| self.reservation().is_none()).and_then(|entry| {
            let report = session.control.check_admission(entry.client, wanted.budget.0, wanted.period.0, hard).ok()?;
            Some(admission::explain(&report, entry.client, &session.others().ok()?))
        });
        let why = asked.unwrap_or_else(|| {
            "with what else is promised it is more than the server can keep, or than a user may have; ask for less, or release \
             another one (`xqos list`)"
                .to_owned()
        });
        anyhow!("{wanted} is refused to {self}: {why}")
    }

    fn explained(&self, session: &Session, error: Error, wanted: Reservation) -> anyhow::Error {
        let limit = match (&error, session.control.server_info()) {
            (Error::Value(_), Ok(info)) => out_of_limits(wanted, &info),
            _ => None,
        };
        match limit {
            Some(why) => anyhow!("{wanted} is refused: {why}"),
            None => session.explained(error, self.first()),
        }
    }

    fn set_again(&self, reservation: Reservation, hard: bool) -> String {
        let hard = if hard { " --hard" } else { "" };
        format!("xqos reserve --group {} {}{hard}", self.typed(), reservation.typed())
    }

    /// Its name for a shell.
    fn typed(&self) -> String {
        let name = printable(self.first().group_name.as_str());
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_.:@".contains(letter);
        if name.chars().all(is_plain) { name } else { format!("'{}'", name.replace('\'', "'\\''")) }
    }
}

impl std::fmt::Display for Group {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = printable(self.first().group_name.as_str());
        match self.clients.len() {
            1 => write!(out, "the group {name} ({})", described(self.first())),
            count => write!(out, "the group {name} ({count} clients)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::Label;

    fn group(name: &str, clients: usize) -> Group {
        let (group_name, name) = (Label::new(name), "mpv".to_owned());
        let entry = ClientEntry { client: 0x40_0000, pid: 7, group: 1, group_name, name, ..ClientEntry::default() };
        Group { clients: vec![entry; clients] }
    }

    #[test]
    fn groups_are_named_for_people_and_for_a_shell() {
        assert_eq!(group("players", 3).to_string(), "the group players (3 clients)");
        assert_eq!(group("mpv", 1).to_string(), "the group mpv (mpv (pid 7, client 0x400000))");
        assert_eq!(group("gnome-firefox-77", 1).typed(), "gnome-firefox-77");
        assert_eq!(group("user 1000", 1).typed(), "'user 1000'");
        assert_eq!(group("it's", 1).typed(), "'it'\\''s'");
    }

    #[test]
    fn the_reservation_of_a_group_is_read_from_its_clients() {
        let reserved = ClientEntry {
            group_budget_us: 3000,
            group_period_us: 10_000,
            flags: entry_flag::GROUP_HARD,
            ..ClientEntry::default()
        };
        assert_eq!(reservation_of_group(&reserved), Some(("3ms/10ms".parse().unwrap(), true)));
        assert_eq!(reservation_of_group(&ClientEntry::default()), None);
    }
}
