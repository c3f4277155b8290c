// SPDX-License-Identifier: MIT
//! Tests sessions that share or lose a connection, and clients without the cookie on a session's socket.

use super::{Far, with_program};
use crate::fixture::{Running, Server, ended, eventually, kill};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program that creates the file `runs`, waits for the file `go`, and then uses the display.
fn waiting(far: &Far) -> String {
    let (runs, go) = (far.folder.file("runs"), far.folder.file("go"));
    format!(": > {runs}; while [ ! -e {go} ]; do sleep 0.05; done; xdpyinfo > /dev/null; exit 3")
}

#[test]
fn strangers_on_the_sessions_socket_are_refused_in_one_line_each() {
    let Some(far) = Far::start("ssh-strangers", &with_program(), "") else { return };
    let server = Server::stock();
    let running = Running::start(far.command(&server, &[], &["sh", "-c", &waiting(&far)]).stderr(Stdio::piped()));
    eventually("the program runs", || Path::new(&far.folder.file("runs")).exists().then_some(()));
    let folder = far.session().unwrap();
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    let socket = folder.join("gate").display().to_string();
    let mut expected = vec!["cookie of this session", "X setup request"];
    for _ in 0..2 {
        for sent in [&b"l\0\x0b\0\0\0\0\0\0\0\0\0"[..], b"GET / HTTP/1.1\r\n\r\n"] {
            let mut stranger = UnixStream::connect(&socket).unwrap();
            stranger.write_all(sent).unwrap();
            // This ends when the gate has closed the connection, whether or not it has read everything.
            let _ = stranger.read_to_end(&mut Vec::new());
        }
    }
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&socket, Permissions::from_mode(0o666)).unwrap();
        let mut other = Command::new("setpriv");
        let connect = "socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un(shift)) or die $!; sysread(S, $_, 1)";
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups", "perl", "-MSocket", "-e", connect, &socket]);
        ended(&mut other).with(0);
        expected.push("belongs to another user");
    } else {
        xqos_testkit::left_out("only root can connect as another user");
    }
    let _silent = (0..100).map(|_| UnixStream::connect(&socket).unwrap()).collect::<Vec<_>>();
    expected.push("too many connections");
    fs::write(far.folder.file("go"), "").unwrap();
    let told = running.ended().with(3);
    assert_eq!(told.err.lines().count(), expected.len(), "{told:#?}");
    assert!(expected.iter().all(|words| told.err.contains(words)), "{expected:?} {told:#?}");
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
    // From now on, logins fail.
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

#[test]
fn a_lost_connection_ends_the_program_and_removes_all_files() {
    let Some(far) = Far::start("ssh-lost", &with_program(), "") else { return };
    let (server, runs) = (Server::stock(), far.folder.file("runs"));
    let script = format!("echo $$ > {runs}.new; mv {runs}.new {runs}; exec xterm");
    let running = Running::start(far.command(&server, &[], &["sh", "-c", &script]).stderr(Stdio::piped()));
    let told = eventually("the program runs", || fs::read_to_string(&runs).ok());
    let pid = told.trim();
    let session = far.session().unwrap();
    let mut check = Command::new("ssh");
    let said = ended(check.arg("-S").arg(session.join("line")).args(["-O", "check", "127.0.0.1"])).err;
    let master = said.split(|letter: char| !letter.is_ascii_digit()).find(|digits| !digits.is_empty()).unwrap();
    let token = session.file_stem().unwrap().to_owned();
    kill(master.parse().unwrap(), "KILL");
    running.ended().with(255);
    assert!(!session.exists());
    eventually("the program ends", || fs::read_link(format!("/proc/{pid}/exe")).is_err().then_some(()));
    eventually("its folder is removed", || (!Path::new("/tmp").join(&token).exists()).then_some(()));
}
