// SPDX-License-Identifier: MIT
//! The ssh master connection of a session, and everything that uses it.

use super::Arguments;
use super::far::{self, Remote};
use anyhow::{Context, Result};
use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use xqos_sys as sys;
use xqos_wire::capture::relay::authority::secret;

/// An ssh master connection. Dropping it closes the connection and removes all files.
#[derive(Debug)]
pub struct MasterConnection<'a> {
    arguments: &'a Arguments,
    folder: PathBuf,
    token: String,
    is_open: bool,
}

impl MasterConnection<'_> {
    pub fn new(arguments: &Arguments) -> Result<MasterConnection<'_>> {
        let random = secret().context("no random numbers are available on this machine")?;
        // The path of a socket must be short.
        let token = random[..12].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let folder = env::temp_dir().join(format!("xqos-{token}.line"));
        DirBuilder::new().mode(0o700).create(&folder).context("cannot create a folder for the connection")?;
        Ok(MasterConnection { arguments, folder, token, is_open: false })
    }

    fn ssh(&self) -> Command {
        let Arguments { port, identity, option, config, .. } = self.arguments;
        let mut ssh = Command::new("ssh");
        ssh.arg("-S").arg(self.folder.join("line"));
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

    /// Opens the master connection. ssh itself asks for passwords and reports failures.
    pub fn open(&mut self, display: &OsString) -> Result<ExitStatus> {
        let mut ssh = self.ssh();
        ssh.args(["-M", "-N", "-f", "-Y", "-C", "-o", "ControlPersist=yes", "-o", "ExitOnForwardFailure=no"]);
        ssh.arg("--").arg(&self.arguments.host).env("DISPLAY", display).stdin(Stdio::inherit());
        // The master stays in the background and must not keep our output open.
        ssh.stdout(Stdio::null()).stderr(self.log()?);
        let status = ssh.status().map_err(explained)?;
        self.is_open = status.success();
        let said = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        eprint!("{said}");
        Ok(status)
    }

    fn log(&self) -> Result<File> {
        File::create(self.folder.join("log")).context("cannot create a file for ssh's messages")
    }

    fn far(&self, script: &str) -> Command {
        let mut ssh = self.ssh();
        ssh.arg("-T").arg("--").arg(&self.arguments.host).arg(script);
        ssh
    }

    pub fn copy(&self) -> Result<bool> {
        let own = File::open("/proc/self/exe").context("cannot read this program")?;
        let machine = Command::new("uname").arg("-sm").output().context("cannot run uname")?;
        let machine = String::from_utf8_lossy(&machine.stdout).trim().to_owned();
        let script = far::copy(&self.arguments.host, &self.token, &machine);
        let status = self.far(&script).stdin(own).status().map_err(explained)?;
        Ok(status.success())
    }

    pub fn run(&self, display: &OsString) -> Result<Child> {
        let remote = Remote {
            host: &self.arguments.host,
            token: &self.token,
            is_copied: self.arguments.copy,
            options: self.arguments.options(),
            program: &self.arguments.program,
        };
        let mut ssh = self.ssh();
        ssh.args(["-Y", "-C", "-T", "--"]).arg(&self.arguments.host).arg(far::run(&remote)).env("DISPLAY", display);
        ssh.spawn().map_err(explained)
    }

    pub fn signal(&self, signal: i32) {
        let _ = self.far(&far::signal(&self.token, signal)).stdin(Stdio::null()).stderr(Stdio::null()).status();
    }
}

impl Drop for MasterConnection<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let quietly = |ssh: &mut Command| {
                let _ = ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            };
            quietly(&mut self.far(&far::clean(&self.token)));
            quietly(self.ssh().args(["-O", "exit", "--"]).arg(&self.arguments.host));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn explained(error: io::Error) -> anyhow::Error {
    let is_missing = error.kind() == ErrorKind::NotFound;
    let what = if is_missing { "ssh is not installed here: install openssh-client" } else { "cannot start ssh" };
    anyhow::Error::from(error).context(what)
}
