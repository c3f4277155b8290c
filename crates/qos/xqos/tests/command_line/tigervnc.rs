// SPDX-License-Identifier: MIT
//! The README's recipe for TigerVNC's wrapper script: xqos is loaded into the X server only, not into the session's
//! programs.

use crate::fixture::{Folder, ended, eventually, module, xqos};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The README's commands; the last one starts the server, here with the test's session. The display is far above those
/// that other tests' servers choose: the wrapper looks for a free one, which may be taken before its server starts.
fn recipe(session: &Path) -> String {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../README.md")).unwrap();
    let lines = readme.lines().skip_while(|line| !line.contains("mkdir -p ~/.local/lib/xqos-vnc"));
    let lines: Vec<&str> = lines.take_while(|line| line.starts_with("    ")).map(str::trim_start).collect();
    let display = 1000 + std::process::id() % 10_000;
    let own = format!(":{display} -SecurityTypes None -localhost yes -xstartup {}", session.display());
    lines.join("\n").replace("tigervncserver :5", &format!("tigervncserver {own}"))
}

#[test]
fn only_the_x_server_of_a_tigervnc_session_is_preloaded() {
    if xqos_testkit::program("tigervncserver").is_none() {
        return;
    }
    let folder = Folder::new("tigervnc");
    let (session, seen) = (folder.path.join("session"), folder.file("seen"));
    xqos_testkit::executable(
        &session,
        format!("#!/bin/sh\nenv > {seen}.new; mv {seen}.new {seen}; exec xclock\n").as_bytes(),
    );
    let programs = Path::new(crate::PROGRAM).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).env_remove("DISPLAY").env_remove("XAUTHORITY");
        // Use no pipes, because the log of the session would keep them open.
        let said = fs::File::create(folder.path.join("said")).unwrap();
        command.env("HOME", &folder.path).env("PATH", &path).env("XQOS_MODULE", module());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).status().unwrap()
    };
    let started = shell(&recipe(&session));
    assert!(started.success(), "{}", fs::read_to_string(folder.path.join("said")).unwrap());
    let environment = eventually("the session starts", || fs::read_to_string(&seen).ok());
    let display = environment.lines().find_map(|line| line.strip_prefix("DISPLAY=")).unwrap().to_owned();
    let authority = folder.file(".Xauthority");
    let told = ended(xqos().env("XAUTHORITY", &authority).args(["--display", &display, "doctor"]));
    let number = display.rsplit(':').next().unwrap();
    let killed = shell(&format!("~/.local/lib/xqos-vnc/tigervncserver -kill :{number}"));
    assert!(told.out.contains("yes: XQOS") && told.out.contains("Xtigervnc"), "{told:#?}");
    assert!(!environment.contains("LD_PRELOAD") && !environment.contains("xqos.so"), "{environment}");
    assert!(killed.success(), "the wrapper ends the server that it has started");
}
