// SPDX-License-Identifier: MIT
//! Tests of the lab with stock servers: programs start, measurements work, and nothing is left behind.

use std::path::Path;
use std::time::{Duration, Instant};
use xqos_lab::light::Light;
use xqos_lab::load::{Load, Perf, Placement};
use xqos_lab::server::{ServerKind, Setup};
use xqos_lab::statistics::quantile;
use xqos_lab::tiles;

const PATIENCE: Duration = Duration::from_secs(60);

/// Measures the operations of each client from now on, until they suffice.
fn work_until(load: &mut Load, is_enough: impl Fn(&[f64]) -> bool) -> Vec<f64> {
    let from = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(500)); // time: all clients draw meanwhile
        let work = load.work(from, Instant::now()).unwrap();
        if is_enough(&work) {
            return work;
        }
        assert!(from.elapsed() < PATIENCE, "{work:?}");
    }
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn every_kind_of_server_starts_serves_and_is_gone_afterwards() {
    for kind in ServerKind::ALL {
        let mut server = Setup::stock(kind).start().unwrap();
        let version = server.version().unwrap();
        assert!(server.is_running() && version.starts_with(&format!("{kind:?} ")), "{version}");
        assert!(server.memory().unwrap().rss_kb > 1000);
        let pids: Vec<u32> = std::iter::once(server.pid()).chain(server.host().map(|host| host.pid())).collect();
        drop(server);
        assert!(!pids.iter().any(|&pid| exists(pid)), "{kind:?} left {pids:?}");
    }
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let mut setup = Setup::stock(ServerKind::Xvfb);
    setup.arguments.push("-nonsense".into());
    let error = setup.start().unwrap_err().to_string();
    assert!(error.contains("nonsense"), "{error}");
}

#[test]
fn servers_run_side_by_side_with_two_thousand_clients_allowed() {
    let mut setup = Setup::stock(ServerKind::Xvfb);
    setup.max_clients = 2048;
    let (one, two) = (setup.start().unwrap(), setup.start().unwrap());
    assert_ne!(one.display(), two.display());
    let clients: Vec<_> = (0..600).map(|_| one.connect().unwrap()).collect();
    assert_eq!(clients.len(), 600);
}

#[test]
fn a_server_without_xqos_has_no_control() {
    let server = Setup::stock(ServerKind::Xvfb).start().unwrap();
    let error = server.control().unwrap_err().to_string();
    assert!(error.contains("no XQOS"), "{error}");
}

#[test]
fn the_light_client_keeps_its_pace() {
    let server = Setup::stock(ServerKind::Xvfb).start().unwrap();
    let light = Light { warm_up: Duration::from_millis(50), ..Light::default() };
    let measured = light.measure(&server, Duration::from_secs(2)).unwrap();
    let series = &measured.series;
    let drawn = series.response_ns.len() as u64;
    assert!((2..=201).contains(&drawn), "{drawn} turns of 10 ms in 2 s");
    // Every turn between the first and the last drawing was drawn or counted as missed.
    let turns = (series.at_us.last().unwrap() - series.at_us[0]) / 10_000;
    assert!(drawn + series.missed_turns >= turns, "{drawn} drawn, {} missed, of {turns}", series.missed_turns);
    let response_ms = series.response_ns.iter().map(|&ns| ns as f64 / 1e6);
    let p50 = quantile(response_ms.clone(), 0.5);
    assert!(p50 > 0.01, "{:?}", response_ms.collect::<Vec<_>>());
    assert_eq!(series.at_us.len(), series.server_delay_ns.len());
}

#[test]
fn x11perf_clients_draw_are_counted_and_are_gone_afterwards() {
    let server = Setup::stock(ServerKind::Xvfb).start().unwrap();
    let perf = Perf::calibrate(server.display(), "rect100").unwrap();
    assert!(perf.reps > 10, "{perf:?}");
    let mut load = Load::start(server.display(), &perf, 3, Placement::Stacked).unwrap();
    let busy_before = server.cpu_time().unwrap();
    let work = work_until(&mut load, |work| work.iter().all(|&operations| operations > 1000.0));
    assert_eq!(work.len(), 3);
    assert!(server.cpu_time().unwrap() > busy_before);
    let pids = load.pids();
    drop(load);
    assert!(!pids.iter().any(|&pid| exists(pid)), "left {pids:?}");
}

#[test]
fn side_by_side_clients_do_equal_work() {
    let server = Setup { screen: tiles::SCREEN, ..Setup::stock(ServerKind::Xvfb) }.start().unwrap();
    let perf = Perf::calibrate(server.display(), "rect500").unwrap();
    let mut load = Load::start(server.display(), &perf, 4, Placement::SideBySide).unwrap();
    // If their windows were hidden, clients would do a hundred times as many operations. A client that had no processor
    // for a while has done fewer, but this effect shrinks with time.
    work_until(&mut load, |work| {
        let (least, most) = (work.iter().copied().fold(f64::MAX, f64::min), work.iter().copied().fold(0.0, f64::max));
        least > 0.0 && most / least < 3.0
    });
}

#[test]
fn a_test_that_x11perf_does_not_know_is_an_error() {
    let server = Setup::stock(ServerKind::Xvfb).start().unwrap();
    let error = Perf::calibrate(server.display(), "nonsense").unwrap_err().to_string();
    assert!(error.contains("nonsense"), "{error}");
}
