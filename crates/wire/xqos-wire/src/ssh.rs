// SPDX-License-Identifier: MIT
//! `xqos ssh`: runs a program on another machine, next to a proxy there, over the system's ssh.
//!
//! A session opens one master connection, so that ssh asks for a password only once, or borrows the user's own. It is
//! used for everything else: copying this program if requested, the forwarded socket, the program, signals, and
//! removing files.
//!
//! ```text
//! program ─ xqos near ─ /tmp/xqos-TOKEN/ssh ─ sshd ════ ssh ─ gate ─ X server
//!                      far side                           this side
//! ```
//!
//! ssh gives the replies of a forwarded X connection a window of 64 kB, but those of a forwarded socket 2 MB. X11
//! forwarding and xauth are needed only if sshd refuses to forward sockets.

mod far;
mod gate;
mod master;
mod untrusted;

use crate::near::NearOptions;
use crate::program::shown;
use anyhow::{Context, Result, bail};
use clap::Args;
use gate::Gate;
use master::MasterConnection;
use std::env;
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};
use xqos_cli::output::note;
use xqos_near::setup::Cookie;
use xqos_sys::{self as sys, Signals};
use xqos_wire::relay::authority::{cookie, secret};
use xqos_wire::relay::upstream::Upstream;

/// Maximum time until the session ends after a forwarded signal. After that time, the connection is closed, which also
/// closes the program's display.
const GRACE: Duration = Duration::from_secs(10);
/// The settings of sshd that can prohibit the forwarding of sockets.
const SOCKETS: &str = "AllowStreamLocalForwarding or AllowTcpForwarding";

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
    /// Give the program full access to the display, as ssh -Y; this is the default
    #[arg(long, overrides_with = "untrusted")]
    trusted: bool,
    /// Let the X server restrict the program, as ssh -X: no access to other programs' windows, and few extensions
    #[arg(long, overrides_with = "trusted")]
    untrusted: bool,
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
    /// The program on the other machine and its arguments, or a shell command as one argument
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  xqos ssh far emacs notes.txt
  xqos ssh --copy me@far xterm
  xqos ssh -p 2222 --relaxed --report far gtk3-demo
  xqos ssh far LC_ALL=C xterm
  xqos ssh far 'cd notes && emacs *.txt'

Arguments reach the program unchanged, unlike those of ssh. A single argument
with spaces or other characters of the shell is a command for the login shell
there. Assignments before the program set its environment.

The far machine needs xqos-wire, or use --copy, which requires the same kind of
machine there. The copy lies in /tmp and is removed at the end.

X goes through a forwarded Unix socket, which needs neither 'X11Forwarding yes'
nor xauth there. If sshd does not forward sockets, ssh -Y is used, which needs
both.

Like ssh -Y, this gives the program full access to your display: only run
programs that you trust, or add --untrusted. INT, TERM and HUP are passed to the
program.

Exit status: that of the program, or 128 + n if signal n ended it; 255 if ssh
failed; 1 if something is missing, which one line explains.";

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<ExitCode> {
        if self.host.starts_with('-') {
            bail!("'{}' is not a host: put the options of xqos ssh before the host, see xqos ssh --help", self.host);
        }
        let named = display.map(str::to_owned).or_else(|| env::var("DISPLAY").ok()).unwrap_or_default();
        let upstream = Upstream::find(Some(&named))?;
        let signals = Signals::watch().context("cannot watch for the program's end")?;
        let mut master = MasterConnection::new(self)?;
        let server = if self.is_untrusted() {
            untrusted::cookie(&named, &master.folder)?
        } else {
            let (name, data) = cookie(&upstream).unwrap_or_default();
            Cookie { name, data }
        };
        let opened = if master.borrow() { 0 } else { master.open(&named)? };
        if opened != 0 {
            return Ok(ExitCode::from(opened));
        }
        let own = Cookie::magic(secret().context("cannot create the session's cookie")?);
        if !master.prepare(&own)? || self.copy && !master.copy()? {
            return Ok(ExitCode::FAILURE);
        }
        let screen = upstream.display.screen;
        let gate = Gate::start(&master.socket(), own, server, upstream);
        gate.context("cannot create the session's socket")?;
        let is_forwarded = master.forward();
        if !is_forwarded {
            let (host, [x11, ..]) = (&self.host, self.x11_options());
            note(&format!("sshd on {host} does not forward sockets ({SOCKETS}): using ssh {x11}"));
            // The user's own connection may not forward X11, or forward it to another display.
            let opened = if master.is_borrowed { master.open(&named)? } else { 0 };
            if opened != 0 {
                return Ok(ExitCode::from(opened));
            }
        }
        let session = master.run(&named, is_forwarded.then_some(screen))?;
        wait_for(session, &master, &signals).map(ExitCode::from)
    }

    fn is_untrusted(&self) -> bool {
        self.untrusted && !self.trusted
    }

    /// Options of ssh's own X forwarding.
    fn x11_options(&self) -> [&'static str; 3] {
        // Debian's ssh trusts programs even with -X.
        if self.is_untrusted() { ["-X", "-o", "ForwardX11Trusted=no"] } else { ["-Y", "-o", "ForwardX11Trusted=yes"] }
    }

    fn options(&self) -> Vec<&'static str> {
        // Print the final messages of xqos near only if the user asked for them.
        let is_quiet = !self.near.report && !self.near.verify;
        self.near.words().chain(is_quiet.then_some("--quiet")).collect()
    }
}

/// Waits for ssh, and returns its exit status. Signals are passed to the program on the far side.
fn wait_for(mut session: Child, master: &MasterConnection<'_>, signals: &Signals) -> Result<u8> {
    let mut end: Option<Instant> = None;
    loop {
        while let Some(signal) = signals.next() {
            if signal.number != libc::SIGCHLD {
                // The terminal's ^C has also ended ssh, but the program on the far side has received no signal.
                master.signal(signal.number);
                end.get_or_insert(Instant::now() + GRACE);
            }
        }
        if let Some(status) = session.try_wait().context("cannot wait for ssh")? {
            return Ok(shown(status));
        }
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            session.kill().context("cannot end ssh")?;
        }
        sys::poll(&[signals.as_raw_fd()], left).context("cannot wait for ssh")?;
    }
}
