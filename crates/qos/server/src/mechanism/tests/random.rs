// SPDX-License-Identifier: MIT
//! Tests with random clients, requests and settings: no request is lost, no held client is served, and all finish.

use super::mock::{Effect, MS, Server, base};
use super::{USER, server};
use xqos_abi::{Grouping, Label, PolicyChange, Request, Setting, SettingKind, Subject};
use xqos_core::{ClientId, PolicyKind, ReservationKind, Time};
use xqos_testkit::Random;

#[test]
fn random_operations_keep_all_invariants() {
    for seed in xqos_testkit::seeds(200) {
        let mut random = Random(seed);
        let policy = random.one_of(&PolicyKind::ALL);
        let mut server = server(policy);
        let root = server.connect(0);
        let mut clients: Vec<ClientId> = (0..4).map(|_| server.connect(USER)).collect();
        let mut sent = 0;
        for at in 0..150 {
            sent += operate(&mut server, &mut random, root, &mut clients);
            let until = server.now().after(random.below_u64(4) * MS);
            server.run_until(until);
            assert!(server.fault.is_none(), "seed {seed}: {:?}", server.fault);
            server.engine().scheduler.verify();
            for &id in &clients {
                let wanted = server.engine().scheduler.is_held_back(id);
                assert_eq!(server.host().is_held(id), wanted, "seed {seed}, operation {at}: {id:?} is held back");
            }
        }
        finish(&mut server, root, &clients);
        assert_eq!(server.done.len() as u64, sent, "seed {seed}: requests were lost");
        assert!(server.done.windows(2).all(|pair| pair[0].end <= pair[1].start), "seed {seed}: requests overlap");
    }
}

/// Runs one random operation. Returns the number of requests that it sent.
fn operate(server: &mut Server, random: &mut Random, root: ClientId, clients: &mut Vec<ClientId>) -> u64 {
    if clients.is_empty() {
        return 0;
    }
    let (id, other) = (random.one_of(clients), random.one_of(clients));
    match random.below_u64(14) {
        0 | 1 => {
            let count = 1 + random.below_u64(40);
            server.send(id, count as usize, 1000 + random.below_u64(MS));
            return count;
        }
        2 => {
            let at = server.now().after(random.below_u64(3 * MS));
            let effect = match random.below(3) {
                0 => Effect::Expose(other),
                1 => Effect::Event(other),
                _ => Effect::Prioritize(other, random.below(3) as i32),
            };
            server.send_at(at, id, 1000, effect);
            return 1;
        }
        3 => {
            let budget_us = 500 + random.below_u64(3000) as u32;
            let kind = random.one_of(&ReservationKind::ALL);
            let request = Subject::Client(0).set(Setting::reservation(budget_us, 20_000, kind));
            let _ = server.ask(id, request);
        }
        4 => _ = server.ask(id, Subject::Client(0).clear(SettingKind::Reservation)),
        5 => {
            let policy = Some(random.one_of(&PolicyKind::ALL));
            server
                .ask(root, Request::SetPolicy { change: PolicyChange { policy, ..PolicyChange::default() } })
                .unwrap();
        }
        6 => {
            let limit_us = random.one_of(&[0, 5000, 40_000]);
            server.ask(root, Subject::Server.set(Setting::pacing(limit_us, 100_000))).unwrap();
        }
        10 => {
            let at = server.now().after(random.below_u64(3 * MS));
            server.send_at(at, id, 1000, Effect::Grab);
            server.send_at(at.after(random.below_u64(20 * MS)), id, 1000, Effect::Ungrab);
            return 2;
        }
        11 => {
            let guest = server.connect(USER);
            operate_on_group(server, random, root, guest);
            server.disconnect(guest);
        }
        8 | 9 => operate_on_group(server, random, root, id),
        7 => server.engine().selection("_NET_WM_CM_S0", Some(id).filter(|_| other != id)),
        _ if server.left(id) == 0 && clients.len() < 8 => clients.push(server.connect(USER)),
        _ => {
            let request = Subject::Client(0).set(Setting::Weight(1 + random.below_u64(1000) as u32));
            server.ask(id, request).unwrap();
        }
    }
    0
}

/// Runs one random operation on the group of a client, which may have none.
fn operate_on_group(server: &mut Server, random: &mut Random, root: ClientId, id: ClientId) {
    let client = base(id);
    let request = match random.below_u64(6) {
        0 => Subject::Client(client).set(Setting::Group(Label::new(random.one_of(&["", "a", "b"])))),
        1 => Subject::Group(client).set(Setting::Cap(random.one_of(&[0, 50_000, 300_000]))),
        2 => {
            let grouping = random.one_of(&[Grouping::None, Grouping::Application, Grouping::User]);
            Subject::Server.set(Setting::Grouping(grouping))
        }
        3 => {
            let budget_us = 500 + random.below_u64(3000) as u32;
            let kind = random.one_of(&ReservationKind::ALL);
            Subject::Group(client).set(Setting::reservation(budget_us, 20_000, kind))
        }
        4 => Subject::Group(client).clear(SettingKind::Reservation),
        _ => Subject::Group(client).set(Setting::Weight(1 + random.below_u64(1000) as u32)),
    };
    let _ = server.ask(root, request);
}

/// Lets all clients finish.
fn finish(server: &mut Server, root: ClientId, clients: &[ClientId]) {
    server.ask(root, Subject::Server.set(Setting::pacing(0, 100_000))).unwrap();
    for &id in clients {
        server.ask(id, Subject::Client(0).clear(SettingKind::Reservation)).unwrap();
        let _ = server.ask(root, Subject::Group(base(id)).clear(SettingKind::Reservation));
        let _ = server.ask(root, Subject::Group(base(id)).set(Setting::Cap(0)));
    }
    let long_after = server.now().after(600_000 * MS);
    server.run_until(long_after);
    for &id in clients {
        assert!(!server.host().is_held(id) && server.left(id) == 0, "{id:?} at {:?}", Time(long_after.0));
    }
}
