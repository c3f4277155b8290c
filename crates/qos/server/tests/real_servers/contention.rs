// SPDX-License-Identifier: MIT
//! Tests when xqos decides slices and asks for short kernel slices, on a server with default settings.

use crate::busy::X11perf;
use crate::fixture::{Fixture, SOON, alone, module, wait_for};
use crate::wire::Wire;
use std::time::Duration;
use xqos_lab::server::{Module, ServerKind, Setup};
use xqos_sys::Attributes;

const SHORT_NS: u64 = 300_000;

/// The slice length that the kernel reports for this thread.
fn kernel_slice_ns(thread: u32) -> u64 {
    let [_, runtime_ns, ..] = Attributes::of(thread as i32).unwrap().words();
    runtime_ns
}

/// Kernels before 6.12 do not support slice lengths.
fn knows_slices() -> bool {
    let tried = std::thread::spawn(|| {
        Attributes::normal(0, SHORT_NS).give(0).unwrap();
        kernel_slice_ns(0)
    });
    tried.join().unwrap() == SHORT_NS
}

#[test]
fn early_ends_and_short_slices_occur_only_under_contention() {
    let _turn = alone();
    let module = Module { is_always_contended: false, ..module() };
    let fixture = Fixture::start(&Setup::with_module(ServerKind::Xvfb, module));
    let control = fixture.control().unwrap();
    let mut light = fixture.native();
    let slice_ns = || kernel_slice_ns(fixture.pid());
    // A slice in which the server has no processor begins contention, and contention may end later than the load.
    let wait_until_idle = |light: &mut Wire| {
        wait_for("no slice is ended early, and slices are not short", SOON, || {
            let before = control.server_info().unwrap().early_ends;
            for _ in 0..50 {
                light.sync();
                std::thread::sleep(Duration::from_millis(2));
            }
            control.server_info().unwrap().early_ends == before && slice_ns() != SHORT_NS
        });
    };
    wait_until_idle(&mut light);
    let load = X11perf::start_many(&fixture, "ellipse100", 6);
    let is_short = || slice_ns() == SHORT_NS || !knows_slices();
    wait_for("slices are ended early, and short", SOON, || {
        light.sync();
        control.server_info().unwrap().early_ends > 0 && (crate::fixture::uses_libc_host() || is_short())
    });
    drop(load);
    wait_until_idle(&mut light);
}
