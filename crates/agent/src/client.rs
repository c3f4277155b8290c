// SPDX-License-Identifier: MIT
//! A client as the server lists it, in words for people.

use xqos_abi::{ClientEntry, Label, entry_flag, us};
use xqos_cli::quantity::{Micros, Reservation, SoftRule, Weight};
use xqos_core::{ReservationKind, Role};
use xqos_trace::show::role_name;

/// A client in a sentence: "mpv (pid 123, client 0x1c00000)".
pub fn described(entry: &ClientEntry) -> String {
    let client = format!("client {:#x}", entry.client);
    match (entry.name.as_str(), entry.pid) {
        ("", 0) => client,
        ("", pid) => format!("pid {pid} ({client})"),
        (name, 0) => format!("{} ({client})", printable(name)),
        (name, pid) => format!("{} (pid {pid}, {client})", printable(name)),
    }
}

/// A connection: the resource base is given to another client later, but not at the same instant.
pub type Connection = (u32, u64);

pub fn connection(entry: &ClientEntry) -> Connection {
    (entry.client, entry.connected_ns)
}

/// A program may call itself anything; a terminal is to see none of its control characters.
pub fn printable(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// The reservation of a client, if it has one, and of which kind it is.
pub fn reservation_of(entry: &ClientEntry) -> Option<(Reservation, ReservationKind)> {
    (entry.flags & entry_flag::RESERVED != 0).then(|| {
        let reservation = Reservation { budget: Micros(entry.budget_us), period: Micros(entry.period_us) };
        (reservation, entry.kind())
    })
}

/// The reservation that a client's group has, and of which kind it is.
pub fn reservation_of_group(entry: &ClientEntry) -> Option<(Reservation, ReservationKind)> {
    (entry.group_period_us != 0).then(|| {
        let (budget, period) = (Micros(entry.group_budget_us), Micros(entry.group_period_us));
        (Reservation { budget, period }, entry.group_kind())
    })
}

/// What stands after a reservation in a sentence or a table.
pub fn words(kind: ReservationKind) -> &'static str {
    match kind {
        ReservationKind::Soft => "",
        ReservationKind::Hard => " hard",
        ReservationKind::SoftPaper => " soft=paper",
    }
}

/// How soft it is; `None`: hard.
pub fn soft_rule(kind: ReservationKind) -> Option<&'static str> {
    SoftRule::of(kind).map(SoftRule::name)
}

/// The command that gives a setting back to the rules, where one of them has made it.
pub fn back_to_rules(entry: &ClientEntry, origin: &Label, setting: &str) -> Option<String> {
    let is_by_rule = origin.as_str().starts_with("rule ");
    is_by_rule.then(|| format!("xqos rules adopt --client {:#x} --only {setting}", entry.client))
}

/// What a client does for others, in words; `None`: nothing.
pub fn role_of(entry: &ClientEntry) -> Option<&'static str> {
    let has = |flag: u32| entry.flags & flag != 0;
    role_name(Role { compositor: has(entry_flag::COMPOSITOR), window_manager: has(entry_flag::WINDOW_MANAGER) })
}

/// A reservation of the scheduler, in whole microseconds, rounded down.
pub fn in_us(budget_ns: u64, period_ns: u64) -> Reservation {
    let [budget, period] = [budget_ns, period_ns].map(|ns| Micros(us(ns)));
    Reservation { budget, period }
}

/// The same as the scheduler has it.
pub fn in_ns(Reservation { budget, period }: Reservation, kind: ReservationKind) -> xqos_core::Reservation {
    xqos_core::Reservation { budget_ns: budget.ns(), period_ns: period.ns(), kind }
}

/// The weight of a client.
pub fn weight_of(entry: &ClientEntry) -> Weight {
    Weight(entry.weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_cross_the_border_as_they_are() {
        let reservation: Reservation = "2.24ms/41.667ms".parse().unwrap();
        let there = in_ns(reservation, false.into());
        assert_eq!(in_us(there.budget_ns, there.period_ns), reservation);
    }

    #[test]
    fn clients_are_named_by_what_is_known() {
        let entry = |name: &str, pid| ClientEntry { client: 0x40_0000, name: name.into(), pid, ..Default::default() };
        assert_eq!(described(&entry("mpv", 12)), "mpv (pid 12, client 0x400000)");
        assert_eq!(described(&entry("", 0)), "client 0x400000");
        assert_eq!(described(&entry("", 9)), "pid 9 (client 0x400000)");
        assert_eq!(described(&entry("\x1b[2Jx", 9)), "?[2Jx (pid 9, client 0x400000)");
    }
}
