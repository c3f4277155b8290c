// SPDX-License-Identifier: MIT
//! Dormancy changes neither the order of service nor the accounting.

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
