// SPDX-License-Identifier: MIT
//! Shared parts of the main functions: one-line errors, man pages and completions.

use crate::sibling::{CommandDescription, offers_files};
use crate::{manual, output};
use anyhow::Result;
use clap::builder::ValueHint;
use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Command, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;
use std::process::ExitCode;
use xqos_text::escape::in_one_line;
use xqos_text::nearest::nearest;

/// Hidden commands for building packages.
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
    /// Performs the command; `family` is the prefix of the man pages' names.
    pub fn perform(&self, command: Command, family: &str) -> Result<()> {
        match self {
            Packaging::Man { folder } => manual::write(command, family, folder),
            Packaging::Completions { shell } => output::print(&completions(command, *shell)),
            Packaging::Describe => output::json(&CommandDescription::of(&command)),
        }
    }
}

/// Parses the arguments of this process. Exits on an error, which suggests a word only if it is similar.
///
/// clap itself suggests words with a Jaro similarity of at least 0.7, such as `plot` for `lst`.
pub fn matches(command: Command) -> ArgMatches {
    command.try_get_matches().unwrap_or_else(|mut error| {
        propose_near_words(&mut error);
        error.exit()
    })
}

fn propose_near_words(error: &mut clap::Error) {
    for (wrong, proposed) in [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let Some(ContextValue::String(word)) = error.get(wrong).cloned() else { continue };
        let near = match error.remove(proposed) {
            Some(ContextValue::Strings(words)) => {
                nearest(&word, &words.iter().map(String::as_str).collect::<Vec<_>>()).map(str::to_owned)
            }
            Some(ContextValue::String(other)) => nearest(&word, &[&other]).map(str::to_owned),
            _ => None,
        };
        if let Some(near) = near {
            error.insert(proposed, ContextValue::String(near));
        }
    }
}

pub fn completions(command: Command, shell: Shell) -> String {
    let mut command = files_for_paths_alone(command);
    let (name, mut script) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Disables completion of file names for values that are not paths, such as pids, times and names. Without a hint,
/// shells complete file names for any value.
fn files_for_paths_alone(command: Command) -> Command {
    let command = command.mut_args(|arg| match offers_files(&arg) {
        false if arg.get_action().takes_values() => arg.value_hint(ValueHint::Other),
        _ => arg,
    });
    command.mut_subcommands(files_for_paths_alone)
}

/// Exit status of a program. An error is printed as one line, and the status is 1.
pub fn exit(ended: Result<ExitCode>) -> ExitCode {
    ended.unwrap_or_else(|error| {
        output::note(&one_line(&error));
        ExitCode::FAILURE
    })
}

/// An error with its causes in one line. A cause that the error already contains is not repeated.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let words = in_one_line(&cause.to_string());
        match line.is_empty() {
            true => line = words,
            false if line.contains(&words) => {}
            false => line = format!("{line}: {words}"),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    #[test]
    fn errors_are_one_line_with_their_cause() {
        let error = anyhow::anyhow!("no such\n  file").context("cannot read it");
        assert_eq!(one_line(&error), "cannot read it: no such file");
        let pipe = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let twice = anyhow::Error::from(pipe()).context(format!("the connection broke: {}", pipe()));
        assert_eq!(one_line(&twice), "the connection broke: broken pipe");
    }

    #[test]
    fn shells_complete_files_for_paths_only() {
        let pid = Arg::new("pid").long("pid").value_name("N").value_parser(clap::value_parser!(i32));
        let file = Arg::new("file").long("file").value_parser(clap::value_parser!(PathBuf));
        let choice = Arg::new("choice").long("choice").value_parser(["one", "two"]);
        let command = Command::new("x").subcommand(Command::new("list").args([pid, file, choice]));
        let described = CommandDescription::of(&command).command();
        let command = Command::new("x").subcommands([command.name("typed"), described]);
        for shell in [Shell::Zsh, Shell::Bash, Shell::Fish] {
            assert!(completions(command.clone(), shell).contains("pid"), "{shell}");
        }
        let zsh = completions(command, Shell::Zsh);
        let lines = |word: &str| zsh.lines().filter(|line| line.contains(word)).collect::<Vec<_>>();
        let (pids, files) = (lines("--pid="), lines("--file="));
        assert!(
            pids.len() == 2 && pids.iter().all(|line| !line.contains("_files") && !line.contains("_default")),
            "{zsh}"
        );
        assert!(files.len() == 2 && files.iter().all(|line| line.contains("_files")), "{zsh}");
    }

    #[test]
    fn only_near_words_are_suggested() {
        let command =
            || Command::new("x").subcommands(["list", "plot", "bench", "exporter", "priority"].map(Command::new));
        let told = |word: &str| {
            let mut error = command().try_get_matches_from(["x", word]).unwrap_err();
            propose_near_words(&mut error);
            error.to_string()
        };
        assert!(told("lst").contains("'list'") && !told("lst").contains("plot"), "{}", told("lst"));
        assert!(told("exportr").contains("'exporter'"), "{}", told("exportr"));
        for word in ["b", "benchmark", "exprot", "zebra"] {
            assert!(!told(word).contains("similar"), "{}", told(word));
        }
    }
}
