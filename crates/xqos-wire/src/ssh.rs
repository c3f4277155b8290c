// SPDX-License-Identifier: MIT
//! `xqos ssh`: runs a program on another machine, next to a proxy there, over the system's ssh.
//!
//! ssh opens a single master connection, so that it asks for a password only once. Everything else uses this
//! connection: copying this program if requested, the session with the forwarded display, signals, and removing files.

mod far;

use crate::near::NearOptions;
use crate::program::{shown, wait_for};
use anyhow::{Context, Result, bail};
use clap::Args;
use far::Remote;
use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;
use xqos_sys::{self as sys, Signal, Signals};
use xqos_wire::capture::relay::authority::secret;

/// Maximum time until the session ends after a forwarded signal. After that time, the connection is closed, which also
/// closes the program's display.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a program on another machine over ssh, and answers known queries there
///
/// Like `ssh -Y -C HOST PROGRAM`, with `xqos near` next to the program. Nothing changes on this side: the X server is
/// that of DISPLAY, and the system's ssh is used with its own settings for the host.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Copy this program to the far machine for this session, if xqos is not installed there
    #[arg(long)]
    copy: bool,
    #[command(flatten)]
    near: NearOptions,
    /// Port to connect to, as ssh -p
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// Private key file, as ssh -i
    #[arg(short, long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// A setting in ssh_config syntax, as ssh -o
    #[arg(short, long, value_name = "SETTING")]
    option: Vec<String>,
    /// Configuration file instead of ~/.ssh/config, as ssh -F
    #[arg(short = 'F', long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The other machine, as for ssh
    #[arg(value_name = "[USER@]HOST")]
    host: String,
    /// The program on the other machine and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  xqos ssh far emacs notes.txt
  xqos ssh --copy me@far xterm
  xqos ssh -p 2222 --relaxed --report far gtk3-demo

The far machine needs xqos-wire, or use --copy, which requires the same kind of
machine there. The copy lies in /tmp and is removed at the end. ssh forwards the
display, so sshd there needs 'X11Forwarding yes' and the program xauth.

Like ssh -Y, this gives the program full access to your display: only run
programs that you trust. INT, TERM and HUP are passed to the program.

Exit status: that of the program, or 128 + n if signal n ended it; 255 if ssh
failed; 1 if something is missing, which one line explains.";

/// An ssh master connection. Dropping it closes the connection and removes all files.
#[derive(Debug)]
struct MasterConnection<'a> {
    arguments: &'a Arguments,
    folder: PathBuf,
    token: String,
    is_open: bool,
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<ExitCode> {
        if self.host.starts_with('-') {
            bail!("'{}' is not a host: put the options of xqos ssh before the host, see xqos ssh --help", self.host);
        }
        let named = display.map(OsString::from).or_else(|| env::var_os("DISPLAY")).filter(|name| !name.is_empty());
        let display = named.context("DISPLAY is not set: give the program's X server with --display")?;
        let signals = Signals::watch().context("cannot watch for the program's end")?;
        let mut master = MasterConnection::new(self)?;
        let opened = master.open(&display)?;
        if !opened.success() {
            return Ok(ExitCode::from(shown(opened)));
        }
        if self.copy && !master.copy()? {
            return Ok(ExitCode::FAILURE);
        }
        let mut session = master.run(&display)?;
        // The terminal's ^C has also ended ssh, but the program on the far side has received no signal.
        let pass = |signal: &Signal| {
            master.signal(signal.number);
            true
        };
        wait_for(&mut session, "ssh", &signals, GRACE, pass).map(ExitCode::from)
    }

    fn options(&self) -> Vec<&'static str> {
        let NearOptions { relaxed, verify, report } = self.near;
        let options = [(relaxed, "--relaxed"), (verify, "--verify"), (report, "--report")];
        // Print the final messages of xqos near only if the user asked for them.
        let quiet = (!report && !verify, "--quiet");
        options.into_iter().chain([quiet]).filter_map(|(is_wanted, option)| is_wanted.then_some(option)).collect()
    }
}

impl MasterConnection<'_> {
    fn new(arguments: &Arguments) -> Result<MasterConnection<'_>> {
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
    fn open(&mut self, display: &OsString) -> Result<ExitStatus> {
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

    fn copy(&self) -> Result<bool> {
        let own = File::open("/proc/self/exe").context("cannot read this program")?;
        let machine = Command::new("uname").arg("-sm").output().context("cannot run uname")?;
        let machine = String::from_utf8_lossy(&machine.stdout).trim().to_owned();
        let script = far::copy(&self.arguments.host, &self.token, &machine);
        let status = self.far(&script).stdin(own).status().map_err(explained)?;
        Ok(status.success())
    }

    fn run(&self, display: &OsString) -> Result<Child> {
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

    fn signal(&self, signal: i32) {
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
