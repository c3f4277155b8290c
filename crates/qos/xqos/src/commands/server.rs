// SPDX-License-Identifier: MIT
//! `xqos server`: starts a stock X server with xqos in it, through LD_PRELOAD.
//!
//! This process becomes the server, so pid, signals and exit status are the server's. Conditions that would make the
//! server run silently without xqos are checked first.

use crate::commands::policy::{Shared, policies};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use xqos_agent::host::{self, exports};
use xqos_agent::processor;
use xqos_cli::module_file;
use xqos_cli::output::note;
use xqos_core::PolicyKind;
use xqos_sys as sys;
use xqos_text::quantity::{Micros, Reservation, within};

/// Starts an X server with xqos in it
///
/// The server is an unmodified one: xqos is loaded into it with LD_PRELOAD. This works for Xvfb, Xephyr and Xtigervnc.
/// Xorg loads the same file as a module, through a file in xorg.conf.d that `make install` puts there.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The initial scheduling policy [default: fair]
    #[arg(long, value_name = "NAME", value_parser = policies(), hide_possible_values = true)]
    policy: Option<PolicyKind>,
    #[command(flatten)]
    shared: Shared,
    /// Processor time and period for the server's main thread, such as 8ms/10ms (SCHED_DEADLINE; needs CAP_SYS_NICE)
    #[arg(long, value_name = "BUDGET/PERIOD")]
    cpu: Option<Reservation>,
    /// Log each client that holds the server grab for longer than this [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = grab_limit)]
    grab_limit: Option<Micros>,
    /// The module to load [default: XQOS_MODULE, or the module built or installed with this program]
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// The server and its arguments
    #[arg(last = true, required = true, value_name = "SERVER")]
    server: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  xqos server -- Xvfb :77 -screen 0 1280x1024x24
  xqos server --policy smart --slice 2ms -- Xephyr :78 -screen 1280x800
  xqos --display :77 doctor               check that xqos serves it

`xqos policy --help` explains the policies.

--cpu also limits the server: once busy clients have used up its budget, all
clients wait for the next period. Reservations cannot promise more than that.
`xqos boost` raises the server only while it serves reserved clients, which is
usually better.

Environment: XQOS_MODULE names the module. The server gets its settings in
XQOS_POLICY, XQOS_SLICE_US, XQOS_MAX_UTILIZATION_PPM, XQOS_DESKTOP_SHARE_PPM and
XQOS_CUT_US (0 is off), XQOS_GROUPS and XQOS_GRAB_LIMIT_MS. You may also set
these variables yourself. The server removes them and LD_PRELOAD from its
children's environment. With XQOS_CONTENTION=always, `fair` also decides when no
client would be served late.

XQOS_HOST selects how xqos is attached: dix (through the server's own functions)
or libc (through its calls of libc, as for Xwayland). The default is dix if the
server exports its functions, else libc. XQOS_CHUNK_US is the longest stretch of
work under libc: 50 to 20000 us, 400 by default; a request is never divided.";

/// Parses whole milliseconds, the resolution of the server's timer.
fn grab_limit(text: &str) -> Result<Micros, String> {
    match text.parse::<Micros>()?.0 % 1000 {
        0 => within(text, 1000..=3_600_000_000),
        _ => Err(format!("{text} is too fine: choose whole milliseconds")),
    }
}

impl Arguments {
    /// Returns only if the server could not be started.
    pub fn perform(&self) -> Result<()> {
        let module = module_file::find(self.module.as_deref())?;
        let (server, arguments) = self.server.split_first().context("no server is given: add -- SERVER")?;
        let program = in_path(server)?;
        check(&program)?;
        let mut command = Command::new(&program);
        // argv[0] is the server's name as it was typed, which appears in its log and in ps.
        command.arg0(server).args(arguments).env("LD_PRELOAD", preload(env::var_os("LD_PRELOAD"), &module));
        command.envs(
            [
                ("XQOS_POLICY", self.policy.map(|policy| policy.name().to_owned())),
                ("XQOS_SLICE_US", self.shared.slice.map(|us| us.to_string())),
                ("XQOS_MAX_UTILIZATION_PPM", self.shared.max_utilization.map(|ppm| ppm.to_string())),
                ("XQOS_DESKTOP_SHARE_PPM", self.shared.desktop.map(|ppm| ppm.to_string())),
                ("XQOS_CUT_US", self.shared.cut.map(|us| us.to_string())),
                ("XQOS_GROUPS", self.shared.groups.map(|grouping| grouping.name().to_owned())),
                ("XQOS_GRAB_LIMIT_MS", self.grab_limit.map(|limit| (limit.0 / 1000).to_string())),
            ]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?))),
        );
        if let Some(cpu) = self.cpu {
            processor::check(cpu)?;
            sys::schedule(&mut command, processor::attributes(cpu));
        }
        let otherwise = format!("cannot start {}: check that it is a program", program.display());
        Err(processor::not_started(self.cpu, command.exec(), otherwise).into())
    }
}

/// Finds the program of this name as a shell does.
fn in_path(name: &OsStr) -> Result<PathBuf> {
    let shown = name.to_string_lossy();
    if shown.contains('/') {
        let path = PathBuf::from(name);
        return if host::is_program(&path) {
            Ok(path)
        } else {
            bail!("{shown} is not a program: check the path after --")
        };
    }
    host::in_path(name, |_| true).with_context(|| {
        format!(
            "the X server {shown} is not in PATH: install it, or give its path, as in `xqos server -- /opt/x/{shown}`"
        )
    })
}

/// Warns if the loader will ignore LD_PRELOAD, or if the server will be served through libc.
fn check(program: &Path) -> Result<()> {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    // Debian's Xorg is a script that starts a setuid program if there is one.
    let wrapper = Path::new("/usr/lib/xorg/Xorg.wrap");
    let is_script = fs::read(&real).is_ok_and(|bytes| bytes.starts_with(b"#!"));
    let xorg_script = real.file_name().is_some_and(|name| name == "Xorg") && is_script && wrapper.exists();
    let started = if xorg_script { wrapper } else { &real };
    if ignores_preload(started) {
        note(&format!(
            "{} runs with more rights than yours, so the loader ignores LD_PRELOAD and xqos will not be in it: let Xorg \
             load the module with /etc/X11/xorg.conf.d/20-xqos.conf instead",
            started.display()
        ));
        return Ok(());
    }
    let missing = exports::missing(&real)?.unwrap_or_default();
    let is_server = real.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"X"));
    if !missing.is_empty() && !is_server {
        // Programs such as env or nice only start a server.
        note(&format!("{} is not an X server: xqos takes effect only in an X server that it starts", real.display()));
    } else if !missing.is_empty() {
        note(&format!(
            "{} {}, so it is served through libc: everything works except the policy classic and traces of single \
             requests",
            real.display(),
            exports::verdict(&missing)
        ));
    }
    Ok(())
}

/// Returns true if the program is setuid or setgid for another user, or has capabilities.
fn ignores_preload(program: &Path) -> bool {
    let Ok(facts) = program.metadata() else { return false };
    let mode = facts.permissions().mode();
    let (user, group) = sys::effective_ids();
    let other_user = mode & 0o4000 != 0 && facts.uid() != user;
    let other_group = mode & 0o2000 != 0 && facts.gid() != group;
    // Root has all capabilities already.
    other_user || other_group || (user != 0 && sys::has_capabilities(program))
}

/// Appends the module to LD_PRELOAD; an existing value stays first.
fn preload(present: Option<OsString>, module: &Path) -> OsString {
    match present.filter(|present| !present.is_empty()) {
        Some(mut present) => {
            present.push(":");
            present.push(module);
            present
        }
        None => module.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_ld_preload_is_kept() {
        let module = Path::new("/usr/lib/xqos/xqos.so");
        assert_eq!(preload(None, module), "/usr/lib/xqos/xqos.so");
        assert_eq!(preload(Some("".into()), module), "/usr/lib/xqos/xqos.so");
        assert_eq!(preload(Some("/a.so /b.so".into()), module), "/a.so /b.so:/usr/lib/xqos/xqos.so");
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert!(in_path(OsStr::new("sh")).unwrap().is_absolute());
        assert!(in_path(OsStr::new("Xnowhere")).unwrap_err().to_string().contains("not in PATH"));
        assert!(in_path(OsStr::new("/etc/passwd")).unwrap_err().to_string().contains("not a program"));
    }

    #[test]
    fn a_program_that_only_starts_a_server_is_not_refused() {
        check(&in_path(OsStr::new("env")).unwrap()).expect("env may start a server");
    }

    #[test]
    fn setuid_programs_of_others_ignore_preloading() {
        let file = env::temp_dir().join(format!("xqos-setuid-{}", std::process::id()));
        fs::write(&file, "").unwrap();
        let with_mode = |mode| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            ignores_preload(&file)
        };
        assert!(!with_mode(0o755));
        assert!(!with_mode(0o4755), "our own setuid program gives no more rights than we have");
        fs::remove_file(&file).unwrap();
    }
}
