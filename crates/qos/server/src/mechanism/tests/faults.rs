// SPDX-License-Identifier: MIT
//! Tests that the server continues as if xqos had never been there, no matter what fails in xqos.

use super::mock::{Effect, MS, Server};
use super::{clients, keep_busy, reserve};
use crate::mechanism::fault::Fault;
use crate::mechanism::settings::{FaultPlace, PlannedFault, Settings};
use xqos_core::Time;

/// Runs a server until one client is held back and both clients have work, then causes the fault.
fn served_with(fault: Option<PlannedFault>, unsound: bool) -> Server {
    let mut server = Server::new(&Settings { fault, ..Settings::default() });
    let [held, other] = clients(&mut server);
    reserve(&mut server, held, 1, 100, true);
    [held, other].into_iter().for_each(|id| keep_busy(&mut server, id, 30));
    // With no other work pending, each of these requests makes the server poll.
    (8..18).for_each(|nth| server.send_at(Time(5 * nth * MS), other, 1000, Effect::Nothing));
    server.run_until(Time(5 * MS));
    assert!(server.fault.is_none() && server.host().is_held(held));
    server.host().unsound = unsound;
    server.run_until(Time(90 * MS));
    server
}

#[test]
fn all_clients_are_released_and_served_after_a_fault() {
    let planned = |place| Some(PlannedFault { place, count: 12 });
    for place in [FaultPlace::Block, FaultPlace::Wakeup, FaultPlace::Check] {
        let mut server = served_with(planned(place), false);
        match (&server.fault, place) {
            (Some(Fault::Planned), FaultPlace::Check) => {}
            (Some(Fault::Panicked(why)), FaultPlace::Block | FaultPlace::Wakeup) => {
                assert!(why.contains("a test asked"))
            }
            (fault, _) => panic!("{place:?}: {fault:?}"),
        }
        assert_all_served(&mut server);
    }
}

#[test]
fn an_unsound_server_is_a_fault_too() {
    let mut server = served_with(None, true);
    assert_eq!(server.fault.as_ref().unwrap().to_string(), "a test made the server unsound");
    assert_all_served(&mut server);
}

fn assert_all_served(server: &mut Server) {
    assert!(server.engine.is_none() && server.host().step_back);
    server.run_until(Time(150 * MS));
    for id in [1, 2].map(xqos_core::ClientId) {
        assert!(!server.host().is_held(id));
        assert_eq!(server.left(id), 0, "{id:?} has 30 ms of work in 150 ms");
    }
}

#[test]
fn the_end_of_a_generation_releases_all_clients() {
    let mut server = served_with(None, false);
    let held = xqos_core::ClientId(1);
    assert!(server.host().is_held(held));
    server.engine().step_back();
    assert!(!server.host().is_held(held));
    let mut server = served_with(None, false);
    assert_eq!(server.left(xqos_core::ClientId(2)), 0);
}
