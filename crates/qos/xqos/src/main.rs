// SPDX-License-Identifier: MIT
//! The command line program xqos: parses the command line, calls the library `agent`, and prints.
//!
//! Every command exits with 0 on success or when there was nothing to do; with 1 after one line on standard error that
//! says why and what to do next; or with 2 for wrong usage. `xqos run` passes on the exit status of its program.

#![forbid(unsafe_code)]

mod commands;
mod selector;

#[cfg(test)]
#[path = "../../agent/tests/fixture/client.rs"]
mod fixture;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use commands::{
    doctor, explain, exporter as exporting, list, policy, replay, reserve, server, suggest, top, trace, weight, why,
    xwayland,
};

use std::ffi::OsString;
use std::process::ExitCode;
use xqos_agent::{boost, run};
use xqos_cli::output;
use xqos_cli::program::{self, Packaging};
use xqos_cli::sibling::{self, Call};

/// Decides which client an X server serves next, and reserves server time for programs
///
/// An X server serves one client at a time. xqos, loaded into a stock server, decides whose requests come next. By
/// default this is the ready client that has used the least server time, so a busy client cannot make others wait. A
/// reservation goes further: it guarantees a client a budget of server time in each period, whatever the others do.
///
/// Neither the server nor the programs are modified.
#[derive(Debug, Parser)]
#[command(name = "xqos", version, after_help = EXAMPLES, max_term_width = 100)]
struct CommandLine {
    /// The X server, such as :0 [default: the environment variable DISPLAY]
    #[arg(long, global = true, value_name = "NAME")]
    display: Option<String>,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  xqos doctor                               is xqos in my X server? if not, why?
  xqos server -- Xvfb :77                   start a server with xqos in it
  xqos list                                 list clients with their server time
  xqos run --reserve 3ms/10ms -- mpv film   start a program with 30 % reserved
  xqos reserve --pick 3ms/10ms              click on a window to reserve for it

Words:
  client         a program's connection to the X server
  request        one operation that a client asks for; only long ones can be cut
  reservation    budget / period: guaranteed server time in each period
  deadline       end of the current period; the earliest deadline comes first
  slice          how long a client is served before another may be served
  blocking time  how long a request in progress delayed a more urgent client
  server time    how long the server worked for a client

Exit status: 0 on success or when there was nothing to do (a line says so); 1 on
failure (one line says why and what to do next); 2 for wrong usage. `doctor`
exits with 1 if the server is not served, `rules check` and `rules test` if they
find a fault. A command that runs a program exits with the program's status.";

#[derive(Debug, Subcommand)]
enum Command {
    Server(server::Arguments),
    Run(run::RunOptions),
    Reserve(reserve::Reserve),
    Release(reserve::Release),
    #[command(flatten)]
    Setting(weight::WeightCommand),
    List(list::Arguments),
    Rules(commands::rules::Arguments),
    Explain(explain::Arguments),
    Policy(policy::Arguments),
    Top(top::Arguments),
    Exporter(exporting::Arguments),
    Trace(trace::Arguments),
    Replay(replay::Arguments),
    Why(why::Arguments),
    Suggest(suggest::Arguments),
    Boost(boost::BoostOptions),
    Xwayland(xwayland::Arguments),
    Doctor(doctor::Arguments),
    #[command(flatten)]
    Packaging(Packaging),
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(call) = Call::of(&arguments) {
        return program::exit(Err(call.perform()));
    }
    let mut matches = program::matches(command_line());
    let CommandLine { display, command } =
        CommandLine::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit());
    program::exit(perform(&command, display.as_deref()))
}

/// The command line, including the commands of sibling programs.
fn command_line() -> clap::Command {
    CommandLine::command().subcommands(sibling::listed())
}

fn perform(command: &Command, display: Option<&str>) -> Result<ExitCode> {
    match command {
        Command::Run(options) => return Ok(run::run(display, options)?.into()),
        Command::Doctor(arguments) => return arguments.perform(display),
        Command::Boost(options) => {
            let boost = boost::Boost::start(display, options)?;
            output::line("ready")?;
            return Ok(if boost.run()? { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Server(arguments) => arguments.perform()?,
        Command::Xwayland(arguments) => arguments.perform()?,
        Command::Reserve(arguments) => arguments.perform(display)?,
        Command::Release(arguments) => arguments.perform(display)?,
        Command::Setting(arguments) => arguments.perform(display)?,
        Command::List(arguments) => arguments.perform(display)?,
        Command::Rules(arguments) => arguments.perform(display)?,
        Command::Explain(arguments) => arguments.perform(display)?,
        Command::Policy(arguments) => arguments.perform(display)?,
        Command::Top(arguments) => arguments.perform(display)?,
        Command::Exporter(arguments) => arguments.perform(display)?,
        Command::Trace(arguments) => arguments.perform(display)?,
        Command::Replay(arguments) => arguments.perform()?,
        Command::Why(arguments) => arguments.perform(display)?,
        Command::Suggest(arguments) => arguments.perform()?,
        Command::Packaging(Packaging::Completions { shell }) => {
            let command = CommandLine::command().subcommands(sibling::described());
            output::print(&program::completions(command, *shell))?;
        }
        Command::Packaging(packaging) => packaging.perform(command_line(), "xqos")?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
#[allow(dead_code, reason = "each program's tests use some of the checks")]
#[path = "../../../ground/cli/tests/support/checks.rs"]
mod checks;

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_command_line_is_consistent() {
        command_line().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_and_fits_a_terminal() {
        assert_eq!(checks::faults_of_help(&CommandLine::command()), [""; 0]);
    }

    #[test]
    fn every_command_in_documents_and_help_parses() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let parse = |words| CommandLine::try_parse_from(words).map(drop);
        assert_eq!(checks::faults(&root, &CommandLine::command(), parse), [""; 0]);
    }
}
