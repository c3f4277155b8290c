// SPDX-License-Identifier: MIT
//! Tests that compositors and window managers are recognised as they start and stop, are served first, and are shown in
//! lists and traces.

use crate::busy::Busy;
use crate::fixture::{Fixture, SOON, entry, in_parallel, is_missing, setup, wait_for, xvfb};
use crate::tracing::{id_of, read};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ChangeWindowAttributesAux, ConnectionExt, CreateWindowAux, EventMask, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use xqos_abi::entry_flag::{COMPOSITOR, WINDOW_MANAGER};
use xqos_abi::trace::{Entry, Event, Level, Reason};
use xqos_abi::{Setting, Subject};
use xqos_client::Control;
use xqos_core::Fact;
use xqos_lab::server::ServerKind;
use xqos_sim::check::Check;

/// A client that can own selections.
struct Manager {
    connection: RustConnection,
    window: Window,
}

impl Manager {
    fn connect(fixture: &Fixture) -> Manager {
        let connection = fixture.connect().unwrap();
        let (window, root) = (connection.generate_id().unwrap(), connection.setup().roots[0].root);
        let values = CreateWindowAux::new();
        connection.create_window(0, window, root, 0, 0, 1, 1, 0, WindowClass::INPUT_OUTPUT, 0, &values).unwrap();
        Manager { connection, window }
    }

    fn base(&self) -> u32 {
        self.connection.setup().resource_id_base
    }

    fn own(&self, selection: &str) {
        let atom = self.connection.intern_atom(false, selection.as_bytes()).unwrap().reply().unwrap().atom;
        self.connection.set_selection_owner(self.window, atom, x11rb::CURRENT_TIME).unwrap();
        self.sync();
    }

    fn sync(&self) {
        self.connection.get_input_focus().unwrap().reply().unwrap();
    }

    fn select_on_root(&self, mask: EventMask) {
        let root = self.connection.setup().roots[0].root;
        let values = ChangeWindowAttributesAux::new().event_mask(mask);
        self.connection.change_window_attributes(root, &values).unwrap().check().unwrap();
    }
}

fn roles(control: &Control, manager: &Manager) -> u32 {
    entry(control, manager.base()).flags & (COMPOSITOR | WINDOW_MANAGER)
}

#[test]
fn owners_of_manager_selections_are_recognised_as_they_start_and_stop() {
    let _others = in_parallel();
    for kind in ServerKind::ALL.into_iter().filter(|&kind| !is_missing(kind)) {
        let mut fixture = Fixture::start(&setup(kind));
        let control = fixture.control().unwrap();
        let (one, other) = (Manager::connect(&fixture), Manager::connect(&fixture));
        assert_eq!(roles(&control, &one), 0, "{kind:?}");
        one.own("_NET_WM_CM_S0");
        one.own("WM_S0");
        assert_eq!(roles(&control, &one), COMPOSITOR | WINDOW_MANAGER, "{kind:?}");
        other.own("_NET_WM_CM_S0");
        assert_eq!((roles(&control, &one), roles(&control, &other)), (WINDOW_MANAGER, COMPOSITOR), "{kind:?}");
        one.connection.destroy_window(one.window).unwrap();
        one.sync();
        assert_eq!(roles(&control, &one), 0, "{kind:?}: its window is gone");
        other.own("PRIMARY");
        other.own("_NET_WM_CM_S7");
        other.own("WM_S");
        assert_eq!(roles(&control, &other), COMPOSITOR, "{kind:?}: no such screen, and other selections");
        assert_eq!(control.desktop().unwrap().clients, 1);
        drop(other);
        wait_for("the compositor is gone", SOON, || control.desktop().unwrap().clients == 0);
        fixture.assert_armed();
    }
}

#[test]
fn a_client_that_redirects_top_level_windows_is_a_window_manager() {
    let _others = in_parallel();
    for kind in ServerKind::ALL.into_iter().filter(|&kind| !is_missing(kind)) {
        let mut fixture = Fixture::start(&setup(kind));
        let control = fixture.control().unwrap();
        let (panel, manager) = (Manager::connect(&fixture), Manager::connect(&fixture));
        panel.select_on_root(EventMask::SUBSTRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE);
        manager.select_on_root(EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY);
        wait_for("the window manager is recognised", SOON, || roles(&control, &manager) == WINDOW_MANAGER);
        assert_eq!(roles(&control, &panel), 0, "{kind:?}: it does not redirect");
        manager.select_on_root(EventMask::NO_EVENT);
        wait_for("the client stops redirecting", SOON, || roles(&control, &manager) == 0);
        fixture.assert_armed();
    }
}

/// Traces round trips of a compositor while two clients are busy, until it was served 20 times for a wanted reason.
/// Returns all records.
fn traced(share_ppm: u32, wanted: impl Fn(Reason) -> bool) -> Vec<Event> {
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    control.set(Subject::Server, Setting::Desktop(share_ppm)).unwrap();
    let _load = [Busy::start(&fixture), Busy::start(&fixture)];
    let compositor = Manager::connect(&fixture);
    let mut reader = control.start_trace(Level::Slices, 1 << 18).unwrap();
    compositor.own("_NET_WM_CM_S0");
    let mut events = Vec::new();
    wait_for("the compositor was served 20 times", SOON, || {
        compositor.sync();
        events.extend(read(&mut reader));
        let own = id_of(&events, compositor.base());
        let is_own = |event: &&Event| match event.what {
            Entry::Dispatch { client, reason, .. } => client == Some(own) && wanted(reason),
            _ => false,
        };
        events.iter().filter(is_own).count() > 20
    });
    control.stop_trace().unwrap();
    events.extend(read(&mut reader));
    events
}

#[test]
fn a_compositor_is_dispatched_by_the_desktop_rule_and_replay_agrees() {
    let _others = in_parallel();
    for (share_ppm, is_first) in [(666_667, true), (0, false)] {
        let events = traced(share_ppm, |reason| reason == Reason::Desktop || !is_first);
        let dispatched_as = |wanted| {
            let is_it = |event: &&Event| matches!(event.what, Entry::Dispatch { reason, .. } if reason == wanted);
            events.iter().filter(is_it).count()
        };
        let is_told = |what| matches!(what, Entry::Fact(Fact::Role { role, .. }) if role.compositor);
        assert!(events.iter().any(|event| is_told(event.what)));
        assert_eq!(dispatched_as(Reason::Desktop) > 5, is_first, "share {share_ppm}");
        let mut check = Check::default();
        events.iter().for_each(|event| check.take(event));
        assert_eq!((check.differed, check.unchecked), (0, 0), "share {share_ppm}: {:#?}", check.differences);
        assert!(check.agreed > 5, "share {share_ppm}: {} of {} records", check.agreed, events.len());
    }
}

#[test]
fn a_window_managers_work_is_charged_to_the_client_that_makes_it() {
    let _others = in_parallel();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let (culprit, manager) = (Manager::connect(&fixture), Manager::connect(&fixture));
    manager.select_on_root(EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY);
    wait_for("the window manager is recognised", SOON, || roles(&control, &manager) == WINDOW_MANAGER);
    let before = entry(&control, manager.base());
    culprit.connection.map_window(culprit.window).unwrap();
    culprit.sync();
    for _ in 0..50 {
        manager.sync();
    }
    let (manager, culprit) = (entry(&control, manager.base()), entry(&control, culprit.base()));
    let worked_ns = manager.server_time_ns - before.server_time_ns;
    assert!(worked_ns > 0 && manager.charged_ns == before.charged_ns, "{manager:?}");
    assert!(culprit.charged_ns >= culprit.server_time_ns + worked_ns, "{culprit:?}, and {worked_ns} ns");
}
