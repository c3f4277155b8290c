// SPDX-License-Identifier: MIT
//! Tests that the engine's cell carries out each action, also after a fault.

use super::mock::{MS, Mock};
use super::{clients, keep_busy, reserve, server};
use crate::host::engine_cell::{Acts, EngineCell, OnServerThread, step_back};
use crate::mechanism::action::Action;
use crate::mechanism::engine::Engine;
use crate::mechanism::fault::Fault;
use std::convert::Infallible;
use xqos_core::{ClientId, PolicyKind, Rank, Time};

impl Acts for Mock {
    type Call = Infallible;

    fn carry_out(&mut self, action: Action) -> Option<Infallible> {
        Mock::carry_out(self, action);
        None
    }

    fn call(call: Infallible) {
        match call {}
    }

    fn step_back(&mut self) {
        self.step_back = true;
    }
}

/// An engine that holds a client back.
fn holding() -> (Engine<Mock>, ClientId) {
    let mut server = server(PolicyKind::Fair);
    let [held, free] = clients(&mut server);
    reserve(&mut server, held, 1, 1000, true);
    [held, free].into_iter().for_each(|id| keep_busy(&mut server, id, 2));
    server.run_until(Time(10 * MS));
    assert!(server.host().is_held(held));
    (server.engine.take().unwrap(), held)
}

#[test]
fn held_clients_are_resumed_even_if_several_actions_fail() {
    let (mut engine, held) = holding();
    // The mock panics if it must watch a client that does not exist.
    let fails = Action::WatchClient { client: ClientId(99), rank: Rank::LAST, loan_ns: 0 };
    engine.actions.extend([fails.clone(), fails]);
    step_back(&mut engine, Time(10 * MS));
    assert!(!engine.host.is_held(held) && engine.host.step_back);
}

#[test]
fn actions_before_a_fault_are_carried_out_before_it_is_reported() {
    let mut cell: EngineCell<Mock, ()> = EngineCell::new(());
    cell.engine = Some(Box::new(holding().0));
    let cell = OnServerThread::new(cell);
    let work = |engine: &mut Engine<Mock>| {
        engine.log("before the fault".to_owned());
        Err::<(), _>(Fault::Planned)
    };
    // SAFETY: no other thread has the cell, and no reference to the engine is left.
    let engine = unsafe {
        assert_eq!(cell.with(work), Some(Err(Fault::Planned)));
        (*cell.get()).engine.take().unwrap()
    };
    assert_eq!(engine.host.lines.last().map(String::as_str), Some("before the fault"));
}
