// SPDX-License-Identifier: MIT
//! Tests `xqos ssh` with an sshd on the loopback interface that has the test's own keys and settings.

mod large_replies;
mod sessions;
mod settings;

use crate::fixture::{Ended, Folder, Running, Server, ended, eventually, xqos};
use std::fs::{self, Permissions};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A running sshd, and how to reach it.
struct Far {
    _daemon: Running,
    folder: Folder,
    port: u16,
}

/// Creates the folder without which sshd refuses to start as root; normally Debian's service creates it. The folder is
/// not removed, because other tests may be using it.
fn make_privilege_folder() {
    let made = fs::create_dir("/run/sshd");
    // If this user is not allowed to create the folder, sshd does not need it.
    let _ = made.and_then(|()| fs::set_permissions("/run/sshd", Permissions::from_mode(0o755)));
}

impl Far {
    /// Starts an sshd with these settings; `path` is the PATH of its sessions. `None` if sshd or xauth is missing.
    fn start(name: &str, path: &str, settings: &str) -> Option<Far> {
        let (sshd, xauth) = (xqos_testkit::program("sshd")?, xqos_testkit::program("xauth")?);
        let folder = Folder::new(name);
        make_privilege_folder();
        // Create the file, because xauth prints a message when it has to create it.
        fs::write(folder.file("authority"), "").unwrap();
        for key in ["host", "user"] {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f", &folder.file(key)]).stdin(Stdio::null());
            assert!(command.status().unwrap().success());
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // sshd uses the first value of each setting.
        let settings = format!(
            "{settings}\nPort {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitUserRC no\nPrintMotd no\n\
             X11Forwarding yes\nX11UseLocalhost yes\nX11DisplayOffset 200\nXAuthLocation {}\nUseDNS no\n\
             SetEnv PATH=\"{path}\" XDG_CACHE_HOME=\"{}\" XAUTHORITY=\"{}\"\n",
            folder.file("host"),
            folder.file("user.pub"),
            xauth.display(),
            folder.file("cache"),
            folder.file("authority"),
        );
        fs::write(folder.file("settings"), settings).unwrap();
        let mut command = Command::new(sshd);
        command.args(["-D", "-e", "-f", &folder.file("settings")]).stderr(Stdio::null());
        let daemon = Running::start(&mut command);
        eventually("sshd listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        Some(Far { _daemon: daemon, folder, port })
    }

    fn command(&self, server: &Server, options: &[&str], program: &[&str]) -> Command {
        let mut command = server.xqos(&["ssh"]);
        self.log_in(&mut command).args(options).arg("127.0.0.1").args(program);
        // In this folder, a test finds the files of its own session.
        command.stdin(Stdio::null()).env("TMPDIR", &self.folder.path);
        command
    }

    /// Adds the options with which `ssh` and `xqos ssh` can log in.
    fn log_in<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.args(["-p", &self.port.to_string(), "-F", "none", "-i", &self.folder.file("user")]);
        for setting in ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes", "LogLevel=ERROR"] {
            command.args(["-o", setting]);
        }
        command.args(["-o", "IdentityAgent=none"])
    }

    /// The folder of the only session, on this side.
    fn session(&self) -> Option<PathBuf> {
        let files = fs::read_dir(&self.folder.path).unwrap().filter_map(|entry| Some(entry.ok()?.path()));
        files.filter(|path| path.extension().is_some_and(|extension| extension == "line")).last()
    }

    fn run(&self, server: &Server, options: &[&str], program: &[&str]) -> Ended {
        let ended = ended(&mut self.command(server, options, program));
        assert_eq!(self.session(), None, "the session's folder is removed");
        ended
    }
}

/// A PATH that includes the program under test.
fn with_program() -> String {
    let folder = Path::new(crate::PROGRAM).parent().unwrap().display().to_string();
    format!("{folder}:/usr/bin:/bin")
}

/// Files in /tmp that sessions of this test have left behind.
fn left() -> Vec<PathBuf> {
    let files = fs::read_dir("/tmp").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    // These names contain the 24 hexadecimal digits of a token; no other test uses such names.
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("xqos-"));
        name.is_some_and(|name| name.len() >= 24 && name[..24].chars().all(|letter| letter.is_ascii_hexdigit()))
    };
    files.filter(is_ours).collect()
}

#[test]
fn wrong_usage_says_what_to_write() {
    for (arguments, words) in [(&[][..], "HOST"), (&["far"], "PROGRAM"), (&["-p", "x", "far", "true"], "invalid value")]
    {
        let ended = ended(xqos().arg("ssh").args(arguments)).with(2);
        assert!(ended.err.contains(words), "{arguments:?}: '{words}' is missing in\n{}", ended.err);
    }
    ended(xqos().args(["ssh", "far", "true"])).failed_saying(&["DISPLAY is not set", "--display"]);
}

#[test]
fn a_remote_program_uses_the_local_display() {
    let Some(far) = Far::start("ssh-runs", &with_program(), "X11Forwarding no\nXAuthLocation /nowhere") else { return };
    let server = Server::stock();
    let told =
        far.run(&server, &[], &["sh", "-c", "echo $DISPLAY; xdpyinfo | grep -c 'name of display'; exit 7"]).with(7);
    assert!(told.out.starts_with(':') && told.out.ends_with("\n1\n"), "the proxy's display: {told:#?}");
    assert_eq!(told.err, "");
    far.run(&server, &[], &["sh", "-c", "kill -9 $$"]).with(137);
    let first = far.run(&server, &["--report"], &["xterm", "-e", "true"]).with(0);
    let second = far.run(&server, &["--report", "--verify"], &["xterm", "-e", "true"]).with(0);
    assert!(Path::new(&far.folder.file("cache/xqos/near/ssh/xterm")).exists(), "the next session finds it");
    assert!(first.err.contains("round trips left") && second.err.contains("none differed"), "{first:#?} {second:#?}");
    // The shell must not interpret arguments.
    let told = far.run(&server, &[], &["printf", "%s|", "a b", "it's", "$HOME", "-x"]).with(0);
    assert_eq!(told.out, "a b|it's|$HOME|-x|");
    let told = far.run(&server, &[], &["FIRST=a b", "SECOND=$HOME", "sh", "-c", "echo $FIRST $SECOND"]).with(0);
    assert_eq!(told.out, "a b $HOME\n");
    let told = far.run(&server, &[], &["cd /usr; pwd; exit 4"]).with(4);
    assert_eq!(told.out, "/usr\n");
}

#[test]
fn signals_reach_the_remote_program_and_nothing_is_left() {
    let Some(far) = Far::start("ssh-signals", &with_program(), "") else { return };
    let (server, file) = (Server::stock(), far.folder.file("runs"));
    let script = format!("trap 'exit 5' TERM; : > {file}; while :; do sleep 0.05; done");
    let running = Running::start(far.command(&server, &[], &["sh", "-c", &script]).stderr(Stdio::piped()));
    eventually("the program runs", || Path::new(&file).exists().then_some(()));
    running.signal("TERM");
    running.ended().with(5);
}

#[test]
fn missing_requirements_are_reported_in_one_line() {
    let server = Server::stock();
    if let Some(far) = Far::start("ssh-missing", "/usr/bin:/bin", "") {
        // This works only if xqos-wire is not installed on this machine.
        if !["/usr/bin", "/bin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join("xqos-wire").exists()) {
            let told = far.run(&server, &[], &["true"]).with(1);
            assert!(told.err.contains("not installed on 127.0.0.1") && told.err.contains("--copy"), "{told:#?}");
            assert_eq!(told.err.lines().count(), 1, "{told:#?}");
        }
        let told = far.run(&server, &["--copy", "--report"], &["sh", "-c", "xdpyinfo > /dev/null; exit 3"]).with(3);
        assert!(told.err.contains("1 connection"), "{told:#?}");
    }
    let told = ended(&mut server.xqos(&["ssh", "-p", "1", "-F", "none", "-o", "BatchMode=yes", "127.0.0.1", "true"]));
    assert!(told.with(255).err.contains("refused"), "ssh's own message");
    eventually("nothing is left", || left().is_empty().then_some(()));
}

/// A folder with a program of this name that runs a shell script, and a PATH that begins with it.
fn stub(test: &str, name: &str, script: &str) -> (Folder, String) {
    let folder = Folder::new(test);
    xqos_testkit::executable(&folder.path.join(name), format!("#!/bin/sh\n{script}\n").as_bytes());
    let path = format!("{}:{}", folder.path.display(), std::env::var("PATH").unwrap());
    (folder, path)
}

#[test]
fn a_full_disk_for_messages_leaves_the_exit_status() {
    let server = Server::stock();
    let (_folder, path) = stub("ssh-full", "ssh", "echo 'ssh: no route to host' >&2\nexit 255");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let status = server.xqos(&["ssh", "far", "true"]).env("PATH", path).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(255));
}

#[test]
fn a_signal_ends_the_program_that_asks_the_server_for_a_cookie() {
    let server = Server::stock();
    let (folder, path) = stub("ssh-signal", "xauth", "kill -TERM $$\n: > \"${0%/*}/survived\"");
    let told = ended(server.xqos(&["ssh", "--untrusted", "far", "true"]).env("PATH", path));
    told.failed_saying(&["--untrusted needs an X server with the extension SECURITY"]);
    assert!(!folder.path.join("survived").exists());
}
