// SPDX-License-Identifier: MIT
//! Tests each cell of the tables in docs/access.md: every kind of client sends every request to a real server.
//!
//! The tables are read from the document, so the test fails if the document and the server differ. It also fails if a
//! request appears in no row.

mod askers;
mod connect;
mod table;

use crate::fixture::{fixed_blocking, in_parallel, is_not_root, uses_libc_host};
use crate::wire::{Wire, code};
use askers::{Answer, Asker, TestServer};
use std::collections::BTreeSet;
use table::{Cell, Row, Table};
use xqos_abi::trace::Level;
use xqos_abi::{
    Grouping, Label, Paced, PolicyChange, REQUESTS, Request, Setting, SettingKind, Subject, event_mask, reservation,
};

/// The group that has clients of two users.
const SHARED: &str = "shared";

type Name = fn(u32) -> Subject;

/// The words that the table uses for the subjects of settings.
const SUBJECTS: [(&str, Name); 3] =
    [("client", Subject::Client), ("group", Subject::Group), ("server", |_| Subject::Server)];

/// The client that is named in the requests of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamedClient {
    Itself,
    SameUser,
    OtherUser,
    /// The asker itself, in a group with a client of another user.
    InSharedGroup,
}

impl NamedClient {
    fn of(row: &Row) -> NamedClient {
        match row.title.as_str() {
            "for itself" => NamedClient::Itself,
            "for another client of its user" => NamedClient::SameUser,
            "for a group with clients of another user" => NamedClient::InSharedGroup,
            _ => NamedClient::OtherUser,
        }
    }
}

#[test]
fn each_kind_of_client_may_do_what_the_table_says() {
    let _turn = in_parallel();
    if is_not_root() {
        return;
    }
    let Some(server) = TestServer::start() else {
        return xqos_testkit::left_out("this server has no SECURITY, or user namespaces cannot be made here");
    };
    let title = if uses_libc_host() { "Over the control socket" } else { "Over the extension" };
    let table = Table::read(title);
    let named: BTreeSet<&str> = table.rows.iter().flat_map(|row| &row.requests).map(String::as_str).collect();
    let requests: BTreeSet<&str> = named.iter().filter_map(|name| name.split(' ').next()).collect();
    assert_eq!(requests, REQUESTS.iter().map(|&(name, _)| name).collect(), "the table has each request");
    for (word, subject) in SUBJECTS {
        let settings = SettingKind::ALL.into_iter().filter(|kind| kind.initial(subject(1)).is_some());
        let mut left_out =
            settings.map(|kind| format!("Set {word} {kind:?}")).filter(|set| !named.contains(set.as_str()));
        assert_eq!(left_out.next(), None, "the table has each setting");
    }
    // One row makes two reservations, and both must be admitted.
    assert_eq!(server.asker("root").ask(Request::SetPolicy { change: fixed_blocking() }), Answer::Done);
    let mut wrong = Vec::new();
    for (at, kind) in table.kinds.iter().enumerate() {
        let mut asker = server.asker(kind);
        for row in &table.rows {
            wrong.extend(
                walk(&server, &mut asker, row, row.cells[at]).map(|what| format!("{kind}, {}: {what}", row.title)),
            );
        }
    }
    assert!(wrong.is_empty(), "the table and the server do not agree:\n{}", wrong.join("\n"));
    if uses_libc_host() {
        assert_room_for_root(&server);
    }
    let info = server.asker("root").server_info();
    assert!(info.armed, "stepped aside: {}", info.reason);
}

/// A server in a user namespace sees one id for all users without an id there, but must still distinguish them.
#[test]
fn users_without_a_number_in_the_servers_namespace_are_distinct() {
    let _turn = in_parallel();
    if is_not_root() {
        return;
    }
    let Some(server) = TestServer::start_in_namespace() else {
        return xqos_testkit::left_out("this server has no SECURITY, or user namespaces cannot be made here");
    };
    let (mut one, other, mut root) = (server.asker("another user"), server.stranger(), server.asker("root"));
    let weight = |client| Subject::Client(client).set(Setting::Weight(120));
    let steer = Request::SetPolicy { change: PolicyChange::default() };
    let refused = Answer::Error(code::BAD_ACCESS);
    assert_eq!([weight(other.base), steer].map(|request| one.ask(request)), [refused; 2]);
    // The control socket identifies an asker only by its user, so even the asker's own client counts as another's.
    let own = weight(one.base().unwrap());
    assert_eq!(one.ask(own), if uses_libc_host() { refused } else { Answer::Done });
    assert_eq!([weight(other.base), steer].map(|request| root.ask(request)), [Answer::Done; 2]);
}

/// Sends the requests of a row. Returns a description if a result differs from its cell.
fn walk(server: &TestServer, asker: &mut Asker, row: &Row, cell: Cell) -> Option<String> {
    let (mut same, mut other) = (server.second_of(asker), server.stranger());
    let named = NamedClient::of(row);
    let mut root = server.asker("root");
    let base = match named {
        NamedClient::SameUser => same.base,
        NamedClient::OtherUser => other.base,
        NamedClient::Itself | NamedClient::InSharedGroup => asker.base().unwrap_or(other.base),
    };
    if named == NamedClient::InSharedGroup {
        for client in [other.base, base] {
            assert_eq!(root.ask(Subject::Client(client).set(Setting::Group(Label::new(SHARED)))), Answer::Done);
        }
    }
    let before = root.settings_of(base);
    let answers: Vec<(&str, Answer)> = (row.requests.iter())
        .map(|name| (name.as_str(), asker.ask(sample(name, base, named == NamedClient::InSharedGroup))))
        .collect();
    let after = root.settings_of(base);
    [&mut same, &mut other].into_iter().for_each(Wire::sync);
    asker.undo(base, &mut root);
    if cell == Cell::Access && before != after {
        return Some(format!("changed {before:?} into {after:?}"));
    }
    let differs = |&(name, answer): &(&str, Answer)| !matches_cell(name, answer, cell);
    let wrong: Vec<_> = answers.into_iter().filter(differs).collect();
    (!wrong.is_empty()).then(|| format!("expected {cell:?}, answered {wrong:?}"))
}

fn matches_cell(name: &str, answer: Answer, cell: Cell) -> bool {
    match cell {
        // The kernel may refuse this server the priority. This error occurs only if the asker has the right to lend.
        Cell::Yes => answer == Answer::Done || name == "LendProcessor" && answer == Answer::Error(code::BAD_ALLOC),
        Cell::Access => answer == Answer::Error(code::BAD_ACCESS),
        Cell::Unseen => answer == Answer::Unseen,
    }
}

/// A request that succeeds if it is allowed. If the request names a client, it names `client`.
fn sample(name: &str, client: u32, is_shared: bool) -> Request {
    if let [verb, subject, kind] = name.split(' ').collect::<Vec<_>>()[..] {
        let subject = SUBJECTS.iter().find(|(word, _)| *word == subject).expect(name).1(client);
        let kind = SettingKind::ALL.into_iter().find(|it| format!("{it:?}") == kind).expect(name);
        return if verb == "Set" { subject.set(value(kind, client, is_shared)) } else { subject.clear(kind) };
    }
    match name {
        "QueryVersion" => Request::QueryVersion { major: 1, minor: 0 },
        "GetServerInfo" => Request::GetServerInfo,
        "GetReservation" => Request::GetReservation { client },
        "CheckAdmission" => {
            let (subject, reservation) = (Subject::Client(client), reservation(200, 10_000, false));
            Request::CheckAdmission { subject, reservation }
        }
        "ListClients" => Request::ListClients,
        "ListDeparted" => Request::ListDeparted,
        "SetPolicy" => Request::SetPolicy { change: PolicyChange { slice_us: Some(4000), ..PolicyChange::default() } },
        "SelectEvents" => Request::SelectEvents { mask: event_mask::ALL },
        "StartTrace" => Request::StartTrace { level: Level::Slices, capacity: 256 },
        "StopTrace" => Request::StopTrace,
        "ListLongestRequests" => Request::ListLongestRequests,
        "LendProcessor" => Request::LendProcessor { on: false, limit_before: 0 },
        "GetPacing" => Request::GetPacing,
        "GetProcessor" => Request::GetProcessor,
        "GetDesktop" => Request::GetDesktop,
        "GetCut" => Request::GetCut,
        "MarkExposing" => Request::MarkExposing { client },
        "SetOrigin" => Request::SetOrigin { name: Label::new("a test"), lease: false },
        "GetGroups" => Request::GetGroups,
        _ => panic!("{name} is no request"),
    }
}

fn value(kind: SettingKind, client: u32, is_shared: bool) -> Setting {
    let group = if is_shared { SHARED.to_owned() } else { format!("group {client:x}") };
    match kind {
        SettingKind::Reservation => Setting::reservation(200, 10_000, false),
        SettingKind::Weight => Setting::Weight(120),
        SettingKind::Priority => Setting::Priority(3),
        SettingKind::Cap => Setting::Cap(900_000),
        SettingKind::Paced => Setting::Paced(Paced::Never),
        SettingKind::Group => Setting::Group(Label::new(&group)),
        SettingKind::Pacing => Setting::pacing(0, 50_000),
        SettingKind::Desktop => Setting::Desktop(600_000),
        SettingKind::Grouping => Setting::Grouping(Grouping::Application),
        SettingKind::UserLimit => Setting::UserLimit(0),
        SettingKind::Slice => Setting::Slice(2000),
        SettingKind::Cut => Setting::Cut(500),
    }
}

/// Checks that a user that opens as many connections as possible leaves room for others.
fn assert_room_for_root(server: &TestServer) {
    let mut others: Vec<Asker> = (0..80).map(|_| server.asker("another user")).collect();
    let answered = others.iter_mut().filter_map(|other| other.try_ask(Request::GetServerInfo)).count();
    assert!((1..=32).contains(&answered), "{answered} connections of another user");
    assert_eq!(server.asker("root").ask(Request::GetServerInfo), Answer::Done);
}
