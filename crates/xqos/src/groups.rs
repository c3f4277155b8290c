// SPDX-License-Identifier: MIT
//! Groups of clients, selected by name.

use crate::kind::options;
use anyhow::{Result, anyhow};
use std::collections::BTreeMap;
use xqos_abi::{ClientEntry, Setting, SettingKind, Subject};
use xqos_agent::client::{described, printable, reservation_of_group, words};
use xqos_agent::session::{Account, Session};
use xqos_cli::quantity::Reservation;
use xqos_core::ReservationKind;

/// All groups of one name, each with its clients. For example, two processes of one program may be two groups with the
/// same name. A command applies to all groups of that name, and reports them together.
#[derive(Clone, Debug)]
pub struct Groups {
    /// At least one group; each group has at least one client.
    groups: Vec<Vec<ClientEntry>>,
}

pub fn named(session: &Session, name: &str) -> Result<Groups> {
    let found = all(session)?.into_iter().find(|groups| groups.first().group_name.as_str() == name);
    found.ok_or_else(|| {
        anyhow!(
            "no client of the X server {} is in a group {name}: `xqos list` shows them in the column GROUP",
            session.display
        )
    })
}

/// All groups that have clients, by name.
pub fn all(session: &Session) -> Result<Vec<Groups>> {
    let mut by_name: BTreeMap<String, BTreeMap<u32, Vec<ClientEntry>>> = BTreeMap::new();
    for entry in session.others()?.into_iter().filter(|entry| entry.group != 0) {
        let groups = by_name.entry(entry.group_name.to_string()).or_default();
        groups.entry(entry.group).or_default().push(entry);
    }
    Ok(by_name.into_values().map(|groups| Groups { groups: groups.into_values().collect() }).collect())
}

type Reserved = (Reservation, ReservationKind);

impl Groups {
    fn first(&self) -> &ClientEntry {
        &self.groups[0][0]
    }

    /// The reservation of each group.
    fn reserved(&self) -> impl Iterator<Item = Option<Reserved>> + '_ {
        self.groups.iter().map(|clients| reservation_of_group(&clients[0]))
    }

    pub fn is_reserved(&self) -> bool {
        self.reserved().any(|reserved| reserved.is_some())
    }

    /// Sets the reservation of all groups, or of none if one is refused. Returns a description and how to undo it.
    pub fn reserve(&self, session: &Session, wanted: Reservation, kind: ReservationKind) -> Result<String> {
        for (done, clients) in self.groups.iter().enumerate() {
            let account = Account { subject: Subject::Group(clients[0].client), name: self.to_string(), clients };
            session.reserve(&account, wanted, kind).inspect_err(|_| self.set_back(session, done))?;
        }
        let first = reservation_of_group(self.first());
        let (was, undo) = match first.filter(|_| self.reserved().all(|reserved| reserved == first)) {
            Some((before, was)) => (format!(", was {before}{}", words(was)), self.set_again((before, was))),
            None => (String::new(), format!("xqos release --group {}", self.typed())),
        };
        Ok(format!("reserved {wanted}{} for {self}{was}; undo: {undo}", words(kind)))
    }

    /// Restores the previous reservations of the first `count` groups.
    fn set_back(&self, session: &Session, count: usize) {
        for (clients, reserved) in self.groups.iter().zip(self.reserved()).take(count) {
            let client = Subject::Group(clients[0].client);
            // If the client has just disconnected, there is nothing to restore.
            let _ = match reserved {
                Some((before, kind)) => {
                    let before = Setting::reservation(before.budget.0, before.period.0, kind);
                    session.control.set(client, before)
                }
                None => session.control.clear(client, SettingKind::Reservation),
            };
        }
    }

    /// Releases all reservations of these groups. Returns a description and how to undo it.
    pub fn release(&self, session: &Session) -> Result<Option<String>> {
        let mut released = None;
        for (clients, reserved) in self.groups.iter().zip(self.reserved()) {
            let Some(before) = reserved else { continue };
            let done = session.control.clear(Subject::Group(clients[0].client), SettingKind::Reservation);
            done.map_err(|error| session.explained(error, &clients[0]))?;
            released = Some(before);
        }
        let reserved: Vec<Reserved> = self.reserved().flatten().collect();
        Ok(released.map(|before| match reserved.iter().all(|reserved| *reserved == before) {
            true => format!("released {}{} of {self}; undo: {}", before.0, words(before.1), self.set_again(before)),
            // One name stands for all groups, so a command cannot restore different reservations.
            false => format!("released the reservations of {self}; they differed, so no command can undo this"),
        }))
    }

    fn set_again(&self, (reservation, kind): Reserved) -> String {
        format!("xqos reserve --group {} {}{}", self.typed(), reservation.typed(), options(kind))
    }

    /// The name, quoted for a shell.
    fn typed(&self) -> String {
        let name = printable(self.first().group_name.as_str());
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_.:@".contains(letter);
        if name.chars().all(is_plain) { name } else { format!("'{}'", name.replace('\'', "'\\''")) }
    }
}

impl std::fmt::Display for Groups {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = printable(self.first().group_name.as_str());
        let clients: usize = self.groups.iter().map(Vec::len).sum();
        match (self.groups.len(), clients) {
            (1, 1) => write!(out, "the group {name} ({})", described(self.first())),
            (1, count) => write!(out, "the group {name} ({count} clients)"),
            (groups, count) => write!(out, "each of {groups} groups {name} ({count} clients)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::{Label, entry_flag};

    fn group(name: &str, clients: usize) -> Groups {
        let (group_name, name) = (Label::new(name), "mpv".to_owned());
        let entry = ClientEntry { client: 0x40_0000, pid: 7, group: 1, group_name, name, ..ClientEntry::default() };
        Groups { groups: vec![vec![entry; clients]] }
    }

    #[test]
    fn groups_are_named_for_people_and_for_a_shell() {
        assert_eq!(group("players", 3).to_string(), "the group players (3 clients)");
        assert_eq!(group("mpv", 1).to_string(), "the group mpv (mpv (pid 7, client 0x400000))");
        let three = Groups { groups: vec![group("mpv", 1).groups[0].clone(); 3] };
        assert_eq!(three.to_string(), "each of 3 groups mpv (3 clients)");
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
        assert_eq!(reservation_of_group(&reserved), Some(("3ms/10ms".parse().unwrap(), ReservationKind::Hard)));
        assert_eq!(reservation_of_group(&ClientEntry::default()), None);
    }
}
