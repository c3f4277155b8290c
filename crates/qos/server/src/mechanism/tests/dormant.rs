// SPDX-License-Identifier: MIT
//! Dormancy changes neither the order of service nor the accounting. Only what clients owe each other when contention
//! begins may differ, by the credit of `fair`.

use super::clients;
use super::mock::{Effect, MS, Server};
use crate::mechanism::settings::{ContentionMode, Settings};
use xqos_abi::{Request, event_mask};
use xqos_core::{ClientId, Time};
use xqos_testkit::Random;

/// A server with four clients. Without dormancy, because a client listens for events, or with it.
fn server_of_four(contention: ContentionMode, is_dormant: bool) -> (Server, [ClientId; 5]) {
    let mut server = Server::new(&Settings { contention, ..Settings::default() });
    let all: [ClientId; 5] = clients(&mut server);
    if !is_dormant {
        server.ask(all[4], Request::SelectEvents { mask: event_mask::ALL }).unwrap();
    }
    (server, all)
}

/// Sends random requests of up to `longest_us`, after pauses of up to `pause_us`, for a second.
fn send_random(server: &mut Server, clients: &[ClientId], seed: u64, longest_us: u64, pause_us: u64) {
    let mut random = Random(seed);
    let mut at_us = 0;
    while at_us < 1_000_000 {
        at_us += random.below_u64(pause_us);
        let (id, other) = (random.one_of(&clients[..4]), random.one_of(&clients[..4]));
        let effect = if random.below(20) == 0 { Effect::Expose(other) } else { Effect::Nothing };
        for _ in 0..=random.below(3) {
            server.send_at(Time(at_us * 1000), id, 1000 * (1 + random.below_u64(longest_us)), effect.clone());
        }
    }
}

#[test]
fn dormancy_changes_neither_order_nor_accounting() {
    for seed in xqos_testkit::seeds(30) {
        for (contention, longest_us, pause_us) in [
            (ContentionMode::Measured, 100, 1000),
            (ContentionMode::Always, 900, 2000),
            (ContentionMode::Always, 3000, 4000),
        ] {
            let [with, without] = [true, false].map(|is_dormant| {
                let (mut server, clients) = server_of_four(contention, is_dormant);
                send_random(&mut server, &clients, seed, longest_us, pause_us);
                server.run_until(Time(1100 * MS));
                let engine = server.engine();
                engine.awaken();
                engine.scheduler.verify();
                let usage = clients[..4].iter().map(|&id| engine.scheduler.usage(id).unwrap()).collect::<Vec<_>>();
                let totals = (engine.totals.busy_ns, engine.totals.decisions);
                (server.done, usage, totals)
            });
            assert!(with.0 == without.0, "seed {seed}, {contention:?}, {longest_us} us: another order");
            assert_eq!(with.1, without.1, "seed {seed}, {contention:?}, {longest_us} us");
            assert_eq!(with.2, without.2, "seed {seed}, {contention:?}, {longest_us} us");
        }
    }
}

#[test]
fn a_wait_for_a_long_grab_is_recorded_once() {
    for contention in [ContentionMode::Measured, ContentionMode::Always] {
        let mut server = Server::new(&Settings { contention, ..Settings::default() });
        let [holder, waiter, listener] = clients(&mut server);
        server.send_at(Time(0), holder, 1000, Effect::Grab);
        server.send_at(Time(20 * MS), waiter, 1000, Effect::Nothing);
        server.send_at(Time(1000 * MS), holder, 1000, Effect::Ungrab);
        server.run_until(Time(60_000 * MS));
        server.engine().awaken();
        let waited = server.engine().scheduler.usage(waiter).unwrap().longest_wait_ns;
        assert!((970 * MS..1000 * MS).contains(&waited), "{waited} ns");
        server.ask(listener, Request::SelectEvents { mask: event_mask::ALL }).unwrap();
        server.send_at(Time(60_000 * MS), waiter, 1000, Effect::Nothing);
        server.run_until(Time(60_010 * MS));
        assert_eq!(server.engine().scheduler.usage(waiter).unwrap().longest_wait_ns, waited);
    }
}

#[test]
fn the_longest_request_is_not_shortened_by_stalls_before_it() {
    let mut server = Server::new(&Settings::default());
    let [client] = clients(&mut server);
    for turn in 1..8 {
        server.send_at(Time(turn * MS), client, 28_000, Effect::Stalls(26_000));
    }
    server.send_at(Time(10 * MS), client, 150_000, Effect::Nothing);
    server.run_until(Time(20 * MS));
    assert_eq!(server.engine().slot(client).unwrap().longest_request_ns, 150_000);
}
