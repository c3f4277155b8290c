// SPDX-License-Identifier: MIT
//! Describes clients from the server's list, for users.

use xqos_abi::{ClientEntry, Label, entry_flag, us};
use xqos_core::{ReservationKind, Role};
use xqos_rules::setting::SoftRule;
use xqos_text::escape::printable;
use xqos_text::quantity::{Micros, Reservation};
use xqos_trace::show::role_name;

/// A client as part of a sentence: "mpv (pid 123, client 0x1c00000)".
pub fn described(entry: &ClientEntry) -> String {
    let client = format!("client {:#x}", entry.client);
    match (entry.name.as_str(), entry.pid) {
        ("", 0) => client,
        ("", pid) => format!("pid {pid} ({client})"),
        (name, 0) => format!("{} ({client})", printable(name)),
        (name, pid) => format!("{} (pid {pid}, {client})", printable(name)),
    }
}

/// Identifies a connection by its resource base and its start time, because a base is reused after a disconnect.
pub type ConnectionKey = (u32, u64);

pub fn connection(entry: &ClientEntry) -> ConnectionKey {
    (entry.client, entry.connected_ns)
}

pub fn reservation_of(entry: &ClientEntry) -> Option<(Reservation, ReservationKind)> {
    (entry.flags & entry_flag::RESERVED != 0).then(|| {
        let reservation = Reservation { budget: Micros(entry.budget_us), period: Micros(entry.period_us) };
        (reservation, entry.kind())
    })
}

pub fn reservation_of_group(entry: &ClientEntry) -> Option<(Reservation, ReservationKind)> {
    (entry.group_period_us != 0).then(|| {
        let (budget, period) = (Micros(entry.group_budget_us), Micros(entry.group_period_us));
        (Reservation { budget, period }, entry.group_kind())
    })
}

/// The suffix for this kind of reservation in a sentence or a table.
pub fn words(kind: ReservationKind) -> &'static str {
    match kind {
        ReservationKind::Soft => "",
        ReservationKind::Hard => " hard",
        ReservationKind::SoftPaper => " soft=paper",
    }
}

/// The command line options for this kind.
pub fn options(kind: ReservationKind) -> String {
    words(kind).replace(' ', " --")
}

/// The rule of a soft reservation; `None` if it is hard.
pub fn soft_rule(kind: ReservationKind) -> Option<&'static str> {
    SoftRule::of(kind).map(SoftRule::name)
}

/// The command that returns a setting to the rules; `None` unless a rule made the setting.
pub fn adopt_command(entry: &ClientEntry, origin: &Label, setting: &str) -> Option<String> {
    let is_by_rule = origin.as_str().starts_with("rule ");
    is_by_rule.then(|| format!("xqos rules adopt --client {:#x} --only {setting}", entry.client))
}

/// The client's role as text; `None` for an ordinary client.
pub fn role_of(entry: &ClientEntry) -> Option<&'static str> {
    let has = |flag: u32| entry.flags & flag != 0;
    role_name(Role { compositor: has(entry_flag::COMPOSITOR), window_manager: has(entry_flag::WINDOW_MANAGER) })
}

/// Converts a reservation of the scheduler to microseconds, rounded down.
pub fn in_us(budget_ns: u64, period_ns: u64) -> Reservation {
    let [budget, period] = [budget_ns, period_ns].map(|ns| Micros(us(ns)));
    Reservation { budget, period }
}

/// Converts a reservation to nanoseconds for the scheduler.
pub fn in_ns(Reservation { budget, period }: Reservation, kind: ReservationKind) -> xqos_core::Reservation {
    xqos_core::Reservation { budget_ns: budget.ns(), period_ns: period.ns(), kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_convert_to_nanoseconds_and_back() {
        let reservation: Reservation = "2.24ms/41.667ms".parse().unwrap();
        let there = in_ns(reservation, false.into());
        assert_eq!(in_us(there.budget_ns, there.period_ns), reservation);
    }

    #[test]
    fn a_description_contains_all_that_is_known() {
        let entry = |name: &str, pid| ClientEntry { client: 0x40_0000, name: name.into(), pid, ..Default::default() };
        assert_eq!(described(&entry("mpv", 12)), "mpv (pid 12, client 0x400000)");
        assert_eq!(described(&entry("", 0)), "client 0x400000");
        assert_eq!(described(&entry("", 9)), "pid 9 (client 0x400000)");
        assert_eq!(described(&entry("\x1b[2Jx", 9)), "?[2Jx (pid 9, client 0x400000)");
    }
}
