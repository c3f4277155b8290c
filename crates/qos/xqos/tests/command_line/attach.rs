// SPDX-License-Identifier: MIT
//! `--attach`, which watches a server without xqos from outside.

use crate::fixture::{Folder, Running, Server, ended, eventually, xqos};
use crate::inside::record;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use serde_json::Value;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

/// Returns true if this user may not read the kernel's trace; the test is then skipped with the reason.
fn is_not_allowed(server: &Server) -> bool {
    let ended = server.ask(&["list", "--attach", "--for", "100ms"]);
    let not = ended.status != 0;
    if not {
        xqos_testkit::left_out(&ended.err);
    }
    not
}

/// The kernel trace instances that xqos has created.
fn instances() -> Vec<String> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).unwrap();
    fsconfig_create(&context).unwrap();
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty()).unwrap();
    let entries = fs::read_dir(format!("/proc/self/fd/{}/instances", mount.as_raw_fd())).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn share(sample: &Value, pid: i32) -> f64 {
    let clients = sample["clients"].as_array().unwrap();
    clients.iter().find(|client| client["pid"] == pid).map_or(0.0, |client| client["share"].as_f64().unwrap())
}

#[test]
fn clients_of_a_stock_server_are_named_and_their_shares_add_up() {
    let server = Server::stock();
    if is_not_allowed(&server) {
        return;
    }
    let perf = |test| {
        let mut command = Command::new("x11perf");
        command.args(["-display", &server.display, test, "-repeat", "100000", "-time", "1"]);
        Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
    };
    let (one, two) = (perf("-ellipse100"), perf("-getimage100"));
    eventually("both are served", || {
        let sample = server.json(&["list", "--attach", "--json"]);
        let shares = [share(&sample, one.pid()), share(&sample, two.pid())];
        let busy = sample["busy"].as_f64().unwrap();
        assert!(shares.iter().sum::<f64>() <= busy + 0.001 && busy <= 1.01, "{sample}");
        // On a busy machine, the kernel may overwrite records before they are read.
        (sample["lost"] == 0 && shares.iter().all(|&share| share > 0.001)).then_some(())
    });
}

#[test]
fn a_recording_gets_kernel_events_where_attach_works() {
    if is_not_allowed(&Server::stock()) {
        return;
    }
    let (folder, server) = (Folder::new("kernel"), Server::served(&[]));
    let client = server.client(&["x11perf", "-getimage100", "-repeat", "100000"]);
    let file = folder.file("a.trace");
    let own = format!("xqos-{}", record(&server, &[client], &file, &["--kernel"]));
    let shown = ended(xqos().args(["trace", "show", "--kind", "kernel", &file])).with(0).out;
    assert!(shown.lines().count() > 0, "the kernel put the server on a processor");
    let named = ended(xqos().args(["trace", "show", "--kind", "thread", &file])).with(0).out;
    assert!(named.lines().any(|line| line.ends_with(" is Xvfb")), "the server's thread has its name: {named}");
    assert!(!instances().contains(&own), "the trace is still there");
}

#[test]
fn short_lived_clients_are_summed_up_by_program() {
    let server = Server::stock();
    if is_not_allowed(&server) {
        return;
    }
    let mut script = Command::new("sh");
    script.args(["-c", "while xwd -root -silent; do :; done"]).env("DISPLAY", &server.display);
    let _script = Running::start(script.stdout(Stdio::null()).stderr(Stdio::null()));
    eventually("the script's program is named", || {
        let sample = server.json(&["list", "--attach", "--json"]);
        let clients = sample["clients"].as_array().unwrap();
        let sum = clients.iter().map(|client| client["share"].as_f64().unwrap()).sum::<f64>();
        assert!((sum - sample["busy"].as_f64().unwrap()).abs() < 0.001, "{sample}");
        let left: Vec<_> = clients.iter().filter(|client| client["departed"] == true).collect();
        let named = left.iter().filter(|client| client["program"] == "xwd");
        let named: Vec<u64> = named.map(|client| client["connections"].as_u64().unwrap()).collect();
        assert!(named.len() <= 1, "one line for all of them: {sample}");
        // On a busy machine, the kernel may overwrite records before they are read.
        (sample["lost"] == 0 && named.first().is_some_and(|&connections| connections > 1)).then_some(())
    });
}

#[test]
fn a_signal_ends_watching_and_removes_the_trace() {
    let server = Server::stock();
    if is_not_allowed(&server) {
        return;
    }
    for signal in ["INT", "TERM", "HUP"] {
        let shown = std::env::temp_dir().join(format!("xqos-attach-{}-{signal}", std::process::id()));
        let mut command = server.xqos(&["top", "--attach", "--interval", "100ms"]);
        let top = Running::start(command.stdout(File::create(&shown).unwrap()).stderr(Stdio::piped()));
        let own = format!("xqos-{}", top.pid());
        eventually("the trace is there", || instances().contains(&own).then_some(()));
        let is_shown = || fs::read_to_string(&shown).unwrap().contains("PROGRAM").then_some(());
        eventually("the table is shown", is_shown);
        top.signal(signal);
        top.ended().with(0);
        assert!(!instances().contains(&own));
        fs::remove_file(&shown).unwrap();
    }
    server.ask(&["list", "--attach", "1"]).failed_saying(&["process 1 serves no display"]);
    server.ask(&["list", "--attach", ":64999"]).failed_saying(&[":64999"]);
    server.ask(&["list", "--attach", "elsewhere:0"]).failed_saying(&["another machine"]);
}

#[test]
fn a_served_server_is_recognised_and_shares_match_its_own() {
    let server = Server::served(&[]);
    if is_not_allowed(&server) {
        return;
    }
    let perf = |test| {
        let mut command = Command::new("x11perf");
        command.args(["-display", &server.display, test, "-repeat", "100000", "-time", "1"]);
        Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
    };
    let clients = [perf("-noop"), perf("-getimage100")];
    let used_ms = || {
        clients
            .each_ref()
            .map(|one| server.entry(one.pid()).map_or(0.0, |entry| entry["server_time_ms"].as_f64().unwrap()))
    };
    eventually("both are served", || used_ms().iter().all(|&ms| ms > 100.0).then_some(()));
    eventually("both are seen", || {
        let before = used_ms();
        let sample = server.json(&["list", "--attach", "--json", "--for", "500ms"]);
        let after = used_ms();
        assert_eq!(sample["served"], true, "{sample}");
        let told = sample["clients"].as_array().unwrap();
        let busy_ms = clients.each_ref().map(|one| {
            let client = told.iter().find(|client| client["pid"] == one.pid());
            client.map_or(0.0, |client| client["busy_ms"].as_f64().unwrap())
        });
        // `list --attach` watched only a part of the time between the two readings.
        let is_within = |at: usize| busy_ms[at] <= after[at] - before[at];
        assert!(is_within(0) && is_within(1), "{busy_ms:?} of {:?}: {sample}", (before, after));
        busy_ms.iter().all(|&ms| ms > 0.0).then_some(())
    });
    let text = server.ask(&["list", "--attach", "--for", "100ms"]).with(0).out;
    assert!(text.contains("with xqos, which measured") && !text.contains("without xqos"), "{text}");
}
