// SPDX-License-Identifier: MIT
//! Tests of settings: origins, leases, groups, and limits per user.

use super::mock::{MS, Server, base};
use super::{clients, keep_busy, reserve, server};
use crate::mechanism::requests::Refused;
use xqos_abi::{
    ByteOrder, ClientEntry, ClientList, Grouping, Label, Request, Setting, SettingKind, Subject, entry_flag,
};
use xqos_core::{ClientId, PolicyKind, ReservationKind, Time};

fn entry(server: &mut Server, id: ClientId) -> ClientEntry {
    let reply = server.ask(id, Request::ListClients).unwrap().unwrap();
    let clients = ClientList::decode(&reply, ByteOrder::NATIVE).unwrap().clients;
    clients.into_iter().find(|entry| entry.client == base(id)).unwrap()
}

fn lease(name: &str) -> Request {
    Request::SetOrigin { name: Label::new(name), lease: true }
}

fn all_of(id: ClientId) -> [Request; 5] {
    let client = base(id);
    [
        Subject::Client(client).set(Setting::reservation(1000, 10_000, ReservationKind::Hard)),
        Subject::Client(client).set(Setting::Weight(300)),
        Subject::Client(client).set(Setting::Priority(7)),
        Subject::Client(client).set(Setting::Group(Label::new("players"))),
        Subject::Group(client).set(Setting::Weight(50)),
    ]
}

#[test]
fn leased_settings_end_with_the_connection_and_manual_ones_stay() {
    let mut server = server(PolicyKind::Fair);
    let [daemon, hand, player, other] = clients(&mut server);
    server.ask(daemon, lease("rule players")).unwrap();
    for request in all_of(player) {
        assert_eq!(server.ask(daemon, request), Ok(None), "{request:?}");
    }
    reserve(&mut server, other, 2, 20, false);
    assert_eq!(server.ask(hand, Subject::Client(base(other)).set(Setting::Weight(50))), Ok(None));
    let held = entry(&mut server, player);
    assert_eq!((held.reservation_origin.as_str(), held.settings_origin.as_str()), ("rule players", "rule players"));
    assert_eq!((held.group_name.as_str(), held.group_weight, held.weight), ("players", 50, 300));
    server.disconnect(daemon);
    let left = entry(&mut server, player);
    assert_eq!((left.period_us, left.weight, left.fixed_priority, left.group_weight), (0, 100, 0, 0));
    assert_eq!((left.group_name.as_str(), left.settings_origin.as_str()), ("program3", ""));
    let stays = entry(&mut server, other);
    assert_eq!((stays.period_us, stays.weight, stays.settings_origin.as_str()), (20_000, 50, "hand"));
    assert_eq!(stays.reservation_origin.as_str(), "itself");
}

/// The daemon behaves as if stopped by SIGSTOP: it is silent, but its connection stays open.
#[test]
fn leased_settings_outlast_a_silent_minute_and_end_with_the_connection() {
    let mut server = server(PolicyKind::Fair);
    let [daemon, hand, player, other] = clients(&mut server);
    server.ask(daemon, lease("rule players")).unwrap();
    for request in all_of(player) {
        assert_eq!(server.ask(daemon, request), Ok(None), "{request:?}");
    }
    for ms in (0..60_000).step_by(1000) {
        keep_busy(&mut server, other, 500);
        server.run_until(Time((ms + 1000) * MS));
    }
    assert_eq!(server.ask(hand, Subject::Client(base(player)).set(Setting::Priority(9))), Ok(None));
    let held = entry(&mut server, player);
    assert_eq!((held.period_us, held.weight, held.fixed_priority), (10_000, 300, 9), "it may be changed manually");
    // The daemon resumes and has the same rights as before.
    assert_eq!(server.ask(daemon, Subject::Client(base(player)).set(Setting::Weight(400))), Ok(None));
    assert_eq!(
        server.ask(daemon, Subject::Client(base(player)).set(Setting::Priority(7))),
        Err(Refused::Access(base(player)))
    );
    server.disconnect(daemon);
    let left = entry(&mut server, player);
    assert_eq!((left.period_us, left.weight, left.fixed_priority), (0, 100, 9));
}

#[test]
fn a_lease_neither_replaces_nor_ends_settings_made_manually_or_by_the_program() {
    let mut server = server(PolicyKind::Fair);
    let [daemon, hand, player] = clients(&mut server);
    reserve(&mut server, player, 2, 20, false);
    server.ask(hand, Subject::Client(base(player)).set(Setting::Weight(50))).unwrap();
    server.ask(daemon, lease("rule players")).unwrap();
    let [reservation, weight, priority, ..] = all_of(player);
    let refused = Err(Refused::Access(base(player)));
    assert_eq!(server.ask(daemon, reservation), refused);
    assert_eq!(server.ask(daemon, weight), refused);
    assert_eq!(server.ask(daemon, Subject::Client(base(player)).clear(SettingKind::Reservation)), refused);
    assert_eq!(server.ask(daemon, priority), Ok(None));
    assert_eq!(server.ask(hand, priority), Ok(None), "a manual setting replaces a lease");
    server.disconnect(daemon);
    let stays = entry(&mut server, player);
    assert_eq!((stays.period_us, stays.weight, stays.fixed_priority), (20_000, 50, 7));
    // Once a manual setting is undone manually, a lease may make the setting again.
    let daemon = server.connect(1000);
    server.ask(daemon, lease("rule players")).unwrap();
    server.ask(hand, Subject::Client(base(player)).set(Setting::Weight(100))).unwrap();
    assert_eq!(server.ask(daemon, weight), Ok(None));
}

#[test]
fn clients_of_a_user_share_as_one_if_grouped_by_user() {
    let mut server = server(PolicyKind::Fair);
    let root = server.connect(0);
    let [first, second] = [1, 2].map(|_| server.connect(1000));
    let alone = server.connect(1001);
    let grouping = Subject::Server.set(Setting::Grouping(Grouping::User));
    assert_eq!(server.ask(first, grouping), Err(Refused::Access(0)));
    assert_eq!(server.ask(root, grouping), Ok(None));
    for id in [first, second, alone] {
        keep_busy(&mut server, id, 1000);
    }
    server.run_until(Time(400 * MS));
    let time = |id| server.time_of(id, Time(0), Time(400 * MS)) as f64;
    let of_user = time(first) + time(second);
    assert!((of_user / time(alone) - 1.0).abs() < 0.1, "{of_user} compared with {}", time(alone));
    assert!((time(first) / time(second) - 1.0).abs() < 0.2);
    assert_eq!(entry(&mut server, first).group_name.as_str(), "user 1000");
}

#[test]
fn a_capped_group_is_held_back_and_continues_when_the_lease_ends() {
    let mut server = server(PolicyKind::Fair);
    let [daemon, capped, other] = clients(&mut server);
    server.ask(daemon, lease("rule unwatched")).unwrap();
    let cap = |ppm| Subject::Group(base(capped)).set(Setting::Cap(ppm));
    assert_eq!(server.ask(daemon, cap(100_000)), Ok(None));
    assert_eq!(server.ask(daemon, cap(1)), Err(Refused::Value(1)));
    assert_eq!(entry(&mut server, capped).group_cap_ppm, 100_000);
    for id in [capped, other] {
        keep_busy(&mut server, id, 2000);
    }
    server.run_until(Time(1000 * MS));
    let got = server.time_of(capped, Time(0), Time(1000 * MS));
    assert!(got.abs_diff(100 * MS) <= 12 * MS, "{got} ns of 100 ms");
    server.disconnect(daemon);
    server.run_until(Time(1400 * MS));
    let got = server.time_of(capped, Time(1010 * MS), Time(1400 * MS));
    assert!(got >= 190 * MS, "{got} ns of 195 ms, once the cap has ended");
}

#[test]
fn the_sum_of_a_users_reservations_is_limited() {
    let mut server = server(PolicyKind::Fair);
    let root = server.connect(0);
    let [first, second, other] = [1000, 1000, 1001].map(|uid| server.connect(uid));
    server.ask(root, Subject::Server.set(Setting::UserLimit(300_000))).unwrap();
    let reservation =
        |budget_us| Subject::Client(0).set(Setting::reservation(budget_us, 10_000, ReservationKind::Soft));
    assert_eq!(server.ask(first, reservation(2000)), Ok(None));
    assert_eq!(server.ask(second, reservation(2000)), Err(Refused::Admission(base(second))));
    assert_eq!(server.ask(second, reservation(1000)), Ok(None));
    assert_eq!(server.ask(first, reservation(2000)), Ok(None), "it replaces the current one");
    assert_eq!(server.ask(other, reservation(3000)), Ok(None));
    assert_eq!(server.ask(root, reservation(2500)), Ok(None));
}

#[test]
fn a_leased_user_limit_ends_with_its_connection_and_never_replaces_a_manual_one() {
    let mut server = server(PolicyKind::Fair);
    let [root, daemon] = [server.connect(0), server.connect(0)];
    let user = server.connect(1000);
    let limit = |ppm| Subject::Server.set(Setting::UserLimit(ppm));
    let reservation =
        |budget_us| Subject::Client(0).set(Setting::reservation(budget_us, 10_000, ReservationKind::Soft));
    server.ask(daemon, lease("rules")).unwrap();
    assert_eq!(server.ask(daemon, limit(200_000)), Ok(None));
    assert_eq!(server.ask(user, reservation(3000)), Err(Refused::Admission(base(user))));
    server.disconnect(daemon);
    assert_eq!(server.ask(user, reservation(3000)), Ok(None));
    let daemon = server.connect(0);
    server.ask(daemon, lease("rules")).unwrap();
    server.ask(root, limit(400_000)).unwrap();
    assert_eq!(server.ask(daemon, limit(200_000)), Err(Refused::Access(0)));
    server.disconnect(daemon);
    assert_eq!(server.ask(user, reservation(5000)), Err(Refused::Admission(base(user))));
    // A user limit that already has the wanted value keeps its origin.
    let daemon = server.connect(0);
    server.ask(daemon, lease("rules")).unwrap();
    assert_eq!(server.ask(daemon, limit(400_000)), Ok(None));
    server.disconnect(daemon);
    assert_eq!(server.ask(user, reservation(5000)), Err(Refused::Admission(base(user))));
    // Without a limit set manually, a leased one is accepted.
    let daemon = server.connect(0);
    server.ask(daemon, lease("rules")).unwrap();
    server.ask(root, limit(0)).unwrap();
    assert_eq!(server.ask(daemon, limit(200_000)), Ok(None));
}

#[test]
fn a_reserved_group_name_overrides_the_grouping_of_one_client() {
    let mut server = server(PolicyKind::Fair);
    let [daemon, client] = clients(&mut server);
    let group = |name: &str| Subject::Client(base(client)).set(Setting::Group(Label::new(name)));
    server.ask(daemon, lease("rule users")).unwrap();
    assert_eq!(server.ask(daemon, group(":user")), Ok(None));
    assert_eq!(entry(&mut server, client).group_name.as_str(), "user 1000");
    assert_eq!(server.ask(daemon, group(":none")), Ok(None));
    assert_eq!(entry(&mut server, client).group, 0);
    assert_eq!(server.ask(daemon, group(":nobody")), Err(Refused::Value(base(client))));
    server.disconnect(daemon);
    assert_eq!(entry(&mut server, client).group_name.as_str(), "program2");
}

fn reserve_group(client: ClientId, budget_us: u32, hard: bool) -> Request {
    Subject::Group(base(client)).set(Setting::reservation(budget_us, 20_000, hard))
}

#[test]
fn a_hard_group_shares_its_budget_and_continues_when_released() {
    let mut server = server(PolicyKind::Fair);
    let [hand, first, second, other] = clients(&mut server);
    for id in [first, second] {
        server.ask(hand, Subject::Client(base(id)).set(Setting::Group(Label::new("players")))).unwrap();
    }
    assert_eq!(server.ask(hand, reserve_group(first, 6000, true)), Ok(None));
    let seen = entry(&mut server, second);
    assert_eq!((seen.group_budget_us, seen.group_period_us), (6000, 20_000));
    assert!(seen.flags & entry_flag::GROUP_HARD != 0 && seen.flags & entry_flag::RESERVED == 0);
    for id in [first, second, other] {
        keep_busy(&mut server, id, 1000);
    }
    server.run_until(Time(1000 * MS));
    let got = [first, second].map(|id| server.time_of(id, Time(0), Time(1000 * MS)));
    assert!((got[0] + got[1]).abs_diff(300 * MS) <= 15 * MS, "{got:?} of 300 ms");
    assert!(got[0].abs_diff(got[1]) <= 15 * MS, "{got:?}");
    assert_eq!(server.ask(hand, Subject::Group(base(second)).clear(SettingKind::Reservation)), Ok(None));
    assert_eq!(entry(&mut server, first).group_period_us, 0);
    server.run_until(Time(1400 * MS));
    let got = server.time_of(first, Time(1010 * MS), Time(1400 * MS));
    assert!(got >= 90 * MS, "{got} ns of 97 ms, a quarter, once it is released");
}

#[test]
fn the_reservation_of_a_group_ends_with_its_lease_or_its_last_client() {
    let mut server = server(PolicyKind::Fair);
    let [daemon, hand, player, other] = clients(&mut server);
    server.ask(daemon, lease("rule players")).unwrap();
    assert_eq!(server.ask(daemon, reserve_group(player, 2000, false)), Ok(None));
    assert_eq!(server.ask(hand, reserve_group(other, 2000, false)), Ok(None));
    assert_eq!(server.ask(daemon, reserve_group(other, 4000, false)), Err(Refused::Access(base(other))));
    assert_eq!(server.engine().scheduler.admitted_utilization_ppm(), 200_000);
    server.disconnect(daemon);
    assert_eq!((entry(&mut server, player).group_period_us, entry(&mut server, other).group_period_us), (0, 20_000));
    server.disconnect(other);
    assert_eq!(server.engine().scheduler.admitted_utilization_ppm(), 0);
}

#[test]
fn group_reservations_are_refused_like_those_of_clients() {
    let mut server = server(PolicyKind::Fair);
    let root = server.connect(0);
    let [first, second] = [1000, 1000].map(|uid| server.connect(uid));
    assert_eq!(server.ask(first, reserve_group(first, 19_000, false)), Err(Refused::Admission(base(first))));
    assert_eq!(server.ask(first, reserve_group(first, 30_000, false)), Err(Refused::Value(30_000)));
    server.ask(root, Subject::Server.set(Setting::Grouping(Grouping::None))).unwrap();
    server.ask(root, Subject::Server.set(Setting::UserLimit(300_000))).unwrap();
    assert_eq!(server.ask(first, reserve_group(first, 2000, false)), Err(Refused::Value(base(first))), "no group");
    for id in [first, second] {
        server.ask(id, Subject::Client(0).set(Setting::Group(Label::new("players")))).unwrap();
    }
    assert_eq!(server.ask(first, reserve_group(first, 4000, false)), Ok(None));
    assert_eq!(server.ask(second, reserve_group(second, 5000, false)), Ok(None), "it replaces the current one");
    let own = Subject::Client(0).set(Setting::reservation(2000, 20_000, ReservationKind::Soft));
    assert_eq!(server.ask(first, own), Err(Refused::Admission(base(first))), "0.25 + 0.1 of the user's 0.3");
}

#[test]
fn a_new_group_does_not_pay_what_an_ended_one_has_used() {
    let mut server = server(PolicyKind::Fair);
    let reserve = Subject::Group(0).set(Setting::reservation(1000, 1_000_000, ReservationKind::Hard));
    let [first] = clients(&mut server);
    server.ask(first, reserve).unwrap();
    server.send(first, 1, 5 * MS);
    server.run_until(Time(10 * MS));
    assert!(server.host().is_held(first), "it has used more than its budget");
    server.disconnect(first);
    let [second] = clients(&mut server);
    server.ask(second, reserve).unwrap();
    assert!(!server.host().is_held(second));
}

#[test]
fn a_group_keeps_its_settings_while_its_only_client_stays_in_it() {
    let mut server = server(PolicyKind::Fair);
    let ([client], root) = (clients(&mut server), server.connect(0));
    let enter = Subject::Client(base(client)).set(Setting::Group(Label::new("players")));
    let of_group = |setting| Subject::Group(base(client)).set(setting);
    let reservation = Setting::reservation(1000, 10_000, ReservationKind::Soft);
    for request in [enter, of_group(Setting::Weight(50)), of_group(Setting::Cap(200_000)), of_group(reservation)] {
        server.ask(client, request).unwrap();
    }
    for request in [enter, Subject::Server.set(Setting::Grouping(Grouping::User))] {
        server.ask(root, request).unwrap();
        let entry = entry(&mut server, client);
        assert_eq!((entry.group_weight, entry.group_cap_ppm, entry.group_period_us), (50, 200_000, 10_000));
    }
    server.ask(root, Subject::Client(base(client)).clear(SettingKind::Group)).unwrap();
    server.ask(root, enter).unwrap();
    let entry = entry(&mut server, client);
    assert_eq!((entry.group_weight, entry.group_cap_ppm, entry.group_period_us), (0, 0, 0), "a new group");
}
