// SPDX-License-Identifier: MIT
//! Tests the checks that the tests of all programs share.

#[allow(dead_code, reason = "each program's tests use some of the checks")]
#[path = "support/checks.rs"]
mod checks;

use checks::CODE;
use clap::Command;
use std::fs;

#[test]
fn commands_are_found_in_documents() {
    let text = "Read `sudo xqos\ntop` and `xqos COMMAND --help`, xqos says.\n\
                \n    $ xqos list          who uses it; `xqos top` too\n    xqos: 3 clients\n    A=1 xqos link \\\n        --server 'Xvfb :7' -- sh &\n\
                \n    ~/.xinitrc (startx)   /usr/bin/xqos rules run &\n    sudo apt purge xqos\n";
    let found: Vec<_> = checks::shown("text", text, CODE)
        .into_iter()
        .map(|shown| (shown.arguments.join("|"), shown.is_whole))
        .collect();
    let expected =
        [("list", true), ("link|--server|Xvfb :7|--|sh", true), ("rules|run", true), ("top", false), ("top", false)];
    assert_eq!(found, expected.map(|(words, is_whole)| (words.to_owned(), is_whole)));
}

#[test]
fn a_command_that_the_program_rejects_is_a_fault() {
    let folder = std::env::temp_dir().join(format!("xqos-documents-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("README.md"), "`xqos top --rate`, `xqos top --fast`, `xqos near x`\n\n    xqos top\n")
        .unwrap();
    let command = || {
        let rate = clap::Arg::new("rate").long("rate").required(true);
        Command::new("xqos").subcommand(Command::new("top").arg(rate))
    };
    let found = checks::faults(&folder, &command(), |words| command().try_get_matches_from(words).map(drop));
    fs::remove_dir_all(&folder).unwrap();
    let [whole, inline] = &found[..] else { panic!("{found:?}") };
    assert!(whole.contains("README.md: xqos top: ") && inline.contains("xqos top --fast: "), "{found:?}");
}
