// SPDX-License-Identifier: MIT
//! Commands that are separate programs: the arguments that they get, and the message if they are not installed.

use crate::fixture::{Folder, ended, xqos};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A program that prints its arguments; its description has one command.
const ECHO: &str = r#"#!/bin/sh
if [ "$1" = describe ]; then
    echo '{"name":"xqos-wire","about":"","options":[],"commands":[{"name":"cap","about":"Captures","options":[
        {"long":"snaplen","short":null,"help":"","takes_value":true,"files":false,"values":[]}],"commands":[]}]}'
    exit
fi
echo "$DISPLAY:" "$@"
exit 7
"#;

fn install(folder: &Path, name: &str) {
    xqos_testkit::executable(&folder.join(name), ECHO.as_bytes());
}

/// xqos in a folder without the other programs.
fn alone(folder: &Folder) -> Command {
    let program = folder.path.join("xqos");
    if !program.exists() {
        xqos_testkit::executable(&program, &fs::read(crate::PROGRAM).unwrap());
    }
    let mut command = Command::new(program);
    command.env("PATH", folder.path.join("elsewhere")).env_remove("DISPLAY");
    command
}

#[test]
fn a_sibling_gets_the_arguments_and_returns_the_exit_status() {
    let folder = Folder::new("sibling");
    install(&folder.path, "xqos-wire");
    install(&folder.path, "xqos-bench");
    for (typed, told) in [
        (&["cap", "-o", "x y", "--", "xterm", "--help"][..], ": cap -o x y -- xterm --help\n"),
        (&["--display", ":7", "plot", "--help"], ":7: plot --help\n"),
        (&["help", "link"], ": help link\n"),
        (&["bench", "run", "all"], ": run all\n"),
    ] {
        assert_eq!(ended(alone(&folder).args(typed)).with(7).out, told);
    }
}

#[test]
fn a_missing_sibling_is_reported_with_its_package() {
    let folder = Folder::new("no-sibling");
    ended(alone(&folder).args(["cap", "-o", "x"])).failed_saying(&["xqos-wire", "install the package xqos-wire"]);
    ended(alone(&folder).args(["bench", "list"])).failed_saying(&["install the package xqos-bench"]);
    let elsewhere = folder.path.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    install(&elsewhere, "xqos-bench");
    assert_eq!(ended(alone(&folder).args(["bench", "list"])).with(7).out, ": list\n", "it is in PATH");
}

#[test]
fn help_and_completions_include_commands_of_siblings() {
    let folder = Folder::new("sibling-help");
    let help = ended(xqos().arg("--help")).with(0).out;
    for command in ["cap", "analyse", "plot", "link", "near", "ssh", "bench"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is missing in\n{help}");
    }
    let completions = |shell: &str| ended(alone(&folder).args(["completions", shell])).with(0).out;
    assert!(!completions("bash").contains("snaplen"));
    install(&folder.path, "xqos-wire");
    for shell in ["bash", "zsh", "fish"] {
        assert!(completions(shell).contains("snaplen"), "{shell}");
    }
}
