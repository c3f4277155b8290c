// SPDX-License-Identifier: MIT
//! The ssh master connection of a session, and everything that uses it.
//!
//! If the user already has a master connection to the host (ControlMaster), the session borrows it and leaves it open.

use super::Arguments;
use super::far::{self, Remote};
use crate::program::shown;
use anyhow::{Context, Result};
use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::mem;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use xqos_near::setup::Cookie;
use xqos_sys as sys;
use xqos_wire::relay::authority::{entry_for_path, secret};

/// Maximum time of a command that may fail without harm, because the network may be down.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// An ssh master connection. Dropping it closes the connection, unless it is borrowed, and removes all files.
#[derive(Debug)]
pub struct MasterConnection<'a> {
    arguments: &'a Arguments,
    /// The session's folder on this side, which only the user can access.
    pub folder: PathBuf,
    token: String,
    is_open: bool,
    /// Whether the connection is the user's own, which ssh finds through the user's configuration.
    pub is_borrowed: bool,
}

impl MasterConnection<'_> {
    pub fn new(arguments: &Arguments) -> Result<MasterConnection<'_>> {
        let random = secret().context("no random numbers are available on this machine")?;
        // The path of a socket must be short.
        let token = random[..12].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let folder = env::temp_dir().join(format!("xqos-{token}.line"));
        DirBuilder::new().mode(0o700).create(&folder).context("cannot create a folder for the connection")?;
        Ok(MasterConnection { arguments, folder, token, is_open: false, is_borrowed: false })
    }

    /// Uses the user's own master connection to the host, if there is one.
    pub fn borrow(&mut self) -> bool {
        self.is_borrowed = true;
        self.is_borrowed = self.control("check", &[]);
        self.is_open = self.is_borrowed;
        self.is_open
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("gate")
    }

    fn ssh(&self) -> Command {
        let Arguments { port, identity, option, config, .. } = self.arguments;
        let mut ssh = Command::new("ssh");
        if !self.is_borrowed {
            ssh.arg("-S").arg(self.folder.join("line"));
        }
        for (flag, file) in [("-F", config), ("-i", identity)] {
            if let Some(file) = file {
                ssh.arg(flag).arg(file);
            }
        }
        if let Some(port) = port {
            ssh.args(["-p", &port.to_string()]);
        }
        option.iter().for_each(|option| _ = ssh.args(["-o", option]));
        sys::unblock_signals_in(&mut ssh);
        ssh
    }

    /// Opens a master connection, and returns the exit status of ssh, which asks for passwords and reports failures.
    pub fn open(&mut self, display: &str) -> Result<u8> {
        let was_borrowed = mem::replace(&mut self.is_borrowed, false);
        let mut ssh = self.ssh();
        // If this process is killed, the connection closes once it has been unused for a minute.
        ssh.args(["-M", "-N", "-f", "-C", "-o", "ControlPersist=60", "-o", "ExitOnForwardFailure=no"]);
        ssh.args(self.arguments.x11_options()).arg("--").arg(&self.arguments.host);
        ssh.env("DISPLAY", display).stdin(Stdio::inherit());
        // The master stays in the background and must not keep our output open.
        ssh.stdout(Stdio::null()).stderr(self.log()?);
        let status = ssh.status().map_err(explained)?;
        self.is_open |= status.success();
        self.is_borrowed = was_borrowed && !status.success();
        let said = fs::read(self.folder.join("log")).unwrap_or_default();
        // A failure here cannot be reported anywhere.
        let _ = io::stderr().write_all(&said);
        Ok(shown(status))
    }

    fn log(&self) -> Result<File> {
        File::create(self.folder.join("log")).context("cannot create a file for ssh's messages")
    }

    fn far(&self, script: &str) -> Command {
        let mut ssh = self.ssh();
        ssh.args(["-x", "-T", "--"]).arg(&self.arguments.host).arg(script);
        ssh
    }

    /// Creates the session's folder on the far side, with the cookie for the session's socket. The cookie does not
    /// appear in any process's arguments, which other users can read.
    pub fn prepare(&self, cookie: &Cookie) -> Result<bool> {
        let entry = entry_for_path(&far::socket(&self.token), &cookie.name, &cookie.data);
        let script = far::prepare(&self.token, entry.len());
        let mut ssh = silent(self.far(&script).stdin(Stdio::piped()))?;
        if let Some(mut input) = ssh.stdin.take() {
            // If ssh fails, its status says so.
            let _ = input.write_all(&entry);
        }
        succeeded(ssh)
    }

    pub fn copy(&self) -> Result<bool> {
        let own = File::open("/proc/self/exe").context("cannot read this program")?;
        let machine = Command::new("uname").arg("-sm").output().context("cannot run uname")?;
        let machine = String::from_utf8_lossy(&machine.stdout).trim().to_owned();
        let script = far::copy(&self.arguments.host, &self.token, &machine);
        succeeded(silent(self.far(&script).stdin(own))?)
    }

    /// Forwards the session's socket. Returns false if sshd refuses to.
    pub fn forward(&self) -> bool {
        self.control("forward", &["-R", &self.forwarding()])
    }

    fn forwarding(&self) -> String {
        format!("{}:{}", far::socket(&self.token), self.socket().display())
    }

    /// Sends a command to the master process, and returns whether it succeeded.
    fn control(&self, command: &str, options: &[&str]) -> bool {
        quietly(self.ssh().args(["-O", command]).args(options).arg("--").arg(&self.arguments.host))
    }

    /// Starts the program; `screen` is the default screen if the session's socket is forwarded.
    pub fn run(&self, display: &str, screen: Option<u16>) -> Result<Child> {
        let socket = far::socket(&self.token);
        let remote = Remote {
            host: &self.arguments.host,
            token: &self.token,
            is_copied: self.arguments.copy,
            display: screen.map(|screen| if screen == 0 { socket } else { format!("{socket}.{screen}") }),
            options: self.arguments.options(),
            program: &self.arguments.program,
        };
        let mut ssh = self.ssh();
        let x11 = self.arguments.x11_options();
        ssh.args(if screen.is_some() { &["-x"] } else { &x11[..] }).args(["-T", "--"]);
        ssh.arg(&self.arguments.host).arg(far::run(&remote)).env("DISPLAY", display);
        ssh.spawn().map_err(explained)
    }

    pub fn signal(&self, signal: i32) {
        if self.is_alive() {
            quietly(&mut self.far(&far::signal(&self.token, signal)));
        }
    }

    /// Whether the master process runs. Without it, ssh would connect again, and may ask for a password.
    fn is_alive(&self) -> bool {
        self.is_open && self.control("check", &[])
    }
}

impl Drop for MasterConnection<'_> {
    fn drop(&mut self) {
        if self.is_alive() {
            if self.is_borrowed {
                self.control("cancel", &["-R", &self.forwarding()]);
            }
            quietly(&mut self.far(&far::clean(&self.token)));
            if !self.is_borrowed {
                self.control("exit", &[]);
            }
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs a command without input and output, and returns whether it succeeded in time.
fn quietly(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Ok(Some(status)) = child.try_wait() {
            return status.success();
        }
        thread::sleep(POLL_INTERVAL);
    }
    let _ = child.kill().and_then(|()| child.wait());
    false
}

/// Starts a command of the session itself, without output: text of the login shell's start-up files is printed when the
/// program starts.
fn silent(command: &mut Command) -> Result<Child> {
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(explained)
}

/// Waits for the end, and prints the messages of a command that has failed.
fn succeeded(child: Child) -> Result<bool> {
    let output = child.wait_with_output().context("cannot wait for ssh")?;
    if !output.status.success() {
        // A failure here cannot be reported anywhere.
        let _ = io::stderr().write_all(&output.stderr);
    }
    Ok(output.status.success())
}

fn explained(error: io::Error) -> anyhow::Error {
    let is_missing = error.kind() == ErrorKind::NotFound;
    let what = if is_missing { "ssh is not installed here: install openssh-client" } else { "cannot start ssh" };
    anyhow::Error::from(error).context(what)
}
