//! SYNC priorities: what clients set and read is as on a stock server, though xqos decides by the same field.

use crate::busy::{Busy, shares};
use crate::fixture::{Fixture, alone, beside_others, entry, measured, xvfb_with};
use crate::wire::Wire;
use std::time::Duration;
use xqos_abi::{Order, PolicyChange};
use xqos_client::Control;
use xqos_core::PolicyKind;
use xqos_lab::server::{Kind, Setup};

const VALUES: [i32; 8] = [1, -1, 0, 77, i32::MAX, i32::MIN, i32::MAX - 1, 0];

#[test]
fn clients_read_what_clients_set_under_every_policy() {
    let _turn = beside_others();
    for policy in PolicyKind::ALL {
        for order in [Order::Native, Order::Swapped] {
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
                assert_eq!(other.sync_priority(0), 0, "{policy:?}: nobody has set it");
            }
            one.set_sync_priority(other_id + 1, 9).unwrap();
            assert_eq!((other.sync_priority(0), entry(&control, other.base).sync_priority), (9, 9));
            fixture.assert_armed();
        }
    }
}

/// In one write, so that all is carried out in the slice for which the client was chosen.
#[test]
fn a_client_reads_what_it_set_within_its_own_slice() {
    let _turn = beside_others();
    for policy in PolicyKind::ALL {
        let fixture = xvfb_with(policy);
        let busy = Busy::start(&fixture);
        for order in [Order::Native, Order::Swapped] {
            let mut wire = fixture.wire(order);
            // A high one first, so that the busy client does not come in between.
            for value in [5, i32::MAX, 1, 70] {
                assert_eq!(set_and_read(&mut wire, value), [value, value / 2, value], "{policy:?}");
                assert_eq!(wire.sync_priority(0), value, "{policy:?}: in a later slice");
            }
        }
        drop(busy);
    }
}

/// Sets the value, half of it, and the value again; what is read after each.
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
    let _turn = beside_others();
    let fixture = xvfb_with(PolicyKind::Stock);
    let control = fixture.control().unwrap();
    let mut clients: Vec<Wire> = (0..3).map(|_| fixture.native()).collect();
    for (client, priority) in clients.iter_mut().zip([3, -3, i32::MIN]) {
        client.set_sync_priority(0, priority).unwrap();
    }
    for policy in PolicyKind::ALL.into_iter().chain(PolicyKind::ALL.into_iter().rev()) {
        control.set_policy(PolicyChange { policy: Some(policy), ..PolicyChange::default() }).unwrap();
        for (client, priority) in clients.iter_mut().zip([3, -3, i32::MIN]) {
            assert_eq!(client.sync_priority(0), priority, "{policy:?}");
        }
    }
}

#[test]
fn a_busy_client_of_high_priority_keeps_the_server_as_on_a_stock_one() {
    let _turn = alone();
    // The stock server itself: this is what is to be kept.
    let fixture = Fixture::start(&Setup::stock(Kind::Xvfb));
    let (high, low) = (Busy::start(&fixture), Busy::start(&fixture));
    let mut wire = fixture.native();
    wire.set_sync_priority(0, 100).unwrap();
    wire.set_sync_priority(high.base + 1, 10).unwrap();
    let served = || {
        let before = (high.sent(), low.sent());
        std::thread::sleep(Duration::from_millis(300));
        (high.sent() - before.0, low.sent() - before.1)
    };
    measured("the stock server", served, |&(of_high, of_low)| of_high > 20 * of_low);
    drop((high, low));

    for policy in PolicyKind::ALL {
        let mut fixture = xvfb_with(policy);
        let mut wire = fixture.native();
        wire.set_sync_priority(0, i32::MAX).unwrap();
        let control = fixture.control().unwrap();
        wire.set_sync_priority(own_id(&control), i32::MAX).unwrap();
        let (one, two) = (Busy::start(&fixture), Busy::start(&fixture));
        for (high, low, priority) in [(&one, &two, 10), (&two, &one, i32::MAX - 1)] {
            wire.set_sync_priority(high.base + 1, priority).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            measured(
                &format!("{policy:?}, priority {priority}"),
                || shares(&control, &[high.base, low.base], Duration::from_millis(250)),
                |got| got[0] > 0.8 && got[1] < 0.05,
            );
        }
        drop((one, two));
        fixture.assert_armed();
    }
}

/// A resource of the control connection, so that its priority can be set.
fn own_id(control: &Control) -> u32 {
    use x11rb::connection::Connection;
    use x11rb::protocol::xproto::{ConnectionExt, CreateGCAux};
    let connection = control.connection();
    let id = connection.generate_id().unwrap();
    connection.create_gc(id, connection.setup().roots[0].root, &CreateGCAux::new()).unwrap().check().unwrap();
    id
}
