// SPDX-License-Identifier: MIT
//! `xqos rules`: checks and tests rule files, and runs the daemon that applies them.

mod adopt;
mod files;
mod keep;
mod remarks;
pub mod told;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Keeps clients as rules say: who gets a reservation, a weight, or less than others
///
/// A rule names clients by what they are (program, class, user, unit, host, state) and sets what they get. Rules stand in
/// files of /usr/lib/xqos/rules.d, /etc/xqos/rules.d and ~/.config/xqos/rules.d; a file of the same name replaces the
/// lower one, an empty one masks it. For each setting the last match wins, in the order of the files' names. What was set by
/// hand or by the program itself stands above all rules, until `xqos rules adopt` gives the client back.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  xqos rules check                is anything wrong with my files?
  xqos rules dry-run              what would be set for whom, now
  xqos rules run                  keep them, until ^C or `xqos rules off`
  xqos explain --pick             click on a window: which rules, and why
  xqos rules adopt --pid 4711     end what was set by hand: rules count again

A file, such as ~/.config/xqos/rules.d/99-mine.toml:
  version = 1
  [[rule]]
  id = \"build-logs\"
  match = { class = \"xterm\", unit = \"app-build*\" }
  set = { weight = 0.25 }

Keys of a match: exe, name, class, user, unit, cgroup, host (globs of * and
?), local, state (active, fullscreen, iconic, unwatched), not. Settings:
reserve (\"auto\", \"none\", \"10ms/40ms\"), hard, soft (\"best-effort\",
\"paper\"), max, weight, slice, priority, cpu, pace, group, ignore.";

#[derive(Debug, Subcommand)]
enum Command {
    Check(files::Check),
    List(files::List),
    Test(files::Test),
    DryRun(keep::DryRun),
    Run(keep::Run),
    Off(keep::Off),
    Adopt(adopt::Adopt),
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        match &self.command {
            Command::Check(arguments) => arguments.perform(display),
            Command::List(arguments) => arguments.perform(),
            Command::Test(arguments) => arguments.perform(),
            Command::DryRun(arguments) => arguments.perform(display),
            Command::Run(arguments) => arguments.perform(display),
            Command::Off(arguments) => arguments.perform(display),
            Command::Adopt(arguments) => arguments.perform(display),
        }
    }
}
