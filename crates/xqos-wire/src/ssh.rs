// SPDX-License-Identifier: MIT
//! `xqos ssh`: runs a program on another machine, next to a proxy there, over the system's ssh.
//!
//! ssh opens a single master connection, so that it asks for a password only once. Everything else uses this
//! connection: copying this program if requested, the session with the forwarded display, signals, and removing files.

mod far;
// The next change uses it.
#[allow(dead_code)]
mod gate;
mod master;

use crate::near::NearOptions;
use crate::program::{shown, wait_for};
use anyhow::{Context, Result, bail};
use clap::Args;
use master::MasterConnection;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use xqos_sys::{Signal, Signals};

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
