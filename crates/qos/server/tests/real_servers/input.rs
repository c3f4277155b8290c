// SPDX-License-Identifier: MIT
//! Tests that the server's own descriptors end a slice early: a viewer's pointer motion does not wait for busy clients.

use crate::busy::Busy;
use crate::fixture::{Fixture, in_parallel, is_missing, module, setup};
use std::time::Duration;
use xqos_core::PolicyKind;
use xqos_lab::server::{Module, ServerKind, Setup};
use xqos_lab::viewer::Viewer;

const MOTIONS: u16 = 100;

/// The number of slices that ended early with two busy clients, with or without a viewer that moves the pointer.
fn early_ends(setup: &Setup, moves: bool) -> u64 {
    let server = Fixture::start(setup);
    let control = server.control().unwrap();
    let viewer = moves.then(|| Viewer::connect(&server.viewer_socket().unwrap()).unwrap());
    let _busy = [Busy::start(&server), Busy::start(&server)];
    // After this time, a client has had a long slice, and the watcher knows the server's descriptors.
    std::thread::sleep(Duration::from_millis(200)); // time: the watcher gives no notice
    let before = control.server_info().unwrap().early_ends;
    for turn in 0..MOTIONS {
        if let Some(viewer) = &viewer {
            viewer.point(100 + turn, 100).unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    control.server_info().unwrap().early_ends - before
}

#[test]
fn a_viewers_pointer_ends_slices_if_xqos_decides() {
    if is_missing(ServerKind::Xtigervnc) {
        return;
    }
    let _others = in_parallel();
    // On a busy machine, several motions reach the server together, so repeat the test if needed.
    let mut moved = 0;
    for _ in 0..4 {
        moved += early_ends(&setup(ServerKind::Xtigervnc), true);
        if moved > u64::from(MOTIONS) / 4 {
            break;
        }
    }
    assert!(moved > u64::from(MOTIONS) / 4, "{moved} slices ended early for {} motions", 4 * MOTIONS);
    // The test's own queries may still end slices, because their client has used little server time.
    let still = early_ends(&setup(ServerKind::Xtigervnc), false);
    assert!(still <= 5, "{still} slices ended early without motion");
    let stock = Module { policy: Some(PolicyKind::Stock), ..module() };
    let left_alone = early_ends(&Setup::with_module(ServerKind::Xtigervnc, stock), true);
    assert_eq!(left_alone, 0, "no slice ends early under the policy stock");
}
