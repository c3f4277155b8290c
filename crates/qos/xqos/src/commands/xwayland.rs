// SPDX-License-Identifier: MIT
//! `xqos xwayland`: makes the compositor start Xwayland with xqos in it.
//!
//! Compositors start Xwayland themselves, so a script replaces it. Each compositor finds the script in a different
//! way.

use anyhow::Result;
use clap::{Args, Subcommand};
use xqos_agent::xwayland::{self, Compositor, Status};
use xqos_cli::{module_file, output};

/// Makes the Wayland compositor start Xwayland with xqos in it
///
/// X11 programs under Wayland are served by Xwayland, which the compositor starts. `install` puts a script in its
/// place, which loads xqos and then starts Xwayland. If the module of xqos is missing, the script starts Xwayland
/// without it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Writes the script and configures compositors to use it
    Install {
        /// Compositors to configure [default: those that are installed, except mutter]
        #[arg(long = "for", value_name = "COMPOSITOR", value_delimiter = ',', value_enum)]
        wanted: Vec<Compositor>,
        /// Print what would be done, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Shows what is installed, and which Xwayland runs with xqos
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Undoes everything that install did
    Remove,
}

const EXAMPLES: &str = "\
Examples:
  xqos xwayland install                for the compositors installed here
  xqos xwayland install --for wlroots,weston --dry-run
  sudo xqos xwayland install --for mutter
  xqos xwayland status
  xqos xwayland remove

Changes take effect at the next login. Variables are set in
~/.config/environment.d, which systemd sessions read; other sessions need the
line that install prints in their profile. For mutter, dpkg-divert moves
/usr/bin/Xwayland to Xwayland.distrib, where package updates then go.";

impl Arguments {
    pub fn perform(&self) -> Result<()> {
        let mut printed = Ok(());
        let mut say = |line: &str| {
            if printed.is_ok() {
                printed = output::line(line);
            }
        };
        match &self.action {
            Action::Install { wanted, dry_run } => {
                xwayland::install(&module_file::find(None)?, wanted, *dry_run, &mut say)?
            }
            Action::Status { json } => return show(*json),
            Action::Remove => xwayland::remove(&mut say)?,
        }
        printed
    }
}

fn show(json: bool) -> Result<()> {
    let status = Status::look()?;
    if json {
        return output::json(&status);
    }
    let yes = |is: bool, words: &str| if is { words.to_owned() } else { "no".to_owned() };
    let mut lines = vec![
        ("script", status.script.clone().unwrap_or_else(|| "none: `xqos xwayland install` writes it".to_owned())),
        ("wlroots", yes(status.wlroots, "WLR_XWAYLAND names the script")),
        ("in PATH", yes(status.path, "the script comes before Xwayland")),
        ("weston", yes(status.weston, "weston.ini names the script")),
        ("mutter", yes(status.diverted, "/usr/bin/Xwayland is diverted")),
    ];
    if (status.script.is_some() || status.diverted) && !status.module_present {
        lines.push(("", "the module that the script loads is missing: Xwayland starts without xqos".to_owned()));
    }
    for running in &status.running {
        lines.push((
            "running",
            format!("process {} {} xqos", running.pid, if running.with_xqos { "with" } else { "without" }),
        ));
    }
    if status.running.is_empty() {
        lines.push(("running", "no Xwayland".to_owned()));
    }
    output::print(&lines.into_iter().fold(String::new(), |all, (title, text)| all + &format!("{title:<10}{text}\n")))
}
