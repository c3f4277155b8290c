// SPDX-License-Identifier: MIT
//! xqos-wire: captures, analyses and speeds up X traffic. `xqos cap`, `xqos analyse`, `xqos plot`, `xqos link`, `xqos
//! near` and `xqos ssh` start this program.

#![forbid(unsafe_code)]

mod analyse;
mod cap;
mod link;
mod near;
mod plot;
mod program;
mod ssh;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use xqos_cli::program::{self as cli, Packaging};

/// Captures and analyses X traffic, emulates slow links, and saves round trips
///
/// `xqos cap` and `xqos-wire cap` are the same command; the same applies to the other commands of this program.
#[derive(Debug, Parser)]
#[command(name = "xqos-wire", bin_name = "xqos", version, max_term_width = 100)]
#[command(override_usage = "xqos-wire [OPTIONS] <COMMAND>\n       xqos [OPTIONS] <COMMAND>", after_help = EXAMPLES)]
struct CommandLine {
    /// The X server, such as :0 [default: the environment variable DISPLAY]
    #[arg(long, global = true, value_name = "NAME")]
    display: Option<String>,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  xqos cap -o firefox.pcap -- firefox       record what a program sends and gets
  xqos analyse firefox.pcap                 show where time and bytes went
  xqos plot firefox.pcap -o firefox.html    draw it as a page
  xqos link --rate 1mbit --delay 50ms -- xterm
  xqos ssh far emacs                        run it on host far with fewer waits

Exit status: 0 on success or when there was nothing to do (a line says so);
1 on failure (one line says why and what to do next); 2 for wrong usage. A
command that runs a program exits with the program's status.";

#[derive(Debug, Subcommand)]
enum Command {
    Cap(cap::Arguments),
    Analyse(analyse::Arguments),
    Plot(plot::Arguments),
    Link(link::Arguments),
    Near(near::Arguments),
    Ssh(ssh::Arguments),
    #[command(flatten)]
    Packaging(Packaging),
}

fn main() -> ExitCode {
    let matches = cli::matches(CommandLine::command());
    let CommandLine { display, command } = CommandLine::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    cli::exit(perform(&command, display.as_deref()))
}

fn perform(command: &Command, display: Option<&str>) -> Result<ExitCode> {
    match command {
        Command::Cap(arguments) => return arguments.perform(display),
        Command::Link(arguments) => return arguments.perform(display),
        Command::Near(arguments) => return arguments.perform(display),
        Command::Ssh(arguments) => return arguments.perform(display),
        Command::Analyse(arguments) => arguments.perform()?,
        Command::Plot(arguments) => arguments.perform()?,
        Command::Packaging(packaging) => packaging.perform(CommandLine::command(), "xqos")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Locks a mutex whose content stays valid if a thread panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        CommandLine::command().debug_assert();
        assert_eq!(checks::check_listing("xqos-wire", &CommandLine::command()), Ok(()));
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
