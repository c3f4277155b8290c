//! Servers that are served from below, by what they ask of libc: what is particular to them. All other tests run for such
//! servers too, with XQOS_HOST=libc.

use crate::busy::Busy;
use crate::fixture::{
    Fixture, alone, as_nobody, beside_others, entry, is_missing_program, is_not_root, module, setup, wait_for,
};
use crate::wire::{Wire, opcode};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xqos_abi::{Order, PolicyChange};
use xqos_client::{Control, Error};
use xqos_core::PolicyKind;
use xqos_lab::process::Owned;
use xqos_lab::server::Kind;

const SOON: Duration = Duration::from_secs(10);

fn from_below(kind: Kind) -> Fixture {
    let mut setup = setup(kind);
    setup.environment.push(("XQOS_HOST".into(), "libc".into()));
    Fixture::start(&setup)
}

fn control_socket(server: &Fixture) -> UnixStream {
    let display = server.display().trim_start_matches(':').parse().unwrap();
    // SAFETY: no arguments, cannot fail.
    let paths = xqos_abi::control::paths(display, unsafe { libc::geteuid() });
    paths.iter().find_map(|path| UnixStream::connect(path).ok()).expect("the server listens for control")
}

#[test]
fn every_kind_of_server_can_be_served_from_below() {
    let _turn = beside_others();
    for kind in [Kind::Xvfb, Kind::Xephyr, Kind::Xtigervnc] {
        if is_missing_program(kind.program()) {
            continue;
        }
        let mut server = from_below(kind);
        server.assert_armed();
        assert!(server.control().unwrap().is_below(), "{kind:?}");
        assert_eq!(server.info().server_pid, server.pid());
        let mut wire = server.native();
        wire.sync();
        assert!(entry(&server.control().unwrap(), wire.base).requests > 0, "{kind:?}: what it sends is counted");
    }
}

#[test]
fn what_needs_single_requests_is_refused() {
    let _turn = beside_others();
    let server = from_below(Kind::Xvfb);
    let control = server.control().unwrap();
    let classic = PolicyChange { policy: Some(PolicyKind::Classic), ..PolicyChange::default() };
    assert!(matches!(control.set_policy(classic), Err(Error::NotFromBelow)));
    assert!(server.info().policy == PolicyKind::Fair, "it is as it was");
}

/// Longer than what a server's buffer holds, and than any request without BIG-REQUESTS, beside one that draws all the time.
#[test]
fn a_request_of_sixteen_megabytes_arrives_whole() {
    const SIDE: u16 = 1990;
    const Z_PIXMAP: u8 = 2;
    let _turn = beside_others();
    for order in [Order::Native, Order::Swapped] {
        let mut server = from_below(Kind::Xvfb);
        let _busy = Busy::start(&server);
        let mut wire = server.wire(order);
        let big = wire.extension("BIG-REQUESTS").expect("the server has BIG-REQUESTS");
        let enabled = wire.ask(&wire.message(big.major, 0).finish()).unwrap();
        assert!(wire.u32_in(&enabled, 8) >= 4_000_000);
        let canvas = wire.canvas(SIDE, SIDE);
        let pixels: Vec<u8> =
            (0..4 * u32::from(SIDE) * u32::from(SIDE)).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let put = wire.message(opcode::PUT_IMAGE, Z_PIXMAP).u32(canvas.pixmap).u32(canvas.context);
        wire.send(&put.u16(SIDE).u16(SIDE).u32(0).raw(&[0, 24, 0, 0]).raw(&pixels).finish());
        let get = wire
            .message(opcode::GET_IMAGE, Z_PIXMAP)
            .u32(canvas.pixmap)
            .u16(0)
            .u16(0)
            .u16(SIDE)
            .u16(SIDE)
            .u32(!0)
            .finish();
        let image = wire.ask(&get).unwrap();
        let differs = image[32..].chunks(4).zip(pixels.chunks(4)).position(|(is, was)| is[..3] != was[..3]);
        assert_eq!(differs, None, "the first pixel that is another one");
        server.assert_armed();
    }
}

/// The seeds are fixed, so that a failure comes again.
#[test]
fn random_bytes_at_the_control_socket_harm_nobody() {
    let _turn = alone();
    let mut server = from_below(Kind::Xvfb);
    let mut wire = server.native();
    wire.sync();
    let files = server.open_files();
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for turn in 0..300 {
        let mut stream = control_socket(&server);
        stream.set_write_timeout(Some(SOON)).unwrap();
        let length = 1 + random() as usize % 2000;
        let mut bytes: Vec<u8> = (0..length).map(|_| random() as u8).collect();
        if turn % 2 == 0 {
            // Headers that are right, mostly.
            for start in (0..length.saturating_sub(4)).step_by(16) {
                bytes[start..start + 4].copy_from_slice(&[0, random() as u8 % 24, 4, 0]);
            }
        }
        // It disconnects whom it does not understand.
        let _ = stream.write_all(&bytes);
        wire.sync();
    }
    // Who asks and never reads.
    let mut greedy = control_socket(&server);
    greedy.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let list = xqos_abi::Request::ListClients.encode(0);
    while greedy.write_all(&list.repeat(64)).is_ok() && greedy.peer_addr().is_ok() {}
    wire.sync();
    drop(greedy);
    wait_for("all connections are closed", SOON, || {
        wire.sync();
        server.open_files() <= files
    });
    server.assert_armed();
}

/// The socket lies where its user alone can reach it, or asks who is at the other end.
#[test]
fn another_user_changes_nothing_over_the_control_socket() {
    let _turn = beside_others();
    if is_not_root() {
        return;
    }
    let server = from_below(Kind::Xvfb);
    let display = server.display().to_owned();
    let changed = as_nobody(|| {
        let change = PolicyChange { policy: Some(PolicyKind::Stock), ..PolicyChange::default() };
        Control::connect(Some(&display)).ok().flatten().is_some_and(|control| control.set_policy(change).is_ok())
    });
    assert!(!changed);
    assert!(server.info().policy == PolicyKind::Fair);
}

/// As a Wayland compositor starts it, by the script that it is told to start.
#[test]
fn xwayland_is_served_under_a_compositor() {
    let _turn = alone();
    if is_missing_program("weston") || is_missing_program("Xwayland") {
        return;
    }
    let folder = std::env::temp_dir().join(format!("xqos-weston-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let (script, settings, log) = (folder.join("xwayland"), folder.join("weston.ini"), folder.join("log"));
    let start = format!("#!/bin/sh\nLD_PRELOAD={} exec Xwayland \"$@\"\n", module().path.display());
    fs::write(&script, start).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&settings, format!("[core]\nxwayland=true\n[xwayland]\npath={}\n", script.display())).unwrap();
    let mut command = Command::new("weston");
    command.args(["--backend=headless-backend.so", "--socket=xqos-test", "--width=800", "--height=600"]);
    command.arg(format!("--config={}", settings.display())).arg(format!("--log={}", log.display()));
    command.env("XDG_RUNTIME_DIR", &folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let compositor = Owned::start(&mut command, Duration::from_secs(5)).unwrap();
    let mut display = String::new();
    wait_for("weston tells its display", SOON, || {
        let told = fs::read_to_string(&log).unwrap_or_default();
        let found =
            told.lines().find_map(|line| line.split_once("listening on display ").map(|(_, name)| name.to_owned()));
        found.map(|name| display = name.trim().to_owned()).is_some()
    });
    let busy = || Busy::start_on(Wire::connect(&display, Order::Native));
    let (one, two) = (busy(), busy());
    let control = Control::connect(Some(&display)).unwrap().expect("Xwayland is served");
    let info = control.server_info().unwrap();
    assert!(control.is_below() && info.armed, "{}", info.reason);
    let program = fs::read_link(format!("/proc/{}/exe", info.server_pid)).unwrap();
    assert!(program.ends_with("Xwayland"), "{program:?}, not the compositor that listened for it");
    let time = || [&one, &two].map(|busy| entry(&control, busy.base).server_time_ns);
    let (before, began) = (time(), Instant::now());
    wait_for("both are served", SOON, || {
        let now = time();
        let [first, second] = [now[0] - before[0], now[1] - before[1]];
        first + second > 400_000_000 && began.elapsed() > Duration::from_millis(300)
    });
    let now = time();
    let share = (now[0] - before[0]) as f64 / ((now[0] - before[0]) + (now[1] - before[1])) as f64;
    assert!((0.4..=0.6).contains(&share), "the first of two alike has {share:.2} of the server's time");
    drop((one, two, control, compositor));
    let _ = fs::remove_dir_all(&folder);
}
