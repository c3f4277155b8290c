// SPDX-License-Identifier: MIT
//! Tests the environment of programs under `xqos link`, and that no process is left, however the program ends.

use crate::fixture::{Folder, Running, ended, eventually, xqos};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Skips the test, with the reason on standard error, where links are not allowed.
pub fn is_allowed() -> bool {
    let told = ended(xqos().args(["link", "--", "true"]));
    if told.status != 0 {
        xqos_testkit::left_out(&told.err);
    }
    told.status == 0
}

#[test]
fn wrong_usage_says_what_to_write() {
    for (arguments, words) in [
        (&["--rate", "10"][..], "such as 100kbit"),
        (&["--delay", "10"], "write 10ms"),
        (&["--queue", "x"], "such as 64k"),
        (&["--loss", "2"], "such as 1%"),
        (&["--netem", "--log", "x"], "cannot be used with"),
        (&["--port", "80"], "--server"),
    ] {
        let ended = ended(xqos().arg("link").args(arguments).args(["--", "true"])).with(2);
        assert!(ended.err.contains(words), "{arguments:?}: '{words}' is missing in\n{}", ended.err);
    }
    ended(xqos().args(["link", "--display", ":7", "--", "true"])).failed_saying(&["--server 'Xvfb"]);
    ended(xqos().args(["link", "--display", "far:7", "--server", "true"])).failed_saying(&["such as :7"]);
}

#[test]
fn an_existing_log_is_refused_and_kept() {
    let folder = Folder::new("link-log");
    let file = folder.file("queue.log");
    fs::write(&file, "precious").unwrap();
    ended(xqos().args(["link", "--log", &file, "--", "true"])).failed_saying(&["already exists: remove it"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn the_exit_status_is_the_programs() {
    if !is_allowed() {
        return;
    }
    let run = |script: &str| ended(xqos().args(["link", "--quiet", "--", "sh", "-c", script]));
    assert_eq!(run("exit 7").with(7).err, "");
    run("kill -9 $$").with(137);
    ended(xqos().args(["link", "--", "/nowhere/program"])).failed_saying(&["/nowhere/program"]);
}

#[test]
fn a_server_that_fails_is_reported_immediately() {
    if !is_allowed() {
        return;
    }
    let told = ended(xqos().args(["link", "--server", "exit 3", "--port", "80", "--", "true"]));
    told.failed_saying(&["exited before it listened on port 80"]);
}

#[test]
fn a_program_reaches_an_x_server_over_the_link() {
    if !is_allowed() {
        return;
    }
    // Nothing else uses this range.
    let number = 20_000 + std::process::id() % 10_000;
    // Test the command of the documents, where the server gets a cookie, and a command without access control.
    for access in ["", " -ac"] {
        let server = format!("exec Xvfb :{number} -listen tcp{access} -nolisten unix -nolisten local");
        let mut command = xqos();
        command.args(["link", "--delay", "5ms", "--display", &format!(":{number}"), "--server", &server]);
        let script =
            "echo $DISPLAY; xdpyinfo | grep -c 'name of display'; XAUTHORITY=/dev/null xdpyinfo > /dev/null; echo $?";
        let told = ended(command.args(["--", "sh", "-c", script])).with(0);
        let without_cookie = u8::from(access.is_empty());
        assert_eq!(told.out, format!("10.0.0.1:{number}\n1\n{without_cookie}\n"));
        assert!(told.err.contains("to the server") && told.err.contains("packets"), "{}", told.err);
        assert!(!Path::new(&format!("/tmp/.X{number}-lock")).exists(), "the server has removed its lock");
    }
}

#[test]
fn no_process_is_left_after_any_signal() {
    if !is_allowed() {
        return;
    }
    for signal in ["TERM", "HUP", "INT", "KILL"] {
        let folder = Folder::new("link");
        let file = |name: &str| folder.path.join(name).display().to_string();
        // At each end, start one process that is detached from its shell.
        let script = |name: &str| format!("setsid sleep 1000 & echo $! $$ > {}; exec sleep 1001", file(name));
        let mut command = xqos();
        command.args(["link", "--server", &script("server"), "--", "sh", "-c", &script("client")]);
        let link = Running::start(command.stderr(Stdio::null()));
        let pids: Vec<i32> = ["server", "client"]
            .into_iter()
            .flat_map(|name| {
                eventually("the programs run", || {
                    let text = fs::read_to_string(file(name)).ok()?;
                    let pids: Vec<i32> = text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
                    (pids.len() == 2).then_some(pids)
                })
            })
            .collect();
        link.signal(signal);
        let left = || pids.iter().any(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok());
        eventually(&format!("nothing is left after {signal}"), || (!left()).then_some(()));
        drop(link);
    }
}

#[test]
fn root_is_not_needed_where_user_namespaces_are_allowed() {
    // This test matters only when run as root; otherwise all tests run without root anyway.
    let folder = Folder::new("link-user");
    let program = folder.path.join("xqos");
    xqos_testkit::executable(&program, &fs::read(crate::PROGRAM).unwrap());
    fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).current_dir("/").arg(&program);
    // The tests' folder of programs may be in a home that this user cannot read.
    command.env("PATH", "/usr/bin:/bin");
    let told = ended(command.args(["link", "--", "sh", "-c", "id -u; cat /proc/net/dev | grep -c link0"]));
    if told.status != 0 && (told.err.contains("kernel refuses") || told.err.contains("setpriv")) {
        xqos_testkit::left_out(&told.err);
        return;
    }
    assert_eq!(told.with(0).out, "0\n1\n");
}

#[test]
fn netem_is_used_or_reported_missing() {
    if !is_allowed() {
        return;
    }
    let folder = Folder::new("link-netem");
    let file = folder.file("server");
    // Each side prints the queueing discipline of its device.
    let show = "tc qdisc show dev link0";
    let server = format!("{show} > {file}.new && mv {file}.new {file}; exec sleep 1000");
    let client = format!("until [ -e {file} ]; do sleep 0.1; done; {show}");
    let mut command = xqos();
    command.args(["link", "--netem", "--delay", "7ms", "--server", &server, "--", "sh", "-c", &client]);
    let told = ended(&mut command);
    if told.status != 0 {
        told.failed_saying(&["netem", "without --netem"]);
        return;
    }
    for shown in [told.out, fs::read_to_string(file).unwrap()] {
        assert!(shown.starts_with("qdisc netem") && shown.contains("delay 7ms"), "{shown}");
    }
}

/// A script stands in for `tc`, so that this also runs where the kernel has no netem.
#[test]
fn netem_is_set_in_the_network_namespace_of_each_side() {
    if !is_allowed() {
        return;
    }
    let folder = Folder::new("link-tc");
    let (file, program) = (folder.file("calls"), folder.path.join("tc"));
    let namespace = "readlink /proc/self/ns/net";
    xqos_testkit::executable(&program, format!("#!/bin/sh\necho $({namespace}) $* >> {file}\n").as_bytes());
    let path = format!("{}:{}", folder.path.display(), std::env::var("PATH").unwrap());
    let run = |options: &[&str]| {
        let server = format!("{namespace} > {file}.new && mv {file}.new {file}.server; exec sleep 1000");
        let client = format!("until [ -e {file}.server ]; do sleep 0.1; done; {namespace}; cat {file}.server");
        let arguments = [&["link"], options, &["--server", &server, "--", "sh", "-c", &client]].concat();
        ended(xqos().args(arguments).env("PATH", &path)).with(0).out
    };
    let sides = run(&["--netem", "--delay", "7ms", "--rate", "1mbit", "--queue", "3000"]);
    let calls = fs::read_to_string(&file).unwrap();
    // Two packets wait, one is in flight, and one is being sent.
    let set = "qdisc add dev link0 root netem limit 4 rate 1000000bit delay 7000us";
    let wanted: Vec<String> = sides.lines().map(|namespace| format!("{namespace} {set}")).collect();
    assert_eq!(calls.lines().collect::<Vec<_>>(), wanted);
    assert_ne!(wanted[0], wanted[1], "each side has its own namespace");
    fs::remove_file(&file).unwrap();
    run(&["--delay", "7ms"]);
    assert!(!Path::new(&file).exists(), "tc is not used without --netem");
}
