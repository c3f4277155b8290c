// SPDX-License-Identifier: MIT
//! Sessions that share a connection.

use super::{Far, with_program};
use crate::fixture::{Running, Server, ended, eventually};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program that creates the file `runs`, waits for the file `go`, and then uses the display.
fn waiting(far: &Far) -> String {
    let (runs, go) = (far.folder.file("runs"), far.folder.file("go"));
    format!(": > {runs}; while [ ! -e {go} ]; do sleep 0.05; done; xdpyinfo > /dev/null; exit 3")
}

#[test]
fn sessions_use_the_users_own_connection_and_leave_it_open() {
    let Some(far) = Far::start("ssh-shared", &with_program(), "X11Forwarding no") else { return };
    let (server, path) = (Server::stock(), format!("ControlPath={}", far.folder.file("own")));
    let ssh = |arguments: &[&str]| {
        let mut ssh = Command::new("ssh");
        far.log_in(&mut ssh).args(["-o", &path]).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        ended(&mut ssh)
    };
    ssh(&["-M", "-N", "-f", "127.0.0.1"]).with(0);
    // From now on, nobody can log in.
    fs::remove_file(far.folder.file("user.pub")).unwrap();
    far.run(&server, &[], &["true"]).with(255);
    let script = waiting(&far);
    let start = |_| Running::start(far.command(&server, &["-o", &path], &["sh", "-c", &script]).stderr(Stdio::piped()));
    let sessions = [0, 1, 2].map(start);
    eventually("one program runs", || Path::new(&far.folder.file("runs")).exists().then_some(()));
    fs::write(far.folder.file("go"), "").unwrap();
    for session in sessions {
        assert_eq!(session.ended().with(3).err, "");
    }
    ssh(&["-O", "check", "127.0.0.1"]).with(0);
    ssh(&["-O", "exit", "127.0.0.1"]).with(0);
}
