// SPDX-License-Identifier: MIT
//! What the main function of each program does: one line for an error, man pages, completions.

use crate::sibling::Described;
use crate::{manual, output};
use anyhow::Result;
use clap::{Command, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;
use std::process::ExitCode;

/// What packages are made with, in each program.
#[derive(Debug, Subcommand)]
pub enum Packaging {
    /// Writes the man pages into a folder
    #[command(hide = true)]
    Man {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Writes a shell's completions to standard output
    #[command(hide = true)]
    Completions { shell: Shell },
    /// Writes the commands and their options as JSON, for the completions of another program
    #[command(hide = true)]
    Describe,
}

impl Packaging {
    /// `family`: what its man pages are named after.
    pub fn perform(&self, command: Command, family: &str) -> Result<()> {
        match self {
            Packaging::Man { folder } => manual::write(command, family, folder),
            Packaging::Completions { shell } => output::print(&completions(command, *shell)),
            Packaging::Describe => output::json(&Described::of(&command)),
        }
    }
}

/// The script that completes this program's commands and options.
pub fn completions(mut command: Command, shell: Shell) -> String {
    let (name, mut script) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The exit status of a program: 1, after one line, where it failed.
pub fn exit(ended: Result<ExitCode>) -> ExitCode {
    ended.unwrap_or_else(|error| {
        output::note(&one_line(&error));
        ExitCode::FAILURE
    })
}

/// An error and what caused it, in one line.
fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Commands without an example, or with help that is wider than a terminal. For the tests of each program.
pub fn faults_of_help(command: &Command) -> Vec<String> {
    let mut faults = Vec::new();
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        let after = command.get_after_long_help().or(command.get_after_help());
        let after = after.map(ToString::to_string).unwrap_or_default();
        if !after.contains("Examples:\n  xqos ") {
            faults.push(format!("{name} has no examples"));
        }
        let wide = after.lines().filter(|line| line.chars().count() > 80);
        faults.extend(wide.map(|line| format!("{name}: '{line}' is wider than a terminal")));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_with_their_cause() {
        let error = anyhow::anyhow!("no such\n  file").context("cannot read it");
        assert_eq!(one_line(&error), "cannot read it: no such file");
    }
}
