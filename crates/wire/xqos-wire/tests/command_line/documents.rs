// SPDX-License-Identifier: MIT
//! Runs commands from README and the documents exactly as printed there. Tests in each program's `main` check that the
//! other commands at least parse.

#[allow(dead_code, reason = "each program's tests use some of the checks")]
#[path = "../../../../ground/cli/tests/support/checks.rs"]
mod checks;

use crate::fixture::{Ended, Folder, Server, ended, xqos};
use std::path::Path;
use std::process::Command;
use xqos_cli::sibling::Call;

/// The commands in order: later commands use the files of earlier commands.
const RUN: [&str; 9] = [
    "xqos cap -o editor.pcapng --stop-on quiet=2s -- emacs",
    "xqos analyse --latency 50ms editor.pcapng",
    "xqos analyse --predict rate=1mbit,delay=50ms editor.pcapng",
    "xqos analyse --predict grid editor.pcapng",
    "xqos analyse --proxy strict --latency 100ms editor.pcapng",
    "xqos analyse --parquet fleet.parquet editor.pcapng",
    "xqos plot editor.pcapng -o editor.html",
    "xqos near -- emacs",
    "xqos near --report -- xterm",
];
const LINK: &str = "xqos link --rate 1mbit --delay 20ms --display :7 --server 'Xvfb :7 -listen tcp' -- xterm";

/// Creates a folder in which emacs and xterm are small clients.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    for program in ["emacs", "xterm"] {
        xqos_testkit::executable(&folder.path.join(program), b"#!/bin/sh\nexec xdpyinfo\n");
    }
    folder
}

/// Runs a command from a document; `edit` may replace each word.
#[track_caller]
fn run(mut command: Command, folder: &Folder, shown: &str, edit: impl Fn(String) -> String) -> Ended {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let arguments = checks::arguments(&root, shown).unwrap_or_else(|| panic!("no document has '{shown}'"));
    let words: Vec<_> = arguments.into_iter().map(|word| edit(word).into()).collect();
    let path = format!("{}:{}", folder.path.display(), std::env::var("PATH").unwrap());
    command.args(Call::of(&words).unwrap().arguments).current_dir(&folder.path);
    ended(command.env("PATH", path).env("XDG_CACHE_HOME", &folder.path)).with(0)
}

#[test]
fn commands_of_the_documents_work() {
    let (server, folder) = (Server::stock(), folder("documents"));
    RUN.iter().for_each(|shown| _ = run(server.xqos(&[]), &folder, shown, |word| word));
}

#[test]
fn a_link_of_the_documents_displays_its_program() {
    let folder = folder("documents-link");
    if !crate::link::is_allowed() {
        return;
    }
    // Use another display number, because this machine may use display 7.
    let number = 30_000 + std::process::id() % 10_000;
    let told = run(xqos(), &folder, LINK, |word| word.replace(":7", &format!(":{number}")));
    assert!(told.out.contains(&format!("name of display:    10.0.0.1:{number}")), "{told:#?}");
}
