// SPDX-License-Identifier: MIT
//! Tests of loading: xqos serves every server that it can serve, and does nothing in any other process.

use crate::busy::Busy;
use crate::fixture::{
    Fixture, SOON, entry, in_parallel, is_held_back, is_missing, module, policies, setup, uses_libc_host, wait_before,
    wait_for,
};
use crate::wire::{Wire, local_socket};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use xqos_abi::{ByteOrder, PolicyChange, Request};
use xqos_core::PolicyKind;
use xqos_lab::process::Owned;
use xqos_lab::server::{Module, ServerKind};
use xqos_testkit::Folder;

#[test]
fn every_kind_of_server_is_armed_with_fair_and_has_a_keyboard() {
    let _turn = in_parallel();
    for kind in ServerKind::ALL {
        if is_missing(kind) {
            continue;
        }
        let fixture = Fixture::start(&setup(kind));
        let info = fixture.info();
        assert!(info.armed && info.policy == PolicyKind::Fair, "{kind:?}: {info:?}");
        assert_eq!(info.server_pid, fixture.pid(), "{kind:?}");
        assert!(fixture.xqos_log().contains("serves this server"), "{kind:?}: {}", fixture.xqos_log());
        // The server's child xkbcomp would fail if it inherited the preload.
        assert!(has_keyboard(&fixture), "{kind:?} has no keyboard map");
        let log = fixture.log();
        for trouble in ["ERROR: ld.so", "Failed to compile keymap", "xkbcomp: ", "Fatal", "stepped aside"] {
            assert!(!log.contains(trouble), "{kind:?}: {log}");
        }
    }
}

#[test]
fn every_kind_of_server_holds_back_releases_and_survives_a_fault() {
    let _turn = in_parallel();
    for kind in ServerKind::ALL {
        if is_missing(kind) {
            continue;
        }
        let mut wanted = setup(kind);
        wanted.environment.push(("XQOS_TEST_FAULT".into(), "request:200".into()));
        let fixture = Fixture::start(&wanted);
        let control = fixture.control().unwrap();
        let (busy, mut swapped) = (Busy::start(&fixture), fixture.wire(ByteOrder::SWAPPED));
        control.reserve(busy.base, 1000, 10_000_000, true).unwrap();
        let is_held = || is_held_back(&control, busy.base);
        wait_for("the client is held back", SOON, is_held);
        let before = entry(&control, busy.base).requests;
        let last = policies().into_iter().find(|&policy| policy != PolicyKind::Fair);
        control.set_policy(PolicyChange { policy: last, ..PolicyChange::default() }).unwrap();
        (0..10).for_each(|_| swapped.sync());
        assert!(is_held() && entry(&control, busy.base).requests == before, "{kind:?}");
        let deadline_ns = entry(&control, busy.base).deadline_ns;
        control.release(busy.base).unwrap();
        let is_served = || entry(&control, busy.base).requests > before + 100;
        wait_before(deadline_ns, &control, "the client is served", is_served);
        control.reserve(busy.base, 1000, 10_000_000, true).unwrap();
        wait_for("the client is held back again", SOON, is_held);
        wait_for("the fault occurs", SOON, || control.server_info().map_or(true, |info| !info.armed));
        let sent = busy.sent();
        wait_for("the client is served", SOON, || busy.sent() > sent + 300);
        swapped.sync();
        assert!(fixture.xqos_log().contains("stepped aside"), "{kind:?}: {}", fixture.xqos_log());
    }
}

#[test]
fn an_xorg_with_both_module_and_preload_loads_xqos_once() {
    let _turn = in_parallel();
    if is_missing(ServerKind::Xorg) {
        return;
    }
    let mut wanted = setup(ServerKind::Xorg);
    wanted.environment.push(("LD_PRELOAD".into(), module().path.into_os_string()));
    let fixture = Fixture::start(&wanted);
    assert!(fixture.info().armed);
    if uses_libc_host() {
        // There is no thread to count, so check that the log says exactly once that xqos serves the server.
        let said = fixture.xqos_log();
        return assert_eq!(said.matches("serves this server").count(), 1, "{said}");
    }
    let watchers = || fixture.switches().unwrap().iter().filter(|thread| thread.name.contains("xqos")).count();
    // The watcher starts when there is something to watch: a reserved client beside another.
    let reserved = fixture.native();
    fixture.control().unwrap().reserve(reserved.base, 1000, 10_000, false).unwrap();
    let mut other = fixture.native();
    wait_for("the watcher has its name", SOON, || {
        other.sync();
        watchers() > 0
    });
    assert_eq!(watchers(), 1);
}

fn has_keyboard(fixture: &Fixture) -> bool {
    const GET_KEYBOARD_MAPPING: u8 = 101;
    let mut wire = fixture.native();
    let request = wire.message(GET_KEYBOARD_MAPPING, 0).raw(&[38, 1, 0, 0]).finish();
    // Keycode 38 is the key A on an evdev keyboard. The symbols follow the reply's header.
    wire.ask(&request).unwrap()[32..36] == 0x61_u32.to_ne_bytes()
}

#[test]
fn the_environment_sets_parameters_and_invalid_values_are_logged() {
    let _turn = in_parallel();
    let mut good = setup(ServerKind::Xvfb);
    good.module = Some(Module {
        policy: Some(PolicyKind::Smart),
        slice_us: Some(2500),
        max_utilization_ppm: Some(500_000),
        ..module()
    });
    let info = Fixture::start(&good).info();
    assert_eq!((info.policy, info.slice_us, info.max_utilization_ppm), (PolicyKind::Smart, 2500, 500_000));

    let nonsense: [(&str, &[u8]); 8] = [
        ("XQOS_POLICY", b"fairest"),
        ("XQOS_POLICY", b""),
        ("XQOS_POLICY", b"\xff\xfe"),
        ("XQOS_SLICE_US", b"7"),
        ("XQOS_SLICE_US", b"99999999999999999999"),
        ("XQOS_MAX_UTILIZATION_PPM", b"1000000"),
        ("XQOS_TEST_FAULT", b"nowhere:1"),
        ("XQOS_TEST_FAULT", b"wakeup:-1"),
    ];
    for (name, value) in nonsense {
        let mut bad = setup(ServerKind::Xvfb);
        bad.environment.push((name.into(), OsStr::from_bytes(value).to_owned()));
        let fixture = Fixture::start(&bad);
        let info = fixture.info();
        assert_eq!((info.policy, info.slice_us, info.max_utilization_ppm), (PolicyKind::Fair, 5000, 900_000));
        assert!(info.armed, "{name}={value:?}: {}", info.reason);
        let said = fixture.xqos_log();
        assert!(said.contains(&format!("{name}=")) && said.contains("is not valid"), "{name}={value:?}: {said}");
    }
}

#[test]
fn a_process_that_is_no_server_is_undisturbed_and_keeps_the_preload() {
    let _turn = in_parallel();
    let path = module().path;
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).env("LD_PRELOAD", &path).output().unwrap()
    };
    let output = run("/bin/true", &[]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let output = run("/bin/sh", &["-c", "echo $LD_PRELOAD"]);
    assert_eq!(Path::new(OsStr::from_bytes(output.stdout.trim_ascii_end())), path);
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_wrapper_script_starts_a_server_with_xqos_in_it() {
    let _turn = in_parallel();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec Xvfb -displayfd 1 -nolisten tcp -noreset"]).env("LD_PRELOAD", module().path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = Owned::start(&mut command, Duration::from_secs(5)).unwrap();
    let mut display = String::new();
    BufReader::new(process.pipes().stdout.take().unwrap()).read_line(&mut display).unwrap();
    let mut wire = Wire::connect(&format!(":{}", display.trim()), ByteOrder::NATIVE);
    assert!(wire.ask_xqos(Request::GetServerInfo).is_ok());
}

#[test]
fn one_line_reports_a_server_without_symbols_if_the_dix_host_is_forced() {
    let _turn = in_parallel();
    let folder = Folder::new("inert");
    // This program has the name of a server but none of a server's symbols.
    let program = folder.path.join("Xvfb");
    fs::copy("/bin/sh", &program).unwrap();
    let script = "echo child:$LD_PRELOAD:$XQOS_HOST";
    let output = Command::new(&program)
        .args(["-c", script])
        .envs([("LD_PRELOAD", module().path.as_os_str()), ("XQOS_HOST", "dix".as_ref())])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("xqos: ") && said.contains("does not export"), "{said}");
    // A real server's children would inherit these variables.
    assert_eq!(output.stdout, b"child::\n");
}

/// The server runs xkbcomp, which reads its files from the test's folder. One of them is a pipe, so xkbcomp waits while
/// the test reads its environment.
#[test]
fn the_servers_children_inherit_neither_the_preload_nor_our_settings() {
    const OTHER: &str = "/lib/x86_64-linux-gnu/libm.so.6";
    let _turn = in_parallel();
    let folder = Folder::new("xkb");
    let Some(original) = xqos_testkit::file("/usr/share/X11/xkb") else { return };
    link_all(&original, &folder.path, "keycodes");
    fs::create_dir(folder.path.join("keycodes")).unwrap();
    link_all(&original.join("keycodes"), &folder.path.join("keycodes"), "evdev");
    let pipe = folder.path.join("keycodes/evdev");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let marker = folder.path.to_string_lossy().into_owned();
    let look = std::thread::spawn(move || {
        // `open` returns as soon as xkbcomp opens the pipe.
        let mut file = fs::OpenOptions::new().write(true).open(pipe).unwrap();
        let found = environment_of("xkbcomp", &marker);
        file.write_all(&fs::read(original.join("keycodes/evdev")).unwrap()).unwrap();
        found
    });
    let mut wanted = setup(ServerKind::Xvfb);
    wanted.arguments.extend(["-xkbdir".into(), folder.path.clone().into_os_string()]);
    let mut preload = wanted.module.as_ref().unwrap().path.clone().into_os_string();
    let has_other = Path::new(OTHER).exists();
    if has_other {
        preload.push(":");
        preload.push(OTHER);
    }
    wanted.environment.push(("LD_PRELOAD".into(), preload));
    wanted.environment.push(("XQOS_POLICY".into(), "fair".into()));
    let fixture = Fixture::start(&wanted);
    let environment = look.join().unwrap().expect("xkbcomp was seen");
    assert!(!environment.iter().any(|entry| entry.starts_with("XQOS_POLICY=")), "{environment:?}");
    let inherited = environment.iter().find_map(|entry| entry.strip_prefix("LD_PRELOAD="));
    assert_eq!(inherited, has_other.then_some(OTHER), "only our preload is removed");
    assert!(fixture.info().armed && has_keyboard(&fixture));
}

fn environment_of(program: &str, argument: &str) -> Option<Vec<String>> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let texts = |path: PathBuf| fs::read(path).unwrap_or_default();
    let found = processes.into_iter().find(|process| {
        let name = texts(process.join("comm"));
        let command = texts(process.join("cmdline"));
        name.starts_with(program.as_bytes()) && String::from_utf8_lossy(&command).contains(argument)
    })?;
    let environment = texts(found.join("environ"));
    Some(environment.split(|&byte| byte == 0).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect())
}

fn link_all(from: &Path, to: &Path, but: &str) {
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_name() != but {
            symlink(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn a_rejected_client_leaves_nothing_behind() {
    use crate::wire::Authorization;
    let _turn = in_parallel();
    let mut wanted = setup(ServerKind::Xvfb);
    let folder = Folder::new("auth");
    let file = folder.path.join("authority");
    fs::write(&file, crate::wire::authority_entry(b"MIT-MAGIC-COOKIE-1", &[7; 16])).unwrap();
    wanted.arguments.extend([OsString::from("-auth"), file.into_os_string()]);
    let fixture = Fixture::start(&wanted);
    let wrong = Authorization { name: b"MIT-MAGIC-COOKIE-1".to_vec(), data: vec![8; 16] };
    let right = Authorization { data: vec![7; 16], ..wrong.clone() };
    let mut wire = Wire::try_connect(local_socket(fixture.display()), ByteOrder::NATIVE, &right).unwrap();
    for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
        for _ in 0..20 {
            assert!(Wire::try_connect(local_socket(fixture.display()), order, &wrong).is_err());
        }
    }
    let reply = wire.ask_xqos(xqos_abi::Request::ListClients).unwrap();
    let list = xqos_abi::ClientList::decode(&reply, ByteOrder::NATIVE).unwrap();
    assert_eq!(list.clients.len(), 1, "{list:?}");
}
