// SPDX-License-Identifier: MIT
//! Clients and groups for which a command makes or releases reservations.

use crate::client::{adopt_command, described, options, reservation_of, reservation_of_group, words};
use crate::error::{Result, refused};
use crate::host::shell_word;
use crate::session::{Account, Session};
use std::collections::BTreeMap;
use xqos_abi::{ClientEntry, Setting, SettingKind, Subject};
use xqos_core::ReservationKind;
use xqos_text::escape::printable;
use xqos_text::quantity::Reservation;

/// A client, or all groups of one name. Two processes of one program, for example, may be two groups with the same
/// name: a command applies to both, and reports them together.
#[derive(Clone, Debug)]
pub struct Holder {
    is_group: bool,
    /// The clients of each account, a client or a group; at least one account with at least one client.
    accounts: Vec<Vec<ClientEntry>>,
}

type Reserved = (Reservation, ReservationKind);

pub fn all(session: &Session) -> Result<Vec<Holder>> {
    Ok(session.others()?.into_iter().map(Holder::of_client).chain(groups(session)?).collect())
}

/// All groups that have clients, by name.
fn groups(session: &Session) -> Result<Vec<Holder>> {
    let mut by_name: BTreeMap<String, BTreeMap<u32, Vec<ClientEntry>>> = BTreeMap::new();
    for entry in session.others()?.into_iter().filter(|entry| entry.group != 0) {
        let groups = by_name.entry(entry.group_name.to_string()).or_default();
        groups.entry(entry.group).or_default().push(entry);
    }
    let holder =
        |groups: BTreeMap<u32, Vec<ClientEntry>>| Holder { is_group: true, accounts: groups.into_values().collect() };
    Ok(by_name.into_values().map(holder).collect())
}

impl Holder {
    /// The groups of this name.
    pub fn of_group(session: &Session, name: &str) -> Result<Holder> {
        let found = groups(session)?.into_iter().find(|holder| holder.first().group_name.as_str() == name);
        found.ok_or_else(|| {
            refused!(
                "no client of the X server {} is in a group {name}: `xqos list` shows them in the column GROUP",
                session.display
            )
        })
    }

    pub fn of_client(entry: ClientEntry) -> Holder {
        Holder { is_group: false, accounts: vec![vec![entry]] }
    }

    fn first(&self) -> &ClientEntry {
        &self.accounts[0][0]
    }

    fn subject(&self, clients: &[ClientEntry]) -> Subject {
        let client = clients[0].client;
        if self.is_group { Subject::Group(client) } else { Subject::Client(client) }
    }

    /// The reservation of each account.
    fn reserved(&self) -> impl Iterator<Item = Option<Reserved>> + '_ {
        let of = if self.is_group { reservation_of_group } else { reservation_of };
        self.accounts.iter().map(move |clients| of(&clients[0]))
    }

    /// Makes a reservation for each account, or for none if one is refused. Returns a description and how to undo it.
    pub fn reserve(&self, session: &Session, wanted: Reservation, kind: ReservationKind) -> Result<String> {
        for (done, clients) in self.accounts.iter().enumerate() {
            let account = Account { subject: self.subject(clients), name: self.to_string(), clients };
            session.reserve(&account, wanted, kind).inspect_err(|_| self.set_back(session, done))?;
        }
        Ok(self.reserve_text(wanted, kind))
    }

    fn reserve_text(&self, wanted: Reservation, kind: ReservationKind) -> String {
        let first = self.reserved().next().flatten();
        let (was, undo) = match first.filter(|_| self.reserved().all(|reserved| reserved == first)) {
            Some(before) => (format!(", was {}{}", before.0, words(before.1)), self.reserve_again(before)),
            None => (String::new(), format!("xqos release {}", self.option())),
        };
        format!("reserved {wanted}{} for {self}{was}; undo: {undo}", words(kind))
    }

    /// Restores the previous reservations of the first `count` accounts.
    fn set_back(&self, session: &Session, count: usize) {
        for (clients, reserved) in self.accounts.iter().zip(self.reserved()).take(count) {
            let subject = self.subject(clients);
            // If the client has just disconnected, there is nothing to restore.
            let _ = match reserved {
                Some((Reservation { budget, period }, kind)) => {
                    session.control.set(subject, Setting::reservation(budget.0, period.0, kind))
                }
                None => session.control.clear(subject, SettingKind::Reservation),
            };
        }
    }

    /// Releases all reservations. Returns a description and how to undo it; `None` if there is no reservation.
    pub fn release(&self, session: &Session) -> Result<Option<String>> {
        for (clients, _) in self.accounts.iter().zip(self.reserved()).filter(|(_, reserved)| reserved.is_some()) {
            let done = session.control.clear(self.subject(clients), SettingKind::Reservation);
            done.map_err(|error| session.explained(error, &clients[0]))?;
        }
        Ok(self.release_text())
    }

    fn release_text(&self) -> Option<String> {
        let mut reserved = self.reserved().flatten();
        let before = reserved.next()?;
        Some(match reserved.all(|other| other == before) {
            true => format!("released {}{} of {self}; undo: {}", before.0, words(before.1), self.reserve_again(before)),
            // One name stands for all groups, so a command cannot restore different reservations.
            false => format!("released the reservations of {self}; they differed, so no command can undo this"),
        })
    }

    /// The command that restores this reservation: `reserve`, or `rules adopt` if a rule made it.
    pub fn reserve_again(&self, (reservation, kind): Reserved) -> String {
        let by_rule = || adopt_command(self.first(), &self.first().reservation_origin, "reserve");
        let typed = || format!("xqos reserve {} {}{}", self.option(), reservation.typed(), options(kind));
        (!self.is_group).then(by_rule).flatten().unwrap_or_else(typed)
    }

    fn option(&self) -> String {
        let entry = self.first();
        match self.is_group {
            true => format!("--group {}", shell_word(&printable(entry.group_name.as_str()))),
            false => format!("--client {:#x}", entry.client),
        }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = printable(self.first().group_name.as_str());
        let clients: usize = self.accounts.iter().map(Vec::len).sum();
        match (self.accounts.len(), clients) {
            _ if !self.is_group => out.write_str(&described(self.first())),
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

    fn group(name: &str, clients: usize) -> Holder {
        let (group_name, name) = (Label::new(name), "mpv".to_owned());
        let entry = ClientEntry { client: 0x40_0000, pid: 7, group: 1, group_name, name, ..ClientEntry::default() };
        Holder { is_group: true, accounts: vec![vec![entry; clients]] }
    }

    #[test]
    fn groups_are_named_for_people_and_for_a_shell() {
        assert_eq!(group("players", 3).to_string(), "the group players (3 clients)");
        assert_eq!(group("mpv", 1).to_string(), "the group mpv (mpv (pid 7, client 0x400000))");
        let three = Holder { is_group: true, accounts: vec![group("mpv", 1).accounts[0].clone(); 3] };
        assert_eq!(three.to_string(), "each of 3 groups mpv (3 clients)");
        assert_eq!(group("gnome-firefox-77", 1).option(), "--group gnome-firefox-77");
        assert_eq!(group("user 1000", 1).option(), "--group 'user 1000'");
        assert_eq!(group("it's", 1).option(), "--group 'it'\\''s'");
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

    fn mpv(flags: u32) -> Holder {
        Holder::of_client(ClientEntry {
            client: 0x40_0000,
            pid: 7,
            name: "mpv".into(),
            flags,
            budget_us: 2000,
            period_us: 8000,
            ..Default::default()
        })
    }

    #[test]
    fn undo_restores_the_previous_reservation() {
        let wanted = "3ms/10ms".parse().unwrap();
        assert_eq!(
            mpv(0).reserve_text(wanted, ReservationKind::SoftPaper),
            "reserved 3 ms / 10 ms soft=paper for mpv (pid 7, client 0x400000); undo: xqos release --client 0x400000"
        );
        assert_eq!(
            mpv(entry_flag::RESERVED | entry_flag::HARD).reserve_text(wanted, ReservationKind::Soft),
            "reserved 3 ms / 10 ms for mpv (pid 7, client 0x400000), was 2 ms / 8 ms hard; \
             undo: xqos reserve --client 0x400000 2ms/8ms --hard"
        );
        assert_eq!(
            mpv(entry_flag::RESERVED).release_text().unwrap(),
            "released 2 ms / 8 ms of mpv (pid 7, client 0x400000); undo: xqos reserve --client 0x400000 2ms/8ms"
        );
    }
}
