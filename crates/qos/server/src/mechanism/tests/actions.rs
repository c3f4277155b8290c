// SPDX-License-Identifier: MIT
//! Tests the actions that each call of the mechanism requests.

use super::mock::{Effect, MS, Server, base};
use super::{clients, keep_busy, reserve, server};
use crate::mechanism::action::Action;
use crate::mechanism::settings::Settings;
use xqos_abi::{Request, event_mask};
use xqos_core::{Choice, ClientId, Mode, PolicyKind, Time};

/// The actions since the last call.
fn acted(server: &mut Server) -> Vec<Action> {
    std::mem::take(&mut server.host().acted)
}

fn choices(actions: &[Action]) -> Vec<Choice> {
    let choice = |action: &Action| match action {
        Action::Serve { slice, .. } => Some(slice.choice),
        _ => None,
    };
    actions.iter().filter_map(choice).collect()
}

#[test]
fn without_contention_the_server_chooses_and_nothing_else_is_done() {
    let mut server = Server::new(&Settings::default());
    let [one, two] = clients(&mut server);
    for turn in 1..=3 {
        server.send(one, 1, 1000);
        server.send(two, 1, 1000);
        server.run_until(Time(turn * MS));
        let actions = acted(&mut server);
        // The server goes on choosing. The first decision also sets the observation and the cutting of requests, and
        // logs the server.
        let is_first = turn == 1;
        assert_eq!(choices(&actions), vec![Choice::Server; usize::from(is_first)]);
        assert_eq!(actions.len(), if is_first { 4 } else { 0 }, "{actions:?}");
    }
}

#[test]
fn a_used_up_hard_budget_holds_the_client_and_wakes_the_server_at_the_deadline() {
    let mut server = server(PolicyKind::Fair);
    let [client] = clients(&mut server);
    reserve(&mut server, client, 1, 10, true);
    keep_busy(&mut server, client, 2);
    acted(&mut server);
    server.run_until(Time(5 * MS));
    let deadline = server.engine().scheduler.reservation(client).unwrap().deadline;
    let actions = acted(&mut server);
    assert_eq!(choices(&actions), [Choice::Client(client, Mode::Reserved)]);
    assert_eq!(actions[actions.len() - 2..], [Action::Hold(client), Action::WakeAt(deadline)]);
    server.run_until(deadline.after(MS / 100));
    // The hold ends before the decision, so that the client is among the ready ones.
    let actions = acted(&mut server);
    assert_eq!(actions[0], Action::Resume(client));
    assert!(matches!(actions[1], Action::Serve { at, .. } if at == deadline), "{actions:?}");
}

#[test]
fn a_client_that_waits_for_a_grab_is_watched_and_then_served() {
    let mut server = server(PolicyKind::Fair);
    let [holder, other] = clients(&mut server);
    server.send_at(Time(MS), holder, 1000, Effect::Grab);
    server.send_at(Time(20 * MS), holder, 1000, Effect::Ungrab);
    server.run_until(Time(15 * MS));
    let watched = |action: &Action| matches!(action, Action::WatchClient { client, .. } if *client == other);
    assert!(acted(&mut server).iter().any(watched), "the grab is long");
    server.send(other, 1, 1000);
    server.run_until(Time(25 * MS));
    assert!(server.done.iter().any(|done| done.client == other && done.start >= Time(20 * MS)));
}

#[test]
fn an_event_goes_to_each_client_that_selected_it_and_to_no_other() {
    let mut server = server(PolicyKind::Fair);
    let [asker, listener, _] = clients(&mut server);
    server.ask(listener, Request::SelectEvents { mask: event_mask::ALL }).unwrap();
    acted(&mut server);
    reserve(&mut server, asker, 1, 10, false);
    let told: Vec<(ClientId, u32)> = acted(&mut server)
        .iter()
        .filter_map(|action| match action {
            Action::Notify { listener, event } => Some((*listener, event.client)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(listener, base(asker))]);
}

#[test]
fn stepping_back_resumes_each_held_client_once() {
    let mut server = server(PolicyKind::Fair);
    let [held, free] = clients(&mut server);
    reserve(&mut server, held, 1, 1000, true);
    keep_busy(&mut server, held, 2);
    keep_busy(&mut server, free, 2);
    server.run_until(Time(10 * MS));
    assert!(server.host().is_held(held));
    acted(&mut server);
    for _ in 0..2 {
        server.engine().step_back();
    }
    assert_eq!(acted(&mut server), [Action::Resume(held)]);
}
