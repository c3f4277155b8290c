// SPDX-License-Identifier: MIT
//! Names, flags and sums for the fields of replies and events.

use crate::protocol::{ClientEntry, Grouping, NotifyKind, ReservationReport, entry_flag, event_mask, reservation_flag};
use crate::wire::{Word, cut_to};
use xqos_core::ReservationKind;

/// The common name of all clients on other machines.
const REMOTE: &str = "(remote)";
const NAME_BYTES: usize = 32;

/// Truncates a program's name at a character boundary to the length in the server's lists.
pub fn cut(name: &str) -> &str {
    cut_to(name, NAME_BYTES - 1)
}

/// The flag for a kind of reservation; 0 for soft.
pub fn flag_of(kind: ReservationKind) -> u32 {
    match kind {
        ReservationKind::Soft => 0,
        ReservationKind::Hard => reservation_flag::HARD,
        ReservationKind::SoftPaper => reservation_flag::SOFT_PAPER,
    }
}

impl Word for ReservationKind {
    fn word(self) -> u32 {
        flag_of(self)
    }

    /// The kind with exactly these flags.
    fn from_word(flags: u32) -> Option<ReservationKind> {
        ReservationKind::ALL.into_iter().find(|&kind| flag_of(kind) == flags)
    }
}

impl ReservationReport {
    pub fn kind(&self) -> ReservationKind {
        ReservationKind::from_word(self.flags & !reservation_flag::HELD_BACK).unwrap_or_default()
    }
}

impl ClientEntry {
    pub fn kind(&self) -> ReservationKind {
        self.kind_by(entry_flag::HARD, entry_flag::SOFT_PAPER)
    }

    pub fn group_kind(&self) -> ReservationKind {
        self.kind_by(entry_flag::GROUP_HARD, entry_flag::GROUP_SOFT_PAPER)
    }

    fn kind_by(&self, hard: u32, paper: u32) -> ReservationKind {
        if self.flags & paper != 0 { ReservationKind::SoftPaper } else { (self.flags & hard != 0).into() }
    }

    /// The user and the program under which its figures are summed up after it disconnects. Empty if unknown.
    pub fn program(&self) -> (u32, &str) {
        match (self.name.as_str(), self.host.as_str()) {
            ("", "") => (u32::MAX, ""),
            ("", _) => (u32::MAX, REMOTE),
            (name, _) => (self.uid, name),
        }
    }

    /// The client as an entry in a list of departed clients. The entry counts one client.
    pub fn departed(&self) -> ClientEntry {
        let (uid, name) = self.program();
        let (connected_ns, name) = (self.connected_ns, name.to_owned());
        let mut sum = ClientEntry { uid, name, connected_ns, ..ClientEntry::default() };
        sum.absorb(self);
        sum.client = 1;
        sum
    }

    /// Adds the figures of another client. In a list of departed clients, the field `client` is the number of clients.
    pub fn absorb(&mut self, other: &ClientEntry) {
        macro_rules! add {
            ($($field:ident)*) => {$(self.$field = self.$field.saturating_add(other.$field);)*};
        }
        add!(client server_time_ns reserved_time_ns charged_ns requests slices waited_ns grabbed_ns);
        add!(grabs long_grabs depletions misses cuts);
        for (sum, count) in self.waits.iter_mut().zip(other.waits) {
            *sum = sum.wrapping_add(count);
        }
        self.longest_wait_ns = self.longest_wait_ns.max(other.longest_wait_ns);
        self.longest_part_us = self.longest_part_us.max(other.longest_part_us);
        if other.longest_request_ns > self.longest_request_ns {
            (self.longest_request_ns, self.longest_request) = (other.longest_request_ns, other.longest_request);
        }
    }
}

impl Grouping {
    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Grouping::None => "none",
            Grouping::Application => "app",
            Grouping::User => "user",
        }
    }

    pub fn from_name(name: &str) -> Option<Grouping> {
        Self::ALL.into_iter().find(|grouping| grouping.name() == name)
    }
}

impl NotifyKind {
    /// The bit of SelectEvents that selects this event.
    pub fn mask(self) -> u32 {
        match self {
            NotifyKind::ClientConnected | NotifyKind::ClientGone => event_mask::CLIENTS,
            NotifyKind::ReservationSet | NotifyKind::ReservationCleared => event_mask::RESERVATIONS,
            NotifyKind::Depleted => event_mask::DEPLETIONS,
            NotifyKind::Missed => event_mask::MISSES,
            NotifyKind::Exposing | NotifyKind::Answered | NotifyKind::Input => event_mask::EXPOSES,
            NotifyKind::Settings => event_mask::SETTINGS,
        }
    }
}

#[cfg(test)]
mod tests;
