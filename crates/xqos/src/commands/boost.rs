// SPDX-License-Identifier: MIT
//! `xqos boost`: raises the priority of programs while they redraw, and restores it.

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::process::ExitCode;
use xqos_agent::boost::{Boost, Method, Wish};
use xqos_cli::output;
use xqos_text::quantity::{Micros, limit};

/// Gives programs the processor while they redraw, and the X server while it serves reserved clients
///
/// Runs until it is stopped. A program that gets an Expose has a real-time priority until it has answered, but no
/// longer than the time of --expose. A program that gets input meanwhile has a higher priority, for 10 ms at most. The
/// X server has a real-time priority during these times, and while it serves a client with a reservation, for the
/// budget at most. All priorities are restored when this process ends, even if it is killed. Programs of other users
/// are left alone.
///
/// This needs the right to set priorities (CAP_SYS_NICE). To raise the server as well, it needs CAP_SYS_RESOURCE or a
/// server that runs as root. Root has both capabilities.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Maximum time with a raised priority for one Expose, 1ms to 1s, or 'off'
    #[arg(long, value_name = "TIME|off", default_value = "40ms", value_parser = limit)]
    expose: Micros,
    /// How to raise programs; see Methods below
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = methods())]
    how: Method,
    /// Leave the X server's own priority alone
    #[arg(long)]
    no_server: bool,
    /// Only programs of this user id [default: the user who called sudo, else the user who runs this command]
    #[arg(long, value_name = "UID")]
    user: Option<u32>,
    /// Only programs that standard input names: a process id per line adds a program, -PID removes it. The command
    /// exits at the end of the input
    #[arg(long)]
    only_named: bool,
    /// Report each change
    #[arg(long, short)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos boost                       as root: raise programs on this display
  sudo -E xqos boost               the same, with sudo
  sudo -E xqos boost --expose 40ms -v      and report each change
  sudo -E xqos boost --expose off          raise only the X server
  xqos policy --expose-pacing 40ms         related: the moving client waits

Methods: rr (a real-time priority: programs with a usual priority cannot
interrupt), deadline (SCHED_DEADLINE: the time of --expose in a period of twice
that), nice (nice value -10: a larger share of the processor), auto (rr if this
user may use it, else nice).

It prints 'ready' once it is active. To undo: stop it.";

fn methods() -> impl TypedValueParser<Value = Method> {
    PossibleValuesParser::new(Method::NAMES.map(|(name, _)| name))
        .try_map(|name| Method::from_name(&name).ok_or_else(|| format!("there is no method {name}")))
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<ExitCode> {
        let wish = Wish {
            expose: self.expose.duration(),
            method: self.how,
            raises_server: !self.no_server,
            user: self.user,
            only_named: self.only_named,
            is_verbose: self.verbose,
        };
        let boost = Boost::start(display, &wish)?;
        output::line("ready")?;
        Ok(if boost.run()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
