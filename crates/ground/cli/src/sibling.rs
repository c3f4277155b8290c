// SPDX-License-Identifier: MIT
//! Commands of `xqos` that are separate programs, as in git and cargo.
//!
//! A program is looked up in the folder of this program, then in PATH. `xqos --help` lists the commands from the table
//! here, but each program prints its own help, and shell completion asks each program for its options.

use anyhow::{Context, Result, anyhow};
use clap::builder::{PossibleValuesParser, ValueHint, ValueParser};
use clap::{Arg, ArgAction, Command};
use serde::{Deserialize, Serialize};
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process;

/// A command that a separate program performs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sibling {
    pub command: &'static str,
    pub about: &'static str,
    pub program: &'static str,
    /// The program performs only this command, and does not expect the command's name as an argument.
    pub alone: bool,
}

const fn of_wire(command: &'static str, about: &'static str) -> Sibling {
    Sibling { command, about, program: "xqos-wire", alone: false }
}

pub const SIBLINGS: [Sibling; 7] = [
    of_wire("cap", "Captures the X traffic of a program or of a network interface into a file"),
    of_wire("analyse", "Shows where a program's time and bytes went in a capture, and what it could avoid"),
    of_wire("plot", "Draws a capture of X traffic: time against bytes, with every packet and message"),
    of_wire("link", "Runs a program on a slow network of its own"),
    of_wire("near", "Runs a program far from its X server, and answers known queries locally"),
    of_wire("ssh", "Runs a program on another machine over ssh, and answers known queries there"),
    Sibling {
        command: "bench",
        about: "Runs the experiments that compare servers with and without xqos",
        program: "xqos-bench",
        alone: true,
    },
];

/// A command line for another program.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    pub sibling: Sibling,
    /// Value of `--display`, if it precedes the command.
    display: Option<OsString>,
    pub arguments: Vec<OsString>,
}

impl Call {
    /// Parses the arguments of `xqos`; `None` if `xqos` performs the command itself.
    pub fn of(arguments: &[OsString]) -> Option<Call> {
        let (mut rest, mut display, mut helps) = (arguments, None, false);
        loop {
            let (first, after) = rest.split_first()?;
            let word = first.to_str()?;
            if let Some(sibling) = SIBLINGS.iter().find(|sibling| sibling.command == word) {
                let words = [helps.then(|| "help".into()), (!sibling.alone).then(|| first.clone())];
                let arguments = words.into_iter().flatten().chain(after.iter().cloned()).collect();
                return Some(Call { sibling: *sibling, display, arguments });
            }
            rest = after;
            match word {
                "--display" => {
                    let (name, after) = rest.split_first()?;
                    (display, rest) = (Some(name.clone()), after);
                }
                "help" if !helps => helps = true,
                _ => display = Some(word.strip_prefix("--display=")?.into()),
            }
        }
    }

    /// Replaces this process with the program; returns only on an error.
    pub fn perform(self) -> anyhow::Error {
        let Sibling { command, program, .. } = self.sibling;
        let path = match needed(program, &format!("`xqos {command}`")) {
            Ok(path) => path,
            Err(error) => return error,
        };
        let mut process = process::Command::new(&path);
        process.args(self.arguments).envs(self.display.map(|display| ("DISPLAY", display)));
        anyhow!(process.exec()).context(format!("cannot start {}", path.display()))
    }
}

/// Path of one of our programs: in the folder of this program, or else in PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    // Cargo puts test programs into a folder below that of the other programs.
    let above = beside.as_deref().filter(|folder| folder.ends_with("deps")).and_then(Path::parent).map(Path::to_owned);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(above).chain(env::split_paths(&path));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Like [`find`]; the error names `user`, which needs the program.
pub fn needed(program: &str, user: &str) -> Result<PathBuf> {
    find(program).with_context(|| {
        format!(
            "{user} needs the program {program}, which is neither next to xqos nor in PATH: install the package \
             {program}"
        )
    })
}

/// A command with its options, as its program describes it in JSON.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandDescription {
    name: String,
    about: String,
    options: Vec<OptionDescription>,
    commands: Vec<CommandDescription>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OptionDescription {
    long: Option<String>,
    short: Option<char>,
    help: String,
    takes_value: bool,
    files: bool,
    values: Vec<String>,
}

impl CommandDescription {
    pub fn of(command: &Command) -> CommandDescription {
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let options = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_global_set());
        CommandDescription {
            name: command.get_name().to_owned(),
            about: command.get_about().map(ToString::to_string).unwrap_or_default(),
            options: options.map(OptionDescription::of).collect(),
            commands: visible.map(CommandDescription::of).collect(),
        }
    }

    /// Rebuilds the parts of the command that completion needs.
    pub(crate) fn command(self) -> Command {
        let arguments = self.options.into_iter().enumerate().map(|(at, option)| option.argument(at));
        let commands = self.commands.into_iter().map(CommandDescription::command);
        Command::new(self.name).about(self.about).args(arguments).subcommands(commands)
    }
}

impl OptionDescription {
    fn of(arg: &Arg) -> OptionDescription {
        OptionDescription {
            long: arg.get_long().map(str::to_owned),
            short: arg.get_short(),
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            takes_value: arg.get_action().takes_values(),
            files: offers_files(arg),
            values: arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        }
    }

    fn argument(self, at: usize) -> Arg {
        let is_positional = self.long.is_none() && self.short.is_none();
        let action = match self.takes_value {
            _ if is_positional => ArgAction::Set,
            true => ArgAction::Append,
            false => ArgAction::SetTrue,
        };
        let mut arg = Arg::new(at.to_string()).help(self.help).action(action);
        if let Some(long) = self.long {
            arg = arg.long(long);
        }
        if let Some(short) = self.short {
            arg = arg.short(short);
        }
        match self.values.is_empty() {
            _ if !self.takes_value => arg,
            true if self.files => arg.value_hint(ValueHint::AnyPath),
            true => arg.value_hint(ValueHint::Other),
            false => arg.value_parser(PossibleValuesParser::new(self.values)),
        }
    }
}

/// Returns true if the value of an argument is a path or a program.
pub(crate) fn offers_files(arg: &Arg) -> bool {
    let is_any_word = arg.get_value_parser().type_id() == ValueParser::os_string().type_id();
    match arg.get_value_hint() {
        ValueHint::Unknown => is_any_word,
        hint => hint != ValueHint::Other,
    }
}

/// The commands of all siblings for `xqos --help`.
pub fn listed() -> impl Iterator<Item = Command> {
    SIBLINGS.into_iter().map(|sibling| Command::new(sibling.command).about(sibling.about))
}

/// Like [`listed`], with the options of the installed programs.
pub fn described() -> Vec<Command> {
    SIBLINGS.into_iter().zip(listed()).map(|(sibling, listed)| ask(&sibling).unwrap_or(listed)).collect()
}

fn ask(sibling: &Sibling) -> Option<Command> {
    let output = process::Command::new(find(sibling.program)?).arg("describe").output().ok()?;
    let all: CommandDescription = serde_json::from_slice(&output.stdout).ok()?;
    let described = if sibling.alone {
        CommandDescription { name: sibling.command.to_owned(), ..all }
    } else {
        all.commands.into_iter().find(|command| command.name == sibling.command)?
    };
    Some(described.command())
}

/// Returns true if the command was made from the table and not from the program's own description.
pub fn is_listed(command: &Command) -> bool {
    let is_known = SIBLINGS.iter().any(|sibling| sibling.command == command.get_name());
    is_known && command.get_arguments().all(|arg| arg.is_global_set() || arg.get_id() == "help")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Option<(String, Option<OsString>, String)> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let call = Call::of(&arguments)?;
        let rest: Vec<&str> = call.arguments.iter().filter_map(|word| word.to_str()).collect();
        Some((call.sibling.program.to_owned(), call.display, rest.join(" ")))
    }

    #[test]
    fn a_command_of_another_program_is_passed_on_unchanged() {
        let wire = |display: Option<&str>, rest: &str| {
            Some(("xqos-wire".to_owned(), display.map(OsString::from), rest.to_owned()))
        };
        assert_eq!(call("cap -o x.pcap -- xterm -e ls"), wire(None, "cap -o x.pcap -- xterm -e ls"));
        assert_eq!(call("cap --display :3"), wire(None, "cap --display :3"));
        assert_eq!(call("--display :7 plot x"), wire(Some(":7"), "plot x"));
        assert_eq!(call("--display=:7 help link"), wire(Some(":7"), "help link"));
        let bench = |rest: &str| Some(("xqos-bench".to_owned(), None, rest.to_owned()));
        assert_eq!(call("bench run all"), bench("run all"));
        assert_eq!(call("help bench run"), bench("help run"));
        for own in ["", "list", "run -- cap", "help", "--help cap", "help list", "--display"] {
            assert_eq!(call(own), None, "{own}");
        }
    }

    #[test]
    fn a_description_survives_json() {
        let format = Arg::new("format").long("format").short('f').help("How").value_parser(["svg", "xpl"]);
        let quick = Arg::new("quick").long("quick").action(ArgAction::SetTrue);
        let file = Arg::new("file").help("Which");
        let more = Arg::new("more").help("Others").action(ArgAction::Append).last(true);
        let hidden = Command::new("man").hide(true);
        let command = Command::new("plot").about("Draws").args([format, quick, file, more]).subcommand(hidden);
        let described = CommandDescription::of(&command);
        let json = serde_json::to_string(&described).unwrap();
        let again: CommandDescription = serde_json::from_str(&json).unwrap();
        assert_eq!(again, described);
        let again = again.command();
        again.clone().debug_assert();
        assert_eq!(CommandDescription::of(&again), described);
        assert_eq!(again.get_subcommands().count(), 0);
    }
}
