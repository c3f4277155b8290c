// SPDX-License-Identifier: MIT
//! Tests of XQOS requests: access rights, admission control, roles, loans and traces.

use super::mock::{Effect, IDS, MS, Server, at_us, base};
use super::{clients, keep_busy, reserve, server};
use crate::mechanism::access::Identity;
use crate::mechanism::requests::Refused;
use xqos_abi::trace::Level;
use xqos_abi::{ByteOrder, ClientList, Label, PolicyChange, Request, Setting, Subject};
use xqos_core::{ClientId, Fact, PolicyKind, ReservationKind, Time};

#[test]
fn a_client_may_change_others_of_its_user_and_root_may_change_all() {
    const SERVER: u32 = 900;
    let mut server = server(PolicyKind::Fair);
    let [own, same] = clients(&mut server);
    let [stranger, root, of_server] = [1001, 0, SERVER].map(|uid| server.connect(uid));
    let weight = |client, weight| Subject::Client(client).set(Setting::Weight(weight));
    let policy =
        Request::SetPolicy { change: PolicyChange { policy: Some(PolicyKind::Fixed), ..PolicyChange::default() } };
    for (asker, may) in [(own, true), (same, true), (root, true), (of_server, true), (stranger, false)] {
        let refused = Err(Refused::Access(base(own)));
        assert_eq!(server.ask(asker, weight(base(own), 50)), if may { Ok(None) } else { refused }, "{asker:?}");
        let may_administer = asker == root || asker == of_server;
        assert_eq!(server.ask(asker, policy).is_ok(), may_administer, "{asker:?}");
    }
    assert_eq!(server.ask(own, weight(base(own) + IDS - 1, 50)), Ok(None), "any resource names its client");
    assert_eq!(server.ask(own, weight(77 * IDS, 50)), Err(Refused::Value(77 * IDS)), "there is no such client");
    assert_eq!(server.ask(own, weight(0, 0)), Err(Refused::Value(0)));
}

#[test]
fn the_control_socket_is_for_users_that_have_a_client() {
    const CONTROL: ClientId = ClientId(ClientId::LIMIT as u16);
    let mut server = server(PolicyKind::Fair);
    let [own] = clients(&mut server);
    for (uid, may) in [(1000, true), (1001, false), (0, true), (900, true), (Identity::NOBODY, false)] {
        server.host().control = Some(Identity { pid: 1, uid });
        for request in [Request::ListClients, Request::SelectEvents { mask: 1 }, Request::StopTrace] {
            let answer = server.ask(CONTROL, request);
            assert_eq!(answer.is_ok(), may, "{uid} {request:?}");
            assert!(may || answer == Err(Refused::Access(0)));
        }
    }
    server.disconnect(own);
    server.host().control = Some(Identity { pid: 1, uid: 1000 });
    assert_eq!(server.ask(CONTROL, Request::ListClients), Err(Refused::Access(0)), "its client is gone");
}

#[test]
fn no_client_enters_or_changes_a_group_with_clients_of_another_user() {
    let mut server = server(PolicyKind::Fair);
    let [own, second] = clients(&mut server);
    let [stranger, remote, root] = [1001, Identity::NOBODY, 0].map(|uid| server.connect(uid));
    let enter = |id| Subject::Client(base(id)).set(Setting::Group(Label::new("players")));
    let cap = |id| Subject::Group(base(id)).set(Setting::Cap(20_000));
    assert_eq!(server.ask(own, enter(own)), Ok(None));
    assert_eq!(server.ask(own, enter(second)), Ok(None), "of the same user");
    assert_eq!(server.ask(second, cap(second)), Ok(None));
    for id in [stranger, remote] {
        assert_eq!(server.ask(id, enter(id)), Err(Refused::Access(base(id))));
    }
    assert_eq!(server.ask(root, enter(stranger)), Ok(None));
    for id in [stranger, own] {
        let reserve = Subject::Group(base(id)).set(Setting::reservation(1000, 10_000, ReservationKind::Hard));
        for request in [cap(id), Subject::Group(base(id)).set(Setting::Weight(1)), reserve] {
            assert_eq!(server.ask(id, request), Err(Refused::Access(base(id))), "{request:?}");
        }
    }
    assert_eq!(server.ask(root, cap(own)), Ok(None));
    server.ask(stranger, Subject::Client(0).set(Setting::Group(Label::default()))).unwrap();
    assert_eq!(server.ask(own, cap(own)), Ok(None), "the stranger has left");
}

#[test]
fn a_refused_request_changes_nothing() {
    let mut server = server(PolicyKind::Fair);
    let [first, second] = clients(&mut server);
    reserve(&mut server, first, 6, 10, false);
    let too_much = Subject::Client(0).set(Setting::reservation(6000, 10_000, ReservationKind::Hard));
    assert!(matches!(server.ask(second, too_much), Err(Refused::Admission(_))));
    let no_period = Subject::Client(0).set(Setting::reservation(6000, 1, ReservationKind::Hard));
    assert_eq!(server.ask(second, no_period), Err(Refused::Value(1)));
    assert_eq!(server.engine().scheduler.reservation_count(), 1);
    keep_busy(&mut server, second, 2);
    server.run_until(Time(10 * MS));
    assert_eq!(server.left(second), 0);
}

#[test]
fn a_window_manager_is_found_at_the_root_window_and_a_compositor_by_its_selection() {
    let mut server = server(PolicyKind::Fair);
    let [manager, compositor, other] = clients(&mut server);
    server.host().redirector = Some(base(manager) + 5);
    server.engine().selection("_NET_WM_CM_S0", Some(compositor));
    server.engine().selection("PRIMARY", Some(other));
    keep_busy(&mut server, other, 1);
    server.run_until(Time(2 * MS));
    let role = |server: &mut super::mock::Server, id| server.engine().scheduler.role(id);
    assert!(role(&mut server, manager).window_manager && role(&mut server, compositor).compositor);
    assert!(!role(&mut server, other).is_any());
    // The manager exits. At its next check of the root windows, the engine finds the next window manager.
    server.disconnect(manager);
    server.host().redirector = Some(base(other));
    server.send_at(Time(300 * MS), other, 1000, Effect::Nothing);
    server.run_until(Time(301 * MS));
    assert!(role(&mut server, other).window_manager);
    server.engine().selection("_NET_WM_CM_S0", None);
    assert!(!role(&mut server, compositor).is_any());
}

#[test]
fn a_compositor_is_served_soon_after_an_event_for_it() {
    let mut server = server(PolicyKind::Fair);
    let [compositor, painter, other] = clients(&mut server);
    server.engine().selection("_NET_WM_CM_S0", Some(compositor));
    [painter, other].into_iter().for_each(|id| keep_busy(&mut server, id, 100));
    for ms in 1..20 {
        server.send_at(Time(2 * ms * MS), painter, MS / 50, Effect::Event(compositor));
        server.send_at(Time(2 * ms * MS + MS / 2), compositor, MS / 10, Effect::Nothing);
    }
    server.run_until(Time(60 * MS));
    let of_compositor: Vec<_> = server.done.iter().filter(|done| done.client == compositor).collect();
    assert_eq!(of_compositor.len(), 19);
    for (ms, done) in (1..20).zip(of_compositor) {
        let waited = done.start.since(Time(2 * ms * MS + MS / 2));
        assert!(waited < 20 * MS, "{waited} ns");
    }
}

#[test]
fn a_loan_raises_the_server_for_reserved_clients_only_and_ends_with_its_lender() {
    let mut server = server(PolicyKind::Fair);
    let [reserved, other] = clients(&mut server);
    let lender = server.connect(0);
    let lend = Request::LendProcessor { on: true, limit_before: 0 };
    assert_eq!(server.ask(other, lend), Err(Refused::Access(0)));
    server.host().refuses_loans = true;
    assert_eq!(server.ask(lender, lend), Err(Refused::Alloc));
    server.host().refuses_loans = false;
    server.ask(lender, lend).unwrap();
    reserve(&mut server, reserved, 2, 10, false);
    server.send_at(at_us(100), reserved, MS, Effect::Nothing);
    server.run_until(at_us(600));
    assert!(server.host().raises > 0);
    server.send_at(at_us(20_000), other, MS, Effect::Nothing);
    server.run_until(at_us(20_500));
    assert_eq!(server.host().raised, None, "it serves another client");
    server.disconnect(lender);
    assert!(!server.host().lent);
}

#[test]
fn the_first_limit_is_restored_after_overlapping_loans() {
    let mut server = server(PolicyKind::Fair);
    let [first, second] = [0, 0].map(|uid| server.connect(uid));
    for (lender, limit_before) in [(first, 0), (second, 4)] {
        server.ask(lender, Request::LendProcessor { on: true, limit_before }).unwrap();
    }
    server.disconnect(first);
    assert!(server.host().lent);
    server.disconnect(second);
    assert_eq!((server.host().lent, server.host().limit_restored), (false, Some(0)));
}

#[test]
fn a_trace_names_all_clients_and_ends_with_its_reader() {
    use xqos_abi::ring::{Next, RingReader};
    use xqos_abi::trace::{Entry, Event};
    let mut server = server(PolicyKind::Fair);
    let [reader, busy] = clients(&mut server);
    let remote = server.connect(crate::mechanism::access::Identity::NOBODY);
    let start = Request::StartTrace { level: Level::Slices, capacity: 0 };
    assert_eq!(server.ask(remote, start), Err(Refused::Access(0)), "it can take no descriptor");
    server.ask(reader, start).unwrap();
    let ring = server.host().handed.pop().unwrap();
    let mut ring = RingReader::open(ring, 0).unwrap();
    keep_busy(&mut server, busy, 20);
    server.run_until(Time(30 * MS));
    server.disconnect(reader);
    let (mut served, mut names, mut ended) = (0, 0, false);
    while let Next::Record(words) = ring.read() {
        match Event::decode(words).unwrap().what {
            Entry::Fact(Fact::Served(_)) => served += 1,
            Entry::Name { .. } => names += 1,
            Entry::End => ended = true,
            _ => {}
        }
    }
    assert!(served >= 1 && names == 3 && ended, "{served} slices, {names} names");
    assert!(!server.engine().scheduler.trace.is_on());
}

#[test]
fn a_trace_records_the_processor_time_of_a_stretched_slice() {
    use xqos_abi::ring::{Next, RingReader};
    use xqos_abi::trace::{Entry, Event};
    let mut server = server(PolicyKind::Fair);
    let [reader, client] = clients(&mut server);
    server.ask(reader, Request::StartTrace { level: Level::Slices, capacity: 0 }).unwrap();
    let mut ring = RingReader::open(server.host().handed.pop().unwrap(), 0).unwrap();
    server.send_at(Time(10 * MS), client, 3 * MS, Effect::Nothing);
    server.send_at(Time(20 * MS), client, 3 * MS, Effect::Stalls(2 * MS));
    server.run_until(Time(30 * MS));
    let mut recorded = Vec::new();
    while let Next::Record(words) = ring.read() {
        match Event::decode(words).unwrap().what {
            Entry::Processor { ns, .. } => recorded.push(Some(ns)),
            Entry::Fact(Fact::Served(_)) => recorded.push(None),
            _ => {}
        }
    }
    assert_eq!(recorded, [None, Some(MS), None], "the second of two slices of 3 ms had 1 ms of a processor");
}

#[test]
fn present_and_departed_clients_add_up_to_the_busy_time() {
    let mut server = server(PolicyKind::Fair);
    let [stays] = clients(&mut server);
    keep_busy(&mut server, stays, 20);
    for _ in 0..100 {
        let short_lived = server.connect(1000);
        server.send(short_lived, 3, MS);
        let until = server.now().after(10 * MS);
        server.run_until(until);
        server.disconnect(short_lived);
    }
    let list = |server: &mut Server, request| {
        let reply = server.ask(stays, request).unwrap().unwrap();
        ClientList::decode(&reply, ByteOrder::NATIVE).unwrap().clients
    };
    let departed = list(&mut server, Request::ListDeparted);
    assert_eq!(departed.iter().map(|entry| entry.client).sum::<u32>(), 100);
    assert_eq!(departed.iter().map(|entry| entry.requests).sum::<u64>(), 300);
    let there = list(&mut server, Request::ListClients);
    let used: u64 = departed.iter().chain(&there).map(|entry| entry.server_time_ns).sum();
    assert_eq!(used, server.engine().totals.busy_ns);
}
