// SPDX-License-Identifier: MIT
//! Each cell of the tables in docs/access.md: every kind of client sends every request to a real server.
//!
//! The tables are read from the document, so that neither can change without the other. A request that is in no row fails the
//! test as well.

mod askers;
mod connect;
mod table;

use crate::fixture::{beside_others, is_from_below, is_not_root};
use crate::wire::{Wire, code};
use askers::{Answer, Asker, Place};
use std::collections::BTreeSet;
use table::{Cell, Row, Table};
use xqos_abi::trace::Level;
use xqos_abi::{Grouping, Label, Paced, PolicyChange, REQUESTS, Request, event_mask};

/// The group in which clients of two users are.
const SHARED: &str = "shared";

/// Whom the requests of a row name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Itself,
    SameUser,
    OtherUser,
    /// Itself, in a group with somebody of another user.
    InSharedGroup,
}

impl Subject {
    fn of(row: &Row) -> Subject {
        match row.title.as_str() {
            "for itself" => Subject::Itself,
            "for another client of its user" => Subject::SameUser,
            "for a group with clients of another user" => Subject::InSharedGroup,
            _ => Subject::OtherUser,
        }
    }
}

#[test]
fn each_kind_of_client_may_do_what_the_table_says() {
    let _turn = beside_others();
    if is_not_root() {
        return;
    }
    let Some(place) = Place::start() else {
        return xqos_skip::left_out("this server has no SECURITY, or user namespaces cannot be made here");
    };
    let title = if is_from_below() { "Over the control socket" } else { "Over the extension" };
    let table = Table::read(title);
    let named: BTreeSet<&str> = table.rows.iter().flat_map(|row| &row.requests).map(String::as_str).collect();
    assert_eq!(named, REQUESTS.iter().map(|&(name, _)| name).collect(), "the table has each request");
    let mut wrong = Vec::new();
    for (at, kind) in table.kinds.iter().enumerate() {
        let mut asker = place.asker(kind);
        for row in &table.rows {
            wrong.extend(
                walk(&place, &mut asker, row, row.cells[at]).map(|what| format!("{kind}, {}: {what}", row.title)),
            );
        }
    }
    assert!(wrong.is_empty(), "the table and the server do not agree:\n{}", wrong.join("\n"));
    if is_from_below() {
        assert_room_for_root(&place);
    }
    let info = place.asker("root").server_info();
    assert!(info.armed, "stepped aside: {}", info.reason);
}

/// A server in a user namespace takes all users that have no number there for one, which they are not.
#[test]
fn users_without_a_number_in_the_servers_namespace_are_not_one() {
    let _turn = beside_others();
    if is_not_root() {
        return;
    }
    let Some(place) = Place::start_in_namespace() else {
        return xqos_skip::left_out("this server has no SECURITY, or user namespaces cannot be made here");
    };
    let (mut one, other, mut root) = (place.asker("another user"), place.stranger(), place.asker("root"));
    let weight = |client| Request::SetClientWeight { client, weight: 120 };
    let steer = Request::SetPolicy(PolicyChange::default());
    let refused = Answer::Error(code::BAD_ACCESS);
    assert_eq!([weight(other.base), steer].map(|request| one.ask(request)), [refused; 2]);
    // The control socket knows a client of one's own by its user alone.
    let own = weight(one.base().unwrap());
    assert_eq!(one.ask(own), if is_from_below() { refused } else { Answer::Done });
    assert_eq!([weight(other.base), steer].map(|request| root.ask(request)), [Answer::Done; 2]);
}

/// Sends the requests of a row. What was not answered as its cell says.
fn walk(place: &Place, asker: &mut Asker, row: &Row, cell: Cell) -> Option<String> {
    let (mut same, mut other) = (place.second_of(asker), place.stranger());
    let subject = Subject::of(row);
    let mut root = place.asker("root");
    let base = match subject {
        Subject::SameUser => same.base,
        Subject::OtherUser => other.base,
        Subject::Itself | Subject::InSharedGroup => asker.base().unwrap_or(other.base),
    };
    if subject == Subject::InSharedGroup {
        for client in [other.base, base] {
            assert_eq!(root.ask(Request::SetClientGroup { client, name: Label::new(SHARED) }), Answer::Done);
        }
    }
    let before = root.settings_of(base);
    let answers: Vec<(&str, Answer)> = (row.requests.iter())
        .map(|name| (name.as_str(), asker.ask(sample(name, base, subject == Subject::InSharedGroup))))
        .collect();
    let after = root.settings_of(base);
    [&mut same, &mut other].into_iter().for_each(Wire::sync);
    asker.undo(base, &mut root);
    if cell == Cell::Access && before != after {
        return Some(format!("changed {before:?} into {after:?}"));
    }
    let differs = |&(name, answer): &(&str, Answer)| !is_as_told(name, answer, cell);
    let wrong: Vec<_> = answers.into_iter().filter(differs).collect();
    (!wrong.is_empty()).then(|| format!("is told {cell:?}, answered {wrong:?}"))
}

fn is_as_told(name: &str, answer: Answer, cell: Cell) -> bool {
    match cell {
        // The kernel may give this server no priority to lend, which only those learn that may ask.
        Cell::Yes => answer == Answer::Done || name == "LendProcessor" && answer == Answer::Error(code::BAD_ALLOC),
        Cell::Access => answer == Answer::Error(code::BAD_ACCESS),
        Cell::Unseen => answer == Answer::Unseen,
    }
}

/// A request that is carried out where it is allowed. It names this client, where it names any.
fn sample(name: &str, client: u32, is_shared: bool) -> Request {
    let (budget_us, period_us, hard) = (200, 10_000, false);
    let group = if is_shared { Label::new(SHARED) } else { Label::new(&format!("group {client:x}")) };
    match name {
        "QueryVersion" => Request::QueryVersion { major: 1, minor: 1 },
        "GetServerInfo" => Request::GetServerInfo,
        "SetReservation" => Request::SetReservation { client, budget_us, period_us, kind: hard.into() },
        "GetReservation" => Request::GetReservation { client },
        "ClearReservation" => Request::ClearReservation { client },
        "CheckAdmission" => Request::CheckAdmission { client, budget_us, period_us, kind: hard.into() },
        "ListClients" => Request::ListClients,
        "ListDeparted" => Request::ListDeparted,
        "SetPolicy" => Request::SetPolicy(PolicyChange { slice_us: Some(4000), ..PolicyChange::default() }),
        "SetClientWeight" => Request::SetClientWeight { client, weight: 120 },
        "SetClientPriority" => Request::SetClientPriority { client, priority: 3 },
        "SelectEvents" => Request::SelectEvents { mask: event_mask::ALL },
        "StartTrace" => Request::StartTrace { level: Level::Slices, capacity: 256 },
        "StopTrace" => Request::StopTrace,
        "ListLongestRequests" => Request::ListLongestRequests,
        "LendProcessor" => Request::LendProcessor { on: false, limit_before: 0 },
        "SetPacing" => Request::SetPacing { limit_us: 0, floor_us: 50_000 },
        "GetPacing" => Request::GetPacing,
        "GetProcessor" => Request::GetProcessor,
        "SetDesktop" => Request::SetDesktop { share_ppm: 600_000 },
        "GetDesktop" => Request::GetDesktop,
        "SetOrigin" => Request::SetOrigin { name: Label::new("a test"), lease: false },
        "SetGroups" => Request::SetGroups { grouping: Grouping::Application, user_limit_ppm: 0 },
        "GetGroups" => Request::GetGroups,
        "SetClientGroup" => Request::SetClientGroup { client, name: group },
        "SetGroupWeight" => Request::SetGroupWeight { client, weight: 120 },
        "SetGroupCap" => Request::SetGroupCap { client, ppm: 900_000 },
        "SetGroupReservation" => Request::SetGroupReservation { client, budget_us, period_us, kind: hard.into() },
        "ClearGroupReservation" => Request::ClearGroupReservation { client },
        "SetClientPacing" => Request::SetClientPacing { client, paced: Paced::Never },
        _ => panic!("{name} is no request"),
    }
}

/// Who opens as many connections as there are leaves room for others.
fn assert_room_for_root(place: &Place) {
    let mut others: Vec<Asker> = (0..80).map(|_| place.asker("another user")).collect();
    let answered = others.iter_mut().filter_map(|other| other.try_ask(Request::GetServerInfo)).count();
    assert!((1..=32).contains(&answered), "{answered} connections of another user");
    assert_eq!(place.asker("root").ask(Request::GetServerInfo), Answer::Done);
}
