// SPDX-License-Identifier: MIT
//! Checks of a program's command line, for the tests of all programs: its help, and the `xqos` commands in documents
//! and help texts, each of which the program must accept.
//!
//! | place | what counts as a command | what `parse` must accept |
//! |---|---|---|
//! | an indented line | the words from `xqos` on (even after `sudo`), up to two spaces or an operator | all words |
//! | between backquotes | as in an indented line | the words present; arguments may be missing, as in `xqos reserve` |

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use xqos_cli::sibling::{Call, SIBLINGS};

/// Markdown indents code by four spaces.
pub const CODE: &str = "    ";
/// Shell operators that end a command.
const OPERATORS: [&str; 7] = ["&", "|", ";", ">", "<", "2>", "#"];

/// A command found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCommand {
    /// Name of the text.
    pub text: String,
    /// The words after `xqos`.
    pub arguments: Vec<String>,
    pub is_whole: bool,
}

/// All commands in README and the other documents in this folder.
pub fn commands(root: &Path) -> Vec<FoundCommand> {
    let mut files: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)).into();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
    files.iter().flat_map(|path| shown(&path.display().to_string(), &text(path), CODE)).collect()
}

/// The arguments of `command`, if a document in this folder contains it.
pub fn arguments(root: &Path, command: &str) -> Option<Vec<String>> {
    let wanted = arguments_of(command)?;
    commands(root).into_iter().map(|shown| shown.arguments).find(|arguments| *arguments == wanted)
}

/// Commands in documents and in the program's own help that `parse` rejects.
pub fn faults(root: &Path, program: &Command, parse: impl Fn(Vec<OsString>) -> Result<(), Error>) -> Vec<String> {
    let mut all = commands(root);
    let mut helped = vec![program];
    while let Some(command) = helped.pop() {
        helped.extend(command.get_subcommands());
        let help = command.get_after_long_help().or(command.get_after_help());
        all.extend(shown(command.get_name(), &help.map(ToString::to_string).unwrap_or_default(), "  "));
    }
    let fault = |FoundCommand { text, arguments, is_whole }: &FoundCommand| {
        let words: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let (performer, words) = match Call::of(&words) {
            Some(call) => (call.sibling.program, call.arguments),
            None => ("xqos", words),
        };
        if performer != program.get_name() {
            return None;
        }
        let words = [OsString::from(performer)].into_iter().chain(words).collect();
        let error = parse(words).err().filter(|error| *is_whole || !is_unfinished(error))?;
        let is_asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        let reason = error.to_string();
        (!is_asked_for)
            .then(|| format!("{text}: xqos {}: {}", arguments.join(" "), reason.lines().next().unwrap_or("")))
    };
    all.iter().filter_map(fault).collect()
}

/// Commands whose help has no example or is wider than 80 columns.
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

/// Checks the table of commands that are separate programs against a program's own description of its commands.
pub fn check_listing(program: &str, command: &Command) -> Result<(), String> {
    let own = SIBLINGS.iter().filter(|sibling| sibling.program == program);
    for sibling in own {
        let named = || command.get_subcommands().find(|known| known.get_name() == sibling.command);
        let command = if sibling.alone { Some(command) } else { named() };
        let about = command.and_then(|command| command.get_about()).map(ToString::to_string);
        if about.as_deref() != Some(sibling.about) {
            return Err(format!("{}: `xqos --help` has '{}', {program} {about:?}", sibling.command, sibling.about));
        }
    }
    Ok(())
}

/// Returns true if the only error is a missing argument or a placeholder such as FILE.
fn is_unfinished(error: &Error) -> bool {
    let is_open = || match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => value.chars().all(|letter| letter.is_ascii_uppercase()),
        _ => false,
    };
    match error.kind() {
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => is_open(),
        _ => false,
    }
}

/// The commands in a text; `code` is the prefix of lines that are code.
pub fn shown(name: &str, text: &str, code: &str) -> Vec<FoundCommand> {
    let (mut all, mut prose) = (Vec::new(), String::new());
    for line in joined(text).lines() {
        if let Some(line) = line.strip_prefix(code) {
            all.extend(line.split("  ").filter_map(arguments_of).map(|arguments| (arguments, true)));
        }
        prose += line;
        prose.push('\n');
    }
    let inline = prose.split('`').skip(1).step_by(2);
    all.extend(inline.filter_map(arguments_of).map(|arguments| (arguments, false)));
    let shown = |(arguments, is_whole)| FoundCommand { text: name.to_owned(), arguments, is_whole };
    all.into_iter().map(shown).collect()
}

/// Joins lines that end in a backslash.
fn joined(text: &str) -> String {
    text.split("\\\n").fold(String::new(), |before, next| {
        if before.is_empty() { next.to_owned() } else { format!("{} {}", before.trim_end(), next.trim_start()) }
    })
}

/// The words after `xqos` in a command; `None` if it is another program's command, or if no subcommand or option
/// follows.
fn arguments_of(command: &str) -> Option<Vec<String>> {
    let mut words = words(command).into_iter().peekable();
    while words.next_if(|word| matches!(&word[..], "$" | "sudo" | "-E") || word.contains('=')).is_some() {}
    let program = words.next()?;
    if Path::new(&program).file_name()? != "xqos" {
        return None;
    }
    let arguments: Vec<_> = words.take_while(|word| !OPERATORS.iter().any(|sign| word.starts_with(sign))).collect();
    let is_named = |first: &String| first.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '-');
    arguments.first().is_some_and(is_named).then_some(arguments)
}

/// Splits a command into words like a shell.
fn words(command: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match quote {
            Some(mark) if letter == mark => quote = None,
            None if letter == '\'' || letter == '"' => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            None if letter.is_whitespace() => all.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    all.extend(word);
    all
}
