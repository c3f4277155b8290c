// SPDX-License-Identifier: MIT
//! Tests of decisions and of requests to the kernel, with and without contention.

use super::mock::{Effect, MS, Server, at_us};
use super::{clients, reserve};
use crate::mechanism::settings::Settings;
use xqos_core::{ClientId, Time};

/// Sends a batch of 0.1 ms requests every 10 ms. The batches take this percentage of the time.
fn load(server: &mut Server, id: ClientId, percent: u64, from_ms: u64, to_ms: u64) {
    for at_ms in (from_ms..to_ms).step_by(10) {
        (0..percent).for_each(|_| server.send_at(at_us(at_ms * 1000), id, MS / 10, Effect::Nothing));
    }
}

/// Sends one request in the middle of each batch.
fn ask_often(server: &mut Server, id: ClientId, from_ms: u64, to_ms: u64) {
    (from_ms..to_ms)
        .step_by(10)
        .for_each(|at_ms| server.send_at(at_us(at_ms * 1000 + 1010), id, MS / 100, Effect::Nothing));
}

fn mean_wait_ns(server: &Server, id: ClientId, from_ms: u64, to_ms: u64) -> u64 {
    let (from, to) = (at_us(from_ms * 1000), at_us(to_ms * 1000));
    let done: Vec<_> =
        server.done.iter().filter(|done| done.client == id && done.start >= from && done.end < to).collect();
    let waits = done.iter().map(|done| done.start.0 % (10 * MS) - 1010 * MS / 1000);
    waits.sum::<u64>() / done.len() as u64
}

#[test]
fn no_slice_ends_early_and_no_short_slices_are_used_without_contention() {
    for percent in [10, 30, 60, 80] {
        let mut server = Server::new(&Settings::default());
        let [batches, light] = clients(&mut server);
        load(&mut server, batches, percent, 0, 2000);
        ask_often(&mut server, light, 0, 2000);
        server.run_until(Time(2000 * MS));
        assert_eq!((server.engine().totals.early_ends, server.host().short_slices.len()), (0, 0), "{percent} %");
        assert_eq!(server.engine().totals.busy_ns, 200 * (percent * MS / 10 + MS / 100), "{percent} %");
    }
}

#[test]
fn a_light_client_is_first_and_short_slices_are_requested_once_under_contention() {
    let mut server = Server::new(&Settings::default());
    let [batches, light] = clients(&mut server);
    // The load is above the contention threshold for one second, then below it for two.
    load(&mut server, batches, 99, 0, 1000);
    load(&mut server, batches, 60, 1000, 3000);
    ask_often(&mut server, light, 0, 3000);
    server.run_until(Time(3000 * MS));
    let [before, with, after] =
        [(0, 20), (100, 1000), (1500, 3000)].map(|(from, to)| mean_wait_ns(&server, light, from, to));
    assert!(with < MS / 10 && before > 3 * MS && after > 3 * MS, "{before}, {with}, {after} ns");
    assert_eq!(server.host().short_slices, [true, false]);
    assert!(server.engine().totals.early_ends > 50);
}

#[test]
fn a_server_that_waits_for_a_processor_counts_as_busy() {
    for (delayed_percent, is_contended) in [(0, false), (30, false), (100, true)] {
        let mut server = Server::new(&Settings::default());
        server.host().delayed_percent = delayed_percent;
        let [batches, light] = clients(&mut server);
        load(&mut server, batches, 69, 0, 1000);
        ask_often(&mut server, light, 0, 1000);
        server.run_until(Time(1000 * MS));
        let wait_ns = mean_wait_ns(&server, light, 100, 1000);
        assert_eq!(wait_ns < MS / 10, is_contended, "{delayed_percent} %: {wait_ns} ns");
        assert_eq!(server.host().short_slices, [true][..usize::from(is_contended)]);
    }
}

#[test]
fn a_reserved_client_ends_slices_without_contention() {
    let mut server = Server::new(&Settings::default());
    let [batches, light] = clients(&mut server);
    reserve(&mut server, light, 1, 10, false);
    load(&mut server, batches, 60, 0, 1000);
    ask_often(&mut server, light, 0, 1000);
    server.run_until(Time(1000 * MS));
    assert!(mean_wait_ns(&server, light, 0, 1000) <= MS / 10);
    assert!(server.host().short_slices.is_empty());
}

#[test]
fn service_without_contention_is_not_charged_later() {
    let mut server = Server::new(&Settings::default());
    let [regular, hog] = clients(&mut server);
    load(&mut server, regular, 70, 0, 3000);
    server.run_until(Time(3000 * MS));
    for id in [regular, hog] {
        server.send(id, 5000, MS / 10);
    }
    server.run_until(Time(3400 * MS));
    let got = server.time_of(regular, Time(3000 * MS), Time(3400 * MS));
    assert!((190 * MS..210 * MS).contains(&got), "{got} ns of 400 ms");
}
