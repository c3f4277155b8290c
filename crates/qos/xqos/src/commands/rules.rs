// SPDX-License-Identifier: MIT
//! `xqos rules`: checks and tests rule files, and runs the daemon that applies them.

mod adopt;
mod files;
mod keep;
mod status;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Applies rules to clients: reservations, weights and limits by program, class or state
///
/// A rule selects clients by properties (program, class, user, unit, host, state) and sets what they get. Rules are
/// read from files in /usr/lib/xqos/rules.d, /etc/xqos/rules.d and ~/.config/xqos/rules.d. A file replaces files of the
/// same name in earlier folders; an empty file masks them. For each setting, the last matching rule wins, in the order
/// of the file names. A setting made manually or by the program itself overrides all rules, until `xqos rules adopt`
/// drops it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: RulesCommand,
}

const EXAMPLES: &str = "\
Examples:
  xqos rules check                check the rule files for mistakes
  xqos rules dry-run              show what rules would set for each client
  xqos rules run                  apply them until ^C or `xqos rules off`
  xqos rules status               show which rules apply, and to which clients
  xqos explain --pick             click on a window: which rules apply, and why
  xqos rules adopt --pid 4711     drop manual settings; rules apply again

Rule file:
  # ~/.config/xqos/rules.d/99-mine.toml
  version = 1
  [[rule]]
  id = \"build-logs\"
  match = { class = \"xterm\", unit = \"app-build*\" }
  set = { weight = 0.25 }

Match keys: exe, name, class, user, unit, cgroup, host (patterns with * and ?),
local, state (active, fullscreen, iconic, unwatched), not.

Settings: reserve (\"auto\", \"none\", \"10ms/40ms\"), hard, soft
(\"best-effort\", \"paper\"), max, weight, slice, priority, cpu, pace, group,
ignore.";

#[derive(Debug, Subcommand)]
enum RulesCommand {
    Check(files::Check),
    List(files::List),
    Test(files::Test),
    DryRun(keep::DryRun),
    Run(keep::Run),
    Status(status::Show),
    /// Makes `xqos rules run` read its files again
    ///
    /// It also does so by itself when a file changes, unless the folder is on a file system that reports no changes. If
    /// a file has a mistake, its last valid version stays in effect.
    #[command(after_help = "\
Examples:
  xqos rules reload

Exit status: 1 if a file has a mistake, or if no rules are applied on the
display.")]
    Reload,
    /// Stops `xqos rules run` on a display, and waits until its settings are undone
    #[command(after_help = "\
Examples:
  xqos rules off")]
    Off,
    Adopt(adopt::Adopt),
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        match &self.command {
            RulesCommand::Check(arguments) => arguments.perform(display),
            RulesCommand::List(arguments) => arguments.perform(),
            RulesCommand::Test(arguments) => arguments.perform(),
            RulesCommand::DryRun(arguments) => arguments.perform(display),
            RulesCommand::Run(arguments) => arguments.perform(display),
            RulesCommand::Status(arguments) => arguments.perform(display),
            RulesCommand::Reload => status::reload(display),
            RulesCommand::Off => keep::off(display),
            RulesCommand::Adopt(arguments) => arguments.perform(display),
        }
    }
}
