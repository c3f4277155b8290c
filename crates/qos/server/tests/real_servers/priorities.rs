// SPDX-License-Identifier: MIT
//! Tests of SYNC priorities: clients set and read them as on a stock server, although xqos uses the same field.

use crate::busy::{Busy, Worker, send_before_any_is_served};
use crate::fixture::{Fixture, entry, in_parallel, policies, xvfb_with};
use crate::wire::Wire;
use xqos_abi::{ByteOrder, PolicyChange};
use xqos_core::PolicyKind;
use xqos_lab::server::{ServerKind, Setup};

const VALUES: [i32; 8] = [1, -1, 0, 77, i32::MAX, i32::MIN, i32::MAX - 1, 0];

#[test]
fn clients_read_what_clients_set_under_every_policy() {
    let _turn = in_parallel();
    for policy in policies() {
        for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
            let mut fixture = xvfb_with(policy);
            let control = fixture.control().unwrap();
            let (mut one, mut other) = (fixture.wire(order), fixture.native());
            one.canvas(1, 1);
            let (one_id, other_id) = (one.new_id() - 1, other.new_id());
            other.canvas(1, 1);
            for value in VALUES {
                one.set_sync_priority(0, value).unwrap();
                assert_eq!((one.sync_priority(0), other.sync_priority(one_id)), (value, value), "{policy:?}");
                assert_eq!(entry(&control, one.base).sync_priority, value);
                other.set_sync_priority(one_id, value.wrapping_sub(5)).unwrap();
                assert_eq!(one.sync_priority(one_id), value.wrapping_sub(5), "{policy:?}");
                assert_eq!(other.sync_priority(0), 0, "{policy:?}: it was never set");
            }
            one.set_sync_priority(other_id + 1, 9).unwrap();
            assert_eq!((other.sync_priority(0), entry(&control, other.base).sync_priority), (9, 9));
            fixture.assert_armed();
        }
    }
}

/// All requests are sent in one write, so that they are executed in the slice for which the client was chosen.
#[test]
fn a_client_reads_what_it_set_within_its_own_slice() {
    let _turn = in_parallel();
    for policy in policies() {
        let fixture = xvfb_with(policy);
        let busy = Busy::start(&fixture);
        for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
            let mut wire = fixture.wire(order);
            // Begin with a high priority, so that the busy client is not served in between.
            for value in [5, i32::MAX, 1, 70] {
                assert_eq!(set_and_read(&mut wire, value), [value, value / 2, value], "{policy:?}");
                assert_eq!(wire.sync_priority(0), value, "{policy:?}: in a later slice");
            }
        }
        drop(busy);
    }
}

/// Sets the value, half of it, and the value again. Returns the priority that was read after each request.
fn set_and_read(wire: &mut Wire, value: i32) -> [i32; 3] {
    let major = wire.extension("SYNC").unwrap().major;
    let set = |value| wire.message(major, 12).u32(0).i32(value).finish();
    let requests = [set(value), set(value / 2), set(value)];
    let read = wire.message(major, 13).u32(0).finish();
    for request in requests {
        wire.send(&request);
        wire.send(&read);
    }
    [(); 3].map(|()| {
        let reply = wire.reply();
        wire.i32_in(&reply, 8)
    })
}

#[test]
fn a_change_of_policy_leaves_priorities_as_they_are() {
    let _turn = in_parallel();
    let fixture = xvfb_with(PolicyKind::Stock);
    let control = fixture.control().unwrap();
    let mut clients: Vec<Wire> = (0..3).map(|_| fixture.native()).collect();
    for (client, priority) in clients.iter_mut().zip([3, -3, i32::MIN]) {
        client.set_sync_priority(0, priority).unwrap();
    }
    for policy in policies().into_iter().chain(policies().into_iter().rev()) {
        control.set_policy(PolicyChange { policy: Some(policy), ..PolicyChange::default() }).unwrap();
        for (client, priority) in clients.iter_mut().zip([3, -3, i32::MIN]) {
            assert_eq!(client.sync_priority(0), priority, "{policy:?}");
        }
    }
}

#[test]
fn a_busy_client_of_high_priority_keeps_the_server_as_on_a_stock_server() {
    let _turn = in_parallel();
    // The stock server shows the behaviour to preserve.
    check_strict(&Fixture::start(&Setup::stock(ServerKind::Xvfb)), "the stock server");
    for policy in policies() {
        let mut fixture = xvfb_with(policy);
        check_strict(&fixture, policy.name());
        fixture.assert_armed();
    }
}

/// Checks that all work of the client with the higher priority is done first, whichever client connected first.
fn check_strict(fixture: &Fixture, what: &str) {
    const LETTERS: u16 = 40;
    let mut workers = [(); 2].map(|()| Worker::start(fixture));
    let mut wire = fixture.native();
    for (high, priority) in [(0, 10), (1, i32::MAX - 1)] {
        wire.set_sync_priority(workers[high].base() + 1, priority).unwrap();
        send_before_any_is_served(fixture, || {
            for (letter, worker) in [b'a', b'b'].into_iter().zip(&mut workers) {
                worker.send_and_sign(letter, LETTERS);
            }
        });
        workers.iter_mut().for_each(Worker::finish);
        let (first, then) = if high == 0 { ("a", "b") } else { ("b", "a") };
        let wanted = [first, then].map(|letter| letter.repeat(LETTERS.into())).concat();
        assert_eq!(workers[0].take_signatures(), wanted, "{what}, priority {priority}");
    }
}
