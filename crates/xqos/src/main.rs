//! xqos, the command line: presentation only.
//!
//! Every command exits with 0, with 1 after one line on standard error that says why and what to do next, or with 2 when
//! it was called wrongly. `xqos run` passes on the exit status of its program.

mod admission;
mod commands;
mod exports;
mod family;
mod host;
mod pick;
mod processor;
mod requests;
mod selector;
mod session;
mod windows;
mod xorg_config;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use commands::{
    analyse, bench, boost, cap, doctor, link, list, plot, policy, replay, reserve, run, server, top, trace, weight,
};
use std::path::PathBuf;
use std::process::ExitCode;
use xqos_cli::{manual, output};

/// Decides which client an X server serves next, and gives programs guaranteed shares of it
///
/// An X server works for one client at a time. xqos, loaded into a stock server, chooses whose requests come next: by
/// default the ready client that has used the least server time, so that a busy client cannot make the others wait. A
/// reservation goes further: it promises a client a budget of server time in each period, whatever the others do.
///
/// Nothing is patched, and no program has to know about it.
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
  xqos doctor                               is my X server served? if not, why?
  xqos server -- Xvfb :77                   start a server with xqos in it
  xqos list                                 who uses the server
  xqos run --reserve 3ms/10ms -- mpv film   start a program with 30 % reserved
  xqos reserve --pick 3ms/10ms              click on a window to reserve for it

Words:
  client         a program's connection to the X server
  request        what a client asks for, and the server does without a pause
  reservation    budget / period: so much server time in each period, at least
  deadline       end of the current period; the earliest deadline is served first
  slice          how long a client is served before another one may be
  blocking time  how long a request in progress kept a better client waiting
  server time    how long the server worked for a client

Exit status: 0, 1 failed (one line says why and what to do next), 2 called wrongly.";

#[derive(Debug, Subcommand)]
enum Command {
    Server(server::Arguments),
    Run(run::Arguments),
    Reserve(reserve::Reserve),
    Release(reserve::Release),
    Weight(weight::Weigh),
    Priority(weight::Prioritise),
    List(list::Arguments),
    Policy(policy::Arguments),
    Top(top::Arguments),
    Trace(trace::Arguments),
    Replay(replay::Arguments),
    Cap(cap::Arguments),
    Analyse(analyse::Arguments),
    Plot(plot::Arguments),
    Link(link::Arguments),
    Boost(boost::Arguments),
    Doctor(doctor::Arguments),
    Bench(bench::Arguments),
    /// Writes the man pages into a folder
    #[command(hide = true)]
    Man {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Writes a shell's completions to standard output
    #[command(hide = true)]
    Completions {
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let CommandLine { display, command } = CommandLine::parse();
    match perform(&command, display.as_deref()) {
        Ok(status) => status,
        Err(error) => {
            output::note(&one_line(&error));
            ExitCode::FAILURE
        }
    }
}

fn perform(command: &Command, display: Option<&str>) -> Result<ExitCode> {
    match command {
        Command::Run(arguments) => return arguments.perform(display),
        Command::Doctor(arguments) => return arguments.perform(display),
        Command::Boost(arguments) => return arguments.perform(display),
        Command::Cap(arguments) => return arguments.perform(display),
        Command::Link(arguments) => return arguments.perform(display),
        Command::Server(arguments) => arguments.perform()?,
        Command::Reserve(arguments) => arguments.perform(display)?,
        Command::Release(arguments) => arguments.perform(display)?,
        Command::Weight(arguments) => arguments.perform(display)?,
        Command::Priority(arguments) => arguments.perform(display)?,
        Command::List(arguments) => arguments.perform(display)?,
        Command::Policy(arguments) => arguments.perform(display)?,
        Command::Top(arguments) => arguments.perform(display)?,
        Command::Trace(arguments) => arguments.perform(display)?,
        Command::Replay(arguments) => arguments.perform()?,
        Command::Analyse(arguments) => arguments.perform()?,
        Command::Plot(arguments) => arguments.perform()?,
        Command::Bench(arguments) => arguments.perform()?,
        Command::Man { folder } => manual::write(CommandLine::command(), folder)?,
        Command::Completions { shell } => output::print(&completions(*shell))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// An error and what caused it, in one line.
fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "xqos", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn every_command_teaches_with_an_example_that_fits_a_terminal() {
        for command in CommandLine::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let after = command.get_after_long_help().or(command.get_after_help());
            let after = after.unwrap_or_else(|| panic!("{name} has no examples")).to_string();
            assert!(after.contains("Examples:\n  xqos "), "{name}: {after}");
            for line in after.lines() {
                assert!(line.chars().count() <= 80, "{name}: '{line}' is wider than a terminal");
            }
        }
    }

    #[test]
    fn errors_are_one_line_with_their_cause() {
        let error = anyhow::anyhow!("no such\n  file").context("cannot read it");
        assert_eq!(one_line(&error), "cannot read it: no such file");
    }
}
